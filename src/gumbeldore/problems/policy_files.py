"""Files of policies: weights as safetensors, with a header from which the network is built again. Loading executes no code."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from gumbeldore.errors import CheckpointError
from gumbeldore.files import write_atomically
from gumbeldore.policy import Network
from gumbeldore.problems import finding

FORMAT = "gumbeldore-1"


def save_policy(path: str | Path, policy: Network, **metadata: str) -> None:
    """Weights as safetensors; the header names the class and its constructor arguments (`policy.config`)."""
    header = {"format": FORMAT, "policy": type(policy).__name__, "config": json.dumps(policy.config), **metadata}
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in policy.state_dict().items()}
    write_atomically(Path(path), lambda temporary: temporary.write_bytes(save(weights, metadata=header)))


def load_policy(path: str | Path, policy_class: type[Network] | None = None) -> Network:
    """The policy saved by `save_policy`. Pass `policy_class` for a class of your own."""
    weights, header = read_weights(path)
    name = header.get("policy", "")
    network = policy_class or finding.policy_class(name)
    if network is None:
        raise CheckpointError(
            f"{path} holds a policy of the class {name!r}, which is in no kit that is installed. "
            f"For a class of your own call `load_policy(path, policy_class=...)`."
        )
    try:
        policy = network(**json.loads(header.get("config", "{}")))
        policy.load_state_dict(weights)
    except (TypeError, RuntimeError, json.JSONDecodeError) as error:
        raise CheckpointError(f"The weights in {path} do not fit {network.__name__}: {error}") from error
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
