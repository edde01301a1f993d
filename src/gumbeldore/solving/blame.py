"""Whose fault an error is: one line about code of a kit that raised, with the function's name."""

from __future__ import annotations

import inspect
import traceback
from pathlib import Path

from gumbeldore.errors import GumbeldoreError
from gumbeldore.kits.kit import Kit

OURS = Path(__file__).resolve().parents[1]


def blamed(error: Exception, kit: Kit) -> str:
    """The message of an error of ours; of any other that a kit's own code raised, where and in which function. What is neither is raised."""
    if isinstance(error, GumbeldoreError):
        return str(error)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) in sources(kit)]
    if not frames:
        raise error
    reason = (str(error).strip().splitlines() or [""])[0]
    place = frames[0]
    return (
        f"The kit `{kit.name}`: its `{place.name}` ({Path(place.filename).name}, line {frames[-1].lineno}) raised "
        f"{type(error).__name__}: {reason}. --debug shows where from."
    )


def sources(kit: Kit) -> set[Path]:
    """The files that a kit's code is in, other than ours."""
    verify, problem = kit.solution_format.verify, kit.problem
    things = [type(problem), verify, *(each.network for each in kit.architectures.values())]
    found = set()
    for thing in things:
        try:
            path = Path(inspect.getfile(thing)).resolve()  # type: ignore[arg-type]
        except TypeError:
            continue
        if OURS not in path.parents:
            found.add(path)
    return found
