"""The network of the orienteering problem."""

from __future__ import annotations

import pytest
import torch

from gumbeldore.local_search import compiling
from gumbeldore.networks.distance_bias import DistanceBias
from gumbeldore.networks.routes import CanonicalFrame
from gumbeldore.problem import replay
from gumbeldore.problems import OP
from gumbeldore.problems.geometry import isometry
from gumbeldore.problems.op import ahead
from gumbeldore.problems.op.ahead import WalkAhead, walks_ahead
from gumbeldore.problems.op.baselines import greedy
from gumbeldore.problems.op.instances import OPGenerator, verify
from gumbeldore.problems.op.network import OPPolicy, PrizePerWay, op_tokens
from gumbeldore.search.replacement import WithReplacement
from gumbeldore.search.samplers import Greedy

PROBLEM = OP(12)
FEATURES = (DistanceBias(), CanonicalFrame(), PrizePerWay(), WalkAhead(tries=5))


def policy(features=FEATURES, awake=True):
    torch.manual_seed(0)
    made = OPPolicy(d=16, layers=2, heads=2, ff=32, features=features)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.1 * awake * torch.randn_like(parameter))
    return made


def some(count=12):
    state = PROBLEM.generate(count, generator=torch.Generator().manual_seed(0))
    found = Greedy()(PROBLEM, policy(awake=False), state, seeds=torch.arange(count))
    actions = found.best_actions
    return state, replay(PROBLEM, state, actions, torch.arange(count) % 3)


def logits(made, state):
    with torch.no_grad():
        return made(state, made.prepare(state)).masked_fill(~state.choosable, 0)


def test_nodes_have_no_names():
    state, there = some()
    order = torch.tensor([0, 4, 8, 1, 7, 3, 9, 2, 12, 10, 5, 11, 6])
    place = order.argsort()
    again = PROBLEM.instances(state.nodes[:, order], state.prizes[:, order], state.budget)
    visited, current = there.visited[:, order], place[there.current]
    renamed = type(there)(
        **{**again.tensors(), "visited": visited, "current": current, "length": there.length, "prize": there.prize}
    )
    expected = logits(policy(), there)[:, order]
    torch.testing.assert_close(logits(policy(), renamed), expected, atol=1e-4, rtol=1e-3)


def test_units_and_symmetries_do_not_matter():
    _, there = some()
    expected = logits(policy(), there)
    turned = type(there)(
        **{**there.tensors(), "nodes": isometry(there.nodes, torch.arange(12) % 8), "prizes": 7 * there.prizes}
    )
    torch.testing.assert_close(logits(policy(), turned), expected, atol=1e-3, rtol=1e-2)


def test_listed_distances_of_the_plane_look_like_the_plane():
    state = PROBLEM.generate(5, generator=torch.Generator().manual_seed(0))
    ways = torch.cdist(state.nodes, state.nodes)
    listed = PROBLEM.instances(state.nodes, state.prizes, 1000 * state.budget, 1000 * ways)
    torch.testing.assert_close(logits(policy(), listed), logits(policy(), state), atol=1e-4, rtol=1e-3)


def test_rows_do_not_see_each_other():
    _, there = some()
    alone = torch.cat([logits(policy(), there.rows(slice(row, row + 1))) for row in range(12)])
    torch.testing.assert_close(alone, logits(policy(), there), atol=1e-4, rtol=1e-3)


def test_training_and_inference_give_the_same():
    for features in ((), FEATURES):
        _, there = some()
        made = policy(features)
        trained = made(there, made.prepare(there)).masked_fill(~there.choosable, 0)
        torch.testing.assert_close(logits(made, there), trained.detach(), atol=1e-4, rtol=1e-3)


def test_it_begins_as_the_rule_of_tsiligirides():
    state = PROBLEM.generate(20, generator=torch.Generator().manual_seed(0))
    fresh = OPPolicy(d=16, layers=1, heads=2, ff=16, features=(PrizePerWay(),))
    share = state.prizes / state.prizes.amax(1, keepdim=True)
    expected = 4 * ((share + 0.01).log() - (state.ways + 0.01).log())
    chances = [each.masked_fill(~state.choosable, -torch.inf).softmax(1) for each in (fresh(state), expected.float())]
    torch.testing.assert_close(*chances, atol=1e-4, rtol=1e-4)


def test_it_never_ends_a_tour_while_a_node_is_within_reach():
    state = PROBLEM.generate(50, generator=torch.Generator().manual_seed(0))
    found = Greedy()(PROBLEM, policy(), state, seeds=torch.arange(50)).best_actions
    last = replay(PROBLEM, state, found, (found > 0).sum(1))
    assert not bool(last.choosable.any())


def test_sampled_tours_are_feasible():
    given = OPGenerator(15, "uniform", None, 20).generate()
    found = WithReplacement(16, 1)(PROBLEM, policy(), given.state(), seeds=torch.arange(20))
    for row in range(20):
        for sequence, objective in zip(found.actions[row].tolist(), found.objective[row].tolist(), strict=True):
            verdict = verify(given.instance(row), [action for action in sequence if action >= 0])
            assert verdict.feasible, verdict.reason
            assert abs(verdict.objective - objective) < 1e-6


def told(state, tries=5):
    order, blocked = op_tokens(state)
    counts = torch.full((len(order),), order.shape[1] - 2) - (0 if blocked is None else blocked.flatten(1).sum(1))
    return order, counts, walks_ahead(state, order, counts, tries)


@pytest.mark.skipif(not compiling.available(), reason="nothing is compiled")
def test_walks_are_what_their_definition_says(monkeypatch):
    _, there = some()
    *_, compiled = told(there)
    monkeypatch.setattr(ahead, "chosen", lambda ours, definition: definition)
    *_, defined = told(there)
    torch.testing.assert_close(compiled, defined, atol=1e-5, rtol=0)
    assert bool(compiled[..., 1].any())


def test_the_path_of_the_rule_is_that_of_the_baseline():
    given = OPGenerator(12, "uniform", None, 10).generate()
    order, _, found = told(given.state())
    for row in range(10):
        early = found[row, :, 3]
        path = order[row][early.argsort(descending=True)][: int((early > 0).sum())]
        assert [*path.tolist(), 0] == greedy(given.instance(row))


def test_what_is_said_of_nodes_does_not_depend_on_padding():
    _, there = some()
    _, counts, found = told(there)
    for row in range(12):
        *_, alone = told(there.rows(slice(row, row + 1)))
        torch.testing.assert_close(found[row, 1 : 1 + counts[row]], alone[0, 1:-1])


def test_it_begins_better_than_the_rule_alone():
    given = OPGenerator(30, "distance", None, 20).generate()
    fresh = OPPolicy(d=16, layers=1, heads=2, ff=16, features=(WalkAhead(),))
    found = Greedy()(OP(), fresh, given.state(), seeds=torch.arange(20)).best_objective.mean()
    alone = sum(verify(given.instance(row), greedy(given.instance(row))).objective for row in range(20)) / 20
    assert found > 1.05 * alone
