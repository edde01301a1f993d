"""A wheel installs into a fresh environment without the repository, and solves berlin52 offline; an sdist needs no compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("build")

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import socket
def refuse(*_, **__): raise OSError("offline")
socket.socket.connect = refuse
import gumbeldore
assert "site-packages" in gumbeldore.__file__, gumbeldore.__file__
result = gumbeldore.solve("berlin52.tsp", sampler="fast")
assert result.gap < 0.05, result
print(result.gap)
"""

pytestmark = pytest.mark.slow


def run(*command: str, where: Path, **changes: str) -> str:
    environment = (
        {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"} | changes
    )
    done = subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def source(folder: Path) -> Path:
    """The files that are in the repository, without what was built in it."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    names = [name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()]
    if not names:
        pytest.skip("not a clone")
    for name in names:
        if name.startswith(("src/", "setup.py", "pyproject.toml", "README.md", "LICENSE", "MANIFEST.in", "CHANGELOG.md")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def built(kind: str, folder: Path, **changes: str) -> Path:
    """The wheel or sdist of the source in `folder`, made with what is installed here."""
    run(sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", "dist", where=folder, **changes)
    return next((folder / "dist").glob("*.whl" if kind == "wheel" else "*.tar.gz"))


def fresh(folder: Path, wheel: Path) -> Path:
    """The Python of an environment that holds the wheel alone; torch and other dependencies are those of this one."""
    run(sys.executable, "-m", "venv", str(folder), where=folder.parent)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    run(str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel), where=folder)
    place = run(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", where=folder).strip()
    shadow = folder / "dependencies"
    shadow.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():  # all but this project, and the .pth files that lead to it
        if "gumbeldore" not in path.name and path.suffix != ".pth":
            (shadow / path.name).symlink_to(path)
    (Path(place) / "dependencies.pth").write_text(f"{shadow}\n")
    return python


def test_a_wheel_solves_berlin52_without_the_repository_and_offline(tmp_path):
    wheel = built("wheel", source(tmp_path / "source"))
    names = zipfile.ZipFile(wheel).namelist()
    assert any(name.endswith("tsp-small.safetensors") for name in names)
    python = fresh(tmp_path / "fresh", wheel)
    shutil.copy(ROOT / "tests/data/instances/berlin52.tsp", tmp_path)
    assert float(run(str(python), "-c", SCRIPT, where=tmp_path)) < 0.05
    assert "Best solutions found" in run(
        str(python), "-m", "gumbeldore", "solve", "berlin52.tsp", "--preset", "fast", where=tmp_path
    )


def test_an_sdist_installs_without_a_compiler(tmp_path):
    sdist = built("sdist", source(tmp_path / "source"))
    shutil.unpack_archive(sdist, tmp_path / "unpacked")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    wheel = built("wheel", unpacked, CC="no-such-compiler", CXX="no-such-compiler")
    assert not [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith((".so", ".pyd"))]
    python = fresh(tmp_path / "fresh", wheel)
    shutil.copy(ROOT / "tests/data/instances/berlin52.tsp", tmp_path)
    run(str(python), "-c", SCRIPT, where=tmp_path)
