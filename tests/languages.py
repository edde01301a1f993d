"""Languages small enough to enumerate: the next token depends on the one before and on the length, so that no two prefixes are alike."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import torch
from scipy import stats
from torch import Tensor

from gumbeldore.sequences import Rounds, Samples, search
from gumbeldore.sequences.problem import Sequences

END = 0
Drawn = tuple[tuple[int, ...], ...]


class Language:
    """Log-probabilities from a table; `END` ends a sequence, and so does `length`."""

    def __init__(self, tokens: int = 3, length: int = 2, *, seed: int = 0, forbidden: bool = True) -> None:
        generator = torch.Generator().manual_seed(seed)
        logits = torch.randn(length + 1, tokens + 1, tokens, generator=generator, dtype=torch.float64)
        if forbidden:
            logits[0, -1, 1] = -torch.inf
        self.table, self.tokens, self.length = logits.log_softmax(-1), tokens, length
        self.asked = 0

    def __call__(self, prefixes: Tensor) -> Tensor:
        self.asked += len(prefixes)
        last = prefixes[:, -1] if prefixes.shape[1] else torch.full((len(prefixes),), self.tokens)
        return self.table[prefixes.shape[1], last]

    def problem(self) -> Sequences:
        return Sequences(self.tokens, self.length, (END,))

    def distribution(self) -> dict[tuple[int, ...], float]:
        """All sequences (without the end token) and their probabilities."""
        found: dict[tuple[int, ...], float] = {}

        def grow(prefix: tuple[int, ...], probability: float) -> None:
            row = self(torch.tensor([prefix], dtype=torch.long))[0].exp().tolist()
            for token, share in enumerate(row):
                if share == 0:
                    continue
                if token == END:
                    found[prefix] = found.get(prefix, 0.0) + probability * share
                elif len(prefix) + 1 == self.length:
                    found[(*prefix, token)] = probability * share
                else:
                    grow((*prefix, token), probability * share)

        grow((), 1.0)
        return found


def drawn_often(policy: object, problem: Sequences, how: Rounds, times: int, **more: object) -> list[Samples]:
    """The same search with many seeds, side by side."""
    state = problem.start([()] * times)
    return list(search(problem, policy, state, how, torch.arange(times) * 7919 + 11, **more))[-1]


def without_replacement(distribution: dict[tuple[int, ...], float], count: int) -> dict[Drawn, float]:
    """The law of `count` ordered draws without replacement."""
    laws: dict[Drawn, float] = {(): 1.0}
    for _ in range(count):
        more: dict[Drawn, float] = {}
        for drawn, probability in laws.items():
            rest = {s: p for s, p in distribution.items() if s not in drawn}
            total = math.fsum(rest.values())
            more |= {(*drawn, s): probability * p / total for s, p in rest.items()}
        laws = more
    return laws


def fits(observed: Iterable[Drawn], law: dict[Drawn, float]) -> float:
    """The p-value of a chi-squared test; rare outcomes are taken together."""
    counts = Counter(observed)
    assert counts.keys() <= law.keys(), "something impossible was drawn"
    total = sum(counts.values())
    common = [drawn for drawn, p in law.items() if p * total >= 5]
    seen = [counts[drawn] for drawn in common]
    wanted = [law[drawn] * total for drawn in common]
    if (rest := total - sum(wanted)) > 1e-9:
        seen.append(total - sum(seen))
        wanted.append(rest)
    return float(stats.chisquare(seen, wanted).pvalue)


def alike(first: Sequence[Drawn], second: Sequence[Drawn]) -> float:
    """The p-value of a chi-squared test that two lists have one law."""
    one, two = Counter(first), Counter(second)
    common = [drawn for drawn in one | two if one[drawn] + two[drawn] >= 10]
    table = [[one[drawn] for drawn in common], [two[drawn] for drawn in common]]
    rest = [len(first) - sum(table[0]), len(second) - sum(table[1])]
    if sum(rest) >= 10:
        table = [[*row, more] for row, more in zip(table, rest, strict=True)]
    return float(stats.chi2_contingency(table).pvalue)
