"""Run it with pytest in the folder of template.py."""

from __future__ import annotations

from pathlib import Path

import torch
from template import KIT, Template, cost_of, earliest_due, verify

import gumbeldore


def test_it_keeps_the_contract() -> None:
    gumbeldore.check_problem(Template(jobs=5))


def test_the_verifier_agrees_with_the_problem() -> None:
    instances = KIT.generator(jobs=6, count=4).generate()
    solutions = gumbeldore.BeamSearch(3)(
        Template(jobs=6), KIT.architectures["set"].make(KIT.problem, KIT.architectures["set"].size).eval(),
        instances.state(), generator=torch.Generator().manual_seed(0),
    )  # fmt: skip
    for row, actions in enumerate(solutions.best_actions.tolist()):
        assert abs(verify(instances.instance(row), actions).objective - solutions.best_objective[row].item()) < 1e-6


def test_an_incomplete_order_is_infeasible() -> None:
    instance = KIT.generator(jobs=4, count=1).generate().instance(0)
    assert not verify(instance, [0, 1]).feasible
    assert cost_of(instance, earliest_due(instance)) > 0


def test_it_learns(tmp_path: Path) -> None:
    small = {"instances": 40, "batches": 30, "batch_size": 64, "learning_rate": 2e-3}
    run = gumbeldore.train(KIT, tmp_path, problem={"jobs": 6}, training=small, epochs=4, workers=0, progress=False)
    values = [epoch.validation for epoch in run]
    assert max(values) > values[0] or run.best is not None
