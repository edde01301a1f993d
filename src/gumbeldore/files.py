"""Files that a killed process leaves whole: the old one or the new one. Folders with one user at a time."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from gumbeldore.errors import BusyError, DiskFullError, SettingsError

LOCK = ".lock"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # no space left, the user's share is used up, larger than files may be


def write_atomically(path: Path, write: Callable[[Path], object], *, keep: Path | None = None) -> None:
    """Writes a neighbouring file, forces it to disk and renames it: a killed process leaves the old file or the new one.

    The old file goes on under the name `keep`, if there is one.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with full_disk_named(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            write(temporary)
            with open(temporary, "rb") as handle:
                os.fsync(handle.fileno())
            if keep is not None and path.exists():
                _also_call(path, keep)
            os.replace(temporary, path)
    finally:
        with suppress(OSError):
            temporary.unlink()


def _also_call(path: Path, name: Path) -> None:
    """Gives a file a second name, in place of whatever had it; where files have only one, it gets that name instead."""
    link = name.with_name(f".{name.name}.{os.getpid()}.part")
    try:
        os.link(path, link)
        os.replace(link, name)
    except OSError:
        os.replace(path, name)
    finally:
        with suppress(OSError):
            link.unlink()  # it stays if both names were of the same file already


@contextmanager
def full_disk_named(path: Path) -> Iterator[None]:
    """Raises a `DiskFullError` where writing this file fails because there is no room for it."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise DiskFullError(f"The disk is full: {path} cannot be written. Make room for it.") from error
        raise


def remove_parts(folder: Path, names: Iterable[str]) -> None:
    """Removes what killed processes left of files with these names. Only for a folder in which nobody else writes."""
    for name in names:
        for part in folder.glob(f".{name}.*.part"):
            with suppress(OSError):
                part.unlink()


def check_writable(folder: Path, option: str) -> None:
    """Makes the folder and sees whether files can be written there: before hours of work, not after."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with full_disk_named(folder), tempfile.TemporaryFile(dir=folder) as handle:
            handle.write(b"0")
    except DiskFullError:
        raise
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        raise SettingsError(f"`{option}` must be where files can be written, but {folder} is not: {reason}.") from error


@contextmanager
def locked(folder: Path, name: str = LOCK, *, gone_afterwards: bool = False) -> Iterator[None]:
    """Keeps the folder, or what else a lock of that name stands for, for this process.

    The lock ends with the process, however that ends. Its empty file stays, unless it is to be gone after the block.
    """
    lock = FileLock(folder / name)
    try:
        lock.acquire(blocking=False)
    except Timeout as error:
        where = folder if name == LOCK else folder / name.removeprefix(".").removesuffix(LOCK)
        raise BusyError(f"Another process is at work on {where}. Wait for its end, stop it, or choose another one.") from error
    try:
        yield
        if gone_afterwards:
            (folder / name).unlink(missing_ok=True)
    finally:
        lock.release()


def epochs_in(path: Path) -> Iterator[dict[str, Any] | None]:
    """The lines of a metrics file, one per epoch: what each says, None where it is damaged; without a last one that a crash cut off."""
    if not path.is_file():
        return
    with open(path, errors="replace") as handle:
        for text in handle:
            if text.endswith("\n"):
                yield _epoch(text)


def _epoch(text: str) -> dict[str, Any] | None:
    with suppress(ValueError, RecursionError):
        parsed = json.loads(text)
        if isinstance(parsed, dict) and type(parsed.get("epoch")) is int:
            return parsed
    return None
