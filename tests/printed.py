"""The commands that the README and the documentation print."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path

from generated import pages

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if not {"_build", "generated", "jupyter_execute"} & set(page.parts)]

READERS = r" (RUN|NEW|FILE|ADDRESS|new|days/\w+|\S*places\.txt|\S+\.oplib)"
"""What a reader fills in, or has: files of a day's orders, places, a published file."""


@cache
def lines() -> list[str]:
    """All of blocks of commands, those that go on joined, without comments; variables before a command are left out."""
    texts = [*(page.read_text() for page in PAGES), *pages().values()]
    blocks = [block for text in texts for block in re.findall(r"^ *```bash\n(.*?)```", text, re.DOTALL | re.MULTILINE)]
    joined = [
        re.sub(r"^([A-Z_]+=\w+ )+", "", line.strip()) for block in blocks for line in block.replace("\\\n", " ").split("\n")
    ]
    return sorted({line for line in joined if line and not line.startswith("#")})


def braces(word: str) -> list[str]:
    """As a shell expands `a{1,2}b`."""
    found = re.search(r"\{([^{}]*,[^{}]*)\}", word)
    return [word] if found is None else [word[: found.start()] + each + word[found.end() :] for each in found[1].split(",")]


def commands() -> list[str]:
    """All that begin with our name, except for those with places to fill in, such as RUN, and about a reader's own files."""
    own = [shlex.split(line, comments=True)[1:] for line in lines() if line.startswith("gumbeldore ")]
    plain = {shlex.join(each for word in words for each in braces(word)) for words in own}
    return sorted(line for line in plain if not re.search(READERS, line))
