"""The command line. Every command parses its settings here and calls the library."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import make_dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from gumbeldore.errors import GumbeldoreError, SettingsError

OVERVIEW = """[bold]gumbeldore[/bold]: neural solvers for combinatorial problems, trained without expert solutions.

  [bold]gumbeldore demo[/bold]                        train a TSP-20 policy from scratch (3 minutes) and compare samplers
  [bold]gumbeldore train[/bold] PROBLEM [options]     train by self-improvement; a run lives in a folder and can be resumed
  [bold]gumbeldore solve[/bold] PROBLEM [options]     solve a file's instance, or random ones, with a trained policy

Start with:
  gumbeldore train tsp --folder runs/first        [dim]# the small preset: minutes on a laptop[/dim]
  gumbeldore train tsp --folder runs/first --resume   [dim]# go on after Ctrl-C or a crash[/dim]
  gumbeldore solve tsp --policy runs/first/policy.safetensors --cities 20
  gumbeldore solve tsp --policy runs/first/policy.safetensors --instance cities.csv

`gumbeldore COMMAND --help` (and `gumbeldore train PROBLEM --help`) list all options with their defaults.
Problems: {problems}.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code. Errors that users can mend are one line, not a traceback."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    console = Console(stderr=True)
    commands: dict[str, Callable[[list[str]], None]] = {"train": train_command, "solve": solve_command, "demo": demo_command}
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        Console().print(OVERVIEW.format(problems=_problems()), highlight=False)
        return 0
    if arguments[0] == "--version":
        from importlib.metadata import version

        print(version("gumbeldore"))
        return 0
    try:
        if arguments[0] not in commands:
            raise SettingsError(f"Unknown command `{arguments[0]}`. Known: {', '.join(commands)}. See `gumbeldore --help`.")
        commands[arguments[0]](arguments[1:])
    except GumbeldoreError as error:
        console.print(f"[red]Error:[/red] {error}", highlight=False, markup=True, soft_wrap=True)
        return 2
    except KeyboardInterrupt:
        console.print("Stopped.")
        return 130
    return 0


def train_command(arguments: list[str]) -> None:
    """gumbeldore train PROBLEM"""
    import tyro

    from gumbeldore.catalogue import RunSettings
    from gumbeldore.runs import SETTINGS, train
    from gumbeldore.settings import read_settings

    entry, arguments = _entry("train", arguments)
    early, rest = _early_options(arguments, f"runs/{entry.name}")
    changes = read_settings(early.settings) if early.settings else {}
    if early.resume and (early.folder / SETTINGS).exists() and not early.settings:
        changes = read_settings(early.folder / SETTINGS)
    if changes.pop("problem_name", entry.name) != entry.name:
        raise SettingsError(f"These settings are not for `{entry.name}`.")
    base = entry.settings(early.preset, changes)
    kinds = {"problem": type(base.problem), "policy": type(base.policy)}
    fields = [
        (name, kinds.get(name, type(getattr(base, name))), getattr(base, name)) for name in RunSettings.__dataclass_fields__
    ]
    shape = make_dataclass("Options", fields, frozen=True)
    text = (
        f"Train {entry.summary} by self-improvement.\n\nPresets (--preset NAME): {', '.join(entry.presets())}; the defaults below "
        f"are those of '{early.preset or 'small'}'.\n\nAlso: --settings FILE.toml|json (any of these settings), --folder DIR "
        f"({early.folder}), --resume, --device auto|cpu|cuda|mps."
    )
    chosen = tyro.cli(
        shape,
        args=rest,
        default=shape(**{name: value for name, _, value in fields}),
        description=text,
        prog=f"gumbeldore train {entry.name}",
    )
    settings = RunSettings(**{name: getattr(chosen, name) for name in RunSettings.__dataclass_fields__})
    train(entry, settings, early.folder, resume=early.resume, device=early.device)


def _early_options(arguments: list[str], folder: str) -> tuple[argparse.Namespace, list[str]]:
    """Options that decide the defaults of the others."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--preset")
    parser.add_argument("--settings", type=Path)
    parser.add_argument("--folder", type=Path, default=Path(folder))
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--device", default="auto")
    return parser.parse_known_args(arguments)


def solve_command(arguments: list[str]) -> None:
    """gumbeldore solve PROBLEM"""
    import tyro

    from gumbeldore.solving import SolveSettings, solve_tsp_files

    entry, arguments = _entry("solve", arguments)
    settings = tyro.cli(SolveSettings, args=arguments, prog=f"gumbeldore solve {entry.name}", description=SolveSettings.__doc__)
    solve_tsp_files(settings)


def demo_command(arguments: list[str]) -> None:
    """gumbeldore demo"""
    import tyro

    from gumbeldore.demo import DemoSettings, demo

    demo(tyro.cli(DemoSettings, args=arguments, prog="gumbeldore demo", description=DemoSettings.__doc__))


def _entry(command: str, arguments: list[str]) -> tuple[Any, list[str]]:
    from gumbeldore.catalogue import entry

    if not arguments or arguments[0].startswith("-"):
        if "--help" in arguments or "-h" in arguments:
            Console().print(
                f"Usage: gumbeldore {command} PROBLEM [options]. Problems: {_problems()}.\n`gumbeldore {command} PROBLEM --help` lists its options.",
                highlight=False,
            )
            raise SystemExit(0)
        raise SettingsError(f"Name a problem: gumbeldore {command} PROBLEM. Known: {_problems()}.")
    return entry(arguments[0]), arguments[1:]


def _problems() -> str:
    from gumbeldore.catalogue import CATALOGUE

    return ", ".join(CATALOGUE)
