"""What networks for routes see: the tokens of each row, from where its vehicle stands to where it is going; and features of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from gumbeldore.networks.features import Feature
from gumbeldore.networks.frame import DISTANCES, distances, in_frame
from gumbeldore.networks.layers import Block


@dataclass(frozen=True)
class View:
    """The tokens of the rows of a state."""

    state: Any
    order: Int[Tensor, "row token"]  # which nodes of the instance they are
    blocked: Bool[Tensor, "row 1 1 token"] | None  # padding
    points: Float[Tensor, "row token 2"]
    here: Float[Tensor, "row 2"]  # where the vehicle stands
    goal: Float[Tensor, "row 2"]
    candidates: Bool[Tensor, "row token"]  # all but these two and padding
    turned: bool = False  # whether points are seen in the canonical frame

    @cached_property
    def _framed(self) -> tuple[Float[Tensor, "row token 2"], Float[Tensor, "row token 2"]]:
        return in_frame(self.points, self.here, self.goal, self.candidates)

    @property
    def seen(self) -> Float[Tensor, "row token 2"]:
        """The points as the network sees them."""
        return self._framed[0] if self.turned else self.points

    @cached_property
    def distances(self) -> Float[Tensor, "row token 2"]:
        """From `here` and from `goal`, twice as large, like coordinates in [-1, 1]."""
        return self._framed[1] if self.turned else distances(self.points, self.here, self.goal)


@dataclass(frozen=True)
class RouteFeature(Feature):
    """A feature of the tokens of a network for routes."""

    def columns(self, view: View) -> Float[Tensor, "row token column"]:
        """What it says of each token, about as large as 1."""
        raise NotImplementedError

    def prior(self) -> Float[Tensor, "logit column"] | None:
        """Weights with which its columns reach the logits directly at first, so that the network begins as a heuristic; None: they do not."""
        return None

    def check(self, d: int, heads: int) -> None:
        """Raises where it does not fit a network of that size."""

    def begin(self, embedding: nn.Linear, marker: nn.Embedding, blocks: Sequence[Block], column: int) -> None:
        """Sets the initial weights that it needs; its own columns are features of the embedding from `column` on."""


@dataclass(frozen=True)
class CanonicalFrame(RouteFeature):
    """Nodes are seen from the current one on the way to the goal, turned and mirrored (`frame.py`), with their distances from both."""

    name: ClassVar[str] = "frame"
    width: ClassVar[int] = DISTANCES

    def columns(self, view: View) -> Float[Tensor, "row token 2"]:
        return view.distances
