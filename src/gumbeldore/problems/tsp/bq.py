"""The BQ network for the TSP (Drakulic et al. 2023, as used in the paper's appendix "Traveling Salesman Problem")."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from gumbeldore.errors import ContractError, require
from gumbeldore.networks.frame import DISTANCES, in_frame
from gumbeldore.networks.layers import Block, FoldedStack, Stack
from gumbeldore.networks.locality import look_around, with_square
from gumbeldore.networks.pointer import Pointer, in_tokens, successor_losses
from gumbeldore.networks.tokens import row_bytes, take
from gumbeldore.policy import Network
from gumbeldore.problems.geometry import rule
from gumbeldore.problems.tsp.bounds import BOUNDS, REGRETS, TRIED, bound_features
from gumbeldore.problems.tsp.problem import TSPState
from gumbeldore.problems.tsp.tokens import tsp_tokens


class Prepared(NamedTuple):
    """What does not change during a search: the cities, embedded unless they are seen in a frame, and the folded blocks."""

    cities: Float[Tensor, "batch city d_or_2"]
    blocks: Stack | FoldedStack


class TSPPolicy(Network):
    """Decoder-only transformer over origin, choosable cities and destination; one logit per choosable city.

    The defaults are the paper's. `TSPPolicy(d=64, layers=3, ff=256)` is the small one for a laptop. With `pointer=1` it has
    another head, for training only, by which every city predicts the one that follows it. With `local=1` attention begins with
    windows around each city (`networks/locality.py`). With `frame=1` cities are seen from the current one (`networks/frame.py`). With
    `bounds=1`, too, it is told what spanning trees say of the way that is left (`bounds.py`); this also reaches the logits directly, so that it begins as the rule
    to go wherever the bound grows least.
    """

    addable = ("pointer",)

    def __init__(
        self,
        d: int = 128,
        layers: int = 9,
        heads: int = 8,
        ff: int = 512,
        pointer: int = 0,
        local: int = 0,
        frame: int = 0,
        bounds: int = 0,
    ) -> None:
        super().__init__()
        require(not bounds or bool(frame), f"`bounds` needs `frame` = 1, got {frame}.")
        sizes = {"d": d, "layers": layers, "heads": heads, "ff": ff}
        self.config = {**sizes, "pointer": pointer, "local": local, "frame": frame, "bounds": bounds}
        self.local, self.frame, self.bounds = bool(local), bool(frame), bool(bounds)
        self.node_embedding = nn.Linear((3 if local else 2) + DISTANCES * self.frame + BOUNDS * self.bounds, d)
        self.first_last_marker = nn.Embedding(2, d)
        self.graph_encoder = Stack(Block(d, heads, ff) for _ in range(layers))
        self.policy_linear_out = nn.Linear(d, 1)
        self.pointer = Pointer(d) if pointer else None
        self.rule = nn.Linear(BOUNDS, 1, bias=False) if bounds else None
        if self.rule is not None:
            self.rule.weight.data[0] = rule(BOUNDS, TRIED, REGRETS)
            self.policy_linear_out.weight.data.zero_()
        if local:
            look_around(self.node_embedding, self.graph_encoder.blocks, square=2)
            self.first_last_marker.weight.data[:, :3] = 0

    def prepare(self, state: TSPState) -> Prepared | None:
        """Embeds the cities and folds the blocks once; with gradients there is nothing to prepare."""
        if torch.is_grad_enabled():
            return None
        return Prepared(self._cities(state), self.graph_encoder.prepare())

    def forward(self, state: TSPState, context: Prepared | None = None) -> Float[Tensor, "row city"]:
        x, order, told = self._tokens(state, context)
        return self._logits(x, state, order, told)

    def taught(
        self, state: TSPState, successor: Int[Tensor, "row city"]
    ) -> tuple[Float[Tensor, "row city"], Float[Tensor, " row"]]:
        if self.pointer is None:
            raise ContractError(
                "`successor_weight` must be 0 for a TSPPolicy without the head for it, or build one with `pointer=1`."
            )
        x, order, told = self._tokens(state, None)
        target = in_tokens(successor, order)
        follows = torch.ones_like(order, dtype=torch.bool)
        follows[:, 0] = False  # nothing comes before the origin
        return self._logits(x, state, order, told), successor_losses(self.pointer(x), target, follows)

    def _tokens(
        self, state: TSPState, context: Prepared | None
    ) -> tuple[Float[Tensor, "row token d"], Int[Tensor, "row token"], Float[Tensor, "row token told"] | None]:
        """Origin, choosable cities and destination after all blocks, which cities they are, and what bounds say of them."""
        order, blocked = tsp_tokens(state)
        x = take(self._cities(state) if context is None else context.cities, state, order)
        told = None
        if self.frame:
            candidates = torch.ones_like(order, dtype=torch.bool) if blocked is None else ~blocked[:, 0, 0]
            candidates[:, 0] = candidates[:, -1] = False
            seen, others = in_frame(x, x[:, 0], x[:, -1], candidates)
            if self.bounds:
                told = bound_features(x, blocked, others / 2)
                others = torch.cat([others, told], -1)
            x = self._embed(seen, others)
        x[:, 0] += self.first_last_marker.weight[0]
        x[:, -1] += self.first_last_marker.weight[1]
        return (self.graph_encoder if context is None else context.blocks)(x, blocked), order, told

    def _logits(
        self,
        x: Float[Tensor, "row token d"],
        state: TSPState,
        order: Int[Tensor, "row token"],
        told: Float[Tensor, "row token told"] | None,
    ) -> Float[Tensor, "row city"]:
        logits = self.policy_linear_out(x[:, 1:-1]).squeeze(-1)
        if self.rule is not None and told is not None:
            logits = logits + self.rule(told[:, 1:-1]).squeeze(-1)
        return logits.new_zeros(state.visited.shape).scatter(1, order[:, 1:-1], logits)

    def _cities(self, state: TSPState) -> Float[Tensor, "batch city d_or_2"]:
        points = state.coordinates.to(self.node_embedding.weight.dtype)
        return points if self.frame else self._embed(points, points[..., :0])

    def _embed(self, points: Float[Tensor, "*axes 2"], others: Float[Tensor, "*axes other"]) -> Float[Tensor, "*axes d"]:
        return self.node_embedding(torch.cat([with_square(points) if self.local else points, others], -1))

    def row_bytes(self, state: TSPState) -> int:
        return row_bytes(state, self.graph_encoder.blocks)
