"""Samplers for inference that need no settings: how much work a user is ready to spend, nothing else."""

from __future__ import annotations

from gumbeldore.errors import SettingsError
from gumbeldore.search.adaptive import Adaptive
from gumbeldore.search.samplers import Sampler

PRESETS: dict[str, Sampler] = {"fast": Adaptive(32), "balanced": Adaptive(256), "best": Adaptive(2048)}
"""By name, from the quickest to the most thorough."""


def preset(name: str) -> Sampler:
    if name not in PRESETS:
        raise SettingsError(f"Unknown preset `{name}`. Known: {', '.join(PRESETS)}.")
    return PRESETS[name]
