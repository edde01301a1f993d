"""What is compared: a trained policy with a sampler, or a baseline. Each knows what its answers depend on."""

from __future__ import annotations

import hashlib
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from importlib.metadata import version
from typing import Any

import torch
from torch import Tensor

from gumbeldore.errors import require
from gumbeldore.evaluation.sets import stacked
from gumbeldore.kits.baselines import Baseline
from gumbeldore.kits.instances import Arrays, InstanceSet
from gumbeldore.kits.kit import Instance, Kit
from gumbeldore.kits.solver import SHORT, Limit, SolverError
from gumbeldore.policy import Network
from gumbeldore.problem import Problem, State
from gumbeldore.search.samplers import BeamSearch, Sampler
from gumbeldore.solutions import Solutions

REVISION = 3
"""To be raised whenever the code of a search or a baseline changes its answers: kept ones are then computed anew."""

MOST, TOGETHER_BYTES = 64, 128 << 20
"""Instances that are searched together: at most so many, and of at most so much memory, so that an interrupt loses little."""


@dataclass(frozen=True)
class Point:
    """How far a search was after a round."""

    sequences: int
    evaluations: int  # of the policy
    objective: float  # the best so far, of the instance as the policy sees it


@dataclass(frozen=True)
class Answer:
    """What a method says about one instance."""

    actions: tuple[int, ...]
    seconds: float  # of processor time; of instances that were solved together, their share
    curve: tuple[Point, ...] = ()  # of policies, round by round


@dataclass(frozen=True)
class Failure:
    """Why a method has no answer for an instance."""

    reason: str


class Method(ABC):
    """A row of the table. Worker processes receive it once."""

    name: str

    @property
    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """All that its answers depend on besides the instance and the seed, as JSON can hold it."""

    @property
    @abstractmethod
    def random(self) -> bool:
        """Whether other seeds may give other answers."""

    @abstractmethod
    def together(self, kit: Kit, given: Instance) -> int:
        """How many instances like this one are solved together at most."""

    @abstractmethod
    def item(self, kit: Kit, instances: tuple[Instance, ...], seeds: Sequence[int]) -> Any:
        """Instances of one size as `solve` takes them, possibly in another process."""

    @abstractmethod
    def solve(self, item: Any) -> list[Answer | Failure]:
        """One answer per instance."""

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps({"revision": REVISION, **self.identity}, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class PolicyMethod(Method):
    """A trained policy with a sampler; `nearest` restricts it to so many nearest nodes, where a kit can."""

    name: str
    policy: Network
    sampler: Sampler
    nearest: int | None = None

    @cached_property
    def identity(self) -> dict[str, Any]:
        return {
            "package": version("gumbeldore"),
            "policy": type(self.policy).__name__,
            "config": self.policy.config,
            "weights": weights_digest(self.policy),
            "sampler": described(self.sampler),
            "nearest": self.nearest,
        }

    @property
    def random(self) -> bool:
        return not isinstance(self.sampler, BeamSearch) or self.sampler.augmentations > 1

    def together(self, kit: Kit, given: Instance) -> int:
        problem, state = self._initial(kit, (given,))
        needed = self.sampler.instance_bytes(problem.mask(state).shape[1], problem.horizon(state))
        return max(1, min(MOST, TOGETHER_BYTES // needed))

    def item(self, kit: Kit, instances: tuple[Instance, ...], seeds: Sequence[int]) -> tuple[Problem[Any], State, Tensor]:
        return *self._initial(kit, instances), torch.tensor(seeds)

    def _initial(self, kit: Kit, instances: tuple[Instance, ...]) -> tuple[Problem[Any], State]:
        kind = kit.need("instance files", "instances")
        problem, state = kind.problem, InstanceSet(kind, dict(stacked(instances))).state()
        if self.nearest is None:
            return problem, state
        problem = kit.need("restrictions to near nodes", "restrict")(problem, self.nearest)
        return problem, problem.restricted(state)

    def solve(self, item: tuple[Problem[Any], State, Tensor]) -> list[Answer | Failure]:
        problem, state, seeds = item
        answers: list[Answer | Failure] = []
        for rows in self.sampler.chunks(problem, state):
            begin, rounds = time.process_time(), []
            part = state.rows(rows).compact()
            for solutions in self.sampler.stream(problem, self.policy, part, seeds[rows]):
                rounds.append(_points(solutions))
            seconds = (time.process_time() - begin) / part.row_count
            best = solutions.best_actions.tolist()
            for row, actions in enumerate(best):
                curve = tuple(points[row] for points in rounds)
                answers.append(Answer(tuple(action for action in actions if action >= 0), seconds, curve))
        return answers


@dataclass(frozen=True)
class BaselineMethod(Method):
    """One of the kit's baselines; without a `limit` its usual one."""

    name: str
    baseline: Baseline
    limit: Limit | None = None

    def __post_init__(self) -> None:
        base = self.baseline
        require(self.limit is None or base.limit is not None, f"`{self.name}` takes no limit: it ends by itself. Leave it out.")
        require(
            self.limit is None or self.limit.seconds is None or base.clock,
            f"`{self.name}` cannot be limited by seconds, only by work ({base.work}).",
        )

    @property
    def effort(self) -> Limit:
        return self.limit or self.baseline.limit or SHORT

    @cached_property
    def identity(self) -> dict[str, Any]:
        base = self.baseline
        return {
            "package": version("gumbeldore"),
            "baseline": base.summary,
            "solver": f"{base.needs} {version(base.needs)}" if base.needs else None,
            "limit": None
            if base.limit is None
            else {name: value and float(value) for name, value in vars(self.effort).items()},
        }

    @property
    def random(self) -> bool:
        return self.baseline.random

    def together(self, kit: Kit, given: Instance) -> int:
        return MOST if self.baseline.limit is None else 1

    def item(self, kit: Kit, instances: tuple[Instance, ...], seeds: Sequence[int]) -> list[tuple[Arrays, int]]:
        return [(given.arrays, seed % 2**31) for given, seed in zip(instances, seeds, strict=True)]

    def solve(self, item: list[tuple[Arrays, int]]) -> list[Answer | Failure]:
        return [self._one(instance, seed) for instance, seed in item]

    def _one(self, instance: Arrays, seed: int) -> Answer | Failure:
        begin = time.process_time()
        try:
            actions = self.baseline.solve(instance, self.effort, seed)
        except SolverError as error:
            return Failure(str(error))
        return Answer(tuple(int(action) for action in actions), time.process_time() - begin)


def _points(solutions: Solutions) -> list[Point]:
    counts, evaluations = solutions.filled.sum(1).tolist(), solutions.diagnostics.evaluations.tolist()
    return [Point(*row) for row in zip(counts, evaluations, solutions.best_objective.tolist(), strict=True)]


def weights_digest(policy: Network) -> str:
    """A hash of all weights and buffers."""
    content = hashlib.sha256()
    for name, tensor in sorted(policy.state_dict().items()):
        plain = tensor.detach().cpu().contiguous()
        content.update(f"{name} {plain.dtype} {tuple(plain.shape)}".encode())
        content.update(plain.reshape(-1).view(torch.uint8).numpy().tobytes())
    return content.hexdigest()


def described(sampler: Sampler) -> dict[str, Any]:
    """A sampler's class and settings; functions by their names. What it may use of memory changes no answer."""
    settings = {f.name: getattr(sampler, f.name) for f in fields(sampler) if f.name not in ("memory", "keep_trie")}  # type: ignore[arg-type]
    plain = {name: f"{value.__module__}.{value.__qualname__}" if callable(value) else value for name, value in settings.items()}
    return {"class": f"{type(sampler).__module__}.{type(sampler).__qualname__}", **plain}
