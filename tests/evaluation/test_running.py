"""Every method on every set: nothing is computed twice, nothing wrong is taken over, and answers are the same in any number of processes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from kits import KITS

from gumbeldore.errors import ContractError, SettingsError
from gumbeldore.evaluation import BaselineMethod, Evaluation, NamedSet, PolicyMethod
from gumbeldore.evaluation.methods import Answer, Failure, Method
from gumbeldore.evaluation.report import BEST_FOUND
from gumbeldore.kits.solver import Limit, SolverError
from gumbeldore.policies import TSPPolicy
from gumbeldore.problems.tsp.instances import TSPGenerator
from gumbeldore.search.samplers import BeamSearch, Greedy, Gumbeldore, StochasticBeamSearch

TSP = KITS["tsp"]
NEAREST = BaselineMethod("nearest-neighbour", TSP.baselines["nearest-neighbour"])


def cities(count: int = 5, size: int = 7, seed: int = 1, name: str = "cities") -> NamedSet:
    return NamedSet.of(name, TSPGenerator(size, count, seed).generate())


def network(seed: int = 0) -> TSPPolicy:
    torch.manual_seed(seed)
    return TSPPolicy(d=8, layers=1, heads=2, ff=16)


@dataclass(frozen=True)
class Counting(Method):
    """Visits cities in a given manner and counts how many instances it was asked for."""

    name: str
    manner: str = "in order"
    random: bool = False
    asked: list[int] = field(default_factory=list)

    @property
    def identity(self):
        return {"manner": self.manner}

    def together(self, kit, given):
        return 2

    def item(self, kit, instances, seeds):
        return [len(given.arrays["coordinates"]) for given in instances], seeds

    def solve(self, item):
        sizes, seeds = item
        self.asked.extend(seeds)
        if self.manner == "fails":
            return [Failure("no time")] * len(sizes)
        if self.manner == "wrong":
            return [Answer((1, 1), 0.0)] * len(sizes)
        return [Answer(tuple(range(1, size)), 0.0) for size in sizes]


def finished(evaluation: Evaluation):
    steps = list(evaluation.run())
    assert not steps or steps[-1].done == steps[-1].total
    return evaluation.report()


def test_adding_methods_sets_and_instances_computes_only_what_is_new(tmp_path):
    first, second = Counting("first"), Counting("second", "also in order")
    finished(Evaluation(TSP, [cities()], [first], tmp_path))
    assert len(first.asked) == 5
    finished(Evaluation(TSP, [cities()], [first, second], tmp_path))
    assert (len(first.asked), len(second.asked)) == (5, 5)
    finished(Evaluation(TSP, [cities(), cities(4, seed=2, name="more")], [first, second], tmp_path))
    assert (len(first.asked), len(second.asked)) == (9, 9)
    finished(Evaluation(TSP, [cities(3)], [first], tmp_path))
    assert len(first.asked) == 9


def test_methods_and_sets_with_equal_content_share_their_answers(tmp_path):
    one, other = Counting("one"), Counting("other")
    report = finished(Evaluation(TSP, [cities(), cities(name="again")], [one, other], tmp_path))
    assert len(one.asked) + len(other.asked) == 5
    assert len({row.cost for row in report.rows}) == 1


def test_only_methods_that_draw_at_random_are_repeated(tmp_path):
    fixed, drawn = Counting("fixed"), Counting("drawn", "at random", random=True)
    report = finished(Evaluation(TSP, [cities()], [fixed, drawn], tmp_path, repeats=3))
    assert (len(fixed.asked), len(drawn.asked)) == (5, 15)
    assert len(set(drawn.asked)) == 15
    assert [row.repeats for row in report.rows] == [1, 3]


def test_what_was_finished_before_an_interrupt_is_kept(tmp_path):
    method = Counting("first")
    run = Evaluation(TSP, [cities(10)], [method], tmp_path).run()
    next(run)
    run.close()
    done = len(method.asked)
    assert 0 < done < 10
    again = Evaluation(TSP, [cities(10)], [method], tmp_path)
    assert again.kept == done
    finished(again)
    assert len(method.asked) == 10


@pytest.mark.parametrize("damage", ["a letter", "cut off", "no header", "not text"])
def test_damaged_lines_are_computed_anew_with_a_message(tmp_path, damage):
    method = Counting("first")
    before = finished(Evaluation(TSP, [cities()], [method], tmp_path))
    (path,) = (tmp_path / "answers").iterdir()
    text = path.read_bytes()
    lines = text.splitlines(keepends=True)
    changed = {
        "a letter": b"".join([*lines[:2], lines[2].replace(b'"actions":[1,2', b'"actions":[2,1'), *lines[3:]]),
        "cut off": text[:-20],
        "no header": b"".join(lines[1:]),
        "not text": b"\xff\xfe\x00" + text,
    }[damage]
    assert changed != text
    path.write_bytes(changed)
    again = Evaluation(TSP, [cities()], [method], tmp_path)
    assert len(again.notes) == 1
    assert "damaged" in again.notes[0]
    assert finished(again).rows == before.rows
    lost = 1 if damage in ("a letter", "cut off") else 5
    assert len(method.asked) == 5 + lost
    assert Evaluation(TSP, [cities()], [method], tmp_path).notes == []


def test_a_line_with_a_right_checksum_but_a_wrong_solution_is_not_believed(tmp_path):
    from gumbeldore.evaluation.journal import _line

    method = Counting("first")
    finished(Evaluation(TSP, [cities()], [method], tmp_path))
    (path,) = (tmp_path / "answers").iterdir()
    header, first, *rest = path.read_text().splitlines(keepends=True)
    content = json.loads(first.rpartition(" ")[0])
    content["actions"] = [1, 1, 2, 3, 4, 5]
    path.write_text("".join([header, _line(content), *rest]))
    again = Evaluation(TSP, [cities()], [method], tmp_path)
    assert len(again.notes) == 1
    finished(again)
    assert len(method.asked) == 6


def test_changed_weights_settings_or_coordinates_are_another_method_or_instance(tmp_path):
    def kept(policy, sampler, named):
        evaluation = Evaluation(TSP, [named], [PolicyMethod("policy", policy, sampler)], tmp_path)
        list(evaluation.run())
        return evaluation.kept

    policy, sampler = network(), StochasticBeamSearch(2, 2)
    assert kept(policy, sampler, cities()) == 0
    assert kept(network(), StochasticBeamSearch(2, 2, memory=1 << 28), cities()) == 5
    assert kept(policy, StochasticBeamSearch(2, 2, nucleus=(0.9, 1.0)), cities()) == 0
    assert kept(policy, sampler, cities(seed=9)) == 0
    with torch.no_grad():
        next(policy.parameters()).view(-1)[0] += 1e-3
    assert kept(policy, sampler, cities()) == 0


def test_a_policys_answers_are_those_of_its_sampler_with_its_evaluations_and_rounds(tmp_path):
    named, policy = cities(4), network()
    methods = [PolicyMethod("greedy", policy, Greedy()), PolicyMethod("gd", policy, Gumbeldore(3, 3, sigma=0.5))]
    report = finished(Evaluation(TSP, [named], methods, tmp_path))
    state = TSPGenerator(7, 4, 1).generate().state()
    greedy = Greedy()(TSP.instances.problem, policy, state, generator=torch.Generator())
    assert report.rows[0].cost == pytest.approx(-greedy.best_objective.mean().item(), rel=1e-5)
    assert report.rows[0].evaluations == pytest.approx(greedy.diagnostics.evaluations.double().mean().item())
    one, three = report.curves
    assert (len(one.gap), len(three.gap)) == (1, 3)
    assert all(np.diff(three.gap) <= 0)
    assert all(np.diff(three.evaluations) > 0)
    assert three.gap[-1] == pytest.approx(report.rows[1].gap.mean)


def test_answers_do_not_depend_on_the_number_of_processes(tmp_path):
    methods = [PolicyMethod("wor", network(), StochasticBeamSearch(3, 2)), NEAREST]
    alone = Evaluation(TSP, [cities(4)], methods, tmp_path / "alone", repeats=2)
    both = Evaluation(TSP, [cities(4)], methods, tmp_path / "both", repeats=2)
    list(both.run(workers=2))
    expected = finished(alone)
    assert [row.cost for row in both.report().rows] == [row.cost for row in expected.rows]


def test_instances_of_different_sizes_make_one_set(tmp_path):
    mixed = NamedSet("mixed", (*cities(3, 5).instances, *cities(2, 9).instances, *cities(2, 5, 7).instances))
    report = finished(Evaluation(TSP, [mixed], [PolicyMethod("beam", network(), BeamSearch(2)), NEAREST], tmp_path))
    assert [row.instances for row in report.rows] == [7, 7]


def test_known_costs_are_the_reference_and_otherwise_the_best_found(tmp_path):
    instances = TSPGenerator(7, 5, 1).generate()
    known = NamedSet.of("known", instances, np.full(5, 2.0), "somebody")
    report = finished(Evaluation(TSP, [known, cities()], [NEAREST, Counting("in order")], tmp_path))
    assert {name: reference.source for name, reference in report.references.items()} == {
        "known": "somebody",
        "cities": BEST_FOUND.format("cost"),
    }
    assert report.rows[0].gap.mean == pytest.approx(report.rows[0].cost / 2 - 1)
    assert min(row.gap.mean for row in report.rows[2:]) >= 0
    assert report.rows[1].difference.mean == pytest.approx(report.rows[1].gap.mean - report.rows[0].gap.mean)
    labelled = instances.labelled([list(range(1, 7))] * 5, "me")
    assert NamedSet.of("labelled", labelled).known == pytest.approx(-labelled.labels.objective)


def test_a_method_without_an_answer_leaves_the_others_their_rows(tmp_path):
    report = finished(Evaluation(TSP, [cities()], [NEAREST, Counting("late", "fails")], tmp_path))
    assert report.rows[0].cost > 0
    assert "no answer to 5 of 5: no time" in report.rows[1].failure
    assert Evaluation(TSP, [cities()], [Counting("late", "fails")], tmp_path).kept == 0


def test_a_baselines_solver_error_is_such_a_failure():
    def solve(instance, limit, seed):
        raise SolverError("Give it more time.")

    baseline = type(NEAREST.baseline)("never ready", solve, limit=Limit(1.0))
    assert BaselineMethod("never", baseline).solve([({}, 0)]) == [Failure("Give it more time.")]


def test_an_infeasible_answer_is_an_error(tmp_path):
    with pytest.raises(ContractError, match=r"wrong gave an infeasible solution of cities\[0\]: city 1 is visited again"):
        list(Evaluation(TSP, [cities()], [Counting("wrong", "wrong")], tmp_path).run())


def test_what_makes_no_sense_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="`cities` occurs more than once"):
        Evaluation(TSP, [cities(), cities()], [NEAREST], tmp_path)
    with pytest.raises(SettingsError, match="at least one method"):
        Evaluation(TSP, [cities()], [], tmp_path)
    with pytest.raises(SettingsError, match="takes no limit"):
        BaselineMethod("nearest-neighbour:2s", NEAREST.baseline, Limit(2.0))
    with pytest.raises(SettingsError, match="only by work"):
        BaselineMethod("local-search:2s", replace(TSP.baselines["local-search"], clock=False), Limit(2.0))
    with pytest.raises(SettingsError, match="take all steps"):
        Evaluation(TSP, [cities()], [NEAREST], tmp_path).report()
    with pytest.raises(SettingsError, match="3 known costs"):
        NamedSet.of("few", TSPGenerator(7, 5, 1).generate(), np.ones(3))


def test_a_files_own_rule_counts_and_is_not_part_of_what_is_kept(tmp_path):
    file = Path(__file__).parents[1] / "data/instances/berlin52.tsp"
    named = NamedSet.read(TSP, file)
    report = finished(Evaluation(TSP, [named], [NEAREST], tmp_path))
    assert named.known == [7542]
    assert report.rows[0].cost == int(report.rows[0].cost)


def test_a_folder_of_files_is_a_set_and_solutions_beside_them_are_none():
    folder = Path(__file__).parents[1] / "data/instances"
    named = NamedSet.read(TSP, folder)
    assert {"berlin52", "att48", "ulysses16"} <= {given.name for given in named.instances}
    assert len(NamedSet.read(TSP, folder, first=2)) == 2
