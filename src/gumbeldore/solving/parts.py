"""The parts that share the time of one instance: local search, a policy's solutions, parts of solutions that a policy builds anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from time import monotonic
from typing import Any, Protocol, runtime_checkable

import torch

from gumbeldore.hashing import mix
from gumbeldore.kits.improving import LocalSearch
from gumbeldore.policy import Policy
from gumbeldore.problem import Problem, State, replay
from gumbeldore.search.deadline import Deadline
from gumbeldore.search.reconstruction import GOLDEN, PART, continued
from gumbeldore.search.samplers import BeamSearch, Sampler, evaluation_mode
from gumbeldore.solutions import Solutions
from gumbeldore.solving.effort import Limits
from gumbeldore.solving.found import (
    KEPT,
    LOCAL,
    PARTS_ANEW,
    PARTS_LOCAL,
    POLICY,
    POLICY_LOCAL,
    Candidate,
    Improvement,
    Share,
    merged,
)
from gumbeldore.solving.jobs import Group, Job
from gumbeldore.solving.search import device_of, streams

FIRST_SHARE = 0.3
"""A policy whose first solution would take longer than this part of the time has no turn."""
_STEP = 0.002
"""Seconds of a step of a search beside the call of the policy."""
_MILD = (0.6, 1.0)
"""Local search from a policy's solution begins as if it were as far as that: the solution is good already."""
_FORMS = 4
"""So many forms of the best solution are built anew side by side."""
LEAST, MOST = 8, 150
"""At least and at most so many actions are built anew, as many as there is time for."""
_SHORT = 0.15
"""Seconds that a turn of reconstruction may take at least."""
_WIDTH = 2
"""Of the beam that builds them."""


@dataclass
class Incumbent:
    """The best solutions of an instance, and who found them when."""

    job: Job
    start: float = field(default_factory=lambda: monotonic())
    best: list[Candidate] = field(default_factory=list)
    improvements: tuple[Improvement, ...] = ()
    shares: dict[str, Share] = field(default_factory=dict)

    @property
    def elapsed(self) -> float:
        return monotonic() - self.start

    @property
    def actions(self) -> list[int]:
        return self.best[0][0]

    @property
    def cost(self) -> float:
        return self.best[0][1] if self.best else float("inf")

    def offer(self, actions: Sequence[int], by: str, cost: float | None = None) -> bool:
        """Takes a solution; returns whether it is better than all before."""
        cost = self.job.cost(actions) if cost is None else cost
        own, gain = self.shares.get(by, Share(by)), 0.0
        better = cost < self.cost
        if better:
            gain = self.cost - cost if self.best else 0.0
            self.improvements += (Improvement(by, cost, self.elapsed),)
        self.best = merged(self.best, [(list(actions), cost)])
        least = cost if own.cost is None else min(own.cost, cost)
        self.shares[by] = Share(by, least, own.seconds, own.turns, own.gain + gain)
        return better

    def spent(self, by: str, seconds: float) -> None:
        own = self.shares.get(by, Share(by))
        self.shares[by] = Share(by, own.cost, own.seconds + seconds, own.turns + 1, own.gain)


@runtime_checkable
class Part(Protocol):
    """One of several that work on an instance, in turns."""

    name: str
    expected: float  # seconds of its next turn
    helped: float  # seconds of local search in its last turn

    def turn(self, best: Incumbent, seconds: float) -> bool:
        """Works for about so many seconds, and offers what it finds; returns whether it may have another turn."""
        ...


@dataclass
class Improving:
    """The local search, which goes on from the best solution, with its own perturbations."""

    search: LocalSearch
    total: float  # seconds of the whole search
    name: str = LOCAL
    expected: float = 0.0
    helped: float = 0.0
    cost: float = float("inf")  # of its own best

    def turn(self, best: Incumbent, seconds: float) -> bool:
        if best.cost < self.cost:
            self.search.offer(best.actions)
        begin = best.elapsed / self.total
        self.search.run(seconds=seconds, progress=(min(1.0, begin), min(1.0, begin + seconds / self.total)))
        best.offer(self.search.actions, LOCAL)
        self.cost, self.expected = best.cost, seconds
        return True


@dataclass
class PolicySide:
    """What the two parts that ask a policy have in common."""

    group: Group
    policy: Policy[Any]
    end: float  # of the clock
    memory: int
    deadline: Deadline = field(default_factory=Deadline)
    sequences: int = 0
    turns: int = 0
    expected: float = 0.0
    helped: float = 0.0

    def __post_init__(self) -> None:
        self.problem: Problem[Any]
        self.state: State
        self.problem, self.state = self.group.initial(device_of(self.policy))

    @property
    def step(self) -> float:
        """About how long a step takes, by one call of the policy."""
        with evaluation_mode(self.policy), torch.no_grad():
            context, took = self.policy.prepare(self.state), []
            for _ in range(2):  # a first call may prepare things
                begin = monotonic()
                self.policy(self.state, context)
                took.append(monotonic() - begin)
        return _STEP + min(took)

    @property
    def evaluations(self) -> int:
        return self.deadline.rows

    @property
    def seed(self) -> int:
        return self.group.seeds[0] + self.turns

    def improve(self, best: Incumbent, actions: list[int], seconds: float, by: str) -> None:
        """A short local search from a solution of the policy."""
        make, begin = best.job.kit.local_search, monotonic()
        if make is not None and seconds > 0:
            search = make(best.job.given, self.seed % (1 << 31), actions)
            search.run(seconds=seconds, progress=_MILD)
            best.offer(search.actions, by)
        self.helped = monotonic() - begin
        best.spent(by, self.helped)


class Sampling(PolicySide):
    """Solutions of a policy by a sampler, and local search from the best that it has not seen."""

    name = POLICY

    def __init__(self, group: Group, policy: Policy[Any], end: float, sampler: Sampler, refines: bool) -> None:
        """`refines`: local search goes on from what the policy finds."""
        super().__init__(group, policy, end, sampler.memory)
        self.refines, self.seen = refines, set[tuple[int, ...]]()
        self.first = self.step * self.problem.horizon(self.state)
        self.expected = self.first
        seeds, limits = torch.tensor(group.seeds, device=self.state.device), Limits(1.0, repeat=True)
        found = streams(self.problem, policy, sampler, self.state, seeds, limits, self.deadline)
        self.found: Iterator[Solutions] = chain.from_iterable(found)  # round by round

    def turn(self, best: Incumbent, seconds: float) -> bool:
        begin, self.turns = monotonic(), self.turns + 1
        self.deadline.at = self.end if self.sequences else begin + max(3 * self.first, FIRST_SHARE * (self.end - begin))
        if (found := next(self.found, None)) is None:  # the time is up
            return False
        fresh = self._fresh(best, found)
        if fresh and self.refines:
            took = monotonic() - begin
            self.improve(best, fresh, min(max(took, seconds), self.end - monotonic()), POLICY_LOCAL)
        self.expected = monotonic() - begin
        return monotonic() < self.end

    def _fresh(self, best: Incumbent, found: Solutions) -> list[int] | None:
        """The best solution that is new; all that are better than those before are offered."""
        top = found.top(KEPT)
        self.sequences += 1
        for sequence, objective, filled in zip(
            top.actions[0].tolist(), top.objective[0].tolist(), top.filled[0].tolist(), strict=True
        ):
            actions = [action for action in sequence if action >= 0]
            if filled and tuple(actions) not in self.seen:
                self.seen.add(tuple(actions))
                best.offer(actions, POLICY, best.job.cost(actions, objective))
                return actions
        return None


class Rebuilding(PolicySide):
    """The best solution in other forms, whose last actions a policy chooses anew; and local search from the best of what results."""

    name = PARTS_ANEW
    most: int = LEAST  # actions that are built anew

    def turn(self, best: Incumbent, seconds: float) -> bool:
        begin, self.turns = monotonic(), self.turns + 1
        self.deadline.at = self.end
        built = self._built(best.actions)
        took = monotonic() - begin
        self.most = max(LEAST, min(MOST, 2 * self.most, int(self.most * max(_SHORT, seconds) / (2 * took))))
        if built is None:
            return False
        actions = min(built, key=best.job.cost)
        best.offer(actions, PARTS_ANEW)
        self.improve(best, actions, min(took, self.end - monotonic()), PARTS_LOCAL)
        self.expected = monotonic() - begin
        return monotonic() < self.end

    def _built(self, solution: list[int]) -> list[list[int]] | None:
        """Solutions with a part that is new; None if the time is up."""
        rows = torch.zeros(_FORMS, dtype=torch.long, device=self.state.device)
        state = self.state.rows(rows)
        actions = torch.tensor(solution, device=rows.device).expand(_FORMS, -1)
        numbers = self.turns * _FORMS + torch.arange(_FORMS, device=rows.device)
        form = self.problem.reencoded(state, actions, seeds=mix(self.group.seeds[0] + numbers))
        whole = (form.actions >= 0).sum(1)
        share = PART[0] + (PART[1] - PART[0]) * (numbers * GOLDEN % 1)
        kept = (whole - (share * whole).ceil().long().clamp(min=2, max=self.most)).clamp(min=0)
        there = replay(self.problem, form.state, form.actions, kept)
        stream = BeamSearch(_WIDTH, self.memory).stream(self.problem, self.policy, there, numbers, self.deadline)
        if (found := next(stream, None)) is None:
            return None
        self.sequences += _FORMS
        last = found.best_actions
        new = self.problem.inverse_transform(state, form.tag, continued(form.actions, kept, last))
        return [[action for action in sequence if action >= 0] for sequence in new.tolist()]
