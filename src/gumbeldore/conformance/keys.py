"""Checks `Problem.key`: rows of one instance and depth with equal keys must be interchangeable."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gumbeldore.conformance.checked import CheckedProblem, random_legal, same
from gumbeldore.problem import S

_FIX = "The key must contain all that decides about the future: what is left to do and where one stands."


def check_key(checked: CheckedProblem[S], initial: S, rows: int, generator: torch.Generator) -> None:
    """Compares rows of one instance and depth whose keys are equal. Shuffled prefixes produce such rows."""
    if checked.key(initial) is None:
        return
    few = torch.arange(min(4, initial.row_count), device=initial.device)
    start = initial.rows(few.repeat_interleave(rows))
    for depth in range(1, min(5, checked.horizon(start)) + 1):
        actions = _walk(checked, start, [None] * depth, generator)[1]
        order = torch.rand(actions.shape, generator=generator, device=generator.device).argsort(1).to(actions.device)
        prefixes = torch.cat([actions, actions.gather(1, order)])
        twice = start.rows(torch.arange(len(prefixes), device=start.device) % len(actions))
        state = _walk(checked, twice, [*prefixes.unbind(1)], generator)[0]
        state = state.rows((~_ended(checked, state)).nonzero().squeeze(1))
        left, right = _twins(checked, state)
        with checked.when(f"for rows of one instance at depth {depth}"):
            _compare(checked, state.rows(left[:rows]), state.rows(right[:rows]), generator)


def _walk(
    checked: CheckedProblem[S], state: S, wanted: Sequence[Int[Tensor, " row"] | None], generator: torch.Generator
) -> tuple[S, Int[Tensor, "row depth"]]:
    """Takes the wanted action in each row where it is allowed, and a random allowed one elsewhere."""
    taken = []
    for action in wanted:
        mask = checked.mask(state)
        chosen = random_legal(mask, generator)
        if action is not None:
            chosen = action.where(mask.gather(1, action[:, None]).squeeze(1), chosen)
        state = checked.step(state, chosen).where(~_ended(checked, state), state)
        taken.append(chosen)
    return state, torch.stack(taken, 1)


def _ended(checked: CheckedProblem[S], state: S) -> Bool[Tensor, " row"]:
    return checked.done(state) | ~checked.mask(state).any(1)


def _twins(checked: CheckedProblem[S], state: S) -> tuple[Int[Tensor, " pair"], Int[Tensor, " pair"]]:
    """Pairs of rows with equal instance and key."""
    key = checked.key(state)
    assert key is not None
    group = torch.unique(torch.cat([state.instance[:, None], key], 1), dim=0, return_inverse=True)[1]
    order = group.argsort()
    equal = group[order[1:]] == group[order[:-1]]
    return order[1:][equal], order[:-1][equal]


def _compare(checked: CheckedProblem[S], left: S, right: S, generator: torch.Generator) -> None:
    """Rows with equal keys: two continuations differ by the same reward in both."""
    if left.row_count == 0:
        return
    first, second = (_continue(checked, left, right, generator) for _ in range(2))
    gain, twin_gain = first[0] - second[0], first[1] - second[1]
    if not torch.allclose(gain, twin_gain, rtol=1e-3, atol=1e-4):
        row = int((gain - twin_gain).abs().argmax())
        raise checked.fault(
            "key",
            f"is equal for rows whose rewards differ: a continuation gains {gain[row]:.6g} or {twin_gain[row]:.6g} on another",
            _FIX,
        )


def _continue(
    checked: CheckedProblem[S], left: S, right: S, generator: torch.Generator
) -> tuple[Float[Tensor, " row"], Float[Tensor, " row"]]:
    """The objectives after the same random actions in both states, which must allow the same all the way."""
    for _ in range(checked.horizon(left) + 1):
        done, mask = checked.done(left), checked.mask(left)
        if not (same(done, checked.done(right)) and same(mask[~done], checked.mask(right)[~done])):
            raise checked.fault("key", "is equal for rows whose masks or ends differ, now or later", _FIX)
        ended, action = done | ~mask.any(1), random_legal(mask, generator)
        if bool(ended.all()):
            break
        left, right = (checked.step(state, action).where(~ended, state) for state in (left, right))
    return checked.objective(left).double().where(done, 0), checked.objective(right).double().where(done, 0)
