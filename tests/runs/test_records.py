"""Settings: from files, strictly."""

from __future__ import annotations

import pytest

from gumbeldore.errors import SettingsError
from gumbeldore.runs.presets import CATALOGUE
from gumbeldore.runs.records import as_plain, merged, read_settings
from gumbeldore.runs.settings import RunSettings
from gumbeldore.search.adaptive import Adaptive
from gumbeldore.search.replacement import WithReplacement
from gumbeldore.search.samplers import Gumbeldore, StochasticBeamSearch, TheoryGumbeldore
from gumbeldore.search.settings import SamplerSettings
from gumbeldore.search.stepping import StepAndReconsider

TSP_SETTINGS = CATALOGUE["tsp"].settings("small")


def test_a_file_changes_only_what_it_names(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text("[training]\nepochs = 7\n[sampler]\nsigma = 1\n[policy]\nd = 32\n")
    settings = merged(TSP_SETTINGS, read_settings(path))
    assert (settings.training.epochs, settings.sampler.sigma, settings.policy.d) == (7, 1.0, 32)
    assert settings.training.batches == TSP_SETTINGS.training.batches


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trainig": {}}, "Did you mean `training`"),
        ({"training": {"epoch": 3}}, "Did you mean `training.epochs`"),
        ({"training": {"epochs": "many"}}, "`training.epochs` must be of type int, got 'many'"),
        ({"training": {"epochs": True}}, "`training.epochs` must be of type int"),
        ({"training": {"epochs": 0}}, "`epochs` must be an integer of at least 1, got 0"),
        ({"sampler": {"beam_width": 0}}, "`beam_width` must be an integer of at least 1, got 0"),
        ({"sampler": {"p_min": 1.5}}, "must lie in \\(0, 1\\], got 1.5"),
        ({"sampler": {"method": "magic"}}, "`sampler.method` must be one of"),
        ({"problem": {"cities": 2}}, "`cities` must be at least 3, got 2"),
    ],
)
def test_unknown_names_and_wrong_values_are_refused_with_a_hint(changes, message):
    with pytest.raises(SettingsError, match=message):
        merged(TSP_SETTINGS, changes)


def test_settings_survive_the_way_through_json():
    assert merged(TSP_SETTINGS, as_plain(TSP_SETTINGS)) == TSP_SETTINGS


@pytest.mark.parametrize("name", ["absent.toml", "wrong.yaml"])
def test_a_file_that_cannot_be_settings_is_named(tmp_path, name):
    if name.startswith("wrong"):
        (tmp_path / name).write_text("")
    with pytest.raises(SettingsError, match=name):
        read_settings(tmp_path / name)


def test_broken_syntax_is_reported_with_its_place(tmp_path):
    (tmp_path / "a.toml").write_text("[training\n")
    with pytest.raises(SettingsError, match="line 1"):
        read_settings(tmp_path / "a.toml")


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=lambda e: e.name)
def test_every_preset_of_every_problem_is_valid(entry):
    wanted = {"small", "paper"} if entry.kit.published or entry.name == "gomoku" else {"small"}
    assert wanted <= set(entry.presets())
    for preset in entry.presets():
        assert isinstance(entry.settings(preset), RunSettings)


def test_an_unknown_preset_lists_the_known_ones():
    with pytest.raises(SettingsError, match="paper"):
        CATALOGUE["tsp"].settings("huge")


def test_the_nucleus_sets_in_at_its_epoch():
    settings = SamplerSettings(p_min=0.95, p_min_from_epoch=3)
    assert settings.build(2).nucleus == (1.0, 1.0)
    assert settings.build(3).nucleus == (0.95, 1.0)


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        ("gumbeldore", Gumbeldore),
        ("theory", TheoryGumbeldore),
        ("without-replacement", StochasticBeamSearch),
        ("with-replacement", WithReplacement),
        ("step", StepAndReconsider),
        ("adaptive", Adaptive),
    ],
)
def test_every_method_builds_its_sampler(method, kind):
    assert type(SamplerSettings(method=method).build()) is kind


def test_a_training_may_leave_the_search_to_itself_and_use_variants():
    gumbeldore = SamplerSettings(sigma="auto", p_min="auto", augmentations=4).build()
    assert (gumbeldore.sigma, gumbeldore.nucleus, gumbeldore.augmentations) == ("auto", "auto", 4)
    stepping = SamplerSettings(method="step", beam_width=8, step=5, sigma=0.0, p_min=0.8, augmentations=2).build()
    assert (stepping.beam_width, stepping.step, stepping.sigma, stepping.nucleus, stepping.augmentations) == (8, 5, 0.0, 0.8, 2)
    assert SamplerSettings(method="adaptive", beam_width=16, rounds=3).build().sequences == 48


def test_the_papers_tsp_settings_are_the_papers():
    paper = CATALOGUE["tsp"].settings("paper")
    assert as_plain(paper.policy) == {
        "d": 128,
        "layers": 9,
        "heads": 8,
        "ff": 512,
        "features": [],
    }
    assert (paper.training.instances, paper.training.batches, paper.training.batch_size) == (1000, 1000, 1024)
    assert (paper.sampler.beam_width, paper.sampler.rounds, paper.sampler.sigma) == (32, 4, 0.3)
    assert paper.sampler.build(500).nucleus == (1.0, 1.0)
    assert paper.sampler.build(501).nucleus == (0.95, 1.0)
    assert paper.training.learning_rate == 2e-4
