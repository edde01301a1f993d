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
