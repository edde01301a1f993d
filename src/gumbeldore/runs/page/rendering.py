"""A page as text of HTML."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from gumbeldore.runs.page.content import Chart, Page

_HERE = Path(__file__).parent


def render(page: Page) -> str:
    """One self-contained file. It allows itself its own script and nothing else, by the hash of that script."""
    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["png"] = lambda data: "data:image/png;base64," + base64.b64encode(data).decode()
    script, style = ((_HERE / name).read_text() for name in ("page.js", "page.css"))
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template("page.html").render(
        page=page, script=script, style=style, allowed=allowed, charts=[_plain(c) for s in page.sections for c in s.charts]
    )


def _plain(chart: Chart) -> dict[str, Any]:
    return asdict(chart)
