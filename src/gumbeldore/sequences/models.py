"""Sequence models as policies: a function of prefixes, a recurrent model, or one with a cache of pages (keys and values) per token.

A model with a state is called with one token per row, and its states are kept by prefix: those of earlier rounds serve later ones. Where they
exceed the memory, the least recently used ones are forgotten and computed again when they are needed: slower, the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from gumbeldore.errors import ContractError, require
from gumbeldore.sequences.problem import SequenceState
from gumbeldore.sequences.store import Path, StateStore, select

LogProbs = Callable[[Int[Tensor, "row length"]], Any]
"""Log-probabilities (or logits) of the next token for prefixes of one length: a tensor or an array [row, token]."""

STATES = 1 << 30
"""Bytes of model states that are kept by default."""


@runtime_checkable
class RecurrentModel(Protocol):
    """A model whose state stands for a whole prefix. A state is a tensor, or a tuple, list or dictionary of states; axis 0 are rows."""

    def start(self, prompts: list[Int[Tensor, " _"]]) -> tuple[Float[Tensor, "prompt token"], Any]:
        """Log-probabilities (or logits) of the first token after each prompt, and the states there."""
        ...

    def step(self, token: Int[Tensor, " row"], state: Any) -> tuple[Float[Tensor, "row token"], Any]:
        """Those of the next token after one more, and the new states."""
        ...


@runtime_checkable
class PagedModel(Protocol):
    """A model that keeps a page for every token (keys and values, say), and reads all of them."""

    paged: bool

    def start(self, prompts: list[Int[Tensor, " _"]]) -> tuple[Float[Tensor, "prompt token"], Any]:
        """Log-probabilities (or logits) of the first token after each prompt, and anything that `step` needs of the prompts."""
        ...

    def step(
        self, token: Int[Tensor, " row"], pages: Any, memory: Any, prompt: Int[Tensor, " row"]
    ) -> tuple[Float[Tensor, "row token"], Any]:
        """Those of the next token after one more, and its page [row, ...]. `pages` [row, place, ...] are those of the tokens before it
        since the prompt (None: there are none), `memory` is that of `start`, `prompt` says to which of the prompts a row belongs."""
        ...


class FunctionPolicy:
    """A policy from a function of prefixes. It is given all rows of one length at once, or at most `rows` of them."""

    def __init__(self, log_probs: LogProbs, rows: int | None = None) -> None:
        require(rows is None or rows >= 1, f"`rows` must be at least 1, or None for no limit, got {rows}.")
        self.log_probs, self.rows = log_probs, rows

    def vocabulary(self, prompt: Sequence[int]) -> int:
        """How many tokens there are: asks the function once."""
        with torch.no_grad():
            return self._asked(torch.as_tensor(prompt, dtype=torch.long)[None]).shape[1]

    def prepare(self, state: SequenceState) -> None:
        return None

    def __call__(self, state: SequenceState, context: None) -> Float[Tensor, "row token"]:
        parts = state.prefixes()
        if len(parts) == 1:
            return self._asked(parts[0][1])
        answers = [(rows, self._asked(prefixes)) for rows, prefixes in parts]
        joined = answers[0][1].new_empty(state.row_count, answers[0][1].shape[1])
        for rows, answer in answers:
            joined[rows] = answer
        return joined

    def _asked(self, prefixes: Int[Tensor, "row length"]) -> Float[Tensor, "row token"]:
        pieces = prefixes.split(self.rows or max(1, len(prefixes)))
        answer = torch.cat([torch.as_tensor(self.log_probs(piece)) for piece in pieces])
        if answer.dim() != 2 or len(answer) != len(prefixes):
            raise ContractError(
                f"`log_probs` must return [row, token] for {len(prefixes)} prefixes, got the shape {tuple(answer.shape)}."
            )
        return answer if answer.is_floating_point() else answer.double()


class StatefulPolicy:
    """A policy from a `RecurrentModel` or a `PagedModel`, with states by prefix in at most `memory` bytes, `rows` at most in a step."""

    def __init__(self, model: RecurrentModel | PagedModel, memory: int = STATES, rows: int | None = None) -> None:
        require(memory >= 1, f"`memory` must be at least 1 byte, got {memory}.")
        require(rows is None or rows >= 1, f"`rows` must be at least 1, or None for no limit, got {rows}.")
        self.model, self.memory, self.rows = model, memory, rows
        self._ahead: Walk | None = None

    def vocabulary(self, prompt: Sequence[int]) -> int:
        """How many tokens there are: runs the model over the prompt, which the search that follows need not do again."""
        with torch.no_grad():
            self._ahead = self._walk([torch.as_tensor(prompt, dtype=torch.long)])
        return self._ahead.logits.shape[1]

    def prepare(self, state: SequenceState) -> Walk:
        """Runs the model over every prompt, once."""
        ahead, self._ahead = self._ahead, None
        return ahead or self._walk(state.prompts())

    def _walk(self, prompts: list[Int[Tensor, " _"]]) -> Walk:
        logits, states = self.model.start(prompts)
        if logits.shape[0] != len(prompts):
            raise ContractError(f"`start` must return [prompt, token] for {len(prompts)} prompts, got {tuple(logits.shape)}.")
        return Walk(self.model, logits, states, self.memory, self.rows)

    def __call__(self, state: SequenceState, context: Walk) -> Float[Tensor, "row token"]:
        return context(state)


class Walk:
    """A search's way through a model's states. Prefixes are numbered as they are met; a path is the numbers of all prefixes of one."""

    def __init__(self, model: Any, logits: Float[Tensor, "prompt token"], states: Any, memory: int, rows: int | None) -> None:
        self.model, self.logits, self.states, self.rows = model, logits, states, rows
        self.paged = bool(getattr(model, "paged", False))
        self.store = StateStore(memory)
        self.recomputed = 0  # states that had been forgotten
        self._number: dict[tuple[int, int], int] = {}  # by the prefix before (-1 - prompt: none) and the last token
        self._last: list[tuple[int, int]] = []  # prompt and last token of each prefix

    def __call__(self, state: SequenceState) -> Float[Tensor, "row token"]:
        paths = [
            self._path(prompt, tokens[:length])
            for prompt, tokens, length in zip(
                state.instance.tolist(), state.tokens.tolist(), state.length.tolist(), strict=True
            )
        ]
        lengths = {len(path) for path in paths}
        if lengths == {0}:
            return self.logits.index_select(0, state.instance)
        if len(lengths) == 1:
            return self._after(paths)
        answer = self.logits.index_select(0, state.instance)
        for length in lengths - {0}:
            rows = [row for row, path in enumerate(paths) if len(path) == length]
            answer[torch.tensor(rows, device=answer.device)] = self._after([paths[row] for row in rows]).to(answer.dtype)
        return answer

    def _path(self, prompt: int, tokens: Sequence[int]) -> Path:
        path, before = [], -1 - prompt
        for token in tokens:
            number = self._number.get((before, token))
            if number is None:
                number = self._number[before, token] = len(self._last)
                self._last.append((prompt, token))
            path.append(number)
            before = number
        return path

    def _after(self, paths: list[Path]) -> Float[Tensor, "row token"]:
        """Logits after prefixes of one length; if their states do not fit into the memory together, of some after the others."""
        many = self.rows is not None and len(paths) > self.rows
        if many or (len(paths) > 1 and not self.store.holds(len(set().union(*paths)))):
            half = len(paths) // 2
            return torch.cat([self._after(paths[:half]), self._after(paths[half:])])
        self.store.begin(paths)
        for size in range(1, len(paths[0])):
            lacking = {path[size - 1]: path[:size] for path in paths if path[size - 1] not in self.store}
            if lacking:
                self.recomputed += len(lacking)
                self._step(list(lacking.values()))
        return self._step(paths)

    def _step(self, paths: list[Path]) -> Float[Tensor, "row token"]:
        """One step of the model for the last token of each path; the new states are kept."""
        last = torch.tensor([self._last[path[-1]] for path in paths], device=self.logits.device)
        prompt, token = last.unbind(1)
        first = len(paths[0]) == 1
        if self.paged:
            pages = None if first else self.store.pages([path[:-1] for path in paths])
            logits, state = self.model.step(token, pages, self.states, prompt)
        else:
            old = select(self.states, prompt) if first else self.store.states([path[-2] for path in paths])
            logits, state = self.model.step(token, old)
        self.store.put([path[-1] for path in paths], state)
        return logits


def as_policy(model: Any, memory: int = STATES, rows: int | None = None) -> FunctionPolicy | StatefulPolicy:
    """A function, or a model with `start` and `step`, as a policy."""
    require(memory >= 1, f"`memory` must be at least 1 byte, got {memory}.")
    if hasattr(model, "start") and hasattr(model, "step"):
        return StatefulPolicy(model, memory, rows)
    if callable(model):
        return FunctionPolicy(model, rows)
    raise ContractError(f"A model is a function of prefixes, or has `start` and `step`, got {type(model).__name__}.")
