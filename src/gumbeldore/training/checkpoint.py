"""Files of a run: the resumable state as tensors and plain data, and its metrics. Nothing loaded executes code."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from gumbeldore.errors import CheckpointError
from gumbeldore.files import write_atomically

FORMAT = "gumbeldore-1"


def save_state(path: str | Path, state: Mapping[str, Any]) -> None:
    """The resumable state of a run (`Epoch.checkpoint()`)."""
    plain = {"format": FORMAT, **state}
    write_atomically(Path(path), lambda temporary: torch.save(plain, temporary))


def load_state(path: str | Path) -> dict[str, Any]:
    """What `save_state` wrote; tensors and plain data only, so nothing in the file can execute."""
    if not Path(path).is_file():
        raise CheckpointError(f"There is no checkpoint {path} to resume from. Leave --resume out to start a new run.")
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, OSError, ValueError, KeyError) as error:
        raise CheckpointError(f"{path} is not a readable checkpoint: {error}") from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise CheckpointError(f"{path} is not a checkpoint of this library (format {FORMAT}).")
    return state


class MetricsFile:
    """metrics.jsonl: one line of JSON per epoch. Resuming drops lines that the checkpoint has not seen."""

    def __init__(self, path: str | Path, keep_epochs: int = 0) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        kept = [line for line in read_metrics(self.path) if line["epoch"] <= keep_epochs]
        write_atomically(self.path, lambda temporary: temporary.write_text("".join(json.dumps(k) + "\n" for k in kept)))

    def append(self, line: Mapping[str, Any]) -> None:
        with open(self.path, "a") as handle:
            handle.write(json.dumps(line) + "\n")


def read_metrics(path: str | Path) -> list[dict[str, Any]]:
    """The complete lines of a metrics file; a last line cut off by a crash is ignored."""
    if not Path(path).is_file():
        return []
    lines = []
    for text in Path(path).read_text().splitlines():
        with suppress(json.JSONDecodeError):
            lines.append(json.loads(text))
    return lines
