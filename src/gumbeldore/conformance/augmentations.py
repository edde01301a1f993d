"""Checks `Problem.augmentations`, `inverse_transform` and `reencoded`: a solution of an augmentation must be one of the instance, worth the same."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from gumbeldore.conformance.checked import CheckedProblem, same
from gumbeldore.conformance.checks import roll_out
from gumbeldore.problem import Problem, S, replay

_COUNT = 5
_TOLERANCE = 1e-4
"""Relative; an isometry may round."""


def check_augmentations(checked: CheckedProblem[S], initial: S, generator: torch.Generator) -> None:
    """Random solutions of some augmentations, inverse_transform and replayed."""
    problem, few = checked.problem, initial.rows(slice(0, 4)).compact()
    seeds = torch.arange(few.row_count, device=few.device)
    with checked.when(f"for {_COUNT} augmentations"):
        augmentations = problem.augmentations(few, _COUNT, seeds=seeds)
        if augmentations is None:
            return
        rows = few.row_count * augmentations.count
        if not (1 <= augmentations.count <= _COUNT and augmentations.state.row_count == len(augmentations.tag) == rows):
            raise checked.fault(
                "augmentations", "returned another number of rows", "Return `count` rows for each instance, in order."
            )
        first = augmentations.state.rows(torch.arange(0, rows, augmentations.count, device=few.device)).compact()
        if not all(same(mine, theirs) for mine, theirs in zip(first.tensors().values(), few.tensors().values(), strict=True)):
            raise checked.fault(
                "augmentations", "has an augmentation 0 that is not the instance", "Augmentation 0 is the instance itself."
            )
        run = roll_out(checked, augmentations.state, generator)
        own = few.rows(torch.arange(few.row_count, device=few.device).repeat_interleave(augmentations.count))
        actions = problem.inverse_transform(own, augmentations.tag, run.actions)
        if not bool(_worth_the_same(problem, augmentations.state, run.actions, own, actions).all()):
            raise checked.fault(
                "inverse_transform",
                "gave solutions that are not complete, or are worth something else, as solutions of the instance",
                "An augmentation's solution must be one of the instance with the same objective.",
            )


def check_reencoded(checked: CheckedProblem[S], initial: S, generator: torch.Generator) -> None:
    """Random solutions in other forms, and those inverse_transform back."""
    problem, few = checked.problem, initial.rows(slice(0, 4)).compact()
    if type(problem).reencoded is Problem.reencoded:
        return
    with checked.when("for random solutions"):
        run = roll_out(checked, few, generator)
        done = problem.done(run.levels[-1])
        few, actions = few.rows(done.nonzero().squeeze(1)).compact(), run.actions[done]
        for seed in range(_COUNT if len(actions) else 0):
            form = problem.reencoded(few, actions, seeds=torch.arange(len(actions), device=few.device) + 1000 * seed)
            if not bool(_worth_the_same(problem, few, actions, form.state, form.actions, or_more=True).all()):
                raise checked.fault(
                    "reencoded", "gave solutions that are not complete, or worse", "It may only write them down otherwise."
                )
            back = problem.inverse_transform(few, form.tag, form.actions)
            if not bool(_worth_the_same(problem, form.state, form.actions, few, back).all()):
                raise checked.fault(
                    "reencoded",
                    "gave solutions that, inverse_transform, are not complete or are worth something else",
                    "`tag` must name the augmentation that `state` is.",
                )


def _worth_the_same(
    problem: Problem[S],
    state: S,
    actions: Int[Tensor, "row depth"],
    other: S,
    others: Int[Tensor, "row length"],
    *,
    or_more: bool = False,
) -> Bool[Tensor, " row"]:
    """Whether both end alike, and complete solutions have equal objectives (or the others larger ones)."""
    ends = [replay(problem, s, a, (a >= 0).sum(1)) for s, a in ((state, actions), (other, others))]
    done, also = (problem.done(end) for end in ends)
    claimed, worth = (problem.objective(end) for end in ends)
    gain, small = worth - claimed, _TOLERANCE * claimed.abs().clamp(min=1)
    close = (gain >= -small) & (or_more | (gain <= small))
    return (done == also) & (close | ~done)
