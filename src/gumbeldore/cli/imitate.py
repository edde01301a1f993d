"""`gumbeldore imitate`: supervised training on expert solutions."""

from __future__ import annotations

from gumbeldore.cli.problem_argument import take_entry
from gumbeldore.cli.run_options import early_options, options_of, run_settings
from gumbeldore.errors import SettingsError
from gumbeldore.runs.choosing import chosen_with_labels
from gumbeldore.runs.run import TrainingRun

_ABOUT = """Train {summary} on expert solutions: --labels FILE.npz [FILE.npz ...], made by `gumbeldore label`.

The size of the problem is that of the labels; validation instances are generated. What concerns sampling (training.instances, ...) is not used."""


def command(arguments: list[str]) -> None:
    """gumbeldore imitate PROBLEM"""
    entry, arguments = take_entry("imitate", arguments)
    early, rest = early_options(arguments, f"runs/{entry.name}-imitation", labels=True)
    choice = chosen_with_labels(
        entry,
        early.folder,
        early.labels,
        preset=early.preset,
        changes=early.settings,
        start=early.start,
        resume=early.resume,
    )
    if not choice.labels and not {"--help", "-h"} & set(rest):
        what = (
            f"Name labels to learn from: gumbeldore imitate {entry.argument} --labels FILE.npz. `gumbeldore label` makes them."
        )
        raise SettingsError(f"{early.folder} holds no supervised run to resume." if early.resume else what)
    settings = run_settings("imitate", entry, early, rest, choice.settings, _ABOUT.format(summary=entry.summary))
    TrainingRun(entry, settings, early.folder, options_of(early, choice.start), choice.labels).finish()
