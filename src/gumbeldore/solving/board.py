"""What worker processes have found so far: a file of numbers in the memory of all of them."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbeldore.solving.found import FINDERS, Found, Improvement

PROGRESS, TURNS, PAGES = 0, 1, 2
"""Columns of a row: how far the search is (0 .. 1), how often an entry was written (0: none), then two pages for entries."""
_HEAD = 8
"""Numbers of an entry before its actions: cost, sequences, mass, evaluations, shared, seconds, who found it, length."""


class Board:
    """The best sequence of every instance so far. A worker writes beside the last entry and then turns the page, so it may die at any time."""

    def __init__(self, path: Path, instances: int, depth: int) -> None:
        self.path, self.instances, self.entry = path, instances, _HEAD + depth
        self.depth = depth

    @cached_property
    def _rows(self) -> NDArray[np.float64]:
        shape = (self.instances, PAGES + 2 * self.entry)
        return np.memmap(self.path, np.float64, mode="r+" if self.path.exists() else "w+", shape=shape)

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens the file itself."""
        return Board, (self.path, self.instances, self.depth)

    def clear(self) -> None:
        """Makes the file, before anyone else opens it."""
        self._rows[:] = 0

    def report(self, place: int, fraction: float) -> None:
        self._rows[place, PROGRESS] = fraction

    def progress(self) -> NDArray[np.float64]:
        return np.array(self._rows[:, PROGRESS])

    def turns(self) -> NDArray[np.int64]:
        """How often each instance got better."""
        return self._rows[:, TURNS].astype(np.int64)

    def write(self, place: int, found: Found) -> None:
        row, actions = self._rows[place], found.actions
        counts = (found.sequences, found.mass, found.evaluations, found.shared, found.seconds)
        by = FINDERS.index(found.by) if found.by in FINDERS else -1
        turn = int(row[TURNS]) + 1
        entry = [found.cost, *counts, by, len(actions), *actions]
        start = PAGES + turn % 2 * self.entry
        row[start : start + len(entry)] = entry
        row[TURNS] = turn

    def read(self, place: int) -> Found:
        """The last entry of a place where there is one."""
        row = self._rows[place]
        while True:
            turn = int(row[TURNS])
            start = PAGES + turn % 2 * self.entry
            entry = row[start : start + self.entry].tolist()
            if int(row[TURNS]) == turn:
                break
        cost, sequences, mass, evaluations, shared, seconds, by, length = entry[:_HEAD]
        actions = [int(action) for action in entry[_HEAD : _HEAD + int(length)]]
        improvements = (Improvement(FINDERS[int(by)], cost, seconds),) if by >= 0 else ()
        return Found([(actions, cost)], int(sequences), mass, int(evaluations), int(shared), seconds, improvements)
