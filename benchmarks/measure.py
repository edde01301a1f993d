"""Measuring inside one process: a plain matrix product, the peak of the memory, and the command line of both sides."""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Callable
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import torch
from cases import Case, named, small

RESET = Path("/proc/self/clear_refs")


def plain_product(seconds: float = 0.3, size: int = 1024) -> float:
    """GFLOP/s of a float32 matrix product with as many threads as torch uses."""
    a, b = torch.randn(2, size, size)
    torch.mm(a, b)
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        torch.mm(a, b)
        count += 1
    return 2 * size**3 * count / (time.perf_counter() - start) / 1e9


class PeakMemory:
    """How far the resident memory of this process rises above where it is now. Linux only: elsewhere it is NaN."""

    def __init__(self) -> None:
        self.before = _status("VmRSS")
        try:
            RESET.write_text("5")  # VmHWM starts again from the present size
        except OSError:
            self.before = float("nan")

    def megabytes(self, *, with_workers: bool = False) -> float:
        """The rise, with all memory of the worker processes if that is asked for."""
        workers = 0 if not with_workers else sum(_status("VmHWM", str(child.pid)) for child in active_children())
        return _status("VmHWM") - self.before + workers


def _status(field: str, process: str = "self") -> float:
    file = Path("/proc") / process / "status"
    found = re.search(rf"{field}:\s+(\d+) kB", file.read_text()) if file.exists() else None
    return int(found[1]) / 1024 if found else float("nan")


def scalars_on(network: torch.nn.Module) -> None:
    """Sets the ReZero scalars, which start at 0, so that the random blocks have a say."""
    for name, parameter in network.named_parameters():
        if name.endswith("resweight"):
            torch.nn.init.constant_(parameter, 0.3)


def parser(description: str | None) -> argparse.ArgumentParser:
    """The options of a process that times one case."""
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--case", required=True, help="a name from cases.py")
    options.add_argument("--seconds", type=float, default=5.0, help="time at least so long (whole runs, at least one)")
    options.add_argument("--threads", type=int, default=torch.get_num_threads())
    options.add_argument("--smoke", action="store_true", help="tiny sizes: checks the benchmark only")
    return options


def report(options: argparse.Namespace, run: Callable[[Case], dict[str, Any]]) -> None:
    """Runs the case between two plain products and prints one line of JSON."""
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    case = small(named(options.case)) if options.smoke else named(options.case)
    products = [plain_product()]
    result = run(case)
    products.append(plain_product())
    print(json.dumps({"case": case.name, **result, "product_gflops": sum(products) / 2}), flush=True)
