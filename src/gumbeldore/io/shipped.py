"""Trained policies that ship with a kit: weights as safetensors, each with a manifest of what it was trained on and what it reaches."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gumbeldore.errors import CheckpointError, SettingsError

if TYPE_CHECKING:
    from gumbeldore.kits.kit import Kit
    from gumbeldore.policy import Network


@dataclass(frozen=True)
class Shipped:
    """A trained policy: `NAME.safetensors`, and `NAME.json` beside it."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.stem

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """What it was trained on, how, and its measured results (docs/reference/files.md)."""
        return manifest_beside(self.path)

    def load(self) -> Network:
        from gumbeldore.io.policy_files import load_policy  # the only thing here that needs more than a moment

        return load_policy(self.path)


def manifest_beside(path: Path) -> dict[str, Any]:
    """The manifest of a policy's file; empty if there is none."""
    beside = path.with_suffix(".json")
    if not beside.exists():
        return {}
    try:
        manifest = json.loads(beside.read_text())
    except (OSError, ValueError) as error:
        raise CheckpointError(f"The manifest {beside} cannot be read: {error}") from error
    if not isinstance(manifest, dict):
        raise CheckpointError(f"The manifest {beside} must hold a JSON object, got a {type(manifest).__name__}.")
    return manifest


def shipped(kit: Kit) -> list[Shipped]:
    """All policies that come with a kit, the one to use unless another is named first."""
    return [] if kit.policies is None else policies_in(kit.policies)


def policies_in(folder: Path) -> list[Shipped]:
    """All policies of a folder, the one to use unless another is named first."""
    found = [Shipped(path) for path in sorted(folder.glob("*.safetensors"))]
    return sorted(found, key=lambda policy: (not policy.manifest.get("default", False), policy.name))


def choose(kit: Kit, name: str | None = None) -> Shipped:
    """The kit's policy of that name, or the one to use if none is named."""
    known = shipped(kit)
    if not known:
        from gumbeldore.kits.registry import argument  # which needs more than a moment

        raise SettingsError(
            f"No trained policy ships for `{kit.name}`. Train one (gumbeldore train {argument(kit)} --folder runs/mine) and name it: "
            f"--policy runs/mine/policy.safetensors."
        )
    for policy in known:
        if name in (None, policy.name):
            return policy
    raise SettingsError(
        f"Unknown policy `{name}` for {kit.name}. Known: {', '.join(policy.name for policy in known)}, or a path."
    )
