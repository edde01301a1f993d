"""The search tree of every instance in a batch as a struct of arrays: what was sampled, what is left, what was learnt.

Nodes are stored level by level. A level holds at most `rounds * beam_width` nodes per instance, because a round visits at
most `beam_width` prefixes of each length; so all arrays have the shape `[depth, batch, node]` and nothing is linked.
One extra column at the end takes the writes of empty beam slots.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int, Num
from torch import Tensor

from gumbeldore.problem import precise
from gumbeldore.search.gumbel import NEGLIGIBLE, bounded, counting, log_add_exp

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
        return Known(self.code.index_select(0, index), self.entry.index_select(0, index))

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
        again, first = order.index_select(0, later), distinct.take(begins.cumsum(0).take(later) - 1)
        same = (self.entry.index_select(0, again) == self.entry.index_select(0, first))[:, :3].all(1)
        return (distinct, again, first) if bool(same.all()) else (distinct, again[same], first[same])


@dataclass(frozen=True)
class Children:
    """The visited children of the nodes of a beam: where they stand in tables of all slots and actions."""

    shape: tuple[int, int, int]  # of a table: instances, slots, actions
    place: Int[Tensor, " each"]  # of each child in a flat table; behind its end if the parent is not in the beam
    node: Int[Tensor, "batch child"]

    def table(self, values: Num[Tensor, "batch child"], otherwise: float) -> Num[Tensor, "batch beam action"]:
        """A table of the children's values."""
        batch, beam, actions = self.shape
        flat = values.new_full(((batch * beam + 1) * actions,), otherwise)
        return flat.scatter_(0, self.place, values.flatten())[:-actions].view(self.shape)


@dataclass
class Trie:
    """Search trees, one per instance. Level 0 holds the root (node 0) only."""

    parent: Int[Tensor, "depth batch node"]  # index of the parent one level up; the spare column for nodes not in use
    action: Int[Tensor, "depth batch node"]  # the action that leads here from the parent
    edge: Float[Tensor, "depth batch node"]  # log-probability of that action under the original policy
    rest: Float[Tensor, "depth batch node"]  # log mass of the children never visited, as a fraction of the node's own
    left: Float[Tensor, "depth batch node"]  # log fraction of the node's mass not yet sampled: 0 new, -inf exhausted
    bonus: Float[Tensor, "depth batch node"]  # sigma * summed advantages through the node
    evaluation: Int[Tensor, "depth batch node"]  # row of `prior` that holds the node's policy, or UNKNOWN
    count: Int[Tensor, "depth batch"]  # nodes in use
    width: list[int]  # an upper bound on `count` by level
    prior: list[Float[Tensor, "batch node action"] | None]  # policy log-probabilities by level, where they are cached
    known: list[Known | None]  # the states by level whose priors are cached, where transpositions are looked for

    @classmethod
    def empty(cls, batch: int, nodes: int, horizon: int, device: torch.device) -> Trie:
        """Room for `nodes` nodes per level and instance, with the root in place."""
        shape = (horizon + 1, batch, nodes + 1)
        integers = [torch.zeros(shape, dtype=torch.long, device=device) for _ in range(3)]
        numbers = [torch.zeros(shape, dtype=precise(device), device=device) for _ in range(4)]
        count = torch.zeros(horizon + 1, batch, dtype=torch.long, device=device)
        count[0] = 1
        parent, action, evaluation = integers
        edge, rest, left, bonus = numbers
        parent.fill_(nodes)
        evaluation.fill_(UNKNOWN)
        width, levels = [1] + [0] * horizon, horizon + 1
        return cls(parent, action, edge, rest, left, bonus, evaluation, count, width, [None] * levels, [None] * levels)

    @property
    def nodes(self) -> int:
        return self.parent.shape[2] - 1

    def used(self, depth: int) -> int:
        """An upper bound, without waiting for the device, on the nodes that any instance uses at this depth."""
        return self.width[depth] if depth < len(self.width) else 0

    def children(
        self,
        depth: int,
        node: Int[Tensor, "batch beam"],
        open_: Bool[Tensor, "batch beam"] | None,
        actions: int,
        group: int = 1,
    ) -> Children | None:
        """The visited children of the open nodes of a beam (None: all are); None if the level below is empty.

        Tables have a place for every `group` successive actions.
        """
        used = self.used(depth + 1)
        if used == 0:
            return None
        batch, beam = node.shape
        rows = counting(batch * beam, node.device).view(batch, beam)
        if open_ is not None:
            node, rows = node.where(open_, self.nodes), rows.where(open_, batch * beam)
        row = torch.full((batch, self.nodes + 1), batch * beam, device=node.device).scatter_(1, node, rows)
        action = self.action[depth + 1, :, :used]
        place = row.gather(1, self.parent[depth + 1, :, :used]).mul_(actions).add_(action if group == 1 else action // group)
        return Children((batch, beam, actions), place.flatten(), counting(used, node.device).expand(batch, used))

    def correction(self, depth: int, children: Children) -> Float[Tensor, "batch beam action"]:
        """`left + bonus` of the children, 0 for those never visited: what is added to the prior (eq. 6)."""
        return children.table(self.shift(depth + 1, children.node.shape[1]), 0)

    def shift(self, depth: int, used: int) -> Float[Tensor, "batch node"]:
        """`left + bonus` of the first nodes of a level."""
        level = depth, slice(None), slice(used)
        return self.left[level] + self.bonus[level]

    def insert(
        self,
        depth: int,
        parent: Int[Tensor, "batch beam"],
        action: Int[Tensor, "batch beam"],
        edge: Float[Tensor, "batch beam"],
        known: Int[Tensor, "batch beam"] | None,
        valid: Bool[Tensor, "batch beam"] | None = None,
    ) -> Int[Tensor, "batch beam"]:
        """Nodes at `depth` for the valid slots (None: all): the `known` ones, new ones for the rest.

        Invalid slots get the spare column.
        """
        new = known == UNKNOWN if known is not None else torch.ones_like(parent, dtype=torch.bool)
        if valid is not None:
            new &= valid
        count = self.count[depth]
        node = new.cumsum(1).add_(count[:, None])
        count.copy_(node[:, -1])
        node.sub_(1)
        if known is not None:
            node = node.where(new, known)
        if valid is not None:
            node = node.where(valid, self.nodes)
        self.parent[depth].scatter_(1, node, parent)
        self.action[depth].scatter_(1, node, action)
        self.edge[depth].scatter_(1, node, edge)
        self.width[depth] = min(self.nodes, self.width[depth] + parent.shape[1])
        return node

    def trace(
        self, leaf: Int[Tensor, "batch beam"], leaf_depth: Int[Tensor, "batch beam"], depth: int
    ) -> tuple[Int[Tensor, "depth batch beam"], Int[Tensor, "depth batch beam"]]:
        """The nodes (levels 1 .. depth) and actions on the way to each leaf; spare column and -1 below the leaf."""
        nodes, actions = [leaf.new_empty(0, *leaf.shape)], [leaf.new_empty(0, *leaf.shape)]
        together = bool((leaf_depth == depth).all())
        for level in range(depth, 0, -1):
            node, action, above = leaf, self.action[level].gather(1, leaf), self.parent[level].gather(1, leaf)
            if not together:
                inside = leaf_depth >= level
                node, action, above = node.where(inside, self.nodes), action.where(inside, -1), above.where(inside, leaf)
            nodes.insert(1, node[None])
            actions.insert(1, action[None])
            leaf = above
        return torch.cat(nodes), torch.cat(actions)

    def learn(
        self,
        nodes: Int[Tensor, "depth batch beam"],
        shift: Float[Tensor, "batch beam"] | Float[Tensor, "depth batch beam"],
        filled: Bool[Tensor, "batch beam"],
    ) -> None:
        """Adds a logit shift to every node on the path of each sequence (eq. 6, second term)."""
        levels = slice(1, len(nodes) + 1)
        self.bonus[levels].scatter_add_(2, nodes, shift.where(filled, 0).expand(nodes.shape).to(self.bonus.dtype))

    @torch.inference_mode()
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
        parent = self.parent[depth + 1, :, :below]
        mass = self.edge[depth + 1, :, :below] + self.left[depth + 1, :, :below]
        largest = self.left.new_full(shape, -torch.inf).scatter_reduce_(1, parent, mass, "amax")
        mass.sub_(bounded(largest).gather(1, parent)).clamp_(min=NEGLIGIBLE).exp_()
        return self.left.new_zeros(shape).scatter_add_(1, parent, mass).log_().add_(largest)[:, :used]
