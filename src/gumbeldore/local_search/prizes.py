"""Local search for tours that collect prizes within a budget (`compiled/prize_search.cpp`): nodes are taken out and others put in, annealed."""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from gumbeldore.local_search.compiling import code, plain
from gumbeldore.local_search.distances import Distances, indices
from gumbeldore.local_search.limits import limits


class PrizeSearch:
    """A search that can be run again and again, and goes on where it was. What it finds depends on the work done and the seed alone.

    Node 0 is the depot; a tour is a list of other nodes. Without one the search builds its own. Distances must be alike in both directions.
    One unit of work is a round of removal and reinsertion.
    """

    def __init__(self, distances: Distances, prizes: Any, budget: float, *, seed: int, tour: Any = None) -> None:
        self.distances, self.work = distances, 0
        worth = np.ascontiguousarray(prizes, np.float64)
        self._search = code().prize_search(
            distances.compiled, worth, float(budget), seed, None if tour is None else indices(tour)
        )

    def run(self, *, work: int | None = None, seconds: float | None = None, progress: tuple[float, float] | None = None) -> int:
        """Searches on until either is used up, or `stop` is called. Returns the work done.

        Worse tours are accepted now and then, the less often the more of the search is over. `progress` says where in the whole of it this run
        begins and ends: (0, 1) if there is no other. Without, the search anneals again and again, each time twice as long.
        """
        done = code().run_prizes(self._search, *limits(work, seconds), *(progress or (nan, nan)))
        self.work += done
        return done

    @property
    def best(self) -> list[int]:
        """The tour that collects most so far; of equal ones the shortest."""
        return self._best()[0]

    @property
    def prize(self) -> float:
        """What it collects."""
        return self._best()[1]

    def _best(self) -> tuple[list[int], float]:
        nodes = np.empty(len(self.distances), np.int64)
        prize = code().best_prizes(self._search, nodes)
        return nodes[: int((nodes > 0).sum())].tolist(), prize

    def offer(self, tour: Any) -> bool:
        """Goes on from this tour, if it is better than the best so far; says whether it is."""
        return code().offer_prizes(self._search, indices(tour))

    def stop(self) -> None:
        """From another thread: `run` returns at once."""
        code().stop_prizes(self._search)


def improve_prizes(
    distances: Float[Tensor, "batch node another"],
    prizes: Float[Tensor, "batch node"],
    budgets: Float[Tensor, " batch"],
    actions: Int[Tensor, "batch depth"],
    seeds: Int[Tensor, " batch"],
    rounds: int,
    kept: int = 0,
) -> Int[Tensor, "batch node"]:
    """Tours that collect no less, by so many rounds. Actions are those of `OP`: nodes, then 0, padded with -1; the first `kept` of them stay."""
    short = prizes.shape[1] - actions.shape[1]
    padded = torch.nn.functional.pad(actions, (0, short), value=-1)  # cuts off what is padding anyway
    result = padded.to("cpu", torch.int64, copy=True).contiguous().numpy()
    doubles = (plain(each, torch.float64) for each in (distances, prizes, budgets))
    code().improve_prizes(*doubles, plain(seeds, torch.int64), rounds, kept, result)
    return torch.from_numpy(result).to(actions)
