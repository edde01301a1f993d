"""The contract of a policy: raw logits for the next action of each row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from gumbeldore.problem import Examples, Problem, S, State

S_contra = TypeVar("S_contra", bound=State, contravariant=True)


@runtime_checkable
class Policy(Protocol[S_contra]):
    """Anything that maps rows to logits. Networks are `torch.nn.Module`s that implement these methods.

    Optionally `row_bytes(state) -> int` says how much memory a forward pass needs per row, or keeps if gradients are recorded;
    a search then calls the policy with as many rows as fit into its memory setting. And `mask(state)` narrows the problem's mask to the
    policy's own action space, as in `Network`; an action must be left in every unfinished row.
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
    """A policy with weights. `config` says how it was made, in terms of JSON, so that `from_config` can make one like it."""

    config: dict[str, Any]

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """A network with fresh weights. By default `config` holds the constructor's arguments."""
        return cls(**config)

    @classmethod
    def upgraded(cls, config: Mapping[str, Any]) -> dict[str, Any]:
        """The `config` of a file that an older version may have written, as it would be now."""
        return dict(config)

    def upgraded_weights(self, weights: Mapping[str, Shaped[Tensor, "..."]]) -> Mapping[str, Shaped[Tensor, "..."]]:
        """Weights of such a file, by the names that they have now."""
        return weights

    def goes_on_from(self, config: Mapping[str, Any]) -> bool:
        """Whether the weights of a network made by that `config` are fit to go on with (`--from`). What this one has in addition must not
        change the logits before it is trained."""
        return config == self.config

    def prepare(self, state: Any) -> Any:
        """Nothing by default."""
        return None

    def as_built(self, state: Any, actions: Int[Tensor, "row depth"]) -> Int[Tensor, "row depth"]:
        """Complete solutions of initial states in the form in which this policy builds them, for `imitate`; by default they are in it."""
        return actions

    def mask(self, state: Any) -> Bool[Tensor, "row action"] | None:
        """The actions that it chooses among, if these are fewer than the problem's (its action space); None: all that are allowed."""
        return None

    def loss(self, examples: Examples[Any]) -> tuple[Float[Tensor, "row action"], Float[Tensor, " row"] | None]:
        """For training, in one pass: the logits of a call, and an auxiliary loss of each row, to be made small beside the negative
        log-probability of its action. None by default."""
        return self(examples.state, self.prepare(examples.state)), None


def allowed(problem: Problem[S], policy: Any, state: S) -> Bool[Tensor, "row action"]:
    """The actions that a policy chooses among: those that the problem allows, and its action space, if it has one of its own."""
    mask, space = problem.mask(state), getattr(policy, "mask", None)
    own = None if space is None else space(state)
    return mask if own is None else mask & own
