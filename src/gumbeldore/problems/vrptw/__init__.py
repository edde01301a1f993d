"""Vehicle routing with time windows: all that the project knows about it."""

from gumbeldore.problems.vrptw.problem import VRPTW, VRPTWState

__all__ = ["VRPTW", "VRPTWState"]
