"""Augmentations of an instance as the first level of its trie: the first action chooses one, all others are those of the augmentation.

So one search works on all of them, with one law, one budget and one update: beams spread over them, and advantages learn which one
goes well. Solutions are inverse_transform back into those of the instance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Generic, Self

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from gumbeldore.hashing import mix
from gumbeldore.policy import Policy
from gumbeldore.problem import Augmentations, Problem, S, State
from gumbeldore.search.task import Task
from gumbeldore.solutions import Solutions


@dataclass(frozen=True)
class AugmentedState(State, Generic[S]):
    """Rows of augmentations. Before the first action a row stands at augmentation 0, which means nothing."""

    chosen: Int[Tensor, " row"]  # the augmentation, -1 before the first action
    inner: S
    augmentations: Augmentations[S]  # of all instances

    def rows(self, index: Int[Tensor, " selected"] | slice) -> Self:
        return replace(self, instance=self.instance[index], chosen=self.chosen[index], inner=self.inner.rows(index))

    def where(self, condition: Bool[Tensor, " row"], other: Self) -> Self:
        chosen = torch.where(condition, self.chosen, other.chosen)
        return replace(self, chosen=chosen, inner=self.inner.where(condition, other.inner))


@dataclass(frozen=True)
class Augmented(Problem[AugmentedState[S]], Generic[S]):
    """A problem whose first action chooses one of `count` augmentations. Made for a search; states come from `start`."""

    problem: Problem[S]
    count: int

    @property
    def dead_end_objective(self) -> float | None:  # type: ignore[override]
        return self.problem.dead_end_objective

    @classmethod
    def start(cls, problem: Problem[S], augmentations: Augmentations[S]) -> tuple[Augmented[S], AugmentedState[S]]:
        """The problem, and one row for each instance."""
        count, device = augmentations.count, augmentations.state.device
        instances = augmentations.state.row_count // count
        first = torch.arange(0, instances * count, count, device=device)
        none = torch.full((instances,), -1, device=device)
        return cls(problem, count), AugmentedState(first // count, none, augmentations.state.rows(first), augmentations)

    def generate(self, count: int, *, generator: torch.Generator, device: torch.device | str = "cpu") -> AugmentedState[S]:
        state = self.problem.generate(count, generator=generator, device=device)
        augmentations = self.problem.augmentations(state, self.count, seeds=torch.zeros_like(state.instance))
        assert augmentations is not None
        return self.start(self.problem, augmentations)[1]

    def mask(self, state: AugmentedState[S]) -> Bool[Tensor, "row action"]:
        inner = self.problem.mask(state.inner)
        inner = pad(inner, (0, max(0, self.count - inner.shape[1])), value=False)
        first = torch.arange(inner.shape[1], device=inner.device) < self.count
        return torch.where((state.chosen < 0)[:, None], first, inner)

    def step(self, state: AugmentedState[S], action: Int[Tensor, " row"]) -> AugmentedState[S]:
        first = state.chosen < 0
        if not bool(first.any()):
            return replace(state, inner=self.problem.step(state.inner, action))
        place = state.instance * self.count + action.clamp(max=self.count - 1)
        begun = replace(state, chosen=action, inner=state.augmentations.state.rows(place))
        if bool(first.all()):
            return begun
        legal = action.where(~first, self.problem.mask(state.inner).int().argmax(1))  # where the result is discarded
        return begun.where(first, replace(state, inner=self.problem.step(state.inner, legal)))

    def done(self, state: AugmentedState[S]) -> Bool[Tensor, " row"]:
        return (state.chosen >= 0) & self.problem.done(state.inner)

    def objective(self, state: AugmentedState[S]) -> Float[Tensor, " row"]:
        return self.problem.objective(state.inner)

    def horizon(self, state: AugmentedState[S]) -> int:
        return 1 + self.problem.horizon(state.augmentations.state)

    def key(self, state: AugmentedState[S]) -> Int[Tensor, "row 2"] | None:
        """That of the augmentation's row, which is another one for each augmentation: a policy sees something else."""
        inner = self.problem.key(state.inner)
        return None if inner is None else inner ^ mix(state.chosen + 2)[:, None]


@dataclass(frozen=True)
class AugmentedPolicy(Generic[S]):
    """A policy to which all augmentations are equally likely: it is asked about what follows the choice of one."""

    policy: Policy[S]
    problem: Augmented[S]

    def prepare(self, state: AugmentedState[S]) -> Any:
        return self.policy.prepare(state.augmentations.state)

    def unasked(self, state: AugmentedState[S]) -> bool:
        """Whether this is the first level, where no row has chosen."""
        return bool((state.chosen < 0).any())

    def __call__(self, state: AugmentedState[S], context: Any) -> Float[Tensor, "row action"]:
        logits = self.policy(state.inner, context)
        return pad(logits, (0, max(0, self.problem.count - logits.shape[1])))

    def mask(self, state: AugmentedState[S]) -> Bool[Tensor, "row action"] | None:
        """The policy's own action space, after the first level."""
        space = getattr(self.policy, "mask", None)
        inner = None if space is None else space(state.inner)
        if inner is None:
            return None
        inner = pad(inner, (0, max(0, self.problem.count - inner.shape[1])), value=True)
        return inner | (state.chosen < 0)[:, None]

    def row_bytes(self, state: AugmentedState[S]) -> int:
        row_bytes = getattr(self.policy, "row_bytes", None)
        return row_bytes(state.inner) if row_bytes else 1


@dataclass(frozen=True, kw_only=True)
class AugmentedTask(Task[Any]):
    """A task on augmentations of its instances."""

    origin: Task[Any]
    forms: Augmentations[Any]

    def own(self, solutions: Solutions) -> Solutions:
        return inverse_transform(self.origin.problem, self.origin.state, self.forms, solutions)


def with_augmentations(task: Task[Any], wanted: int) -> Task[Any]:
    """The task on so many augmentations, if there are any."""
    forms = task.problem.augmentations(task.state, wanted, seeds=task.seeds) if wanted > 1 else None
    if forms is None or forms.count == 1:
        return task
    problem, start = Augmented.start(task.problem, forms)
    policy = AugmentedPolicy(task.policy, problem)
    return AugmentedTask(problem, policy, start, task.seeds, forms.count, task.deadline, origin=task, forms=forms)


def inverse_transform(problem: Problem[S], state: S, augmentations: Augmentations[S], solutions: Solutions) -> Solutions:
    """Solutions of a `Augmented` problem as solutions of the instances themselves; slots that are not filled stay empty."""
    batch, samples, depth = solutions.actions.shape
    longest = max(depth - 1, problem.horizon(state))  # of the instances: an augmentation may need fewer actions
    row = torch.arange(batch, device=state.device).repeat_interleave(samples)
    flat = pad(solutions.actions.view(batch * samples, depth), (0, 1 + longest - depth), value=-1)
    tag = augmentations.tag[row * augmentations.count + flat[:, 0].clamp(min=0)]
    own = torch.full_like(flat[:, 1:], -1)
    filled = solutions.filled.flatten().nonzero().squeeze(1)
    own[filled] = problem.inverse_transform(state.rows(row[filled]), tag[filled], flat[filled, 1:])
    return replace(solutions, actions=own.view(batch, samples, longest))
