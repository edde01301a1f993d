"""Whose fault an error is: one line about code of a kit that raised, with the function's name."""

from __future__ import annotations

from gumbeldore.errors import GumbeldoreError, foreign_fault
from gumbeldore.kits.kit import Kit


def blamed(error: Exception, kit: Kit) -> str:
    """The message of an error of ours; of any other that a kit's own code raised, where and in which function. What is neither is raised."""
    if isinstance(error, GumbeldoreError):
        return str(error)
    if fault := foreign_fault(error):
        return f"The kit `{kit.name}`: its {fault}"
    raise error
