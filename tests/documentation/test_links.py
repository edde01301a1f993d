"""Every link between pages leads to a file, and to a heading of it where it names one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from generated import pages

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), ROOT / "benchmarks/README.md"]
GENERATED = ROOT / "docs/reference/generated"
PAGES = [page for page in PAGES if not {"_build", "generated"} & set(page.parts)]


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^( *)```.*?^\1```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def links(page: Path) -> list[str]:
    targets = re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", prose(page))
    return [target for target in targets if not re.match(r"[a-z]+:", target)]


def anchor(heading: str) -> str:
    """As GitHub and MyST name a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in links(page):
        name, _, heading = target.partition("#")
        file = (page.parent / name) if name else page
        if file.resolve().is_relative_to(GENERATED):
            assert str(file.resolve().relative_to(GENERATED)) in pages(), f"{target}: no such page is generated"
            continue
        assert file.exists(), f"{target}: no such file"
        if heading:
            assert heading in map(anchor, re.findall(r"^#+ (.*)$", prose(file), re.MULTILINE)), f"{target}: no such heading"


def test_a_link_to_nowhere_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A page\n\n[there](there.md), [here](#a-page), [elsewhere](https://example.org)\n\n```\n[code](code.md)\n```\n"
    )
    assert links(page) == ["there.md", "#a-page"]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "reference" not in page.parts], ids=lambda page: str(page.relative_to(ROOT))
)
def test_no_page_but_references_is_long(page):
    if page.name != "CHANGELOG.md":
        assert len(page.read_text().split()) <= 2500
