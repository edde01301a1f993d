"""A search among many thousand tokens: Gumbels are drawn for blocks of tokens first, and for tokens in the chosen blocks only.

A Gumbel with the location of a block's total log-probability is distributed as the largest Gumbel of its tokens, and given that the others
are distributed as below a node of a tree (appendix A). So a block is a node between a prefix and its tokens, in the noise only: the law
of the sequences is that of a search that perturbs every token. Of a prefix one number per block is kept: the mass of its tokens that were
never visited; and the log-probabilities of the blocks from which a token was taken.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from gumbeldore.problem import precise
from gumbeldore.search import gumbel
from gumbeldore.search.expansion import Beam, Watch, flat_nonzero
from gumbeldore.search.scores import CUT, Perturb, all_kept, highest
from gumbeldore.search.trie import UNKNOWN, Children
from gumbeldore.sequences.problem import SequenceState
from gumbeldore.sequences.search import SequenceSearch, TokenEvaluator

_SORTED = (256, 4096)
"""A nucleus that needs no more than so many tokens is found without sorting all."""


@dataclass(frozen=True)
class Fresh:
    """What the model said just now, at some of the slots."""

    logits: Float[Tensor, "row token"]
    total: Float[Tensor, " row"]  # their log-sum-exp
    sums: Float[Tensor, "row block"]  # log-probabilities of the blocks
    row: Int[Tensor, " slot"]  # of every slot of all instances; UNKNOWN where it was not asked

    @classmethod
    def of(cls, logits: Float[Tensor, "row token"], wanted: Int[Tensor, " row"], slots: int, size: int) -> Fresh:
        exact = precise(logits.device)
        sums = _block_sums(logits, size).to(exact)
        total = gumbel.log_sum_exp(sums)
        row = torch.full((slots,), UNKNOWN, device=logits.device)
        row[wanted] = gumbel.counting(len(wanted), logits.device)
        return cls(logits, total.squeeze(1), sums - total, row)

    def block(self, slot: Int[Tensor, " pair"], block: Int[Tensor, " pair"], size: int) -> Float[Tensor, "pair token"]:
        """Log-probabilities of the tokens of some blocks."""
        row = self.row.index_select(0, slot)
        return _take_block(self.logits, row, block, size).to(self.total.dtype) - self.total.index_select(0, row)[:, None]


def _block_sums(logits: Float[Tensor, "row token"], size: int) -> Float[Tensor, "row block"]:
    """The log-sum-exp of every `size` successive logits; the last block may have fewer."""
    whole = logits.shape[1] // size * size
    sums = gumbel.log_sum_exp(logits[:, :whole].unflatten(1, (-1, size))).squeeze(2)
    return sums if whole == logits.shape[1] else torch.cat([sums, gumbel.log_sum_exp(logits[:, whole:])], 1)


def _take_block(
    values: Float[Tensor, "row token"], row: Int[Tensor, " pair"], block: Int[Tensor, " pair"], size: int
) -> Float[Tensor, "pair place"]:
    """The values of some blocks; -inf behind the end of the last one."""
    tokens = values.shape[1]
    place = block[:, None] * size + gumbel.counting(size, values.device)
    flat = row[:, None] * tokens + place.clamp(max=tokens - 1)
    return values.take(flat).masked_fill_(place >= tokens, -torch.inf)


def truncated(location: Float[Tensor, "row token"], p: Float[Tensor, " row"]) -> Float[Tensor, "row token"]:
    """-inf outside the nucleus of each row; as they are inside. More tokens are sorted only where fewer do not reach `p`."""
    kept = location.clone()
    rows = flat_nonzero(p < 1)
    for count in _SORTED:
        if len(rows) == 0:
            return kept
        best, token = location.index_select(0, rows).topk(min(count, location.shape[1]), dim=1)
        probability = best.exp()
        mass = probability.cumsum(1)
        share = p.index_select(0, rows)
        reached = mass[:, -1] >= share
        inside = best.masked_fill(mass - probability >= share[:, None], -torch.inf)[reached]
        none = torch.full_like(location[rows[reached]], -torch.inf)
        kept.index_copy_(0, rows[reached], none.scatter_(1, token[reached], inside))
        rows = rows[~reached]
    if len(rows):
        some = location.index_select(0, rows)
        inside = gumbel.nucleus(some, p.index_select(0, rows)) > -torch.inf
        kept.index_copy_(0, rows, some.where(inside, -torch.inf))
    return kept


@dataclass
class BlockSearch(SequenceSearch):
    """Expands prefixes by blocks of `size` tokens."""

    size: int = 0  # 0: the square root of the vocabulary
    rests: list[Float[Tensor, "batch node block"] | None] = field(init=False)  # by level: log mass never visited
    kept: list[Float[Tensor, "batch node place"] | None] = field(
        init=False
    )  # by level: of the block that a node was taken from

    def __post_init__(self) -> None:
        super().__post_init__()
        self.vocabulary = self.problem.mask(self.root.rows(slice(0, 1))).shape[1]
        self.size = self.size or max(1, round(self.vocabulary**0.5))
        self.blocks = -(-self.vocabulary // self.size)
        self.rests, self.kept = [None] * (self.horizon + 1), [None] * (self.horizon + 2)

    def _expand(
        self,
        beam: Beam[SequenceState],
        depth: int,
        perturb: Perturb,
        nucleus: float | Float[Tensor, "batch 1"],
        watch: Watch | None,
    ) -> Beam[SequenceState]:
        """Line 4 of Algorithm 2, in two steps: the best blocks, and the best tokens among those."""
        assert watch is None, "An automatic nucleus needs the log-probabilities of all tokens."
        batch, width = beam.node.shape
        truncating = isinstance(nucleus, Tensor) or nucleus < 1
        children = self.trie.children(depth, beam.node, None if beam.all_open else beam.open, self.blocks, self.size)
        shift = None if children is None else self.trie.shift(depth + 1, children.node.shape[1])
        fresh = self._fresh(beam, depth, all_rows=truncating)
        rest = self._rest(beam, depth, fresh)
        if truncating:
            assert fresh is not None
            location = self._truncated(beam, depth, fresh, children, shift, nucleus)
            sums = rest.new_full((batch * width, self.blocks), -torch.inf)
            open_rows = flat_nonzero(beam.open)
            sums[open_rows] = _block_sums(location, self.size).to(sums.dtype)[fresh.row[open_rows]]
            corrected = sums.view(batch, width, -1)
        else:
            location, corrected = None, gumbel.log_add_exp(rest, self._visited(depth, children, shift, rest))
        total = beam.round_log_prob[..., None] + gumbel.normalise(corrected)
        score = perturb(total, beam.score, 2 * depth)
        stays = beam.filled & beam.finished
        if not beam.all_open:  # a finished slot stays one candidate, unchanged (METHOD 6)
            score[..., 0] = torch.where(stays, beam.score, score[..., 0])
        flat = score.flatten(1)
        block_score, choice = highest(flat, width)
        complete = None if beam.complete is None else beam.complete & all_kept(flat, width)

        # pairs of a slot and a block; `slot` counts over all instances
        slot, block = (choice + beam.offset(width * self.blocks)) // self.blocks, choice % self.blocks
        stay = stays.take(slot) & (block_score > CUT)
        prior = self._tokens(beam, depth, fresh, children, slot, block, (block_score > CUT) & ~stay)
        place = None if children is None else self._places(depth, children, choice, width)
        known = None if place is None or children is None else self._table(place, children.node, prior, UNKNOWN)
        if location is not None:
            assert fresh is not None
            row = fresh.row.take(slot.flatten()).clamp(min=0)
            conditional = _take_block(location, row, block.flatten(), self.size).view_as(prior).to(prior.dtype)
            conditional = conditional.where(prior > -torch.inf, -torch.inf)
        elif place is not None and shift is not None:
            conditional = prior + self._table(place, shift, prior, 0)
        else:
            conditional = prior
        token_total = total.take(choice + beam.offset(width * self.blocks))[..., None] + gumbel.normalise(conditional)
        token_score = perturb(token_total, block_score, 2 * depth + 1)
        token_score[..., 0] = torch.where(stay, block_score, token_score[..., 0])
        flat = token_score.flatten(1)
        best, chosen = highest(flat, width)
        complete = None if complete is None else complete & all_kept(flat, width)

        at = chosen + beam.offset(width * self.size)
        pair = at // self.size
        row, filled = slot.take(pair), best > CUT
        stays_on = filled & stay.take(pair)
        grows = filled & ~stays_on
        action = (block.take(pair) * self.size + at % self.size).clamp(max=self.vocabulary - 1)
        edge = prior.take(at).where(grows, 0)
        parent = beam.node.take(row)
        self._record(beam, depth, rest, prior, known, slot, block, chosen, grows)
        node = self.trie.insert(depth + 1, parent, action, edge, None if known is None else known.take(at), grows)
        self._keep(depth + 1, node, prior.flatten(0, 1).index_select(0, pair.flatten()))
        state = self.problem.step(beam.state.rows(row.flatten()), action.flatten())
        return Beam(
            state=state,
            node=parent.where(stays_on, node),
            score=best,
            log_prob=beam.log_prob.take(row) + edge,
            round_log_prob=beam.round_log_prob.take(row).where(stays_on, token_total.take(at)),
            filled=filled,
            finished=state.ended.view(batch, width),
            leaf_depth=beam.leaf_depth.take(row).where(stays_on, depth + 1),
            complete=complete if complete is None or bool(complete.any()) else None,
            all_filled=bool(filled.all()),
        )

    def _ask(self, beam: Beam[SequenceState], wanted: Int[Tensor, " row"]) -> Fresh:
        assert isinstance(self.evaluator, TokenEvaluator)
        logits = self.evaluator.logits(beam.state, wanted, wanted // beam.node.shape[1])
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        return Fresh.of(logits, wanted, beam.node.numel(), self.size)

    def _fresh(self, beam: Beam[SequenceState], depth: int, *, all_rows: bool) -> Fresh | None:
        """The model's answer at open slots whose blocks are not known, or at all open ones."""
        known = self.trie.evaluation[depth].gather(1, beam.node) != UNKNOWN
        wanted = beam.open if all_rows else beam.open & ~known
        self.evaluator.cached.add_((beam.open & ~wanted).sum(1))
        rows = flat_nonzero(wanted)
        return self._ask(beam, rows) if len(rows) else None

    def _rest(self, beam: Beam[SequenceState], depth: int, fresh: Fresh | None) -> Float[Tensor, "batch beam block"]:
        """What was never visited, by block; that of new nodes is put into the table of their level."""
        table = self.rests[depth]
        if table is None:  # what is never written takes no memory
            shape = (len(beam.node), self.trie.nodes + 1, self.blocks)
            self.rests[depth] = table = torch.empty(shape, dtype=precise(beam.node.device), device=beam.node.device)
        place = (beam.node + beam.offset(self.trie.nodes + 1)).flatten()
        if fresh is not None:
            new = self.trie.evaluation[depth].gather(1, beam.node).flatten() == UNKNOWN
            new = flat_nonzero(new & (fresh.row != UNKNOWN))
            table.flatten(0, 1).index_copy_(0, place[new], fresh.sums.index_select(0, fresh.row[new]))
            node = beam.open_nodes(self.trie.nodes)
            self.trie.evaluation[depth].scatter_(1, node, node)
        rest = table.flatten(0, 1).index_select(0, place).view(*beam.node.shape, -1)
        return rest if beam.all_open else rest.masked_fill(~beam.open[..., None], -torch.inf)

    def _visited(
        self, depth: int, children: Children | None, shift: Tensor | None, rest: Float[Tensor, "batch beam block"]
    ) -> Float[Tensor, "batch beam block"]:
        """The weight of the visited children of each block: a segmented log-sum-exp."""
        if children is None or shift is None:
            return torch.full_like(rest, -torch.inf)
        weight = (self.trie.edge[depth + 1, :, : shift.shape[1]] + shift).flatten()
        largest = rest.new_full((rest.numel() + self.blocks,), -torch.inf)
        largest.scatter_reduce_(0, children.place, weight, "amax")
        mass = (weight - gumbel.bounded(largest).take(children.place)).clamp_(min=gumbel.NEGLIGIBLE).exp_()
        sums = torch.zeros_like(largest).scatter_add_(0, children.place, mass).log_().add_(largest)
        return sums[: rest.numel()].view_as(rest)

    def _truncated(
        self,
        beam: Beam[SequenceState],
        depth: int,
        fresh: Fresh,
        children: Children | None,
        shift: Tensor | None,
        nucleus: float | Float[Tensor, "batch 1"],
    ) -> Float[Tensor, "row token"]:
        """The corrected log-probabilities within the nucleus at every row that the model was asked about."""
        location = fresh.logits - fresh.total[:, None].to(fresh.logits.dtype)
        if children is not None and shift is not None:
            slot = children.place // self.blocks
            inside = flat_nonzero(slot < len(fresh.row))
            token = self.trie.action[depth + 1, :, : shift.shape[1]].flatten()[inside]
            location = location.index_put(
                (fresh.row[slot[inside]], token), shift.flatten()[inside].to(location.dtype), accumulate=True
            )
        asked = flat_nonzero(fresh.row != UNKNOWN)
        p = torch.as_tensor(nucleus, dtype=location.dtype, device=location.device).expand(len(beam.node), 1)
        return truncated(gumbel.normalise(location), p[asked // beam.node.shape[1], 0])

    def _tokens(
        self,
        beam: Beam[SequenceState],
        depth: int,
        fresh: Fresh | None,
        children: Children | None,
        slot: Int[Tensor, "batch beam"],
        block: Int[Tensor, "batch beam"],
        real: Bool[Tensor, "batch beam"],
    ) -> Float[Tensor, "batch beam place"]:
        """The model's log-probabilities in the chosen blocks: from its answer, from what was kept, or else by asking again."""
        batch, width = slot.shape
        prior = torch.full((batch * width, self.size), -torch.inf, dtype=precise(slot.device), device=slot.device)
        lacking = flat_nonzero(real)
        if fresh is not None:
            new = fresh.row.index_select(0, slot.flatten()[lacking]) != UNKNOWN
            pairs, lacking = lacking[new], lacking[~new]
            prior.index_copy_(0, pairs, fresh.block(slot.flatten()[pairs], block.flatten()[pairs], self.size))
        kept = self.kept[depth + 1]
        if len(lacking) and children is not None and kept is not None:
            child = children.table(children.node, UNKNOWN).flatten()
            child = child[slot.flatten()[lacking] * self.blocks + block.flatten()[lacking]]
            pairs, at = lacking[child != UNKNOWN], (lacking // width * (self.trie.nodes + 1) + child)[child != UNKNOWN]
            prior.index_copy_(0, pairs, kept.flatten(0, 1).index_select(0, at))
            lacking = lacking[child == UNKNOWN]
        if len(lacking):
            again = self._ask(beam, slot.flatten()[lacking].unique())
            prior.index_copy_(0, lacking, again.block(slot.flatten()[lacking], block.flatten()[lacking], self.size))
        return prior.view(batch, width, self.size)

    def _places(self, depth: int, children: Children, choice: Int[Tensor, "batch beam"], width: int) -> Int[Tensor, " each"]:
        """Where the visited children stand in tables of the chosen pairs; behind their end if their block is not chosen."""
        batch = len(choice)
        pairs = gumbel.counting(batch * width, choice.device).view(batch, width)
        at = torch.full((batch * width + 1, self.blocks), batch * width, device=choice.device).flatten()
        at.scatter_(
            0, (choice + gumbel.counting(batch, choice.device, width * self.blocks)[:, None]).flatten(), pairs.flatten()
        )
        token = self.trie.action[depth + 1, :, : children.node.shape[1]].flatten()
        return at.take(children.place) * self.size + token % self.size

    def _table(
        self, place: Int[Tensor, " each"], values: Tensor, like: Float[Tensor, "batch beam place"], otherwise: float
    ) -> Tensor:
        """A table of the chosen pairs' tokens with the values of visited children."""
        flat = values.new_full((like.numel() + self.size,), otherwise)
        return flat.scatter_(0, place, values.flatten())[: like.numel()].view_as(like)

    def _record(
        self,
        beam: Beam[SequenceState],
        depth: int,
        rest: Float[Tensor, "batch beam block"],
        prior: Float[Tensor, "batch beam place"],
        known: Int[Tensor, "batch beam place"] | None,
        slot: Int[Tensor, "batch beam"],
        block: Int[Tensor, "batch beam"],
        chosen: Int[Tensor, "batch beam"],
        grows: Bool[Tensor, "batch beam"],
    ) -> None:
        """The mass that was never visited, now without the tokens that are chosen: summed anew in their blocks, never subtracted."""
        unvisited = prior if known is None else prior.masked_fill(known >= 0, -torch.inf)
        taken = torch.zeros_like(prior, dtype=torch.bool).flatten(1).scatter_(1, chosen, grows).view_as(prior)
        sums = gumbel.log_sum_exp(unvisited.masked_fill(taken, -torch.inf)).squeeze(-1)
        touched = flat_nonzero(taken.any(-1))
        flat = rest.flatten().clone()
        flat[(slot * self.blocks + block).flatten()[touched]] = sums.flatten()[touched]
        rest = flat.view_as(rest)
        node, table = beam.open_nodes(self.trie.nodes), self.rests[depth]
        assert table is not None
        table.scatter_(1, node[..., None].expand_as(rest), rest)
        self.trie.rest[depth].scatter_(1, node, gumbel.log_sum_exp(rest).squeeze(-1))

    def _keep(self, depth: int, node: Int[Tensor, "batch beam"], prior: Float[Tensor, "row place"]) -> None:
        """Remembers from which log-probabilities a node was taken."""
        table = self.kept[depth]
        if table is None:
            self.kept[depth] = table = prior.new_empty(len(node), self.trie.nodes + 1, self.size)
        place = (node + gumbel.counting(len(node), node.device, self.trie.nodes + 1)[:, None]).flatten()
        table.flatten(0, 1).index_copy_(0, place, prior)
