"""Tries what a kit brings along beside problem and network: picture, record, generator, baselines, experts, formats of files."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gumbeldore.errors import ContractError
from gumbeldore.kits.baselines import OWN
from gumbeldore.kits.instances import Arrays, InstanceSet
from gumbeldore.kits.kit import Kit
from gumbeldore.kits.random_instances import random_set, schema_of
from gumbeldore.kits.solver import Limit
from gumbeldore.problem import Problem

_SMALL = Limit(None, 1)
_STRANGE = (b"", b"\x00\x01\x02\xff", b"Dear diary,\nnothing happened today.\n")
"""Beginnings of files that no format should claim."""


def check_parts(kit: Kit) -> list[str]:
    """Raises an error that names what does not fit; returns what was tried."""
    instances = random_set(kit, 2, 0)
    return [
        *_methods(kit, instances),
        *_picture(kit, instances),
        *(["its generator"] if kit.generator is not None and kit.instances is not None else []),
        *_formats(kit),
    ]


def _methods(kit: Kit, instances: InstanceSet) -> list[str]:
    """Baselines and our own kind of experts give feasible solutions."""
    instance, tried = instances.instance(0), list[str]()
    for name, baseline in kit.baselines.items():
        if baseline.needs is None:  # others are not the kit's own
            limit = _SMALL if baseline.limit is not None and baseline.limit.work is not None else baseline.limit or _SMALL
            _check(kit, f"The baseline `{name}`", instance, baseline.solve(instance, limit, 0))
            tried.append(f"the baseline {name}")
    if OWN in kit.experts:
        _check(kit, "The expert", instance, kit.experts[OWN](instance, _SMALL, 0).actions)
        tried.append("its expert")
    return tried


def _check(kit: Kit, who: str, instance: Arrays, actions: Sequence[int]) -> None:
    verdict = schema_of(kit).verify(instance, actions)
    if not verdict.feasible:
        raise ContractError(f"{who} of {kit.name} must give feasible solutions, but gave {list(actions)}: {verdict.reason}.")


def _picture(kit: Kit, instances: InstanceSet) -> list[str]:
    """The picture is drawn, and the record made."""
    form, instance = kit.solution_format, instances.instance(0)
    actions = _any_solution(kit.usual_problem, instances)
    form.record(instance, actions)
    if form.draw is None:
        return []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / form.picture
        form.draw(path, instance, actions, "a solution")
        if not path.is_file():
            raise ContractError(f"`solution_format.draw` of {kit.name} must write a picture to the path that it gets.")
    return ["its picture"]


def _any_solution(problem: Problem[Any], instances: InstanceSet) -> list[int]:
    """The first allowed action at every step."""
    state, actions = instances.state(rows=slice(0, 1)), list[int]()
    while not bool(problem.done(state)):
        action = problem.mask(state).int().argmax(1)
        state = problem.step(state, action)
        actions.append(int(action))
    return actions


def _formats(kit: Kit) -> list[str]:
    for form in kit.formats:
        if any(form.claims(head) for head in _STRANGE):
            raise ContractError(f"The format `{form.name}` of {kit.name} must claim its own files only, but claims any file.")
    return ["its formats"] if kit.formats else []
