"""The compiled code of this package: `compiled/`, C++ without any dependency, behind the boundary of `gumbeldore/compiled/boundary.h`."""

from __future__ import annotations

import functools
import importlib
import logging
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gumbeldore.errors import SettingsError

T = TypeVar("T")
Numbers = Any


@functools.cache
def compiled() -> Any | None:
    """The module, or None where there was no compiler when the package was installed."""
    try:
        return importlib.import_module("gumbeldore.local_search._compiled")
    except ImportError:
        return None


def available() -> bool:
    """Whether the compiled code was installed."""
    return compiled() is not None


def where_compiled(search: T) -> T | None:
    """What a kit offers as its local search: none where the compiled code was not installed."""
    return search if available() else None


def code() -> Any:
    """The module; an error where there is none."""
    module = compiled()
    if module is None:
        raise SettingsError(
            "Local search is not compiled on this machine. With a C++ compiler (g++ or clang++) installed, install this package again; "
            "or leave it out."
        )
    return module


@functools.cache
def _warn_of_definitions() -> None:
    """Once: what is not compiled is computed by its definition."""
    logging.getLogger("gumbeldore").warning(
        "What this policy is told of tours or routes is computed without compiled code, some hundred times as slowly. With a C++ compiler (g++ or clang++) installed, "
        "install this package again."
    )


def chosen(ours: Callable[..., T], definition: Callable[..., T]) -> Callable[..., T]:
    """The compiled code if there is any, otherwise the definition of what it computes."""
    if compiled() is not None:
        return ours
    _warn_of_definitions()
    return definition


def plain(tensor: Tensor, dtype: torch.dtype) -> NDArray[Numbers]:
    """A tensor as the boundary takes it. Whole numbers that do not fit are refused, not cut."""
    tensor = tensor.detach()
    limits = None if dtype.is_floating_point else torch.iinfo(dtype)
    if limits is not None and limits.bits < 64 and tensor.dtype == torch.int64 and tensor.numel():
        low, high = (int(each) for each in tensor.aminmax())
        if low < limits.min or high > limits.max:
            raise SettingsError(f"Whole numbers must be in {limits.min} .. {limits.max} here, got {low} .. {high}.")
    return np.ascontiguousarray(tensor.to("cpu", dtype).numpy())
