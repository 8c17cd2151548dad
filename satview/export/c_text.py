"""Foreign text in C source: the only two ways for it to get there.

Rules, their file names and the names of processes come from strangers, and the exported program runs as root. So text
goes into C through `comment()` or `literal()` alone. Both yield printable ASCII whatever they get: no line ends, no
backslash where a line ends, no trigraph, nothing that closes the comment or the string early.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_LINE: Final = 100
_COMMENT_LIMIT: Final = 4000
_MARKS: Final = re.compile(r"\*(?=/)|/(?=\*)|\?(?=\?)")
_PLAIN: Final = re.compile(r"[ !#->@-\[\]-~]")  # printable ASCII without quotation mark, question mark, backslash


def comment(text: str, indent: str = "") -> list[str]:
    """Return text as C comments, one per line, each closed on its line.

    What is not printable ASCII becomes its number in brackets; long text is cut.
    """
    shown = "".join(char if " " <= char <= "~" else f"<{ord(char):x}>" for char in text[:_COMMENT_LIMIT])
    shown += " ..." if len(text) > _COMMENT_LIMIT else ""
    shown = _MARKS.sub(lambda found: found.group() + " ", shown)
    # Cutting makes no new marks: every piece has a blank on both sides.
    return [f"{indent}/* {shown[i : i + _LINE]} */" for i in range(0, len(shown), _LINE)]


def literal(text: str) -> str:
    """Return text as a C string literal of its UTF-8 bytes, quotation marks included.

    Every byte that is not plain ASCII is written as three octal digits, which no digit after them can change.
    """
    data = text.encode("utf-8", "replace").decode("latin-1")
    shown = (char if _PLAIN.fullmatch(char) else f"\\{ord(char):03o}" for char in data)
    return f'"{"".join(shown)}"'


def byte_count(text: str) -> int:
    """Return how many bytes `literal()` of a text represents, without the closing NUL."""
    return len(text.encode("utf-8", "replace"))


def constants(declaration: str, values: Sequence[str]) -> list[str]:
    """Return the definition of a constant table; the values are numbers and lists of numbers."""
    lines = [""]
    for value in values:
        if len(lines[-1]) + len(value) > _LINE and lines[-1]:
            lines.append("")
        lines[-1] += f"{' ' if lines[-1] else ''}{value},"
    if len(lines) == 1 and len(declaration) + len(lines[0]) < _LINE:
        return [f"static const {declaration} = {{{lines[0].removesuffix(',')}}};"]
    return [f"static const {declaration} = {{", *(f"    {line}" for line in lines), "};"]
