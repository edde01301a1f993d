"""Texts of files: how they are decoded, and numbers in them. Whatever is wrong with them is a `FormatError`."""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from gumbeldore.errors import FormatError, SettingsError
from gumbeldore.kits.kit import Format, Instance

HEAD = 65_536
"""As much of a file as is looked at to guess its format."""

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x19\x1b-\x1f\x7f]")  # characters that no text has; an old end-of-file mark may be there
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?:nan|inf(?:inity)?)", re.ASCII | re.IGNORECASE)


def decoded(data: bytes, whole: bool = True) -> str | None:
    """A text in UTF-8, in UTF-16 with a mark, or as old Windows programs write it; None for anything else.

    The last character may be cut off if the data is not the whole of it.
    """
    marked = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    for encoding in ("utf-16",) if marked else ("utf-8-sig", "cp1252"):
        with suppress(UnicodeDecodeError):
            text = codecs.getincrementaldecoder(encoding)().decode(data, whole)
            return None if _CONTROL.search(text) else text
    return None


def read_text(path: Path) -> str:
    """The text of a file."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror}.") from error
    text = decoded(data)
    if text is None:
        raise FormatError(f"{path} is not a text file.")
    if not text.strip():
        raise FormatError(f"{path} is empty.")
    return text


def _head_lines(head: bytes) -> list[str]:
    """The lines at the beginning of a file, without a last one that may be cut off; none if it is no text."""
    whole = len(head) < HEAD
    lines = (decoded(head, whole) or "").splitlines()
    return lines if whole or len(lines) == 1 else lines[:-1]


def is_number(token: str) -> bool:
    return _NUMBER.fullmatch(token) is not None


def number(token: str, what: str) -> float:
    """A number, not necessarily finite."""
    if not is_number(token):
        raise FormatError(f"{what} must be a number, got {shown(token)}.")
    return float(token)


def integer(token: str, what: str) -> int:
    """An integer; `12.0` is one."""
    value = number(token, what)
    if not math.isfinite(value) or value != int(value) or abs(value) > 2**53:
        raise FormatError(f"{what} must be an integer, got {shown(token)}.")
    return int(value)


def shown(text: str) -> str:
    """A piece of a file for a message: short, and in one line."""
    return repr(text if len(text) <= 40 else text[:37] + "...")


def text_format(
    name: str, suffixes: tuple[str, ...], claims: Callable[[list[str]], bool], parse: Callable[[str, str], list[Instance]]
) -> Format:
    """A format of text files. `claims` sees the first lines; `parse` gets the text and the file's name without its ending."""
    return Format(name, suffixes, lambda head: claims(_head_lines(head)), partial(_read, parse))


def _read(parse: Callable[[str, str], list[Instance]], path: Path) -> list[Instance]:
    text = read_text(path)
    try:
        return parse(text, path.stem)
    except (FormatError, SettingsError) as error:
        raise FormatError(f"{path}: {error}") from error
