"""Writing files and using folders, when things go wrong around it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from gumbeldore.errors import BusyError, DiskFullError, SettingsError
from gumbeldore.files import check_writable, locked, remove_parts, write_atomically

HOLD = """
import sys, time
from pathlib import Path
from gumbeldore.files import locked
with locked(Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(60)
"""


def full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_the_old_file_goes_on_under_another_name(tmp_path):
    path, before = tmp_path / "new", tmp_path / "old"
    for text in "abc":
        write_atomically(path, lambda temporary, text=text: temporary.write_text(text), keep=before)
    assert (path.read_text(), before.read_text()) == ("c", "b")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["new", "old"]


def test_the_old_file_goes_on_where_files_have_one_name_only(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", full)
    test_the_old_file_goes_on_under_another_name(tmp_path)


def test_a_kill_between_the_two_renames_leaves_nothing_that_disturbs(tmp_path):
    """Both names belong to the same file then."""
    path, before = tmp_path / "new", tmp_path / "old"
    path.write_text("a")
    os.link(path, before)
    write_atomically(path, lambda temporary: temporary.write_text("b"), keep=before)
    assert (path.read_text(), before.read_text()) == ("b", "a")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["new", "old"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_called_so_and_leaves_the_old_file(tmp_path, monkeypatch, number):
    (tmp_path / "file").write_text("old")

    def fail(_):
        raise OSError(number, "unexpected pos 64 vs 0")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(DiskFullError, match=r"disk is full: .*file cannot be written"):
        write_atomically(tmp_path / "file", lambda temporary: temporary.write_text("new"))
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_what_killed_writes_left_is_removed_and_nothing_else(tmp_path):
    for name in (".a.json.77.part", ".a.json.8.part", ".b.json.77.part", "a.json", "a.json.77.part"):
        (tmp_path / name).touch()
    remove_parts(tmp_path, ["a.json"])
    assert sorted(path.name for path in tmp_path.iterdir()) == [".b.json.77.part", "a.json", "a.json.77.part"]


def test_a_place_where_nothing_can_be_written_is_named_with_its_option(tmp_path):
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(SettingsError, match=r"`--out` must be where files can be written, but .*file.* is not"):
            check_writable(folder, "--out")
    check_writable(tmp_path / "new", "--out")
    assert list((tmp_path / "new").iterdir()) == []


def test_a_folder_has_one_user_at_a_time(tmp_path):
    with locked(tmp_path), pytest.raises(BusyError, match="Another process is at work"), locked(tmp_path):
        pass
    with locked(tmp_path):
        pass


def test_a_killed_process_leaves_no_lock_behind(tmp_path):
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(BusyError), locked(tmp_path):
            pass
    finally:
        holder.kill()
        holder.communicate()
    with locked(tmp_path):
        pass
