"""Problems small enough to enumerate, and what the engine should do with them, written down independently of it.

A toy tree is stored as tables over the complete tree of `actions` children per node: node n has the children
n * actions + 1 .. n * actions + actions. Which edges exist, which nodes are leaves, what they are worth and what the
policy thinks differs from instance to instance. `Tree` is the same in plain Python, with high-precision arithmetic.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal, localcontext
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from scipy import stats
from torch import Tensor

from gumbeldore.problem import Augmentations, Problem, State
from gumbeldore.search.advantage import AdvantageFn
from gumbeldore.search.expansion import Round
from gumbeldore.solutions import Solutions

Path = tuple[int, ...]
DIGITS = 80


@dataclass(frozen=True)
class TreeState(State):
    """Rows standing at a node of their instance's tree. The last node of the tables is a trap: see `TreeProblem.step`."""

    per_instance: ClassVar[tuple[str, ...]] = ("allowed", "leaf", "value", "logits")

    allowed: Bool[Tensor, "batch node action"]
    leaf: Bool[Tensor, "batch node"]
    value: Float[Tensor, "batch node"]
    logits: Float[Tensor, "batch node action"]
    node: Int[Tensor, " row"]


class TreeProblem(Problem[TreeState]):
    """Walks down a tree. A forbidden action leads into the trap, a finished node whose objective is NaN."""

    def generate(self, count: int, *, generator: torch.Generator, device: torch.device | str = "cpu") -> TreeState:
        return random_trees(count, 3, 3, generator=generator)

    def mask(self, state: TreeState) -> Bool[Tensor, "row action"]:
        return state.allowed[state.instance, state.node]

    def done(self, state: TreeState) -> Bool[Tensor, " row"]:
        return state.leaf[state.instance, state.node]

    def step(self, state: TreeState, action: Int[Tensor, " row"]) -> TreeState:
        actions = state.allowed.shape[2]
        legal = state.allowed[state.instance, state.node].gather(1, action[:, None]).squeeze(1)
        below = torch.where(legal, state.node * actions + 1 + action, state.allowed.shape[1] - 1)
        return replace(state, node=torch.where(self.done(state), state.node, below))

    def objective(self, state: TreeState) -> Float[Tensor, " row"]:
        return state.value[state.instance, state.node]

    def horizon(self, state: TreeState) -> int:
        """Exact, so that it differs with what is in the batch."""
        return max(int(heights(state)[state.instance, state.node].max()), 0)


class DeadEndProblem(TreeProblem):
    """The same with nodes that are neither leaves nor lead anywhere."""

    dead_end_objective = -7.0


class ManyFacedTree(TreeProblem):
    """The same, where an instance has up to four augmentations: a policy is more and more sure of itself."""

    def augmentations(self, state: TreeState, count: int, *, seeds: Int[Tensor, " row"]) -> Augmentations[TreeState]:
        count = min(count, 4)
        same = state.rows(torch.arange(state.row_count).repeat_interleave(count)).compact()
        tag = torch.arange(count).repeat(state.row_count)
        return Augmentations(replace(same, logits=same.logits * (1 + tag)[:, None, None]), tag, count)

    def inverse_transform(self, state: TreeState, tag: Int[Tensor, " row"], actions: Int[Tensor, "row depth"]) -> Tensor:
        return actions


@dataclass
class TablePolicy:
    """Reads logits off the instance's table and writes down every row that it was asked about."""

    seen: list[tuple[int, int]] = field(default_factory=list)
    calls: int = 0
    prepared: int = 0

    def prepare(self, state: TreeState) -> object:
        self.prepared += 1
        return ("context", state.row_count)

    def __call__(self, state: TreeState, context: object) -> Float[Tensor, "row action"]:
        assert isinstance(context, tuple)
        assert context[0] == "context"
        self.calls += 1
        self.seen += list(zip(state.instance.tolist(), state.node.tolist(), strict=True))
        return state.logits[state.instance, state.node]


class SmallBitesPolicy(TablePolicy):
    """Asks for so much memory per row that a search must call it with few rows at a time."""

    def row_bytes(self, state: TreeState) -> int:
        return 1 << 20


def node_count(actions: int, depth: int) -> int:
    return sum(actions**level for level in range(depth + 1))


def random_trees(
    count: int,
    actions: int,
    depth: int,
    *,
    generator: torch.Generator,
    leaf: float = 0.2,
    forced: float = 0.2,
    keep: float = 0.8,
    dead: float = 0.0,
    scale: float = 1.0,
    dtype: torch.dtype = torch.float64,
) -> TreeState:
    """Another tree for each instance: early leaves, one-action nodes (chains), missing edges, and dead ends if asked for.

    `scale` is the spread of the logits. Forbidden actions have logits that are NaN, as nobody may read them.
    """
    nodes, inner = node_count(actions, depth), node_count(actions, depth - 1)

    def chance(share: float, *shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator) < share

    one = torch.nn.functional.one_hot(torch.randint(actions, (count, nodes), generator=generator), actions).bool()
    allowed = torch.where(chance(forced, count, nodes)[..., None], one, one | chance(keep, count, nodes, actions))
    is_leaf = chance(leaf, count, nodes)
    is_leaf[:, inner:] = True
    is_leaf[:, 0] = False
    blocked = chance(dead, count, nodes) & ~is_leaf
    blocked[:, 0] = False
    allowed &= ~(is_leaf | blocked)[..., None]
    value = torch.randn(count, nodes, generator=generator, dtype=torch.float64)
    logits = torch.randn(count, nodes, actions, generator=generator, dtype=torch.float64) * scale
    return tables(allowed, is_leaf, value, logits.to(dtype))


def tables(
    allowed: Bool[Tensor, "batch node action"],
    leaf: Bool[Tensor, "batch node"],
    value: Float[Tensor, "batch node"],
    logits: Float[Tensor, "batch node action"],
) -> TreeState:
    """Initial states from tables, to which the trap is added."""
    count = len(allowed)
    trap = (torch.nn.functional.pad(allowed, (0, 0, 0, 1)), torch.nn.functional.pad(leaf, (0, 1), value=True))
    value = torch.nn.functional.pad(value.masked_fill(~leaf, torch.nan), (0, 1), value=torch.nan)
    logits = torch.nn.functional.pad(logits.masked_fill(~allowed, torch.nan), (0, 0, 0, 1), value=torch.nan)
    return TreeState(torch.arange(count), *trap, value, logits, torch.zeros(count, dtype=torch.long))


def flat_tree(probabilities: list[float], values: list[float], count: int = 1) -> TreeState:
    """`count` copies of a tree of depth one."""
    actions = len(probabilities)
    allowed = torch.zeros(1, 1 + actions, actions, dtype=torch.bool)
    allowed[:, 0] = True
    leaf = torch.ones(1, 1 + actions, dtype=torch.bool)
    leaf[:, 0] = False
    logits = torch.zeros(1, 1 + actions, actions, dtype=torch.float64)
    logits[0, 0] = torch.tensor(probabilities, dtype=torch.float64).log()
    return copies(tables(allowed, leaf, torch.tensor([[0.0, *values]], dtype=torch.float64), logits), count)


def copies(state: TreeState, count: int) -> TreeState:
    """The first instance of `state`, `count` times."""
    return state.rows(torch.zeros(count, dtype=torch.long)).compact()


def heights(state: TreeState) -> Int[Tensor, "batch node"]:
    """Steps from each node to the deepest leaf or dead end below it."""
    return _bottom_up(state, lambda below, edge: (below + 1).where(edge, 0).amax(-1))


def leaf_counts(state: TreeState) -> Int[Tensor, "batch node"]:
    """Leaves (and dead ends) below each node."""
    return _bottom_up(state, lambda below, edge: below.where(edge, 0).sum(-1), end=1)


def _bottom_up(state: TreeState, combine: Callable[[Tensor, Tensor], Tensor], end: int = 0) -> Int[Tensor, "batch node"]:
    batch, nodes, actions = state.allowed.shape
    result = torch.zeros(batch, nodes, dtype=torch.long)
    for node in range(nodes - 1, -1, -1):
        first = node * actions + 1
        edge = state.allowed[:, node]
        if first + actions <= nodes - 1 and node < nodes - 1:
            result[:, node] = torch.where(edge.any(1), combine(result[:, first : first + actions], edge), end)
        else:
            result[:, node] = end
    return result


@dataclass
class Tree:
    """One instance in plain Python: the definition of what the engine computes, slow and exact."""

    allowed: list[list[bool]]
    leaf: list[bool]
    value: list[float]
    logits: list[list[float]]
    dead_end_objective: float = float("nan")

    @classmethod
    def of(cls, state: TreeState, instance: int, dead_end_objective: float = float("nan")) -> Tree:
        names = ("allowed", "leaf", "value", "logits")
        return cls(*(getattr(state, name)[instance].tolist() for name in names), dead_end_objective)

    def node(self, path: Path) -> int:
        node = 0
        for action in path:
            node = node * len(self.allowed[0]) + 1 + action
        return node

    def actions(self, path: Path) -> list[int]:
        return [action for action, allowed in enumerate(self.allowed[self.node(path)]) if allowed]

    def prior(self, path: Path) -> dict[int, Decimal]:
        """The policy's probabilities at a node."""
        weights = {action: Decimal(self.logits[self.node(path)][action]).exp() for action in self.actions(path)}
        total = sum(weights.values())
        return {action: weight / total for action, weight in weights.items()}

    def leaves(self, path: Path = (), probability: Decimal = Decimal(1)) -> Iterator[tuple[Path, Decimal]]:
        """All complete sequences with their probabilities."""
        if self.leaf[self.node(path)] or not self.actions(path):
            yield path, probability
            return
        for action, share in self.prior(path).items():
            yield from self.leaves((*path, action), probability * share)

    def objective(self, path: Path) -> float:
        return self.value[self.node(path)] if self.leaf[self.node(path)] else self.dead_end_objective

    def expectation(self, path: Path = ()) -> float:
        """The expected objective of the original policy, given a prefix."""
        with high_precision():
            return float(sum(probability * Decimal(self.objective(leaf)) for leaf, probability in self.leaves(path)))

    def conditional(self, path: Path, sampled: set[Path], bonus: dict[Path, float], p: float = 1.0) -> dict[int, Decimal]:
        """The policy of a round at a node (eq. 6): prior x unsampled fraction x exp(bonus), normalised, truncated to `p`."""
        weights = {}
        for action, share in self.prior(path).items():
            child = (*path, action)
            fraction = sum((mass for leaf, mass in self.leaves(child) if leaf not in sampled), Decimal(0))
            if fraction > 0:
                weights[action] = share * fraction * Decimal(bonus.get(child, 0.0)).exp()
        total = sum(weights.values())
        return truncate({action: weight / total for action, weight in weights.items()}, p)

    def round_policy(
        self, sampled: set[Path], bonus: dict[Path, float], p: float = 1.0, path: Path = ()
    ) -> dict[Path, Decimal]:
        """The probability of every sequence that a round can produce."""
        if self.leaf[self.node(path)] or not self.actions(path):
            return {} if path in sampled else {path: Decimal(1)}
        result = {}
        for action, share in self.conditional(path, sampled, bonus, p).items():
            for leaf, probability in self.round_policy(sampled, bonus, p, (*path, action)).items():
                result[leaf] = share * probability
        return result


def high_precision():
    return localcontext(prec=DIGITS)


def truncate(probabilities: dict[int, Decimal], p: float) -> dict[int, Decimal]:
    """Top-p: actions by falling probability until their mass reaches `p`; the one that crosses is kept."""
    if p >= 1:
        return probabilities
    kept: dict[int, Decimal] = {}
    for action in sorted(probabilities, key=lambda a: (-probabilities[a], a)):
        if sum(kept.values()) >= Decimal(p):
            break
        kept[action] = probabilities[action]
    total = sum(kept.values())
    return {action: probability / total for action, probability in kept.items()}


def ordered_subsets(policy: dict[Path, Decimal], width: int) -> Iterator[tuple[tuple[Path, ...], Decimal]]:
    """The law of `width` draws without replacement, in order: the product of p_i / (1 - p_1 - ... - p_(i-1))."""
    for order in itertools.permutations(policy, min(width, len(policy))):
        probability, rest = Decimal(1), Decimal(1)
        for leaf in order:
            probability *= policy[leaf] / rest
            rest -= policy[leaf]
        yield order, probability


Update = Callable[[tuple[Path, ...]], dict[Path, float]]


def ordered_law(
    tree: Tree, widths: list[int], nucleus: list[float] | None = None, update: Update | None = None
) -> dict[tuple[Path, ...], float]:
    """The exact law of all sequences, in order, over rounds of the given widths. `update` says what a round adds to `bonus`."""
    law: dict[tuple[Path, ...], Decimal] = {(): Decimal(1)}
    bonuses: dict[tuple[Path, ...], dict[Path, float]] = {(): {}}
    with high_precision():
        for index, width in enumerate(widths):
            longer, learnt = {}, {}
            for before, probability in law.items():
                policy = tree.round_policy(set(before), bonuses[before], nucleus[index] if nucleus else 1.0)
                for order, share in ordered_subsets(policy, width):
                    longer[before + order] = probability * share
                    learnt[before + order] = add(bonuses[before], update(order) if update else {})
            law, bonuses = longer, learnt
    return {order: float(probability) for order, probability in law.items()}


def add(left: dict[Path, float], right: dict[Path, float]) -> dict[Path, float]:
    return {path: left.get(path, 0.0) + right.get(path, 0.0) for path in left.keys() | right.keys()}


def along_paths(shift: dict[Path, float]) -> dict[Path, float]:
    """What each node on the way to some leaves gets when every leaf hands its number to its whole path."""
    total: dict[Path, float] = {}
    for leaf, number in shift.items():
        for length in range(1, len(leaf) + 1):
            total[leaf[:length]] = total.get(leaf[:length], 0.0) + number
    return total


def paths(actions: Int[Tensor, "sample depth"], filled: Bool[Tensor, " sample"]) -> list[Path]:
    """The sequences in the filled slots of one instance."""
    return [tuple(a for a in row if a >= 0) for row, full in zip(actions.tolist(), filled.tolist(), strict=True) if full]


def check_leaves(state: TreeState, actions: Int[Tensor, "batch sample depth"], filled: Bool[Tensor, "batch sample"]) -> Tensor:
    """Walks every sequence down its tree, asserts that it is legal and ends at a leaf, and returns the leaves' nodes."""
    batch, samples, depth = actions.shape
    width = state.allowed.shape[2]
    instance = torch.arange(batch)[:, None].expand(batch, samples)
    node = torch.zeros(batch, samples, dtype=torch.long)
    for level in range(depth):
        action = actions[..., level]
        moves = filled & (action >= 0)
        assert bool((state.allowed[instance, node, action.clamp(min=0)] | ~moves).all()), "a forbidden action was taken"
        node = torch.where(moves, node * width + 1 + action, node)
    ended = ~state.allowed[instance, node].any(-1)
    assert bool((ended | ~filled).all()), "a sequence stops before a leaf"
    return node


def chi_square_p(observed: dict[tuple[int, ...], int], law: dict[tuple[int, ...], float]) -> float:
    """The p-value of counted outcomes under an exact law; rare outcomes are counted together, impossible ones fail."""
    assert observed.keys() <= law.keys(), f"impossible outcomes: {list(observed.keys() - law.keys())[:3]}"
    assert abs(sum(law.values()) - 1) < 1e-9
    total = sum(observed.values())
    pairs = sorted((law[outcome] * total, observed.get(outcome, 0)) for outcome in law)
    rare = [pair for pair in pairs if pair[0] < 5]
    cells = [pair for pair in pairs if pair[0] >= 5]
    while rare and sum(pair[0] for pair in rare) < 5:
        rare.append(cells.pop(0))
    if rare:
        cells.append((sum(pair[0] for pair in rare), sum(pair[1] for pair in rare)))
    expected, counts = zip(*cells, strict=True)
    return float(stats.chisquare(counts, expected).pvalue)


def count_outcomes(state: TreeState, solutions: Solutions) -> dict[tuple[int, ...], int]:
    """How often each ordered list of leaves (as nodes) came, over all instances; empty slots are left out."""
    return tally(check_leaves(state, solutions.actions, solutions.filled).masked_fill(~solutions.filled, -1))


def tally(rows: Int[Tensor, "row leaf"]) -> dict[tuple[int, ...], int]:
    """How often each row occurs, entries of -1 left out."""
    outcomes, counts = rows.unique(dim=0, return_counts=True)
    return dict(zip([tuple(n for n in row if n >= 0) for row in outcomes.tolist()], counts.tolist(), strict=True))


def as_nodes(tree: Tree, law: dict[tuple[Path, ...], float]) -> dict[tuple[int, ...], float]:
    return {tuple(tree.node(leaf) for leaf in order): probability for order, probability in law.items()}


def mean_advantage(result: Round) -> Float[Tensor, "batch beam"]:
    """The objective above the plain mean of the round, which depends on the drawn set alone."""
    mean = result.objective.where(result.filled, 0).sum(1) / result.filled.sum(1).clamp(min=1)
    return (result.objective - mean[:, None]).where(result.filled, 0)


def recorded(advantage: AdvantageFn) -> tuple[AdvantageFn, list[Round]]:
    """The same advantage function, and a list that receives every round it is asked about."""
    rounds: list[Round] = []

    def remember(result: Round) -> Tensor:
        rounds.append(result)
        return advantage(result)

    return remember, rounds
