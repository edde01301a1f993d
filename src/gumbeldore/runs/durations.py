"""Lengths of time as people say them."""

from __future__ import annotations

from itertools import pairwise

_UNITS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


def duration(seconds: float) -> str:
    """`4.2 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`."""
    if seconds < 10:
        return f"{max(seconds, 0.0):.1f} s"
    whole = round(seconds)
    for (large, size), (small, part) in pairwise(_UNITS):
        if whole >= size:
            return f"{whole // size} {large} {whole % size // part} {small}"
    return f"{whole} s"
