"""`gumbeldore train`: self-improvement, in a folder that can be resumed."""

from __future__ import annotations

from gumbeldore.cli.problem_argument import take_entry
from gumbeldore.cli.run_options import early_options, options_of, run_settings
from gumbeldore.runs.choosing import chosen
from gumbeldore.runs.run import TrainingRun


def command(arguments: list[str]) -> None:
    """gumbeldore train PROBLEM"""
    entry, arguments = take_entry("train", arguments)
    early, rest = early_options(arguments, f"runs/{entry.name}")
    choice = chosen(
        entry,
        early.folder,
        preset=early.preset,
        changes=early.settings,
        start=early.start,
        resume=early.resume,
        instances=early.instances,
    )
    about = f"Train {entry.summary} by self-improvement."
    settings = run_settings("train", entry, early, rest, choice.settings, about)
    TrainingRun(entry, settings, early.folder, options_of(early, choice.start), instances=choice.instances).finish()
