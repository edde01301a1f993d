"""The networks of all problems, under short names. Each lives in its problem's room."""

from gumbeldore.problems.cvrp.bq import CVRPPolicy
from gumbeldore.problems.cvrp.lehd import CVRPLehdPolicy
from gumbeldore.problems.gomoku.network import GomokuPolicy
from gumbeldore.problems.jssp.network import JSSPPolicy
from gumbeldore.problems.tsp.bq import TSPPolicy
from gumbeldore.problems.tsp.lehd import TSPLehdPolicy

__all__ = ["CVRPLehdPolicy", "CVRPPolicy", "GomokuPolicy", "JSSPPolicy", "TSPLehdPolicy", "TSPPolicy"]
