"""The travelling salesman problem: all that the project knows about it."""

from gumbeldore.problems.tsp.problem import TSP, TSPState

__all__ = ["TSP", "TSPState"]
