"""How long a search may go on: by work, by the clock, or both."""

from __future__ import annotations

from gumbeldore.errors import require

_ENDLESS = (1 << 63) - 1


def limits(work: int | None, seconds: float | None) -> tuple[int, float]:
    """Both as the compiled code takes them."""
    require(work is not None or seconds is not None, "`run` needs `work` or `seconds`, got neither.")
    require(work is None or work >= 0, f"`work` must be at least 0, got {work}.")
    require(seconds is None or seconds >= 0, f"`seconds` must be at least 0, got {seconds}.")
    return _ENDLESS if work is None else min(work, _ENDLESS), float("inf") if seconds is None else float(seconds)
