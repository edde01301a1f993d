"""The rules of prose find what they are for, and leave code alone."""

from __future__ import annotations

import prose
import pytest


@pytest.mark.parametrize("line", ["It is simply fast.", "A state-of-the-art solver", "We utilize it", "fast — and small"])
def test_a_broken_rule_is_found_with_its_line(line):
    assert [number for number, _, _ in prose.faults(f"# Title\n\n{line}\n")] == [3]


def test_code_may_say_what_it_likes():
    assert prose.faults("Call `simply()`.\n\n```python\nTODO = 1\n```\n") == []


def test_no_page_breaks_a_rule():
    assert {page.name: prose.faults(page.read_text()) for page in prose.pages() if prose.faults(page.read_text())} == {}
