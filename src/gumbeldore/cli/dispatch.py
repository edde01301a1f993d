"""The command line. Every command parses its settings here and calls the library."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import make_dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from gumbeldore.errors import GumbeldoreError, SettingsError

OVERVIEW = """[bold]gumbeldore[/bold]: neural solvers for combinatorial problems, trained without expert solutions.

  [bold]gumbeldore demo[/bold]                        train a TSP-20 policy from scratch (3 minutes) and compare samplers
  [bold]gumbeldore train[/bold] PROBLEM \\[options]     train by self-improvement; a run lives in a folder and can be resumed
  [bold]gumbeldore solve[/bold] PROBLEM \\[options]     solve instances of files, or random ones, with a trained policy
  [bold]gumbeldore generate[/bold] PROBLEM \\[options]  write random instances, or a standard test set, into a file
  [bold]gumbeldore label[/bold] PROBLEM \\[options]     solve instances with PyVRP, HGS or CP-SAT; can be interrupted and goes on
  [bold]gumbeldore imitate[/bold] PROBLEM \\[options]   train on such labels instead of by self-improvement

Start with:
  gumbeldore train tsp --folder runs/first        [dim]# the small preset: minutes on a laptop[/dim]
  gumbeldore train tsp --folder runs/first --resume   [dim]# go on after Ctrl-C or a crash[/dim]
  gumbeldore solve tsp --policy runs/first/policy.safetensors --cities 20
  gumbeldore solve tsp --policy runs/first/policy.safetensors --instance cities.csv
  gumbeldore solve jssp --policy runs/shops/policy.safetensors --instances labels-6x6.npz labels-10x10.npz   [dim]# any sizes[/dim]
  gumbeldore label tsp --cities 20 --count 1000 --seconds 0.2 --out labels.npz
  gumbeldore imitate tsp --labels labels.npz --folder runs/imitation

`gumbeldore COMMAND --help` (and `gumbeldore train PROBLEM --help`) list all options with their defaults.
Problems: {problems}.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code. Errors that users can mend are one line, not a traceback."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    console = Console(stderr=True)
    commands: dict[str, Callable[[list[str]], None]] = {
        "train": train_command,
        "solve": solve_command,
        "demo": demo_command,
        "generate": generate_command,
        "label": label_command,
        "imitate": imitate_command,
    }
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
        console.print(f"[red]Error:[/red] {escape(str(error))}", highlight=False, markup=True, soft_wrap=True)
        return 2
    except KeyboardInterrupt:
        console.print("Stopped.")
        return 130
    return 0


def train_command(arguments: list[str]) -> None:
    """gumbeldore train PROBLEM"""
    from gumbeldore.cli.runs import LABELS, train

    entry, arguments = _entry("train", arguments)
    early, rest = _early_options(arguments, f"runs/{entry.name}")
    changes = _changes(entry, early)
    if LABELS in changes:
        raise SettingsError(
            f"{early.folder} holds a supervised run. Go on with it by `gumbeldore imitate {entry.name} --resume`."
        )
    settings = _run_settings(
        "train", entry, early, rest, entry.settings(early.preset, changes), f"Train {entry.summary} by self-improvement."
    )
    train(entry, settings, early.folder, resume=early.resume, device=early.device, workers=early.workers)


def imitate_command(arguments: list[str]) -> None:
    """gumbeldore imitate PROBLEM"""
    from gumbeldore.cli.catalogue import SUPERVISED
    from gumbeldore.cli.runs import LABELS, LABELS_HASH, imitate
    from gumbeldore.cli.settings import merged
    from gumbeldore.problems.instances import kind_of, largest, read_instances

    entry, arguments = _entry("imitate", arguments)
    kind_of(entry.instances or entry.name)
    early, rest = _early_options(arguments, f"runs/{entry.name}-imitation", labels=True)
    early.preset = early.preset or f"{SUPERVISED}-small"
    changes = _changes(entry, early)
    files = early.labels or [Path(name) for name in changes.get(LABELS, [])]
    changes = {name: value for name, value in changes.items() if name not in (LABELS, LABELS_HASH)}
    if not files and not {"--help", "-h"} & set(rest):
        what = f"Name labels to learn from: gumbeldore imitate {entry.name} --labels FILE.npz. `gumbeldore label` makes them."
        raise SettingsError(f"{early.folder} holds no supervised run to resume." if early.resume else what)
    labels = {path: read_instances(path, entry.instances) for path in files}
    base = entry.settings(early.preset, {"problem": largest(labels.values())} if labels else {})
    settings = _run_settings(
        "imitate",
        entry,
        early,
        rest,
        merged(base, changes),
        f"Train {entry.summary} on expert solutions: --labels FILE.npz [FILE.npz ...], made by `gumbeldore label`.\n\nThe size of the "
        f"problem is that of the labels; validation instances are generated. What concerns sampling (training.instances, ...) is not used.",
    )
    imitate(entry, settings, labels, early.folder, resume=early.resume, device=early.device, workers=early.workers)


def _changes(entry: Any, early: argparse.Namespace) -> dict[str, Any]:
    """Settings from a file, or from the run to resume."""
    from gumbeldore.cli.runs import SETTINGS
    from gumbeldore.cli.settings import read_settings

    changes = read_settings(early.settings) if early.settings else {}
    if early.resume and (early.folder / SETTINGS).exists() and not early.settings:
        changes = read_settings(early.folder / SETTINGS)
    if changes.pop("problem_name", entry.name) != entry.name:
        raise SettingsError(f"These settings are not for `{entry.name}`.")
    return changes


def _run_settings(command: str, entry: Any, early: argparse.Namespace, arguments: list[str], base: Any, about: str) -> Any:
    """The settings of a run: `base`, changed by options. Supervised training has no sampler."""
    import tyro

    from gumbeldore.cli.catalogue import SUPERVISED, RunSettings

    supervised = command == "imitate"
    names = [name for name in RunSettings.__dataclass_fields__ if not (supervised and name == "sampler")]
    fields = [(name, type(getattr(base, name)), getattr(base, name)) for name in names]
    shape = make_dataclass("Options", fields, frozen=True)
    presets = [name for name in entry.presets() if name.startswith(SUPERVISED) == supervised]
    text = (
        f"{about}\n\nPresets (--preset NAME): {', '.join(presets)}; the defaults below "
        f"are those of '{early.preset or 'small'}'.\n\nAlso: --settings FILE.toml|json (any of these settings), --folder DIR "
        f"({early.folder}), --resume, --device auto|cpu|cuda|mps, "
        f"--workers N (processes; one per core of a CPU unless given, 0: none)."
    )
    chosen = tyro.cli(
        shape,
        args=arguments,
        default=shape(**{name: value for name, _, value in fields}),
        description=text,
        prog=f"gumbeldore {command} {entry.name}",
    )
    return replace(base, **{name: getattr(chosen, name) for name in names})


def _early_options(arguments: list[str], folder: str, labels: bool = False) -> tuple[argparse.Namespace, list[str]]:
    """Options that decide the defaults of the others."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--preset")
    parser.add_argument("--settings", type=Path)
    parser.add_argument("--folder", type=Path, default=Path(folder))
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--workers", type=int)
    if labels:
        parser.add_argument("--labels", type=Path, nargs="+", default=[])
    return parser.parse_known_args(arguments)


def solve_command(arguments: list[str]) -> None:
    """gumbeldore solve PROBLEM"""
    import tyro

    from gumbeldore.cli.solve import options, solve

    entry, arguments = _entry("solve", arguments)
    shape, about = options(entry)
    solve(entry, tyro.cli(shape, args=arguments, prog=f"gumbeldore solve {entry.name}", description=about))


def generate_command(arguments: list[str]) -> None:
    """gumbeldore generate PROBLEM"""
    import tyro

    from gumbeldore.cli.recipes import generate, options

    entry, arguments = _entry("generate", arguments)
    shape, about = options(entry.instances or entry.name)
    generate(tyro.cli(shape, args=arguments, prog=f"gumbeldore generate {entry.name}", description=about))


def label_command(arguments: list[str]) -> None:
    """gumbeldore label PROBLEM"""
    import tyro

    from gumbeldore.cli.label import label_files, options

    entry, arguments = _entry("label", arguments)
    shape, about = options(entry.instances or entry.name)
    label_files(entry.instances, tyro.cli(shape, args=arguments, prog=f"gumbeldore label {entry.name}", description=about))


def demo_command(arguments: list[str]) -> None:
    """gumbeldore demo"""
    import tyro

    from gumbeldore.cli.demo import DemoSettings, demo

    demo(tyro.cli(DemoSettings, args=arguments, prog="gumbeldore demo", description=DemoSettings.__doc__))


def _entry(command: str, arguments: list[str]) -> tuple[Any, list[str]]:
    from gumbeldore.cli.catalogue import entry

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
    from gumbeldore.cli.catalogue import CATALOGUE

    return ", ".join(CATALOGUE)
