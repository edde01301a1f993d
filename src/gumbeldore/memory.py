"""How much memory there is: to refuse what cannot fit, before it is begun."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path


def gigabytes(size: float) -> str:
    return f"{size / 1e9:.2g} GB" if size < 1e10 else f"{size / 1e9:,.0f} GB"


def free_memory() -> float:
    """Bytes that this process may still take, where the system says so: of the machine, and of the container it may be in."""
    return min(_free_on_machine(), _free_in_container())


def _free_on_machine() -> float:
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    with suppress(AttributeError, ValueError, OSError):
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return math.inf


def _free_in_container() -> float:
    """By control groups, version 2."""
    group = Path("/sys/fs/cgroup")
    with suppress(OSError, ValueError):
        return float(int((group / "memory.max").read_text()) - int((group / "memory.current").read_text()))
    return math.inf
