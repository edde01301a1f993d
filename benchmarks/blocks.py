"""Microseconds per token and block of the transformer: compiled, and by the definition in tensor operations.

    python benchmarks/blocks.py [--threads 1] [--seconds 1] [--rows 64]

Forward as in a search (weights folded once), and forward with gradient as in training; a stack of three blocks, the two forms in
turns. The plain product beside them says how fast the core is just now.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
from measure import plain_product, scalars_on

from gumbeldore.networks.layers import Block, FoldedStack, Stack

SIZES = ((64, 8, 256, 20), (64, 8, 256, 50), (128, 8, 512, 50), (192, 12, 512, 50))
"""Width, heads, width of the hidden layer, tokens."""
LAYERS = 3


def in_turns(runs: dict[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """The shortest time of each, called one after the other again and again."""
    best = {name: float("inf") for name in runs}
    for run in runs.values():
        run()
    end = time.perf_counter() + seconds * len(runs)
    while time.perf_counter() < end:
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def defined(blocks: Stack, x: torch.Tensor) -> torch.Tensor:
    """What the blocks are defined to compute."""
    for block in blocks:
        x = block(x, None)
    return x


def with_gradient(blocks: Stack, run: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> Callable[[], None]:
    def step() -> None:
        blocks.zero_grad(set_to_none=True)
        run(x).sum().backward()

    return step


def measured(d: int, heads: int, ff: int, tokens: int, rows: int, seconds: float) -> dict[str, float]:
    """Microseconds per token and block, by form."""
    torch.manual_seed(0)
    blocks = Stack(Block(d, heads, ff) for _ in range(LAYERS))
    scalars_on(blocks)
    x = torch.randn(rows, tokens, d)
    with torch.no_grad():
        folded = blocks.prepare()  # overwrites its tokens
        forward = in_turns({"definition": lambda: defined(blocks, x), "compiled": lambda: folded(x.clone(), None)}, seconds)
    runs = {"definition": lambda x: defined(blocks, x), "compiled": blocks}
    gradient = in_turns({name: with_gradient(blocks, run, x) for name, run in runs.items()}, seconds)
    scale = 1e6 / (rows * tokens * LAYERS)
    if not isinstance(folded, FoldedStack):
        print("The blocks are not compiled on this machine: both columns are the definition.")
    return {
        f"{name}{suffix}": scale * times[name]
        for times, suffix in ((forward, ""), (gradient, " with gradient"))
        for name in runs
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--seconds", type=float, default=1.0, help="for each figure")
    options.add_argument("--rows", type=int, default=64, help="of a batch")
    given = options.parse_args()
    torch.set_num_threads(given.threads)
    print("| | tensor operations | compiled | GFLOP/s of a plain product |\n|---|---|---|---|")
    for d, heads, ff, tokens in SIZES:
        found = measured(d, heads, ff, tokens, given.rows, given.seconds)
        cells = (f"{found[name]:.1f}; {found[name + ' with gradient']:.1f}" for name in ("definition", "compiled"))
        print(f"| d = {d}, {tokens} tokens | {' | '.join(cells)} | {plain_product():.0f} |", flush=True)


if __name__ == "__main__":
    main()
