"""Which trainings the tables and figures rest on, at each scale. Several of them share a training, which is done once.

`paper` is the paper's setting. `cpu` keeps its shape (rounds, a nucleus later on, larger instances in the tests) with small networks
and instances, and grows the instances in two stages, because nothing is learnt on 50 nodes from scratch in the hours there are. `smoke` only shows that everything runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gumbeldore.reproduction.steps import Imitate, Instances, Label, Settings, Train, train_with_checkpoint

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


@dataclass(frozen=True)
class Lessons:
    """How a policy is trained on labels: by the preset `supervised`, with changes."""

    epochs: int
    instances: Settings  # of the kit's recipe
    seconds: float  # of the solver per instance
    changes: Settings = field(default_factory=dict)


PAPER, SUPERVISED = "paper", "supervised"
"""The presets that all of them start from: nothing beyond the paper's method comes in unseen."""

TINY_TRAINING = {"instances": 4, "batches": 2, "batch_size": 8}
TINY = {
    "sampler": {"beam_width": 4, "rounds": 2},
    "training": TINY_TRAINING,
    "validation": {"instances": 4},
    "policy": {"d": 16, "heads": 2, "ff": 32},
}

SMALL_TRAINING = {"instances": 128, "batches": 128, "batch_size": 256, "learning_rate": 1e-3}
SMALL: dict[str, Any] = {
    "sampler": {"beam_width": 16, "rounds": 4, "p_min": 0.95, "p_min_from_epoch": 26},
    "training": SMALL_TRAINING,
    "validation": {"instances": 300},
    "policy": {"d": 64, "layers": 3, "heads": 4, "ff": 256},
}


def _with(base: Mapping[str, Any], **parts: Any) -> dict[str, Any]:
    """Nested settings, changed in some."""
    changed = dict(base)
    for name, part in parts.items():
        changed[name] = {**base.get(name, {}), **part} if isinstance(part, Mapping) else part
    return changed


def _grown(size: str) -> list[dict[str, Any]]:
    return [{"problem": {size: 20}, "epochs": 40}, {}]


SELF_IMPROVEMENT: dict[str, dict[Scale, Recipe]] = {
    "tsp": {
        "smoke": Recipe(2, 1, _with(TINY, problem={"cities": 6}, policy={"layers": 1})),
        "cpu": Recipe(100, 50, _with(SMALL, problem={"cities": 50}, stages=_grown("cities"))),
        "paper": Recipe(2200, 50),
    },
    "tsp-lehd": {
        "smoke": Recipe(2, 1, _with(TINY, problem={"cities": 6}, policy={"layers": 1})),
        "cpu": Recipe(100, 50, _with(SMALL, problem={"cities": 50}, stages=_grown("cities"), policy={"layers": 2})),
        "paper": Recipe(2200, 50),
    },
    "cvrp": {
        "smoke": Recipe(2, 1, _with(TINY, problem={"customers": 5, "capacity": 20}, policy={"layers": 1})),
        "cpu": Recipe(
            100,
            50,
            _with(
                SMALL,
                problem={"customers": 50, "capacity": [30, 60]},
                stages=_grown("customers"),
                validation={"problem": {"capacity": 40}},
            ),
        ),
        "paper": Recipe(2700, 100),
    },
    "jssp": {
        "smoke": Recipe(2, 1, _with(TINY, problem={"jobs": 3, "machines": 2}, policy={"pairs": 1}, validation={"problem": {}})),
        "cpu": Recipe(
            60,
            15,
            {
                "problem": {"jobs": 10, "machines": [6, 8, 10]},
                "policy": {"d": 64, "pairs": 2, "heads": 8, "ff": 256},
                "sampler": {"beam_width": 16, "rounds": 4, "p_min": 0.95, "p_min_from_epoch": 31},
                "training": {"instances": 64, "batches": 100, "batch_size": 128, "learning_rate": 5e-4},
                "validation": {"instances": 50, "problem": {"jobs": 10, "machines": 10}},
            },
        ),
        "paper": Recipe(100, 10),
    },
}

IMITATION: dict[str, dict[Scale, Lessons]] = {
    name: {
        "smoke": Lessons(2, {**tiny, "count": 6, "seed": 7}, 0.02, _with(TINY, policy={"layers": 1})),
        "cpu": Lessons(
            100,
            {**small, "count": 20_000, "seed": 7},
            0.2,
            {"policy": {**SMALL["policy"], "layers": layers}, "training": {**SMALL_TRAINING, "batches": 256, "patience": 20}, "validation": {"instances": 300}},
        ),
        "paper": Lessons(10_000, {**full, "count": 1_000_000, "seed": 7}, seconds),
    }
    for name, layers, tiny, small, full, seconds in (
        ("tsp", 3, {"cities": 6}, {"cities": 50}, {"cities": 100}, 2.0),
        ("tsp-lehd", 2, {"cities": 6}, {"cities": 50}, {"cities": 100}, 2.0),
        ("cvrp", 3, {"customers": 5, "capacity": 20}, {"customers": 50, "capacity": 40}, {"customers": 100, "capacity": 50}, 10.0),
    )
}  # fmt: skip


def by_gumbeldore(problem: str, scale: Scale) -> tuple[Train, Train]:
    """SI GD: the intermediate policy, and the late one, which the tables are about."""
    recipe = SELF_IMPROVEMENT[problem][scale]
    late = Train(f"{problem}-gd", problem, PAPER, recipe.epochs, _with(recipe.changes, sampler=_step(problem)))
    return train_with_checkpoint(late, recipe.intermediate)


def _step(problem: str) -> dict[str, Any]:
    return {"method": "gumbeldore", "sigma": SIGMA[problem]}


def without_replacement(problem: str, scale: Scale, epochs: int | None = None) -> Train:
    """SI WOR: sampling without replacement, without nucleus and updates."""
    recipe = SELF_IMPROVEMENT[problem][scale]
    changes = _with(recipe.changes, sampler={"method": "without-replacement", "p_min": 1.0})
    name = f"{problem}-wor" if epochs is None else f"{problem}-wor-{epochs}"
    return Train(name, problem, PAPER, epochs or recipe.epochs, changes)


def supervised(problem: str, scale: Scale) -> tuple[Label, Imitate]:
    """SL: labels, and the policy that learns from them."""
    lessons = IMITATION[problem][scale]
    kit = problem.partition("-")[0]
    labels = Label(f"{kit}-labels", kit, Instances("to learn from", recipe=lessons.instances), lessons.seconds)
    size = {name: value for name, value in lessons.instances.items() if name not in ("count", "seed")}
    changes = {**lessons.changes, "problem": size}
    return labels, Imitate(f"{problem}-sl", problem, SUPERVISED, lessons.epochs, labels.name, changes)
