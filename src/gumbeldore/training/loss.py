"""What a policy is taught by an example (Algorithm 1, line 11), and what more it may be taught by the same pass through the network."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from gumbeldore.errors import SettingsError
from gumbeldore.policy import Network
from gumbeldore.problem import Examples, Problem, S
from gumbeldore.search.evaluator import masked_log_softmax


@dataclass(frozen=True)
class Loss:
    """-log p(the next action), as in the paper, and more if there is a weight."""

    successor_weight: float = 0.0  # of predicting what follows each item (`Examples.successor`)

    def __call__(
        self, problem: Problem[S], policy: Network, examples: Examples[S]
    ) -> tuple[Float[Tensor, " row"], Float[Tensor, " row"]]:
        """What is to be made small, and what of it is shown: -log p(the next action) in either case, so that runs compare."""
        logits, more = self._passed(problem, policy, examples)
        log_prob = masked_log_softmax(logits, problem.mask(examples.state), type(policy).__name__)
        action = -log_prob.gather(1, examples.action[:, None]).squeeze(1)
        return action + more, action

    def _passed(self, problem: Problem[S], policy: Network, examples: Examples[S]) -> tuple[Tensor, Tensor]:
        """Logits, and what predicting successors adds to each row's loss."""
        if self.successor_weight == 0:
            logits = policy(examples.state, policy.prepare(examples.state))
            return logits, logits.new_zeros(len(logits))
        if examples.successor is None:
            raise SettingsError(
                f"`successor_weight` must be 0 for {type(problem).__name__}, got {self.successor_weight}: its examples do not say what "
                f"follows an item."
            )
        logits, successors = policy.taught(examples.state, examples.successor)
        return logits, self.successor_weight * successors


def action_losses(problem: Problem[S], policy: Network, examples: Examples[S]) -> Float[Tensor, " row"]:
    """The negative log-probabilities of the target actions."""
    return Loss()(problem, policy, examples)[1]
