"""The policy networks, one family per file."""

from gumbeldore.policies.bq_tsp import TSPPolicy

__all__ = ["TSPPolicy"]
