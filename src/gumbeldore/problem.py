"""The contract between a combinatorial problem and everything else.

A problem is a set of pure functions on a `State`. A state holds many *rows* (partial solutions), each of which
belongs to an *instance*. Data that never changes during construction (coordinates, times, demands) is stored once per
instance; only progress is stored per row. Selecting rows therefore never copies an instance.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import ClassVar, Generic, Self, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gumbeldore.errors import ContractError, SettingsError


def precise(device: torch.device) -> torch.dtype:
    """The most precise float type of a device: float64, except on Apple GPUs, which have none."""
    return torch.float32 if device.type == "mps" else torch.float64


def _moved(tensor: Tensor, device: torch.device | str) -> Tensor:
    """A tensor on a device. Copies to an NVIDIA GPU go through pinned memory, and nobody waits for them."""
    if torch.device(device).type == "cuda" and tensor.device.type == "cpu":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


@dataclass(frozen=True)
class State:
    """Partial solutions as rows of tensors; subclass it with `@dataclass(frozen=True)` and add tensor fields.

    Fields named in `per_instance` have a leading instance axis, all others a leading row axis.
    """

    per_instance: ClassVar[tuple[str, ...]] = ()

    instance: Int[Tensor, " row"]

    @property
    def row_count(self) -> int:
        return self.instance.shape[0]

    @property
    def device(self) -> torch.device:
        return self.instance.device

    def rows(self, index: Int[Tensor, " selected"] | slice) -> Self:
        """The rows at `index` (from 0, repeats allowed); the instances are shared, not copied."""
        if isinstance(index, slice):
            return replace(self, **{name: getattr(self, name)[index] for name in self._row_fields()})
        return replace(self, **{name: getattr(self, name).index_select(0, index) for name in self._row_fields()})

    def compact(self) -> Self:
        """The same rows with exactly one instance per row, so that row i belongs to instance i."""
        shared = {name: getattr(self, name)[self.instance] for name in self._instance_fields()}
        return replace(self, **shared, instance=torch.arange(self.row_count, device=self.device))

    def where(self, condition: Bool[Tensor, " row"], other: Self) -> Self:
        """Row by row this state where `condition` holds and `other` elsewhere; both must share their instances."""

        def pick(mine: Tensor, theirs: Tensor) -> Tensor:
            return torch.where(condition.view(-1, *[1] * (mine.dim() - 1)), mine, theirs)

        return replace(self, **{name: pick(getattr(self, name), getattr(other, name)) for name in self._row_fields()})

    def to(self, device: torch.device | str) -> Self:
        return replace(self, **{name: _moved(tensor, device) for name, tensor in self.tensors().items()})

    def tensors(self) -> dict[str, Tensor]:
        """All fields by name, for saving; `type(state)(**tensors)` is the inverse."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def concatenate(cls, states: Sequence[Self]) -> Self:
        """One state with the rows of all `states` in order; sizes other than the first axis must agree."""
        offset = 0
        instances = []
        for state in states:
            instances.append(state.instance + offset)
            offset += state.instance_count
        joined = {f.name: torch.cat([getattr(s, f.name) for s in states]) for f in fields(cls) if f.name != "instance"}
        return cls(instance=torch.cat(instances), **joined)

    @property
    def instance_count(self) -> int:
        """How many instances are stored (rows may refer to only some of them)."""
        for name in self._instance_fields():
            return getattr(self, name).shape[0]
        return int(self.instance.max()) + 1 if self.row_count else 0

    @classmethod
    @cache
    def _row_fields(cls) -> tuple[str, ...]:
        return tuple(f.name for f in fields(cls) if f.name not in cls.per_instance)

    @classmethod
    @cache
    def _instance_fields(cls) -> tuple[str, ...]:
        return tuple(f.name for f in fields(cls) if f.name in cls.per_instance)


S = TypeVar("S", bound=State)


def slices(count: int, size: int) -> list[slice]:
    """0 .. `count` in pieces of `size`; the last may be smaller."""
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def shapes(state: State) -> tuple[tuple[int, ...], ...]:
    """The sizes of an instance: states with equal ones can be concatenated."""
    return tuple(tuple(tensor.shape[1:]) for tensor in state.tensors().values())


@dataclass(frozen=True)
class Examples(Generic[S]):
    """Training examples: predict `action` in `state`, row by row.

    `successor` is optional, for an auxiliary loss (`Network.loss`): for every item of a row, an operation say, the one that follows it in
    the solution, -1 where none does or none is to be learned.
    """

    state: S
    action: Int[Tensor, " row"]
    successor: Int[Tensor, "row item"] | None = None

    def to(self, device: torch.device | str) -> Examples[S]:
        return replace(
            self, state=self.state.to(device), **{name: _moved(each, device) for name, each in self.targets().items()}
        )

    def rows(self, part: slice) -> Examples[S]:
        """Some of the examples, with their instances only."""
        state = self.state.rows(part).compact()
        return replace(self, state=state, **{name: each[part] for name, each in self.targets().items()})

    def chosen(self, rows: Int[Tensor, " chosen"]) -> Examples[S]:
        """Some of the examples; their instances are shared."""
        return replace(self, state=self.state.rows(rows), **{name: each[rows] for name, each in self.targets().items()})

    def targets(self) -> dict[str, Tensor]:
        """All that is known but the states, by name."""
        named = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "state"}
        return {name: each for name, each in named.items() if each is not None}


@dataclass(frozen=True)
class Augmentations(Generic[S]):
    """Other forms of some instances, `count` of each: their solutions are solutions of the instance, and worth the same.

    Row i * count + v of `state` is augmentation v of instance i, and belongs to the instance of the same number; augmentation 0 is the
    instance itself. `tag` is what the problem needs to know of each to translate its solutions.
    """

    state: S
    tag: Int[Tensor, " row"]
    count: int


@dataclass(frozen=True)
class ReEncoding(Generic[S]):
    """Solutions written down otherwise: row by row, `actions` solve `state`, an initial row of an augmentation with this `tag`."""

    state: S  # row i belongs to instance i
    tag: Int[Tensor, " row"]
    actions: Int[Tensor, "row depth"]


class Problem(ABC, Generic[S]):
    """A constructive optimisation problem: pure functions on a `State`, no computation stored on `self`."""

    dead_end_objective: ClassVar[float | None] = None
    """Finite score of a row that is not done but has no action left; None: such a row is an error."""

    @abstractmethod
    def generate(self, count: int, *, generator: torch.Generator, device: torch.device | str = "cpu") -> S:
        """`count` fresh random instances as initial states, one row each."""

    @abstractmethod
    def mask(self, state: S) -> Bool[Tensor, "row action"]:
        """True where an action is allowed. Never read for finished rows."""

    @abstractmethod
    def step(self, state: S, action: Int[Tensor, " row"]) -> S:
        """The state after one action per row. A finished row steps to itself, whatever the action."""

    @abstractmethod
    def done(self, state: S) -> Bool[Tensor, " row"]:
        """True where a row is a complete solution."""

    @abstractmethod
    def objective(self, state: S) -> Float[Tensor, " row"]:
        """The objective of complete rows; larger is better. Never read for unfinished rows."""

    @abstractmethod
    def horizon(self, state: S) -> int:
        """An upper bound on the number of steps any row still needs."""

    def examples(self, state: S, actions: Int[Tensor, "row depth"], *, generator: torch.Generator) -> Examples[S]:
        """One training example for each solved instance; `actions` are padded with -1 at the end.

        The default draws a uniformly random proper prefix of each solution. Problems with symmetries override this:
        they may re-root, reorder, shorten or augment.
        """
        lengths = (actions >= 0).sum(1)
        steps = (torch.rand(state.row_count, generator=generator).to(lengths.device) * lengths).long()
        return self.examples_after(state, actions, steps, generator=generator)

    def examples_after(
        self, state: S, actions: Int[Tensor, "row depth"], steps: Int[Tensor, " row"], *, generator: torch.Generator
    ) -> Examples[S]:
        """The example of each solution at which exactly so many of its actions have been taken, and the next one is the target.

        Its beginning is a policy's own and need not be good, so nothing of it may be a target. Problems with symmetries augment here, too.
        """
        return Examples(replay(self, state, actions, steps), actions.gather(1, steps[:, None]).squeeze(1))

    def local_search(
        self, state: S, actions: Int[Tensor, "row depth"], *, effort: int, seeds: Int[Tensor, " row"], kept: int = 0
    ) -> Int[Tensor, "row depth"]:
        """Optional: solutions of initial states made better, or left as they are, by a quick local search; also padded with -1.

        `effort` is a number of attempts per item of an instance. The first `kept` actions stay as they are.
        """
        raise SettingsError(f"`local_search` must be 0 for {type(self).__name__}: it has no local search.")

    def augmentations(self, state: S, count: int, *, seeds: Int[Tensor, " row"]) -> Augmentations[S] | None:
        """Optional: at most `count` augmentations of each instance (one initial row each), drawn by its seed alone; None: there are none.

        A search may then work on all of them at once (`augmentations` of a sampler). Symmetries of a problem that a network does not
        have are augmentations: of one instance it solves some better than others.
        """
        return None

    def inverse_transform(
        self, state: S, tag: Int[Tensor, " row"], actions: Int[Tensor, "row depth"]
    ) -> Int[Tensor, "row depth"]:
        """Solutions of augmentations with these tags as solutions of the instances themselves, row by row; padded with -1 at the end."""
        raise ContractError(f"`{type(self).__name__}` has augmentations but no method `inverse_transform`.")

    def reencoded(self, state: S, actions: Int[Tensor, "row depth"], *, seeds: Int[Tensor, " row"]) -> ReEncoding[S]:
        """Optional, for problems with `inverse_transform`: each solution of an initial row in another form, drawn by its seed, and no worse.

        A tour may be written down from any city on, in either direction. What its last actions do, a search can then do anew
        (`search/reconstruction.py`), so the end of a form should be a part of the solution that makes sense on its own.
        """
        raise ContractError(f"`{type(self).__name__}` has no method `reencoded`.")

    def key(self, state: S) -> Int[Tensor, "row 2"] | None:
        """Optional: rows of one instance and depth with equal keys have equal futures (transpositions).

        A search then evaluates the policy once per key, so the key must cover all that a policy reads of a row, not how the
        row came there. Equal keys are taken as equal states: hash to both numbers, with 64 random bits each.
        """
        return None


_REMEMBER = (
    "Training replays solutions without gradients, so such weights would never be trained. Keep plain numbers in the state (the last "
    "actions, say), and let the policy compute what it needs of them."
)


def check_weightless(problem: Problem[S], state: S) -> None:
    """Raises where a problem computes with trainable weights: a hidden vector in its states, of a recurrent network say."""
    for name, value in vars(problem).items():
        if isinstance(value, torch.nn.Module | torch.Tensor) and _trainable(value):
            raise ContractError(
                f"`{type(problem).__name__}.{name}` must not be trainable, got a {type(value).__name__}. {_REMEMBER}"
            )
    for name, tensor in state.tensors().items():
        if tensor.requires_grad:
            raise ContractError(f"`{type(state).__name__}.{name}` must not come from trainable weights. {_REMEMBER}")


def _trainable(value: torch.nn.Module | Tensor) -> bool:
    weights = value.parameters() if isinstance(value, torch.nn.Module) else [value]
    return any(weight.requires_grad for weight in weights)


def replay(problem: Problem[S], state: S, actions: Int[Tensor, "row depth"], steps: Int[Tensor, " row"]) -> S:
    """Applies to row i its first `steps[i]` actions."""
    if not (int(steps.min()) >= 0 and int(steps.max()) <= actions.shape[1]):
        raise ContractError(f"`steps` must lie in 0 .. {actions.shape[1]}, got {int(steps.min())} .. {int(steps.max())}.")
    for depth in range(int(steps.max())):
        state = step_some(problem, state, actions[:, depth], steps > depth)
    return state


def step_some(problem: Problem[S], state: S, action: Int[Tensor, " row"], moving: Bool[Tensor, " row"]) -> S:
    """Steps the rows that are `moving` and leaves the others as they are."""
    if bool(moving.all()):
        return problem.step(state, action)
    legal = problem.mask(state).int().argmax(1)  # rows that stand still get some action whose result is discarded
    return problem.step(state, torch.where(moving, action, legal)).where(moving, state)


def dead_ends(problem: Problem[S], state: S, done: Bool[Tensor, " row"]) -> Bool[Tensor, " row"]:
    """Rows that are not done and have no action left, for problems that declare such rows; none for all others."""
    if problem.dead_end_objective is None:
        return torch.zeros_like(done)
    return ~done & ~problem.mask(state).any(1)


def ended(problem: Problem[S], state: S) -> Bool[Tensor, " row"]:
    """Rows that are done or dead ends."""
    done = problem.done(state)
    return done if problem.dead_end_objective is None else done | dead_ends(problem, state, done)


def final_objective(
    problem: Problem[S], state: S, dead: Bool[Tensor, " row"], read: Bool[Tensor, " row"]
) -> Float[Tensor, " row"]:
    """The objective of finished rows, the declared one of dead ends; checked to be finite wherever it is `read`."""
    value = problem.objective(state).to(precise(state.device))
    if problem.dead_end_objective is not None:
        value = value.masked_fill(dead, problem.dead_end_objective)
    if not bool((value.isfinite() | ~read).all()):
        wrong = value[read & ~value.isfinite()][0].item()
        raise ContractError(f"`{type(problem).__name__}.objective` must be finite for finished rows, got {wrong}.")
    return value


def check_horizon(problem: Problem[S], steps: int, horizon: int) -> None:
    """Called before a step that is really needed, after `steps` of them."""
    if steps >= horizon:
        raise ContractError(
            f"`{type(problem).__name__}.horizon` promised at most {horizon} steps, but some rows are not "
            f"done after them. `horizon` must be an upper bound."
        )
