"""Template: jobs on one machine, in the order of the least cost. Change it into your problem, piece by piece.

    gumbeldore check template.py:KIT                                    # does it keep the contract?
    gumbeldore train template.py:KIT --folder runs/template             # learns by itself, in a minute or two
    gumbeldore solve template.py:KIT --policy runs/template/policy.safetensors --count 3
    gumbeldore evaluate template.py:KIT --random 100 --policies runs/template --baselines earliest-due

Every job takes some time and is due at some time. It costs its weight for every unit of time until its end, and thrice that when it is late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from gumbeldore import Problem, State
from gumbeldore.kits import (
    OWN,
    Architecture,
    Arrays,
    Features,
    FormatError,
    Instance,
    InstanceSchema,
    InstanceSet,
    Kit,
    Limit,
    SetPolicy,
    SetSize,
    SolutionFormat,
    Verdict,
    check_generator,
    constructive,
    expert,
    number,
    permutation_fault,
    saved_figure,
    text_format,
)

LATE = 2.0
"""What lateness costs more, per unit of weight and time."""

# --- The problem -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TemplateState(State):
    """Partial solutions, one per row. What is in `per_instance` never changes and is stored once per instance."""

    per_instance: ClassVar[tuple[str, ...]] = ("time", "due", "weight")

    time: Tensor  # instance job
    due: Tensor  # instance job
    weight: Tensor  # instance job
    done: Tensor  # row job: whether it is in the order already
    clock: Tensor  # row: when the machine is free
    cost: Tensor  # row: of the jobs so far


@dataclass(frozen=True)
class Template(Problem[TemplateState]):
    """Action: the next job. The fields are the settings of the problem, --problem.jobs on the command line."""

    jobs: int = 12

    def generate(self, count: int, *, generator: torch.Generator, device: torch.device | str = "cpu") -> TemplateState:
        """Random instances, drawn from `generator` alone, so that a seed says which."""
        time, due, weight = torch.rand(3, count, self.jobs, generator=generator, dtype=torch.float64).to(device)
        return initial(time + 0.05, due * self.jobs / 2, weight + 0.05)

    def mask(self, state: TemplateState) -> Tensor:
        """Which actions are allowed. At least one in every row that is not done."""
        return ~state.done

    def done(self, state: TemplateState) -> Tensor:
        return state.done.all(1)

    def step(self, state: TemplateState, action: Tensor) -> TemplateState:
        """The state after one action per row. A row that is done stays as it is, whatever the action."""
        job = action[:, None]
        time, due, weight = (field[state.instance].gather(1, job).squeeze(1) for field in (state.time, state.due, state.weight))
        moving = ~self.done(state)
        clock = state.clock + time * moving
        cost = state.cost + weight * (clock + LATE * (clock - due).clamp(min=0)) * moving
        return replace(state, done=state.done.scatter(1, job, True), clock=clock, cost=cost)

    def objective(self, state: TemplateState) -> Tensor:
        """Larger is better, so minus what is to be small."""
        return -state.cost

    def horizon(self, state: TemplateState) -> int:
        """An upper bound on the steps that are left."""
        return int((~state.done).sum(1).max())


def initial(time: Tensor, due: Tensor, weight: Tensor) -> TemplateState:
    """Instances as states in which nothing is done yet."""
    count = len(time)
    nothing = time.new_zeros(count)
    done = torch.zeros_like(time, dtype=torch.bool)
    return TemplateState(torch.arange(count, device=time.device), time, due, weight, done, nothing, nothing)


# --- What a policy sees ----------------------------------------------------------------------------------------------------------


class TemplatePolicy(SetPolicy):
    """A transformer over the jobs that are left; only its features are yours. Keep them about as large as 1."""

    item_features, whole_features = 5, 1

    def features(self, state: TemplateState) -> Features:
        time, due, weight = (field[state.instance] for field in (state.time, state.due, state.weight))
        scale = time.sum(1, keepdim=True) / 2
        slack = due - state.clock[:, None] - time  # how late it may begin
        late = weight * (-slack).clamp(min=0)  # how late it is even if it comes next
        items = torch.stack([time, weight, weight / (time + 0.1), slack / scale, late / scale], -1)
        return Features(items, ~state.done, state.done.double().mean(1, keepdim=True))


# --- Solutions: checked by code that did not build them, and drawn -----------------------------------------------------------------


def cost_of(instance: Arrays, order: Sequence[int]) -> float:
    clock = cost = 0.0
    for job in order:
        clock += float(instance["time"][job])
        cost += float(instance["weight"][job]) * (clock + LATE * max(0.0, clock - float(instance["due"][job])))
    return cost


def verify(instance: Arrays, actions: Sequence[int]) -> Verdict:
    if fault := permutation_fault(actions, len(instance["time"]), "job", "jobs"):
        return Verdict.infeasible(fault)
    return Verdict(True, -cost_of(instance, actions))


def draw(path: Path, instance: Arrays, actions: Sequence[int], title: str) -> None:
    with saved_figure(path, size=(9, 2)) as axes:
        clock = 0.0
        for job in actions:
            time = float(instance["time"][job])
            late = clock + time > float(instance["due"][job])
            axes.broken_barh([(clock, time)], (0, 1), color="tab:red" if late else "tab:green", edgecolor="white")
            axes.text(clock + time / 2, 0.5, str(job), ha="center", va="center", fontsize=7)
            clock += time
        axes.set(title=title, xlabel="time; late jobs are red", yticks=[])


# --- Instances: arrays, random ones, and a format of files -------------------------------------------------------------------------

SCHEMA = InstanceSchema(
    "template",
    Template(),
    {"time": "instance job", "due": "instance job", "weight": "instance job"},  # axes of one name have one size
    frozenset(),  # arrays of whole numbers
    lambda arrays: initial(*(arrays[name].double() for name in ("time", "due", "weight"))),
    verify,
    lambda arrays: {"jobs": arrays["time"].shape[1]},  # as settings of the problem
)


@dataclass(frozen=True)
class TemplateGenerator:
    """Random instances that anyone can repeat with numpy, for test sets."""

    jobs: int = 12
    count: int = 100  # how many instances
    seed: int = 0

    def __post_init__(self) -> None:
        check_generator(count=self.count, jobs=self.jobs, seed=self.seed)

    def generate(self) -> InstanceSet:
        time, due, weight = np.random.RandomState(self.seed).uniform(size=(3, self.count, self.jobs))
        return InstanceSet(SCHEMA, {"time": time + 0.05, "due": due * self.jobs / 2, "weight": weight + 0.05})


def parse(text: str, stem: str) -> list[Instance]:
    """A first line `template`, then a line for each job: its time, when it is due, its weight."""
    rows = [line.split() for line in text.splitlines()[1:] if line.strip()]
    if not rows or any(len(row) != 3 for row in rows):
        raise FormatError("Every line after the first must hold a job's time, due time and weight.")
    columns = [[number(cell, f"A value of job {job}") for cell in row] for job, row in enumerate(rows)]
    arrays = dict(zip(("time", "due", "weight"), np.array(columns, dtype=np.float64).T.copy(), strict=True))
    return [Instance(arrays, arrays, name=stem)]


FILES = text_format("template", (".txt",), lambda lines: bool(lines) and lines[0].split()[:1] == ["template"], parse)

# --- Something to compare with, and to learn from ----------------------------------------------------------------------------------


def earliest_due(instance: Arrays) -> list[int]:
    return np.argsort(instance["due"], kind="stable").tolist()


def swapped(instance: Arrays, limit: Limit, seed: int) -> list[int]:
    """Random swaps of two jobs, kept where they help: `limit.work` of them for every job."""
    draws, order = np.random.RandomState(seed), earliest_due(instance)
    best = cost_of(instance, order)
    for _ in range(int((limit.work or 100) * len(order))):
        one, other = draws.randint(len(order), size=2)
        order[one], order[other] = order[other], order[one]
        if (cost := cost_of(instance, order)) <= best:
            best = cost
        else:
            order[one], order[other] = order[other], order[one]
    return order


def record(instance: Arrays, actions: Sequence[int]) -> dict[str, Any]:
    """The natural form of a solution, for solutions.json."""
    return {"order": [int(job) for job in actions]}


# --- The kit -----------------------------------------------------------------------------------------------------------------------

KIT = Kit(
    "template",
    "jobs on one machine",
    problem=Template(),
    architectures={"set": Architecture(TemplatePolicy, SetSize(d=32, layers=2, ff=64))},
    cost="cost",
    presets=Path(__file__).parent / "presets",
    solution_format=SolutionFormat(verify, record, draw, "schedule.png"),
    instances=SCHEMA,
    generator=TemplateGenerator,
    standard={"template100": TemplateGenerator(count=100, seed=1234)},
    baselines={"earliest-due": constructive("jobs in the order of their due times", earliest_due)},
    experts={OWN: expert(swapped)},
    formats=(FILES,),
)
