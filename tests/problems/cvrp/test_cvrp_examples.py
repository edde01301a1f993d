"""Training examples of the CVRP against the recipe in plain Python."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

import pytest
import torch
from routing import random_actions, seeded
from scipy.stats import chisquare

from gumbeldore.errors import SettingsError
from gumbeldore.problems import CVRP, CVRPState
from gumbeldore.problems.cvrp.problem import capacity_left
from gumbeldore.problems.subtours import Subtours

Example = tuple[int, int, frozenset[int], int]  # node, remaining capacity, customers to serve, target action


def reference_examples(state: CVRPState, actions: list[int], length: int) -> dict[Example, float]:
    """METHOD.md's recipe in plain Python: every example of one solution and its probability, given the length."""
    demands, capacity = state.demands[0].tolist(), int(state.capacity[0])
    routes: list[list[int]] = []
    for action in actions:
        if action % 2:
            routes.append([])
        routes[-1].append(action // 2)
    result: Counter[Example] = Counter()
    for turns in itertools.product((False, True), repeat=len(routes)):
        turned = [route[::-1] if turn else route for route, turn in zip(routes, turns, strict=True)]
        turned.sort(key=lambda route: capacity - sum(demands[c + 1] for c in route))
        for example, probability in stretches(turned, demands, capacity, length):
            result[example] += probability / 2 ** len(routes)  # type: ignore[assignment]
    return dict(result)


def stretches(routes: list[list[int]], demands: list[int], capacity: int, length: int) -> Iterator[tuple[Example, float]]:
    """The examples of a solution whose subtours are in order already."""
    visits = []  # customer, via depot, capacity left after it
    for route in routes:
        left = capacity
        for index, customer in enumerate(route):
            left -= demands[customer + 1]
            visits.append((customer, index == 0, left))
    returns = [i + 1 for i in range(len(visits)) if i + 1 == len(visits) or visits[i + 1][1]]
    ends = [end for end in returns if end >= length]
    for end in ends:
        kept = visits[end - length : end]
        (first, via_depot, left), open_ = kept[0], frozenset(visit[0] for visit in kept)
        at_depot = 1.0 if length == 1 else 0.5 if via_depot else 0.0
        yield (0, capacity, open_, 2 * first + 1), at_depot / len(ends)
        if at_depot < 1:
            target = 2 * kept[1][0] + kept[1][1]
            yield (first + 1, left, open_ - {first}, target), (1 - at_depot) / len(ends)


def described(state: CVRPState, action: torch.Tensor) -> list[Example]:
    open_ = [frozenset(i for i, free in enumerate(row) if free) for row in (~state.visited).tolist()]
    return list(zip(state.current.tolist(), state.remaining.tolist(), open_, action.tolist(), strict=True))


def length_of(example: Example) -> int:
    """How many customers the stretch has: those to serve, and the one where it starts."""
    return len(example[2]) + (example[0] != 0)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_examples_follow_the_recipe_in_law(seed: int) -> None:
    problem, generator = CVRP(7, capacity=14), seeded(seed)
    state = problem.generate(1, generator=generator)
    actions = random_actions(problem, state, generator)
    rows = torch.zeros(4000, dtype=torch.long)
    lengths = set()
    for _ in range(20):
        examples = problem.examples(state.rows(rows), actions[rows], generator=generator)
        found = Counter(described(examples.state, examples.action))
        length = length_of(next(iter(found)))
        lengths.add(length)
        assert {length_of(example) for example in found} == {length}
        expected = {e: p for e, p in reference_examples(state, actions[0].tolist(), length).items() if p > 0}
        assert set(found) <= set(expected)
        counts = [found[example] for example in expected]
        assert chisquare(counts, [4000 * p for p in expected.values()]).pvalue > 1e-4 / 60
        assert bool(problem.mask(examples.state).gather(1, examples.action[:, None]).all())
    assert lengths == {3, 4, 5, 6, 7}


def test_examples_belong_to_the_instances_of_their_rows() -> None:
    problem, generator = CVRP(8, capacity=(10, 30)), seeded(6)
    state = problem.generate(5, generator=generator)
    actions = random_actions(problem, state, generator)
    rows = torch.tensor([3, 0, 3, 4, 1, 1])
    examples = problem.examples(state.rows(rows), actions[rows], generator=generator)
    assert torch.equal(examples.state.capacity, state.capacity[rows])
    assert torch.equal(examples.state.demands, state.demands[rows])
    for row, example in zip(rows.tolist(), described(examples.state, examples.action), strict=True):
        instance = state.rows(slice(row, row + 1)).compact()
        assert example in reference_examples(instance, actions[row].tolist(), length_of(example))


def test_the_length_of_examples_is_uniform_and_one_per_minibatch() -> None:
    problem, generator = CVRP(6, capacity=20), seeded(7)
    state = problem.generate(3, generator=generator)
    actions = random_actions(problem, state, generator)
    counts: Counter[int] = Counter()
    for _ in range(400):
        examples = problem.examples(state, actions, generator=generator)
        lengths = {length_of(example) for example in described(examples.state, examples.action)}
        assert len(lengths) == 1
        counts.update(lengths)
    assert set(counts) == {3, 4, 5, 6}
    assert chisquare(list(counts.values())).pvalue > 1e-4


def test_subtours_are_sorted_by_the_capacity_left_and_turned_where_asked() -> None:
    problem, generator = CVRP(40, capacity=(20, 60)), seeded(8)
    state = problem.generate(100, generator=generator)
    actions = random_actions(problem, state, generator)
    reverse = torch.rand(100, 40, generator=generator) < 0.5
    subtours = Subtours.of(actions)
    order, begins = subtours.arranged((state.capacity[:, None] - subtours.load(state.demands)).float(), reverse)
    left = capacity_left(order, begins, state.demands, state.capacity)
    for row in range(100):
        before = routes_of(actions[row] // 2, actions[row] % 2 == 1)
        before = [route[::-1] if turn else route for route, turn in zip(before, reverse[row].tolist(), strict=False)]
        after = routes_of(order[row], begins[row])
        assert sorted(after) == sorted(before)
        spare = [int(state.capacity[row]) - sum(int(state.demands[row, c + 1]) for c in route) for route in after]
        assert spare == sorted(spare)
        ends = torch.cat([begins[row, 1:], torch.tensor([True])])
        assert left[row][ends].tolist() == spare


def routes_of(order: torch.Tensor, begins: torch.Tensor) -> list[list[int]]:
    routes: list[list[int]] = []
    for customer, first in zip(order.tolist(), begins.tolist(), strict=True):
        routes += [[]] if first else []
        routes[-1].append(customer)
    return routes


def test_augmentation_keeps_the_ratios_of_distances_to_the_depot_too() -> None:
    problem, generator = CVRP(9), seeded(9)
    state = problem.generate(200, generator=generator)
    points = problem.examples(state, random_actions(problem, state, generator), generator=generator).state.nodes
    assert bool(((points >= 0) & (points <= 1)).all())
    before, after = (torch.cdist(p.double(), p.double()) for p in (state.nodes, points))
    ratio = after.sum((1, 2)) / before.sum((1, 2))
    torch.testing.assert_close(after, before * ratio[:, None, None], rtol=0, atol=1e-5)
    assert not torch.allclose(points, state.nodes)


@pytest.mark.parametrize("customers", [1, 2])
def test_instances_of_one_or_two_customers_have_examples_too(customers: int) -> None:
    problem, generator = CVRP(customers), seeded(10)
    state = problem.generate(50, generator=generator)
    actions = random_actions(problem, state, generator)
    examples = problem.examples(state, actions, generator=generator)
    for row, example in enumerate(described(examples.state, examples.action)):
        expected = reference_examples(state.rows(slice(row, row + 1)).compact(), actions[row].tolist(), customers)
        assert expected.get(example, 0) > 0


def test_examples_of_incomplete_solutions_are_rejected() -> None:
    problem, generator = CVRP(6), seeded(12)
    state = problem.generate(2, generator=generator)
    actions = random_actions(problem, state, generator)
    with pytest.raises(SettingsError, match="complete solutions of full instances"):
        problem.examples(state, actions[:, :-1], generator=generator)
    with pytest.raises(SettingsError, match="first customer is reached via the depot"):
        problem.examples(state, actions - actions % 2, generator=generator)
