"""`gumbeldore solve` as a method: a policy, local search and reconstruction share the time of each instance, or some of them do."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from typing import Any

from gumbeldore.errors import SettingsError
from gumbeldore.evaluation.methods import Answer, Failure, Method, weights_digest
from gumbeldore.kits.kit import Instance, Kit
from gumbeldore.policy import Network
from gumbeldore.solving import solve_jobs
from gumbeldore.solving.effort import PARTS, Effort
from gumbeldore.solving.jobs import Job

_ALL = "all"
_FORM = re.compile(r"(?P<parts>[a-z+-]+):(?P<seconds>[\d.]+)s")


@dataclass(frozen=True)
class PartsMethod(Method):
    """Some parts for so many seconds of the clock, one instance at a time."""

    name: str
    policy: Network | None
    effort: Effort

    @classmethod
    def of(cls, text: str, label: str, policy: Network | None) -> PartsMethod:
        """`all:10s`, `local-search:2s`, `policy+local-search:10s`."""
        effort = effort_named(text)
        asks = effort.parts != ("local-search",)
        return cls(f"{label} {text}" if asks else text, policy if asks else None, effort)

    @cached_property
    def identity(self) -> dict[str, Any]:
        return {
            "package": version("gumbeldore"),
            "parts": None if self.effort.parts is None else list(self.effort.parts),
            "seconds": self.effort.time_limit,
            "weights": None if self.policy is None else weights_digest(self.policy),
        }

    @property
    def random(self) -> bool:
        return True

    def together(self, kit: Kit, given: Instance) -> int:
        return 1

    def item(self, kit: Kit, instances: tuple[Instance, ...], seeds: Sequence[int]) -> list[tuple[Job, int]]:
        return [(Job(kit, given), seed) for given, seed in zip(instances, seeds, strict=True)]

    def solve(self, item: list[tuple[Job, int]]) -> list[Answer | Failure]:
        answers: list[Answer | Failure] = []
        for job, seed in item:
            begin = time.process_time()
            (found,) = solve_jobs([job], replace(self.effort, seed=seed), policy=self.policy)
            answers.append(Answer(tuple(found.actions), time.process_time() - begin))
        return answers


def effort_named(text: str) -> Effort:
    found = _FORM.fullmatch(text)
    names = None if found is None or found["parts"] == _ALL else tuple(found["parts"].split("+"))
    if found is None or not set(names or ()) <= set(PARTS):
        raise SettingsError(
            f"`parts` must be {_ALL} or some of {', '.join(PARTS)}, and seconds, as in policy+local-search:10s, got {text!r}."
        )
    return Effort(time_limit=float(found["seconds"]), parts=names)  # type: ignore[arg-type]
