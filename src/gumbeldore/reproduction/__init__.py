"""The paper's tables and figures: plans of trainings, labels and evaluations as data, and what becomes of their results."""

from gumbeldore.reproduction.experiments import EXPERIMENTS, Experiment
from gumbeldore.reproduction.results import Results, Table, Value
from gumbeldore.reproduction.steps import Evaluate, Expert, Imitate, Instances, Label, Method, Plan, Step, Train
from gumbeldore.reproduction.trainings import SCALES, Scale

__all__ = [
    "EXPERIMENTS",
    "SCALES",
    "Evaluate",
    "Experiment",
    "Expert",
    "Imitate",
    "Instances",
    "Label",
    "Method",
    "Plan",
    "Results",
    "Scale",
    "Step",
    "Table",
    "Train",
    "Value",
]
