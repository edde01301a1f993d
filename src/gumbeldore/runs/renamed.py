"""Names and values that settings had in earlier versions. Files that hold them are still read, with a line that says so.

A setting that moves gets a line in `_RENAMED`; one that is gone a line in `_GONE`; one that changes its form a function in `_CONVERSIONS`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from gumbeldore.errors import SettingsError, notice

Table = dict[str, Any]

_RENAMED = {
    "training.polish": "training.local_search",
    "training.recoveries": "training.relabel",
    "training.window": "training.replay_window",
    "training.averaging": "training.ema",
    "sampler.variants": "sampler.augmentations",
}
"""By the dotted name that was: the one that is."""

_GONE: dict[str, Any] = {
    "training.gradient_norm": 1.0,
    "validation.seed": 4321,
}
"""Settings that are no more, with the value that all is done with now."""


def renewed(settings: Mapping[str, Any], where: str = "") -> Table:
    """The same settings as this version names them; `where` they stand is for the message."""
    table, told = copy.deepcopy(dict(settings)), list[str]()
    for old, new in _RENAMED.items():
        if _has(table, old) and not _has(table, new):
            _put(table, new, _take(table, old))
            told.append(f"`{old}` is `{new}` now")
    for convert in _CONVERSIONS:
        told += convert(table)
    for name, usual in _GONE.items():
        if _has(table, name):
            value = _take(table, name)
            if value != usual:
                raise SettingsError(f"`{name}` = {value} is no longer possible: all is done with {usual}. Leave it out.")
    if told:
        notice(f"Old names of settings{f' in {where}' if where else ''}: {'; '.join(told)}.")
    return table


def _replay(table: Table) -> list[str]:
    """Which policy generates, and what is learnt from, were three settings."""
    told = []
    if _has(table, "training.generate_with_best"):
        best = _take(table, "training.generate_with_best")
        table["training"].setdefault("generating", "best" if best else "current")
        told.append("`training.generate_with_best` is `training.generating` now")
    if _has(table, "training.dataset_grows"):
        if not _take(table, "training.dataset_grows"):
            table["training"]["replay_window"] = 1
        told.append("`training.dataset_grows` is `training.replay_window` now")
    return told


def _precision(table: Table) -> list[str]:
    """Coarser arithmetic was two switches."""
    coarse = [name for name in ("bf16", "tf32") if _has(table, f"training.{name}") and _take(table, f"training.{name}")]
    if coarse:
        table["training"].setdefault("precision", coarse[0])
        return [f"`training.{coarse[0]}` is `training.precision` now"]
    return []


def _nearest(table: Table) -> list[str]:
    """Records of routes said that no nodes were left out."""
    routes = str(table.get("problem_name", "")).partition("-")[0] in ("tsp", "cvrp")
    if routes and _has(table, "problem.nearest") and table["problem"]["nearest"] is None:
        _take(table, "problem.nearest")
    return []


_CONVERSIONS: list[Callable[[Table], list[str]]] = [_replay, _precision, _nearest]
"""Functions that bring settings of an older form into today's, and say what they changed."""


def _has(table: Mapping[str, Any], name: str) -> bool:
    group, _, rest = name.partition(".")
    if not rest:
        return group in table
    return isinstance(table.get(group), Mapping) and _has(table[group], rest)


def _take(table: Table, name: str) -> Any:
    group, _, rest = name.partition(".")
    return _take(table[group], rest) if rest else table.pop(group)


def _put(table: Table, name: str, value: Any) -> None:
    group, _, rest = name.partition(".")
    if rest:
        _put(table.setdefault(group, {}), rest, value)
    else:
        table[group] = value
