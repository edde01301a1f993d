"""Files of numpy's, .npy and .npz. Their size in memory is known before any of it is unpacked, and nothing in them is executed."""

from __future__ import annotations

import tokenize
import zipfile
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gumbeldore.errors import FormatError
from gumbeldore.memory import free_memory, gigabytes

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
            f"{path} unpacks to {gigabytes(size)}; to read it takes about {gigabytes(_COPIES * size)} of memory, but "
            f"{gigabytes(free)} are free. Split it into smaller files."
        )
