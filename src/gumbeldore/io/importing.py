"""Files of the method's public code become ours, and nothing in them is executed.

policy, facts = import_policy("checkpoint.pt")
sets = import_instances("tsp_100.pickle")
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gumbeldore.errors import CheckpointError, FormatError, GumbeldoreError, SettingsError
from gumbeldore.io.pickles import read_pickle
from gumbeldore.kits.instances import InstanceSet
from gumbeldore.kits.kit import Architecture, Kit
from gumbeldore.kits.published import PublishedInstance
from gumbeldore.kits.registry import kit_named, kit_names
from gumbeldore.policy import Network

BEST, CURRENT = "best_model_weights", "model_weights"
_TOLERANCE = (
    1e-3  # how far the stated cost of a solution may be off, as a fraction: some files were computed in single precision
)


def import_policy(path: str | Path, *, heads: int | None = None, current: bool = False) -> tuple[Network, dict[str, str]]:
    """The policy in a checkpoint of the public code, and what else it says: the problem and the epochs trained.

    The best weights are taken, or the `current` ones. `heads` is needed where the width is not that of the public configuration.
    """
    content = _read_checkpoint(Path(path))
    weights = _weights(content, CURRENT if current else BEST, Path(path))
    kit, architecture = _recognised(weights, Path(path))
    try:
        size = architecture.published.size({name: tuple(weight.shape) for name, weight in weights.items()}, heads)  # type: ignore[union-attr]
        policy = architecture.network(**size)
        policy.load_state_dict(weights)
    except (GumbeldoreError, RuntimeError, TypeError) as error:
        raise CheckpointError(f"{path} {_one_line(error)}") from error
    epochs = content.get("epochs_trained")
    return policy.eval(), {"problem": kit, **({"epoch": str(epochs)} if isinstance(epochs, int) else {})}


def import_instances(path: str | Path) -> list[InstanceSet]:
    """The instances in a data file of the public code, one set for each size, with their solutions, all of which are verified."""
    path = Path(path)
    records = list(_records(read_pickle(path)))
    kit = _kit_of(records, path)
    sizes: dict[tuple[tuple[int, ...], ...], list[PublishedInstance]] = {}
    for number, record in enumerate(records):
        one = _read_record(kit, record, number, path)
        sizes.setdefault(tuple(array.shape for array in one.arrays.values()), []).append(one)
    return [_set(kit, group, path) for group in sizes.values()]


def _read_checkpoint(path: Path) -> dict[str, Any]:
    """Tensors and plain data, and scalars of numpy; torch's own reader refuses anything else."""
    if not path.is_file():
        raise CheckpointError(f"There is no checkpoint {path}.")
    try:
        with torch.serialization.safe_globals(_numpy_scalars()):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever a damaged file leads to
        named = re.search(r"GLOBAL ([\w.]+)", str(error))
        what = f"it names `{named[1]}`, which weights do not need. Do not trust this file" if named else "it is damaged or none"
        raise CheckpointError(f"{path} is not a checkpoint of tensors and plain data: {what}.") from error
    if not isinstance(content, dict):
        raise CheckpointError(
            f"{path} must hold a dictionary, as checkpoints of the public code do, got {type(content).__name__}."
        )
    return content


def _numpy_scalars() -> list[Any]:
    """What a scalar of numpy is made of, under its old and its new name."""
    scalar = np.float64(0.0).__reduce__()[0]
    return [(scalar, f"numpy.{place}.multiarray.scalar") for place in ("core", "_core")] + [
        np.dtype, *(type(np.dtype(kind)) for kind in (np.float64, np.float32))
    ]  # fmt: skip


def _weights(content: Mapping[str, Any], wanted: str, path: Path) -> dict[str, Tensor]:
    weights = content.get(wanted)
    sound = isinstance(weights, dict) and weights and all(isinstance(weight, Tensor) for weight in weights.values())
    if not sound:
        raise CheckpointError(
            f"{path} is not a checkpoint of the public code: its `{wanted}` must be a dictionary of tensors, got "
            f"{type(weights).__name__} (it holds {', '.join(sorted(map(str, content))[:8]) or 'nothing'})."
        )
    return {str(name): weight.float() for name, weight in weights.items()}  # type: ignore[union-attr]


def _recognised(weights: Mapping[str, Tensor], path: Path) -> tuple[str, Architecture]:
    """The problem as the command line calls it, and the network that has these parameters."""
    for kit in map(kit_named, kit_names()):
        for number, (name, architecture) in enumerate(kit.architectures.items()):
            if architecture.published is not None and architecture.published.mark in weights:
                return f"{kit.name}-{name}" if number else kit.name, architecture
    raise CheckpointError(
        f"{path} holds a network of no known kind: none is known with parameters such as {sorted(weights)[:3]}."
    )


def _one_line(error: Exception) -> str:
    if isinstance(error, RuntimeError):
        return "does not fit the network that its parameters' names say it is: " + " ".join(str(error).split())[:300]
    return f"{str(error).rstrip('.')}."


def _records(content: Any) -> Iterator[Mapping[str, Any]]:
    """The records of a list, or of the lists of a dictionary."""
    lists = content.values() if isinstance(content, dict) else [content]
    for records in lists:
        for record in records if isinstance(records, list) else []:
            if isinstance(record, dict):
                yield record


def _kit_of(records: list[Mapping[str, Any]], path: Path) -> Kit:
    for kit in map(kit_named, kit_names()):
        if records and kit.published is not None and kit.published.keys <= set(records[0]):
            return kit
    found = f"records with {', '.join(sorted(map(str, records[0])))}" if records else "no list of records"
    raise FormatError(f"{path} holds data of no known problem: {found}.")


def _read_record(kit: Kit, record: Mapping[str, Any], number: int, path: Path) -> PublishedInstance:
    try:
        assert kit.published is not None
        return kit.published.read(record)
    except (SettingsError, ValueError, TypeError, LookupError, OverflowError) as error:
        raise FormatError(f"Record {number} of {path} is no {kit.name} instance: {error!r}.") from error


def _set(kit: Kit, group: list[PublishedInstance], path: Path) -> InstanceSet:
    """Instances of one size; they keep their solutions if all have one."""
    kind = kit.need("instance files", "instances")
    try:
        arrays = {name: np.stack([one.arrays[name] for one in group]) for name in kind.axes}
        instances = InstanceSet(kind, arrays)
        instances.state()  # the problem's own checks
        if any(one.actions is None for one in group):
            return instances
        labelled = instances.labelled([one.actions or [] for one in group], f"as in {path.name}")
        _check_costs(labelled, group)
    except SettingsError as error:
        raise FormatError(f"{path}: {error}") from error
    return labelled


def _check_costs(instances: InstanceSet, group: list[PublishedInstance]) -> None:
    """The solutions must be worth what the file says."""
    assert instances.labels is not None
    for number, (one, objective) in enumerate(zip(group, instances.labels.objective, strict=True)):
        if isinstance(one.cost, int | float) and not abs(one.cost + objective) <= _TOLERANCE * max(1.0, abs(objective)):
            raise SettingsError(f"the solution of instance {number} costs {-objective:.6g}, but the file says {one.cost:.6g}.")
