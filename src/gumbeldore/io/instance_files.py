"""Files of instances (docs/reference/files.md). Reading executes nothing.

tests = read_instances("tsp100.npz")
solutions = Greedy()(TSP(), policy, tests.state(), generator=generator)
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbeldore.errors import FormatError, SettingsError, require
from gumbeldore.files import check_writable, remove_parts, write_atomically
from gumbeldore.io.arrays import read_arrays
from gumbeldore.kits.instances import CHUNK, InstanceSchema, InstanceSet, Labels
from gumbeldore.kits.registry import kit_named, kit_names

_FORMAT = "gumbeldore-instances-1"


def write_instances(path: str | Path, instances: InstanceSet) -> None:
    """Writes the set into one .npz file, atomically."""
    path = Path(path)
    require(path.suffix == ".npz", f"A file of instances must end in .npz, got {path.name}.")
    content: dict[str, Any] = {"format": np.array(_FORMAT), "problem": np.array(instances.kind.name), **instances.arrays}
    if instances.labels is not None:
        content |= {
            "actions": instances.labels.actions,
            "objective": instances.labels.objective,
            "optimal": instances.labels.optimal,
            "solver": np.array(instances.labels.solver),
        }

    def write(temporary: Path) -> None:
        with open(temporary, "wb") as handle:
            np.savez(handle, **content)  # no objects: the types were checked

    write_atomically(path, write)


def read_instances(path: str | Path, problem: str | InstanceSchema | None = None) -> InstanceSet:
    """The set in a file written by `write_instances`, all of it checked. `problem` says which one is wanted."""
    content = _read_arrays(Path(path))
    name = _named(content, path)
    wanted = problem.name if isinstance(problem, InstanceSchema) else problem
    kind = problem if isinstance(problem, InstanceSchema) else _kind_named(name)
    if kind is None or name != (wanted or name):
        raise FormatError(f"{path} must hold instances of {wanted or 'a known problem'}, but says it holds those of {name!r}.")
    try:
        label_names = ("actions", "objective", "optimal", "solver")
        present = [label for label in label_names if label in content]
        require(
            len(present) in (0, 4), f"labels are {', '.join(label_names)}, all or none, but only {', '.join(present)} are there"
        )
        given = {label: content.pop(label) for label in present}
        labels = Labels(**{**given, "solver": _text(given["solver"])}) if given else None  # type: ignore[arg-type]
        instances = InstanceSet(kind, content, labels)
        for start in range(0, len(instances), CHUNK):
            instances.state(rows=slice(start, start + CHUNK))  # the problem's own checks
    except SettingsError as error:
        raise FormatError(f"{path} is not a valid file of {name} instances: {error}") from error
    return instances


def named_problem(path: str | Path) -> str | None:
    """The problem that a file of instances says it belongs to."""
    return _named(_read_arrays(Path(path), ("format", "problem")), path)


def _named(content: dict[str, NDArray[Any]], path: str | Path) -> str | None:
    if _text(content.pop("format", None)) != _FORMAT:
        raise FormatError(
            f"{path} is not a file of instances of this library (format {_FORMAT}). Make one with `gumbeldore generate`."
        )
    return _text(content.pop("problem", None))


def _kind_named(name: str | None) -> InstanceSchema | None:
    """The kind of instances that a file says it holds, if a kit of that name is known and has some."""
    return kit_named(name).instances if name in kit_names() else None


def _read_arrays(path: Path, only: Sequence[str] | None = None) -> dict[str, NDArray[Any]]:
    """All arrays of a file of instances, or those of these names."""
    if not path.is_file():
        raise FormatError(f"There is no file of instances {path}. Make one with `gumbeldore generate`.")
    return read_arrays(path, only)


def _text(array: NDArray[Any] | None) -> str | None:
    return str(array) if array is not None and array.shape == () and array.dtype.kind == "U" else None


def check_out(out: Path) -> None:
    """Raises unless the file can be written: before the work, not after it."""
    require(out.suffix == ".npz", f"`out` must end in .npz, got {out.name!r}.")
    require(not out.exists(), f"{out} exists already. Delete it, or choose another --out.")
    check_writable(out.parent, "--out")
    remove_parts(out.parent, [out.name])
