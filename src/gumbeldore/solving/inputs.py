"""From whatever a user gives to jobs: files and folders, arrays, distances, random instances."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gumbeldore.errors import GumbeldoreError, SettingsError, require
from gumbeldore.io.reading import instance_files, read_file, read_solution, solution_cost
from gumbeldore.kits.instances import InstanceSet, row_arrays
from gumbeldore.kits.kit import Instance, InstanceGenerator, Kit, StateGenerator
from gumbeldore.kits.registry import kit_named
from gumbeldore.policy import Network
from gumbeldore.solving.jobs import Job
from gumbeldore.solving.running import Failure

NAMED = 4
"""Files that a note names."""


Source = str | Path | Instance | Mapping[str, Any] | Sequence[Any] | NDArray[Any] | torch.Tensor
"""A file, an instance, the arrays of one, or the places of cities."""


def jobs_of(source: Source, kit: Kit | None = None) -> list[Job]:
    """The jobs of one thing that a user names."""
    if isinstance(source, str | Path):
        jobs, failures = read_jobs(files_in([source], kit), kit)
        if failures:
            raise SettingsError(failures[0].message)
        return jobs
    if isinstance(source, Instance):
        return [Job(kit or _need_kit("an `Instance`"), source)]
    if isinstance(source, Mapping):
        return [Job(kit or _need_kit("arrays"), given) for given in array_instances(source, kit or _need_kit("arrays"))]
    if kit is not None and kit.name != "tsp":
        raise SettingsError(f"Instances of {kit.name} are given as arrays by name: {_names(kit)}.")
    return [Job(kit_named("tsp"), given) for given in array_instances({"coordinates": plain_array(source)}, kit_named("tsp"))]


def matrix_job(matrix: Any, name: str = "") -> Job:
    """Cities of which only the distances are known, from the row's to the column's; they need not be symmetric."""
    kit = kit_named("atsp")
    return Job(kit, kit.need("instances of distances alone", "of_matrix")(plain_array(matrix), name))


def array_instances(arrays: Mapping[str, Any], kit: Kit) -> list[Instance]:
    """One instance, or several of one size if the arrays have an axis more."""
    kind = kit.need("instance files", "instances")
    held = {name: plain_array(array) for name, array in arrays.items()}
    for name in set(kind.axes) ^ set(held) - set(kind.optional):
        raise SettingsError(
            f"The arrays of a {kit.name} instance are {_names(kit)}, {'got' if name in held else 'without'} `{name}`."
        )
    axes = {**kind.axes, **kind.optional}
    more = {name: array.ndim - (len(axes[name].split()) - 1) for name, array in held.items()}
    require(
        set(more.values()) <= {0} or set(more.values()) <= {1},
        f"The arrays must be those of one instance or of several: {_names(kit)}.",
    )
    if set(more.values()) == {0}:
        held = {name: array[None] for name, array in held.items()}
    instances = InstanceSet(kind, held)
    return [Instance(one, *kind.unit(one)) for one in (instances.instance(row) for row in range(len(instances)))]


def plain_array(values: Any) -> NDArray[Any]:
    """Numbers as an array: of a list, of numpy, of torch."""
    try:
        array = np.asarray(values.detach().cpu() if isinstance(values, torch.Tensor) else values)
    except ValueError as error:
        raise SettingsError(f"Points must be pairs of numbers: {error}") from error
    require(array.dtype.kind in "iuf", f"An instance consists of numbers, got {array.dtype}.")
    require(bool(np.isfinite(array).all()), "An instance consists of finite numbers, got NaN or infinity.")
    return array


def _need_kit(what: str) -> Kit:
    raise SettingsError(f"Say which problem {what} belongs to, by `kit`: solve(..., kit=...).")


def _names(kit: Kit) -> str:
    kind = kit.need("instance files", "instances")
    return ", ".join(f"`{name}` ({', '.join(axes.split()[1:]) or 'one number'})" for name, axes in kind.axes.items())


def random_jobs(kit: Kit, generator: InstanceGenerator | StateGenerator, policy: Network | None = None) -> list[Job]:
    """Random instances, always the same for the same settings."""
    if isinstance(generator, StateGenerator):
        network: Any = policy
        problem, state = generator.states(network, torch.device("cpu"))
        starts = [state.rows(slice(row, row + 1)).compact() for row in range(state.row_count)]
        return [
            Job(kit, Instance(row_arrays(start, 0), {}), row=row, start=(problem, start)) for row, start in enumerate(starts)
        ]
    kit.need("instance files", "instances")
    drawn = generator.generate()
    instances = [drawn.instance(row) for row in range(len(drawn))]
    return [Job(kit, Instance(each, *drawn.kind.unit(each)), row=row) for row, each in enumerate(instances)]


def files_in(paths: Iterable[str | Path], kit: Kit | None = None) -> list[Path]:
    """The files, in place of a folder those of its files that look like instances, each once."""
    found: list[Path] = []
    for path in map(Path, paths):
        require("\0" not in str(path), f"A file's name cannot hold a null byte, got {str(path)!r}.")
        within = instance_files(path, kit)[0] if path.is_dir() else [path]
        if not within:
            raise SettingsError(f"There are no files of instances in the folder {path}.")
        found += within
    return list(dict.fromkeys(found))


def left_out(paths: Iterable[str | Path], kit: Kit | None = None) -> str:
    """A note about files of folders that look like no instances; empty if there are none."""
    others = [other.name for path in map(Path, paths) if path.is_dir() for other in instance_files(path, kit)[1]]
    more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
    return f"Left out, because they look like no instances: {', '.join(others[:NAMED])}{more}." if others else ""


def read_jobs(files: Sequence[Path], kit: Kit | None = None) -> tuple[list[Job], list[Failure]]:
    """The instances of all files, and what is wrong with the other files."""
    jobs: list[Job] = []
    failures = []
    for file in files:
        try:
            owner, given = read_file(file, kit)
            jobs += [Job(owner, each, file, row) for row, each in enumerate(given)]
        except GumbeldoreError as error:
            failures.append(Failure(file, str(error)))
    return jobs, failures


def begun(job: Job, start: str | Path | Sequence[int]) -> Job:
    """The job with a solution to go on from: actions, a file of a solution in one of the kit's formats."""
    if not isinstance(start, str | Path):
        actions = [int(action) for action in start]
    else:
        path = Path(start)
        exports = [export for export in job.kit.exports.values() if path.name.endswith(export.suffix)]
        known = ", ".join(export.suffix for export in job.kit.exports.values() if export.read is not None)
        require(
            bool(exports), f"`start` must be a solution of {job.kit.name} ({known or 'no format is known'}), got {path.name}."
        )
        actions = read_solution(exports[0], job.given, path)
    solution_cost(job.kit, job.given, actions)  # raises where it is infeasible
    return replace(job, begin=tuple(actions))
