"""The travelling salesman problem."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import fields

import numpy as np
import pytest
import torch
from routing import Uniform, partial, random_actions, seeded
from scipy.stats import chisquare

from gumbeldore.errors import SettingsError
from gumbeldore.problems import TSP, TSPState
from gumbeldore.problems.tsp.verify import verify_tsp
from gumbeldore.search.samplers import Gumbeldore, StochasticBeamSearch


def shortest_tour(coordinates: np.ndarray) -> float:
    """By trying all of them."""
    cities = range(1, len(coordinates))
    return min(
        sum(math.dist(coordinates[a], coordinates[b]) for a, b in itertools.pairwise((0, *order, 0)))
        for order in itertools.permutations(cities)
    )


@pytest.mark.parametrize(("cities", "sampler"), [(6, StochasticBeamSearch(120, 1)), (7, Gumbeldore(240, 3, sigma=1.0))])
def test_sampling_everything_finds_the_optimum_and_only_tours(cities: int, sampler: StochasticBeamSearch) -> None:
    problem = TSP(cities)
    state = problem.generate(3, generator=seeded(1))
    solutions = sampler(problem, Uniform(problem), state, generator=seeded(2))
    assert bool(solutions.filled.all())
    for row, coordinates in enumerate(state.coordinates.double().numpy()):
        tours = [(0, *actions) for actions in solutions.actions[row].tolist()]
        assert len(set(tours)) == math.factorial(cities - 1)
        verdicts = [verify_tsp(coordinates, tour) for tour in tours]
        assert all(verdict.feasible for verdict in verdicts)
        objectives = [verdict.objective for verdict in verdicts]
        np.testing.assert_allclose(solutions.objective[row].numpy(), objectives, rtol=0, atol=1e-6)
        assert solutions.best_objective[row].item() == pytest.approx(-shortest_tour(coordinates), abs=1e-6)


def test_random_tours_verify_to_their_objectives_from_any_start() -> None:
    problem = TSP(30)
    coordinates = torch.rand(40, 30, 2, dtype=torch.float64, generator=seeded(3))
    state = problem.instances(coordinates, start=17)
    actions = random_actions(problem, state, seeded(4))
    assert actions.shape == (40, problem.horizon(state)) == (40, 29)
    for action in actions.unbind(1):
        assert not bool(problem.done(state).any())
        assert bool(problem.mask(state).gather(1, action[:, None]).all())
        state = problem.step(state, action)
    assert bool(problem.done(state).all())
    for row in range(40):
        verdict = verify_tsp(coordinates[row].numpy(), [17, *actions[row].tolist()])
        assert verdict.feasible, verdict.reason
        assert problem.objective(state)[row].item() == pytest.approx(verdict.objective, abs=1e-12)


def test_finished_rows_step_to_themselves_and_others_move_on() -> None:
    problem = TSP(5)
    state = partial(problem, 4, torch.tensor([4, 4, 4, 3]))
    last = int(problem.mask(state)[3].nonzero())
    after = problem.step(state, torch.tensor([0, 2, -1, last]))
    assert bool(problem.done(after).all())
    for f in fields(TSPState):
        assert torch.equal(getattr(after, f.name)[:3], getattr(state, f.name)[:3])
    assert int(after.current[3]) == last


def test_the_state_given_to_step_is_left_alone() -> None:
    state = partial(TSP(6), 3, 2)
    before = {name: tensor.clone() for name, tensor in state.tensors().items()}
    TSP(6).step(state, TSP(6).mask(state).int().argmax(1))
    assert all(torch.equal(before[name], tensor) for name, tensor in state.tensors().items())


def test_generated_cities_fill_the_unit_square_and_depend_on_the_generator_alone() -> None:
    first, again = (TSP(50).generate(200, generator=seeded(5)).coordinates for _ in range(2))
    assert torch.equal(first, again)
    assert first.shape == (200, 50, 2)
    assert bool(((first >= 0) & (first < 1)).all())
    counts = np.histogram2d(*first.view(-1, 2).double().numpy().T, bins=4, range=[[0, 1], [0, 1]])[0]
    assert chisquare(counts.ravel()).pvalue > 1e-4


def segments(tour: list[int], length: int) -> list[tuple[int, int, frozenset[int], int]]:
    """All examples that METHOD allows: (origin, destination, cities to visit, target), in both directions."""
    result = []
    for first, direction in itertools.product(range(len(tour)), (1, -1)):
        path = [tour[(first + direction * i) % len(tour)] for i in range(length)]
        result.append((path[0], path[-1], frozenset(path[1:-1]), path[1]))
    return result


def described(state: TSPState, action: torch.Tensor) -> list[tuple[int, int, frozenset[int], int]]:
    rows = zip(state.current.tolist(), state.start.tolist(), (~state.visited).tolist(), action.tolist(), strict=True)
    return [(a, b, frozenset(i for i, free in enumerate(open_) if free), target) for a, b, open_, target in rows]


def test_examples_are_the_contiguous_segments_of_the_tour_all_equally_likely() -> None:
    problem, cities, generator = TSP(7), 7, seeded(6)
    state = problem.generate(1, generator=generator)
    actions = random_actions(problem, state, generator)
    tour = [0, *actions[0].tolist()]
    rows = torch.zeros(4000, dtype=torch.long)
    lengths = set()
    for _ in range(30):
        examples = problem.examples(state.rows(rows), actions[rows], generator=generator)
        found = Counter(described(examples.state, examples.action))
        length = len(next(iter(found))[2]) + 2
        lengths.add(length)
        expected = Counter(segments(tour, length))
        assert set(found) == set(expected)
        share = 4000 / (2 * cities)
        assert chisquare([found[e] for e in expected], [share * n for n in expected.values()]).pvalue > 1e-4 / 30
        assert bool(problem.mask(examples.state).gather(1, examples.action[:, None]).all())
    assert lengths == {4, 5, 6, 7, 8}


def test_the_length_of_examples_is_uniform_and_one_per_minibatch() -> None:
    problem, generator = TSP(6), seeded(7)
    state = problem.generate(3, generator=generator)
    actions = random_actions(problem, state, generator)
    counts: Counter[int] = Counter()
    for _ in range(400):
        open_ = (~problem.examples(state, actions, generator=generator).state.visited).sum(1)
        assert len(set(open_.tolist())) == 1
        counts[int(open_[0]) + 2] += 1
    assert set(counts) == {4, 5, 6, 7}
    assert chisquare(list(counts.values())).pvalue > 1e-4


def test_examples_belong_to_the_instances_of_their_rows() -> None:
    problem, generator = TSP(9), seeded(8)
    state = problem.generate(5, generator=generator)
    actions = random_actions(problem, state, generator)
    rows = torch.tensor([3, 0, 3, 4, 1, 1])
    examples = problem.examples(state.rows(rows), actions[rows], generator=generator)
    for row, example in zip(rows.tolist(), described(examples.state, examples.action), strict=True):
        assert example in segments([0, *actions[row].tolist()], len(example[2]) + 2)


def test_augmentation_keeps_the_ratios_of_distances_and_the_unit_square() -> None:
    problem, generator = TSP(9), seeded(9)
    state = problem.generate(200, generator=generator)
    actions = random_actions(problem, state, generator)
    points = problem.examples(state, actions, generator=generator).state.coordinates
    assert bool(((points >= 0) & (points <= 1)).all())
    before, after = (torch.cdist(p.double(), p.double()) for p in (state.coordinates, points))
    ratio = after.sum((1, 2)) / before.sum((1, 2))
    torch.testing.assert_close(after, before * ratio[:, None, None], rtol=0, atol=1e-5)
    assert bool((ratio < 1 + 1e-6).all())
    assert len({round(r, 4) for r in ratio.tolist()}) > 20  # some were scaled back, each by its own factor
    turned = (points - points[:, :1])[:, 1] / (state.coordinates - state.coordinates[:, :1])[:, 1]
    assert len({round(t, 3) for t in turned[:, 0].tolist()}) > 100  # and no two were turned alike


def test_three_cities_have_examples_too() -> None:
    problem = TSP(3)
    state = problem.generate(2, generator=seeded(10))
    examples = problem.examples(state, random_actions(problem, state, seeded(10)), generator=seeded(10))
    assert (~examples.state.visited).sum(1).tolist() == [2, 2]


def test_nearest_allows_the_nearest_unvisited_cities() -> None:
    restricted, free = TSP(20, nearest=4), TSP(20)
    state = restricted.generate(6, generator=seeded(11))
    while not bool(free.done(state).all()):
        mask = restricted.mask(state)
        for row in range(6):
            here = state.coordinates[row, state.current[row]].numpy()
            open_ = (~state.visited[row]).nonzero().flatten().tolist()
            gaps = {city: math.dist(here, state.coordinates[row, city].numpy()) for city in open_}
            assert mask[row].nonzero().flatten().tolist() == sorted(sorted(open_, key=gaps.__getitem__)[:4])
        state = restricted.step(state, mask.int().argmax(1))
    assert bool(restricted.objective(state).isfinite().all())


def test_nearest_takes_the_first_of_equally_distant_cities_and_row_by_row() -> None:
    grid = torch.tensor([[0.0, 0], [1, 0], [0, 1], [-1, 0], [0, -1], [5, 5]])
    scattered = torch.tensor([[0.0, 0], [9, 0], [0, 8], [-7, 0], [0, -6], [9, 5]])
    mask = TSP(nearest=2).mask(TSP(nearest=2).instances(torch.stack([grid, scattered])))
    assert [row.nonzero().flatten().tolist() for row in mask] == [[1, 2], [3, 4]]


def test_nearest_travels_with_the_state_and_leaves_the_default_as_it_was() -> None:
    restricted = TSP(9, nearest=3)
    state = restricted.generate(4, generator=seeded(12))
    plain = TSP(9).generate(4, generator=seeded(12))
    assert type(plain) is TSPState
    assert torch.equal(state.coordinates, plain.coordinates)
    assert torch.equal(TSP(9).mask(plain), ~plain.visited)
    for copy in (
        state.rows(torch.tensor([2, 2, 0])),
        state.rows(slice(1, 3)).compact(),
        type(state).concatenate([state, state]),
    ):
        assert bool((restricted.mask(copy).sum(1) == 3).all())
    large = TSP(9, nearest=50).generate(4, generator=seeded(12))
    assert torch.equal(TSP(9, nearest=50).mask(large), ~large.visited)
    actions = random_actions(restricted, state, seeded(12))
    assert type(restricted.examples(state, actions, generator=seeded(12)).state) is TSPState


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cities": 2}, "`cities` must be at least 3, got 2"),
        ({"nearest": 0}, "`nearest` must be at least 1, or None for no restriction, got 0"),
    ],
)
def test_settings_out_of_range_are_rejected(settings: dict[str, int], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        TSP(**settings)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("coordinates", "start", "message"),
    [
        (torch.rand(5, 2), 0, r"`coordinates` must have the shape \(instances, cities >= 3, 2\), got \(5, 2\)"),
        (torch.rand(4, 2, 2), 0, r"got \(4, 2, 2\)"),
        (torch.rand(4, 5, 3), 0, r"got \(4, 5, 3\)"),
        (torch.full((1, 5, 2), torch.nan), 0, "`coordinates` must be finite"),
        (torch.rand(1, 5, 2), 5, r"`start` must be a city in 0 .. 4, got 5"),
    ],
)
def test_invalid_instances_are_rejected(coordinates: torch.Tensor, start: int, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        TSP().instances(coordinates, start)


@pytest.mark.usefixtures("unchecked")
def test_examples_of_incomplete_tours_are_rejected() -> None:
    state = TSP(6).generate(2, generator=seeded(13))
    with pytest.raises(SettingsError, match="complete tours"):
        TSP(6).examples(state, torch.zeros(2, 4, dtype=torch.long), generator=seeded(13))
