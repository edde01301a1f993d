"""Checks `Problem.variants` and `Problem.translated`: a solution of a variant must be one of the instance, worth the same."""

from __future__ import annotations

import torch

from gumbeldore.conformance.checked import CheckedProblem, same
from gumbeldore.conformance.checks import roll_out
from gumbeldore.problem import S, replay

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
        end = replay(problem, own, actions, (actions >= 0).sum(1))
        ended = problem.done(end) == problem.done(run.levels[-1])
        worth, claimed = problem.objective(end), problem.objective(run.levels[-1])
        equal = (worth - claimed).abs() <= TOLERANCE * claimed.abs().clamp(min=1)
        if not bool((ended & (equal | ~problem.done(end))).all()):
            raise checked.fault(
                "translated",
                "gave solutions that are not complete, or are worth something else, as solutions of the instance",
                "A variant's solution must be one of the instance with the same objective.",
            )
