"""Gumbeldore: neural solvers for combinatorial problems, trained without expert solutions."""

from gumbeldore.samplers import Gumbeldore

__all__ = ["Gumbeldore"]
