"""Sampling and validation on a cluster; gradients on the machine of the training."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Generic

import torch

from gumbeldore.parallel.cluster import Actors, Cluster, ray
from gumbeldore.policy import Network
from gumbeldore.problem import Problem, S
from gumbeldore.training.precision import Precision
from gumbeldore.training.workers import Replica, Task, Workers, on_cpu

Item = tuple[int, list[Any], Task]  # a version of the weights, a reference to them, and what to do with them


class ClusterWorkers(Workers[S]):
    """`Workers` whose samplers are Ray actors. Weights go out once per version, through the object store, and belong to this process."""

    def __init__(self, problem: Problem[S], policy: Network, cluster: Cluster, *, parts: int, precision: Precision) -> None:
        make = partial(Sampling, problem, on_cpu(policy), precision, cluster.gpus > 0)
        self._version, self._actors = 0, Actors[Item, Any](make, cluster)
        self._reference: Any = None
        super().__init__(problem, policy, cluster.workers, parts=parts, precision=precision)

    def load(self, policy: Network) -> None:
        super().load(policy)
        self._reference = None

    @property
    def _outside(self) -> bool:
        return True

    def _sample(self, tasks: dict[int, Task], names: list[str]) -> Iterator[tuple[int, Any]]:
        if self._reference is None:
            self._reference, self._version = ray().put(self._weights.cpu().numpy()), self._version + 1
        items = {i: (self._version, [self._reference], task) for i, task in tasks.items()}
        return self._actors.run(items, names.__getitem__)

    def close(self) -> None:
        super().close()
        self._actors.close()


class Sampling(Generic[S]):
    """What an actor calls: a replica with the weights of the version that an item names."""

    def __init__(self, problem: Problem[S], policy: Network, precision: Precision, on_gpu: bool) -> None:
        torch.set_num_threads(1)
        precision.products().__enter__()  # for the life of the actor
        self._version, self._replica = (
            0,
            Replica.that_samples(problem, policy, precision, torch.device("cuda" if on_gpu else "cpu")),
        )

    def __call__(self, item: Item) -> Any:
        version, (reference,), task = item
        if version != self._version:
            self._replica.weights.copy_(torch.tensor(ray().get(reference)))
            self._version = version
        return self._replica.do(task)
