"""The studies of learning: what their recipes switch on, and where sequences of an instance part. Pieces of them, not the whole."""

from __future__ import annotations

import math

import pytest
import torch
from branching import KINDS, Forks, fork_losses, standardised
from learning import CASES, recipes, settings_of, table

from gumbeldore.problems import TSP
from gumbeldore.search.samplers import Gumbeldore
from gumbeldore.training import TrainingSettings

TRAINED = [(case, recipe) for case, (problem, _) in CASES.items() for recipe in recipes(problem)]
OFF = (
    "local_search",
    "relabel",
    "replay_window",
    "ema",
    "final_learning_rate",
    "generating",
)


@pytest.mark.parametrize(("case", "recipe"), TRAINED)
def test_every_recipe_of_every_case_has_settings(case: str, recipe: str) -> None:
    settings, problem = settings_of(case, recipe, seed=3), CASES[case][0]
    routes, best = problem != "jssp", recipe == "all"
    assert settings.training.seed == 3
    assert settings.training.local_search == (0 if recipe == "plain" or (routes and best) else 4)
    framed = routes and recipe in ("frame", "bounds", "loads", "savings", "all")
    assert settings.training.replay_window == (8 if framed or recipe == "window" else None)
    features = settings.policy.features
    assert ("frame" in features) == framed
    assert ("bounds" in features) == (problem != "cvrp" and recipe in ("bounds", "all"))
    if problem == "cvrp":
        assert settings.problem.order == ("given" if recipe == "all" else "fullest")
        assert ("loads" in features, "savings" in features) == (recipe == "loads", recipe in ("savings", "all"))
    if problem == "jssp":
        assert (settings.policy.actions == "active") == (recipe in ("active", "all"))


@pytest.mark.parametrize("case", list(CASES))
def test_the_plain_recipe_has_nothing_of_what_came_after_the_paper(case: str) -> None:
    settings, paper = settings_of(case, "plain", seed=0), TrainingSettings()
    assert {name: getattr(settings.training, name) for name in OFF} == {name: getattr(paper, name) for name in OFF}
    assert settings.policy.features == ()
    assert (getattr(settings.policy, "actions", "all"), getattr(settings.policy, "successor_weight", 0)) == ("all", 0)
    assert (settings.sampler.method, settings.sampler.p_min) == ("gumbeldore", 1.0)


def test_a_table_has_the_mean_and_the_spread_of_the_best_gaps() -> None:
    runs = [[{"seconds": 1, "gap": 5.0}, {"seconds": 2, "gap": 9.0}], [{"seconds": 1, "gap": 7.0}]]
    assert "| 6.00 ± 1.41 % (2) |" in table({"tsp50": {"plain": runs}}, {"tsp50": 0.5})
    assert "| the rule alone | 0.50 % |" in table({"tsp50": {"plain": runs}}, {"tsp50": 0.5})
    assert "| 5.00 % (1) |" in table({"tsp50": {"plain": runs[:1]}}, {"tsp50": None})


class Uniform:
    """A policy without preferences."""

    def prepare(self, state: object) -> None:
        return None

    def __call__(self, state: object, context: None) -> torch.Tensor:
        return torch.zeros(state.visited.shape)  # type: ignore[attr-defined]


def test_forks_are_the_prefixes_that_sequences_leave_by_different_actions() -> None:
    problem, generator = TSP(6), torch.Generator().manual_seed(1)
    state = problem.generate(3, generator=generator)
    solutions = Gumbeldore(beam_width=16, rounds=2)(problem, Uniform(), state, generator=generator)
    forks, score = Forks.of(state, solutions, 6), standardised(solutions)
    expected: dict[tuple[float, ...], dict[int, float]] = {}
    for instance in range(3):
        for sequence, value in zip(solutions.actions[instance].tolist(), score[instance].tolist(), strict=True):
            for depth, action in enumerate(sequence):
                known = expected.setdefault((instance, *sequence[:depth]), {})
                known[action] = max(known.get(action, -math.inf), value)
    expected = {prefix: values for prefix, values in expected.items() if len(values) > 1}
    instance = (forks.state.coordinates[:, None] == state.coordinates).flatten(2).all(2).int().argmax(1)
    found = {
        (int(instance[i]), *forks.actions[i, : forks.steps[i]].tolist()): {
            action: value for action, value in enumerate(forks.value[i].tolist()) if value > -math.inf
        }
        for i in range(len(forks.steps))
    }
    assert found == expected
    assert bool((forks.steps.diff() >= 0).all())


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("best", "several")])
def test_a_policy_that_prefers_the_best_branch_has_the_smaller_loss(kind: str) -> None:
    value = torch.tensor([[1.0, -1.0, -torch.inf, 0.5]])
    mask = torch.tensor([[True, True, True, True]])
    right, wrong = torch.tensor([[2.0, -2.0, 0.0, 1.0]]), torch.tensor([[-2.0, 2.0, 0.0, 1.0]])
    assert fork_losses(kind, right, mask, value) < fork_losses(kind, wrong, mask, value)
