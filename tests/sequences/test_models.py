"""Models with states: the same answers as without, whatever the memory."""

from __future__ import annotations

import pytest
import torch
from languages import END, drawn_often, fits, without_replacement
from torch import nn

from gumbeldore.errors import ContractError, SettingsError
from gumbeldore.sequences import Rounds, StatefulPolicy, sample, search
from gumbeldore.sequences.models import as_policy
from gumbeldore.sequences.problem import Sequences
from gumbeldore.sequences.sampling import seeds_of

TOKENS = 4


class Recurrent(nn.Module):
    """A GRU whose state is a dictionary, that counts its rows."""

    def __init__(self, tokens: int = TOKENS) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.embedding = nn.Embedding(tokens + 1, 8)
        self.cell, self.head = nn.GRUCell(8, 12), nn.Linear(12, tokens)
        self.tokens, self.rows, self.starts = tokens, 0, 0
        self.double().requires_grad_(False)
        for weight in self.parameters():
            weight.mul_(3)

    def start(self, prompts):
        self.starts += 1
        states = torch.zeros(len(prompts), 12, dtype=torch.float64)
        logits = []
        for row, prompt in enumerate(prompts):
            for token in [self.tokens, *prompt.tolist()]:
                states[row] = self.cell(self.embedding(torch.tensor(token)), states[row])
            logits.append(self.head(states[row]))
        return torch.stack(logits), {"hidden": (states,)}

    def step(self, token, state):
        self.rows += len(token)
        hidden = self.cell(self.embedding(token), state["hidden"][0])
        return self.head(hidden), {"hidden": (hidden,)}

    def uncached(self, prefixes):
        logits, state = self.start([prefix[:0] for prefix in prefixes])
        for token in prefixes.t():
            logits, state = self.step(token, state)
        return logits


class Bags(nn.Module):
    """A model that reads a page for every token: its weight is the place, so that none may be lost or out of order."""

    paged = True

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.embedding = nn.Embedding(TOKENS, TOKENS).double().requires_grad_(False)

    def start(self, prompts):
        memory = torch.stack([self.embedding(prompt).sum(0) for prompt in prompts])
        return memory, memory

    def step(self, token, pages, memory, prompt):
        page = self.embedding(token)
        total = memory[prompt] + page * (1 + (0 if pages is None else pages.shape[1]))
        if pages is not None:
            total = total + (pages * torch.arange(1, pages.shape[1] + 1)[:, None]).sum(1)
        return total, page

    def uncached(self, prefixes):
        """Of the prompt (1, 2)."""
        start = self.embedding(prefixes[:, :2]).sum(1)
        place = torch.arange(1, prefixes.shape[1] - 1)[:, None]
        return start + (self.embedding(prefixes[:, 2:]) * place).sum(1)


@pytest.mark.parametrize("memory", [1 << 30, 96 * 40, 96 * 7])
def test_a_recurrent_model_answers_as_the_function_that_it_is(memory):
    model, settings = Recurrent(), {"end": END, "max_length": 7, "beam_width": 12, "rounds": 4, "seed": 3}
    plain, kept = sample(model.uncached, **settings), sample(model, memory=memory, **settings)
    assert plain.sequences == kept.sequences
    torch.testing.assert_close(plain.log_prob, kept.log_prob, rtol=0, atol=1e-12)
    torch.testing.assert_close(plain.perturbed, kept.perturbed, rtol=0, atol=1e-9)
    assert plain.evaluations == kept.evaluations


@pytest.mark.parametrize("memory", [1 << 30, 32 * 20, 32 * 6])
def test_a_model_with_pages_answers_as_the_function_that_it_is(memory):
    settings = {"prefix": (1, 2), "end": END, "max_length": 6, "beam_width": 12, "rounds": 4, "seed": 3}
    model = Bags()
    plain, kept = sample(model.uncached, **settings), sample(model, memory=memory, **settings)
    assert plain.sequences == kept.sequences
    torch.testing.assert_close(plain.log_prob, kept.log_prob, rtol=0, atol=1e-12)


def test_a_state_is_computed_once_where_memory_allows():
    model = Recurrent()
    found = sample(model, end=END, max_length=7, beam_width=12, rounds=4)
    assert model.rows == found.evaluations - 1
    assert model.starts == 1


def test_a_little_memory_costs_time():
    policy, problem = StatefulPolicy(Recurrent(), memory=96 * 7), Sequences(TOKENS, 7, (END,))
    walks, prepare = [], policy.prepare
    policy.prepare = lambda state: walks.append(prepare(state)) or walks[-1]
    list(search(problem, policy, problem.start([()]), Rounds(12, 4), seeds_of(3, 1)))
    assert walks[0].recomputed > 0
    assert walks[0].store.forgotten > 0


def test_a_memory_below_one_sequence_is_an_error():
    with pytest.raises(SettingsError, match="one sequence at least"):
        sample(Bags(), prefix=(1,), end=END, max_length=6, memory=40)


@pytest.mark.parametrize("rows", [1, 5])
def test_the_answer_does_not_depend_on_how_many_rows_step_together(rows):
    settings = {"end": END, "max_length": 7, "beam_width": 12, "rounds": 4, "seed": 3}
    whole, parts = sample(Recurrent(), **settings), sample(Recurrent(), model_batch=rows, **settings)
    assert whole.sequences == parts.sequences


@pytest.mark.parametrize("blocks", [None, 2])
def test_the_law_is_that_of_sampling_without_replacement(blocks):
    model, times = Recurrent(3), 1500
    everything = sample(model, end=END, max_length=2, beam_width=20, rounds=1)
    law = {s: float(p.exp()) for s, p in zip(everything.sequences, everything.log_prob, strict=True)}
    drawn = drawn_often(as_policy(model), Sequences(3, 2, (END,)), Rounds(2, 2, sigma=0.0), times, blocks=blocks)
    assert fits((tuple(each.sequences) for each in drawn), without_replacement(law, 4)) > 1e-4


def test_what_is_no_model_is_said():
    with pytest.raises(ContractError, match="`start` and `step`"):
        sample(7, max_length=3)

    class Wrong(Recurrent):
        def start(self, prompts):
            logits, state = super().start(prompts)
            return torch.cat([logits, logits]), state

    with pytest.raises(ContractError, match="for 1 prompts"):
        sample(Wrong(), max_length=3)
