"""The contract of a policy: raw logits for the next action of each row."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor, nn

from gumbeldore.errors import ContractError
from gumbeldore.problem import State

S_contra = TypeVar("S_contra", bound=State, contravariant=True)


@runtime_checkable
class Policy(Protocol[S_contra]):
    """Anything that maps rows to logits. Networks are `torch.nn.Module`s that implement these methods.

    Optionally `row_bytes(state) -> int` says how much memory a forward pass needs per row, or keeps if gradients are recorded;
    a search then calls the policy with as many rows as fit into its memory setting.
    """

    def prepare(self, state: S_contra) -> Any:
        """What is computed once per instance (an encoder, folded weights); passed to every call. May be None."""
        ...

    def __call__(self, state: S_contra, context: Any) -> Float[Tensor, "row action"]:
        """Raw logits. Values at forbidden actions are ignored: masking happens in one place, the search."""
        ...


def rows_within(policy: Any, state: State, memory: int) -> int:
    """How many rows like those of `state` may pass through the policy together: all of them if it does not know its `row_bytes`."""
    row_bytes = getattr(policy, "row_bytes", None)
    return max(1, memory // row_bytes(state)) if row_bytes else max(1, state.row_count)


class Network(nn.Module):
    """A policy with weights. `config` holds its constructor's arguments, so that a file of weights can reconstruct it.

    `addable` names those of them that may be switched on for weights that were trained without (`--from`): what they add must not change
    the logits before it is trained.
    """

    config: dict[str, int]
    addable: ClassVar[tuple[str, ...]] = ()

    def prepare(self, state: Any) -> Any:
        """Nothing by default."""
        return None

    def as_built(self, state: Any, actions: Int[Tensor, "row depth"]) -> Int[Tensor, "row depth"]:
        """Complete solutions of initial states in the form in which this policy builds them, for `imitate`; by default they are in it."""
        return actions

    def taught(
        self, state: Any, successor: Int[Tensor, "row item"]
    ) -> tuple[Float[Tensor, "row action"], Float[Tensor, " row"]]:
        """The logits of a call, and how badly each row predicts what follows its items (`Examples.successor`): the mean negative
        log-probability over the items that have a successor, 0 where none has. For training only, in one pass."""
        raise ContractError(
            f"`successor_weight` must be 0 for {type(self).__name__}: it cannot predict what follows an item. Give it a method `taught`."
        )
