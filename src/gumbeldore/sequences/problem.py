"""Sequences of tokens as a problem: a token is an action, a prompt an instance, the score the objective."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gumbeldore.errors import SettingsError, require
from gumbeldore.problem import Examples, Problem, State, precise
from gumbeldore.sequences.scoring import Score, Scorer, Tokens

NOTHING = -1
"""Where a tensor of tokens holds none."""


@dataclass(frozen=True)
class SequenceState(State):
    """Prefixes: a prompt, and the tokens chosen since."""

    per_instance: ClassVar[tuple[str, ...]] = ("prompt",)

    prompt: Int[Tensor, "instance position"]  # padded with -1 on the left
    tokens: Int[Tensor, "row place"]  # -1 from `length` on
    length: Int[Tensor, " row"]
    ended: Bool[Tensor, " row"]

    def prompts(self) -> list[Int[Tensor, " _"]]:
        """The prompt of every instance without its padding."""
        return [prompt[prompt != NOTHING] for prompt in self.prompt]

    def prefixes(self) -> list[tuple[Int[Tensor, " row"], Int[Tensor, "row length"]]]:
        """Rows with whole prefixes (prompt and tokens) of equal lengths together: which rows, and their prefixes."""
        whole = torch.cat([self.prompt[self.instance], self.tokens], 1)
        begin = self.prompt.shape[1] - (self.prompt != NOTHING).sum(1)[self.instance]
        end = self.prompt.shape[1] + self.length
        groups = []
        for size in (end - begin).unique().tolist():
            rows = (end - begin == size).nonzero().squeeze(1)
            place = begin[rows, None] + torch.arange(size, device=self.device)
            groups.append((rows, whole[rows].gather(1, place)))
        return groups


Stop = Callable[[SequenceState], Bool[Tensor, " row"]]
"""Whether prefixes are complete for a reason of their own; a function of the prefix alone."""


@dataclass
class Sequences(Problem[SequenceState]):
    """Sequences over `vocabulary` tokens that end with one of `end`, after `max_length` tokens, or where `stop` says so.

    `prompts` are what `generate` draws from; a search may start from any. Give `score` to maximise it: a function from a list of
    sequences (tuples of tokens: prompt and continuation, without the end token) to their scores.
    """

    vocabulary: int
    max_length: int  # tokens after the prompt, the end token included
    end: tuple[int, ...] = ()
    score: Score | None = None
    prompts: Sequence[Tokens] = ((),)
    stop: Stop | None = None
    _scorer: Scorer | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("vocabulary", "max_length"):
            require(getattr(self, name) >= 1, f"`{name}` must be at least 1, got {getattr(self, name)}.")
        for token in self.end:
            require(0 <= token < self.vocabulary, f"`end` must hold tokens of 0 .. {self.vocabulary - 1}, got {token}.")
        self._scorer = None if self.score is None else Scorer(self.score)

    def start(self, prompts: Iterable[Sequence[int]], device: torch.device | str = "cpu") -> SequenceState:
        """One empty continuation of each prompt."""
        rows = [torch.as_tensor(prompt, dtype=torch.long) for prompt in prompts]
        width = max((len(row) for row in rows), default=0)
        padded = [torch.nn.functional.pad(row, (width - len(row), 0), value=NOTHING) for row in rows]
        count = len(rows)
        return SequenceState(
            instance=torch.arange(count),
            prompt=torch.stack(padded) if count else torch.empty(0, 0, dtype=torch.long),
            tokens=torch.full((count, self.max_length), NOTHING),
            length=torch.zeros(count, dtype=torch.long),
            ended=torch.zeros(count, dtype=torch.bool),
        ).to(device)

    def generate(self, count: int, *, generator: torch.Generator, device: torch.device | str = "cpu") -> SequenceState:
        """`count` of the prompts, drawn with replacement."""
        drawn = torch.randint(len(self.prompts), (count,), generator=generator).tolist()
        return self.start([self.prompts[i] for i in drawn], device)

    def mask(self, state: SequenceState) -> Bool[Tensor, "row action"]:
        return torch.ones(1, 1, dtype=torch.bool, device=state.device).expand(state.row_count, self.vocabulary)

    def done(self, state: SequenceState) -> Bool[Tensor, " row"]:
        return state.ended

    def step(self, state: SequenceState, action: Int[Tensor, " row"]) -> SequenceState:
        """A finished row stays as it is."""
        place = state.length.clamp(max=self.max_length - 1)[:, None]
        kept = state.tokens.gather(1, place)
        tokens = state.tokens.scatter(1, place, torch.where(state.ended[:, None], kept, action[:, None]))
        length = state.length + (~state.ended).long()
        ended = state.ended | (length >= self.max_length)
        for token in self.end:
            ended = ended | (action == token)
        moved = replace(state, tokens=tokens, length=length, ended=ended)
        if self.stop is not None and not bool(ended.all()):
            rows = (~ended).nonzero().squeeze(1)
            ended = ended.index_copy(0, rows, self.stop(moved.rows(rows)))
            moved = replace(moved, ended=ended)
        return moved

    def horizon(self, state: SequenceState) -> int:
        return self.max_length - int(state.length.min())

    def objective(self, state: SequenceState) -> Float[Tensor, " row"]:
        """The scores of finished rows, of equal ones once; 0 without a score."""
        value = torch.zeros(state.row_count, dtype=precise(state.device), device=state.device)
        if self._scorer is None:
            return value
        rows = state.ended.nonzero().squeeze(1)
        scores = self._scorer(self.sequences(state.rows(rows)))
        return value.index_copy(0, rows, torch.tensor(scores, dtype=value.dtype, device=value.device))

    def sequences(self, state: SequenceState) -> list[Tokens]:
        """Prompt and continuation of each row, without the end token: what a score is given."""
        prompts = [tuple(token for token in prompt if token != NOTHING) for prompt in state.prompt[state.instance].tolist()]
        rows = zip(prompts, state.tokens.tolist(), state.length.tolist(), strict=True)
        return [prompt + self.content(tokens[:length]) for prompt, tokens, length in rows]

    def content(self, tokens: Sequence[int]) -> Tokens:
        """A continuation without its end token."""
        ends = len(tokens) > 0 and tokens[-1] in self.end
        return tuple(tokens[:-1] if ends else tokens)

    def examples_after(
        self, state: SequenceState, actions: Int[Tensor, "row depth"], steps: Int[Tensor, " row"], *, generator: torch.Generator
    ) -> Examples[SequenceState]:
        """The next token after a prefix; and as `successor`, all tokens of the sequence, place by place."""
        if bool((state.length > 0).any()):
            raise SettingsError("A sequence to learn from must start at its prompt: put the tokens so far into the prompt.")
        actions = torch.nn.functional.pad(actions, (0, self.max_length - actions.shape[1]), value=NOTHING)
        place = torch.arange(self.max_length, device=actions.device)
        prefix = replace(state, tokens=actions.where(place < steps[:, None], NOTHING), length=steps)
        return Examples(prefix, actions.gather(1, steps[:, None]).squeeze(1), actions)
