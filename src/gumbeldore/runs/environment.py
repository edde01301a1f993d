"""environment.json: with what, on what and by which command a run was made. One record per start of the run."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

import gumbeldore
from gumbeldore.networks import native
from gumbeldore.parallel.cluster import Cluster
from gumbeldore.parallel.ranks import ranks

_PACKAGES = ("gumbeldore", "torch", "numpy", "safetensors")


def environment(seeds: dict[str, int], device: torch.device, workers: int | Cluster) -> dict[str, Any]:
    """What it takes, besides the settings, to tell why a run came out as it did."""
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "seeds": seeds,
        "device": str(device),
        "workers": asdict(workers) if isinstance(workers, Cluster) else workers,
        "ranks": ranks().count,
        "threads": torch.get_num_threads(),
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}},
        "commit": commit(Path(gumbeldore.__file__).parent),
        "compiled_blocks": native.library() is not None,
        "hardware": _hardware(),
    }


def _hardware() -> dict[str, Any]:
    """The machine."""
    return {
        "system": platform.platform(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_mb": _memory(),
        "gpus": [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())],
    }


def commit(folder: Path) -> str | None:
    """The commit of the source code in a folder, if it is under version control; "+" after it: with changes."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True, timeout=10)
        return done.stdout.strip()

    with suppress(OSError, subprocess.SubprocessError):
        git("ls-files", "--error-unmatch", "__init__.py")  # not a copy that happens to lie in another repository
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--", ".") else "")
    return None


def _version(package: str) -> str | None:
    with suppress(PackageNotFoundError):
        return version(package)
    return None


def _cpu() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory() -> int | None:
    with suppress(AttributeError, ValueError, OSError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    return None
