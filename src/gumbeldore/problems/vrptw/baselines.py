"""Routes that nothing has learned: Solomon's rules, our own local search, outside solvers."""

from __future__ import annotations

from gumbeldore.kits.baselines import constructive, local_search, solver
from gumbeldore.problems.vrptw.experts import vrptw_by_pyvrp
from gumbeldore.problems.vrptw.improving import searched
from gumbeldore.problems.vrptw.insertion import METHODS

BASELINES = {
    **{name: constructive(summary, build) for name, (summary, build) in METHODS.items()},
    "local-search": local_search(
        "insertion, then our compiled removal and reinsertion of strings", searched, 100, "removals per customer", clock=True
    ),
    "pyvrp": solver("PyVRP's iterated local search", vrptw_by_pyvrp, "pyvrp", "iterations"),
}
