"""The network of permutation flow shops."""

from __future__ import annotations

import pytest
import torch

from gumbeldore.problem import replay
from gumbeldore.problems import PFSP
from gumbeldore.problems.pfsp.network import PFSPPolicy

PROBLEM = PFSP(8, 6)


def policy():
    torch.manual_seed(0)
    made = PFSPPolicy(d=16, layers=2, heads=2, ff=32)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return made


def states(count=12):
    generator = torch.Generator().manual_seed(0)
    state = PROBLEM.generate(count, generator=generator)
    return state, torch.rand(count, 8, generator=generator).argsort(1), torch.arange(count) % 8


def logits(made, state):
    with torch.no_grad():
        return made(state, made.prepare(state))


def test_jobs_have_no_names():
    state, actions, steps = states()
    order = torch.tensor([3, 0, 7, 1, 6, 2, 5, 4])
    renamed = replay(PROBLEM, PROBLEM.instances(state.times[:, order]), order.argsort()[actions], steps)
    expected = logits(policy(), replay(PROBLEM, state, actions, steps))[:, order]
    torch.testing.assert_close(logits(policy(), renamed), expected, atol=1e-4, rtol=1e-3)


def test_units_of_time_do_not_matter():
    state, actions, steps = states()
    scaled = replay(PROBLEM, PROBLEM.instances(state.times * 41), actions, steps)
    expected = logits(policy(), replay(PROBLEM, state, actions, steps))
    torch.testing.assert_close(logits(policy(), scaled), expected, atol=1e-4, rtol=1e-3)


def test_rows_do_not_see_each_other():
    state, actions, steps = states()
    later = replay(PROBLEM, state, actions, steps)
    together = logits(policy(), later)
    for row in range(12):
        torch.testing.assert_close(logits(policy(), later.rows(slice(row, row + 1)))[0], together[row], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("size", [(3, 1), (5, 3), (4, 20)])
def test_it_takes_any_size(size):
    problem = PFSP(*size)
    state = problem.generate(2, generator=torch.Generator().manual_seed(0))
    for steps in (0, 1, size[0] - 1):
        later = replay(problem, state, torch.arange(size[0]).expand(2, -1), torch.full((2,), steps))
        found = logits(policy(), later)
        assert found.shape == (2, size[0])
        assert bool(found.isfinite().all())
