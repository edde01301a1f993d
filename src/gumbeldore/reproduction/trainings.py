"""Which trainings the tables and figures rest on, at each scale. Several of them share a training, which is done once.

`paper` is the paper's setting. `cpu` keeps its shape (rounds, a nucleus in the second half, larger instances in the tests) with small networks
and instances, so that all experiments together take about an hour and a half of one core. `smoke` only shows that everything runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gumbeldore.kits.baselines import OWN
from gumbeldore.reproduction.steps import Expert, Imitate, Instances, Label, Settings, Train, train_with_checkpoint

Scale = Literal["smoke", "cpu", "paper"]
SCALES: tuple[Scale, ...] = ("smoke", "cpu", "paper")

SIGMA = {"tsp": 0.3, "tsp-lehd": 0.3, "cvrp": 3.0, "jssp": 0.05}
"""The paper's step sizes."""


@dataclass(frozen=True)
class Recipe:
    """How a policy is trained by self-improvement: by the preset `paper`, with changes."""

    epochs: int
    intermediate: int  # an epoch at which the policy is fair and has much to learn; the paper does not name its own
    changes: Settings = field(default_factory=dict)
    tuned: int = 20  # epochs without updates after which sigma is chosen


@dataclass(frozen=True)
class Lessons:
    """How a policy is trained on labels: by the preset `supervised`, with changes."""

    epochs: int
    instances: Settings  # of the kit's recipe
    expert: Expert
    changes: Settings = field(default_factory=dict)


PAPER, SUPERVISED = "paper", "supervised"
"""The presets that all of them start from: nothing beyond the paper's method comes in unseen."""

_TINY_TRAINING = {"instances": 4, "batches": 2, "batch_size": 8}
_TINY = {
    "sampler": {"beam_width": 4, "rounds": 2},
    "training": _TINY_TRAINING,
    "validation": {"instances": 4},
    "policy": {"d": 16, "heads": 2, "ff": 32},
}

_SMALL_TRAINING = {"instances": 64, "batches": 100, "batch_size": 128, "learning_rate": 1e-3}
_SMALL: dict[str, Any] = {
    "sampler": {"beam_width": 16, "rounds": 4, "p_min": 0.95, "p_min_from_epoch": 21},
    "training": _SMALL_TRAINING,
    "validation": {"instances": 300},
    "policy": {"d": 64, "layers": 2, "heads": 4, "ff": 256},
}


def _with(base: Mapping[str, Any], **parts: Any) -> dict[str, Any]:
    """Nested settings, changed in some."""
    changed = dict(base)
    for name, part in parts.items():
        changed[name] = {**base.get(name, {}), **part} if isinstance(part, Mapping) else part
    return changed


_SELF_IMPROVEMENT: dict[str, dict[Scale, Recipe]] = {
    "tsp": {
        "smoke": Recipe(2, 1, _with(_TINY, problem={"cities": 6}, policy={"layers": 1}), 1),
        "cpu": Recipe(40, 5, _with(_SMALL, problem={"cities": 20})),
        "paper": Recipe(2200, 50),
    },
    "tsp-lehd": {
        "smoke": Recipe(2, 1, _with(_TINY, problem={"cities": 6}, policy={"layers": 1}), 1),
        "cpu": Recipe(24, 5, _with(_SMALL, problem={"cities": 20}, sampler={"p_min_from_epoch": 13})),
        "paper": Recipe(2200, 50),
    },
    "cvrp": {
        "smoke": Recipe(2, 1, _with(_TINY, problem={"customers": 5, "capacity": 20}, policy={"layers": 1}), 1),
        "cpu": Recipe(
            24,
            6,
            _with(
                _SMALL,
                problem={"customers": 20, "capacity": [24, 60]},
                sampler={"p_min_from_epoch": 13},
                validation={"problem": {"capacity": 30}},
            ),
        ),
        "paper": Recipe(2700, 100),
    },
    "jssp": {
        "smoke": Recipe(
            2, 1, _with(_TINY, problem={"jobs": 3, "machines": 2}, policy={"pairs": 1}, validation={"problem": {}}), 1
        ),
        "cpu": Recipe(
            24,
            4,
            {
                "problem": {"jobs": 6, "machines": [4, 5, 6]},
                "policy": {"d": 64, "pairs": 2, "heads": 8, "ff": 256},
                "sampler": {"beam_width": 16, "rounds": 4, "p_min": 0.95, "p_min_from_epoch": 13},
                "training": {"instances": 32, "batches": 80, "batch_size": 64, "learning_rate": 1e-3},
                "validation": {"instances": 64, "problem": {"jobs": 6, "machines": 6}},
            },
        ),
        "paper": Recipe(100, 10),
    },
}

_IMITATION: dict[str, dict[Scale, Lessons]] = {
    name: {
        "smoke": Lessons(2, {**tiny, "count": 6, "seed": 7}, Expert(0.02), _with(_TINY, policy={"layers": 1})),
        "cpu": Lessons(
            epochs,
            {**small, "seed": 7},
            quick,
            {"policy": _SMALL["policy"], "training": {**_SMALL_TRAINING, "patience": None}, "validation": _SMALL["validation"]},
        ),
        "paper": Lessons(10_000, {**full, "count": 1_000_000, "seed": 7}, Expert(seconds)),
    }
    for name, epochs, tiny, small, quick, full, seconds in (
        ("tsp", 40, {"cities": 6}, {"cities": 20, "count": 10_000}, Expert(None, 30, OWN), {"cities": 100}, 2.0),
        ("tsp-lehd", 24, {"cities": 6}, {"cities": 20, "count": 10_000}, Expert(None, 30, OWN), {"cities": 100}, 2.0),
        ("cvrp", 24, {"customers": 5, "capacity": 20}, {"customers": 20, "capacity": 30, "count": 2_000}, Expert(None, 50),
         {"customers": 100, "capacity": 50}, 10.0),
    )
}  # fmt: skip


def by_gumbeldore(problem: str, scale: Scale, seed: int = 0) -> tuple[Train, Train]:
    """SI GD: the intermediate policy, and the late one, which the tables are about."""
    recipe = _SELF_IMPROVEMENT[problem][scale]
    changes = _seeded(_with(recipe.changes, sampler=_step(problem)), seed)
    late = Train(named(f"{problem}-gd", seed), problem, PAPER, recipe.epochs, changes)
    return train_with_checkpoint(late, recipe.intermediate, "intermediate")


def named(policy: str, seed: int) -> str:
    return f"{policy}-seed-{seed}" if seed else policy


def _seeded(changes: Settings, seed: int) -> Settings:
    return _with(changes, training={"seed": seed}) if seed else changes


def _step(problem: str) -> dict[str, Any]:
    return {"method": "gumbeldore", "sigma": SIGMA[problem]}


def without_replacement(problem: str, scale: Scale, seed: int = 0) -> tuple[Train, Train]:
    """SI WOR: sampling without replacement, without nucleus and updates. The policy that sigma is chosen for, and the late one."""
    recipe = _SELF_IMPROVEMENT[problem][scale]
    changes = _seeded(_with(recipe.changes, sampler={"method": "without-replacement", "p_min": 1.0}), seed)
    late = Train(named(f"{problem}-wor", seed), problem, PAPER, recipe.epochs, changes)
    return train_with_checkpoint(late, recipe.tuned, str(recipe.tuned))


def supervised(problem: str, scale: Scale) -> tuple[Label, Imitate]:
    """SL: labels, and the policy that learns from them."""
    lessons = _IMITATION[problem][scale]
    kit = problem.partition("-")[0]
    labels = Label(f"{kit}-labels", kit, Instances("to learn from", recipe=lessons.instances), lessons.expert)
    size = {name: value for name, value in lessons.instances.items() if name not in ("count", "seed")}
    changes = {**lessons.changes, "problem": size}
    return labels, Imitate(f"{problem}-sl", problem, SUPERVISED, lessons.epochs, labels.name, changes)
