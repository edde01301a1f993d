"""What a step will cost, before it is done: operations of the network by count, and time by timing it on this machine.

Estimates are upper bounds as far as evaluations go (as if no two sequences shared a prefix), and leave out what is spent outside the network.
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
from gumbeldore.problem import Problem, State, ended
from gumbeldore.search.replacement import WithReplacement
from gumbeldore.search.samplers import BeamSearch, Sampler, StochasticBeamSearch

GPU_OPERATIONS = 0.25 * 27.8e12
"""Per second: a quarter of what an NVIDIA RTX A5000, of which the paper used two, does at best in 32-bit floats."""

_BACKWARD = 3
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
    """What a solution of an instance like `state` (one row) takes, judged by some of the steps of one."""
    path = [state]
    while not bool(ended(problem, path[-1]).all()):
        path.append(problem.step(path[-1], problem.mask(path[-1]).int().argmax(1)))
    steps = max(1, len(path) - 1)
    rows = torch.zeros(max(1, min(32, TOKENS // steps)), dtype=torch.long)
    looks = [path[int((part + 0.5) / parts * steps)] for part in range(parts)]
    costs = [Cost(_operations(policy, look), _seconds(policy, look.rows(rows)) / len(rows)) for look in looks]
    return Rollout(steps, sum(costs, Cost()) * (1 / parts))


@torch.no_grad()
def _seconds(policy: Network, state: State) -> float:
    """Of one call, of processor time."""
    policy.eval()
    context = policy.prepare(state)
    policy(state, context)
    began = time.process_time()
    policy(state, context)
    return time.process_time() - began


@torch.no_grad()
def _operations(policy: Network, state: State) -> float:
    """Of one call, by the definition in 64-bit floats, because compiled blocks cannot be counted, nor can fused attention."""
    plain = copy.deepcopy(policy).double().eval()
    floats = {name: tensor.double() for name, tensor in state.tensors().items() if tensor.is_floating_point()}
    exact = replace(state, **floats)
    context = plain.prepare(exact)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        plain(exact, context)
    return float(counter.get_total_flops())


def training(
    search: Cost, example: Cost, validation: Cost, *, instances: int, examples: int, validated: int, epochs: int
) -> Cost:
    """Of a whole training, from the cost of one search, one example's forward pass, and one greedy solution."""
    epoch = search * instances + example * (_BACKWARD * examples) + validation * validated
    return epoch * epochs
