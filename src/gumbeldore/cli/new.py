"""`gumbeldore new`: a kit of one's own to begin with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from gumbeldore.kits.new import write_kit


@dataclass(frozen=True)
class NewSettings:
    """Write a kit of your own: a problem that works, with policy, files, picture, baseline, expert, presets and test, to be changed piece by piece."""

    name: Annotated[str, tyro.conf.Positional]  # of the kit, and of its file
    folder: Path | None = None  # where; a new folder of that name if left out


def command(arguments: list[str]) -> None:
    """gumbeldore new NAME"""
    settings = tyro.cli(NewSettings, args=arguments, prog="gumbeldore new", description=NewSettings.__doc__)
    kit, *others = write_kit(settings.name, settings.folder)
    print(f"Wrote {kit}, and {', '.join(str(path.relative_to(kit.parent)) for path in others)} beside it. It works as it is:")
    print(f"  gumbeldore check {kit}:KIT")
    print(f"  gumbeldore train {kit}:KIT --folder runs/{settings.name}")
    print(f"  gumbeldore solve {kit}:KIT --policy runs/{settings.name}/policy.safetensors --count 3")
