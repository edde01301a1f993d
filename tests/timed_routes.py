"""What tests of routes within time windows share."""

from __future__ import annotations

import itertools

from gumbeldore.problems.vrptw.instances import verify


def row_of(state, row):
    one = state.rows(slice(row, row + 1)).compact()
    return {name: tensor[0].numpy() for name, tensor in one.tensors().items()}


def all_solutions(state, row):
    """Every feasible sequence of actions and what it is worth, by the verifier alone."""
    given, customers = row_of(state, row), state.visited.shape[1]
    found = {}
    for order in itertools.permutations(range(customers)):
        for rest in itertools.product([0, 1], repeat=customers - 1):
            actions = tuple(2 * c + v for c, v in zip(order, (1, *rest), strict=True))
            if (verdict := verify(given, actions)).feasible:
                found[actions] = verdict.objective
    return found
