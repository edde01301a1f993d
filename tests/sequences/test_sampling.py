"""What any search for sequences must hold: the law, no repeats, independence of whatever shares the batch."""

from __future__ import annotations

import itertools

import pytest
import torch
from languages import END, Language, alike, drawn_often, fits, without_replacement

from gumbeldore.errors import ContractError, SettingsError
from gumbeldore.sequences import Rounds, Scorer, sample, search, stream
from gumbeldore.sequences.models import as_policy
from gumbeldore.sequences.problem import Sequences

TIMES = 1500
BLOCKS = [None, 2]


def by_length(sequences):
    return [float(len(sequence)) - 0.5 * (sequence[:1] == (2,)) for sequence in sequences]


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("rounds", [(3, 1), (1, 3), (2, 2)])
def test_the_law_is_that_of_sampling_without_replacement(blocks, rounds):
    language, (width, count) = Language(), rounds
    how = Rounds(width, count, sigma=0.0)
    drawn = drawn_often(as_policy(language), language.problem(), how, TIMES, blocks=blocks)
    law = without_replacement(language.distribution(), width * count)
    assert fits((tuple(each.sequences) for each in drawn), law) > 1e-4


@pytest.mark.parametrize(("blocks", "nucleus"), [(1, 1.0), (2, (0.5, 1.0)), (3, 0.7)])
def test_blocks_change_the_noise_and_not_the_law(blocks, nucleus):
    """Of what is learnt and of the nucleus, too: the dense search is tested against enumeration elsewhere."""
    language, how = Language(4, 3), Rounds(3, 3, sigma=1.5, nucleus=nucleus)

    def drawn(blocks, offset):
        problem, seeds = language.problem(), torch.arange(TIMES) * 31 + offset
        scorers = [Scorer(by_length) for _ in range(TIMES)]
        found = list(search(problem, as_policy(language), problem.start([()] * TIMES), how, seeds, scorers, blocks))[-1]
        return [tuple(each.sequences) for each in found]

    plain, blocked = drawn(None, 0), drawn(blocks, 10**9)
    for first, last in ((0, 2), (3, 5), (6, 7)):
        assert alike([each[first:last] for each in plain], [each[first:last] for each in blocked]) > 1e-4
    assert alike([tuple(sorted(each)) for each in plain], [tuple(sorted(each)) for each in blocked]) > 1e-4


@pytest.mark.parametrize("blocks", BLOCKS)
def test_everything_is_found_once_and_then_the_search_is_exhausted(blocks):
    language = Language(4, 4)
    everything = language.distribution()
    for width, rounds in ((len(everything), 2), (7, 60)):
        found = drawn_often(as_policy(language), language.problem(), Rounds(width, rounds, sigma=0.0), 1, blocks=blocks)[0]
        assert sorted(found.sequences) == sorted(everything)
        assert found.exhausted
        torch.testing.assert_close(found.log_prob.exp(), torch.tensor([everything[s] for s in found], dtype=torch.float64))


@pytest.mark.parametrize("blocks", [None, 2])
def test_a_policy_of_any_confidence_is_exhausted(blocks):
    """Where almost all mass lies on one token, what is left is summed anew and not lost in a difference."""

    def confident(prefixes):
        return torch.tensor([-30.0, 0.0, -60.0, -45.0], dtype=torch.float64).expand(len(prefixes), 4)

    found = drawn_often(as_policy(confident), Language(4, 3).problem(), Rounds(4, 40, sigma=0.0), 1, blocks=blocks)[0]
    assert len(set(found.sequences)) == len(found) == sum(3**length for length in range(4))
    assert found.exhausted


@pytest.mark.parametrize("blocks", [None, 7])
def test_no_sequence_comes_twice_in_a_hundred_thousand(blocks):
    language = Language(40, 6, seed=3)
    found = drawn_often(as_policy(language), language.problem(), Rounds(5000, 20, sigma=0.0), 1, blocks=blocks)[0]
    assert len(found) == 100_000
    assert len(set(found.sequences)) == 100_000
    assert float(found.log_prob.exp().sum()) + found.remaining_mass == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("blocks", BLOCKS)
def test_a_prompt_does_not_depend_on_the_others(blocks):
    language, how = Language(5, 5), Rounds(6, 3, nucleus=(0.9, 1.0))
    problem, seeds = language.problem(), torch.tensor([5, 6, 7, 8])

    def found(rows):
        scorers = [Scorer(by_length) for _ in rows]
        state = problem.start([(1,) * (row % 2) for row in rows])
        problem_of = list(search(problem, as_policy(shifted), state, how, seeds[rows], scorers, blocks))[-1]
        return [(each.sequences, each.log_prob.tolist(), each.perturbed.tolist(), each.weight.tolist()) for each in problem_of]

    def shifted(prefixes):
        """The language, whatever the length of the prompt."""
        return language.table[prefixes.shape[1] % 3, prefixes[:, -1] if prefixes.shape[1] else torch.full((len(prefixes),), 5)]

    together = found([0, 1, 2, 3])
    for rows in ([2], [3, 1], [1, 0, 2]):
        assert found(rows) == [together[row] for row in rows]


@pytest.mark.parametrize("rows", [1, 3, 1000])
def test_the_answer_does_not_depend_on_how_many_prefixes_go_into_a_call(rows):
    language = Language(6, 5)
    whole, parts = (sample(language, by_length, end=END, max_length=5, seed=2, model_batch=size) for size in (None, rows))
    assert whole.sequences == parts.sequences
    assert torch.equal(whole.log_prob, parts.log_prob)


def test_a_prefix_begins_all_sequences():
    language = Language(5, 6)
    found = sample(language, end=END, max_length=3, prefix=(2, 3), beam_width=5, rounds=2)
    assert all(sequence[:2] == (2, 3) and len(sequence) <= 5 for sequence in found)
    assert found.tokens.shape[1] <= 3


def test_what_is_learnt_makes_later_rounds_better():
    language = Language(6, 8, seed=5, forbidden=False)
    gains = []
    for seed in range(20):
        found = sample(language, by_length, end=END, max_length=8, beam_width=16, rounds=6, sigma=1.0, seed=seed)
        plain = sample(language, by_length, end=END, max_length=8, beam_width=16, rounds=6, sigma=0.0, seed=seed)
        gains.append(float(found.score[-16:].mean() - plain.score[-16:].mean()))
    assert min(gains) > 0


def test_a_stream_is_the_same_search_round_by_round():
    language = Language(5, 5)
    rounds = list(stream(language, end=END, max_length=5, beam_width=4, rounds=3, seed=9))
    assert [len(each) for each in rounds] == [4, 8, 12]
    for before, after in itertools.pairwise(rounds):
        assert after.sequences[: len(before)] == before.sequences
    assert sample(language, end=END, max_length=5, beam_width=4, rounds=3, seed=9).sequences == rounds[-1].sequences


def test_several_tokens_may_end_a_sequence():
    language = Language(5, 4, forbidden=False)
    found = sample(language, end=(0, 3), max_length=4, beam_width=500, rounds=1)
    assert found.exhausted
    assert all(0 not in sequence and 3 not in sequence for sequence in found)
    drawn = {tuple(token for token in row if token >= 0) for row in found.tokens.tolist()}
    assert len(drawn) == len(found)
    assert {row[-1] for row in drawn if len(row) < 4} == {0, 3}


def test_a_model_that_allows_nothing_is_an_error_that_says_where():
    def dead(prefixes):
        answer = torch.zeros(len(prefixes), 4)
        answer[(prefixes == 2).any(1)] = -torch.inf
        return answer

    with pytest.raises(ContractError, match=r"allows no token after the prefix that ends with \(.*2.*\)"):
        sample(dead, end=0, max_length=3)


@pytest.mark.parametrize("blocks", [None, 2])
def test_log_probabilities_that_are_none_are_an_error(blocks):
    def broken(prefixes):
        return torch.full((len(prefixes), 4), torch.nan)

    with pytest.raises(ContractError, match="no NaN"):
        drawn_often(as_policy(broken), Language(4, 3).problem(), Rounds(4, 1), 1, blocks=blocks)


def test_wrong_settings_are_errors_of_one_line():
    language = Language()
    for wrong in (
        {"beam_width": 0},
        {"max_length": 0},
        {"end": 7},
        {"nucleus": 0.0},
        {"sigma": -1.0},
        {"model_batch": 0},
        {"memory": 0},
    ):
        with pytest.raises(SettingsError) as caught:
            sample(language, **{"max_length": 2, "end": END, **wrong})
        assert "\n" not in str(caught.value)
    with pytest.raises(ContractError, match="must return"):
        sample(lambda prefixes: torch.zeros(3), max_length=2)


def test_a_large_vocabulary_is_searched_by_blocks_with_the_same_law():
    """Most of the mass is on three tokens of other blocks, a tenth of it on all the others together."""
    tokens, heavy = 1100, {7: 0.5, 500: 0.3, 1099: 0.1}
    probability = torch.full((tokens,), 0.1 / (tokens - len(heavy)), dtype=torch.float64)
    for token, share in heavy.items():
        probability[token] = share

    def log_probs(prefixes):
        return probability.log().expand(len(prefixes), -1)

    problem = Sequences(tokens, 1)
    whole = drawn_often(as_policy(log_probs), problem, Rounds(tokens, 1), 1)[0]
    assert whole.exhausted
    assert len(set(whole.sequences)) == tokens
    drawn = drawn_often(as_policy(log_probs), problem, Rounds(1, 2, sigma=0.0), TIMES)
    named = [tuple(token if token in heavy else -1 for (token,) in each.sequences) for each in drawn]
    assert not any(first == second for first, second in (each.sequences for each in drawn))
    law: dict[tuple[int, ...], float] = {}
    pairs = (probability[:, None] * probability / (1 - probability[:, None])).fill_diagonal_(0).tolist()
    for first, second in itertools.product(range(tokens), repeat=2):
        key = (first if first in heavy else -1, second if second in heavy else -1)
        law[key] = law.get(key, 0.0) + pairs[first][second]
    law = {key: share for key, share in law.items() if share > 0}
    assert fits(named, law) > 1e-4


def test_priors_that_do_not_fit_into_memory_are_asked_for_again(monkeypatch):
    language = Language(5, 5)
    kept = drawn_often(as_policy(language), language.problem(), Rounds(6, 3, sigma=0.0), 1)[0]
    monkeypatch.setattr("gumbeldore.sequences.sampling.trie_bytes", lambda *sizes: 1 << 50)
    again = drawn_often(as_policy(language), language.problem(), Rounds(6, 3, sigma=0.0), 1)[0]
    assert kept.sequences == again.sequences
    assert kept.evaluations < again.evaluations
