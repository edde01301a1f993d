"""Settings from files: nested dataclasses filled from TOML or JSON. Unknown names and wrong types raise."""

from __future__ import annotations

import dataclasses
import difflib
import json
import tomllib
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from gumbeldore.errors import SettingsError, notice, require
from gumbeldore.runs.renamed import renewed

T = TypeVar("T")


def read_settings(path: str | Path) -> dict[str, Any]:
    """The content of a .toml or .json file of settings."""
    path = Path(path)
    require(path.is_file(), f"There is no settings file {path}.")
    require(path.suffix in (".toml", ".json"), f"A settings file must end in .toml or .json, got {path.name}.")
    try:
        content = tomllib.loads(path.read_text()) if path.suffix == ".toml" else json.loads(path.read_text())
    except (tomllib.TOMLDecodeError, json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SettingsError(f"{path} cannot be read as {path.suffix[1:].upper()}: {error}") from error
    require(isinstance(content, dict), f"{path} must hold a table of settings, got {type(content).__name__}.")
    return renewed(content, str(path))


def merged(base: T, changes: Mapping[str, Any], where: str = "") -> T:
    """A copy of the dataclass `base` with nested `changes`; every name must exist and every type must fit."""
    hints = typing.get_type_hints(type(base))
    names = [f.name for f in dataclasses.fields(base)]  # type: ignore[arg-type]
    updates: dict[str, Any] = {}
    changes = upgraded(base, changes, where)
    for name, value in changes.items():
        if name not in names:
            close = difflib.get_close_matches(name, names, 1)
            hint = f" Did you mean `{where}{close[0]}`?" if close else f" Known: {', '.join(where + n for n in names)}."
            raise SettingsError(f"Unknown setting `{where}{name}`.{hint}")
        current = getattr(base, name)
        if isinstance(value, str) and hasattr(type(current), "of"):
            updates[name] = type(current).of(value)
        elif dataclasses.is_dataclass(current):
            require(isinstance(value, Mapping), f"`{where}{name}` must be a table of settings, got {value!r}.")
            updates[name] = merged(current, value, f"{where}{name}.")
        else:
            updates[name] = _converted(value, hints[name], where + name)
    return dataclasses.replace(base, **updates)  # type: ignore[type-var]


def upgraded(base: Any, changes: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Changes with old names of settings as new ones, where `base` knows of some (`upgraded`); says so."""
    if not hasattr(base, "upgraded"):
        return changes
    now = base.upgraded(changes, base)
    if old := [f"`{where}{name}`" for name in changes if name not in now]:
        new = [f"`{where}{name} = {json.dumps(value)}`" for name, value in now.items() if changes.get(name) != value]
        notice(f"{', '.join(old)}: an older version's settings, read as {', '.join(new) or 'nothing'}.")
    return now


def as_plain(settings: Any) -> dict[str, Any]:
    """Nested dictionaries that `merged` accepts again and JSON can hold."""
    plain = dataclasses.asdict(settings)
    return json.loads(json.dumps(plain))


def _converted(value: Any, hint: Any, name: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:  # whoever uses it checks it
        return value
    if origin in (types.UnionType, typing.Union):
        return _one_of(value, arguments, name)
    if origin is typing.Literal:
        require(value in arguments, f"`{name}` must be one of {', '.join(map(repr, arguments))}, got {value!r}.")
        return value
    if origin is tuple and isinstance(value, list | tuple):
        kinds = arguments[:1] * len(value) if arguments[-1] is Ellipsis else arguments
        require(len(value) == len(kinds), f"`{name}` must hold {len(kinds)} values, got {value!r}.")
        return tuple(_converted(v, a, name) for v, a in zip(value, kinds, strict=True))
    if dataclasses.is_dataclass(hint) and isinstance(value, Mapping):
        return merged(hint(), value, f"{name}.")  # type: ignore[operator]
    if origin is dict and isinstance(value, Mapping):
        return {key: _converted(v, arguments[1], f"{name}.{key}") for key, v in value.items()}
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is Path and isinstance(value, str):
        return Path(value)
    kind = origin or hint
    fits = isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool)
    require(fits, f"`{name}` must be of type {getattr(kind, '__name__', kind)}, got {value!r}.")
    return value


def _one_of(value: Any, hints: tuple[Any, ...], name: str) -> Any:
    """The value as the first of several types that it fits."""
    if value is None and type(None) in hints:
        return None
    faults = []
    for hint in hints:
        if hint is not type(None):
            try:
                return _converted(value, hint, name)
            except SettingsError as fault:
                faults.append(fault)
    if len(faults) == 1:
        raise faults[0]
    kinds = " or ".join(str(hint) if typing.get_origin(hint) else hint.__name__ for hint in hints if hint is not type(None))
    raise SettingsError(f"`{name}` must be of type {kinds}, got {value!r}.")
