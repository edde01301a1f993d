"""Random instances of any kit, as sets of arrays; also of kits that bring no files of instances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from gumbeldore.errors import GumbeldoreError, SettingsError, require
from gumbeldore.kits.instances import Arrays, InstanceSchema, InstanceSet
from gumbeldore.kits.kit import InstanceGenerator, Kit, built
from gumbeldore.kits.verdict import Verdict
from gumbeldore.policy import Network
from gumbeldore.problem import Problem, State, replay

P = TypeVar("P")


def schema_of(kit: Kit) -> InstanceSchema:
    """What the kit says that its instances consist of; otherwise all fields of an initial state."""
    return kit.instances if kit.instances is not None else _generic(kit)


def random_set(kit: Kit, count: int, seed: int) -> InstanceSet:
    """By the kit's generator, or by its problem."""
    if kit.generator is not None and kit.instances is not None:
        drawn = kit.generator(count=count, seed=seed)
        if isinstance(drawn, InstanceGenerator):
            return drawn.generate()
    state = kit.usual_problem.generate(count, generator=torch.Generator().manual_seed(seed)).compact()
    named = {name: tensor.numpy() for name, tensor in state.tensors().items() if name != "instance"}
    schema = schema_of(kit)
    kept = {
        name: array.astype(np.uint8) if array.dtype == bool else array for name, array in named.items() if name in schema.axes
    }
    return InstanceSet(schema, kept)


def _generic(kit: Kit) -> InstanceSchema:
    """Instances are the tensors of initial states, with an axis of instances first."""
    problem = kit.usual_problem
    one = problem.generate(1, generator=torch.Generator().manual_seed(0))
    tensors = {name: tensor for name, tensor in one.tensors().items() if name != "instance"}
    axes = {name: " ".join(["instance", *(f"{name}-{axis}" for axis in range(1, t.dim()))]) for name, t in tensors.items()}
    integer = frozenset(name for name, tensor in tensors.items() if not tensor.is_floating_point())
    initial = Initial(type(one), {name: tensor.dtype for name, tensor in tensors.items()})
    verify = kit.solution_format.verify or Replayed(problem, initial)
    return InstanceSchema(kit.name, problem, axes, integer, initial, verify, lambda arrays: {})


@dataclass(frozen=True)
class Initial:
    """Initial states from their own tensors."""

    kind: type[State]
    dtypes: dict[str, torch.dtype]

    def __call__(self, tensors: dict[str, Tensor]) -> State:
        count = len(next(iter(tensors.values())))
        known: dict[str, Any] = {name: tensor.to(self.dtypes[name]) for name, tensor in tensors.items()}
        assert set(known) == {field.name for field in fields(self.kind)} - {"instance"}
        return self.kind(instance=torch.arange(count), **known)


@dataclass(frozen=True)
class Replayed:
    """What a problem itself says of a solution, where its kit has no verifier."""

    problem: Problem[Any]
    initial: Initial

    def __call__(self, instance: Arrays, actions: Sequence[int]) -> Verdict:
        state = self.initial({name: torch.as_tensor(np.asarray(array))[None] for name, array in instance.items()})
        taken = torch.tensor([list(actions)])
        end = replay(self.problem, state, taken, torch.tensor([len(actions)]))
        if not bool(self.problem.done(end)):
            return Verdict.infeasible(f"it is not complete after {len(actions)} actions")
        return Verdict(True, self.problem.objective(end).item())


def generated(generator: InstanceGenerator) -> InstanceSet:
    """The instances of a generator; an error if they are too many for the memory, or for an array."""
    try:
        return generator.generate()
    except GumbeldoreError:
        raise
    except (MemoryError, ValueError, OverflowError) as error:  # numpy's
        raise SettingsError("These are too many, or too large, instances for the memory: ask for fewer at once.") from error


def chosen(kit: Kit, generator: Any, standard: str | None) -> InstanceGenerator:
    """The generator, or the standard set that is asked for by name."""
    if standard is None:
        return generator
    known = kit.standard
    require(standard in known, f"`standard` must be one of {', '.join(known) or 'none'}, got {standard!r}.")
    require(
        generator == type(generator)(), "`standard` names a whole set: leave out the other options that say what to generate."
    )
    return known[standard]


@dataclass(frozen=True)
class RandomStates(Generic[P]):
    """Random instances of a problem whose kit brings no generator."""

    problem: P
    count: int = 1  # how many instances
    seed: int = 0

    def __post_init__(self) -> None:
        require(self.count >= 1, f"`count` must be at least 1, got {self.count}.")

    def states(self, policy: Network, device: torch.device) -> tuple[Problem[Any], Any]:
        problem = built(self.problem)
        return problem, problem.generate(self.count, generator=torch.Generator().manual_seed(self.seed), device=device)


def one_instance(kit: Kit, problem: Any) -> Any:
    """The settings of one random instance, of the same size as this problem's; of several, the last."""
    if kit.generator is None:
        return RandomStates(problem)
    kind: Any = kit.generator
    shared = {field.name for field in fields(kind)} & {field.name for field in fields(problem)}
    sizes = {name: getattr(problem, name) for name in shared}
    return kind(**{name: size[-1] if isinstance(size, tuple) else size for name, size in sizes.items()}, count=1)
