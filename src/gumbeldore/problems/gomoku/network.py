"""The network for Gomoku: AlphaZero's residual tower with a policy head (paper, appendix "Gomoku: A Toy Problem")."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import conv2d

from gumbeldore.errors import require
from gumbeldore.policy import Network
from gumbeldore.problems.gomoku.problem import GomokuState


class FoldedConvolution(NamedTuple):
    """A convolution with its batch norm multiplied in, for inference."""

    weight: Float[Tensor, "out in width width"]
    bias: Float[Tensor, " out"]

    def __call__(self, x: Float[Tensor, "row in size size"]) -> Float[Tensor, "row out size size"]:
        return conv2d(x, self.weight, self.bias, padding=self.weight.shape[-1] // 2)


class Convolution(nn.Module):
    """A convolution that keeps the board's size, then batch norm (whose shift is the convolution's bias)."""

    def __init__(self, channels_in: int, channels_out: int, width: int = 3) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(channels_in, channels_out, width, padding=width // 2, bias=False)
        self.norm = nn.BatchNorm2d(channels_out)

    def forward(self, x: Float[Tensor, "row in size size"]) -> Float[Tensor, "row out size size"]:
        return self.norm(self.convolution(x))

    def folded(self) -> FoldedConvolution:
        mean, variance = self.norm.running_mean, self.norm.running_var
        assert mean is not None
        assert variance is not None
        scale = self.norm.weight / (variance + self.norm.eps).sqrt()
        weight = self.convolution.weight * scale[:, None, None, None]
        return FoldedConvolution(weight.contiguous(memory_format=torch.channels_last), self.norm.bias - mean * scale)


class GomokuPolicy(Network):
    """Two planes (the mover's stones, the opponent's), a convolution, residual blocks, and a head with one logit per cell.

    The last layer starts at zero, so an untrained policy is uniform. A policy is made for one board size.
    """

    def __init__(self, size: int = 9, channels: int = 32, blocks: int = 2, head_channels: int = 16, hidden: int = 32) -> None:
        super().__init__()
        self.config = {"size": size, "channels": channels, "blocks": blocks, "head_channels": head_channels, "hidden": hidden}
        first = Convolution(2, channels)
        tower = [Convolution(channels, channels) for _ in range(2 * blocks)]
        self.convolutions = nn.ModuleList([first, *tower, Convolution(channels, head_channels, width=1)])
        self.hidden = nn.Linear(head_channels * size * size, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.policy_linear_out = nn.Linear(hidden, size * size)
        nn.init.zeros_(self.policy_linear_out.weight)
        nn.init.zeros_(self.policy_linear_out.bias)

    def prepare(self, state: GomokuState) -> list[FoldedConvolution] | None:
        """Folds the batch norms once for a search; with gradients or batch statistics there is nothing to prepare."""
        if torch.is_grad_enabled() or self.training:
            return None
        return [layer.folded() for layer in self.convolutions if isinstance(layer, Convolution)]

    def forward(self, state: GomokuState, context: list[FoldedConvolution] | None = None) -> Float[Tensor, "row cell"]:
        layers: list[Any] = list(self.convolutions) if context is None else [*context]
        first, *tower, last = layers
        x = first(self.planes(state)).relu_()
        for into, out in zip(tower[::2], tower[1::2], strict=True):
            x = out(into(x).relu_()).add_(x).relu_()
        x = last(x).relu_().flatten(1)
        return self.policy_linear_out(self.norm(self.hidden(x)).relu_())

    def planes(self, state: GomokuState) -> Float[Tensor, "row 2 size size"]:
        """The board from the view of the player to move: its own stones, and the opponent's."""
        rows, cells = state.board.shape
        size = self.config["size"]
        require(
            cells == size * size,
            f"This `GomokuPolicy` plays on boards of size {size} ({size * size} cells), got {cells} cells. "
            f"Make one with `GomokuPolicy(size=...)`.",
        )
        view = state.board * state.to_move[:, None]
        planes = torch.stack([view == 1, view == -1], 2).to(self.hidden.weight.dtype)  # channels last is faster on CPUs
        return planes.view(rows, size, size, 2).permute(0, 3, 1, 2)

    def row_bytes(self, state: GomokuState) -> int:
        """Working memory of one row in a search: a few layers of activations."""
        return 4 * 4 * self.config["channels"] * self.config["size"] ** 2
