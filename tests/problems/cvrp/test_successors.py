"""Tests of what a CVRP network is taught beside its actions."""

from __future__ import annotations

import pytest
import torch

from gumbeldore import Examples
from gumbeldore.policies import CVRPPolicy
from gumbeldore.problems import CVRP

CUSTOMERS, CAPACITY = 9, 15


def drawn(seed: int, rows: int = 5) -> Examples:
    generator = torch.Generator().manual_seed(seed)
    problem = CVRP(CUSTOMERS, CAPACITY)
    state = root = problem.generate(rows, generator=generator)
    actions = []
    for _ in range(CUSTOMERS):
        weights = problem.mask(state).float() * (
            1 + 5 * (torch.arange(2 * CUSTOMERS) % 2 == 0)
        )  # rather direct than via the depot
        actions.append(torch.multinomial(weights, 1, generator=generator).squeeze(1))
        state = problem.step(state, actions[-1])
    return problem.examples(root, torch.stack(actions, 1), generator=generator)


@pytest.mark.parametrize("seed", range(6))
def test_successors_are_subtours_of_all_that_is_left_and_keep_the_capacity(seed: int) -> None:
    examples = drawn(seed)
    state, successor = examples.state, examples.successor
    assert successor is not None
    for row in range(state.row_count):
        left = {int(c) + 1 for c in (~state.visited[row]).nonzero()}
        current = int(state.current[row])
        followed = successor[row].tolist()
        assert {node for node, after in enumerate(followed) if after >= 0} == left | ({current} - {0})
        assert sorted(after for after in followed if after > 0) == sorted({after for after in followed if after > 0})
        for first in left - set(followed) | ({current} - {0}):
            node, room = first, int(state.remaining[row] if first == current else state.capacity[row])
            room += int(state.demands[row, node]) if first == current else 0
            while node > 0:
                room -= int(state.demands[row, node])
                node = followed[node]
            assert node == 0
            assert room >= 0


@pytest.mark.parametrize("seed", range(6))
def test_the_successor_of_the_origin_is_the_target_of_the_policy(seed: int) -> None:
    examples = drawn(seed)
    assert examples.successor is not None
    for row in range(examples.state.row_count):
        current, (customer, via_depot) = int(examples.state.current[row]), divmod(int(examples.action[row]), 2)
        if current:
            assert int(examples.successor[row, current]) == (0 if via_depot else customer + 1)


def test_a_taught_network_gives_the_logits_of_a_call_and_learns_from_both() -> None:
    torch.manual_seed(0)
    policy, examples = CVRPPolicy(16, 2, 2, 32, pointer=1, local=1), drawn(0)
    assert examples.successor is not None
    logits, losses = policy.taught(examples.state, examples.successor)
    assert torch.equal(logits, policy(examples.state))
    losses.sum().backward()
    assert policy.pointer is not None
    assert policy.pointer.query.weight.grad is not None
    assert float(policy.pointer.query.weight.grad.abs().sum()) > 0
    assert float(policy.node_embedding.weight.grad.abs().sum()) > 0  # type: ignore[union-attr]
