"""How fast sampling is: trajectories per second of GD 32 x 4 with random weights, against a plain matrix product of the same run.

    python benchmarks/sampling.py [--only tsp20-small] [--json results.json] [--seconds 10]

For each case: complete trajectories per second, the share of time outside the network's forward pass, the network's GFLOP/s and what part
of the plain matrix product's rate that is. Machines are noisy: compare ratios, not times. `public` is what the paper's own code reached on
another machine of two quiet cores whose plain product ran at about 130 GFLOP/s; `x scaled` is our ratio to it after scaling by the
products of both machines.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from gumbeldore import Gumbeldore
from gumbeldore.policies import CVRPPolicy, JSSPPolicy, TSPPolicy
from gumbeldore.problems import CVRP, JSSP, TSP

PUBLIC_MACHINE_GFLOPS = 130.0
SMALL = {"d": 64, "layers": 3, "heads": 8, "ff": 256}


@dataclass(frozen=True)
class Case:
    name: str
    problem: Any
    batch: int
    policy: Callable[[], Any]
    public: float  # trajectories per second of the public code


CASES = [
    Case("tsp20-small", TSP(20), 8, lambda: TSPPolicy(**SMALL), 326),
    Case("tsp50-small", TSP(50), 4, lambda: TSPPolicy(**SMALL), 58),
    Case("tsp100-small", TSP(100), 4, lambda: TSPPolicy(**SMALL), float("nan")),
    Case("tsp20-paper", TSP(20), 8, TSPPolicy, 95),
    Case("tsp50-paper", TSP(50), 4, TSPPolicy, 15.3),
    Case("tsp100-paper", TSP(100), 1, TSPPolicy, 4.6),
    Case("cvrp20-paper", CVRP(20, 30), 4, CVRPPolicy, 57),
    Case("cvrp50-paper", CVRP(50, 40), 4, CVRPPolicy, 9.4),
    Case("jssp6x6", JSSP(6, 6), 1, JSSPPolicy, 31),
    Case("jssp10x10", JSSP(10, 10), 1, JSSPPolicy, 3.1),
    Case("jssp15x15", JSSP(15, 15), 1, JSSPPolicy, 0.30),
]


@dataclass(frozen=True)
class Result:
    name: str
    trajectories_per_second: float
    outside_forward: float
    network_gflops: float
    product_gflops: float
    public: float

    @property
    def scaled_ratio(self) -> float:
        return self.trajectories_per_second / self.public * PUBLIC_MACHINE_GFLOPS / self.product_gflops


def plain_product(seconds: float = 0.5, size: int = 1024) -> float:
    """GFLOP/s of a float32 matrix product with as many threads as torch uses."""
    a, b = torch.randn(2, size, size)
    a @ b
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        a @ b
        count += 1
    return 2 * size**3 * count / (time.perf_counter() - start) / 1e9


class Timed:
    """Counts the time and the floating-point operations of a policy's forward passes."""

    def __init__(self, policy: Any) -> None:
        self.policy, self.seconds, self.operations = policy, 0.0, 0.0
        self.row_bytes = policy.row_bytes

    def prepare(self, state: Any) -> Any:
        return self.policy.prepare(state)

    def __call__(self, state: Any, context: Any) -> torch.Tensor:
        start = time.perf_counter()
        logits = self.policy(state, context)
        self.seconds += time.perf_counter() - start
        self.operations += transformer_operations(self.policy.config, state)
        return logits


def transformer_operations(config: dict[str, int], state: Any) -> float:
    """Multiplications and additions of the blocks for all rows of a routing state; not counted for others."""
    if not hasattr(state, "visited"):
        return float("nan")
    tokens = int((~state.visited[:1]).sum()) + 2
    d, ff = config["d"], config["ff"]
    per_token = 2 * (4 * d * d + 2 * d * ff) + 4 * tokens * d
    return state.row_count * tokens * config["layers"] * per_token


def measure(case: Case, seconds: float) -> Result:
    torch.manual_seed(0)
    policy = case.policy()
    for name, parameter in policy.named_parameters():
        if name.endswith("resweight"):
            torch.nn.init.constant_(parameter, 0.3)
    generator = torch.Generator().manual_seed(0)
    state = case.problem.generate(case.batch, generator=generator)
    sampler = Gumbeldore(32, 4)
    sampler(case.problem, policy, state, generator=generator)
    product = plain_product()
    timed, count, start = Timed(policy), 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        sampler(case.problem, timed, state, generator=generator)
        count += 1
    total = time.perf_counter() - start
    product = (product + plain_product()) / 2
    return Result(
        case.name,
        128 * case.batch * count / total,
        1 - timed.seconds / total,
        timed.operations / timed.seconds / 1e9,
        product,
        case.public,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--seconds", type=float, default=10.0, help="per case")
    parser.add_argument("--json", type=Path, help="also write the results here")
    options = parser.parse_args()
    print(f"{torch.get_num_threads()} threads")
    print(f"{'case':<16}{'traj/s':>9}{'outside':>9}{'GFLOP/s':>9}{'product':>9}{'share':>7}{'public':>8}{'x scaled':>10}")
    results = []
    for case in CASES:
        if options.only in case.name:
            r = measure(case, options.seconds)
            results.append(r)
            print(
                f"{r.name:<16}{r.trajectories_per_second:>9.1f}{r.outside_forward:>9.1%}{r.network_gflops:>9.0f}{r.product_gflops:>9.0f}"
                f"{r.network_gflops / r.product_gflops:>7.0%}{r.public:>8.1f}{r.scaled_ratio:>10.2f}",
                flush=True,
            )
    if options.json:
        options.json.write_text(json.dumps([asdict(r) | {"scaled_ratio": r.scaled_ratio} for r in results], indent=1) + "\n")


if __name__ == "__main__":
    main()
