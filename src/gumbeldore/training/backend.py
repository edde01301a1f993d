"""Who samples, validates and computes gradients: this process, processes beside it, a cluster; alone or with other ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

from gumbeldore.parallel.cluster import Actors, Cluster
from gumbeldore.parallel.pool import R, T, WorkerPool
from gumbeldore.parallel.processes import Processes
from gumbeldore.parallel.ranks import ranks
from gumbeldore.policy import Network
from gumbeldore.problem import Examples, Problem, S
from gumbeldore.search.samplers import Sampler
from gumbeldore.solutions import Solutions
from gumbeldore.training.cluster_workers import ClusterWorkers
from gumbeldore.training.greedy import WithGreedy
from gumbeldore.training.precision import Precision
from gumbeldore.training.ranked_workers import RankedWorkers
from gumbeldore.training.workers import Workers


@runtime_checkable
class Backend(Protocol[S]):
    """What a training needs. Results are the same for all backends: bit for bit on a CPU, except that the ranks of a data-parallel
    training add their gradients in another order."""

    def load(self, policy: Network) -> None:
        """From now on work with these weights."""
        ...

    def sample(
        self, sampler: Sampler | WithGreedy, state: S, seeds: Int[Tensor, " batch"], size: int = 16
    ) -> Iterator[tuple[slice, Solutions]]:
        """Solves instances, `size` at a time; yields rows and their solutions in order."""
        ...

    def gradient(self, examples: Examples[S]) -> Callable[[], tuple[float, Float[Tensor, " trained"]]]:
        """Begins with the gradient of the mean loss, by all weights in order; call the result when it is wanted."""
        ...

    def close(self) -> None:
        """Ends what was started."""
        ...


def pool(make: Callable[[], Callable[[T], R]], workers: int | Cluster) -> WorkerPool[Any, T, R]:
    """Processes, at least one, or the samplers of a cluster, for any work: they call the function that `make` returns in each."""
    return Actors[T, R](make, workers) if isinstance(workers, Cluster) else Processes[T, R](make, workers)


def started(
    problem: Problem[S],
    policy: Network,
    workers: int | Cluster,
    *,
    parts: int = 4,
    precision: Precision = Precision(),  # noqa: B008 - frozen
) -> Backend[S]:
    """`workers` processes (0: this one), or a cluster; shared with the other ranks, if this is one of several (torchrun)."""
    local: Workers[S]
    if isinstance(workers, Cluster):
        local = ClusterWorkers(problem, policy, workers, parts=parts, precision=precision)
    else:
        local = Workers(problem, policy, workers, parts=parts, precision=precision)
    return RankedWorkers(local) if ranks().count > 1 else local
