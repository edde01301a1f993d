"""What the objective of a problem is to a user: a cost, of which it is the negative, or a value itself."""

from __future__ import annotations

from typing import NamedTuple


class Measure(NamedTuple):
    """The name of a cost or a value, and which of the two it is."""

    name: str = "cost"
    maximises: bool = False

    @property
    def sign(self) -> int:
        """Of what is shown, to the objective."""
        return 1 if self.maximises else -1

    def shown(self, objective: float) -> float:
        """An objective as a user sees it: costs and values are both positive, as a rule."""
        return 0.0 + self.sign * objective  # not -0.0

    @property
    def kind(self) -> str:
        """A cost or a value."""
        return "value" if self.maximises else "cost"


COST = Measure()
