"""The page of a report: complete, escaped, and without any need of a network."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

from gumbeldore.kits.measure import Measure
from gumbeldore.runs.comparison import compared, sections
from gumbeldore.runs.folders import read_folders, short_names
from gumbeldore.runs.page import Cell, Chart, Curve, Gallery, Page, Picture, Section, Table, render

EVIL = """"'><img src=x onerror="alert(1)"><script>alert(1)</script></script><!-- {{ 7 * 7 }} </style>"""


class Seen(HTMLParser):
    """All elements, and the texts of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.tags and self.tags[-1][0] == "script" and data.strip():
            self.scripts.append(data)


def page_of(text: str) -> Page:
    table = Table((text, "x"), [(Cell(text), Cell(text, 1.0, marked=True))], text, frozenset({0}))
    chart = Chart(text, (text,), [Curve(text, 0, [(0.0, 1.0), (1.0, 2.0)])], text)
    return Page(text, text, [Section(text, text, [chart], [table], [Gallery(text, [Picture(b"png", text)])])])


def test_nothing_from_files_becomes_markup():
    evil, good = Seen(render(page_of(EVIL))), Seen(render(page_of("good")))
    assert [tag for tag, _ in evil.tags] == [tag for tag, _ in good.tags]
    for (_, theirs), (_, ours) in zip(evil.tags, good.tags, strict=True):
        assert theirs.keys() == ours.keys()
        assert not any(name.startswith("on") for name in theirs)
    assert "49" not in render(page_of(EVIL)).split("<main>")[1].split("</main>")[0]  # no template in a text is filled in


def test_the_data_of_charts_survive_whatever_they_are_called():
    data, script = Seen(render(page_of(EVIL))).scripts
    assert json.loads(data)[0]["curves"][0]["name"] == EVIL
    assert "alert" not in script


def test_the_page_runs_its_own_script_only_and_asks_for_nothing():
    text = render(page_of("good"))
    _, script = Seen(text).scripts
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = next(attributes["content"] for tag, attributes in Seen(text).tags if tag == "meta" and "http-equiv" in attributes)
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    addresses = [a[name] for _, a in Seen(text).tags for name in ("src", "href") if name in a]
    assert all(address.startswith(("#", "data:image/png;base64,")) for address in addresses)
    assert "http://" not in script.replace("http://www.w3.org/2000/svg", "")
    assert "url(http" not in text


def test_the_page_fits_phones_and_both_colour_schemes():
    text = render(page_of("good"))
    assert "width=device-width" in text
    assert "prefers-color-scheme: dark" in text


def test_what_differs_is_marked_and_the_rest_can_be_hidden():
    section = compared(
        "Settings", {"a": {"d": "64", "lr": "1"}, "b": {"d": "64", "lr": "2"}, "c": {"d": "64", "lr": "1", "new": "x"}}
    )
    (table,) = section.tables
    assert table.head == ("name", "a", "b", "c")
    assert table.common == {0}
    assert [[cell.marked for cell in row] for row in table.rows] == [
        [False] * 4, [False, False, True, False], [False, False, False, True],
    ]  # fmt: skip
    assert not compared("Settings", {"only": {"d": "64"}}).tables[0].common


def test_folders_are_called_by_as_much_of_their_path_as_it_takes(tmp_path):
    assert short_names([tmp_path / "x" / "a", tmp_path / "x" / "b"]) == ["a", "b"]
    assert short_names([tmp_path / "x" / "a", tmp_path / "y" / "a"]) == ["x/a", "y/a"]
    assert short_names([tmp_path / "a", tmp_path / "a"]) == ["a", "a"]


def evaluation(gap: float) -> dict:
    row = {"set": "tsp100", "method": "greedy", "mean_cost": 8.0, "gap": gap, "gap_low": gap / 2, "gap_high": 2 * gap,
           "difference": None, "seconds": 0.1, "evaluations": 99, "instances": 10, "reference": "LKH", "failure": ""}  # fmt: skip
    curve = {"set": "tsp100", "method": "greedy", "evaluations": [1, 5, None], "gap": [0.5, gap, 0.0]}
    return {
        "format": "gumbeldore-evaluation-1",
        "rows": [row, {**row, "method": "hgs", "failure": "absent"}, 7],
        "curves": [curve],
    }


def test_evaluations_stand_in_one_table_and_one_chart_by_set(tmp_path):
    for name, gap in (("first", 0.02), ("second", 0.01)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "table.json").write_text(json.dumps(evaluation(gap)))
    (section,) = sections(read_folders([tmp_path / "first", tmp_path / "second"]), {}, {})
    (table,), (chart,) = section.tables, section.charts
    assert [row[0].text for row in table.rows] == ["greedy (first)", "hgs (first)", "greedy (second)", "hgs (second)"]
    assert [row[2].text for row in table.rows] == ["2.000 %", "", "1.000 %", ""]
    assert [row[2].marked for row in table.rows] == [False, False, True, False]
    assert [curve.points for curve in chart.curves] == [[(1, 50.0), (5, 2.0)], [(1, 50.0), (5, 1.0)]]


def test_the_environment_is_that_of_the_last_start(tmp_path):
    (tmp_path / "settings.json").write_text('{"problem_name": "tsp"}')
    (tmp_path / "environment.json").write_text('[{"device": "cpu"}, {"device": "cuda", "versions": {"torch": "2.13"}}]')
    *_, section = sections(read_folders([tmp_path]), {}, {})
    assert section.title == "Environment"
    rows = {row[0].text: row[1].text for row in section.tables[0].rows}
    assert rows == {"device": "cuda", "versions.torch": "2.13", "starts": "2"}


def test_the_numbers_of_a_page_hold_no_nan(tmp_path):
    (tmp_path / "settings.json").write_text('{"problem_name": "tsp"}')
    (tmp_path / "metrics.jsonl").write_text(
        '{"epoch": 1, "loss": NaN, "validation": -4.0}\n{"epoch": 2, "loss": Infinity, "validation": -3.0}\n'
    )
    text = render(Page("t", "s", sections(read_folders([tmp_path]), {"tsp": Measure("tour length")}, {})))
    data = re.search(r'id="charts">(.*?)</script>', text, re.S).group(1)
    assert "NaN" not in data
    assert "Infinity" not in data
    assert [curve["points"] for curve in json.loads(data)[0]["curves"]] == [[[1, 0.0, 4.0], [2, 0.0, 3.0]]]
