"""Sampling, validation and gradients on all cores: single-threaded processes with the policy's weights in shared memory.

    with Workers(problem, policy, 2) as workers:
        workers.load(policy)
        for rows, solutions in workers.sample(Gumbeldore(), state, seeds):
            ...

Networks of this size do not keep two threads busy: two processes with a thread each are up to 1.8 times as fast. Work is cut into pieces
that do not depend on the number of processes, and put together in order, so results are the same for any number of them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Generic, Self

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from gumbeldore.errors import GumbeldoreError, require
from gumbeldore.parallel.pool import T, in_order
from gumbeldore.parallel.processes import Processes
from gumbeldore.policy import Network, rows_within
from gumbeldore.problem import Examples, Problem, S, precise, slices
from gumbeldore.search.samplers import Sampler
from gumbeldore.solutions import Solutions
from gumbeldore.training.greedy import WithGreedy
from gumbeldore.training.loss import losses
from gumbeldore.training.precision import Precision

Task = tuple[str, tuple[Any, ...]]  # a method of a `Replica` and its arguments

EXAMPLE_BYTES, GPU_EXAMPLE_BYTES = 1 << 28, 1 << 32
"""Examples pass through the network together up to this memory, as far as a policy knows its own: what it keeps for gradients."""


class Replica(Generic[S]):
    """A copy of a policy whose weights lie in a given vector, and whose gradients are summed in another one, on the device of those."""

    def __init__(
        self,
        problem: Problem[S],
        policy: Network,
        precision: Precision,
        weights: Float[Tensor, " all"],
        gradients: Float[Tensor, "part trained"],
    ) -> None:
        self.problem, self.precision, self.weights, self.gradients = problem, precision, weights, gradients
        self.device, self.policy = weights.device, copy.deepcopy(policy).to(weights.device)
        offset = 0
        for tensor in _floats(self.policy):
            tensor.data = weights[offset : offset + tensor.numel()].view_as(tensor)
            offset += tensor.numel()

    @classmethod
    def alone(cls, problem: Problem[S], policy: Network, precision: Precision, *shared: Tensor) -> Callable[[Task], Any]:
        """What a worker process calls."""
        torch.set_num_threads(1)
        return cls(problem, policy, precision, *shared).do

    @classmethod
    def that_samples(cls, problem: Problem[S], policy: Network, precision: Precision, device: torch.device) -> Replica[S]:
        """One with weights of its own that is not asked for gradients."""
        weights = _flat(policy).to(device)
        return cls(problem, policy, precision, weights, weights.new_empty(0, 0))

    def do(self, task: Task) -> Any:
        name, arguments = task
        return getattr(self, name)(*arguments)

    def sample(self, sampler: Sampler | WithGreedy, state: S, seeds: Int[Tensor, " batch"]) -> Solutions:
        """Solutions on the device of the instances, wherever they are found."""
        solutions = sampler(self.problem, self.policy, state.to(self.device), seeds=seeds)
        return solutions.to(state.device)

    def gradient(self, part: int, examples: Examples[S], total: int) -> Float[Tensor, ""]:
        """Sums the gradients of these examples' share in the mean loss of `total` examples; returns the share of their actions."""
        offset = 0
        self.gradients[part] = 0
        for parameter in trained(self.policy):
            parameter.grad = self.gradients[part, offset : offset + parameter.numel()].view_as(parameter)
            offset += parameter.numel()
        loss = torch.zeros((), dtype=precise(self.device), device=self.device)
        self.policy.train()
        limit = EXAMPLE_BYTES if self.device.type == "cpu" else GPU_EXAMPLE_BYTES
        for piece in cut(examples.to(self.device), rows_within(self.policy, examples.state, limit)):
            with self.precision.forward(self.device):
                wanted, shown = losses(self.problem, self.policy, piece)
            (wanted.sum() / total).backward()
            loss += shown.detach().sum() / total  # read later: a GPU works on while we go on
        return loss


class Workers(Generic[S]):
    """`count` processes that work with `problem` and a policy; 0: everything is done in this process, with all its threads.

    Processes work on CPUs. If the policy is on a GPU, they sample for it, and gradients are computed here. As long as processes do all
    the work, this one has a single thread: others would wait for work, awake, and take the cores from those who have some.
    """

    def __init__(
        self,
        problem: Problem[S],
        policy: Network,
        count: int,
        *,
        parts: int = 4,
        precision: Precision = Precision(),  # noqa: B008 - frozen
    ) -> None:
        require(count >= 0, f"`workers` must be at least 0 (this process), got {count}.")
        on_gpu = next(policy.parameters()).device.type != "cpu"
        self.parts = 1 if on_gpu else parts  # a GPU takes a batch at once, as far as it fits
        self._weights = _flat(policy)
        self._gradients = self._weights.new_zeros(self.parts, sum(tensor.numel() for tensor in trained(policy)))
        self._crew: Processes[Task, Any] | None = None
        self._replica: Replica[S] | None = None
        self._threads: int | None = None  # that this process used before
        if count == 0 or on_gpu:
            self._replica = Replica(problem, policy, precision, self._weights, self._gradients)
        if count > 0:
            self._sent = self._weights.cpu().share_memory_()  # the very same weights, on a CPU
            shared = (self._sent, self._gradients.cpu().share_memory_())
            self._crew = Processes(partial(Replica.alone, problem, on_cpu(policy), precision), count, shared)
            if self._replica is None and can_be_cut(policy):  # all that takes time is done by the processes
                self._threads = torch.get_num_threads()
                torch.set_num_threads(1)

    def load(self, policy: Network) -> None:
        """From now on work with these weights."""
        with torch.no_grad():
            torch.cat([tensor.detach().flatten() for tensor in _floats(policy)], out=self._weights)

    def sample(
        self, sampler: Sampler | WithGreedy, state: S, seeds: Int[Tensor, " batch"], size: int = 16
    ) -> Iterator[tuple[slice, Solutions]]:
        """Solves instances, `size` at a time; yields rows and their solutions in order."""
        pieces, home = slices(state.row_count, size), state.device
        if self._outside:
            state, seeds = state.to("cpu"), seeds.cpu()
        tasks = {i: ("sample", (sampler, state.rows(rows).compact(), seeds[rows])) for i, rows in enumerate(pieces)}
        results = in_order(self._sample(tasks, [f"instances {rows.start} to {rows.stop - 1}" for rows in pieces]))
        return zip(pieces, (solutions.to(home) for solutions in results), strict=True)

    @property
    def _outside(self) -> bool:
        """Whether others sample, on devices of their own."""
        return self._crew is not None

    def _sample(self, tasks: dict[int, Task], names: list[str]) -> Iterator[tuple[int, Any]]:
        if self._crew is None:
            return self._here(tasks)
        if self._sent is not self._weights:
            self._sent.copy_(self._weights)
        return self._crew.run(tasks, names.__getitem__)

    def gradient(self, examples: Examples[S]) -> Callable[[], tuple[float, Float[Tensor, " trained"]]]:
        """Begins with the gradient of the mean loss, by all weights in order; call the result when it is wanted.

        The loss that comes with it is that of the actions alone.
        """
        total = len(examples.action)
        pieces = cut(examples, -(-total // self.parts))
        tasks = {i: ("gradient", (i, piece, total)) for i, piece in enumerate(pieces)}
        if self._crew is None or self._replica is not None:
            results = self._here(tasks) if self._weights.device.type == "cpu" else _begun(self._here(tasks))
        else:
            results = self._crew.run(tasks, lambda i: f"part {i + 1} of {len(tasks)} of a gradient")

        def wait() -> tuple[float, Tensor]:
            shares = dict(results)
            return sum(shares[i].item() for i in range(len(shares))), self._gradients[: len(shares)].sum(0)

        return wait

    def no_gradient(self) -> Float[Tensor, " trained"]:
        """That of no examples."""
        return self._gradients.new_zeros(self._gradients.shape[1])

    def _here(self, tasks: dict[int, Task]) -> Iterator[tuple[int, Any]]:
        replica = self._replica
        assert replica is not None, "The workers have ended."
        return ((index, replica.do(task)) for index, task in tasks.items())

    def close(self) -> None:
        """Ends the processes, or lets go of what this process worked with."""
        self._replica = None
        if self._crew is not None:
            self._crew.close()
        if self._threads is not None:
            torch.set_num_threads(self._threads)
            self._threads = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _begun(results: Iterator[T]) -> Iterator[T]:
    """Results that are computed now, on a GPU without waiting for them. What goes wrong is raised where they are asked for."""
    try:
        return iter(list(results))
    except GumbeldoreError as error:
        return _raising(error)


def _raising(error: GumbeldoreError) -> Iterator[Any]:
    raise error
    yield


def can_be_cut(policy: Network) -> bool:
    """Whether the gradient of a batch is the sum of the gradients of its parts: not with batch norm."""
    return not any(isinstance(module, nn.modules.batchnorm._BatchNorm) for module in policy.modules())


def cut(examples: Examples[S], size: int) -> list[Examples[S]]:
    """The same examples in equal parts of at most `size`."""
    count = len(examples.action)
    size = -(-count // -(-count // size))
    parts = slices(count, size)
    if len(parts) == 1:
        return [examples]
    return [examples.rows(part) for part in parts]


def on_cpu(policy: Network) -> Network:
    """A policy that can be sent to other processes."""
    return policy if next(policy.parameters()).device.type == "cpu" else copy.deepcopy(policy).cpu()


def _flat(policy: Network) -> Float[Tensor, " all"]:
    return torch.cat([tensor.detach().flatten() for tensor in _floats(policy)])


def _floats(policy: Network) -> list[Tensor]:
    """All weights and running statistics."""
    return [*policy.parameters(), *(buffer for buffer in policy.buffers() if buffer.is_floating_point())]


def trained(policy: Network) -> list[nn.Parameter]:
    """The weights that are not frozen, in the order of their gradients."""
    return [parameter for parameter in policy.parameters() if parameter.requires_grad]
