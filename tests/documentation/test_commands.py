"""Every command that the README and the documentation print is understood, whatever it takes; nothing is computed."""

from __future__ import annotations

import argparse
import inspect
import re
import shlex
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path

import pytest
from printed import ROOT, commands, lines

from gumbeldore.cli import main
from gumbeldore.evaluation.method_names import baseline_named, sampler_named
from gumbeldore.kits.registry import kit_named
from gumbeldore.solving import Solving

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


ELSEWHERE = {
    "make": "the targets are what continuous integration runs",
    "pip": "installs; tests/packaging does so with a wheel",
    "tensorboard": "a server",
    "torchrun": "several machines or GPUs; tests/training starts processes",
    **dict.fromkeys(("ray", "srun", "head", "nodes", "address", "resume", "helm", "kubectl", "docker", "sleep"), "a cluster"),
    **dict.fromkeys(("cd", "export", "git", "for"), "of the shell"),
}
"""By first word: commands that are not ours, and why they are not tried."""


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
        assert {name for name in settings.sets if not name.endswith(".npz")} <= set(kit.standard)
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


def test_every_other_line_is_known():
    ours = ("gumbeldore ", "python benchmarks/")
    assert {re.split(r"[ =]", line)[0] for line in lines() if not line.startswith(ours)} <= set(ELSEWHERE)


class ParsedError(Exception):
    """A script has understood its options."""


@pytest.mark.parametrize("line", [line for line in lines() if line.startswith("python benchmarks/")])
def test_a_printed_script_understands_its_options(line, monkeypatch):
    parse = argparse.ArgumentParser.parse_args

    def stop(parser, arguments=None, namespace=None):
        parse(parser, arguments, namespace)
        raise ParsedError

    _, script, *options = shlex.split(line, comments=True)
    module = import_module(Path(script).stem)
    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", stop)
    monkeypatch.setattr("sys.argv", [script, *options])
    with pytest.raises(ParsedError):
        module.main(*([options] if inspect.signature(module.main).parameters else []))
