"""Live progress: in a terminal by rich, in a notebook as one output that is renewed, for which nothing else must be installed."""

from __future__ import annotations

from io import StringIO
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.progress import Progress, ProgressColumn

_WIDTH = 100
"""Columns of a line in a notebook."""
_PAGE = '<pre style="white-space:pre;line-height:normal;font-family:monospace">{code}</pre>'


class Bars(Progress):
    """Bars that go away when they are done."""

    def __init__(self, *columns: str | ProgressColumn, console: Console | None = None) -> None:
        super().__init__(*columns, console=console, transient=True)
        if self.live.console.is_jupyter:
            rate = self.live.refresh_per_second
            self.live = _NotebookLive(console=self.live.console, refresh_per_second=rate, get_renderable=self.get_renderable)


class _NotebookLive(Live):
    """What rich shows in a notebook only with ipywidgets."""

    _handle: Any = None

    def refresh(self) -> None:
        self._show(_page(self.get_renderable()))

    def stop(self) -> None:
        super().stop()
        if self._handle is not None:
            self._show("")

    def _show(self, html: str) -> None:
        from IPython.display import HTML, display

        with self._lock:
            if self._handle is None:
                self._handle = display(HTML(html), display_id=True)
            else:
                self._handle.update(HTML(html))


def _page(renderable: Any) -> str:
    console = Console(file=StringIO(), record=True, width=_WIDTH, force_jupyter=False, force_terminal=True)
    console.print(renderable)
    return console.export_html(inline_styles=True, code_format=_PAGE)
