"""The job shop: instances, transitions, keys and training examples."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from routing import Uniform, random_actions, seeded
from scipy import stats
from torch import Tensor

from gumbeldore.conformance import check_problem
from gumbeldore.errors import SettingsError
from gumbeldore.problem import replay
from gumbeldore.problems import JSSP, JSSPState
from gumbeldore.problems.jssp.verify import verify_jssp
from gumbeldore.problems.scheduling import occurrence
from gumbeldore.search.samplers import StochasticBeamSearch

P_VALUE = 1e-4
TINY = ([[3, 2], [2, 4]], [[0, 1], [1, 0]])


def tiny() -> JSSPState:
    return JSSP().instances(torch.tensor([TINY[0]]), torch.tensor([TINY[1]]))


def shuffled_schedules(jobs: int, machines: int, count: int, generator: torch.Generator) -> Tensor:
    """Uniformly random sequences in which each job occurs once per machine."""
    order = torch.rand(count, jobs * machines, generator=generator).argsort(1)
    return torch.arange(jobs).repeat(machines)[order]


def simulate(times: list[list[float]], machines: list[list[int]], sequence: list[int]) -> tuple[list[int], list[float]]:
    """Operations done per job, and availability times of jobs and then machines, by the paper's recursion."""
    done = [0] * len(times)
    job_free, machine_free = [0.0] * len(times), [0.0] * len(times[0])
    for job in sequence:
        machine = machines[job][done[job]]
        end = max(job_free[job], machine_free[machine]) + times[job][done[job]]
        job_free[job] = machine_free[machine] = end
        done[job] += 1
    return done, job_free + machine_free


# Instances


def test_generated_times_are_uniform_in_1_to_99_and_routes_are_uniform_permutations() -> None:
    state = JSSP(5, 3).generate(4000, generator=seeded(0))
    counts = torch.bincount(state.times.flatten(), minlength=100)
    assert counts[0] == 0
    assert len(counts) == 100
    assert stats.chisquare(counts[1:].numpy()).pvalue > P_VALUE
    routes = Counter(map(tuple, state.machines.view(-1, 3).tolist()))
    assert set(routes) == set(itertools.permutations(range(3)))
    assert stats.chisquare(list(routes.values())).pvalue > P_VALUE


def test_generation_is_decided_by_the_generator() -> None:
    first, again, other = (JSSP(4, 6).generate(3, generator=seeded(seed)) for seed in (1, 1, 2))
    assert torch.equal(first.times, again.times)
    assert torch.equal(first.machines, again.machines)
    assert not torch.equal(first.times, other.times)
    assert not torch.equal(first.machines, other.machines)


def test_generation_of_many_instances_needs_no_loop_over_them() -> None:
    state = JSSP(15, 20).generate(2000, generator=seeded(0))
    assert state.times.shape == (2000, 15, 20)


@pytest.mark.parametrize(("jobs", "machines", "name"), [(0, 3, "jobs"), (3, 0, "machines"), (-1, 3, "jobs")])
def test_an_empty_shop_is_refused(jobs: int, machines: int, name: str) -> None:
    with pytest.raises(SettingsError, match=f"`{name}` must be at least 1, got {min(jobs, machines)}"):
        JSSP(jobs, machines)


ROUTES = [[[0, 1, 2], [2, 0, 1]], [[1, 0, 2], [0, 2, 1]]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((1, 0, [1, 0, 1]), "job 0 of instance 1 visits machine 1 more than once and machine 2 never"),
        ((0, 1, [2, 2, 2]), "job 1 of instance 0 visits machine 2 more than once and machine 0 never"),
        ((0, 0, [1, 2, 3]), r"job 0 of instance 0 visits machine 3, but 3 machines are numbered 0 .. 2"),
        ((1, 1, [0, -1, 1]), r"job 1 of instance 1 visits machine -1, but 3 machines are numbered 0 .. 2"),
    ],
)
def test_routes_that_recirculate_or_skip_machines_are_refused_by_job(change: tuple[int, int, list[int]], message: str) -> None:
    instance, job, route = change
    machines = torch.tensor(ROUTES)
    JSSP().instances(torch.ones(2, 2, 3), machines)  # as they are, they are fine
    machines[instance, job] = torch.tensor(route)
    with pytest.raises(SettingsError, match=f"`machines` must list each machine exactly once for each job, but {message}"):
        JSSP().instances(torch.ones(2, 2, 3), machines)


@pytest.mark.parametrize("wrong", [-3, float("nan"), float("inf")])
def test_times_that_are_negative_or_not_finite_are_refused_by_job(wrong: float) -> None:
    times = torch.ones(2, 2, 3, dtype=torch.float64)
    times[1, 0, 2] = wrong
    with pytest.raises(SettingsError, match=rf"`times` must be at least 0 and finite, but job 0 of instance 1 has .*{wrong}"):
        JSSP().instances(times, torch.tensor(ROUTES))


@pytest.mark.usefixtures("unchecked")
def test_data_of_the_wrong_shape_or_type_is_refused() -> None:
    times, machines = torch.ones(2, 2, 3), torch.tensor(ROUTES)
    with pytest.raises(
        SettingsError, match=r"`times` must have the shape \(instances, jobs >= 1, machines >= 1\), got \(2, 3\)"
    ):
        JSSP().instances(times[0], machines[0])
    with pytest.raises(SettingsError, match=r"`machines` must have the shape of `times`, \(2, 2, 3\), got \(1, 2, 3\)"):
        JSSP().instances(times, machines[:1])
    with pytest.raises(SettingsError, match=r"`machines` must hold integers, got torch.float32. Convert"):
        JSSP().instances(times, machines.float())


def test_times_are_kept_exactly() -> None:
    whole = JSSP().instances(torch.full((1, 1, 2), 2**55 + 1), torch.tensor([[[0, 1]]]))
    state = replay(JSSP(), whole, torch.zeros(1, 2, dtype=torch.int64), torch.tensor([2]))
    assert state.available.tolist() == [[2**56 + 2, 2**55 + 1, 2**56 + 2]]
    fraction = JSSP().instances(torch.tensor([[[0.1, 0.2]]], dtype=torch.float64), torch.tensor([[[0, 1]]]))
    state = replay(JSSP(), fraction, torch.zeros(1, 2, dtype=torch.int64), torch.tensor([2]))
    assert JSSP().objective(state).item() == -(0.1 + 0.2)


# Transitions


def test_a_hand_worked_schedule() -> None:
    """Job 0: 3 on machine 0, 2 on machine 1. Job 1: 2 on machine 1, 4 on machine 0."""
    problem, state = JSSP(), tiny()
    expected = [  # after each action: operations done; A_job, A_mach
        (0, [1, 0], [3, 0, 3, 0]),
        (1, [1, 1], [3, 2, 3, 2]),
        (1, [1, 2], [3, 7, 7, 2]),
        (0, [2, 2], [5, 7, 7, 5]),
    ]
    for job, scheduled, available in expected:
        assert not bool(problem.done(state))
        assert bool(problem.mask(state)[0, job])
        state = problem.step(state, torch.tensor([job]))
        assert state.scheduled.tolist() == [scheduled]
        assert state.available.tolist() == [available]
    assert bool(problem.done(state))
    assert problem.objective(state).tolist() == [-7]


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 10**6))
def test_steps_follow_the_recursion_of_the_paper(jobs: int, machines: int, seed: int) -> None:
    problem, generator = JSSP(jobs, machines), seeded(seed)
    state = problem.generate(3, generator=generator)
    sequences = shuffled_schedules(jobs, machines, 3, generator)
    length = int(torch.randint(jobs * machines + 1, (), generator=generator))
    reached = replay(problem, state, sequences, torch.full((3,), length))
    for row in range(3):
        done, available = simulate(state.times[row].tolist(), state.machines[row].tolist(), sequences[row, :length].tolist())
        assert reached.scheduled[row].tolist() == done
        assert reached.available[row].tolist() == available
        assert problem.mask(reached)[row].tolist() == [count < machines for count in done]
    assert problem.horizon(reached) == jobs * machines - length


@pytest.mark.parametrize("action", [-1, 0, 1, 7])
def test_a_finished_row_steps_to_itself_whatever_the_action(action: int) -> None:
    problem, state = JSSP(), tiny()
    done = replay(problem, state, torch.tensor([[0, 1, 1, 0]]), torch.tensor([4]))
    again = problem.step(done, torch.tensor([action]))
    assert torch.equal(again.available, done.available)
    assert torch.equal(again.scheduled, done.scheduled)


@pytest.mark.parametrize(("jobs", "machines", "count"), [(4, 3, 4000), (3, 5, 3000), (7, 2, 2000), (1, 4, 500), (5, 1, 500)])
def test_step_wise_construction_and_the_verifier_find_the_same_makespan(jobs: int, machines: int, count: int) -> None:
    """10,000 random schedules together."""
    problem, generator = JSSP(jobs, machines), seeded(jobs)
    state = problem.generate(count, generator=generator)
    sequences = shuffled_schedules(jobs, machines, count, generator)
    final = replay(problem, state, sequences, torch.full((count,), jobs * machines))
    assert bool(problem.done(final).all())
    data = zip(state.times.numpy(), state.machines.numpy(), sequences.numpy(), strict=True)
    verdicts = [verify_jssp(*case) for case in data]
    assert all(verdict.feasible and verdict.reason == "" for verdict in verdicts)
    assert [verdict.objective for verdict in verdicts] == problem.objective(final).tolist()


@pytest.mark.parametrize(("jobs", "machines"), [(2, 2), (2, 3), (3, 2)])
def test_exhaustive_sampling_finds_every_schedule_and_the_optimum(jobs: int, machines: int) -> None:
    problem = JSSP(jobs, machines)
    state = problem.generate(5, generator=seeded(7))
    every = sorted(set(itertools.permutations(list(range(jobs)) * machines)))
    sampler = StochasticBeamSearch(beam_width=len(every), rounds=2)
    solutions = sampler(problem, Uniform(problem), state, generator=seeded(1))
    assert len(every) == math.factorial(jobs * machines) // math.factorial(machines) ** jobs
    for row in range(5):
        found = solutions.actions[row][solutions.filled[row]]
        assert sorted(map(tuple, found.tolist())) == every
        best = max(verify_jssp(state.times[row], state.machines[row], sequence).objective for sequence in every)
        assert solutions.best_objective[row].item() == best


@pytest.mark.parametrize("size", [(1, 1), (1, 3), (3, 1), (3, 4)])
def test_the_problem_keeps_the_contract(size: tuple[int, int]) -> None:
    check_problem(JSSP(*size), rows=16)


# Keys


def canonical(state: JSSPState, row: int) -> tuple[object, ...]:
    """What decides about the future, in plain Python."""
    instance = int(state.instance[row])
    done, available = state.scheduled[row].tolist(), state.available[row].tolist()
    jobs, machines = state.jobs, state.operations
    routes = state.machines[instance].tolist()
    starts = [
        max(available[i], available[jobs + routes[i][done[i]]]) if done[i] < machines else None for i in range(jobs)
    ]  # None: a finished job has no next start
    return tuple(done), tuple(starts), tuple(available[jobs:]), max(available)


@pytest.mark.parametrize(("kind", "largest"), [(torch.int64, 99), (torch.float64, 99), (torch.int64, 1), (torch.int64, 2)])
def test_keys_are_equal_exactly_where_the_futures_are(kind: torch.dtype, largest: int) -> None:
    """Also where times are so much alike that they do not tell which operations were scheduled."""
    problem, generator = JSSP(3, 3), seeded(3)
    fresh = problem.generate(1, generator=generator)
    times = fresh.times.clamp(max=largest).to(kind)
    state = problem.instances(times, fresh.machines).rows(torch.zeros(3000, dtype=torch.int64))
    sequences = shuffled_schedules(3, 3, 3000, generator)
    for length in (1, 2, 4, 7, 9):
        reached = replay(problem, state, sequences, torch.full((3000,), length))
        keys = list(map(tuple, problem.key(reached).tolist()))
        futures = [canonical(reached, row) for row in range(3000)]
        assert len(set(zip(keys, futures, strict=True))) == len(set(keys)) == len(set(futures))
        distinct = len({tuple(sequence) for sequence in sequences[:, :length].tolist()})
        assert len(set(keys)) < distinct or length == 1  # transpositions exist


def test_both_numbers_of_a_key_tell_states_apart() -> None:
    problem = JSSP(6, 6)
    state = problem.generate(1, generator=seeded(0)).rows(torch.zeros(2000, dtype=torch.int64))
    reached = replay(problem, state, shuffled_schedules(6, 6, 2000, seeded(1)), torch.full((2000,), 18))
    futures = len({canonical(reached, row) for row in range(2000)})
    key = problem.key(reached)
    assert len(key[:, 0].unique()) == len(key[:, 1].unique()) == futures
    assert not bool((key[:, 0] == key[:, 1]).any())


# Training examples


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 10**6))
def test_a_prefix_is_what_replaying_it_gives(jobs: int, machines: int, seed: int) -> None:
    """Also from states that are partial schedules already, with several rows per instance."""
    problem, generator = JSSP(jobs, machines), seeded(seed)
    rows, length = 5, jobs * machines
    state = problem.generate(2, generator=generator).rows(torch.tensor([0, 1, 0, 1, 1]))
    sequences = shuffled_schedules(jobs, machines, rows, generator)
    before = torch.randint(length + 1, (rows,), generator=generator)
    after = before + (torch.rand(rows, generator=generator) * (length - before + 1)).long()
    begun = replay(problem, state, sequences, before)
    rest = torch.full_like(sequences, -1)
    for row, start in enumerate(before.tolist()):
        rest[row, : length - start] = sequences[row, start:]
    fast, slow = problem.prefix(begun, rest, after - before), replay(problem, state, sequences, after)
    for name, tensor in slow.tensors().items():
        assert torch.equal(getattr(fast, name), tensor), name
    assert fast.times is begun.times


def test_examples_are_uniform_prefixes_with_the_next_action_as_target() -> None:
    problem, generator = JSSP(3, 2), seeded(5)
    state = problem.generate(1, generator=generator).rows(torch.zeros(6000, dtype=torch.int64))
    sequence = shuffled_schedules(3, 2, 1, generator)
    examples = problem.examples(state, sequence.expand(6000, 6), generator=generator)
    steps = examples.state.scheduled.sum(1)
    counts = torch.bincount(steps, minlength=6)
    assert counts[5] == 0  # q = 1 .. JM - 1: the last action is no decision
    assert stats.chisquare(counts[:5].numpy()).pvalue > P_VALUE
    assert torch.equal(examples.action, sequence[0][steps])
    for length in range(5):
        row = int((steps == length).nonzero()[0])
        done, available = simulate(state.times[0].tolist(), state.machines[0].tolist(), sequence[0, :length].tolist())
        assert examples.state.scheduled[row].tolist() == done
        assert examples.state.available[row].tolist() == available


def test_examples_draw_from_the_generator_and_differ_between_rows() -> None:
    problem = JSSP(5, 5)
    state = problem.generate(64, generator=seeded(0))
    actions = random_actions(problem, state, seeded(1))
    first, again, other = (problem.examples(state, actions, generator=seeded(seed)) for seed in (2, 2, 3))
    assert torch.equal(first.state.scheduled, again.state.scheduled)
    assert torch.equal(first.action, again.action)
    assert not torch.equal(first.state.scheduled.sum(1), other.state.scheduled.sum(1))
    assert len(first.state.scheduled.sum(1).unique()) > 8


def test_examples_of_partial_schedules_use_only_what_is_left() -> None:
    """`actions` are padded with -1 where a row needs fewer."""
    problem, generator = JSSP(2, 2), seeded(0)
    state = problem.generate(1, generator=generator).rows(torch.zeros(400, dtype=torch.int64))
    sequence = torch.tensor([[0, 1, 1, 0]]).expand(400, 4)
    begun = replay(problem, state, sequence, torch.ones(400, dtype=torch.int64))
    examples = problem.examples(begun, torch.tensor([[1, 1, 0, -1]]).expand(400, 4), generator=generator)
    steps = examples.state.scheduled.sum(1)
    assert set(steps.tolist()) == {1, 2}
    assert set(examples.action.tolist()) == {1}


def test_a_single_operation_is_its_own_example() -> None:
    problem = JSSP(1, 1)
    state = problem.generate(3, generator=seeded(0))
    examples = problem.examples(state, torch.zeros(3, 1, dtype=torch.int64), generator=seeded(0))
    assert examples.action.tolist() == [0, 0, 0]
    assert examples.state.scheduled.tolist() == [[0], [0], [0]]


@given(st.lists(st.lists(st.integers(0, 4), min_size=7, max_size=7), min_size=1, max_size=4))
def test_occurrences_count_equal_values_before(rows: list[list[int]]) -> None:
    expected = [[row[:place].count(value) for place, value in enumerate(row)] for row in rows]
    assert occurrence(torch.tensor(rows), 5).tolist() == expected


def test_rows_of_one_instance_share_its_data() -> None:
    state = JSSP(3, 3).generate(2, generator=seeded(0))
    rows = state.rows(torch.tensor([1, 1, 0, 1]))
    assert rows.times is state.times
    moved = JSSP().step(rows, torch.tensor([0, 1, 2, 0]))
    assert moved.times is state.times
    assert torch.equal(moved.compact().times, state.times[[1, 1, 0, 1]])
    assert replace(moved).jobs == 3
