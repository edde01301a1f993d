"""The verifier of the job shop, by itself and against hand-worked schedules."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from gumbeldore.errors import SettingsError
from gumbeldore.problems.intervals import Interval
from gumbeldore.problems.jssp.verify import schedule_fault, verify_jssp

TINY = ([[3, 2], [2, 4]], [[0, 1], [1, 0]])


def test_the_verifier_works_out_the_hand_worked_schedule() -> None:
    verdict = verify_jssp(*TINY, [0, 1, 1, 0])
    assert (verdict.feasible, verdict.objective, verdict.reason) == (True, -7, "")
    assert verify_jssp(*TINY, [1, 1, 0, 0]).objective == -11
    assert verify_jssp(np.array(TINY[0]), torch.tensor(TINY[1]), torch.tensor([0, 0, 1, 1])).objective == -11


@pytest.mark.parametrize(
    ("sequence", "reason"),
    [
        ([0, 1, 1], "job 0 is scheduled 1 times, but has 2 operations"),
        ([0, 1, 1, 1], "job 1 at position 3 is finished"),
        ([0, 1, 2, 0], r"job 2 at position 2 does not exist: jobs are 0 .. 1"),
        ([0, -1, 1, 0], "job -1 at position 1 does not exist"),
    ],
)
def test_the_verifier_says_what_is_wrong_with_a_sequence(sequence: list[int], reason: str) -> None:
    verdict = verify_jssp(*TINY, sequence)
    assert not verdict.feasible
    assert verdict.objective == -math.inf
    assert reason in verdict.reason


def test_the_verifier_refuses_routes_that_repeat_a_machine() -> None:
    verdict = verify_jssp(TINY[0], [[0, 0], [1, 0]], [0, 1, 1, 0])
    assert not verdict.feasible
    assert "job 0 does not visit each machine" in verdict.reason


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({0: Interval(0, 4, 0, 0, 0)}, "operation 0 of job 0 does not run as long as it takes"),
        ({0: Interval(-1, 2, 0, 0, 0)}, "operation 0 of job 0 starts at -1, before time 0"),
        ({1: Interval(0, 2, 0, 1, 0)}, "operation 0 of job 1 runs on machine 0, which is not its own"),
        ({3: Interval(2, 4, 1, 0, 1)}, "operation 1 of job 0 starts before operation 0 ends"),
        ({2: Interval(2, 6, 0, 1, 1)}, "jobs 0 and 1 are on machine 0 at the same time"),
        ({3: Interval(3, 7, 0, 1, 1)}, "some operation is not scheduled exactly once"),
    ],
)
def test_the_verifier_checks_the_intervals_themselves(changed: dict[int, Interval], reason: str) -> None:
    schedule = [Interval(0, 3, 0, 0, 0), Interval(0, 2, 1, 1, 0), Interval(3, 7, 0, 1, 1), Interval(3, 5, 1, 0, 1)]
    assert schedule_fault(schedule, *TINY) == ""
    faulty = [changed.get(place, interval) for place, interval in enumerate(schedule)]
    assert reason in schedule_fault(faulty, *TINY)


def test_the_verifier_refuses_data_of_the_wrong_shape() -> None:
    with pytest.raises(SettingsError, match=r"`times` must have the shape \(jobs, operations\), got \(2,\)"):
        verify_jssp([1, 2], [0, 1], [0, 0])
    with pytest.raises(SettingsError, match=r"`machines` must have the shape of `times` \(2, 2\), got \(1, 2\)"):
        verify_jssp(TINY[0], TINY[1][:1], [0, 1, 1, 0])
