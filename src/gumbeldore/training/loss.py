"""What is made small in a gradient step (Algorithm 1, line 11)."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from gumbeldore.errors import ContractError
from gumbeldore.policy import Network, allowed
from gumbeldore.problem import Examples, Problem, S
from gumbeldore.search.evaluator import masked_log_softmax

Losses = tuple[Float[Tensor, " row"], Float[Tensor, " row"]]
"""What is to be made small, and what of it is shown: -log p(the next action) in either case, so that runs compare."""


def losses(problem: Problem[S], policy: Network, examples: Examples[S]) -> Losses:
    """-log p(the next action), as in the paper, and the network's auxiliary loss.

    Rows without a choice cost nothing, nor do labels outside the action space of the policy, which it cannot learn: both are 0 there.
    """
    mask = allowed(problem, policy, examples.state)
    possible = mask.gather(1, examples.action[:, None]).squeeze(1)
    if not bool(possible.all()):
        _check_targets(problem, examples)
    rows = (possible & (mask.sum(1) > 1)).nonzero().squeeze(1)
    if len(rows) == len(mask):
        return _computed(policy, examples, mask)
    if len(rows) == 0:
        none = next(policy.parameters()).new_zeros(len(mask), requires_grad=True)
        return none, none.detach()
    computed = _computed(policy, examples.chosen(rows), mask.index_select(0, rows))
    wanted, shown = (each.new_zeros(len(mask)).index_copy(0, rows, each) for each in computed)
    return wanted, shown


def _computed(policy: Network, examples: Examples[S], mask: Tensor) -> Losses:
    before = _versions(examples)
    logits, auxiliary = policy.loss(examples)
    if _versions(examples) != before:
        raise ContractError(
            f"`{type(policy).__name__}` must not change the state that it is given. What it should remember, `step` writes."
        )
    log_prob = masked_log_softmax(logits, mask, type(policy).__name__)
    action = -log_prob.gather(1, examples.action[:, None]).squeeze(1)
    return action if auxiliary is None else action + auxiliary, action


def _versions(examples: Examples[S]) -> list[int]:
    """How often each tensor of the state was changed."""
    return [0 if tensor.is_inference() else tensor._version for tensor in examples.state.tensors().values()]


def _check_targets(problem: Problem[S], examples: Examples[S]) -> None:
    """No policy can learn what its problem forbids."""
    possible = problem.mask(examples.state).gather(1, examples.action[:, None]).squeeze(1)
    if not bool(possible.all()):
        row = int(possible.int().argmin())
        raise ContractError(
            f"Training examples of `{type(problem).__name__}` must have actions that its `mask` allows, but {int((~possible).sum())} of "
            f"{len(possible)} have not: action {int(examples.action[row])} of row {row}."
        )


def action_losses(problem: Problem[S], policy: Network, examples: Examples[S]) -> Float[Tensor, " row"]:
    """The negative log-probabilities of the target actions."""
    return losses(problem, policy, examples)[1]
