"""What problems and policies there are, by name: known without importing any, which takes seconds."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

BUILT_IN = ("tsp", "atsp", "cvrp", "vrptw", "jssp", "fjsp", "pfsp", "op", "gomoku")
_GROUP = "gumbeldore.kits"
_PROBLEMS = Path(__file__).resolve().parents[1] / "problems"


def kit_names() -> list[str]:
    """The names of our kits and of those that installed packages announce."""
    return list(dict.fromkeys([*BUILT_IN, *(point.name for point in announced())]))


def problem_names() -> list[str]:
    """What commands take as a problem: our kits with each of their architectures, which have presets each, and installed ones."""
    ours = [path.name for kit in BUILT_IN for path in sorted((_PROBLEMS / kit / "presets").iterdir()) if path.is_dir()]
    return [*ours, *(name for name in kit_names() if name not in BUILT_IN)]


def policies_folder(kit: str) -> Path | None:
    """Where the policies are that ship with one of our kits; None: the kit itself must be asked."""
    return _PROBLEMS / kit / "policies" if kit in BUILT_IN else None


def announced() -> list[EntryPoint]:
    """The kits of installed packages that are not called as ours."""
    return [point for point in entry_points(group=_GROUP) if point.name not in BUILT_IN]
