"""Files of numpy's, .npy and .npz. Their size in memory is known before any of it is unpacked, and nothing in them is executed."""

from __future__ import annotations

import math
import os
import tokenize
import zipfile
import zlib
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbeldore.errors import FormatError

_UNREADABLE = (
    *(ValueError, OSError, EOFError, LookupError, MemoryError, RuntimeError, SyntaxError),
    *(zipfile.BadZipFile, zlib.error, tokenize.TokenError),
)
"""What numpy raises about a file that is damaged or something else."""

_NPY = ".npy"
_COPIES = 3
"""Arrays are held about so many times while they are read, checked and scaled."""


def read_array(path: Path) -> NDArray[Any]:
    """The array of a .npy file."""
    try:
        _require_room(path, path.stat().st_size)
        return np.asarray(np.load(path, allow_pickle=False))
    except FormatError:
        raise
    except _UNREADABLE as error:
        said = (str(error).splitlines() or [""])[0]
        raise FormatError(f"{path} cannot be read as a .npy file of plain numbers: {said}") from error


def read_arrays(path: Path, only: Collection[str] | None = None) -> dict[str, NDArray[Any]]:
    """All arrays of an .npz file, or those of these names; objects, which could execute code, are refused."""
    what = f"{path} cannot be read as an .npz file of plain arrays"
    try:
        with open(path, "rb") as handle:
            file = np.load(handle, allow_pickle=False)
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise FormatError(f"{what}: it holds a single array.")
            wanted = [name for name in file.files if only is None or name in only]
            assert file.zip is not None  # only after it was closed
            sizes = _unpacked(file.zip)
            _require_room(path, sum(sizes[name.removesuffix(_NPY)] for name in wanted))
            content = {name: file[name] for name in wanted}
    except FormatError:
        raise
    except _UNREADABLE as error:
        raise FormatError(f"{what}: it is damaged, cut off or something else, or holds Python objects.") from error
    for name, array in content.items():
        if not isinstance(array, np.ndarray):  # numpy hands out anything else as bytes
            raise FormatError(f"{what}: `{name}` is none.")
    return content


def _unpacked(archive: zipfile.ZipFile) -> dict[str, int]:
    """The bytes of each array, by the archive's table of contents; more than that is never unpacked."""
    return {member.filename.removesuffix(_NPY): member.file_size for member in archive.infolist()}


def _require_room(path: Path, size: int) -> None:
    """Raises unless so many bytes of this file fit into memory, with what is made of them."""
    free = free_memory()
    if _COPIES * size > free:
        raise FormatError(
            f"{path} unpacks to {_gigabytes(size)}; to read it takes about {_gigabytes(_COPIES * size)} of memory, but "
            f"{_gigabytes(free)} are free. Split it into smaller files."
        )


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.2g} GB" if size < 1e10 else f"{size / 1e9:,.0f} GB"


def free_memory() -> float:
    """Bytes that this process may still take, where the system says so: of the machine, and of the container it may be in."""
    return min(_free_on_machine(), _free_in_container())


def _free_on_machine() -> float:
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    with suppress(AttributeError, ValueError, OSError):
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return math.inf


def _free_in_container() -> float:
    """By control groups, version 2."""
    group = Path("/sys/fs/cgroup")
    with suppress(OSError, ValueError):
        return float(int((group / "memory.max").read_text()) - int((group / "memory.current").read_text()))
    return math.inf
