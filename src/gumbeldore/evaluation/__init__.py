"""How methods are compared: policies with samplers and baselines on sets of instances, with intervals; resumable at any moment."""

from gumbeldore.evaluation.methods import BaselineMethod, Method, PolicyMethod
from gumbeldore.evaluation.pictures import draw_report
from gumbeldore.evaluation.report import Report, Row
from gumbeldore.evaluation.running import Evaluation, Step
from gumbeldore.evaluation.sets import NamedSet
from gumbeldore.evaluation.tables import write_tables

__all__ = [
    "BaselineMethod",
    "Evaluation",
    "Method",
    "NamedSet",
    "PolicyMethod",
    "Report",
    "Row",
    "Step",
    "draw_report",
    "write_tables",
]
