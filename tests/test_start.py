"""The program can be stopped from its first line on, and starts with nothing that it does not need."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from gumbeldore.start import ENDINGS

MODULES = ["gumbeldore.cli.dispatch", "gumbeldore.cli.solve", "torch", "gumbeldore.problems.tsp.kit", "rich.console"]


def started(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The program, after some code in its process."""
    call = f"import sys; {code}; from gumbeldore.start import main; sys.exit(main())"
    return subprocess.run([sys.executable, "-c", call, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("number", ENDINGS, ids=lambda number: signal.Signals(number).name)
def test_a_signal_while_a_module_is_imported_is_one_word_and_its_exit_code(number, module):
    sends = f"lambda name, *more: os.kill(os.getpid(), {int(number)}) if name == {module!r} else None"
    handled = f"_signal.signal({int(number)}, _signal.SIG_DFL)"  # under nohup, SIGHUP is ignored, and stays so
    hook = f"import os, _signal, types; {handled}; sys.meta_path.insert(0, types.SimpleNamespace(find_spec={sends}))"
    done = started(hook, "solve", "tsp", "--count", "1")
    assert (done.returncode, done.stdout, done.stderr) == (ENDINGS[number], "", "Stopped.\n")


def test_nothing_is_imported_before_signals_are_handled():
    code = "import sys; before = set(sys.modules); from gumbeldore.start import main; print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(eval(done.stdout)) - {"_signal"} == {"gumbeldore", "gumbeldore.start"}


@pytest.mark.parametrize(
    "arguments",
    [["solve", "--help"], ["train", "--help"], ["policies"], ["new", "--help"], ["status", "nowhere"]],
    ids=" ".join,
)
def test_commands_that_need_no_network_do_not_import_torch(arguments):
    """Which is four fifths of the time that a command takes to start."""
    code = "import sys; from gumbeldore.cli import main\ntry: main(sys.argv[1:])\nexcept SystemExit: pass\nsys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout or done.stderr
