"""`gumbeldore reproduce`: the tables and figures of the paper, each by one command that can be stopped and repeated."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as Grid

from gumbeldore.errors import SettingsError, require
from gumbeldore.files import check_writable, locked
from gumbeldore.reproduction import EXPERIMENTS, Experiment, Plan, Table
from gumbeldore.reproduction.costs import Cost
from gumbeldore.reproduction.estimates import Estimates, described, hours
from gumbeldore.reproduction.reproducing import reproduced
from gumbeldore.reproduction.steps import Evaluate
from gumbeldore.reproduction.workshop import Workshop


@dataclass(frozen=True)
class ReproduceSettings:
    """Make a table or figure of the paper again. Stop and repeat it at will: what is done is skipped, a training goes on where it was.

    Trainings and labels are shared by all experiments of a scale.
    """

    scale: Literal["smoke", "cpu", "paper"] = "smoke"  # to see that it runs; 90 minutes for all nine; the paper's settings
    folder: Path | None = None  # table.csv, table.md, figure.png and all answers; runs/reproduce/WHAT-SCALE if left out
    trained: Path | None = None  # policies and labels; trained-SCALE beside the folder if left out
    plan: bool = False  # only print what would be done, with an estimate of its cost
    only: tuple[str, ...] = ()  # only parts whose names begin so: tsp, jssp-late; the plan lists them
    use: tuple[str, ...] = ()  # policies that are there instead of trained ones: tsp-gd=FILE, =RUN or =NAME of one that ships
    workers: int = os.cpu_count() or 1  # parallel processes; 0: this one
    device: str = "auto"  # to train on


def command(arguments: list[str]) -> None:
    """gumbeldore reproduce WHAT"""
    if not arguments or arguments[0] in ("-h", "--help"):
        _list(Console())
        return
    what, *rest = arguments
    if what not in EXPERIMENTS:
        raise SettingsError(f"`WHAT` must be one of {', '.join(EXPERIMENTS)}, got {what!r}. `gumbeldore reproduce` lists them.")
    about = f"{EXPERIMENTS[what].title}. The paper: {EXPERIMENTS[what].claim}.\n\n{ReproduceSettings.__doc__}"
    reproduce(what, tyro.cli(ReproduceSettings, args=rest, prog=f"gumbeldore reproduce {what}", description=about))


def reproduce(what: str, settings: ReproduceSettings, console: Console | None = None) -> list[Table]:
    """Prints the plan, does what is missing, and writes tables and figure. With `plan` there are none."""
    console, experiment = console or Console(), EXPERIMENTS[what]
    given = _given(settings.use)
    plan = experiment.plan(settings.scale).only(settings.only).given(given)
    folder = settings.folder or Path("runs/reproduce") / f"{what}-{settings.scale}"
    trained = settings.trained or folder.parent / f"trained-{settings.scale}"
    workshop = Workshop(folder, trained, console, settings.workers, settings.device, given)
    _show(experiment, plan, workshop, console)
    if settings.plan:
        return []
    check_writable(folder, "--folder")
    check_writable(trained, "--trained")
    with locked(folder):
        return reproduced(experiment, plan, workshop, settings.scale)


def _given(texts: tuple[str, ...]) -> dict[str, str]:
    """`NAME=POLICY` by name."""
    for text in texts:
        name, equals, policy = text.partition("=")
        require(bool(name and equals and policy), f"`use` must have the form NAME=POLICY, got {text!r}.")
    return dict(text.split("=", 1) for text in texts)


def _show(experiment: Experiment, plan: Plan, workshop: Workshop, console: Console) -> None:
    """The plan, before it starts."""
    estimates, total = Estimates(plan, workshop), Cost()
    grid = Grid("step", "what", "cost here", "one GPU", "", box=SIMPLE_HEAD, pad_edge=False)
    for step in plan.steps:
        cost = estimates.of(step)
        total += cost
        on_gpu = hours(cost.gpu_seconds) if cost.operations else ""
        state = "done" if workshop.done(step) and not isinstance(step, Evaluate) else ""
        grid.add_row(step.name, described(step), hours(cost.core_seconds / max(1, workshop.workers)), on_gpu, state)
    console.print(f"[bold]{experiment.title}[/bold]. The paper: {experiment.claim}.", highlight=False)
    console.print(plan.caption, highlight=False)
    console.print(grid)
    console.print(
        f"Estimated from the network's operations: {hours(total.core_seconds / max(1, workshop.workers))} with {max(1, workshop.workers)} processes here, {hours(total.gpu_seconds)} of networks on one RTX A5000 at a quarter "
        f"of its peak. Files in {workshop.folder}, trainings in {workshop.trained}.",
        highlight=False,
        soft_wrap=True,
    )


def _list(console: Console) -> None:
    grid = Grid("WHAT", "of the paper", "its claim", box=SIMPLE_HEAD, pad_edge=False)
    for name, experiment in EXPERIMENTS.items():
        grid.add_row(name, experiment.title, experiment.claim)
    console.print(grid)
    console.print(
        "gumbeldore reproduce WHAT --scale smoke|cpu|paper: seconds, an hour and a half of one core for all nine, the paper's setting. --plan only prints what would be done; "
        "`gumbeldore reproduce WHAT --help` lists all options.",
        highlight=False,
        soft_wrap=True,
    )
