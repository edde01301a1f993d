"""The LEHD networks: a light encoder, run once per instance, and a heavy decoder (Luo et al. 2023)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gumbeldore.networks.layers import Block, FoldedStack, Stack
from gumbeldore.policy import Network
from gumbeldore.problem import State

TOKENS = 1 << 14
"""How many tokens the encoder takes at once in a search, which bounds its memory whatever the number of instances."""


class Prepared(NamedTuple):
    """What does not change during a search: the encoded nodes and the folded decoder."""

    nodes: Float[Tensor, "batch node d"]
    blocks: Stack | FoldedStack


class LehdPolicy(Network):
    """What both LEHD networks share: blocks without normalisation or scalar, one in the encoder, `layers` in the decoder."""

    def __init__(self, features: int, logits: int, d: int, layers: int, heads: int, ff: int) -> None:
        super().__init__()
        self.config = {"d": d, "layers": layers, "heads": heads, "ff": ff}
        self.node_embedding = nn.Linear(features, d)
        self.graph_encoder = Block(d, heads, ff, rezero=False)
        self.graph_decoder = Stack(Block(d, heads, ff, rezero=False) for _ in range(layers))
        self.start_projection = nn.Linear(d, d)
        self.policy_linear_out = nn.Linear(d, logits)

    def prepare(self, state: State) -> Prepared | None:
        """Encodes the nodes of all instances and folds the decoder once; with gradients there is nothing to prepare."""
        if torch.is_grad_enabled():
            return None
        nodes, encoder = self.embed(state), Stack([self.graph_encoder]).prepare()
        nodes = torch.cat([encoder(part) for part in nodes.split(max(1, TOKENS // nodes.shape[1]))])
        return Prepared(nodes, self.graph_decoder.prepare())

    def encoded(self, state: State, context: Prepared | None) -> Float[Tensor, "batch node d"]:
        """The encoded nodes: those prepared, or with gradients computed now."""
        return Stack([self.graph_encoder])(self.embed(state)) if context is None else context.nodes

    def decode(self, x: Float[Tensor, "row token d"], blocked: Tensor | None, context: Prepared | None) -> Tensor:
        """The decoder's layers."""
        return (self.graph_decoder if context is None else context.blocks)(x, blocked)

    def embed(self, state: State) -> Float[Tensor, "batch node d"]:
        """The encoder's input."""
        raise NotImplementedError
