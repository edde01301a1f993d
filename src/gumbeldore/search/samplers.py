"""Samplers: how solutions are drawn from a policy. Each is a frozen record of its own settings and callable.

    solutions = Gumbeldore(beam_width=32, rounds=4, sigma=0.3)(problem, policy, state, generator=generator)

The answer for an instance depends on its seed, not on what else is in the batch nor on how the batch is chunked to memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import ceil
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Int
from torch import Tensor

from gumbeldore.errors import SettingsError, require
from gumbeldore.memory import free_memory, gigabytes
from gumbeldore.policy import Policy
from gumbeldore.problem import Problem, S, slices
from gumbeldore.search.advantage import AdvantageFn, expected_objective, global_advantage, local_advantage
from gumbeldore.search.augmentation import AugmentedPolicy, with_augmentations
from gumbeldore.search.auto import AutoNucleus, AutoStep
from gumbeldore.search.deadline import Deadline, TimeIsUpError
from gumbeldore.search.expansion import Round, Search
from gumbeldore.search.memory import MemoryBudget
from gumbeldore.search.scores import by_gumbels, by_probability, by_probability_within, root_gumbels
from gumbeldore.search.task import Task
from gumbeldore.solutions import Diagnostics, Solutions, expected_duplicates

MEMORY = 2 << 30
"""Bytes a search may use by default: half for tries, half for the network."""


class Sampler(ABC):
    """Draws solutions. Subclasses say how one batch of instances is searched round by round."""

    memory: int
    augmentations: int = 1
    by_horizon: ClassVar[bool] = False
    """Whether a search is laid out by its horizon: then only instances with equal ones share a batch."""
    begins_greedily: ClassVar[bool] = False
    """Whether the first round is the greedy solution alone."""

    def augmentations_for(self, horizon: int) -> int:
        """How many augmentations of an instance with solutions of so many actions are asked for."""
        return self.augmentations

    def stream(
        self,
        problem: Problem[S],
        policy: Policy[S],
        state: S,
        seeds: Int[Tensor, " batch"],
        deadline: Deadline | None = None,
    ) -> Iterator[Solutions]:
        """All solutions so far, after each round: stop whenever you like, or name a `deadline`. Does not chunk to memory."""
        self._check_room(problem, state)
        with suppress(TimeIsUpError):
            yield from self.rounds_of(Task(problem, policy, state.compact(), seeds, deadline=deadline))

    def _check_room(self, problem: Problem[S], state: S) -> None:
        """Raises unless the search of an instance fits into the memory that is there."""
        actions, horizon = problem.mask(state.rows(slice(0, 1))).shape[1], problem.horizon(state)
        needed, free = self.instance_bytes(actions, horizon), free_memory()
        require(
            needed <= free,
            f"`{type(self).__name__}` needs about {gigabytes(needed)} for one instance, but {gigabytes(free)} are free: about one in "
            f"{ceil(needed / max(1.0, free)):,} of its sequences would fit.",
        )

    @abstractmethod
    def rounds_of(self, task: Task[Any]) -> Iterator[Solutions]:
        """The search itself: all solutions so far, after each round."""

    @abstractmethod
    def instance_bytes(self, actions: int, horizon: int) -> int:
        """Memory of the search itself for one instance (the network's comes on top)."""

    def keeps_priors(self, actions: int, horizon: int) -> bool:
        """Whether what the policy has said of an instance is kept for later rounds."""
        return False

    def __call__(
        self,
        problem: Problem[S],
        policy: Policy[S],
        state: S,
        *,
        generator: torch.Generator | None = None,
        seeds: Int[Tensor, " batch"] | Sequence[int] | int | None = None,
    ) -> Solutions:
        """Solves every instance of `state` (one row each). Give a `generator`, a number from which seeds follow, or one seed per instance."""
        if isinstance(seeds, int):
            generator, seeds = torch.Generator().manual_seed(seeds), None
        own = draw_seeds(state.row_count, generator) if seeds is None else torch.as_tensor(seeds)
        require(len(own) == state.row_count, f"`seeds` must hold one seed per row ({state.row_count}), got {len(own)}.")
        parts = []
        for rows in self.chunks(problem, state):
            stream = self.stream(problem, policy, state.rows(rows), own[rows].to(state.device, torch.int64))
            parts.append(deque(stream, maxlen=1).pop())
        return Solutions.concatenate(parts)

    def chunks(self, problem: Problem[S], state: S) -> list[slice]:
        """Slices of the batch that fit into the memory setting; the results do not depend on them."""
        require(state.row_count > 0, "`state` must hold at least one row, got none.")
        found = []
        for group in self._alike(problem, state):
            needed = self.instance_bytes(*self._extent(problem, state.rows(group)))
            parts = slices(group.stop - group.start, max(1, self.memory // 2 // needed))
            found += [slice(group.start + part.start, group.start + part.stop) for part in parts]
        return found

    def _extent(self, problem: Problem[S], state: S) -> tuple[int, int]:
        """The actions and the horizon of a search, with the level of augmentations if there is one."""
        first = state.rows(slice(0, 1)).compact()
        actions, horizon = problem.mask(first).shape[1], problem.horizon(state)
        wanted = self.augmentations_for(horizon)
        forms = problem.augmentations(first, wanted, seeds=torch.zeros_like(first.instance)) if wanted > 1 else None
        return (actions, horizon) if forms is None or forms.count == 1 else (max(actions, forms.count), horizon + 1)

    def _alike(self, problem: Problem[S], state: S) -> list[slice]:
        """The batch in stretches of instances whose searches are laid out alike."""
        actions, horizon = self._extent(problem, state)
        if not self.by_horizon and self.keeps_priors(actions, horizon) == self.keeps_priors(actions, 0):
            return [slice(0, state.row_count)]
        each = [self._extent(problem, state.rows(slice(row, row + 1))) for row in range(state.row_count)]
        kind = [extent[1] if self.by_horizon else self.keeps_priors(*extent) for extent in each]
        ends = [row for row in range(1, len(kind)) if kind[row] != kind[row - 1]] + [state.row_count]
        return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]


class TrieSampler(Sampler):
    """A sampler with a search tree for each instance."""

    @abstractmethod
    def budget(self, horizon: int) -> MemoryBudget:
        """Of the trees of instances with such a horizon."""

    def instance_bytes(self, actions: int, horizon: int) -> int:
        return self.budget(horizon).instance_bytes(actions, horizon)

    def keeps_priors(self, actions: int, horizon: int) -> bool:
        return self.budget(horizon).keeps(actions, horizon)


def draw_seeds(count: int, generator: torch.Generator | None) -> Int[Tensor, " batch"]:
    """One 63-bit seed per instance."""
    require(
        generator is not None,
        "A sampler needs randomness: pass `generator=torch.Generator().manual_seed(...)` or `seeds`.",
    )
    assert generator is not None
    return torch.randint(2**63 - 1, (count,), generator=generator, device=generator.device)


@contextmanager
def evaluation_mode(policy: Any) -> Iterator[None]:
    """No gradients, and modules in evaluation mode (batch norm); both as before afterwards."""
    network = policy.policy if isinstance(policy, AugmentedPolicy) else policy
    modules = [m for m in network.modules() if m.training] if isinstance(network, torch.nn.Module) else []
    for module in modules:
        module.training = False
    try:
        with torch.no_grad():
            yield
    finally:
        for module in modules:
            module.training = True


@dataclass(frozen=True)
class BeamSearch(TrieSampler):
    """Deterministic beam search by total log-probability."""

    beam_width: int = 16
    memory: int = MEMORY
    transpositions: bool = True  # evaluate equal states once, where the problem has keys
    augmentations: int = 1  # forms of an instance to search, each with a beam of its own, where the problem has such

    def __post_init__(self) -> None:
        check_positive("beam_width", self.beam_width)
        check_positive("memory", self.memory)
        check_positive("augmentations", self.augmentations)

    def rounds_of(self, task: Task[Any]) -> Iterator[Solutions]:
        task = with_augmentations(task, self.augmentations)
        width = self.beam_width * task.augmentations
        with evaluation_mode(task.policy):
            search = self.budget(0).search(task, transpositions=self.transpositions)
            result = search.round(width, by_probability_within(task.augmentations) if task.augmented else by_probability)
            search.trie.remove(result.leaf, result.leaf_depth, result.filled)
            solutions = collect(search, [result], deterministic=1)
        yield task.own(solutions)

    def budget(self, horizon: int) -> MemoryBudget:
        width = self.beam_width * self.augmentations
        return MemoryBudget(width, width, self.memory, reuses=False)


@dataclass(frozen=True)
class Greedy(BeamSearch):
    """The most probable action at every step: a beam of one."""

    beam_width: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.beam_width == 1, f"`Greedy` has a beam of one, got beam_width {self.beam_width}. Use `BeamSearch`.")


@dataclass(frozen=True)
class StochasticBeamSearch(TrieSampler):
    """Samples `rounds * beam_width` sequences without replacement ('WOR'): round-wise stochastic beam search.

    `nucleus` is the top-p of the first and of the last round, linear in between: (0.95, 1.0) grows as in the paper,
    (0.8, 0.8) is constant. A single round uses the last value. No sequence is ever returned twice. "auto": the first round is a
    deterministic beam search, and what it sees of the policy decides the p of each instance in the others (`search/auto.py`).
    """

    beam_width: int = 32
    rounds: int = 4
    nucleus: tuple[float, float] | Literal["auto"] = (1.0, 1.0)
    first_round_deterministic: bool = False  # the first round is a beam search: its mass is removed, nothing is learnt from it
    memory: int = MEMORY
    keep_trie: bool = False  # return the search trees with the solutions
    transpositions: bool = True  # evaluate equal states once, where the problem has keys
    augmentations: int = 1  # forms of an instance among which the first action chooses, where the problem has such

    def __post_init__(self) -> None:
        check_positive("beam_width", self.beam_width)
        check_positive("rounds", self.rounds)
        check_positive("memory", self.memory)
        check_positive("augmentations", self.augmentations)
        if self.nucleus == "auto":
            return
        pair = isinstance(self.nucleus, tuple | list) and len(self.nucleus) == 2
        require(pair, f"`nucleus` must be a pair: the top-p of the first and of the last round, got {self.nucleus!r}.")
        for p in self.nucleus:
            require(0 < p <= 1, f"`nucleus` values must lie in (0, 1], got {p}. 1 switches the truncation off.")

    @property
    def nucleus_schedule(self) -> list[float]:
        """Top-p by round (section 4.2.2)."""
        if self.nucleus == "auto":
            raise SettingsError('`nucleus="auto"` has no schedule: it is decided during the search, for each instance.')
        first, last = self.nucleus
        if self.rounds == 1:
            return [last]
        return [(1 - i / (self.rounds - 1)) * first + i / (self.rounds - 1) * last for i in range(self.rounds)]

    def rounds_of(self, task: Task[Any]) -> Iterator[Solutions]:
        """Algorithm 2."""
        task = with_augmentations(task, self.augmentations)
        batch, device, results = task.state.row_count, task.state.device, list[Round]()
        nucleus, step = AutoNucleus.start(batch, device) if self.nucleus == "auto" else None, AutoStep.start(batch, device)
        with evaluation_mode(task.policy):
            search = self.budget(0).search(task, transpositions=self.transpositions, must_keep=self.keep_trie)
        for index in range(self.rounds):
            with evaluation_mode(task.policy):
                sampled = index > 0 or not self._begins_deterministically
                result = self._sample(search, task, index, nucleus) if sampled else self._beam(search, task, nucleus)
                step.see(result)
                if sampled:
                    self._learn(search, result, step)
                if nucleus is not None:
                    nucleus.see(result)
                search.trie.remove(result.leaf, result.leaf_depth, result.filled)
                results.append(result)
                solutions = collect(search, results, int(self._begins_deterministically), self.keep_trie)
            yield task.own(solutions)  # outside: the caller's code runs with its own gradient mode

    def _beam(self, search: Search[S], task: Task[S], nucleus: AutoNucleus | None) -> Round:
        """A deterministic first round, which an automatic nucleus watches."""
        perturb = by_probability_within(task.augmentations) if task.augmented else by_probability
        return search.round(self.beam_width, perturb, watch=nucleus)

    def _sample(self, search: Search[S], task: Task[S], index: int, nucleus: AutoNucleus | None) -> Round:
        """A round of sampling without replacement, with noise of its own."""
        p = self.nucleus_schedule[index] if nucleus is None else nucleus.p
        score, perturb = root_gumbels(task.seeds, index), by_gumbels(task.seeds, index)
        return search.round(self.beam_width, perturb, nucleus=p, root_score=score)

    @property
    def _begins_deterministically(self) -> bool:
        return self.first_round_deterministic or self.nucleus == "auto"

    def budget(self, horizon: int) -> MemoryBudget:
        return MemoryBudget(self.rounds * self.beam_width, self.beam_width, self.memory, reuses=self.rounds > 1)

    def _learn(self, search: Search[S], result: Round, step: AutoStep) -> None:
        """Nothing is learnt between rounds."""


@dataclass(frozen=True)
class Gumbeldore(StochasticBeamSearch):
    """Sampling without replacement with a policy update between rounds (Algorithm 2, eq. 6): the paper's 'GD'.

    `sigma="auto"` standardises advantages by the spread of the objectives (`search/auto.py`).
    """

    sigma: float | Literal["auto"] = 0.3
    advantage: AdvantageFn = global_advantage

    def __post_init__(self) -> None:
        super().__post_init__()
        number = isinstance(self.sigma, int | float) and 0 <= self.sigma < float("inf")
        require(number or self.sigma == "auto", f'`sigma` must be finite and at least 0, got {self.sigma!r}. Or say "auto".')

    def _learn(self, search: Search[S], result: Round, step: AutoStep) -> None:
        shift = step.shift(result, self.advantage) if self.sigma == "auto" else self.sigma * self.advantage(result)
        search.trie.learn(result.nodes, shift, result.filled)


@dataclass(frozen=True)
class TheoryGumbeldore(Gumbeldore):
    """Gumbeldore with the update of provable policy improvement (eq. 1), estimated edge by edge ('Theory GD')."""

    advantage: AdvantageFn = local_advantage


def collect(search: Search[Any], results: list[Round], deterministic: int = 0, keep_trie: bool = False) -> Solutions:
    """Puts the rounds of a search side by side. The first `deterministic` rounds estimate nothing, unless they are complete."""
    depth = max(result.actions.shape[0] for result in results)
    actions = [torch.nn.functional.pad(r.actions.permute(1, 2, 0), (0, depth - r.actions.shape[0]), value=-1) for r in results]
    filled = torch.cat([r.filled for r in results], 1)
    log_prob = torch.cat([r.log_prob for r in results], 1)
    means, errors, sizes = (torch.stack(e, 1) for e in zip(*[expected_objective(r) for r in results], strict=True))
    unknown = torch.stack([~r.complete & (i < deterministic) for i, r in enumerate(results)], 1)
    diagnostics = Diagnostics(
        remaining_mass=search.trie.left[0, :, 0].exp().clamp(max=1),
        mean=means.masked_fill(unknown, torch.nan),
        standard_error=errors.masked_fill(unknown, torch.nan),
        effective_sample_size=sizes.masked_fill(unknown, torch.nan),
        duplicates_avoided=expected_duplicates(log_prob, filled),
        evaluations=search.evaluator.made.clone(),
        evaluations_repeated=search.evaluator.repeated.clone(),
        evaluations_cached=search.evaluator.cached.clone(),
        evaluations_shared=search.evaluator.shared.clone(),
        evaluations_forced=search.evaluator.forced.clone(),
    )
    objective = torch.cat([r.objective for r in results], 1)
    tries = (search.trie,) if keep_trie else ()
    return Solutions(torch.cat(actions, 1), objective, log_prob, filled, diagnostics, tries)


def check_positive(name: str, value: int) -> None:
    require(isinstance(value, int) and value >= 1, f"`{name}` must be an integer of at least 1, got {value!r}.")
