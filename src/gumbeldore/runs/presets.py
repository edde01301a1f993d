"""What a command takes as a problem: a kit with one of its architectures, by name or by where the kit stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gumbeldore.errors import SettingsError
from gumbeldore.kits.instances import InstanceSchema
from gumbeldore.kits.kit import Architecture, Kit
from gumbeldore.kits.measure import Measure
from gumbeldore.kits.names import BUILT_IN, kit_names, problem_names
from gumbeldore.kits.registry import argument, kit_at, kit_named
from gumbeldore.policy import Network
from gumbeldore.runs.records import merged, read_settings
from gumbeldore.runs.settings import RunSettings
from gumbeldore.training import Select, select_best

SUPERVISED = "supervised"
"""Presets whose names begin so are for learning from expert solutions (`gumbeldore imitate`)."""

_USUAL = "small"
"""The preset that is taken where none is named; a kit need not have it."""

_LAPTOP = {
    "sampler": {"beam_width": 16, "rounds": 2, "sigma": 1.0},
    "training": {
        "include_greedy": True,
        "epochs": 30,
        "instances": 100,
        "batches": 100,
        "batch_size": 128,
        "part_size": 64,
        "learning_rate": 1e-3,
    },
    "validation": {"instances": 200},
}
"""The settings of a kit that brings no preset called small: minutes on a laptop."""


@dataclass(frozen=True)
class Entry:
    """A problem with one network architecture."""

    kit: Kit
    architecture_name: str

    @property
    def name(self) -> str:
        """As on the command line: the kit's, with the architecture unless it is the usual one."""
        usual = next(iter(self.kit.architectures)) == self.architecture_name
        return self.kit.name if usual else f"{self.kit.name}-{self.architecture_name}"

    @property
    def argument(self) -> str:
        """As a command takes it: also where the kit stands, if that is how it was named."""
        return argument(self.kit) + self.name.removeprefix(self.kit.name)

    @property
    def architecture(self) -> Architecture:
        return self.kit.architectures[self.architecture_name]

    @property
    def summary(self) -> str:
        return ", ".join(filter(None, (self.kit.summary, self.architecture.summary)))

    @property
    def measure(self) -> Measure:
        return self.kit.measure

    @property
    def instances(self) -> InstanceSchema | None:
        return self.kit.instances

    @property
    def select(self) -> Select:
        return self.kit.select or select_best

    def build(self, settings: RunSettings) -> Network:
        """A network with fresh weights."""
        return self.architecture.make(settings.problem, settings.policy)

    def presets(self) -> dict[str, Path]:
        """Preset files by name."""
        if self.kit.presets is None:
            return {}
        return {path.stem: path for path in sorted((self.kit.presets / self.name).glob("*.toml"))}

    def recorded(self, record: Mapping[str, Any]) -> RunSettings:
        """The settings of a run by its own record, which was complete: what it lacks came later and is off."""
        return merged(RunSettings(problem=self.kit.problem, policy=self.architecture.size), record)

    def usual_preset(self, *, supervised: bool = False) -> str:
        """The preset that is taken where none is named."""
        return f"{SUPERVISED}-{_USUAL}" if supervised else _USUAL

    def settings(
        self, preset: str | None = None, changes: Mapping[str, Any] | None = None, *, supervised: bool = False
    ) -> RunSettings:
        """The settings of a preset (the usual one by default), with `changes` on top. A kit without presets has those for laptops."""
        settings, files = self.recorded({}), self.presets()
        usual = self.usual_preset(supervised=supervised)
        if preset in (None, usual) and usual not in files:
            return merged(merged(settings, _LAPTOP), changes or {})
        preset = usual if preset is None else preset
        if preset not in files:
            raise SettingsError(f"Unknown preset `{preset}` for {self.name}. Known: {', '.join(files) or usual}.")
        return merged(merged(settings, read_settings(files[preset])), changes or {})


def _entries(kit: Kit) -> Iterator[Entry]:
    """The kit with each of its architectures, the usual one first."""
    return (Entry(kit, name) for name in kit.architectures)


def entry_of(kit: str | Kit | Entry) -> Entry:
    """A kit with its usual architecture, or what its name or place says."""
    if isinstance(kit, str):
        return entry(kit)
    return kit if isinstance(kit, Entry) else next(_entries(kit))


def entry(name: str) -> Entry:
    """`tsp`, `tsp-lehd`, the name of an installed kit, or `path/to/file.py:KIT` (which executes that file); also `...:KIT-lehd`."""
    if ":" in name:
        return _entry_at(name)
    base = name.partition("-")[0]
    if name in kit_names() or base not in kit_names():
        return next(_entries(kit_named(name)))
    for candidate in _entries(kit_named(base)):
        if candidate.name == name:
            return candidate
    raise SettingsError(f"Unknown problem `{name}`. Known: {', '.join(problem_names())}.")


def _entry_at(place: str) -> Entry:
    """The kit that stands there, with the architecture that is named after a dash."""
    where, _, named = place.rpartition(":")
    name, _, architecture = named.partition("-")
    kit = kit_at(f"{where}:{name}")
    known = list(kit.architectures)
    if architecture and architecture not in known:
        raise SettingsError(f"`{place}` names an architecture that is not there. Known: {', '.join(known)}.")
    return Entry(kit, architecture or known[0])


def entry_of_file(name: str) -> Entry | None:
    """The problem that a file names, if it is one of ours or of an installed package; a file has nothing executed."""
    return entry(name) if name in problem_names() else None


CATALOGUE = {found.name: found for name in BUILT_IN for found in _entries(kit_named(name))}
"""Our own problems and networks, by name."""
