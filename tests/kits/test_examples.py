"""The examples that are complete kits: what they say of solutions, their files, experts, and what they learn."""

from __future__ import annotations

import json
import re
import sys
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import torch

import gumbeldore
from gumbeldore.cli import main
from gumbeldore.kits import OWN, Kit, Limit
from gumbeldore.kits.registry import kit_at, kit_named
from gumbeldore.runs.presets import entry_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ORIENTEERING, FLEXIBLE = (f"{EXAMPLES / name}.py:KIT" for name in ("orienteering", "flexible_job_shop"))
BOTH = pytest.mark.parametrize("place", [ORIENTEERING, FLEXIBLE], ids=["orienteering", "flexible"])
SMALL = {ORIENTEERING: {"places": 6, "limit": 1.5}, FLEXIBLE: {"jobs": 3, "machines": 2, "operations": 2}}


def worth(kit: Kit, instances, solve) -> float:
    values = [
        kit.instances.verify(instances.instance(row), solve(instances.instance(row))).objective for row in range(len(instances))
    ]
    return float(np.mean(values))


@BOTH
def test_it_is_checked_with_all_its_parts(place, capsys):
    assert main(["check", place]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for part in ("confirmed by its verifier", "the baseline", "its expert", "its picture", "its generator", "its formats"):
        assert part in said


@BOTH
def test_its_expert_is_better_than_its_rule_and_its_labels_can_be_learnt_from(place):
    kit = kit_at(place)
    problem, _, _ = LEARNING[place]
    instances = kit.generator(**problem, count=6, seed=1).generate()
    (rule,) = kit.baselines.values()
    actions = [kit.experts[OWN](instances.instance(row), Limit(None, 10), 0).actions for row in range(6)]
    labelled = instances.labelled(actions, "expert")
    labelled.dataset()  # every action is allowed, and all of them are worth what the verifier says
    assert labelled.labels.objective.mean() > worth(kit, instances, lambda one: rule.solve(one, Limit(None, 1), 0))


@BOTH
def test_nothing_is_better_than_the_best_of_all_sequences_and_a_wide_search_finds_it(place):
    kit = kit_at(place)
    problem, instances = type(kit.problem)(**SMALL[place]), kit.generator(**SMALL[place], count=3, seed=2).generate()
    found = gumbeldore.BeamSearch(3000)(problem, untrained(kit), instances.state(), generator=torch.Generator().manual_seed(0))
    for row in range(3):
        assert found.best_objective[row].item() == pytest.approx(best_of_all(kit, instances.instance(row)))


def untrained(kit: Kit):
    torch.manual_seed(0)
    entry = entry_of(kit)
    return entry.build(entry.settings()).eval()


def best_of_all(kit: Kit, instance) -> float:
    """Over all sequences of places, or all orders of jobs on all machines: what the verifier says of the feasible ones."""
    if kit.name == "orienteering":
        count = len(instance["prizes"])
        tries = (order for length in range(count) for order in permutations(range(1, count), length))
        return max(kit.instances.verify(instance, order).objective for order in tries)
    jobs, operations, machines = instance["times"].shape
    turns = set(permutations([job for job in range(jobs) for _ in range(operations)]))
    choices = np.stack(np.meshgrid(*[range(machines)] * (jobs * operations)), -1).reshape(-1, jobs * operations)
    best = -np.inf
    for on in choices.reshape(-1, jobs, operations):
        if all(instance["times"][job, step, on[job, step]] > 0 for job in range(jobs) for step in range(operations)):
            for order in turns:
                best = max(best, -earliest_end(instance["times"], order, on))
    return best


def earliest_end(times, order, on) -> float:
    """Every operation as soon as possible, whatever the order in which they begin."""
    ready, free, done = [0.0] * len(times), [0.0] * times.shape[2], [0] * len(times)
    for job in order:
        machine = on[job, done[job]]
        ready[job] = free[machine] = max(ready[job], free[machine]) + times[job, done[job], machine]
        done[job] += 1
    return max(ready)


def test_what_no_tour_may_do_is_refused():
    kit = kit_at(ORIENTEERING)
    instance = {"points": np.array([[0.0, 0], [1, 0], [0, 1]]), "prizes": np.array([0.0, 2, 3]), "limit": np.array(2.5)}
    assert kit.instances.verify(instance, [2]).objective == 3
    for actions, reason in (([1, 2], "more than 2.5"), ([1, 1], "twice"), ([3], "no place 3"), ([0], "no place 0")):
        verdict = kit.instances.verify(instance, actions)
        assert not verdict.feasible
        assert reason in verdict.reason


def test_what_no_schedule_may_do_is_refused():
    kit = kit_at(FLEXIBLE)
    instance = {"times": np.array([[[2.0, 0], [1, 3]], [[0, 4], [0, 0]]])}
    assert kit.instances.verify(instance, [0, 3, 0]).objective == -4
    for actions, reason in (([1], "action 1 is not possible"), ([0, 3], "1 operations"), ([3, 3], "not possible"), ([9], "9")):
        verdict = kit.instances.verify(instance, actions)
        assert not verdict.feasible
        assert reason in verdict.reason


FILES = {
    ORIENTEERING: (
        "orienteering 250\n0 0 9\n100 0 20\n0 100 30\n",
        ["orienteering\n0 0 1\n", "orienteering 5\n0 0 1\n9 9 1\n"],
    ),
    FLEXIBLE: (
        "2 2\n2 1 1 2 2 1 1 2 3\n1 1 2 4\n",
        ["2 2\n2 1 1 2\n1 1 2 4\n", "2 2\n1 1 3 2\n1 1 2 4\n", "1 2 3\n1 1 1 1 9\n"],
    ),
}


@BOTH
def test_its_files_are_read_solved_and_their_solutions_read_back(place, tmp_path):
    kit, (text, broken) = kit_at(place), FILES[place]
    (form,), (export,) = kit.formats, kit.exports.values()
    path = tmp_path / f"two{form.suffixes[0]}"
    path.write_text(text)
    assert form.claims(path.read_bytes())
    (given,) = form.read(path)
    (baseline,) = kit.baselines.values()
    actions = list(baseline.solve(given.arrays, Limit(None, 1), 0))
    assert kit.instances.verify(given.arrays, actions).feasible
    again = export.read(given, export.write(given, actions))
    assert kit.instances.verify(given.arrays, again) == kit.instances.verify(given.arrays, actions)
    for number, wrong in enumerate(broken):
        (tmp_path / f"{number}.txt").write_text(wrong)
        with pytest.raises(gumbeldore.GumbeldoreError, match=f"{number}.txt"):
            form.read(tmp_path / f"{number}.txt")


LEARNING = {
    ORIENTEERING: ({"places": 12, "limit": 1.5}, {"instances": 80, "batches": 50, "batch_size": 128}, 3),
    FLEXIBLE: ({"jobs": 5, "machines": 3, "operations": 3}, {"instances": 80, "batches": 60, "batch_size": 64}, 7),
}


@BOTH
@pytest.mark.slow
def test_it_learns_by_itself_to_be_better_than_its_start_and_its_rule(place, tmp_path):
    kit, (problem, training, epochs) = kit_at(place), LEARNING[place]
    sampler = {"beam_width": 16, "rounds": 1}
    run = gumbeldore.train(
        kit,
        tmp_path,
        problem=problem,
        training=training,
        sampler=sampler,
        validation={"instances": 50},
        epochs=epochs,
        workers=0,
        progress=False,
    )
    start = untrained(kit)
    policy = run.finish()
    tests = kit.generator(**problem, count=100, seed=5).generate()
    (rule,) = kit.baselines.values()
    rules = worth(kit, tests, lambda one: rule.solve(one, Limit(None, 1), 0))
    before, after = (greedy(kit, each, tests, problem) for each in (start, policy))
    assert after > before
    assert after > rules


def greedy(kit, policy, tests, problem) -> float:
    solutions = gumbeldore.Greedy()(
        type(kit.problem)(**problem), policy, tests.state(), generator=torch.Generator().manual_seed(0)
    )
    return solutions.best_objective.mean().item()


def test_an_entry_point_makes_their_names_known(tmp_path, monkeypatch):
    """What pip writes of an installed package, without pip; a slow test of the registry installs one."""
    info = tmp_path / "examples-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: examples\nVersion: 1.0\n")
    points = "orienteering = orienteering:KIT\nflexible = flexible_job_shop:KIT\n"
    (info / "entry_points.txt").write_text(f"[gumbeldore.kits]\n{points}")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(EXAMPLES))
    assert kit_named("orienteering") is sys.modules["orienteering"].KIT
    (tmp_path / "two.txt").write_text(FILES[ORIENTEERING][0])
    run = tmp_path / "run"
    tiny = ["--training.epochs", "1", "--training.instances", "4", "--training.batches", "2", "--training.batch-size", "8"]
    for name in ("orienteering", "flexible"):
        assert main(["train", name, "--folder", str(run / name), "--workers", "0", "--validation.instances", "4", *tiny]) == 0
    policy = ["--policy", str(run / "orienteering/policy.safetensors"), "--folder", str(tmp_path / "solved")]
    assert main(["solve", str(tmp_path / "two.txt"), *policy]) == 0  # whose file it is says its content
    assert (tmp_path / "solved/two.tour").read_text() == "0\n2\n"


def test_values_of_a_problem_that_maximises_are_positive_wherever_they_are_shown(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    tiny = ["--training.epochs", "1", "--training.instances", "4", "--training.batches", "2", "--training.batch-size", "8"]
    assert main(["train", ORIENTEERING, "--folder", "run", "--workers", "0", "--validation.instances", "4", *tiny]) == 0
    assert main(["status", "run"]) == 0
    assert main(["label", ORIENTEERING, "--count", "2", "--solver", "gumbeldore", "--work", "1", "--out", "labels.npz"]) == 0
    compared = ["--random", "3", "--policies", "run", "--baselines", "prize-per-way", "--workers", "0"]
    assert main(["evaluate", ORIENTEERING, *compared]) == 0
    assert main(["report", "run", "runs/evaluate", "--out", "report.html", "--solutions", "0"]) == 0
    shown = capsys.readouterr().out
    for what in (r"before training  sampled \d", r"greedy \d", r"best prize +\d", r"mean value \d", r"prize-per-way +\d"):
        assert re.search(what, shown), what
    assert "gap to the best value found by any of these methods; value: prize" in shown
    (row, *_) = json.loads(Path("runs/evaluate/table.json").read_text())["rows"]
    assert row["mean_cost"] > 0
    data = re.search(r'id="charts">(.*?)</script>', Path("report.html").read_text(), re.S).group(1)
    assert all(point[-1] >= 0 for chart in json.loads(data)[:1] for curve in chart["curves"] for point in curve["points"])
