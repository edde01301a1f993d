"""The network for routes within time windows: what it must not depend on, and what it is told."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from peak import Peak
from routing import CLOSE, awake, partial, random_actions, seeded
from torch.testing import assert_close

from gumbeldore.networks.distance_bias import DistanceBias
from gumbeldore.networks.routes import CanonicalFrame
from gumbeldore.problem import replay
from gumbeldore.problems import VRPTW
from gumbeldore.problems.geometry import isometry
from gumbeldore.problems.vrptw.features import NEVER, Windows
from gumbeldore.problems.vrptw.kit import KIT
from gumbeldore.problems.vrptw.network import VRPTWPolicy
from gumbeldore.problems.vrptw.problem import backwards
from gumbeldore.search.samplers import Greedy

PROBLEM = VRPTW(9)
FEATURES = (DistanceBias(), CanonicalFrame(), Windows())


def policy(features=FEATURES):
    torch.manual_seed(0)
    return awake(VRPTWPolicy(32, 2, 4, 32, features)).eval()


def logits(made, state):
    with torch.no_grad():
        return made(state, made.prepare(state)).masked_fill(~PROBLEM.mask(state), 0)


def instances(state):
    return state.nodes, state.demands, state.capacity, state.windows, state.service


def test_units_do_not_matter():
    state = PROBLEM.generate(6, generator=seeded(1))
    actions, steps = random_actions(PROBLEM, state, seeded(2)), torch.arange(6)
    nodes, demands, capacity, windows, service = instances(state)
    scaled = PROBLEM.instances(100 * nodes + 7, 3 * demands, 3 * capacity, 100 * windows + 500, 100 * service)
    seen = [logits(policy(), replay(PROBLEM, each, actions, steps)) for each in (state, scaled)]
    assert_close(seen[1], seen[0], rtol=1e-3, atol=1e-3)


def test_customers_have_no_names():
    state = PROBLEM.generate(6, generator=seeded(3))
    actions, steps = random_actions(PROBLEM, state, seeded(4)), torch.arange(6)
    order = torch.tensor([3, 0, 7, 1, 8, 6, 2, 5, 4])
    places = torch.cat([torch.zeros(1, dtype=torch.long), order + 1])
    nodes, demands, capacity, windows, service = instances(state)
    renamed = PROBLEM.instances(nodes[:, places], demands[:, places], capacity, windows[:, places], service[:, places])
    others = 2 * order.argsort()[actions // 2] + actions % 2
    expected = logits(policy(), replay(PROBLEM, state, actions, steps)).view(6, 9, 2)[:, order].flatten(1)
    assert_close(logits(policy(), replay(PROBLEM, renamed, others, steps)), expected, **CLOSE)


def test_the_frame_makes_mirrored_maps_equal():
    state = partial(PROBLEM, 6, torch.arange(6))
    turned = replace(state, nodes=isometry(state.nodes, torch.arange(6) + 1))
    assert_close(logits(policy(), turned), logits(policy(), state), rtol=0, atol=2e-4)


def test_rows_do_not_see_each_other():
    state = partial(PROBLEM, 8, torch.arange(8))
    together = logits(policy(), state)
    for row in range(8):
        alone = logits(policy(), state.rows(torch.tensor([row])).compact())
        assert_close(alone, together[row : row + 1], **CLOSE)


@pytest.mark.parametrize(("customers", "rows"), [(20, 16), (300, 3)])
def test_the_stated_memory_is_enough(customers, rows):
    state, made = VRPTW(customers).generate(rows, generator=seeded(10)), policy()
    with torch.no_grad():
        context = made.prepare(state)
        with Peak() as peak:
            made(state, context)
    assert peak.most < rows * made.row_bytes(state)


def test_prepared_or_with_gradients_the_logits_are_the_same():
    state, made = partial(PROBLEM, 5, 4), policy()
    trained = made(state, made.prepare(state)).masked_fill(~PROBLEM.mask(state), 0).detach()
    assert_close(logits(made, state), trained, rtol=0, atol=1e-4)


def test_without_features_there_is_no_time():
    state, made = partial(PROBLEM, 5, 4), policy(())
    later = replace(state, windows=state.windows + 1)
    assert_close(logits(made, later)[:, 1::2], logits(made, state)[:, 1::2], rtol=0, atol=0)


def test_an_untrained_network_keeps_to_a_vehicle_while_there_is_time():
    problem = VRPTW(30)
    state = problem.generate(16, generator=seeded(5))
    torch.manual_seed(0)
    found = Greedy()(problem, VRPTWPolicy().eval(), state, generator=seeded(6))
    by_chance = problem.objective(replay(problem, state, random_actions(problem, state, seeded(7)), torch.full((16,), 30)))
    assert found.best_objective.mean() > by_chance.mean() + 4


def test_neighbours_in_time_are_those_of_a_worked_example():
    problem = VRPTW()
    nodes = torch.tensor([[[0.0, 0], [1, 0], [1, 0.5], [0, 1]]], dtype=torch.float64)
    windows = torch.tensor([[[0.0, 10], [1, 2], [4, 5], [0, 1]]], dtype=torch.float64)
    state = problem.instances(nodes, torch.tensor([[0, 1, 1, 1]]), 9, windows, torch.zeros(1, 4))
    heard = []

    class Listening(Windows):
        def columns(self, view):
            heard.append(super().columns(view))
            return heard[-1]

    VRPTWPolicy(features=(Listening(),))(state)
    behind, before = heard[0][0, :, 17], heard[0][0, :, 19]
    # from 0, left at 2, to 1 at 4: 0.5 and a wait of 1.5; from 2, left at 1, to 1: 3 in all; 0 is too late behind 2, and nobody comes behind 1
    two, three, never = 2 / 3, 3 / 4, NEVER / (1 + NEVER)
    assert behind[1:].tolist() == pytest.approx([two, never, three], abs=1e-6)
    assert before[1:].tolist() == pytest.approx([never, two, never], abs=1e-6)


def test_backwards_twice_is_as_before():
    actions = random_actions(PROBLEM, PROBLEM.generate(5, generator=seeded(8)), seeded(9))
    assert torch.equal(backwards(backwards(actions)), actions)


def test_the_kits_size_is_that_of_the_network():
    made = KIT.architectures["bq"].make(None, KIT.architectures["bq"].size)
    assert made.config == VRPTWPolicy().config
