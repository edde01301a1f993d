"""Every problem learns something in seconds: by self-improvement, and from the labels of outside solvers.

These are smoke tests of the whole way from settings to a better policy, not claims about quality.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from kits import SOLVERS
from routing import seeded

from gumbeldore.kits.solver import Limit
from gumbeldore.problems.cvrp.instances import CVRPGenerator
from gumbeldore.problems.jssp.instances import JSSPGenerator
from gumbeldore.problems.tsp.instances import TSPGenerator
from gumbeldore.runs.presets import CATALOGUE
from gumbeldore.runs.records import merged
from gumbeldore.runs.settings import RunSettings
from gumbeldore.runs.weights import new_policy
from gumbeldore.training import greedy_objective, imitate, self_improve

pytestmark = pytest.mark.usefixtures("unchecked")  # twice as fast; shapes are checked elsewhere

NETWORK = {"d": 16, "layers": 2, "heads": 2, "ff": 32}
TRAINING = {"epochs": 4, "instances": 24, "batches": 25, "batch_size": 48, "learning_rate": 3e-3, "seed": 1}

BLIND: dict[str, dict[str, Any]] = {name: {"policy": {"features": ["distance-bias", "frame"]}} for name in ("tsp", "cvrp")}
"""With look-ahead features, policies need not learn such small instances."""
TINY: dict[str, dict[str, Any]] = {
    "tsp": {"problem": {"cities": 8}, "policy": NETWORK},
    "tsp-lehd": {"problem": {"cities": 8}, "policy": {**NETWORK, "layers": 1}},
    "atsp": {"problem": {"cities": 8}, "policy": {**NETWORK, "d": 16, "layers": 1, "biased": 1, "tries": 1}},
    "cvrp": {"problem": {"customers": 6, "capacity": 15}, "policy": {**NETWORK, "d": 32}},
    "cvrp-lehd": {"problem": {"customers": 6, "capacity": 15}, "policy": {**NETWORK, "d": 32, "layers": 1}},
    "vrptw": {"problem": {"customers": 6}, "policy": {**NETWORK, "layers": 1}},
    "jssp": {
        "problem": {"jobs": 4, "machines": [2, 3]},
        "policy": {"d": 16, "pairs": 1, "heads": 2, "ff": 32},
        "training": {"epochs": 2, "instances": 16},
        "validation": {"problem": {"machines": 4}},
    },
    "fjsp": {
        "problem": {"jobs": 4, "machines": 3},
        "policy": {"d": 16, "pairs": 1, "heads": 2, "ff": 32},
        "training": {"epochs": 2, "instances": 16},
    },
    "pfsp": {"problem": {"jobs": 8, "machines": 3}, "policy": {"d": 16, "layers": 1, "heads": 2, "ff": 32}},
    "op": {
        "problem": {"customers": 12, "budget": 2.0},
        "policy": {"d": 16, "layers": 1, "heads": 2, "ff": 32, "features": []},
        "validation": {"problem": {"customers": 12}},
    },
    "gomoku": {
        "problem": {"size": 5},
        "policy": {"channels": 16, "blocks": 1, "head_channels": 8},
        "sampler": {"beam_width": 16},
        "training": {"epochs": 3, "instances": 25, "batches": 40, "batch_size": 32},
    },
}
ENOUGH = {
    "tsp": 0.2,
    "tsp-lehd": 0.2,
    "atsp": 0.001,
    "cvrp": 0.5,
    "cvrp-lehd": 0.5,
    "vrptw": 0.1,
    "jssp": 30,
    "fjsp": 1,
    "pfsp": 5,
    "op": 0.15,
    "gomoku": 0.05,
}
"""How much better the mean greedy objective must become; a fraction of what was seen."""
ENOUGH_BY_ITSELF = {**ENOUGH, "jssp": 10}
"""The same for self-improvement: the preset of the job shop builds active schedules, which are good from the start."""


def settings(name: str, preset: str) -> RunSettings:
    common = {"sampler": {"beam_width": 8, "rounds": 2}, "training": TRAINING, "validation": {"instances": 25}}
    return merged(CATALOGUE[name].settings(preset, common), TINY[name])


def start(name: str, run: RunSettings):
    """The initial policy, validation instances and the mean greedy objective on them."""
    policy = new_policy(CATALOGUE[name], run, torch.device("cpu"))
    validation = run.validation_problem.generate(run.validation.instances, generator=seeded(1))
    return policy, validation, greedy_objective(run.validation_problem, policy, validation).mean().item()


def test_every_problem_is_tried():
    assert TINY.keys() == CATALOGUE.keys() == ENOUGH.keys()


@pytest.mark.parametrize("name", TINY)
def test_a_few_epochs_of_self_improvement_improve_on_the_start(name):
    run = merged(settings(name, "small"), BLIND.get(name, {}))
    policy, validation, before = start(name, run)
    epochs = self_improve(
        run.training_problem,
        policy,
        run.sampler.build,
        validation=validation,
        settings=run.training,
        select=CATALOGUE[name].select,
    )
    after = max(epoch.validation for epoch in epochs)
    assert after > before + ENOUGH_BY_ITSELF[name], f"{before} became {after}"


WORK = Limit(None, 20)  # by iterations or deterministic time: the same on a busy machine


@pytest.mark.parametrize(
    ("name", "generator"),
    [("tsp", TSPGenerator(8, 50)), ("cvrp", CVRPGenerator(6, 15, 40)), ("jssp", JSSPGenerator(4, 4, 40))],
    ids=["tsp", "cvrp", "jssp"],
)
def test_a_few_epochs_on_expert_solutions_improve_on_the_start(name, generator):
    solver = next(iter(SOLVERS[name]))
    pytest.importorskip(solver)
    instances = generator.generate()
    solved = [SOLVERS[name][solver](instances.instance(index), WORK, index) for index in range(len(instances))]
    dataset = instances.labelled([s.actions for s in solved], solver).dataset()
    run = settings(name, "supervised-small")
    policy, validation, before = start(name, run)
    epochs = imitate(run.training_problem, policy, dataset, validation=validation, settings=run.training)
    after = max(epoch.validation for epoch in epochs)
    assert after > before + ENOUGH[name], f"{before} became {after}"
