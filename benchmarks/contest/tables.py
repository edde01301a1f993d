"""The results as Markdown and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from contest.results import Claim, Contest, Entry, claims, entries
from contest.samplers import BUDGETS, GRID
from gumbeldore.evaluation.pictures import number_by_powers
from gumbeldore.evaluation.statistics import Estimate
from gumbeldore.figure import colours, saved_figure


def markdown(contests: Sequence[Contest]) -> str:
    parts = [section for contest in contests for section in (f"## {contest.case.name}", _caption(contest), _table(contest))]
    return "\n\n".join([*parts, "## Claims", _claims([claim for contest in contests for claim in claims(contest)])]) + "\n"


def _caption(contest: Contest) -> str:
    unit = (
        "% above the best known" if contest.case.relative else "100 x (1 - outcome) on average: 0 is won, 100 a draw, 200 lost"
    )
    where = "the size of the training" if contest.case.inside else "another size than that of the training"
    return (
        f"{len(contest.reference)} instances of {where}; {unit}; in brackets: paired difference to `adaptive`, 95 % interval."
    )


def _table(contest: Contest) -> str:
    found = {(entry.family, entry.budget): entry for entry in entries(contest)}
    lines = ["| | " + " | ".join(f"{budget:,} evaluations" for budget in BUDGETS) + " |", "|---" + "|---" * len(BUDGETS) + "|"]
    rows = {family: [_text(found.get((family, budget))) for budget in BUDGETS] for family in contest.families}
    return "\n".join([*lines, *(f"| {family} | " + " | ".join(texts) + " |" for family, texts in rows.items())])


def _text(entry: Entry | None) -> str:
    if entry is None:
        return "-"
    if entry.difference is None or entry.family == "adaptive":
        return f"{entry.gap.mean:.2f} ({entry.gap.low:.2f}..{entry.gap.high:.2f})"
    return f"{entry.gap.mean:.2f} [{_signed(entry.difference)}]"


def _signed(estimate: Estimate) -> str:
    return f"{estimate.mean:+.2f}, {estimate.low:+.2f}..{estimate.high:+.2f}"


def _claims(found: Sequence[Claim]) -> str:
    lines = ["| case | claim | at most | " + " | ".join(f"{budget:,}" for budget in BUDGETS) + " |"]
    lines.append("|---" * (3 + len(BUDGETS)) + "|")
    for case, what, most in dict.fromkeys((claim.case, claim.what, claim.most) for claim in found):
        same = {claim.budget: claim for claim in found if (claim.case, claim.what) == (case, what)}
        cells = [f"{same[b].verdict}: {_signed(same[b].difference)}" if b in same else "-" for b in BUDGETS]
        lines.append(f"| {case} | {what} | {most:g} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw(folder: Path, contests: Sequence[Contest]) -> list[Path]:
    """A picture for each problem: a row for each case, gaps against evaluations and against seconds."""
    paths = []
    for problem in dict.fromkeys(contest.case.training for contest in contests):
        mine = [contest for contest in contests if contest.case.training == problem]
        families = [name for name in dict.fromkeys(f for contest in mine for f in contest.families) if name != GRID]
        colour = dict(zip(families, colours(len(families)), strict=True))
        paths.append(folder / f"quality_{problem}.png")
        with saved_figure(paths[-1], len(mine), 2, (6.4, 4.2)) as panels:
            for contest, (left, right) in zip(mine, np.reshape(panels, (-1, 2)), strict=True):
                _curves(left, contest, colour, "evaluations", "policy evaluations per instance")
                _curves(right, contest, colour, "seconds", "seconds of one core per instance")
                right.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.01, 0.5))
    return paths


def _curves(panel: Any, contest: Contest, colour: dict[str, Any], axis: str, label: str) -> None:
    for family in (name for name in contest.families if name in colour):
        points = sorted((getattr(point, axis), float(point.gaps.mean())) for point in contest.points(family))
        x, y = np.array(points).T[0], np.minimum.accumulate(np.array(points).T[1])  # the best so far of the family
        bold = family.startswith("adaptive")
        panel.plot(x, y, marker="o", markersize=3, linewidth=2.2 if bold else 1, color=colour[family], label=family)
    number_by_powers(panel)
    panel.set(title=contest.case.name, xlabel=label, ylabel="mean gap in %" if contest.case.relative else "100 x (1 - outcome)")
    panel.grid(alpha=0.3, which="both")
