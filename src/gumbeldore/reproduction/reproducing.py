"""A table or figure of the paper from its plan: what is missing is done, then the files are written."""

from __future__ import annotations

from pathlib import Path

from gumbeldore.reproduction.estimates import described, hours
from gumbeldore.reproduction.experiments import Experiment
from gumbeldore.reproduction.figures import draw
from gumbeldore.reproduction.results import Table, comma_separated, markdown, write
from gumbeldore.reproduction.steps import Imitate, Plan, Train
from gumbeldore.reproduction.workshop import Workshop


def reproduced(experiment: Experiment, plan: Plan, workshop: Workshop, scale: str) -> list[Table]:
    """Does a plan step after step, prints the tables and writes them and the figure into the workshop's folder."""
    for number, step in enumerate(plan.steps, 1):
        workshop.console.rule(f"{number} of {len(plan.steps)}: {step.name}{' (done)' if workshop.done(step) else ''}")
        workshop.do(step)
    tables = experiment.tables(plan, workshop.results(plan.steps))
    folder, caption = workshop.folder, _caption(plan, workshop)
    text = markdown(experiment.title, caption, tables, _work(plan, workshop))
    write(folder / "table.md", text)
    write(folder / "table.csv", comma_separated(tables, scale))
    draw(folder / "figure.png", f"{experiment.title} (scale {scale})", [table for table in tables if table.drawn])
    workshop.console.print(text, markup=False, highlight=False)
    workshop.console.print(f"Wrote table.csv, table.md and figure.png into {folder}.", highlight=False, soft_wrap=True)
    return tables


def _caption(plan: Plan, workshop: Workshop) -> str:
    if not workshop.given:
        return plan.caption
    instead = ", ".join(f"{Path(policy).name} for {name}" for name, policy in workshop.given.items())
    return f"{plan.caption} Policies that were not trained for this, but given: {instead}."


def _work(plan: Plan, workshop: Workshop) -> list[tuple[str, ...]]:
    """What every step took. The hours of a run that goes on are counted with its first step and its second."""
    rows = list[tuple[str, ...]]()
    for step in plan.steps:
        pace = ""
        if isinstance(step, Train | Imitate) and (lines := workshop.metrics(step)):
            spent = sum(value for line in lines for name, value in line.items() if name.startswith("seconds_"))
            pace = f"{spent / len(lines):.1f}"
        rows.append((step.name, described(step), hours(workshop.seconds(step)), pace))
    return rows
