"""Gumbeldore: neural solvers for combinatorial problems, trained without expert solutions."""

from typing import TYPE_CHECKING, Any

from gumbeldore.conformance import check_problem
from gumbeldore.errors import CheckpointError, ContractError, GumbeldoreError, SettingsError
from gumbeldore.io.policy_files import load_policy, save_policy
from gumbeldore.parallel.cluster import Cluster
from gumbeldore.policy import Network, Policy
from gumbeldore.problem import Augmentations, Examples, Problem, State, replay
from gumbeldore.search.adaptive import Adaptive
from gumbeldore.search.advantage import global_advantage, local_advantage, mean_advantage, min_max_normalised, outcome
from gumbeldore.search.mixed import solve_mixed
from gumbeldore.search.replacement import WithReplacement
from gumbeldore.search.samplers import BeamSearch, Greedy, Gumbeldore, Sampler, StochasticBeamSearch, TheoryGumbeldore
from gumbeldore.search.stepping import StepAndReconsider
from gumbeldore.search.trie import Trie
from gumbeldore.solutions import Diagnostics, Solutions
from gumbeldore.training.algorithm import Epoch, imitate, self_improve
from gumbeldore.training.checkpoint import load_state, save_state
from gumbeldore.training.dataset import Dataset
from gumbeldore.training.settings import Stage, TrainingSettings

if TYPE_CHECKING:
    from gumbeldore.solving import solve, solve_all

__all__ = [
    "Adaptive",
    "Augmentations",
    "BeamSearch",
    "CheckpointError",
    "Cluster",
    "ContractError",
    "Dataset",
    "Diagnostics",
    "Epoch",
    "Examples",
    "Greedy",
    "Gumbeldore",
    "GumbeldoreError",
    "Network",
    "Policy",
    "Problem",
    "Sampler",
    "SettingsError",
    "Solutions",
    "Stage",
    "State",
    "StepAndReconsider",
    "StochasticBeamSearch",
    "TheoryGumbeldore",
    "TrainingSettings",
    "Trie",
    "WithReplacement",
    "check_problem",
    "global_advantage",
    "imitate",
    "load_policy",
    "load_state",
    "local_advantage",
    "mean_advantage",
    "min_max_normalised",
    "outcome",
    "replay",
    "save_policy",
    "save_state",
    "self_improve",
    "solve",
    "solve_all",
    "solve_mixed",
]


def __getattr__(name: str) -> Any:
    """`solve` and `solve_all`, which read all kits, are imported when they are first used."""
    if name in ("solve", "solve_all"):
        from gumbeldore import solving

        return getattr(solving, name)
    raise AttributeError(f"module 'gumbeldore' has no attribute {name!r}")
