"""Whatever a file holds, a reader gives instances that can be solved, or one line that says what is wrong."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from published import FOLDER

from gumbeldore.errors import FormatError
from gumbeldore.io.reading import read_file, solution_cost
from gumbeldore.kits.instances import InstanceSet
from gumbeldore.kits.registry import kit_named
from gumbeldore.problems.fjsp.files import parse_flexible
from gumbeldore.problems.op.files import parse as parse_oplib
from gumbeldore.problems.pfsp.files import parse_machines

EXPLICIT = (
    "NAME : m\nTYPE : TSP\nDIMENSION : 4\nEDGE_WEIGHT_TYPE : EXPLICIT\nEDGE_WEIGHT_FORMAT : UPPER_ROW\nEDGE_WEIGHT_SECTION\n"
    "3 5 7 2 4 6\nDISPLAY_DATA_SECTION\n1 0 0\n2 3 0\n3 4 1\n4 7 7\nEOF\n"
)
TAILLARD = "2 3\nTimes\n3 2 5\n4 60 1\nMachines\n1 3 2\n2 1 3\n"
WINDOWS = (
    "NAME : w\nTYPE : VRPTW\nDIMENSION : 3\nVEHICLES : 2\nCAPACITY : 9\nSERVICE_TIME : 3\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n"
    "1 0 0\n2 3 4\n3 0 7\nDEMAND_SECTION\n1 0\n2 4\n3 9\nTIME_WINDOW_SECTION\n1 0 40\n2 5 9\n3 0 20\nDEPOT_SECTION\n1\n-1\n"
)
SEEDS = {
    "a.tsp": (FOLDER / "ulysses16.tsp").read_text(),
    "b.tsp": EXPLICIT,
    "a.vrp": (FOLDER / "A-n32-k5.vrp").read_text(),
    "a.txt": (FOLDER / "R101.txt").read_text(),
    "b.vrp": WINDOWS,
    "a.jsp": (FOLDER / "ft06.txt").read_text(),
    "b.jsp": TAILLARD,
    "a.fjs": "2 3 1.7\n2 2 1 2 2 3 1 2 4\n3 1 1 5 2 1 9 3 1 1 2 0\n",
    "a.fsp": "3 2 17 12 9\nprocessing times :\n3 1 5\n2 4 0\n",
    "a.oplib": "NAME : a\nTYPE : OP\nDIMENSION : 4\nCOST_LIMIT : 20\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n1 0 0\n2 0 5\n3 5 5\n4 5 0\n"
    "NODE_SCORE_SECTION\n1 3\n2 10\n3 20\n4 40\nDEPOT_SECTION\n2\n-1\nEOF\n",
    "c.jsp": "2 3\n0 3 2 2 0 5\n1 4 0 1\n",
    "a.atsp": (FOLDER / "br17.atsp").read_text(),
    "b.csv": "0,2,5\n1,0,3\n4,4,0\n",
    "a.csv": "x,y\n" + "".join(f"{n},{n * n}\n" for n in range(6)),
    "a.json": '{"name": "a", "coordinates": [[0, 1], [2.5, 3], [4, 5e1], [6, -7]]}',
}
PIECES = [
    "",
    "\n",
    " ",
    "-1",
    "0",
    "1",
    "2",
    "1e308",
    "nan",
    "-inf",
    "1.5",
    ":",
    ",",
    ";",
    "\t",
    "#",
    "EOF",
    "x",
    "é",
    "\x00",
    "\u2028",
]
PIECES += [
    "9" * 400,
    "DIMENSION : 2\n",
    "TYPE : CVRP\n",
    "TYPE : \n",
    "EDGE_WEIGHT_TYPE : CEIL_2D\n",
    "GEO",
    "DEPOT_SECTION\n",
    "[",
    "]",
    '"',
    "\ufeff",
]
SOLUTIONS = {
    **{"tsp": "tour", "atsp": "tour", "cvrp": "sol", "vrptw": "sol"},
    **{"jssp": "csv", "fjsp": "csv", "pfsp": "csv", "op": "sol"},
}
FILES = ("ulysses16.tsp", "br17.atsp", "A-n32-k5.vrp", "C101.txt", "ft06.txt")
INSTANCES = {kit.name: (kit, found[0]) for kit, found in (read_file(FOLDER / name) for name in FILES)}
INSTANCES["fjsp"] = kit_named("fjsp"), parse_flexible(SEEDS["a.fjs"], "a")[0]
INSTANCES["op"] = kit_named("op"), parse_oplib(SEEDS["a.oplib"], "a")[0]
INSTANCES["pfsp"] = kit_named("pfsp"), parse_machines(SEEDS["a.fsp"], "a")[0]

quick = settings(max_examples=30, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))


@st.composite
def spoiled(draw, text):
    """The text after up to three cuts, insertions and changes of a word."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.sampled_from([start, start + 1, start + 3, start + 40, len(text)]))
        text = text[:start] + draw(st.sampled_from(PIECES)) + text[end:]
    return text


def natural(kit, instance):
    """Some feasible solution."""
    if kit.name == "jssp":
        jobs, machines = instance.arrays["times"].shape
        return [job for job in range(jobs) for _ in range(machines)]
    if kit.name == "fjsp":
        able = instance.arrays["times"] >= 0
        return [int(job * able.shape[2] + row.argmax()) for job, rows in enumerate(able) for row in rows if row.any()]
    if kit.name == "pfsp":
        return list(range(len(instance.arrays["times"])))
    if kit.name == "op":
        return [0]
    if kit.name in ("cvrp", "vrptw"):
        return [2 * customer + 1 for customer in range(len(instance.arrays["demands"]) - 1)]
    return list(range(1, len(next(iter(instance.arrays.values())))))


def outcome(run):
    """What a reader gives, or nothing if it refuses in one line."""
    try:
        return run()
    except FormatError as error:
        message = str(error)
    assert len(message.splitlines()) == 1, message
    return None


def check(path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = outcome(lambda: read_file(path))
    kit, found = result or (None, [])
    assert found or result is None
    for instance in found[:3]:
        actions = natural(kit, instance)
        cost = solution_cost(kit, instance, actions)
        assert math.isfinite(cost)
        for export in kit.exports.values():
            text = export.write(instance, actions)
            assert export.read is None or solution_cost(kit, instance, export.read(instance, text)) <= cost
        if instance.solved is None:
            unit = {name: np.asarray(array)[None] for name, array in instance.unit.items()}
            assert InstanceSet(kit.instances, unit).state().row_count == 1
            verdict = kit.solution_format.verify(instance.unit, actions)
            assert verdict.objective * instance.scale == pytest.approx(
                kit.solution_format.verify(instance.arrays, actions).objective, rel=1e-6
            )


@pytest.mark.parametrize("name", SEEDS)
@quick
@given(data=st.data())
def test_a_spoiled_file_is_read_or_refused(name, data, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / f"spoiled {name}"
    path.write_bytes(data.draw(spoiled(SEEDS[name])).encode("utf-8", "surrogatepass"))
    check(path)


@pytest.mark.parametrize("name", ["a", "a.tsp", "a.jsp", "a.csv", "a.json", "a.npy", "a.npz"])
@quick
@given(
    content=st.binary(max_size=60),
    start=st.sampled_from([b"", b"\x93NUMPY\x01\x00", b"PK\x03\x04", b"\xff\xfe", b"3 1\n", b"[["]),
)
def test_any_bytes_are_read_or_refused(name, content, start, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / f"bytes {name}"
    path.write_bytes(start + content)
    check(path)


@pytest.mark.parametrize("problem", SOLUTIONS)
@quick
@given(data=st.data())
def test_a_spoiled_solution_is_read_or_refused(problem, data):
    kit, instance = INSTANCES[problem]
    export = kit.exports[SOLUTIONS[problem]]
    text = data.draw(spoiled(export.write(instance, natural(kit, instance))))
    cost = outcome(lambda: solution_cost(kit, instance, export.read(instance, text)))
    assert cost is None or math.isfinite(cost)
