"""A user's own files or arrays as instances to train on, without labels."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gumbeldore.errors import require
from gumbeldore.io.reading import instance_files, read_file
from gumbeldore.kits.instances import InstanceSet
from gumbeldore.kits.kit import Instance, Kit
from gumbeldore.problem import State
from gumbeldore.training.given import GivenInstances

Own = str | Path | InstanceSet | Instance


@dataclass(frozen=True)
class OwnInstances:
    """Instances of any sizes, as a policy sees them."""

    sets: tuple[InstanceSet, ...]  # one for each size
    files: tuple[Path, ...] = ()  # where they come from, as far as that is files

    @classmethod
    def read(cls, kit: Kit, given: Sequence[Own]) -> OwnInstances:
        """Files in any format of the kit, folders of them, sets of arrays or single instances."""
        schema = kit.need("instance files", "instances")
        found, files = list[Instance](), list[Path]()
        for own in given:
            if isinstance(own, InstanceSet):
                found += [_seen(own, row) for row in range(len(own))]
            elif isinstance(own, Instance):
                found.append(own)
            else:
                path = Path(own)
                members = instance_files(path, kit)[0] if path.is_dir() else [path]
                require(bool(members), f"The folder {path} holds no files of {kit.name} instances.")
                found += [instance for member in members for instance in read_file(member, kit)[1]]
                files.append(path)
        by_shape: dict[Any, list[Instance]] = {}
        for instance in found:
            by_shape.setdefault(tuple((name, array.shape) for name, array in sorted(instance.unit.items())), []).append(
                instance
            )
        stacks = [{name: np.stack([each.unit[name] for each in same]) for name in same[0].unit} for same in by_shape.values()]
        return cls(tuple(InstanceSet(schema, arrays) for arrays in stacks), tuple(files))

    @property
    def count(self) -> int:
        return sum(len(each) for each in self.sets)

    @property
    def source(self) -> GivenInstances[Any]:
        """What a training draws from."""
        return GivenInstances(tuple(each.state() for each in self.sets))

    def validation(self, most: int) -> tuple[State, ...]:
        """The instances on which the run is judged: all of them, or a part of each size."""
        shares = [max(1, len(each) * most // self.count) if self.count > most else len(each) for each in self.sets]
        return tuple(each.state(rows=slice(0, share)) for each, share in zip(self.sets, shares, strict=True))

    @property
    def digest(self) -> str:
        return hashlib.sha256(" ".join(sorted(each.digest for each in self.sets)).encode()).hexdigest()


def _seen(given: InstanceSet, row: int) -> Instance:
    arrays = given.instance(row)
    unit, scale = given.kind.unit(arrays)
    return Instance(arrays, unit, scale)
