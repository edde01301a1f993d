"""Calls the policy: the one place where logits are requested, masked, checked and counted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gumbeldore.errors import ContractError, NotFiniteError
from gumbeldore.policy import Policy, allowed, rows_within
from gumbeldore.problem import Problem, S, slices
from gumbeldore.search.augmentation import AugmentedPolicy
from gumbeldore.search.deadline import Deadline


@dataclass
class Evaluator(Generic[S]):
    """Log-probabilities of rows, in calls of bounded memory. A row with one allowed action does not need the policy."""

    problem: Problem[S]
    policy: Policy[S]
    root: S  # one row per instance
    network_bytes: int
    deadline: Deadline | None = None
    context: Any = field(init=False)
    made: Int[Tensor, " batch"] = field(init=False)  # rows that went through the policy
    repeated: Int[Tensor, " batch"] = field(init=False)  # of these, rows that had been there before, and were not kept
    cached: Int[Tensor, " batch"] = field(init=False)  # rows that the caller knew already
    shared: Int[Tensor, " batch"] = field(init=False)  # rows that borrowed from an equal state
    forced: Int[Tensor, " batch"] = field(init=False)  # rows with a single allowed action

    def __post_init__(self) -> None:
        self.context = self.policy.prepare(self.root)
        none = torch.zeros_like(self.root.instance)
        self.made, self.repeated, self.cached, self.shared, self.forced = (none.clone() for _ in range(5))

    @property
    def needed(self) -> Int[Tensor, " batch"]:
        """Rows that would have gone through the policy with memory enough: what plans go by, so that they do not depend on it."""
        return self.made - self.repeated

    def repeat(self, state: S, rows: Int[Tensor, " row"], instance: Int[Tensor, " row"]) -> None:
        """Counts rows that go through the policy once more."""
        if len(rows) and not self._unasked(state):
            self.repeated.index_add_(0, instance, (allowed(self.problem, self.policy, state.rows(rows)).sum(1) > 1).long())

    def __call__(self, state: S, rows: Int[Tensor, " row"], instance: Int[Tensor, " row"]) -> Float[Tensor, "row action"]:
        """Masked log-probabilities of the given rows of `state`, counted for the given instances."""
        if len(rows) < state.row_count:
            state = state.rows(rows)
        mask = allowed(self.problem, self.policy, state)
        if self._unasked(state):
            return masked_log_softmax(torch.zeros(mask.shape, device=mask.device), mask, type(self.policy).__name__)
        choices = mask.sum(1)
        fewest = int(choices.min())
        if fewest == 0:
            raise ContractError(
                f"`{self._narrowest(state)}.mask` allows no action in {int((choices == 0).sum())} rows that are not done. "
                f"Every unfinished row needs an action; if dead ends are part of the problem, set `dead_end_objective`."
            )
        certain: Tensor | None = None
        if fewest > 1:
            self.made.index_add_(0, instance, torch.ones_like(instance))
        else:
            real = choices > 1
            self.made.index_add_(0, instance, real.long())
            self.forced.index_add_(0, instance, (~real).long())
            index, certain = real.nonzero().squeeze(1), torch.where(mask, 0.0, -torch.inf)
            if len(index) == 0:
                return certain
            state, mask = state.rows(index), mask.index_select(0, index)
        logits, pieces = list[Tensor](), slices(state.row_count, rows_within(self.policy, state, self.network_bytes))
        with torch.inference_mode(False), torch.no_grad():  # what a policy caches must be fit for training
            for piece in pieces:
                part = state if len(pieces) == 1 else state.rows(piece)
                if self.deadline is not None:
                    self.deadline.call(part.row_count)
                logits.append(self.policy(part, self.context))
        log_prob = masked_log_softmax(logits[0] if len(pieces) == 1 else torch.cat(logits), mask, type(self.policy).__name__)
        return log_prob if certain is None else certain.to(log_prob.dtype).index_copy_(0, index, log_prob)

    def _unasked(self, state: S) -> bool:
        """Whether these rows are no matter for the policy: the choice among augmentations."""
        return isinstance(self.policy, AugmentedPolicy) and self.policy.unasked(state)  # type: ignore[arg-type]

    def borrow(
        self, state: S, rows: Int[Tensor, " row"], instance: Int[Tensor, " row"], prior: Float[Tensor, "row action"]
    ) -> Bool[Tensor, " row"]:
        """Which of the given rows of `state` may use the `prior` of a row that should be equal: those with the same mask.

        This costs no policy call. Where it fails two different states have one key, and the row needs its own evaluation.
        """
        mask = allowed(self.problem, self.policy, state.rows(rows))
        equal = (mask == (prior > -torch.inf)).all(1)
        real = mask.sum(1) > 1
        for counter, counted in ((self.shared, equal & real), (self.forced, equal & ~real)):
            counter.index_add_(0, instance, counted.long())
        return equal

    def _narrowest(self, state: S) -> str:
        """Whose mask leaves no action: the problem's, or that of the policy's action space."""
        policy = bool(self.problem.mask(state).any(1).all())
        return type(self.policy if policy else self.problem).__name__


def masked_log_softmax(
    logits: Float[Tensor, "row action"], mask: Bool[Tensor, "row action"], name: str
) -> Float[Tensor, "row action"]:
    """Log-probabilities over the allowed actions; logits that define no distribution are an error, not a bad model."""
    if logits.shape != mask.shape:
        raise ContractError(f"`{name}` must return logits of shape {tuple(mask.shape)}, got {tuple(logits.shape)}.")
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))  # half precision would not add up to one
    log_prob = torch.log_softmax(logits.where(mask, -torch.inf), -1)
    if not torch.equal(log_prob > -torch.inf, mask):  # it is never inf
        row = int((~log_prob.isfinite() & mask).any(1).nonzero()[0])
        raise NotFiniteError(
            f"`{name}` returned logits that are not finite (or too far apart for {logits.dtype}) at allowed actions: row {row} "
            f"has {logits[row][mask[row]].tolist()[:8]}. Has the training diverged?"
        )
    return log_prob
