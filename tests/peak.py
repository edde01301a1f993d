"""How much memory torch operations hold at once."""

from __future__ import annotations

import weakref
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter


class Peak(TorchDispatchMode):
    """The most bytes that were alive at once among those allocated inside."""

    def __init__(self) -> None:
        super().__init__()
        self.alive: set[int] = set()
        self.now = self.most = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = {t.untyped_storage()._cdata for t in tree_iter((args, kwargs)) if isinstance(t, Tensor)}
        result = func(*args, **(kwargs or {}))
        for tensor in tree_iter(result):
            if isinstance(tensor, Tensor) and tensor.untyped_storage()._cdata not in self.alive | given:
                storage = tensor.untyped_storage()
                self.alive.add(storage._cdata)
                self.now += storage.nbytes()
                self.most = max(self.most, self.now)
                weakref.finalize(storage, self.free, storage._cdata, storage.nbytes())
        return result

    def free(self, name: int, size: int) -> None:
        self.alive.discard(name)
        self.now -= size
