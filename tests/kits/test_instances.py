"""Sets of instances: files that come back as they were, refuse what they should, and the standard sets."""

from __future__ import annotations

import pickle
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from kits import KINDS, STANDARD
from routing import random_actions, seeded

from gumbeldore.cli import main
from gumbeldore.errors import FormatError, SettingsError
from gumbeldore.io.instance_files import read_instances, write_instances
from gumbeldore.kits.instances import InstanceSet, Labels, largest
from gumbeldore.kits.mixture import AnyOf
from gumbeldore.problems import CVRP, JSSP, TSP
from gumbeldore.problems.cvrp.instances import CVRPGenerator
from gumbeldore.problems.jssp.instances import JSSPGenerator
from gumbeldore.problems.tsp.instances import TSPGenerator

RECIPES = {"tsp": TSPGenerator(6, 5, 1), "cvrp": CVRPGenerator(5, (20, 30), 5, 1), "jssp": JSSPGenerator(3, 2, 5, 1)}


class Bomb:
    """Unpickling it would create a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def labelled(name: str) -> InstanceSet:
    """A small set with random solutions."""
    instances = RECIPES[name].generate()
    actions = random_actions(instances.kind.problem, instances.state(), seeded(0))
    return instances.labelled(actions.tolist(), "dice", [True, False, True, False, False])


def contents(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


@pytest.fixture(params=RECIPES)
def file(request, tmp_path) -> Path:
    """A labelled set in a file."""
    path = tmp_path / f"{request.param}.npz"
    write_instances(path, labelled(request.param))
    return path


@pytest.fixture
def tsp_file(tmp_path) -> Path:
    path = tmp_path / "tsp.npz"
    write_instances(path, labelled("tsp"))
    return path


class TestRoundTrip:
    def test_everything_comes_back_as_it_was(self, file):
        before, after = labelled(file.stem), read_instances(file, file.stem)
        assert after.kind is before.kind
        assert after.arrays.keys() == before.arrays.keys()
        assert all(np.array_equal(after.arrays[name], array) for name, array in before.arrays.items())
        assert all(after.arrays[name].dtype == array.dtype for name, array in before.arrays.items())
        assert np.array_equal(after.labels.actions, before.labels.actions)
        assert np.array_equal(after.labels.objective, before.labels.objective)
        assert after.labels.optimal.tolist() == [True, False, True, False, False]
        assert after.labels.solver == "dice"

    def test_instances_without_labels_come_back_without(self, tmp_path):
        write_instances(tmp_path / "a.npz", RECIPES["jssp"].generate())
        after = read_instances(tmp_path / "a.npz")
        assert after.labels is None
        with pytest.raises(SettingsError, match="gumbeldore label"):
            after.dataset()

    def test_the_dataset_holds_the_instances_with_their_solutions(self, file):
        instances = read_instances(file)
        dataset = instances.dataset()
        assert len(dataset) == 5
        (group,) = dataset.groups
        state, actions = group.state, group.actions
        problem = instances.kind.problem
        for action in actions.unbind(1):
            state = problem.step(state, action)
        assert bool(problem.done(state).all())
        torch.testing.assert_close(problem.objective(state), torch.tensor(instances.labels.objective), rtol=0, atol=1e-5)
        examples = dataset.sample(problem, 4, seeded(0))
        assert bool(problem.mask(examples.state).gather(1, examples.action[:, None]).all())

    def test_the_digest_tells_instances_apart_and_ignores_labels(self):
        assert labelled("tsp").digest == RECIPES["tsp"].generate().digest
        assert labelled("tsp").digest != TSPGenerator(6, 5, 2).generate().digest

    def test_compressed_files_of_others_are_read_too(self, tsp_file, tmp_path):
        np.savez_compressed(tmp_path / "small.npz", **contents(tsp_file))
        assert read_instances(tmp_path / "small.npz").digest == read_instances(tsp_file).digest

    def test_the_largest_set_names_its_size_as_settings(self):
        sets = [JSSPGenerator(3, 2, 9).generate(), JSSPGenerator(4, 5, 1).generate(), JSSPGenerator(2, 2, 1).generate()]
        assert largest(sets) == {"jobs": 4, "machines": 5}
        assert largest([RECIPES["tsp"].generate()]) == {"cities": 6}
        assert largest([CVRPGenerator(5, 20, 3).generate()]) == {"customers": 5, "capacity": 20}
        assert largest([CVRPGenerator(5, (20, 60), 50).generate()])["capacity"] == (20, 60)

    def test_a_failed_write_leaves_no_file(self, tmp_path, monkeypatch):
        monkeypatch.setattr(np, "savez", lambda *arrays, **named: (_ for _ in ()).throw(OSError("disk full")))
        with pytest.raises(OSError, match="disk full"):
            write_instances(tmp_path / "a.npz", labelled("tsp"))
        assert list(tmp_path.iterdir()) == []


class TestRefusal:
    @pytest.mark.parametrize("name", ["coordinates", "format", "extra"])
    def test_nothing_pickled_is_executed(self, tsp_file, tmp_path, name):
        target = tmp_path / "exploded"
        bad = {**contents(tsp_file), name: np.array([Bomb(target)], dtype=object)}
        np.savez(tsp_file, **bad)
        with pytest.raises(FormatError, match="plain arrays"):
            read_instances(tsp_file)
        tsp_file.write_bytes(pickle.dumps(Bomb(target)))
        with pytest.raises(FormatError, match="plain arrays"):
            read_instances(tsp_file)
        assert not target.exists()

    @pytest.mark.parametrize("content", [b"", b"not a file of arrays", b"PK\x03\x04", b"\x93NUMPY"])
    def test_files_of_another_kind_are_refused(self, tmp_path, content):
        (tmp_path / "a.npz").write_bytes(content)
        with pytest.raises(FormatError, match=r"a\.npz"):
            read_instances(tmp_path / "a.npz")

    def test_a_single_array_and_foreign_arrays_are_refused(self, tmp_path, tsp_file):
        with open(tmp_path / "a.npz", "wb") as handle:
            np.save(handle, np.zeros(3))
        with pytest.raises(FormatError, match="single array"):
            read_instances(tmp_path / "a.npz")
        np.savez(tmp_path / "b.npz", coordinates=contents(tsp_file)["coordinates"])
        with pytest.raises(FormatError, match="gumbeldore generate"):
            read_instances(tmp_path / "b.npz")

    def test_a_missing_file_names_the_way_out(self, tmp_path):
        with pytest.raises(FormatError, match="gumbeldore generate"):
            read_instances(tmp_path / "none.npz")

    def test_another_problem_than_wanted_is_named(self, tsp_file):
        with pytest.raises(FormatError, match="of jssp, but says it holds those of 'tsp'"):
            read_instances(tsp_file, "jssp")

    def test_damaged_files_are_refused_or_unharmed_but_never_crash(self, tsp_file):
        whole, dice, refused = tsp_file.read_bytes(), random.Random(0), 0
        for _ in range(300):
            damaged = bytearray(whole[: dice.randrange(len(whole))] if dice.random() < 0.2 else whole)
            for _ in range(dice.choice([1, 4])):
                damaged[dice.randrange(len(damaged))] = dice.randrange(256)
            tsp_file.write_bytes(damaged)
            try:
                read_instances(tsp_file)
            except FormatError:
                refused += 1
        assert refused > 100

    @pytest.mark.usefixtures("unchecked")
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"coordinates": None}, "`coordinates` is missing"),
            ({"cities": np.zeros(5)}, "Unknown array `cities`"),
            ({"coordinates": np.zeros((5, 6))}, r"axes \(instance, city, 2\).*\(5, 6\)"),
            ({"coordinates": np.zeros((5, 6, 3))}, r"axes \(instance, city, 2\)"),
            ({"coordinates": np.zeros((5, 6, 2), dtype=complex)}, "must hold numbers, got complex"),
            ({"coordinates": np.full((5, 6, 2), np.nan)}, "`coordinates` must be finite"),
            ({"coordinates": np.zeros((5, 2, 2))}, "cities >= 3"),
            ({"coordinates": np.zeros((0, 6, 2))}, "at least one instance"),
            ({"problem": np.array("knapsack")}, "'knapsack'"),
            ({"problem": np.zeros(3)}, "None"),
            ({"format": np.array("gumbeldore-instances-99")}, "gumbeldore-instances-1"),
            ({"solver": None}, "all or none, but only actions, objective, optimal"),
            ({"actions": np.zeros((4, 5), dtype=int)}, "for 5 instances, got int64"),
            ({"actions": np.zeros((5, 5))}, "`actions` must be integers"),
            ({"actions": np.array([[1, -1, 3, 4, 5]] * 5)}, "-1 only after the end"),
            ({"actions": np.array([[1, -2, -2, -2, -2]] * 5)}, "-1 only after the end"),
            ({"actions": np.full((5, 5), -1)}, "-1 only after the end"),
            ({"objective": np.full(5, np.inf)}, "5 finite"),
            ({"objective": np.zeros(4)}, "5 finite"),
            ({"optimal": np.zeros(5)}, "5 booleans"),
            ({"solver": np.zeros(5)}, "`solver` must be a text"),
        ],
    )
    def test_a_wrong_array_is_named_with_the_rule(self, tsp_file, changes, message):
        content = {**contents(tsp_file), **changes}
        np.savez(tsp_file, **{name: array for name, array in content.items() if array is not None})
        with pytest.raises(FormatError, match=message):
            read_instances(tsp_file)

    @pytest.mark.parametrize(
        ("name", "array", "place", "value", "message"),
        [
            ("cvrp", "demands", (2, 3), 99, "must not exceed `capacity`"),
            ("cvrp", "demands", (0, 0), 1, "0 at the depot"),
            ("jssp", "machines", (1, 2, 0), 5, "job 2 of instance 1"),
            ("jssp", "times", (1, 2, 0), -1, "`times` must be at least 0"),
        ],
    )
    def test_the_problems_own_rules_hold(self, tmp_path, name, array, place, value, message):
        path = tmp_path / "a.npz"
        write_instances(path, RECIPES[name].generate())
        content = contents(path)
        content[array][place] = value
        np.savez(path, **content)
        with pytest.raises(FormatError, match=message):
            read_instances(path)

    @pytest.mark.parametrize(
        ("actions", "message"),
        [
            ([1, 2, 3, 4, 4], "instance 3 takes a forbidden action at position 4"),
            ([1, 2, 3, 4, 6], "forbidden action at position 4"),
            ([1, 2, 3, 4, -1], "ends after 4 actions"),
            ([5, 4, 3, 1, 2], "not worth the objective"),
        ],
    )
    def test_labels_that_are_no_solutions_are_refused_before_training(self, actions, message):
        given = labelled("tsp")
        changed = given.labels.actions.copy()
        changed[3] = actions
        labels = Labels(changed, given.labels.objective, given.labels.optimal, "x")
        with pytest.raises(FormatError, match=message):
            InstanceSet(given.kind, given.arrays, labels).dataset()

    def test_solutions_that_go_on_or_stop_short_are_refused(self):
        given = labelled("tsp")
        for width, message in ((4, "not complete after its 4"), (6, "goes on after 5")):
            actions = np.full((5, width), 1, dtype=np.int32)
            actions[:, : min(width, 5)] = given.labels.actions[:, : min(width, 5)]
            labels = Labels(actions, given.labels.objective, given.labels.optimal, "x")
            with pytest.raises(FormatError, match=message):
                InstanceSet(given.kind, given.arrays, labels).dataset()

    def test_an_infeasible_solution_cannot_become_a_label(self):
        with pytest.raises(SettingsError, match="instance 4 is infeasible: city 1 is visited again"):
            RECIPES["tsp"].generate().labelled([[1, 2, 3, 4, 5]] * 4 + [[1, 2, 3, 4, 1]], "x")


class TestRecipes:
    def test_the_tsp_test_sets_are_the_published_ones(self):
        """The first numbers of RandomState(1234) and RandomState(777)."""
        first = {20: 1234, 50: 1234, 100: 1234, 200: 777, 500: 777, 1000: 777}
        start = {1234: [0.1915194503788923, 0.6221087710398319], 777: [0.15266373, 0.30235661]}
        for cities, seed in first.items():
            recipe = STANDARD["tsp"][f"tsp{cities}"]
            assert (recipe.cities, recipe.seed, recipe.count) == (cities, seed, 10_000 if seed == 1234 else 128)
        for cities in (20, 200):
            coordinates = STANDARD["tsp"][f"tsp{cities}"].generate().arrays["coordinates"]
            assert coordinates.shape[1:] == (cities, 2)
            np.testing.assert_allclose(coordinates[0, 0], start[first[cities]], rtol=0, atol=5e-9)
        # Drawn in one go: the second instance goes on where the first one ended.
        twenty = STANDARD["tsp"]["tsp20"].generate().arrays["coordinates"]
        np.testing.assert_array_equal(twenty[:2].ravel(), np.random.RandomState(1234).random_sample(80))

    def test_the_tsp_test_sets_belong_to_the_published_optimal_lengths(self, shared):
        """Instance by instance, the minimum spanning tree is as long as the optimal tour says it should be."""
        sparse = pytest.importorskip("scipy.sparse.csgraph")
        path = shared / "data" / "tsp_200_128_seed777_optimal_lengths.csv"
        if not path.is_file():
            pytest.skip(f"{path.name} is absent")
        optimal = np.loadtxt(path)
        points = STANDARD["tsp"]["tsp200"].generate().arrays["coordinates"]
        distances = [np.hypot(*(p[:, None] - p[None]).transpose(2, 0, 1)) for p in points]
        trees = np.array([sparse.minimum_spanning_tree(d).sum() for d in distances])
        assert (trees < optimal).all()
        assert (optimal < 2 * trees).all()
        assert np.corrcoef(trees, optimal)[0, 1] > 0.7
        assert abs(np.corrcoef(np.roll(trees, 1), optimal)[0, 1]) < 0.4  # so the order matters

    def test_taillards_test_sets_are_his(self):
        sizes = [(15, 15), (20, 15), (20, 20), (30, 15), (30, 20), (50, 15), (50, 20), (100, 20)]
        assert list(STANDARD["jssp"]) == [f"taillard-{jobs}x{machines}" for jobs, machines in sizes]
        given = STANDARD["jssp"]["taillard-15x15"].generate().arrays
        assert given["times"].shape == (10, 15, 15)
        assert given["times"][0, 0].tolist() == [94, 66, 10, 53, 26, 15, 65, 82, 10, 27, 93, 92, 96, 70, 83]
        assert (given["machines"][0, 0] + 1).tolist() == [7, 13, 5, 8, 4, 3, 11, 12, 9, 15, 10, 14, 6, 1, 2]
        assert len(STANDARD["jssp"]["taillard-100x20"].generate()) == 10

    def test_the_cvrp_test_sets_have_the_papers_sizes_and_capacities(self):
        for customers, capacity in {100: 50, 200: 80, 500: 100, 1000: 250}.items():
            recipe = STANDARD["cvrp"][f"cvrp{customers}"]
            assert (recipe.customers, recipe.capacity) == (customers, capacity)
        given = STANDARD["cvrp"]["cvrp200"].generate().arrays
        assert given["nodes"].shape == (128, 201, 2)
        assert (given["capacity"] == 80).all()
        assert np.unique(given["demands"][:, 1:]).tolist() == list(range(1, 10))
        assert (given["demands"][:, 0] == 0).all()

    @pytest.mark.parametrize("name", RECIPES)
    def test_a_recipe_gives_the_same_instances_every_time(self, name):
        assert RECIPES[name].generate().digest == RECIPES[name].generate().digest

    def test_capacities_come_from_their_whole_range(self):
        capacity = CVRPGenerator(3, (20, 23), 200).generate().arrays["capacity"]
        assert set(capacity.tolist()) == {20, 21, 22, 23}

    @pytest.mark.parametrize(
        ("recipe", "wrong"),
        [
            (TSPGenerator, {"cities": 2}),
            (TSPGenerator, {"count": 0}),
            (TSPGenerator, {"seed": -1}),
            (CVRPGenerator, {"customers": 0}),
            (CVRPGenerator, {"capacity": 8}),
            (CVRPGenerator, {"capacity": (30, 20)}),
            (JSSPGenerator, {"jobs": 0}),
            (JSSPGenerator, {"machines": 0}),
        ],
    )
    def test_settings_out_of_range_are_named(self, recipe, wrong):
        with pytest.raises(SettingsError, match=next(iter(wrong))):
            recipe(**wrong)


class TestCommand:
    def test_options_and_the_name_of_a_standard_set_give_the_same_file(self, tmp_path):
        by_name, by_options = tmp_path / "a.npz", tmp_path / "b.npz"
        assert main(["generate", "tsp", "--standard", "tsp200", "--out", str(by_name)]) == 0
        options = ["--cities", "200", "--count", "128", "--seed", "777"]
        assert main(["generate", "tsp", *options, "--out", str(by_options)]) == 0
        assert by_name.read_bytes() == by_options.read_bytes()

    def test_every_problem_has_its_options(self, tmp_path):
        wanted = {
            "tsp-lehd": (["--cities", "7"], (3, 7, 2)),
            "cvrp": (["--customers", "7", "--capacity", "20", "30"], (3, 8, 2)),
            "jssp": (["--jobs", "4", "--machines", "5"], (3, 4, 5)),
        }
        for name, (options, shape) in wanted.items():
            path = tmp_path / f"{name}.npz"
            assert main(["generate", name, *options, "--count", "3", "--seed", "5", "--out", str(path)]) == 0
            assert next(iter(read_instances(path).arrays.values())).shape == shape

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["gomoku", "--out", "a.npz"], "no instance files for `gomoku`"),
            (["tsp", "--standard", "tsp7", "--out", "a.npz"], "must be one of tsp20, tsp50"),
            (["tsp", "--standard", "tsp20", "--cities", "7", "--out", "a.npz"], "leave out the other options"),
            (["tsp", "--cities", "5", "--count", "2", "--out", "a.txt"], "must end in .npz"),
        ],
    )
    def test_mistakes_get_one_clear_line(self, arguments, message, capsys, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert main(["generate", *arguments]) == 2
        error = " ".join(capsys.readouterr().err.split())
        assert message in error
        assert "Traceback" not in error
        assert list(tmp_path.iterdir()) == []

    def test_an_existing_file_is_not_overwritten(self, tsp_file, capsys):
        before = tsp_file.read_bytes()
        assert main(["generate", "tsp", "--out", str(tsp_file)]) == 2
        assert "exists already" in capsys.readouterr().err
        assert tsp_file.read_bytes() == before


class TestMixture:
    def test_each_call_generates_one_of_the_sizes_and_all_come_up(self):
        mixture, generator = AnyOf((JSSP(3, 2), JSSP(3, 4))), seeded(0)
        shapes = [tuple(mixture.generate(2, generator=generator).times.shape) for _ in range(20)]
        assert set(shapes) == {(2, 3, 2), (2, 3, 4)}

    def test_everything_else_works_for_all_sizes(self):
        mixture = AnyOf((JSSP(3, 2), JSSP(2, 4)))
        for problem in mixture.problems:
            state = problem.generate(4, generator=seeded(1))
            actions = random_actions(mixture, state, seeded(2))
            assert actions.shape[1] == problem.horizon(state) == mixture.horizon(state)
            example = mixture.examples(state, actions, generator=seeded(3))
            assert bool(mixture.mask(example.state).gather(1, example.action[:, None]).all())
            assert torch.equal(mixture.key(state), problem.key(state))
        assert mixture.dead_end_objective is None

    def test_only_variants_of_one_problem_can_be_mixed(self):
        with pytest.raises(SettingsError, match="CVRP and TSP"):
            AnyOf((TSP(5), CVRP(5)))
        with pytest.raises(SettingsError, match="at least one"):
            AnyOf(())


def test_every_kind_has_a_recipe_standard_sets_and_solvers():
    from kits import RECIPES as ALL
    from kits import SOLVERS

    assert list(KINDS) == list(ALL) == list(STANDARD) == list(SOLVERS)
