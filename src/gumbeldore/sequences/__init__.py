"""Different, and better, samples from any sequence model: a function of prefixes, a recurrent model, a transformer."""

from gumbeldore.sequences.learning import SequenceNetwork
from gumbeldore.sequences.models import FunctionPolicy, PagedModel, RecurrentModel, StatefulPolicy
from gumbeldore.sequences.problem import Sequences, SequenceState
from gumbeldore.sequences.samples import Estimate, Samples
from gumbeldore.sequences.sampling import Rounds, sample, search, stream
from gumbeldore.sequences.scoring import Candidate, ScoreError, Scorer
from gumbeldore.sequences.until import BetterThan, Covered, Found, TimeLimit

__all__ = [
    "BetterThan",
    "Candidate",
    "Covered",
    "Estimate",
    "Found",
    "FunctionPolicy",
    "PagedModel",
    "RecurrentModel",
    "Rounds",
    "Samples",
    "ScoreError",
    "Scorer",
    "SequenceNetwork",
    "SequenceState",
    "Sequences",
    "StatefulPolicy",
    "TimeLimit",
    "sample",
    "search",
    "stream",
]
