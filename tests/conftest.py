"""What all tests share: run-time checks of every shape in the package, one thread, and the project's shared data."""

from __future__ import annotations

import signal
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from jaxtyping import config, install_import_hook

# beartype refuses `Self` outside classes that it decorates itself, so it is taken as any object; an int is a float.
TYPECHECKER = (
    "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True, "
    "hint_overrides=beartype.FrozenDict({__import__('typing').Self: object})))"
)

install_import_hook("gumbeldore", TYPECHECKER)
torch.set_num_threads(1)
with suppress(ValueError):  # outside of the main thread
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells have what they start in the background ignore it


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder `shared` beside the repository; tests that need it are skipped where it is absent."""
    folder = Path(__file__).resolve().parents[1] / ".." / "shared"
    if not folder.is_dir():
        pytest.skip("the folder ../shared is absent")
    return folder


@pytest.fixture
def unchecked():
    """Turns the run-time shape checks off, so that a test meets the library's own errors as a user does."""
    before = config.jaxtyping_disable
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", before)


@pytest.fixture(scope="module")
def no_pictures():
    """Curves are not drawn, which takes longer than a small training."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gumbeldore.runs.recorder.plot_training", lambda *_: None)
        yield
