"""Local search within time windows: feasible, no longer than before, deterministic, by any distances."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from published import FOLDER
from routing import random_actions, seeded
from timed_routes import all_solutions, row_of

from gumbeldore.cli import main
from gumbeldore.errors import SettingsError
from gumbeldore.io.reading import read_file, solution_cost
from gumbeldore.kits.solver import Limit
from gumbeldore.local_search.distances import Matrix
from gumbeldore.local_search.routes import RouteSearch
from gumbeldore.problem import replay
from gumbeldore.problems import VRPTW
from gumbeldore.problems.routes import actions_of
from gumbeldore.problems.vrptw.improving import TimedRouteImprovement, nodes, search_of, searched
from gumbeldore.problems.vrptw.insertion import insertion, travel_times
from gumbeldore.problems.vrptw.instances import VRPTWGenerator, verify

NO_METRIC = np.array([[0, 1, 9, 9], [1, 0, 1, 9], [9, 1, 0, 1], [9, 9, 1, 0.0]])


def worth(state, actions):
    steps = torch.full((len(actions),), actions.shape[1])
    return VRPTW().objective(replay(VRPTW(), state, actions, steps))


def test_small_instances_are_solved_to_optimality():
    state = VRPTW(5).generate(4, generator=seeded(1))
    for row in range(4):
        given = row_of(state, row)
        found = verify(given, searched(given, Limit(None, 40), 0))
        assert found.feasible, found.reason
        assert found.objective == pytest.approx(max(all_solutions(state, row).values()), abs=1e-9)


@pytest.mark.parametrize(("name", "optimum"), [("C101", 827.3), ("C102", 827.3), ("R101", 1637.7)])
def test_published_optima_are_found_with_one_decimal(name, optimum):
    _, (given,) = read_file(FOLDER / f"{name}.txt")
    arrays = {**given.arrays, "parts": np.array(10)}
    search = search_of(arrays, 1)
    search.run(work=40_000, progress=(0, 1))
    verdict = verify(arrays, actions_of([[node - 1 for node in route] for route in search.best]))
    assert verdict.feasible, verdict.reason
    assert optimum - 1e-6 <= -verdict.objective <= 1.01 * optimum
    assert search.cost == pytest.approx(-verdict.objective, abs=1e-6)
    if name != "R101":
        assert search.cost == pytest.approx(optimum, abs=1e-6)


def test_the_same_work_gives_the_same_routes_however_it_is_cut():
    given = VRPTWGenerator(40, None, 1, 2).generate().instance(0)
    one, other, third = (search_of(given, seed) for seed in (3, 3, 4))
    one.run(work=1024, progress=(0, 1))
    for part in range(4):
        other.run(work=256, progress=(part / 4, (part + 1) / 4))
    third.run(work=1024, progress=(0, 1))
    assert one.best == other.best
    assert one.best != third.best


def test_routes_are_offered_and_gone_on_from():
    given = VRPTWGenerator(30, None, 1, 5).generate().instance(0)
    _, (file,) = read_file(FOLDER / "C101.txt")
    begin = insertion(file.arrays)
    search = TimedRouteImprovement(file, 0, begin)
    assert search.actions == begin
    best = [2 * action // 2 for action in searched(file.arrays, Limit(None, 200), 1)]
    search.offer(best)
    assert verify(file.arrays, search.actions).objective == max(verify(file.arrays, each).objective for each in (best, begin))
    late = actions_of([list(range(30))])
    with pytest.raises(SettingsError, match=r"capacity|in time"):
        search_of(given, 0, nodes(late))


def test_where_a_detour_is_shorter_nobody_comes_late():
    windows = np.array([[0, 20], [0, 3], [0, 3], [0, 9.0]])
    windows[2:, 1] = [9, 9]
    search = RouteSearch(Matrix(NO_METRIC), np.array([0, 1, 1, 1]), 3, seed=0, windows=windows, service=np.zeros(4))
    search.run(work=500, progress=(0, 1))
    for route in search.best:
        clock, last = 0.0, 0
        for node in route:
            clock = max(clock + NO_METRIC[last, node], windows[node, 0])
            assert clock <= windows[node, 1]
            last = node
    assert search.cost == 12  # depot, 1, 2, 3, and back


@pytest.mark.parametrize("kept", [0, 1, 7, 19])
def test_polished_solutions_are_feasible_no_longer_and_keep_their_beginning(kept):
    problem = VRPTW(20)
    state = problem.generate(16, generator=seeded(2))
    actions = random_actions(problem, state, seeded(3))
    better = problem.local_search(state, actions, effort=5, seeds=torch.arange(16), kept=kept)
    assert torch.equal(better[:, :kept], actions[:, :kept])
    assert bool((worth(state, better) >= worth(state, actions) - 1e-9).all())
    for row in range(16):
        verdict = verify(row_of(state, row), better[row].tolist())
        assert verdict.feasible, verdict.reason
    assert torch.equal(better, problem.local_search(state, actions, effort=5, seeds=torch.arange(16), kept=kept))
    if kept < 10:
        assert worth(state, better).mean() > worth(state, actions).mean() + 0.1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"windows": np.zeros((3, 2))}, "windows"),
        ({"windows": np.full((4, 2), np.nan)}, "windows"),
        ({"windows": np.array([[0, 20], [5, 3], [0, 20], [0, 20.0]])}, "close after they open"),
        ({"windows": np.array([[0, 20], [0, 20], [0, 8], [0, 20.0]])}, "in time, but comes to node 2"),
        ({"service": np.array([0, -1, 0, 0.0])}, "service"),
        ({"service": None}, "together"),
        ({"routes": [[3, 2, 1]]}, "in time, but comes to node 1"),
    ],
)
def test_what_is_wrong_is_refused_before_the_search(changes, message):
    windows = np.array([[0, 20], [0, 10], [0, 20], [0, 20.0]])
    given = {"windows": windows, "service": np.zeros(4), "routes": None, **changes}
    with pytest.raises(SettingsError, match=message):
        RouteSearch(Matrix(NO_METRIC), np.array([0, 1, 1, 1]), 3, seed=0, **given)


def test_a_search_goes_on_after_it_was_stopped_by_the_clock():
    given = VRPTWGenerator(60, None, 1, 7).generate().instance(0)
    search = search_of(given, 0)
    first = search.cost
    search.run(seconds=0.05)
    second = search.cost
    search.run(work=2000)
    assert first >= second >= search.cost
    assert travel_times(given).shape == (61, 61)


def test_solve_takes_a_file_and_writes_routes_that_are_read_back(tmp_path):
    asked = ["solve", str(FOLDER / "R101.txt"), "--parts", "local-search", "--time-limit", "0.3", "--device", "cpu"]
    assert main([*asked, "--folder", str(tmp_path)]) == 0
    kit, (given,) = read_file(FOLDER / "R101.txt")
    (record,) = json.loads((tmp_path / "solutions.json").read_text())
    actions = kit.exports["sol"].read(given, (tmp_path / "R101.sol").read_text())
    assert solution_cost(kit, given, actions) == pytest.approx(record["cost"])
    assert record["cost"] < 1.1 * given.known
    for route, begins in zip(record["routes"], record["begins"], strict=True):
        windows = given.arrays["windows"][[1 + customer for customer in route]]
        assert bool(((windows[:, 0] <= begins) & (begins <= windows[:, 1] + 1e-6)).all())
    assert (tmp_path / "R101.png").exists()
