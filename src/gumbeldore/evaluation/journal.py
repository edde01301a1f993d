"""Finished answers of a method, kept in a file: a header that says whose they are, then one line of JSON per answer.

Each line ends with a checksum and is appended by one write, so a killed process leaves whole lines and at most one cut-off. Reading
executes nothing, and takes a line only if checksum and form are right. Whoever uses an answer verifies its solution once more.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gumbeldore.evaluation.methods import Answer, Method, Point
from gumbeldore.files import write_atomically

_FORMAT = "gumbeldore-answers-1"

Key = tuple[str, int]  # the digest of an instance, the seed


class Journal:
    """The answers of one method to any instances."""

    def __init__(self, folder: Path, method: Method) -> None:
        plain = "".join(letter if letter.isalnum() or letter in "-.=" else "-" for letter in method.name)[:60]
        found = sorted(folder.glob(f"*{method.digest[:16]}.jsonl"))
        self.path = found[0] if found else folder / f"{plain}-{method.digest[:16]}.jsonl"
        self.header = {"format": _FORMAT, "method": method.digest, "identity": method.identity}
        self.damaged = 0  # lines that were not taken
        self._lines: dict[Key, str] = {}
        if self.path.exists():
            self._read()

    def __contains__(self, key: Key) -> bool:
        return key in self._lines

    def __getitem__(self, key: Key) -> Answer:
        return _answer(_checked(self._lines[key]))

    def add(self, answers: Mapping[Key, Answer]) -> None:
        """Keeps answers, on disk too."""
        lines = {key: _line({"instance": key[0], "seed": key[1], **asdict(answer)}) for key, answer in answers.items()}
        if not self._lines and not self.path.exists():
            self._rewrite()
        with open(self.path, "a", encoding="utf-8") as handle:
            handle.write("".join(lines.values()))
        self._lines |= lines

    def forget(self, key: Key) -> None:
        """Drops an answer that has proved wrong."""
        del self._lines[key]
        self.damaged += 1

    def _read(self) -> None:
        header, *lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True) or [""]
        ours = _checked(header) == json.loads(json.dumps(self.header))
        for line in lines:
            content = _checked(line) if ours else None
            if content is None or _answer_or_none(content) is None:
                self.damaged += 1
            else:
                self._lines[content["instance"], content["seed"]] = line
        self.damaged += not ours
        if self.damaged:
            self._rewrite()

    def _rewrite(self) -> None:
        text = "".join([_line(self.header), *self._lines.values()])
        write_atomically(self.path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def _line(content: dict[str, Any]) -> str:
    text = json.dumps(content, separators=(",", ":"))
    return f"{text} {_checksum(text)}\n"


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _checked(line: str) -> Any:
    """The content of a whole line whose checksum is right, else None."""
    text, _, checksum = line.removesuffix("\n").rpartition(" ")
    return json.loads(text) if line.endswith("\n") and checksum == _checksum(text) else None


def _answer_or_none(content: Any) -> Answer | None:
    try:
        return _answer(content) if isinstance(content["instance"], str) and isinstance(content["seed"], int) else None
    except (KeyError, TypeError, ValueError):
        return None


def _answer(content: Any) -> Answer:
    points = [Point(int(p["sequences"]), int(p["evaluations"]), float(p["objective"])) for p in content["curve"]]
    return Answer(tuple(int(action) for action in content["actions"]), float(content["seconds"]), tuple(points))
