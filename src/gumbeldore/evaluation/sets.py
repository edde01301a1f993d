"""What methods are compared on: named sets of instances, of any sizes, with their best known costs where there are some."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gumbeldore.errors import FormatError, require
from gumbeldore.io.reading import instance_files, read_file
from gumbeldore.kits.instances import Arrays, InstanceSet
from gumbeldore.kits.kit import Instance, Kit


@dataclass(frozen=True)
class NamedSet:
    """Instances of one problem under a name."""

    name: str
    instances: tuple[Instance, ...]
    faults: tuple[str, ...] = ()  # why files of its folder are not in it

    def __post_init__(self) -> None:
        require(len(self.instances) >= 1, f"The set `{self.name}` must hold at least one instance, got none.")

    @classmethod
    def of(
        cls,
        name: str,
        given: InstanceSet,
        known: NDArray[np.float64] | None = None,
        known_from: str = "",
        first: int | None = None,
    ) -> NamedSet:
        """A set of arrays, or its `first` instances; `known` are its best known costs, otherwise those of its labels, if it has any."""
        if known is None and given.labels is not None:
            known, known_from = -given.labels.objective, f"labels by {given.labels.solver}"
        require(
            known is None or len(known) == len(given),
            f"The set `{name}` has {len(given)} instances, but {0 if known is None else len(known)} known costs.",
        )
        members = []
        for index in range(len(given))[: _checked(first)]:
            arrays = given.instance(index)
            unit, scale = given.kind.unit(arrays)
            best = None if known is None else float(known[index])
            members.append(Instance(arrays, unit, scale, f"{name}[{index}]", known=best, known_from=known_from))
        return cls(name, tuple(members))

    @classmethod
    def read(cls, kit: Kit, path: Path, first: int | None = None) -> NamedSet:
        """The instances of a file in any of the kit's formats, or of all such files in a folder, or the `first` of them.

        A file of a folder that cannot be read does not stop the others: `faults` says why.
        """
        files = instance_files(path, kit)[0] if path.is_dir() else [path]
        require(bool(files), f"The folder {path} holds no files of {kit.name} instances.")
        found, faults = list[Instance](), list[FormatError]()
        for file in files:
            try:
                found += read_file(file, kit)[1]
            except FormatError as error:
                faults.append(error)
        if not found:
            raise faults[0]
        return cls(path.stem or str(path), tuple(found[: _checked(first)]), tuple(map(str, faults)))

    @classmethod
    def standard(cls, kit: Kit, name: str, first: int | None = None) -> NamedSet:
        """One of the kit's standard sets, or its `first` instances."""
        known = kit.known[name]() if name in kit.known else None
        return cls.of(name, kit.standard[name].generate(), known, "best known values", first)

    def __len__(self) -> int:
        return len(self.instances)

    @cached_property
    def digests(self) -> tuple[str, ...]:
        """A hash of each instance, by which its answers are found again."""
        return tuple(_digest(given) for given in self.instances)

    @property
    def known(self) -> NDArray[np.float64] | None:
        """The best known cost of each instance, if all have one."""
        costs = [given.known for given in self.instances]
        return None if None in costs else np.array(costs, dtype=np.float64)

    @property
    def known_from(self) -> str:
        """Who says so."""
        return ", ".join(dict.fromkeys(given.known_from for given in self.instances if given.known_from))


def _checked(first: int | None) -> int | None:
    require(first is None or first >= 1, f"`first` must be at least 1, got {first}.")
    return first


def _digest(given: Instance) -> str:
    """A hash of what a method sees of an instance."""
    content = hashlib.sha256(f"{given.scale!r}".encode())
    for arrays in (given.arrays, given.unit):
        _add(content, arrays)
    return content.hexdigest()


def shape(given: Instance) -> tuple[tuple[str, tuple[int, ...], str], ...]:
    """What must agree between instances that are solved together."""
    return tuple((name, array.shape, array.dtype.str) for name, array in sorted(given.unit.items()))


def stacked(instances: tuple[Instance, ...]) -> Mapping[str, NDArray[np.generic]]:
    """Instances of one size as a policy sees them, with an instance axis."""
    return {name: np.stack([given.unit[name] for given in instances]) for name in instances[0].unit}


def _add(content: "hashlib._Hash", arrays: Arrays) -> None:
    for name, array in sorted(arrays.items()):
        plain = np.ascontiguousarray(array)
        content.update(f"{name} {plain.dtype.str} {plain.shape}".encode())
        content.update(plain.tobytes())
