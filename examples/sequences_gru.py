"""A GRU that learns from its own best samples to write strings that match a regular expression it never sees.

python examples/sequences_gru.py
"""

from __future__ import annotations

import re

import torch
from torch import Tensor, nn

from gumbeldore import Gumbeldore, TrainingSettings, self_improve
from gumbeldore.sequences import SequenceNetwork, Sequences, sample

LETTERS = "$abcd"  # $ ends a string
HIDDEN = re.compile(r"a(bc|cd)*d{2}(ab)+")


class GRU(SequenceNetwork):
    def __init__(self, tokens: int, width: int = 32) -> None:
        super().__init__()
        self.config = {"tokens": tokens, "width": width}
        self.embedding, self.head = nn.Embedding(tokens + 1, width), nn.Linear(width, tokens)
        self.layer = nn.GRU(width, width, batch_first=True)
        self.first = tokens  # begins every string

    def logits(self, tokens: Tensor) -> Tensor:
        """For training: of the next token after each prefix."""
        return self.head(self.layer(self.embedding(nn.functional.pad(tokens, (1, 0), value=self.first)))[0])

    def start(self, prompts: list[Tensor]) -> tuple[Tensor, Tensor]:
        """For a search: after each prompt ..."""
        ends = [
            self.layer(self.embedding(nn.functional.pad(prompt, (1, 0), value=self.first))[None])[1][:, 0] for prompt in prompts
        ]
        hidden = torch.cat(ends)
        return self.head(hidden), hidden

    def step(self, token: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """... and after one more token."""
        hidden = self.layer(self.embedding(token)[:, None], hidden[None])[1][0]
        return self.head(hidden), hidden


def text(tokens: tuple[int, ...]) -> str:
    return "".join(LETTERS[token] for token in tokens)


def score(sequences: list[tuple[int, ...]]) -> list[float]:
    """How much of a string the expression can match from its beginning, minus what is left over; a point more for all of it."""
    found = []
    for string in map(text, sequences):
        part = next((size for size in range(len(string), 0, -1) if possible(string[:size])), 0)
        found.append(part - 0.5 * (len(string) - part) + (5.0 if HIDDEN.fullmatch(string) else 0.0))
    return found


def possible(start: str) -> bool:
    """Whether a matching string may begin like this: some ends are tried."""
    return any(
        HIDDEN.fullmatch(start + end) for end in ("", "b", "ab", "dab", "ddab", "cddab", "bcddab", "cdddab", "addab", "abcddab")
    )


def main(epochs: int = 6) -> float:
    torch.manual_seed(0)
    network = GRU(len(LETTERS))
    problem = Sequences(len(LETTERS), max_length=14, end=(0,), score=score)
    settings = TrainingSettings(
        epochs=epochs, instances=32, batches=30, batch_size=32, learning_rate=5e-3, generating="current", replay_window=3
    )
    sampler = Gumbeldore(beam_width=16, rounds=3, sigma="auto")
    for epoch in self_improve(problem, network, sampler, validation=problem.start([()]), settings=settings):
        print(f"epoch {epoch.index}: best samples {epoch.sampled:6.2f}, greedy {epoch.validation:6.2f}, loss {epoch.loss:.3f}")
    found = sample(network, score, end=0, max_length=14, beam_width=32, rounds=2, seed=1)
    for candidate in found.best(5):
        print(f"{candidate.score:5.1f}  {text(candidate.tokens)}")
    return found.best(1)[0].score


if __name__ == "__main__":
    main()
