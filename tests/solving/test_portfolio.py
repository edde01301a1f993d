"""Several parts on one instance: never worse than any of them, and who found what is told."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from kits import KITS

import gumbeldore
from gumbeldore.errors import SettingsError
from gumbeldore.io.policy_files import load_policy
from gumbeldore.io.reading import read_file
from gumbeldore.kits.kit import Instance
from gumbeldore.problems.cvrp.instances import CVRPGenerator
from gumbeldore.problems.jssp.instances import JSSPGenerator
from gumbeldore.problems.tsp.instances import TSPGenerator
from gumbeldore.solving import Effort, Job, Solving
from gumbeldore.solving.found import LOCAL, PARTS_ANEW, POLICY, POLICY_LOCAL, START
from gumbeldore.solving.search import NO_TIME

FILES = {"tsp": "berlin52.tsp", "cvrp": "A-n32-k5.vrp", "jssp": "ft06.txt"}


@pytest.mark.parametrize("name", FILES)
def test_by_default_all_parts_work_and_their_improvements_add_up(name, instances, weights):
    found = gumbeldore.solve(instances / FILES[name], policy=weights[name], time_limit=4.0)
    improvements = found.improvements
    assert improvements[0].by == START
    assert improvements[-1].cost == found.cost
    assert all(later.cost < earlier.cost for earlier, later in pairwise(improvements))
    assert all(later.seconds >= earlier.seconds for earlier, later in pairwise(improvements))
    shares = {share.by: share for share in found.shares}
    assert {START, LOCAL} < set(shares)  # in so little time there may be no policy
    assert sum(share.gain for share in shares.values()) == pytest.approx(improvements[0].cost - found.cost)
    assert all(share.cost is None or found.cost <= share.cost for share in shares.values())
    assert found.gap < 0.02


def test_the_local_search_alone_asks_no_policy(instances, monkeypatch):
    monkeypatch.setattr("gumbeldore.io.shipped.shipped", lambda kit: [])
    found = gumbeldore.solve(instances / FILES["tsp"], parts=["local-search"], time_limit=0.2)
    assert (found.found.evaluations, {share.by for share in found.shares}) == (0, {START, LOCAL})
    assert found.gap < 0.05


def test_without_a_policy_that_ships_the_local_search_answers(instances, monkeypatch):
    monkeypatch.setattr("gumbeldore.io.shipped.shipped", lambda kit: [])
    assert gumbeldore.solve(instances / FILES["jssp"], time_limit=0.2).cost <= 60
    with pytest.raises(SettingsError, match="No trained policy ships"):
        gumbeldore.solve(instances / FILES["jssp"], parts=["policy"], time_limit=0.2)


def test_the_policy_alone_is_the_policys_search(instances, weights):
    found = gumbeldore.solve(instances / FILES["tsp"], policy=weights["tsp"], parts=["policy"], sequences=4)
    assert [share.by for share in found.shares] == [POLICY]
    assert {each.by for each in found.improvements} == {POLICY}


def test_a_policy_that_has_no_time_leaves_the_answer_to_a_plain_start(instances, weights):
    found = gumbeldore.solve(instances / FILES["tsp"], policy=weights["tsp"], parts=["policy"], time_limit=1e-9)
    assert [each.by for each in found.improvements] == [START]
    assert found.found.notes == (NO_TIME,)
    assert found.found.evaluations == 0
    assert sorted(found.solution.tour) == list(range(52))


SMALL = {"tsp": TSPGenerator(7, 1, 1), "cvrp": CVRPGenerator(5, 12, 1, 1), "jssp": JSSPGenerator(3, 3, 1, 1)}


@pytest.mark.parametrize("name", SMALL)
def test_every_part_has_its_turn(name, weights):
    arrays, options = SMALL[name].generate().instance(0), {"kit": KITS[name], "policy": weights[name]}
    found = gumbeldore.solve(arrays, **options, time_limit=4.0)
    names = {share.by for share in found.shares}
    expected = {START, LOCAL} if name != "tsp" else {START, LOCAL, POLICY, POLICY_LOCAL}  # annealing has nearly all of the time
    assert expected <= names or found.seconds < 4  # the local search may know that it is optimal
    parts = ("policy", "local-search")
    without = gumbeldore.solve(arrays, **options, parts=parts, time_limit=2.0)
    assert PARTS_ANEW not in {share.by for share in without.shares}


def test_a_given_solution_is_the_start_and_is_never_made_worse(instances, weights):
    kit, (given,) = read_file(instances / FILES["jssp"])
    best = kit.experts["ortools"](given.arrays, gumbeldore.solving.refining.Limit(None, 5.0), 0).actions
    found = gumbeldore.solve(instances / FILES["jssp"], policy=weights["jssp"], start=best, time_limit=0.3)
    assert (found.cost, found.by) == (55, START)
    with pytest.raises(gumbeldore.GumbeldoreError, match="is infeasible"):
        gumbeldore.solve(instances / FILES["jssp"], policy=weights["jssp"], start=[0, 1, 2], time_limit=0.3)


def test_a_preset_ends_when_most_of_the_time_has_brought_nothing(instances, weights):
    begin = time.monotonic()
    found = gumbeldore.solve(instances / "ulysses16.tsp", policy=weights["tsp"])
    assert found.gap == 0
    assert found.seconds < 0.8 * (time.monotonic() - begin + 10)


def test_parts_that_there_are_not_are_refused_by_name():
    with pytest.raises(SettingsError, match="`parts` must be some of policy for gomoku, got 'local-search'"):
        Effort(parts=["local-search"]).parts_for(Job(KITS["gomoku"], Instance({}, {"board": np.zeros(1)})))
    with pytest.raises(SettingsError, match="at least one part"):
        Effort(parts=[])


def test_workers_share_the_instances_of_a_portfolio(instances, weights):
    kit, (given,) = read_file(instances / FILES["jssp"])
    jobs = [Job(kit, replace(given, name=f"shop {number}")) for number in range(2)]
    solving = Solving(jobs, {"jssp": load_policy(weights["jssp"])}, Effort(time_limit=0.5), workers=2)
    list(solving)
    assert [found.cost for found in solving.results()] == [55, 55]
    assert all(found.improvements[0].by == START for found in solving.results())
