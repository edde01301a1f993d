"""The score: asked once, in batches, within a budget; and when a search ends."""

from __future__ import annotations

import math

import pytest
from languages import END, Language

from gumbeldore.errors import SettingsError
from gumbeldore.sequences import BetterThan, Covered, Found, ScoreError, Scorer, TimeLimit, sample, stream

SETTINGS = {"end": END, "max_length": 6, "beam_width": 10, "rounds": 5, "seed": 4}


class Counting:
    """The sum of the tokens; remembers what it was asked."""

    def __init__(self, fails=lambda sequence: False, nan=lambda sequence: False) -> None:
        self.asked, self.calls, self.fails, self.nan = [], [], fails, nan

    def __call__(self, sequences):
        self.calls.append(len(sequences))
        self.asked += sequences
        if any(self.fails(sequence) for sequence in sequences):
            raise RuntimeError("no such molecule")
        return [math.nan if self.nan(sequence) else float(sum(sequence)) for sequence in sequences]


def language():
    return Language(5, 6, seed=2, forbidden=False)


def test_a_sequence_is_scored_once_and_rounds_are_batches():
    score = Counting()
    found = sample(language(), score, **SETTINGS)
    assert sorted(score.asked) == sorted(found.sequences)
    assert len(score.calls) == 5
    assert found.score.tolist() == [sum(sequence) for sequence in found]
    assert found.scores_made == len(found)
    assert [c.score for c in found.best(3)] == sorted(found.score.tolist(), reverse=True)[:3]


def test_batches_can_be_smaller():
    score = Counting()
    assert (
        sample(language(), score, score_batch=4, **SETTINGS).sequences == sample(language(), Counting(), **SETTINGS).sequences
    )
    assert max(score.calls) <= 4


def test_a_budget_is_kept_and_ends_the_search():
    score = Counting()
    found = sample(language(), score, max_scores=23, **SETTINGS)
    assert len(score.asked) == found.scores_made == 23
    assert found.stopped_by == "max_scores"
    assert int(found.score.isnan().sum()) == len(found) - 23
    assert len(found.best(100)) == 23


def test_a_failing_score_is_an_error_of_one_line():
    for score in (Counting(fails=lambda s: len(s) > 3), Counting(nan=lambda s: len(s) > 3)):
        with pytest.raises(ScoreError) as caught:
            sample(language(), score, **SETTINGS)
        assert "\n" not in str(caught.value)
        assert "skip_failures=True" in str(caught.value)


@pytest.mark.parametrize("kind", ["fails", "nan"])
def test_failures_are_skipped_if_asked(kind):
    score = Counting(**{kind: lambda s: len(s) > 3})
    found = sample(language(), score, skip_failures=True, **SETTINGS)
    for sequence, value in zip(found, found.score.tolist(), strict=True):
        assert math.isnan(value) == (len(sequence) > 3)
    assert all(len(candidate.tokens) <= 3 for candidate in found.best(100))
    assert math.isfinite(found.estimate().mean)


def test_a_score_of_the_wrong_length_is_an_error():
    with pytest.raises(ScoreError, match="one number per sequence"):
        sample(language(), lambda sequences: [1.0], **SETTINGS)


def test_prefixes_are_candidates_if_asked():
    """Here the best is in the middle: tokens beyond the third cost."""

    def score(sequences):
        return [sum(s[:3]) - 10.0 * len(s[3:]) if len(s) != 2 else None for s in sequences]

    found = sample(language(), score, partial=True, skip_failures=True, **SETTINGS)
    prefixes = {s[:size] for s in found for size in range(1, len(s) + 1)}
    assert {candidate.tokens for candidate in found.best(10_000)} <= prefixes | {()}
    assert found.best(1)[0].tokens not in found.sequences or len(found.best(1)[0].tokens) <= 3
    assert all(len(candidate.tokens) != 2 for candidate in found.best(10_000))
    assert found.best(1)[0].score == max(sum(s[:3]) for s in prefixes if len(s) == 3)


def test_rules_end_a_search():
    every = list(stream(language(), Counting(), **SETTINGS))
    cases = [
        (BetterThan(every[1].best(1)[0].score - 1), lambda s: s.best(1)[0].score > every[1].best(1)[0].score - 1),
        (Found(25), lambda s: len(s) >= 25),
        (Found(4, score=8.0), lambda s: sum(c.score >= 8 for c in s.best(100)) >= 4),
        (Covered(1 - every[2].remaining_mass), lambda s: s.remaining_mass <= every[2].remaining_mass),
        (lambda samples: len(samples) >= 12, lambda s: len(s) >= 12),
    ]
    for rule, holds in cases:
        ended = list(stream(language(), Counting(), until=rule, **SETTINGS))
        wanted = next((i for i, samples in enumerate(every) if holds(samples)), len(every) - 1)
        assert len(ended) == wanted + 1
        assert ended[-1].sequences == every[wanted].sequences
        assert ended[-1].stopped_by is (rule if holds(every[wanted]) else None)
    assert sample(language(), until=(Found(10**6), TimeLimit(1e-9)), **SETTINGS).stopped_by == TimeLimit(1e-9)


def test_wrong_rules_and_budgets_are_errors():
    for wrong in (
        lambda: Found(0),
        lambda: Covered(0.0),
        lambda: TimeLimit(0),
        lambda: Scorer(len, max_scores=0),
        lambda: Scorer(len, batch=0),
    ):
        with pytest.raises(SettingsError):
            wrong()
