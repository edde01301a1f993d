"""Independent verifiers: plain Python and numpy, sharing no code with the problems they check."""

from gumbeldore.verification.cvrp import verify_cvrp
from gumbeldore.verification.gomoku import verify_gomoku
from gumbeldore.verification.jssp import verify_jssp
from gumbeldore.verification.tsp import verify_tsp
from gumbeldore.verification.verdict import Verdict

__all__ = ["Verdict", "verify_cvrp", "verify_gomoku", "verify_jssp", "verify_tsp"]
