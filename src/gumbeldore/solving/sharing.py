"""One instance in several processes: each has its own random numbers, and hears now and then what the others have found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from gumbeldore.solving.board import Board
from gumbeldore.solving.found import Found, Share

ENDED = 1.0
"""How far a search says that it is when it has ended, and not before."""


@dataclass
class Others:
    """The searches of the same instance in other processes, by their places on the board."""

    board: Board
    places: Sequence[int]
    heard: dict[int, int] = field(default_factory=dict)  # how often each had become better

    def news(self) -> Iterator[Found]:
        """What is better than it was, of each."""
        turns = self.board.turns()
        for place in self.places:
            if turns[place] > self.heard.get(place, 0):
                self.heard[place] = int(turns[place])
                yield self.board.read(place)

    @property
    def ended(self) -> bool:
        """Whether one of them has: its time was up, or it knows that there is nothing better."""
        progress = self.board.progress()
        return any(progress[place] >= ENDED for place in self.places)


def together(copies: Sequence[Found]) -> Found:
    """What several searches of one instance have found and spent. Who gained what is told as the best of them saw it."""
    best = min(copies, key=lambda found: found.cost)
    return replace(
        best,
        sequences=sum(found.sequences for found in copies),
        evaluations=sum(found.evaluations for found in copies),
        seconds=max(found.seconds for found in copies),
        shares=tuple(_spent(share, copies) for share in best.shares),
    )


def _spent(share: Share, copies: Sequence[Found]) -> Share:
    same = [each for found in copies for each in found.shares if each.by == share.by]
    return replace(share, seconds=sum(each.seconds for each in same), turns=sum(each.turns for each in same))
