"""What is done to a policy's best sequences afterwards, and who gets the credit."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace

import pytest
from kits import KITS

from gumbeldore import BeamSearch, Greedy
from gumbeldore.errors import SettingsError
from gumbeldore.io.reading import read_file
from gumbeldore.kits.solver import Limit, SolverError
from gumbeldore.solving import refining, solve
from gumbeldore.solving.found import POLICY
from gumbeldore.solving.refining import check_polish

FILES = {"tsp": "berlin52.tsp", "cvrp": "A-n32-k5.vrp", "jssp": "ft06.txt"}


@pytest.fixture
def quick(monkeypatch):
    """Polishing by work instead of the clock."""
    monkeypatch.setattr(refining, "Limit", lambda seconds: Limit(None, seconds))


@pytest.mark.parametrize(("name", "work"), [("tsp", 200), ("cvrp", 200), ("jssp", 0.2)])
def test_an_outside_solver_goes_on_from_the_best_and_is_named(name, work, quick, instances, weights):
    polished = solve(instances / FILES[name], policy=weights[name], sampler=BeamSearch(2), polish=float(work))
    outside = next(iter(KITS[name].warm_started))
    assert [share.by for share in polished.shares] == [POLICY, outside]
    assert polished.by == outside
    assert polished.cost == polished.cost_of(outside) < polished.cost_of(POLICY)
    assert polished.cost < 1.1 * polished.known


@pytest.mark.parametrize("name", FILES)
def test_a_start_is_never_made_worse(name, instances):
    """The published optimum stays, by the file's own rule."""
    kit, (given,) = read_file(instances / FILES[name])
    (polisher,) = kit.warm_started.values()
    known = {"jssp": solve_exactly}.get(name, solution_beside)(kit, given, instances / FILES[name])
    better = polisher(given, [known], Limit(None, 0.1 if name == "jssp" else 20), 1)
    cost = given.cost or (lambda actions: -kit.solution_format.verify(given.arrays, actions).objective)
    assert cost(better) == cost(known) == given.known


def solution_beside(kit, given, path) -> list[int]:
    from gumbeldore.io.reading import read_solution

    export = next(iter(kit.exports.values()))
    beside = next(p for p in (path.with_suffix(".sol"), path.with_suffix(".opt.tour")) if p.is_file())
    return read_solution(export, given, beside)


def solve_exactly(kit, given, path) -> list[int]:
    return kit.experts["ortools"](given.arrays, Limit(None, 5.0), 0).actions


def test_a_solver_that_finds_nothing_or_nonsense_leaves_the_policys_solution(instances, weights):
    def empty_handed(*_):
        raise SolverError("Found nothing.")

    plain = solve(instances / FILES["tsp"], policy=weights["tsp"], sampler=Greedy())
    for polisher, notes in ((empty_handed, ["pyvrp: Found nothing."]), (lambda *_: [1, 1], [])):
        kit = replace(KITS["tsp"], warm_started={"pyvrp": polisher})
        polished = solve(instances / FILES["tsp"], policy=weights["tsp"], kit=kit, sampler=Greedy(), polish=1.0)
        assert (polished.cost, polished.by) == (plain.cost, POLICY)
        assert polished.notes == notes


def test_what_cannot_be_asked_for_is_refused_by_name(monkeypatch):
    with pytest.raises(SettingsError, match="`polish` must be above 0 seconds"):
        check_polish(KITS["jssp"], -1.0)
    with pytest.raises(SettingsError, match="a kit with `warm_started`"):
        check_polish(KITS["gomoku"], 1.0)
    check_polish(KITS["gomoku"], None)
    monkeypatch.setattr(refining, "find_spec", lambda name: None)
    with pytest.raises(SettingsError, match="`polish` for jssp needs ortools, not installed"):
        check_polish(KITS["jssp"], 1.0)


def test_ctrl_c_ends_cp_sat_at_once_and_still_works_afterwards(instances):
    """It would otherwise take Python's handler away, and the next Ctrl-C would end the process with nothing saved."""
    kit, (given,) = read_file(instances / "ft10.txt")
    before = signal.getsignal(signal.SIGINT)
    start = [[job for job in range(10) for _ in range(10)]]
    timer = threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        kit.warm_started["ortools"](given, start, Limit(None, 1e6), 0)  # weeks, if it could not be ended
    assert signal.getsignal(signal.SIGINT) is before
