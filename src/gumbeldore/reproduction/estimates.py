"""What the steps of a reproduction are, in words, and what they will cost."""

from __future__ import annotations

import time
from functools import singledispatchmethod
from typing import Any

import torch

from gumbeldore.evaluation import PolicyMethod
from gumbeldore.evaluation.method_names import sampler_named
from gumbeldore.evaluation.sets import NamedSet
from gumbeldore.kits.registry import kit_named
from gumbeldore.policy import Network
from gumbeldore.problem import Problem
from gumbeldore.reproduction import Evaluate, Imitate, Instances, Label, Plan, Step, Train
from gumbeldore.reproduction.costs import Cost, Rollout, rollout, sequences, training
from gumbeldore.reproduction.workshop import Workshop, chosen_instances, limit_of, settings_of
from gumbeldore.runs.labelling import choose_solver
from gumbeldore.runs.presets import entry


def described(step: Step) -> str:
    """What a step does, with its sizes."""
    if isinstance(step, Label):
        return f"{_size_of(step.problem, step.instances)} {step.problem} instances solved by {step.expert}"
    if isinstance(step, Evaluate):
        sets = ", ".join(f"{given.name} ({_size_of(step.problem, given)})" for given in step.sets)
        again = f", {step.repeats} repeats" if step.repeats > 1 else ""
        return f"{len(step.methods)} methods on {sets}{again}"
    settings = settings_of(step)
    how = f"on {step.labels}" if isinstance(step, Imitate) else settings.sampler.method
    most = f"at most {step.epochs}" if settings.training.patience or settings.training.goal is not None else str(step.epochs)
    return f"{step.problem} {how}, {most} epochs"


def _size_of(problem: str, given: Instances) -> int:
    """How many instances a set has. Of labels, which may not be there yet, it is said how many are taken."""
    if given.first is not None:
        return given.first
    return int(given.recipe["count"]) if given.recipe else len(chosen_instances(problem, given))


def hours(seconds: float) -> str:
    """A time in a unit that suits it."""
    for unit, size in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.2g} s"


class Estimates:
    """The cost of each step of a plan, by timing and counting its networks on single instances."""

    def __init__(self, plan: Plan, workshop: Workshop) -> None:
        self._plan, self._workshop = plan, workshop
        self._known: dict[Any, Rollout] = {}

    @singledispatchmethod
    def of(self, step: Any) -> Cost:
        raise TypeError(f"There is no estimate for {type(step).__name__}.")

    @of.register
    def _(self, step: Label) -> Cost:
        return Cost(0.0, _size_of(step.problem, step.instances) * (step.expert.seconds or self._solving(step)))

    def _solving(self, step: Label) -> float:
        """Seconds for the first instance, by an expert that is limited by work."""
        expert, kit = step.expert, kit_named(step.problem)
        solve = kit.need("solvers to label with", "experts")[choose_solver(kit, expert.solver)]
        instance = chosen_instances(step.problem, step.instances).instance(0)
        began = time.process_time()
        solve(instance, limit_of(expert), 0)
        return time.process_time() - began

    @of.register(Train)
    @of.register(Imitate)
    def _(self, step: Train | Imitate) -> Cost:
        settings = settings_of(step)
        learned = self._rollout(step, settings.training_problem, "training")
        judged = self._rollout(step, settings.validation_problem, "validation")
        drawn = settings.training.instances if isinstance(step, Train) else 0
        return training(
            learned.total * sequences(settings.sampler.build()),
            learned.step,
            judged.total,
            instances=drawn,
            examples=settings.training.batches * settings.training.batch_size,
            validated=settings.validation.instances,
            epochs=step.epochs - self._before(step),
        )

    def _before(self, step: Train | Imitate) -> int:
        """Epochs of the step that this one follows."""
        followed = [
            s.epochs for s in self._plan.steps if isinstance(s, Train) and isinstance(step, Train) and s.name == step.follows
        ]
        return followed[0] if followed else 0

    def _rollout(self, step: Train | Imitate, problem: Problem[Any], what: str) -> Rollout:
        key = (step.problem, str(settings_of(step).policy), repr(problem))
        if key not in self._known:
            state = problem.generate(1, generator=torch.Generator().manual_seed(0))
            self._known[key] = rollout(problem, entry(step.problem).build(settings_of(step)), state)
        return self._known[key]

    @of.register
    def _(self, step: Evaluate) -> Cost:
        return sum((self._evaluated(step, given, method) for given in step.sets for method in step.methods), Cost())

    def _evaluated(self, step: Evaluate, given: Instances, method: Any) -> Cost:
        sampler, nearest = sampler_named(method.sampler)
        policy = self._policy(step.problem, method.policy)
        key = (step.problem, given.name, nearest, str(policy.config))
        if key not in self._known:
            how = PolicyMethod("", policy, sampler, nearest)
            kit = kit_named(step.problem)
            problem, state, _ = how.item(kit, self._sample(step.problem, given).instances, [0])
            self._known[key] = rollout(problem, policy, state)
        times = _size_of(step.problem, given) * (step.repeats if PolicyMethod("", policy, sampler).random else 1)
        return self._known[key].total * (times * sequences(sampler))

    def _sample(self, problem: str, given: Instances) -> NamedSet:
        """One instance of a set. Labels may not be there yet, but what they are made for is."""
        if given.labels:
            label = self._plan.step(given.labels)
            assert isinstance(label, Label)
            given = label.instances
        return NamedSet.of(given.name, chosen_instances(problem, given), first=1)

    def _policy(self, problem: str, name: str) -> Network:
        if name in self._workshop.given:
            return self._workshop.policy(problem, name)
        step = self._plan.step(name)
        assert isinstance(step, Train | Imitate)
        return entry(step.problem).build(settings_of(step))
