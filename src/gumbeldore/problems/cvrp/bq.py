"""The BQ network for the CVRP (Drakulic et al. 2023, as used in the paper's appendix "Capacitated Vehicle Routing Problem")."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import linear

from gumbeldore.errors import ContractError, require
from gumbeldore.networks.frame import DISTANCES, in_frame
from gumbeldore.networks.layers import Block, FoldedStack, Stack
from gumbeldore.networks.locality import look_around, with_square
from gumbeldore.networks.pointer import Pointer, in_tokens, successor_losses
from gumbeldore.networks.tokens import row_bytes, take
from gumbeldore.policy import Network
from gumbeldore.problems.cvrp.loads import LOADS, load_features
from gumbeldore.problems.cvrp.problem import CVRPState
from gumbeldore.problems.cvrp.rest import Rest
from gumbeldore.problems.cvrp.savings import REGRETS, SAVINGS, TRIED, saving_features
from gumbeldore.problems.cvrp.tokens import cvrp_tokens
from gumbeldore.problems.geometry import points_at, rule


class Prepared(NamedTuple):
    """What does not change during a search: the nodes' features and the folded blocks."""

    nodes: Float[Tensor, "batch node 3"]
    blocks: Stack | FoldedStack


class CVRPPolicy(Network):
    """Decoder-only transformer over depot, origin and choosable customers; two logits per customer (direct, via depot).

    The defaults are the paper's. `CVRPPolicy(d=64, layers=3, heads=4, ff=256)` is the small one for a laptop. With `pointer=1`
    it has another head, for training only, by which every customer predicts the node that follows it. With `local=1` attention
    begins with windows around each node (`networks/locality.py`). With `frame=1` nodes are seen from the current one, on the way
    to the depot (`networks/frame.py`). With `loads=1`, too, it is told what fits and how much is left to do (`loads.py`), and
    with `savings=1` what the savings heuristic would do, now and after each of some actions (`savings.py`); this also reaches the logits directly, so that it
    begins as the rule to go wherever the savings that follow cost least.
    """

    addable = ("pointer",)

    def __init__(
        self,
        d: int = 192,
        layers: int = 9,
        heads: int = 12,
        ff: int = 512,
        pointer: int = 0,
        local: int = 0,
        frame: int = 0,
        loads: int = 0,
        savings: int = 0,
    ) -> None:
        super().__init__()
        told = {"loads": loads, "savings": savings}
        for name, value in told.items():
            require(not value or bool(frame), f"`{name}` needs `frame` = 1, got {frame}.")
        sizes = {"d": d, "layers": layers, "heads": heads, "ff": ff}
        self.config = {**sizes, "pointer": pointer, "local": local, "frame": frame, **told}
        self.local, self.frame, self.loads, self.savings = (bool(each) for each in (local, frame, loads, savings))
        others = DISTANCES * self.frame + LOADS * self.loads + SAVINGS * self.savings
        self.node_embedding = nn.Linear((5 if local else 4) + others, d)
        self.depot_start_node_marker = nn.Embedding(2, d)
        self.graph_encoder = Stack(Block(d, heads, ff) for _ in range(layers))
        self.policy_linear_out = nn.Linear(d, 2)
        self.pointer = Pointer(d) if pointer else None
        self.rule = nn.Linear(SAVINGS, 2, bias=False) if savings else None
        if self.rule is not None:
            self.rule.weight.data = torch.stack([rule(SAVINGS, *each) for each in zip(TRIED, REGRETS, strict=True)])
            self.policy_linear_out.weight.data.zero_()
        if local:
            look_around(self.node_embedding, self.graph_encoder.blocks, square=4)
            self.depot_start_node_marker.weight.data[:, :3] = 0

    def prepare(self, state: CVRPState) -> Prepared | None:
        """Scales the demands and folds the blocks once; with gradients there is nothing to prepare."""
        if torch.is_grad_enabled():
            return None
        return Prepared(node_features(state, self.node_embedding.weight.dtype), self.graph_encoder.prepare())

    def forward(self, state: CVRPState, context: Prepared | None = None) -> Float[Tensor, "row action"]:
        x, order, told = self._tokens(state, context)
        return customer_logits(self._scores(x, told), state, order)

    def taught(
        self, state: CVRPState, successor: Int[Tensor, "row node"]
    ) -> tuple[Float[Tensor, "row action"], Float[Tensor, " row"]]:
        if self.pointer is None:
            raise ContractError(
                "`successor_weight` must be 0 for a CVRPPolicy without the head for it, or build one with `pointer=1`."
            )
        x, order, told = self._tokens(state, None)
        target, follows = in_tokens(successor, order), (order != state.current[:, None]) | (order == 0)
        logits = customer_logits(self._scores(x, told), state, order)
        return logits, successor_losses(self.pointer(x), target, follows)

    def _tokens(
        self, state: CVRPState, context: Prepared | None
    ) -> tuple[Float[Tensor, "row token d"], Int[Tensor, "row token"], Float[Tensor, "row token told"] | None]:
        """Depot, origin and choosable customers after all blocks, which nodes they are, and what savings say of them."""
        order, blocked = cvrp_tokens(state)
        nodes = node_features(state, self.node_embedding.weight.dtype) if context is None else context.nodes
        features, others = take(nodes, state, order), nodes.new_empty(*order.shape, 0)
        if self.frame:
            features, others = self._framed(features, state, order, blocked)
        if self.loads:
            others = torch.cat([others, load_features(state, order, features[..., :2], others[..., 0])], -1)
        told = None
        if self.savings:
            told = saving_features(Rest.of(state, order, blocked), others.dtype)
            others = torch.cat([others, told], -1)
        x = self._embed(features, others, state, order)
        return (self.graph_encoder if context is None else context.blocks)(x, blocked), order, told

    def _scores(
        self, x: Float[Tensor, "row token d"], told: Float[Tensor, "row token told"] | None
    ) -> Float[Tensor, "row token_1 2"]:
        """Of all tokens but the depot: direct, via the depot."""
        scores = self.policy_linear_out(x[:, 1:])
        return scores if self.rule is None or told is None else scores + self.rule(told[:, 1:])

    def _framed(
        self,
        features: Float[Tensor, "row token 3"],
        state: CVRPState,
        order: Int[Tensor, "row token"],
        blocked: Bool[Tensor, "row 1 1 token"] | None,
    ) -> tuple[Float[Tensor, "row token 3"], Float[Tensor, "row token 2"]]:
        """The features with coordinates as seen from the current node on the way to the depot, and the distances from both."""
        candidates = (order != 0) & (order != state.current[:, None])
        if blocked is not None:
            candidates &= ~blocked[:, 0, 0]
        points = features[..., :2]
        here = points_at(state.nodes, state.instance, state.current).to(points.dtype)
        seen, distances = in_frame(points, here, points[:, 0], candidates)
        return torch.cat([seen, features[..., 2:]], -1), distances

    def _embed(
        self,
        features: Float[Tensor, "row token 3"],
        others: Float[Tensor, "row token other"],
        state: CVRPState,
        order: Int[Tensor, "row token"],
    ) -> Float[Tensor, "row token d"]:
        """Embedding and markers in one matrix product: two more features say which token is the depot, and the origin."""
        capacity = capacity_ratio(state, features.dtype)[:, None].expand(order.shape)
        is_depot, is_origin = (order == 0).to(features.dtype), (order == state.current[:, None]).to(features.dtype)
        square = with_square(features[..., :2])[..., 2:] if self.local else features[..., :0]
        features = torch.cat([features, capacity[..., None], square, others, torch.stack([is_depot, is_origin], -1)], -1)
        weight = torch.cat([self.node_embedding.weight, self.depot_start_node_marker.weight.t()], 1)
        return linear(features, weight, self.node_embedding.bias)

    def row_bytes(self, state: CVRPState) -> int:
        return row_bytes(state, self.graph_encoder.blocks)


def node_features(state: CVRPState, dtype: torch.dtype) -> Float[Tensor, "batch node 3"]:
    """Coordinates, and demand as a share of the vehicle's capacity."""
    share = state.demands / state.capacity[:, None]
    return torch.cat([state.nodes.to(dtype), share.to(dtype)[..., None]], -1)


def capacity_ratio(state: CVRPState, dtype: torch.dtype) -> Float[Tensor, " row"]:
    """What is left of the vehicle's capacity, as a share."""
    return (state.remaining / state.capacity[state.instance]).to(dtype)


def customer_logits(
    logits: Float[Tensor, "row token_1 2"], state: CVRPState, order: Int[Tensor, "row token"]
) -> Float[Tensor, "row action"]:
    """The logits of all tokens but the depot, put where their actions are; 0 for actions that are not allowed anyway."""
    place = (2 * (order[:, 1:, None] - 1) + torch.arange(2, device=order.device)).flatten(1)
    actions = 2 * state.visited.shape[1]
    return torch.zeros(len(order), actions, dtype=logits.dtype, device=logits.device).scatter(1, place, logits.flatten(1))
