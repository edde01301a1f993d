"""Methods x sets x seeds in worker processes. Whatever is answered is kept, so that stopping loses next to nothing.

    evaluation = Evaluation(kit, sets, methods, Path("runs/table"))
    for step in evaluation.run(workers=2):
        print(step.done, "of", step.total)
    report = evaluation.report()

It starts processes, so a script does this below `if __name__ == "__main__":`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gumbeldore.errors import ContractError, require
from gumbeldore.evaluation.journal import Journal, Key
from gumbeldore.evaluation.methods import Answer, Failure, Method
from gumbeldore.evaluation.report import ALL_SETS, Cell, Report, Result, report
from gumbeldore.evaluation.sets import NamedSet, shape
from gumbeldore.kits.kit import Instance, Kit
from gumbeldore.parallel.cluster import Cluster
from gumbeldore.problem import slices
from gumbeldore.training.backend import pool

_TOLERANCE = 1e-4
"""What a search and the verifier may disagree in, as a fraction: policies see coordinates in single precision."""

_PARTS = 8
"""A set is cut into at least so many pieces, if it has as many instances, so that all processes have something to do."""


@dataclass(frozen=True)
class Piece:
    """Some instances of one size in one set, for one method and one seed."""

    named: NamedSet
    method: int  # its number
    seed: int
    rows: tuple[int, ...]
    place: float  # in the set, from 0 to 1

    @property
    def instances(self) -> tuple[Instance, ...]:
        return tuple(self.named.instances[row] for row in self.rows)

    @property
    def keys(self) -> list[Key]:
        return [(self.named.digests[row], self.seed) for row in self.rows]


@dataclass(frozen=True)
class Step:
    """News of a run: how many answers there are, and whose the last ones were."""

    done: int
    total: int
    method: Method
    named: NamedSet


class Evaluation:
    """A table to be filled: every method on every set, methods that draw at random with `repeats` seeds from `seed` on.

    Answers are kept in `folder` by content: instance, method with its weights and settings, seed. Those that are there are not
    computed again. What was wrong with any of them is said in `notes`.
    """

    def __init__(
        self, kit: Kit, sets: Sequence[NamedSet], methods: Sequence[Method], folder: Path, *, repeats: int = 1, seed: int = 0
    ) -> None:
        require(len(sets) >= 1, "`sets` must name at least one set of instances, got none.")
        require(len(methods) >= 1, "There must be at least one method: a policy or a baseline.")
        require(repeats >= 1, f"`repeats` must be at least 1, got {repeats}.")
        require(seed >= 0, f"`seed` must be at least 0, got {seed}.")
        all_sets = [ALL_SETS] if len(sets) > 1 else []  # a table of its own
        for what, names in (("sets", [*(s.name for s in sets), *all_sets]), ("methods", [m.name for m in methods])):
            twice = [name for name in names if names.count(name) > 1]
            require(not twice, f"Names of {what} must differ, but `{(twice or [''])[0]}` occurs more than once.")
        self.kit, self.sets, self.methods = kit, tuple(sets), tuple(methods)
        self.seeds = tuple(range(seed, seed + repeats))
        self.notes: list[str] = []
        self._kind = kit.need("instance files", "instances")
        self._journals = {method.digest: Journal(folder / "answers", method) for method in methods}
        self._results: dict[tuple[str, Key], Result | Failure] = {}
        self._load()
        self.kept = len(self._results)  # answers that were there before

    def run(self, workers: int | Cluster = 0) -> Generator[Step, None, None]:
        """Computes what is missing in so many processes, in this one (0) or on a cluster; each finished piece is kept at once."""
        if not isinstance(workers, Cluster):
            require(workers >= 0, f"`workers` must be at least 0 (this process), got {workers}.")
        pieces = self._missing()
        done = self._answered
        total = done + sum(len(piece.rows) for piece in pieces)
        items = _Lazy(range(len(pieces)), lambda number: (pieces[number].method, self._item(pieces[number])))
        with closing(_work(self.methods, items, workers)) as finished:
            for number, answers in finished:
                self._keep(pieces[number], answers)
                done += len(answers)
                yield Step(done, total, self.methods[pieces[number].method], pieces[number].named)

    @property
    def total(self) -> int:
        """How many answers there will be in the end; methods and sets with equal content share them."""
        return self._answered + sum(len(piece.rows) for piece in self._missing())

    @property
    def _answered(self) -> int:
        return sum(isinstance(result, Result) for result in self._results.values())

    def report(self, against: str | None = None) -> Report:
        """The table, once everything is answered; differences are to the method of that name, or to the first."""
        cells = [self._cell(named, method) for named in self.sets for method in self.methods]
        return report(self.kit.measure, self.sets, cells, against)

    def _seeds(self, method: Method) -> tuple[int, ...]:
        return self.seeds if method.random else (0,)

    def _wanted(self) -> Iterator[tuple[NamedSet, int, int]]:
        """Every set with the number of every method and each of its seeds."""
        for named in self.sets:
            for number, method in enumerate(self.methods):
                for seed in self._seeds(method):
                    yield named, number, seed

    def _load(self) -> None:
        """Takes over the answers that are there, each verified anew."""
        for named, number, seed in self._wanted():
            digest = self.methods[number].digest
            journal = self._journals[digest]
            for given, instance in zip(named.instances, named.digests, strict=True):
                key = instance, seed
                if given.solved is not None:  # nothing to search
                    self._results[digest, key] = self._verified(self.methods[number], given, Answer(given.solved, 0.0))
                elif key in journal and (digest, key) not in self._results:
                    try:
                        self._results[digest, key] = self._verified(self.methods[number], given, journal[key])
                    except ContractError:
                        journal.forget(key)
        for journal in self._journals.values():
            if journal.damaged:
                self.notes.append(
                    f"{journal.path}: {journal.damaged} damaged lines were left out; their answers are computed anew."
                )

    def _missing(self) -> list[Piece]:
        """What is not answered yet, in an order in which all methods get ahead alike: so the end can be foreseen."""
        planned: set[tuple[str, Key]] = set()
        pieces: list[Piece] = []
        for named, number, seed in self._wanted():
            rows: dict[Any, list[int]] = {}
            for row, instance in enumerate(named.digests):
                name = self.methods[number].digest, (instance, seed)
                if name not in planned and not isinstance(self._results.get(name), Result):
                    planned.add(name)
                    rows.setdefault(shape(named.instances[row]), []).append(row)
            for same in rows.values():
                pieces += self._cut(named, number, seed, same)
        order = {named.name: index for index, named in enumerate(self.sets)}
        return sorted(pieces, key=lambda piece: (order[piece.named.name], piece.place))

    def _cut(self, named: NamedSet, number: int, seed: int, rows: list[int]) -> list[Piece]:
        size = min(self.methods[number].together(self.kit, named.instances[rows[0]]), -(-len(named) // _PARTS))
        parts = slices(len(rows), size)
        return [Piece(named, number, seed, tuple(rows[part]), part.start / len(rows)) for part in parts]

    def _item(self, piece: Piece) -> Any:
        seeds = [_seed(*key) for key in piece.keys]
        return self.methods[piece.method].item(self.kit, piece.instances, seeds)

    def _keep(self, piece: Piece, answers: Sequence[Answer | Failure]) -> None:
        method, kept = self.methods[piece.method], dict[Key, Answer]()
        for key, given, answer in zip(piece.keys, piece.instances, answers, strict=True):
            if isinstance(answer, Failure):
                self._results[method.digest, key] = answer
            else:
                self._results[method.digest, key] = self._verified(method, given, answer)
                kept[key] = answer
        self._journals[method.digest].add(kept)

    def _verified(self, method: Method, given: Instance, answer: Answer) -> Result:
        """The cost as code computes it that did not build the solution; an error if that refuses or contradicts it."""
        verdict = self._kind.verify(given.arrays, answer.actions)
        if not verdict.feasible:
            raise ContractError(
                f"{method.name} gave an infeasible solution of {given.name or 'an instance'}: {verdict.reason}."
            )
        claimed = answer.curve[-1].objective * given.scale if answer.curve else verdict.objective
        if abs(verdict.objective - claimed) > _TOLERANCE * max(1.0, abs(verdict.objective)):
            raise ContractError(
                f"{method.name} claims {claimed} for {given.name or 'an instance'}, but the solution is worth {verdict.objective}."
            )
        cost = given.cost(list(answer.actions)) if given.cost else -verdict.objective
        exact = cost / -claimed if claimed else 1.0  # lengths that are rounded, coordinates in single precision
        curve = [(point.evaluations, -point.objective * given.scale * exact) for point in answer.curve]
        return Result(float(cost) + 0.0, answer.seconds, np.array(curve, dtype=np.float64).reshape(-1, 2))

    def _cell(self, named: NamedSet, method: Method) -> Cell:
        found = [[self._results.get((method.digest, (key, seed))) for key in named.digests] for seed in self._seeds(method)]
        failures = [result.reason for row in found for result in row if isinstance(result, Failure)]
        results = [[result for result in row if isinstance(result, Result)] for row in found]
        require(
            sum(map(len, results)) + len(failures) == len(found) * len(named),
            f"{method.name} has not been run on all of {named.name}: take all steps of `run` first.",
        )
        return Cell(named.name, method.name, results, failures)


class _Lazy(Mapping[int, Any]):
    """Items that are made when they are given out."""

    def __init__(self, keys: range, make: Callable[[int], Any]) -> None:
        self._keys, self._make = keys, make

    def __getitem__(self, key: int) -> Any:
        return self._make(key)

    def __iter__(self) -> Iterator[int]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


def _work(
    methods: tuple[Method, ...], items: Mapping[int, Any], workers: int | Cluster
) -> Generator[tuple[int, list[Answer | Failure]], None, None]:
    if not items:
        return
    if workers == 0:
        yield from ((number, _solve(methods, item)) for number, item in items.items())
        return
    with pool(partial(_desk, methods), workers if isinstance(workers, Cluster) else min(workers, len(items))) as processes:
        yield from processes.run(items)


def _desk(methods: tuple[Method, ...]) -> Callable[[tuple[int, Any]], list[Answer | Failure]]:
    """What a worker process calls."""
    torch.set_num_threads(1)
    return partial(_solve, methods)


def _solve(methods: tuple[Method, ...], item: tuple[int, Any]) -> list[Answer | Failure]:
    number, content = item
    return methods[number].solve(content)


def _seed(instance: str, seed: int) -> int:
    """63 bits that depend on the instance and the seed alone, not on the instance's place in a set."""
    return int.from_bytes(hashlib.sha256(f"{instance} {seed}".encode()).digest()[:8], "big") >> 1
