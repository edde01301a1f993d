"""Lists the trained policies that ship, with their measured results."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import tyro
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from gumbeldore.io.shipped import Shipped, policies_in, shipped
from gumbeldore.kits.names import kit_names, policies_folder


@dataclass(frozen=True)
class PoliciesSettings:
    """List the trained policies that come with the installed kits, and what they reach. `solve` and `evaluate` know them by name."""

    json: bool = False  # the manifests, for scripts


def command(arguments: list[str]) -> None:
    """gumbeldore policies"""
    settings = tyro.cli(PoliciesSettings, args=arguments, prog="gumbeldore policies")
    found = [policy for name in kit_names() for policy in _policies(name)]
    if settings.json:
        print(json.dumps({policy.name: policy.manifest for policy in found}, indent=1))
        return
    console = Console()
    if not found:
        console.print(
            "No trained policy ships with the installed kits. Train one: gumbeldore train PROBLEM --folder runs/mine."
        )
        return
    for policy in found:
        console.print(_table(policy))
    console.print("`gumbeldore info NAME` says more. Another one: --policy PATH.", highlight=False)


def _policies(kit: str) -> list[Shipped]:
    """Those of one of our kits are found without importing it."""
    if (folder := policies_folder(kit)) is not None:
        return policies_in(folder)
    from gumbeldore.kits.registry import kit_named

    return shipped(kit_named(kit))


def _table(policy: Shipped) -> Table:
    """Its results. It fits into a narrow window: names are never cut off."""
    trained = policy.manifest.get("trained")
    title = f"{policy.name}: trained on {trained}" if trained else policy.name
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("test set", "search", "gap in % (95 %)"):
        table.add_column(heading, no_wrap=True)
    results: list[dict[str, Any]] = policy.manifest.get("results", [])
    for result in results:
        interval = f" ({result['low']:.2f}..{result['high']:.2f})" if "low" in result else ""
        gap = f"{result['gap']:.2f}{interval}" if "gap" in result else result.get("value", "")
        table.add_row(result.get("set", ""), result.get("search", "").removeprefix(f"{policy.name} "), gap)
    return table
