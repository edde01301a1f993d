"""Faster, coarser arithmetic, where a GPU offers it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Precision:
    """How coarsely may be calculated; by default exactly as the weights are stored."""

    bf16: bool = False  # forward passes of gradient steps, where PyTorch thinks it safe (autocast)
    tf32: bool = False  # products of 32-bit floats on NVIDIA GPUs

    def forward(self, device: torch.device) -> AbstractContextManager[None]:
        """For a forward pass whose gradient is wanted."""
        return torch.autocast(device.type, torch.bfloat16, enabled=self.bf16)

    @contextmanager
    def products(self) -> Iterator[None]:
        """For everything; a setting of this process, put back at the end."""
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = before or self.tf32
        try:
            yield
        finally:
            torch.backends.cuda.matmul.allow_tf32 = before
