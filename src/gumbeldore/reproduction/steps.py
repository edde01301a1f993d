"""What has to be done for a table or a figure, as data: trainings, labels, evaluations. Who does it is another matter.

A step is named by what results from it. Samplers and problems are named as on the command line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from gumbeldore.errors import require

Settings = Mapping[str, Any]
"""Nested settings, as in a file of them."""


@dataclass(frozen=True)
class Train:
    """A policy by self-improvement. With `follows` it goes on with the run of that step, which keeps its own weights."""

    name: str
    problem: str  # with its network: tsp, tsp-lehd
    preset: str
    epochs: int
    changes: Settings = field(default_factory=dict)  # of the preset
    follows: str = ""

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.follows,) if self.follows else ()


@dataclass(frozen=True)
class Instances:
    """Instances under a name: a standard set, a recipe's, or those of a `Label` step with its costs as reference."""

    name: str
    standard: str = ""
    recipe: Settings = field(default_factory=dict)  # settings of the kit's recipe
    labels: str = ""
    first: int | None = None  # only so many


@dataclass(frozen=True)
class Expert:
    """A solver and how long it may search an instance: by the clock, or by work, which is cheaper where little is enough."""

    seconds: float | None = 2.0
    work: float | None = None
    solver: str = "auto"  # the best that is installed

    def __str__(self) -> str:
        limit = f"{self.seconds:g} s" if self.work is None else f"work {self.work:g}"
        return f"{'an expert' if self.solver == 'auto' else self.solver}, {limit} each"


@dataclass(frozen=True)
class Label:
    """Expert solutions, to learn from or as reference."""

    name: str
    problem: str
    instances: Instances
    expert: Expert
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Imitate:
    """A policy by supervised training."""

    name: str
    problem: str
    preset: str
    epochs: int
    labels: str  # the step that made them
    changes: Settings = field(default_factory=dict)

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.labels,)


@dataclass(frozen=True)
class Method:
    """A trained policy with a sampler, under the name of its row or curve."""

    name: str
    policy: str  # the step that trains it
    sampler: str
    sequences: int = 1  # that it draws in a round
    point_of: str = ""  # the curve of which it is one point, by its last round; otherwise each round is a point of its own


@dataclass(frozen=True)
class Evaluate:
    """Every method on every set, with several seeds where it is random."""

    name: str
    problem: str
    sets: tuple[Instances, ...]
    methods: tuple[Method, ...]
    repeats: int = 1

    @property
    def needs(self) -> tuple[str, ...]:
        labels = [given.labels for given in self.sets if given.labels]
        return tuple(dict.fromkeys([*(method.policy for method in self.methods), *labels]))


Step = Train | Label | Imitate | Evaluate


def digest(step: Step) -> str:
    """A hash of all that a step says, by which its result is known again."""
    text = json.dumps([type(step).__name__, asdict(step)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Plan:
    """Steps in an order in which they can be done, and what differs from the paper."""

    steps: tuple[Step, ...]
    caption: str
    there: frozenset[str] = frozenset()  # policies that are not trained, because their weights are given

    def __post_init__(self) -> None:
        known = set(self.there)
        for step in self.steps:
            missing = [name for name in step.needs if name not in known]
            require(not missing, f"The step `{step.name}` needs `{(missing or [''])[0]}`, which no step before it makes.")
            require(step.name not in known, f"Names of steps must differ, but `{step.name}` occurs twice.")
            known.add(step.name)

    @property
    def ends(self) -> list[str]:
        """Steps whose results no other step needs."""
        needed = {name for step in self.steps for name in step.needs}
        return [step.name for step in self.steps if step.name not in needed]

    def only(self, parts: Iterable[str]) -> Plan:
        """The ends whose names begin with one of the parts, and what they need."""
        parts = tuple(parts)
        kept = {name for name in self.ends if not parts or name.startswith(parts)}
        require(bool(kept), f"`only` must name parts of {', '.join(self.ends)}, got {' '.join(parts)}.")
        return self._closed(kept)

    def given(self, policies: Iterable[str]) -> Plan:
        """The same without training these policies: their weights are there."""
        names, trained = set(policies), [step.name for step in self.steps if isinstance(step, Train | Imitate)]
        unknown = sorted(names - set(trained))
        require(not unknown, f"`use` must name policies of the plan ({', '.join(trained)}), got {', '.join(unknown)}.")
        return self._closed(set(self.ends) - names, frozenset(names))

    def _closed(self, wanted: set[str], there: frozenset[str] = frozenset()) -> Plan:
        """The wanted steps with all they need, except for what is there."""
        kept: list[Step] = []
        for step in reversed(self.steps):
            if step.name in wanted and step.name not in there:
                kept.append(step)
                wanted = wanted | set(step.needs)
        return Plan(tuple(reversed(kept)), self.caption, self.there | there)

    def step(self, name: str) -> Step:
        return next(step for step in self.steps if step.name == name)


def train_with_checkpoint(late: Train, epochs: int, name: str) -> tuple[Train, Train]:
    """The same run, kept after some epochs, under a name of its own, and at its end."""
    early = replace(late, name=f"{late.name}-{name}", epochs=epochs)
    return early, replace(late, follows=early.name)
