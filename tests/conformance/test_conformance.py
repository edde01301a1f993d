"""The conformance check: silent for every problem of the library and the toys, and telling about every broken one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
import torch
from toys import DeadEndProblem, TreeProblem

from gumbeldore.conformance import check_problem
from gumbeldore.errors import ContractError, SettingsError
from gumbeldore.problem import Examples, Problem, State, replay
from gumbeldore.problems.gomoku import Gomoku
from gumbeldore.problems.tsp import TSP, TSPState

CITIES = 6


class KeyedTSP(TSP):
    """The TSP with its transpositions: the cities visited and where one stands."""

    def key(self, state):
        cities = torch.arange(state.visited.shape[1])
        return torch.stack([(state.visited << cities).sum(1), state.current], 1)


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


class IgnoresCount(TSP):
    def generate(self, count, *, generator, device="cpu"):
        return super().generate(10, generator=generator, device=device)


class GeneratesFromTheGlobalGenerator(TSP):
    def generate(self, count, *, generator, device="cpu"):
        return self.instances(torch.rand(count, self.cities, 2))


class GeneratesNoState(TSP):
    def generate(self, count, *, generator, device="cpu"):
        return torch.rand(count, self.cities, 2, generator=generator)


class StateWithoutRowAxis(TSP):
    def generate(self, count, *, generator, device="cpu"):
        return replace(super().generate(count, generator=generator), current=torch.tensor(0))


class StateTooShort(TSP):
    def generate(self, count, *, generator, device="cpu"):
        return replace(super().generate(count, generator=generator), length=torch.zeros(count + 1))


class InstancesNumberedFromOne(TSP):
    def generate(self, count, *, generator, device="cpu"):
        state = super().generate(count, generator=generator)
        return replace(state, instance=state.instance + 1)


class MaskInverted(TSP):
    def mask(self, state):
        return state.visited


class MaskOfNumbers(TSP):
    def mask(self, state):
        return (~state.visited).float()


class MaskOfOneRow(TSP):
    def mask(self, state):
        return ~state.visited[0]


class MaskEmptyTooEarly(TSP):
    def mask(self, state):
        return ~state.visited & (state.visited.sum(1, keepdim=True) < self.cities - 1)


class MaskModifiesTheState(TSP):
    def mask(self, state):
        return state.visited.logical_not_()


class MaskOfTheFirstInstance(TSP):
    """Nearest cities of a row's number instead of its instance."""

    def mask(self, state):
        gap = (state.coordinates[: state.row_count] - 0.5).square().sum(2)
        left = gap[: len(state.visited)].masked_fill(state.visited, torch.inf)
        return ~state.visited & (left <= left.amin(1, keepdim=True))


class DoneAsNumber(TSP):
    def done(self, state):
        return state.visited.sum(1)


class NeverDone(TSP):
    def done(self, state):
        return torch.zeros(state.row_count, dtype=torch.bool)


class DoneForAllAtOnce(TSP):
    """The first row decides for all: only rows that end at different depths show it."""

    def done(self, state):
        return super().done(state)[:1].expand(state.row_count)

    def step(self, state, action):
        two = (action % 2 == 0)[:, None]
        after = super().step(state, action)
        return replace(after, visited=after.visited | (two & torch.arange(self.cities).eq(self.cities - 1)))


class StepInPlace(TSP):
    def step(self, state, action):
        state.visited.scatter_(1, action[:, None], True)
        return replace(state, current=action)


class StepMixesRows(TSP):
    def step(self, state, action):
        after = super().step(state, action)
        return replace(after, length=after.length + 0.01 * action.double().mean() * ~self.done(state))


class StepTakesRowsForInstances(TSP):
    def step(self, state, action):
        after = super().step(state, action)
        gap = state.coordinates[torch.arange(state.row_count) % len(state.coordinates), 0, 0].double()
        return replace(after, length=torch.where(self.done(state), state.length, after.length + gap))


class StepCopiesTheInstances(TSP):
    def step(self, state, action):
        after = super().step(state, action)
        return replace(after, coordinates=state.coordinates[state.instance], instance=torch.arange(state.row_count))


class StepMovesTheCities(TSP):
    def step(self, state, action):
        return replace(super().step(state, action), coordinates=state.coordinates * 0.9)


class StepChangesTheDtype(TSP):
    def step(self, state, action):
        after = super().step(state, action)
        return replace(after, length=after.length.float())


class StepCountsFinishedRows(TSP):
    def step(self, state, action):
        return replace(super().step(state, action), length=state.length + 1)


class StepNeedsALegalAction(TSP):
    """A finished row goes wherever it is told."""

    def step(self, state, action):
        return replace(super().step(state, action), current=action)


class StepRandom(TSP):
    def step(self, state, action):
        after = super().step(state, action)
        return replace(after, length=torch.where(self.done(state), state.length, after.length + torch.rand(()).double()))


class StepRemembers(TSP):
    """Counts every other call on `self`, so that two calls in a row agree."""

    def step(self, state, action):
        calls = self.__dict__.get("calls", 0)
        self.__dict__["calls"] = calls + 1
        after = super().step(state, action)
        return replace(after, length=torch.where(self.done(state), state.length, after.length + calls // 2))


class StepFails(TSP):
    def step(self, state, action):
        return super().step(state, action[:64].view(64))


class HorizonTooShort(TSP):
    def horizon(self, state):
        return self.cities - 2


class HorizonTooShortInTheMiddle(TSP):
    def horizon(self, state):
        return super().horizon(state) if int(state.visited.sum(1).max()) == 1 else 1


class HorizonAsTensor(TSP):
    def horizon(self, state):
        return (~state.visited).sum(1).max()


class ObjectiveInfinite(TSP):
    def objective(self, state):
        return super().objective(state).masked_fill(state.instance == 3, -torch.inf)


class ObjectiveRandom(TSP):
    def objective(self, state):
        return torch.rand(state.row_count)


class ObjectiveOfIntegers(TSP):
    def objective(self, state):
        return super().objective(state).long()


class ObjectiveAgainstTheBest(TSP):
    def objective(self, state):
        return super().objective(state) / super().objective(state).max()


class ExamplesOfTheWrongAction(TSP):
    def examples(self, state, actions, *, generator):
        right = super().examples(state, actions, generator=generator)
        return Examples(right.state, right.state.current)


class ExamplesOfFinishedStates(TSP):
    def examples(self, state, actions, *, generator):
        steps = torch.full((state.row_count,), actions.shape[1])
        return Examples(replay(self, state, actions, steps), actions[:, -1])


class ExamplesFromTheGlobalGenerator(TSP):
    def examples(self, state, actions, *, generator):
        return super().examples(state, actions, generator=torch.default_generator)


class ExamplesOutsideTheActions(TSP):
    def examples(self, state, actions, *, generator):
        right = super().examples(state, actions, generator=generator)
        return Examples(right.state, right.action - self.cities)


class TooFewExamples(TSP):
    def examples(self, state, actions, *, generator):
        return super().examples(state.rows(slice(0, 2)), actions[:2], generator=generator)


class KeyOfNothing(TSP):
    def key(self, state):
        return torch.zeros(state.row_count, 2, dtype=torch.long)


class KeyWithoutThePlace(KeyedTSP):
    def key(self, state):
        return super().key(state)[:, :1].expand(-1, 2)


class KeyTooNarrow(KeyedTSP):
    def key(self, state):
        return super().key(state)[:, :1]


class KeyOfTheRowNumber(KeyedTSP):
    def key(self, state):
        return super().key(state) + torch.arange(state.row_count)[:, None]


class DeadEndInfinitelyBad(TSP):
    dead_end_objective: ClassVar[float | None] = float("-inf")


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


@dataclass(frozen=True)
class ForgetfulState(TSPState):
    """A state with code of its own: it comes out of the constructor changed."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", self.length + 1)


class StateChangesOnTheWay(TSP):
    def generate(self, count, *, generator, device="cpu"):
        return ForgetfulState(**super().generate(count, generator=generator).tensors())


def test_a_state_that_does_not_survive_selection_is_named(unchecked):
    with pytest.raises(ContractError, match=r"`ForgetfulState` that selecting all rows changes: the field `length`"):
        check_problem(StateChangesOnTheWay(cities=CITIES))


@dataclass(frozen=True)
class MisspeltState(State):
    per_instance: ClassVar[tuple[str, ...]] = ("coordinate",)
    coordinates: torch.Tensor


class StateNamesNoField(TSP):
    def generate(self, count, *, generator, device="cpu"):
        return MisspeltState(torch.arange(count), torch.rand(count, 2, generator=generator))


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
