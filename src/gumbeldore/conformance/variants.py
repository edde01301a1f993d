"""Checks `Problem.variants`, `translated` and `rewritten`: a solution of a variant must be one of the instance, worth the same."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from gumbeldore.conformance.checked import CheckedProblem, same
from gumbeldore.conformance.checks import roll_out
from gumbeldore.problem import Problem, S, replay

COUNT = 5
TOLERANCE = 1e-4
"""Relative; an isometry may round."""


def check_variants(checked: CheckedProblem[S], initial: S, generator: torch.Generator) -> None:
    """Random solutions of some variants, translated and replayed."""
    problem, few = checked.problem, initial.rows(slice(0, 4)).compact()
    seeds = torch.arange(few.row_count, device=few.device)
    with checked.when(f"for {COUNT} variants"):
        variants = problem.variants(few, COUNT, seeds=seeds)
        if variants is None:
            return
        rows = few.row_count * variants.count
        if not (1 <= variants.count <= COUNT and variants.state.row_count == len(variants.tag) == rows):
            raise checked.fault(
                "variants", "returned another number of rows", "Return `count` rows for each instance, in order."
            )
        first = variants.state.rows(torch.arange(0, rows, variants.count, device=few.device)).compact()
        if not all(same(mine, theirs) for mine, theirs in zip(first.tensors().values(), few.tensors().values(), strict=True)):
            raise checked.fault("variants", "has a variant 0 that is not the instance", "Variant 0 is the instance itself.")
        run = roll_out(checked, variants.state, generator)
        own = few.rows(torch.arange(few.row_count, device=few.device).repeat_interleave(variants.count))
        actions = problem.translated(own, variants.tag, run.actions)
        if not bool(worth_the_same(problem, variants.state, run.actions, own, actions).all()):
            raise checked.fault(
                "translated",
                "gave solutions that are not complete, or are worth something else, as solutions of the instance",
                "A variant's solution must be one of the instance with the same objective.",
            )


def check_rewritten(checked: CheckedProblem[S], initial: S, generator: torch.Generator) -> None:
    """Random solutions in other forms, and those translated back."""
    problem, few = checked.problem, initial.rows(slice(0, 4)).compact()
    if type(problem).rewritten is Problem.rewritten:
        return
    with checked.when("for random solutions"):
        run = roll_out(checked, few, generator)
        done = problem.done(run.levels[-1])
        few, actions = few.rows(done.nonzero().squeeze(1)).compact(), run.actions[done]
        for seed in range(COUNT if len(actions) else 0):
            form = problem.rewritten(few, actions, seeds=torch.arange(len(actions), device=few.device) + 1000 * seed)
            if not bool(worth_the_same(problem, few, actions, form.state, form.actions, or_more=True).all()):
                raise checked.fault(
                    "rewritten", "gave solutions that are not complete, or worse", "It may only write them down otherwise."
                )
            back = problem.translated(few, form.tag, form.actions)
            if not bool(worth_the_same(problem, form.state, form.actions, few, back).all()):
                raise checked.fault(
                    "rewritten",
                    "gave solutions that, translated, are not complete or are worth something else",
                    "`tag` must name the variant that `state` is.",
                )


def worth_the_same(
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
    gain, small = worth - claimed, TOLERANCE * claimed.abs().clamp(min=1)
    close = (gain >= -small) & (or_more | (gain <= small))
    return (done == also) & (close | ~done)
