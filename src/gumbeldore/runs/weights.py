"""The weights that a run begins with: fresh ones, or those of a file."""

from __future__ import annotations

import hashlib
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

    What the new policy has in addition (`Network.goes_on_from`) stays as it is.
    """
    named = read_weights(path)[1].get("policy")
    same = named == type(policy).__name__
    given = load_policy(path, type(policy)) if same else None
    theirs = _named(named, given.config if given else {})
    require(
        given is not None and policy.goes_on_from(given.config),
        f"--from {path} holds {theirs}, but this run trains {_named(type(policy).__name__, policy.config)}. "
        f"Give it the same class and sizes.",
    )
    assert given is not None
    policy.load_state_dict({**policy.state_dict(), **given.state_dict()})


def file_hash(path: Path) -> str:
    """The SHA-256 of a file."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _named(name: str | None, config: Mapping[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={value}' for key, value in config.items())})"
