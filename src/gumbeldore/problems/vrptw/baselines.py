"""Routes that nothing has learned: Solomon's rules, outside solvers."""

from __future__ import annotations

from gumbeldore.kits.baselines import constructive, solver
from gumbeldore.problems.vrptw.experts import vrptw_by_pyvrp
from gumbeldore.problems.vrptw.insertion import METHODS

BASELINES = {
    **{name: constructive(summary, build) for name, (summary, build) in METHODS.items()},
    "pyvrp": solver("PyVRP's iterated local search", vrptw_by_pyvrp, "pyvrp", "iterations"),
}
