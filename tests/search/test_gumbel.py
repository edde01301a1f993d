"""The maths of Gumbel sampling: randomness by hashing, Gumbels with a given maximum, nucleus, weights."""

from __future__ import annotations

from decimal import Decimal, localcontext

import pytest
import torch
from scipy import stats
from toys import high_precision, truncate

from gumbeldore.search import gumbel

INF = torch.inf
P_VALUE = 1e-4


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def uniforms(seeds: torch.Tensor, stream: tuple[int, ...], shape: tuple[int, ...]) -> torch.Tensor:
    return (-gumbel.exponentials(seeds, stream, shape)).exp()


def chi_square_p(cell: torch.Tensor, cells: int) -> float:
    return float(stats.chisquare(torch.bincount(cell, minlength=cells).numpy()).pvalue)


class TestHash:
    @pytest.mark.parametrize(
        "sample",
        [
            lambda: uniforms(torch.tensor([7]), (0,), (200_000,)),
            lambda: uniforms(torch.arange(200_000), (0,), (1,)),
            lambda: uniforms(torch.arange(200_000), (3, 5), (1,)),
            lambda: uniforms(torch.arange(2000) << 40, (1, 2), (100,)),
            lambda: torch.cat([uniforms(torch.tensor([11]), (i, j), (50,)) for i in range(20) for j in range(20)]),
        ],
        ids=["one seed", "consecutive seeds", "consecutive seeds of a nested stream", "seeds in high bits", "many streams"],
    )
    def test_numbers_are_uniform(self, sample):
        u = sample().flatten()
        assert stats.kstest(u.numpy(), "uniform").pvalue > P_VALUE
        assert chi_square_p((u * 64).long(), 64) > P_VALUE
        assert chi_square_p((u * 2**30).long() % 64, 64) > P_VALUE  # lower bits too

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ((torch.arange(50_000), (0,)), (torch.arange(50_000) + 1, (0,))),
            ((torch.arange(50_000), (0,)), (torch.arange(50_000), (1,))),
            ((torch.arange(50_000), (0,)), (torch.arange(50_000), (0, 0))),
            ((torch.arange(50_000), (2,)), (torch.arange(50_000), (2, 0))),
            ((torch.arange(50_000), (0, 1)), (torch.arange(50_000), (1, 0))),
            ((torch.arange(50_000), (1, 3)), (torch.arange(50_000), (1, 4))),
        ],
        ids=["seeds", "rounds", "root and first level", "root and first level later", "swapped stream", "depths"],
    )
    def test_streams_are_independent(self, first, second):
        """Pairs from two streams fill a 16 x 16 grid evenly, also with the position shifted by one."""
        u, v = uniforms(*first, (4,)), uniforms(*second, (4,))
        for a, b in ((u, v), (u[:, :3], v[:, 1:]), (u[:, 1:], v[:, :3])):
            assert chi_square_p((a * 16).long().flatten() * 16 + (b * 16).long().flatten(), 256) > P_VALUE

    def test_positions_are_independent(self):
        u = uniforms(torch.arange(50_000), (0,), (3,))
        for i, j in ((0, 1), (0, 2), (1, 2)):
            assert chi_square_p((u[:, i] * 16).long() * 16 + (u[:, j] * 16).long(), 256) > P_VALUE

    def test_no_two_numbers_are_equal(self):
        seeds = torch.randint(2**63 - 1, (300,), generator=generator())
        numbers = [gumbel.exponentials(seeds, stream, (40, 10)).flatten() for stream in ((0,), (1,), (0, 0), (0, 1), (1, 0))]
        together = torch.cat(numbers)
        assert len(together.unique()) == len(together)

    def test_equal_seeds_give_equal_numbers(self):
        drawn = gumbel.gumbels(torch.tensor([5, 9, 5]), (1, 2), (3, 4))
        assert torch.equal(drawn[0], drawn[2])
        assert not torch.equal(drawn[0], drawn[1])

    def test_numbers_do_not_depend_on_what_shares_the_batch(self):
        seeds = torch.randint(2**63 - 1, (37,), generator=generator())
        whole = gumbel.gumbels(seeds, (2, 7), (5, 3))
        for i in range(37):
            assert torch.equal(gumbel.gumbels(seeds[i : i + 1], (2, 7), (5, 3))[0], whole[i])

    def test_the_given_seeds_are_left_alone(self):
        seeds = torch.arange(10)
        gumbel.gumbels(seeds, (0, 1), (3,))
        assert torch.equal(seeds, torch.arange(10))

    @pytest.mark.parametrize("bits", [0, -1])
    def test_extreme_bits_give_finite_gumbels(self, monkeypatch, bits):
        monkeypatch.setattr(gumbel, "mix", lambda x: torch.full_like(x, bits))
        assert bool(gumbel.gumbels(torch.arange(2), (0,), (3,)).isfinite().all())
        assert bool((gumbel.exponentials(torch.arange(2), (0,), (3,)) > 0).all())

    def test_gumbels_follow_the_standard_gumbel_law(self):
        drawn = gumbel.gumbels(torch.arange(1000), (4,), (100,)).flatten()
        assert stats.kstest(drawn.numpy(), "gumbel_r").pvalue > P_VALUE


class TestGumbelsWithMaximum:
    location = torch.tensor([0.5, 0.2, 0.2, 0.1], dtype=torch.float64).log() - 0.7

    def draw(self, maximum: torch.Tensor, location: torch.Tensor | None = None, seed: int = 0) -> torch.Tensor:
        rows = len(maximum)
        location = (self.location if location is None else location).expand(rows, -1)
        noise = gumbel.gumbels(torch.arange(rows) + 10**9 * seed, (0,), (location.shape[1],))
        return gumbel.gumbels_with_maximum(location, noise, maximum)

    @pytest.mark.parametrize("shift", [0.0, 1e5, -1e5, -1e300])
    @pytest.mark.parametrize("target", [0.0, 3.7, -11.3, 40.0, -1e5, -1e8])
    def test_the_maximum_is_exact(self, shift, target):
        maximum = torch.full((200,), target, dtype=torch.float64)
        drawn = self.draw(maximum, self.location + shift)
        assert torch.equal(drawn.amax(1), maximum)
        assert not bool(drawn.isnan().any())

    @pytest.mark.parametrize("target", [-1.5, 0.3, 4.0])
    def test_the_law_is_that_of_gumbels_truncated_at_the_maximum(self, target):
        """Instance the maximum, who attains it is categorical and the others are independent truncated Gumbels."""
        maximum = torch.full((40_000,), target, dtype=torch.float64)
        drawn = self.draw(maximum)
        winner = drawn.argmax(1)
        share = torch.softmax(self.location, 0) * len(maximum)
        assert stats.chisquare(torch.bincount(winner, minlength=4).numpy(), share.numpy()).pvalue > P_VALUE
        law = stats.gumbel_r(loc=self.location.numpy())
        quantile = torch.from_numpy(law.cdf(drawn.numpy()) / law.cdf(maximum[:, None].numpy()))
        for action in range(4):
            others = quantile[winner != action, action]
            assert stats.kstest(others.numpy(), "uniform").pvalue > P_VALUE
        rest = quantile[winner == 0][:, 1:]
        cell = (rest[:, 0] * 8).long().clamp(max=7) * 8 + (rest[:, 1] * 8).long().clamp(max=7)
        assert chi_square_p(cell, 64) > P_VALUE

    def test_with_a_random_maximum_they_are_independent_gumbels_again(self):
        seeds = torch.arange(40_000)
        maximum = gumbel.gumbels(seeds, (9,), (1,)).squeeze(1) + torch.logsumexp(self.location, 0)
        drawn = self.draw(maximum)
        for action in range(4):
            law = stats.gumbel_r(loc=float(self.location[action]))
            assert stats.kstest(drawn[:, action].numpy(), law.cdf).pvalue > P_VALUE
        u = torch.from_numpy(stats.gumbel_r(loc=self.location.numpy()).cdf(drawn.numpy()))
        for i, j in ((0, 1), (1, 2), (0, 3)):
            assert chi_square_p((u[:, i] * 8).long() * 8 + (u[:, j] * 8).long(), 64) > P_VALUE

    def test_shifting_locations_and_maximum_shifts_the_result(self):
        maximum = torch.linspace(-3, 3, 500, dtype=torch.float64)
        near, far = self.draw(maximum), self.draw(maximum - 1e5, self.location - 1e5)
        torch.testing.assert_close(far + 1e5, near, rtol=0, atol=1e-9)

    def test_an_action_of_vanishing_probability_still_gets_its_gumbel(self):
        """exp(-800) is 0 in float64: the law must survive in logarithms."""
        location = torch.tensor([0.0, -800.0, -1e5], dtype=torch.float64)
        drawn = self.draw(torch.full((20_000,), 1.0, dtype=torch.float64), location)
        assert bool((drawn[:, 0] == 1.0).all())
        assert stats.kstest((drawn[:, 1] + 800).numpy(), "gumbel_r").pvalue > P_VALUE
        assert stats.kstest((drawn[:, 2] + 1e5).numpy(), "gumbel_r").pvalue > P_VALUE

    def test_impossible_actions_and_rows_stay_impossible(self):
        location = torch.tensor([[0.0, -INF, -1.0], [-INF, -INF, -INF], [-INF, -5.0, -INF], [0.0, 0.0, -INF]])
        maximum = torch.tensor([2.0, 2.0, 2.0, -INF], dtype=torch.float64)
        noise = gumbel.gumbels(torch.arange(4), (0,), (3,))
        drawn = gumbel.gumbels_with_maximum(location.double(), noise, maximum)
        assert not bool(drawn.isnan().any())
        assert bool((drawn[location == -INF] == -INF).all())
        assert drawn[2, 1] == 2.0
        assert bool((drawn[3] == -INF).all())


class TestLogarithms:
    values = (1e-300, 1e-20, 1e-12, 1e-5, 0.1, 0.5, 0.693, 0.6931472, 0.694, 1.0, 5.0, 30.0, 700.0)

    @pytest.mark.parametrize("x", values)
    def test_log1mexp_is_accurate(self, x):
        with localcontext(prec=700):
            truth = float((1 - (-Decimal(x)).exp()).ln())
        assert float(gumbel.log1mexp(torch.tensor(-x, dtype=torch.float64))) == pytest.approx(truth, rel=1e-14, abs=1e-308)

    def test_log1mexp_at_its_ends(self):
        ends = gumbel.log1mexp(torch.tensor([0.0, -INF], dtype=torch.float64))
        assert ends.tolist() == [-INF, 0.0]

    @pytest.mark.parametrize("x", [-6.0, -3.0, -1.0, 0.0, 0.3665, 1.0, 5.0, 9.99, 10.01, 12.0, 20.0, 29.9, 30.1, 50.0])
    def test_log_survival_is_accurate(self, x):
        with localcontext(prec=700):
            truth = float((1 - (-((-Decimal(x)).exp())).exp()).ln())
        assert float(gumbel.log_survival(torch.tensor(x, dtype=torch.float64))) == pytest.approx(truth, rel=1e-13, abs=1e-307)

    def test_log_survival_at_its_ends(self):
        x = torch.tensor([-INF, -1e5, -30.0, 1e5, 800.0, INF], dtype=torch.float64)
        assert gumbel.log_survival(x).tolist() == [0.0, 0.0, 0.0, -1e5, -800.0, -INF]

    def test_log_add_exp_is_the_same_wherever_an_element_stands(self):
        a, b = (torch.randn(1003, generator=generator(i), dtype=torch.float64) * 20 for i in (1, 2))
        whole = gumbel.log_add_exp(a, b)
        assert torch.equal(whole, torch.cat([gumbel.log_add_exp(x, y) for x, y in zip(a.split(1), b.split(1), strict=True)]))
        assert torch.equal(whole[1:], gumbel.log_add_exp(a[1:], b[1:]))
        assert torch.equal(whole[::3], gumbel.log_add_exp(a[::3], b[::3]))
        assert torch.equal(whole, gumbel.log_add_exp(b, a))
        torch.testing.assert_close(whole, torch.logaddexp(a, b), rtol=1e-15, atol=1e-15)

    def test_minus_infinity_is_neutral_in_log_add_exp(self):
        a = torch.tensor([-INF, 1.5, -INF, -1e5], dtype=torch.float64)
        b = torch.tensor([-INF, -INF, -2.5, -INF], dtype=torch.float64)
        assert gumbel.log_add_exp(a, b).tolist() == [-INF, 1.5, -2.5, -1e5]

    def test_normalise_keeps_impossible_rows(self):
        rows = torch.tensor([[0.0, -INF, 0.0], [-INF, -INF, -INF], [-1e5, -1e5, -INF]], dtype=torch.float64)
        half = -torch.log(torch.tensor(2.0, dtype=torch.float64))
        expected = torch.tensor([[half, -INF, half], [-INF, -INF, -INF], [half, half, -INF]], dtype=torch.float64)
        torch.testing.assert_close(gumbel.normalise(rows), expected, rtol=0, atol=2e-11)


class TestNucleus:
    @staticmethod
    def kept(probabilities: list[float], p: float) -> list[int]:
        result = gumbel.nucleus(torch.tensor(probabilities, dtype=torch.float64).log(), p)
        assert float(torch.logsumexp(result, 0)) == pytest.approx(0, abs=1e-14)
        return (result > -INF).nonzero().squeeze(1).tolist()

    def test_the_action_that_crosses_p_is_kept(self):
        assert self.kept([0.125, 0.5, 0.25, 0.125], 0.6) == [1, 2]
        assert self.kept([0.125, 0.5, 0.25, 0.125], 0.76) == [0, 1, 2]

    def test_nothing_more_is_kept_when_p_is_met_exactly(self):
        assert self.kept([0.125, 0.5, 0.25, 0.125], 0.5) == [1]
        assert self.kept([0.125, 0.5, 0.25, 0.125], 0.75) == [1, 2]

    def test_a_tiny_p_keeps_the_most_probable_action(self):
        assert self.kept([0.2, 0.3, 0.5], 1e-300) == [2]

    def test_ties_go_to_the_first_actions(self):
        assert self.kept([0.25, 0.25, 0.25, 0.25], 0.5) == [0, 1]

    def test_p_of_one_changes_nothing(self):
        log_prob = torch.randn(4, 5, generator=generator(), dtype=torch.float64)
        assert torch.equal(gumbel.nucleus(log_prob, 1.0), log_prob)

    def test_impossible_actions_and_rows_stay_impossible(self):
        log_prob = torch.tensor([[0.0, -INF, -INF], [-INF, -INF, -INF]], dtype=torch.float64)
        assert torch.equal(gumbel.nucleus(log_prob, 0.999999999), log_prob)

    @pytest.mark.parametrize("p", [0.1, 0.5, 0.8, 0.95, 0.9999])
    def test_it_equals_truncation_by_hand(self, p):
        log_prob = torch.log_softmax(torch.randn(60, 9, generator=generator(3), dtype=torch.float64) * 2, -1)
        log_prob[::4, 2] = -INF
        log_prob = gumbel.normalise(log_prob)
        result = gumbel.nucleus(log_prob, p)
        for row, given in zip(result.tolist(), log_prob.tolist(), strict=True):
            with high_precision():
                expected = truncate({a: Decimal(x).exp() for a, x in enumerate(given) if x > -INF}, p)
            assert [a for a, x in enumerate(row) if x > -INF] == sorted(expected)
            assert [row[a] for a in sorted(expected)] == pytest.approx([float(expected[a].ln()) for a in sorted(expected)])


class TestEstimators:
    log_prob = torch.tensor([[0.4, 0.3, 0.2, 0.05]], dtype=torch.float64).log()
    score = torch.tensor([[1.3, 0.9, -0.2, -1.1]], dtype=torch.float64)
    value = torch.tensor([[1.0, 5.0, -2.0, 3.0]], dtype=torch.float64)
    everyone = torch.ones(1, 4, dtype=torch.bool)
    no, yes = torch.tensor([False]), torch.tensor([True])

    def test_weights_are_probabilities_over_inclusion_probabilities_and_the_last_is_dropped(self):
        weight = gumbel.threshold_weights(self.log_prob, self.score, self.everyone, self.no).exp()
        with high_precision():
            for i, p in enumerate(self.log_prob[0].exp().tolist()[:3]):
                inclusion = 1 - (-((Decimal(p).ln() - Decimal("-1.1")).exp())).exp()
                assert float(weight[0, i]) == pytest.approx(float(Decimal(p) / inclusion), rel=1e-13)
        assert weight[0, 3] == 0

    def test_the_threshold_is_the_smallest_member_wherever_it_stands(self):
        order = torch.tensor([2, 0, 3, 1])
        weight = gumbel.threshold_weights(self.log_prob[:, order], self.score[:, order], self.everyone, self.no)
        sorted_weight = gumbel.threshold_weights(self.log_prob, self.score, self.everyone, self.no)
        assert torch.equal(weight, sorted_weight[:, order])
        member = torch.tensor([[True, False, True, False]])
        assert (gumbel.threshold_weights(self.log_prob, self.score, member, self.no) > -INF).tolist() == [
            [True, False, False, False]
        ]

    def test_a_single_sample_stands_for_itself(self):
        member = torch.tensor([[False, False, True, False]])
        weight = gumbel.threshold_weights(self.log_prob, self.score, member, self.no)
        assert weight[0, 2] == self.log_prob[0, 2]
        mean, error, size = gumbel.weighted_mean(weight, self.value)
        assert (mean.item(), error.item(), size.item()) == (-2.0, 0.0, 1.0)

    def test_a_complete_sample_is_weighted_by_probability_and_nothing_is_dropped(self):
        weight = gumbel.threshold_weights(self.log_prob, self.score, self.everyone, self.yes)
        assert torch.equal(weight, self.log_prob)
        expected = (0.4 * 1 + 0.3 * 5 - 0.2 * 2 + 0.05 * 3) / 0.95
        assert gumbel.weighted_mean(weight, self.value)[0].item() == pytest.approx(expected)

    def test_slots_without_a_sample_have_no_say(self):
        nothing, some = -INF * torch.ones(1, 2, dtype=torch.float64), torch.tensor([[True] * 4 + [False] * 2])
        pad = [torch.cat([x, nothing], 1) for x in (self.log_prob, self.score, self.value)]
        weight = gumbel.threshold_weights(pad[0], pad[1], some, self.no)
        expected = gumbel.threshold_weights(self.log_prob, self.score, self.everyone, self.no)
        assert torch.equal(weight[:, :4], expected)
        for estimate in (gumbel.unbiased_mean, lambda w, v: gumbel.weighted_mean(w, v)[0]):
            torch.testing.assert_close(estimate(weight, pad[2]), estimate(expected, self.value))

    def test_no_sample_at_all_gives_no_number(self):
        weight = gumbel.threshold_weights(self.log_prob, self.score, ~self.everyone, self.yes)
        assert bool((weight == -INF).all())
        assert bool(gumbel.weighted_mean(weight, self.value)[0].isnan().all())

    def test_the_normalised_mean_its_error_and_sample_size(self):
        weight = torch.tensor([[0.5, 0.3, 0.2]], dtype=torch.float64)
        value = torch.tensor([[1.0, 2.0, 4.0]], dtype=torch.float64)
        mean, error, size = gumbel.weighted_mean(weight.log() + 17, value)
        assert mean.item() == pytest.approx(1.9)
        assert error.item() == pytest.approx((0.25 * 0.81 + 0.09 * 0.01 + 0.04 * 4.41) ** 0.5)
        assert size.item() == pytest.approx(1 / 0.38)
