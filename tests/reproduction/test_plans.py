"""Plans as data: what is needed for what, and that every step of every plan at every scale can be done."""

from __future__ import annotations

import pytest

from gumbeldore.errors import SettingsError
from gumbeldore.evaluation.method_names import sampler_named
from gumbeldore.kits.registry import kit_named
from gumbeldore.reproduction import EXPERIMENTS, SCALES, Evaluate, Expert, Imitate, Instances, Label, Method, Plan, Train
from gumbeldore.reproduction.steps import digest, train_with_checkpoint
from gumbeldore.reproduction.workshop import settings_of
from gumbeldore.runs.presets import SUPERVISED

FEW = Instances("few", standard="tsp20", first=2)


def plan() -> Plan:
    early, late = train_with_checkpoint(Train("a", "tsp", "small", 4), 1, "intermediate")
    label = Label("labels", "tsp", FEW, Expert(1.0))
    learned = Imitate("b", "tsp", "supervised-small", 2, "labels")
    first = Evaluate("one", "tsp", (FEW,), (Method("early", "a-intermediate", "greedy"),))
    second = Evaluate("two", "tsp", (FEW,), (Method("late", "a", "greedy"), Method("learned", "b", "greedy")))
    return Plan((early, late, label, learned, first, second), "")


def names(given: Plan) -> list[str]:
    return [step.name for step in given.steps]


def test_a_step_whose_needs_nobody_fulfils_is_refused():
    with pytest.raises(SettingsError, match="The step `one` needs `a-intermediate`, which no step before it makes"):
        Plan(plan().steps[2:], "")


def test_two_steps_of_one_name_are_refused():
    with pytest.raises(SettingsError, match="`labels` occurs twice"):
        Plan((Label("labels", "tsp", FEW, Expert(1.0)), Label("labels", "tsp", FEW, Expert(2.0))), "")


def test_a_part_comes_with_what_it_needs_and_nothing_else():
    assert names(plan().only(["one"])) == ["a-intermediate", "one"]
    assert names(plan().only(["two"])) == ["a-intermediate", "a", "labels", "b", "two"]
    assert names(plan().only([])) == names(plan())


def test_a_part_that_is_none_is_refused():
    with pytest.raises(SettingsError, match="`only` must name parts of one, two, got three"):
        plan().only(["three"])


def test_a_given_policy_is_not_trained_nor_are_its_labels_made():
    assert names(plan().given(["b"])) == ["a-intermediate", "a", "one", "two"]
    assert names(plan().only(["two"]).given(["a", "b"])) == ["two"]


def test_only_policies_of_the_plan_can_be_given():
    with pytest.raises(SettingsError, match=r"`use` must name policies of the plan \(a-intermediate, a, b\), got c"):
        plan().given(["c"])


def test_the_digest_of_a_step_changes_with_anything_it_says():
    step = Train("a", "tsp", "small", 4, {"sampler": {"sigma": 0.3}})
    others = [Train("a", "tsp", "small", 5, step.changes), Train("a", "tsp", "small", 4, {"sampler": {"sigma": 0.4}})]
    assert len({digest(other) for other in (step, *others)}) == 3
    assert digest(step) == digest(Train("a", "tsp", "small", 4, {"sampler": {"sigma": 0.3}}))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("what", EXPERIMENTS)
def test_every_step_names_settings_sets_and_samplers_that_exist(what, scale):
    for step in EXPERIMENTS[what].plan(scale).steps:
        if isinstance(step, Train | Imitate):
            assert settings_of(step).training.epochs == step.epochs
            assert step.preset.startswith(SUPERVISED) == isinstance(step, Imitate)
            continue
        kit = kit_named(step.problem)
        for given in step.sets if isinstance(step, Evaluate) else (step.instances,):
            assert bool(given.standard) + bool(given.recipe) + bool(given.labels) == 1
            assert not given.standard or given.standard in kit.standard
            assert not given.recipe or kit.generator(**given.recipe)
            assert not given.labels or given.first  # their number must be known before they are made
        for method in step.methods if isinstance(step, Evaluate) else ():
            sampler_named(method.sampler)


def test_a_policy_of_one_name_is_trained_alike_for_all_experiments_of_a_scale():
    """They share a folder."""
    for scale in SCALES:
        known: dict[str, str] = {}
        for experiment in EXPERIMENTS.values():
            for step in experiment.plan(scale).steps:
                if not isinstance(step, Evaluate):
                    assert known.setdefault(step.name, digest(step)) == digest(step), (scale, step.name)


@pytest.mark.parametrize("what", EXPERIMENTS)
def test_no_training_goes_beyond_the_paper_unseen(what):
    """What docs/how-to/train.md offers beyond it stays off, at every scale, or the caption says so."""
    for scale in SCALES:
        plan = EXPERIMENTS[what].plan(scale)
        for step in plan.steps:
            if isinstance(step, Train | Imitate):
                settings = settings_of(step)
                used = settings.training
                assert (used.local_search, used.relabel) == (0, 0), step.name
                assert getattr(settings.policy, "successor_weight", 0) == 0, step.name
                assert used.final_learning_rate is None
                assert not used.ema or f"beyond the paper, a running mean of the weights (ema {used.ema})" in plan.caption
                assert not used.ema or scale == "cpu", step.name


def test_the_paper_scale_is_the_setting_of_the_paper():
    steps = {step.name: step for step in EXPERIMENTS["table-1"].plan("paper").steps}
    tsp, wor = settings_of(steps["tsp-gd"]), settings_of(steps["tsp-wor"])
    assert (tsp.problem.cities, tsp.policy.d, tsp.policy.layers, tsp.training.epochs) == (100, 128, 9, 2200)
    assert (tsp.sampler.sigma, settings_of(steps["cvrp-gd"]).sampler.sigma) == (0.3, 3.0)
    assert (tsp.sampler.p_min, tsp.sampler.p_min_from_epoch) == (0.95, 501)
    assert (wor.sampler.method, wor.sampler.p_min, wor.sampler.beam_width, wor.sampler.rounds) == (
        "without-replacement",
        1,
        32,
        4,
    )
    sampling = {step.name: step for step in EXPERIMENTS["sampling"].plan("paper").steps}
    assert (sampling["tsp-late"].repeats, sampling["tsp-late"].sets[0].first) == (20, 100)
    assert {step.repeats for step in EXPERIMENTS["theory"].plan("paper").steps if isinstance(step, Evaluate)} == {10}
    assert len([step for step in EXPERIMENTS["gomoku"].plan("paper").steps if "-gd-" in step.name]) == 10
