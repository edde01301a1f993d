"""Where to compute: the device, and how many processes beside this one."""

from __future__ import annotations

import logging
import os

import torch

from gumbeldore.errors import require

_DEVICES = ("cpu", "cuda", "mps", "xpu")

log = logging.getLogger("gumbeldore")


def pick_device(name: str = "auto") -> torch.device:
    """The device to run on: CUDA or an Apple GPU where there is one, unless told otherwise."""
    if name != "auto":
        return _existing_device(name)
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps") if torch.backends.mps.is_available() else torch.device("cpu")


def _existing_device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        there = device.type in _DEVICES and torch.empty(1, device=device).numel() == 1
    except (RuntimeError, AssertionError, NotImplementedError):  # how torch says that it does not know it or has none
        there = False
    require(there, f"`device` must be auto, {', '.join(_DEVICES)} or one like cuda:0, and be there, got {name!r}.")
    return device


def pick_workers(count: int | None, device: str = "auto") -> int:
    """How many worker processes to start: as many as torch would use threads on a CPU, none elsewhere, unless told otherwise."""
    if count is None:
        return torch.get_num_threads() if pick_device(device).type == "cpu" else 0
    return bounded(count)


def bounded(workers: int) -> int:
    """The number of workers that was asked for, as far as there are cores for them."""
    most = max(CROWD * cores(), LEAST)
    if workers > most:
        log.warning("`workers` is %d, but there are %d cores: %d processes are started.", workers, cores(), cores())
        return cores()
    return workers


CROWD, LEAST = 4, 8
"""More workers than so many per core, and than so many at all, are a mistake."""


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
