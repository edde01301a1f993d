"""The checks, each of one promise of the contract in `problem.py`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Generic

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from gumbeldore.conformance.checked import CheckedProblem, difference, form, progress, random_integers, random_legal, same
from gumbeldore.errors import ContractError
from gumbeldore.problem import Examples, Problem, S, check_weightless, replay

_MAX_LEVELS = 8
"""Depths of a roll-out at which the costlier checks are made."""


@dataclass(frozen=True)
class RollOut(Generic[S]):
    """A random roll-out: the states by depth, the actions taken (-1 after the end), and where it ended in a dead end."""

    levels: list[S]
    actions: Int[Tensor, "row depth"]
    dead: Bool[Tensor, " row"]

    @property
    def lengths(self) -> Int[Tensor, " row"]:
        return (self.actions >= 0).sum(1)

    @property
    def some_levels(self) -> list[S]:
        """At most `_MAX_LEVELS` of the levels, the first and the last among them."""
        last = len(self.levels) - 1
        return [self.levels[i] for i in sorted({round(last * k / (_MAX_LEVELS - 1)) for k in range(_MAX_LEVELS)})]


def check_dead_end_objective(checked: CheckedProblem[S]) -> None:
    value = checked.problem.dead_end_objective
    if value is not None and not math.isfinite(value):
        raise checked.fault("dead_end_objective", f"is {value}", "Set it to the finite worst value of the problem, or None.")


def check_generate(checked: CheckedProblem[S], rows: int, generator: torch.Generator) -> S:
    """`generate` honours `count`, numbers its instances and is reproducible. Returns the instances to go on with."""
    seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))

    def generated(count: int) -> S:
        return checked.generate(count, generator=torch.Generator(generator.device).manual_seed(seed), device=generator.device)

    for count in (1, 3, rows):
        state = generated(count)
        if state.row_count != count or not torch.equal(state.instance, torch.arange(count, device=state.device)):
            raise checked.fault(
                "generate",
                f"returned {state.row_count} rows of the instances {state.instance.tolist()[:8]} for a count of {count}",
                "Return `count` rows, row i of instance i: `instance=torch.arange(count)`.",
            )
        if state.device.type != generator.device.type:
            raise checked.fault("generate", f"put its state on {state.device}", "Use the argument `device`.")
    first, second = generated(rows), generated(rows)
    if not same(first, second):
        raise checked.fault(
            "generate",
            f"gave two results for equally seeded generators{difference(first, second)}",
            "Draw all random numbers with the argument `generator`, none from the global one.",
        )
    return first


def check_state(checked: CheckedProblem[S], state: S) -> None:
    """Selecting, compacting, reconstruction and joining states loses nothing. `state` has one instance per row."""
    kind, half = type(state), state.row_count // 2
    halves = [state.rows(slice(0, half)).compact(), state.rows(slice(half, state.row_count)).compact()]
    journeys = {
        "selecting all rows": state.rows(torch.arange(state.row_count, device=state.device)),
        "`compact`": state.compact(),
        "reconstruction it from `tensors`": kind(**state.tensors()),
        "joining its two halves with `concatenate`": kind.concatenate(halves),
    }
    for journey, result in journeys.items():
        if not same(state, result):
            raise checked.fault(
                "generate",
                f"returned a `{kind.__name__}` that {journey} changes{difference(state, result)}",
                "A state is a frozen dataclass of tensors without code of its own; fields with an instance axis are in `per_instance`.",
            )


def roll_out(checked: CheckedProblem[S], initial: S, generator: torch.Generator) -> RollOut[S]:
    """Random allowed actions until every row is done. Finished rows get random actions too and must ignore them."""
    state, levels = initial, [initial]
    taken: list[Tensor] = []
    steps = checked.horizon(initial)
    with checked.when("in a random roll-out"):
        while True:
            done, mask = checked.done(state), checked.mask(state)
            stuck = ~done & ~mask.any(1)
            if checked.problem.dead_end_objective is None and bool(stuck.any()):
                raise _no_action(checked, initial, steps, stuck)
            open_ = ~(done | stuck)
            if not bool(open_.any()):
                break
            if len(taken) >= steps:
                raise _not_ended(checked, initial, steps, open_)
            any_action = random_integers(mask.shape[:1], generator, state.device, below=mask.shape[1])
            action = torch.where(done, any_action, random_legal(mask, generator))
            after = checked.step(state, action)
            _require_same_rows(checked, state, after, done)
            state = after.where(~stuck, state)
            taken.append(action.where(open_, -1))
            levels.append(state)
    _check_objective(checked, state, done)
    actions = torch.stack(taken, 1) if taken else state.instance.new_empty(state.row_count, 0)
    return RollOut(levels, actions, stuck)


def _no_action(checked: CheckedProblem[S], initial: S, steps: int, stuck: Bool[Tensor, " row"]) -> ContractError:
    if bool(stuck.all()) and _ends_with_inverted_mask(checked.problem, initial, steps):
        return _inverted(checked)
    return checked.fault(
        "mask",
        f"allows no action in {int(stuck.sum())} rows that are not done",
        "Every unfinished row needs an action (True = allowed); if dead ends are part of the problem, set `dead_end_objective`.",
    )


def _not_ended(checked: CheckedProblem[S], initial: S, steps: int, open_: Bool[Tensor, " row"]) -> ContractError:
    if bool(open_.all()) and _ends_with_inverted_mask(checked.problem, initial, steps):
        return _inverted(checked)
    return checked.fault(
        "horizon",
        f"promised at most {steps} steps, but {int(open_.sum())} rows are not done after them",
        "It must be an upper bound; or `done` never becomes True, or `mask` allows what leads nowhere.",
    )


def _inverted(checked: CheckedProblem[S]) -> ContractError:
    return checked.fault(
        "mask", "is inverted: roll-outs end only with the actions it forbids", "True must mean that an action is allowed."
    )


def _ends_with_inverted_mask(problem: Problem[S], state: S, steps: int) -> bool:
    """Whether roll-outs with the forbidden actions come to a proper end."""
    generator = torch.Generator(state.device).manual_seed(0)
    try:
        for _ in range(steps):
            state = problem.step(state, random_legal(~problem.mask(state), generator))
        return bool((problem.done(state) & problem.objective(state).isfinite()).all())
    except Exception:
        return False


def _check_objective(checked: CheckedProblem[S], state: S, done: Bool[Tensor, " row"]) -> None:
    value = checked.objective(state)[done]
    if not bool(value.isfinite().all()):
        raise checked.fault(
            "objective",
            f"is {value[~value.isfinite()][0].item()} for a finished row",
            "Return finite numbers for finished rows.",
        )


def check_horizon(checked: CheckedProblem[S], run: RollOut[S]) -> None:
    """At every depth the horizon covers what the roll-out still needed."""
    for depth, state in enumerate(run.levels):
        needed, promised = len(run.levels) - 1 - depth, checked.horizon(state)
        if promised < needed:
            raise checked.fault(
                "horizon",
                f"promises {promised} steps at depth {depth}, where a roll-out took {needed} more",
                "It must be an upper bound for all rows of any state, also in the middle of a solution.",
            )


def check_finished_rows(checked: CheckedProblem[S], state: S) -> None:
    """Finished rows step to themselves, whatever the action."""
    actions = checked.mask(state).shape[1]
    finished = state.rows(checked.done(state).nonzero().squeeze(1))
    for action in sorted({0, actions // 2, actions - 1}):
        after = checked.step(finished, torch.full_like(finished.instance, action))
        _require_same_rows(checked, finished, after, checked.done(finished))


def _require_same_rows(checked: CheckedProblem[S], before: S, after: S, done: Bool[Tensor, " row"]) -> None:
    rows = done.nonzero().squeeze(1)
    if not same(before.rows(rows), after.rows(rows)):
        raise checked.fault(
            "step",
            f"changed finished rows{difference(before.rows(rows), after.rows(rows))}",
            "A finished row must step to itself whatever the action: guard every field with `torch.where(self.done(state), ...)`.",
        )


def check_rows(checked: CheckedProblem[S], run: RollOut[S], generator: torch.Generator) -> None:
    """A row's results do not depend on its place, on the other rows, or on whether it shares its instance."""
    for state in run.some_levels:
        rows = state.row_count
        selections = {
            "on the rows in reverse order": torch.arange(rows, device=state.device).flip(0),
            "on a random selection of rows with repeats": random_integers((rows,), generator, state.device, below=rows),
            "on a single row": torch.arange(rows - 1, rows, device=state.device),
        }
        stuck = ~checked.done(state) & ~checked.mask(state).any(1)
        action = random_legal(checked.mask(state), generator)
        after = checked.step(state, action).where(~stuck, state)
        for situation, index in selections.items():
            with checked.when(situation):
                _compare_rows(checked, state, state.rows(index), action, after, index)
            with checked.when(f"{situation}, after `State.compact`"):
                _compare_rows(checked, state, state.rows(index).compact(), action, after, index)


def _compare_rows(
    checked: CheckedProblem[S],
    state: S,
    part: S,
    action: Int[Tensor, " row"],
    after: S,
    index: Int[Tensor, " selected"],
) -> None:
    """All methods agree on `part`, which are the rows `index` of `state`."""
    done, mask = checked.done(state)[index], checked.mask(state)[index]
    stuck = ~done & ~mask.any(1)
    key, part_key = checked.key(state), checked.key(part)
    pairs = {
        "done": (done, checked.done(part)),
        "mask": (mask[~done], checked.mask(part)[~done]),
        "objective": (checked.objective(state)[index][done], checked.objective(part)[done]),
        "key": (key if key is None else key[index], part_key),
        "step": (progress(after.rows(index)), progress(checked.step(part, action[index]).where(~stuck, part))),
    }
    for method, (expected, got) in pairs.items():
        if not same(expected, got, exact=False):
            raise checked.fault(
                method,
                f"gives rows another result than in the whole batch{difference(expected, got)}",
                "Compute each row from its own data only; index per-instance fields with `state.instance`, not by row number.",
            )


def check_weights(checked: CheckedProblem[S], run: RollOut[S]) -> None:
    """Neither the problem nor its states depend on weights that are to be trained."""
    for state in run.levels:
        check_weightless(checked.problem, state)


def check_replay(checked: CheckedProblem[S], run: RollOut[S], generator: torch.Generator) -> None:
    """The same actions lead to the same states again, to the end and part of the way."""
    lengths = run.lengths
    share = torch.rand(len(lengths), generator=generator, device=generator.device).to(lengths.device)
    for steps in (lengths, (share * (lengths + 1)).long()):
        expected = run.levels[0]
        for depth, level in enumerate(run.levels):
            expected = level.where(steps == depth, expected)
        with checked.when("when a roll-out is replayed"):
            again = replay(checked, run.levels[0], run.actions, steps) if len(steps) else expected
            if not same(expected, again, exact=False):
                raise checked.fault(
                    "step",
                    f"led to another state than before with the same actions{difference(expected, again)}",
                    "It must depend on `state` and `action` only: keep nothing on `self`.",
                )


def check_examples(checked: CheckedProblem[S], run: RollOut[S], generator: torch.Generator) -> None:
    """Targets are allowed actions in unfinished states; rows may repeat and share instances, as in a dataset."""
    solved = (~run.dead & (run.lengths > 0)).nonzero().squeeze(1)
    if len(solved) == 0:
        return
    for _ in range(_MAX_LEVELS):
        index = solved[random_integers((len(run.dead),), generator, solved.device, below=len(solved))]
        seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))

        def drawn(index: Tensor = index, seed: int = seed) -> Any:
            seeded = torch.Generator(generator.device).manual_seed(seed)
            return checked.examples(run.levels[0].rows(index), run.actions[index], generator=seeded)

        with checked.when("on solved instances"):
            _check_example(checked, drawn(), drawn(), len(index))


def _check_example(checked: CheckedProblem[S], examples: Any, again: Any, count: int) -> None:
    if not isinstance(examples, Examples):
        raise checked.fault("examples", f"returned a {type(examples).__name__}", "Return `Examples(state, action)`.")
    checked.check_layout("examples", examples.state)
    action = examples.action
    if not isinstance(action, Tensor) or action.shape != (count,) or action.dtype != torch.int64:
        raise checked.fault(
            "examples", f"returned actions as {form(action)}", f"One int64 action for each of the {count} solutions is needed."
        )
    if examples.state.row_count != count:
        raise checked.fault("examples", f"returned {examples.state.row_count} states", f"Return one per solution: {count}.")
    if not (same(examples.state, again.state) and same(action, again.action)):
        raise checked.fault(
            "examples",
            "gave two results for equally seeded generators",
            "Draw all random numbers with the argument `generator`.",
        )
    if bool(checked.done(examples.state).any()):
        raise checked.fault(
            "examples", "returned a state that is done", "Stop before the last action: there must be something to predict."
        )
    mask = checked.mask(examples.state)
    inside = (action >= 0) & (action < mask.shape[1])
    legal = inside & mask.gather(1, action.clamp(0, mask.shape[1] - 1)[:, None]).squeeze(1)
    if not bool(legal.all()):
        row = int((~legal).nonzero()[0])
        raise checked.fault(
            "examples",
            f"returned the target {int(action[row])} in row {row}, which `mask` forbids there",
            "The target must be the action that follows the example's state in the solution.",
        )
    checked.step(examples.state, action)
