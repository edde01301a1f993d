"""What `torchrun` starts in test_ranks.py: work shared by ranks against the same work done alone, then a command."""

from __future__ import annotations

import sys

import torch

from gumbeldore import Gumbeldore
from gumbeldore.cli import main
from gumbeldore.parallel.ranks import joined
from gumbeldore.policies import TSPPolicy
from gumbeldore.problems import TSP
from gumbeldore.training.ranked_workers import RankedWorkers
from gumbeldore.training.workers import Workers


def compare() -> None:
    """Gradients agree to rounding, for batches that cannot be shared evenly too; solutions agree exactly."""
    torch.manual_seed(0)
    problem, policy, generator = TSP(8), TSPPolicy(d=16, layers=2, heads=2, ff=32), torch.Generator().manual_seed(0)
    for parameter in policy.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    alone, shared = Workers(problem, policy, 0), RankedWorkers(Workers(problem, policy, 0))
    for count in (9, 1):
        actions = torch.stack([torch.randperm(7, generator=generator) + 1 for _ in range(count)])
        examples = problem.examples(problem.generate(count, generator=generator), actions, generator=generator)
        (loss, gradient), (ours, sum_of_parts) = alone.gradient(examples)(), shared.gradient(examples)()
        torch.testing.assert_close(ours, loss, rtol=1e-6, atol=0)
        torch.testing.assert_close(sum_of_parts, gradient, rtol=1e-5, atol=1e-7)
    for count in (7, 1):
        state, seeds = problem.generate(count, generator=generator), torch.arange(count)
        expected, found = (list(workers.sample(Gumbeldore(4, 2), state, seeds, 2)) for workers in (alone, shared))
        assert [rows for rows, _ in found] == [rows for rows, _ in expected]
        for (_, theirs), (_, solutions) in zip(found, expected, strict=True):
            assert torch.equal(theirs.actions, solutions.actions)


if __name__ == "__main__":
    with joined() as ranks:
        assert ranks.count == 2
        compare()
        code = main(sys.argv[1:])
    sys.exit(code)
