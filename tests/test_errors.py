"""Bad input: a clear error that names its cause, before hours are lost."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from toys import TablePolicy, TreeProblem, TreeState, random_trees

from gumbeldore.errors import ContractError, GumbeldoreError, SettingsError
from gumbeldore.problem import replay
from gumbeldore.search.replacement import WithReplacement
from gumbeldore.search.samplers import BeamSearch, Greedy, Gumbeldore, StochasticBeamSearch, TheoryGumbeldore

PROBLEM = TreeProblem()
SAMPLERS = [StochasticBeamSearch(3, 2), Gumbeldore(3, 2), TheoryGumbeldore(3, 2), BeamSearch(3), Greedy(), WithReplacement(4)]
IDS = [type(sampler).__name__ for sampler in SAMPLERS]


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def state() -> TreeState:
    return random_trees(6, 3, 3, generator=generator(), forced=0.0, leaf=0.0, keep=1.0)


def solve(sampler, problem=PROBLEM, policy=None, given: TreeState | None = None):
    return sampler(problem, policy or TablePolicy(), given if given is not None else state(), generator=generator())


@pytest.mark.parametrize("sampler", SAMPLERS, ids=IDS)
class TestContract:
    @pytest.mark.parametrize("wrong", [torch.nan, torch.inf, -torch.inf], ids=str)
    @pytest.mark.parametrize("node", [0, 2], ids=["at the root", "deeper"])
    def test_logits_that_are_not_finite(self, sampler, wrong, node):
        given = state()
        given.logits[:, 1:4, 1] = given.logits[:, 1:4, 1] if node == 0 else wrong
        given.logits[4, 0, 1] = wrong if node == 0 else given.logits[4, 0, 1]
        with pytest.raises(
            ContractError, match=r"`TablePolicy` returned logits that are not finite.*row \d+ has \[.*(nan|inf)"
        ):
            solve(sampler, given=given)

    def test_logits_too_far_apart_for_their_type(self, sampler):
        given = state()
        logits = given.logits.to(torch.float32)
        logits[:, 0] = torch.tensor([3e38, -3e38, 0.0])
        with pytest.raises(ContractError, match=r"too far apart for torch\.float32"):
            solve(sampler, given=dataclasses.replace(given, logits=logits))

    @pytest.mark.usefixtures("unchecked")
    @pytest.mark.parametrize("shape", [(6, 4), (6, 3, 1), (6,)], ids=str)
    def test_logits_of_the_wrong_shape(self, sampler, shape):
        class Wrong(TablePolicy):
            def __call__(self, state, context):
                return torch.zeros(shape)

        with pytest.raises(ContractError, match=r"`Wrong` must return logits of shape \(6, 3\), got \(6"):
            solve(sampler, policy=Wrong())

    @pytest.mark.parametrize("node", [0, 2], ids=["at the root", "deeper"])
    def test_a_mask_without_an_action(self, sampler, node):
        given = state()
        given.allowed[:3, 1:4] &= node == 0
        given.allowed[2, 0] &= node != 0
        with pytest.raises(ContractError, match=r"`TreeProblem\.mask` allows no action in \d+ rows.*`dead_end_objective`"):
            solve(sampler, given=given)

    @pytest.mark.parametrize("wrong", [torch.nan, torch.inf, -torch.inf], ids=str)
    def test_an_objective_that_is_not_finite(self, sampler, wrong):
        given = state()
        given.value[:] = wrong
        with pytest.raises(ContractError, match=rf"`TreeProblem\.objective` must be finite for finished rows, got {wrong}"):
            solve(sampler, given=given)

    def test_a_state_without_rows(self, sampler):
        with pytest.raises(SettingsError, match="`state` must hold at least one row, got none"):
            solve(sampler, given=state().rows(slice(0, 0)))

    def test_randomness_that_is_missing(self, sampler):
        with pytest.raises(SettingsError, match="needs randomness: pass `generator="):
            sampler(PROBLEM, TablePolicy(), state())

    def test_seeds_that_are_too_few(self, sampler):
        with pytest.raises(SettingsError, match=r"`seeds` must hold one seed per row \(6\), got 5"):
            sampler(PROBLEM, TablePolicy(), state(), seeds=torch.arange(5))


class TestSettings:
    @pytest.mark.parametrize("kind", [StochasticBeamSearch, Gumbeldore, TheoryGumbeldore, BeamSearch])
    @pytest.mark.parametrize("width", [0, -1])
    def test_a_beam_without_room(self, kind, width):
        with pytest.raises(SettingsError, match=f"`beam_width` must be an integer of at least 1, got {width}"):
            kind(beam_width=width)

    @pytest.mark.usefixtures("unchecked")
    def test_a_beam_that_is_not_a_whole_number(self):
        with pytest.raises(SettingsError, match="`beam_width` must be an integer"):
            StochasticBeamSearch(beam_width=2.5)  # type: ignore[arg-type]

    def test_a_greedy_beam_of_two(self):
        with pytest.raises(SettingsError, match="Use `BeamSearch`"):
            Greedy(beam_width=2)

    @pytest.mark.parametrize("kind", [StochasticBeamSearch, Gumbeldore, TheoryGumbeldore])
    def test_no_rounds(self, kind):
        with pytest.raises(SettingsError, match="`rounds` must be an integer of at least 1, got 0"):
            kind(rounds=0)

    @pytest.mark.parametrize("kind", [StochasticBeamSearch, Gumbeldore, BeamSearch, WithReplacement])
    def test_no_memory(self, kind):
        with pytest.raises(SettingsError, match="`memory` must be an integer of at least 1, got 0"):
            kind(memory=0)

    def test_no_samples(self):
        with pytest.raises(SettingsError, match="`samples` must be an integer of at least 1, got 0"):
            WithReplacement(samples=0)

    @pytest.mark.parametrize("p", [0.0, -0.1, 1.0001, float("nan"), float("inf")])
    def test_a_nucleus_outside_its_range(self, p):
        for nucleus in ((p, 1.0), (0.5, p)):
            with pytest.raises(SettingsError, match=r"`nucleus` values must lie in \(0, 1\], got"):
                Gumbeldore(nucleus=nucleus)
        with pytest.raises(SettingsError, match=r"`nucleus` must lie in \(0, 1\], got"):
            WithReplacement(nucleus=p)

    @pytest.mark.usefixtures("unchecked")
    @pytest.mark.parametrize("nucleus", [0.8, (0.8,), (0.7, 0.8, 0.9)])
    def test_a_nucleus_that_is_not_a_pair(self, nucleus):
        with pytest.raises(SettingsError, match="`nucleus` must be a pair"):
            StochasticBeamSearch(nucleus=nucleus)

    @pytest.mark.parametrize("sigma", [-0.1, float("nan"), float("inf")])
    def test_a_step_size_outside_its_range(self, sigma):
        for kind in (Gumbeldore, TheoryGumbeldore):
            with pytest.raises(SettingsError, match="`sigma` must be finite and at least 0, got"):
                kind(sigma=sigma)

    def test_an_unknown_setting(self):
        with pytest.raises(TypeError, match="beam_with"):
            Gumbeldore(beam_with=3)  # type: ignore[call-arg]

    def test_a_setting_changed_later(self):
        with pytest.raises(dataclasses.FrozenInstanceError):
            Gumbeldore().sigma = 1.0  # type: ignore[misc]


class TestReplay:
    @pytest.mark.parametrize("steps", [[4] * 6, [-1] + [0] * 5])
    def test_more_or_fewer_steps_than_there_are(self, steps):
        with pytest.raises(ContractError, match=r"`steps` must lie in 0 \.\. 3, got"):
            replay(PROBLEM, state(), torch.zeros(6, 3, dtype=torch.long), torch.tensor(steps))


def test_all_errors_can_be_caught_as_one_and_as_value_errors():
    for error in (ContractError, SettingsError):
        assert issubclass(error, GumbeldoreError)
        assert issubclass(error, ValueError)
