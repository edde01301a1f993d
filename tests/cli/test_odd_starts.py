"""Starts that are not as they should be: kits that raise, ranks that wait, workers without number, null characters."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from small_runs import SMALL

from gumbeldore.cli import main
from gumbeldore.cli.dispatch import prepared
from gumbeldore.errors import DEBUG, ContractError, foreign_fault
from gumbeldore.parallel.devices import bounded, cores

KIT = (Path(__file__).resolve().parents[2] / "examples/flow_shop.py").read_text()


def raising(problem: str) -> None:
    raise ValueError("oh  dear")


def test_an_error_of_a_users_own_code_is_named_by_function_and_line(monkeypatch):
    with pytest.raises(ValueError, match="oh") as caught:
        raising("x")
    assert foreign_fault(caught.value).startswith("`raising` (test_odd_starts.py, line ")
    assert "raised ValueError: oh dear. --debug shows" in foreign_fault(caught.value)
    monkeypatch.setenv(DEBUG, "1")
    assert foreign_fault(caught.value) == ""


def test_our_own_errors_are_not_foreign():
    assert foreign_fault(ContractError("known")) == ""


def test_a_kit_whose_verifier_raises_is_one_line(tmp_path, capsys):
    path = tmp_path / "flow_raises.py"
    path.write_text(KIT.replace("    return Verdict(True, ", "    raise IndexError('gone')\n    return Verdict(True, "))
    assert main(["check", f"{path}:KIT"]) == 2
    assert "`verify` (flow_raises.py" in capsys.readouterr().err


def test_more_workers_than_there_is_room_for_are_bounded_with_a_word(caplog):
    with caplog.at_level(logging.WARNING, "gumbeldore"):
        assert bounded(1000) == cores()
    assert "`workers` is 1000, but there are" in caplog.text
    assert bounded(2) == 2


def test_a_null_character_is_refused(capsys):
    assert main(["status", "runs\0"]) == 2
    assert "null character" in capsys.readouterr().err


def test_a_rank_that_waits_for_others_hears_ctrl_c(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    ranks = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    code = "import sys, signal; signal.signal(signal.SIGINT, signal.default_int_handler); from gumbeldore.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "train", "tsp", "--folder", str(tmp_path), *SMALL]
    process = subprocess.Popen(command, env={**os.environ, **ranks}, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert "waits at 127.0.0.1" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    process.stderr.close()


@pytest.mark.parametrize(("given", "then"), [("0", "40"), ("1", "40"), ("39", "40"), ("100", "100"), ("x", "x")])
def test_what_a_terminal_has_no_width_for_is_laid_out_for_40_columns(monkeypatch, given, then):
    monkeypatch.setenv("COLUMNS", given)
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    monkeypatch.setattr(sys, "argv", ["gumbeldore", "policies"])
    assert prepared() == ["policies"]
    assert os.environ["COLUMNS"] == then
    assert os.environ["MPLBACKEND"] == "agg"


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_outputs_are_no_fault(closed):
    done = subprocess.run(
        f"{sys.executable} -m gumbeldore --help {closed}", shell=True, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert done.stderr == ""


@pytest.mark.parametrize("columns", ["0", "1", "80"])
def test_tables_are_drawn_at_any_width(columns, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(sys, "argv", ["gumbeldore", "policies"])
    assert main(prepared()) == 0
    out = capsys.readouterr().out
    assert "tsp-small" in "".join(out.split())
    assert max(map(len, out.splitlines())) <= max(40, int(columns))


@pytest.mark.parametrize("seed", ["-1", "9223372036854775808", "1180591620717411303424"])
def test_a_seed_beyond_64_bits_is_refused_by_every_command(seed, tmp_path, capsys):
    commands = (["solve", "tsp", "--random", "1"], ["evaluate", "tsp", "--random", "1"], ["generate", "tsp", "--out", "x.npz"])
    for command in commands:
        assert main([*command, "--seed", seed, *(["--folder", str(tmp_path)] if command[0] != "generate" else [])]) == 2
        said = [line for line in capsys.readouterr().err.splitlines() if line.strip()]
        assert len(said) == 1
        assert "`seed` must lie in 0 .. 2^" in said[0]
