"""Files of a run: the resumable state as tensors and plain data, and its metrics. Nothing loaded executes code.

A state is one line that names the format and the SHA-256 of the rest; the rest is what `torch.save` writes.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from gumbeldore.errors import CheckpointError
from gumbeldore.files import epochs_in, full_disk_named, write_atomically

_FORMAT = "gumbeldore-1"
_HEAD = b"gumbeldore-state-2 sha256 "
NEWEST, PREVIOUS = "checkpoint.pt", "checkpoint.previous.pt"


def save_state(path: str | Path, state: Mapping[str, Any], *, keep: Path | None = None) -> None:
    """The resumable state of a run (`Epoch.checkpoint()`), with a checksum. The old file goes on under the name `keep`."""
    buffer = io.BytesIO()
    torch.save({"format": _FORMAT, **state}, buffer)
    digest = hashlib.sha256(buffer.getbuffer()).hexdigest().encode()

    def write(temporary: Path) -> None:
        with open(temporary, "wb") as handle:
            handle.write(_HEAD + digest + b"\n")
            handle.write(buffer.getbuffer())

    write_atomically(Path(path), write, keep=keep)


def load_state(path: str | Path) -> dict[str, Any]:
    """What `save_state` wrote, now or before there were checksums; tensors and plain data only, so nothing in the file can execute."""
    path = Path(path)
    if not path.is_file():
        raise CheckpointError(f"There is no checkpoint {path}.")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from error
    head, _, payload = content.partition(b"\n")
    if head.startswith(_HEAD):
        if hashlib.sha256(payload).hexdigest().encode() != head.removeprefix(_HEAD):
            raise CheckpointError(f"{path} is damaged: its content does not match its checksum.")
    else:
        payload = content
        _check_zip(path, payload)
    try:
        state = torch.load(io.BytesIO(payload), map_location="cpu", weights_only=True)
    except Exception as error:  # whatever torch meets in a strange file; its advice is not for our users
        raise CheckpointError(
            f"{path} is not a readable checkpoint: it holds other things than tensors and plain data."
        ) from error
    if not isinstance(state, dict) or state.get("format") != _FORMAT:
        raise CheckpointError(f"{path} is not a checkpoint of this library (format {_FORMAT}).")
    return state


def _check_zip(path: Path, content: bytes) -> None:
    """States without our checksum are zip archives, which have some of their own."""
    try:
        damaged = zipfile.ZipFile(io.BytesIO(content)).testzip()
    except Exception as error:  # zipfile raises many kinds
        raise CheckpointError(
            f"{path} is not a readable checkpoint: it is empty, cut off, damaged or something else."
        ) from error
    if damaged is not None:
        raise CheckpointError(f"{path} is damaged: a part of it does not match its checksum.")


class Checkpoints:
    """The last two checkpoints in a folder. If the newest one is damaged or missing, there is the one before."""

    def __init__(self, folder: Path) -> None:
        self.newest, self.previous = folder / NEWEST, folder / PREVIOUS
        self._newest_is_sound = True

    @property
    def exist(self) -> bool:
        return self.newest.exists() or self.previous.exists()

    def save(self, state: Mapping[str, Any]) -> None:
        save_state(self.newest, state, keep=self.previous if self._newest_is_sound else None)
        self._newest_is_sound = True

    def load(self) -> tuple[dict[str, Any], str]:
        """The newest checkpoint that is whole, and what to tell about it, if anything."""
        try:
            return load_state(self.newest), ""
        except CheckpointError as error:
            fault = str(error)
        self._newest_is_sound = False
        try:
            state = load_state(self.previous)
        except CheckpointError as error:
            second = f" {error}" if self.previous.exists() else " There is no older one beside it."
            raise CheckpointError(fault + second) from error
        return state, f"{fault} Going on from the checkpoint before it, {self.previous.name}."


class MetricsFile:
    """metrics.jsonl: one line of JSON per epoch. Resuming drops lines that the checkpoint has not seen."""

    def __init__(self, path: str | Path, keep_epochs: int = 0) -> None:
        self.path = Path(path)
        self.note = ""  # what to tell about damage
        self._waiting: list[str] = []
        lines, damaged = _parsed(self.path)
        if damaged:
            copy = self.path.with_name(f"damaged-{self.path.name}")
            shutil.copyfile(self.path, copy)
            self.note = f"{damaged} lines of {self.path} are damaged and left out. The old file is kept as {copy}."
        kept = [line for line in lines if line["epoch"] <= keep_epochs]
        write_atomically(self.path, lambda temporary: temporary.write_text("".join(json.dumps(k) + "\n" for k in kept)))

    def append(self, line: Mapping[str, Any]) -> None:
        """Writes a line, and those before it that could not be written."""
        self._waiting.append(json.dumps(line) + "\n")
        self.flush()

    def flush(self) -> None:
        """Writes the lines that could not be written; all of them or none."""
        size = self.path.stat().st_size if self.path.exists() else 0
        try:
            with full_disk_named(self.path), open(self.path, "a") as handle:
                handle.write("".join(self._waiting))
        except BaseException:
            with suppress(OSError):
                os.truncate(self.path, size)
            raise
        self._waiting.clear()


def read_metrics(path: str | Path) -> list[dict[str, Any]]:
    """The whole lines of a metrics file; what is damaged, or cut off by a crash, is left out."""
    return list(iterate_metrics(path))


def iterate_metrics(path: str | Path) -> Iterator[dict[str, Any]]:
    """The same, one after the other: a long run has more lines than there should be in memory at a time."""
    return (line for line in epochs_in(Path(path)) if line is not None)


def _parsed(path: Path) -> tuple[list[dict[str, Any]], int]:
    """The whole lines, and how many others there are; a last one that a crash cut off does not count."""
    lines = list(epochs_in(path))
    whole = [line for line in lines if line is not None]
    return whole, len(lines) - len(whole)
