"""What a kit says about the files of the method's public code (grimmlab/gumbeldore): its checkpoints and its data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gumbeldore.errors import FormatError
from gumbeldore.kits.instances import Arrays

Shapes = Mapping[str, tuple[int, ...]]
"""Of a checkpoint's parameters, by name."""


@dataclass(frozen=True)
class PublishedNetwork:
    """What a checkpoint of a network looks like there. Parameters are called as in ours."""

    mark: str  # a parameter that no other network has
    blocks: str  # the counted blocks, which say how deep it is
    heads: Mapping[int, int]  # by width: those of the public configuration, because a checkpoint does not tell
    depth: str = "layers"  # what our constructor calls the number of blocks
    per_layer: int = 1  # blocks that count as one

    def size(self, shapes: Shapes, heads: int | None) -> dict[str, int]:
        """The arguments of our constructor."""
        try:
            d, ff = shapes["policy_linear_out.weight"][1], shapes[f"{self.blocks}.0.linear1.weight"][0]
        except LookupError as error:
            raise FormatError(f"has the parameter {self.mark}, but lacks {error}") from error
        count = len({name.split(".")[1] for name in shapes if name.startswith(f"{self.blocks}.")})
        if heads is None and d not in self.heads:
            raise FormatError(
                f"does not say how many attention heads it has, and the public configuration has width "
                f"{' or '.join(map(str, self.heads))}, not {d}. Name their number: --heads"
            )
        return {"d": d, self.depth: count // self.per_layer, "heads": heads or self.heads[d], "ff": ff}


@dataclass(frozen=True)
class PublishedInstance:
    """One record of a data file, as our arrays and actions."""

    arrays: Arrays
    actions: list[int] | None  # None: without a solution
    cost: float | None  # of the solution, as the file says


@dataclass(frozen=True)
class PublishedData:
    """What a data file looks like there: a list of records, or a dictionary of such lists."""

    keys: frozenset[str]  # that all records have
    read: Callable[[Mapping[str, Any]], PublishedInstance]
