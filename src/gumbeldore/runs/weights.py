"""The weights that a run begins with: fresh ones, or those of a file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from gumbeldore.errors import require
from gumbeldore.io.policy_files import load_policy, read_weights
from gumbeldore.policy import Network
from gumbeldore.runs.presets import Entry
from gumbeldore.runs.settings import RunSettings


def new_policy(entry: Entry, settings: RunSettings, device: torch.device) -> Network:
    """Freshly initialised weights, by the run's seed and without touching the global random state."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.training.seed)
        return entry.build(settings).to(device)


def start_from(policy: Network, path: Path) -> None:
    """Gives a new policy the weights of a file, which must be of the same architecture; the sizes of problems may differ.

    Parts that can be added to given weights (`Network.addable`) stay as they are in the new policy where the file has none.
    """
    _, header = read_weights(path)
    theirs, ours = (header.get("policy"), json.loads(header.get("config", "{}"))), (type(policy).__name__, policy.config)
    require(
        theirs[0] == ours[0] and _grown(type(policy), theirs[1], ours[1]) == ours[1],
        f"--from {path} holds {_named(*theirs)}, but this run trains {_named(*ours)}. Give it the same class and sizes.",
    )
    policy.load_state_dict({**policy.state_dict(), **load_policy(path, type(policy)).state_dict()})


def _grown(network: type[Network], config: dict[str, int], wanted: dict[str, int]) -> dict[str, int] | None:
    """All sizes of a policy whose file may be older than some of them, with what is wanted and can be added; None if it cannot be built."""
    try:
        whole = network(**config).config
    except (TypeError, ValueError, ArithmeticError, RuntimeError):
        return None
    return whole | {name: wanted[name] for name in network.addable if not whole[name]}


def file_hash(path: Path) -> str:
    """The SHA-256 of a file."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _named(name: str | None, config: Mapping[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={value}' for key, value in config.items())})"
