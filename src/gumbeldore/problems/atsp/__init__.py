"""The asymmetric travelling salesman problem: all that the project knows about it."""

from gumbeldore.problems.atsp.problem import ATSP, ATSPState

__all__ = ["ATSP", "ATSPState"]
