"""How methods are named on the command line: `gd:32x4,sigma=0.05,p=0.8`, `beam:16`, `pyvrp:2s`.

A sampler is `KIND`, `KIND:SIZE` or `KIND:SIZE,option=value,...`; a baseline is `NAME` or `NAME:LIMIT`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from importlib.util import find_spec
from typing import Literal

from gumbeldore.errors import SettingsError, require
from gumbeldore.evaluation import BaselineMethod
from gumbeldore.kits.kit import Kit
from gumbeldore.kits.solver import Limit, SolverError
from gumbeldore.search.adaptive import Adaptive
from gumbeldore.search.presets import PRESETS, preset
from gumbeldore.search.replacement import WithReplacement
from gumbeldore.search.samplers import BeamSearch, Greedy, Gumbeldore, Sampler, StochasticBeamSearch, TheoryGumbeldore
from gumbeldore.search.stepping import StepAndReconsider

SAMPLERS = "greedy, beam:16, wr:128, wor:16x1, gd:32x4, theory:32x4, step:32x10, adaptive:128 or adaptive,evaluations=1000, preset:best"
BASELINES = "NAME, NAME:2s (seconds) or NAME:work=1000"


@dataclass
class Spec:
    """A name taken apart. What was read is taken out; what is left at the end is unknown."""

    text: str
    kind: str
    size: str = ""
    options: dict[str, str] = field(default_factory=dict)
    known: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, text: str) -> Spec:
        head, *rest = text.split(",")
        kind, _, size = head.partition(":")
        options = {}
        for option in rest:
            name, equals, value = option.partition("=")
            require(bool(name and equals and value), f"`{option}` in `{text}` must have the form option=value.")
            require(name not in options, f"`{name}` occurs twice in `{text}`.")
            options[name] = value
        return cls(text, kind, size, options)

    def count(self, example: str) -> int:
        """A size that is a whole number."""
        return int(self._size(r"\d{1,9}", example)[0])

    def beam(self, example: str) -> tuple[int, int]:
        """A size that is a beam width and a number of rounds."""
        width, rounds = self._size(r"\d{1,9}x\d{1,9}", example)
        return int(width), int(rounds)

    def _size(self, form: str, example: str) -> list[str]:
        fits = re.fullmatch(form, self.size) is not None
        require(fits, f"`{self.text}` must have a size as in `{example}`, got {self.size or 'none'!r}.")
        return self.size.split("x")

    def option(self, name: str) -> str | None:
        """The text of an option, if it is there."""
        self.known.append(name)
        return self.options.pop(name, None)

    def number(self, name: str, default: float) -> float:
        """An option that is a number."""
        text = self.option(name)
        return default if text is None else self._number(name, text)

    def whole(self, name: str, default: int) -> int:
        """An option that is a whole number."""
        value = self.number(name, float(default))
        require(value >= 0 and value.is_integer(), f"`{name}` in `{self.text}` must be a whole number, got {value:g}.")
        return int(value)

    def sigma(self, default: float) -> float | Literal["auto"]:
        """A number, or `sigma=auto`."""
        text = self.option("sigma")
        return "auto" if text == "auto" else default if text is None else self._number("sigma", text)

    def nucleus(self) -> tuple[float, float] | Literal["auto"]:
        """`p=0.8`, the same in all rounds, `p=0.95..1` from the first to the last, or `p=auto`."""
        first, dots, last = (self.option("p") or "1").partition("..")
        if first == "auto" and not dots:
            return "auto"
        return self._number("p", first), self._number("p", last if dots else first)

    def _number(self, name: str, text: str) -> float:
        try:
            return float(text)
        except ValueError:
            raise SettingsError(f"`{name}` in `{self.text}` must be a number, got {text!r}.") from None

    def finish(self) -> None:
        """Raises unless everything was read."""
        for name in self.options:
            known = f"Known there: {', '.join(dict.fromkeys(self.known))}." if self.known else "It takes none."
            raise SettingsError(f"Unknown option `{name}` in `{self.text}`. {known}")


def sampler_named(text: str) -> tuple[Sampler, int | None]:
    """The sampler of such a name, and how many nearest nodes it is restricted to (`nearest=250`)."""
    spec = Spec.of(text)
    require(spec.kind in _SAMPLERS, f"Unknown sampler `{spec.kind}` in `{text}`. Samplers look like {SAMPLERS}.")
    sampler = _SAMPLERS[spec.kind](spec)
    nearest, augmentations = spec.whole("nearest", 0), spec.whole("augmentations", 1)
    spec.finish()
    return sampler if augmentations == 1 else _varied(text, sampler, augmentations), nearest or None


def _varied(text: str, sampler: Sampler, augmentations: int) -> Sampler:
    names = [f.name for f in fields(sampler)]  # type: ignore[arg-type]
    require("augmentations" in names, f"`augmentations` cannot be given in `{text}`: this sampler chooses them itself.")
    return replace(sampler, augmentations=augmentations)  # type: ignore[type-var]


def _greedy(spec: Spec) -> Sampler:
    require(not spec.size, f"`greedy` has no size, got {spec.text!r}.")
    return Greedy()


def _beam(spec: Spec) -> Sampler:
    return BeamSearch(spec.count("beam:16"))


def _with_replacement(spec: Spec) -> Sampler:
    return WithReplacement(spec.count("wr:128"), nucleus=spec.number("p", 1.0))


def _without_replacement(spec: Spec) -> Sampler:
    width, rounds = spec.beam("wor:16x1")
    return StochasticBeamSearch(width, rounds, nucleus=spec.nucleus())


def _gumbeldore(spec: Spec) -> Sampler:
    width, rounds = spec.beam("gd:32x4")
    return Gumbeldore(width, rounds, nucleus=spec.nucleus(), sigma=spec.sigma(0.3))


def _theory(spec: Spec) -> Sampler:
    width, rounds = spec.beam("theory:32x4")
    return TheoryGumbeldore(width, rounds, nucleus=spec.nucleus(), sigma=spec.sigma(0.3))


def _step(spec: Spec) -> Sampler:
    width, step = spec.beam("step:32x10")
    nucleus = spec.nucleus()
    first = nucleus if nucleus == "auto" else nucleus[0]
    return StepAndReconsider(width, step, nucleus=first, sigma=spec.sigma(0.0))


def _adaptive(spec: Spec) -> Sampler:
    evaluations = spec.whole("evaluations", 0) or None
    return Adaptive(spec.count("adaptive:128") if spec.size or evaluations is None else None, evaluations)


def _preset(spec: Spec) -> Sampler:
    require(bool(spec.size), f"`preset` needs a name: {', '.join(f'preset:{name}' for name in PRESETS)}.")
    return preset(spec.size)


_SAMPLERS: dict[str, Callable[[Spec], Sampler]] = {
    "greedy": _greedy,
    "beam": _beam,
    "wr": _with_replacement,
    "wor": _without_replacement,
    "gd": _gumbeldore,
    "theory": _theory,
    "step": _step,
    "adaptive": _adaptive,
    "preset": _preset,
}


def baseline_named(kit: Kit, text: str) -> BaselineMethod:
    """The kit's baseline of such a name, with its limit, if what it needs is installed."""
    name, colon, limit = text.partition(":")
    known = kit.need("baselines", "baselines")
    require(name in known, f"Unknown baseline `{name}` for {kit.name}. Known: {', '.join(known)}.")
    base = known[name]
    if base.needs is not None and find_spec(base.needs) is None:
        raise SolverError(f'The baseline {name} needs {base.needs}, which is not installed: pip install "gumbeldore[solvers]".')
    method = BaselineMethod(text, base, _limit(text, limit) if colon else None)
    if colon or base.limit is None:
        return method
    return BaselineMethod(f"{name}:{_short(base.limit)}", base)


def _limit(text: str, limit: str) -> Limit:
    found = re.fullmatch(r"(?:(?P<seconds>[\d.]+)s|work=(?P<work>[\d.eE+]+))", limit)
    try:
        if found:
            return Limit(float(found["seconds"])) if found["seconds"] else Limit(None, float(found["work"]))
    except ValueError as error:
        raise SettingsError(f"The limit of `{text}` is none: {error}") from error
    raise SettingsError(f"The limit of `{text}` must be seconds or work, as in {BASELINES}.")


def _short(limit: Limit) -> str:
    return f"{limit.seconds:g}s" if limit.seconds is not None else f"work={limit.work:g}"
