"""Active schedules: choices that lead to all of them, each once, and policies that make no others."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from routing import random_actions, seeded

from gumbeldore import TrainingSettings
from gumbeldore.errors import ContractError
from gumbeldore.local_search import compiling
from gumbeldore.policies import JSSPPolicy
from gumbeldore.problem import Examples, replay
from gumbeldore.problems import JSSP, JSSPState
from gumbeldore.problems.intervals import Interval
from gumbeldore.problems.jssp.active import ActiveSchedules, active_jobs, active_order
from gumbeldore.problems.jssp.verify import build_schedule
from gumbeldore.search.samplers import BeamSearch, Greedy, StochasticBeamSearch
from gumbeldore.training import imitate, self_improve
from gumbeldore.training.dataset import Dataset, Group
from gumbeldore.training.loss import losses

Schedule = frozenset[Interval]


def schedule(state: JSSPState, row: int, sequence: tuple[int, ...]) -> Schedule:
    return frozenset(build_schedule(state.times[row].tolist(), state.machines[row].tolist(), list(sequence)))


def is_active(intervals: Schedule) -> bool:
    """By the definition: no operation fits into an earlier gap of its machine."""
    end = {(each.job, each.operation): each.end for each in intervals}
    for each in intervals:
        ready = end.get((each.job, each.operation - 1), 0)
        others = sorted((o.start, o.end) for o in intervals if o.machine == each.machine and o != each)
        gaps = zip([0, *(o[1] for o in others)], [o[0] for o in others], strict=False)
        length = each.end - each.start
        if any(max(ready, begin) < each.start and max(ready, begin) + length <= until for begin, until in gaps):
            return False
    return True


def all_sequences(jobs: int, operations: int) -> list[tuple[int, ...]]:
    return sorted(set(itertools.permutations([job for job in range(jobs) for _ in range(operations)])))


def is_chosen(problem: JSSP, state: JSSPState, row: int, sequence: tuple[int, ...]) -> bool:
    one = state.rows(torch.tensor([row]))
    for job in sequence:
        if not bool(active_jobs(one)[0, job]):
            return False
        one = problem.step(one, torch.tensor([job]))
    return True


@pytest.mark.parametrize(("jobs", "machines"), [(2, 2), (3, 2), (2, 3), (4, 1)])
def test_choices_lead_to_every_active_schedule_and_to_each_only_once(jobs: int, machines: int) -> None:
    problem = JSSP(jobs, machines)
    state = problem.generate(4, generator=seeded(jobs))
    for row in range(4):
        sequences = all_sequences(jobs, machines)
        chosen = [schedule(state, row, each) for each in sequences if is_chosen(problem, state, row, each)]
        assert len(set(chosen)) == len(chosen)
        assert set(chosen) == {made for each in sequences if is_active(made := schedule(state, row, each))}


def test_the_best_schedule_of_all_is_among_the_active_ones() -> None:
    problem = JSSP(3, 2)
    state = problem.generate(10, generator=seeded(7))
    for row in range(10):
        ends = {each: max(i.end for i in schedule(state, row, each)) for each in all_sequences(3, 2)}
        assert min(ends.values()) == min(end for each, end in ends.items() if is_chosen(problem, state, row, each))


def test_of_equally_early_ends_the_first_machine_decides_whatever_the_order_of_jobs() -> None:
    problem = JSSP(2, 2)
    state = problem.instances(torch.full((1, 2, 2), 5), torch.tensor([[[1, 0], [0, 1]]]))
    assert active_jobs(state).tolist() == [[False, True]]


def test_something_may_always_come_next_until_a_row_is_done() -> None:
    problem = JSSP(4, 3)
    state = problem.generate(20, generator=seeded(0))
    real = problem.instances(state.times.double() / 7 * (state.times % 3 > 0), state.machines)  # some take no time
    for steps in range(13):
        some = replay(problem, real, random_actions(problem, real, seeded(1)), torch.full((20,), steps))
        assert bool((active_jobs(some) <= some.unfinished).all())
        assert bool((active_jobs(some).any(1) == ~problem.done(some)).all())


@pytest.mark.skipif(not compiling.available(), reason="local search is not compiled")
@pytest.mark.parametrize("kept", [0, 5, 17])
def test_polished_schedules_are_active_and_written_by_their_choices(kept: int) -> None:
    problem = JSSP(6, 5)
    state = problem.generate(20, generator=seeded(3))
    times = torch.where(
        torch.arange(20)[:, None, None] < 10, state.times, state.times % 3
    )  # ties, and operations that take no time
    state = problem.instances(times, state.machines)
    better = problem.local_search(state, random_actions(problem, state, seeded(4)), effort=3, seeds=torch.arange(20), kept=kept)
    after = replay(problem, state, better, torch.full((20,), kept))
    for job in better[:, kept:].unbind(1):
        assert bool(active_jobs(after).gather(1, job[:, None]).all())
        after = problem.step(after, job)
    if kept == 0:
        assert all(is_active(schedule(state, row, tuple(better[row].tolist()))) for row in range(10))


@pytest.mark.skipif(not compiling.available(), reason="local search is not compiled")
def test_schedules_are_made_active_the_same_way_by_either_code() -> None:
    problem = JSSP(6, 5)
    state = problem.generate(30, generator=seeded(5))
    times = torch.where(torch.arange(30)[:, None, None] < 15, state.times, state.times % 3)
    state = problem.instances(times, state.machines)
    actions = random_actions(problem, state, seeded(6))
    assert torch.equal(active_order(state, actions), problem.local_search(state, actions, effort=0, seeds=torch.arange(30)))


def test_a_policy_of_active_schedules_imitates_labels_in_any_order() -> None:
    problem, policy = JSSP(3, 3), made()
    state = problem.generate(4, generator=seeded(8))
    labels = Dataset([Group(state, random_actions(problem, state, seeded(9)))])
    settings = TrainingSettings(epochs=1, batches=4, batch_size=8, learning_rate=1e-3)
    (epoch,) = imitate(problem, policy, labels, validation=state, settings=settings)
    assert epoch.loss < 3
    unordered = labels.sample(problem, 64, seeded(0))
    outside = ~active_jobs(unordered.state).gather(1, unordered.action[:, None]).squeeze(1)
    assert 0 < int(outside.sum()) < 64
    wanted, _ = losses(problem, policy, unordered)  # what the policy cannot do, it does not learn
    assert not bool(wanted[outside].any())


def made(active: bool = True, successor_weight: float = 0.0) -> JSSPPolicy:
    torch.manual_seed(0)
    actions = ActiveSchedules() if active else None
    policy = JSSPPolicy(16, 1, 2, 32, actions=actions, successor_weight=successor_weight)
    with torch.no_grad():
        for block in policy.blocks:
            block.resweight.fill_(0.5)
    return policy.eval()


class Counting:
    """Counts the rows that a policy is given, and keeps its action space."""

    def __init__(self, policy: JSSPPolicy) -> None:
        self.policy, self.prepare, self.mask, self.rows = policy, policy.prepare, policy.mask, 0

    def __call__(self, state: JSSPState, context: Any) -> torch.Tensor:
        self.rows += state.row_count
        return self.policy(state, context)


def test_a_policy_of_active_schedules_is_the_other_one_where_it_may_choose() -> None:
    problem = JSSP(5, 4)
    state = problem.generate(30, generator=seeded(0))
    some = replay(problem, state, random_actions(problem, state, seeded(1)), torch.arange(30) % 20)
    plain, active = made(False), made()
    assert torch.equal(plain(some), active(some))
    assert plain.mask(some) is None
    may = active.mask(some)
    assert may is not None
    assert torch.equal(may, active_jobs(some))
    assert 0 < int((may.sum(1) > 1).sum()) < 30


def test_searches_find_all_active_schedules_if_asked_and_no_others() -> None:
    problem, policy = JSSP(3, 2), made()
    state = problem.generate(6, generator=seeded(2))
    greedy = Greedy()(problem, policy, state, seeds=torch.zeros(6, dtype=torch.long))
    every = StochasticBeamSearch(90)(problem, policy, state, seeds=torch.zeros(6, dtype=torch.long))
    for row in range(6):
        assert is_active(schedule(state, row, tuple(greedy.best_actions[row].tolist())))
        found = {tuple(each) for each in every.actions[row][every.filled[row]].tolist()}
        assert found == {each for each in all_sequences(3, 2) if is_chosen(problem, state, row, each)}
        assert every.log_prob[row][every.filled[row]].exp().sum().item() == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("augmentations", [1, 2])
def test_rows_without_a_choice_cost_no_evaluation_and_counts_are_those_of_the_policy(augmentations: int) -> None:
    problem, policy = JSSP(4, 3), Counting(made())
    state = problem.generate(6, generator=seeded(3))
    sampler = BeamSearch(8, augmentations=augmentations)
    found = sampler(problem, policy, state, seeds=torch.zeros(6, dtype=torch.long))
    plain = sampler(problem, made(False), state, seeds=torch.zeros(6, dtype=torch.long))
    assert int(found.diagnostics.evaluations.sum()) == policy.rows
    assert policy.rows < int(plain.diagnostics.evaluations.sum())
    for row in range(6):
        assert is_active(schedule(state, row, tuple(found.best_actions[row].tolist()))) or augmentations > 1


def test_an_action_space_that_leaves_nothing_is_named() -> None:
    problem, policy = JSSP(3, 2), made()
    policy.mask = lambda state: torch.zeros_like(state.unfinished)  # type: ignore[method-assign]
    with pytest.raises(ContractError, match=r"`JSSPPolicy.mask` allows no action in 4 rows"):
        Greedy()(problem, policy, problem.generate(4, generator=seeded(0)), seeds=torch.zeros(4, dtype=torch.long))


@pytest.mark.parametrize(("jobs", "machines", "part_size"), [(15, 15, 8), (1, 5, 4), (6, 6, 4)])
def test_a_part_of_a_gradient_step_may_hold_no_decision(jobs: int, machines: int, part_size: int) -> None:
    problem, policy = JSSP(jobs, machines), made(successor_weight=0.5)
    state = problem.generate(4, generator=seeded(1))
    settings = TrainingSettings(epochs=1, instances=2, batches=12, batch_size=8, part_size=part_size, learning_rate=1e-3)
    (epoch,) = self_improve(problem, policy, Greedy(), validation=state, settings=settings)
    assert (epoch.loss == 0) == (jobs == 1)


def test_what_is_learnt_is_the_same_with_and_without_the_rows_that_have_no_choice() -> None:
    problem, policy = JSSP(4, 3), made(successor_weight=0.5)
    state = problem.generate(40, generator=seeded(0))
    actions = problem.local_search(state, random_actions(problem, state, seeded(1)), effort=1, seeds=torch.arange(40))
    examples = problem.examples(state, actions, generator=seeded(2))
    wanted, shown = losses(problem, policy, examples)
    forced = active_jobs(examples.state).sum(1) == 1
    assert 0 < int(forced.sum()) < 40
    assert not bool(wanted[forced].any())
    rows = (~forced).nonzero().squeeze(1)
    assert examples.successor is not None
    some = Examples(examples.state.rows(rows), examples.action[rows], examples.successor[rows])
    torch.testing.assert_close(losses(problem, policy, some)[0], wanted[rows], rtol=0, atol=1e-5)
    assert bool((shown[rows] < 50).all())
