"""Permutation flow shops: the rules, Taillard's instances, and search for orders."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import torch

from gumbeldore import check_problem
from gumbeldore.errors import SettingsError
from gumbeldore.local_search import compiling
from gumbeldore.local_search.permutations import insert_jobs
from gumbeldore.problem import replay
from gumbeldore.problems import PFSP
from gumbeldore.problems.pfsp.baselines import RULES, by_slope, neh
from gumbeldore.problems.pfsp.instances import STANDARD, PFSPGenerator, verify
from gumbeldore.problems.pfsp.problem import ends
from gumbeldore.problems.pfsp.taillard import SIZES, benchmarks, best_makespans, recognised

needs_compiler = pytest.mark.skipif(not compiling.available(), reason="the local search is not compiled")
TA001 = [[54, 79, 16, 66, 58], [83, 3, 89, 58, 56], [15, 11, 49, 31, 20]]
"""The first jobs of ta001, as its files have them."""


def orders(problem, count, seed=0):
    generator = torch.Generator().manual_seed(seed)
    state = problem.generate(count, generator=generator)
    return state, torch.rand(count, problem.jobs, generator=generator).argsort(1)


def value(problem, state, actions):
    return problem.objective(replay(problem, state, actions, torch.full((len(actions),), actions.shape[1])))


def test_a_job_ends_where_machines_and_its_own_way_let_it():
    assert ends(torch.tensor([3, 4, 20]), torch.tensor([2, 5, 1])).tolist() == [5, 10, 21]
    assert ends(torch.tensor([[0, 0], [9, 1]]), torch.tensor([[4, 3], [0, 2]])).tolist() == [[4, 7], [9, 11]]


def test_the_makespan_is_the_end_of_the_last_job():
    state = PFSP().instances(torch.tensor([[[3, 2], [1, 4]]]))
    assert value(PFSP(), state, torch.tensor([[0, 1]])).item() == -9
    assert value(PFSP(), state, torch.tensor([[1, 0]])).item() == -7


@pytest.mark.parametrize("problem", [PFSP(5, 3), PFSP(4, 1)])
def test_it_keeps_the_contract(problem):
    check_problem(problem)


@pytest.mark.parametrize("problem", [PFSP(8, 4), PFSP(12, 1)])
def test_random_orders_are_worth_what_the_verifier_says(problem):
    state, actions = orders(problem, 400)
    objective = value(problem, state, actions)
    for row, order in enumerate(actions.tolist()):
        verdict = verify({"times": state.times[row].numpy()}, order)
        assert verdict.feasible, verdict.reason
        assert verdict.objective == objective[row]


def test_an_order_of_the_reversed_shop_is_worth_the_same_read_backwards():
    problem = PFSP(7, 4)
    state, _ = orders(problem, 10)
    forms = problem.augmentations(state, 5, seeds=torch.arange(10))
    assert forms.count == 2
    actions = torch.rand(20, 7, generator=torch.Generator().manual_seed(1)).argsort(1)
    back = problem.inverse_transform(forms.state, forms.tag, actions)
    rows = torch.arange(10).repeat_interleave(2)
    assert torch.equal(value(problem, state.rows(rows), back), value(problem, forms.state, actions))


def test_a_reencoded_order_is_worth_the_same():
    problem = PFSP(7, 4)
    state, actions = orders(problem, 20)
    again = problem.reencoded(state, actions, seeds=torch.arange(20))
    assert torch.equal(value(problem, again.state, again.actions), value(problem, state, actions))
    assert set(again.tag.tolist()) == {0, 1}


def test_taillards_instances_are_his():
    assert benchmarks()[0].times()[:3].tolist() == TA001
    assert [(b.jobs, b.machines) for b in benchmarks()[::10]] == list(SIZES)
    assert recognised(benchmarks()[57].times()) is benchmarks()[57]
    assert recognised(benchmarks()[57].times() + 1) is None
    assert len(STANDARD["taillard-20x10"].generate()) == 10


def test_upper_bounds_lie_above_the_work_of_machines():
    for benchmark in benchmarks():
        times = benchmark.times()
        bound = (times.sum(0) + (np.cumsum(times, 1) - times).min(0) + (times[:, ::-1].cumsum(1)[:, ::-1] - times).min(0)).max()
        assert bound <= benchmark.best <= 1.3 * bound


@needs_compiler
def test_insertion_reaches_the_published_makespans_of_neh():
    """1286 for ta001; 3.3 % above the best known makespans of 20 x 5 and 3.7 % of 20 x 20 on average (Ruiz and Maroto 2005)."""
    given = STANDARD["taillard-20x5"].generate()
    assert -verify(given.instance(0), neh(given.instance(0))).objective == 1286
    for size, mean in (((20, 5), 3.3), ((20, 20), 3.7)):
        given = STANDARD[f"taillard-{size[0]}x{size[1]}"].generate()
        costs = [-verify(given.instance(row), neh(given.instance(row))).objective for row in range(10)]
        assert 100 * (np.array(costs) / best_makespans(*size) - 1).mean() == pytest.approx(mean, abs=0.1)


@needs_compiler
def test_a_job_is_inserted_where_it_fits_best():
    problem = PFSP(6, 4)
    state, actions = orders(problem, 10)
    found = insert_jobs(state.times, actions)
    for row in range(10):
        times, order = state.times[row].tolist(), list[int]()
        for job in actions[row].tolist():
            tries = [[*order[:place], job, *order[place:]] for place in range(len(order) + 1)]
            order = min(tries, key=lambda jobs: length(times, jobs))
        assert found[row].tolist() == order


def length(times, jobs):
    free = [0] * len(times[0])
    for job in jobs:
        left = 0
        for machine, time in enumerate(times[job]):
            free[machine] = left = max(left, free[machine]) + time
    return free[-1]


@needs_compiler
def test_small_shops_are_solved_to_optimality():
    problem = PFSP(6, 4)
    state, actions = orders(problem, 10)
    found = value(problem, state, problem.local_search(state, actions, effort=20, seeds=torch.arange(10)))
    for row in range(10):
        assert -found[row] == min(length(state.times[row].tolist(), jobs) for jobs in permutations(range(6)))


@needs_compiler
@pytest.mark.parametrize(("name", "optimum"), [("ta001", 1278), ("ta002", 1359), ("ta003", 1081)])
def test_published_optima_are_reached(name, optimum):
    benchmark = next(each for each in benchmarks() if each.name == name)
    times = torch.from_numpy(benchmark.times())[None]
    state = PFSP().instances(times)
    start = torch.tensor([neh({"times": benchmark.times()})])
    found = PFSP().local_search(state, start, effort=100, seeds=torch.tensor([0]))
    assert -verify({"times": benchmark.times()}, found[0].tolist()).objective == optimum == benchmark.best


@needs_compiler
def test_the_first_jobs_stay():
    problem = PFSP(12, 5)
    state, actions = orders(problem, 10)
    for kept in (1, 5, 10, 11, 12):
        found = problem.local_search(state, actions, effort=3, seeds=torch.arange(10), kept=kept)
        assert torch.equal(found[:, :kept], actions[:, :kept])
        assert torch.equal(found.sort(1).values, torch.arange(12).expand(10, -1))
        assert bool((value(problem, state, found) >= value(problem, state, actions)).all())


@needs_compiler
def test_the_same_seed_gives_the_same_order_in_any_batch():
    problem = PFSP(15, 5)
    state, actions = orders(problem, 10)
    found = problem.local_search(state, actions, effort=3, seeds=torch.arange(10))
    alone = problem.local_search(state.rows(slice(4, 5)), actions[4:5], effort=3, seeds=torch.tensor([4]))
    assert torch.equal(found[4:5], alone)


@needs_compiler
def test_what_is_no_order_is_refused():
    state, actions = orders(PFSP(4, 2), 2)
    with pytest.raises(ValueError, match="`orders` must hold every number once"):
        insert_jobs(state.times, torch.zeros_like(actions))


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_gives_an_order(rule):
    given = PFSPGenerator(9, 4, 10).generate()
    for row in range(10):
        assert verify(given.instance(row), RULES[rule][1](given.instance(row))).feasible


def test_jobs_whose_times_grow_come_first_by_their_slope():
    assert by_slope({"times": np.array([[9, 1], [1, 9], [5, 5]])}) == [1, 2, 0]


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([[[1.0, -2.0]]], "job 0 of instance 0 takes -2 on machine 1"),
        ([[[float("inf")]]], "takes inf on machine 0"),
    ],
)
def test_impossible_times_are_refused(times, message, unchecked):
    with pytest.raises(SettingsError, match=message):
        PFSP().instances(torch.tensor(times))
