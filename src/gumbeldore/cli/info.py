"""`gumbeldore info`: what a file of a policy says about itself."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gumbeldore.io.policy_files import config_of, is_a_name, policy_file, read_weights, record_of
from gumbeldore.io.shipped import manifest_beside, shipped
from gumbeldore.kits.registry import kit_named, kit_names, policy_class


@dataclass(frozen=True)
class InfoSettings:
    """Print what a policy says about itself: its problem, network, what it was trained on, and its measured results."""

    file: Annotated[str, tyro.conf.Positional]  # a file, the folder of a run, or the name of a policy that ships
    json: bool = False  # for scripts


def command(arguments: list[str]) -> None:
    """gumbeldore info FILE"""
    settings = tyro.cli(InfoSettings, args=arguments, prog="gumbeldore info", description=InfoSettings.__doc__)
    facts = about(_path(settings.file))
    if settings.json:
        print(json.dumps(facts, indent=1))
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column()
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(f"[bold]{name.replace('_', ' ')}[/bold]", escape(_shown(value)))
    Console().print(table, highlight=False)


def about(path: Path) -> dict[str, Any]:
    """The header of the file and the manifest beside it, if there is one."""
    weights, header = read_weights(path)
    sizes = config_of(header, path, policy_class(header.get("policy", "")))
    header.pop("config", None)
    facts: dict[str, Any] = {
        "file": str(path),
        "problem": header.pop("problem", None),
        "network": f"{header.pop('policy', '?')}({', '.join(f'{name}={value}' for name, value in sizes.items())})",
        "weights": sum(tensor.numel() for tensor in weights.values()),
    }
    if "trained_on" in header:
        facts["trained_on"] = record_of(header, "trained_on", path)
        del header["trained_on"]
    return {name: value for name, value in {**facts, **header, **manifest_beside(path)}.items() if value is not None}


def _path(named: str) -> Path:
    if is_a_name(named):
        for policy in (policy for kit in kit_names() for policy in shipped(kit_named(kit))):
            if policy.name == named:
                return policy.path
    return policy_file(named)


def _shown(value: Any) -> str:
    """Records as `name value, ...`, lists line by line."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(each)}" for name, each in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return "\n".join(map(_shown, value))
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}" if isinstance(value, float) else str(value)
