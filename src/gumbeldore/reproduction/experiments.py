"""All tables and figures of the paper that can be made again, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gumbeldore.reproduction import gomoku, sampling, step_size, tables
from gumbeldore.reproduction.results import Results, Table
from gumbeldore.reproduction.steps import Plan
from gumbeldore.reproduction.trainings import Scale


@dataclass(frozen=True)
class Experiment:
    """A table or figure: what has to be done for it, and what becomes of the results."""

    title: str
    claim: str  # of the paper
    plan: Callable[[Scale], Plan]
    tables: Callable[[Plan, Results], list[Table]]


EXPERIMENTS: dict[str, Experiment] = {
    "table-1": Experiment(
        "Table 1: routing, SL against SI WOR and SI GD",
        "SI GD is at least as good as SI WOR and close to SL",
        tables.routing,
        tables.routing_tables,
    ),
    "table-2": Experiment(
        "Table 2: Taillard's job shops",
        "SI GD is better than SI WOR; GD 32 x 4 is the best search",
        tables.job_shop,
        tables.job_shop_tables,
    ),
    "sampling": Experiment(
        "Sampling: best of so many sequences",
        "WOR is at least as good as WR, GD best with few sequences, above all at the intermediate checkpoint",
        sampling.figure,
        sampling.panels,
    ),
    "theory": Experiment(
        "Theory: GD against Theory GD", "GD is at least as good as the theoretical update", sampling.theory, sampling.panels
    ),
    "lehd": Experiment("LEHD on the TSP", "SI GD is as good as SL and better than RL+RRC+SL", tables.lehd, tables.lehd_tables),
    "inference-cvrp": Experiment(
        "Gumbeldore at inference, CVRP", "GD is better than SBS", tables.inference_routing, tables.inference_routing_tables
    ),
    "inference-jssp": Experiment(
        "Gumbeldore at inference, job shop",
        "GD is at least as good as SBS",
        tables.inference_job_shop,
        tables.inference_job_shop_tables,
    ),
    "gomoku": Experiment("Gomoku: epochs until white wins all", "GD needs fewer epochs than WR", gomoku.plan, gomoku.tables),
    "sigma": Experiment("The choice of sigma", "the best step size depends on the problem", step_size.plan, step_size.tables),
}
