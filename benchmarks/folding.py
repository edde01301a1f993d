"""Chains on a square lattice, by toy HP models: which way of sampling a small GPT-2 finds the best folds, at equal scores and equal model calls.

    python benchmarks/folding.py --figure docs/figures/folding.png

A fold is a string of turns (left, straight, right). The model learns random self-avoiding walks on the spot and knows nothing of the chain;
the score is the number of contacts between H's that are no neighbours in the chain, and below 0 for a walk that crosses itself. Then the
self-improvement of a GRU that learns to match a hidden regular expression, by samplers with equally many scores.
"""

from __future__ import annotations

import json
import random
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel

from gumbeldore import Gumbeldore, StochasticBeamSearch, TrainingSettings, WithReplacement, self_improve
from gumbeldore.figure import saved_figure
from gumbeldore.sequences import Rounds, Sequences
from gumbeldore.sequences.huggingface import stream

LENGTH = 20
TURNS = LENGTH - 2  # the first step is the same for all
START, LEFT, STRAIGHT, RIGHT = range(4)
BEAM = 32


def walk(turns: tuple[int, ...]) -> list[tuple[int, int]]:
    """The places of a chain."""
    places, x, y = [(0, 0), (1, 0)], 1, 0
    for turn in turns:
        x, y = {STRAIGHT: (x, y), LEFT: (-y, x), RIGHT: (y, -x)}[turn]
        places.append((places[-1][0] + x, places[-1][1] + y))
    return places


def folded(chain: str) -> Callable[[list[tuple[int, ...]]], list[float]]:
    """The score of strings of turns for a chain."""

    def value(turns: tuple[int, ...]) -> float:
        if START in turns or len(turns) != TURNS:
            return -1.0
        places = walk(turns)
        if len(set(places)) < LENGTH:
            return -1.0 + len(set(places)) / LENGTH - 1e-3
        at = {place: index for index, place in enumerate(places)}
        contacts = 0
        for (x, y), index in at.items():
            for other in (at.get((x + 1, y)), at.get((x, y + 1))):
                if other is not None and abs(other - index) > 1 and chain[index] == chain[other] == "H":
                    contacts += 1
        return float(contacts)

    return lambda sequences: [value(sequence[1:]) for sequence in sequences]


def random_walk(source: random.Random) -> list[int]:
    """The turns of a random walk that does not cross itself."""
    while True:
        turns: list[int] = []
        for _ in range(TURNS):
            free = [t for t in (LEFT, STRAIGHT, RIGHT) if len(set(walk((*turns, t)))) == len(turns) + 3]
            if not free:
                break
            turns.append(source.choice(free))
        if len(turns) == TURNS:
            return turns


def trained(seed: int = 0, steps: int = 250) -> GPT2LMHeadModel:
    """A model of random walks."""
    torch.manual_seed(seed)
    source = random.Random(seed)
    config = GPT2Config(vocab_size=4, n_embd=32, n_layer=2, n_head=2, n_positions=LENGTH, bos_token_id=0, eos_token_id=None)
    model = GPT2LMHeadModel(config)
    model.generation_config.pad_token_id = 0
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(steps):
        ids = torch.tensor([[START, *random_walk(source)] for _ in range(32)])
        loss = model(ids, labels=ids).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def sampled(model: Any, count: int, seed: int) -> list[tuple[int, ...]]:
    """`generate(do_sample=True)`: independent samples, the best of which is taken."""
    torch.manual_seed(seed)
    return as_tuples(model.generate(torch.tensor([[START]]), attention_mask=torch.ones(1, 1, dtype=torch.long), max_new_tokens=TURNS, do_sample=True, top_k=0, num_return_sequences=count))  # fmt: skip


def beam_search(model: Any, count: int, seed: int) -> list[tuple[int, ...]]:
    """`generate(num_beams=...)`."""
    return as_tuples(model.generate(torch.tensor([[START]]), attention_mask=torch.ones(1, 1, dtype=torch.long), max_new_tokens=TURNS, num_beams=count, num_return_sequences=count))  # fmt: skip


def as_tuples(rows: Tensor) -> list[tuple[int, ...]]:
    return [tuple(row) for row in rows.tolist()]


@torch.no_grad()
def diverse_beam_search(model: Any, count: int, seed: int, groups: int = 8, penalty: float = 0.5) -> list[tuple[int, ...]]:
    """Groups of beams, each told what the groups before it chose at this step (Vijayakumar et al. 2018, Hamming diversity).

    transformers has moved its own to a repository that has to be downloaded.
    """
    width = count // groups
    beams = [torch.full((1, 1), START) for _ in range(groups)]
    totals = [torch.zeros(1) for _ in range(groups)]
    for _ in range(TURNS):
        used = torch.zeros(4)
        for group in range(groups):
            scores = totals[group][:, None] + model(beams[group]).logits[:, -1].log_softmax(-1)
            order = (scores - penalty * used).flatten().topk(min(width, scores.numel())).indices
            row, token = order // 4, order % 4
            totals[group] = scores.flatten()[order]
            beams[group] = torch.cat([beams[group][row], token[:, None]], 1)
            used += torch.bincount(token, minlength=4)
    return as_tuples(torch.cat(beams))


BASELINES = {"sampling, best of n": sampled, "beam search": beam_search, "diverse beam search": diverse_beam_search}
SEARCHES = {"without replacement": 0.0, "Gumbeldore": "auto"}


def compared(model: Any, chain: str, budgets: list[int], rows: int, seed: int) -> list[dict[str, Any]]:
    """The best score of every method, after so many scores each, and after so many rows through the model."""
    score, found = folded(chain), []
    for name, method in BASELINES.items():
        for count in sorted({*budgets, rows // TURNS // 8 * 8}):
            sequences = method(model, count, seed)
            values = score(sequences)
            found.append(
                {"method": name, "scores": count, "rows": count * TURNS, "best": max(values), "distinct": len(set(sequences))}
            )
    for name, sigma in SEARCHES.items():
        most = max(*budgets, 4 * rows // TURNS)
        how = Rounds(BEAM, -(-most // BEAM), sigma=sigma)
        for (samples,) in stream(model, [[START]], score, max_new_tokens=TURNS, how=how, seed=seed):
            best, count = samples.best(1)[0].score, len(samples)
            found.append({"method": name, "scores": count, "rows": samples.evaluations, "best": best, "distinct": count})
            if count >= max(budgets) and samples.evaluations >= rows:
                break
    return found


def improved(epochs: int, seed: int) -> list[dict[str, Any]]:
    """The best samples of every epoch of the self-improvement in `examples/sequences_gru.py`, by samplers with equally many scores."""
    found = []
    samplers = {
        "Gumbeldore": Gumbeldore(16, 3, sigma="auto"),
        "without replacement": StochasticBeamSearch(16, 3),
        "with replacement": WithReplacement(48),
    }
    example = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "sequences_gru.py"))
    tokens = len(example["LETTERS"])
    for name, sampler in samplers.items():
        torch.manual_seed(seed)
        network = example["GRU"](tokens)
        problem = Sequences(tokens, max_length=14, end=(0,), score=example["score"])
        settings = TrainingSettings(
            epochs=epochs,
            instances=16,
            batches=15,
            batch_size=32,
            learning_rate=5e-3,
            generating="current",
            replay_window=3,
            seed=seed,
        )
        epochs_of_it = self_improve(problem, network, sampler, validation=problem.start([()]), settings=settings)
        found += [
            {"sampler": name, "seed": seed, "epoch": epoch.index, "best": epoch.sampled, "greedy": epoch.validation}
            for epoch in epochs_of_it
        ]
        print(found[-1], flush=True)
    return found


def at(found: list[dict[str, Any]], name: str, axis: str, limit: int) -> dict[str, Any]:
    """The last entry of a method within a limit."""
    return [each for each in found if each["method"] == name and each[axis] <= limit][-1]


def interval(values: list[float]) -> tuple[float, float]:
    """Mean and half a 95 % interval."""
    array = np.array(values)
    return float(array.mean()), float(1.96 * array.std(ddof=1) / len(array) ** 0.5)


def main(
    folder: Path = Path("benchmarks/results/folding"),
    figure: Path | None = None,
    chains: int = 40,
    budgets: tuple[int, ...] = (32, 128, 512),
    rows: int = 2304,
    epochs: int = 8,
    seeds: int = 8,
) -> None:
    """What is in the folder is not computed again."""
    runs, learning = journal(folder / "chains.json"), journal(folder / "learning.json")
    model, source = trained(), random.Random(1)
    for index in range(chains):
        chain = "".join(source.choices("HP", (0.55, 0.45), k=LENGTH))
        if index >= len(runs):
            runs.append(compared(model, chain, list(budgets), rows, index))
            write(folder / "chains.json", runs)
            print(f"chain {index + 1} of {chains}: {chain}", flush=True)
    for seed in range(seeds):
        if all(entry["seed"] != seed for entry in learning):
            learning += improved(epochs, seed)
            write(folder / "learning.json", learning)
    if runs:
        table(runs, list(budgets), rows)
    if figure is not None:
        draw(figure, runs, learning)


def journal(path: Path) -> list[Any]:
    return json.loads(path.read_text()) if path.exists() else []


def write(path: Path, entries: list[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(entries))


def table(runs: list[list[dict[str, Any]]], budgets: list[int], rows: int) -> None:
    """In Markdown: means with 95 % intervals over chains, and differences to sampling on the same chains."""
    limits = [*(("scores", budget) for budget in budgets), ("rows", rows)]
    print(
        "| method | "
        + " | ".join(f"{budget} scores" for budget in budgets)
        + f" | {rows:,} model calls | more than sampling, by scores | by calls |"
    )
    print("|---" * (len(limits) + 3) + "|")
    for name in (*BASELINES, *SEARCHES):
        best = {limit: [at(run, name, *limit)["best"] for run in runs] for limit in limits}
        base = {limit: [at(run, "sampling, best of n", *limit)["best"] for run in runs] for limit in limits}
        cells = ["{:.2f} ± {:.2f}".format(*interval(best[limit])) for limit in limits]
        gaps = ([a - b for a, b in zip(best[limit], base[limit], strict=True)] for limit in limits[-2:])
        cells += ["{:+.2f} ± {:.2f}".format(*interval(gap)) for gap in gaps]
        print(f"| {name} | " + " | ".join(cells) + " |")


def draw(path: Path, runs: list[list[dict[str, Any]]], learning: list[dict[str, Any]]) -> None:
    """Both side by side."""
    with saved_figure(path, 1, 2, (5.0, 3.8)) as (left, right):
        curves(left, runs)
        epochs_of(right, learning)


def curves(left: Any, runs: list[list[dict[str, Any]]]) -> None:
    """The best score by the number of scores."""
    for name in (*BASELINES, *SEARCHES):
        counts = sorted({each["scores"] for each in runs[0] if each["method"] == name and each["scores"] <= 512})
        pairs = [interval([at(run, name, "scores", count)["best"] for run in runs]) for count in counts]
        left.errorbar(counts, [m for m, _ in pairs], [h for _, h in pairs], label=name, capsize=2, marker="o", markersize=3)
    left.set(xscale="log", xlabel="scores", ylabel="contacts of the best fold (mean, 95 %)")
    left.set_xticks([32, 64, 128, 256, 512], ["32", "64", "128", "256", "512"])
    left.minorticks_off()
    left.legend(fontsize=8)


def epochs_of(right: Any, learning: list[dict[str, Any]]) -> None:
    """Self-improvement."""
    for name in dict.fromkeys(each["sampler"] for each in learning):
        epochs = sorted({each["epoch"] for each in learning})
        values = [[e["best"] for e in learning if e["sampler"] == name and e["epoch"] == epoch] for epoch in epochs]
        pairs = [interval(each) for each in values]
        right.errorbar(epochs, [m for m, _ in pairs], [h for _, h in pairs], label=name, capsize=2, marker="o", markersize=3)
    right.set(xlabel="epoch of self-improvement", ylabel="score of the best of 48 (mean, 95 %)")
    right.legend(fontsize=8)


if __name__ == "__main__":
    tyro.cli(main)
