"""Files of numpy's: nothing is unpacked that memory has no room for."""

from __future__ import annotations

import io
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from gumbeldore import memory
from gumbeldore.cli import main
from gumbeldore.errors import FormatError
from gumbeldore.io import arrays
from gumbeldore.io.instance_files import read_instances, write_instances
from gumbeldore.io.reading import read_file
from gumbeldore.kits.registry import kit_named


def claiming(path: Path, size: int) -> Path:
    """A file of some hundred bytes whose table of contents says that its cities take so many bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (("format", "gumbeldore-instances-1"), ("problem", "tsp")):
            archive.writestr(f"{name}.npy", content(np.array(text)))
        cities = content(np.zeros((0, 5, 2)))
        archive.writestr("coordinates.npy", cities.replace(b"(0, 5, 2), ", f"({size // 80}, 5, 2), ".encode().ljust(11)[:11]))
        archive.infolist()[-1].file_size = size
    assert path.stat().st_size < 1000
    return path


def content(array: np.ndarray) -> bytes:
    handle = io.BytesIO()
    np.save(handle, array)
    return handle.getvalue()


READERS = {"read_instances": read_instances, "read_file": read_file, "read_arrays": arrays.read_arrays}


@pytest.mark.parametrize("reader", READERS)
def test_a_small_file_that_claims_terabytes_is_refused_before_it_is_unpacked(tmp_path: Path, reader: str) -> None:
    path = claiming(tmp_path / "bomb.npz", 4 * 10**12)
    with pytest.raises(
        FormatError, match=r"bomb\.npz unpacks to 4,000 GB.* takes about 12,000 GB of memory, but .* GB are free"
    ):
        READERS[reader](path)


@pytest.mark.parametrize("arguments", [["solve"], ["imitate", "tsp", "--labels"], ["evaluate", "tsp", "--sets"]], ids=" ".join)
def test_every_command_says_in_one_line_what_it_would_need(tmp_path: Path, arguments: list[str], capfd, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*arguments, str(claiming(tmp_path / "bomb.npz", 4 * 10**12)), *folder(arguments)]) != 0
    said = [line for line in capfd.readouterr().err.splitlines() if line.strip()]
    assert len(said) == 1
    assert "12,000 GB of memory" in said[0]


def folder(arguments: list[str]) -> list[str]:
    return ["--baselines", "nearest-neighbour", "--folder", "out"] if arguments[0] == "evaluate" else ["--folder", "out"]


def test_what_fits_is_read_and_what_does_not_is_not_opened(tmp_path: Path, monkeypatch) -> None:
    instances = kit_named("tsp").generator(cities=50, count=40).generate()
    write_instances(tmp_path / "a.npz", instances)
    np.save(tmp_path / "b.npy", instances.arrays["coordinates"])
    readers = [partial(arrays.read_arrays, tmp_path / "a.npz"), partial(arrays.read_array, tmp_path / "b.npy")]
    monkeypatch.setattr(arrays, "free_memory", lambda: 3.0 * 40_000)
    assert arrays.read_arrays(tmp_path / "a.npz", ("problem",)).keys() == {"problem"}  # nothing else is unpacked
    monkeypatch.setattr(arrays, "free_memory", lambda: 3.0 * 10**5)
    assert (readers[0]()["coordinates"] == readers[1]()).all()
    monkeypatch.setattr(arrays, "free_memory", lambda: 3.0 * 30_000)
    for read in readers:
        with pytest.raises(FormatError, match="GB of memory"):
            read()


def test_free_memory_is_that_of_the_container_where_it_has_less(monkeypatch) -> None:
    assert memory.free_memory() > 1 << 20
    monkeypatch.setattr(memory, "_free_in_container", lambda: 7.0)
    assert memory.free_memory() == 7
