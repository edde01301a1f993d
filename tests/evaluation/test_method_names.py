"""How samplers and baselines are named on the command line."""

from __future__ import annotations

import pytest
from kits import KITS

from gumbeldore.errors import SettingsError
from gumbeldore.evaluation.method_names import baseline_named, sampler_named
from gumbeldore.kits.solver import Limit, SolverError
from gumbeldore.search.adaptive import Adaptive
from gumbeldore.search.advantage import outcome
from gumbeldore.search.presets import PRESETS
from gumbeldore.search.replacement import WithReplacement
from gumbeldore.search.samplers import BeamSearch, Greedy, Gumbeldore, StochasticBeamSearch, TheoryGumbeldore
from gumbeldore.search.stepping import StepAndReconsider


@pytest.mark.parametrize(
    ("text", "sampler"),
    [
        ("greedy", Greedy()),
        ("beam:16", BeamSearch(16)),
        ("wr:128,p=0.9", WithReplacement(128, nucleus=0.9)),
        ("wor:16x1,p=0.8", StochasticBeamSearch(16, 1, nucleus=(0.8, 0.8))),
        ("gd:32x4", Gumbeldore(32, 4)),
        ("gd:32x4,sigma=0.05,p=0.95..1", Gumbeldore(32, 4, nucleus=(0.95, 1.0), sigma=0.05)),
        ("gd:16x4,sigma=auto,p=auto,augmentations=8", Gumbeldore(16, 4, nucleus="auto", sigma="auto", augmentations=8)),
        ("theory:8x2,sigma=1", TheoryGumbeldore(8, 2, sigma=1.0)),
        ("step:32x10,p=0.8", StepAndReconsider(32, 10, nucleus=0.8)),
        ("adaptive:64", Adaptive(64)),
        ("adaptive,evaluations=1000", Adaptive(evaluations=1000)),
        ("adaptive:64,evaluations=1000", Adaptive(64, 1000)),
        ("preset:best", PRESETS["best"]),
        ("fast", PRESETS["fast"]),
        ("adaptive,effort=64,memory=100", Adaptive(effort=64, memory=100 << 20)),
        ("adaptive", Adaptive(128)),
        ("outcome:16x4,sigma=5", Gumbeldore(16, 4, sigma=5.0, advantage=outcome)),
        ("gd:8x2,first=beam,transpositions=off", Gumbeldore(8, 2, first_round_deterministic=True, transpositions=False)),
        ("step:8x2,first=sample", StepAndReconsider(8, 2, first_round_deterministic=False)),
        ("wr:8,augmentations=3", WithReplacement(8, augmentations=3)),
    ],
)
def test_names_of_samplers_are_the_samplers_that_one_builds_in_python(text, sampler):
    found, nearest = sampler_named(text)
    assert found == sampler
    assert nearest is None


def test_any_sampler_may_be_restricted_to_near_nodes():
    assert sampler_named("greedy,nearest=100") == (Greedy(), 100)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gready", "Unknown sampler `gready` in `gready`. Samplers look like greedy, beam:16"),
        ("beam", "`beam` must have a size as in `beam:16`, got 'none'"),
        ("gd:32", "`gd:32` must have a size as in `gd:32x4`, got '32'"),
        ("gd:32x4x2", "must have a size"),
        (
            "gd:32x4,sgma=1",
            "Unknown option `sgma` in `gd:32x4,sgma=1`. Known there: sigma, p, from, first, augmentations, memory, transpositions.",
        ),
        ("gd:32x4,sigma", "`sigma` in `gd:32x4,sigma` must have the form option=value"),
        ("gd:32x4,sigma=much", "`sigma` in `gd:32x4,sigma=much` must be a number, got 'much'"),
        ("gd:32x4,p=0.9,p=1", "`p` occurs twice"),
        ("wor:4x1,p=0.9..", "must be a number, got ''"),
        ("wor:4x1,p=7", "`nucleus` values must lie in"),
        ("beam:0", "`beam_width` must be an integer of at least 1"),
        ("greedy:3", "`greedy` has no size"),
        ("gd:4x2,p=0.9..0.1", "the nucleus grows from the first round to the last, got p=0.9..0.1. Swap them."),
        ("gd:4x2,first=greedy", "`first` in `gd:4x2,first=greedy` must be beam or sample, got 'greedy'"),
        ("beam:4,p=0.9", "Unknown option `p` in `beam:4,p=0.9`. Known there: augmentations"),
        ("adaptive,effort=0", "`effort` must be at least 1"),
        ("greedy,nearest=1,nearest=2", "`nearest` occurs twice"),
        ("greedy,nearest=2.5", "`nearest` in `greedy,nearest=2.5` must be a whole number, got"),
        ("adaptive:64,augmentations=2", "this sampler chooses them itself"),
        ("preset", "`preset` needs a name: preset:fast"),
        ("preset:bst", "Unknown preset `bst`"),
        ("", "Unknown sampler"),
    ],
)
def test_a_wrong_sampler_is_named_with_the_rule(text, message):
    with pytest.raises(SettingsError) as error:
        sampler_named(text)
    assert message in str(error.value)


def test_baselines_take_seconds_or_work_and_show_the_limit_they_have():
    assert baseline_named(KITS["jssp"], "spt").name == "spt"
    assert baseline_named(KITS["tsp"], "pyvrp:0.5s").limit == Limit(0.5)
    assert baseline_named(KITS["tsp"], "pyvrp:work=1e3").effort == Limit(None, 1000)
    assert baseline_named(KITS["tsp"], "pyvrp").name == "pyvrp:2s"
    assert baseline_named(KITS["tsp"], "local-search").name == "local-search:work=10"
    assert baseline_named(KITS["tsp"], "local-search").digest == baseline_named(KITS["tsp"], "local-search:work=10").digest


@pytest.mark.parametrize(
    ("problem", "text", "message"),
    [
        ("tsp", "concorde", "Unknown baseline `concorde` for tsp. Known: nearest-neighbour"),
        ("tsp", "pyvrp:2", "The limit of `pyvrp:2` must be seconds or work, as in NAME, NAME:2s"),
        ("tsp", "pyvrp:", "must be seconds or work"),
        ("tsp", "pyvrp:0s", "The limit of `pyvrp:0s` is none: `seconds` must be a positive number"),
        ("tsp", "pyvrp:1.2.3s", "The limit of `pyvrp:1.2.3s` is none"),
        ("jssp", "spt:2s", "`spt:2s` takes no limit"),
        ("gomoku", "spt", "There are no baselines for `gomoku`"),
    ],
)
def test_a_wrong_baseline_is_named_with_the_rule(problem, text, message):
    with pytest.raises(SettingsError) as error:
        baseline_named(KITS[problem], text)
    assert message in str(error.value)


def test_a_baseline_that_is_not_installed_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("gumbeldore.evaluation.method_names.find_spec", lambda name: None)
    with pytest.raises(SolverError, match="needs pyvrp, which is not installed: pip install"):
        baseline_named(KITS["tsp"], "pyvrp")
