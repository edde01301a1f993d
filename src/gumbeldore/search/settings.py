"""Samplers as settings: one record for files and trainings, and one grammar for everything that is typed.

    gd:32x4,sigma=0.3,p=0.8..1      KIND[:SIZE][,option=value ...]

A training, `solve` and `evaluate` all read the same text; docs/reference/samplers.md lists it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from gumbeldore.errors import SettingsError, require
from gumbeldore.search.adaptive import Adaptive
from gumbeldore.search.advantage import outcome
from gumbeldore.search.presets import PRESETS, preset
from gumbeldore.search.replacement import WithReplacement
from gumbeldore.search.samplers import BeamSearch, Greedy, Gumbeldore, Sampler, StochasticBeamSearch, TheoryGumbeldore
from gumbeldore.search.stepping import StepAndReconsider

Method = Literal[
    "gumbeldore",
    "theory",
    "outcome",
    "without-replacement",
    "with-replacement",
    "step",
    "adaptive",
    "greedy",
    "beam",
    "fast",
    "balanced",
    "best",
]

EXAMPLES = "greedy, beam:16, wr:128, wor:16x1, gd:32x4, theory:32x4, outcome:32x10, step:32x10, adaptive:128 or adaptive,evaluations=1000, preset:best"


@dataclass(frozen=True)
class SamplerSettings:
    """How solutions are sampled."""

    method: Method = "gumbeldore"
    beam_width: int = 32
    rounds: int = 4
    sigma: float | Literal["auto"] = 0.3  # step size of the advantage update; auto finds it
    p_min: float | Literal["auto"] = 1.0  # nucleus of the first round; 1: off; auto finds it
    p_max: float = 1.0  # of the last round; in between it grows
    p_min_from_epoch: int = 1  # until then 1 (no nucleus)
    first_round_deterministic: bool = False  # the first round is a plain beam search: it exploits, the others explore
    step: int = 10  # of the method step: so many actions are taken before it samples again
    sequences: int | None = None  # limits of the method adaptive; if none is given, beam_width * rounds sequences
    evaluations: int | None = None
    effort: int | None = None
    augmentations: int = 1  # symmetric forms of an instance that are searched together, where the problem has them
    memory_mb: int = 2048  # what a search may use
    transpositions: bool = True  # evaluate equal states once per search

    def __post_init__(self) -> None:
        self.build(self.p_min_from_epoch)  # raises where a value is out of range
        if self.p_min != "auto":
            rule = "`p_min` must be at most `p_max`: the nucleus grows from the first round to the last"
            require(self.p_min <= self.p_max, f"{rule}, got p={self.p_min:g}..{self.p_max:g}. Swap them.")

    @classmethod
    def of(cls, text: str, memory_mb: int | None = None) -> SamplerSettings:
        """The settings of such a text; with so much memory where it says nothing of that."""
        return _parsed(text) if memory_mb is None else _parsed(text, memory_mb=memory_mb)

    def build(self, epoch: int = 1) -> Sampler:
        """The sampler of an epoch (from 1)."""
        p, last = (self.p_min, self.p_max) if epoch >= self.p_min_from_epoch else (1.0, 1.0)
        memory: dict[str, Any] = {"memory": self.memory_mb << 20}
        shared: dict[str, Any] = {**memory, "transpositions": self.transpositions}
        forms: dict[str, Any] = {"augmentations": self.augmentations}
        first = {"first_round_deterministic": self.first_round_deterministic}
        beams: dict[str, Any] = {"beam_width": self.beam_width, **first, **forms, **shared}
        rounds: dict[str, Any] = {"rounds": self.rounds, "nucleus": p if p == "auto" else (p, last), **beams}
        makers: dict[str, Callable[[], Sampler]] = {
            "greedy": lambda: Greedy(**forms, **shared),
            "beam": lambda: BeamSearch(self.beam_width, **forms, **shared),
            "gumbeldore": lambda: Gumbeldore(**rounds, sigma=self.sigma),
            "theory": lambda: TheoryGumbeldore(**rounds, sigma=self.sigma),
            "outcome": lambda: Gumbeldore(**rounds, sigma=self.sigma, advantage=outcome),  # for games
            "without-replacement": lambda: StochasticBeamSearch(**rounds),
            "with-replacement": lambda: WithReplacement(self.beam_width * self.rounds, nucleus=last, **memory, **forms),
            "step": lambda: StepAndReconsider(step=self.step, nucleus=p, sigma=self.sigma, **self._begun(beams)),
            "adaptive": lambda: Adaptive(*self._limits, **shared),
        }
        if self.method in PRESETS:
            return replace(preset(self.method), **shared)  # type: ignore[type-var]
        return makers[self.method]()

    @property
    def _limits(self) -> tuple[int | None, int | None, int | None]:
        limits = (self.sequences, self.evaluations, self.effort)
        return (self.beam_width * self.rounds, None, None) if limits == (None, None, None) else limits

    def _begun(self, beams: dict[str, Any]) -> dict[str, Any]:
        """An automatic nucleus is decided by a deterministic first round."""
        return {**beams, "first_round_deterministic": self.first_round_deterministic or self.p_min == "auto"}


@dataclass(frozen=True)
class Kind:
    """A sampler that can be named."""

    method: Method
    size: str = ""  # as in an example
    fields: tuple[str, ...] = ()  # that the numbers of the size stand for
    options: tuple[str, ...] = ()
    usual: dict[str, Any] = field(default_factory=dict)  # where it differs from the record's defaults
    optional: bool = False  # the size

    def read(self, text: str, kind: str, size: str) -> dict[str, Any]:
        """The settings that a size means."""
        if not self.size:
            require(not size, f"`{kind}` has no size, got {text!r}.")
        if not size and (self.optional or not self.size):
            return {}
        form = "x".join([r"\d{1,9}"] * len(self.fields))
        fits = re.fullmatch(form, size) is not None
        require(fits, f"`{text}` must have a size as in `{kind}:{self.size}`, got {size or 'none'!r}.")
        return dict(zip(self.fields, map(int, size.split("x")), strict=True))


_ROUNDS = ("sigma", "p", "from", "first", "augmentations", "memory", "transpositions")
_KINDS = {
    "greedy": Kind("greedy", options=("augmentations", "memory", "transpositions")),
    "beam": Kind("beam", "16", ("beam_width",), ("augmentations", "memory", "transpositions")),
    "wr": Kind("with-replacement", "128", ("beam_width",), ("p", "augmentations", "memory"), {"rounds": 1}),
    "wor": Kind("without-replacement", "16x1", ("beam_width", "rounds"), _ROUNDS[1:]),
    "gd": Kind("gumbeldore", "32x4", ("beam_width", "rounds"), _ROUNDS),
    "theory": Kind("theory", "32x4", ("beam_width", "rounds"), _ROUNDS),
    "outcome": Kind("outcome", "32x10", ("beam_width", "rounds"), _ROUNDS),
    "step": Kind("step", "32x10", ("beam_width", "step"), _ROUNDS, {"sigma": 0.0, "first_round_deterministic": True}),
    "adaptive": Kind("adaptive", "128", ("sequences",), ("evaluations", "effort", "memory", "transpositions"), optional=True),
}


def _number(where: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise SettingsError(f"{where} must be a number, got {text!r}.") from None


def _whole(where: str, text: str) -> int:
    value = _number(where, text)
    require(value >= 0 and value.is_integer(), f"{where} must be a whole number, got {value:g}.")
    return int(value)


def _number_or_auto(where: str, text: str) -> float | str:
    return text if text == "auto" else _number(where, text)


def _nucleus(where: str, text: str) -> dict[str, Any]:
    """`0.8`, the same in all rounds, `0.95..1` from the first to the last, or `auto`."""
    if text == "auto":
        return {"p_min": "auto"}
    first, dots, last = text.partition("..")
    return {"p_min": _number(where, first), "p_max": _number(where, last if dots else first)}


def _one_of(on: str, off: str) -> Callable[[str, str], bool]:
    def read(where: str, text: str) -> bool:
        require(text in (on, off), f"{where} must be {on} or {off}, got {text!r}.")
        return text == on

    return read


_OPTIONS: dict[str, Callable[[str, str], dict[str, Any]]] = {
    "p": _nucleus,
    **{
        name: lambda where, text, name=field, read=read: {name: read(where, text)}  # type: ignore[misc]
        for name, field, read in (
            ("sigma", "sigma", _number_or_auto),
            ("from", "p_min_from_epoch", _whole),
            ("first", "first_round_deterministic", _one_of("beam", "sample")),
            ("evaluations", "evaluations", _whole),
            ("effort", "effort", _whole),
            ("augmentations", "augmentations", _whole),
            ("memory", "memory_mb", _whole),
            ("transpositions", "transpositions", _one_of("on", "off")),
        )
    },
}


def _parsed(text: str, **defaults: Any) -> SamplerSettings:
    """The settings of `gd:32x4,sigma=0.3,p=0.8..1` and the like."""
    head, *rest = text.split(",")
    kind, _, size = head.partition(":")
    known: tuple[str, ...] = ("memory", "transpositions")
    if kind == "preset" or head in PRESETS:
        require(kind != "preset" or bool(size), f"`preset` needs a name: {', '.join(f'preset:{name}' for name in PRESETS)}.")
        preset(size or kind)  # raises where it is unknown
        changes: dict[str, Any] = {"method": size or kind}
    else:
        require(kind in _KINDS, f"Unknown sampler `{kind}` in `{text}`. Samplers look like {EXAMPLES}.")
        known = _KINDS[kind].options
        changes = {"method": _KINDS[kind].method, **_KINDS[kind].usual, **_KINDS[kind].read(text, kind, size)}
    return SamplerSettings(**{**defaults, **changes, **_options(text, known, rest)})


def _options(text: str, known: tuple[str, ...], given: list[str]) -> dict[str, Any]:
    """The settings that the options of a text mean."""
    found: dict[str, str] = {}
    for option in given:
        name, equals, value = option.partition("=")
        require(bool(name and equals and value), f"`{option}` in `{text}` must have the form option=value.")
        require(name not in found, f"`{name}` occurs twice in `{text}`.")
        chosen = name == "augmentations" and name not in known
        require(not chosen, f"`augmentations` cannot be given in `{text}`: this sampler chooses them itself. Leave it out.")
        require(name in known, f"Unknown option `{name}` in `{text}`. Known there: {', '.join(known)}.")
        found[name] = value
    settings: dict[str, Any] = {}
    for name, value in found.items():
        settings |= _OPTIONS[name](f"`{name}` in `{text}`", value)
    return settings
