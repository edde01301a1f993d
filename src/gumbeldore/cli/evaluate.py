"""`gumbeldore evaluate`: policies x samplers x sets, and baselines in the same table, with intervals; resumable at any moment."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass, fields
from pathlib import Path

import tyro
from rich.console import Console
from rich.markup import escape

from gumbeldore.cli.evaluate_table import show
from gumbeldore.cli.problem_argument import take_entry
from gumbeldore.errors import GumbeldoreError
from gumbeldore.evaluation import Evaluation, PolicyMethod, Report
from gumbeldore.evaluation.comparing import Comparison
from gumbeldore.evaluation.method_names import BASELINES, SAMPLERS
from gumbeldore.kits.kit import Kit
from gumbeldore.networks.layers import slow_note
from gumbeldore.parallel.cluster import Cluster
from gumbeldore.parallel.devices import bounded
from gumbeldore.runs.bars import counter


@dataclass(frozen=True)
class EvaluateSettings:
    """Compare policies with samplers, and baselines, on sets of instances. Stop and repeat it at will: it goes on.

    Answers are kept in the folder by content, so adding a method or a set computes nothing anew.
    """

    sets: tuple[str, ...] = ()  # standard sets by name, files or folders of instances
    random: int | None = None  # also so many random instances, as a set of their own
    policies: tuple[str, ...] = ()  # files, folders of runs or names of policies that ship; `label=...` names it in the table
    samplers: tuple[str, ...] = ()  # such as greedy beam:16 wor:16x1,p=0.8 gd:32x4,sigma=0.05 preset:best; greedy if left out
    parts: tuple[str, ...] = ()  # what solve does, such as all:10s local-search:2s policy+local-search:10s
    baselines: tuple[str, ...] = ()  # such as pyvrp:2s or nearest-neighbour
    solutions: tuple[str, ...] = ()  # of another program, as label=FILE: sets like those of `gumbeldore label`
    folder: Path = Path("runs/evaluate")  # table.csv, .json, .md, .png, and all answers
    first: int | None = None  # only the first so many instances of each set
    repeats: int = 1  # methods that draw at random are run with so many seeds
    seed: int = 0  # the first of them; also of random instances
    against: str | None = None  # the method, as the table names it, that differences are to; the first if left out
    workers: int = os.cpu_count() or 1  # parallel processes; 0: this one
    cluster: str | None = None  # instead: a Ray cluster (local, auto, HOST:PORT, ray://HOST:PORT), with a process per core

    @property
    def pool(self) -> int | Cluster:
        return bounded(self.workers) if self.cluster is None else Cluster(self.cluster)

    def comparison(self, kit: Kit) -> Comparison:
        """What the options ask for."""
        names = [f.name for f in fields(Comparison) if f.name not in ("kit", "notes")]
        return Comparison(kit, **{name: getattr(self, name) for name in names})


def command(arguments: list[str]) -> int:
    """gumbeldore evaluate PROBLEM; returns the exit code: 0, 1 if some files could not be read."""
    entry, arguments = take_entry("evaluate", arguments)
    prog = f"gumbeldore evaluate {entry.argument}"
    settings = tyro.cli(EvaluateSettings, args=arguments, prog=prog, description=about(entry.kit))
    faults = [fault for named in evaluate(entry.kit, settings).sets for fault in named.faults]
    for fault in faults:
        Console(stderr=True).print(f"[red]Error:[/red] {escape(fault)}", highlight=False, soft_wrap=True)
    return 1 if faults else 0


def about(kit: Kit) -> str:
    """What can be named, for the help."""
    known = "\n".join(f"  {name}: {baseline.summary}" for name, baseline in kit.baselines.items()) or "  none"
    return (
        f"{EvaluateSettings.__doc__}\n\nStandard sets: {', '.join(kit.standard) or 'none'}.\n"
        f"Samplers: {SAMPLERS}; options after commas: sigma=0.05, p=0.8 (or p=0.95..1, from the first round to the last), "
        f"either may be auto, augmentations=8, nearest=250.\nBaselines, as {BASELINES}:\n{known}"
    )


def evaluate(kit: Kit, settings: EvaluateSettings, console: Console | None = None) -> Report:
    """Computes what is missing, prints the table and writes it into the folder."""
    console = console or Console()
    comparison = settings.comparison(kit)
    with comparison.opened() as evaluation:
        for note in comparison.notes:
            console.print(note, style="yellow", highlight=False, markup=False, soft_wrap=True)
        for method in evaluation.methods:
            if isinstance(method, PolicyMethod) and (slow := slow_note(method.policy)):
                console.print(slow)
        _run(evaluation, settings, console)
        report, files = comparison.written(evaluation)
    show(report, console)
    written = ", ".join(path.name for path in files)
    console.print(f"Wrote {written} into {settings.folder}.", highlight=False, soft_wrap=True)
    if report.failures:
        failed = "; ".join(f"{row.method} on {row.named}: {row.failure}" for row in report.failures)
        raise GumbeldoreError(f"Some rows are missing. {failed}")
    return report


def _run(evaluation: Evaluation, settings: EvaluateSettings, console: Console) -> None:
    if evaluation.kept:
        console.print(f"{evaluation.kept} answers are there already.", highlight=False)
    done, total = evaluation.kept, evaluation.total
    try:
        with closing(evaluation.run(settings.pool)) as steps, counter(console, "evaluating", done, total) as count:
            for step in steps:
                done = step.done
                count(done, f"{step.method.name} on {step.named.name}")
    except BaseException:
        if done:
            console.print(
                f"Stopped: {done} of {total} answers are kept in {settings.folder}; the same command goes on.",
                highlight=False,
                soft_wrap=True,
            )
        raise
