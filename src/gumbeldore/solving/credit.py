"""Who works next: time is shared by what each part has gained per second lately."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

FLOOR = 0.05
"""The least share of the time of each part: an instance may change its mind."""
_MEMORY = 0.1
"""Gains, and the time they took, count half after this part of all time that there is; what was spent altogether, after all of it."""


@dataclass
class Account:
    """What a part has spent and gained."""

    spent: float = 0.0  # seconds, to see who is behind with its share
    seconds: float = 0.0  # those in which it gained something or not
    gain: float = 0.0  # as a part of the cost
    turns: int = 0

    @property
    def rate(self) -> float:
        return self.gain / self.seconds if self.seconds > 0 else 0.0


class Credit:
    """Shares of the time, in proportion to recent gains per second.

    Each part has a floor; what is left is shared in proportion to the rates. Where nobody gains anything the first part has half of it. A
    part that has had no turn yet counts as much as the best. If there is a `leader`, all that is left is its own. Next is the part that
    would be least ahead of its share after its turn, so one with dear turns waits until the others have had as much; the order follows
    from what the turns took and gained, without any randomness.
    """

    def __init__(self, names: Sequence[str], total: float, leader: str | None = None) -> None:
        """`names`: the one to rely on first. `total`: seconds that there are for all."""
        self.accounts = {name: Account() for name in names}
        self.half, self.leader = max(1e-9, _MEMORY * total), leader

    @property
    def shares(self) -> dict[str, float]:
        best = max(account.rate for account in self.accounts.values())
        rates = {name: account.rate if account.turns else best for name, account in self.accounts.items()}
        if self.leader in rates:
            rates = {name: float(name == self.leader) for name in rates}
        if sum(rates.values()) == 0:
            others = max(1, len(rates) - 1)
            rates = {name: 1.0 if place == 0 else 1.0 / others for place, name in enumerate(rates)}
        everything, free = sum(rates.values()), 1 - FLOOR * len(rates)
        return {name: FLOOR + free * rate / everything for name, rate in rates.items()}

    def next(self, expected: Mapping[str, float]) -> str:
        """Who is next, if turns take as long as `expected`; the first of equals."""
        shares = self.shares
        return min(self.accounts, key=lambda name: (self.accounts[name].spent + expected[name]) / shares[name])

    def pay(self, name: str, seconds: float, gain: float) -> None:
        """After a turn: how long it took, and how much better it made the best solution, as a part of its cost."""
        fading = 0.5 ** (seconds / self.half)
        for account in self.accounts.values():
            account.seconds, account.gain = fading * account.seconds, fading * account.gain
            account.spent *= fading**_MEMORY
        mine = self.accounts[name]
        mine.spent, mine.seconds, mine.gain = mine.spent + seconds, mine.seconds + seconds, mine.gain + gain
        mine.turns += 1

    def pay_both(self, name: str, helper: str, seconds: float, helped: float, gain: float) -> None:
        """After a turn in which a helper worked for some of the time: it is paid that time, and what it usually gains in it."""
        usual = min(gain, self.accounts[helper].rate * helped) if helper in self.accounts else 0.0
        if helper in self.accounts:
            self.accounts[helper].seconds += helped
            self.accounts[helper].gain += usual
        self.pay(name, seconds, gain - usual)

    def drop(self, name: str) -> None:
        """A part that has nothing left to do."""
        del self.accounts[name]
