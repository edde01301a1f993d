"""How the steps of a reproduction are done: by the functions behind `train`, `label`, `imitate` and `evaluate`.

Trainings and labels lie in a folder that all experiments of a scale share, evaluations in that of the experiment. A step that is done leaves `NAME.step.json` beside its result.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from gumbeldore.bars import Bars
from gumbeldore.evaluation import Evaluation, NamedSet, PolicyMethod, Report
from gumbeldore.evaluation.method_names import sampler_named
from gumbeldore.files import write_atomically
from gumbeldore.io.instance_files import read_instances
from gumbeldore.io.policy_files import POLICY, load_policy
from gumbeldore.kits.instances import InstanceSet
from gumbeldore.kits.random_instances import generated
from gumbeldore.kits.registry import kit_named
from gumbeldore.kits.solver import Limit
from gumbeldore.policy import Network
from gumbeldore.reproduction import Evaluate, Expert, Imitate, Instances, Label, Results, Step, Train
from gumbeldore.reproduction.steps import digest
from gumbeldore.runs.folder import METRICS, RunFolder
from gumbeldore.runs.labelling import label
from gumbeldore.runs.options import RunOptions
from gumbeldore.runs.presets import Entry, entry
from gumbeldore.runs.run import TrainingRun
from gumbeldore.runs.settings import RunSettings
from gumbeldore.solving.policies import policy_for
from gumbeldore.training.checkpoint import read_metrics


@dataclass
class Workshop:
    """Where steps are done, and with what."""

    folder: Path  # of the experiment
    trained: Path  # policies and labels
    console: Console
    workers: int = 0
    device: str = "auto"
    given: Mapping[str, str] = field(default_factory=dict)  # policies that need no training: file, run or name, by step
    reports: dict[str, Report] = field(default_factory=dict)  # of the evaluations that were done

    def done(self, step: Step) -> bool:
        """Whether the result of exactly this step is there."""
        return bool(self._record(step).get("done")) and self._record(step).get("digest") == digest(step)

    def seconds(self, step: Step) -> float:
        """How long it was worked at, interrupted or not."""
        return float(self._record(step).get("seconds", 0.0))

    def do(self, step: Step) -> None:
        """Does a step, or goes on with it; what is done is skipped. Evaluations compute the answers that are missing."""
        if self.done(step) and not isinstance(step, Evaluate):
            return
        with self._recorded(step):
            if isinstance(step, Train):
                self._train(step)
            elif isinstance(step, Imitate):
                self._imitate(step)
            elif isinstance(step, Label):
                self._label(step)
            else:
                self.reports[step.name] = self._evaluated(step)

    def results(self, steps: tuple[Step, ...]) -> Results:
        """What was evaluated, and what trainings have recorded."""
        metrics = {step.name: self.metrics(step) for step in steps if isinstance(step, Train | Imitate)}
        return Results(self.reports, metrics)

    def metrics(self, step: Train | Imitate) -> list[dict[str, Any]]:
        """A record for each epoch of the step, with those of the step it follows."""
        return [line for line in read_metrics(self._run(step) / METRICS) if line["epoch"] <= step.epochs]

    def _run(self, step: Train | Imitate) -> Path:
        """The folder of a run, which steps that follow each other share."""
        return self.trained / "runs" / (step.name if isinstance(step, Imitate) or not step.follows else step.follows)

    def _train(self, step: Train) -> None:
        run = RunFolder(self._run(step))
        TrainingRun(entry(step.problem), settings_of(step), run.path, self._options(run)).finish()
        self._keep(run, step.name)

    def _imitate(self, step: Imitate) -> None:
        problem, run = entry(step.problem), RunFolder(self._run(step))
        path = self.labels(step.labels)
        labels = {path: read_instances(path, problem.kit.instances)}
        TrainingRun(problem, settings_of(step), run.path, self._options(run), labels).finish()
        self._keep(run, step.name)

    def _options(self, run: RunFolder) -> RunOptions:
        """Those of a run, which goes on where it was."""
        resume = run.checkpoints.exist
        return RunOptions(resume, device=self.device, workers=self.workers, console=self.console)

    def _keep(self, run: RunFolder, name: str) -> None:
        write_atomically(self.policy_file(name), lambda temporary: shutil.copyfile(run / POLICY, temporary))

    def _label(self, step: Label) -> None:
        kit = kit_named(step.problem)
        instances = _first(chosen_instances(step.problem, step.instances), step.instances.first)
        label(
            instances,
            self.labels(step.name),
            solver=step.expert.solver,
            limit=limit_of(step.expert),
            workers=max(1, self.workers),
            kit=kit,
            console=self.console,
        )

    def _evaluated(self, step: Evaluate) -> Report:
        kit = kit_named(step.problem)
        sets = [self.named_set(step.problem, given) for given in step.sets]
        policies = {name: self.policy(step.problem, name) for name in dict.fromkeys(method.policy for method in step.methods)}
        methods = []
        for method in step.methods:
            sampler, nearest = sampler_named(method.sampler)
            methods.append(PolicyMethod(method.name, policies[method.policy], sampler, nearest))
        evaluation = Evaluation(kit, sets, methods, self.folder / step.name, repeats=step.repeats)
        self._answer(evaluation, step.name)
        return evaluation.report()

    def _answer(self, evaluation: Evaluation, name: str) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        with closing(evaluation.run(self.workers)) as run, Bars(*columns, console=self.console) as progress:
            task = progress.add_task(f"evaluating {name}", total=None, completed=evaluation.kept)
            for step in run:
                progress.update(task, completed=step.done, total=step.total)

    def named_set(self, problem: str, given: Instances) -> NamedSet:
        """Instances with their best known costs, or those of labels, as reference."""
        kit = kit_named(problem)
        if given.labels:
            return NamedSet.of(given.name, read_instances(self.labels(given.labels), kit.instances), first=given.first)
        known = kit.known[given.standard]() if given.standard in kit.known else None
        return NamedSet.of(given.name, chosen_instances(problem, given), known, "best known values", given.first)

    def policy(self, problem: str, name: str) -> Network:
        """The policy that a step has trained, or that is given instead."""
        if name in self.given:
            return policy_for(kit_named(problem), self.given[name])
        return load_policy(self.policy_file(name))

    def policy_file(self, name: str) -> Path:
        return self.trained / f"{name}.safetensors"

    def labels(self, name: str) -> Path:
        return self.trained / f"{name}.npz"

    def _place(self, step: Step) -> Path:
        return (self.folder if isinstance(step, Evaluate) else self.trained) / f"{step.name}.step.json"

    def _record(self, step: Step) -> dict[str, Any]:
        with suppress(OSError, ValueError):
            record = json.loads(self._place(step).read_text())
            return record if isinstance(record, dict) else {}
        return {}

    @contextmanager
    def _recorded(self, step: Step) -> Iterator[None]:
        """Writes down how long it took, and whether it was done."""
        before, began, done = self.seconds(step), time.monotonic(), False
        try:
            yield
            done = True
        finally:
            record = {"digest": digest(step), "done": done, "seconds": round(before + time.monotonic() - began, 3)}
            text = json.dumps(record, indent=1) + "\n"
            write_atomically(self._place(step), lambda temporary: temporary.write_text(text))


def settings_of(step: Train | Imitate) -> RunSettings:
    """The settings of a training: the preset's, with the step's changes."""
    changes = {**step.changes, "training": {**step.changes.get("training", {}), "epochs": step.epochs}}
    found: Entry = entry(step.problem)
    return found.settings(step.preset, changes)


def limit_of(expert: Expert) -> Limit:
    return Limit(expert.seconds) if expert.work is None else Limit(None, expert.work)


def chosen_instances(problem: str, given: Instances) -> InstanceSet:
    """A standard set, or the instances of a recipe."""
    kit = kit_named(problem)
    return generated(
        kit.standard[given.standard] if given.standard else kit.need("instance generators", "generator")(**given.recipe)
    )


def _first(instances: InstanceSet, count: int | None) -> InstanceSet:
    return InstanceSet(instances.kind, {name: array[:count] for name, array in instances.arrays.items()})
