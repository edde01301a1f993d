"""The independent verifier of flexible job shops, on cases worked by hand."""

from __future__ import annotations

import math

import pytest

from gumbeldore.errors import SettingsError
from gumbeldore.problems.fjsp.verify import build_schedule, operations, schedule_fault, verify_fjsp
from gumbeldore.problems.intervals import Interval

TIMES = [[[2, 3], [-1, 4]], [[5, 1], [-1, -1]]]


def test_a_schedule_is_as_long_as_its_last_operation():
    assert verify_fjsp(TIMES, [0, 3, 1]).objective == -6
    assert verify_fjsp(TIMES, [3, 1, 1]).objective == -8
    assert verify_fjsp(TIMES, [0, 1, 2]).objective == -7


@pytest.mark.parametrize(
    ("actions", "reason"),
    [
        ([0, 1], "job 1 is scheduled 0 times, but has 1 operations"),
        ([0, 0, 3], "operation 1 of job 0 at position 1 cannot run on machine 0"),
        ([3, 3, 0], "job 1 at position 1 is finished: it has only 1 operations"),
        ([4, 0, 1], "job 2 at position 0 does not exist: jobs are 0 .. 1"),
        ([-1, 0, 1], "job -1 at position 0 does not exist"),
        ([], "job 0 is scheduled 0 times"),
    ],
)
def test_what_is_no_schedule_is_infeasible(actions, reason):
    verdict = verify_fjsp(TIMES, actions)
    assert not verdict.feasible
    assert verdict.objective == -math.inf
    assert reason in verdict.reason


SHOP = operations(TIMES)
GOOD = build_schedule(SHOP, [(0, 0), (1, 1), (0, 1)])


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({2: Interval(1, 5, 1, 0, 1)}, "operation 1 of job 0 starts before operation 0 ends"),
        ({2: Interval(2, 5, 1, 0, 1)}, "operation 1 of job 0 does not run as long as it takes"),
        ({1: Interval(-1, 0, 1, 1, 0)}, "operation 0 of job 1 starts at -1, before time 0"),
        ({1: Interval(3, 4, 1, 1, 0)}, "jobs 0 and 1 are on machine 1 at the same time"),
        ({2: Interval(2, 6, 0, 0, 1)}, "operation 1 of job 0 runs on machine 0, which cannot do it"),
        ({1: Interval(0, 1, 1, 0, 1)}, "some operation is not scheduled exactly once"),
    ],
)
def test_faults_of_intervals_are_found(changed, reason):
    assert schedule_fault(GOOD, SHOP) == ""
    assert schedule_fault([changed.get(place, interval) for place, interval in enumerate(GOOD)], SHOP) == reason


def test_a_malformed_instance_is_an_error():
    with pytest.raises(SettingsError, match="`times` must have the shape"):
        verify_fjsp([[1, 2]], [0])
