"""`gumbeldore evaluate`: policies x samplers x sets, and baselines in the same table, with intervals; resumable at any moment."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gumbeldore.cli.method_names import BASELINES, SAMPLERS, baseline_named, sampler_named
from gumbeldore.cli.problem_argument import take_entry
from gumbeldore.errors import GumbeldoreError, SettingsError, require
from gumbeldore.evaluation import Evaluation, Method, NamedSet, PolicyMethod, Report, draw_report, write_tables
from gumbeldore.evaluation.elsewhere import SolutionsMethod
from gumbeldore.evaluation.tables import HEADINGS, caption, shown
from gumbeldore.files import check_writable, locked
from gumbeldore.io.instance_files import read_instances
from gumbeldore.io.policy_files import POLICY
from gumbeldore.io.shipped import choose
from gumbeldore.kits.instances import InstanceSet
from gumbeldore.kits.kit import Kit
from gumbeldore.networks.layers import slow_note
from gumbeldore.parallel.cluster import Cluster
from gumbeldore.policy import Network
from gumbeldore.runs.bars import counter
from gumbeldore.solving.policies import policy_for

WIDE = 120
"""Columns of a window in which a row fits into one line."""
NARROW = ("method", "mean\ncost", "gap in %\n(95 %)", "difference\nin % (95 %)", "sec-\nonds", "evalu-\nations")
"""`HEADINGS` in any other."""


@dataclass(frozen=True)
class EvaluateSettings:
    """Compare policies with samplers, and baselines, on sets of instances. Stop and repeat it at will: it goes on.

    Answers are kept in the folder by content, so adding a method or a set computes nothing anew.
    """

    sets: tuple[str, ...]  # standard sets by name, files or folders of instances
    policies: tuple[str, ...] = ()  # files, folders of runs or names of policies that ship; `label=...` names it in the table
    samplers: tuple[str, ...] = ()  # such as greedy beam:16 wor:16x1,p=0.8 gd:32x4,sigma=0.05 preset:best; greedy if left out
    baselines: tuple[str, ...] = ()  # such as pyvrp:2s or nearest-neighbour
    solutions: tuple[
        str, ...
    ] = ()  # of another program, as label=FILE (several may share a label): sets like those of `gumbeldore label`
    folder: Path = Path("runs/evaluate")  # table.csv, .json, .md, .png, and all answers
    first: int | None = None  # only the first so many instances of each set
    repeats: int = 1  # methods that draw at random are run with so many seeds
    seed: int = 0  # the first of them
    against: str | None = None  # the method, as the table names it, that differences are to; the first if left out
    workers: int = os.cpu_count() or 1  # parallel processes; 0: this one
    cluster: str | None = None  # instead: a Ray cluster (local, auto, HOST:PORT, ray://HOST:PORT), with a process per core

    @property
    def pool(self) -> int | Cluster:
        return self.workers if self.cluster is None else Cluster(self.cluster)


def command(arguments: list[str]) -> int:
    """gumbeldore evaluate PROBLEM; returns the exit code: 0, 1 if some files could not be read."""
    entry, arguments = take_entry("evaluate", arguments)
    prog = f"gumbeldore evaluate {entry.name}"
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
    sets = [_set(kit, name, settings.first) for name in settings.sets]
    methods = _methods(kit, settings, console)
    against = settings.against
    names = [method.name for method in methods]
    require(against is None or against in names, f"`against` must be one of {', '.join(names)}, got {against!r}.")
    check_writable(settings.folder, "--folder")
    with locked(settings.folder):
        evaluation = Evaluation(kit, sets, methods, settings.folder, repeats=settings.repeats, seed=settings.seed)
        told = [f"{given.name}: {note}" for named in sets for given in named.instances for note in given.notes]
        for note in [*told, *(fault for named in sets for fault in named.faults), *evaluation.notes]:
            console.print(note, style="yellow", highlight=False, markup=False, soft_wrap=True)
        _run(evaluation, settings, console)
        report = evaluation.report(against)
        _finish(report, settings.folder, console)
    return report


def _finish(report: Report, folder: Path, console: Console) -> None:
    """Shows and writes the table; an error if rows are missing."""
    show(report, console)
    files = write_tables(folder, report)
    draw_report(folder / "table.png", report)
    written = ", ".join([path.name for path in files] + ["table.png"])
    console.print(f"Wrote {written} into {folder}.", highlight=False, soft_wrap=True)
    if report.failures:
        failed = "; ".join(f"{row.method} on {row.named}: {row.failure}" for row in report.failures)
        raise GumbeldoreError(f"Some rows are missing. {failed}")


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


def show(report: Report, console: Console) -> None:
    """A table for each set, and one over all; in a narrow window with intervals below their means."""
    wide = console.width >= WIDE
    for name, rows in report.tables.items():
        table = Table(title=name, caption=caption(name, report), caption_justify="left", box=SIMPLE_HEAD, pad_edge=False)
        table.collapse_padding = not wide
        method, *others = HEADINGS if wide else NARROW
        table.add_column(method, overflow="fold")
        for heading in others:
            table.add_column(heading, justify="right", no_wrap=True)
        for row in rows:
            table.add_row(*(text if wide else text.replace(" (", "\n(") for text in shown(row, report)))
        console.print(table)


def _set(kit: Kit, name: str, first: int | None) -> NamedSet:
    """A standard set, a file, or all files of a folder."""
    kit.need("instance files", "instances")
    if name in kit.standard:
        return NamedSet.standard(kit, name, first)
    if Path(name).exists():
        return NamedSet.read(kit, Path(name), first)
    known = ", ".join(kit.standard) or "none"
    raise SettingsError(f"`sets`: {name} is no file, no folder and no standard set of {kit.name} ({known}).")


def _methods(kit: Kit, settings: EvaluateSettings, console: Console) -> list[Method]:
    """Every policy with every sampler, then the baselines, then what others found."""
    samplers = [(text, *sampler_named(text)) for text in settings.samplers or ("greedy",)]
    baselines = [baseline_named(kit, text) for text in settings.baselines]
    policies = _policies(kit, settings)
    for policy in policies.values():
        if note := slow_note(policy):
            console.print(note)
    learned = [
        PolicyMethod(f"{label} {text}", policy, sampler, nearest)
        for label, policy in policies.items()
        for text, sampler, nearest in samplers
    ]
    return [*learned, *baselines, *_solutions(kit, settings.solutions)]


def _solutions(kit: Kit, texts: tuple[str, ...]) -> list[SolutionsMethod]:
    found: dict[str, list[InstanceSet]] = {}
    for text in texts:
        label, equals, name = text.partition("=")
        require(bool(label and equals and name), f"`solutions` must have the form label=FILE, got {text!r}.")
        found.setdefault(label, []).append(read_instances(name, kit.need("instance files", "instances")))
    return [SolutionsMethod.of(label, sets) for label, sets in found.items()]


def _policies(kit: Kit, settings: EvaluateSettings) -> dict[str, Network]:
    """By the label in the table. If neither policies nor baselines are named, the policy that ships."""
    if not settings.policies and (settings.samplers or not (settings.baselines or settings.solutions)):
        chosen = choose(kit)
        return {chosen.name: chosen.load()}
    found: dict[str, Network] = {}
    for text in settings.policies:
        label, equals, name = text.rpartition("=")
        label = label if equals else _label(name)
        require(
            label not in found, f"Two policies are called `{label}` in the table: name them, as in --policies first={name}."
        )
        found[label] = policy_for(kit, name)
    return found


def _label(name: str) -> str:
    path = Path(name)
    return path.parent.name if path.name == POLICY and path.parent.name else path.stem
