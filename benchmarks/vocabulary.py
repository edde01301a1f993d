"""What a search costs outside the model, at the vocabulary of GPT-2: python benchmarks/vocabulary.py

A 6-layer, 384-wide GPT-2 with random weights, whose distributions are sharpened by a temperature to look like a trained model's, or left
flat. All figures are from one run: seconds in the model, seconds outside, and their ratio.
"""

from __future__ import annotations

import time
from typing import Any

import torch
import tyro
from transformers import GPT2Config, GPT2LMHeadModel, TemperatureLogitsWarper

from gumbeldore.sequences import Rounds, sampling
from gumbeldore.sequences.huggingface import generate


class Clock:
    """Sums the seconds of a module's calls."""

    def __init__(self, module: torch.nn.Module) -> None:
        self.seconds, self.rows, self._began = 0.0, 0, 0.0
        module.register_forward_pre_hook(self._begin, with_kwargs=True)
        module.register_forward_hook(self._end, with_kwargs=True)

    def _begin(self, module: Any, args: Any, kwargs: Any) -> None:
        self._began = time.perf_counter()

    def _end(self, module: Any, args: Any, kwargs: Any, output: Any) -> None:
        self.seconds += time.perf_counter() - self._began
        self.rows += kwargs["input_ids"].shape[0]


def main(tokens: int = 24, beam: int = 32, rounds: int = 2, repeats: int = 2, profile: bool = False) -> None:
    torch.manual_seed(0)
    config = GPT2Config(n_layer=6, n_embd=384, n_head=6)
    model = GPT2LMHeadModel(config).eval()
    clock = Clock(model)
    print(f"{torch.get_num_threads()} threads, {config.vocab_size} tokens, beam {beam}, {rounds} rounds of {tokens} tokens")
    for name, processors in (("flat", []), ("sharp", [TemperatureLogitsWarper(0.1)])):
        for nucleus in (1.0, 0.9) if name == "sharp" else (1.0,):
            how = Rounds(beam, rounds, sigma=0.0, nucleus=nucleus)
            generate(model, [[1, 2, 3]], max_new_tokens=2, how=how, logits_processor=processors)  # warm
            for _ in range(repeats):
                clock.seconds, clock.rows, began = 0.0, 0, time.perf_counter()
                found = generate(model, [[1, 2, 3]], max_new_tokens=tokens, how=how, logits_processor=processors)[0]
                outside = time.perf_counter() - began - clock.seconds
                assert len(set(found.sequences)) == beam * rounds
                print(
                    f"{name:6} nucleus {nucleus}: model {clock.seconds:6.2f} s ({clock.rows} rows), outside {outside:6.2f} s, "
                    f"outside / model {outside / clock.seconds:5.2f}"
                )
    blocks, sampling.MANY = (
        sampling.MANY,
        config.vocab_size + 1,
    )  # Gumbels of all tokens at every prefix, as for small vocabularies
    clock.seconds, clock.rows, began = 0.0, 0, time.perf_counter()
    generate(model, [[1, 2, 3]], max_new_tokens=4, how=Rounds(beam, 1, sigma=0.0))
    outside = time.perf_counter() - began - clock.seconds
    print(
        f"without blocks: model {clock.seconds:6.2f} s, outside {outside:6.2f} s, outside / model {outside / clock.seconds:5.2f}"
    )
    sampling.MANY = blocks
    if profile:
        with torch.profiler.profile() as seen:
            generate(model, [[1, 2, 3]], max_new_tokens=tokens, how=Rounds(beam, 1, sigma=0.0))
        print(seen.key_averages().table(sort_by="self_cpu_time_total", row_limit=18, max_name_column_width=40))


if __name__ == "__main__":
    tyro.cli(main)
