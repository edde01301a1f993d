"""Solutions in other forms, and parts of them built anew."""

from __future__ import annotations

from typing import ClassVar

import pytest
import torch
from answers import generator
from routing import awake, random_actions

from gumbeldore.errors import ContractError, SettingsError
from gumbeldore.policies import CVRPPolicy, JSSPPolicy, TSPPolicy
from gumbeldore.problem import replay
from gumbeldore.problems import CVRP, JSSP, TSP, Gomoku
from gumbeldore.search import reconstruction
from gumbeldore.search.adaptive import Adaptive
from gumbeldore.search.phases import ReconstructionPhase
from gumbeldore.search.reconstruction import Reconstruction, best_apart, can_reconstruct, continued, extended
from gumbeldore.search.samplers import Greedy, StochasticBeamSearch
from gumbeldore.search.task import Task

PHASE = ReconstructionPhase()
CASES = {
    "tsp": (TSP(9), TSPPolicy(16, 1, 2, 32)),
    "cvrp": (CVRP(8, 14), CVRPPolicy(16, 1, 2, 32)),
    "jssp": (JSSP(4, 3), JSSPPolicy(16, 1, 2, 32)),
    "tsp, nearest": (TSP(9, nearest=4), TSPPolicy(16, 1, 2, 32)),
}


@pytest.fixture(params=CASES)
def case(request):
    problem, policy = CASES[request.param]
    return problem, awake(policy, 3), problem.generate(6, generator=generator(1))


def worth(problem, state, actions) -> torch.Tensor:
    end = replay(problem, state, actions, (actions >= 0).sum(1))
    assert problem.done(end).all()
    return problem.objective(end)


def test_a_form_is_worth_the_same_and_translates_back(case) -> None:
    problem, _, state = case
    state = state.rows(torch.arange(6).repeat(5)).compact()
    actions = random_actions(problem, state, generator(2))
    form = problem.reencoded(state, actions, seeds=torch.arange(30))
    back = problem.inverse_transform(state, form.tag, form.actions)
    value = worth(problem, form.state, form.actions)
    assert (value >= worth(problem, state, actions) - 1e-6).all()
    torch.testing.assert_close(worth(problem, state, back), value, rtol=1e-5, atol=1e-6)


def test_forms_differ_by_seed_and_depend_on_nothing_else(case) -> None:
    problem, _, state = case
    actions = random_actions(problem, state, generator(3))
    one, two = (problem.reencoded(state, actions, seeds=torch.arange(6) + s).actions for s in (0, 100))
    assert not torch.equal(one, two)
    alone = problem.reencoded(state.rows(slice(3, 4)).compact(), actions[3:4], seeds=torch.tensor([3])).actions
    assert torch.equal(alone[0], one[3])


def test_the_end_of_a_tour_is_any_stretch_of_it_in_both_directions() -> None:
    problem = TSP(5)
    state = problem.generate(1, generator=generator(4)).rows(torch.zeros(200, dtype=torch.long)).compact()
    forms = problem.reencoded(state, torch.tensor([[1, 2, 3, 4]]).expand(200, -1), seeds=torch.arange(200))
    assert {tuple(row) for row in forms.actions[:, -2:].tolist()} == {(i, (i + d) % 5) for i in range(5) for d in (1, -1)}


def test_the_last_subtours_of_a_form_are_neighbours() -> None:
    """Four customers in four directions from the depot, each with a subtour of its own."""
    problem = CVRP(4, 9)
    nodes = torch.tensor([[[0.5, 0.5], [0.9, 0.5], [0.5, 0.9], [0.1, 0.5], [0.5, 0.1]]])
    state = problem.instances(nodes, torch.tensor([[0, 5, 5, 5, 5]]), torch.tensor([9]))
    state = state.rows(torch.zeros(100, dtype=torch.long)).compact()
    forms = problem.reencoded(state, torch.tensor([[1, 5, 3, 7]]).expand(100, -1), seeds=torch.arange(100))
    last = {tuple(sorted(row)) for row in (forms.actions[:, -2:] // 2).tolist()}
    assert last == {(0, 1), (1, 2), (2, 3), (0, 3)}


def test_schedules_are_written_in_the_order_of_starts_and_not_longer() -> None:
    problem = JSSP(4, 3)
    state = problem.generate(20, generator=generator(5))
    actions = random_actions(problem, state, generator(6))
    form = problem.reencoded(state, actions, seeds=torch.arange(20))
    assert set(form.tag.tolist()) == {0, 1}
    now, starts = form.state, []
    for job in form.actions.unbind(1):
        starts.append(now.next_starts().gather(1, job[:, None]))
        now = problem.step(now, job)
    assert (torch.cat(starts, 1).diff(dim=1) >= 0).all()


def test_reconstruction_never_makes_anything_worse_and_returns_only_what_is_better(case) -> None:
    problem, policy, state = case
    sampled = StochasticBeamSearch(3, 1)(problem, policy, state, seeds=torch.arange(6))
    building = Reconstruction(Task(problem, policy, state, torch.arange(6)), 3, 1 << 28, sampled)
    before = building.objective
    with torch.no_grad():
        for _ in range(12):
            building.reconstruct(torch.ones(6, dtype=torch.bool))
            assert (building.objective >= before).all()
            before = building.objective.clone()
    assert (building.objective > sampled.best_objective[:, None]).any()
    assert torch.equal(building.objective.amax(1), building.found.best_objective)
    torch.testing.assert_close(
        worth(problem, state, building.found.best_actions), building.found.best_objective, rtol=1e-5, atol=1e-6
    )
    for row in range(6):
        added = building.found.objective[row, 3:][building.found.filled[row, 3:]]
        assert (torch.cat([sampled.best_objective[row, None], added]).diff() > 0).all()
    assert building.found.log_prob[:, 3:][building.found.filled[:, 3:]].isnan().all()
    assert (building.found.actions[~building.found.filled] == -1).all()


def test_instances_that_are_not_active_stay_as_they_are(case) -> None:
    problem, policy, state = case
    greedy = Greedy()(problem, policy, state, seeds=torch.arange(6))
    building = Reconstruction(Task(problem, policy, state, torch.arange(6)), 1, 1 << 28, greedy)
    active = torch.tensor([True, False] * 3)
    with torch.no_grad():
        for _ in range(5):
            building.reconstruct(active)
    made = building.found.diagnostics.evaluations - greedy.diagnostics.evaluations
    assert (made[active] > 0).all()
    assert (made[~active] == 0).all()
    assert torch.equal(building.objective[~active], greedy.best_objective[~active, None])


@pytest.mark.parametrize("sampler", [Adaptive(40), Adaptive(evaluations=100), Adaptive(effort=20)], ids=str)
def test_an_answer_does_not_depend_on_the_batch_and_keeps_to_its_budget(case, sampler: Adaptive) -> None:
    problem, policy, state = case
    together = sampler(problem, policy, state, seeds=torch.arange(6))
    for row in (4,):
        alone = sampler(problem, policy, state.rows(slice(row, row + 1)).compact(), seeds=torch.tensor([row]))
        assert torch.equal(alone.best_objective, together.best_objective[row : row + 1])
        assert torch.equal(alone.diagnostics.evaluations, together.diagnostics.evaluations[row : row + 1])
    horizon = problem.horizon(state)
    if sampler.sequences is not None:
        assert (together.filled.sum(1) <= sampler.sequences).all()
    else:
        limit = sampler.evaluations or sampler.effort * horizon
        assert (together.diagnostics.evaluations < limit + 32 * horizon).all()


def test_what_is_added_gets_better_and_better() -> None:
    problem, policy = TSP(8), awake(TSPPolicy(16, 1, 2, 32))
    state = problem.generate(10, generator=generator(7))
    *_, found = Adaptive(evaluations=300).stream(problem, policy, state, torch.arange(10))
    added = found.log_prob.isnan()
    assert added.any()
    for row in range(10):
        assert (found.objective[row][added[row]].diff() > 0).all()
        assert found.objective[row][added[row]].numel() == 0 or found.objective[row][added[row]][0] > found.objective[row, 0]


def test_what_can_be_found_at_all_is_not_searched_for_again() -> None:
    problem, policy = TSP(4), awake(TSPPolicy(16, 1, 2, 32))
    state = problem.generate(3, generator=generator(9))
    found = Adaptive(evaluations=100_000)(problem, policy, state, seeds=torch.arange(3))
    best = torch.stack([worth(problem, state, torch.tensor([p]).expand(3, -1)) for p in ((1, 2, 3), (1, 3, 2), (2, 1, 3))])
    torch.testing.assert_close(found.best_objective, best.amax(0), rtol=1e-6, atol=1e-6)


def test_problems_without_other_forms_are_searched_as_before() -> None:
    assert not can_reconstruct(Gomoku(5))
    state = Gomoku(5).generate(2, generator=generator(10))
    with pytest.raises(ContractError, match="`Gomoku` has no method `reencoded`"):
        Gomoku(5).reencoded(state, torch.zeros(2, 3, dtype=torch.long), seeds=torch.arange(2))


def test_partial_solutions_are_refused(case) -> None:
    problem, _, state = case
    actions = random_actions(problem, state, generator(11))
    begun = replay(problem, state, actions, torch.full((6,), 2))
    with pytest.raises(SettingsError, match="`reencoded` needs solutions of initial states"):
        problem.reencoded(begun, actions, seeds=torch.arange(6))


def test_the_larger_the_budget_the_smaller_the_share_of_the_search() -> None:
    shares = [PHASE.explored(solutions) for solutions in (0.1, 1, 10, 100, 1000, 1e6)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 0.8
    assert shares[-1] == 0.15


def test_reconstruction_keeps_pace_with_the_search() -> None:
    """Whatever the search has spent, together they come to what `explored` says of the sum."""
    assert PHASE.due(torch.tensor([5.0])) == 0
    for solutions in (30.0, 100.0, 5000.0):
        assert PHASE.due(torch.tensor([PHASE.explored(solutions) * solutions])).item() == pytest.approx(solutions)


def test_solutions_that_are_improved_side_by_side_are_worth_something_else() -> None:
    objective = torch.tensor([[3.0, 5.0, 5.0, 4.0], [1.0, 1.0, -torch.inf, 1.0]], dtype=torch.float64)
    actions = torch.arange(8).view(2, 4, 1)
    chosen, value = best_apart(actions, objective, 3)
    assert value.tolist() == [[5, 4, 3], [1, 1, 1]]
    assert chosen.squeeze(2).tolist() == [[1, 3, 0], [4, 4, 4]]


def test_what_the_search_finds_later_replaces_what_is_worse() -> None:
    problem, policy = TSP(8), awake(TSPPolicy(16, 1, 2, 32), 3)
    state, seeds = problem.generate(5, generator=generator(13)), torch.arange(5)
    few, more = (list(StochasticBeamSearch(4, 3).stream(problem, policy, state, seeds))[i] for i in (0, 2))
    building = Reconstruction(Task(problem, policy, state, seeds), 2, 1 << 28, few)
    building.see(more)
    assert torch.equal(building.objective, best_apart(more.actions, more.objective, 2)[1])
    assert torch.equal(building.found.objective, more.objective)


def test_chains_of_instances_for_which_nothing_new_was_found_stay_as_they_are() -> None:
    """Also where two of them are worth the same by now: that the search went on for others must not matter."""
    problem, policy = TSP(8), awake(TSPPolicy(16, 1, 2, 32), 3)
    state, seeds = problem.generate(3, generator=generator(13)), torch.arange(3)
    few = StochasticBeamSearch(4, 1)(problem, policy, state, seeds=seeds)
    building = Reconstruction(Task(problem, policy, state, seeds), 2, 1 << 28, few)
    building.objective = building.objective[:, 1:].expand(-1, 2).clone()
    before = building.actions.clone(), building.objective.clone()
    better = torch.tensor([[-torch.inf], [-1e-3], [-torch.inf]], dtype=torch.float64)
    building.see(extended(few, few.actions[:, :1], better))
    for row in (0, 2):
        assert torch.equal(building.actions[row], before[0][row])
        assert torch.equal(building.objective[row], before[1][row])
    assert building.objective[1, 0] == -1e-3


class Noted(TSP):
    """Writes down the seeds of the forms that are asked for."""

    asked: ClassVar[list[list[int]]] = []

    def reencoded(self, state, actions, *, seeds):
        self.asked.append(seeds.tolist())
        return super().reencoded(state, actions, seeds=seeds)


def test_every_chain_and_every_pass_has_a_form_of_its_own() -> None:
    problem, policy = Noted(8), awake(TSPPolicy(16, 1, 2, 32), 3)
    state, seeds = problem.generate(4, generator=generator(13)), torch.tensor([7, 800, 90_000, 7])
    few = StochasticBeamSearch(4, 1)(problem, policy, state, seeds=seeds)
    building = Reconstruction(Task(problem, policy, state, seeds), 3, 1 << 28, few)
    problem.asked.clear()
    with torch.no_grad():
        for index in range(5):
            building.reconstruct(torch.tensor([True, True, index > 1, True]))
    passes = [[each[i : i + 3] for i in range(0, len(each), 3)] for each in problem.asked]
    assert all(each[0] == each[-1] for each in passes)  # equal seeds of instances, equal forms
    first = [seed for each in passes for seed in each[0]]
    assert len(set(first)) == 15  # chains and passes
    assert passes[2][2] not in [each[0] for each in passes]
    assert not {seed for each in passes[2:] for seed in each[2]} & set(first)
    late = [each[2] for each in passes[2:]]  # an instance that joined later begins with its own first pass
    problem.asked.clear()
    alone = Reconstruction(
        Task(problem, policy, state.rows(slice(2, 3)).compact(), seeds[2:3]), 3, 1 << 28, few.rows(slice(2, 3))
    )
    with torch.no_grad():
        for _ in range(3):
            alone.reconstruct(torch.tensor([True]))
    assert problem.asked == late


def test_the_sizes_of_parts_differ_between_passes_and_fill_their_range(monkeypatch) -> None:
    problem, policy = TSP(40), awake(TSPPolicy(16, 1, 2, 32), 3)
    state, kept = problem.generate(1, generator=generator(14)), []
    greedy = Greedy()(problem, policy, state, seeds=torch.arange(1))
    building = Reconstruction(Task(problem, policy, state, torch.arange(1)), 1, 1 << 28, greedy)
    real = reconstruction.replay
    monkeypatch.setattr(reconstruction, "replay", lambda p, s, a, steps: kept.append(int(steps)) or real(p, s, a, steps))
    with torch.no_grad():
        for _ in range(12):
            building.reconstruct(torch.tensor([True]))
    parts = [39 - each for each in kept]
    assert len(set(parts)) >= 11
    assert parts[0] == 4  # a tenth, rounded up
    assert 24 <= max(parts) <= 28  # seven tenths


def test_a_part_follows_what_is_kept() -> None:
    whole, kept = torch.tensor([[5, 6, 7, -1], [5, 6, 7, 8]]), torch.tensor([1, 3])
    last = torch.tensor([[1, 2, 3], [9, -1, -1]])
    assert continued(whole, kept, last).tolist() == [[5, 1, 2, 3], [5, 6, 7, 9]]
    assert continued(whole, kept, last[:, :2]).tolist() == [[5, 1, 2, -1], [5, 6, 7, 9]]


def test_only_filled_slots_are_added() -> None:
    problem, policy = TSP(5), awake(TSPPolicy(16, 1, 2, 32))
    state = problem.generate(2, generator=generator(12))
    greedy = Greedy()(problem, policy, state, seeds=torch.arange(2))
    more = extended(greedy, greedy.actions.clone(), torch.tensor([[1.0], [-torch.inf]], dtype=torch.float64))
    assert more.filled.tolist() == [[True, True], [True, False]]
    assert more.best_objective[0] == 1
    assert torch.equal(more.best_actions[1], greedy.best_actions[1])


def test_there_are_as_many_chains_as_asked_for_also_of_fewer_solutions():
    """Otherwise their number would grow with the search, and differ between instances of a batch."""
    actions, objective = torch.arange(6).view(1, 3, 2), torch.tensor([[-2.0, -1.0, -3.0]])
    best, value = best_apart(actions, objective, 5)
    assert value.tolist() == [[-1.0, -2.0, -3.0, -1.0, -1.0]]
    assert best[0, 3].tolist() == [2, 3]
