"""Files of a run: weights as safetensors, the resumable state as tensors and plain data. Nothing loaded executes code."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from gumbeldore.errors import CheckpointError
from gumbeldore.policy import Network

FORMAT = "gumbeldore-1"


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Writes a neighbouring file, forces it to disk and renames it: a killed process leaves the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        write(temporary)
        with open(temporary, "rb") as handle:
            os.fsync(handle.fileno())
        os.replace(temporary, path)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def save_policy(path: str | Path, policy: Network, **metadata: str) -> None:
    """Weights as safetensors; the header names the class and its constructor arguments (`policy.config`)."""
    header = {"format": FORMAT, "policy": type(policy).__name__, "config": json.dumps(policy.config), **metadata}
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in policy.state_dict().items()}
    write_atomically(Path(path), lambda temporary: temporary.write_bytes(save(weights, metadata=header)))


def load_policy(path: str | Path, policy_class: type[Network] | None = None) -> Network:
    """The policy saved by `save_policy`. Pass `policy_class` for a class of your own."""
    weights, header = read_weights(path)
    if policy_class is None:
        from gumbeldore import policies

        known = {name: getattr(policies, name) for name in policies.__all__}
        if header.get("policy") not in known:
            raise CheckpointError(
                f"{path} holds a policy of the class {header.get('policy')!r}, which is not one of {', '.join(sorted(known))}. "
                f"For a class of your own call `load_policy(path, policy_class=...)`."
            )
        policy_class = known[header["policy"]]
    try:
        policy = policy_class(**json.loads(header.get("config", "{}")))
        policy.load_state_dict(weights)
    except (TypeError, RuntimeError, json.JSONDecodeError) as error:
        raise CheckpointError(f"The weights in {path} do not fit {policy_class.__name__}: {error}") from error
    return policy.eval()


def read_weights(path: str | Path) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Tensors and header of a policy file."""
    if not Path(path).is_file():
        raise CheckpointError(f"There is no policy file {path}. Train one with `gumbeldore train`, or check the path.")
    try:
        with safe_open(str(path), "pt") as file:
            header = file.metadata() or {}
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path} is not a readable safetensors file: {error}") from error
    if header.get("format") != FORMAT:
        raise CheckpointError(
            f"{path} is not a policy of this library: its format is {header.get('format')!r}, not {FORMAT!r}."
        )
    return weights, header


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
