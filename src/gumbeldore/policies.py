"""The networks of all problems, and what they are composed of, under short names. Each lives in its problem's folder."""

from gumbeldore.networks import CanonicalFrame, DistanceBias
from gumbeldore.problems.cvrp.bq import CVRPPolicy
from gumbeldore.problems.cvrp.lehd import CVRPLehdPolicy
from gumbeldore.problems.cvrp.loads import Loads
from gumbeldore.problems.cvrp.savings import SavingsLookAhead
from gumbeldore.problems.gomoku.network import GomokuPolicy
from gumbeldore.problems.jssp.active import ActiveSchedules
from gumbeldore.problems.jssp.bounds import ScheduleBounds
from gumbeldore.problems.jssp.network import JSSPPolicy
from gumbeldore.problems.tsp.bounds import SpanningTreeBounds
from gumbeldore.problems.tsp.bq import TSPPolicy
from gumbeldore.problems.tsp.lehd import TSPLehdPolicy

__all__ = [
    "ActiveSchedules",
    "CVRPLehdPolicy",
    "CVRPPolicy",
    "CanonicalFrame",
    "DistanceBias",
    "GomokuPolicy",
    "JSSPPolicy",
    "Loads",
    "SavingsLookAhead",
    "ScheduleBounds",
    "SpanningTreeBounds",
    "TSPLehdPolicy",
    "TSPPolicy",
]
