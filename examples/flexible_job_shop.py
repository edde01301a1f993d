"""The flexible job shop as a complete kit in one file: an action says which job comes next, and on which machine.

gumbeldore check examples/flexible_job_shop.py:KIT
gumbeldore train examples/flexible_job_shop.py:KIT --folder runs/flexible
gumbeldore evaluate examples/flexible_job_shop.py:KIT --random 100 --policies runs/flexible --baselines most-work
gumbeldore solve mk01.fjs --problem examples/flexible_job_shop.py:KIT --policy runs/flexible/policy.safetensors

Jobs are sequences of operations. Each operation can be done by some of the machines and takes a time that depends on the machine.
(`gumbeldore solve mk01.fjs` uses the library's own `fjsp`, which knows much more; this one is here to be read.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from gumbeldore import Problem, State
from gumbeldore.kits import (
    OWN,
    Architecture,
    Arrays,
    Export,
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
    colours,
    constructive,
    expert,
    number,
    saved_figure,
    text_format,
)

# --- The problem -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ShopState(State):
    """Schedules that grow operation by operation."""

    per_instance: ClassVar[tuple[str, ...]] = ("times",)

    times: Tensor  # instance job operation machine; 0: not on this machine, or the job has no such operation
    scheduled: Tensor  # row job: how many of its operations
    ready: Tensor  # row job: when its last operation ends
    free: Tensor  # row machine: when its last operation ends
    clock: Tensor  # row: when the last operation begins; no other one begins before


@dataclass(frozen=True)
class FlexibleJobShop(Problem[ShopState]):
    """Find the schedule that ends first. Action: `job * machines + machine`, the next operation of a job on a machine.

    Operations are chosen in the order in which they begin, so that a schedule is one sequence and not many; and only such as can begin before
    anything else could end (Giffler and Thompson), which the best schedule never lacks. Both make learning much easier.
    """

    jobs: int = 6
    machines: int = 4
    operations: int = 4

    def generate(self, count: int, *, generator: torch.Generator, device: torch.device | str = "cpu") -> ShopState:
        shape = (count, self.jobs, self.operations, self.machines)
        time = torch.randint(1, 21, shape, generator=generator).double()
        possible = torch.rand(shape, generator=generator) < 0.5
        sure = torch.randint(self.machines, shape[:-1], generator=generator)
        return initial((time * possible.scatter(3, sure[..., None], True)).to(device))

    def mask(self, state: ShopState) -> Tensor:
        begin, end = spans(state)
        return (begin < end.amin((1, 2), keepdim=True)).flatten(1)

    def done(self, state: ShopState) -> Tensor:
        return ~self.mask(state).any(1)

    def step(self, state: ShopState, action: Tensor) -> ShopState:
        moving = ~self.done(state)
        job, machine = (index[:, None] for index in (action // state.free.shape[1], action % state.free.shape[1]))
        begin, end = (span.flatten(1).gather(1, action[:, None]) for span in spans(state))
        after = replace(
            state,
            scheduled=state.scheduled.scatter_add(1, job, torch.ones_like(job)),
            ready=state.ready.scatter(1, job, end),
            free=state.free.scatter(1, machine, end),
            clock=begin.squeeze(1),
        )
        return after.where(moving, state)

    def objective(self, state: ShopState) -> Tensor:
        return -state.ready.max(1).values

    def horizon(self, state: ShopState) -> int:
        return int(((state.times > 0).any(3).sum(2)[state.instance] - state.scheduled).sum(1).max())


def initial(times: Tensor) -> ShopState:
    """Empty schedules."""
    count, jobs, _, machines = times.shape
    rows, nothing = torch.arange(count, device=times.device), times.new_zeros(count, max(jobs, machines))
    return ShopState(rows, times, nothing[:, :jobs].long(), nothing[:, :jobs], nothing[:, :machines], nothing[:, 0])


def times_of_next(state: ShopState) -> Tensor:
    """Row, job, machine: how long the next operation of a job takes; 0 where it is not possible, or the job has ended."""
    row, job = state.instance[:, None], torch.arange(state.times.shape[1], device=state.device)
    return pad(state.times, (0, 0, 0, 1))[row, job, state.scheduled]  # behind the last operation is one that no machine does


def spans(state: ShopState) -> tuple[Tensor, Tensor]:
    """Row, job, machine: when the next operation of a job would begin and end; infinite where it is not possible."""
    time = times_of_next(state)
    begin = torch.maximum(state.ready[:, :, None], state.free[:, None]).maximum(state.clock[:, None, None])
    begin = begin.where(time > 0, torch.inf)
    return begin, begin + time


# --- What a policy sees ----------------------------------------------------------------------------------------------------------


class ShopPolicy(SetPolicy):
    """A transformer over all pairs of a job and a machine that can do its next operation."""

    item_features, whole_features = 7, 1

    def features(self, state: ShopState) -> Features:
        time, (begin, end) = times_of_next(state), spans(state)
        possible, usual = time > 0, mean_times(state.times)[state.instance]  # row job operation
        number = torch.arange(usual.shape[2], device=time.device)
        left = (usual * (number >= state.scheduled[..., None])).sum(2)[:, :, None]  # work of each job
        later = (usual * (number > state.scheduled[..., None])).sum(2)[:, :, None]  # behind its next operation
        fastest = time.where(possible, torch.inf).amin(2, keepdim=True)
        now = begin.amin((1, 2), keepdim=True)  # when the first of all can begin
        pairs = [time, time - fastest, begin - now, end - now, end + later - now, left, state.free[:, None] - now]
        scale = usual.sum(2).mean(1)  # a job's work
        values = torch.stack([value.expand_as(time).where(possible, 0.0).flatten(1) for value in pairs], -1)
        return Features(values / scale[:, None, None], possible.flatten(1), left.sum(1) / (left.shape[1] * scale[:, None]))


def mean_times(times: Tensor) -> Tensor:
    """Of each operation, over the machines that can do it."""
    return times.sum(3) / (times > 0).sum(3).clamp(min=1)


# --- Solutions: checked by code that did not build them, recorded, drawn, written and read ---------------------------------------------


class Scheduled(NamedTuple):
    job: int
    operation: int
    machine: int
    begin: float
    end: float


def schedule(instance: Arrays, actions: Sequence[int]) -> list[Scheduled]:
    """Every operation as soon as its job and its machine allow, but not before the one ahead of it; a ValueError where one is impossible."""
    jobs, operations, machines = instance["times"].shape
    ready, free, done, rows = [0.0] * jobs, [0.0] * machines, [0] * jobs, list[Scheduled]()
    for action in actions:
        job, machine = divmod(int(action), machines)
        if not 0 <= job < jobs or done[job] == operations or not (time := float(instance["times"][job, done[job], machine])):
            raise ValueError(f"action {action} is not possible after {len(rows)} operations")
        begin = max(ready[job], free[machine], rows[-1].begin if rows else 0.0)
        rows.append(Scheduled(job, done[job], machine, begin, begin + time))
        ready[job] = free[machine] = begin + time
        done[job] += 1
    return rows


def verify(instance: Arrays, actions: Sequence[int]) -> Verdict:
    try:
        rows = schedule(instance, actions)
    except ValueError as fault:
        return Verdict.infeasible(str(fault))
    if missing := int((instance["times"] > 0).any(2).sum()) - len(rows):
        return Verdict.infeasible(f"{missing} operations are not scheduled")
    return Verdict(True, -max(row.end for row in rows))


def record(instance: Arrays, actions: Sequence[int]) -> dict[str, Any]:
    return {"schedule": [row._asdict() for row in schedule(instance, actions)]}


def draw(path: Path, instance: Arrays, actions: Sequence[int], title: str) -> None:
    jobs, _, machines = instance["times"].shape
    palette = colours(jobs)
    with saved_figure(path, size=(9, 3)) as axes:
        for job, operation, machine, begin, end in schedule(instance, actions):
            axes.broken_barh([(begin, end - begin)], (machine - 0.4, 0.8), color=palette[job], edgecolor="white")
            axes.text((begin + end) / 2, machine, f"{job}.{operation}", ha="center", va="center", fontsize=7)
        axes.set(title=title, xlabel="time", ylabel="machine", yticks=range(machines))


def written(instance: Instance, actions: Sequence[int]) -> str:
    rows = (",".join(f"{value:g}" for value in row) for row in schedule(instance.arrays, actions))
    return "\n".join([",".join(Scheduled._fields), *rows, ""])


def read(instance: Instance, text: str) -> list[int]:
    """The actions are jobs and machines in the order of the lines; times are computed anew."""
    head, *lines = (line.split(",") for line in text.split())
    if head != list(Scheduled._fields) or any(len(line) != len(head) for line in lines):
        raise FormatError(f"A schedule must have the columns {', '.join(Scheduled._fields)}.")
    machines = instance.arrays["times"].shape[2]
    return [int(number(line[0], "A job")) * machines + int(number(line[2], "A machine")) for line in lines]


# --- Instances: arrays, random ones, and a format of files -------------------------------------------------------------------------

SCHEMA = InstanceSchema(
    "flexible",
    FlexibleJobShop(),
    {"times": "instance job operation machine"},
    frozenset(),
    lambda arrays: initial(arrays["times"].double()),
    verify,
    lambda arrays: dict(zip(("jobs", "operations", "machines"), arrays["times"].shape[1:], strict=True)),
)


@dataclass(frozen=True)
class ShopGenerator:
    """Random shops: an operation can be done by half of the machines, in a time of 1 .. 20 on each."""

    jobs: int = 6
    machines: int = 4
    operations: int = 4
    count: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        check_generator(count=self.count, jobs=self.jobs, machines=self.machines, operations=self.operations, seed=self.seed)

    def generate(self) -> InstanceSet:
        shop = FlexibleJobShop(self.jobs, self.machines, self.operations)
        state = shop.generate(self.count, generator=torch.Generator().manual_seed(self.seed))
        return InstanceSet(SCHEMA, {"times": state.times.numpy()})


def parse(text: str, stem: str) -> list[Instance]:
    """`.fjs`: jobs and machines, then of each job how many operations, and of each of these how many machines, and pairs of machine and time."""
    (jobs, machines, *_), *rows = [
        [number(word, "Every entry") for word in line.split()] for line in text.splitlines() if line.strip()
    ]
    if len(rows) != jobs:
        raise FormatError(f"{jobs:g} jobs must have a line each, got {len(rows)}.")
    shops = [job_of(row, int(machines), f"Job {job}") for job, row in enumerate(rows, 1)]
    most = max(map(len, shops))
    times = np.array([shop + [[0.0] * int(machines)] * (most - len(shop)) for shop in shops])
    return [Instance({"times": times}, {"times": times}, name=stem)]


def job_of(row: Sequence[float], machines: int, name: str) -> list[list[float]]:
    """The times of each operation on each machine; files count machines from 1."""
    words, operations = iter(row), list[list[float]]()
    try:
        for _ in range(int(next(words))):
            pairs = {int(next(words)): next(words) for _ in range(int(next(words)))}
            operations.append([pairs.pop(machine, 0.0) for machine in range(1, machines + 1)])
            if pairs:
                raise FormatError(f"{name} needs machine {min(pairs)}, but there are 1 .. {machines}.")
    except (StopIteration, RuntimeError):  # the second one where a comprehension has run out of words
        raise FormatError(f"{name} has fewer numbers than it says.") from None
    if list(words) or not operations or not all(any(times) for times in operations):
        raise FormatError(f"{name} must have as many operations as it says, each with a machine and its time.")
    return operations


def begins_like_shop(lines: list[str]) -> bool:
    """Two or three numbers, then a line that begins with a number of operations and has at least three numbers for each."""
    words = [line.split() for line in lines if line.strip()][:2]
    return (
        len(words) == 2
        and len(words[0]) in (2, 3)
        and all(word.isdecimal() for word in words[0][:2] + words[1])
        and len(words[1]) >= 1 + 3 * int(words[1][0])
    )


FILES = text_format("flexible job shop", (".fjs",), begins_like_shop, parse)


# --- Something to compare with, and to learn from ----------------------------------------------------------------------------------


def most_work(instance: Arrays) -> list[int]:
    """The rule: the job with the most work left comes next, on the machine where its operation ends first. As actions in the order of begins."""
    times = instance["times"]
    jobs, _, machines = times.shape
    usual = times.sum(2) / (times > 0).sum(2).clip(1)
    tasks, ready, free, done = list[tuple[float, int]](), np.zeros(jobs), np.zeros(machines), np.zeros(jobs, dtype=int)
    for _ in range(int((times > 0).any(2).sum())):
        job = max(range(jobs), key=lambda each: usual[each, done[each] :].sum())
        time = times[job, done[job]]
        ends = np.where(time > 0, np.maximum(ready[job], free) + time, np.inf)
        machine = int(ends.argmin())
        tasks.append((ends[machine] - time[machine], job * machines + machine))
        ready[job] = free[machine] = ends[machine]
        done[job] += 1
    return [action for _, action in sorted(tasks)]


def allowed(instance: Arrays, wish: Any) -> list[int]:
    """A schedule of actions that the problem allows, the least wish first; of equal ones, the task that ends early, of a job with much left."""
    times = instance["times"]
    jobs, operations, machines = times.shape
    usual = times.sum(2) / (times > 0).sum(2).clip(1)
    actions, ready, free, done, clock = list[int](), [0.0] * jobs, [0.0] * machines, [0] * jobs, 0.0
    for _ in range(int((times > 0).any(2).sum())):
        tasks = [(j, m) for j in range(jobs) if done[j] < operations for m in np.flatnonzero(times[j, done[j]]).tolist()]
        begin = {(j, m): max(ready[j], free[m], clock) for j, m in tasks}
        end = {(j, m): begin[j, m] + float(times[j, done[j], m]) for j, m in tasks}
        first = min(end.values())
        left = [usual[j, done[j] :].sum() for j in range(jobs)]
        order = ((wish[j, done[j], m], end[j, m] - left[j], j, m) for j, m in tasks if begin[j, m] < first)
        *_, job, machine = min(order)
        actions.append(job * machines + machine)
        ready[job] = free[machine] = end[job, machine]
        done[job] += 1
        clock = begin[job, machine]
    return actions


def wished(instance: Arrays, limit: Limit, seed: int) -> list[int]:
    """The expert: wishes to do an operation earlier or later on a machine, kept if the end is no later; `limit.work` of them per operation."""
    draws, wish = np.random.RandomState(seed), np.zeros(instance["times"].shape)
    places = np.argwhere(instance["times"] > 0)
    best = allowed(instance, wish)
    for _ in range(int((limit.work or 10) * len(best))):
        trial = wish.copy()
        trial[tuple(places[draws.randint(len(places))])] = draws.randint(-1, 2)
        actions = allowed(instance, trial)
        if verify(instance, actions).objective >= verify(instance, best).objective:
            wish, best = trial, actions
    return best


# --- The kit -----------------------------------------------------------------------------------------------------------------------

KIT = Kit(
    "flexible",
    "flexible job shop",
    problem=FlexibleJobShop(),
    architectures={"set": Architecture(ShopPolicy, SetSize(d=32, layers=2, ff=64))},
    cost="makespan",
    presets=Path(__file__).parent / "presets",
    solution_format=SolutionFormat(verify, record, draw, "schedule.png"),
    instances=SCHEMA,
    generator=ShopGenerator,
    standard={"flexible100": ShopGenerator(count=100, seed=1234)},
    baselines={"most-work": constructive("the job with the most work left, where it ends first", most_work)},
    experts={OWN: expert(wished)},
    formats=(FILES,),
    exports={"schedule": Export(".schedule.csv", written, read)},
)
