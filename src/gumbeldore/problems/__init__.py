"""The problems, one file each."""

from gumbeldore.problems.tsp import TSP, TSPState

__all__ = ["TSP", "TSPState"]
