"""Tiny policies without training, and files to solve."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from kits import KITS
from routing import awake

from gumbeldore import save_policy

SIZES = {
    "tsp": {"d": 16, "layers": 1, "heads": 2, "ff": 16},
    "cvrp": {"d": 16, "layers": 1, "heads": 2, "ff": 16},
    "jssp": {"d": 16, "pairs": 1, "heads": 2, "ff": 16},
}


@pytest.fixture(scope="session")
def weights(tmp_path_factory) -> dict[str, Path]:
    """A file of weights for every problem."""
    folder, paths = tmp_path_factory.mktemp("weights"), {}
    for name, size in SIZES.items():
        architecture = next(iter(KITS[name].architectures.values()))
        paths[name] = folder / f"{name}.safetensors"
        save_policy(paths[name], awake(architecture.make(KITS[name].problem, replace(architecture.size, **size))))
    return paths


@pytest.fixture(scope="session")
def instances() -> Path:
    """A folder of small published instances."""
    return Path(__file__).parents[1] / "data" / "instances"
