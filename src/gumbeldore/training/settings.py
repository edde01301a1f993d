"""How a policy is trained, as one record; and the stages of a curriculum."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Generic, Literal

import torch

from gumbeldore.errors import CheckpointError, require
from gumbeldore.problem import Problem, S
from gumbeldore.search.samplers import check_positive
from gumbeldore.training.given import GivenInstances
from gumbeldore.training.precision import Precision

_MAY_CHANGE = ("epochs", "patience", "goal", "learning_rate", "final_learning_rate")
"""What a run may be resumed with differently: how long to train, and how fast."""

_SEEDS = 2**63


def check_seed(seed: int, name: str = "seed") -> None:
    """Raises unless a number can be the seed of a generator."""
    require(0 <= seed < _SEEDS, f"`{name}` must lie in 0 .. 2^63 - 1, got {seed}.")


@dataclass(frozen=True)
class TrainingSettings:
    """How long and on what to train; the defaults are the paper's for the routing problems."""

    epochs: int = 2000
    instances: int = 1000  # fresh instances to solve per epoch
    batches: int = 1000  # gradient steps per epoch
    batch_size: int = 1024  # examples per gradient step
    learning_rate: float = 2e-4  # Adam
    final_learning_rate: float | None = None  # reached by a cosine over all epochs; None: no decay, as in the paper
    local_search: int = (
        0  # attempts per item of a local search that improves sampled solutions, where the problem has one; 0: off
    )
    relabel: int = 0  # prefixes of each sampled solution for which `local_search` finds how to go on best (DAgger); 0: off
    generating: Literal["best", "current"] = "best"  # which policy generates: the best so far, or the current one
    include_greedy: bool = False  # the greedy solution is among what is sampled; off, as in the paper
    replay_window: int | None = (
        None  # epochs whose solutions are learnt from; None: all until the validation improves; 1: fresh ones
    )
    ema: float = 0.0  # what a step keeps of the running mean of the weights, which is judged and used instead of them; 0: off
    patience: int | None = None  # stop after this many epochs without improvement
    goal: float | None = None  # stop once the validation is at least this; an objective, so minus a cost
    sampling_batch: int = 16  # instances sampled together, by one worker; changes speed, not results
    part_size: int = 128  # examples of a gradient step that one worker takes at a time
    seed: int = 0
    precision: Literal["float32", "tf32", "bf16"] = "float32"  # coarser arithmetic where a GPU has it: faster, less exact

    def __post_init__(self) -> None:
        for name in ("epochs", "instances", "batches", "batch_size", "sampling_batch", "part_size"):
            check_positive(name, getattr(self, name))
        self._check_rates()
        self._check_labels()
        require(0 <= self.ema < 1, f"`ema` must lie in 0 (off) .. 1, without 1, got {self.ema}.")
        require(self.patience is None or self.patience >= 1, f"`patience` must be at least 1 or None, got {self.patience}.")
        require(self.goal is None or math.isfinite(self.goal), f"`goal` must be a finite number or None, got {self.goal}.")
        check_seed(self.seed)

    def _check_rates(self) -> None:
        for name in ("learning_rate", "final_learning_rate"):
            value = getattr(self, name)
            require(value is None or 0 < value < math.inf, f"`{name}` must be a positive number, got {value}.")
        final = self.final_learning_rate
        require(
            final is None or final <= self.learning_rate,
            f"`final_learning_rate` must be at most `learning_rate` ({self.learning_rate}), from which it falls, got {final}.",
        )

    def _check_labels(self) -> None:
        """What is learnt from."""
        require(self.local_search >= 0, f"`local_search` must be at least 0 (off), got {self.local_search}.")
        require(self.relabel >= 0, f"`relabel` must be at least 0 (off), got {self.relabel}.")
        require(
            self.local_search > 0 or self.relabel == 0,
            f"`relabel` needs `local_search`, which finds out how to go on, got {self.relabel} with `local_search` = 0.",
        )
        window = self.replay_window
        require(window is None or window >= 1, f"`replay_window` must be at least 1, or None, got {window}.")

    def check_resumes(self, theirs: Mapping[str, Any]) -> None:
        """Raises unless a run that was started with the settings `theirs` may go on with these."""
        if not isinstance(theirs, Mapping):
            raise CheckpointError(f"The settings in a checkpoint must be a table, got {theirs!r}.")
        before, now = {**asdict(TrainingSettings()), **theirs}, asdict(self)
        before.pop("successor_weight", None)  # of an older version, now among the policy's
        changed = sorted(name for name in {*before, *now} - {*_MAY_CHANGE} if before.get(name) != now.get(name))
        if changed:
            raise CheckpointError(
                f"This run was started with other settings ({', '.join(changed)}). Resume with the same ones; only "
                f"{', '.join(f'`{name}`' for name in _MAY_CHANGE)} may change. To go on from its weights with new settings, start a new "
                f"run from them (--from)."
            )

    @property
    def arithmetic(self) -> Precision:
        return Precision(bf16=self.precision == "bf16", tf32=self.precision != "float32")

    @property
    def parts(self) -> int:
        """Into how many parts a gradient step is cut; as many workers can share it."""
        return -(-self.batch_size // self.part_size)

    def learning_rate_at(self, epoch: int) -> float:
        """The learning rate of an epoch (from 1)."""
        if self.final_learning_rate is None or self.epochs == 1:
            return self.learning_rate
        progress = (epoch - 1) / (self.epochs - 1)
        share = 0.5 * (1 + torch.cos(torch.tensor(progress * torch.pi, dtype=torch.float64)).item())
        return self.final_learning_rate + share * (self.learning_rate - self.final_learning_rate)


@dataclass(frozen=True)
class Stage(Generic[S]):
    """A part of a training: what is solved in it, how it is judged, and when the next one begins (whatever comes first).

    The last stage ends with the training. `minutes` depend on the machine; a run that is resumed counts on.
    """

    problem: (
        Problem[S] | GivenInstances[S]
    )  # of which instances are generated; sizes may differ between stages, what a solution is may not
    validation: S | Sequence[S]  # a state, or one for each size
    learning_rate: float | None = None  # None: that of the training's settings
    epochs: int | None = None  # after so many
    stalled: int | None = None  # after so many without improvement
    minutes: float | None = None

    def is_over(self, epochs: int, stalled: int, seconds: float) -> bool:
        """Whether the next stage begins, after so many epochs of this one, the last ones of them without improvement."""
        pairs = ((self.epochs, epochs), (self.stalled, stalled), (self.minutes, seconds / 60))
        return any(limit is not None and value >= limit for limit, value in pairs)
