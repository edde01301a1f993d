"""Labels by outside solvers: optimal where that can be checked, verified, and never solved twice."""

from __future__ import annotations

import io
import itertools
import json
import math
import os
from functools import partial

import numpy as np
import pytest
from kits import KINDS, KITS, SOLVERS
from rich.console import Console

from gumbeldore.cli import main
from gumbeldore.errors import BusyError, CheckpointError, GumbeldoreError, SettingsError
from gumbeldore.files import locked
from gumbeldore.io.instance_files import read_instances
from gumbeldore.kits.instances import InstanceSet
from gumbeldore.kits.solver import Limit, Solved, SolverError
from gumbeldore.kits.verdict import Verdict
from gumbeldore.parallel.processes import WorkerError, in_processes
from gumbeldore.problems.atsp.instances import ATSPGenerator
from gumbeldore.problems.cvrp import experts
from gumbeldore.problems.cvrp.experts import Routes, solve_cvrp
from gumbeldore.problems.cvrp.instances import CVRPGenerator
from gumbeldore.problems.jssp.experts import jobs_by_start, solve_jssp
from gumbeldore.problems.jssp.instances import JSSPGenerator
from gumbeldore.problems.jssp.verify import verify_jssp
from gumbeldore.problems.op.instances import OPGenerator
from gumbeldore.problems.pfsp.instances import PFSPGenerator
from gumbeldore.problems.routes import routes
from gumbeldore.problems.tsp.experts import approximate_tsp, solve_tsp
from gumbeldore.problems.tsp.instances import TSPGenerator
from gumbeldore.problems.vrptw.instances import VRPTWGenerator
from gumbeldore.runs import labelling
from gumbeldore.runs.labelling import choose_solver, label
from gumbeldore.solvers.outside import outside

TINY = {
    "tsp": TSPGenerator(7, 3, 5),
    "atsp": ATSPGenerator(7, 3, 5),
    "cvrp": CVRPGenerator(5, 12, 3, 5),
    "vrptw": VRPTWGenerator(5, 12, 3, 5),
    "jssp": JSSPGenerator(3, 3, 3, 5),
    "pfsp": PFSPGenerator(4, 2, 3, 5),
    "op": OPGenerator(5, "uniform", 1.5, 3, 5),
}
"""Not `fjsp`: no shop of its generators is small enough to try everything."""
QUIET = Console(quiet=True)


def sequences(name: str) -> list[tuple[int, ...]]:
    """Every sequence of actions that could be a solution of a tiny instance."""
    if name in ("tsp", "atsp"):
        return list(itertools.permutations(range(1, 7)))
    if name == "op":
        return [(*tour, 0) for stops in range(6) for tour in itertools.permutations(range(1, 6), stops)]
    if name == "pfsp":
        return list(itertools.permutations(range(4)))
    if name in ("cvrp", "vrptw"):
        flags = list(itertools.product([0, 1], repeat=4))
        return [
            tuple(2 * c + f for c, f in zip(order, (1, *rest), strict=True))
            for order in itertools.permutations(range(5))
            for rest in flags
        ]
    return job_sequences((3, 3, 3))


def job_sequences(left: tuple[int, ...]) -> list[tuple[int, ...]]:
    if not any(left):
        return [()]
    found = []
    for job, count in enumerate(left):
        if count:
            rest = tuple(n - (i == job) for i, n in enumerate(left))
            found += [(job, *sequence) for sequence in job_sequences(rest)]
    return found


@pytest.fixture(scope="module")
def optima() -> dict[str, list[float]]:
    """The best objectives of the tiny instances by trying everything."""
    found = {}
    for name, recipe in TINY.items():
        instances, tried = recipe.generate(), sequences(name)
        verify = instances.kind.verify
        found[name] = [max(verify(instances.instance(i), s).objective for s in tried) for i in range(len(instances))]
    return found


@pytest.fixture
def here(monkeypatch):
    """Labelling without worker processes: in this one, item by item."""

    def serially(function, items, workers):
        for key, item in items.items():
            yield key, function(item)

    monkeypatch.setattr(labelling, "in_processes", serially)


def work(solver: str) -> Limit:
    """Enough for the small instances here, and the same on a busy machine."""
    return Limit(None, {"pyvrp": 300, "hygese": 300, "ortools": 5.0, "gumbeldore": 200}[solver])


def fake(monkeypatch, answer, name: str = "tsp", solver: str = "pyvrp") -> list[int]:
    """Replaces a solver by a function of the seed; returns the seeds it is asked for."""
    asked = []

    def solve(instance, limit, seed):
        asked.append(seed)
        return answer(seed)

    monkeypatch.setitem(SOLVERS[name], solver, solve)
    monkeypatch.setattr(labelling, "find_spec", lambda module: True)
    monkeypatch.setattr(labelling, "version", lambda module: "1.0")
    return asked


def tour(seed: int) -> Solved:
    """A valid, bad answer."""
    return Solved([1, 2, 3, 4, 5, 6], 99.0, False)


def routed(solver: str, nodes: np.ndarray, demands: list[int]) -> tuple[Verdict, list[list[int]]]:
    """What an expert finds for vehicles of 10: a feasible solution."""
    instance = {"nodes": nodes, "demands": np.array(demands), "capacity": np.array(10)}
    actions = SOLVERS["cvrp"][solver](instance, work(solver), 0).actions
    verdict = KINDS["cvrp"].verify(instance, actions)
    assert verdict.feasible, verdict.reason
    return verdict, routes(actions)


class TestSolvers:
    @pytest.mark.parametrize(("name", "solver"), [(name, solver) for name in TINY for solver in SOLVERS[name]])
    def test_tiny_instances_are_solved_to_optimality(self, name, solver, optima):
        pytest.importorskip(solver)
        instances = TINY[name].generate()
        for index, best in enumerate(optima[name]):
            solved = SOLVERS[name][solver](instances.instance(index), work(solver), index)
            verdict = instances.kind.verify(instances.instance(index), solved.actions)
            assert verdict.feasible, verdict.reason
            assert verdict.objective == pytest.approx(best, abs=1e-5)
            if solver != "gumbeldore":  # claims nothing
                assert -verdict.objective == pytest.approx(solved.cost, abs=1e-6)
            assert solved.optimal == (solver == "ortools")

    def test_a_heuristic_tour_is_close_to_the_proved_optimum(self):
        pytest.importorskip("pyvrp")
        pytest.importorskip("ortools")
        points = np.random.RandomState(3).uniform(size=(15, 2))
        exact = solve_tsp(points, work("ortools"))
        assert exact.optimal
        assert exact.length - 1e-4 <= approximate_tsp(points, work("pyvrp")).length <= 1.02 * exact.length

    @pytest.mark.parametrize("solver", SOLVERS["cvrp"])
    @pytest.mark.parametrize(
        ("nodes", "demands", "length"),
        [
            ([[0, 0], [0, 2]], [0, 3], 4.0),  # one customer
            ([[1, 1]] * 4, [0, 3, 3, 3], 0.0),  # everything in one place
            ([[0, 0], [0, 2], [0, 1]], [0, 0, 0], 4.0),  # no demands
            ([[-5, -5], [-5, -3], [-5, -4]], [0, 6, 6], 6.0),  # negative coordinates, a vehicle each
            ([[0, 0], [0, 2], [0, 2], [0, 1]], [0, 4, 4, 2], 4.0),  # two customers in one place
        ],
    )
    def test_unusual_instances_are_solved_too(self, solver, nodes, demands, length):
        pytest.importorskip(solver)
        verdict, _ = routed(solver, np.array(nodes, dtype=float), demands)
        assert -verdict.objective == pytest.approx(length)

    @pytest.mark.parametrize("solver", SOLVERS["cvrp"])
    def test_demands_that_waste_capacity_get_as_many_vehicles_as_they_need(self, solver):
        """Nine customers of 6 in vehicles of 10: nine vehicles, though six could carry the total."""
        pytest.importorskip(solver)
        nodes = np.random.RandomState(1).uniform(size=(10, 2))
        verdict, found = routed(solver, nodes, [0] + [6] * 9)
        assert len(found) == 9
        assert -verdict.objective == pytest.approx(2 * np.hypot(*(nodes[1:] - nodes[0]).T).sum())

    def test_an_unknown_routing_solver_is_named(self):
        with pytest.raises(SettingsError, match="hygese, pyvrp, got 'magic'"):
            solve_cvrp(np.zeros((3, 2)), np.array([0, 1, 1]), 5, solver="magic")

    def test_a_schedule_is_what_the_solver_says(self):
        pytest.importorskip("ortools")
        times, machines = np.array([[3, 2], [2, 4]]), np.array([[0, 1], [1, 0]])
        answer = solve_jssp(times, machines, work("ortools"))
        assert (answer.makespan, answer.optimal) == (7, True)
        assert verify_jssp(times, machines, jobs_by_start(answer.starts)).objective == -7

    def test_sorting_a_schedule_by_starts_never_makes_it_longer(self):
        """Also for schedules with gaps: of random sequences, with every start delayed at random."""
        dice = np.random.RandomState(0)
        for instance in (JSSPGenerator(4, 3, 1, seed).generate().instance(0) for seed in range(50)):
            times, machines = instance["times"], instance["machines"]
            sequence = dice.permutation(np.repeat(np.arange(4), 3))
            starts: list[list[int]] = [[], [], [], []]
            free = dict.fromkeys(range(3), 0)
            for job in sequence:
                step = len(starts[job])
                before = starts[job][-1] + int(times[job, step - 1]) if step else 0
                begin = max(before, free[int(machines[job, step])]) + int(dice.randint(5))
                starts[job].append(begin)
                free[int(machines[job, step])] = begin + int(times[job, step])
            makespan = max(row[-1] + int(times[job, -1]) for job, row in enumerate(starts))
            verdict = verify_jssp(times, machines, jobs_by_start(starts))
            assert verdict.feasible
            assert -verdict.objective <= makespan

    def test_fractional_times_are_refused_with_the_way_out(self):
        pytest.importorskip("ortools")
        with pytest.raises(SettingsError, match=r"integer `times`, got \[1\.5\]. Scale them"):
            solve_jssp(np.array([[1.5]]), np.array([[0]]))

    def test_too_little_time_is_reported_as_such(self):
        pytest.importorskip("ortools")
        given = JSSPGenerator(20, 20, 1).generate().instance(0)
        with pytest.raises(SolverError, match="Give it more time"):
            solve_jssp(given["times"], given["machines"], Limit(None, 1e-6))

    def test_a_solver_that_is_not_installed_names_the_extra(self, monkeypatch):
        with pytest.raises(SolverError, match=r"gumbeldore\[solvers\]"):
            outside("a_solver_that_nobody_has")
        monkeypatch.setattr(labelling, "find_spec", lambda module: None)
        with pytest.raises(SolverError, match="need hygese or pyvrp, not installed"):
            choose_solver(KITS["cvrp"])

    def test_our_own_local_search_needs_nothing_else_but_a_limit_that_is_not_a_time(self, monkeypatch):
        monkeypatch.setattr(labelling, "find_spec", lambda module: module == "gumbeldore" or None)
        assert choose_solver(KITS["jssp"]) == "gumbeldore"
        with pytest.raises(SolverError, match="give --work 100"):
            SOLVERS["tsp"]["gumbeldore"](TINY["tsp"].generate().instance(0), Limit(1.0), 0)

    def test_a_time_for_our_own_local_search_is_refused_before_anything_is_written(self, tmp_path):
        instances, out = TINY["tsp"].generate(), tmp_path / "a.npz"
        with pytest.raises(SolverError, match=r"give --work 100, say.*gumbeldore\[solvers\]"):
            label(instances, out, solver="gumbeldore", limit=Limit(1.0), console=QUIET)
        assert list(tmp_path.iterdir()) == []

    def test_the_preferred_solver_is_taken_if_it_is_there(self, monkeypatch):
        monkeypatch.setattr(labelling, "find_spec", lambda module: module == "pyvrp" or None)
        assert choose_solver(KITS["cvrp"]) == "pyvrp"
        monkeypatch.setattr(labelling, "find_spec", lambda module: True)
        assert choose_solver(KITS["cvrp"]) == "hygese"
        assert choose_solver(KITS["cvrp"], "pyvrp") == "pyvrp"
        with pytest.raises(SettingsError, match="auto or hygese or pyvrp or gumbeldore, got 'lkh'"):
            choose_solver(KITS["cvrp"], "lkh")


@pytest.mark.usefixtures("here")
class TestLabelling:
    @pytest.mark.parametrize("name", TINY)
    def test_labels_are_optimal_on_tiny_instances_and_come_back_from_the_file(self, name, tmp_path, optima):
        solver = choose_solver(KITS[name])
        label(TINY[name].generate(), tmp_path / "a.npz", limit=work(solver), console=QUIET)
        labels = read_instances(tmp_path / "a.npz", name).labels
        np.testing.assert_allclose(labels.objective, optima[name], rtol=0, atol=1e-5)
        assert str(work(solver)) in labels.solver
        assert len(read_instances(tmp_path / "a.npz").dataset()) == 3
        assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]

    def test_an_interrupted_labelling_goes_on_where_it_was(self, tmp_path, monkeypatch):
        def interrupted(seed):
            if seed == 2:
                raise KeyboardInterrupt
            return tour(seed)

        instances, out = TSPGenerator(7, 5).generate(), tmp_path / "a.npz"
        console = Console(record=True, quiet=False, file=io.StringIO(), width=200)
        fake(monkeypatch, interrupted)
        with pytest.raises(KeyboardInterrupt):
            label(instances, out, console=console)
        assert "2 of 5 labels are kept" in console.export_text()
        assert not out.exists()
        asked = fake(monkeypatch, tour)
        label(instances, out, console=console)
        assert asked == [2, 3, 4]
        assert read_instances(out).labels.actions.tolist() == [[1, 2, 3, 4, 5, 6]] * 5
        assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]

    def test_a_line_cut_off_by_a_crash_is_solved_again(self, tmp_path, monkeypatch):
        journal = self.journal(tmp_path, monkeypatch, solved=3)
        whole = journal.read_text()
        journal.write_text(whole[:-20])
        asked = fake(monkeypatch, tour)
        label(TSPGenerator(7, 5).generate(), tmp_path / "a.npz", console=QUIET)
        assert asked == [2, 3, 4]

    @pytest.mark.parametrize(
        "change",
        [
            {"actions": [1, 2, 3, 4, 5, 5]},
            {"actions": "nonsense"},
            {"cost": 0.1},
            {"instance": 77},
            {"instance": -1},
            {"cost": None},
        ],
    )
    def test_a_line_that_holds_no_valid_label_is_solved_again(self, tmp_path, monkeypatch, change):
        journal = self.journal(tmp_path, monkeypatch, solved=3)
        header, first, *rest = journal.read_text().splitlines()
        journal.write_text("\n".join([header, json.dumps({**json.loads(first), **change}), *rest]) + "\n")
        asked = fake(monkeypatch, tour)
        label(TSPGenerator(7, 5).generate(), tmp_path / "a.npz", console=QUIET)
        assert asked == [0, 3, 4]

    @pytest.mark.parametrize("other", [{"seconds": 3.0}, {"recipe": TSPGenerator(7, 5, 1)}, {"recipe": TSPGenerator(7, 4)}])
    def test_labels_of_another_task_are_not_mixed_in(self, tmp_path, monkeypatch, other):
        journal = self.journal(tmp_path, monkeypatch, solved=3)
        before = journal.read_text()
        fake(monkeypatch, tour)
        given = {"recipe": TSPGenerator(7, 5), "seconds": 2.0, **other}
        with pytest.raises(CheckpointError, match="of other instances or by another solver"):
            label(given["recipe"].generate(), tmp_path / "a.npz", limit=Limit(given["seconds"]), console=QUIET)
        assert journal.read_text() == before

    def journal(self, tmp_path, monkeypatch, solved: int):
        """What an interruption leaves after some labels."""

        def stops(seed):
            if seed == solved:
                raise KeyboardInterrupt
            return tour(seed)

        fake(monkeypatch, stops)
        with pytest.raises(KeyboardInterrupt):
            label(TSPGenerator(7, 5).generate(), tmp_path / "a.npz", console=QUIET)
        return tmp_path / "a.npz.partial.jsonl"

    @pytest.mark.parametrize(
        ("answer", "message"),
        [
            (Solved([1, 2, 3, 4, 5, 5], 99.0, True), "infeasible solution of instance 0: city 5 is visited again"),
            (Solved([1, 2, 3], 99.0, True), "infeasible solution of instance 0: 3 cities are never visited"),
            (Solved([1, 2, 3, 4, 5, 6], 0.5, True), "claims a cost of 0.5 for instance 0, but it is"),
        ],
    )
    def test_what_a_solver_says_is_not_believed(self, tmp_path, monkeypatch, answer, message):
        fake(monkeypatch, lambda seed: answer)
        with pytest.raises(GumbeldoreError, match=message):
            label(TSPGenerator(7, 2).generate(), tmp_path / "a.npz", console=QUIET)
        assert not (tmp_path / "a.npz").exists()

    def test_routes_become_customers_and_visits_to_the_depot(self, monkeypatch):
        monkeypatch.setattr(experts, "solve_cvrp", lambda *given: Routes([[2, 0], [1]], 5.0))
        given = CVRPGenerator(3, 20, 1).generate().instance(0)
        assert SOLVERS["cvrp"]["hygese"](given, work("hygese"), 0) == Solved([5, 0, 3], 5.0, False)

    @pytest.mark.parametrize("wrong", [{"seconds": 0.0}, {"seconds": math.inf}, {"workers": 0}, {"out": "a.txt"}])
    def test_settings_out_of_range_are_named(self, tmp_path, wrong):
        given = {"out": "a.npz", "seconds": 2.0, **wrong}
        seconds, out, instances = given.pop("seconds"), tmp_path / given.pop("out"), TSPGenerator(7, 2).generate()
        with pytest.raises(SettingsError, match=f"`{next(iter(wrong))}`"):
            label(instances, out, limit=Limit(seconds), console=QUIET, **given)

    def test_two_processes_do_not_label_into_the_same_file(self, tmp_path, monkeypatch):
        fake(monkeypatch, tour)
        with locked(tmp_path, ".a.npz.lock"), pytest.raises(BusyError, match=r"Another process is at work on .*a\.npz\."):
            label(TSPGenerator(7, 2).generate(), tmp_path / "a.npz", console=QUIET)
        label(TSPGenerator(7, 2).generate(), tmp_path / "a.npz", console=QUIET)

    def test_a_finished_file_is_not_overwritten(self, tmp_path):
        (tmp_path / "a.npz").write_text("old")
        with pytest.raises(SettingsError, match="exists already"):
            label(TSPGenerator(7, 2).generate(), tmp_path / "a.npz", console=QUIET)
        assert (tmp_path / "a.npz").read_text() == "old"


class TestProcesses:
    def test_results_come_back_and_an_exception_with_its_cause(self):
        assert sorted(in_processes(math.sqrt, {"a": 4.0, "b": 9.0, "c": 16.0}, 2)) == [("a", 2.0), ("b", 3.0), ("c", 4.0)]
        with pytest.raises(WorkerError, match=r"(?s)Item b failed in a worker.*ValueError: math domain error"):
            list(in_processes(math.sqrt, {"a": 4.0, "b": -1.0, "c": 16.0}, 1))

    def test_a_worker_that_dies_is_reported_instead_of_waited_for(self):
        with pytest.raises(WorkerError, match=r"died at item 5 \(exit code 3"):
            list(in_processes(os._exit, {5: 3}, 2))

    def test_nothing_is_started_for_nothing(self):
        assert list(in_processes(math.sqrt, {}, 4)) == []
        with pytest.raises(SettingsError, match="`workers` must be at least 1, got 0"):
            list(in_processes(math.sqrt, {1: 1.0}, 0))

    def test_stopping_early_ends_the_workers(self):
        from multiprocessing import active_children

        before = set(active_children())
        work = in_processes(partial(pow, 2), dict(enumerate(range(50))), 1)
        assert next(work) == (0, 1)
        started = set(active_children()) - before
        assert len(started) == 1
        work.close()
        assert not started & set(active_children())


class TestCommand:
    def test_a_file_of_instances_is_labelled_in_parallel_processes(self, tmp_path, capsys):
        pytest.importorskip("ortools")
        given, out = tmp_path / "given.npz", tmp_path / "out.npz"
        assert main(["generate", "jssp", "--jobs", "3", "--machines", "3", "--count", "5", "--out", str(given)]) == 0
        assert main(["label", "jssp", "--instances", str(given), "--out", str(out), "--workers", "2", "--work", "5"]) == 0
        assert "5 of 5 proved optimal" in " ".join(capsys.readouterr().out.split())
        before, after = read_instances(given), read_instances(out)
        assert after.digest == before.digest
        assert after.labels.optimal.all()

    def test_a_failing_worker_is_shown_at_once_and_keeps_what_is_done(self, tmp_path, capsys):
        pytest.importorskip("ortools")
        instances = InstanceSet(KINDS["jssp"], {"times": np.full((2, 1, 1), 1.5), "machines": np.zeros((2, 1, 1), dtype=int)})
        with pytest.raises(WorkerError, match="Item 0 failed in a worker process: CP-SAT needs integer `times`"):
            label(instances, tmp_path / "a.npz", workers=1, console=QUIET)
        assert (tmp_path / "a.npz.partial.jsonl").exists()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["gomoku", "--out", "a.npz"], "no instance files for `gomoku`"),
            (["tsp", "--instances", "none.npz", "--out", "a.npz"], "no file of instances none.npz"),
            (["tsp", "--instances", "b.npz", "--cities", "7", "--out", "a.npz"], "leave out the other options"),
            (["tsp", "--standard", "tsp1", "--out", "a.npz"], "must be one of tsp20"),
            (["tsp", "--solver", "lkh", "--count", "1", "--out", "a.npz"], "got 'lkh'"),
        ],
    )
    def test_mistakes_get_one_clear_line(self, arguments, message, capsys, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert main(["label", *arguments]) == 2
        error = " ".join(capsys.readouterr().err.split())
        assert message in error
        assert "Traceback" not in error
