"""A search without knobs: say how much work it may do, and it splits that into augmentations, beams and rounds itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from gumbeldore.errors import require
from gumbeldore.search.augmentation import with_augmentations
from gumbeldore.search.auto import GROWTH, AutoNucleus
from gumbeldore.search.following import Following
from gumbeldore.search.memory import MemoryBudget
from gumbeldore.search.phases import Exploration, Schedule, Work
from gumbeldore.search.reconstruction import Ledger, Reconstruction, can_reconstruct
from gumbeldore.search.samplers import MEMORY, TrieSampler, check_positive, evaluation_mode
from gumbeldore.search.task import Task
from gumbeldore.solutions import Solutions


@dataclass(frozen=True)
class Adaptive(TrieSampler):
    """About as many policy `evaluations`, or `sequences` without replacement, as said, whatever is reached first.

    1. A greedy solution, and then a narrow beam search beside it.
    2. A narrow beam search on other augmentations of the instance, some at a time. They get three quarters of the work, if there are
       augmentations enough.
    3. Take a step and reconsider: the best sequence so far is followed to its end in a few steps, with samples below each; again and
       again, until everything is used.

    Where the problem can write solutions down in other forms, that is only a part of the work. In between and after it, parts of the best
    solutions are built anew (`search/reconstruction.py`); what is better than all before is returned. `search/phases.py` holds the phases.

    The search happens in one trie, so nothing is drawn twice, with an automatic nucleus (`search/auto.py`) and without advantages, which
    did not help here (docs/results/samplers.md). Stop its `stream` whenever you like.
    """

    by_horizon: ClassVar[bool] = True
    begins_greedily: ClassVar[bool] = True
    schedule: ClassVar[Schedule] = Schedule()

    sequences: int | None = None  # per instance; a round that has begun is finished. None: 128, if there is no other limit
    evaluations: int | None = None  # per instance, likewise
    effort: int | None = None  # per instance, likewise: as many evaluations as so many greedy solutions may take
    memory: int = MEMORY
    transpositions: bool = True  # evaluate equal states once, where the problem has keys

    def __post_init__(self) -> None:
        check_positive("memory", self.memory)
        for name in ("sequences", "evaluations", "effort"):
            limit = getattr(self, name)
            require(limit is None or limit >= 1, f"`{name}` must be at least 1, or None for no limit, got {limit}.")

    def rounds_of(self, task: Task[Any]) -> Iterator[Solutions]:
        """A search, and beside it, where solutions can be written down in other forms, parts of the best ones anew."""
        total, phase = self.work(task.problem.horizon(task.state)), self.schedule.reconstruction
        rebuilds, most, reconstruction = can_reconstruct(task.problem), self.schedule.most(total), None
        work = self.work(total.horizon, phase.explored(total.solutions)) if rebuilds else total
        varied = with_augmentations(task, self.schedule.augmentations.count(work))
        with evaluation_mode(task.policy):
            on = self._exploration(varied, work, total)
        rounds = self.schedule.explore(on)
        while True:
            with evaluation_mode(task.policy), torch.inference_mode():
                if next(rounds, None) is None:
                    break
                solutions = on.following.solutions
            found = varied.own(solutions)  # outside: the caller's code runs with its own gradient mode
            if not rebuilds:
                yield found
                continue
            if reconstruction is None:
                chains = phase.chains(total)
                reconstruction = Reconstruction(task, chains, self.memory, found, self.transpositions, on.spent)
            reconstruction.see(found)
            yield reconstruction.found
            yield from phase.rounds(reconstruction, total, most)
        if reconstruction is not None:
            yield from phase.rounds(reconstruction, total, most, alone=True)

    def _exploration(self, task: Task[Any], work: Work, total: Work) -> Exploration[Any]:
        """A search that has not begun, with a part of the work."""
        budget = self.budget(task.problem.horizon(task.state))
        nodes = self.schedule.most(work) - 1 + self._widest(work)
        search = budget.search(task, transpositions=self.transpositions, nodes=nodes)
        growth = GROWTH ** (1 / self.schedule.stepping.steps)
        nucleus = AutoNucleus.start(task.state.row_count, task.state.device, growth=growth)
        following = Following(search, task.seeds, nucleus, sigma=0.0)
        return Exploration(following, task.augmentations, self.schedule, work, total, Ledger.empty(task.state.instance))

    def augmentations_for(self, horizon: int) -> int:
        return self.schedule.augmentations.count(self.work(horizon))

    def work(self, horizon: int, share: float = 1.0) -> Work:
        """What may be spent on an instance with solutions of so many actions, or a share of that."""
        nothing = self.sequences is None and self.evaluations is None and self.effort is None
        limits = (self.schedule.sequences if nothing else self.sequences, self.evaluations, self.effort)
        sequences, evaluations, effort = (limit and max(1, round(share * limit)) for limit in limits)
        return Work(horizon, sequences, min(evaluations or torch.inf, effort * horizon if effort else torch.inf))

    def _widest(self, work: Work) -> int:
        """The widest round."""
        most, augmentations = self.schedule.most(work), self.schedule.augmentations
        return min(most, max(self.schedule.stepping.width(work, most), augmentations.beam * augmentations.together[-1]))

    def budget(self, horizon: int) -> MemoryBudget:
        work = self.work(max(1, horizon - 1))  # one level may be the choice of an augmentation
        width = self._widest(work)
        return MemoryBudget(self.schedule.most(work) - 1 + width, width, self.memory)
