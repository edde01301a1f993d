"""Pickles of other people's data: lists, dictionaries, numbers, texts and arrays of numbers come out, nothing in them is executed.

A pickle is a program. This reader lets it call a few functions, which are ours: they take the place of those of numpy that arrays are
made of, and check what they are given. Whatever else a pickle names is refused by its name.
"""

from __future__ import annotations

import copyreg
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from gumbeldore.errors import FormatError

_NUMBERS = "biuf"  # kinds of numpy types that arrays may hold: booleans and numbers


def read_pickle(path: Path) -> Any:
    """The plain data and arrays in a pickle."""
    if not path.is_file():
        raise FormatError(f"There is no file {path}.")
    copyreg.clear_extension_cache()  # so that extension codes, too, are looked up by name and refused
    try:
        with open(path, "rb") as handle:
            return _plain(_Reader(handle).load(), {})
    except Exception as error:  # whatever a damaged file leads to
        raise FormatError(f"{path} is not a pickle of plain data and arrays of numbers: {error}") from error


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """The only way in which a pickle gets hold of a function or a class."""
        if (known := _ALLOWED.get((module.replace("numpy._core", "numpy.core"), name))) is not None:
            return known
        raise pickle.UnpicklingError(f"it names `{module}.{name}`, which data do not need. Do not trust this file.")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise pickle.UnpicklingError("it refers to objects outside of the file. Do not trust this file.")


class _Only:
    """Something that can be called, and nothing else: a pickle can neither change nor extend it."""

    __slots__ = ("_call",)
    _call: Callable[..., Any]

    def __init__(self, call: Callable[..., Any]) -> None:
        object.__setattr__(self, "_call", call)

    def __call__(self, *arguments: Any) -> Any:
        return self._call(*arguments)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise pickle.UnpicklingError("it tries to change a function. Do not trust this file.")


class _Type:
    """Stands for a `numpy.dtype` while the pickle is read: a plain type of numbers, whose byte order may be set."""

    def __init__(self, name: Any, *flags: Any) -> None:
        self.order = "="
        self.type = np.dtype(name) if isinstance(name, str) and len(name) <= 3 else np.dtype(object)
        if self.type.kind not in _NUMBERS:
            raise pickle.UnpicklingError(f"it holds an array of {str(name)[:40]!r}, not of numbers")

    def __setstate__(self, state: Any) -> None:
        if not (
            isinstance(state, tuple) and len(state) >= 5 and state[1] in ("<", ">", "|", "=") and state[2:5] == (None,) * 3
        ):
            raise pickle.UnpicklingError("it holds an array of a compound type, not of numbers")
        self.order = state[1]

    @property
    def ordered(self) -> np.dtype[Any]:
        return np.dtype(f"{self.order}{self.type.str[1:]}")


class _Array:
    """Stands for a `numpy.ndarray` while the pickle is read; its content comes afterwards."""

    value: NDArray[Any] | None = None

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, fortran, content = state
        self.value = _array(content, kind, shape, "F" if fortran is True else "C")


def _array(content: Any, kind: Any, shape: Any, order: Any) -> NDArray[Any]:
    sound = isinstance(kind, _Type) and isinstance(content, bytes | bytearray) and isinstance(shape, tuple)
    if not sound or order not in ("C", "F") or not all(type(size) is int and size >= 0 for size in shape):
        raise pickle.UnpicklingError("it holds an array that is not made of a type of numbers, a shape and bytes")
    return np.frombuffer(bytes(content), kind.ordered).reshape(shape, order=order).astype(kind.type)


def _from_buffer(content: Any, kind: Any, shape: Any, order: Any) -> _Array:
    made = _Array()
    made.value = _array(content, kind, shape, order)
    return made


def _scalar(kind: Any, content: Any) -> Any:
    return _array(content, kind, (), "C").item()


def _encoded(text: Any, encoding: Any) -> bytes:
    """How the oldest pickles write bytes."""
    if not (isinstance(text, str) and encoding == "latin1"):
        raise pickle.UnpicklingError("it holds bytes in another encoding than latin1")
    return text.encode("latin1")


_ALLOWED: dict[tuple[str, str], _Only] = {
    ("numpy.core.multiarray", "_reconstruct"): _Only(lambda *_: _Array()),
    ("numpy.core.numeric", "_frombuffer"): _Only(_from_buffer),
    ("numpy.core.multiarray", "scalar"): _Only(_scalar),
    ("numpy", "ndarray"): _Only(lambda *_: _Array()),
    ("numpy", "dtype"): _Only(_Type),
    ("_codecs", "encode"): _Only(_encoded),
    ("__builtin__", "bytes"): _Only(lambda: b""),  # how the oldest pickles write no bytes
}
"""By the names in a pickle, what is called instead."""


def _plain(content: Any, seen: dict[int, Any]) -> Any:
    """The same without stand-ins. What is shared stays shared, so that no small file becomes a large one; `seen` are its parts by id."""
    if content is None or isinstance(content, bool | int | float | str | bytes | bytearray):
        return content
    if isinstance(content, _Array) and content.value is not None:
        return content.value
    if id(content) in seen:
        if seen[id(content)] is None:
            raise pickle.UnpicklingError("it holds a list within itself")
        return seen[id(content)]
    seen[id(content)] = None
    if isinstance(content, list | tuple):
        made: Any = type(content)([_plain(part, seen) for part in content])
    elif isinstance(content, dict):
        made = {_plain(key, seen): _plain(value, seen) for key, value in content.items()}
    else:
        raise pickle.UnpicklingError(f"it holds a {type(content).__name__.strip('_')}")
    seen[id(content)] = made
    return made
