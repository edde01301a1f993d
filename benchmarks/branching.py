"""Losses over several sequences of an instance, against learning from the best one alone.

    python benchmarks/branching.py --case tsp20 --minutes 1 --seeds 3

The recipe is `plain` of benchmarks/learning.py (GD 16x2 with the best policy, the dataset is emptied when it improves), with
`frame` for routes, in a loop of its own. Without-replacement sequences of one instance form a tree. Where they part, each action
that was taken has a known best objective below it, and a pass through the network tells all of these actions apart. Half of every
minibatch are such branching states, the other half the usual examples:

    best      no branching states: the usual examples only, of the best sequence
    several   the same of all sequences, drawn by a softmax of their standardised objectives
    hard      the action with the best objective below it is the target
    soft      the target is a softmax of these objectives, standardised, among the actions taken
    pairs     -log sigmoid(logit of the best action - logit of another one), mean over the others

Every run is a process with one thread that stops after its core-seconds; results are kept in benchmarks/results/branching/.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import torch
from jaxtyping import Float, Int
from learning import CASES, FRAME, PLAIN, Tree, at, instances, joined
from torch import Tensor, nn

from gumbeldore.files import write_atomically
from gumbeldore.parallel.processes import in_processes
from gumbeldore.runs.presets import entry
from gumbeldore.search.evaluator import masked_log_softmax
from gumbeldore.search.samplers import draw_seeds
from gumbeldore.solutions import Solutions
from gumbeldore.training.algorithm import greedy_objective
from gumbeldore.training.dataset import Dataset
from gumbeldore.training.loss import action_losses
from gumbeldore.training.state import GRADIENT_NORM

RESULTS = Path(__file__).parent / "results" / "branching"
KINDS = ("best", "several", "hard", "soft", "pairs")
SOFTNESS = 0.5  # temperature of `soft` and `several`, in standard deviations of an instance's objectives
Job = tuple[str, str, int, float, int]  # case, kind, seed, minutes, validation instances


@dataclass(frozen=True)
class Forks:
    """Where sequences of an instance part, in the order of depth."""

    state: Any  # initial, one row per fork
    actions: Int[Tensor, "fork depth"]  # of a sequence that goes through it
    steps: Int[Tensor, " fork"]
    value: Float[Tensor, "fork action"]  # the best objective below, standardised by instance; -inf: not taken

    @classmethod
    def of(cls, state: Any, solutions: Solutions, choices: int) -> Forks:
        """All prefixes that several sequences have in common and that they leave by different actions."""
        actions, score = solutions.actions, standardised(solutions)
        equal = actions[:, :, None] == actions[:, None]  # instance sequence other depth
        together = torch.cat([torch.ones_like(equal[..., :1]), equal[..., :-1].cumprod(-1).bool()], -1)
        together &= (solutions.filled[:, :, None] & solutions.filled[:, None])[..., None] & (actions >= 0)[:, None]
        first = ~(together & torch.ones_like(equal[0, :, :, 0]).tril(-1)[..., None]).any(
            2
        )  # a fork is named by its first sequence
        row, sequence, depth = (first & (together & ~equal).any(2)).nonzero(as_tuple=True)
        order = depth.argsort(stable=True)
        row, sequence, depth = row[order], sequence[order], depth[order]
        taken, member = actions[row, :, depth], together[row, sequence, :, depth]
        value = score.new_full((len(row), choices + 1), -torch.inf)
        value.scatter_reduce_(1, taken.where(member, choices), score[row].where(member, -torch.inf), "amax")
        return cls(state.rows(row).compact(), actions[row, sequence], depth, value[:, :-1])

    def sample(self, problem: Any, count: int, generator: torch.Generator) -> tuple[Any, Float[Tensor, "row action"]]:
        """Neighbours in the order of depth, so that a minibatch has states of one size; and the values of their actions."""
        begin = int(torch.randint(max(1, len(self.steps) - count + 1), (), generator=generator))
        rows = torch.arange(begin, min(begin + count, len(self.steps)))
        taken = self.state.rows(rows).compact(), self.actions[rows], self.steps[rows]
        return problem.examples_after(*taken, generator=generator), self.value[rows]


def standardised(solutions: Solutions) -> Float[Tensor, "instance sequence"]:
    """Objectives minus their mean, by their standard deviation; the sequences that there are."""
    value, filled = solutions.objective, solutions.filled
    count = filled.sum(1, keepdim=True)
    mean = value.where(filled, 0).sum(1, keepdim=True) / count
    spread = ((value - mean).square().where(filled, 0).sum(1, keepdim=True) / count).sqrt()
    return ((value - mean) / spread.clamp(min=1e-9)).float()


def fork_losses(
    kind: str, logits: Float[Tensor, "row action"], mask: Tensor, value: Float[Tensor, "row action"]
) -> Float[Tensor, " row"]:
    """How badly the policy tells the actions apart that were taken."""
    taken, best = value > -torch.inf, value.argmax(1, keepdim=True)
    if kind == "hard":
        return -masked_log_softmax(logits, mask, "policy").gather(1, best).squeeze(1)
    if kind == "soft":
        among = masked_log_softmax(logits, taken, "policy").where(taken, 0)
        return -((value / SOFTNESS).softmax(1) * among).sum(1)
    worse = taken.scatter(1, best, False) & (value < value.gather(1, best))
    pairs = -nn.functional.logsigmoid(logits.gather(1, best) - logits).where(worse, 0)
    return pairs.sum(1) / worse.sum(1).clamp(min=1)


def settings_of(case: str, seed: int) -> Any:
    problem, changes = CASES[case]
    tree: Tree = {"training": {"seed": seed, "learning_rate": 1e-3, "sampling_batch": 32}}
    for change in (changes, PLAIN, {} if problem == "jssp" else FRAME):
        tree = joined(tree, change)
    return entry(problem).settings("paper", tree)


def run(job: Job) -> Tree:
    """Self-improvement until the time is over: a point per epoch."""
    case, kind, seed, minutes, count = job
    torch.set_num_threads(1)
    settings = settings_of(case, seed)
    problem, training = settings.training_problem, settings.training
    validation, reference = instances(case, count)
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    policy = entry(CASES[case][0]).build(settings)
    best, best_value = copy.deepcopy(policy), -torch.inf
    optimizer = torch.optim.Adam(policy.parameters(), lr=training.learning_rate)
    dataset, forks, points, began = Dataset(), [], [], time.process_time()
    while not points or points[-1]["seconds"] < 60 * minutes:
        fill(problem, best, settings, kind, dataset, forks, generator)
        for _ in range(training.batches):
            optimizer.zero_grad()
            loss(problem, policy, kind, dataset, forks, training.batch_size, generator).backward()
            nn.utils.clip_grad_norm_(policy.parameters(), GRADIENT_NORM)
            optimizer.step()
        value = greedy_objective(problem, policy, validation).mean().item()
        if value > best_value:
            best.load_state_dict(policy.state_dict())
            best_value = value
            dataset.clear()
            forks.clear()
        spent, gap = time.process_time() - began, 100 * (value / reference - 1)
        points.append({"seconds": round(spent, 1), "gap": round(gap, 3)})
    return {"case": case, "kind": kind, "seed": seed, "points": points}


def fill(problem: Any, policy: Any, settings: Any, kind: str, dataset: Any, forks: list[Forks], generator: Any) -> None:
    """Solves fresh instances, and adds what is to be learnt from."""
    for _ in range(settings.training.instances // settings.training.sampling_batch):
        state = problem.generate(settings.training.sampling_batch, generator=generator)
        solutions = settings.sampler.build()(problem, policy, state, seeds=draw_seeds(state.row_count, generator))
        if kind == "several":
            share = (standardised(solutions) / SOFTNESS).masked_fill(~solutions.filled, -torch.inf).softmax(1)
            chosen = share.multinomial(8, replacement=True, generator=generator).flatten()
            row = torch.arange(state.row_count).repeat_interleave(8)
            dataset.add(state.rows(row), solutions.actions[row, chosen])
        else:
            dataset.add(state, solutions.best_actions)
        if kind in ("hard", "soft", "pairs"):
            forks.append(Forks.of(state, solutions, problem.mask(state).shape[1]))


def loss(problem: Any, policy: Any, kind: str, dataset: Any, forks: list[Forks], size: int, generator: Any) -> Tensor:
    """Of one minibatch."""
    if not forks:
        return action_losses(problem, policy, dataset.sample(problem, size, generator)).mean()
    usual = action_losses(problem, policy, dataset.sample(problem, size // 2, generator)).mean()
    some = forks[int(torch.randint(len(forks), (), generator=generator))]
    examples, value = some.sample(problem, size // 2, generator)
    logits = policy(examples.state, policy.prepare(examples.state))
    return usual + fork_losses(kind, logits, problem.mask(examples.state), value).mean()


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", default="tsp20", choices=list(CASES))
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--minutes", type=float, default=1.0, help="of one core, per run")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--instances", type=int, default=200, help="for validation")
    parser.add_argument("--workers", type=int, default=2, help="runs at a time")
    options = parser.parse_args(arguments)
    kinds, amount = options.kinds.split(","), (options.minutes, options.instances)
    jobs = [(options.case, kind, seed, *amount) for seed in range(options.seeds) for kind in kinds]
    RESULTS.mkdir(parents=True, exist_ok=True)
    files = {job: RESULTS / f"{job[0]}-{job[1]}-{job[2]}-{job[3]:g}min.json" for job in jobs}
    for job, result in in_processes(run, {job: job for job in jobs if not files[job].exists()}, options.workers):
        write_atomically(files[job], lambda path, result=result: path.write_text(json.dumps(result)))
    for kind in kinds:
        ends = [at(json.loads(path.read_text())["points"], torch.inf) for job, path in files.items() if job[1] == kind]
        spread = stdev(ends) if len(ends) > 1 else torch.nan
        print(f"{kind:8} {fmean(ends):6.2f} ± {spread:.2f} %", *(f"{end:.2f}" for end in ends))


if __name__ == "__main__":
    main(sys.argv[1:])
