"""The lockstep beam expansion: all beams of all instances advance one level at a time.

A `Search` owns the trie of a batch of instances. `Search.round` runs one (stochastic) beam search over it. The only Python
loops are over depth and rounds; instances, beams, actions and nodes are tensor axes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gumbeldore import gumbel
from gumbeldore.evaluator import Evaluator
from gumbeldore.policy import Policy
from gumbeldore.problem import Problem, S, check_horizon, dead_ends, final_objective, step_some
from gumbeldore.trie import UNKNOWN, Known, Trie

Perturb = Callable[[Float[Tensor, "batch beam action"], Float[Tensor, "batch beam"], int], Float[Tensor, "batch beam action"]]
"""Scores of children from their total log-probabilities, their parents' scores and the depth."""


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
    dead: Bool[Tensor, "batch beam"]
    leaf_depth: Int[Tensor, "batch beam"]
    complete: Bool[Tensor, " batch"]

    @property
    def open(self) -> Bool[Tensor, "batch beam"]:
        return self.filled & ~self.finished


@dataclass
class Search(Generic[S]):
    """One search per instance of `root` (one row each), sharing all tensor operations."""

    problem: Problem[S]
    policy: Policy[S]
    root: S
    nodes: int  # capacity of a trie level: the sum of the beam widths of all rounds
    cache_priors: bool = True
    transpositions: bool = True  # evaluate states with equal keys once
    network_bytes: int = 1 << 29
    horizon: int = field(init=False)
    trie: Trie = field(init=False)
    evaluator: Evaluator[S] = field(init=False)

    def __post_init__(self) -> None:
        batch = self.root.row_count
        self.horizon = self.problem.horizon(self.root)
        self.trie = Trie.empty(batch, self.nodes, self.horizon, self.root.device)
        self.evaluator = Evaluator(self.problem, self.policy, self.root, self.network_bytes)

    def round(
        self,
        width: int,
        perturb: Perturb,
        *,
        nucleus: float = 1.0,
        average_bonus: bool = False,
        root_score: Float[Tensor, " batch"] | None = None,
        depth: int = 0,
        start: tuple[S, Int[Tensor, " batch"]] | None = None,
    ) -> Round:
        """One beam search of the given width from the root, or from the node and state `start` at `depth`."""
        beam = self._first_beam(width, root_score, depth, start)
        while bool(beam.open.any()):
            check_horizon(self.problem, depth, self.horizon)
            beam = self._expand(beam, depth, perturb, nucleus, average_bonus)
            depth += 1
        leaf_depth = beam.leaf_depth.where(beam.filled, 0)
        nodes, actions = self.trie.trace(beam.node, leaf_depth, depth)
        return Round(
            beam.filled,
            self._objective(beam),
            beam.log_prob.masked_fill(~beam.filled, -torch.inf),
            beam.round_log_prob.masked_fill(~beam.filled, -torch.inf),
            beam.score,
            beam.complete,
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
    ) -> Beam[S]:
        state, node = start or (self.root, torch.zeros_like(self.root.instance))
        batch, device = state.row_count, state.device
        zeros = torch.zeros(batch, width, dtype=gumbel.precise(device), device=device)
        available = self.trie.left[depth].gather(1, node[:, None]) > -torch.inf
        filled = (torch.arange(width, device=device) == 0) & available
        done = self.problem.done(state)
        dead = dead_ends(self.problem, state, done)
        rows = torch.arange(batch, device=device).repeat_interleave(width)
        score = zeros if root_score is None else zeros + root_score[:, None]
        return Beam(
            state.rows(rows),
            node[:, None].expand(batch, width),
            score,
            zeros,
            zeros,
            filled,
            (done | dead)[:, None].expand(batch, width),
            dead[:, None].expand(batch, width),
            torch.full((batch, width), depth, device=device),
            torch.ones(batch, dtype=torch.bool, device=device),
        )

    def _expand(self, beam: Beam[S], depth: int, perturb: Perturb, nucleus: float, average_bonus: bool) -> Beam[S]:
        """Line 4 of Algorithm 2: expands every open slot by all its actions and keeps the best `width` candidates."""
        open_, (batch, width) = beam.open, beam.node.shape
        prior = self._priors(beam, depth)
        actions = prior.shape[-1]
        child = self.trie.children(depth, beam.node, open_, actions)
        logits = prior if child is None else prior + self.trie.correction(depth, child, average_bonus)
        conditional = gumbel.nucleus(gumbel.normalise(logits), nucleus)  # -inf where nothing is open, as the prior
        total = beam.round_log_prob[..., None] + conditional
        score = perturb(total, beam.score, depth)
        waiting = beam.filled & beam.finished  # a finished slot stays one candidate, unchanged (METHOD 6)
        score[..., 0] = torch.where(waiting, beam.score, score[..., 0])
        score = score.flatten(1)
        best, choice = score.topk(min(width, score.shape[1]), dim=1)
        complete = beam.complete & ((score > -torch.inf).sum(1) <= width)
        if choice.shape[1] < width:
            best = torch.nn.functional.pad(best, (0, width - best.shape[1]), value=-torch.inf)
            choice = torch.nn.functional.pad(choice, (0, width - choice.shape[1]))
        slot, action = choice // actions, choice % actions
        filled, stays = best > -torch.inf, waiting.gather(1, slot)
        grows = filled & ~stays

        def pick(values: Tensor) -> Tensor:
            return values.flatten(1).gather(1, choice)

        edge = pick(prior).where(grows, 0)
        node = self.trie.insert(
            depth + 1, beam.node.gather(1, slot), action, edge, None if child is None else pick(child), grows
        )
        self._record_rest(beam, depth, prior, child, choice, grows)
        state = self._step(beam, slot, action, grows)
        done = self.problem.done(state)
        dead = dead_ends(self.problem, state, done).view(batch, width)
        finished = done.view(batch, width) | dead
        return Beam(
            state=state,
            node=node.where(~stays, beam.node.gather(1, slot)),
            score=best,
            log_prob=beam.log_prob.gather(1, slot) + edge,
            round_log_prob=torch.where(stays, beam.round_log_prob.gather(1, slot), pick(total)),
            filled=filled,
            finished=finished,
            dead=dead,
            leaf_depth=torch.where(stays, beam.leaf_depth.gather(1, slot), depth + 1),
            complete=complete,
        )

    def _step(
        self,
        beam: Beam[S],
        slot: Int[Tensor, "batch beam"],
        action: Int[Tensor, "batch beam"],
        grows: Bool[Tensor, "batch beam"],
    ) -> S:
        """Moves every slot to its new state; slots that hold nothing repeat a legal action of a row that exists."""
        batch, width = slot.shape
        row = slot + torch.arange(batch, device=slot.device)[:, None] * width
        state = beam.state.rows(row.flatten())
        return step_some(self.problem, state, action.flatten(), grows.flatten())

    def _record_rest(
        self, beam: Beam[S], depth: int, prior: Tensor, child: Tensor | None, choice: Tensor, grows: Tensor
    ) -> None:
        """Sums the mass of the children that were never visited, while the whole prior is at hand."""
        batch, width, actions = prior.shape
        visited = torch.zeros(batch, width * actions + 1, dtype=torch.bool, device=prior.device)
        visited.scatter_(1, choice.where(grows, width * actions), True)
        unvisited = ~visited[:, :-1].view_as(prior)
        if child is not None:
            unvisited &= child == UNKNOWN
        rest = torch.logsumexp(prior.masked_fill(~unvisited, -torch.inf), -1)
        self.trie.rest[depth].scatter_(1, beam.node.where(beam.open, self.trie.nodes), rest)

    def _priors(self, beam: Beam[S], depth: int) -> Float[Tensor, "batch beam action"]:
        """The policy's log-probabilities at every open slot; the policy sees only nodes that it has not seen yet."""
        open_, (batch, width) = beam.open.flatten(), beam.node.shape
        evaluation = self.trie.evaluation[depth].gather(1, beam.node).flatten()
        place = torch.arange(batch, device=open_.device).repeat_interleave(width) * self.trie.nodes
        wanted = (open_ & (evaluation == UNKNOWN)).nonzero().squeeze(1)
        known = (open_ & (evaluation != UNKNOWN)).nonzero().squeeze(1)
        fresh = self._evaluate(beam, wanted, depth) if len(wanted) else None
        table = self._table(depth, batch, fresh)
        exact = gumbel.precise(open_.device)
        if fresh is not None and len(wanted) == batch * width:
            prior = fresh.to(exact)
        else:
            source = fresh if fresh is not None else table
            assert source is not None
            prior = source.new_full((batch * width, source.shape[-1]), -torch.inf, dtype=exact)
            if fresh is not None:
                prior[wanted] = fresh.to(exact)
        if table is not None:
            rows = table.view(-1, table.shape[-1])
            if len(known):
                prior[known] = rows[place[known] + evaluation[known]].to(exact)
                self.evaluator.cached.index_add_(0, known // width, torch.ones_like(known))
            if fresh is not None:
                node = beam.node.flatten()[wanted]
                rows[place[wanted] + node] = fresh.to(rows.dtype)
                self.trie.evaluation[depth, wanted // width, node] = node
        return prior.view(batch, width, -1)

    def _evaluate(self, beam: Beam[S], wanted: Int[Tensor, " row"], depth: int) -> Float[Tensor, "row action"]:
        """The policy's log-probabilities at rows that have none yet. Of rows with equal keys only the first is computed."""
        state = beam.state.rows(wanted) if len(wanted) < beam.state.row_count else beam.state
        instance, rows = wanted // beam.node.shape[1], torch.arange(len(wanted), device=wanted.device)
        several = depth > 0 and self.trie.nodes > 1
        key = self.problem.key(state) if self.transpositions and several else None
        if key is None:
            return self.evaluator(state, rows, instance)
        here, before = Known.of(instance, key, beam.node.flatten()[wanted]), self.trie.known[depth]
        known = here if before is None else before.joined(here)
        distinct, again, first = known.repeats()
        if len(again) == 0:
            prior = self.evaluator(state, rows, instance)
        else:
            again = again - (len(known) - len(here))
            own = torch.ones_like(rows, dtype=torch.bool).index_fill_(0, again, False).nonzero().squeeze(1)
            prior = self._share(state, instance, own, again, first, depth)
        if self.cache_priors:
            self.trie.known[depth] = known.rows(distinct)
        return prior

    def _share(
        self,
        state: S,
        instance: Int[Tensor, " row"],
        own: Int[Tensor, " own"],
        again: Int[Tensor, " repeat"],
        first: Int[Tensor, " repeat"],
        depth: int,
    ) -> Float[Tensor, "row action"]:
        """Evaluates the rows `own`. Each row of `again` copies the prior of `first`: a state known before, or a row after those.

        A prior belongs to a state. What is left, what was learnt and visits belong to prefixes and are never shared.
        """
        fresh = self.evaluator(state, own, instance[own]) if len(own) else None
        table, before = self.trie.prior[depth], self.trie.known[depth]
        sources = [source for source in (fresh, table) if source is not None]
        kind = torch.promote_types(sources[0].dtype, sources[-1].dtype)
        prior = sources[0].new_empty(len(instance), sources[0].shape[-1], dtype=kind)
        if fresh is not None:
            prior[own] = fresh.to(kind)
        if before is not None and table is not None:
            old = first < len(before)
            lender = before.entry[first[old]]
            prior[again[old]] = table[lender[:, 0], lender[:, 3]].to(kind)
            new, lender = again[~old], first[~old] - len(before)
        else:
            new, lender = again, first
        prior[new] = prior[lender]
        right = self.evaluator.borrow(state, again, instance[again], prior[again])
        if not bool(right.all()):
            wrong = again[~right]
            prior[wrong] = self.evaluator(state, wrong, instance[wrong]).to(kind)
        return prior

    def _table(self, depth: int, batch: int, fresh: Tensor | None) -> Tensor | None:
        """Where the priors of a level are kept, allocated when its first ones arrive; None without a cache.

        Forced rows may arrive before the policy has shown its float type: the table is widened when it does.
        """
        table = self.trie.prior[depth]
        if self.cache_priors and fresh is not None:
            if table is None:
                table = fresh.new_empty(batch, self.trie.nodes, fresh.shape[-1])
            self.trie.prior[depth] = table = table.to(torch.promote_types(table.dtype, fresh.dtype))
        return table

    def _objective(self, beam: Beam[S]) -> Float[Tensor, "batch beam"]:
        dead, filled = beam.dead.flatten(), beam.filled.flatten()
        value = final_objective(self.problem, beam.state, dead, filled).view_as(beam.score)
        return value.masked_fill(~beam.filled, -torch.inf)
