"""What was drawn for a prompt, and what can be estimated from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from gumbeldore.search.expansion import Round
from gumbeldore.search.gumbel import threshold_weights
from gumbeldore.sequences.scoring import Candidate, Scorer, Tokens


@dataclass(frozen=True)
class Estimate:
    """An expectation under the model."""

    mean: float  # normalised weights (eq. 4): small errors, a small bias
    error: float  # its standard error; 0 if everything was sampled, NaN where a beam of one cannot say
    unbiased: float  # eq. 3
    unbiased_error: float


@dataclass(frozen=True)
class Samples:
    """Different sequences of one prompt, in the order of their rounds and, within a round, of their perturbed log-probabilities."""

    prompt: Tokens
    end: tuple[int, ...]
    rounds: tuple[Round, ...] = field(repr=False)
    scores: tuple[Float[Tensor, "batch beam"], ...] = field(repr=False)  # by round; NaN where there is none
    row: int = field(repr=False)  # of the prompt in those
    remaining_mass: float  # probability of all that was not sampled
    evaluations: int  # prefixes that went through the model
    scores_made: int  # sequences and prefixes that the score was asked about
    seconds: float
    stopped_by: Any = None  # the rule of `until` that held, or "max_scores"
    scorer: Scorer | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.log_prob)

    def __iter__(self) -> Iterator[Tokens]:
        return iter(self.sequences)

    @cached_property
    def tokens(self) -> Int[Tensor, "sample place"]:
        """Continuations as they were drawn, with the end token; -1 after it."""
        depth = max(result.actions.shape[0] for result in self.rounds)
        parts = [result.actions[:, self.row, result.filled[self.row]].t() for result in self.rounds]
        return torch.cat([torch.nn.functional.pad(part, (0, depth - part.shape[1]), value=-1) for part in parts])

    @cached_property
    def sequences(self) -> list[Tokens]:
        """Prompt and continuation, without the end token."""
        lengths = (self.tokens >= 0).sum(1).tolist()
        drawn = [tokens[:length] for tokens, length in zip(self.tokens.tolist(), lengths, strict=True)]
        return [self.prompt + tuple(each[:-1] if each and each[-1] in self.end else each) for each in drawn]

    @cached_property
    def log_prob(self) -> Float[Tensor, " sample"]:
        """Under the model."""
        return self._joined(result.log_prob for result in self.rounds)

    @cached_property
    def perturbed(self) -> Float[Tensor, " sample"]:
        """The log-probability in the round that drew it, with Gumbel noise."""
        return self._joined(result.score for result in self.rounds)

    @cached_property
    def round(self) -> Int[Tensor, " sample"]:
        """In which round it was drawn, from 0."""
        return self._joined(torch.full_like(result.filled, index, dtype=torch.long) for index, result in enumerate(self.rounds))

    @cached_property
    def score(self) -> Float[Tensor, " sample"]:
        """NaN where there is none."""
        return self._joined(self.scores)

    @property
    def weight(self) -> Float[Tensor, " sample"]:
        """Importance weights: the sum of weight * f is an unbiased estimate of the expectation of f under the model, whatever sigma.

        It is the mean of one estimate per round, which knows exactly what was sampled before it and estimates the rest (eq. 3). What a
        nucleus below 1 cuts off is missing, and a search that ends early because of what it has found leaves a bias.
        """
        return self._weights[0]

    @cached_property
    def _weights(self) -> tuple[Float[Tensor, " sample"], Float[Tensor, " sample"]]:
        if self.exhausted:
            return self.log_prob.exp(), torch.zeros_like(self.log_prob)
        return weights(self.rounds, self.row)

    def _joined(self, values: Iterable[Tensor]) -> Tensor:
        """What was drawn of this prompt, of all rounds."""
        pairs = zip(values, self.rounds, strict=True)
        return torch.cat([value[self.row][result.filled[self.row]] for value, result in pairs])

    @property
    def exhausted(self) -> bool:
        """Whether there is nothing left to sample."""
        return self.remaining_mass == 0

    def best(self, count: int = 1) -> list[Candidate]:
        """The best candidates ever seen by score, prefixes among them if they were asked for; without a score, by log-probability."""
        if self.scorer is not None:
            return self.scorer.best(count, self.scores_made)
        order = self.log_prob.argsort(descending=True, stable=True)[:count].tolist()
        return [Candidate(float(self.log_prob[i]), self.sequences[i]) for i in order]

    def estimate(self, value: Callable[[Tokens], float] | Sequence[float] | Tensor | None = None) -> Estimate:
        """The expectation of any function of a sequence under the model; by default of the score, over sequences that have one."""
        if value is None:
            value = self.score
        elif callable(value):
            value = [value(sequence) for sequence in self.sequences]
        number = torch.as_tensor(value, dtype=self.weight.dtype)
        known = ~number.isnan()
        number, weight = number.where(known, 0), self.weight.where(known, 0)
        variance = self._weights[1].where(known, 0)
        unbiased, total = (weight * number).sum(), weight.sum()
        mean = unbiased / total
        error = (variance * (number - mean).square()).sum().clamp(min=0).sqrt() / total
        return Estimate(
            float(mean), float(error), float(unbiased), float((variance * number.square()).sum().clamp(min=0).sqrt())
        )


def weights(rounds: Sequence[Round], row: int) -> tuple[Float[Tensor, " sample"], Float[Tensor, " sample"]]:
    """Weights of all sequences of an instance, and their variances (Duffield et al. 2007); NaN where a beam of one cannot say.

    They are means over the rounds in which the instance took part.
    """
    active = [result for result in rounds if bool(result.filled[row].any())]
    weight, variance = [], []
    for index, result in enumerate(active):
        filled, complete = result.filled[row], result.complete[row]
        log_prob, log_q, score = result.log_prob[row], result.round_log_prob[row], result.score[row]
        single = (filled.sum() == 1) & ~complete
        own = threshold_weights(log_q, score, filled, complete) - log_q + log_prob
        own = torch.where(single & filled, log_prob - log_q, own).masked_fill(~filled, -torch.inf)
        own, known = own.exp()[filled], log_prob.exp()[filled]
        later = (len(active) - 1 - index) * known
        weight.append((own + later) / len(active))
        variance.append(torch.where(single, torch.nan, own * (own - known)) / len(active) ** 2)
    if not active:
        none = torch.empty(0, dtype=torch.float64)
        return none, none
    return torch.cat(weight), torch.cat(variance)
