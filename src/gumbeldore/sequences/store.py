"""Model states by prefix, as rows of a few growing tensors; the least recently used ones make room."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gumbeldore.errors import SettingsError

Path = list[int]
"""The numbers of all prefixes of a prefix, the longest last."""

_FIRST = 64
"""Rows to begin with."""


def _mapped(function: Callable[..., Tensor], state: Any, *others: Any) -> Any:
    """A state with a function applied to its tensors."""
    if isinstance(state, Tensor):
        return function(state, *others)
    if isinstance(state, dict):
        return {key: _mapped(function, value, *(other[key] for other in others)) for key, value in state.items()}
    if isinstance(state, tuple | list):
        parts = [_mapped(function, value, *(other[i] for other in others)) for i, value in enumerate(state)]
        return type(state)(*parts) if hasattr(state, "_fields") else type(state)(parts)
    raise SettingsError(f"A state must be a tensor, or a tuple, list or dictionary of states, got {type(state).__name__}.")


def _tensors(state: Any) -> list[Tensor]:
    """The tensors of a state."""
    found: list[Tensor] = []

    def seen(tensor: Tensor) -> Tensor:
        found.append(tensor)
        return tensor

    _mapped(seen, state)
    return found


def select(state: Any, rows: Tensor) -> Any:
    """Some rows of a state."""
    return _mapped(lambda tensor: tensor.index_select(0, rows.to(tensor.device)), state)


class StateStore:
    """At most `memory` bytes of states. What the current paths need is never forgotten, nor a prefix before what follows it."""

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self.limit: int | None = None  # rows that fit; known when the first state arrives
        self.forgotten = 0
        self._slot: dict[int, int] = {}  # in the order of their last use
        self._free: list[int] = []
        self._table: Any = None
        self._rows = 0  # of the table
        self._now: set[int] = set()

    def __contains__(self, prefix: int) -> bool:
        return prefix in self._slot

    def holds(self, count: int) -> bool:
        """Whether so many states fit together."""
        return self.limit is None or count <= self.limit

    def begin(self, paths: list[Path]) -> None:
        """From now on these paths are needed: the last to be forgotten, and of them the prefixes later than what follows."""
        self._now = set().union(*paths)
        for prefix in sorted(self._now, reverse=True):  # a prefix has a lower number than what follows it
            slot = self._slot.pop(prefix, None)
            if slot is not None:
                self._slot[prefix] = slot

    def states(self, prefixes: list[int]) -> Any:
        """The states of some prefixes, all here."""
        if any(prefix not in self._slot for prefix in prefixes):
            raise SettingsError(
                f"`memory` for model states must hold those of one sequence at least, got {self.memory} bytes: {self.limit} states."
            )
        return select(self._table, torch.tensor([self._slot[prefix] for prefix in prefixes]))

    def pages(self, paths: list[Path]) -> Any:
        """The states of all prefixes of some paths of one length, as [row, place, ...]."""
        shape = len(paths), len(paths[0])
        flat = self.states([prefix for path in paths for prefix in path])
        return _mapped(lambda tensor: tensor.view(*shape, *tensor.shape[1:]), flat)

    def put(self, prefixes: list[int], state: Any) -> None:
        """Keeps new states, as many as there is room for. Those that are here already stay as they are."""
        if self.limit is None:
            each = sum(tensor[0].numel() * tensor.element_size() for tensor in _tensors(state))
            self.limit = max(1, self.memory // max(1, each))
        new = {prefix: row for row, prefix in enumerate(prefixes) if prefix not in self._slot}
        self._make_room(len(new))
        kept = list(new)[: len(self._free)]
        if kept:
            slots = [self._free.pop() for _ in kept]
            self._slot.update(zip(kept, slots, strict=True))
            self._write(state, torch.tensor([new[prefix] for prefix in kept]), torch.tensor(slots))

    def _write(self, state: Any, rows: Tensor, slots: Tensor) -> None:
        if self._table is None:
            self._table = _mapped(lambda values: values.new_empty(0, *values.shape[1:]), state)
        more = self._rows - len(_tensors(self._table)[0])
        if more > 0:
            self._table = _mapped(lambda table: torch.cat([table, table.new_empty(more, *table.shape[1:])]), self._table)

        def written(table: Tensor, values: Tensor) -> Tensor:
            return table.index_copy_(0, slots.to(table.device), values.detach().index_select(0, rows.to(values.device)))

        _mapped(written, self._table, state)

    def _make_room(self, count: int) -> None:
        assert self.limit is not None
        missing = count - len(self._free)
        if missing > 0 and self._rows < self.limit:
            size = min(self.limit, max(_FIRST, 2 * self._rows, self._rows + missing))
            self._free.extend(range(size - 1, self._rows - 1, -1))
            missing, self._rows = missing - (size - self._rows), size
        old = [prefix for prefix in self._slot if prefix not in self._now][: max(0, missing)]
        self._free.extend(self._slot.pop(prefix) for prefix in old)
        self.forgotten += len(old)
