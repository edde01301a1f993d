"""The options of the commands that train."""

from __future__ import annotations

import argparse
import re
from dataclasses import make_dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from gumbeldore.cli.console import lasting_console
from gumbeldore.errors import require
from gumbeldore.parallel.cluster import Cluster
from gumbeldore.parallel.devices import pick_workers
from gumbeldore.runs.options import RunOptions
from gumbeldore.runs.presets import SUPERVISED, Entry
from gumbeldore.runs.settings import RunSettings
from gumbeldore.search.settings import EXAMPLES, SamplerSettings

_SAMPLER = Annotated[
    str | None, tyro.conf.arg(metavar="SAMPLER", help=f"how solutions are sampled, instead of the preset's: {EXAMPLES}")
]


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
    parser.add_argument("--max-time", type=_seconds)
    parser.add_argument("--tensorboard", action="store_true")
    parser.add_argument("--instances", type=Path, nargs="+", default=[])
    if labels:
        parser.add_argument("--labels", type=Path, nargs="+", default=[])
    return parser.parse_known_args(arguments)


def _seconds(text: str) -> float:
    """A time like 90s, 45m, 1.5h, 2h30m or 3d in seconds."""
    parts = re.findall(r"(\d+\.?\d*)([smhd])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise argparse.ArgumentTypeError(f"must be a time like 90s, 45m, 1.5h, 2h30m or 3d, got {text!r}")
    return sum(float(number) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[unit] for number, unit in parts)


def pool_of(early: argparse.Namespace) -> int | Cluster:
    """Who does the work: processes of this machine, or also a cluster."""
    workers = pick_workers(early.workers, early.device)
    if early.cluster is None:
        require(early.sampler_gpus == 0, "`sampler-gpus` shares GPUs among the samplers of a cluster: name one by --cluster.")
        return workers
    return Cluster(early.cluster, workers=workers, gpus=early.sampler_gpus)


def options_of(early: argparse.Namespace, start: Path | None) -> RunOptions:
    """What is no setting of a run."""
    return RunOptions(
        resume=early.resume,
        start=start,
        device=early.device,
        workers=pool_of(early),
        max_seconds=early.max_time,
        tensorboard=early.tensorboard,
        console=lasting_console(),
    )


def run_settings(command: str, entry: Entry, early: argparse.Namespace, arguments: list[str], base: Any, about: str) -> Any:
    """The settings of a run: `base`, changed by options. Supervised training has no sampler."""
    supervised = command == "imitate"
    names = [name for name in RunSettings.__dataclass_fields__ if name != "stages" and not (supervised and name == "sampler")]
    fields: list[tuple[str, Any, Any]] = [
        (name, _SAMPLER, None) if name == "sampler" else (name, type(getattr(base, name)), getattr(base, name))
        for name in names
    ]
    shape = make_dataclass("Options", fields, frozen=True)
    presets = [name for name in entry.presets() if name.startswith(SUPERVISED) == supervised]
    text = (
        f"{about}\n\nPresets (--preset NAME): {', '.join(presets) or 'none'}; the defaults below "
        f"are those of '{early.preset or entry.usual_preset(supervised=supervised)}'.\n\n"
        f"Also:\n"
        f"  --settings FILE.toml|json    any of these settings\n"
        f"  --folder DIR                 files of the run ({early.folder})\n"
        f"  --resume                     go on with the run in the folder\n"
        f"  --from POLICY.safetensors    start from its weights\n"
        f"{'' if supervised else '  --instances FILE|FOLDER...   train on these instead of generated ones'}\n"
        f"  --device auto|cpu|cuda|mps\n"
        f"  --workers N                  processes; one per core of a CPU unless given, 0: none\n"
        f"  --max-time 45m|2h30m         no epoch begins that would probably end later\n"
        f"  --tensorboard                also write event files for it\n"
        f"  --cluster local|auto|HOST:PORT|ray://HOST:PORT    sample on a Ray cluster\n"
        f"  --sampler-gpus 0.125         on it, with eight samplers per GPU\n\n"
        f"torchrun trains with several GPUs or machines (docs/how-to/cluster.md)."
    )
    chosen = tyro.cli(
        shape,
        args=arguments,
        default=shape(**{name: value for name, _, value in fields}),
        description=text,
        prog=f"gumbeldore {command} {entry.argument}",
    )
    sampler = getattr(chosen, "sampler", None)
    changes = {name: getattr(chosen, name) for name in names if name != "sampler"}
    return replace(base, **changes, **({} if sampler is None else {"sampler": SamplerSettings.of(sampler)}))
