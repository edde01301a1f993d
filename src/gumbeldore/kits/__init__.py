"""Problems as kits: all that a kit of your own needs can be imported from here (`gumbeldore new NAME` writes one to begin with)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gumbeldore.errors import FormatError as FormatError
    from gumbeldore.figure import colours as colours
    from gumbeldore.figure import saved_figure as saved_figure
    from gumbeldore.io.text import integer as integer
    from gumbeldore.io.text import number as number
    from gumbeldore.io.text import text_format as text_format
    from gumbeldore.kits.baselines import OWN as OWN
    from gumbeldore.kits.baselines import Baseline as Baseline
    from gumbeldore.kits.baselines import constructive as constructive
    from gumbeldore.kits.baselines import expert as expert
    from gumbeldore.kits.baselines import local_search as local_search
    from gumbeldore.kits.baselines import solver as solver
    from gumbeldore.kits.instances import Arrays as Arrays
    from gumbeldore.kits.instances import InstanceSchema as InstanceSchema
    from gumbeldore.kits.instances import InstanceSet as InstanceSet
    from gumbeldore.kits.instances import check_generator as check_generator
    from gumbeldore.kits.kit import Architecture as Architecture
    from gumbeldore.kits.kit import Export as Export
    from gumbeldore.kits.kit import Format as Format
    from gumbeldore.kits.kit import Instance as Instance
    from gumbeldore.kits.kit import Kit as Kit
    from gumbeldore.kits.kit import SolutionFormat as SolutionFormat
    from gumbeldore.kits.new import write_kit as write_kit
    from gumbeldore.kits.solver import Limit as Limit
    from gumbeldore.kits.solver import Solved as Solved
    from gumbeldore.kits.solver import Solver as Solver
    from gumbeldore.kits.verdict import Verdict as Verdict
    from gumbeldore.kits.verdict import permutation_fault as permutation_fault
    from gumbeldore.networks.matrix_transformer import MatrixPolicy as MatrixPolicy
    from gumbeldore.networks.matrix_transformer import MatrixSize as MatrixSize
    from gumbeldore.networks.sequence_transformer import SequenceFeatures as SequenceFeatures
    from gumbeldore.networks.sequence_transformer import SequencePolicy as SequencePolicy
    from gumbeldore.networks.set_transformer import Features as Features
    from gumbeldore.networks.set_transformer import SetPolicy as SetPolicy
    from gumbeldore.networks.set_transformer import SetSize as SetSize

HOMES = {
    "errors": ["FormatError"],
    "figure": ["colours", "saved_figure"],
    "io.text": ["integer", "number", "text_format"],
    "kits.baselines": ["OWN", "Baseline", "constructive", "expert", "local_search", "solver"],
    "kits.instances": ["Arrays", "InstanceSchema", "InstanceSet", "check_generator"],
    "kits.kit": ["Architecture", "Export", "Format", "Instance", "Kit", "SolutionFormat"],
    "kits.new": ["write_kit"],
    "kits.solver": ["Limit", "Solved", "Solver"],
    "kits.verdict": ["Verdict", "permutation_fault"],
    "networks.matrix_transformer": ["MatrixPolicy", "MatrixSize"],
    "networks.sequence_transformer": ["SequenceFeatures", "SequencePolicy"],
    "networks.set_transformer": ["Features", "SetPolicy", "SetSize"],
}
"""Where each name is defined; the imports above say the same to type checkers, and a test compares the two."""

__all__ = sorted(name for names in HOMES.values() for name in names)


def __getattr__(name: str) -> Any:
    """A name, imported when it is first used: the packages that these names come from import kits themselves."""
    for home, names in HOMES.items():
        if name in names:
            globals()[name] = value = getattr(import_module(f"gumbeldore.{home}"), name)
            return value
    raise AttributeError(f"module 'gumbeldore.kits' has no attribute {name!r}")
