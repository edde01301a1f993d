"""How a policy learns: Algorithm 1, supervised training, worker processes, files of a run. Knows no problem and no network."""

from gumbeldore.parallel.cluster import Cluster
from gumbeldore.training.algorithm import (
    Epoch,
    greedy_objective,
    imitate,
    imitate_events,
    next_action_loss,
    self_improve,
    self_improve_events,
)
from gumbeldore.training.settings import Stage, TrainingSettings
from gumbeldore.training.state import Progress, Select, Training, select_best

__all__ = [
    "Cluster",
    "Epoch",
    "Progress",
    "Select",
    "Stage",
    "Training",
    "TrainingSettings",
    "greedy_objective",
    "imitate",
    "imitate_events",
    "next_action_loss",
    "select_best",
    "self_improve",
    "self_improve_events",
]
