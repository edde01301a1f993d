"""The conformance check: silent for every problem of the library and the toys, and telling about every broken one."""

from __future__ import annotations

import pytest
import torch
from broken_problems import (
    DeadEndInfinitelyBad,
    DoneAsNumber,
    DoneForAllAtOnce,
    ExamplesFromTheGlobalGenerator,
    ExamplesOfFinishedStates,
    ExamplesOfTheWrongAction,
    ExamplesOutsideTheActions,
    GeneratesFromTheGlobalGenerator,
    GeneratesNoState,
    HorizonAsTensor,
    HorizonTooShort,
    HorizonTooShortInTheMiddle,
    IgnoresCount,
    InstancesNumberedFromOne,
    KeyedTSP,
    KeyOfNothing,
    KeyOfTheRowNumber,
    KeyTooNarrow,
    KeyWithoutThePlace,
    MaskEmptyTooEarly,
    MaskInverted,
    MaskModifiesTheState,
    MaskOfNumbers,
    MaskOfOneRow,
    MaskOfTheFirstInstance,
    NeverDone,
    ObjectiveAgainstTheBest,
    ObjectiveInfinite,
    ObjectiveOfIntegers,
    ObjectiveRandom,
    StateChangesOnTheWay,
    StateNamesNoField,
    StateTooShort,
    StateWithoutRowAxis,
    StepChangesTheDtype,
    StepCopiesTheInstances,
    StepCountsFinishedRows,
    StepFails,
    StepInPlace,
    StepMixesRows,
    StepMovesTheCities,
    StepNeedsALegalAction,
    StepRandom,
    StepRemembers,
    StepTakesRowsForInstances,
    TooFewExamples,
)
from toys import DeadEndProblem, TreeProblem

from gumbeldore.conformance import check_problem
from gumbeldore.errors import ContractError, SettingsError
from gumbeldore.problem import Problem
from gumbeldore.problems.gomoku import Gomoku
from gumbeldore.problems.tsp import TSP

CITIES = 6


def problem_named(module: str, name: str, **settings: int) -> Problem:
    return getattr(pytest.importorskip(f"gumbeldore.problems.{module}"), name)(**settings)


@pytest.mark.parametrize(
    "make",
    [
        lambda: TSP(cities=3),
        lambda: TSP(cities=12),
        lambda: KeyedTSP(cities=CITIES),
        lambda: Gomoku(size=5),
        lambda: Gomoku(),
        lambda: TreeProblem(),
        lambda: DeadEndProblem(),
        lambda: problem_named("cvrp", "CVRP", customers=8),
        lambda: problem_named("jssp", "JSSP", jobs=4, machines=3),
    ],
    ids=["TSP3", "TSP12", "TSP with a key", "Gomoku5", "Gomoku9", "tree", "tree with dead ends", "CVRP", "JSSP"],
)
def test_every_problem_keeps_the_contract(make):
    check_problem(make(), generator=torch.Generator().manual_seed(7), rows=24)


def test_the_defaults_of_the_check_will_do():
    check_problem(KeyedTSP(cities=CITIES))


# Problems broken in one way each: the method to blame, and words that name the fault


@pytest.mark.parametrize(
    ("broken", "blamed", "fault"),
    [
        (IgnoresCount, "generate", "returned 10 rows .* for a count of 1"),
        (GeneratesFromTheGlobalGenerator, "generate", "two results for equally seeded generators: the field `coordinates`"),
        (GeneratesNoState, "generate", "returned a Tensor"),
        (StateWithoutRowAxis, "generate", "field `current` is a tensor of shape"),
        (StateTooShort, "generate", "field `length` is a tensor of shape"),
        (InstancesNumberedFromOne, "generate", "`instance` of torch.int64 with values in 1 .. 1"),
        (MaskInverted, "mask", "is inverted"),
        (MaskOfNumbers, "mask", "torch.float32"),
        (MaskOfOneRow, "mask", r"returned a tensor of shape \(6,\)"),
        (MaskEmptyTooEarly, "mask", "allows no action in 64 rows that are not done"),
        (MaskModifiesTheState, "mask", "modified its input `state.visited`"),
        (MaskOfTheFirstInstance, "mask", "another result than in the whole batch"),
        (DoneAsNumber, "done", "torch.int64"),
        (NeverDone, "mask", "allows no action"),
        (DoneForAllAtOnce, "(done|mask)", "(another result than in the whole batch|allows no action)"),
        (StepInPlace, "step", "modified its input `state.visited`"),
        (StepMixesRows, "step", "another result than in the whole batch: the field `length`"),
        (StepTakesRowsForInstances, "step", "another result than in the whole batch: the field `length`"),
        (StepCopiesTheInstances, "step", "`(coordinates|instance)`"),
        (StepMovesTheCities, "step", "changed the field `coordinates`, which belongs to the instance"),
        (StepChangesTheDtype, "step", "turned the field `length`"),
        (StepCountsFinishedRows, "step", "changed finished rows: the field `length`"),
        (StepNeedsALegalAction, "step", "changed finished rows: the field `current`"),
        (StepRandom, "step", "two results for the same input: the field `length`"),
        (StepRemembers, "step", "with the same actions|another result"),
        (StepFails, "step", "raised RuntimeError"),
        (HorizonTooShort, "horizon", "promised at most 4 steps, but 64 rows are not done"),
        (HorizonTooShortInTheMiddle, "horizon", "promises 1 steps at depth 1, where a roll-out took 4 more"),
        (HorizonAsTensor, "horizon", "returned tensor"),
        (ObjectiveInfinite, "objective", "is -inf for a finished row"),
        (ObjectiveRandom, "objective", "two results for the same input"),
        (ObjectiveOfIntegers, "objective", "torch.int64"),
        (ObjectiveAgainstTheBest, "objective", "another result than in the whole batch"),
        (ExamplesOfTheWrongAction, "examples", "returned the target .* which `mask` forbids"),
        (ExamplesOfFinishedStates, "examples", "returned a state that is done"),
        (ExamplesFromTheGlobalGenerator, "examples", "two results for equally seeded generators"),
        (ExamplesOutsideTheActions, "examples", "returned the target -"),
        (TooFewExamples, "examples", "returned actions as a tensor of shape"),
        (KeyOfNothing, "key", "masks or ends differ"),
        (KeyWithoutThePlace, "key", "rewards differ"),
        (KeyTooNarrow, "key", r"returned a tensor of shape \(64, 1\)"),
        (KeyOfTheRowNumber, "key", "another result than in the whole batch"),
        (DeadEndInfinitelyBad, "dead_end_objective", "is -inf"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_broken_problem_is_named_with_its_method_its_fault_and_a_fix(unchecked, broken, blamed, fault):
    with pytest.raises(ContractError, match=rf"`{broken.__name__}\.{blamed}` .*({fault})") as caught:
        check_problem(broken(cities=CITIES))
    assert len(str(caught.value).split("). ")[-1]) > 20  # the fix


def test_a_state_that_does_not_survive_selection_is_named(unchecked):
    with pytest.raises(ContractError, match=r"`ForgetfulState` that selecting all rows changes: the field `length`"):
        check_problem(StateChangesOnTheWay(cities=CITIES))


def test_a_per_instance_name_that_is_no_field_is_named(unchecked):
    with pytest.raises(ContractError, match="without the field `coordinate`"):
        check_problem(StateNamesNoField(cities=CITIES))


def test_dead_ends_need_an_objective(unchecked):
    class Undeclared(DeadEndProblem):
        dead_end_objective = None

        def generate(self, count, *, generator, device="cpu"):
            from toys import random_trees

            return random_trees(count, 3, 3, generator=generator, dead=0.5)

    with pytest.raises(ContractError, match=r"Undeclared.mask. allows no action .* set `dead_end_objective`"):
        check_problem(Undeclared())
    Undeclared.dead_end_objective = -7.0
    check_problem(Undeclared())


def test_the_check_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    check_problem(TSP(cities=4), rows=4)
    assert torch.equal(torch.get_rng_state(), before)


def test_settings_of_the_check_are_checked(unchecked):
    with pytest.raises(SettingsError, match="`rows` must be an integer of at least 2, got 1"):
        check_problem(TSP(cities=4), rows=1)
    with pytest.raises(SettingsError, match="subclass of `Problem`"):
        check_problem(lambda: None)  # type: ignore[arg-type]
