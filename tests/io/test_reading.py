"""Any file in, instances out: published optima, guessing, sets, bad input."""

from __future__ import annotations

import pickle
import shutil

import numpy as np
import pytest
import vrplib
from published import FOLDER, OPTIMAL

from gumbeldore.errors import FormatError
from gumbeldore.io.instance_files import write_instances
from gumbeldore.io.reading import instance_files, read_file, read_solution, solution_cost
from gumbeldore.kits.instances import InstanceSet
from gumbeldore.kits.kit import Architecture, Kit
from gumbeldore.kits.registry import kit_named
from gumbeldore.problems.tsp.kit import KIT as TSP_KIT


def optimal(name):
    """An instance, its kit, the format of its solutions, and the actions of an optimal one."""
    _, form, solution, _ = OPTIMAL[name]
    kit, (given,) = read_file(FOLDER / name)
    return given, kit, kit.exports[form], read_solution(kit.exports[form], given, FOLDER / solution)


@pytest.mark.parametrize("name", OPTIMAL)
def test_published_optimal_solutions_cost_exactly_what_is_published(name):
    given, kit, _, actions = optimal(name)
    problem, *_, cost = OPTIMAL[name]
    assert kit.name == problem
    assert given.name == name.partition(".")[0]
    assert solution_cost(kit, given, actions) == cost
    assert given.known == cost
    assert "table of best known values" in given.known_from


@pytest.mark.parametrize("name", OPTIMAL)
def test_what_is_written_is_read_back_to_the_same_cost(name):
    given, kit, export, actions = optimal(name)
    again = export.read(given, export.write(given, actions))
    assert solution_cost(kit, given, again) == OPTIMAL[name][3]


@pytest.mark.parametrize("name", ["A-n32-k5.vrp", "X-n101-k25.vrp"])
def test_vrplib_reads_our_routes(name, tmp_path):
    given, _, export, actions = optimal(name)
    (tmp_path / "a.sol").write_text(export.write(given, actions))
    ours, theirs = vrplib.read_solution(tmp_path / "a.sol"), vrplib.read_solution(FOLDER / OPTIMAL[name][2])
    assert ours["routes"] == theirs["routes"]
    assert ours["cost"] == theirs["cost"] == OPTIMAL[name][3]


def test_vrplib_reads_our_tours(tmp_path):
    given, _, export, actions = optimal("berlin52.tsp")
    (tmp_path / "a.tour").write_text(export.write(given, actions))
    ours = vrplib.read_instance(tmp_path / "a.tour", compute_edge_weights=False)
    assert (ours["type"], ours["dimension"]) == ("TOUR", 52)
    assert "Length 7542" in ours["comment"]


@pytest.mark.parametrize("name", OPTIMAL)
def test_a_policy_sees_the_instance_to_scale_and_in_its_own_range(name):
    given, kit, _, actions = optimal(name)
    unit, own = kit.solution_format.verify(given.unit, actions), kit.solution_format.verify(given.arrays, actions)
    assert unit.objective * given.scale == pytest.approx(own.objective)
    for field, limit in (("coordinates", 1), ("nodes", 1), ("times", 99)):
        if field in given.unit:
            assert given.unit[field].min() >= 0
            assert given.unit[field].max() == pytest.approx(limit, rel=0.02)
    state = InstanceSet(kit.instances, {field: array[None] for field, array in given.unit.items()}).state()
    assert state.row_count == 1


@pytest.mark.parametrize("name", OPTIMAL)
def test_an_instance_can_be_sent_to_another_process(name):
    given, kit, _, actions = optimal(name)
    again = pickle.loads(pickle.dumps(given))
    assert solution_cost(kit, again, actions) == OPTIMAL[name][3]


@pytest.mark.parametrize("name", OPTIMAL)
def test_the_content_decides_and_not_the_name(name, tmp_path):
    shutil.copy(FOLDER / name, tmp_path / "file.data")
    kit, (given,) = read_file(tmp_path / "file.data")
    assert kit.name == OPTIMAL[name][0]
    assert given.known == OPTIMAL[name][3]


def test_the_ending_decides_where_several_formats_are_possible(tmp_path):
    text = "3 1\n0 5\n0 7\n0 2\n"  # three jobs on one machine, or four cities
    for ending, problem in ((".csv", "tsp"), (".jsp", "jssp"), (".txt", "tsp")):
        (tmp_path / f"a{ending}").write_text(text)
        assert read_file(tmp_path / f"a{ending}")[0].name == problem
    assert read_file(tmp_path / "a.txt", kit_named("jssp"))[1][0].arrays["times"].tolist() == [[5], [7], [2]]


def test_in_a_folder_solutions_and_other_files_are_not_instances(tmp_path):
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    (tmp_path / "empty").write_text("")
    found, others = instance_files(tmp_path)
    assert {path.name for path in found} == {
        path.name for path in FOLDER.iterdir() if path.suffix in (".tsp", ".atsp", ".vrp", ".txt")
    }
    assert {path.name for path in others} >= {"empty", "README.md"}


class TestASolutionBeside:
    def place(self, folder, solution=None, name="other"):
        text = (FOLDER / "berlin52.tsp").read_text().replace("NAME: berlin52", f"NAME: {name}")
        if name != "berlin52":
            text = text.replace("565.0 575.0", "565.0 575.1")  # not the published one, but its optimal tour has the same length
        (folder / "cities.tsp").write_text(text)
        if solution is not None:
            (folder / "cities.tour").write_text(solution)
        return read_file(folder / "cities.tsp")[1][0]

    def test_gives_the_best_known_cost(self, tmp_path):
        assert self.place(tmp_path).known is None
        given = self.place(tmp_path, (FOLDER / "berlin52.opt.tour").read_text())
        assert (given.known, given.known_from) == (7542, "solution beside it (cities.tour)")

    def test_that_is_worse_than_the_table_changes_nothing(self, tmp_path):
        rows = "\n".join(str(city) for city in range(1, 53))
        given = self.place(tmp_path, f"TYPE : TOUR\nDIMENSION : 52\nTOUR_SECTION\n{rows}\n-1\nEOF\n", "berlin52")
        assert given.known == 7542
        assert "table" in given.known_from

    @pytest.mark.parametrize(
        ("solution", "reason"),
        [
            ("TYPE : TOUR\nTOUR_SECTION\n1\n2\n-1\n", "lacks node 3"),
            ("TYPE : TOUR\nTOUR_SECTION\n1\n1\n-1\n", "node 1 twice"),
            ("TYPE : TOUR\nDIMENSION : 7\nTOUR_SECTION\n-1\n", "DIMENSION is 7, but the instance has 52"),
            ("TYPE : TSP\n", "TYPE is TSP"),
            ("", "is empty"),
        ],
    )
    def test_that_is_wrong_is_not_used_and_the_user_told(self, tmp_path, solution, reason):
        given = self.place(tmp_path, solution)
        assert given.known is None
        assert "not used" in given.notes[-1]
        assert reason in given.notes[-1]


class TestSets:
    def test_of_ours_are_scaled_for_the_policy_and_labels_are_known_costs(self, tmp_path):
        kit = kit_named("cvrp")
        instances = kit.generator(customers=5, capacity=20, count=3).generate()
        arrays = {**instances.arrays, "nodes": instances.arrays["nodes"] * 1000 - 300}
        labelled = InstanceSet(kit.instances, arrays).labelled([[2 * c + 1 for c in range(5)]] * 3, "hand")
        write_instances(tmp_path / "a.npz", labelled)
        found, given = read_file(tmp_path / "a.npz")
        assert found is kit
        assert [each.name for each in given] == ["a[0]", "a[1]", "a[2]"]
        for row, each in enumerate(given):
            assert 0 <= each.unit["nodes"].min() <= each.unit["nodes"].max() == 1
            assert each.known == -labelled.labels.objective[row]
            assert each.known_from == "label of hand"
            assert solution_cost(kit, each, [2 * c + 1 for c in range(5)]) == pytest.approx(each.known)

    def test_that_fill_the_unit_square_stay_as_they_are(self, tmp_path):
        instances = kit_named("tsp").generator(cities=30, count=2).generate()
        write_instances(tmp_path / "a.npz", instances)
        for row, given in enumerate(read_file(tmp_path / "a.npz")[1]):
            assert (given.unit["coordinates"] == instances.arrays["coordinates"][row]).all()
            assert given.scale == 1

    def test_of_another_problem_are_refused(self, tmp_path):
        write_instances(tmp_path / "a.npz", kit_named("tsp").generator(cities=5, count=1).generate())
        with pytest.raises(FormatError, match="holds instances of 'tsp', not of jssp"):
            read_file(tmp_path / "a.npz", kit_named("jssp"))

    def test_of_others_are_refused(self, tmp_path):
        np.savez(tmp_path / "a.npz", x=np.ones(3))
        with pytest.raises(FormatError, match="not a file of instances of this library"):
            read_file(tmp_path / "a.npz")

    def test_are_read_for_kits_without_formats_of_their_own(self, tmp_path):
        architectures = {"only": Architecture(TSP_KIT.architectures["bq"].network, None)}
        kit = Kit("mine", "", TSP_KIT.problem, architectures, instances=TSP_KIT.instances)
        write_instances(tmp_path / "a.npz", kit_named("tsp").generator(cities=5, count=1).generate())
        assert read_file(tmp_path / "a.npz", kit)[0] is kit
        (tmp_path / "a.txt").write_text("1 2\n")
        with pytest.raises(FormatError, match="in no known format of mine: there are none"):
            read_file(tmp_path / "a.txt", kit)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsp", b"", "is empty"),
        ("a.tsp", b" \n\t\n", "is empty"),
        ("a.tsp", b"\x00\x01\x02" * 10, "is not a text file"),
        ("a", b"\x7fELF\x00\x00", "neither a text file nor one of numpy's"),
        ("a.xyz", b"hello world\n", "in no known format"),
        ("a.txt", b"Dear diary,\nnothing happened.\n", "in no known format .* --problem file.py:KIT"),
        ("a.txt", b"3 4\n1 2 3\n", r"It was read as job shop text \(jssp\); if it is something else, say so: --problem NAME"),
        ("a.sol", b"Route #1: 1\n", "is a solution. Name the file of its instance"),
        ("a.npz", b"PK\x03\x04abc", "cannot be read as an .npz file"),
        ("a.npy", b"\x93NUMPY\x01\x00\x01\x00(", "cannot be read as a .npy file"),
        ("a.npy", b"\x93NUMPY", "cannot be read as a .npy file"),
    ],
)
def test_a_file_that_holds_no_instance_is_refused_in_one_line(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FormatError, match=message) as caught:
        read_file(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(FormatError, match=r"There is no file .*none\.tsp"):
        read_file(tmp_path / "none.tsp")
    with pytest.raises(FormatError, match="is not a file"):
        read_file(tmp_path)


def test_known_costs_of_standard_sets_belong_to_their_instances():
    tsp, jssp = kit_named("tsp"), kit_named("jssp")
    means = {"tsp200": 10.693548, "tsp500": 16.550831, "tsp1000": 23.156058}
    assert {name: round(known().mean(), 6) for name, known in tsp.known.items()} == means
    for name in means:
        points = tsp.standard[name].generate().arrays["coordinates"]
        assert tsp.known[name]().shape == (len(points),)
        shortest = np.array([np.sort(np.hypot(*(p[:, None] - p).T), 1)[:, 1:3].sum() / 2 for p in points[:8]])
        assert (tsp.known[name]()[:8] > shortest).all()  # a bound: half of the two shortest edges of each city
    assert set(jssp.known) == set(jssp.standard)
    assert jssp.known["taillard-15x15"]()[:3].tolist() == [1231, 1244, 1218]
    assert all(len(known()) == 10 for known in jssp.known.values())
