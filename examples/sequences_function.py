"""Different strings from a table of letter frequencies, and better ones by a score: any function of prefixes will do.

python examples/sequences_function.py
"""

from __future__ import annotations

import torch
from torch import Tensor

from gumbeldore.sequences import BetterThan, sample

LETTERS = ".abcdefghijklmnopqrstuvwxyz"  # the dot ends a word
WORDS = [
    "banana",
    "bandana",
    "cabana",
    "canal",
    "carnival",
    "cascade",
    "casino",
    "catalan",
    "dance",
    "decade",
    "facade",
    "salad",
    "salsa",
    "scandal",
    "madam",
    "panama",
    "pasta",
    "tapas",
]


def bigrams() -> Tensor:
    """Log-probabilities of the next letter, counted in the words."""
    counts = torch.full((27, 27), 0.01)
    for word in WORDS:
        for first, second in zip("." + word, word + ".", strict=True):
            counts[LETTERS.index(first), LETTERS.index(second)] += 1
    return (counts / counts.sum(1, keepdim=True)).log()


TABLE = bigrams()


def log_probs(prefixes: Tensor) -> Tensor:
    """Of the next letter, for a batch of prefixes of one length."""
    if prefixes.shape[1] == 0:
        return TABLE[:1].expand(len(prefixes), -1)
    return TABLE[prefixes[:, -1]]


def word(tokens: tuple[int, ...]) -> str:
    return "".join(LETTERS[token] for token in tokens)


def score(sequences: list[tuple[int, ...]]) -> list[float]:
    """Palindromes, long ones best."""
    return [sum(a == b for a, b in zip(s, s[::-1], strict=True)) - 0.3 * len(s) for s in map(word, sequences)]


def main() -> float:
    plain = sample(log_probs, end=0, max_length=12, beam_width=8, rounds=1, seed=1)
    print("different:", ", ".join(map(word, plain)))
    length = plain.estimate(len)
    print(f"mean length under the model: {length.mean:.1f} +- {length.error:.1f}")
    best = sample(log_probs, score, end=0, max_length=12, beam_width=32, rounds=20, until=BetterThan(6.0), seed=1)
    print(f"after {len(best)} words:", ", ".join(f"{word(c.tokens)} ({c.score:.1f})" for c in best.best(5)))
    return best.best(1)[0].score


if __name__ == "__main__":
    main()
