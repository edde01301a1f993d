"""Writes one family of job shops as files: what somebody's own days may look like, and what no policy of ours was trained on.

    python benchmarks/family.py days/train --files 200 --seed 1
    python benchmarks/family.py days/test --files 100 --seed 2

After Storer, Wu and Vaccari (1992, the instances `swv`): half of the machines are a first workshop and half a second one; every job visits all machines of the
first in a random order, then all of the second. Times are drawn from 1 .. 100, and here also the size: 10 .. 15 jobs on 8, 10 or 12 machines.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np


def shop(random: np.random.RandomState) -> str:
    """The text of a file: a row for each job, of machines and times."""
    jobs, machines = int(random.randint(10, 16)), 2 * int(random.randint(4, 7))
    lines = [f"{jobs} {machines}"]
    for _ in range(jobs):
        half = machines // 2
        order = [*random.permutation(half), *(half + random.permutation(half))]
        times = random.randint(1, 101, machines)
        lines.append(" ".join(f"{machine} {time}" for machine, time in zip(order, times, strict=True)))
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random = np.random.RandomState(options.seed)
    options.folder.mkdir(parents=True, exist_ok=True)
    for number in range(options.files):
        (options.folder / f"day{number:03d}.txt").write_text(shop(random))


if __name__ == "__main__":
    main()
