"""How fast the job shop network is, as ratios against a plain matrix product of the same run.

    python benchmarks/jssp_network.py [--threads 2] [--seconds 2] [--whole]

`--whole` adds sampling (Gumbeldore 32 x 4), greedy construction and training steps, all with random weights.

Rates count the multiplications and additions that the network needs: whole blocks for unscheduled operations, and behind the
last machine-wise attention only the jobs' next operations. "outside" is what listing and laying out the operations takes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch

from gumbeldore.policies import JSSPPolicy
from gumbeldore.problems import JSSP, JSSPState, taillard
from gumbeldore.problems.jssp.network import unscheduled
from gumbeldore.search.samplers import Greedy, Gumbeldore
from gumbeldore.training import next_action_loss


def fastest(run: Callable[[], object], seconds: float) -> float:
    """The shortest of many runs."""
    run()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def plain_rate(seconds: float) -> float:
    """Operations per second of a plain matrix product."""
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
    return 2 * 1024**3 / fastest(lambda: a @ b, seconds)


def random_state(jobs: int, machines: int, rows: int, steps: int) -> JSSPState:
    """Rows of one instance after random steps, as in a search."""
    problem, generator = JSSP(jobs, machines), torch.Generator().manual_seed(0)
    state = problem.generate(1, generator=generator).rows(torch.zeros(rows, dtype=torch.int64))
    for _ in range(steps):
        mask = problem.mask(state)
        state = problem.step(state, torch.rand(mask.shape, generator=generator).masked_fill(~mask, -1).argmax(1))
    return state


def needed(policy: JSSPPolicy, state: JSSPState) -> int:
    """Multiplications and additions of the projections and of the attention."""
    d, ff, pairs = policy.config["d"], policy.config["ff"], policy.config["pairs"]
    tokens, unfinished = int((state.operations - state.scheduled).sum()), int(state.unfinished.sum())
    attention = 4 * d * int((state.operations - state.scheduled).square().sum()) * pairs * 2
    block = 2 * (4 * d * d + 2 * d * ff)
    return tokens * (2 * pairs - 1) * block + tokens * 4 * d * d + unfinished * (2 * block - 4 * d * d) + attention


def sampling(policy: JSSPPolicy, jobs: int, machines: int, batch: int) -> str:
    """Complete trajectories per second."""
    problem, generator = JSSP(jobs, machines), torch.Generator().manual_seed(1)
    state = problem.generate(batch, generator=generator)
    start = time.perf_counter()
    solutions = Gumbeldore(beam_width=32, rounds=4, sigma=0.05)(problem, policy, state, generator=generator)
    seconds, count = time.perf_counter() - start, int(solutions.filled.sum())
    return f"GD 32 x 4, {jobs}x{machines}, batch {batch}: {count / seconds:.1f} trajectories/s ({seconds:.1f} s)"


def greedy(policy: JSSPPolicy, index: int) -> str:
    state = taillard(index)
    start = time.perf_counter()
    Greedy()(JSSP(), policy, state, generator=torch.Generator().manual_seed(0))
    return f"greedy, {state.jobs}x{state.operations}, one instance: {time.perf_counter() - start:.1f} s"


def training(policy: JSSPPolicy, jobs: int, machines: int, batch: int) -> str:
    """Examples per second, from given schedules to updated weights."""
    problem, generator = JSSP(jobs, machines), torch.Generator().manual_seed(0)
    state = problem.generate(batch, generator=generator)
    order = torch.rand(batch, jobs * machines, generator=generator).argsort(1)
    actions = torch.arange(jobs).repeat(machines)[order]
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-5)

    def step() -> None:
        optimizer.zero_grad()
        next_action_loss(problem, policy, problem.examples(state, actions, generator=generator)).backward()
        optimizer.step()

    with torch.enable_grad():
        return f"training, {jobs}x{machines}, batch {batch}: {batch / fastest(step, 6):.0f} examples/s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--seconds", type=float, default=2.0, help="time for each measurement")
    parser.add_argument("--whole", action="store_true", help="also sample, construct and train")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    policy = JSSPPolicy()
    with torch.no_grad():
        for name, weight in policy.named_parameters():
            if name.endswith("resweight"):
                weight.fill_(0.3)
        print(f"threads {options.threads}, plain product {plain_rate(options.seconds) / 1e9:.0f} GFLOP/s")
        print("   size rows done  operations  ms/call  us/operation  GFLOP/s  of plain  outside")
        for jobs, machines, rows, share in [
            (6, 6, 32, 0.5),
            (6, 6, 512, 0.5),
            (10, 10, 32, 0.5),
            (15, 15, 32, 0.1),
            (15, 15, 32, 0.5),
            (20, 20, 32, 0.5),
            (100, 20, 1, 0.0),
            (100, 20, 1, 0.5),
        ]:
            state = random_state(jobs, machines, rows, int(share * jobs * machines))
            context = policy.prepare(state)
            assert context is not None
            tokens = int((state.operations - state.scheduled).sum())
            seconds = fastest(lambda state=state, context=context: policy(state, context), options.seconds)
            outside = fastest(
                lambda state=state, context=context: unscheduled(state, context, len(policy.encoder)), options.seconds / 4
            )
            rate, plain = needed(policy, state) / seconds, plain_rate(options.seconds / 4)
            print(
                f"{jobs:3d}x{machines:<3d} {rows:4d} {share:4.0%} {tokens:11d} {1e3 * seconds:8.2f} {1e6 * seconds / tokens:13.2f} "
                f"{rate / 1e9:8.0f} {rate / plain:9.0%} {outside / seconds:8.0%}"
            )
        if options.whole:
            print(sampling(policy, 6, 6, 1), sampling(policy, 6, 6, 16), sep="\n")
            print(sampling(policy, 10, 10, 1), sampling(policy, 10, 10, 4), sampling(policy, 15, 15, 1), sep="\n")
            print(greedy(policy, 1), greedy(policy, 71), sep="\n")
            print(training(policy, 10, 10, 512), training(policy, 15, 15, 512), sep="\n")


if __name__ == "__main__":
    main()
