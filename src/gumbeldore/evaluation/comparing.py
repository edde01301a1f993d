"""`evaluate`: policies with samplers, baselines and solutions from elsewhere, compared on sets of instances, in a folder of answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from gumbeldore.errors import SettingsError, require
from gumbeldore.evaluation.elsewhere import SolutionsMethod
from gumbeldore.evaluation.method_names import baseline_named, sampler_named
from gumbeldore.evaluation.methods import Method, PolicyMethod
from gumbeldore.evaluation.parts import PartsMethod
from gumbeldore.evaluation.pictures import draw_report
from gumbeldore.evaluation.report import Report
from gumbeldore.evaluation.running import Evaluation, Step
from gumbeldore.evaluation.sets import NamedSet
from gumbeldore.evaluation.tables import write_tables
from gumbeldore.files import check_writable, locked
from gumbeldore.io.instance_files import read_instances
from gumbeldore.io.policy_files import POLICY
from gumbeldore.io.shipped import choose
from gumbeldore.kits.instances import InstanceSet
from gumbeldore.kits.kit import Kit
from gumbeldore.kits.random_instances import random_set, schema_of
from gumbeldore.kits.registry import kit_at, kit_named
from gumbeldore.parallel.cluster import Cluster
from gumbeldore.parallel.devices import bounded
from gumbeldore.policy import Network
from gumbeldore.search.samplers import Sampler
from gumbeldore.solving.policies import policy_for

Given = str | Path | InstanceSet | NamedSet


@dataclass(frozen=True)
class Comparison:
    """What is compared, on what, and where the answers are kept. Stop and repeat it at will: it goes on."""

    kit: Kit
    sets: Sequence[Given] = ()  # standard sets by name, files or folders of instances, or sets of arrays
    policies: (
        Sequence[str | Path] | Mapping[str, str | Path | Network]
    ) = ()  # files, folders of runs, names; or policies by label
    samplers: Sequence[str] | Mapping[str, Sampler] = ()  # such as `gd:32x4`; greedy if left out
    baselines: Sequence[str] = ()  # such as `pyvrp:2s`
    solutions: Sequence[str] = ()  # of another program, as label=FILE
    folder: Path = Path("runs/evaluate")
    random: int | None = None  # so many random instances as a set of their own
    first: int | None = None  # only the first so many instances of each set
    repeats: int = 1  # methods that draw at random are run with so many seeds
    seed: int = 0  # the first of them; also of the random instances
    against: str | None = None  # the method that differences are to; the first if left out
    parts: Sequence[str] = ()  # what solve does, such as `all:10s`
    notes: list[str] = field(default_factory=list, compare=False)  # what was found that a user should be told

    def __post_init__(self) -> None:
        require(self.first is None or self.first >= 1, f"`first` must be at least 1, got {self.first}.")
        require(
            len(self.sets) > 0 or self.random is not None, "`sets` must name at least one set of instances, or give --random N."
        )
        require(self.random is None or self.random >= 1, f"`random` must be at least 1, got {self.random}.")
        require(0 <= self.seed < 2**32, f"`seed` must lie in 0 .. 2^32 - 1, got {self.seed}.")

    @contextmanager
    def opened(self) -> Iterator[Evaluation]:
        """The table to be filled, in its folder, which is this process's alone meanwhile."""
        kit = self.kit if self.kit.instances is not None else replace(self.kit, instances=schema_of(self.kit))
        sets = [self._set(kit, given) for given in self.sets]
        if self.random is not None:
            sets.append(NamedSet.of(f"random-{self.random}", random_set(kit, self.random, self.seed)))
        methods = [
            *self._learned(kit),
            *self._shared(kit),
            *(baseline_named(kit, text) for text in self.baselines),
            *_solutions(kit, self.solutions),
        ]
        names = [method.name for method in methods]
        against = self.against
        require(against is None or against in names, f"`against` must be one of {', '.join(names)}, got {against!r}.")
        check_writable(self.folder, "--folder")
        with locked(self.folder):
            evaluation = Evaluation(kit, sets, methods, self.folder, repeats=self.repeats, seed=self.seed)
            told = [f"{given.name}: {note}" for named in sets for given in named.instances for note in given.notes]
            self.notes.extend([*told, *(fault for named in sets for fault in named.faults), *evaluation.notes])
            yield evaluation

    def written(self, evaluation: Evaluation) -> tuple[Report, list[Path]]:
        """The report on all answers, and the files it is in."""
        report = evaluation.report(self.against)
        files = write_tables(self.folder, report)
        draw_report(self.folder / "table.png", report)
        return report, [*files, self.folder / "table.png"]

    def _set(self, kit: Kit, given: Given) -> NamedSet:
        """A standard set, a file, all files of a folder, or arrays."""
        if isinstance(given, NamedSet):
            return given
        if isinstance(given, InstanceSet):
            return NamedSet.of(given.kind.name, given, first=self.first)
        self.kit.need("instance files", "instances")
        if str(given) in kit.standard:
            return NamedSet.standard(kit, str(given), self.first)
        if Path(given).exists():
            return NamedSet.read(kit, Path(given), self.first)
        known = ", ".join(kit.standard) or "none"
        raise SettingsError(f"`sets`: {given} is no file, no folder and no standard set of {kit.name} ({known}).")

    def _learned(self, kit: Kit) -> list[Method]:
        """Every policy with every sampler."""
        found: list[Method] = []
        for label, policy in self._policies(kit).items():
            if isinstance(self.samplers, Mapping):
                found += [PolicyMethod(f"{label} {name}", policy, sampler) for name, sampler in self.samplers.items()]
            else:
                for text in self.samplers or (() if self.parts else ("greedy",)):
                    found.append(PolicyMethod(f"{label} {text}", policy, *sampler_named(text)))
        return found

    def _shared(self, kit: Kit) -> list[Method]:
        """Parts that share the time of an instance; local search alone is one method, whatever the policy."""
        policies = self._policies(kit).items() if self.parts else ()
        found = [PartsMethod.of(text, label, policy) for text in self.parts for label, policy in policies]
        return list({method.name: method for method in found}.values())

    def _policies(self, kit: Kit) -> dict[str, Network]:
        """By the label in the table. If neither policies nor baselines are named, the policy that ships."""
        if isinstance(self.policies, Mapping):
            return {
                label: each if isinstance(each, Network) else policy_for(kit, each) for label, each in self.policies.items()
            }
        if not self.policies and (self.samplers or self.parts or not (self.baselines or self.solutions)):
            chosen = choose(kit)
            return {chosen.name: chosen.load()}
        found: dict[str, Network] = {}
        for text in map(str, self.policies):
            label, equals, name = text.rpartition("=")
            label = label if equals else _label(name)
            require(
                label not in found, f"Two policies are called `{label}` in the table: name them, as in --policies first={name}."
            )
            found[label] = policy_for(kit, name)
        return found


def evaluate(
    kit: str | Kit,
    /,
    sets: Sequence[Given] | Given = (),
    *,
    policies: Sequence[str | Path] | Mapping[str, str | Path | Network] = (),
    samplers: Sequence[str] | Mapping[str, Sampler] = (),
    parts: Sequence[str] = (),
    baselines: Sequence[str] = (),
    solutions: Sequence[str] = (),
    folder: str | Path = "runs/evaluate",
    random: int | None = None,
    first: int | None = None,
    repeats: int = 1,
    seed: int = 0,
    against: str | None = None,
    workers: int | Cluster = 0,
    progress: Callable[[Step], object] = lambda step: None,
) -> Report:
    """Compares methods on sets of instances, with intervals; answers are kept in `folder`, so that repeating it computes only what is new.

    `policies` and `samplers` may also be given by the names they shall have in the table. `random` adds a set of so many random instances.
    """
    given = [sets] if isinstance(sets, str | Path | InstanceSet | NamedSet) else list(sets)
    found = kit if isinstance(kit, Kit) else kit_at(kit) if ":" in kit else kit_named(kit)
    comparison = Comparison(
        found, given, policies, samplers, baselines, solutions, Path(folder), random, first, repeats, seed, against, parts
    )
    with comparison.opened() as evaluation:
        with closing(evaluation.run(workers if isinstance(workers, Cluster) else bounded(workers))) as steps:
            for step in steps:
                progress(step)
        return comparison.written(evaluation)[0]


def _solutions(kit: Kit, texts: Sequence[str]) -> list[SolutionsMethod]:
    found: dict[str, list[InstanceSet]] = {}
    for text in texts:
        label, equals, name = text.partition("=")
        require(bool(label and equals and name), f"`solutions` must have the form label=FILE, got {text!r}.")
        found.setdefault(label, []).append(read_instances(name, kit.need("instance files", "instances")))
    return [SolutionsMethod.of(label, sets) for label, sets in found.items()]


def _label(name: str) -> str:
    path = Path(name)
    return path.parent.name if path.name == POLICY and path.parent.name else path.stem
