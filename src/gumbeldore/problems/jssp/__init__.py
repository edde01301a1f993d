"""Job shop scheduling: all that the project knows about it."""

from gumbeldore.problems.jssp.problem import JSSP, JSSPState

__all__ = ["JSSP", "JSSPState"]
