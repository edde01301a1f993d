"""Coarser arithmetic is used where it is asked for, and devices of sampling and training may differ."""

from __future__ import annotations

import math

import pytest
import torch

from gumbeldore import ContractError, Greedy
from gumbeldore.policies import TSPPolicy
from gumbeldore.problems import TSP
from gumbeldore.runs.presets import CATALOGUE
from gumbeldore.training import TrainingSettings
from gumbeldore.training.precision import Precision
from gumbeldore.training.workers import Workers, _begun


def example():
    problem, generator = TSP(8), torch.Generator().manual_seed(0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        policy = TSPPolicy(d=16, layers=2, heads=2, ff=32)
        for parameter in policy.parameters():
            torch.nn.init.normal_(parameter, std=0.2)
    actions = torch.stack([torch.randperm(7, generator=generator) + 1 for _ in range(12)])
    examples = problem.examples(problem.generate(12, generator=generator), actions, generator=generator)
    return problem, policy, examples


def test_bf16_gives_nearly_the_same_gradient_and_is_really_used():
    problem, policy, examples = example()
    exact, coarse = (Workers(problem, policy, 0, precision=Precision(bf16=b)).gradient(examples)() for b in (False, True))
    assert exact[0] != coarse[0]
    torch.testing.assert_close(coarse[0], exact[0], rtol=0.02, atol=0)
    assert torch.nn.functional.cosine_similarity(coarse[1], exact[1], dim=0) > 0.98
    assert coarse[1].dtype == torch.float32


@pytest.mark.parametrize("name", [name for name in CATALOGUE if name != "gomoku"])
def test_every_network_that_is_cut_can_be_trained_with_bf16(name):
    """Where a network puts results of products into a table of its own, types must agree."""
    settings = CATALOGUE[name].settings()
    problem, policy = settings.training_problem, CATALOGUE[name].build(settings)
    state = problem.generate(3, generator=torch.Generator().manual_seed(0))
    solutions = Greedy()(problem, policy, state, seeds=torch.arange(3))
    examples = problem.examples(state, solutions.best_actions, generator=torch.Generator().manual_seed(1))
    loss, gradient = Workers(problem, policy, 0, parts=1, precision=Precision(bf16=True)).gradient(examples)()
    assert math.isfinite(loss)
    assert gradient.isfinite().all()


def test_what_is_computed_ahead_fails_where_it_is_asked_for():
    def results():
        yield 1
        raise ContractError("no numbers")

    with pytest.raises(ContractError, match="no numbers"):
        next(_begun(results()))
    assert list(_begun(iter([1, 2]))) == [1, 2]


def test_tf32_is_set_for_a_training_and_put_back():
    before = torch.backends.cuda.matmul.allow_tf32
    with TrainingSettings(precision="tf32").arithmetic.products():
        assert torch.backends.cuda.matmul.allow_tf32
    assert torch.backends.cuda.matmul.allow_tf32 == before


def test_solutions_and_examples_come_back_whole_from_a_copy():
    problem, policy, examples = example()
    copied = examples.to("cpu")
    assert torch.equal(copied.action, examples.action)
    assert torch.equal(copied.state.coordinates, examples.state.coordinates)
    state = problem.generate(2, generator=torch.Generator().manual_seed(1))
    solutions = Greedy()(problem, policy, state, seeds=torch.arange(2))
    moved = solutions.to("cpu")
    assert torch.equal(moved.actions, solutions.actions)
    assert torch.equal(moved.diagnostics.evaluations, solutions.diagnostics.evaluations)
