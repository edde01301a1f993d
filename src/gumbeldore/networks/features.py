"""Feature objects: what a network is given beside the paper's input. `TSPPolicy(features=(CanonicalFrame(), SpanningTreeBounds(tries=5)))`

In settings, and in the headers of policies, a feature is written by its name, with the options that differ from the usual ones:
`features = ["frame", "bounds:tries=5"]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self, TypeVar

from jaxtyping import Shaped
from torch import Tensor

from gumbeldore.errors import SettingsError, require
from gumbeldore.policy import Network


@dataclass(frozen=True)
class Feature:
    """Something that a network knows of each item. Subclasses are frozen dataclasses whose fields are numbers: their options."""

    name: ClassVar[str]  # in settings and headers
    width: ClassVar[int]  # columns that it adds to each item


F = TypeVar("F", bound=Feature)
Weights = Mapping[str, Shaped[Tensor, "..."]]


def written(features: Iterable[Feature]) -> list[str]:
    """Features by their names, and the options that differ from the usual ones."""
    return [_written(feature) for feature in features]


def _written(feature: Feature) -> str:
    options = {option.name: (getattr(feature, option.name), option.default) for option in fields(feature)}
    changed = ",".join(f"{name}={value}" for name, (value, usual) in options.items() if value != usual)
    return f"{feature.name}:{changed}" if changed else feature.name


def read(texts: Sequence[Any], known: Sequence[type[F]]) -> tuple[F, ...]:
    """The inverse of `written`, of those that a network knows."""
    return distinct([_read(text, known) for text in texts])


def _read(text: Any, known: Sequence[type[F]]) -> F:
    require(isinstance(text, str), f"`features` must be names, got {text!r}.")
    name, _, options = text.partition(":")
    kinds = {kind.name: kind for kind in known}
    if name not in kinds:
        raise SettingsError(f"`features`: unknown `{name}`. Known: {', '.join(kinds) or 'none'}.")
    usual: dict[str, Any] = {option.name: option.default for option in fields(kinds[name])}
    values: dict[str, Any] = {}
    for part in filter(None, options.split(",")):
        option, _, value = part.partition("=")
        require(option in usual, f"`features`: `{name}` has no option `{option}`. It has {', '.join(usual) or 'none'}.")
        try:
            values[option] = type(usual[option])(value)
        except ValueError as error:
            kind = "a whole number" if isinstance(usual[option], int) else "a number"
            raise SettingsError(f"`features`: `{option}` of `{name}` must be {kind}, got {value!r}.") from error
    return kinds[name](**values)


def distinct(features: Sequence[F]) -> tuple[F, ...]:
    """The same features, none of them twice."""
    names = [feature.name for feature in features]
    twice = next((name for name in names if names.count(name) > 1), None)
    require(twice is None, f"`features` must differ, but `{twice}` comes twice.")
    return tuple(features)


class ComposedNetwork(Network):
    """A network that is composed of features."""

    known: ClassVar[tuple[type[Any], ...]]
    """The kinds of features that fit."""
    switches: ClassVar[Mapping[str, str]] = {}
    """What used to be integers that switched something on: the features that these are now, in their order."""
    dropped: ClassVar[tuple[str, ...]] = ()
    """Integers of older versions that switched on what there is no more, and the beginnings of the names of weights that went with it."""
    renamed: ClassVar[Mapping[str, str]] = {}
    """Weights that older versions called otherwise, by the beginnings of their names."""

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        features = config.get("features", ())
        require(isinstance(features, list | tuple), f"`features` must be a list of names, got {features!r}.")
        return cls(**{**config, "features": read(features, cls.known)})

    @classmethod
    def upgraded(cls, config: Mapping[str, Any], usual: Sequence[str] = ()) -> dict[str, Any]:
        """A `config`, or settings, as older versions had them. Switches change the features that are `usual` without them."""
        old = {name: config[name] for name in cls.switches if name in config}
        now = {name: value for name, value in config.items() if name not in old and name not in cls.dropped}
        if old:
            listed = list(now.get("features", usual))
            for name, feature in cls.switches.items():
                if name in old and bool(old[name]) != (feature in listed):
                    listed = [*listed, feature] if old[name] else [each for each in listed if each != feature]
            order = list(cls.switches.values())
            now["features"] = sorted(listed, key=lambda each: order.index(each) if each in order else len(order))
        return now

    def upgraded_weights(self, weights: Weights) -> Weights:
        found = {}
        for name, weight in weights.items():
            first, dot, rest = name.partition(".")
            if first not in self.dropped:
                found[self.renamed.get(first, first) + dot + rest] = weight
        return found


class ComposedSize:
    """What the settings of a composed network share: `features`, by name. Mixed into dataclasses with `network`."""

    network: ClassVar[type[ComposedNetwork]]
    features: tuple[str, ...]

    @classmethod
    def upgraded(cls, changes: Mapping[str, Any], usual: Any) -> dict[str, Any]:
        """Settings as older versions had them, as changes of those that are `usual`."""
        return cls.network.upgraded(changes, usual.features)
