"""Our docstrings are plain text with single backticks and lists; this makes reStructuredText of them.

Signatures are shown as they are written, so that `Float[Tensor, "row action"]` stays readable; the fields of a dataclass come as a list
with the comments that stand beside them.
"""

from __future__ import annotations

import dataclasses
import inspect
import io
import re
import tokenize
from typing import Any

ITEM = re.compile(r"^(\s*)([-*]|\d+\.) ")


def restructured(lines: list[str]) -> list[str]:
    """The same text: code in double backticks, blank lines around lists, paragraphs with indented lines as blocks of code."""
    paragraphs = [part.split("\n") for part in re.split(r"\n\s*\n", "\n".join(lines).strip("\n")) if part.strip()]
    out: list[str] = []
    in_list = False
    for paragraph in paragraphs:
        items = [number for number, line in enumerate(paragraph) if ITEM.match(line)]
        indented = [line for line in paragraph if line.startswith("    ")]
        if items:
            before = paragraph[: items[0]]
            out += [*map(quoted, before), *([""] if before else []), *map(quoted, paragraph[items[0] :])]
        elif indented and not in_list:
            out += ["::", "", *(f"    {line}" for line in paragraph)]
        else:
            out += map(quoted, paragraph)
        out.append("")
        in_list = bool(items) or (in_list and paragraph[0].startswith(" "))
    return out


def quoted(line: str) -> str:
    """Single backticks are code; stars, bars and underscores outside of it are themselves."""
    parts = re.split(r"(`+[^`]+`+)", line)
    bullet = ITEM.match(line)
    text = ""
    for number, part in enumerate(parts):
        if part.startswith("`"):
            before = "\\ " if re.search(r"\w$", text) else ""
            after = "\\ " if re.match(r"\w", "".join(parts[number + 1 :])) else ""
            text += f"{before}``{part.strip('`')}``{after}"
        elif number == 0 and bullet:
            text += bullet[0] + escaped(part[bullet.end() :])
        else:
            text += escaped(part)
    return text


def escaped(text: str) -> str:
    return re.sub(r"(?<!\\)([*|])|_(?=\W|$)", lambda match: "\\" + match[0], text.replace("\\", "\\\\"))


def comments(cls: type) -> dict[str, str]:
    """What stands beside or below the fields of a dataclass: comments at the end of their lines, or strings after them."""
    try:
        source = inspect.getsource(cls)
    except (OSError, TypeError):
        return {}
    found: dict[str, str] = {}
    field = ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        line = token.line.strip()
        if begins := re.match(r"(\w+)\s*:", line):
            field = begins[1]
        elif re.match(r"(def|class|async def) |@", line):
            field = ""  # what follows is not said of a field
        if token.type == tokenize.COMMENT and line != token.string:
            found.setdefault(field, token.string.lstrip("#: "))
        if token.type == tokenize.STRING and line.startswith('"""') and field:
            found.setdefault(field, " ".join(token.string.strip('"').split()))
    return found


def fields(cls: type) -> list[str]:
    """The fields of a dataclass as a definition list."""
    said = {
        name: text for base in reversed(cls.__mro__) if dataclasses.is_dataclass(base) for name, text in comments(base).items()
    }
    lines = []
    for field in dataclasses.fields(cls):
        if field.name.startswith("_"):
            continue
        kind = field.type if isinstance(field.type, str) else getattr(field.type, "__name__", str(field.type))
        kind = axes(kind)
        lines += [f"- ``{field.name}: {kind}``" + (f": {quoted(said[field.name])}" if said.get(field.name) else "")]
    return ["", "Fields:", "", *lines, ""] if lines else []


class Written(str):
    """An annotation that is shown without quotes around it."""

    def __repr__(self) -> str:
        return str(self)


def shown(annotation: Any) -> Any:
    return Written(axes(annotation)) if isinstance(annotation, str) else annotation


def axes(annotation: str) -> str:
    """`Int[Tensor, "row"]`, without the blank that keeps a single axis from being taken for a name."""
    return re.sub(r"(['\"]) (\w+\1)", r"\1\2", annotation)


def as_written(signature: inspect.Signature) -> tuple[str, str | None]:
    """A signature with the annotations that the source has, without the class itself."""
    parameters = [each for name, each in signature.parameters.items() if name not in ("self", "cls")]
    parameters = [each.replace(annotation=shown(each.annotation)) for each in parameters]
    returns = signature.return_annotation
    text = str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty))
    text = re.sub(r"<factory>|<object object at [^>]*>|<(function|class|built-in function) '?([\w.]+)'?[^>]*>", "...", text)
    if returns is inspect.Signature.empty:
        return text, None
    return text, axes(returns) if isinstance(returns, str) else getattr(returns, "__name__", str(returns))


def process_docstring(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    if what == "class" and lines and lines[0].startswith(f"{thing.__name__}("):
        lines[:] = []  # the docstring that `dataclass` makes up
    lines[:] = restructured(lines)
    if what == "class" and dataclasses.is_dataclass(thing):
        lines += fields(thing)


def process_signature(app: Any, what: str, name: str, thing: Any, options: Any, signature: Any, returns: Any) -> Any:
    if what not in ("class", "function", "method"):
        return None
    try:
        text, result = as_written(inspect.signature(thing))
    except (ValueError, TypeError):
        return None
    return text, (None if what == "class" else result)


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", process_docstring)
    app.connect("autodoc-process-signature", process_signature)
    return {"parallel_read_safe": True}
