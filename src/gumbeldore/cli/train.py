"""`gumbeldore train`: self-improvement, in a folder that can be resumed."""

from __future__ import annotations

from gumbeldore.cli.problem_argument import take_entry
from gumbeldore.cli.run_options import early_options, options_of, run_settings, saved_changes, sizes_of
from gumbeldore.errors import SettingsError
from gumbeldore.runs.folder import LABELS
from gumbeldore.runs.training import train


def command(arguments: list[str]) -> None:
    """gumbeldore train PROBLEM"""
    entry, arguments = take_entry("train", arguments)
    early, rest = early_options(arguments, f"runs/{entry.name}")
    changes, is_record = saved_changes(entry, early)
    if LABELS in changes:
        raise SettingsError(
            f"{early.folder} holds a supervised run. Go on with it by `gumbeldore imitate {entry.name} --resume`."
        )
    base = entry.recorded(changes) if is_record else entry.settings(early.preset, {**sizes_of(early, entry), **changes})
    settings = run_settings("train", entry, early, rest, base, f"Train {entry.summary} by self-improvement.")
    train(entry, settings, early.folder, **options_of(early))
