"""Training examples per second, data preparation included, and greedy solving, with random weights.

    python benchmarks/training.py [--only jssp] [--seconds 5]

`public` is what the paper's own code reached on another machine of two quiet cores whose plain product ran at about 130 GFLOP/s; `x scaled` is
our ratio to it after scaling by the products of both machines.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch
from sampling import PUBLIC_MACHINE_GFLOPS, plain_product

from gumbeldore import Dataset, Greedy, WithReplacement
from gumbeldore.policies import CVRPPolicy, JSSPPolicy, TSPPolicy
from gumbeldore.problems import CVRP, JSSP, TSP
from gumbeldore.training import next_action_loss

TRAINING: list[tuple[str, Any, Callable[[], Any], int, float]] = [
    ("train tsp100", TSP(100), TSPPolicy, 256, 117),
    ("train cvrp50", CVRP(50, 40), CVRPPolicy, 256, float("nan")),
    ("train jssp10x10", JSSP(10, 10), JSSPPolicy, 128, 87),
    ("train jssp15x15", JSSP(15, 15), JSSPPolicy, 128, 19),
]
GREEDY: list[tuple[str, Any, Callable[[], Any], int, float]] = [
    ("greedy tsp100", TSP(100), TSPPolicy, 16, 4.3),
    ("greedy jssp15x15", JSSP(15, 15), JSSPPolicy, 1, 0.28),
    ("greedy jssp50x20", JSSP(50, 20), JSSPPolicy, 1, 1 / 258),
    ("greedy jssp100x20", JSSP(100, 20), JSSPPolicy, 1, 1 / 2300),
]


def warm_policy(make: Callable[[], Any]) -> Any:
    """Random weights, ReZero scalars at 0.3."""
    torch.manual_seed(0)
    policy = make()
    for name, parameter in policy.named_parameters():
        if name.endswith("resweight"):
            torch.nn.init.constant_(parameter, 0.3)
    return policy


def training_rate(problem: Any, make: Callable[[], Any], batch: int, seconds: float) -> float:
    """Examples per second of complete gradient steps."""
    policy, generator = warm_policy(make), torch.Generator().manual_seed(0)
    state = problem.generate(64, generator=generator)
    dataset: Dataset[Any] = Dataset()
    random_policy = Uniform()
    dataset.add(state, WithReplacement(1)(problem, random_policy, state, generator=generator).best_actions)
    optimizer = torch.optim.Adam(policy.parameters(), 1e-4)
    count, start = -1, time.perf_counter()
    while count < 1 or time.perf_counter() - start < seconds:
        loss = next_action_loss(problem, policy, dataset.sample(problem, batch, generator))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        count += 1
        if count == 0:  # the first step warms up
            start = time.perf_counter()
    return batch * count / (time.perf_counter() - start)


class Uniform:
    """Every action equally likely: a policy that costs nothing."""

    def prepare(self, state: Any) -> None:
        return None

    def __call__(self, state: Any, context: Any) -> torch.Tensor:
        actions = 2 * state.visited.shape[1] if hasattr(state, "remaining") else None
        shape = (state.row_count, actions or (state.visited if hasattr(state, "visited") else state.scheduled).shape[1])
        return torch.zeros(shape)


def greedy_rate(problem: Any, make: Callable[[], Any], batch: int, seconds: float) -> float:
    """Instances per second."""
    policy, generator = warm_policy(make), torch.Generator().manual_seed(0)
    state = problem.generate(batch, generator=generator)
    count, start = 0, time.perf_counter()
    while count == 0 or time.perf_counter() - start < seconds:
        Greedy()(problem, policy, state, generator=generator)
        count += 1
    return batch * count / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--seconds", type=float, default=5.0, help="per case, at least")
    options = parser.parse_args()
    print(f"{torch.get_num_threads()} threads")
    print(f"{'case':<20}{'per second':>12}{'public':>10}{'product':>9}{'x scaled':>10}")
    for cases, rate in ((TRAINING, training_rate), (GREEDY, greedy_rate)):
        for name, problem, make, batch, public in cases:
            if options.only in name:
                product = plain_product()
                ours = rate(problem, make, batch, options.seconds)
                scaled = ours / public * PUBLIC_MACHINE_GFLOPS / product
                print(f"{name:<20}{ours:>12.3f}{public:>10.4f}{product:>9.0f}{scaled:>10.2f}", flush=True)


if __name__ == "__main__":
    main()
