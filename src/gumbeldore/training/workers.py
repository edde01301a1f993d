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

from gumbeldore.errors import SettingsError, require
from gumbeldore.policy import Network, rows_within
from gumbeldore.problem import Examples, Problem, S, slices
from gumbeldore.search.evaluator import masked_log_softmax
from gumbeldore.search.samplers import Sampler
from gumbeldore.solutions import Solutions
from gumbeldore.training.processes import Crew, in_order

EXAMPLE_BYTES = 1 << 28
"""Examples pass through the network together up to this memory, as far as a policy knows its own: what it keeps for gradients."""


class Replica(Generic[S]):
    """A copy of a policy whose weights lie in a given vector, and whose gradients are summed in another one."""

    def __init__(
        self, problem: Problem[S], policy: Network, weights: Float[Tensor, " all"], gradients: Float[Tensor, "part trained"]
    ) -> None:
        self.problem, self.policy, self.gradients = problem, copy.deepcopy(policy), gradients
        offset = 0
        for tensor in _floats(self.policy):
            tensor.data = weights[offset : offset + tensor.numel()].view_as(tensor)
            offset += tensor.numel()

    @classmethod
    def alone(cls, problem: Problem[S], policy: Network, *shared: Tensor) -> Callable[[tuple[str, tuple[Any, ...]]], Any]:
        """What a worker process calls."""
        torch.set_num_threads(1)
        replica = cls(problem, policy, *shared)
        return replica.do

    def do(self, task: tuple[str, tuple[Any, ...]]) -> Any:
        name, arguments = task
        return getattr(self, name)(*arguments)

    def sample(self, sampler: Sampler, state: S, seeds: Int[Tensor, " batch"]) -> Solutions:
        return sampler(self.problem, self.policy, state, seeds=seeds)

    def gradient(self, part: int, examples: Examples[S], total: int, successor_weight: float) -> float:
        """Sums the gradients of these examples' share in the mean loss of `total` examples; returns the share of their actions."""
        offset = 0
        self.gradients[part] = 0
        for parameter in trained(self.policy):
            parameter.grad = self.gradients[part, offset : offset + parameter.numel()].view_as(parameter)
            offset += parameter.numel()
        loss = 0.0
        self.policy.train()
        for piece in cut(examples, rows_within(self.policy, examples.state, EXAMPLE_BYTES)):
            actions, successors = losses(self.problem, self.policy, piece, successor_weight)
            ((actions + successor_weight * successors).sum() / total).backward()
            loss += (actions.detach().sum() / total).item()
        return loss


class Workers(Generic[S]):
    """`count` processes that work with `problem` and a policy; 0: everything is done in this process, with all its threads."""

    def __init__(self, problem: Problem[S], policy: Network, count: int, *, parts: int = 4) -> None:
        require(count >= 0, f"`workers` must be at least 0 (this process), got {count}.")
        first = next(policy.parameters())
        require(
            count == 0 or first.device.type == "cpu", f"Worker processes need a policy on the CPU, got one on {first.device}."
        )
        self.parts = parts
        self._weights = first.detach().new_empty(sum(tensor.numel() for tensor in _floats(policy)))
        self._gradients = first.detach().new_zeros(parts, sum(tensor.numel() for tensor in trained(policy)))
        self._crew: Crew[tuple[str, tuple[Any, ...]], Any] | None = None
        self._replica: Replica[S] | None = None
        self.load(policy)
        if count == 0:
            self._replica = Replica(problem, policy, self._weights, self._gradients)
        else:
            shared = (self._weights.share_memory_(), self._gradients.share_memory_())
            self._crew = Crew(partial(Replica.alone, problem, policy), count, shared)

    def load(self, policy: Network) -> None:
        """From now on work with these weights."""
        with torch.no_grad():
            torch.cat([tensor.detach().flatten() for tensor in _floats(policy)], out=self._weights)

    def sample(
        self, sampler: Sampler, state: S, seeds: Int[Tensor, " batch"], size: int = 16
    ) -> Iterator[tuple[slice, Solutions]]:
        """Solves instances, `size` at a time; yields rows and their solutions in order."""
        pieces = slices(state.row_count, size)
        tasks = {i: ("sample", (sampler, state.rows(rows).compact(), seeds[rows])) for i, rows in enumerate(pieces)}
        return zip(pieces, in_order(self._run(tasks)), strict=True)

    def gradient(
        self, examples: Examples[S], successor_weight: float = 0.0
    ) -> Callable[[], tuple[float, Float[Tensor, " trained"]]]:
        """Begins with the gradient of the mean loss, by all weights in order; call the result when it is wanted.

        The loss that comes with it is that of the actions alone.
        """
        total = len(examples.action)
        pieces = cut(examples, -(-total // self.parts))
        results = self._run({i: ("gradient", (i, piece, total, successor_weight)) for i, piece in enumerate(pieces)})

        def wait() -> tuple[float, Tensor]:
            shares = dict(results)
            return sum(shares[i] for i in range(len(shares))), self._gradients[: len(shares)].sum(0)

        return wait

    def _run(self, tasks: dict[int, tuple[str, tuple[Any, ...]]]) -> Iterator[tuple[int, Any]]:
        if self._crew is not None:
            return self._crew.run(tasks)
        assert self._replica is not None, "The workers have ended."
        replica = self._replica
        return ((index, replica.do(task)) for index, task in tasks.items())

    def close(self) -> None:
        """Ends the processes, or lets go of what this process worked with."""
        self._replica = None
        if self._crew is not None:
            self._crew.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def action_losses(problem: Problem[S], policy: Network, examples: Examples[S]) -> Float[Tensor, " row"]:
    """The negative log-probabilities of the target actions (Algorithm 1, line 11)."""
    return losses(problem, policy, examples, 0.0)[0]


def losses(
    problem: Problem[S], policy: Network, examples: Examples[S], successor_weight: float
) -> tuple[Float[Tensor, " row"], Float[Tensor, " row"]]:
    """How badly the policy predicts the actions, and what follows each item; the latter 0 if it has no weight."""
    if successor_weight > 0:
        if examples.successor is None:
            raise SettingsError(
                f"`successor_weight` must be 0 for {type(problem).__name__}, got {successor_weight}: its examples do not say what "
                f"follows an item."
            )
        logits, successors = policy.taught(examples.state, examples.successor)
    else:
        logits = policy(examples.state, policy.prepare(examples.state))
        successors = logits.new_zeros(len(logits))
    log_prob = masked_log_softmax(logits, problem.mask(examples.state), type(policy).__name__)
    return -log_prob.gather(1, examples.action[:, None]).squeeze(1), successors


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


def _floats(policy: Network) -> list[Tensor]:
    """All weights and running statistics."""
    return [*policy.parameters(), *(buffer for buffer in policy.buffers() if buffer.is_floating_point())]


def trained(policy: Network) -> list[nn.Parameter]:
    """The weights that are not frozen, in the order of their gradients."""
    return [parameter for parameter in policy.parameters() if parameter.requires_grad]
