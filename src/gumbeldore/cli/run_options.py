"""The options of the commands that train."""

from __future__ import annotations

import argparse
import json
from dataclasses import make_dataclass, replace
from pathlib import Path
from typing import Any

import tyro

from gumbeldore.cli.catalogue import SUPERVISED, Entry
from gumbeldore.cli.run_settings import RunSettings
from gumbeldore.cli.runs import SETTINGS, START, START_HASH
from gumbeldore.cli.settings import read_settings
from gumbeldore.errors import SettingsError
from gumbeldore.problems.policy_files import read_weights


def early_options(arguments: list[str], folder: str, labels: bool = False) -> tuple[argparse.Namespace, list[str]]:
    """Options that decide the defaults of the others."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--preset")
    parser.add_argument("--settings", type=Path)
    parser.add_argument("--folder", type=Path, default=Path(folder))
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--from", type=Path, dest="start")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--tensorboard", action="store_true")
    if labels:
        parser.add_argument("--labels", type=Path, nargs="+", default=[])
    return parser.parse_known_args(arguments)


def saved_changes(entry: Entry, early: argparse.Namespace) -> dict[str, Any]:
    """Settings from a file, or from the run to resume."""
    changes = read_settings(early.settings) if early.settings else {}
    if early.resume and (early.folder / SETTINGS).exists() and not early.settings:
        changes = read_settings(early.folder / SETTINGS)
        changes.pop(START, None)
        changes.pop(START_HASH, None)
    if changes.pop("problem_name", entry.name) != entry.name:
        raise SettingsError(f"These settings are not for `{entry.name}`.")
    return changes


def sizes_of(early: argparse.Namespace, entry: Entry) -> dict[str, Any]:
    """The size of the policy to start from, as changes of settings."""
    if early.start is None:
        return {}
    _, header = read_weights(early.start)
    known = vars(entry.architecture.size)
    config = json.loads(header.get("config", "{}"))
    return {"policy": {name: value for name, value in config.items() if name in known}}


def run_settings(command: str, entry: Entry, early: argparse.Namespace, arguments: list[str], base: Any, about: str) -> Any:
    """The settings of a run: `base`, changed by options. Supervised training has no sampler."""
    supervised = command == "imitate"
    names = [name for name in RunSettings.__dataclass_fields__ if name != "stages" and not (supervised and name == "sampler")]
    fields = [(name, type(getattr(base, name)), getattr(base, name)) for name in names]
    shape = make_dataclass("Options", fields, frozen=True)
    presets = [name for name in entry.presets() if name.startswith(SUPERVISED) == supervised]
    text = (
        f"{about}\n\nPresets (--preset NAME): {', '.join(presets)}; the defaults below "
        f"are those of '{early.preset or 'small'}'.\n\nAlso: --settings FILE.toml|json (any of these settings), --folder DIR "
        f"({early.folder}), --resume, --from POLICY.safetensors (start from its weights), --device auto|cpu|cuda|mps, "
        f"--workers N (processes; one per core of a CPU unless given, 0: none), "
        f"--tensorboard (also write event files for it)."
    )
    chosen = tyro.cli(
        shape,
        args=arguments,
        default=shape(**{name: value for name, _, value in fields}),
        description=text,
        prog=f"gumbeldore {command} {entry.name}",
    )
    return replace(base, **{name: getattr(chosen, name) for name in names})
