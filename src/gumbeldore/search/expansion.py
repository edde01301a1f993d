"""The lockstep beam expansion: all beams of all instances advance one level at a time.

A `Search` owns the trie of a batch of instances. `Search.round` runs one (stochastic) beam search over it. The only Python
loops are over depth and rounds; instances, beams, actions and nodes are tensor axes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Generic

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gumbeldore.policy import Policy
from gumbeldore.problem import Problem, S, check_horizon, dead_ends, ended, final_objective, precise, step_some
from gumbeldore.search import gumbel
from gumbeldore.search.deadline import Deadline
from gumbeldore.search.evaluator import Evaluator
from gumbeldore.search.scores import CUT, Perturb, all_kept, highest
from gumbeldore.search.trie import UNKNOWN, Known, Trie

Watch = Callable[[Float[Tensor, "batch beam action"], Bool[Tensor, "batch beam"]], None]
"""Sees the log-probabilities of every expansion, before the nucleus, and which slots are open."""


@dataclass(frozen=True)
class Round:
    """The sequences of one round, in descending order of their scores. Slots that are not `filled` hold nothing."""

    filled: Bool[Tensor, "batch beam"]
    objective: Float[Tensor, "batch beam"]  # -inf where not filled
    log_prob: Float[Tensor, "batch beam"]  # under the original policy, from where the round started; -inf where not filled
    round_log_prob: Float[Tensor, "batch beam"]  # under this round's policy (trie corrections and nucleus applied)
    score: Float[Tensor, "batch beam"]  # the perturbed log-probability G
    complete: Bool[Tensor, " batch"]  # no candidate was ever cut: all this round's policy can produce was sampled
    actions: Int[Tensor, "depth batch beam"]  # -1 after the end
    nodes: Int[Tensor, "depth batch beam"]  # trie nodes at levels 1 .. depth; the spare column after the end
    leaf: Int[Tensor, "batch beam"]
    leaf_depth: Int[Tensor, "batch beam"]


@dataclass
class Beam(Generic[S]):
    """The slots of all instances between two expansions; rows of `state` are `batch * beam` in this order."""

    state: S
    node: Int[Tensor, "batch beam"]
    score: Float[Tensor, "batch beam"]
    log_prob: Float[Tensor, "batch beam"]
    round_log_prob: Float[Tensor, "batch beam"]
    filled: Bool[Tensor, "batch beam"]
    finished: Bool[Tensor, "batch beam"]
    leaf_depth: Int[Tensor, "batch beam"]
    complete: Bool[Tensor, " batch"] | None  # None: nowhere
    all_filled: bool

    @cached_property
    def open(self) -> Bool[Tensor, "batch beam"]:
        return self.filled & ~self.finished

    @cached_property
    def all_open(self) -> bool:
        """The usual case, in which nothing has to be masked."""
        return self.all_filled and not bool(self.finished.any())

    def open_nodes(self, spare: int) -> Int[Tensor, "batch beam"]:
        """The nodes of the open slots, the spare column for the others."""
        return self.node if self.all_open else self.node.where(self.open, spare)

    def offset(self, size: int) -> Int[Tensor, "batch 1"]:
        """Where the instances begin in a flat tensor with `size` elements for each."""
        return gumbel.counting(len(self.node), self.node.device, size)[:, None]


@dataclass(frozen=True)
class Request(Generic[S]):
    """Rows whose priors are wanted, and which of them the policy is asked about."""

    state: S
    instance: Int[Tensor, " row"]
    own: Int[Tensor, " own"]  # rows that are asked about
    owner: Int[Tensor, " own"]  # their instances
    again: Int[Tensor, " repeat"] | None = None  # rows that are equal to others; None: none
    first: Int[Tensor, " repeat"] | None = None  # to which, counted over `before` and these rows
    before: Known | None = None  # the states of this level that are known from earlier rounds


@dataclass
class Search(Generic[S]):
    """One search per instance of `root` (one row each), sharing all tensor operations."""

    evaluator_type: ClassVar[type[Evaluator[Any]]] = Evaluator

    problem: Problem[S]
    policy: Policy[S]
    root: S
    nodes: int  # capacity of a trie level: the sum of the beam widths of all rounds
    cache_priors: bool = True
    counts_repeats: bool = False  # where priors are not kept: evaluations are counted that would be spared if they were
    transpositions: bool = True  # evaluate states with equal keys once
    network_bytes: int = 1 << 29
    augmented: bool = False  # the first action chooses one
    deadline: Deadline | None = None
    horizon: int = field(init=False)
    trie: Trie = field(init=False)
    evaluator: Evaluator[S] = field(init=False)

    def __post_init__(self) -> None:
        batch = self.root.row_count
        self.horizon = self.problem.horizon(self.root)
        self.trie = Trie.empty(batch, self.nodes, self.horizon, self.root.device)
        self.evaluator = self.evaluator_type(self.problem, self.policy, self.root, self.network_bytes, self.deadline)

    @torch.inference_mode()
    def round(
        self,
        width: int,
        perturb: Perturb,
        *,
        nucleus: float | Float[Tensor, " batch"] = 1.0,
        root_score: Float[Tensor, " batch"] | None = None,
        depth: int = 0,
        start: tuple[S, Int[Tensor, " batch"]] | None = None,
        active: Bool[Tensor, " batch"] | None = None,
        watch: Watch | None = None,
    ) -> Round:
        """One beam search of the given width from the root, or from the node and state `start` at `depth`.

        Instances that are not `active` get no sequence. Augmentations, if the first action chooses one, are never truncated.
        """
        beam = self._first_beam(width, root_score, depth, start, active)
        truncate = nucleus[:, None] if isinstance(nucleus, Tensor) else nucleus
        while beam.all_open or bool(beam.open.any()):
            check_horizon(self.problem, depth, self.horizon)
            augmentations = self.augmented and depth == 0
            beam = self._expand(beam, depth, perturb, 1.0 if augmentations else truncate, None if augmentations else watch)
            depth += 1
        leaf_depth = beam.leaf_depth.where(beam.filled, 0)
        nodes, actions = self.trie.trace(beam.node, leaf_depth, depth)
        return Round(
            beam.filled,
            self._objective(beam),
            beam.log_prob.masked_fill(~beam.filled, -torch.inf),
            beam.round_log_prob.masked_fill(~beam.filled, -torch.inf),
            beam.score,
            torch.zeros_like(beam.filled[:, 0]) if beam.complete is None else beam.complete,
            actions,
            nodes,
            beam.node,
            leaf_depth,
        )

    def _first_beam(
        self,
        width: int,
        root_score: Float[Tensor, " batch"] | None,
        depth: int,
        start: tuple[S, Int[Tensor, " batch"]] | None,
        active: Bool[Tensor, " batch"] | None,
    ) -> Beam[S]:
        state, node = start or (self.root, torch.zeros_like(self.root.instance))
        batch, device = state.row_count, state.device
        zeros = torch.zeros(batch, width, dtype=precise(device), device=device)
        available = self.trie.left[depth].gather(1, node[:, None]) > -torch.inf
        if active is not None:
            available &= active[:, None]
        filled = (torch.arange(width, device=device) == 0) & available
        rows = torch.arange(batch, device=device).repeat_interleave(width)
        score = zeros if root_score is None else zeros + root_score[:, None]
        return Beam(
            state.rows(rows),
            node[:, None].expand(batch, width),
            score,
            zeros,
            zeros,
            filled,
            ended(self.problem, state)[:, None].expand(batch, width),
            torch.full((batch, width), depth, device=device),
            torch.ones(batch, dtype=torch.bool, device=device),
            all_filled=False,
        )

    def _expand(
        self,
        beam: Beam[S],
        depth: int,
        perturb: Perturb,
        nucleus: float | Float[Tensor, "batch 1"],
        watch: Watch | None,
    ) -> Beam[S]:
        """Line 4 of Algorithm 2: expands every open slot by all its actions and keeps the best `width` candidates."""
        prior = self._priors(beam, depth)
        batch, width, actions = prior.shape
        children = self.trie.children(depth, beam.node, None if beam.all_open else beam.open, actions)
        logits = prior if children is None else prior + self.trie.correction(depth, children)
        conditional = gumbel.normalise(logits)  # -inf where nothing is open, as the prior
        if watch is not None:
            watch(conditional, beam.open)
        conditional = gumbel.nucleus(conditional, nucleus)
        total = beam.round_log_prob[..., None] + conditional
        score = perturb(total, beam.score, depth)
        if not beam.all_open:  # a finished slot stays one candidate, unchanged (METHOD 6)
            score[..., 0] = torch.where(beam.filled & beam.finished, beam.score, score[..., 0])
        score = score.flatten(1)
        best, choice = highest(score, width)
        complete = None if beam.complete is None else beam.complete & all_kept(score, width)
        place = choice + beam.offset(width * actions)  # among the candidates of all instances
        row, action = place // actions, place % actions
        filled, state = best > CUT, beam.state.rows(row.flatten())
        all_filled, known = bool(filled.all()), None if children is None else children.table(children.node, UNKNOWN)
        edge, parent, child = prior.take(place), beam.node.take(row), None if known is None else known.take(place)
        round_log_prob, leaf_depth = total.take(place), torch.full_like(row, depth + 1)
        if beam.all_open and all_filled:
            self._record_rest(beam, depth, prior.flatten(1).scatter(1, choice, -torch.inf), known)
            node = self.trie.insert(depth + 1, parent, action, edge, child)
            state = self.problem.step(state, action.flatten())
        else:
            stays = filled & beam.finished.take(row)
            grows = filled & ~stays
            self._record_rest(beam, depth, prior.flatten(1).scatter(1, choice, edge.masked_fill(grows, -torch.inf)), known)
            edge = edge.where(grows, 0)
            node = parent.where(stays, self.trie.insert(depth + 1, parent, action, edge, child, grows))
            round_log_prob = beam.round_log_prob.take(row).where(stays, round_log_prob)
            leaf_depth = beam.leaf_depth.take(row).where(stays, leaf_depth)
            state = step_some(self.problem, state, action.flatten(), grows.flatten())
        return Beam(
            state=state,
            node=node,
            score=best,
            log_prob=beam.log_prob.take(row) + edge,
            round_log_prob=round_log_prob,
            filled=filled,
            finished=ended(self.problem, state).view(batch, width),
            leaf_depth=leaf_depth,
            complete=complete if complete is None or bool(complete.any()) else None,
            all_filled=all_filled,
        )

    def _record_rest(self, beam: Beam[S], depth: int, prior: Float[Tensor, "batch candidate"], known: Tensor | None) -> None:
        """Sums the mass of the children that were never visited, while the whole prior is at hand.

        `prior` is -inf at those that were chosen now; `known` are the nodes of those that were chosen before.
        """
        unvisited = prior.view(*beam.node.shape, -1)
        if known is not None:
            unvisited = unvisited.masked_fill_(known >= 0, -torch.inf)
        rest = gumbel.log_sum_exp(unvisited).squeeze(-1)
        self.trie.rest[depth].scatter_(1, beam.open_nodes(self.trie.nodes), rest)

    def _priors(self, beam: Beam[S], depth: int) -> Float[Tensor, "batch beam action"]:
        """The policy's log-probabilities at every open slot; the policy sees only nodes that it has not seen yet."""
        place, table = (beam.node + beam.offset(self.trie.nodes + 1)).flatten(), self.trie.prior[depth]
        wanted = self._unknown(beam, depth)
        fresh = None
        if len(wanted):
            request = self._request(beam, wanted, depth)
            fresh = self.evaluator(request.state, request.own, request.owner) if len(request.own) else None
            if request.again is not None:
                fresh = self._shared(request, fresh, depth)
        if fresh is not None and self.cache_priors:
            table = self._remember(beam, depth, place if len(fresh) == len(place) else place.index_select(0, wanted), fresh)
        exact = precise(place.device)
        if fresh is not None and len(fresh) == len(place):
            prior = fresh.to(exact)
        elif table is not None:
            prior = table.flatten(0, 1).index_select(0, place).to(exact)
            if not beam.all_open:
                prior.masked_fill_(~beam.open.view(-1, 1), -torch.inf)
        else:
            assert fresh is not None
            prior = fresh.new_full((len(place), fresh.shape[1]), -torch.inf, dtype=exact).index_copy_(
                0, wanted, fresh.to(exact)
            )
        return prior.view(*beam.node.shape, -1)

    def _unknown(self, beam: Beam[S], depth: int) -> Int[Tensor, " row"]:
        """The open rows whose priors are not kept."""
        if self.trie.prior[depth] is None:
            return gumbel.counting(beam.node.numel(), beam.node.device) if beam.all_open else flat_nonzero(beam.open)
        known = self.trie.evaluation[depth].gather(1, beam.node) != UNKNOWN
        if not beam.all_open:
            known &= beam.open
        self.evaluator.cached.add_(known.sum(1))
        return flat_nonzero(~known if beam.all_open else beam.open & ~known)

    def _remember(
        self, beam: Beam[S], depth: int, place: Int[Tensor, " row"], fresh: Float[Tensor, "row action"]
    ) -> Float[Tensor, "batch node action"]:
        """Keeps new priors in the table of their level, which is allocated when the first ones arrive.

        Forced rows may arrive before the policy has shown its float type: the table is widened when it does.
        """
        table = self.trie.prior[depth]
        if table is None:
            table = fresh.new_empty(len(beam.node), self.trie.nodes + 1, fresh.shape[1])
        self.trie.prior[depth] = table = table.to(torch.promote_types(table.dtype, fresh.dtype))
        table.flatten(0, 1).index_copy_(0, place, fresh.to(table.dtype))
        node = beam.open_nodes(self.trie.nodes)
        self.trie.evaluation[depth].scatter_(1, node, node)
        return table

    def _request(self, beam: Beam[S], wanted: Int[Tensor, " row"], depth: int) -> Request[S]:
        """What to ask of rows that have no prior yet. Of rows with equal keys only the first is asked about."""
        state = beam.state.rows(wanted) if len(wanted) < beam.state.row_count else beam.state
        instance, rows = wanted // beam.node.shape[1], gumbel.counting(len(wanted), wanted.device)
        several = depth > 0 and self.trie.nodes > 1
        key = self.problem.key(state) if self.transpositions and several else None
        here = None if key is None else Known.of(instance, key, beam.node.take(wanted))
        if self.counts_repeats:
            self._count_repeats(state, instance, beam.node.take(wanted), here, depth)
        if here is None:
            return Request(state, instance, rows, instance)
        before = self.trie.known[depth] if self.cache_priors else None
        known = here if before is None else before.joined(here)
        distinct, again, first = known.repeats()
        if self.cache_priors:
            self.trie.known[depth] = known.rows(distinct)
        if len(again) == 0:
            return Request(state, instance, rows, instance)
        again = again - (len(known) - len(here))
        own = flat_nonzero(torch.ones_like(rows, dtype=torch.bool).index_fill_(0, again, False))
        return Request(state, instance, own, instance.index_select(0, own), again, first, before)

    def _count_repeats(
        self, state: S, instance: Int[Tensor, " row"], node: Int[Tensor, " row"], here: Known | None, depth: int
    ) -> None:
        """Of the rows that the policy is about to see, those that it has seen in an earlier round. From now on it has seen all of them."""
        if here is None:
            repeated = flat_nonzero(self.trie.evaluation[depth, instance, node] != UNKNOWN)
            self.trie.evaluation[depth, instance, node] = node
        else:
            before, again = self.trie.known[depth] or here.rows(node[:0]), here.repeats()[1]
            known = before.joined(here)
            distinct, later, first = known.repeats()
            self.trie.known[depth] = known.rows(distinct)
            own = torch.ones_like(node, dtype=torch.bool).index_fill_(
                0, again, False
            )  # the others share the prior of one of these
            repeated = later[first < len(before)] - len(before)
            repeated = repeated[own[repeated]]
        self.evaluator.repeat(state, repeated, instance.index_select(0, repeated))

    def _shared(
        self, request: Request[S], fresh: Float[Tensor, "own action"] | None, depth: int
    ) -> Float[Tensor, "row action"]:
        """The priors of all rows that are wanted: each row of `again` copies that of `first`, a state known before or a fresh row.

        A prior belongs to a state. What is left and what was learnt belong to prefixes and are never shared.
        """
        state, instance, again, first, before = request.state, request.instance, request.again, request.first, request.before
        assert again is not None
        assert first is not None
        table = self.trie.prior[depth]
        sources = [source for source in (fresh, table) if source is not None]
        kind = torch.promote_types(sources[0].dtype, sources[-1].dtype)
        prior = sources[0].new_empty(len(instance), sources[0].shape[-1], dtype=kind)
        if fresh is not None:
            prior.index_copy_(0, request.own, fresh.to(kind))
        if before is not None and table is not None:
            old = first < len(before)
            lender = before.entry[first[old]]
            prior[again[old]] = table[lender[:, 0], lender[:, 3]].to(kind)
            new, lender = again[~old], first[~old] - len(before)
        else:
            new, lender = again, first
        prior.index_copy_(0, new, prior.index_select(0, lender))
        right = self.evaluator.borrow(state, again, instance.index_select(0, again), prior.index_select(0, again))
        if not bool(right.all()):
            wrong = again[~right]
            prior[wrong] = self.evaluator(state, wrong, instance[wrong]).to(kind)
        return prior

    def _objective(self, beam: Beam[S]) -> Float[Tensor, "batch beam"]:
        dead = dead_ends(self.problem, beam.state, self.problem.done(beam.state))
        value = final_objective(self.problem, beam.state, dead, beam.filled.flatten()).view_as(beam.score)
        return value.masked_fill(~beam.filled, -torch.inf)


def flat_nonzero(mask: Bool[Tensor, "..."]) -> Int[Tensor, " row"]:
    """Where a mask holds, counted over all its elements."""
    return mask.flatten().nonzero().squeeze(1)
