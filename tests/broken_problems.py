"""Problems that are broken in one way each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from gumbeldore.problem import Examples, State, replay
from gumbeldore.problems.tsp import TSP, TSPState


class KeyedTSP(TSP):
    """The TSP with its transpositions: the cities visited and where one stands."""

    def key(self, state):
        cities = torch.arange(state.visited.shape[1])
        return torch.stack([(state.visited << cities).sum(1), state.current], 1)


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


@dataclass(frozen=True)
class ForgetfulState(TSPState):
    """A state with code of its own: it comes out of the constructor changed."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", self.length + 1)


class StateChangesOnTheWay(TSP):
    def generate(self, count, *, generator, device="cpu"):
        return ForgetfulState(**super().generate(count, generator=generator).tensors())


@dataclass(frozen=True)
class MisspeltState(State):
    per_instance: ClassVar[tuple[str, ...]] = ("coordinate",)
    coordinates: torch.Tensor


class StateNamesNoField(TSP):
    def generate(self, count, *, generator, device="cpu"):
        return MisspeltState(torch.arange(count), torch.rand(count, 2, generator=generator))
