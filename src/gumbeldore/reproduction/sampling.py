"""The figures about sampling: how good the best of so many sequences is, by sampler, at an intermediate and at a late checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gumbeldore.evaluation.report import Cell, Report
from gumbeldore.evaluation.statistics import bootstrap_mean, gaps, standard_error
from gumbeldore.reproduction import columns
from gumbeldore.reproduction.results import Results, Table, Value
from gumbeldore.reproduction.steps import Evaluate, Instances, Label, Method, Plan, Step
from gumbeldore.reproduction.trainings import SIGMA, Scale, by_gumbeldore

P_MIN = "p=0.95..1"
CHECKPOINTS = (("intermediate", "-gd-intermediate"), ("late", "-gd"))


@dataclass(frozen=True)
class Effort:
    """How much is sampled."""

    width: int  # of the beam; the theory figure has several
    rounds: tuple[int, ...]  # points of a curve
    repeats: int
    instances: int  # of the routing problems


SAMPLING: dict[Scale, Effort] = {
    "smoke": Effort(2, (2,), 2, 2),
    "cpu": Effort(32, (1, 2, 4, 8, 12, 16, 20), 4, 16),
    "paper": Effort(32, tuple(range(1, 21)), 20, 100),
}
THEORY: dict[Scale, Effort] = {
    "smoke": Effort(0, (2,), 2, 2),
    "cpu": Effort(0, (1, 2, 4, 8), 4, 16),
    "paper": Effort(0, tuple(range(1, 21)), 10, 100),
}
WIDTHS: dict[Scale, tuple[int, ...]] = {"smoke": (2,), "cpu": (16, 32, 64), "paper": (16, 32, 64)}


def figure(scale: Scale) -> Plan:
    """The sampling figure: WR, WOR, WOR with a growing nucleus, GD, GD with the nucleus."""
    effort = SAMPLING[scale]
    steps = _steps(scale, effort, lambda problem, policy: _samplers(effort, policy, SIGMA[problem]))
    return Plan(steps, _caption(scale, effort))


def _samplers(effort: Effort, policy: str, sigma: float) -> list[Method]:
    """A search without nucleus goes through all smaller numbers of rounds; one with a growing nucleus does not."""
    most, width = max(effort.rounds), effort.width
    curves = [
        Method("Sample WOR", policy, f"wor:{width}x{most}", width),
        Method("Gumbeldore", policy, f"gd:{width}x{most},sigma={sigma}", width),
    ]
    for rounds in effort.rounds:
        points = {
            "Sample WR": (f"wr:{width * rounds}", width * rounds),
            "Sample WOR (nucleus)": (f"wor:{width}x{rounds},{P_MIN}", width),
            "Gumbeldore (nucleus)": (f"gd:{width}x{rounds},sigma={sigma},{P_MIN}", width),
        }
        curves += [Method(f"{curve} @{rounds}", policy, *sampler, point_of=curve) for curve, sampler in points.items()]
    return [Method("greedy", policy, "greedy"), *curves]


def theory(scale: Scale) -> Plan:
    """The theory figure: the practical update against the one of provable improvement, without nucleus, for several beam widths."""
    effort, most = THEORY[scale], max(THEORY[scale].rounds)

    def methods(problem: str, policy: str) -> list[Method]:
        sigma = SIGMA[problem]
        return [
            Method(f"{label}, k = {width}", policy, f"{kind}:{width}x{most},sigma={sigma}", width)
            for width in WIDTHS[scale]
            for label, kind in (("GD", "gd"), ("Theory GD", "theory"))
        ]

    return Plan(_steps(scale, effort, methods), _caption(scale, effort))


def _steps(scale: Scale, effort: Effort, methods: Callable[[str, str], list[Method]]) -> tuple[Step, ...]:
    """A panel for each problem, size and checkpoint."""
    steps: list[Step] = []
    for problem in ("tsp", "cvrp", "jssp"):
        labels, sets = _sets(problem, scale, effort)
        steps += [*by_gumbeldore(problem, scale), *labels]
        for checkpoint, suffix in CHECKPOINTS:
            panel = Evaluate(
                f"{problem}-{checkpoint}", problem, sets, tuple(methods(problem, problem + suffix)), effort.repeats
            )
            steps.append(panel)
    return tuple(steps)


def _sets(problem: str, scale: Scale, effort: Effort) -> tuple[list[Label], tuple[Instances, ...]]:
    """The sizes of the panels: the size trained on; 15 x 15 and 20 x 20 of the job shop (at cpu scale three instances of 15 x 15)."""
    if problem == "jssp":
        sizes = {"smoke": ("tiny",), "cpu": ("15 x 15",), "paper": ("15 x 15", "20 x 20")}[scale]
        return [], tuple(given for given in columns.taillard(scale) if given.name in sizes)
    labels, sets = columns.routing(problem, scale, effort.instances)
    return labels[:1], sets[:1]


def _caption(scale: Scale, effort: Effort) -> str:
    less = {
        "smoke": "tiny networks on tiny instances: the figures mean nothing.",
        "cpu": "small networks (see Tables 1 and 2 at cpu scale) and N = 50; of the job shop three instances of 15 x 15.",
        "paper": "the paper's setting.",
    }
    return (
        f"Scale {scale}: {less[scale]} Best of so many sequences, mean over {effort.instances} instances (Taillard's for the job shop) and {effort.repeats} repeats "
        f"(paper: 100 instances; 20 repeats for the samplers, 10 for the theory), ± standard error over repeats. The paper gives curves, no numbers."
    )


def panels(plan: Plan, results: Results) -> list[Table]:
    """A table of curves for each panel."""
    tables = []
    for name, report in results.reports.items():
        step = plan.step(name)
        assert isinstance(step, Evaluate)
        for given in step.sets:
            values = tuple(value for method in step.methods for value in _curve(report, given, method))
            tables.append(Table(f"{name}, {given.name}", values, across="sequences"))
    return tables


def _curve(report: Report, given: Instances, method: Method) -> Sequence[Value]:
    """The values of a method after each round, or after its last one if it is a single point."""
    cell = next(cell for cell in report.cells if (cell.named, cell.method) == (given.name, method.name))
    points = [((index + 1) * method.sequences, costs) for index, costs in enumerate(_by_round(cell))]
    if method.point_of:
        points = points[-1:]
    reference = report.references[given.name]
    values = []
    for count, costs in points:
        gap = 100 * gaps(costs, reference.costs)
        interval = bootstrap_mean(gap.mean(0))
        values.append(
            Value(
                method.point_of or method.name,
                str(count),
                interval.mean,
                interval.low,
                interval.high,
                standard_error(gap.mean(1)),
                instances=gap.shape[1],
                repeats=len(gap),
                reference=reference.source,
            )
        )
    return values


def _by_round(cell: Cell) -> np.ndarray:
    """The best costs so far, by round, repeat and instance; a search that ended early stays at its last."""
    rounds = max(len(result.curve) for row in cell.results for result in row)
    curves = [[np.pad(r.curve[:, 1], (0, rounds - len(r.curve)), mode="edge") for r in row] for row in cell.results]
    return np.moveaxis(np.array(curves), 2, 0)
