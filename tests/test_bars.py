"""Bars in a notebook: one output that is renewed and in the end empty, without ipywidgets."""

from __future__ import annotations

import time

import pytest
import torch
from rich.console import Console

import gumbeldore
from gumbeldore.bars import Bars
from gumbeldore.problems import TSP
from gumbeldore.problems.tsp.bq import TSPPolicy

display = pytest.importorskip("IPython.display")


@pytest.fixture
def shown(monkeypatch):
    """What a notebook is given to show, in order; the console believes that it is in one."""
    pages = []

    class Handle:
        def update(self, page):
            pages.append(page.data)

    def first(page, display_id=False):
        assert display_id  # one place in the notebook, which is renewed
        pages.append(page.data)
        return Handle()

    monkeypatch.setattr(display, "display", first)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr("rich.jupyter.display", lambda *_: None)
    monkeypatch.setattr("rich._console", None, raising=False)
    return pages


def test_bars_are_renewed_in_one_place_and_go_away(shown, recwarn):
    with Bars(*Bars.get_default_columns(), console=Console()) as bars:
        task = bars.add_task("packing", total=4)
        bars.update(task, completed=2)
        bars.refresh()
    assert any("packing" in page and "50%" in page for page in shown)
    assert shown[-1] == ""
    assert not [warning for warning in recwarn if "ipywidgets" in str(warning.message)]


def test_self_improve_shows_where_an_epoch_stands_if_asked(shown):
    problem, policy = TSP(5), TSPPolicy(16, 1, 2, 32)
    settings = gumbeldore.TrainingSettings(epochs=1, instances=8, batches=4, batch_size=8)
    state = problem.generate(4, generator=torch.Generator().manual_seed(0))

    def epochs(**more):
        return list(gumbeldore.self_improve(problem, policy, gumbeldore.Greedy(), validation=state, settings=settings, **more))

    epochs()
    assert not shown
    assert len(epochs(progress=True)) == 1
    assert any("epochs" in page for page in shown)


def test_solve_shows_a_bar_and_train_does_by_itself(shown, tmp_path):
    square = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0), (0.5, 0.4), (0.2, 0.7)]
    result = gumbeldore.solve(square, parts=["local-search"], time_limit=0.3, progress=True)
    assert result.cost > 0
    assert any("solving" in page for page in shown)
    shown.clear()
    tiny = {"training": {"instances": 4, "batches": 2, "batch_size": 4}, "policy": {"d": 16, "layers": 1, "heads": 2, "ff": 32}}
    gumbeldore.train("tsp", tmp_path, problem={"cities": 5}, sampler="gd:2x1", epochs=1, workers=0, **tiny).finish()
    assert any("epochs" in page for page in shown)


def test_in_a_terminal_nothing_of_a_notebook_is_asked(monkeypatch):
    monkeypatch.setattr(display, "display", lambda *_, **__: pytest.fail("this is no notebook"))
    with Bars(*Bars.get_default_columns(), console=Console(force_terminal=True, force_jupyter=False)) as bars:
        bars.add_task("packing", total=4)
        time.sleep(0.15)
