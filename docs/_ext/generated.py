"""Writes what is generated into `reference/generated` before a build; nothing of it is committed."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from api_pages import api_pages
from command_pages import commands, settings_pages
from kit_pages import policy_pages, support


@cache
def pages() -> dict[str, str]:
    """All generated pages by their path below `reference/generated`."""
    return {"commands.md": commands(), "support.md": support(), **settings_pages(), **policy_pages(), **api_pages()}


def write(folder: Path) -> None:
    """Writes what has changed, so that only that is built again; removes what is no longer there."""
    wanted = pages()
    for path in folder.rglob("*.md") if folder.exists() else ():
        if str(path.relative_to(folder)) not in wanted:
            path.unlink()
    for name, text in wanted.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", lambda app: write(Path(app.srcdir) / "reference/generated"))
    return {"parallel_read_safe": True}
