"""Gomoku: how many epochs until white wins from every opening, with samples with replacement and with Gumbeldore."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbeldore.evaluation.statistics import difference_of_runs, mean_of_runs, standard_error
from gumbeldore.reproduction.paper import published
from gumbeldore.reproduction.results import Results, Table, Value, beside
from gumbeldore.reproduction.steps import Plan, Settings, Train
from gumbeldore.reproduction.trainings import PAPER, Scale

_METHODS = {"WR": "with-replacement", "GD": "outcome"}
_ALL = 1.0
"""The validation of a policy that wins from every opening."""

_SHARES = (0.5, 0.9)
"""Of the games, won on the way there: what runs that end before they win all can be compared by."""

_EPOCHS = "epochs until white wins from every opening, or from a share of them"
_LAST = "won after the last epoch in %"
_FEWER = "epochs of GD minus those of WR until white wins from every opening, with Student's and Welch's interval"


@dataclass(frozen=True)
class Contest:
    """Runs of either method."""

    runs: int
    epochs: int  # at most
    changes: Settings = field(default_factory=dict)


_CONTESTS: dict[Scale, Contest] = {
    "smoke": Contest(
        1,
        2,
        {
            "problem": {"size": 5},
            "policy": {"channels": 4, "blocks": 1, "head_channels": 2, "hidden": 8},
            "sampler": {"beam_width": 2, "rounds": 2},
            "training": {"instances": 4, "batches": 2, "batch_size": 8},
            "validation": {"instances": 4},
        },
    ),
    "cpu": Contest(4, 100, {"sampler": {"beam_width": 16, "rounds": 4}, "training": {"learning_rate": 1e-3, "ema": 0.99}}),
    "paper": Contest(10, 300),
}


def plan(scale: Scale) -> Plan:
    contest = _CONTESTS[scale]
    steps = [
        Train(f"gomoku-{label.lower()}-{seed}", "gomoku", PAPER, contest.epochs, _changes(contest, method, seed))
        for seed in range(contest.runs)
        for label, method in _METHODS.items()
    ]
    less = {
        "smoke": "Scale smoke: one run on a tiny board; the figures mean nothing.",
        "cpu": "Scale cpu: four runs instead of ten, 64 games per opening (4 rounds of 16) instead of 320, learning rate 1e-3, and, "
        "beyond the paper, a running mean of the weights (ema 0.99), without which a run at this learning rate stayed at 80 of the 81 openings.",
        "paper": "Scale paper: ten runs, 320 games per opening, learning rate 2e-4 (the paper does not name its own).",
    }
    return Plan(tuple(steps), f"{less[scale]} Epochs until white wins from every opening greedily; at most {contest.epochs}.")


def _changes(contest: Contest, method: str, seed: int) -> dict[str, Any]:
    given = contest.changes
    sampler = {**given.get("sampler", {}), "method": method}
    training = {**given.get("training", {}), "seed": seed, "goal": _ALL}
    return {**given, "sampler": sampler, "training": training}


def tables(plan: Plan, results: Results) -> list[Table]:
    """Epochs by method, how many fewer GD needs, and the share of openings won after each epoch of every run."""
    values, curves, needed = list[Value](), list[Value](), dict[str, dict[str, int | None]]()
    paper = published("gomoku", "Gomoku")
    for label in _METHODS:
        runs = {name: lines for name, lines in results.metrics.items() if name.startswith(f"gomoku-{label.lower()}-")}
        values += _epochs(label, list(runs.values()))
        needed[label] = {name.rpartition("-")[2]: epochs_to_win(lines) for name, lines in runs.items()}
        for name, lines in runs.items():
            run = name.removeprefix("gomoku-").upper()
            curves += [Value(run, str(line["epoch"]), _won(line)) for line in lines]
    return [
        Table("Gomoku", beside(values, paper), unit=_EPOCHS, drawn=False),
        *_fewer(needed["GD"], needed["WR"], paper),
        Table("Games", tuple(curves), unit="won games in %, a draw is half a win", across="epoch"),
    ]


def _epochs(label: str, runs: Sequence[Sequence[Mapping[str, Any]]]) -> list[Value]:
    """Mean epochs of the runs that won all, and until some share was won, which is only said if all runs got there."""
    needed = _reached(runs, _ALL)
    mean = float(needed.mean()) if len(needed) else nan
    values = [
        Value(label, "epochs", mean, error=standard_error(needed), repeats=len(needed)),
        Value(label, "runs that won all", float(len(needed)), repeats=len(runs)),
    ]
    for share in _SHARES:
        needed = _reached(runs, 2 * share - 1)
        if runs and len(needed) == len(runs):
            mean, error = float(needed.mean()), standard_error(needed)
            values.append(Value(label, f"epochs until {share:.0%} won", mean, error=error, repeats=len(runs)))
    ends = np.array([_won(run[-1]) for run in runs if run])
    if len(ends):
        values.append(Value(label, _LAST, float(ends.mean()), error=standard_error(ends), repeats=len(ends)))
    return values


def _fewer(gd: Mapping[str, int | None], wr: Mapping[str, int | None], paper: Sequence[Value]) -> list[Table]:
    """Only if all runs got there: those that did not would have needed more epochs."""
    ours, theirs = ({seed: count for seed, count in runs.items() if count is not None} for runs in (gd, wr))
    if not (len(ours) == len(gd) and len(theirs) == len(wr) and ours.keys() == theirs.keys() and ours):
        return []
    published = {value.row: value.paper for value in paper if value.column == "epochs"}
    by_seed = mean_of_runs(np.array([ours[seed] - theirs[seed] for seed in ours], dtype=np.float64))
    apart = difference_of_runs(*(np.array([*runs.values()], dtype=np.float64) for runs in (ours, theirs)))
    values = [
        Value(
            "GD - WR",
            how,
            found.mean,
            found.low,
            found.high,
            paper=round(published["GD"] - published["WR"], 6),
            repeats=len(ours),
        )
        for how, found in (("seed by seed", by_seed), ("runs not paired", apart))
    ]
    return [Table("Gomoku: difference", tuple(values), unit=_FEWER, drawn=False)]


def _won(line: Mapping[str, Any]) -> float:
    """Of all games, in percent; a draw is half a win."""
    return float(50 * (1 + line["validation"]))


def _reached(runs: Sequence[Sequence[Mapping[str, Any]]], least: float) -> NDArray[np.float64]:
    """The epochs of the runs that got there."""
    return np.array([count for run in runs if (count := epochs_to_win(run, least)) is not None], dtype=np.float64)


def epochs_to_win(lines: Sequence[Mapping[str, Any]], least: float = _ALL) -> int | None:
    """The first epoch after which every game is won, if there is one; or whose mean outcome is at least so much."""
    return next((line["epoch"] for line in lines if line["validation"] >= least), None)
