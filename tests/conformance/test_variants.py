"""The conformance check of variants finds what it should."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from toys import ManyFacedTree

from gumbeldore import check_problem
from gumbeldore.errors import ContractError
from gumbeldore.problem import Variants
from gumbeldore.problems import CVRP, JSSP, TSP


@pytest.mark.parametrize("problem", [TSP(7), CVRP(6, 12), JSSP(4, 3), ManyFacedTree()], ids=["tsp", "cvrp", "jssp", "toy"])
def test_our_variants_pass(problem) -> None:
    check_problem(problem, rows=8)


class Forgetful(TSP):
    """Does not translate from another start."""

    def translated(self, state, tag, actions):
        return torch.where(actions == state.start[:, None], tag[:, None], actions).sort(1).values


class Larger(TSP):
    """Its variants are scaled, so that their tours are longer."""

    def variants(self, state, count, *, seeds):
        variants = super().variants(state, count, seeds=seeds)
        scale = torch.ones(len(variants.tag), 1, 1)
        scale[1 :: variants.count] = 2
        return replace(variants, state=replace(variants.state, coordinates=variants.state.coordinates * scale))


class Another(TSP):
    """Its first variant is not the instance."""

    def variants(self, state, count, *, seeds):
        variants = super().variants(state, count, seeds=seeds)
        return Variants(replace(variants.state, coordinates=1 - variants.state.coordinates), variants.tag, variants.count)


class Swapping(TSP):
    """Exchanges two cities instead of writing the tour down otherwise."""

    def rewritten(self, state, actions, *, seeds):
        form = super().rewritten(state, actions, seeds=seeds)
        return replace(
            form, actions=torch.cat([form.actions[:, 2:3], form.actions[:, 1:2], form.actions[:, :1], form.actions[:, 3:]], 1)
        )


class Mistaken(TSP):
    """Says of a form that it begins where the instance does."""

    def rewritten(self, state, actions, *, seeds):
        return replace(super().rewritten(state, actions, seeds=seeds), tag=state.start)


@pytest.mark.parametrize(
    ("problem", "fault"),
    [
        (Swapping(8), "not complete, or worse"),
        (Mistaken(8), "translated, are not complete"),
        (Forgetful(8), "worth something else"),
        (Larger(8), "worth something else"),
        (Another(8), "variant 0 that is not the instance"),
    ],
)
def test_faults_are_named(problem, fault: str) -> None:
    with pytest.raises(ContractError, match=fault):
        check_problem(problem, rows=8)
