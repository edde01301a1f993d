"""A best known value belongs to the data of an instance, not to its name."""

from __future__ import annotations

import csv
from importlib.resources import files
from pathlib import Path

import pytest

import gumbeldore
from gumbeldore.io.best_known import fingerprint, published
from gumbeldore.io.reading import read_file

INSTANCES = Path(__file__).parents[1] / "data" / "instances"
OTHERWISE = "data differ from those of the published {}, so its best known value does not apply"


def written(folder: Path, name: str, changed: str, content: str) -> Path:
    """The published file with one change, under a name of its own."""
    text = (INSTANCES / name).read_text()
    assert changed in text
    path = folder / name
    path.write_text(text.replace(changed, content, 1))
    return path


def divided_by_ten(folder: Path) -> Path:
    def tenth(line: str) -> str:
        words = line.split()
        return f"{words[0]} {float(words[1]) / 10} {float(words[2]) / 10}" if len(words) == 3 and words[0].isdigit() else line

    path = folder / "berlin52.tsp"
    path.write_text("\n".join(map(tenth, (INSTANCES / "berlin52.tsp").read_text().splitlines())))
    return path


@pytest.mark.parametrize(
    ("name", "cost"),
    [("berlin52.tsp", 7542), ("ulysses16.tsp", 6859), ("A-n32-k5.vrp", 784), ("ft06.txt", 55), ("la01.txt", 666)],
)
def test_published_files_are_recognised_by_their_content(name, cost, tmp_path):
    (tmp_path / f"mine{Path(name).suffix}").write_text((INSTANCES / name).read_text().replace(Path(name).stem, "mine"))
    given = read_file(tmp_path / f"mine{Path(name).suffix}")[1][0]
    assert given.known == cost
    assert Path(name).stem in given.known_from
    assert not [note for note in given.notes if "published" in note]


def test_numbers_may_be_written_otherwise(tmp_path):
    assert read_file(written(tmp_path, "berlin52.tsp", "565.0 575.0", "5.65e2 +575"))[1][0].known == 7542


@pytest.mark.parametrize(
    ("name", "changed", "content"),
    [
        ("berlin52.tsp", "565.0 575.0", "565.0 576.0"),
        ("berlin52.tsp", "EUC_2D", "CEIL_2D"),
        ("ulysses16.tsp", "38.24 20.42", "38.24 20.43"),
        ("A-n32-k5.vrp", "CAPACITY : 100", "CAPACITY : 101"),
        ("ft06.txt", "2  1  0  3", "2  1  0  4"),
    ],
)
def test_a_name_that_is_used_again_has_no_best_known_value_and_the_user_is_told(name, changed, content, tmp_path):
    if name == "A-n32-k5.vrp":  # which says its value itself, too
        (tmp_path / name).write_text((INSTANCES / name).read_text().replace("Optimal value: 784", "").replace(changed, content))
        given = read_file(tmp_path / name)[1][0]
    else:
        given = read_file(written(tmp_path, name, changed, content))[1][0]
    assert (given.known, given.known_from) == (None, "")
    assert OTHERWISE.format(Path(name).stem) in " ".join(given.notes)


def test_scaled_cities_have_no_gap(tmp_path):
    found = gumbeldore.solve(divided_by_ten(tmp_path), parts=["local-search"], time_limit=0.05)
    assert found.gap is None
    assert OTHERWISE.format("berlin52") in " ".join(found.notes)


def test_a_value_that_goes_by_name_alone_says_so():
    """Where the published data are not at hand."""
    known = published("jssp", "none", {"jobs": 20, "machines": 20}, "yn1")
    assert known.cost == 884
    assert known.source.endswith("by name")
    assert "Whether this is the published yn1 is unknown" in known.notes[0]
    assert published("jssp", "none", {"jobs": 20, "machines": 21}, "yn1").cost is None
    assert published("jssp", "none", {"jobs": 20, "machines": 20}, "mine") == (None, "", (), "")


@pytest.mark.parametrize(("room", "without"), [("tsp", []), ("cvrp", []), ("op", []), ("jssp", ["yn1", "yn2", "yn3", "yn4"])])
def test_rows_have_fingerprints_of_their_own(room, without):
    text = files(f"gumbeldore.problems.{room}").joinpath("best_known.csv").read_text()
    rows = list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
    held = [row["fingerprint"] for row in rows if row["fingerprint"]]
    assert [row["name"] for row in rows if not row["fingerprint"]] == without
    assert len(held) - len(set(held)) == (room == "cvrp")  # M-n200-k16 and M-n200-k17 differ by the vehicles that CVRPLIB wants


def test_fingerprints_tell_shapes_kinds_and_numbers_apart_but_not_types():
    numbers = [[1.0, 2.0, 0.0, 4.0]]
    others = [("a", [[1.0, 2.0], [0.0, 4.0]]), ("b", numbers), ("a", [[1.0, 2.0, 0.0, 4.5]])]
    assert len({fingerprint("a", numbers), *(fingerprint(kind, each) for kind, each in others)}) == 4
    assert fingerprint("a", numbers) == fingerprint("a", [[1, 2, -0.0, 4]])
