"""Times one case of this package and prints a line of JSON. `speed.py` runs it, one process per case.

    python benchmarks/ours.py --case tsp20-small [--seconds 5] [--threads 2]

Random weights, ReZero scalars at 0.3. Rates of the network count the multiplications and additions that an ideal
implementation needs: see `network_operations`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from multiprocessing import active_children
from typing import Any

import torch
from cases import BEAM_WIDTH, ROUNDS, SIGMA, Case, Size
from measure import PeakMemory, parser, report, scalars_on

from gumbeldore import Dataset, Epoch, Examples, Greedy, Gumbeldore, Sampler, Solutions, TrainingSettings, WithReplacement
from gumbeldore.policies import CVRPLehdPolicy, CVRPPolicy, JSSPPolicy, TSPLehdPolicy, TSPPolicy
from gumbeldore.problems import CVRP, JSSP, TSP
from gumbeldore.training import imitate_events, self_improve_events
from gumbeldore.training.workers import Workers

WARM_UP = 1.5
"""Seconds after which a warming-up run is cut short."""


class Enough(Exception):  # noqa: N818 - not an error
    """Ends a run that only warms up."""


def solve(sampler: Sampler, problem: Any, policy: Any, state: Any, workers: Workers[Any] | None = None) -> Solutions:
    """The one place where a sampler solves a batch. Equal seeds: every run does the same work."""
    seeds = torch.arange(state.row_count)
    if workers is None:
        return sampler(problem, policy, state, seeds=seeds)
    size = -(-state.row_count // len(active_children()))  # as equal shares as possible
    return Solutions.concatenate([solutions for _, solutions in workers.sample(sampler, state, seeds, size)])


@contextmanager
def pool(problem: Any, policy: Any, count: int) -> Iterator[Workers[Any] | None]:
    """Worker processes, or None for this process."""
    if count == 0:
        yield None
    else:
        with Workers(problem, policy, count) as workers:
            yield workers


def make_problem(name: str, size: tuple[int, int]) -> Any:
    return {"tsp": lambda: TSP(size[0]), "cvrp": lambda: CVRP(*size), "jssp": lambda: JSSP(*size)}[name]()


def make_policy(name: str, size: Size) -> Any:
    torch.manual_seed(0)
    makers: dict[tuple[str, bool], Callable[..., Any]] = {
        ("tsp", False): TSPPolicy,
        ("tsp", True): TSPLehdPolicy,
        ("cvrp", False): CVRPPolicy,
        ("cvrp", True): CVRPLehdPolicy,
        ("jssp", False): lambda d, layers, heads, ff: JSSPPolicy(d, layers // 2, heads, ff),
    }
    policy = makers[name, size.lehd](size.d, size.layers, size.heads, size.ff)
    scalars_on(policy)
    return policy.eval()


def network_operations(config: dict[str, int], state: Any) -> int:
    """Multiplications and additions that the blocks need for these rows: products with weights, and attention.

    Without padding, and for the job shop only among unscheduled operations, attending within their own job or machine; behind
    the last machine-wise attention only the next operations of the unfinished jobs. A softmax or an activation counts nothing.
    """
    d, ff = config["d"], config["ff"]
    block = 2 * (4 * d * d + 2 * d * ff)  # per token
    if hasattr(state, "scheduled"):
        left = state.operations - state.scheduled
        tokens, jobwise = int(left.sum()), int(left.square().sum())
        waiting = torch.arange(state.operations) >= state.scheduled[:, :, None]
        machines = state.machines[state.instance]
        on_machine = torch.zeros(state.row_count, state.operations, dtype=torch.int64)
        on_machine.scatter_add_(1, machines.flatten(1), waiting.long().flatten(1))
        unfinished = state.unfinished
        following = machines.gather(2, state.scheduled.clamp(max=state.operations - 1)[..., None]).squeeze(2)
        last = int(on_machine.gather(1, following)[unfinished].sum())
        final = int(unfinished.sum(1).square().sum())
        pairs, queries = config["pairs"], int(unfinished.sum())
        attention = pairs * jobwise + (pairs - 1) * int(on_machine.square().sum()) + last + final
        keys_and_values = 4 * d * d
        weights = tokens * ((2 * pairs - 1) * block + keys_and_values) + queries * (2 * block - keys_and_values)
        return weights + 4 * d * attention
    tokens = state.choosable.sum(1) + 2  # and the ends of the path, or the depot and the origin
    if hasattr(state, "remaining"):
        tokens = tokens - (state.current == 0).long()  # one token if the origin is the depot
    return config["layers"] * (block * int(tokens.sum()) + 4 * d * int(tokens.square().sum()))


class Meter:
    """Time and operations of a network's forward passes (and of all backward passes while it is attached).

    With worker processes it sees nothing of them: then it only takes the time of the whole.
    """

    def __init__(self, policy: Any, workers: int = 0) -> None:
        self.policy, self.sees = policy, workers == 0
        self.reset()

    def reset(self, stop_after: float = float("inf")) -> None:
        """Starts again; a forward pass that begins `stop_after` seconds from now raises `Enough`."""
        self.network, self.counting, self.operations = 0.0, 0.0, 0
        self.start = time.perf_counter()
        self.stop = self.start + stop_after

    def _before(self) -> None:
        self._began = time.perf_counter()
        if self._began > self.stop:
            raise Enough

    def _after(self, config: dict[str, int], inputs: Any, output: Any) -> None:
        now = time.perf_counter()
        self.network += now - self._began
        passes = 3 if output.requires_grad else 1  # a backward pass takes twice the operations of a forward pass
        self.operations += passes * network_operations(config, inputs[0])
        self.counting += time.perf_counter() - now

    @contextmanager
    def attached(self) -> Iterator[Meter]:
        """Functions, not methods, are hooked in: copies of the policy then report to the same meter."""
        if not self.sees:
            yield self
            return
        hooks = [
            self.policy.register_forward_pre_hook(lambda policy, inputs: self._before()),
            self.policy.register_forward_hook(lambda policy, inputs, output: self._after(policy.config, inputs, output)),
        ]
        backward = torch.autograd.backward

        def timed_backward(*arguments: Any, **options: Any) -> None:
            start = time.perf_counter()
            backward(*arguments, **options)
            self.network += time.perf_counter() - start

        torch.autograd.backward = timed_backward
        try:
            yield self
        finally:
            torch.autograd.backward = backward
            for hook in hooks:
                hook.remove()

    @property
    def total(self) -> float:
        """Seconds since the start, without those that counting operations took."""
        return time.perf_counter() - self.start - self.counting

    def figures(self, amount: float) -> dict[str, Any]:
        total = self.total
        figures: dict[str, Any] = {"rate": amount / total, "seconds": total}
        if self.sees:
            figures["outside"] = 1 - self.network / total
            figures["network_gflops"] = self.operations / max(self.network, 1e-9) / 1e9
        return figures


def tree_rows(solutions: Solutions) -> int:
    """Rows that a search without transpositions and without shortcuts for forced actions would evaluate: the public code's."""
    counts = ("evaluations", "evaluations_shared", "evaluations_forced")
    return sum(int(getattr(solutions.diagnostics, name, torch.zeros(1)).sum()) for name in counts)


def time_solving(case: Case, seconds: float, workers: int) -> dict[str, Any]:
    """Sampling or greedy construction, whole runs."""
    problem, policy = make_problem(case.problem, case.size), make_policy(case.problem, case.network)
    greedy = case.kind == "greedy"
    sampler: Sampler = Greedy() if greedy else Gumbeldore(BEAM_WIDTH, ROUNDS, sigma=SIGMA[case.problem])
    if greedy and case.batch == 1:
        workers = 0  # one instance is not shared among processes
    state = problem.generate(case.batch * max(1, workers), generator=torch.Generator().manual_seed(0))
    memory = PeakMemory()
    with pool(problem, policy, workers) as processes, Meter(policy, workers).attached() as meter:
        meter.reset(WARM_UP)
        with suppress(Enough):
            solve(sampler, problem, policy, state, processes)
        meter.reset()
        runs, amount, rows = 0, 0, 0
        while runs == 0 or meter.total < seconds:
            solutions = solve(sampler, problem, policy, state, processes)
            runs, amount = runs + 1, amount + int(solutions.filled.sum())
            rows = tree_rows(solutions)
        figures = meter.figures(amount)
        peak = memory.megabytes(with_workers=True)
    return {**figures, "runs": runs, "rows": rows, "peak_mb": peak}


class Uniform:
    """Every action equally likely: a policy that costs nothing."""

    def __init__(self, problem: Any) -> None:
        self.problem = problem

    def prepare(self, state: Any) -> None:
        return None

    def __call__(self, state: Any, context: Any) -> torch.Tensor:
        return torch.zeros(self.problem.mask(state).shape)


class FixedLength:
    """Makes a routing problem draw training examples of one length, so that the cost of a step does not depend on luck.

    It hands the problem generators whose seeds are known to lead to that length; the work stays the problem's own.
    """

    length: int
    seeds: tuple[int, ...] = ()

    def examples(self, state: Any, actions: Any, *, generator: torch.Generator) -> Examples[Any]:
        seed = self.seeds[int(torch.randint(len(self.seeds), (), generator=generator))]
        return super().examples(state, actions, generator=torch.Generator().manual_seed(seed))  # type: ignore[misc]

    def find_seeds(self, state: Any, actions: Any, count: int = 4) -> None:
        found: list[int] = []
        seed = 0
        ends = 0 if hasattr(state, "remaining") else 2  # of a path, whose cities count as visited
        while len(found) < count:
            drawn = super().examples(state, actions, generator=torch.Generator().manual_seed(seed))  # type: ignore[misc]
            if int(drawn.state.choosable.sum(1).max()) + ends == self.length:
                found.append(seed)
            seed += 1
        object.__setattr__(self, "seeds", tuple(found))


class FixedTSP(FixedLength, TSP):
    pass


class FixedCVRP(FixedLength, CVRP):
    pass


def training_problem(case: Case) -> Any:
    if not case.length:
        return make_problem(case.problem, case.size)
    problem = FixedTSP(case.size[0]) if case.problem == "tsp" else FixedCVRP(*case.size)
    object.__setattr__(problem, "length", case.length)
    return problem


def time_training(case: Case, seconds: float, workers: int) -> dict[str, Any]:
    """Steps of the training loop itself, from solved instances to updated weights."""
    policy, problem = make_policy(case.problem, case.network), training_problem(case)
    generator = torch.Generator().manual_seed(0)
    state = problem.generate(64, generator=generator)
    actions = WithReplacement(1)(problem, Uniform(problem), state, generator=generator).best_actions
    if case.length:
        rows = torch.arange(case.batch) % 64
        problem.find_seeds(state.rows(rows), actions[rows])
    dataset: Dataset[Any] = Dataset()
    dataset.add(state, actions)
    memory = PeakMemory()
    settings = TrainingSettings(epochs=1, batches=10**9, batch_size=case.batch, part_size=case.batch // 2)
    first = state.rows(slice(0, 1)).compact()
    events = imitate_events(problem, policy, dataset, validation=first, settings=settings, workers=workers)
    with closing(events), Meter(policy, workers).attached() as meter:  # type: ignore[type-var]
        steps = -1  # the first step warms up
        for event in events:
            if isinstance(event, Epoch) or event.phase != "training":
                continue
            steps += 1
            if steps == 0:
                meter.reset()
            elif steps >= 2 and meter.total >= seconds:
                break
        figures = meter.figures(steps * case.batch)
        peak = memory.megabytes(with_workers=True)
    return {**figures, "runs": steps, "peak_mb": peak}


def time_epoch(case: Case, workers: int) -> dict[str, Any]:
    """One epoch of Algorithm 1: sampling (16 x 2), training, greedy validation."""
    problem, policy = make_problem(case.problem, case.size), make_policy(case.problem, case.network)
    validation = problem.generate(case.instances, generator=torch.Generator().manual_seed(1))
    settings = TrainingSettings(epochs=1, instances=case.instances, batches=case.batches, batch_size=case.batch)
    memory = PeakMemory()
    sampler = Gumbeldore(16, 2)
    events = self_improve_events(problem, policy, sampler, validation=validation, settings=settings, workers=workers)
    with closing(events):  # type: ignore[type-var]
        epoch = next(event for event in events if isinstance(event, Epoch))
        peak = memory.megabytes(with_workers=True)
    total = sum(epoch.seconds.values())
    parts = {f"seconds_{name}": value for name, value in epoch.seconds.items()}
    return {"rate": 1 / total, "seconds": total, **parts, "runs": 1, "peak_mb": peak}


def main() -> None:
    options = parser(__doc__)
    options.add_argument(
        "--workers", type=int, default=0, help="processes of one thread each; 0: this process with all its threads"
    )
    chosen = options.parse_args()

    def run(case: Case) -> dict[str, Any]:
        if case.kind == "training":
            return time_training(case, chosen.seconds, chosen.workers)
        return time_epoch(case, chosen.workers) if case.kind == "epoch" else time_solving(case, chosen.seconds, chosen.workers)

    report(chosen, run)


if __name__ == "__main__":
    main()
