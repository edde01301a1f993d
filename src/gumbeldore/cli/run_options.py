"""The options of the commands that train."""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import make_dataclass, replace
from pathlib import Path
from typing import Any

import tyro

from gumbeldore.errors import require
from gumbeldore.io.policy_files import read_weights
from gumbeldore.parallel.cluster import Cluster
from gumbeldore.runs.folder import START, START_HASH, RunFolder
from gumbeldore.runs.presets import SUPERVISED, Entry
from gumbeldore.runs.records import read_settings
from gumbeldore.runs.settings import RunSettings
from gumbeldore.runs.training import file_hash, pick_workers


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
    parser.add_argument("--cluster")
    parser.add_argument("--sampler-gpus", type=float, default=0.0)
    parser.add_argument("--max-time", type=seconds)
    parser.add_argument("--tensorboard", action="store_true")
    if labels:
        parser.add_argument("--labels", type=Path, nargs="+", default=[])
    return parser.parse_known_args(arguments)


def seconds(text: str) -> float:
    """A time like 90s, 45m, 1.5h, 2h30m or 3d in seconds."""
    parts = re.findall(r"(\d+\.?\d*)([smhd])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise argparse.ArgumentTypeError(f"must be a time like 90s, 45m, 1.5h, 2h30m or 3d, got {text!r}")
    return sum(float(number) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[unit] for number, unit in parts)


def crew_of(early: argparse.Namespace) -> int | Cluster:
    """Who does the work: processes of this machine, or also a cluster."""
    workers = pick_workers(early.workers, early.device)
    if early.cluster is None:
        require(early.sampler_gpus == 0, "`sampler-gpus` shares GPUs among the samplers of a cluster: name one by --cluster.")
        return workers
    return Cluster(early.cluster, workers=workers, gpus=early.sampler_gpus)


def options_of(early: argparse.Namespace) -> dict[str, Any]:
    """What is no setting of a run, as the fields of `How`."""
    return {
        "resume": early.resume,
        "start": early.start,
        "device": early.device,
        "workers": crew_of(early),
        "max_seconds": early.max_time,
        "tensorboard": early.tensorboard,
    }


def saved_changes(entry: Entry, early: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    """Settings from a file, or from the run to resume; and whether they are the complete record of a run.

    A run that began with given weights is repeated with them.
    """
    changes = read_settings(early.settings) if early.settings else {}
    if early.resume and not early.settings:
        changes = RunFolder(early.folder).settings()
    name, start, digest = (changes.pop(key, None) for key in ("problem_name", START, START_HASH))
    require(name in (None, entry.name), f"These settings are not for `{entry.name}`, but for `{name}`.")
    if isinstance(start, str) and not early.resume and early.start is None:
        early.start = Path(start)
        same = not early.start.is_file() or file_hash(early.start) == digest
        require(same, f"{start}, from whose weights the run began, has changed since. Name other weights with --from.")
    return changes, name is not None


def sizes_of(early: argparse.Namespace, entry: Entry) -> dict[str, Any]:
    """The size of the policy to start from, as changes of settings."""
    if early.start is None:
        return {}
    _, header = read_weights(early.start)
    known = vars(entry.architecture.size)
    config = json.loads(header.get("config", "{}"))
    return {"policy": {name: config.get(name, usual) for name, usual in known.items()}}


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
        f"--workers N (processes; one per core of a CPU unless given, 0: none), --max-time 45m|2h30m (no epoch begins that would "
        f"probably end later), --tensorboard (also write event files for it).\n\nOn many machines (docs/how-to/cluster.md): --cluster local|auto|HOST:PORT|ray://HOST:PORT samples on a Ray "
        f"cluster, --sampler-gpus 0.125 with eight samplers per GPU; torchrun trains with several GPUs or machines."
    )
    chosen = tyro.cli(
        shape,
        args=arguments,
        default=shape(**{name: value for name, _, value in fields}),
        description=text,
        prog=f"gumbeldore {command} {entry.name}",
    )
    return replace(base, **{name: getattr(chosen, name) for name in names})
