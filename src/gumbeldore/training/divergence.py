"""When the loss or its gradient is no number any more: what it takes to compute them again, and to look closer.

state = load_state("runs/first/diverged.pt")
print(examined(problem, policy, state))        # `gumbeldore check PROBLEM --diverged FILE` builds both and does this
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from gumbeldore.errors import CheckpointError, ContractError, NotFiniteError
from gumbeldore.policy import Network
from gumbeldore.problem import Examples, Problem, S
from gumbeldore.training.loss import losses


class DivergenceError(ContractError):
    """Training cannot go on. `reproducer` holds tensors and plain data: weights and examples of the step that failed."""

    def __init__(self, message: str, reproducer: dict[str, Any]) -> None:
        super().__init__(message)
        self.reproducer = reproducer


@dataclass(frozen=True)
class Examined:
    """One gradient step, computed again."""

    loss: float
    gradient_norm: float
    largest_weight: float
    rows: list[int]  # examples whose loss is not finite
    parameters: list[str]  # whose gradient is not finite
    fault: str = ""  # what the policy's outputs were refused for

    @property
    def failed(self) -> bool:
        return bool(self.rows or self.parameters or self.fault)

    def __str__(self) -> str:
        if self.fault:
            return f"{self.fault} The largest weight is {self.largest_weight:.3g}."
        return (
            f"loss {self.loss:.4g}, gradient norm {self.gradient_norm:.4g}, largest weight {self.largest_weight:.3g}; not finite are the "
            f"losses of the examples {self.rows or 'none'} and the gradients of {', '.join(self.parameters) or 'nothing'}"
        )


def reproducer(policy: Network, examples: Examples[Any], epoch: int, batch: int) -> dict[str, Any]:
    """What a step was computed from."""
    plain = {"kind": "divergence", "epoch": epoch, "batch": batch, "policy": policy.state_dict()}
    return {**plain, "state": examples.state.tensors(), "targets": examples.targets()}


def examined(problem: Problem[S], policy: Network, saved: Mapping[str, Any]) -> Examined:
    """Computes the step of a reproducer again, in this process."""
    if saved.get("kind") != "divergence":
        raise CheckpointError("This file holds no step that diverged. Such files are called diverged.pt.")
    policy.load_state_dict(policy.upgraded_weights(saved["policy"]))
    kind = type(problem.generate(1, generator=torch.Generator().manual_seed(0)))
    return step(problem, policy, Examples(kind(**saved["state"]), **saved["targets"]))


def step(problem: Problem[S], policy: Network, examples: Examples[S]) -> Examined:
    """The loss of some examples and its gradient, with what is not finite in them."""
    policy.train().zero_grad(set_to_none=True)
    largest = max(parameter.abs().max().item() for parameter in policy.parameters())
    try:
        each, _ = losses(problem, policy, examples.to(next(policy.parameters()).device))
    except NotFiniteError as error:
        return Examined(float("nan"), float("nan"), largest, [], [], str(error))
    each.mean().backward()
    gradients = {name: parameter.grad for name, parameter in policy.named_parameters() if parameter.grad is not None}
    norm = torch.stack([gradient.norm() for gradient in gradients.values()]).norm().item()
    rows = (~each.detach().isfinite()).nonzero().flatten().tolist()
    return Examined(
        each.mean().item(), norm, largest, rows, [name for name, grad in gradients.items() if not bool(grad.isfinite().all())]
    )
