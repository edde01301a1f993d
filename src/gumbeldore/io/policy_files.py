"""Files of policies: weights as safetensors, with a header from which the network is built again. Loading executes no code."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from gumbeldore.errors import CheckpointError, notice
from gumbeldore.files import write_atomically
from gumbeldore.kits import registry as finding
from gumbeldore.policy import Network

_FORMAT = "gumbeldore-1"
POLICY = "policy.safetensors"  # what the file is called in the folder of a run
_NAMES = 255  # a file's name is no longer
HASH = "sha256"  # in the header: of the file as it is without this entry


def save_policy(path: str | Path, policy: Network, **metadata: str) -> None:
    """Weights as safetensors; the header names the class and its constructor arguments (`policy.config`).

    The same weights give the same bytes, with the same version of the package.
    """
    header = {"format": _FORMAT, "policy": type(policy).__name__, "config": json.dumps(policy.config), **_version(), **metadata}
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in policy.state_dict().items()}
    entries, data = _split(save(weights, metadata=header))
    entries["__metadata__"][HASH] = hashlib.sha256(_joined(entries, data)).hexdigest()
    write_atomically(Path(path), lambda temporary: temporary.write_bytes(_joined(entries, data)))


def load_policy(path: str | Path, policy_class: type[Network] | None = None) -> Network:
    """The policy saved by `save_policy`, in the folder of a run, or one that ships, by its name. Pass `policy_class` for a class of your own."""
    path = policy_file(path)
    weights, header = read_weights(path)
    name = header.get("policy", "")
    network = policy_class or finding.policy_class(name)
    if network is None:
        raise CheckpointError(
            f"{path} holds a policy of the class {name!r}, which is in no kit that is installed. "
            f"For a class of your own call `load_policy(path, policy_class=...)`."
        )
    policy = _built(network, config_of(header, path, network), path)
    _put_weights(policy, weights, path)
    return policy.eval()


def config_of(header: Mapping[str, str], path: str | Path, network: type[Network] | None = None) -> dict[str, Any]:
    """The `config` of a policy's header; as this version writes it, if its class is known."""
    config = record_of(header, "config", path)
    if network is None:
        return config
    now = network.upgraded(config)
    if old := [f"`{name}`" for name in config if name not in now]:
        new = [f"`{name} = {json.dumps(value)}`" for name, value in now.items() if name not in config]
        notice(f"{path}: {', '.join(old)} in its header, as an older version wrote it, read as {', '.join(new) or 'nothing'}.")
    return now


def record_of(header: Mapping[str, str], name: str, path: str | Path) -> dict[str, Any]:
    """An entry of a header that holds a JSON object; empty if there is none."""
    try:
        record = json.loads(header.get(name, "{}"))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"`{name}` in the header of {path} must be a JSON object, but cannot be read: {error}") from error
    if not isinstance(record, dict):
        raise CheckpointError(f"`{name}` in the header of {path} must be a JSON object, got {header[name][:60]}.")
    return record


def _built(network: type[Network], config: Mapping[str, Any], path: str | Path) -> Network:
    """A network with fresh weights, as the header of a file says."""
    try:
        return network.from_config(config)
    except (TypeError, ValueError, ArithmeticError, RuntimeError, AttributeError, LookupError) as error:
        reason = " ".join(str(error).split())
        raise CheckpointError(f"`config` in the header of {path} does not fit {network.__name__}: {reason}") from error


def _put_weights(policy: Network, weights: Mapping[str, torch.Tensor], path: str | Path) -> None:
    """Gives a policy the weights of a file; an error that says what does not fit, if something does not."""
    own, weights = policy.state_dict(), policy.upgraded_weights(weights)
    faults = {
        "lacks": own.keys() - weights.keys(),
        "has in excess": weights.keys() - own.keys(),
        "has in another shape": {name for name in own.keys() & weights.keys() if own[name].shape != weights[name].shape},
    }
    found = "; ".join(f"it {what} {', '.join(sorted(names)[:3])}" for what, names in faults.items() if names)
    if found:
        raise CheckpointError(f"The weights in {path} do not fit {type(policy).__name__}: {found}.")
    policy.load_state_dict(weights)


def policy_file(named: str | Path) -> Path:
    """A file, the one in the folder of a run, or one that ships, by its name."""
    if is_a_name(named):
        folders = (kit.policies for kit in finding.all_kits() if kit.policies is not None)
        files = (folder / f"{named}.safetensors" for folder in folders)
        return next((file for file in files if file.is_file()), Path(named))
    return Path(named) / POLICY if Path(named).is_dir() else Path(named)


def is_a_name(named: str | Path) -> bool:
    """Of a policy that ships: one word that is no file."""
    path = Path(named)
    if "\0" in str(named) or len(path.name) > _NAMES:
        return False
    return not path.exists() and path.name == str(named) and not path.suffix


def read_weights(path: str | Path) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Tensors and header of a policy file."""
    if not Path(path).is_file():
        raise CheckpointError(
            f"There is no policy file {path}. Train one with `gumbeldore train`, or check the path; `gumbeldore policies` lists those that ship."
        )
    try:
        content = Path(path).read_bytes()
        weights = load(content)
        entries, data = _split(content)
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(
            f"{path} is not a readable safetensors file: it is damaged, cut off or something else."
        ) from error
    header: dict[str, str] = entries.get("__metadata__", {})
    if (digest := header.pop(HASH, None)) and digest != hashlib.sha256(_joined(entries, data)).hexdigest():
        raise CheckpointError(f"{path} is damaged: its content does not match its checksum.")
    if (form := header.get("format")) != _FORMAT:
        newer = isinstance(form, str) and form.startswith(_FORMAT.rstrip("1"))
        fix = " A newer version of gumbeldore wrote it: pip install --upgrade gumbeldore." if newer else ""
        raise CheckpointError(
            f"{path} is not a policy that this version can read: its format is {form!r}, not {_FORMAT!r}.{fix}"
        )
    return weights, header


def _version() -> dict[str, str]:
    """Of the package, where it is installed."""
    with suppress(PackageNotFoundError):
        return {"version": version("gumbeldore")}
    return {}


def _split(content: bytes) -> tuple[dict[str, Any], bytes]:
    """The header of a safetensors file, and the rest: eight bytes say how long the header is, which is JSON."""
    end = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:end]), content[end:]


def _joined(entries: Mapping[str, Any], data: bytes) -> bytes:
    """The inverse, with sorted names; the data begin at a multiple of eight."""
    text = json.dumps(entries, sort_keys=True, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data
