"""A conformance check that anyone can run on their own `Problem`.

    check_problem(MyProblem())   # silent if all is well; otherwise a ContractError names the method, the fault and the fix

It plays random roll-outs and looks at every promise of the contract in `problem.py`.
"""

from __future__ import annotations

from typing import Any

import torch

from gumbeldore.conformance.augmentations import check_augmentations, check_reencoded
from gumbeldore.conformance.checked import CheckedProblem
from gumbeldore.conformance.checks import (
    check_dead_end_objective,
    check_examples,
    check_finished_rows,
    check_generate,
    check_horizon,
    check_replay,
    check_rows,
    check_state,
    check_weights,
    roll_out,
)
from gumbeldore.conformance.keys import check_key
from gumbeldore.errors import require
from gumbeldore.problem import Problem

__all__ = ["check_problem"]


def check_problem(problem: Problem[Any], *, generator: torch.Generator | None = None, rows: int = 64) -> None:
    """Raises a `ContractError` unless `problem` keeps the contract on random roll-outs of `rows` generated instances.

    - All methods: results of the promised type, shape, dtype and device; inputs left as they are; the same result when asked
      again; the same result for a row whatever else is in the batch, whether or not rows share an instance.
    - `generate`: honours `count` and draws all its randomness from `generator`; its states survive selection and joining.
    - `mask`: True means allowed; every unfinished row has an action (unless `dead_end_objective` is set).
    - `step`: finished rows step to themselves; instance data is neither changed nor copied per row.
    - `horizon`: an upper bound at every depth. `objective`: finite for finished rows.
    - No trainable weights in the problem or behind its states: what a network learns, it computes from the state.
    - `replay` of a roll-out reproduces it. `examples`: legal targets in unfinished states, drawn from `generator`.
    - `key`, if there is one: equal keys at equal depth of one instance mean equal masks and, action by action, equal rewards.
    - `augmentations`, if there are any: the first is the instance, and solutions of all of them, `inverse_transform`, are worth the same.
    - `reencoded`, if there is one: solutions in other forms are no worse, and worth the same when they are `inverse_transform` back.

    A check of this kind finds faults; it cannot prove that there are none.
    """
    require(isinstance(rows, int) and rows >= 2, f"`rows` must be an integer of at least 2, got {rows!r}.")
    require(isinstance(problem, Problem), f"`problem` must be an instance of a subclass of `Problem`, got {problem!r}.")
    generator = torch.Generator().manual_seed(0) if generator is None else generator
    checked = CheckedProblem(problem)
    check_dead_end_objective(checked)
    initial = check_generate(checked, rows, generator)
    check_state(checked, initial)
    run = roll_out(checked, initial, generator)
    check_weights(checked, run)
    check_horizon(checked, run)
    check_finished_rows(checked, run.levels[-1])
    check_rows(checked, run, generator)
    check_replay(checked, run, generator)
    check_examples(checked, run, generator)
    check_key(checked, initial, rows, generator)
    check_augmentations(checked, initial, generator)
    check_reencoded(checked, initial, generator)
