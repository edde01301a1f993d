"""One instance, and all who can work on it: a plain start, local search at once, then whoever gains most per second."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import monotonic
from typing import Any

from gumbeldore.kits.improving import LocalSearch
from gumbeldore.policy import Policy
from gumbeldore.search.reconstruction import can_reconstruct
from gumbeldore.search.samplers import Sampler
from gumbeldore.solving.credit import Credit
from gumbeldore.solving.effort import Limits, PartName
from gumbeldore.solving.found import LOCAL, PARTS_ANEW, POLICY, START, Found
from gumbeldore.solving.jobs import Group
from gumbeldore.solving.parts import FIRST_SHARE, Improving, Incumbent, Part, PolicySide, Rebuilding, Sampling
from gumbeldore.solving.search import REPORTED, Report, silent
from gumbeldore.solving.sharing import Others

WHOLE = 1000
"""Instances of more actions are not solved by a policy as a whole: that would take most of the time."""
AT_ONCE = 0.1
"""Seconds of the first local search, at most; and of the time that there is, `SHARE_AT_ONCE`."""
SHARE_AT_ONCE = 0.1
TURN, SHORTEST, LONGEST = 0.01, 0.01, 0.25
"""A turn is such a part of the time, within these limits in seconds."""
STALLED = 0.8
"""A search with patience ends when this part of its time has brought nothing ..."""
LARGE = 200
"""... but instances of so many actions have all their time, smaller ones have theirs in proportion."""
HEARD = 0.05
"""What other processes have found is heard after each such part of the time."""


class Portfolio:
    """Iterate over it: it yields what is found after each turn, until the time is up."""

    def __init__(
        self,
        group: Group,
        policy: Policy[Any] | None,
        sampler: Sampler,
        limits: Limits,
        parts: Sequence[PartName],
        report: Report = silent,
        others: Others | None = None,
    ) -> None:
        """`others`: searches of the same instance in other processes."""
        self.others, self.heard = others, 0.0
        self.group, self.policy, self.sampler, self.limits, self.names = group, policy, sampler, limits, parts
        self.report, self.reported = report, 0.0
        self.job = group.jobs[0]
        self.best = Incumbent(self.job)
        self.seconds = limits.seconds or float("inf")
        self.end = self.best.start + self.seconds
        self.parts: dict[str, Part] = {}
        self.asked: list[PolicySide] = []
        self.search: LocalSearch | None = None

    def __iter__(self) -> Iterator[list[Found]]:
        self._begin()
        yield [self.found]
        turn = min(LONGEST, max(SHORTEST, TURN * self.seconds))
        if LOCAL in self.parts:
            self.parts[LOCAL].turn(self.best, min(AT_ONCE, SHARE_AT_ONCE * self.seconds))
            self._took(LOCAL, min(AT_ONCE, SHARE_AT_ONCE * self.seconds))
            yield [self.found]
        self._ask()
        credit = Credit(list(self.parts), self.seconds, LOCAL if self.search is not None and self.search.anneals else None)
        while credit.accounts and not self.over:
            self._hear()
            name = credit.next({name: self.parts[name].expected for name in credit.accounts})
            before, begin = self.best.cost, monotonic()
            again = self.parts[name].turn(self.best, max(0.0, min(turn, self.end - begin)))
            self._took(name, monotonic() - begin)
            gain = (before - self.best.cost) / max(abs(before), 1e-12)
            credit.pay_both(name, LOCAL, monotonic() - begin, self.parts[name].helped, gain)
            if not again:
                credit.drop(name)
            yield [self.found]

    @property
    def over(self) -> bool:
        elapsed = self.best.elapsed
        if elapsed >= self.seconds or (self.search is not None and self.search.optimal):
            return True
        if self.others is not None and self.others.ended:
            self._hear(at_once=True)
            return True
        if self.limits.patience is None or elapsed < max(self.limits.patience, self.seconds * len(self.best.actions) / LARGE):
            return False
        return elapsed - self.best.improvements[-1].seconds > STALLED * elapsed

    @property
    def found(self) -> Found:
        """All that is known so far."""
        evaluations, sequences = (sum(getattr(part, of) for part in self.asked) for of in ("evaluations", "sequences"))
        return Found(
            list(self.best.best),
            sequences,
            float("nan"),
            evaluations,
            0,
            self.best.elapsed,
            self.best.improvements,
            tuple(self.best.shares.values()),
        )

    def _begin(self) -> None:
        """A solution, given or plain."""
        make, begin = self.job.kit.need("local search", "local_search"), self.job.begin
        search = make(self.job.given, self.group.seeds[0] % (1 << 31), begin)
        self.best.offer(list(begin) if begin is not None else search.actions, START)
        self.best.spent(START, self.best.elapsed)
        if "local-search" in self.names:
            self.search = search
            self.parts[LOCAL] = Improving(search, self.seconds)

    def _ask(self) -> None:
        """The parts that need the policy, if there is one and the instance is small enough."""
        if self.policy is None or len(self.best.actions) > WHOLE:
            return
        if "policy" in self.names:
            sampling = Sampling(self.group, self.policy, self.end, self.sampler, "local-search" in self.names)
            if sampling.first <= FIRST_SHARE * self.seconds:
                self.parts[POLICY] = sampling
        if "reconstruction" in self.names:
            rebuilding = Rebuilding(self.group, self.policy, self.end, self.sampler.memory)
            if can_reconstruct(rebuilding.problem):
                self.parts[PARTS_ANEW] = rebuilding
        self.asked = [part for part in self.parts.values() if isinstance(part, PolicySide)]

    def _hear(self, at_once: bool = False) -> None:
        """Takes better solutions of other processes, now and then."""
        if self.others is None or (self.best.elapsed - self.heard < HEARD * self.seconds and not at_once):
            return
        self.heard = self.best.elapsed
        for found in self.others.news():
            if found.cost < self.best.cost:
                self.best.offer(found.actions, found.by, found.cost)

    def _took(self, name: str, seconds: float) -> None:
        """Writes down what a turn took, and tells how far the search is."""
        self.best.spent(name, seconds - self.parts[name].helped)
        if (now := monotonic()) - self.reported >= REPORTED:
            self.reported = now
            self.report(min(0.99, self.best.elapsed / self.seconds))
