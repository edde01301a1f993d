"""Every command that the README and the documentation print is understood; nothing is computed."""

from __future__ import annotations

import re
import shlex
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path

import pytest
from generated import pages

from gumbeldore.cli import main
from gumbeldore.evaluation.method_names import baseline_named, sampler_named
from gumbeldore.kits.registry import kit_named
from gumbeldore.solving import Solving

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if not {"_build", "generated", "jupyter_execute"} & set(page.parts)]
WORK = {
    "train": "TrainingRun",
    "imitate": "TrainingRun",
    "solve": "_prepared",
    "evaluate": "evaluate",
    "label": "label_files",
    "check": "check",
    "status": "status",
    "report": "write_report",
    "importing": "_policy",
    "info": "about",
    "policies": "_table",
    "reproduce": "reproduce",
}
"""By file of the command line: the function that does what its options ask for."""


def commands() -> list[str]:
    """All lines of blocks of commands that begin with our name, except for those with places to fill in, such as RUN."""
    texts = [*(page.read_text() for page in PAGES), *pages().values()]
    blocks = [block for text in texts for block in re.findall(r"```bash\n(.*?)```", text, re.DOTALL)]
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines() if line.startswith("gumbeldore ")]
    plain = {shlex.join(shlex.split(line, comments=True)[1:]) for line in lines}
    return sorted(
        line
        for line in plain
        if not re.search(r" (RUN|NEW|FILE|ADDRESS|new|tardy/tardy\.py:KIT|mk01\.fjs|berlin52-gen2-50\.oplib)", line)
    )


def pretended(asked: list[str], name: str):
    def work(*arguments, **options):
        asked.append(name)
        for argument in arguments:
            for file in getattr(argument, "files", ()):
                assert file.exists() or (ROOT / "tests/data/instances" / file).exists(), file
        if name == "solve":
            return Solving([], {}, arguments[1]), []
        return {} if name == "info" else Finished() if name in ("train", "imitate") else 0

    return work


class Finished:
    """A run that need not do anything."""

    def finish(self) -> None:
        pass


@pytest.fixture
def asked(monkeypatch) -> list[str]:
    """Which commands would have worked."""
    done: list[str] = []
    for module, function in WORK.items():
        monkeypatch.setattr(import_module(f"gumbeldore.cli.{module}"), function, pretended(done, module))
    monkeypatch.setattr("gumbeldore.cli.solve.SolutionFolder.reserved", nullcontext)
    monkeypatch.setattr("gumbeldore.cli.importing._instances", pretended(done, "importing"))
    monkeypatch.setattr("gumbeldore.cli.reproduce._list", pretended(done, "reproduce"))
    monkeypatch.setattr(
        "gumbeldore.runs.choosing.read_instances", lambda _, kind: kit_named(kind.name).generator(count=2).generate()
    )
    monkeypatch.setattr("gumbeldore.runs.choosing.read_weights", lambda _: ({}, {}))
    monkeypatch.setattr("gumbeldore.cli.evaluate.evaluate", compared(done))
    monkeypatch.chdir(ROOT)
    return done


def compared(done: list[str]):
    class Nothing:
        sets = ()

    def evaluate(kit, settings):
        done.append("evaluate")
        for text in settings.samplers:
            sampler_named(text)
        for text in settings.baselines:
            pytest.importorskip("pyvrp")
            baseline_named(kit, text)
        assert set(settings.sets) <= set(kit.standard)
        return Nothing()

    return evaluate


def test_there_are_commands_to_test():
    assert len(commands()) > 20


@pytest.mark.parametrize("line", commands())
def test_a_printed_command_is_understood(line, asked):
    assert line.split()[0] in {name.partition("_")[0] for name in WORK} | {"import"}, "Say in WORK what it would do."
    if "--help" in line:
        with pytest.raises(SystemExit, match="0"):
            main(shlex.split(line))
    else:
        assert main(shlex.split(line)) == 0
        assert len(set(asked)) == 1
