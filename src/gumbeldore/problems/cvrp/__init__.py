"""Capacitated vehicle routing: all that the project knows about it."""

from gumbeldore.problems.cvrp.problem import CVRP, CVRPState

__all__ = ["CVRP", "CVRPState"]
