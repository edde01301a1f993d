"""The network of matrices."""

from __future__ import annotations

import pytest
import torch

from gumbeldore.local_search import compiling
from gumbeldore.problem import replay
from gumbeldore.problems import ATSP
from gumbeldore.problems.atsp.baselines import by_assignments
from gumbeldore.problems.atsp.network import ATSPPolicy
from gumbeldore.search.samplers import Greedy

PROBLEM = ATSP(9)
pytestmark = pytest.mark.skipif(not compiling.available(), reason="assignments are not compiled")


def policy(seed=0, **size):
    torch.manual_seed(seed)
    made = ATSPPolicy(**{"d": 16, "layers": 3, "heads": 2, "ff": 32, "biased": 2, **size})
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return made


def states(count=16):
    generator = torch.Generator().manual_seed(0)
    # Without triangle closure: it makes several assignments the least, and which of them is found may depend on numbers.
    state = PROBLEM.instances(torch.rand(count, 9, 9, generator=generator, dtype=torch.float64))
    return state, 1 + torch.rand(count, 8, generator=generator).argsort(1), torch.arange(count) % 8


def logits(made, state):
    with torch.no_grad():
        return made(state, made.prepare(state))


def test_cities_have_no_names():
    state, actions, steps = states()
    order = torch.tensor([0, 3, 7, 1, 8, 6, 2, 5, 4])
    renamed = PROBLEM.instances(state.distances[:, order][:, :, order])
    renamed = replay(PROBLEM, renamed, order.argsort()[actions], steps)
    expected = logits(policy(), replay(PROBLEM, state, actions, steps))[:, order]
    torch.testing.assert_close(logits(policy(), renamed), expected, atol=1e-4, rtol=1e-3)


def test_units_do_not_matter():
    state, actions, steps = states()
    scaled = replay(PROBLEM, PROBLEM.instances(state.distances * 4096), actions, steps)
    expected = logits(policy(), replay(PROBLEM, state, actions, steps))
    torch.testing.assert_close(logits(policy(), scaled), expected, atol=1e-4, rtol=1e-3)


def test_what_is_left_is_a_smaller_instance():
    state, actions, _ = states(4)
    later = replay(PROBLEM, state, actions, torch.full((4,), 3))
    for row in range(4):
        left = (~later.visited[row]).nonzero().flatten()
        here, start = later.current[row], later.start[row]
        leave, reach = torch.cat([here[None], left]), torch.cat([start[None], left])
        smaller = ATSP(6).instances(state.distances[row][leave][:, reach][None])
        whole = policy().seen(later.rows(slice(row, row + 1)))
        part = policy().seen(smaller)
        torch.testing.assert_close(part.items, whole.items, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(part.pairs, whole.pairs, atol=1e-5, rtol=1e-4)


def test_rows_do_not_see_each_other():
    state, actions, steps = states()
    later = replay(PROBLEM, state, actions, steps)
    together = logits(policy(), later)
    for row in range(16):
        torch.testing.assert_close(logits(policy(), later.rows(slice(row, row + 1)))[0], together[row], atol=1e-5, rtol=1e-4)


def test_a_search_gives_the_logits_of_training():
    state, actions, steps = states()
    later, made = replay(PROBLEM, state, actions, steps), policy()
    torch.testing.assert_close(made(later, made.prepare(later)).detach(), logits(made, later), atol=1e-5, rtol=1e-4)


def test_all_weights_learn():
    state, actions, steps = states()
    later, made = replay(PROBLEM, state, actions, steps), policy()
    made(later).logsumexp(1).sum().backward()
    assert all(weight.grad is not None and bool(weight.grad.abs().sum() > 0) for weight in made.parameters())


def test_it_begins_as_the_rule():
    state, _, _ = states()
    torch.manual_seed(0)
    found = Greedy()(PROBLEM, ATSPPolicy(), state, generator=torch.Generator().manual_seed(0))
    for row in range(16):
        rule = torch.tensor([by_assignments({"distances": state.distances[row].numpy()})])
        ours = replay(PROBLEM, state.rows(slice(row, row + 1)), rule, torch.tensor([8]))
        assert found.objective[row, 0].item() == pytest.approx(PROBLEM.objective(ours).item())


@pytest.mark.parametrize(
    "matrix", [torch.zeros(1, 5, 5), torch.full((1, 4, 4), 1e12), -torch.ones(1, 6, 6), torch.eye(3)[None] * 9]
)
def test_odd_matrices_have_finite_logits(matrix):
    problem = ATSP(matrix.shape[1])
    state = problem.instances(matrix)
    while not bool(problem.done(state).all()):
        found = logits(policy(), state)
        assert bool(found.isfinite().all())
        state = problem.step(state, problem.mask(state).int().argmax(1))


def test_weights_are_for_any_size_and_kept_sizes_are_those_asked_for():
    made = policy(biased=3, tries=2)
    assert ATSPPolicy.from_config(made.config).config == made.config
    for cities in (3, 20):
        state = ATSP(cities).generate(2, generator=torch.Generator().manual_seed(0))
        assert logits(made, state).shape == (2, cities)
