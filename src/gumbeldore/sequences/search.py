"""The engine's search on sequences: tokens that a model forbids, and scores of the sequences that were sampled only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from gumbeldore.errors import ContractError
from gumbeldore.search.evaluator import Evaluator
from gumbeldore.search.expansion import Beam, Search
from gumbeldore.sequences.problem import Sequences, SequenceState
from gumbeldore.sequences.scoring import Scorer


class TokenEvaluator(Evaluator[SequenceState]):
    """Log-probabilities of tokens; -inf forbids one. There is no mask beside that, and a model looks after its own memory."""

    def __call__(
        self, state: SequenceState, rows: Int[Tensor, " row"], instance: Int[Tensor, " row"]
    ) -> Float[Tensor, "row action"]:
        logits = self.logits(state, rows, instance)
        return torch.log_softmax(logits.to(torch.promote_types(logits.dtype, torch.float32)), -1)

    def logits(
        self, state: SequenceState, rows: Int[Tensor, " row"], instance: Int[Tensor, " row"]
    ) -> Float[Tensor, "row action"]:
        """What the model says, checked to define distributions."""
        state = state.rows(rows) if len(rows) < state.row_count else state
        self.made.index_add_(0, instance, torch.ones_like(instance))
        with torch.inference_mode(False), torch.no_grad():  # what a model keeps must be fit for training
            logits = self.policy(state, self.context)
        highest = logits.amax(-1)  # NaN if any is
        if not bool(highest.isfinite().all()):
            self._fail(state, logits, int((~highest.isfinite()).nonzero()[0]))
        return logits

    def _fail(self, state: SequenceState, logits: Float[Tensor, "row action"], row: int) -> None:
        problem = self.problem
        assert isinstance(problem, Sequences)
        prefix = problem.sequences(state.rows(slice(row, row + 1)))[0][-12:]
        if bool((logits[row] == -torch.inf).all()):
            raise ContractError(
                f"The model allows no token after the prefix that ends with {prefix}: allow the end token at least."
            )
        raise ContractError(
            f"The model's log-probabilities must be below inf and no NaN; after the prefix that ends with {prefix} some are not."
        )


@dataclass
class SequenceSearch(Search[SequenceState]):
    """A search whose objectives are asked of one `Scorer` per prompt, for what was sampled only."""

    evaluator_type: ClassVar[type[Evaluator[Any]]] = TokenEvaluator

    scorers: Sequence[Scorer] | None = None
    scores: list[Float[Tensor, "batch beam"]] = field(init=False, default_factory=list)  # by round; NaN where there is none

    def _objective(self, beam: Beam[SequenceState]) -> Float[Tensor, "batch beam"]:
        problem = self.problem
        assert isinstance(problem, Sequences)
        learnt = torch.zeros_like(beam.score)
        shown = torch.full_like(beam.score, torch.nan)
        if self.scorers is not None:
            for row, scorer in enumerate(self.scorers):
                slots = beam.filled[row].nonzero().squeeze(1)
                if len(slots) == 0:
                    continue
                values = scorer(problem.sequences(beam.state.rows(row * beam.filled.shape[1] + slots)))
                shown[row, slots] = torch.tensor(values, dtype=shown.dtype, device=shown.device)
                each = [scorer.learnt(value) for value in values]
                learnt[row, slots] = torch.tensor(each, dtype=shown.dtype, device=shown.device)
        self.scores.append(shown)
        return learnt.masked_fill(~beam.filled, -torch.inf)
