"""Where greedy routes lose, and how good the labels are that a policy learns from.

    python benchmarks/deliveries.py src/gumbeldore/problems/cvrp/policies/cvrp-small.safetensors --instances 200

One thread. Lengths refer to the best that a local search finds; all of it is about states that the policy came to by itself.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from torch import Tensor

from gumbeldore.io.policy_files import load_policy
from gumbeldore.local_search import improve as local_search
from gumbeldore.problem import replay
from gumbeldore.problems import CVRP
from gumbeldore.problems.subtours import Subtours
from gumbeldore.search.samplers import Greedy
from gumbeldore.training.algorithm import greedy_objective
from gumbeldore.training.relabelling import objectives, relabelled

LONG = 400  # attempts per customer of what lengths refer to
KINDS = {  # what the label says, what greedy does
    "another customer": (0, 0),
    "the depot too early": (0, 1),
    "the depot too late": (1, 0),
    "another subtour": (1, 1),
}


def lengths(problem: CVRP, state: Any, solutions: Tensor) -> Tensor:
    return -objectives(problem, state, solutions)


def percent(part: Tensor | float, whole: Tensor) -> float:
    return 100 * float(torch.as_tensor(part, dtype=torch.float64).mean() / whole.mean())


def subtours_used(problem: CVRP, state: Any, greedy: Tensor, best: Tensor) -> None:
    counts = [float((actions % 2).sum(1).double().mean()) for actions in (greedy, best)]
    print(f"subtours: greedy {counts[0]:.2f}, best {counts[1]:.2f}")
    more = (greedy % 2).sum(1) > (best % 2).sum(1)
    for name, rows in (("as many as", ~more), ("more than", more)):
        above = lengths(problem, state, greedy)[rows] - lengths(problem, state, best)[rows]
        print(f"  {name} the best: {int(rows.sum())} instances, {percent(above, lengths(problem, state, best)[rows]):.2f} %")


def taken_over(problem: CVRP, policy: Any, state: Any, best: Tensor) -> None:
    """Greedy goes on after so many subtours of the best solution, in the order of the problem."""
    subtours, length = Subtours.of(best), lengths(problem, state, best)
    rank, reverse = problem.ranked(subtours, state.nodes, state.demands, state.capacity, torch.zeros_like(best).bool())
    order, begins = subtours.arranged(rank, reverse)
    number = begins.cumsum(1)
    for count in range(int(number[:, -1].min())):
        there = replay(problem, state, 2 * order + begins, (number <= count).sum(1))
        print(f"  greedy after {count} subtours: {percent(-greedy_objective(problem, policy, there) - length, length):.2f} %")


def regrets(problem: CVRP, state: Any, greedy: Tensor, best: Tensor, effort: int) -> None:
    """By what each step of greedy makes the best that is left longer, by the kind of mistake."""
    depth, seeds = greedy.shape[1], torch.arange(len(greedy))
    ways = [best, *relabelled(problem, state, greedy, list(range(1, depth)), effort=effort, seeds=seeds)]
    value = torch.stack([lengths(problem, state, way) for way in [*ways, greedy]], 1)
    value = value.cummax(1).values  # a way on after more steps is one after fewer
    lost, label = value.diff(dim=1), torch.stack([way[:, step] for step, way in enumerate(ways)], 1)
    for name, (wanted, done) in KINDS.items():
        these = (label % 2 == wanted) & (greedy % 2 == done) & (label != greedy)
        print(f"  {name}: {float(these.sum(1).double().mean()):.1f} times, {percent((lost * these).sum(1), value[:, 0]):.2f} %")


def labels(problem: CVRP, state: Any, greedy: Tensor, effort: int) -> None:
    """What local search leaves to be gained after 16 numbers of steps: each state on its own, and all of a solution together."""
    seeds, depth = torch.arange(len(greedy)), greedy.shape[1]
    drawn = torch.randperm(depth - 2, generator=torch.Generator().manual_seed(1))[:16]
    steps = sorted((1 + drawn).tolist())
    alone = [problem.local_search(state, greedy, effort=effort, seeds=seeds, kept=kept) for kept in steps]
    found = {
        "alone": alone,
        "together": relabelled(problem, state, greedy, steps, effort=effort, seeds=seeds),
        "long": relabelled(problem, state, greedy, steps, effort=LONG, seeds=seeds),
    }
    value = {name: torch.stack([lengths(problem, state, way) for way in ways]) for name, ways in found.items()}
    least = torch.stack(list(value.values())).amin(0)
    for name, length in value.items():
        print(f"  {name}: {percent(length - least, least):.3f} % above the best")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policy", type=Path)
    parser.add_argument("--customers", type=int, default=50)
    parser.add_argument("--capacity", type=int, default=40)
    parser.add_argument("--order", default="given", help="that of the policy's training")
    parser.add_argument("--instances", type=int, default=100)
    parser.add_argument("--effort", type=int, default=30, help="attempts per customer of the labels")
    parser.add_argument("--hot", type=float, default=local_search.HOT, help="the temperature at which they begin")
    given = parser.parse_args()
    torch.set_num_threads(1)
    problem, policy = CVRP(given.customers, given.capacity, order=given.order), load_policy(given.policy)
    state = problem.generate(given.instances, generator=torch.Generator().manual_seed(4321))
    seeds = torch.arange(given.instances)
    greedy = Greedy()(problem, policy, state, seeds=seeds).best_actions
    best = problem.local_search(state, greedy, effort=LONG, seeds=seeds)
    length = lengths(problem, state, best)
    print(f"greedy: {percent(lengths(problem, state, greedy) - length, length):.2f} % above a local search")
    subtours_used(problem, state, greedy, best)
    taken_over(problem, policy, state, best)
    print("mistakes, per solution:")
    regrets(problem, state, greedy, best, 2 * given.effort)
    print(f"labels with {given.effort} attempts per customer:")
    local_search.HOT = given.hot
    labels(problem, state, greedy, given.effort)


if __name__ == "__main__":
    main()
