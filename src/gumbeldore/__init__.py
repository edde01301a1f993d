"""Gumbeldore: neural solvers for combinatorial problems, trained without expert solutions.

Names are imported when they are first used, so `import gumbeldore` costs nothing.
"""

TYPE_CHECKING = False  # for type checkers it is true; nothing is imported here, not even `typing`

if TYPE_CHECKING:
    from typing import Any

    from gumbeldore.conformance import check_problem as check_problem
    from gumbeldore.errors import CheckpointError as CheckpointError
    from gumbeldore.errors import ContractError as ContractError
    from gumbeldore.errors import GumbeldoreError as GumbeldoreError
    from gumbeldore.errors import SettingsError as SettingsError
    from gumbeldore.evaluation.comparing import evaluate as evaluate
    from gumbeldore.io.policy_files import load_policy as load_policy
    from gumbeldore.io.policy_files import save_policy as save_policy
    from gumbeldore.parallel.cluster import Cluster as Cluster
    from gumbeldore.policy import Network as Network
    from gumbeldore.policy import Policy as Policy
    from gumbeldore.problem import Augmentations as Augmentations
    from gumbeldore.problem import Examples as Examples
    from gumbeldore.problem import Problem as Problem
    from gumbeldore.problem import State as State
    from gumbeldore.problem import replay as replay
    from gumbeldore.runs.api import imitate as imitate
    from gumbeldore.runs.api import train as train
    from gumbeldore.runs.run import TrainingRun as TrainingRun
    from gumbeldore.search.adaptive import Adaptive as Adaptive
    from gumbeldore.search.advantage import global_advantage as global_advantage
    from gumbeldore.search.advantage import local_advantage as local_advantage
    from gumbeldore.search.advantage import min_max_normalised as min_max_normalised
    from gumbeldore.search.advantage import outcome as outcome
    from gumbeldore.search.replacement import WithReplacement as WithReplacement
    from gumbeldore.search.samplers import BeamSearch as BeamSearch
    from gumbeldore.search.samplers import Greedy as Greedy
    from gumbeldore.search.samplers import Gumbeldore as Gumbeldore
    from gumbeldore.search.samplers import Sampler as Sampler
    from gumbeldore.search.samplers import StochasticBeamSearch as StochasticBeamSearch
    from gumbeldore.search.samplers import TheoryGumbeldore as TheoryGumbeldore
    from gumbeldore.search.stepping import StepAndReconsider as StepAndReconsider
    from gumbeldore.search.trie import Trie as Trie
    from gumbeldore.solutions import Diagnostics as Diagnostics
    from gumbeldore.solutions import Solutions as Solutions
    from gumbeldore.solving import solve as solve
    from gumbeldore.solving import solve_all as solve_all
    from gumbeldore.training.algorithm import Epoch as Epoch
    from gumbeldore.training.algorithm import self_improve as self_improve
    from gumbeldore.training.checkpoint import load_state as load_state
    from gumbeldore.training.checkpoint import save_state as save_state
    from gumbeldore.training.dataset import Dataset as Dataset
    from gumbeldore.training.settings import Stage as Stage
    from gumbeldore.training.settings import TrainingSettings as TrainingSettings

HOMES = {
    "conformance": ["check_problem"],
    "errors": ["CheckpointError", "ContractError", "GumbeldoreError", "SettingsError"],
    "evaluation.comparing": ["evaluate"],
    "io.policy_files": ["load_policy", "save_policy"],
    "parallel.cluster": ["Cluster"],
    "policy": ["Network", "Policy"],
    "problem": ["Augmentations", "Examples", "Problem", "State", "replay"],
    "runs.api": ["imitate", "train"],
    "runs.run": ["TrainingRun"],
    "search.adaptive": ["Adaptive"],
    "search.advantage": ["global_advantage", "local_advantage", "min_max_normalised", "outcome"],
    "search.replacement": ["WithReplacement"],
    "search.samplers": ["BeamSearch", "Greedy", "Gumbeldore", "Sampler", "StochasticBeamSearch", "TheoryGumbeldore"],
    "search.stepping": ["StepAndReconsider"],
    "search.trie": ["Trie"],
    "solutions": ["Diagnostics", "Solutions"],
    "solving": ["solve", "solve_all"],
    "training.algorithm": ["Epoch", "self_improve"],
    "training.checkpoint": ["load_state", "save_state"],
    "training.dataset": ["Dataset"],
    "training.settings": ["Stage", "TrainingSettings"],
}
"""Where each public name is defined. The imports above say the same to type checkers; a test compares the two."""

__all__ = sorted(name for names in HOMES.values() for name in names)


def __getattr__(name: str) -> "Any":
    """A public name, imported now; or the version of the package."""
    if name == "__version__":
        from importlib.metadata import version

        return version("gumbeldore")
    for home, names in HOMES.items():
        if name in names:
            from importlib import import_module

            globals()[name] = value = getattr(import_module(f"gumbeldore.{home}"), name)
            return value
    raise AttributeError(f"module 'gumbeldore' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
