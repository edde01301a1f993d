"""Pages about what ships, from the kits: problems with their formats and features, and a card for each trained policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from refusals import refusals

from gumbeldore.io.shipped import Shipped, shipped
from gumbeldore.kits.kit import Kit
from gumbeldore.kits.registry import all_kits
from gumbeldore.problem import Problem

OPTIONAL = {
    "examples": "augmented training examples",
    "key": "transpositions",
    "augmentations": "augmentations",
    "reencoded": "reconstruction",
    "local_search": "local search in training",
}
"""What a problem may offer beyond the contract's six functions, and what that makes possible."""


def row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def problem_class(kit: Kit) -> type[Any]:
    problem = kit.problem.build() if hasattr(kit.problem, "build") else kit.problem
    return type(problem)


def offers(kit: Kit) -> list[str]:
    cls = problem_class(kit)
    return [feature for name, feature in OPTIONAL.items() if getattr(cls, name, None) is not getattr(Problem, name, None)]


FACTS = {
    "networks": lambda kit: codes(architecture.network.__name__ for architecture in kit.architectures.values()),
    "formats read": lambda kit: ", ".join(
        f"{form.name} ({codes(form.suffixes)})" if form.suffixes else form.name for form in kit.formats
    ),
    "solutions written": lambda kit: codes(kit.exports),
    "test sets": lambda kit: codes(kit.standard),
    "expert solvers (labels)": lambda kit: codes(kit.experts),
    "solvers that go on from a policy's solution": lambda kit: codes(kit.warm_started),
    "baselines": lambda kit: codes(kit.baselines),
    "policies that ship": lambda kit: ", ".join(f"[{policy.name}](policies/{policy.name}.md)" for policy in shipped(kit)),
    "offers": lambda kit: ", ".join(offers(kit)),
}


OVERVIEW = {
    "problem": lambda kit: codes([kit.name]),
    "files": lambda kit: ", ".join(form.name for form in kit.formats) or "none",
    "policy": lambda kit: ", ".join(f"[{policy.name}](policies/{policy.name}.md)" for policy in shipped(kit)) or "none yet",
    "local search": lambda kit: yes(kit.local_search),
    "expert": lambda kit: codes(kit.experts) or "none",
    "picture": lambda kit: kit.solution_format.picture.removesuffix(".png") if kit.solution_format.draw else "none",
}
"""The columns of the table of all problems."""


def yes(thing: object) -> str:
    return "none" if thing is None else "yes"


def support() -> str:
    """One table of all problems, what is refused, and a section for each kit with all that it brings along."""
    kits = all_kits()
    lines = ["# What is supported", "", "From the kits themselves; nothing here is written by hand.", ""]
    lines += [row(OVERVIEW), "|---" * len(OVERVIEW) + "|"]
    lines += [row(fact(kit) for fact in OVERVIEW.values()) for kit in kits]
    lines += ["", "## Refused", "", "In one line, with exit code 2, rather than solved as something else:", ""]
    lines += ["| a file with | the line |", "|---|---|", *(row([what, cell(line)]) for what, line in refusals()), ""]
    for kit in kits:
        value = "" if kit.maximises else "minus "
        lines += [
            f"## {kit.name}",
            "",
            f"{kit.summary[:1].upper()}{kit.summary[1:]}; the objective is {value}the {kit.cost}.",
            "",
        ]
        facts = {name: fact(kit) for name, fact in FACTS.items()}
        lines += ["| | |", "|---|---|", *(row([name, value]) for name, value in facts.items() if value), ""]
    return "\n".join(lines)


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("_", "\\_")


def card(name: str, manifest: Mapping[str, Any]) -> str:
    """The model card of a policy, as its manifest has it."""
    lines = [f"# {name}", "", manifest["summary"], "", "| | |", "|---|---|"]
    named = ("problem", "network", "weights", "trained", "hours", "how", "licence", "sha256")
    lines += [row([key, str(manifest[key])]) for key in named if key in manifest]
    lines += ["", "| test set | instances | search | gap (95 % interval) | reference |", "|---|---|---|---|---|"]
    lines += [row(result_cells(result)) for result in manifest["results"]]
    lines += ["", "How it was trained, and how these figures come about:", "", "```bash", *manifest["commands"], "```", ""]
    return "\n".join(lines)


def result_cells(result: Mapping[str, Any]) -> list[str]:
    interval = f" ({result['low']:.2f} .. {result['high']:.2f})" if "low" in result else ""
    gap = f"{result['gap']:.2f} %{interval}" if "gap" in result else str(result["value"])
    return [result["set"], str(result.get("instances", "")), result["search"], gap, result.get("reference", "")]


def policies() -> list[Shipped]:
    return [policy for kit in all_kits() for policy in shipped(kit)]


def policy_pages() -> dict[str, str]:
    """By file name: a card for each policy that ships, and the page that lists them."""
    found = policies()
    lines = ["# Policies that ship", "", "Trained from scratch by this code; `gumbeldore policies` lists them, too.", ""]
    lines += ["| policy | for | trained on | core time |", "|---|---|---|---|"]
    for policy in found:
        facts = [policy.manifest.get(key, "") for key in ("problem", "trained", "hours")]
        lines.append(row([f"[{policy.name}](policies/{policy.name}.md)", *facts]))
    lines += ["", "```{toctree}", ":hidden:", *(f"policies/{policy.name}" for policy in found), "```", ""]
    cards = {f"policies/{policy.name}.md": card(policy.name, policy.manifest) for policy in found}
    return {"policies.md": "\n".join(lines), **cards}
