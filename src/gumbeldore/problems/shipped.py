"""Trained policies that ship with a kit: weights as safetensors, each with a manifest of what it was trained on and what it reaches."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gumbeldore.errors import CheckpointError, SettingsError
from gumbeldore.policy import Network
from gumbeldore.problems.kit import Kit
from gumbeldore.problems.policy_files import load_policy


@dataclass(frozen=True)
class Shipped:
    """A trained policy: `NAME.safetensors`, and `NAME.json` beside it."""

    kit: Kit
    path: Path

    @property
    def name(self) -> str:
        return self.path.stem

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """What it was trained on, how, and its measured results (docs/files.md)."""
        try:
            return json.loads(self.path.with_suffix(".json").read_text())
        except (OSError, ValueError) as error:
            raise CheckpointError(f"The manifest of the policy {self.name} cannot be read: {error}") from error

    def load(self) -> Network:
        return load_policy(self.path)


def shipped(kit: Kit) -> list[Shipped]:
    """All policies that come with a kit, the one to use unless another is named first."""
    if kit.policies is None:
        return []
    found = [Shipped(kit, path) for path in sorted(kit.policies.glob("*.safetensors"))]
    return sorted(found, key=lambda policy: (not policy.manifest.get("default", False), policy.name))


def choose(kit: Kit, name: str | None = None) -> Shipped:
    """The kit's policy of that name, or the one to use if none is named."""
    known = shipped(kit)
    if not known:
        raise SettingsError(
            f"No trained policy ships for `{kit.name}`. Train one (gumbeldore train {kit.name} --folder runs/mine) and name it: "
            f"--policy runs/mine/policy.safetensors."
        )
    for policy in known:
        if name in (None, policy.name):
            return policy
    raise SettingsError(
        f"Unknown policy `{name}` for {kit.name}. Known: {', '.join(policy.name for policy in known)}, or a path."
    )
