"""Pages of the command line and of settings, from the very parsers that `--help` prints."""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import tyro

from gumbeldore.cli import main
from gumbeldore.cli.usage import COMMANDS
from gumbeldore.kits.names import problem_names
from gumbeldore.runs.presets import entry

INSTANCE = str(Path(__file__).resolve().parents[2] / "tests/data/instances/berlin52.tsp")
TARGETS = {"solve": (INSTANCE, "tsp"), "reproduce": ("table-1",), "label": ("cvrp",)}
"""What to name where a command needs a problem or an experiment; `tsp` unless it stands here."""


class Captured(BaseException):
    """The parser that a command was about to use. No command catches it."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser


@dataclass(frozen=True)
class Option:
    """One line of `--help`."""

    name: str
    kind: str
    default: str
    meaning: str


def parser_of(arguments: list[str]) -> argparse.ArgumentParser | None:
    """The parser of a command with these arguments; None if it prints an overview only."""

    def capture(shape: Any, *, prog: str | None = None, description: str | None = None, default: Any = None, **_: Any) -> Any:
        given = {} if default is None else {"default": default}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # `get_parser` has no successor yet
            raise Captured(tyro.extras.get_parser(shape, prog=prog, description=description, **given))

    quiet = io.StringIO()
    with mock.patch("tyro.cli", capture), contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
        try:
            main([*arguments, "--help"])
        except Captured as captured:
            return captured.parser
        except SystemExit:
            return None
    return None


def plain(text: str | None) -> str:
    """One line without colours, fit for a cell of a table."""
    return " ".join(re.sub(r"\x1b\[[0-9;]*m", "", text or "").split()).replace("|", "\\|")


def options(parser: argparse.ArgumentParser) -> Iterator[Option]:
    for action in parser._actions:
        if "--help" in action.option_strings:
            continue
        names = [name for name in action.option_strings if name.startswith("--") and not re.search(r"--(.*\.)?no-", name)]
        name = names[0] if names else plain(action.metavar if isinstance(action.metavar, str) else action.dest)
        text = plain(str(action.help or ""))
        found = re.search(r"\((default: (?P<default>.*)|required|repeatable.*)\)$", text)
        default = (found["default"] if found["default"] is not None else found[1]) if found else ""
        meaning = text[: found.start()].strip() if found else text
        flag = "BooleanOptional" in type(action).__name__ or not isinstance(action.metavar, str)
        kind = "" if flag else plain(action.metavar).replace("{None}\\|", "")
        yield Option(name, kind if names else "", default if not flag and default != "None" else "", meaning)


def parsers(command: str) -> list[argparse.ArgumentParser]:
    """What a command parses: once, or for files and for a problem."""
    found = [] if command in TARGETS else [parser_of([command])]
    if not any(found):
        found = [parser_of([command, target]) for target in TARGETS.get(command, ("tsp",))]
    distinct = {tuple(options(parser)): parser for parser in found if parser is not None}
    return list(distinct.values())


def code(text: str) -> str:
    return f"`{text}`" if text else ""


def section(parser: argparse.ArgumentParser, known: set[Option]) -> list[str]:
    """Of a command; options that are `known` from above are left out."""
    description = re.sub(r"\x1b\[[0-9;]*m", "", str(parser.description or ""))
    found = list(options(parser))
    lines = [f"### {parser.prog}", "", *described(description), ""]
    lines += ["The options above, and:", ""] if known & set(found) else []
    lines += ["| option | default | |", "|---|---|---|"]
    lines += [f"| {code(usage(each))} | {code(each.default)} | {each.meaning} |" for each in found if each not in known]
    return [*lines, ""]


def usage(option: Option) -> str:
    """As one types it: `--seed INT`, `FILE ...`."""
    words = f"{option.name} {option.kind}".strip()
    return re.sub(r"\{?\[+(\w+|\{[^}]*\})( \[.*)?\]+\}?", r"\1 ...", words)  # tyro's words for any number of values


def described(text: str) -> list[str]:
    """A description as Markdown: what looks like a tag or a placeholder is text, lines such as `  name: meaning` are a list."""
    lines = [re.sub(r"([<>*_\[\]])", r"\\\1", line) for line in text.strip().splitlines()]
    return [re.sub(r"^  (?=[\w-]+: )", "- ", line) if re.match(r"  \S", line) else line.strip() for line in lines]


def commands() -> str:
    lines = ["# The command line", "", "What `gumbeldore COMMAND --help` prints, for all commands."]
    lines += [
        "`gumbeldore train`, which has a setting for everything that a training does, has [pages of its own](settings.md).",
        "",
    ]
    for command in COMMANDS:
        lines += [f"## {command}", ""]
        if command in ("train", "imitate"):
            lines += [f"`gumbeldore {command} PROBLEM`: see [settings](settings.md).", ""]
            continue
        known: set[Option] = set()
        for parser in parsers(command):
            lines += section(parser, known)
            known |= set(options(parser))
    return "\n".join(lines) + "\n"


def settings(problem: str) -> str:
    """The settings of a training, with their values in each preset."""
    parser = parser_of(["train", problem])
    if parser is None:
        raise ValueError(f"`gumbeldore train {problem} --help` shows no settings.")
    presets = [preset for preset in entry(problem).presets() if not preset.startswith("supervised")]
    by_preset = {preset: {each.name: each.default for each in preset_options(problem, preset)} for preset in presets}
    lines = [
        f"# Settings: gumbeldore train {problem}",
        "",
        "In a TOML file, `--training.epochs 5` is `epochs = 5` below `[training]`.",
        "",
    ]
    lines += [f"| setting | | {' | '.join(presets)} |", "|---" * (len(presets) + 2) + "|"]
    for each in options(parser):
        values = " | ".join(code(by_preset[preset].get(each.name, "")) for preset in presets)
        lines.append(f"| {code(each.name.removeprefix('--'))} | {each.meaning} | {values} |")
    return "\n".join(lines) + "\n"


def preset_options(problem: str, preset: str) -> list[Option]:
    parser = parser_of(["train", problem, "--preset", preset])
    return list(options(parser)) if parser else []


def settings_pages() -> dict[str, str]:
    """By file name: a page of settings for each problem with each of its networks, and the page that lists them."""
    problems = [name for name in problem_names() if entry(name).presets()]
    pages = {f"settings-{name}.md": settings(name) for name in problems}
    lines = [
        "# Settings of trainings",
        "",
        "Every setting of `gumbeldore train`, with its value in each preset.",
        "",
        "```{toctree}",
    ]
    return {**pages, "settings.md": "\n".join([*lines, *(f"settings-{name}" for name in problems), "```", ""])}
