"""The orienteering problem: all that the project knows about it."""

from gumbeldore.problems.op.problem import OP, OPState

__all__ = ["OP", "OPState"]
