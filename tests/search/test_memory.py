"""The stated memory of a search against what is allocated."""

from __future__ import annotations

from dataclasses import fields

import pytest
import torch
from peak import Peak
from torch import Tensor

from gumbeldore import Gumbeldore
from gumbeldore.errors import SettingsError
from gumbeldore.parallel.pool import attempt
from gumbeldore.policies import CVRPPolicy, JSSPPolicy, TSPPolicy
from gumbeldore.problems import CVRP, JSSP, TSP
from gumbeldore.search.adaptive import Adaptive
from gumbeldore.search.memory import beam_bytes, trie_bytes
from gumbeldore.search.samplers import BeamSearch
from gumbeldore.search.stepping import StepAndReconsider

CASES = {
    "tsp": (TSP(24), lambda: TSPPolicy(d=16, layers=2, heads=2, ff=32)),
    "cvrp": (CVRP(20, 30), lambda: CVRPPolicy(d=16, layers=2, heads=2, ff=32)),
    "jssp": (JSSP(6, 5), lambda: JSSPPolicy(d=16, pairs=1, heads=2, ff=32)),
}


def sizes(thing) -> int:
    if isinstance(thing, Tensor):
        return thing.untyped_storage().nbytes()
    if isinstance(thing, list | tuple):
        return sum(sizes(part) for part in thing)
    return sum(sizes(getattr(thing, f.name)) for f in fields(thing)) if hasattr(thing, "__dataclass_fields__") else 0


@pytest.mark.parametrize("name", CASES)
def test_the_trie_takes_what_the_formula_says(name):
    problem, make = CASES[name]
    state = problem.generate(5, generator=torch.Generator().manual_seed(0))
    sampler = Gumbeldore(16, 4, keep_trie=True)
    (trie,) = sampler(problem, make(), state, generator=torch.Generator().manual_seed(1)).tries
    stated = 5 * trie_bytes(64, problem.horizon(state), 40 + 4 * problem.mask(state).shape[1])
    assert 0.75 * stated <= sizes(trie) <= stated


@pytest.mark.parametrize("name", CASES)
def test_the_search_allocates_no_more_than_it_says(name):
    problem, make = CASES[name]
    policy = make()
    state = problem.generate(4, generator=torch.Generator().manual_seed(0))
    sampler = Gumbeldore(32, 2)
    with Peak() as peak:
        sampler(problem, policy, state, generator=torch.Generator().manual_seed(1))
    actions, horizon = problem.mask(state).shape[1], problem.horizon(state)
    with torch.no_grad():
        stated = 4 * sampler.instance_bytes(actions, horizon) + 4 * 32 * policy.row_bytes(state)
    assert trie_bytes(64, horizon, 40 + 4 * actions) + beam_bytes(32, actions) == sampler.instance_bytes(actions, horizon)
    assert 0.2 * stated <= peak.most <= 1.5 * stated, (peak.most, stated)


@pytest.mark.parametrize(
    "sampler",
    [Gumbeldore(99_999_999, 9), BeamSearch(10**9), Adaptive(10**9), StepAndReconsider(10**9)],
    ids=lambda sampler: type(sampler).__name__,
)
def test_a_search_that_cannot_fit_is_refused_before_it_allocates_with_what_would_fit(sampler):
    problem = TSP(24)
    state = problem.generate(1, generator=torch.Generator().manual_seed(0))
    with pytest.raises(
        SettingsError, match=r"needs about [\d,]+ GB for one instance, but .* GB are free: about one in [\d,]+ of its"
    ):
        sampler(problem, TSPPolicy(16, 1, 2, 32), state, seeds=torch.zeros(1, dtype=torch.long))


def torch_has_no_room():
    return torch.zeros(1 << 50)


def test_a_worker_without_memory_says_so_in_one_line():
    said, _ = attempt(torch_has_no_room)
    assert said.startswith("Memory ran out.")
    assert "\n" not in said
