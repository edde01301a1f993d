"""The vehicle routing problem with time windows: windows by hand, all solutions of small instances, forms of the same instance."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from routing import Uniform, partial, random_actions, seeded
from timed_routes import all_solutions, row_of

from gumbeldore.errors import SettingsError
from gumbeldore.problem import replay
from gumbeldore.problems import VRPTW, VRPTWState
from gumbeldore.problems.vrptw.insertion import insertion, nearest_neighbour
from gumbeldore.problems.vrptw.instances import VRPTWGenerator, verify
from gumbeldore.search.samplers import StochasticBeamSearch

LINE = {
    "nodes": [[[0.0, 0], [3, 0], [5, 0], [-4, 0]]],
    "demands": [[0, 3, 4, 2]],
    "windows": [[[0.0, 20], [4, 6], [0, 8], [0, 20]]],
    "service": [[0.0, 1, 2, 0]],
}


def on_a_line(**changes):
    given = {name: torch.tensor(value) for name, value in {**LINE, **changes}.items()}
    return VRPTW().instances(given["nodes"].double(), given["demands"], 9, given["windows"].double(), given["service"].double())


def test_time_goes_by_as_in_a_worked_example():
    problem, state = VRPTW(), on_a_line()
    assert problem.mask(state).view(3, 2).tolist() == [[False, True]] * 3  # at the depot: only via the depot
    state = problem.step(state, torch.tensor([1]))
    assert (float(state.time), int(state.remaining), float(state.length)) == (5.0, 6, 3.0)  # waits until 4, serves until 5
    assert problem.mask(state).view(3, 2).tolist() == [[False, False], [True, True], [True, True]]
    state = problem.step(state, torch.tensor([2]))
    assert (float(state.time), int(state.remaining), float(state.length)) == (9.0, 2, 5.0)
    assert problem.mask(state).view(3, 2).tolist() == [[False, False], [False, False], [False, True]]  # would be back at 22
    state = problem.step(state, torch.tensor([5]))
    assert (float(state.time), int(state.remaining)) == (4.0, 7)
    assert bool(problem.done(state))
    assert problem.objective(state).item() == -18.0


def test_a_window_that_has_closed_is_reached_via_the_depot_only():
    problem = VRPTW()
    state = problem.step(on_a_line(), torch.tensor([3]))  # customer 1 from 5 to 7, customer 0 until 6
    assert problem.mask(state).view(3, 2)[0].tolist() == [False, True]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"windows": [[[0.0, 20], [4, 6], [0, 4], [0, 20]]]}, "customer 1 of instance 0 can be served from 5"),
        ({"windows": [[[0.0, 7], [4, 6], [0, 8], [0, 20]]]}, "customer 0 of instance 0"),
        ({"windows": [[[0.0, 20], [6, 4], [0, 8], [0, 20]]]}, "node 1 of instance 0 is 6 .. 4"),
        ({"windows": [[[0.0, float("inf")], [4, 6], [0, 8], [0, 20]]]}, "finite"),
        ({"service": [[1.0, 1, 2, 0]]}, "0 at the depot"),
        ({"service": [[0.0, -1, 2, 0]]}, "at least 0"),
        ({"demands": [[0, 3, 10, 2]]}, "must not exceed"),
        ({"demands": [[0, 3, 2]]}, "`demands` must have the shape"),
    ],
)
def test_what_cannot_be_served_is_refused_in_one_line(changes, message):
    with pytest.raises(SettingsError, match=message):
        on_a_line(**changes)


def test_sampling_without_replacement_finds_exactly_the_feasible_solutions():
    problem = VRPTW(4)
    state = problem.generate(3, generator=seeded(1))
    sampler = StochasticBeamSearch(400, 1)
    solutions = sampler(problem, Uniform(problem), state, generator=seeded(2))
    for row in range(3):
        expected = all_solutions(state, row)
        found = [tuple(actions) for actions in solutions.actions[row][solutions.filled[row]].tolist()]
        assert set(found) == set(expected)
        assert len(found) == len(expected)
        np.testing.assert_allclose(
            solutions.objective[row][solutions.filled[row]], [expected[each] for each in found], rtol=0, atol=1e-9
        )


@pytest.mark.parametrize("parts", [0, 1, 10])
def test_random_solutions_are_feasible_and_worth_what_the_verifier_says(parts):
    problem, given = VRPTW(25), VRPTWGenerator(25, None, 300, 3).generate().arrays
    scale = {"nodes": 100.0, "windows": 100.0, "service": 100.0}
    arrays = {name: torch.as_tensor(array * scale.get(name, 1)) for name, array in given.items()}
    arrays["parts"] = torch.full_like(arrays["parts"], parts)
    state = problem.instances(**arrays)
    actions = random_actions(problem, state, seeded(4))
    worth = problem.objective(replay(problem, state, actions, torch.full((300,), 25)))
    for row in range(300):
        verdict = verify({name: array[row].numpy() for name, array in arrays.items()}, actions[row].tolist())
        assert verdict.feasible, verdict.reason
        assert verdict.objective == pytest.approx(worth[row].item(), abs=1e-9)


def test_there_is_always_a_way_on():
    problem = VRPTW(30)
    for steps in range(0, 30, 4):
        assert bool(problem.mask(partial(problem, 20, steps, seed=steps)).any(1).all())


def test_with_nearest_routes_go_on_to_who_can_or_must_be_served_soon():
    problem, free = VRPTW(25, nearest=6), VRPTW(25)
    state = problem.generate(30, generator=seeded(13))
    assert torch.equal(problem.mask(state).sum(1), torch.full((30,), 6))
    actions, plain = random_actions(problem, state, seeded(14)), free.generate(30, generator=seeded(13))
    for steps in range(25):
        there = replay(free, plain, actions, torch.full((30,), steps))
        waiting = there.latest[:, 1:].masked_fill(there.visited, torch.inf)
        chosen = waiting.gather(1, actions[:, steps : steps + 1] // 2)
        in_time = there.arrivals() <= there.latest[:, 1:]
        begin = torch.maximum(there.arrivals(), there.earliest[:, 1:]).masked_fill(there.visited | ~in_time, torch.inf)
        soon = begin.gather(1, actions[:, steps : steps + 1] // 2)
        assert bool(((waiting < chosen).sum(1) < 6).logical_or((begin < soon).sum(1) < 3).all())
    assert type(problem.examples(state, actions, generator=seeded(15)).state) is VRPTWState
    for form in (problem.augmentations(state, 4, seeds=torch.arange(30)).state, state):
        assert problem.mask(form).view(-1, 25, 2).any(2).sum(1).tolist() == [6] * form.row_count


def test_solutions_of_every_form_are_solutions_of_the_instance_and_worth_the_same():
    problem = VRPTW(12)
    state = problem.generate(5, generator=seeded(6))
    forms = problem.augmentations(state, 16, seeds=torch.arange(5))
    assert (forms.count, set(forms.tag.tolist())) == (16, {0, 1})
    actions = random_actions(problem, forms.state, seeded(7))
    worth = problem.objective(replay(problem, forms.state, actions, torch.full((80,), 12)))
    back = problem.inverse_transform(forms.state, forms.tag, actions)
    for row in range(80):
        verdict = verify(row_of(state, row // 16), back[row].tolist())
        assert verdict.feasible, verdict.reason
        assert verdict.objective == pytest.approx(worth[row].item(), abs=1e-9)


def test_solutions_written_otherwise_are_worth_the_same_and_learned_from():
    problem = VRPTW(12)
    state = problem.generate(40, generator=seeded(8))
    actions = random_actions(problem, state, seeded(9))
    worth = problem.objective(replay(problem, state, actions, torch.full((40,), 12)))
    other = problem.reencoded(state, actions, seeds=torch.arange(40))
    assert set(other.tag.tolist()) == {0, 1}
    again = problem.objective(replay(problem, other.state, other.actions, torch.full((40,), 12)))
    torch.testing.assert_close(again, worth)
    for seed in range(12):
        examples = problem.examples(state, actions, generator=seeded(seed))
        allowed = problem.mask(examples.state).gather(1, examples.action[:, None])
        assert bool(allowed.all())


def test_at_the_depot_the_subtour_that_must_begin_the_earliest_is_learned():
    problem = VRPTW(12)
    state = problem.generate(200, generator=seeded(10))
    actions = random_actions(problem, state, seeded(11))
    examples = problem.examples_after(state, actions, torch.zeros(200, dtype=torch.long), generator=seeded(12))
    first = actions.remainder(2) == 1
    closing = state.latest.gather(1, 1 + actions // 2).masked_fill(~first, torch.inf)
    assert examples.action.tolist() == actions.gather(1, closing.argmin(1, keepdim=True)).squeeze(1).tolist()


def test_keys_tell_times_apart():
    problem = VRPTW()
    state = on_a_line(windows=[[[0.0, 30], [4, 30], [0, 30], [0, 30]]])
    ends = [replay(problem, state, torch.tensor([order]), torch.tensor([3])) for order in ([1, 2, 4], [3, 0, 4])]
    assert len({tuple(problem.key(end)[0].tolist()) for end in ends}) == 2
    same = replay(problem, state, torch.tensor([[1, 2, 4]]), torch.tensor([3]))
    assert torch.equal(problem.key(same), problem.key(ends[0]))


def test_rules_give_feasible_routes_and_insertion_the_shorter_ones():
    instances = VRPTWGenerator(20, None, 12, 1).generate()
    lengths = np.empty((2, 12))
    for method, row in itertools.product((0, 1), range(12)):
        verdict = verify(instances.instance(row), (nearest_neighbour, insertion)[method](instances.instance(row)))
        assert verdict.feasible, verdict.reason
        lengths[method, row] = -verdict.objective
    assert lengths[1].mean() < 0.85 * lengths[0].mean()


def test_generated_windows_are_those_of_the_recipe():
    given = VRPTWGenerator(50, None, 40, 2).generate().arrays
    windows, service = given["windows"][:, 1:], given["service"][:, 1:]
    away = np.linalg.norm(given["nodes"][:, 1:] - given["nodes"][:, :1], axis=2)
    width = windows[..., 1] - windows[..., 0]
    assert (given["windows"][:, 0] == [0, 4.6]).all()
    assert ((width >= 0.18) & (width <= 0.2 + 1e-12)).all()
    assert ((service >= 0.15) & (service <= 0.18)).all()
    assert (windows[..., 0] >= away).all()
    assert (windows[..., 1] + service + away <= 4.6 + 1e-12).all()
    assert (given["capacity"] == 40).all()
    assert np.isin(given["demands"][:, 1:], range(1, 10)).all()
