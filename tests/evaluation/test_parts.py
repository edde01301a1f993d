"""What `solve` does, as methods of a comparison."""

from __future__ import annotations

import pickle

import pytest
from kits import KITS

from gumbeldore.errors import SettingsError
from gumbeldore.evaluation.parts import PartsMethod, effort_named
from gumbeldore.kits.kit import Instance
from gumbeldore.problems.tsp.instances import TSPGenerator, verify


@pytest.mark.parametrize(
    ("text", "parts"),
    [("all:10s", None), ("local-search:0.5s", ("local-search",)), ("policy+local-search:2s", ("policy", "local-search"))],
)
def test_a_name_says_who_works_for_how_long(text, parts):
    effort = effort_named(text)
    assert effort.parts == parts
    assert f"{effort.time_limit:g}s" == text.partition(":")[2]


@pytest.mark.parametrize("text", ["all", "magic:2s", "all:2", "policy,local-search:2s", "all:0s"])
def test_other_names_are_refused_in_one_line(text):
    with pytest.raises(SettingsError):
        effort_named(text)


def test_local_search_alone_needs_no_policy_and_answers_each_instance():
    method = PartsMethod.of("local-search:0.05s", "tsp-small", None)
    assert method.name == "local-search:0.05s"
    drawn = TSPGenerator(6, 2, 1).generate()
    given = tuple(Instance(drawn.instance(row), drawn.instance(row)) for row in range(2))
    item = pickle.loads(pickle.dumps(method.item(KITS["tsp"], given, [1, 2])))
    answers = method.solve(item)
    assert all(verify(each.arrays, answer.actions).feasible for each, answer in zip(given, answers, strict=True))


def test_other_parts_or_seconds_are_another_method():
    texts = ("all:1s", "all:2s", "local-search:1s")
    assert len({PartsMethod.of(text, "policy", None).digest for text in texts}) == 3
