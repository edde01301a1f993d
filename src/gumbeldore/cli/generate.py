"""`gumbeldore generate`: random instances, or a standard test set, into a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import tyro
from rich.console import Console

from gumbeldore.cli.problem_argument import take_entry
from gumbeldore.io.instance_files import check_out, write_instances
from gumbeldore.kits.instances import InstanceSet
from gumbeldore.kits.kit import Kit
from gumbeldore.kits.random_instances import chosen, generated

R = TypeVar("R")


@dataclass(frozen=True)
class GenerateSettings(Generic[R]):
    """Write random instances, or a standard test set, into a file."""

    out: Path  # the file to write: .npz
    generator: Annotated[R, tyro.conf.arg(name="")]
    standard: str | None = None  # a standard test set by name, instead of one by size, count and seed


def command(arguments: list[str]) -> None:
    """gumbeldore generate PROBLEM"""
    entry, arguments = take_entry("generate", arguments)
    shape, about = _options(entry.kit)
    settings = tyro.cli(shape, args=arguments, prog=f"gumbeldore generate {entry.argument}", description=about)
    generate(entry.kit, settings)


def _options(kit: Kit) -> tuple[Any, str]:
    """The settings of `gumbeldore generate` for one problem, and their description."""
    kit.need("instance files", "instances")
    generator = kit.need("generators of random instances", "generator")
    return GenerateSettings[generator], f"{GenerateSettings.__doc__}\n\n{standard_sets(kit)}"  # type: ignore[valid-type]


def generate(kit: Kit, settings: GenerateSettings[Any], console: Console | None = None) -> InstanceSet:
    """Writes the file and returns what is in it."""
    check_out(settings.out)
    instances = generated(chosen(kit, settings.generator, settings.standard))
    write_instances(settings.out, instances)
    (console or Console()).print(f"Wrote {len(instances)} {instances.kind.name} instances to {settings.out}.", highlight=False)
    return instances


def standard_sets(kit: Kit) -> str:
    return f"Standard test sets: {', '.join(kit.standard) or 'none'}."
