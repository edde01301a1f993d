"""Pages of the Python interface: one for each package, with all that its `__all__` names."""

from __future__ import annotations

import importlib
import inspect
import typing
from types import ModuleType
from typing import Any

PACKAGES = {
    "gumbeldore": "What most scripts need.",
    "gumbeldore.problems": "The problems that come along.",
    "gumbeldore.policies": "Their networks.",
    "gumbeldore.search.presets": "Samplers by name.",
    "gumbeldore.solving": "Files in, checked solutions out.",
    "gumbeldore.training": "Algorithm 1 and supervised training.",
    "gumbeldore.evaluation": "Tables of methods on sets of instances.",
    "gumbeldore.sequences": "The samplers for any sequence model.",
    "gumbeldore.kits.kit": "What a problem brings along.",
    "gumbeldore.networks.set_transformer": "A network for any set of items.",
    "gumbeldore.io.reading": "Files of instances.",
    "gumbeldore.io.instance_files": "Our own files of instances.",
    "gumbeldore.search.auto": "Automatic step size and nucleus.",
    "gumbeldore.search.gumbel": "The mathematics of sampling without replacement.",
}


def public(module: ModuleType) -> list[str]:
    """The names that a module offers: its `__all__`, or the classes and functions that it defines."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name
        for name, thing in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(thing) or inspect.isfunction(thing))
        and thing.__module__ == module.__name__
    ]


def first_line(thing: Any) -> str:
    text = (inspect.getdoc(thing) or "").strip().split("\n")[0]
    return "" if inspect.isclass(thing) and text.startswith(f"{thing.__name__}(") else text.replace("|", "\\|")


def entry(module: str, name: str, thing: Any) -> list[str]:
    """The directive that documents one name, as reStructuredText within Markdown."""
    if inspect.isclass(thing):
        kind = "autoexception" if issubclass(thing, BaseException) else "autoclass"
        members = [] if kind == "autoexception" else ["   :members:", "   :show-inheritance:"]
    elif inspect.isfunction(thing):
        kind, members = "autofunction", []
    else:
        kind, members = "autodata", ["   :no-value:"]
    hidden = (
        ["   :exclude-members: " + ", ".join(thing.__dataclass_fields__)]
        if members and hasattr(thing, "__dataclass_fields__")
        else []
    )
    return ["```{eval-rst}", f".. {kind}:: {module}.{name}", *members, *hidden, "```", ""]


def documented(thing: Any) -> bool:
    return inspect.isclass(thing) or inspect.isfunction(thing) or typing.get_origin(thing) is None


def api_pages() -> dict[str, str]:
    """By file name: a page for each package that is there, and the page that lists them. What two packages offer is described once."""
    pages, seen = {}, {}
    lines = ["# Python", "", "| | |", "|---|---|"]
    for package, about in PACKAGES.items():
        module = importlib.import_module(package)
        lines.append(f"| [`{package}`](api/{package}.md) | {about} |")
        pages[f"api/{package}.md"] = api_page(module, package, seen)
    lines += ["", "```{toctree}", ":hidden:", *(page.removesuffix(".md") for page in pages), "```", ""]
    return {"python.md": "\n".join(lines), **pages}


def api_page(module: ModuleType, package: str, seen: dict[int, str]) -> str:
    lines = [f"# {package}", "", first_line(module), "", "| | |", "|---|---|"]
    bodies: list[str] = []
    for name in sorted(public(module), key=str.lower):
        thing = getattr(module, name)
        place = seen.setdefault(id(thing), f"{package}.{name}")
        lines.append(
            f"| {{py:obj}}`{name} <{place}>` | {first_line(thing) if inspect.isclass(thing) or inspect.isfunction(thing) else ''} |"
        )
        if place == f"{package}.{name}":
            bodies += entry(package, name, thing)
    return "\n".join([*lines, "", *bodies])
