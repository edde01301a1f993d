"""Different, and better and better, sequences from any sequence model: rounds of sampling without replacement (Algorithm 2).

samples = sample(log_probs, score, end=0, max_length=20, beam_width=32, rounds=4, seed=1)
samples.best(3)
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from jaxtyping import Int
from torch import Tensor

from gumbeldore.search.advantage import AdvantageFn, global_advantage
from gumbeldore.search.auto import AutoStep
from gumbeldore.search.expansion import Round
from gumbeldore.search.memory import trie_bytes
from gumbeldore.search.samplers import Gumbeldore, draw_seeds, evaluation_mode
from gumbeldore.search.scores import by_gumbels, root_gumbels
from gumbeldore.sequences.blocks import BlockSearch
from gumbeldore.sequences.models import STATES, as_policy
from gumbeldore.sequences.problem import Sequences, SequenceState
from gumbeldore.sequences.samples import Samples
from gumbeldore.sequences.scoring import Score, Scorer, Tokens
from gumbeldore.sequences.search import SequenceSearch
from gumbeldore.sequences.until import Until, reason

MANY = 1024
"""From so many tokens on, a search draws its Gumbels by blocks (`blocks.py`)."""


@dataclass(frozen=True)
class Rounds:
    """How to search: `rounds` times `beam_width` sequences, none twice, learning from scores in between.

    `sigma` weighs what is learnt (0: nothing; "auto" standardises the scores). `nucleus` is the top-p of all rounds, or a pair of the first
    and the last one's; 1 switches it off. `until` are rules that end a search before its last round.
    """

    beam_width: int = 32
    rounds: int = 4
    sigma: float | Literal["auto"] = "auto"
    nucleus: float | tuple[float, float] = 1.0
    advantage: AdvantageFn = global_advantage
    until: Until | tuple[Until, ...] = ()

    def __post_init__(self) -> None:
        _ = self.sampler  # checks the settings

    @property
    def sampler(self) -> Gumbeldore:
        """The engine's record of the same settings."""
        pair = (self.nucleus, self.nucleus) if isinstance(self.nucleus, int | float) else self.nucleus
        return Gumbeldore(self.beam_width, self.rounds, nucleus=pair, sigma=self.sigma, advantage=self.advantage)

    @property
    def rules(self) -> tuple[Until, ...]:
        return self.until if isinstance(self.until, tuple) else (self.until,)


def sample(
    log_probs: Any,
    score: Score | None = None,
    *,
    max_length: int,
    end: int | Collection[int] = (),
    prefix: Sequence[int] = (),
    beam_width: int = 32,
    rounds: int = 4,
    sigma: float | Literal["auto"] = "auto",
    nucleus: float | tuple[float, float] = 1.0,
    until: Until | tuple[Until, ...] = (),
    seed: int = 0,
    advantage: AdvantageFn = global_advantage,
    max_scores: int | None = None,
    score_batch: int | None = None,
    skip_failures: bool = False,
    partial: bool = False,
    model_batch: int | None = None,
    memory: int = STATES,
) -> Samples:
    """Different sequences that begin with `prefix`, all of them from the model's distribution, good ones preferred if there is a `score`.

    `log_probs` is a function from prefixes [row, length] to log-probabilities [row, token] (logits will do, -inf forbids a token), or a model
    with a state (`models.py`). A sequence ends with a token of `end`, or after `max_length` tokens beyond the prefix, the end token included.
    See `Rounds` for how to search. Of the score: `max_scores` bounds how many sequences it is asked about, `score_batch` how many at once,
    `skip_failures` goes on where it raises an exception or returns NaN, `partial` makes candidates of all prefixes, too. `model_batch` bounds
    the prefixes in one call, `memory` the bytes of a model's states. Neither changes the answer.
    """
    return deque(stream(**locals()), maxlen=1).pop()


def stream(
    log_probs: Any,
    score: Score | None = None,
    *,
    max_length: int,
    end: int | Collection[int] = (),
    prefix: Sequence[int] = (),
    beam_width: int = 32,
    rounds: int = 4,
    sigma: float | Literal["auto"] = "auto",
    nucleus: float | tuple[float, float] = 1.0,
    until: Until | tuple[Until, ...] = (),
    seed: int = 0,
    advantage: AdvantageFn = global_advantage,
    max_scores: int | None = None,
    score_batch: int | None = None,
    skip_failures: bool = False,
    partial: bool = False,
    model_batch: int | None = None,
    memory: int = STATES,
) -> Iterator[Samples]:
    """Like `sample`: all samples so far, after every round. Stop whenever you like."""
    how = Rounds(beam_width, rounds, sigma, nucleus, advantage, until)
    policy = as_policy(log_probs, memory, model_batch)
    ends = (end,) if isinstance(end, int) else tuple(end)
    problem = Sequences(policy.vocabulary(prefix), max_length, ends)
    scorers = None
    if score is not None:
        scorers = [Scorer(score, max_scores, score_batch, skip_failures, partial, len(prefix))]
    for found in search(problem, policy, problem.start([prefix]), how, seeds_of(seed, 1), scorers):
        yield found[0]


def seeds_of(seed: int, count: int) -> Int[Tensor, " prompt"]:
    """Of prompts: those of the first ones do not depend on how many there are."""
    return draw_seeds(count, torch.Generator().manual_seed(seed))


def search(
    problem: Sequences,
    policy: Any,
    state: SequenceState,
    how: Rounds,
    seeds: Int[Tensor, " prompt"],
    scorers: list[Scorer] | None = None,
    blocks: int | None = None,
) -> Iterator[list[Samples]]:
    """The samples of every prompt (a row of `state`), after each round. Prompts whose search is over keep theirs.

    `blocks` is the size of a block of tokens, in which Gumbels are drawn; None: none for a small vocabulary.
    """
    began, results, sampler = time.monotonic(), list[Round](), how.sampler
    over: list[Any] = [None] * state.row_count
    step = AutoStep.start(state.row_count, state.device)
    active = torch.ones(state.row_count, dtype=torch.bool, device=state.device)
    seeds, searching = seeds.to(state.device), None
    prompts = [tuple(prompt.tolist()) for prompt in state.prompts()]
    for index, p in enumerate(sampler.nucleus_schedule):
        with evaluation_mode(_network_of(policy)):
            searching = searching or _search(problem, policy, state, sampler, scorers, blocks)
            result = searching.round(
                how.beam_width, by_gumbels(seeds, index), nucleus=p, root_score=root_gumbels(seeds, index), active=active
            )
            _learn(searching, result, sampler, step)
        results.append(result)
        seconds = time.monotonic() - began
        samples = [_samples(searching, results, row, prompts[row], seconds, over[row]) for row in range(state.row_count)]
        for row, found in enumerate(samples):
            over[row] = over[row] or _over(how, found)
        samples = [replace(found, stopped_by=why) for found, why in zip(samples, over, strict=True)]
        yield samples
        going_on = [why is None and not each.exhausted for why, each in zip(over, samples, strict=True)]
        active = torch.tensor(going_on, device=state.device)
        if not bool(active.any()):
            return


def _network_of(policy: Any) -> Any:
    """The module behind a policy, if there is one."""
    while not isinstance(policy, torch.nn.Module) and hasattr(policy, "model"):
        policy = policy.model
    return policy


def _search(
    problem: Sequences, policy: Any, state: SequenceState, sampler: Gumbeldore, scorers: list[Scorer] | None, blocks: int | None
) -> SequenceSearch:
    nodes = sampler.rounds * sampler.beam_width
    if blocks is None and problem.vocabulary < MANY:
        size = state.row_count * trie_bytes(nodes, problem.horizon(state), 8 * problem.vocabulary)
        kept = sampler.rounds > 1 and size <= sampler.memory // 2
        return SequenceSearch(problem, policy, state, nodes, cache_priors=kept, transpositions=False, scorers=scorers)
    return BlockSearch(problem, policy, state, nodes, transpositions=False, scorers=scorers, size=blocks or 0)


def _learn(searching: SequenceSearch, result: Round, sampler: Gumbeldore, step: AutoStep) -> None:
    """Lines 5 to 7 of Algorithm 2: removes what was sampled, and shifts the policy by advantages."""
    step.see(result)
    if searching.scorers is not None and sampler.sigma != 0:
        shift = step.shift(result, sampler.advantage) if sampler.sigma == "auto" else sampler.sigma * sampler.advantage(result)
        searching.trie.learn(result.nodes, shift, result.filled)
    searching.trie.remove(result.leaf, result.leaf_depth, result.filled)


def _over(how: Rounds, samples: Samples) -> Any:
    """Why a prompt's search ends, if it does."""
    if samples.scorer is not None and samples.scorer.exhausted:
        return "max_scores"
    return reason(how.rules, samples)


def _samples(searching: SequenceSearch, results: list[Round], row: int, prompt: Tokens, seconds: float, why: Any) -> Samples:
    """All that was drawn for a prompt."""
    problem, scorer = searching.problem, None if searching.scorers is None else searching.scorers[row]
    assert isinstance(problem, Sequences)
    return Samples(
        prompt=prompt,
        end=problem.end,
        rounds=tuple(results),
        scores=tuple(searching.scores),
        row=row,
        remaining_mass=min(1.0, float(searching.trie.left[0, row, 0].exp())),
        evaluations=int(searching.evaluator.made[row]),
        scores_made=0 if scorer is None else scorer.made,
        seconds=seconds,
        stopped_by=why,
        scorer=scorer,
    )
