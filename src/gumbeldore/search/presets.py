"""Samplers for inference that need no settings: how much work a user is ready to spend, nothing else."""

from __future__ import annotations

from gumbeldore.errors import SettingsError
from gumbeldore.search.adaptive import Adaptive
from gumbeldore.search.samplers import Sampler

PRESETS: dict[str, Sampler] = {"fast": Adaptive(effort=16), "balanced": Adaptive(effort=128), "best": Adaptive(effort=1024)}
"""By name, from the quickest to the most thorough: 16, 128 and 1,024 times the policy evaluations of a greedy solution. Sequences would be
no measure: of a job shop, many are the same schedule, and cost next to nothing."""


def preset(name: str) -> Sampler:
    if name not in PRESETS:
        raise SettingsError(f"Unknown preset `{name}`. Known: {', '.join(PRESETS)}.")
    return PRESETS[name]
