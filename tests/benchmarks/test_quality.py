"""The comparison of samplers: cells that are kept, points within a budget, paired claims. Pieces of it, not the whole."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from contest.cases import CASES, Case, quick_cases
from contest.cells import Cell, Task
from contest.checkpoints import STAGES, TRAININGS, quick
from contest.results import Contest, as_json, claims, entries
from contest.samplers import ADAPTIVE, FAMILIES, GRID_FAMILY, NUCLEI, SCALES
from contest.tables import draw, markdown
from quality import contests
from rich.console import Console

from gumbeldore.io.policy_files import save_policy
from gumbeldore.runs.presets import entry
from gumbeldore.runs.weights import new_policy

TSP_CASES = [case for case in quick_cases() if case.training == "tsp"]


def put_policies(folder: Path) -> None:
    """Untrained ones, where the script would look for trained ones."""
    training = quick(next(training for training in TRAININGS if training.problem == "tsp"))
    policy = new_policy(entry("tsp"), training.settings, torch.device("cpu"))
    for stage in STAGES:
        save_policy(folder / "policies" / f"tsp-{stage}.safetensors", policy)


def some(*names: str):
    return [family for family in FAMILIES if family.name in names]


def cell(family: str, points: dict[float, list[float]]) -> Cell:
    """A cell with the costs of some instances after so many evaluations each."""
    cost = np.array(list(points.values()))
    spent = np.array([[evaluations] * cost.shape[1] for evaluations in points])
    return Cell(family, family, spent, cost, np.arange(1.0, len(points) + 1))


def contest(*cells: Cell) -> Contest:
    return Contest(CASES[0], cells, np.full(cells[0].cost.shape[1], 10.0))


def test_a_case_is_filled_once_and_then_read_from_its_files(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "policies").mkdir()
    put_policies(tmp_path)
    families = some("greedy", "beam search", ADAPTIVE)
    first = list(contests(TSP_CASES, families, tmp_path, 4, Console(quiet=True), tiny=True))
    monkeypatch.setattr(Task, "fill", lambda *_: pytest.fail("computed again"))
    second = list(contests(TSP_CASES, families, tmp_path, 4, Console(quiet=True), tiny=True))
    assert [c.case.stage for c in first] == list(STAGES)
    assert json.dumps(as_json(first)) == json.dumps(as_json(second))
    for found in first:
        assert found.families == ["greedy", "beam search", ADAPTIVE]
        assert (found.best <= found.reference).all()
        assert all((one.cost[-1] <= one.cost[0]).all() for one in found.cells)
    text = markdown(first)
    assert all(name in text for name in ("tsp-8-early", "tsp-8-late", "beam search", "adaptive against beam search"))
    assert [path.name for path in draw(tmp_path, first)] == ["quality_tsp.png"]


def test_other_weights_or_settings_are_other_cells(tmp_path: Path) -> None:
    put = Path(tmp_path / "policies")
    put.mkdir()
    put_policies(tmp_path)
    case = TSP_CASES[0]
    entrants = [entrant for family in some("beam search") for entrant in family.entrants(case, 7)]
    policies = [new_policy(entry("tsp"), quick(TRAININGS[0]).settings, torch.device("cpu")) for _ in range(2)]
    torch.nn.init.ones_(next(policies[1].parameters()))
    paths = {Task(case, entrant, policy, 4).path(tmp_path) for entrant in entrants for policy in policies}
    assert len(paths) == 2 * len(entrants)
    assert Task(case, entrants[0], policies[0], 5).path(tmp_path) not in paths


def test_a_family_is_judged_by_its_best_point_within_the_budget() -> None:
    found = contest(cell("beam search", {50: [12.0, 12.0], 104: [11.0, 13.0], 106: [10.0, 10.0]}))
    point = found.within("beam search", 100)
    assert point is not None
    assert point.evaluations == 50  # both of the first two have the mean 12; the last spends too much
    assert point.gaps.tolist() == [20.0, 20.0]
    assert found.within("beam search", 30) is None


def test_gaps_are_measured_from_what_is_better_than_the_reference() -> None:
    found = contest(cell("greedy", {20: [9.0, 11.0]}), cell(ADAPTIVE, {20: [9.0, 10.0], 90: [8.0, 10.0]}))
    assert found.best.tolist() == [8.0, 10.0]
    assert found.points("greedy")[0].gaps.tolist() == [12.5, 10.0]


def test_claims_are_judged_by_paired_intervals() -> None:
    steady = np.linspace(10, 14, 40)
    better, worse = cell(ADAPTIVE, {90: list(steady)}), cell("beam search", {90: list(1.02 * steady)})
    found = {claim.what: claim for claim in claims(contest(better, worse), [100])}
    claim = found["adaptive against beam search"]
    assert claim.verdict == "yes"
    assert claim.difference.high < 0
    swapped = contest(replace(worse, family=ADAPTIVE), replace(better, family="beam search"))
    assert next(iter(claims(swapped, [100]))).verdict == "no"
    row = next(one for one in entries(contest(better, worse), [100]) if one.family == "beam search")
    assert row.difference is not None
    assert row.difference.low > 0  # all instances alike: what is hard cancels


def test_every_problem_takes_part_early_and_late_and_the_grid_is_five_by_five() -> None:
    def places(cases: list[Case]) -> set[tuple[str, str]]:
        return {(case.training, case.stage) for case in cases}

    assert places(CASES) == {(t.problem, stage) for t in TRAININGS for stage in STAGES} == places(quick_cases())
    assert len(GRID_FAMILY.entrants(CASES[0], 20)) == len(NUCLEI) * len(SCALES) == 25
    names = [entrant.name for family in FAMILIES for entrant in family.entrants(CASES[0], 20)]
    assert len(names) == len(set(names))
