"""A folder of a run as data, whatever state it is in: running, finished, damaged, of an older version. Reading executes nothing."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gumbeldore.errors import FormatError
from gumbeldore.files import epochs_in
from gumbeldore.kits.measure import Measure
from gumbeldore.runs.pulse import FILE, Pulse, read_pulse

SETTINGS, METRICS, ENVIRONMENT, PLOT = "settings.json", "metrics.jsonl", "environment.json", "training.png"
RESULTS, SOLUTIONS = "table.json", "solutions.json"  # of `evaluate` and `solve`
_EVALUATION = "gumbeldore-evaluation-1"
_PICTURES = 24  # of one folder that a report shows
_RECENT = 10  # epochs whose mean says how long one takes

Line = dict[str, float | None]


@dataclass(frozen=True)
class RunRecord:
    """A training run."""

    folder: Path
    settings: dict[str, Any]
    metrics: list[Line]  # one per finished epoch
    pulse: Pulse | None  # None: of an older version
    environment: dict[str, Any]

    @property
    def problem(self) -> str:
        return str(self.settings.get("problem_name", "?"))

    @property
    def measure(self) -> Measure:
        """What its objectives are; those of older versions are costs."""
        return Measure() if self.pulse is None else self.pulse.measure

    @property
    def epochs(self) -> int:
        """Finished."""
        return int(self.metrics[-1]["epoch"] or 0) if self.metrics else 0

    @property
    def planned(self) -> int | None:
        """Epochs to train, if that is known."""
        if self.pulse is not None:
            return self.pulse.epochs
        training = self.settings.get("training")
        planned = training.get("epochs") if isinstance(training, Mapping) else None
        return planned if isinstance(planned, int) else None

    @property
    def state(self) -> str:
        """`running`, `finished`, `stopped`, `failed`, `killed` (it ended without a word) or `unknown`."""
        if self.pulse is None:
            return "finished" if self.metrics and self.epochs == self.planned else "unknown"
        return "killed" if self.pulse.state == "running" and self.pulse.lives is False else self.pulse.state

    @property
    def seconds(self) -> float:
        """Spent on the finished epochs."""
        return sum(map(seconds_of, self.metrics))

    @property
    def best(self) -> Line | None:
        """The epoch whose policy is in policy.safetensors, and what it is worth now; epoch 0 is the policy that training began with."""
        last = self.metrics[-1] if self.metrics else {}
        worth = last.get("best_validation")
        if worth is None or any(line["improved"] is None for line in self.metrics):
            return self._largest
        improved = [line for line in self.metrics if line["improved"]]
        start: Line = {"epoch": 0.0}
        return {**(improved[-1] if improved else start), "validation": worth}

    @property
    def _largest(self) -> Line | None:
        """What older or damaged metrics say of the best: the largest validation of the last stage."""
        stage = max((line["stage"] or 1 for line in self.metrics), default=1)
        judged = [line for line in self.metrics if line["validation"] is not None and (line["stage"] or 1) == stage]
        return max(judged, key=lambda line: line["validation"] or 0.0, default=None)

    def seconds_left(self, now: float) -> float | None:
        """At most, judged by the last epochs; None before the first one is finished."""
        recent = [seconds_of(line) for line in self.metrics[-_RECENT:]]
        if not recent or self.planned is None or self.state != "running":
            return None
        each, since = sum(recent) / len(recent), now - (self.pulse.epoch_began if self.pulse else now)
        return max(0.0, (self.planned - self.epochs) * each - min(max(since, 0.0), each))


def seconds_of(line: Line) -> float:
    """RunOptions long an epoch took."""
    return sum(value or 0.0 for name, value in line.items() if name.startswith("seconds_"))


def _is_run(folder: Path) -> bool:
    return (folder / SETTINGS).is_file()


def read_run(folder: Path) -> RunRecord:
    """All that the folder of a run holds."""
    if not _is_run(folder):
        raise FormatError(f"{folder} holds no run: there is no {SETTINGS} in it. Name the --folder of a training.")
    return RunRecord(
        folder=folder,
        settings=_read_object(folder / SETTINGS),
        metrics=[line for line in map(_numbers, epochs_in(folder / METRICS)) if line is not None],
        pulse=read_pulse(folder / FILE),
        environment=_environment(folder / ENVIRONMENT),
    )


def _environment(path: Path) -> dict[str, Any]:
    """With what the run was made: of one record per start, the last; empty if there is none."""
    content = _json(path) if path.is_file() else []
    starts = [record for record in content if isinstance(record, dict)] if isinstance(content, list) else []
    return starts[-1] | {"starts": len(starts)} if starts else {}


@dataclass(frozen=True)
class Found:
    """What a folder holds that a report can show."""

    name: str  # short, and another one for every folder
    folder: Path
    run: RunRecord | None
    results: dict[str, Any]  # of an evaluation; empty: none
    costs: list[float]  # of the solutions in solutions.json
    pictures: list[Path]


def read_folders(folders: Sequence[Path]) -> list[Found]:
    """What several folders hold; one that holds nothing to show is an error."""
    return [_found(folder, name) for folder, name in zip(folders, short_names(folders), strict=True)]


def short_names(folders: Sequence[Path]) -> list[str]:
    """The last parts of the paths, as many as it takes to tell them apart."""
    paths = [folder.resolve() for folder in folders]
    for parts in range(1, 1 + max(len(path.parts) for path in paths)):
        names = ["/".join(path.parts[-parts:]) for path in paths]
        if len(set(names)) == len(set(paths)):
            break
    return names


def _found(folder: Path, name: str) -> Found:
    results, solutions = folder / RESULTS, folder / SOLUTIONS
    if not (_is_run(folder) or results.is_file() or solutions.is_file()):
        raise FormatError(f"{folder} holds nothing to report on: there is no {SETTINGS}, {RESULTS} or {SOLUTIONS} in it.")
    return Found(
        name=name,
        folder=folder,
        run=read_run(folder) if _is_run(folder) else None,
        results=_results(results) if results.is_file() else {},
        costs=_costs(solutions) if solutions.is_file() else [],
        pictures=_pictures_in(folder),
    )


def _results(path: Path) -> dict[str, Any]:
    content = _read_object(path)
    if content.get("format") != _EVALUATION:
        raise FormatError(f"{path} must be of the format {_EVALUATION}, got {content.get('format')!r}.")
    return content


def _costs(path: Path) -> list[float]:
    content = _json(path)
    records = content if isinstance(content, list) else []
    costs = [finite(record.get("cost")) for record in records if isinstance(record, dict)]
    return [cost for cost in costs if cost is not None]


def _pictures_in(folder: Path) -> list[Path]:
    """The first pictures of solutions; those of curves and tables are not among them."""
    return sorted(path for path in folder.glob("*.png") if path.name not in (PLOT, "table.png"))[:_PICTURES]


def _read_object(path: Path) -> dict[str, Any]:
    """The object in a file of JSON."""
    content = _json(path)
    if not isinstance(content, dict):
        raise FormatError(f"{path} must hold an object of JSON, got {type(content).__name__}.")
    return content


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise FormatError(f"{path} cannot be read as JSON: {error}") from error


def flat(content: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested settings as one level of dotted names with texts."""
    found: dict[str, str] = {}
    for name, value in content.items():
        if isinstance(value, Mapping) and value:
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value if isinstance(value, str) else json.dumps(value)
    return found


def finite(value: Any) -> float | None:
    """A number, or None for anything else."""
    usable = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return value if usable else None


def _numbers(line: Any) -> Line | None:
    """A line of metrics with its numbers only; None if it is none."""
    if not isinstance(line, dict) or finite(line.get("epoch")) is None:
        return None
    names = ("loss", "sampled", "validation", "best_validation", "learning_rate", "dataset_size", "stage")
    improved = line.get("improved")
    told = float(improved) if isinstance(improved, bool) else None
    return {"epoch": finite(line["epoch"]), "improved": told} | {
        name: finite(line.get(name)) for name in (*names, *(n for n in line if n.startswith("seconds_")))
    }
