"""What is not supported, as small files that ask for it: the page shows the line with which each is refused."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from gumbeldore.errors import GumbeldoreError
from gumbeldore.io.reading import read_file

_MATRIX = """DIMENSION: 3
EDGE_WEIGHT_TYPE: EXPLICIT
EDGE_WEIGHT_FORMAT: FULL_MATRIX
EDGE_WEIGHT_SECTION
0 1 2
1 0 1
2 1 0
"""
_ROUTES = """NAME: routes
TYPE: CVRP
DIMENSION: 3
CAPACITY: 5
EDGE_WEIGHT_TYPE: EUC_2D
{extra}NODE_COORD_SECTION
1 0 0
2 3 4
3 6 8
DEMAND_SECTION
1 0
2 1
3 1
DEPOT_SECTION
{depots}
-1
EOF
"""

FILES = {
    "an order of cities that must be kept (`SOP`)": ("order.tsp", f"NAME: order\nTYPE: SOP\n{_MATRIX}EOF\n"),
    "fixed edges": ("fixed.tsp", f"NAME: fixed\nTYPE: TSP\n{_MATRIX}FIXED_EDGES_SECTION\n1 2\n-1\nEOF\n"),
    "limits on the length of routes": ("limit.vrp", _ROUTES.format(extra="DISTANCE: 30\n", depots="1")),
    "several depots": ("depots.vrp", _ROUTES.format(extra="", depots="1\n2")),
    "precedence graphs (PSPLIB)": ("graph.sm", f"{'*' * 20}\njobs (incl. supersource/sink ): 2\n{'*' * 20}\n1 1 1 2\n2 1 0\n"),
    "setup times": ("setup.txt", "2 2\n0 5 1 7\n0 6 1 4\nSSD\nM0\n0 7\n3 0\nM1\n0 1\n2 0\n"),
    "due dates": ("due.txt", "2 2\n0 3 1 4 12\n1 2 0 5 9\n"),
    "release dates": ("release.txt", "2 2\n2 0 3 1 4\n0 1 2 0 5\n"),
}
"""By what they ask for: name and content."""


def refusals() -> Iterator[tuple[str, str]]:
    """What is asked for, and the line that says no."""
    with tempfile.TemporaryDirectory() as folder:
        for what, (name, content) in FILES.items():
            path = Path(folder) / name
            path.write_text(content)
            try:
                read_file(path)
            except GumbeldoreError as error:
                yield what, str(error).replace(f"{path}: ", "").replace(f"{name}: ", "")
            else:
                raise AssertionError(f"{what}: not refused; take it from the page.")
