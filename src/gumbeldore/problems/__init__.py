"""The problems, one file each."""

from gumbeldore.problems.atsp.problem import ATSP, ATSPState
from gumbeldore.problems.cvrp.problem import CVRP, CVRPState
from gumbeldore.problems.fjsp.problem import FJSP, FJSPState
from gumbeldore.problems.gomoku.problem import Gomoku, GomokuState
from gumbeldore.problems.jssp.problem import JSSP, JSSPState
from gumbeldore.problems.jssp.taillard import taillard, taillard_benchmarks, taillard_instances
from gumbeldore.problems.op.problem import OP, OPState
from gumbeldore.problems.pfsp.problem import PFSP, PFSPState
from gumbeldore.problems.tsp.problem import TSP, TSPState
from gumbeldore.problems.vrptw.problem import VRPTW, VRPTWState

__all__ = [
    "ATSP",
    "CVRP",
    "FJSP",
    "JSSP",
    "OP",
    "PFSP",
    "TSP",
    "VRPTW",
    "ATSPState",
    "CVRPState",
    "FJSPState",
    "Gomoku",
    "GomokuState",
    "JSSPState",
    "OPState",
    "PFSPState",
    "TSPState",
    "VRPTWState",
    "taillard",
    "taillard_benchmarks",
    "taillard_instances",
]
