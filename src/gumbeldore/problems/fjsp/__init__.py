"""Flexible and general job shop scheduling: all that the project knows about it."""

from gumbeldore.problems.fjsp.problem import FJSP, FJSPState

__all__ = ["FJSP", "FJSPState"]
