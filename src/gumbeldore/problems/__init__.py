"""The problems, one file each."""

from gumbeldore.problems.cvrp import CVRP, CVRPState
from gumbeldore.problems.gomoku import Gomoku, GomokuState
from gumbeldore.problems.jssp import JSSP, JSSPState
from gumbeldore.problems.taillard import taillard, taillard_benchmarks, taillard_instances
from gumbeldore.problems.tsp import TSP, TSPState

__all__ = [
    "CVRP",
    "JSSP",
    "TSP",
    "CVRPState",
    "Gomoku",
    "GomokuState",
    "JSSPState",
    "TSPState",
    "taillard",
    "taillard_benchmarks",
    "taillard_instances",
]
