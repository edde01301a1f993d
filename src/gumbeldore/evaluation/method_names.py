"""How methods are named on the command line: `gd:32x4,sigma=0.05,p=0.8`, `beam:16`, `pyvrp:2s`.

A sampler is `KIND`, `KIND:SIZE` or `KIND:SIZE,option=value,...`; a baseline is `NAME` or `NAME:LIMIT`.
"""

from __future__ import annotations

import re
from importlib.util import find_spec

from gumbeldore.errors import SettingsError, require
from gumbeldore.evaluation.methods import BaselineMethod
from gumbeldore.kits.kit import Kit
from gumbeldore.kits.solver import Limit, SolverError
from gumbeldore.search.samplers import Sampler
from gumbeldore.search.settings import EXAMPLES, SamplerSettings

SAMPLERS = EXAMPLES
BASELINES = "NAME, NAME:2s (seconds) or NAME:work=1000"


def sampler_named(text: str) -> tuple[Sampler, int | None]:
    """The sampler of such a name, and how many nearest nodes it is restricted to (`nearest=250`)."""
    options = text.split(",")
    near = [option.partition("=")[2] for option in options if option.startswith("nearest=")]
    sampler = SamplerSettings.of(",".join(option for option in options if not option.startswith("nearest="))).build()
    require(len(near) < 2, f"`nearest` occurs twice in `{text}`.")
    require(not near or near[0].isdecimal(), f"`nearest` in `{text}` must be a whole number, got {''.join(near)!r}.")
    return sampler, int(near[0]) or None if near else None


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
