"""The policy networks, one family per file."""

from gumbeldore.policies.bq_cvrp import CVRPPolicy
from gumbeldore.policies.bq_tsp import TSPPolicy
from gumbeldore.policies.gomoku import GomokuPolicy
from gumbeldore.policies.jssp import JSSPPolicy
from gumbeldore.policies.lehd import CVRPLehdPolicy, TSPLehdPolicy

__all__ = ["CVRPLehdPolicy", "CVRPPolicy", "GomokuPolicy", "JSSPPolicy", "TSPLehdPolicy", "TSPPolicy"]
