"""Gomoku against a rule bot: all that the project knows about it."""

from gumbeldore.problems.gomoku.problem import Gomoku, GomokuState

__all__ = ["Gomoku", "GomokuState"]
