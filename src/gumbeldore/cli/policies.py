"""Lists the trained policies that ship, with their measured results."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import tyro
from rich.console import Console
from rich.table import Table

from gumbeldore.problems.finding import kit_named, kit_names
from gumbeldore.problems.shipped import Shipped, shipped


@dataclass(frozen=True)
class PoliciesSettings:
    """List the trained policies that come with the installed kits, and what they reach. `solve` and `evaluate` know them by name."""

    json: bool = False  # the manifests, for scripts


def command(arguments: list[str]) -> None:
    """gumbeldore policies"""
    settings = tyro.cli(PoliciesSettings, args=arguments, prog="gumbeldore policies")
    found = [policy for name in kit_names() for policy in shipped(kit_named(name))]
    if settings.json:
        print(json.dumps({policy.name: policy.manifest for policy in found}, indent=1))
        return
    console = Console()
    if not found:
        console.print(
            "No trained policy ships with the installed kits. Train one: gumbeldore train PROBLEM --folder runs/mine."
        )
        return
    console.print(_table(found))
    console.print("Model cards: docs/policies/. Another one: --policy PATH.", highlight=False)


def _table(policies: list[Shipped]) -> Table:
    table = Table("policy", "problem", "weights", "trained", "test set", "search", "gap (95 % interval)")
    for policy in policies:
        manifest = policy.manifest
        results: list[dict[str, Any]] = manifest.get("results", [])
        first = (policy.name, policy.kit.name, f"{manifest.get('weights', 0):,}", manifest.get("trained", ""))
        for index, result in enumerate(results or [{}]):
            interval = f" ({result['low']:.2f} .. {result['high']:.2f})" if "low" in result else ""
            gap = f"{result['gap']:.2f} %{interval}" if "gap" in result else result.get("value", "")
            table.add_row(*(first if index == 0 else ("",) * 4), result.get("set", ""), result.get("search", ""), gap)
        table.add_section()
    return table
