"""The search tree of every instance in a batch as a struct of arrays: what was sampled, what is left, what was learnt.

Nodes are stored level by level. A level holds at most `rounds * beam_width` nodes per instance, because a round visits at
most `beam_width` prefixes of each length; so all arrays have the shape `[depth, batch, node]` and nothing is linked.
One extra column at the end takes the writes of empty beam slots.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gumbeldore.gumbel import log_add_exp, precise

UNKNOWN = -1
CODE = (-0x3B314601E57A13AD, -0x61C8864680B583EB)
"""Odd 64-bit numbers without a pattern."""


@dataclass(frozen=True)
class Known:
    """States of one level, as `Problem.key` names them, and nodes that stand for them."""

    code: Int[Tensor, " state"]  # a hash of instance and key, only to find candidates
    entry: Int[Tensor, "state 4"]  # instance, the two numbers of the key, node

    @classmethod
    def of(cls, instance: Int[Tensor, " state"], key: Int[Tensor, "state 2"], node: Int[Tensor, " state"]) -> Known:
        code = torch.add(key[:, 0], key[:, 1], alpha=CODE[0]).add_(instance, alpha=CODE[1])
        return cls(code, torch.cat([instance[:, None], key, node[:, None]], 1))

    def __len__(self) -> int:
        return len(self.code)

    def rows(self, index: Int[Tensor, " selected"]) -> Known:
        return Known(self.code[index], self.entry[index])

    def joined(self, more: Known) -> Known:
        return Known(torch.cat([self.code, more.code]), torch.cat([self.entry, more.entry]))

    def repeats(self) -> tuple[Int[Tensor, " distinct"], Int[Tensor, " repeat"], Int[Tensor, " repeat"]]:
        """The distinct states in the order of their codes; the ones that occurred before; and the first place where those did.

        States with equal codes are then compared in full: two codes that collide may hide a repeat (with a probability of
        about 2^-64), but never make one.
        """
        ordered, order = self.code.sort(stable=True)  # fast for what is in order already
        begins = ordered[1:] != ordered[:-1]
        if bool(begins.all()):
            return order, order[:0], order[:0]
        begins = torch.nn.functional.pad(begins, (1, 0), value=True)
        distinct, later = order[begins], (~begins).nonzero().squeeze(1)
        again, first = order[later], distinct[begins.cumsum(0)[later] - 1]
        same = (self.entry[again, :3] == self.entry[first, :3]).all(1)
        return distinct, again[same], first[same]


@dataclass
class Trie:
    """Search trees, one per instance. Level 0 holds the root (node 0) only."""

    parent: Int[Tensor, "depth batch node"]  # index of the parent one level up
    action: Int[Tensor, "depth batch node"]  # the action that leads here from the parent
    edge: Float[Tensor, "depth batch node"]  # log-probability of that action under the original policy
    rest: Float[Tensor, "depth batch node"]  # log mass of the children never visited, as a fraction of the node's own
    left: Float[Tensor, "depth batch node"]  # log fraction of the node's mass not yet sampled: 0 new, -inf exhausted
    bonus: Float[Tensor, "depth batch node"]  # sigma * summed advantages through the node
    visits: Int[Tensor, "depth batch node"]  # sampled sequences through the node
    evaluation: Int[Tensor, "depth batch node"]  # row of `prior` that holds the node's policy, or UNKNOWN
    count: Int[Tensor, "depth batch"]  # nodes in use
    width: list[int]  # an upper bound on `count` by level
    prior: list[Float[Tensor, "batch node action"] | None]  # policy log-probabilities by level, where they are cached
    known: list[Known | None]  # the states by level whose priors are cached, where transpositions are looked for

    @classmethod
    def empty(cls, batch: int, nodes: int, horizon: int, device: torch.device) -> Trie:
        """Room for `nodes` nodes per level and instance, with the root in place."""
        shape = (horizon + 1, batch, nodes + 1)
        integers = [torch.zeros(shape, dtype=torch.long, device=device) for _ in range(4)]
        numbers = [torch.zeros(shape, dtype=precise(device), device=device) for _ in range(4)]
        count = torch.zeros(horizon + 1, batch, dtype=torch.long, device=device)
        count[0] = 1
        parent, action, visits, evaluation = integers
        edge, rest, left, bonus = numbers
        evaluation.fill_(UNKNOWN)
        width, levels = [1] + [0] * horizon, horizon + 1
        return cls(parent, action, edge, rest, left, bonus, visits, evaluation, count, width, [None] * levels, [None] * levels)

    @property
    def nodes(self) -> int:
        return self.parent.shape[2] - 1

    def used(self, depth: int) -> int:
        """An upper bound, without waiting for the device, on the nodes that any instance uses at this depth."""
        return self.width[depth] if depth < len(self.width) else 0

    def children(
        self, depth: int, node: Int[Tensor, "batch beam"], open_: Bool[Tensor, "batch beam"], actions: int
    ) -> Int[Tensor, "batch beam action"] | None:
        """The child of each beam node by action, UNKNOWN where it was never visited; None if there is none at all."""
        used = self.used(depth + 1)
        if used == 0:
            return None
        batch, beam = node.shape
        slot = torch.full((batch, self.nodes + 1), beam, device=node.device)
        slot.scatter_(1, node.where(open_, self.nodes), torch.arange(beam, device=node.device).expand(batch, beam))
        slot[:, self.nodes] = beam
        child = torch.arange(used, device=node.device).expand(batch, used)
        parent = self.parent[depth + 1, :, :used].where(child < self.count[depth + 1, :, None], self.nodes)
        target = slot.gather(1, parent) * actions + self.action[depth + 1, :, :used]
        table = torch.full((batch, (beam + 1) * actions), UNKNOWN, device=node.device)
        return table.scatter_(1, target, child).view(batch, beam + 1, actions)[:, :beam]

    def correction(
        self, depth: int, child: Int[Tensor, "batch beam action"], average: bool
    ) -> Float[Tensor, "batch beam action"]:
        """`left + bonus` of the children, 0 for those never visited: what is added to the prior (eq. 6)."""
        left, bonus, visits = self.left[depth + 1], self.bonus[depth + 1], self.visits[depth + 1]
        value = left + (bonus / visits.clamp(min=1) if average else bonus)
        flat = value.gather(1, child.clamp(min=0).flatten(1)).view_as(child)
        return flat.where(child != UNKNOWN, 0)

    def insert(
        self,
        depth: int,
        parent: Int[Tensor, "batch beam"],
        action: Int[Tensor, "batch beam"],
        edge: Float[Tensor, "batch beam"],
        known: Int[Tensor, "batch beam"] | None,
        valid: Bool[Tensor, "batch beam"],
    ) -> Int[Tensor, "batch beam"]:
        """Nodes at `depth` for the valid slots: the `known` ones, new ones for the rest. Invalid slots get the spare column."""
        new = valid if known is None else valid & (known == UNKNOWN)
        node = self.count[depth, :, None] + new.cumsum(1) - 1
        if known is not None:
            node = node.where(new, known)
        node = node.where(valid, self.nodes)
        self.parent[depth].scatter_(1, node, parent)
        self.action[depth].scatter_(1, node, action)
        self.edge[depth].scatter_(1, node, edge)
        self.count[depth] += new.sum(1)
        self.width[depth] = min(self.nodes, self.width[depth] + valid.shape[1])
        return node

    def trace(
        self, leaf: Int[Tensor, "batch beam"], leaf_depth: Int[Tensor, "batch beam"], depth: int
    ) -> tuple[Int[Tensor, "depth batch beam"], Int[Tensor, "depth batch beam"]]:
        """The nodes (levels 1 .. depth) and actions on the way to each leaf; spare column and -1 below the leaf."""
        nodes = torch.full((depth, *leaf.shape), self.nodes, device=leaf.device)
        actions = torch.full_like(nodes, -1)
        current = leaf
        for level in range(depth, 0, -1):
            inside = leaf_depth >= level
            nodes[level - 1] = current.where(inside, self.nodes)
            actions[level - 1] = self.action[level].gather(1, current).where(inside, -1)
            current = self.parent[level].gather(1, current).where(inside, current)
        return nodes, actions

    def learn(
        self,
        nodes: Int[Tensor, "depth batch beam"],
        shift: Float[Tensor, "batch beam"] | Float[Tensor, "depth batch beam"],
        filled: Bool[Tensor, "batch beam"],
    ) -> None:
        """Adds a logit shift to every node on the path of each sequence, and counts the visit (eq. 6, second term)."""
        levels = slice(1, len(nodes) + 1)
        self.bonus[levels].scatter_add_(2, nodes, shift.where(filled, 0).expand(nodes.shape).to(self.bonus.dtype))
        self.visits[levels].scatter_add_(2, nodes, filled.long().expand(nodes.shape))

    def remove(
        self, leaf: Int[Tensor, "batch beam"], leaf_depth: Int[Tensor, "batch beam"], filled: Bool[Tensor, "batch beam"]
    ) -> None:
        """Takes the mass of sampled leaves out of the trees: a leaf has nothing left, its ancestors are summed anew.

        Mass is re-added from below, never subtracted, which stays exact for policies of any confidence.
        """
        row, slot = filled.nonzero(as_tuple=True)
        self.rest[leaf_depth[row, slot], row, leaf[row, slot]] = -torch.inf
        for depth in range(len(self.count) - 1, -1, -1):
            if used := self.used(depth):
                self.left[depth, :, :used] = log_add_exp(self.rest[depth, :, :used], self._visited_mass(depth, used))

    def _visited_mass(self, depth: int, used: int) -> Float[Tensor, "batch node"]:
        """log of the unsampled mass below the visited children of each node, by a segmented logsumexp."""
        below = self.used(depth + 1)
        shape = (self.count.shape[1], self.nodes + 1)
        if below == 0:
            return self.left.new_full(shape, -torch.inf)[:, :used]
        in_use = torch.arange(below, device=self.count.device) < self.count[depth + 1, :, None]
        parent = self.parent[depth + 1, :, :below].where(in_use, self.nodes)
        mass = self.edge[depth + 1, :, :below] + self.left[depth + 1, :, :below]
        largest = self.left.new_full(shape, -torch.inf).scatter_reduce_(1, parent, mass, "amax")
        offset = largest.where(largest != -torch.inf, 0)
        total = self.left.new_zeros(shape).scatter_add_(1, parent, (mass - offset.gather(1, parent)).exp())
        return (total.log() + offset)[:, :used]
