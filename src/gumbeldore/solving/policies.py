"""Which policy solves an instance: the one that ships with its kit, another one by name, or one of a file."""

from __future__ import annotations

from pathlib import Path

from gumbeldore.errors import CheckpointError
from gumbeldore.io.policy_files import load_policy, policy_file, read_weights
from gumbeldore.io.shipped import choose
from gumbeldore.kits import registry as finding
from gumbeldore.kits.kit import Kit
from gumbeldore.policy import Network


def policy_for(kit: Kit, named: str | Path | None = None) -> Network:
    """A trained policy for the kit's problem. `named` is a file, the folder of a run, or one that ships; None: the usual one that ships."""
    if named is None or is_a_name(named):
        return choose(kit, None if named is None else str(named)).load()
    named = policy_file(named)
    _, header = read_weights(named)
    held, networks = header.get("policy"), {each.network.__name__: each.network for each in kit.architectures.values()}
    if held not in networks:
        others = [name for name in finding.kit_names() if held in _networks(name)]
        whose = f", which is for {' and '.join(others)}" if others else ""
        raise CheckpointError(f"`policy` must be one for {kit.name}, but {named} holds a {held}{whose}.")
    return load_policy(named, networks[held])


def is_a_name(named: str | Path) -> bool:
    """Of a policy that ships: one word that is no file."""
    path = Path(named)
    return not path.exists() and path.name == str(named) and not path.suffix


def _networks(kit: str) -> list[str]:
    return [each.network.__name__ for each in finding.kit_named(kit).architectures.values()]
