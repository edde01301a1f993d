"""Pictures: they are written, and something is drawn on them."""

from __future__ import annotations

import gc
import json
import tracemalloc
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from matplotlib.backends.backend_agg import RendererAgg

from gumbeldore.figure import colours, saved_figure
from gumbeldore.problems.gantt import plot_schedule
from gumbeldore.problems.gomoku.plot import plot_game
from gumbeldore.problems.jssp.verify import build_schedule
from gumbeldore.problems.route_plot import plot_routes
from gumbeldore.problems.tsp.plot import plot_tours
from gumbeldore.runs import curves
from gumbeldore.runs.curves import Curves, plot_training
from gumbeldore.training.checkpoint import iterate_metrics

POINTS = np.random.RandomState(0).uniform(size=(9, 2))
BLACK, RED, BLUE = (0, 0, 0), (214, 39, 40), (31, 119, 180)


def shades(path: Path) -> dict[tuple[int, ...], int]:
    """How many pixels a picture has of each colour."""
    pixels = (matplotlib.image.imread(path)[..., :3] * 255).round().astype(np.int64) @ (1 << 16, 1 << 8, 1)
    found, counts = np.unique(pixels, return_counts=True)
    return {(c >> 16, c >> 8 & 255, c & 255): n for c, n in zip(found.tolist(), counts.tolist(), strict=True)}


def rgb(colour: np.ndarray) -> tuple[int, ...]:
    return tuple(int(round(255 * float(part))) for part in colour[:3])


def test_an_empty_picture_would_be_noticed(tmp_path):
    """Otherwise the tests below could not fail."""
    with saved_figure(tmp_path / "blank.png") as axes:
        axes.set_axis_off()
    assert list(shades(tmp_path / "blank.png")) == [(255, 255, 255)]


def test_a_tour_is_a_blue_line_with_a_red_start(tmp_path):
    plot_tours(tmp_path / "deep" / "tour.png", POINTS, [list(range(9))], ["tour"])
    found = shades(tmp_path / "deep" / "tour.png")
    assert min(found.get(colour, 0) for colour in (BLACK, RED, BLUE)) > 50


def test_every_tour_gets_a_panel(tmp_path):
    for count in (1, 2, 5):
        plot_tours(tmp_path / f"{count}.png", POINTS, [list(range(9))] * count, ["tour"] * count)
    red = [shades(tmp_path / f"{count}.png")[RED] for count in (1, 2, 5)]
    assert red[1] == pytest.approx(2 * red[0], rel=0.2)
    assert red[2] == pytest.approx(5 * red[0], rel=0.2)


@pytest.mark.parametrize("count", [1, 4, 12, 30])
def test_every_route_has_a_colour_of_its_own_and_the_depot_is_black(tmp_path, count):
    nodes = np.random.RandomState(1).uniform(size=(1 + 2 * count, 2))
    plot_routes(tmp_path / "routes.png", nodes, [[2 * i, 2 * i + 1] for i in range(count)], "routes")
    found = shades(tmp_path / "routes.png")
    wanted = {rgb(colour) for colour in colours(count)}
    assert len(wanted) == count
    assert wanted <= set(found)
    assert found[BLACK] > 80


@pytest.mark.parametrize(("jobs", "machines"), [(1, 1), (6, 5), (25, 3)])
def test_a_gantt_chart_shows_every_job_in_its_colour_and_the_end_in_red(tmp_path, jobs, machines):
    random = np.random.RandomState(0)
    times, orders = random.randint(20, 99, (jobs, machines)), random.uniform(size=(jobs, machines)).argsort(1)
    schedule = build_schedule(times.tolist(), orders.tolist(), list(range(jobs)) * machines)
    plot_schedule(tmp_path / "schedule.png", schedule, "schedule")
    found = shades(tmp_path / "schedule.png")
    assert {rgb(colour) for colour in colours(jobs)} <= set(found)
    assert found.get(RED, 0) > 30


def test_longer_operations_are_longer_bars(tmp_path):
    """Two jobs on one machine, 10 and 30 long."""
    plot_schedule(tmp_path / "two.png", build_schedule([[10], [30]], [[0], [0]], [0, 1]), "two")
    found = shades(tmp_path / "two.png")
    first, second = (found[rgb(colour)] for colour in colours(2))
    assert second == pytest.approx(3 * first, rel=0.1)


def test_a_board_shows_wood_and_stones_and_rings_the_winning_row(tmp_path):
    won, open_ = [0, 10, 1, 11, 2, 12, 3, 13, 4], [0, 10, 1, 11]
    for name, moves in (("won", won), ("open", open_)):
        plot_game(moves, 9, tmp_path / f"{name}.png")
    winning, going = (shades(tmp_path / f"{name}.png") for name in ("won", "open"))
    assert winning[(227, 192, 138)] > 1000
    assert winning[BLACK] > going[BLACK]
    assert winning.get(RED, 0) > 100
    assert going.get(RED, 0) == 0


def test_training_curves_are_drawn(tmp_path):
    lines = [{"epoch": e, "loss": 1 / e, "sampled": -4.0, "validation": -5.0 + e, "improved": True} for e in (1, 2, 3)]
    plot_training(tmp_path / "training.png", lines)
    found = shades(tmp_path / "training.png")
    assert min(found.get(colour, 0) for colour in (BLUE, (255, 127, 14), (44, 160, 44))) > 50


def test_a_picture_leaves_nothing_of_what_drew_it(tmp_path):
    """Not even until the next collection, which comes rarely in a large heap."""
    gc.collect()
    gc.disable()
    try:
        plot_training(tmp_path / "training.png", [{"epoch": e, "loss": 1 / e, "validation": -5.0} for e in (1, 2, 3)])
        assert not [thing for thing in gc.get_objects() if type(thing) is RendererAgg]
    finally:
        gc.enable()


def lines(count: int) -> list[dict[str, float]]:
    """Epochs of two stages, some of which improve."""
    stages = ({"stage": 1 + (e > count // 3)} for e in range(1, count + 1))
    return [
        {"epoch": e, "loss": e % 7, "sampled": -e, "validation": -2 * e, "improved": e % 50 == 1} | s
        for e, s in enumerate(stages, 1)
    ]


def test_a_curve_shows_every_epoch_as_long_as_there_are_not_more_than_points(monkeypatch):
    monkeypatch.setattr(curves, "POINTS", 100)
    assert Curves.of(lines(100)).points == [(e, e % 7, -2 * e, -e) for e in range(1, 101)]


@pytest.mark.parametrize("count", [101, 102, 200, 201, 999])
def test_with_more_epochs_a_point_is_a_mean_and_improvements_and_stages_are_all_there(monkeypatch, count):
    monkeypatch.setattr(curves, "POINTS", 100)
    found = Curves.of(lines(count))
    assert 50 <= len(found.points) <= 100
    each = found.points[0][0] * 2 - 1  # the first epoch is 1
    parts = [lines(count)[start : start + int(each)] for start in range(0, count, int(each))]
    names = ("epoch", "loss", "validation", "sampled")
    assert found.points == pytest.approx(
        np.array([[np.mean([line[name] for line in part]) for name in names] for part in parts])
    )
    assert found.better == [(e, -2 * e) for e in range(1, count + 1, 50)]
    assert found.begins == [count // 3 + 1]


def test_lines_without_what_is_drawn_are_left_out_and_what_was_sampled_is_drawn_if_all_have_it(monkeypatch):
    monkeypatch.setattr(curves, "POINTS", 2)
    whole = [{"epoch": e, "loss": 1.0, "validation": -1.0, "sampled": -1.0} for e in range(1, 5)]
    assert Curves.of([{"epoch": 9}, *whole]).points == [(1.5, 1, -1, -1), (3.5, 1, -1, -1)]
    del whole[3]["sampled"]
    assert Curves.of(whole).points == [(1.5, 1, -1, -1), (3.5, 1, -1)]


def test_curves_of_a_long_run_need_little_memory(tmp_path):
    """Half of the bytes that its metrics have, which would not suffice for a list of them."""
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps(line | {"improved": False}) + "\n" for line in lines(20_000)))
    tracemalloc.start()
    try:
        found = Curves.of(iterate_metrics(path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.points[-1][0] == pytest.approx(20_000, rel=0.01)
    assert peak < path.stat().st_size / 2
