"""Networks over sequences that learn through the same Algorithm 1."""

from __future__ import annotations

import torch
from torch import nn

from gumbeldore import Gumbeldore, TrainingSettings, self_improve
from gumbeldore.search.samplers import draw_seeds
from gumbeldore.sequences import SequenceNetwork, Sequences, sample
from gumbeldore.training.loss import losses

TOKENS, LENGTH = 4, 6


class Tiny(SequenceNetwork):
    def __init__(self) -> None:
        super().__init__()
        self.config = {}
        self.embedding, self.head = nn.Embedding(TOKENS + 1, 16), nn.Linear(16, TOKENS)
        self.layer = nn.GRU(16, 16, batch_first=True)

    def logits(self, tokens):
        return self.head(self.layer(self.embedding(nn.functional.pad(tokens, (1, 0), value=TOKENS)))[0])

    def start(self, prompts):
        ends = [self.layer(self.embedding(nn.functional.pad(p, (1, 0), value=TOKENS))[None])[1][:, 0] for p in prompts]
        return self.head(torch.cat(ends)), torch.cat(ends)

    def step(self, token, hidden):
        hidden = self.layer(self.embedding(token)[:, None], hidden[None])[1][0]
        return self.head(hidden), hidden


def ones(sequences):
    return [float(sum(token == 1 for token in sequence)) for sequence in sequences]


def network():
    torch.manual_seed(0)
    return Tiny()


def problem(**settings):
    return Sequences(TOKENS, LENGTH, (0,), **settings)


def test_states_and_whole_sequences_give_the_same_log_probabilities():
    tiny = network().double()
    whole = sample(lambda prefixes: tiny.logits(prefixes)[:, -1].detach(), end=0, max_length=LENGTH, prefix=(1, 2), seed=3)
    steps = sample(tiny, end=0, max_length=LENGTH, prefix=(1, 2), seed=3)
    assert whole.sequences == steps.sequences
    torch.testing.assert_close(whole.log_prob, steps.log_prob)


def test_the_loss_is_that_of_the_wanted_token_and_of_all_tokens():
    """Prompts of different lengths in one batch, against one sequence after the other."""
    tiny, task = network().double(), problem()
    state = task.start([(1, 2), (), (3,)])
    actions = torch.tensor([[1, 2, 0, -1], [3, 3, 1, 0], [0, -1, -1, -1]])
    steps = torch.tensor([1, 3, 0])
    examples = task.examples_after(state, actions, steps, generator=torch.Generator())
    wanted, shown = losses(task, tiny, examples)
    for row, prompt in enumerate([(1, 2), (), (3,)]):
        tokens = actions[row][actions[row] >= 0]
        log_probs = tiny.logits(torch.tensor([[*prompt, *tokens.tolist()]])).log_softmax(-1)[0, len(prompt) : -1]
        each = -log_probs[torch.arange(len(tokens)), tokens]
        torch.testing.assert_close(shown[row], each[steps[row]])
        torch.testing.assert_close(wanted[row], each[steps[row]] + each.mean())


def test_self_improvement_finds_what_is_scored():
    settings = TrainingSettings(
        epochs=3, instances=16, batches=25, batch_size=32, learning_rate=1e-2, generating="current", replay_window=2
    )
    task, tiny = problem(score=ones), network()
    validation = task.start([()])
    epochs = list(self_improve(task, tiny, Gumbeldore(8, 2, sigma="auto"), validation=validation, settings=settings))
    assert epochs[-1].sampled > epochs[0].sampled
    assert epochs[-1].validation == LENGTH


def test_samplers_of_the_library_take_sequences():
    tiny, task = network(), problem(score=ones)
    state = task.start([(), (1,), (2, 2)])
    found = Gumbeldore(4, 2, sigma=0.3)(task, tiny, state, seeds=draw_seeds(3, torch.Generator().manual_seed(0)))
    assert bool(found.filled.all())
    for row in range(3):
        sequences = {tuple(actions) for actions in found.actions[row].tolist()}
        assert len(sequences) == 8


def test_prompts_are_drawn_from_those_that_are_given():
    task = problem(prompts=[(1,), (2, 3)])
    state = task.generate(20, generator=torch.Generator().manual_seed(0))
    assert {tuple(prompt.tolist()) for prompt in state.prompts()} == {(1,), (2, 3)}
