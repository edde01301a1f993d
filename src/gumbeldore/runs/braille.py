"""Curves in a terminal: every character is a field of 2 x 4 dots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Points = Sequence[tuple[float, float]]

_BLANK = 0x2800
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # by row and column of a character
_COLOURS = ("cyan", "yellow", "magenta", "green")


@dataclass(frozen=True)
class Cell:
    """A character of the picture and its colour."""

    character: str
    colour: str


def grid(curves: Sequence[Points], width: int, height: int, plain: bool = False) -> list[list[Cell]]:
    """The curves in `height` rows of `width` characters, later ones on top; `plain` draws with asterisks."""
    left, right, low, high = _limits(curves)
    bits = [[0] * width for _ in range(height)]
    owner = [[0] * width for _ in range(height)]
    for number, curve in enumerate(curves):
        columns = [_scaled(x, left, right, 2 * width) for x, _ in curve]
        rows = [4 * height - 1 - _scaled(y, low, high, 4 * height) for _, y in curve]
        for column, row in _line(columns, rows):
            bits[row // 4][column // 2] |= _DOTS[row % 4][column % 2]
            owner[row // 4][column // 2] = number
    return [
        [Cell(_character(bit, plain), _COLOURS[who % len(_COLOURS)]) for bit, who in zip(line, whose, strict=True)]
        for line, whose in zip(bits, owner, strict=True)
    ]


def _limits(curves: Sequence[Points]) -> tuple[float, float, float, float]:
    """Left, right, lowest, highest. The first tenth of a long curve may leave the picture: an untrained policy is far off."""
    kept = [point for curve in curves for point in curve[len(curve) // 10 :]]
    ends = [curve[0][0] for curve in curves if curve] + [curve[-1][0] for curve in curves if curve]
    values = [y for _, y in kept]
    return min(ends), max(ends), min(values), max(values)


def chart(curves: Mapping[str, Points], width: int, height: int, plain: bool = False) -> list[str]:
    """The rows of a picture with its scale, in the markup of rich."""
    drawn = {name: points for name, points in curves.items() if len(points) >= 2}
    if not drawn:
        return []
    left, right, low, high = _limits(list(drawn.values()))
    labels = {0: f"{high:.4g}", height - 1: f"{low:.4g}"}
    margin = max(map(len, labels.values()))
    rows = [
        f"{labels.get(number, ''):>{margin}} {'|' if plain else '│'}" + "".join(f"[{c.colour}]{c.character}[/]" for c in row)
        for number, row in enumerate(grid(list(drawn.values()), width - margin - 2, height, plain))
    ]
    ends = f"{left:g}".ljust(width - margin - 2 - len(f"{right:g}")) + f"{right:g}"
    legend = "   ".join(f"[{_COLOURS[n % len(_COLOURS)]}]{'--' if plain else '━━'}[/] {name}" for n, name in enumerate(drawn))
    return [*rows, f"{'':{margin + 2}}{ends}", f"{'':{margin + 2}}{legend}"]


def _character(bits: int, plain: bool) -> str:
    if plain:
        return "*" if bits else " "
    return chr(_BLANK + bits) if bits else " "


def _scaled(value: float, low: float, high: float, size: int) -> int:
    """From low .. high to 0 .. size - 1; what lies outside goes to the edge."""
    part = (value - low) / (high - low) if high > low else 0.5
    return min(size - 1, max(0, round(part * (size - 1))))


def _line(columns: Sequence[int], rows: Sequence[int]) -> list[tuple[int, int]]:
    """The dots of the straight lines between points."""
    dots = []
    for index in range(len(columns) - 1):
        wide, tall = columns[index + 1] - columns[index], rows[index + 1] - rows[index]
        steps = max(abs(wide), abs(tall), 1)
        dots += [(columns[index] + round(wide * s / steps), rows[index] + round(tall * s / steps)) for s in range(steps + 1)]
    return dots
