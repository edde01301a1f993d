"""Gumbeldore: neural solvers for combinatorial problems, trained without expert solutions."""

from gumbeldore.advantage import global_advantage, local_advantage, mean_advantage, min_max_normalised, outcome
from gumbeldore.checkpoint import load_policy, load_state, save_policy, save_state
from gumbeldore.conformance import check_problem
from gumbeldore.dataset import Dataset
from gumbeldore.errors import CheckpointError, ContractError, GumbeldoreError, SettingsError
from gumbeldore.mixed import solve_mixed
from gumbeldore.policy import Network, Policy
from gumbeldore.problem import Examples, Problem, State, replay
from gumbeldore.replacement import WithReplacement
from gumbeldore.samplers import BeamSearch, Greedy, Gumbeldore, Sampler, StochasticBeamSearch, TheoryGumbeldore
from gumbeldore.solutions import Diagnostics, Solutions
from gumbeldore.training import Epoch, TrainingSettings, imitate, self_improve
from gumbeldore.trie import Trie

__all__ = [
    "BeamSearch",
    "CheckpointError",
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
    "State",
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
    "solve_mixed",
]
