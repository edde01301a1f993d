"""The compiled code of this room (`compiled/`, C++ without any dependency), and how to call it through ctypes."""

from __future__ import annotations

import ctypes
import functools
import importlib
import logging
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

from gumbeldore.errors import SettingsError

T = TypeVar("T")
FUNCTIONS = ("polish_tours", "polish_routes", "polish_shops", "bound_paths", "save")


@functools.cache
def compiled() -> Any | None:
    """The library, or None where there was no compiler when the package was installed."""
    try:
        module = importlib.import_module("gumbeldore.local_search._compiled")
    except ImportError:
        return None
    library = ctypes.CDLL(str(module.__file__))
    for name in FUNCTIONS:
        getattr(library, f"gumbeldore_{name}").restype = None
    return library


def code() -> Any:
    """The library; an error where there is none."""
    library = compiled()
    if library is None:
        raise SettingsError(
            "Local search is not compiled on this machine. With a C++ compiler (g++ or clang++) installed, install this package again; "
            "or leave `polish` out."
        )
    return library


@functools.cache
def warn_of_definitions() -> None:
    """Once: what is not compiled is computed by its definition."""
    logging.getLogger("gumbeldore").warning(
        "What this policy is told of tours or routes is computed without compiled code, some hundred times as slowly. With a C++ compiler (g++ or clang++) installed, "
        "install this package again."
    )


def chosen(ours: Callable[..., T], definition: Callable[..., T]) -> Callable[..., T]:
    """The compiled code if there is any, otherwise the definition of what it computes."""
    if compiled() is not None:
        return ours
    warn_of_definitions()
    return definition


def plain(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    return tensor.detach().to("cpu", dtype).contiguous()


def address(tensor: Tensor) -> ctypes.c_void_p:
    return ctypes.c_void_p(tensor.data_ptr())
