"""How kits are found: ours by name, those of installed packages by their entry points, any other by where it stands.

A package announces its kits in its pyproject.toml:

    [project.entry-points."gumbeldore.kits"]
    flowshop = "my_package.flow_shop:KIT"

Naming `path/to/file.py:KIT` executes that file. So this is done for what a user typed, never for what a file says.
"""

from __future__ import annotations

import copyreg
import importlib
import sys
import traceback
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from gumbeldore.errors import SettingsError, require
from gumbeldore.kits.kit import Kit
from gumbeldore.kits.names import BUILT_IN, announced, kit_names
from gumbeldore.policy import Network

__all__ = ["BUILT_IN", "all_kits", "kit_at", "kit_named", "kit_names", "policy_class"]


def kit_named(name: str) -> Kit:
    """One of ours, or of an installed package."""
    if name in BUILT_IN:
        return importlib.import_module(f"gumbeldore.problems.{name}.kit").KIT
    found = [point for point in announced() if point.name == name]
    places = ", ".join(point.value for point in found)
    require(len(found) <= 1, f"Several installed packages announce a kit `{name}`: {places}. Uninstall all but one.")
    if found:
        return _loaded(found[0])
    raise SettingsError(
        f"Unknown problem `{name}`. Known: {', '.join(kit_names())}. One of your own: `path/to/file.py:KIT` or `package.module:KIT`."
    )


def kit_at(place: str) -> Kit:
    """The kit at `path/to/file.py:KIT` or `package.module:KIT`, which is imported, that is executed."""
    where, _, name = place.rpartition(":")
    module = _module_of_file(Path(where)) if where.endswith(".py") else _imported(where)
    kit = getattr(module, name, None)
    if not isinstance(kit, Kit):
        kits = [key for key, value in vars(module).items() if isinstance(value, Kit)]
        hint = f" It holds {', '.join(f'`{where}:{key}`' for key in kits)}." if kits else ""
        raise SettingsError(f"`{place}` must name a `Kit`, got {type(kit).__name__}.{hint}")
    taken = kit.name in BUILT_IN and kit is not kit_named(kit.name)
    require(not taken, f"The kit at `{place}` is called `{kit.name}`, as one of ours is. Give it another name.")
    _PLACES[id(kit)] = place
    return kit


def argument(kit: Kit) -> str:
    """How a command names the kit: by where it stands, if that is how it was named."""
    return kit.name if kit.name in BUILT_IN else _PLACES.get(id(kit), kit.name)


_PLACES: dict[int, str] = {}
"""Where kits that were named by their place are, by identity."""


def _reduced(kit: Kit) -> Any:
    """How a kit is sent to another process: by its name or its place, since what it consists of need not be fit for that."""
    if kit.name in kit_names() and kit_named(kit.name) is kit:
        return kit_named, (kit.name,)
    if id(kit) in _PLACES:
        return kit_at, (_PLACES[id(kit)],)
    return object.__reduce_ex__(kit, 4)


copyreg.pickle(Kit, _reduced)


def policy_class(name: str) -> type[Network] | None:
    """The network of that class name in one of our kits or those of installed packages."""
    for kit in all_kits():
        for architecture in kit.architectures.values():
            if architecture.network.__name__ == name:
                return architecture.network
    return None


def all_kits() -> Iterator[Kit]:
    """Ours and those of installed packages."""
    for name in kit_names():
        yield kit_named(name)


def _loaded(point: EntryPoint) -> Kit:
    try:
        kit = point.load()
    except Exception as error:  # whatever another package does when it is imported
        raise SettingsError(
            f"The kit `{point.name}` ({point.value}) cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    require(isinstance(kit, Kit), f"The entry point `{point.name}` ({point.value}) must be a `Kit`, got {type(kit).__name__}.")
    return kit


def _module_of_file(path: Path) -> Any:
    """The module of a file, under its own name, so that worker processes, which inherit the search path, can import it too."""
    require(path.is_file(), f"There is no file {path} to take a kit from.")
    folder, name = str(path.resolve().parent), path.stem
    require(name.isidentifier(), f"A file with a kit must have a name that Python can import, got {path.name}.")
    if folder not in sys.path:
        sys.path.append(folder)
    module = _imported(name)
    found = getattr(module, "__file__", None)
    require(
        found is not None and Path(found).resolve() == path.resolve(),
        f"{path} cannot be imported, because another module is called `{name}` ({found}). Give the file another name.",
    )
    return module


def _imported(name: str) -> Any:
    require(bool(name), "A kit is named by `path/to/file.py:KIT` or `package.module:KIT`.")
    try:
        return importlib.import_module(name)
    except Exception as error:  # whatever the file does
        raise SettingsError(f"`{name}` cannot be imported{_line(error)}: {type(error).__name__}: {error}") from error


def _line(error: Exception) -> str:
    """Where a file that is imported fails; a syntax error says so itself."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.name == "<module>"]
    return f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""
