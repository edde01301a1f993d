"""What a page consists of, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Cell:
    """A field of a table. `value` is what it is sorted by; None: its text."""

    text: str
    value: float | None = None
    marked: bool = False  # shown in bold

    @property
    def key(self) -> float | str:
        return self.text if self.value is None else self.value


@dataclass(frozen=True)
class Table:
    """Its columns sort when they are clicked. `common` rows are hidden by a box at its top."""

    head: tuple[str, ...]
    rows: list[tuple[Cell, ...]]
    caption: str = ""
    common: frozenset[int] = frozenset()  # numbers of rows in which nothing differs

    @property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers."""
        return [any(row[column].value is not None for row in self.rows) for column in range(len(self.head))]


Point = tuple[float, ...]
"""One value per scale of the chart, then the height."""


@dataclass(frozen=True)
class Curve:
    """One line of a chart."""

    name: str
    colour: int
    points: list[Point]


@dataclass(frozen=True)
class Chart:
    """Curves over one or more scales, between which the reader can choose."""

    title: str
    scales: tuple[str, ...]
    curves: list[Curve]
    caption: str = ""


@dataclass(frozen=True)
class Picture:
    """A picture as PNG."""

    png: bytes
    caption: str


@dataclass(frozen=True)
class Gallery:
    """Pictures that belong together, in one row where there is room."""

    title: str
    pictures: list[Picture]


@dataclass(frozen=True)
class Section:
    """A part of the page under a heading."""

    title: str
    text: str = ""
    charts: list[Chart] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    galleries: list[Gallery] = field(default_factory=list)


@dataclass(frozen=True)
class Page:
    """A whole report."""

    title: str
    subtitle: str
    sections: list[Section]
