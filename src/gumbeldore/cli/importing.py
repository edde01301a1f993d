"""`gumbeldore import`: checkpoints and data of the method's public code become files of ours."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from gumbeldore.errors import require
from gumbeldore.io.importing import import_instances, import_policy
from gumbeldore.io.instance_files import write_instances
from gumbeldore.io.policy_files import save_policy
from gumbeldore.kits.instances import InstanceSet


@dataclass(frozen=True)
class ImportSettings:
    """Convert a checkpoint (.pt) or a data file (.pickle) of the method's public code. Nothing in the file is executed."""

    file: Annotated[Path, tyro.conf.Positional]
    out: Path  # .safetensors for a policy, .npz for instances; several sizes become several files
    heads: int | None = None  # of attention, for a network whose width is not the public one: the file does not say
    current: bool = False  # take the last weights instead of the best ones

    def __post_init__(self) -> None:
        require(
            self.out.suffix in (".safetensors", ".npz"),
            f"`out` must end in .safetensors (for a policy) or .npz (for instances), got {self.out.name}.",
        )
        require(self.heads is None or self.heads >= 1, f"`heads` must be at least 1, got {self.heads}.")


def command(arguments: list[str]) -> None:
    """gumbeldore import FILE --out FILE"""
    settings = tyro.cli(ImportSettings, args=arguments, prog="gumbeldore import", description=ImportSettings.__doc__)
    (_policy if settings.out.suffix == ".safetensors" else _instances)(settings, Console())


def _policy(settings: ImportSettings, console: Console) -> None:
    _free(settings.out)
    policy, facts = import_policy(settings.file, heads=settings.heads, current=settings.current)
    save_policy(settings.out, policy, **facts, imported_from=settings.file.name)
    size = ", ".join(f"{name}={value}" for name, value in policy.config.items())
    console.print(
        f"Wrote {settings.out}: {type(policy).__name__}({size}) for {facts['problem']}.", highlight=False, soft_wrap=True
    )


def _instances(settings: ImportSettings, console: Console) -> None:
    with console.status("reading and verifying"):
        sets = import_instances(settings.file)
    files = {settings.out if len(sets) == 1 else _sized(settings.out, each): each for each in sets}
    for path in files:
        _free(path)
    for path, each in files.items():
        write_instances(path, each)
        solved = (
            "without solutions"
            if each.labels is None
            else f"with verified solutions, mean cost {-each.labels.objective.mean():.4f}"
        )
        console.print(f"Wrote {path}: {len(each)} {each.kind.name} instances {solved}.", highlight=False, soft_wrap=True)


def _sized(path: Path, instances: InstanceSet) -> Path:
    """A name that tells the size of its instances: labels.npz becomes labels-15x10.npz."""
    sizes = [str(value) for value in instances.kind.size(instances.arrays).values() if isinstance(value, int)]
    return path.with_name(f"{path.stem}-{'x'.join(sizes)}{path.suffix}")


def _free(path: Path) -> None:
    require(not path.exists(), f"{path} exists already. Delete it, or choose another --out.")
