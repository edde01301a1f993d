"""Answers of samplers, compared bit for bit."""

from __future__ import annotations

import dataclasses

import torch

from gumbeldore.solutions import Diagnostics, Solutions


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def differences(a: Solutions, b: Solutions, *, ignore: tuple[str, ...] = (), any_rounds: bool = False) -> list[str]:
    """The names of all fields in which two results differ in any bit.

    With `any_rounds` one may have more rounds than the other, if they are empty: other instances of its batch needed them. Then only
    what was found is compared, in order, and what belongs to an instance as a whole.
    """
    depth = max(a.actions.shape[2], b.actions.shape[2])
    padded = [torch.nn.functional.pad(s.actions, (0, depth - s.actions.shape[2]), value=-1) for s in (a, b)]
    pairs = {"actions": padded} | {n: [getattr(s, n) for s in (a, b)] for n in ("objective", "log_prob", "filled")}
    pairs |= {f.name: [getattr(s.diagnostics, f.name) for s in (a, b)] for f in dataclasses.fields(Diagnostics)}
    if any_rounds:
        pairs = {
            name: [_found(x, s.filled) for x, s in zip(pair, (a, b), strict=True)]
            for name, pair in pairs.items()
            if name not in PER_ROUND
        }
    return [name for name, (x, y) in pairs.items() if name not in ignore and not same(x, y)]


PER_ROUND = ("mean", "standard_error", "effective_sample_size", "filled", "duplicates_avoided")
"""And a sum over all slots, whose last bit depends on their number."""


def _found(x: torch.Tensor, filled: torch.Tensor) -> torch.Tensor:
    """What stands in filled slots, instance by instance; anything without slots as it is."""
    return x[filled] if x.dim() > 1 else x


def same(x: torch.Tensor, y: torch.Tensor) -> bool:
    return x.shape == y.shape and bool(((x == y) | (x.isnan() & y.isnan())).all())


def instance_of(solutions: Solutions, i: int) -> Solutions:
    rows = {f.name: getattr(solutions.diagnostics, f.name)[i : i + 1] for f in dataclasses.fields(Diagnostics)}
    names = ("actions", "objective", "log_prob", "filled")
    return Solutions(**{n: getattr(solutions, n)[i : i + 1] for n in names}, diagnostics=Diagnostics(**rows))
