"""What is generated for the site follows the code: parsers, kits, manifests, docstrings."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

import command_pages
import docstrings
import pytest
from generated import pages, write
from kit_pages import OVERVIEW, policies
from refusals import FILES

from gumbeldore.cli import main
from gumbeldore.io.shipped import shipped
from gumbeldore.kits.registry import all_kits
from gumbeldore.runs.presets import entry
from gumbeldore.runs.settings import RunSettings


@dataclass
class Sized:
    """A record. Its `width` is in metres."""

    width: int = 3  # of the table
    _hidden: int = 0
    height: int = 1

    @property
    def area(self) -> int:
        """Says nothing of the height."""
        return self.width * self.height


def test_the_fields_of_a_record_come_with_their_comments():
    assert docstrings.fields(Sized) == ["", "Fields:", "", "- ``width: int``: of the table", "- ``height: int``", ""]


def test_code_in_a_docstring_stays_code():
    text = docstrings.restructured(["Says `x`s.", "", "for a in b:", "    c * d", "", "- one", "- two_"])
    assert text == ["Says ``x``\\ s.", "", "::", "", "    for a in b:", "        c * d", "", "- one", "- two\\_", ""]


def test_a_signature_keeps_the_axes_that_the_source_has():
    def step(self, action: Int[Tensor, " row"], *, times: int = 2) -> Float[Tensor, "row city"]: ...

    shown, returns = docstrings.as_written(inspect.signature(step))
    assert shown == "(action: Int[Tensor, 'row'], *, times: int = 2)"
    assert returns == "Float[Tensor, 'row city']"


@pytest.mark.parametrize("command", command_pages.COMMANDS)
def test_every_command_is_described(command):
    assert f"## {command}\n" in pages()["commands.md"]


def test_options_show_their_defaults_and_meanings():
    parser = command_pages.parser_of(["status"])
    assert parser is not None
    options = {each.name: each for each in command_pages.options(parser)}
    assert options["--every"].default == "5.0"
    assert options["--every"].meaning == "seconds"


def test_every_option_but_sizes_and_seeds_of_instances_says_what_it_is_for():
    parser = command_pages.parser_of(["generate", "tsp"])
    assert parser is not None
    plain = {each.name for each in command_pages.options(parser)}
    for command in command_pages.COMMANDS:
        if command not in ("train", "imitate"):  # whose settings have pages of their own
            found = [each for parser in command_pages.parsers(command) for each in command_pages.options(parser)]
            assert {each.name for each in found if not each.meaning} - {"--customers"} <= plain


def test_values_are_shown_as_one_types_them():
    parser = command_pages.parser_of(["solve", command_pages.INSTANCE])
    assert parser is not None
    shown = {each.name: command_pages.usage(each) for each in command_pages.options(parser)}
    assert shown["--time-limit"] == "--time-limit FLOAT"
    assert shown["--parts"] == "--parts {policy,local-search,reconstruction} ..."
    assert shown["--json"] == "--json"


def test_every_setting_of_a_training_is_on_its_page():
    page = pages()["settings-tsp.md"]
    for name in ("training.epochs", "problem.cities", "sampler", "validation.instances"):
        assert f"`{name}`" in page
    assert isinstance(entry("tsp").settings(), RunSettings)
    assert f"`{entry('tsp').settings('paper').training.epochs}`" in page


def test_every_policy_that_ships_has_a_card_with_its_results():
    for policy in policies():
        card = pages()[f"policies/{policy.name}.md"]
        assert policy.manifest["sha256"] in card
        assert card.count("\n| ") > len(policy.manifest["results"])


def test_one_table_shows_what_every_problem_supports():
    table = pages()["support.md"].partition("## Refused")[0]
    for kit in all_kits():
        (shown,) = [line for line in table.splitlines() if line.startswith(f"| `{kit.name}` |")]
        assert shown.count("|") == len(OVERVIEW) + 1
        assert all(form.name in shown for form in kit.formats)
        assert all(policy.name in shown for policy in shipped(kit))


@pytest.mark.parametrize("what", FILES)
def test_what_is_not_supported_is_refused_in_one_line_with_exit_code_2(what, tmp_path, capsys):
    name, content = FILES[what]
    (tmp_path / name).write_text(content)
    assert main(["solve", str(tmp_path / name), "--folder", str(tmp_path / "out")]) == 2
    printed = capsys.readouterr()
    (line,) = [line for line in (printed.out + printed.err).splitlines() if line.strip()]
    assert line.startswith("Error: ")


@pytest.mark.parametrize("word", ["setup times", "due dates", "Precedence graphs"])
def test_the_table_of_refusals_names_what_is_missing(word):
    assert word in pages()["support.md"]


def test_the_public_names_are_documented():
    page = pages()["api/gumbeldore.md"]
    assert ".. autoclass:: gumbeldore.Gumbeldore" in page
    assert ".. autofunction:: gumbeldore.solve" in page


def test_only_what_changed_is_written(tmp_path):
    (tmp_path / "gone.md").write_text("old")
    write(tmp_path)
    assert not (tmp_path / "gone.md").exists()
    before = (tmp_path / "support.md").stat().st_mtime_ns
    write(tmp_path)
    assert (tmp_path / "support.md").stat().st_mtime_ns == before
