"""Which policy solves an instance: the one that ships with its kit, another one by name, or one of a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from gumbeldore.errors import CheckpointError, GumbeldoreError, SettingsError
from gumbeldore.io.policy_files import is_a_name, load_policy, policy_file, read_weights
from gumbeldore.io.shipped import choose, shipped
from gumbeldore.kits import registry as finding
from gumbeldore.kits.kit import Architecture, Kit
from gumbeldore.policy import Network, Policy
from gumbeldore.solving.effort import Effort
from gumbeldore.solving.jobs import Job


def policy_for(kit: Kit, named: str | Path | None = None, architecture: Architecture | None = None) -> Network:
    """A trained policy for the kit's problem, of this architecture if one is named.

    `named` is a file, the folder of a run, or one that ships; None: the usual one that ships.
    """
    if named is None or is_a_name(named):
        policy = choose(kit, None if named is None else str(named)).load()
        if architecture is None or isinstance(policy, architecture.network):
            return policy
        fitting = [each.name for each in shipped(kit) if isinstance(each.load(), architecture.network)]
        if named is None and fitting:
            return choose(kit, fitting[0]).load()
        raise SettingsError(
            f"No trained {architecture.network.__name__} ships for `{kit.name}`{f', and `{named}` is none' if named else ''}. "
            f"Train one and name it by --policy."
        )
    named = policy_file(named)
    _, header = read_weights(named)
    held = header.get("policy")
    wanted = kit.architectures.values() if architecture is None else (architecture,)
    networks = {each.network.__name__: each.network for each in wanted}
    if held not in networks:
        others = [name for name in finding.kit_names() if held in _networks(name)]
        whose = f", which is for {' and '.join(others)}" if others else ""
        what = kit.name if architecture is None else f"{kit.name} ({' or '.join(networks)})"
        raise CheckpointError(f"`policy` must be one for {what}, but {named} holds a {held}{whose}.")
    return load_policy(named, networks[held])


def policies_for(
    jobs: Sequence[Job], effort: Effort, find: Callable[[Kit], Policy[Any]]
) -> tuple[dict[str, Policy[Any]], dict[str, str]]:
    """The policies by kit, and by kit why there is none."""
    policies: dict[str, Policy[Any]] = {}
    faults: dict[str, str] = {}
    for kit in {job.kit.name: job.kit for job in jobs}.values():
        if all(effort.parts_for(job) == ("local-search",) for job in jobs if job.kit.name == kit.name):
            continue  # nobody asks a policy
        try:
            policies[kit.name] = find(kit)
        except GumbeldoreError as error:
            faults[kit.name] = str(error)
    return policies, faults


def _without_policy(effort: Effort, job: Job) -> bool:
    """Whether an instance can be solved although there is no policy: by local search, if nobody has asked for others."""
    return effort.parts is None and effort.parts_for(job) != ("policy",) and effort.parts_for(job, policy=False) != ()


def unsolvable(jobs: Sequence[Job], effort: Effort, faults: dict[str, str], *, named: bool) -> list[tuple[Job, str]]:
    """Instances that wait for a policy which is not there, and why not. A policy that a user has `named` is not gone without."""
    return [
        (job, faults[job.kit.name]) for job in jobs if job.kit.name in faults and (named or not _without_policy(effort, job))
    ]


@dataclass(frozen=True)
class Function:
    """A plain function of a state as a policy."""

    logits: Callable[[Any], Tensor]

    def prepare(self, state: Any) -> None:
        """Nothing."""

    def __call__(self, state: Any, context: Any) -> Tensor:
        return self.logits(state)


def as_policy(policy: Policy[Any] | Callable[[Any], Tensor]) -> Policy[Any]:
    """What has `prepare` as it is; any other function of a state as a policy."""
    return policy if isinstance(policy, Policy) else Function(policy)


def _networks(kit: str) -> list[str]:
    return [each.network.__name__ for each in finding.kit_named(kit).architectures.values()]
