"""What the system says about a process: whether it lives, since when, how much memory it and its children hold."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
_GONE = (OSError, ValueError, IndexError)  # what reading of a process raises that ends meanwhile


def born(pid: int) -> str:
    """When a process began, as the system counts; it tells a process from a later one of the same number. Linux only: else empty."""
    with suppress(*_GONE):
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[19]
    return ""


def lives(pid: int, since: str) -> bool:
    """Whether the process that was born at `since` is still there."""
    if since:
        return born(pid) == since and _letter(pid) != "Z"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # another user's
    return True


def memory_mb(pid: int) -> float:
    """Resident memory of a process and its descendants, in MB. Where the system does not tell, the largest so far of this process."""
    pages = sum(_pages(member) for member in (pid, *_descendants(pid)))
    if pages:
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    if pid != os.getpid():
        return 0.0
    import resource  # not on Windows

    unit = 1.0 if sys.platform == "darwin" else 1024.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def _letter(pid: int) -> str:
    with suppress(*_GONE):
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
    return ""


def _pages(pid: int) -> int:
    with suppress(*_GONE):
        return int((PROC / str(pid) / "statm").read_text().split()[1])
    return 0


def _descendants(pid: int) -> Iterator[int]:
    for child in _children(pid):
        yield child
        yield from _descendants(child)


def _children(pid: int) -> list[int]:
    """Of all threads of a process; threads and children may end at any moment."""
    found: list[int] = []
    with suppress(*_GONE):
        for thread in os.listdir(PROC / str(pid) / "task"):
            with suppress(*_GONE):
                found += map(int, (PROC / str(pid) / "task" / thread / "children").read_text().split())
    return found
