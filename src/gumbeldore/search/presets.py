"""Samplers for inference that need no settings: how much work a user is ready to spend, nothing else."""

from __future__ import annotations

from gumbeldore.errors import SettingsError
from gumbeldore.search.samplers import BeamSearch, Gumbeldore, Sampler

PRESETS: dict[str, Sampler] = {
    "fast": BeamSearch(8),
    "balanced": Gumbeldore(16, 4, nucleus=(0.8, 0.8), sigma=1.0),
    "best": Gumbeldore(32, 16, nucleus=(0.8, 0.8), sigma=1.0),
}
"""By name, from the quickest to the most thorough."""


def preset(name: str) -> Sampler:
    if name not in PRESETS:
        raise SettingsError(f"Unknown preset `{name}`. Known: {', '.join(PRESETS)}.")
    return PRESETS[name]
