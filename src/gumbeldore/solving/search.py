"""The policy alone: jobs of equal size together, round by round, until the sampler ends or a limit is reached."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from gumbeldore.policy import Policy
from gumbeldore.problem import Problem, State
from gumbeldore.search.deadline import Deadline
from gumbeldore.search.samplers import BeamSearch, Greedy, Sampler
from gumbeldore.solutions import Solutions
from gumbeldore.solving.effort import Limits
from gumbeldore.solving.found import KEPT, POLICY, START, Candidate, Found, Improvement, Share, merged
from gumbeldore.solving.jobs import Group, Job

_WIDTH = 16
"""The sequences of a round, where a sampler does not say how many it has."""

NO_TIME = "The policy had no time for a whole solution; this is a plain start."

REPORTED = 0.1
"""Seconds between two reports of how far a search is."""

Report = Callable[[float], None]


def silent(fraction: float) -> None:
    """Nobody is told."""


def search(
    group: Group, policy: Policy[Any], sampler: Sampler, limits: Limits, report: Report = silent
) -> Iterator[list[Found]]:
    """What is found for each job so far, after each round; stop whenever you like.

    With a time limit a greedy solution comes first, and a round that is not over in time is broken off. Where not even the first one is, a plain start
    answers, if the kit has one. `report` is told how far the search is (0 .. 1), also within rounds.
    """
    problem, state = group.initial(device_of(policy))
    seeds = torch.tensor(group.seeds, device=state.device)
    watch = Watch(len(group), sampler, limits, problem.horizon(state), report)
    tally = Tally(group.jobs, watch)
    if all(job.begin is not None or has_plain_start(job) for job in group.jobs):
        watch.limit()
    if any(job.begin is not None for job in group.jobs):
        yield tally.found
    for stream in streams(problem, policy, sampler, state, seeds, limits, watch.deadline):
        for solutions in stream:
            tally.take(solutions)
            watch.round_ended()
            yield tally.found
            if watch.over or (limits.sequences is not None and tally.fewest >= limits.sequences):
                return
        if watch.over:
            tally.break_off()
            tally.start_plainly(group.seeds)
            yield tally.found
            return
        if tally.exhausted:
            return
        tally.next_stream()


def has_plain_start(job: Job) -> bool:
    return job.kit.local_search is not None and job.start is None


def plain_start(job: Job, seed: int) -> list[int]:
    """The solution that a local search begins with."""
    return job.kit.need("local search", "local_search")(job.given, seed % (1 << 31), None).actions


def device_of(policy: Any) -> torch.device:
    """Where a policy works; one without weights works on the CPU."""
    parameters = policy.parameters() if isinstance(policy, torch.nn.Module) else iter(())
    return next((parameter.device for parameter in parameters), torch.device("cpu"))


def streams(
    problem: Problem[Any],
    policy: Policy[Any],
    sampler: Sampler,
    state: State,
    seeds: Int[Tensor, " job"],
    limits: Limits,
    deadline: Deadline,
) -> Iterator[Iterator[Solutions]]:
    """One search after the other. No sampler's answer is worse than the greedy one, which comes first."""
    deterministic, greedy = isinstance(sampler, BeamSearch), sampler.begins_greedily
    if (limits.greedy or limits.seconds is not None) and not (deterministic or greedy):
        yield Greedy(memory=sampler.memory).stream(problem, policy, state, seeds, deadline)
    yield sampler.stream(problem, policy, state, seeds, deadline)
    again = torch.Generator().manual_seed(int(seeds[0]) % (1 << 62))
    while limits.repeat and not deterministic and not deadline.over:
        others = torch.randint(2**63 - 1, (state.row_count,), generator=again).to(seeds.device)
        yield sampler.stream(problem, policy, state, others, deadline)


@dataclass
class Watch:
    """How long a search took, and how far it is."""

    count: int  # of instances that are searched together
    sampler: Sampler
    limits: Limits
    horizon: int
    report: Report
    start: float = field(default_factory=lambda: monotonic())
    rounds: int = 0  # that are over
    sequences: int = 0  # of each instance
    begun: tuple[int, int] = (0, 0)  # calls and rows when the round began
    reported: float = 0.0
    deadline: Deadline = field(init=False)  # not limited before there is an answer

    def __post_init__(self) -> None:
        self.deadline = Deadline(told=self._called)

    @property
    def elapsed(self) -> float:
        """Per instance."""
        return (monotonic() - self.start) / self.count

    @property
    def over(self) -> bool:
        return self.limits.seconds is not None and self.elapsed >= self.limits.seconds

    @property
    def rows(self) -> int:
        """That went through the policy in this round."""
        return self.deadline.rows - self.begun[1]

    def round_ended(self) -> None:
        self.rounds, self.begun = self.rounds + 1, (self.deadline.calls, self.deadline.rows)
        self.limit()

    def limit(self) -> None:
        """From now on the search ends when its time is up."""
        if self.limits.seconds is not None:
            self.deadline.at = self.start + self.limits.seconds * self.count

    def _called(self, rows: int) -> None:
        if (now := monotonic()) - self.reported >= REPORTED:
            self.reported = now
            self.report(self._fraction())

    def _fraction(self) -> float:
        """Of the limit that is nearest."""
        calls = self.deadline.calls - self.begun[0]
        within = min(1.0, calls / max(1, self.horizon)) * getattr(self.sampler, "beam_width", _WIDTH)
        parts = [(self.sequences + within) / total for total in [self._expected()] if total]
        if self.limits.seconds is not None:
            parts.append(self.elapsed / self.limits.seconds)
        return min(0.99, max(parts, default=0.0))

    def _expected(self) -> int | None:
        """How many sequences there will be, as far as that is known."""
        named = [getattr(self.sampler, name, None) for name in ("sequences", "samples")]
        steps = getattr(self.sampler, "rounds", 1) * getattr(self.sampler, "beam_width", _WIDTH)
        own = next((count for count in named if count), steps)
        if self.limits.repeat:
            return self.limits.sequences
        return min(own, self.limits.sequences or own)


class Tally:
    """The best sequences of several streams by the rules of the instances, and what they took."""

    def __init__(self, jobs: Sequence[Job], watch: Watch) -> None:
        self.jobs, self.watch, self.exhausted = jobs, watch, False
        begun = [[] if job.begin is None else [(list(job.begin), job.cost(job.begin))] for job in jobs]
        self.best: list[list[Candidate]] = begun
        self.costs: list[dict[tuple[int, ...], float]] = [{} for _ in jobs]
        self.improvements = [tuple(Improvement(START, cost, 0.0) for _, cost in best) for best in begun]
        self.notes: list[tuple[str, ...]] = [() for _ in jobs]
        self.own: list[float | None] = [None for _ in jobs]  # the best cost of the policy itself
        self.before = torch.zeros(3, len(jobs), dtype=torch.long)  # sequences, evaluations, shared: of earlier streams
        self.now = torch.zeros(3, len(jobs), dtype=torch.long)
        self.mass = [1.0] * len(jobs)

    def take(self, solutions: Solutions) -> None:
        """All that the running stream has found so far."""
        diagnostics, top = solutions.diagnostics, solutions.top(KEPT)
        counts = (solutions.filled.sum(1), diagnostics.evaluations, diagnostics.evaluations_shared)
        self.now = torch.stack([count.cpu() for count in counts])
        self.watch.sequences = self.fewest
        self.mass = diagnostics.remaining_mass.tolist()
        self.exhausted = max(self.mass) <= 0
        for row, columns in enumerate(zip(top.actions.tolist(), top.objective.tolist(), top.filled.tolist(), strict=True)):
            new = [self._candidate(row, *each) for each in zip(*columns, strict=True) if each[2]]
            self._merge(row, new)

    def _candidate(self, row: int, actions: list[int], objective: float, filled: bool) -> Candidate:
        """With its cost, which is computed once."""
        own, costs = [action for action in actions if action >= 0], self.costs[row]
        key = tuple(own)
        if key not in costs:
            costs[key] = self.jobs[row].cost(own, objective)
        return own, costs[key]

    def _merge(self, row: int, new: list[Candidate]) -> None:
        before = self.best[row]
        self.best[row] = merged(before, new)
        own = self.own[row]
        self.own[row] = min([*([] if own is None else [own]), *(cost for _, cost in new)], default=None)
        if self.best[row] and (not before or self.best[row][0][1] < before[0][1]):
            self.improvements[row] += (Improvement(POLICY, self.best[row][0][1], self.watch.elapsed),)

    def next_stream(self) -> None:
        self.before, self.now = self.before + self.now, torch.zeros_like(self.now)

    def break_off(self) -> None:
        """Counts the evaluations of a round that is not over: as many for each instance."""
        self.now[1] += self.watch.rows // len(self.best)

    def start_plainly(self, seeds: Sequence[int]) -> None:
        """Answers without the policy where it had no time for a whole solution."""
        for row, job in enumerate(self.jobs):
            if self.best[row] or not has_plain_start(job):
                continue
            actions = plain_start(job, seeds[row])
            cost = job.cost(actions)
            self.best[row], self.notes[row] = [(actions, cost)], (NO_TIME,)
            self.improvements[row] = (Improvement(START, cost, self.watch.elapsed),)

    @property
    def fewest(self) -> int:
        return int((self.before + self.now)[0].min())

    @property
    def found(self) -> list[Found]:
        seconds = self.watch.elapsed
        return [self._found(row, seconds, *counts) for row, counts in enumerate((self.before + self.now).t().tolist())]

    def _found(self, row: int, seconds: float, sequences: int, evaluations: int, shared: int) -> Found:
        improvements = self.improvements[row]
        gain = improvements[0].cost - improvements[-1].cost if improvements else 0.0
        share = Share(POLICY, self.own[row], seconds, self.watch.rounds, gain)
        return Found(
            self.best[row], sequences, self.mass[row], evaluations, shared, seconds, improvements, (share,), self.notes[row]
        )
