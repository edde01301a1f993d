"""Any file of instances: which problem it belongs to and how it is written is guessed from its content.

kit, instances = read_file("berlin52.tsp")
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from gumbeldore.errors import FormatError, GumbeldoreError
from gumbeldore.io.instance_files import named_problem, read_instances
from gumbeldore.io.text import HEAD, decoded, read_text
from gumbeldore.kits.instances import InstanceSet
from gumbeldore.kits.kit import Export, Format, Instance, Kit
from gumbeldore.kits.registry import BUILT_IN, all_kits

SETS, ENDING = b"PK\x03\x04", ".npz"
"""How sets of ours begin, and how their names end."""
_ANYTHING = ".txt"
"""An ending that many formats have: it says nothing about the content."""


def read_file(path: str | Path, kit: Kit | None = None) -> tuple[Kit, list[Instance]]:
    """The instances of a file and the kit of their problem. `kit` says which problem it must be, if that is known.

    The content decides; the ending of the name only where several formats are possible.
    """
    path = Path(path)
    head = _head(path)
    kits = [kit] if kit is not None else list(all_kits())
    if head.startswith(SETS):
        return _read_set(path, kits)
    chosen, given = _read(path, head, kits) if kit is None else _read_as(path, *_choose(path, head, kits))
    return chosen, [_with_solution(chosen, path, given[0])] if len(given) == 1 else given


def _read(path: Path, head: bytes, kits: list[Kit]) -> tuple[Kit, list[Instance]]:
    """What nobody has named the problem of. If it is not what it looks like, it may be of a kit that somebody has installed."""
    kit, form = _choose(path, head, kits)
    try:
        return _read_as(path, kit, form)
    except FormatError as error:
        for other, another in _claiming(head, [each for each in kits if each.name not in BUILT_IN and each is not kit]):
            with suppress(FormatError):
                return _read_as(path, other, another)
        hint = f"It was read as {form.name} ({kit.name}); if it is something else, say so: --problem NAME, or file.py:KIT."
        raise FormatError(f"{error} {hint}") from error


def _read_as(path: Path, kit: Kit, form: Format) -> tuple[Kit, list[Instance]]:
    return kit, form.read(path)


def instance_files(folder: Path, kit: Kit | None = None) -> tuple[list[Path], list[Path]]:
    """The files of a folder that look like instances, and the others, in which nobody would look for some: solutions and hidden files
    are neither."""
    kits = [kit] if kit is not None else list(all_kits())
    solutions = tuple(export.suffix for each in kits for export in each.exports.values())
    candidates = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name[0] != "."]
    candidates = [path for path in candidates if not path.name.endswith(solutions)]
    looks = {path: _looks_like_instances(path, kits) for path in candidates}
    return [path for path in candidates if looks[path]], [path for path in candidates if not looks[path]]


def _looks_like_instances(path: Path, kits: list[Kit]) -> bool:
    """By its content; by the ending of its name if that is none, because it is empty, say: so that somebody is told."""
    by_name = path.suffix.lower() in {ENDING, *(ending for kit in kits for form in kit.formats for ending in form.suffixes)}
    try:
        head = _head(path)
    except FormatError:
        return by_name
    claimed = head.startswith(SETS) or any(True for _ in _claiming(head, kits))
    return claimed or (by_name and decoded(head, len(head) < HEAD) is None)


def _head(path: Path) -> bytes:
    if not path.exists():
        raise FormatError(f"There is no file {path}.")
    if not path.is_file():
        raise FormatError(f"{path} is not a file.")
    try:
        with open(path, "rb") as handle:
            head = handle.read(HEAD)
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror}.") from error
    if not head.strip():
        raise FormatError(f"{path} is empty.")
    return head


def _claiming(head: bytes, kits: list[Kit]) -> Iterator[tuple[Kit, Format]]:
    return ((kit, form) for kit in kits for form in kit.formats if form.claims(head))


def _choose(path: Path, head: bytes, kits: list[Kit]) -> tuple[Kit, Format]:
    """The format that claims the content; if there are none or several, the ending of the name decides, as far as it says anything."""
    claiming = list(_claiming(head, kits))
    possible = claiming or [(kit, form) for kit in kits for form in kit.formats]
    usual = [(kit, form) for kit, form in possible if path.suffix.lower() in form.suffixes]
    strange = decoded(head, len(head) < HEAD) is None
    telling = path.suffix.lower() != _ANYTHING or len({kit.name for kit, _ in usual}) == 1
    if claiming or (usual and (strange or telling)):
        return (usual or claiming)[0]
    if strange:
        raise FormatError(f"{path} is neither a text file nor one of numpy's.")
    if any(path.name.lower().endswith(export.suffix) for kit in kits for export in kit.exports.values()):
        raise FormatError(f"{path} is a solution. Name the file of its instance.")
    names = ", ".join(f"{form.name} ({kit.name})" for kit in kits for form in kit.formats)
    hint = " One of a kit of your own: --problem file.py:KIT." if len(kits) > 1 else ""
    raise FormatError(
        f"{path} is in no known format of {' or '.join(kit.name for kit in kits)}: {names or 'there are none'}.{hint}"
    )


def _read_set(path: Path, kits: list[Kit]) -> tuple[Kit, list[Instance]]:
    """A set of ours, which says whose it is."""
    name = named_problem(path)
    for kit in kits:
        if kit.instances is not None and kit.instances.name == name:
            instances = read_instances(path, kit.instances)
            return kit, [_given(instances, row, path.stem) for row in range(len(instances))]
    raise FormatError(f"{path} holds instances of {name!r}, not of {' or '.join(kit.name for kit in kits)}.")


def _given(instances: InstanceSet, row: int, stem: str) -> Instance:
    arrays, labels = instances.instance(row), instances.labels
    unit, scale = instances.kind.unit(arrays)
    given = Instance(arrays, unit, scale, f"{stem}[{row}]" if len(instances) > 1 else stem)
    if labels is None:
        return given
    verdict = instances.kind.verify(arrays, [int(action) for action in labels.actions[row] if action >= 0])
    claimed = float(labels.objective[row])
    if not verdict.feasible or abs(verdict.objective - claimed) > 1e-4 * max(1.0, abs(claimed)):
        why = f"worth {verdict.objective:.6g}, not {claimed:.6g}" if verdict.feasible else f"infeasible: {verdict.reason}"
        return replace(given, notes=(*given.notes, f"Its label is not used, because it is {why}."))
    return replace(given, known=0.0 - verdict.objective, known_from=f"label of {labels.solver}")


def _with_solution(kit: Kit, path: Path, given: Instance) -> Instance:
    """The instance with what a solution beside its file says, if that is better than what is known."""
    for export in kit.exports.values():
        for suffix in (export.suffix, f".opt{export.suffix}"):
            beside = path.with_suffix(suffix)
            if export.read is not None and beside.is_file() and beside != path:
                given = _compared(kit, given, export, beside)
    return given


def _compared(kit: Kit, given: Instance, export: Export, beside: Path) -> Instance:
    try:
        cost = solution_cost(kit, given, read_solution(export, given, beside))
    except GumbeldoreError as error:
        return replace(given, notes=(*given.notes, f"The solution beside it is not used: {error}"))
    if given.known is not None and given.known <= cost:
        return given
    return replace(given, known=cost, known_from=f"solution beside it ({beside.name})")


def read_solution(export: Export, given: Instance, path: Path) -> list[int]:
    """The actions of a file that holds a solution of this instance."""
    if export.read is None:
        raise FormatError(f"Files like {path.name} are only written, not read.")
    try:
        return export.read(given, read_text(path))
    except FormatError as error:
        raise error if str(error).startswith(str(path)) else FormatError(f"{path}: {error}") from error


def solution_cost(kit: Kit, given: Instance, actions: list[int]) -> float:
    """The cost of a solution by the file's rule, after independent code has checked that it is feasible."""
    verify = kit.need("verifiers", "solution_format").verify
    if verify is not None:
        verdict = verify(given.arrays, actions)
        if not verdict.feasible:
            raise FormatError(f"The solution of {given.name} is infeasible: {verdict.reason}.")
        if given.cost is None:
            return 0.0 - verdict.objective
    if given.cost is None:
        raise FormatError(f"The cost of a solution of `{kit.name}` cannot be computed: its kit has no verifier.")
    return given.cost(actions)
