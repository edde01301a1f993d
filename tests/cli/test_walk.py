"""How far it is from the command to the network: our frames on the stack when a policy is called."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import gumbeldore
from gumbeldore.cli import main
from gumbeldore.policies import TSPPolicy

SOURCE = Path(gumbeldore.__file__).parent
INSTANCE = Path(__file__).parents[1] / "data/instances/berlin52.tsp"
MOST = 14
WALK = """start main
cli/solve command
solving/running Solving.__iter__
solving/search search
search/samplers Sampler.stream
search/adaptive Adaptive.rounds_of
search/phases GreedyPhase.rounds
search/following Following.beam
search/expansion Search.round
search/expansion Search._expand
search/expansion Search._priors
search/evaluator Evaluator.__call__
search/augmentation AugmentedPolicy.__call__"""


def frames() -> Iterator[str]:
    """Of the package, from the innermost."""
    frame = sys._getframe(1)
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(SOURCE):
            yield f"{path.relative_to(SOURCE).with_suffix('')} {frame.f_code.co_qualname}"
        frame = frame.f_back


@pytest.fixture
def walks(monkeypatch):
    """Every way on which a policy is called."""
    found, plain = dict[tuple[str, ...], None](), torch.nn.Module.__call__

    def noted(module, *arguments, **more):
        if isinstance(module, TSPPolicy):
            found[tuple(frames())[::-1]] = None
        return plain(module, *arguments, **more)

    monkeypatch.setattr(torch.nn.Module, "__call__", noted)
    return found


@pytest.mark.parametrize("parts", [["--parts", "policy"], []], ids=["policy", "portfolio"])
def test_few_frames_stand_between_the_command_and_the_network(parts, walks, tmp_path):
    assert main(["solve", str(INSTANCE), "--time-limit", "1.5", "--folder", str(tmp_path), *parts]) == 0
    longest = max(walks, key=len)
    assert len(longest) <= MOST, "\n".join(longest)
    assert {walk[0] for walk in walks} == {"start main"}
    if parts:
        assert tuple(WALK.splitlines()) in walks


def test_the_design_page_shows_the_walk():
    page = (SOURCE.parents[1] / "docs/development/design.md").read_text()
    assert [line for line in WALK.splitlines() if f"\n{line} " not in page] == []
