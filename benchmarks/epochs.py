"""Seconds per epoch of the paper's settings on this machine, measured on a small part of an epoch, and the whole training from it.

python benchmarks/epochs.py --problems tsp cvrp jssp gomoku --instances 1 --batches 1 --out benchmarks/results/epochs.json

An epoch samples, learns and validates; each part is measured on some instances and a gradient step of some examples, by processor time of one process with one thread,
and scaled up. Two cores take half of it. GPU hours follow from counted operations (`gumbeldore.reproduction.costs`).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from gumbeldore.policy import Network
from gumbeldore.reproduction.costs import GPU_OPERATIONS, rollout, sequences, training
from gumbeldore.runs.presets import entry
from gumbeldore.runs.settings import RunSettings
from gumbeldore.search.samplers import Greedy
from gumbeldore.training.algorithm import next_action_loss

HOUR, CORES = 3600.0, 2


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


def measured(problem: str, instances: int, examples: int) -> dict[str, float]:
    """An epoch of the paper's preset."""
    settings = entry(problem).settings("paper")
    policy = entry(problem).build(settings)
    learnt, generator = settings.training_problem, torch.Generator().manual_seed(0)
    sampler = settings.sampler.build(settings.training.epochs)
    state = learnt.generate(instances, generator=generator)
    sampling, solutions = timed(lambda: sampler(learnt, policy, state, generator=generator))
    actions = solutions.best_actions
    several = torch.arange(examples) % instances

    def step() -> None:
        drawn = learnt.examples(state.rows(several).compact(), actions[several], generator=generator)
        next_action_loss(learnt, policy, drawn).backward()

    learning, _ = timed(step)
    judged = settings.validation_problem.generate(instances, generator=generator)
    validating, _ = timed(lambda: Greedy()(settings.validation_problem, policy, judged, generator=generator))
    plan = settings.training
    seconds = {
        "sampling": sampling / instances * plan.instances,
        "learning": learning / examples * plan.batches * plan.batch_size,
        "validating": validating / instances * settings.validation.instances,
    }
    epoch = sum(seconds.values()) / CORES
    gpu = counted(settings, policy) / GPU_OPERATIONS
    return {
        **{f"core_seconds_{name}": value for name, value in seconds.items()},
        "seconds_per_epoch": epoch,
        "epochs": plan.epochs,
        "days_here": epoch * plan.epochs / 24 / HOUR,
        "days_on_a_gpu": gpu * plan.epochs / 24 / HOUR,
    }


def counted(settings: RunSettings, policy: Network) -> float:
    """Operations of an epoch."""
    draw = torch.Generator().manual_seed(0)
    one = rollout(settings.training_problem, policy, settings.training_problem.generate(1, generator=draw))
    judged = rollout(settings.validation_problem, policy, settings.validation_problem.generate(1, generator=draw))
    plan = settings.training
    cost = training(
        one.total * sequences(settings.sampler.build()),
        one.step,
        judged.total,
        instances=plan.instances,
        examples=plan.batches * plan.batch_size,
        validated=settings.validation.instances,
        epochs=1,
    )
    return cost.operations


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", default=["tsp", "tsp-lehd", "cvrp", "jssp", "gomoku"])
    parser.add_argument("--instances", type=int, default=2, help="to sample and to validate")
    parser.add_argument("--examples", type=int, default=64, help="of a gradient step")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results/epochs.json")
    given = parser.parse_args()
    torch.set_num_threads(1)
    found = json.loads(given.out.read_text()) if given.out.is_file() else {}
    for problem in given.problems:
        found[problem] = measured(problem, given.instances, given.examples)
        given.out.write_text(json.dumps(found, indent=1) + "\n")
        print(f"{problem}: {json.dumps({name: round(value, 2) for name, value in found[problem].items()})}", flush=True)
    print(
        "\n| preset paper | seconds per epoch, 2 cores | epochs | days, 2 cores | days, one RTX A5000 at a quarter of its peak |"
    )
    print("|---|---|---|---|---|")
    for problem, row in found.items():
        columns = (row["seconds_per_epoch"], row["epochs"], row["days_here"], row["days_on_a_gpu"])
        print(f"| {problem} | " + " | ".join(f"{value:.3g}" for value in columns) + " |")


if __name__ == "__main__":
    main()
