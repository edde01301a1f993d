"""The conformance check of augmentations finds what it should."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from toys import ManyFacedTree

from gumbeldore import check_problem
from gumbeldore.errors import ContractError
from gumbeldore.problem import Augmentations
from gumbeldore.problems import CVRP, JSSP, TSP


@pytest.mark.parametrize("problem", [TSP(7), CVRP(6, 12), JSSP(4, 3), ManyFacedTree()], ids=["tsp", "cvrp", "jssp", "toy"])
def test_our_variants_pass(problem) -> None:
    check_problem(problem, rows=8)


class Forgetful(TSP):
    """Does not translate from another start."""

    def inverse_transform(self, state, tag, actions):
        return torch.where(actions == state.start[:, None], tag[:, None], actions).sort(1).values


class Larger(TSP):
    """Its augmentations are scaled, so that their tours are longer."""

    def augmentations(self, state, count, *, seeds):
        augmentations = super().augmentations(state, count, seeds=seeds)
        scale = torch.ones(len(augmentations.tag), 1, 1)
        scale[1 :: augmentations.count] = 2
        return replace(augmentations, state=replace(augmentations.state, coordinates=augmentations.state.coordinates * scale))


class Another(TSP):
    """Its first augmentation is not the instance."""

    def augmentations(self, state, count, *, seeds):
        augmentations = super().augmentations(state, count, seeds=seeds)
        return Augmentations(
            replace(augmentations.state, coordinates=1 - augmentations.state.coordinates),
            augmentations.tag,
            augmentations.count,
        )


class Swapping(TSP):
    """Exchanges two cities instead of writing the tour down otherwise."""

    def reencoded(self, state, actions, *, seeds):
        form = super().reencoded(state, actions, seeds=seeds)
        return replace(
            form, actions=torch.cat([form.actions[:, 2:3], form.actions[:, 1:2], form.actions[:, :1], form.actions[:, 3:]], 1)
        )


class Mistaken(TSP):
    """Says of a form that it begins where the instance does."""

    def reencoded(self, state, actions, *, seeds):
        return replace(super().reencoded(state, actions, seeds=seeds), tag=state.start)


@pytest.mark.parametrize(
    ("problem", "fault"),
    [
        (Swapping(8), "not complete, or worse"),
        (Mistaken(8), "inverse_transform, are not complete"),
        (Forgetful(8), "worth something else"),
        (Larger(8), "worth something else"),
        (Another(8), "augmentation 0 that is not the instance"),
    ],
)
def test_faults_are_named(problem, fault: str) -> None:
    with pytest.raises(ContractError, match=fault):
        check_problem(problem, rows=8)
