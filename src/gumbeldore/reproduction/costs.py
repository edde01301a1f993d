"""What a step will cost, before it is done: operations of the network by count, and time by timing it on this machine.

Estimates are upper bounds as far as evaluations go (as if no two sequences shared a prefix, and no game ended early), and leave out what is spent outside the network.
"""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from gumbeldore.policy import Network
from gumbeldore.problem import Problem, State
from gumbeldore.search.replacement import WithReplacement
from gumbeldore.search.samplers import BeamSearch, Sampler, StochasticBeamSearch

GPU_OPERATIONS = 0.25 * 27.8e12
"""Per second: a quarter of what an NVIDIA RTX A5000, of which the paper used two, does at best in 32-bit floats."""

BACKWARD = 3
"""A gradient takes the forward pass and twice as much again."""

TOKENS = 3000
"""Rows are timed together as long as rows x steps stay below this."""


@dataclass(frozen=True)
class Cost:
    """Of some work."""

    operations: float = 0.0
    core_seconds: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.operations + other.operations, self.core_seconds + other.core_seconds)

    def __mul__(self, times: float) -> Cost:
        return Cost(times * self.operations, times * self.core_seconds)

    @property
    def gpu_seconds(self) -> float:
        return self.operations / GPU_OPERATIONS


@dataclass(frozen=True)
class Rollout:
    """One solution by a network, step by step."""

    steps: int
    step: Cost  # the mean over the steps

    @property
    def total(self) -> Cost:
        return self.step * self.steps


def sequences(sampler: Sampler) -> int:
    """How many sequences a sampler draws per instance."""
    if isinstance(sampler, StochasticBeamSearch):
        return sampler.beam_width * sampler.rounds
    if isinstance(sampler, BeamSearch):
        return sampler.beam_width
    return sampler.samples if isinstance(sampler, WithReplacement) else 1


def rollout(problem: Problem[Any], policy: Network, state: State, parts: int = 4) -> Rollout:
    """What a solution of an instance like `state` (one row) takes, judged by some of its steps."""
    steps = problem.horizon(state)
    rows = max(1, min(32, TOKENS // max(1, steps)))
    looks = {round((part + 0.5) / parts * steps) for part in range(parts)}
    costs = []
    for depth in range(steps):
        if bool(problem.done(state).all()):
            break
        if depth in looks:
            costs.append(_cost(policy, state.rows(torch.zeros(rows, dtype=torch.long))) * (1 / rows))
        state = problem.step(state, problem.mask(state).float().argmax(1))
    mean = sum(costs, Cost()) * (1 / max(1, len(costs)))
    return Rollout(steps, mean)


@torch.no_grad()
def _cost(policy: Network, state: State) -> Cost:
    """One call, timed; counted by the definition in 64-bit floats, because compiled blocks cannot be counted."""
    policy.eval()
    context = policy.prepare(state)
    policy(state, context)
    began = time.process_time()
    policy(state, context)
    seconds = time.process_time() - began
    plain = copy.deepcopy(policy).double()
    floats = {name: tensor.double() for name, tensor in state.tensors().items() if tensor.is_floating_point()}
    exact = replace(state, **floats)
    context = plain.prepare(exact)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:  # fused attention is not counted
        plain(exact, context)
    return Cost(counter.get_total_flops(), seconds)


def training(
    search: Cost, example: Cost, validation: Cost, *, instances: int, examples: int, validated: int, epochs: int
) -> Cost:
    """Of a whole training, from the cost of one search, one example's forward pass, and one greedy solution."""
    epoch = search * instances + example * (BACKWARD * examples) + validation * validated
    return epoch * epochs
