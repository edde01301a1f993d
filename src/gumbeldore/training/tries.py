"""What else could have been done in states that a policy came to: several actions of each, and what each of them costs.

A target that is one action says nothing of the others, of which one may be next to as good and another a disaster. Greedy construction needs to know the difference.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from gumbeldore.errors import ContractError
from gumbeldore.policy import Network
from gumbeldore.problem import Problem, S
from gumbeldore.search.evaluator import masked_log_softmax
from gumbeldore.training.recoveries import objectives

UNLIKELY = math.log(0.003)
"""Actions with a smaller log-probability than this are not tried."""
TEMPERATURE = 0.1
"""Of the softmax by which actions with larger regrets become smaller targets, in mean steps."""


class Tries(NamedTuple):
    """The first action is that of the best way to go on that was known before, the others are those that the policy likes best."""

    action: Int[Tensor, "row choice"]
    regret: Float[Tensor, "row choice"]  # how much worse than the best, in mean steps of the solution; infinite: not tried


def tried(
    problem: Problem[S],
    policy: Network,
    state: S,
    actions: Int[Tensor, "row depth"],
    steps: Sequence[int],
    ways: Sequence[Int[Tensor, "row depth"]],
    *,
    count: int,
    effort: int,
    seeds: Int[Tensor, " row"],
) -> Tries:
    """At most `count` actions in each of the states that `actions` lead to after so many ascending `steps`: first those of the first number of steps.

    What can be reached after an action is what the problem's local search finds, from `ways` to go on with that action brought forward.
    """
    there, passed, found = state, 0, []
    for kept, way in zip(steps, ways, strict=True):
        for action in actions[:, passed:kept].unbind(1):
            there = problem.step(there, action)
        passed = kept
        found.append(_tried(problem, state, liked(problem, policy, there), way, kept, count, effort, seeds))
    return Tries(*(torch.cat(each) for each in zip(*found, strict=True)))


@torch.no_grad()
def liked(problem: Problem[S], policy: Network, state: S) -> Float[Tensor, "row action"]:
    """Log-probabilities by a policy, wherever that is."""
    there = state.to(next(policy.parameters()).device)
    training = policy.training
    logits = policy.eval()(there, policy.prepare(there))
    policy.train(training)
    return masked_log_softmax(logits, problem.mask(there), type(policy).__name__).to(state.device)


def _tried(
    problem: Problem[S],
    state: S,
    log_prob: Float[Tensor, "row action"],
    way: Int[Tensor, "row depth"],
    kept: int,
    count: int,
    effort: int,
    seeds: Int[Tensor, " row"],
) -> Tries:
    known = way[:, kept : kept + 1]
    top = log_prob.scatter(1, known, torch.inf).topk(min(count, log_prob.shape[1]), dim=1)
    value = torch.full(top.values.shape, -torch.inf, dtype=torch.float64, device=way.device)
    value[:, 0] = objectives(problem, state, way)
    possible = top.values > UNLIKELY
    possible[:, 0] = False
    row, choice = possible.nonzero().unbind(1)
    if len(row):
        some = state.rows(row)
        begin = problem.brought_forward(some, way[row], kept, top.indices[row, choice])
        if not torch.equal(begin[:, kept], top.indices[row, choice]):
            raise ContractError(
                f"`{type(problem).__name__}.brought_forward` must return solutions with the given action after {kept} others. Override it, or leave "
                f"`tries` out."
            )
        better = problem.polish(some, begin, effort=effort, seeds=seeds[row] + kept, kept=kept + 1)
        value[row, choice] = objectives(problem, some, better).double()
    best = value.amax(1, keepdim=True)
    step = (best.abs() / way.shape[1]).clamp(min=torch.finfo(torch.float32).tiny)
    regret = torch.nn.functional.pad(((best - value) / step).float(), (0, count - value.shape[1]), value=torch.inf)
    return Tries(torch.nn.functional.pad(top.indices, (0, count - value.shape[1])), regret)
