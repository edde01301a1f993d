"""Instances of different sizes in one call."""

from __future__ import annotations

from dataclasses import fields

import pytest
import torch
from routing import Uniform, seeded

from gumbeldore import Greedy, Gumbeldore, SettingsError, Solutions, StochasticBeamSearch, WithReplacement, solve_mixed
from gumbeldore.problems import CVRP, JSSP, TSP, Gomoku
from gumbeldore.search.mixed import grouped

SAMPLERS = [Gumbeldore(4, 2), StochasticBeamSearch(4, 2), WithReplacement(6), Greedy()]


def sizes(cities, counts):
    return [TSP(n).generate(count, generator=seeded(n)) for n, count in zip(cities, counts, strict=True)]


def assert_equal(one: Solutions, other: Solutions) -> None:
    for name in ("actions", "objective", "log_prob", "filled"):
        assert torch.equal(getattr(one, name), getattr(other, name)), name
    for f in fields(one.diagnostics):
        torch.testing.assert_close(
            getattr(one.diagnostics, f.name), getattr(other.diagnostics, f.name), rtol=0, atol=1e-12, equal_nan=True
        )


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: type(sampler).__name__)
@pytest.mark.parametrize("problem", [TSP(), CVRP(), JSSP()], ids=lambda problem: type(problem).__name__)
def test_every_instance_gets_what_it_gets_alone_with_its_seed(problem, sampler):
    makers = {
        "TSP": [TSP(6), TSP(4), TSP(6), TSP(5)],
        "CVRP": [CVRP(5, 20), CVRP(3, 9), CVRP(5, 20), CVRP(4, 15)],
        "JSSP": [JSSP(3, 2), JSSP(2, 3), JSSP(3, 2), JSSP(2, 2)],
    }[type(problem).__name__]
    states = [maker.generate(1 + index % 2, generator=seeded(index)) for index, maker in enumerate(makers)]
    seeds = torch.arange(100, 106)
    together = solve_mixed(problem, Uniform(problem), sampler, states, seeds=seeds)
    start = 0
    for state, solutions in zip(states, together, strict=True):
        assert len(solutions.objective) == state.row_count
        alone = sampler(problem, Uniform(problem), state, seeds=seeds[start : start + state.row_count])
        assert_equal(solutions, alone)
        start += state.row_count


def test_the_order_of_the_states_does_not_matter_if_the_seeds_move_along():
    states, seeds = sizes((5, 7, 5), (1, 1, 1)), torch.tensor([3, 1, 2])
    forward = solve_mixed(TSP(), Uniform(TSP()), Gumbeldore(4, 2), states, seeds=seeds)
    backward = solve_mixed(TSP(), Uniform(TSP()), Gumbeldore(4, 2), states[::-1], seeds=seeds.flip(0))
    for one, other in zip(forward, backward[::-1], strict=True):
        assert_equal(one, other)


def test_a_generator_gives_one_seed_per_row_in_order():
    states = sizes((5, 4, 5), (2, 1, 3))
    drawn = torch.randint(2**63 - 1, (6,), generator=seeded(9))
    by_generator = solve_mixed(TSP(), Uniform(TSP()), Gumbeldore(4, 2), states, generator=seeded(9))
    for one, other in zip(by_generator, solve_mixed(TSP(), Uniform(TSP()), Gumbeldore(4, 2), states, seeds=drawn), strict=True):
        assert_equal(one, other)


def test_the_sampler_is_called_once_per_size():
    class Counting(Greedy):
        calls = []  # noqa: RUF012

        def __call__(self, problem, policy, state, **options):
            self.calls.append(state.row_count)
            return super().__call__(problem, policy, state, **options)

    solve_mixed(TSP(), Uniform(TSP()), Counting(), sizes((5, 4, 5, 4, 6), (2, 1, 3, 1, 1)), generator=seeded(0))
    assert Counting.calls == [5, 2, 1]


def test_groups_say_where_their_rows_come_from():
    groups = grouped(sizes((5, 4, 5), (2, 1, 3)))
    assert [group.members for group in groups] == [(0, 2), (1,)]
    assert [group.rows.tolist() for group in groups] == [[0, 1, 3, 4, 5], [2]]


def test_states_of_different_kinds_are_never_joined():
    plain, near = (TSP(5, nearest).generate(1, generator=seeded(0)) for nearest in (None, 2))
    whole = JSSP().instances(torch.ones(1, 2, 2, dtype=torch.int64), torch.tensor([[[0, 1], [1, 0]]]))
    halves = JSSP().instances(torch.full((1, 2, 2), 0.5), torch.tensor([[[0, 1], [1, 0]]]))
    assert len(grouped([plain, near, plain])) == 2
    assert len(grouped([whole, halves])) == 2


def test_sequences_are_no_longer_padded_than_their_own_state_needs():
    """Games differ in length, so a group's padding is not an instance's own."""
    game = Gomoku(5)
    states = [game.openings(torch.tensor([cell])) for cell in (0, 7, 12)]
    for solutions in solve_mixed(game, Uniform(game), WithReplacement(2), states, seeds=torch.tensor([1, 2, 3])):
        assert bool((solutions.actions[..., -1] >= 0).any())


def test_states_that_share_instances_are_searched_as_their_rows_say():
    state = TSP(5).generate(3, generator=seeded(1))
    picked = state.rows(torch.tensor([2, 0]))
    (solutions,) = solve_mixed(TSP(), Uniform(TSP()), Greedy(), [picked], seeds=torch.tensor([1, 2]))
    assert_equal(solutions, Greedy()(TSP(), Uniform(TSP()), picked, seeds=torch.tensor([1, 2])))


def test_nothing_to_solve_is_nothing():
    assert solve_mixed(TSP(), Uniform(TSP()), Greedy(), [], generator=seeded(0)) == []


@pytest.mark.parametrize(
    ("states", "options", "message"),
    [
        (sizes((4,), (2,)), {"seeds": torch.tensor([1])}, "one seed per row of all states"),
        (sizes((4,), (2,)), {}, "needs randomness"),
        ([TSP(4).generate(1, generator=seeded(0)).rows(slice(0, 0))], {"generator": seeded(0)}, "state 0 holds none"),
    ],
)
def test_mistakes_are_named(states, options, message):
    with pytest.raises(SettingsError, match=message):
        solve_mixed(TSP(), Uniform(TSP()), Greedy(), states, **options)
