"""A few rules for the prose of pages: words that the project does not use, and lines that say less than they seem to.

python docs/_ext/prose.py        # exit code 1, with the places, if a page breaks one
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

RULES = {
    r"\b(simply|obviously|easily|just works|of course)\b": "leave it out: what is easy needs no word for it",
    r"\b(state[- ]of[- ]the[- ]art|world[- ]class|blazing|cutting[- ]edge)\b": "say the figure",
    r"\b(leverage|utili[sz]e[sd]?)\b": "use",
    r"\b(variants? of the instance|rewritten form)\b": "augmentation, re-encoding (glossary)",
    r"\bTODO\b|\bFIXME\b|\bXXX\b": "finish it, or leave it out",
    r"—": "a comma, a colon or two sentences",
}
"""What is looked for, and what to do instead."""

SKIPPED = {"_build", "generated", "lab", "jupyter_execute"}


def prose(text: str) -> str:
    """A page with its code blanked out, line by line."""
    text = re.sub(
        r"^( *)(`{3,})[^`\n]*\n.*?^\1\2", lambda match: re.sub(r"[^\n]", "", match[0]), text, flags=re.DOTALL | re.MULTILINE
    )
    return re.sub(r"`[^`\n]*`", "", text)


def faults(text: str) -> list[tuple[int, str, str]]:
    """Line, words and advice for everything that breaks a rule."""
    return [
        (number, found[0], advice)
        for number, line in enumerate(prose(text).splitlines(), 1)
        for rule, advice in RULES.items()
        for found in re.finditer(rule, line, re.IGNORECASE)
    ]


def pages() -> list[Path]:
    written = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in written if not SKIPPED & set(page.parts)]


def main() -> int:
    found = [(page, *fault) for page in pages() for fault in faults(page.read_text())]
    for page, line, words, advice in found:
        print(f"{page.relative_to(ROOT)}:{line}: {words!r}: {advice}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
