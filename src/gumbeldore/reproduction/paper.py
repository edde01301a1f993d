"""The numbers of the paper (Pirnay and Grimm, TMLR 2024), from the file beside this one. Its figures are pictures: they have none."""

from __future__ import annotations

import csv
from importlib.resources import files

from gumbeldore.reproduction.results import Value


def published(experiment: str, table: str) -> list[Value]:
    """What the paper says in a table, in its order."""
    text = files("gumbeldore.reproduction").joinpath("paper.csv").read_text(encoding="utf-8")
    lines = csv.DictReader(text.splitlines())
    return [
        Value(line["row"], line["column"], paper=float(line["value"]))
        for line in lines
        if (line["experiment"], line["table"]) == (experiment, table)
    ]
