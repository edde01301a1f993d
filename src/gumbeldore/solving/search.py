"""Anytime search: instances of equal size together, round by round, until the sampler ends or a limit is reached."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from gumbeldore.errors import require
from gumbeldore.policy import Network
from gumbeldore.problem import Problem, State
from gumbeldore.search.samplers import BeamSearch, Greedy, Sampler
from gumbeldore.solutions import Solutions

KEPT = 16
"""So many of the best sequences of an instance are kept: a file's own rule may rank them otherwise, and polishing may use several."""

WIDTH = 16
"""The sequences of a round, where a sampler does not say how many it has."""

REPORTED = 0.1
"""Seconds between two reports of how far a search is."""


@dataclass(frozen=True)
class Limits:
    """When a search stops, if the sampler has not ended before; per instance."""

    seconds: float | None = None  # of the clock; a first greedy answer may take longer
    sequences: int | None = None  # in whole rounds
    greedy: bool = False  # take a greedy answer first, as is always done if time is limited
    repeat: bool = False  # where the sampler ends before the limits, start again with other random numbers

    def __post_init__(self) -> None:
        require(
            self.seconds is None or 0 < self.seconds < float("inf"),
            f"`time_limit` must be above 0 seconds, got {self.seconds}.",
        )
        require(self.sequences is None or self.sequences >= 1, f"`sequences` must be at least 1, got {self.sequences}.")
        require(
            not self.repeat or self.seconds is not None or self.sequences is not None,
            "A search without limits would never end.",
        )


@dataclass(frozen=True)
class Refined:
    """What was made of the best sequences afterwards, by something that is not the policy."""

    by: str
    sequences: list[list[int]]  # of actions
    seconds: float
    note: str = ""  # why there are none


@dataclass(frozen=True)
class Found:
    """What a search found for one instance."""

    best: list[tuple[list[int], float]]  # actions and objective of a few sequences, the best first
    sequences: int
    mass: float  # the policy's probability of all that was not sampled
    evaluations: int
    shared: int  # evaluations saved because the state was known by another way
    seconds: float  # since the search began, divided by the instances that were searched together
    refined: tuple[Refined, ...] = ()

    @property
    def actions(self) -> list[int]:
        return self.best[0][0]

    @property
    def objective(self) -> float:
        return self.best[0][1]


@dataclass(frozen=True)
class Piece:
    """Instances of equal size that are searched together."""

    numbers: list[int]
    state: State  # one row each
    seeds: Int[Tensor, " row"]

    def __len__(self) -> int:
        return len(self.numbers)


def search(
    problem: Problem[Any],
    policy: Network,
    sampler: Sampler,
    piece: Piece,
    limits: Limits,
    report: Callable[[float], None] = lambda fraction: None,
) -> Iterator[list[Found]]:
    """What is found for each instance so far, after each round; stop whenever you like.

    With a time limit a greedy answer comes first, and a round that is not over in time is broken off. `report` is told how far the
    search is (0 .. 1), also within rounds.
    """
    watch = _Watch(piece, sampler, limits, problem.horizon(piece.state), report)
    tally = _Tally(len(piece), watch)
    for stream in _streams(problem, policy, sampler, piece, limits):
        try:
            while (solutions := _next_round(policy, stream, watch)) is not None:
                tally.take(solutions)
                yield tally.found
                if watch.over or (limits.sequences is not None and tally.fewest >= limits.sequences):
                    return
        except _TimeUpError:
            tally.break_off()
            yield tally.found
            return
        if tally.exhausted:
            return
        tally.next_stream()


def _next_round(policy: Network, stream: Iterator[Solutions], watch: _Watch) -> Solutions | None:
    """What the stream yields next, while the watch hears every call of the policy."""
    handle = policy.register_forward_hook(lambda module, arguments, logits: watch.called(len(logits)))
    try:
        solutions = next(stream, None)
    finally:
        handle.remove()
    watch.round_ended()
    return solutions


def _streams(
    problem: Problem[Any], policy: Network, sampler: Sampler, piece: Piece, limits: Limits
) -> Iterator[Iterator[Solutions]]:
    """One search after the other."""
    deterministic, greedy = isinstance(sampler, BeamSearch), sampler.begins_greedily
    seeds = piece.seeds.to(piece.state.device)
    if (limits.greedy or limits.seconds is not None) and not (deterministic or greedy):
        yield Greedy(memory=sampler.memory).stream(problem, policy, piece.state, seeds)
    yield sampler.stream(problem, policy, piece.state, seeds)
    again = torch.Generator().manual_seed(int(seeds[0]) % (1 << 62))
    while limits.repeat and not deterministic:
        others = torch.randint(2**63 - 1, (len(piece),), generator=again).to(seeds.device)
        yield sampler.stream(problem, policy, piece.state, others)


class _TimeUpError(Exception):
    """Ends a round that takes too long."""


@dataclass
class _Watch:
    """How long a search took, and how far it is."""

    piece: Piece
    sampler: Sampler
    limits: Limits
    horizon: int
    report: Callable[[float], None]
    start: float = field(default_factory=lambda: monotonic())
    rounds: int = 0  # that are over
    sequences: int = 0  # of each instance
    calls: int = 0  # of the policy in this round
    rows: int = 0  # that went through it
    reported: float = 0.0

    @property
    def elapsed(self) -> float:
        """Per instance."""
        return (monotonic() - self.start) / len(self.piece)

    @property
    def over(self) -> bool:
        return self.limits.seconds is not None and self.elapsed >= self.limits.seconds

    def called(self, rows: int) -> None:
        """After every call of the policy."""
        self.calls, self.rows = self.calls + 1, self.rows + rows
        if self.rounds and self.over:
            raise _TimeUpError
        if (now := monotonic()) - self.reported >= REPORTED:
            self.reported = now
            self.report(self._fraction())

    def round_ended(self) -> None:
        self.rounds, self.calls, self.rows = self.rounds + (self.calls > 0), 0, 0

    def _fraction(self) -> float:
        """Of the limit that is nearest."""
        within = min(1.0, self.calls / max(1, self.horizon)) * getattr(self.sampler, "beam_width", WIDTH)
        parts = [(self.sequences + within) / total for total in [self._expected()] if total]
        if self.limits.seconds is not None:
            parts.append(self.elapsed / self.limits.seconds)
        return min(0.99, max(parts, default=0.0))

    def _expected(self) -> int | None:
        """How many sequences there will be, as far as that is known."""
        named = [getattr(self.sampler, name, None) for name in ("sequences", "samples")]
        steps = getattr(self.sampler, "rounds", 1) * getattr(self.sampler, "beam_width", WIDTH)
        own = next((count for count in named if count), steps)
        if self.limits.repeat:
            return self.limits.sequences
        return min(own, self.limits.sequences or own)


class _Tally:
    """The best sequences of several streams, and what they cost."""

    def __init__(self, count: int, watch: _Watch) -> None:
        self.watch = watch
        self.exhausted = False
        self.best: list[list[tuple[list[int], float]]] = [[] for _ in range(count)]
        self.before = torch.zeros(3, count, dtype=torch.long)  # sequences, evaluations, shared: of earlier streams
        self.now = torch.zeros(3, count, dtype=torch.long)
        self.mass = [1.0] * count

    def take(self, solutions: Solutions) -> None:
        """All that the running stream has found so far."""
        diagnostics, top = solutions.diagnostics, solutions.top(KEPT)
        counts = (solutions.filled.sum(1), diagnostics.evaluations, diagnostics.evaluations_shared)
        self.now = torch.stack([count.cpu() for count in counts])
        self.watch.sequences = self.fewest
        self.mass = diagnostics.remaining_mass.tolist()
        self.exhausted = max(self.mass) <= 0
        rows = zip(top.actions.tolist(), top.objective.tolist(), top.filled.tolist(), strict=True)
        for row, (sequences, objectives, filled) in enumerate(rows):
            new = [
                ([action for action in actions if action >= 0], objective)
                for actions, objective, there in zip(sequences, objectives, filled, strict=True)
                if there
            ]
            self.best[row] = _merged(self.best[row], new)

    def next_stream(self) -> None:
        self.before, self.now = self.before + self.now, torch.zeros_like(self.now)

    def break_off(self) -> None:
        """Counts the evaluations of a round that is not over: as many for each instance."""
        self.now[1] += self.watch.rows // len(self.best)

    @property
    def fewest(self) -> int:
        return int((self.before + self.now)[0].min())

    @property
    def found(self) -> list[Found]:
        sequences, evaluations, shared = (self.before + self.now).tolist()
        seconds = self.watch.elapsed
        columns = zip(self.best, sequences, self.mass, evaluations, shared, strict=True)
        return [Found(best, count, mass, made, saved, seconds) for best, count, mass, made, saved in columns]


def _merged(old: list[tuple[list[int], float]], new: list[tuple[list[int], float]]) -> list[tuple[list[int], float]]:
    """The best different sequences of both; of equally good ones those that were found first."""
    distinct = {tuple(actions): (actions, objective) for actions, objective in [*old, *new]}
    return sorted(distinct.values(), key=lambda pair: -pair[1])[:KEPT]
