"""What the BQ networks for routes share (Drakulic et al. 2023): a decoder over the nodes that are left, composed of features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gumbeldore.networks.distance_bias import DistanceBias
from gumbeldore.networks.features import ComposedNetwork, distinct, written
from gumbeldore.networks.layers import Block, FoldedStack, Stack
from gumbeldore.networks.routes import CanonicalFrame, RouteFeature, View
from gumbeldore.networks.tokens import row_bytes


class BQPolicy(ComposedNetwork):
    """Embedding, markers, blocks and logits. The paper's networks have no features.

    If a feature has a prior, its columns also reach the logits directly, and nothing else does at first: the network begins as a heuristic.
    """

    known: ClassVar[tuple[type[RouteFeature], ...]] = (DistanceBias, CanonicalFrame)
    dropped = ("pointer",)
    renamed = {"rule": "heuristic_prior"}  # noqa: RUF012 - the base class says that it is of the class

    def __init__(self, inputs: int, logits: int, marker: str, sizes: dict[str, int], features: Sequence[RouteFeature]) -> None:
        super().__init__()
        d, heads = sizes["d"], sizes["heads"]
        self.features = distinct(features)
        self.config = {**sizes, "features": written(features)}
        self.turned = any(isinstance(feature, CanonicalFrame) for feature in features)
        priors = {feature: weight for feature in features if (weight := feature.prior()) is not None}
        self.node_embedding = nn.Linear(inputs + sum(feature.width for feature in features), d)
        markers = nn.Embedding(2, d)
        self.add_module(marker, markers)
        self.graph_encoder = Stack(Block(d, heads, sizes["ff"]) for _ in range(sizes["layers"]))
        self.policy_linear_out = nn.Linear(d, logits)
        self.informed = tuple(priors)  # those with a prior
        self.heuristic_prior = self._begun_as(torch.cat([*priors.values()], 1)) if priors else None
        for feature in features:
            feature.check(d, heads)
            feature.begin(self.node_embedding, markers, self.graph_encoder.blocks, inputs)
            inputs += feature.width

    def _begun_as(self, weight: Float[Tensor, "logit column"]) -> nn.Linear:
        """The layer from columns to logits. What the blocks add to them is nothing at first."""
        layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
        layer.weight.data = weight
        self.policy_linear_out.weight.data.zero_()
        return layer

    def described(self, view: View) -> tuple[Float[Tensor, "row token column"], Float[Tensor, "row token known"] | None]:
        """The columns of all features, and those that reach the logits directly."""
        columns = {feature: feature.columns(view) for feature in self.features}
        known = [columns[feature] for feature in self.informed]
        return torch.cat([*columns.values()], -1), torch.cat(known, -1) if known else None

    def scores(
        self, x: Float[Tensor, "row token d"], known: Float[Tensor, "row token known"] | None
    ) -> Float[Tensor, "row token logit"]:
        """The logits of tokens after all blocks."""
        scores = self.policy_linear_out(x)
        return scores if self.heuristic_prior is None else scores + self.heuristic_prior(known)

    def blocks(self, prepared: Any) -> Stack | FoldedStack:
        """Those prepared for a search, or as they are now."""
        return self.graph_encoder if prepared is None else prepared.blocks

    def row_bytes(self, state: Any) -> int:
        return row_bytes(state, self.graph_encoder.blocks)
