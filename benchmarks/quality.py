"""Which sampler makes the most of a policy evaluation: all of them on all problems, early and late in a training, in and out of size.

    python benchmarks/quality.py                       # all of it: about two hours of one core
    python benchmarks/quality.py --only tsp,jssp-10x10 --samplers beam,adaptive
    python benchmarks/quality.py --grid                # sigma x nucleus, 5 x 5, beside the others
    python benchmarks/quality.py --grid --report       # tables and pictures of what is complete so far
    python benchmarks/quality.py --quick               # tiny sizes in about a minute: checks the script

It trains the policies itself (minutes each) and keeps them, and every finished cell of the table, in --folder: started again, it goes on
where it was. Writes tables.md there, results/quality.json and docs/figures/quality_*.png.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from contest.cases import CASES, Case, quick_cases
from contest.cells import Task, reference
from contest.checkpoints import TRAININGS, checkpoint, quick
from contest.results import Contest, as_json
from contest.samplers import FAMILIES, GRID_FAMILY, MOST, Family
from contest.tables import draw, markdown
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from gumbeldore.files import write_atomically
from gumbeldore.policy import Network

HERE = Path(__file__).resolve().parent
QUICK_INSTANCES, QUICK_MOST = 6, 60


def tasks(case: Case, policy: Network, families: Sequence[Family], count: int, most: int = MOST) -> list[Task]:
    """The cells of a case."""
    horizon = case.problem.horizon(case.instances(1))
    return [Task(case, entrant, policy, count, most) for family in families for entrant in family.entrants(case, horizon)]


def contests(
    cases: Sequence[Case],
    families: Sequence[Family],
    folder: Path,
    count: int,
    console: Console,
    *,
    tiny: bool = False,
    report: bool = False,
) -> Iterator[Contest]:
    """Fills what is missing, case by case, unless only a report of what is there is wanted."""
    trainings = {training.problem: quick(training) if tiny else training for training in TRAININGS}
    policies = {case.name: checkpoint(trainings[case.training], case.stage, folder / "policies", console) for case in cases}
    wanted = {case.name: tasks(case, policies[case.name], families, count, QUICK_MOST if tiny else MOST) for case in cases}
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        overall = progress.add_task("cells", total=sum(map(len, wanted.values())))
        current = progress.add_task("", total=count)
        for case in cases:
            for task in wanted[case.name]:
                progress.update(current, description=f"{case.name}: {task.entrant.name}", completed=0)
                if not report and task.load(folder) is None:
                    for solved in task.fill(folder):
                        progress.update(current, completed=solved)
                progress.advance(overall)
            missing = {task.entrant.family for task in wanted[case.name] if task.load(folder) is None}
            whole = [task for task in wanted[case.name] if task.entrant.family not in missing]
            cells = tuple(cell for task in whole if (cell := task.load(folder)) is not None)
            yield Contest(case, cells, reference(case, policies[case.name], count, folder))


def _matching(words: str, names: Sequence[str]) -> list[str]:
    return [name for name in names if any(word in name for word in words.split(","))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose names contain one of these words: tsp-50-late, jssp, early")
    parser.add_argument("--samplers", default="", help="families whose names contain one of these words")
    parser.add_argument("--grid", action="store_true", help="also Gumbeldore on a grid of sigma x nucleus")
    parser.add_argument("--instances", type=int, default=100)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--folder", type=Path, default=Path("runs/quality"), help="policies and cells are kept here")
    parser.add_argument("--json", type=Path, default=HERE / "results" / "quality.json")
    parser.add_argument("--figures", type=Path, default=HERE.parent / "docs" / "figures", help="the folder of the plots")
    parser.add_argument("--report", action="store_true", help="only tables and pictures of the families that are complete")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, in the folder `quick` below --folder, also results")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.quick:
        options.folder /= "quick"
        options.json, options.figures, options.instances = options.folder / "quality.json", options.folder, QUICK_INSTANCES
    cases = {case.name: case for case in (quick_cases() if options.quick else CASES)}
    families = {family.name: family for family in (*FAMILIES, *([GRID_FAMILY] if options.grid else []))}
    console = Console()
    found = list(
        contests(
            [cases[name] for name in _matching(options.only, list(cases))],
            [families[name] for name in _matching(options.samplers, list(families))],
            options.folder,
            options.instances,
            console,
            tiny=options.quick,
            report=options.report,
        )
    )
    text = markdown(found)
    for path, content in ((options.folder / "tables.md", text), (options.json, json.dumps(as_json(found), indent=1) + "\n")):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, lambda temporary, content=content: temporary.write_text(content))
    pictures = draw(options.figures, found)
    print(text)
    console.print(f"Tables: {options.folder / 'tables.md'}; pictures: {', '.join(map(str, pictures))}.")


if __name__ == "__main__":
    main()
