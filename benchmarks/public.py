"""Times one case of the paper's public code (github.com/grimmlab/gumbeldore) and prints a line of JSON.

    python benchmarks/public.py --path CLONE --case tsp20-small [--seconds 5] [--threads 2]

`speed.py --public CLONE` runs it, one process per case. Nothing of that code is part of this repository: its modules are
imported from a clone, with stand-ins for `ray` and `mlflow`, which are not needed to search or to train. Its searches, networks,
training sets and training loops run as they are, on the CPU, with random weights and ReZero scalars at 0.3.

Slow cases are extrapolated from a few steps. That is exact up to noise for the job shop: its network always attends over all
J * M operations, scheduled or not, and a step copies masks of that size, so a step costs the same from the first to the last.
- Greedy: J * M - 2 steps of one row (the last two operations are scheduled without the network).
- Sampling: steps of a whole beam are timed. Their time outside the network counts for every step of every round; that of the
  network by rows, of which later rounds remember some. `--rows` tells how many a whole search evaluates, which our search of the
  same law counts; without it, all.
"""

from __future__ import annotations

import importlib
import pickle
import random
import statistics
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from cases import BEAM_WIDTH, ROUNDS, SIGMA, Case
from measure import PeakMemory, parser, report, scalars_on

WARM_UP = 1.5
"""Seconds after which a warming-up run is cut short."""
STEPS = 4
"""Steps to extrapolate from, at least."""


class Enough(Exception):  # noqa: N818 - not an error
    """Ends a run whose remaining steps are not needed."""


def use_clone(path: Path) -> None:
    """Makes the modules of a clone importable."""
    if not (path / "core" / "incremental_sbs.py").is_file():
        raise SystemExit(f"`--path` must be a clone of github.com/grimmlab/gumbeldore, got {path}.")
    ray, third_party, mlflow = (types.ModuleType(name) for name in ("ray", "ray.thirdparty_files", "mlflow"))

    def remote(*arguments: Any, **options: Any) -> Any:
        return arguments[0] if arguments else lambda wrapped: wrapped

    ray.remote, third_party.psutil = remote, None  # type: ignore[attr-defined]
    for module in (ray, third_party, mlflow):
        sys.modules[module.__name__] = module
    sys.path.insert(0, str(path))


class Step(NamedTuple):
    """Seconds of one step of a search: preparing its batch and running the network, and everything else."""

    network: float
    outside: float


class Search:
    """One of the public searches over a batch, with a clock at the policy."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.trajectory = importlib.import_module(f"{case.problem}.trajectory").Trajectory
        self.network = make_network(case).eval()
        self.width = 1 if case.kind == "greedy" else BEAM_WIDTH
        self.instances = make_instances(case, case.batch)

    def __call__(self, stop: Callable[[int], bool]) -> tuple[int, int, list[Step]]:
        """Solutions, rows evaluated, and the steps in which the whole beam was evaluated.

        Ends early once `stop` says so, being told the number of those steps each time.
        """
        full, rows = self.width * self.case.batch, 0
        steps: list[Step] = []
        last, last_rows, network_time = time.perf_counter(), 0, 0.0

        def log_probabilities(states: list[Any], *, network: Any = self.network, to_numpy: bool = True) -> Any:
            nonlocal rows, last, last_rows, network_time
            now = time.perf_counter()
            if last_rows == full:
                steps.append(Step(network_time, now - last - network_time))
            if stop(len(steps)):
                raise Enough
            last, last_rows, rows = now, len(states), rows + len(states)
            result = evaluate(trajectories=states, network=network, to_numpy=to_numpy)
            network_time = time.perf_counter() - now
            return result

        evaluate = self.trajectory.log_probability_fn
        roots = self.trajectory.init_batch_from_instance_list(self.instances, self.network, torch.device("cpu"))
        with torch.no_grad():
            try:
                return self._search(roots, log_probabilities), rows, steps
            except Enough:
                return 0, rows, steps
            finally:
                self.trajectory.log_probability_fn = staticmethod(evaluate)

    def _search(self, roots: list[Any], log_probabilities: Callable[..., Any]) -> int:
        """What its worker does with a batch."""

        def transitions(pairs: list[Any]) -> list[Any]:
            return [trajectory.transition_fn(action) for trajectory, action in pairs]

        jssp = self.case.problem == "jssp"
        if self.case.kind == "sampling":
            search = importlib.import_module("core.incremental_sbs").IncrementalSBS(
                roots, log_probabilities, transitions, self.trajectory.to_max_evaluation_fn, memory_aggressive=jssp
            )
            sigma = SIGMA[self.case.problem]
            return sum(len(leaves) for leaves in search.perform_incremental_sbs(BEAM_WIDTH, ROUNDS, "gumbeldore", sigma))
        if jssp:
            search = importlib.import_module("core.stochastic_beam_search").stochastic_beam_search
            return len(search(log_probabilities, transitions, roots, beam_width=1, deterministic=True))
        self.trajectory.log_probability_fn = staticmethod(
            lambda trajectories, network, to_numpy: log_probabilities(trajectories, network=network, to_numpy=to_numpy)
        )
        return len(importlib.import_module("core.beam_search").beam_search(roots, self.network, beam_width=1))


def make_network(case: Case) -> Any:
    module = importlib.import_module(f"{case.problem}.{'network' if case.problem == 'jssp' else 'bq_network'}")
    maker = module.JSSPPolicyNetwork if case.problem == "jssp" else module.BQPolicyNetwork
    network = maker(make_config(case), torch.device("cpu"))
    scalars_on(network)
    return network


def make_config(case: Case) -> Any:
    config = getattr(importlib.import_module(f"{case.problem}.config"), f"{case.problem.upper()}Config")()
    config.latent_dimension, config.num_transformer_blocks = case.network.d, case.network.layers
    config.num_attention_heads, config.feedforward_dimension = case.network.heads, case.network.ff
    return config


def make_instances(case: Case, count: int) -> list[dict[str, Any]]:
    """Random instances in its format."""
    np.random.seed(0)  # noqa: NPY002 - the public code draws from the global state
    random.seed(0)
    if case.problem == "jssp":
        generator = importlib.import_module("jssp.instance_generator").JSSPInstanceGenerator
        return [generator.random_instance(*case.size) for _ in range(count)]
    draw, nodes = np.random.default_rng(0), case.size[0]
    if case.problem == "tsp":
        return [{"inst": draw.random((nodes, 2))} for _ in range(count)]
    demands = [np.concatenate([[0.0], draw.integers(1, 10, nodes)]) for _ in range(count)]
    return [{"capacity": float(case.size[1]), "nodes": draw.random((nodes + 1, 2)), "demands": d} for d in demands]


def time_solving(case: Case, seconds: float, rows: int | None) -> dict[str, Any]:
    """Whole runs, or for slow cases steps of constant cost."""
    search, memory = Search(case), PeakMemory()
    begin = time.perf_counter()
    search(lambda steps: time.perf_counter() - begin > WARM_UP)
    if case.extrapolate:
        return {**extrapolated(search, seconds, rows), "peak_mb": memory.megabytes(), "extrapolated": True}
    runs, amount, evaluated, begin = 0, 0, 0, time.perf_counter()
    while runs == 0 or time.perf_counter() - begin < seconds:
        count, evaluated, _ = search(lambda steps: False)
        runs, amount = runs + 1, amount + count
    total = time.perf_counter() - begin
    peak = memory.megabytes()
    return {"rate": amount / total, "seconds": total, "runs": runs, "rows": evaluated, "peak_mb": peak, "extrapolated": False}


def extrapolated(search: Search, seconds: float, rows: int | None) -> dict[str, Any]:
    """From steps of a whole beam. The peak of the memory is a lower bound then."""
    case, begin = search.case, time.perf_counter()
    _, _, steps = search(lambda steps: steps >= STEPS and time.perf_counter() - begin > seconds)
    network, outside = (statistics.mean(seconds) for seconds in zip(*steps, strict=True))
    rounds = 1 if case.kind == "greedy" else ROUNDS
    count = rounds * (case.steps - 2)
    full = search.width * case.batch  # rows of a step
    evaluated = count * full if rows is None else rows - 2 * rounds * full  # not those of the last two operations
    total = count * outside + evaluated / full * network
    return {"rate": rounds * full / total, "seconds": total, "runs": len(steps), "rows": evaluated}


class Clocked:
    """A data loader that notes when batches are asked for, and ends the training loop when there was enough time."""

    def __init__(self, loader: Any, seconds: float) -> None:
        self.loader, self.seconds = loader, seconds
        self.times: list[float] = []

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        for batch in self.loader:
            self.times.append(time.perf_counter())
            # The first step warms up: times[1] is when it had ended and the next batch was there.
            if len(self.times) > 3 and self.times[-1] - self.times[1] > self.seconds:
                raise Enough
            yield batch


def time_training(case: Case, seconds: float) -> dict[str, Any]:
    """Its own training loop and data loader (one process prepares data, as in its configuration)."""
    name = case.problem.upper()
    main, data = importlib.import_module(f"{case.problem}_main"), importlib.import_module(f"{case.problem}.dataset")
    config, network = make_config(case), make_network(case)
    solved = solved_instances(case, 64)
    fix_length(data, case)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "solved.pickle"
        file.write_bytes(pickle.dumps({case.size: solved} if case.problem == "jssp" else solved))
        options: dict[str, Any] = {"custom_num_batches": ("absolute", 1_000_000)}
        if case.problem != "jssp":
            names = ("data_augmentation", "data_augmentation_linear_scale", "augment_direction")
            options |= {"model_type": "BQ", **{name: getattr(config, name) for name in names}}
        if case.problem == "cvrp":
            options["augment_subtour_order"] = config.augment_subtour_order
        dataset = getattr(data, f"Random{name}Dataset")(expert_pickle_file=str(file), batch_size=case.batch, **options)
        memory = PeakMemory()
        loader = torch.utils.data.DataLoader(
            dataset, batch_size=1, num_workers=config.num_dataloader_workers, multiprocessing_context="fork"
        )
        clocked = Clocked(loader, seconds)
        optimizer = torch.optim.Adam(network.parameters(), lr=config.optimizer["lr"])
        main.tqdm = QuietBar  # type: ignore[attr-defined]
        with suppress(Enough):
            main.train_with_dataloader(config, clocked, network, optimizer)
    steps, total = len(clocked.times) - 2, clocked.times[-1] - clocked.times[1]
    peak = memory.megabytes()
    return {"rate": case.batch * steps / total, "seconds": total, "runs": steps, "peak_mb": peak, "extrapolated": False}


class QuietBar:
    """Stands in for a progress bar."""

    def __init__(self, steps: Any) -> None:
        self.steps = steps

    def __iter__(self) -> Iterator[int]:
        return iter(self.steps)

    def set_postfix(self, values: Any) -> None:
        pass


def fix_length(data: types.ModuleType, case: Case) -> None:
    """Makes its training set draw partial routes of one length; all other draws stay random."""
    if not case.length:
        return
    bounds = (4, case.size[0] + 1) if case.problem == "tsp" else (3, case.size[0])

    def randint(low: int, high: int) -> int:
        return case.length if (low, high) == bounds else random.randint(low, high)

    data.random = types.SimpleNamespace(randint=randint, choice=random.choice)  # type: ignore[attr-defined]


def solved_instances(case: Case, count: int) -> list[dict[str, Any]]:
    """Random instances with random solutions in its format."""
    instances, draw = make_instances(case, count), np.random.default_rng(1)
    for instance in instances:
        if case.problem == "tsp":
            instance["tour"] = draw.permutation(case.size[0]).tolist()
        elif case.problem == "jssp":
            instance["job_seq"] = draw.permutation(np.repeat(np.arange(case.size[0]), case.size[1])).tolist()
        else:
            order = (1 + draw.permutation(case.size[0])).tolist()
            instance["tour_node_idcs"], instance["tour_node_flags"] = order, via_depot(order, instance)
    return instances


def via_depot(order: list[int], instance: dict[str, Any]) -> list[int]:
    """1 where a customer is reached via the depot: the first one, and where its demand does not fit any more."""
    flags, left = [], -1.0
    for customer in order:
        demand = instance["demands"][customer]
        flags.append(int(left < demand))
        left = (instance["capacity"] if flags[-1] else left) - demand
    return flags


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--path", type=Path, required=True, help="a clone of github.com/grimmlab/gumbeldore")
    options.add_argument("--rows", type=int, help="rows that a whole search evaluates, to extrapolate sampling")
    chosen = options.parse_args()
    use_clone(chosen.path.resolve())

    def run(case: Case) -> dict[str, Any]:
        if not case.public:
            raise SystemExit(f"The public code is not timed for {case.name}.")
        with redirect_stdout(sys.stderr):  # it prints; our standard output is one line of JSON
            if case.kind == "training":
                return time_training(case, chosen.seconds)
            return time_solving(case, chosen.seconds, chosen.rows)

    report(chosen, run)


if __name__ == "__main__":
    main()
