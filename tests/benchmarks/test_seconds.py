"""The benchmark by the second: which files it takes, its table, and its clock."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import seconds

INSTANCES = Path(__file__).parents[1] / "data" / "instances"
CLOCK = Path(seconds.__file__).with_name("processor_time.c")


def line(file: str, method: str, gap: float | None) -> dict:
    return {"file": file, "method": method, "seconds": 1.0, "set": "x", "size": 3, "gap": gap, "took": 1.0}


def test_the_table_pairs_what_was_solved_by_both():
    gaps = {"default": [0.01, 0.03, 0.02], "local-search": [0.02, 0.05, None]}
    text = seconds.table([line(f"x/{place}", name, gap) for name, each in gaps.items() for place, gap in enumerate(each)])
    assert "**x**, 3 files" in text
    assert "| default | 2.00 (1.00 .. 3.00), worst 3.0 |" in text
    assert "worst 5.0, 1 unsolved |" in text
    assert "| default minus local-search, paired | -1.50 (-2.00 .. -1.00) |" in text


def test_files_are_spread_over_the_sizes(tmp_path):
    for name in ("berlin52.tsp", "ulysses16.tsp", "att48.tsp", "A-n32-k5.vrp", "ft06.txt", "X-n101-k25.vrp"):
        shutil.copy(INSTANCES / name, tmp_path)
    some = list(seconds.instances([tmp_path], largest=200, most=3))
    sizes = [seconds.size(given) for _, _, given in some]
    assert len(some) == 3
    assert sizes == sorted(sizes)
    assert all(given.known for _, _, given in some)
    assert sizes[-1] == 104


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler")
def test_the_processors_clock_stands_still_while_a_program_sleeps(tmp_path):
    library = tmp_path / "clock.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, CLOCK, "-ldl"], check=True)
    program = "import time; a, b = time.monotonic(), time.time(); time.sleep(0.5); print(time.monotonic() - a, time.time() - b)"
    run = subprocess.run(
        [sys.executable, "-S", "-c", program], env={"LD_PRELOAD": str(library)}, capture_output=True, text=True, check=True
    )
    assert all(float(word) < 0.4 for word in run.stdout.split())
