"""The compiled code of this room (`compiled/`, C++ without any dependency), and how to call it through ctypes."""

from __future__ import annotations

import ctypes
import functools
import importlib
from typing import Any

import torch
from torch import Tensor

from gumbeldore.errors import SettingsError

FUNCTIONS = ("polish_tours", "polish_routes", "polish_shops", "bound_paths", "save")


@functools.cache
def compiled() -> Any | None:
    """The library, or None where there was no compiler when the package was installed."""
    try:
        module = importlib.import_module("gumbeldore.problems._compiled")
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


def plain(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    return tensor.detach().to("cpu", dtype).contiguous()


def address(tensor: Tensor) -> ctypes.c_void_p:
    return ctypes.c_void_p(tensor.data_ptr())
