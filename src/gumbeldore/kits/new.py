"""A kit of one's own to begin with: a problem that works, with comments, to be changed piece by piece."""

from __future__ import annotations

import keyword
from importlib.util import find_spec
from pathlib import Path

from gumbeldore.errors import require
from gumbeldore.files import check_writable, write_atomically
from gumbeldore.kits.names import kit_names

_TEMPLATE = Path(__file__).parent / "template"
NAME = "template"
"""What the files of the template are called, and what is replaced in them by the name of the kit."""


def write_kit(name: str, folder: str | Path | None = None) -> list[Path]:
    """Writes NAME.py with a test and presets into a folder (NAME by default); returns the files, the kit first."""
    _check_name(name)
    place = Path(name if folder is None else folder)
    files = {
        "template.py": f"{name}.py",
        "test_template.py": f"test_{name}.py",
        "small.toml": f"presets/{name}/small.toml",
        "supervised-small.toml": f"presets/{name}/supervised-small.toml",
    }
    targets = {source: place / target for source, target in files.items()}
    there = [str(path) for path in targets.values() if path.exists()]
    require(not there, f"{', '.join(there[:1])} is there already. Choose another name or --folder.")
    check_writable(place, "--folder")
    for source, target in targets.items():
        text = _renamed((_TEMPLATE / source).read_text(), name)
        write_atomically(target, lambda path, text=text: path.write_text(text))  # type: ignore[misc]
    return list(targets.values())


def _check_name(name: str) -> None:
    """Raises unless a file and a kit can be called so."""
    proper = name.isidentifier() and name.islower() and not keyword.iskeyword(name)
    require(proper, f"A kit's name must be one word of small letters, digits and underscores, got {name!r}.")
    require(name not in kit_names(), f"There is a kit called `{name}` already. Choose another name.")
    require(
        find_spec(name) is None,
        f"There is a Python module called `{name}` already, which would be imported instead. Choose another name.",
    )


def _renamed(text: str, name: str) -> str:
    camel = "".join(part.capitalize() for part in name.split("_"))
    return text.replace("Template", camel).replace(NAME, name)
