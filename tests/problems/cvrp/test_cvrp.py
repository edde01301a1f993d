"""The capacitated vehicle routing problem."""

from __future__ import annotations

import itertools
import math
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from routing import Uniform, partial, random_actions, seeded
from scipy.stats import chisquare

from gumbeldore.errors import SettingsError
from gumbeldore.kits.verdict import Verdict
from gumbeldore.problem import replay
from gumbeldore.problems import CVRP, CVRPState
from gumbeldore.problems.cvrp.verify import verify_cvrp
from gumbeldore.search.samplers import Gumbeldore, StochasticBeamSearch


def verdict_of(state: CVRPState, row: int, actions: list[int]) -> Verdict:
    """What the independent verifier says about actions from the initial state of an instance."""
    nodes, demands, capacity = state.nodes[row].double().numpy(), state.demands[row].numpy(), int(state.capacity[row])
    return verify_cvrp(nodes, demands, capacity, [a // 2 for a in actions], [a % 2 for a in actions])


def test_the_capacity_is_never_exceeded_in_100_000_random_rollouts() -> None:
    problem, generator, customers = CVRP(10, capacity=(9, 40)), seeded(0), 10
    instances = problem.generate(5000, generator=generator)
    state = instances.rows(torch.arange(100_000) % 5000)
    actions = random_actions(problem, state, generator)
    final = replay(problem, state, actions, torch.full((100_000,), customers))
    # From here on numpy, from the actions alone.
    row, order, via_depot = np.arange(100_000) % 5000, actions.numpy() // 2, actions.numpy() % 2 == 1
    demands, capacity = instances.demands.numpy()[row], instances.capacity.numpy()[row]
    points = instances.nodes.double().numpy()[row]
    assert np.array_equal(np.sort(order, 1), np.tile(np.arange(customers), (100_000, 1)))
    assert via_depot[:, 0].all()
    rows, load, here, length = np.arange(100_000), np.zeros(100_000, np.int64), np.zeros(100_000, np.int64), np.zeros(100_000)

    def gap(a: Any, b: Any) -> np.ndarray:
        return np.linalg.norm(points[rows, a] - points[rows, b], axis=1)

    for step in range(customers):
        node = order[:, step] + 1
        load = np.where(via_depot[:, step], 0, load) + demands[rows, node]
        assert (load <= capacity).all()
        length += np.where(via_depot[:, step], gap(here, 0) + gap(0, node), gap(here, node))
        here = node
    np.testing.assert_allclose(problem.objective(final).numpy(), -(length + gap(here, 0)), rtol=0, atol=1e-9)
    for index in range(0, 100_000, 500):
        verdict = verdict_of(instances, int(row[index]), actions[index].tolist())
        assert verdict.feasible, verdict.reason
        assert problem.objective(final)[index].item() == pytest.approx(verdict.objective, abs=1e-9)


def all_solutions(state: CVRPState, row: int) -> dict[tuple[int, ...], float]:
    """Every feasible sequence of actions with its objective, by trying all permutations and flags."""
    customers = state.visited.shape[1]
    found = {}
    for order in itertools.permutations(range(customers)):
        for flags in itertools.product((0, 1), repeat=customers):
            actions = [2 * c + f for c, f in zip(order, flags, strict=True)]
            if (verdict := verdict_of(state, row, actions)).feasible:
                found[tuple(actions)] = verdict.objective
    return found


@pytest.mark.parametrize(("customers", "sampler"), [(4, StochasticBeamSearch(200, 1)), (5, Gumbeldore(500, 4, sigma=1.0))])
def test_sampling_everything_yields_exactly_the_feasible_solutions(customers: int, sampler: StochasticBeamSearch) -> None:
    problem = CVRP(customers, capacity=(9, 20))
    state = problem.generate(3, generator=seeded(1))
    solutions = sampler(problem, Uniform(problem), state, generator=seeded(2))
    for row in range(3):
        expected = all_solutions(state, row)
        filled = solutions.filled[row]
        found = [tuple(actions) for actions in solutions.actions[row][filled].tolist()]
        assert len(found) == len(expected)
        assert set(found) == set(expected)
        np.testing.assert_allclose(solutions.objective[row][filled], [expected[f] for f in found], rtol=0, atol=1e-9)
        assert solutions.best_objective[row].item() == pytest.approx(max(expected.values()), abs=1e-9)


def worked_example() -> CVRPState:
    """A star of three customers: distances 5, 5 and 2 from the depot, 6 between the first two."""
    nodes = torch.tensor([[[0.0, 0], [3, 4], [-3, 4], [0, -2]]])
    return CVRP().instances(nodes, torch.tensor([[0, 3, 4, 2]]), 7)


def test_the_mask_and_the_state_follow_a_worked_example() -> None:
    problem, state = CVRP(), worked_example()
    assert problem.mask(state).view(3, 2).tolist() == [[False, True]] * 3  # at the depot: only via the depot
    state = problem.step(state, torch.tensor([1]))  # customer 0 via the depot
    assert (int(state.current), int(state.remaining), float(state.length)) == (1, 4, 5.0)
    assert problem.mask(state).view(3, 2).tolist() == [[False, False], [True, True], [True, True]]
    state = problem.step(state, torch.tensor([4]))  # customer 2 directly
    assert (int(state.current), int(state.remaining)) == (3, 2)
    assert problem.mask(state).view(3, 2).tolist() == [[False, False], [False, True], [False, False]]  # 4 does not fit into 2
    assert problem.horizon(state) == 1
    state = problem.step(state, torch.tensor([3]))
    assert (int(state.current), int(state.remaining)) == (2, 3)
    assert bool(problem.done(state))
    assert problem.objective(state).item() == pytest.approx(-(5 + math.dist((3, 4), (0, -2)) + 2 + 5 + 5))


def test_a_demand_that_fits_exactly_may_be_served_directly() -> None:
    problem = CVRP()
    state = problem.step(worked_example(), torch.tensor([1]))
    assert int(state.remaining) == 4 == int(state.demands[0, 2])
    assert bool(problem.mask(state)[0, 2])
    assert int(problem.step(state, torch.tensor([2])).remaining) == 0


def test_finished_rows_step_to_themselves_and_others_move_on() -> None:
    problem = CVRP(4)
    state = partial(problem, 5, torch.tensor([4, 4, 4, 4, 3]))
    last = int(problem.mask(state)[4].nonzero()[0])
    after = problem.step(state, torch.tensor([0, 7, -1, 1000, last]))
    assert bool(problem.done(after).all())
    for f in fields(CVRPState):
        assert torch.equal(getattr(after, f.name)[:4], getattr(state, f.name)[:4])
    assert int(after.current[4]) == last // 2 + 1


def test_the_state_given_to_step_is_left_alone() -> None:
    state = partial(CVRP(6), 3, 2)
    before = {name: tensor.clone() for name, tensor in state.tensors().items()}
    CVRP(6).step(state, CVRP(6).mask(state).int().argmax(1))
    assert all(torch.equal(before[name], tensor) for name, tensor in state.tensors().items())


def test_generated_instances_follow_the_paper_and_depend_on_the_generator_alone() -> None:
    problem = CVRP(30, capacity=(40, 100))
    first, again = (problem.generate(3000, generator=seeded(3)) for _ in range(2))
    assert all(torch.equal(first.tensors()[name], again.tensors()[name]) for name in first.tensors())
    assert first.nodes.shape == (3000, 31, 2)
    assert bool(((first.nodes >= 0) & (first.nodes < 1)).all())
    assert not bool(first.demands[:, 0].any())
    assert chisquare(np.bincount(first.demands[:, 1:].flatten(), minlength=11)[1:10]).pvalue > 1e-4
    assert set(first.demands[:, 1:].flatten().tolist()) == set(range(1, 10))
    assert set(first.capacity.tolist()) == set(range(40, 101))
    assert chisquare(np.bincount(first.capacity)[40:]).pvalue > 1e-4
    assert set(CVRP(3, capacity=50).generate(9, generator=seeded(4)).capacity.tolist()) == {50}


def test_the_reference_solutions_have_their_lengths(shared: Path) -> None:
    file = shared / "data" / "cvrp_200_128.npz"
    if not file.is_file():
        pytest.skip(f"{file.name} is absent")
    with np.load(file) as data:
        arrays = {name: torch.from_numpy(data[name]) for name in data}
    problem = CVRP()
    state = problem.instances(arrays["nodes"], arrays["demands"], arrays["capacity"])
    for action in (2 * (arrays["customers"].long() - 1) + arrays["via_depot"]).unbind(1):
        assert bool(problem.mask(state).gather(1, action[:, None]).all())
        state = problem.step(state, action)
    torch.testing.assert_close(-problem.objective(state), arrays["length"], rtol=0, atol=1e-6)


def test_equal_keys_mean_equal_futures_and_only_those() -> None:
    problem = CVRP(6, capacity=12)
    state = partial(problem, 1, 0).rows(torch.zeros(3000, dtype=torch.long))
    actions = random_actions(problem, state, seeded(5))
    state = replay(problem, state, actions, torch.arange(3000) % 6)
    futures = list(zip(map(tuple, state.visited.tolist()), state.current.tolist(), state.remaining.tolist(), strict=True))
    keys = list(map(tuple, problem.key(state).tolist()))
    pairs = set(zip(futures, keys, strict=True))
    assert len(pairs) < 3000  # some were met again
    assert len(pairs) == len(set(futures)) == len(set(keys)) == len({a for a, _ in keys}) == len({b for _, b in keys})


def test_nearest_allows_the_nearest_unvisited_customers_directly_and_via_the_depot() -> None:
    restricted, free = CVRP(20, capacity=15, nearest=4), CVRP(20, capacity=15)
    state = restricted.generate(6, generator=seeded(11))
    refused = 0
    while not bool(restricted.done(state).all()):
        mask = restricted.mask(state)
        for row in range(6):
            here = state.nodes[row, state.current[row]].numpy()
            open_ = (~state.visited[row]).nonzero().flatten().tolist()
            gaps = {customer: math.dist(here, state.nodes[row, customer + 1].numpy()) for customer in open_}
            near = sorted(open_, key=gaps.__getitem__)[:4]
            assert mask[row].view(20, 2)[:, 1].nonzero().flatten().tolist() == sorted(near)
            fits = [c for c in near if state.demands[row, c + 1] <= state.remaining[row] and state.current[row] != 0]
            assert mask[row].view(20, 2)[:, 0].nonzero().flatten().tolist() == sorted(fits)
            refused += len(near) - len(fits)
        state = restricted.step(state, mask.int().argmax(1))
    assert refused > 24  # more than at the start
    plain = free.generate(6, generator=seeded(11))
    assert type(plain) is CVRPState
    assert torch.equal(free.mask(plain).view(6, 20, 2)[..., 1], ~plain.visited)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"customers": 0}, "`customers` must be at least 1, got 0"),
        ({"capacity": 8}, "`capacity` must be at least 9, the largest demand, got 8"),
        ({"capacity": (60, 50)}, r"`capacity` must be a range \(low, high\) with low <= high, got \(60, 50\)"),
        ({"nearest": 0}, "`nearest` must be at least 1, or None for no restriction, got 0"),
    ],
)
def test_settings_out_of_range_are_rejected(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        CVRP(**settings)


NODES, DEMANDS = torch.rand(2, 4, 2, generator=seeded(0)), torch.tensor([[0, 1, 2, 3], [0, 3, 2, 1]])


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("nodes", "demands", "capacity", "message"),
    [
        (NODES[0], DEMANDS, 5, r"`nodes` must have the shape \(instances, 1 \+ customers >= 2, 2\), got \(4, 2\)"),
        (NODES[:, :1], DEMANDS[:, :1], 5, r"got \(2, 1, 2\)"),
        (NODES * torch.nan, DEMANDS, 5, "`nodes` must be finite"),
        (NODES, DEMANDS[:, 1:], 5, r"`demands` must have the shape \(2, 4\), the depot first, got \(2, 3\)"),
        (NODES, DEMANDS + 1, 5, "`demands` must be 0 at the depot"),
        (NODES, -DEMANDS, 5, "`demands` must be at least 0, got -3"),
        (NODES, DEMANDS / 2, 5, r"`demands` must be integers, got \[0.5\]. Scale them to integers."),
        (NODES, DEMANDS, 5.5, r"`capacity` must be integers, got \[5.5\]"),
        (NODES, DEMANDS, torch.tensor([5, 5, 5]), r"`capacity` must be one number or 2, got shape \(3,\)"),
        (NODES, DEMANDS, torch.tensor([5, 2]), "customer 0 of instance 1 demands 3 of 2"),
    ],
)
def test_invalid_instances_are_rejected(nodes: torch.Tensor, demands: torch.Tensor, capacity: Any, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        CVRP().instances(nodes, demands, capacity)


def test_instances_keep_integers_exact_whatever_type_they_come_in() -> None:
    large = 2**40 + 1
    demands = torch.tensor([[0, large, large]], dtype=torch.float64)
    problem = CVRP()
    state = problem.instances(torch.rand(1, 3, 2, generator=seeded(0)), demands, torch.tensor(2 * large))
    state = problem.step(problem.step(state, torch.tensor([1])), torch.tensor([2]))
    assert int(state.remaining) == 0
    smaller = problem.instances(state.nodes, demands, 2 * large - 1)
    assert not bool(problem.mask(problem.step(smaller, torch.tensor([1])))[0, 2])
