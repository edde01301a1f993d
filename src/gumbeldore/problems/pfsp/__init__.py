"""The permutation flow shop: all that the project knows about it."""

from gumbeldore.problems.pfsp.problem import PFSP, PFSPState

__all__ = ["PFSP", "PFSPState"]
