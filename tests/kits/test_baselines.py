"""Baselines: cases worked out by hand, and verifiers that confirm what they build."""

from __future__ import annotations

import numpy as np
import pytest
from kits import KINDS, KITS

from gumbeldore.kits.solver import Limit
from gumbeldore.problems.cvrp import baselines as cvrp
from gumbeldore.problems.cvrp.instances import CVRPGenerator
from gumbeldore.problems.jssp import baselines as jssp
from gumbeldore.problems.jssp.instances import JSSPGenerator
from gumbeldore.problems.tsp import baselines as tsp
from gumbeldore.problems.tsp.instances import TSPGenerator

SETS = {"tsp": TSPGenerator(9, 2, 3), "cvrp": CVRPGenerator(8, 12, 2, 3), "jssp": JSSPGenerator(4, 3, 2, 3)}
QUICK = {"pyvrp": Limit(None, 50), "or-tools": Limit(None, 20), "cpsat": Limit(None, 1.0), "hgs": Limit(None, 50)}

SHOP = {"times": np.array([[3, 2], [2, 4], [4, 1]]), "machines": np.array([[0, 1], [0, 1], [1, 0]])}
LINE = np.array([[0.0, 0.0], [1.0, 0.0], [-1.5, 0.0], [3.0, 0.0], [7.0, 0.0]])


@pytest.mark.parametrize(("problem", "name"), [(problem, name) for problem in SETS for name in KITS[problem].baselines])
def test_every_baseline_gives_a_solution_that_the_verifier_confirms(problem, name):
    given, baseline = SETS[problem].generate(), KITS[problem].baselines[name]
    if baseline.needs:
        pytest.importorskip(baseline.needs)
    for index in range(len(given)):
        actions = baseline.solve(given.instance(index), QUICK.get(name, baseline.limit or Limit()), 1)
        assert KINDS[problem].verify(given.instance(index), actions).feasible


@pytest.mark.parametrize(("problem", "begin"), [("tsp", "nearest-neighbour"), ("cvrp", "savings"), ("jssp", "mwkr")])
def test_local_search_makes_shorter_what_it_begins_with(problem, begin):
    given, kit = (
        {"tsp": TSPGenerator(40, 4, 3), "cvrp": CVRPGenerator(40, 30, 4, 3), "jssp": JSSPGenerator(8, 8, 4, 3)}[
            problem
        ].generate(),
        KITS[problem],
    )

    def cost(name, index):
        instance = given.instance(index)
        return -kit.instances.verify(instance, kit.baselines[name].solve(instance, Limit(None, 50), 0)).objective

    lengths = [(cost("local-search", index), cost(begin, index)) for index in range(len(given))]
    assert all(better <= first + 1e-6 for better, first in lengths)
    assert sum(better for better, _ in lengths) < 0.99 * sum(first for _, first in lengths)


def test_nearest_neighbour_goes_on_to_the_nearest_city():
    assert tsp.nearest_neighbour({"coordinates": LINE}) == [1, 3, 4, 2]  # from 3 it is 4 to city 4 and 4.5 to city 2


def test_farthest_insertion_takes_the_farthest_city_first():
    corners = np.array([[0, 0], [0, 1], [1, 1], [1, 0], [0.5, 0.1]])
    tour = [0, *tsp.farthest_insertion({"coordinates": corners})]
    assert tour in ([0, 1, 2, 3, 4], [0, 4, 3, 2, 1])


def test_vehicles_go_to_the_nearest_customer_that_fits_and_return_when_none_does():
    nodes = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [0.0, 5.0]])
    instance = {"nodes": nodes, "demands": np.array([0, 4, 5, 3]), "capacity": np.array(8)}
    assert cvrp.nearest_neighbour(instance) == [2 * 0 + 1, 2 * 2, 2 * 1 + 1]  # 4, then 3 because 5 no longer fits; then 5


def test_savings_join_the_ends_of_routes_that_save_most():
    nodes = np.array([[0.0, 0.0], [10.0, 0.0], [10.0, 1.0], [-10.0, 0.0], [-10.0, 1.0]])
    instance = {"nodes": nodes, "demands": np.array([0, 1, 1, 1, 1]), "capacity": np.array(2)}
    actions = cvrp.savings(instance)
    assert -KINDS["cvrp"].verify(instance, actions).objective == pytest.approx(2 * (11 + np.hypot(10, 1)))
    assert sorted(action // 2 for action in actions if action % 2) in ([0, 2], [0, 3], [1, 2], [1, 3])


@pytest.mark.parametrize(
    ("rule", "order"),
    [
        # Two machines. At time 0 the jobs 0 and 1 want machine 0, and job 2 has machine 1 for itself.
        (
            jssp.spt,
            [1, 2, 0, 1, 2, 0],
        ),  # machine 0: job 1 until 2, job 0 until 5, job 2; machine 1: job 2 until 4, job 1, job 0
        (jssp.mwkr, [1, 2, 0, 1, 2, 0]),  # 5, 6 and 5 remain at first
        (
            jssp.lpt,
            [2, 0, 1, 0, 2, 1],
        ),  # machine 0: job 0 until 3, job 1 until 5, job 2; machine 1: job 2 until 4, job 0, job 1
        (jssp.lwkr, [0, 2, 1, 0, 2, 1]),
        (jssp.fifo, [0, 2, 1, 0, 2, 1]),
        (jssp.est, [0, 2, 1, 0, 2, 1]),
    ],
)
def test_dispatching_rules_do_what_one_does_by_hand(rule, order):
    assert jssp.dispatch(rule, SHOP) == order
    assert KINDS["jssp"].verify(SHOP, order).objective == -10


@pytest.mark.parametrize(
    ("name", "chosen"),
    [("spt", 1), ("lpt", 3), ("mwkr", 2), ("lwkr", 0), ("mopnr", 3), ("lopnr", 1), ("fifo", 2), ("est", 0)],
)
def test_each_rule_prefers_the_job_that_it_is_named_after(name, chosen):
    waiting = jssp.Waiting(
        time=np.array([5, 2, 6, 9]),
        arrival=np.array([4, 3, 1, 2]),
        work=np.array([9, 20, 40, 30]),
        operations=np.array([3, 2, 4, 7]),
    )
    assert int(jssp.RULES[name][1](waiting).argmin()) == chosen


def test_dispatching_never_keeps_a_machine_idle_while_an_operation_waits():
    given = JSSPGenerator(6, 5, 3, 8).generate()
    for index in range(len(given)):
        instance = given.instance(index)
        times, machines = instance["times"], instance["machines"]
        done, arrival, free = np.zeros(6, dtype=int), np.zeros(6), np.zeros(5)
        for job in jssp.dispatch(jssp.lpt, instance):
            start = {j: max(arrival[j], free[machines[j, done[j]]]) for j in range(6) if done[j] < 5}
            assert start[job] == min(start.values())
            arrival[job] = free[machines[job, done[job]]] = start[job] + times[job, done[job]]
            done[job] += 1


def test_rules_keep_their_mean_makespans_on_taillards_first_ten_instances():
    given = KITS["jssp"].standard["taillard-15x15"].generate()

    def mean(rule):
        found = [jssp.dispatch(rule, given.instance(index)) for index in range(10)]
        return -np.mean([KINDS["jssp"].verify(given.instance(i), actions).objective for i, actions in enumerate(found)])

    assert [mean(rule) for rule in (jssp.spt, jssp.mwkr, jssp.mopnr)] == [1546.1, 1464.3, 1481.3]
