"""The catalogue: every problem's settings, presets and networks."""

from __future__ import annotations

import pytest
import torch
from routing import seeded

from gumbeldore.errors import SettingsError
from gumbeldore.kits.mixture import AnyOf
from gumbeldore.problems import CVRP, JSSP, TSP, Gomoku
from gumbeldore.problems.gomoku.problem import random_winner
from gumbeldore.problems.jssp.kit import JobShops
from gumbeldore.runs import training as runs
from gumbeldore.runs.options import RunOptions
from gumbeldore.runs.presets import CATALOGUE
from gumbeldore.runs.records import as_plain, merged
from gumbeldore.runs.run import TrainingRun
from gumbeldore.runs.settings import RunSettings
from gumbeldore.search.advantage import outcome
from gumbeldore.search.settings import SamplerSettings

ALL = [(entry, preset) for entry in CATALOGUE.values() for preset in entry.presets()]


@pytest.mark.parametrize(("entry", "preset"), ALL, ids=lambda value: getattr(value, "name", value))
def test_every_preset_builds_a_network_that_fits_its_problems(entry, preset):
    settings = entry.settings(preset)
    policy = entry.build(settings).eval()
    for problem in (settings.training_problem, settings.validation_problem):
        state = problem.generate(2, generator=seeded(0))
        with torch.no_grad():
            assert policy(state, policy.prepare(state)).shape == problem.mask(state).shape


@pytest.mark.parametrize(("entry", "preset"), ALL, ids=lambda value: getattr(value, "name", value))
def test_every_preset_survives_the_way_through_json(entry, preset):
    settings = entry.settings(preset)
    assert merged(settings, as_plain(settings)) == settings


@pytest.mark.parametrize("entry", [e for e in CATALOGUE.values() if "supervised" in e.presets()], ids=lambda e: e.name)
def test_the_papers_supervised_settings_are_the_papers(entry):
    paper = entry.settings("supervised").training
    assert (paper.learning_rate, paper.final_learning_rate) == (1e-4, None)
    assert (paper.patience, paper.batches) == (100, 1000)
    assert paper.batch_size == (512 if entry.name == "jssp" else 1024)
    assert paper.epochs > 4500  # patience ends it
    assert as_plain(entry.settings("supervised").policy) == as_plain(entry.settings("paper").policy)


def test_the_papers_cvrp_settings_are_the_papers():
    paper = CATALOGUE["cvrp"].settings("paper")
    assert as_plain(paper.policy) == {
        **{"d": 192, "layers": 9, "heads": 12, "ff": 512},
        "features": [],
    }
    assert paper.training_problem == CVRP(100, (40, 100))
    assert paper.validation_problem == CVRP(100, 50)
    assert (paper.sampler.beam_width, paper.sampler.rounds, paper.sampler.sigma) == (32, 4, 3.0)
    assert [paper.sampler.build(epoch).nucleus[0] for epoch in (500, 501)] == [1.0, 0.95]
    training = paper.training
    assert (training.instances, training.batches, training.batch_size, training.learning_rate) == (1000, 1000, 1024, 2e-4)
    assert paper.validation.instances == 10_000


@pytest.mark.parametrize("name", [name for name, e in CATALOGUE.items() if "paper" in e.presets()])
def test_what_the_paper_does_not_have_is_off_in_its_settings(name):
    paper = CATALOGUE[name].settings("paper")
    training = paper.training
    assert (training.local_search, training.ema, paper.stages) == (0, 0.0, ())
    assert as_plain(paper.policy).get("features", []) == []


def test_the_papers_job_shop_settings_are_the_papers():
    paper = CATALOGUE["jssp"].settings("paper")
    off = {"features": [], "actions": "all", "successor_weight": 0.0}
    assert as_plain(paper.policy) == {"d": 64, "pairs": 3, "heads": 8, "ff": 256, **off}
    assert paper.training_problem == AnyOf((JSSP(15, 10), JSSP(15, 15), JSSP(15, 20)))
    assert paper.validation_problem == JSSP(20, 20)
    assert (paper.sampler.beam_width, paper.sampler.rounds, paper.sampler.sigma) == (32, 4, 0.05)
    assert [paper.sampler.build(epoch).nucleus[0] for epoch in (50, 51)] == [1.0, 0.95]
    training = paper.training
    assert (training.epochs, training.instances, training.batches, training.batch_size) == (100, 512, 1000, 512)
    assert (training.learning_rate, paper.validation.instances) == (2e-4, 100)


def test_the_papers_gomoku_settings_are_the_papers():
    entry = CATALOGUE["gomoku"]
    paper = entry.settings("paper")
    sampler, training = paper.sampler.build(), paper.training
    assert (sampler.beam_width, sampler.rounds, sampler.sigma, sampler.nucleus) == (32, 10, 5.0, (1.0, 1.0))
    assert sampler.advantage is outcome
    assert entry.select is random_winner
    assert (training.generating, training.replay_window) == ("current", 1)
    assert (training.instances, training.batches, training.batch_size) == (81, 100, 32)
    starts = paper.validation_problem.generate(paper.validation.instances, generator=seeded(0)).board
    assert len(starts.unique(dim=0)) == 81


def test_lehd_has_one_encoder_layer_and_six_in_the_decoder():
    for name in ("tsp-lehd", "cvrp-lehd"):
        assert as_plain(CATALOGUE[name].settings("paper").policy) == {"d": 128, "layers": 6, "heads": 8, "ff": 512}
    bq, lehd = CATALOGUE["tsp"].settings("paper"), CATALOGUE["tsp-lehd"].settings("paper")
    assert (bq.sampler, bq.training, bq.problem) == (lehd.sampler, lehd.training, lehd.problem)


def test_validation_instances_may_differ_from_the_training_ones():
    settings = RunSettings(TSP(20), None)
    assert settings.validation_problem == TSP(20)
    settings = merged(settings, {"validation": {"problem": {"cities": 30}}})
    assert (settings.training_problem, settings.validation_problem) == (TSP(20), TSP(30))
    with pytest.raises(SettingsError, match=r"Unknown setting `validation\.problem\.city`.*`validation\.problem\.cities`"):
        merged(settings, {"validation": {"problem": {"city": 30}}})
    with pytest.raises(SettingsError, match=r"`validation\.problem\.cities` must be of type int, got 'many'"):
        merged(settings, {"validation": {"problem": {"cities": "many"}}})
    with pytest.raises(SettingsError, match="at least 3, got 2"):
        merged(settings, {"validation": {"problem": {"cities": 2}}})


def test_job_shops_of_several_sizes_are_all_their_combinations():
    assert JobShops(3, 2).build() == JSSP(3, 2)
    assert JobShops((3, 4), (2, 5)).build() == AnyOf((JSSP(3, 2), JSSP(3, 5), JSSP(4, 2), JSSP(4, 5)))
    for wrong in ({"jobs": 0}, {"machines": (3, 0)}):
        with pytest.raises(SettingsError, match="at least 1, got 0"):
            JobShops(**wrong)
    with pytest.raises(SettingsError, match="`machines` must be a number, or several, got none"):
        JobShops(machines=())


@pytest.mark.parametrize(
    ("value", "expected"), [(50, 50), ([40, 100], (40, 100)), ((40, 100), (40, 100))], ids=["one", "list", "tuple"]
)
def test_a_setting_may_be_a_number_or_a_range(value, expected):
    assert merged(CVRP(), {"capacity": value}).capacity == expected


@pytest.mark.parametrize("value", ["much", [40, "x"], 1.5, True])
def test_a_setting_that_is_neither_is_refused_with_both_types(value):
    with pytest.raises(SettingsError, match=r"`capacity` must be of type int or tuple\[int, \.\.\.\], got"):
        merged(CVRP(), {"capacity": value})


def test_a_board_of_another_size_gets_a_network_of_that_size():
    entry = CATALOGUE["gomoku"]
    settings = entry.settings("small", {"problem": {"size": 7}})
    assert settings.training_problem == Gomoku(7)
    assert entry.build(settings).config["size"] == 7


def test_pure_outcomes_are_a_method_of_their_own():
    assert SamplerSettings(method="outcome", sigma=5.0).build().advantage is outcome


def test_a_run_trains_on_its_problem_validates_on_its_own_and_selects_its_way(tmp_path, monkeypatch):
    seen = {}

    def events(problem, policy, sampler, *, validation, settings, stages, select, resume, workers):
        seen.update(problem=problem, sampler=sampler(1), validation=validation, select=select, settings=settings, stages=stages)
        raise SettingsError("enough")

    monkeypatch.setattr(runs, "self_improve_events", events)
    for name, changes in {"gomoku": {}, "jssp": {"machines": [2, 3]}}.items():
        validation = {"instances": 2, "problem": {"machines": 5} if changes else {}}
        settings = CATALOGUE[name].settings("small", {"problem": changes, "validation": validation})
        with pytest.raises(SettingsError, match="enough"):
            TrainingRun(CATALOGUE[name], settings, tmp_path / name, RunOptions(device="cpu")).finish()
        assert seen["problem"] == settings.training_problem
        assert seen["select"] is CATALOGUE[name].select
        assert seen["sampler"] == settings.sampler.build(1)
        assert seen["settings"] == settings.training
        assert seen["stages"] == []
    assert seen["validation"].times.shape == (2, 6, 5)
