"""Different samples of a GPT-2 by `generate` of transformers. The model is tiny and learns a language of brackets on the spot.

python examples/sequences_gpt2.py
"""

from __future__ import annotations

import random

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from gumbeldore.sequences.huggingface import gumbeldore_search

SIGNS = "$([)]"  # $ begins and ends a string


def balanced(length: int, source: random.Random) -> str:
    """A random balanced string."""
    if length == 0:
        return ""
    inner = 2 * source.randrange(length // 2)
    open_, close = source.choice([("(", ")"), ("[", "]")])
    return open_ + balanced(inner, source) + close + balanced(length - 2 - inner, source)


def trained(steps: int = 120) -> GPT2LMHeadModel:
    torch.manual_seed(0)
    source = random.Random(0)
    config = GPT2Config(vocab_size=len(SIGNS), n_embd=32, n_layer=2, n_head=2, n_positions=32, bos_token_id=0, eos_token_id=0)
    model = GPT2LMHeadModel(config)
    model.generation_config.pad_token_id = 0
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(steps):
        ids = torch.tensor([[SIGNS.index(c) for c in f"${balanced(10, source)}$"] for _ in range(32)])
        loss = model(ids, labels=ids).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def text(tokens: tuple[int, ...]) -> str:
    return "".join(SIGNS[token] for token in tokens).strip("$")


def depth(sequences: list[tuple[int, ...]]) -> list[float]:
    """How deep brackets are nested; minus what is left open."""
    scores = []
    for string in map(text, sequences):
        levels = [0]
        for sign in string:
            levels.append(levels[-1] + (1 if sign in "([" else -1))
        scores.append(max(levels) - 2.0 * abs(levels[-1]) + min(0, *levels))
    return scores


def main() -> int:
    model, ids = trained(), torch.tensor([[0, 1], [0, 2]])
    settings = {
        "attention_mask": torch.ones_like(ids),
        "max_new_tokens": 12,
        "do_sample": True,
        "top_k": 0,
        "num_return_sequences": 4,
    }
    plain = model.generate(ids, custom_generate=gumbeldore_search(beam_width=4, rounds=1), **settings)
    print("different:", [text(tuple(row)) for row in plain.tolist()])
    method = gumbeldore_search(depth, beam_width=16, rounds=4, seed=1)
    best = model.generate(ids, custom_generate=method, return_dict_in_generate=True, **settings)
    for row, value, log_prob in zip(best.sequences.tolist(), best.scores.tolist(), best.log_probs.tolist(), strict=True):
        print(f"depth {value:4.0f}  log-probability {log_prob:6.2f}  {text(tuple(row))}")
    samples = best.samples[0]
    print(f"{len(samples)} different strings after `(`; {samples.remaining_mass:.2f} of the probability is left")
    return len(set(map(tuple, plain.tolist())))


if __name__ == "__main__":
    main()
