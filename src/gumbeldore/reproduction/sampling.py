"""The figures about sampling: how good the best of so many sequences is, by sampler, at an intermediate and at a late checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from gumbeldore.evaluation.report import Cell, Reference, Report
from gumbeldore.evaluation.statistics import bootstrap_mean, gaps, standard_error
from gumbeldore.reproduction.columns import columns
from gumbeldore.reproduction.differences import UNIT, Pair, difference
from gumbeldore.reproduction.results import Results, Table, Value
from gumbeldore.reproduction.steps import Evaluate, Instances, Label, Method, Plan, Step
from gumbeldore.reproduction.trainings import SIGMA, Scale, by_gumbeldore

_P_MIN = "p=0.95..1"
_CHECKPOINTS = (("intermediate", "-gd-intermediate"), ("late", "-gd"))


@dataclass(frozen=True)
class Effort:
    """How much is sampled."""

    width: int  # of the beam; the theory figure has several
    rounds: tuple[int, ...]  # points of a curve
    repeats: int
    instances: int  # of the routing problems
    shops: int | None = None  # of each size of the job shop; all if left out


_SAMPLING: dict[Scale, Effort] = {
    "smoke": Effort(2, (2,), 2, 2),
    "cpu": Effort(32, (1, 2, 4, 8), 2, 32, 10),
    "paper": Effort(32, tuple(range(1, 21)), 20, 100),
}
_THEORY: dict[Scale, Effort] = {
    "smoke": Effort(0, (2,), 2, 2),
    "cpu": Effort(0, (4,), 2, 32, 10),
    "paper": Effort(0, tuple(range(1, 21)), 10, 100),
}
_WIDTHS: dict[Scale, tuple[int, ...]] = {"smoke": (2,), "cpu": (16, 32, 64), "paper": (16, 32, 64)}

GD, WOR, WR = "Gumbeldore", "Sample WOR", "Sample WR"
_PAIRS = (
    Pair(WOR, WR),
    Pair(GD, WR),
    Pair(GD, WOR),
    Pair(f"{GD} (nucleus)", f"{WOR} (nucleus)"),
    Pair(f"{GD} (nucleus)", WOR),
    *(Pair(f"GD, k = {width}", f"Theory GD, k = {width}") for width in (2, 16, 32, 64)),
)


def figure(scale: Scale) -> Plan:
    """The sampling figure: WR, WOR, WOR with a growing nucleus, GD, GD with the nucleus."""
    effort = _SAMPLING[scale]
    steps = _steps(scale, effort, lambda problem, policy: _samplers(effort, policy, SIGMA[problem]))
    return Plan(steps, _caption(scale, effort))


def _samplers(effort: Effort, policy: str, sigma: float) -> list[Method]:
    """A search without nucleus goes through all smaller numbers of rounds; one with a growing nucleus does not."""
    most, width = max(effort.rounds), effort.width
    curves = [
        Method(WOR, policy, f"wor:{width}x{most}", width),
        Method(GD, policy, f"gd:{width}x{most},sigma={sigma}", width),
    ]
    for rounds in effort.rounds:
        points = {
            WR: (f"wr:{width * rounds}", width * rounds),
            f"{WOR} (nucleus)": (f"wor:{width}x{rounds},{_P_MIN}", width),
            f"{GD} (nucleus)": (f"gd:{width}x{rounds},sigma={sigma},{_P_MIN}", width),
        }
        curves += [Method(f"{curve} @{rounds}", policy, *sampler, point_of=curve) for curve, sampler in points.items()]
    return [Method("greedy", policy, "greedy"), *curves]


def theory(scale: Scale) -> Plan:
    """The theory figure: the practical update against the one of provable improvement, without nucleus, for several beam widths."""
    effort, most = _THEORY[scale], max(_THEORY[scale].rounds)

    def methods(problem: str, policy: str) -> list[Method]:
        sigma = SIGMA[problem]
        return [
            Method(f"{label}, k = {width}", policy, f"{kind}:{width}x{most},sigma={sigma}", width)
            for width in _WIDTHS[scale]
            for label, kind in (("GD", "gd"), ("Theory GD", "theory"))
        ]

    return Plan(_steps(scale, effort, methods), _caption(scale, effort))


def _steps(scale: Scale, effort: Effort, methods: Callable[[str, str], list[Method]]) -> tuple[Step, ...]:
    """A panel for each problem, size and checkpoint."""
    steps: list[Step] = []
    for problem in ("tsp", "cvrp", "jssp"):
        labels, sets = _sets(problem, scale, effort)
        steps += [*by_gumbeldore(problem, scale), *labels]
        for checkpoint, suffix in _CHECKPOINTS:
            panel = Evaluate(
                f"{problem}-{checkpoint}", problem, sets, tuple(methods(problem, problem + suffix)), effort.repeats
            )
            steps.append(panel)
    return tuple(steps)


def _sets(problem: str, scale: Scale, effort: Effort) -> tuple[list[Label], tuple[Instances, ...]]:
    """The sizes of the panels: the first column of the tables; of the job shop 15 x 15 and 20 x 20 (at cpu scale the first too)."""
    if problem == "jssp" and scale == "paper":
        return [], tuple(given for given in columns(problem, scale)[1] if given.name in ("15 x 15", "20 x 20"))
    return columns(problem, scale, (effort.shops if problem == "jssp" else effort.instances,))


def _caption(scale: Scale, effort: Effort) -> str:
    less = {
        "smoke": "tiny networks on tiny instances: the figures mean nothing.",
        "cpu": "small networks (see Tables 1 and 2 at cpu scale), N = 20, and random job shops of 6 x 6.",
        "paper": "the paper's setting.",
    }
    return (
        f"Scale {scale}: {less[scale]} Best of so many sequences, mean over {effort.instances} instances ({effort.shops or 'all'} of the job shop) and {effort.repeats} repeats "
        f"(paper: 100 instances; 20 repeats for the samplers, 10 for the theory), ± standard error over repeats. The paper gives curves, no numbers."
    )


def panels(plan: Plan, results: Results) -> list[Table]:
    """A table of curves for each panel."""
    tables = []
    for name, report in results.reports.items():
        step = plan.step(name)
        assert isinstance(step, Evaluate)
        for given in step.sets:
            curves, reference = _curves(report, given, step.methods), report.references[given.name]
            values = [_value(curve, count, costs, reference) for (curve, count), costs in curves.items()]
            tables.append(Table(f"{name}, {given.name}", tuple(values), across="sequences"))
            tables.append(_differences(tables[-1].title, curves, reference))
    return tables


Curves = Mapping[tuple[str, int], np.ndarray]
"""Costs by repeat and instance, of a curve at a number of sequences."""


def _curves(report: Report, given: Instances, methods: Iterable[Method]) -> Curves:
    """All methods after each round, or after the last one if it is a single point."""
    found = {}
    cells = {cell.method: cell for cell in report.cells if cell.named == given.name}
    for method in methods:
        points = [((index + 1) * method.sequences, costs) for index, costs in enumerate(_by_round(cells[method.name]))]
        for count, costs in points[-1:] if method.point_of else points:
            found[method.point_of or method.name, count] = costs
    return found


def _value(curve: str, count: int, costs: np.ndarray, reference: Reference) -> Value:
    gap = 100 * gaps(costs, reference.costs)
    interval, error = bootstrap_mean(gap.mean(0)), standard_error(gap.mean(1))
    counts = {"instances": gap.shape[1], "repeats": len(gap)}
    return Value(curve, str(count), interval.mean, interval.low, interval.high, error, **counts, reference=reference.source)


def _differences(title: str, curves: Curves, reference: Reference) -> Table:
    """Of every pair of curves that the paper compares, wherever both have a point."""
    values = [
        difference(pair, str(count), costs, curves[pair.second, count], reference)
        for pair in _PAIRS
        for (curve, count), costs in curves.items()
        if curve == pair.first and (pair.second, count) in curves
    ]
    return Table(f"{title}: differences", tuple(values), unit=UNIT, drawn=False)


def _by_round(cell: Cell) -> np.ndarray:
    """The best costs so far, by round, repeat and instance; a search that ended early stays at its last."""
    rounds = max(len(result.curve) for row in cell.results for result in row)
    curves = [[np.pad(r.curve[:, 1], (0, rounds - len(r.curve)), mode="edge") for r in row] for row in cell.results]
    return np.moveaxis(np.array(curves), 2, 0)
