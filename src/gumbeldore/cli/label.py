"""`gumbeldore label`: expert solutions for instances, kept as labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic

import tyro
from rich.console import Console

from gumbeldore.cli.console import lasting_console
from gumbeldore.cli.generate import R, standard_sets
from gumbeldore.cli.problem_argument import take_entry
from gumbeldore.errors import require
from gumbeldore.io.instance_files import read_instances
from gumbeldore.kits.instances import InstanceSet
from gumbeldore.kits.kit import Kit
from gumbeldore.kits.random_instances import chosen, generated
from gumbeldore.kits.solver import Limit
from gumbeldore.parallel.cluster import Cluster
from gumbeldore.runs.labelling import label


@dataclass(frozen=True)
class LabelSettings(Generic[R]):
    """Solve instances with an expert and keep the solutions as labels. Stop and repeat it at will: it goes on."""

    out: Path  # the file to write: .npz
    generator: Annotated[R, tyro.conf.arg(name="")]
    standard: str | None = None  # a standard test set by name, instead of one by size, count and seed
    instances: Path | None = None  # a file made by `gumbeldore generate`, instead of generating them
    solver: str = "auto"  # which solver; auto: the best that is installed
    seconds: float = 2.0  # how long it may search per instance
    work: float | None = None  # instead: iterations (HGS, PyVRP), deterministic time (CP-SAT), attempts per item (gumbeldore)
    workers: int = 2  # parallel processes
    cluster: str | None = None  # instead: a Ray cluster (local, auto, HOST:PORT, ray://HOST:PORT), with a solver per core


def command(arguments: list[str]) -> None:
    """gumbeldore label PROBLEM"""
    entry, arguments = take_entry("label", arguments)
    shape, about = _options(entry.kit)
    label_files(entry.kit, tyro.cli(shape, args=arguments, prog=f"gumbeldore label {entry.argument}", description=about))


def _options(kit: Kit) -> tuple[Any, str]:
    """The settings of `gumbeldore label` for one problem, and their description."""
    kit.need("instance files", "instances")
    generator, solvers = kit.need("generators of random instances", "generator"), kit.need("solvers to label with", "experts")
    return LabelSettings[generator], f"{LabelSettings.__doc__}\n\nSolvers: {', '.join(solvers)}. {standard_sets(kit)}"  # type: ignore[valid-type]


def label_files(kit: Kit, settings: LabelSettings[Any], console: Console | None = None) -> InstanceSet:
    """`label` for what the command line asks for."""
    if settings.instances is None:
        instances = generated(chosen(kit, settings.generator, settings.standard))
    else:
        require(
            settings.standard is None and settings.generator == type(settings.generator)(),
            "`instances` names a file: leave out the other options that say what to solve.",
        )
        instances = read_instances(settings.instances, kit.instances)
    limit = Limit(settings.seconds) if settings.work is None else Limit(None, settings.work)
    return label(
        instances,
        settings.out,
        solver=settings.solver,
        limit=limit,
        workers=settings.workers,
        cluster=None if settings.cluster is None else Cluster(settings.cluster),
        kit=kit,
        console=console or lasting_console(),
    )
