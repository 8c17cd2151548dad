"""Tables as lines of text, for files and pipes: as the package for tables draws them, without its cost per cell.

That package takes 0.1 ms a cell, as long for the 400 threads of a trace as the trace takes to load.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from unicodedata import category, east_asian_width

_GAP: Final = "  "


def table_lines(heads: Sequence[str], rows: Sequence[Sequence[str]], is_right: Sequence[bool]) -> list[str]:
    """Return a heading and rows as lines, every column as wide as its widest text.

    Args:
        heads: What the columns are called.
        rows: Their texts, each on one line.
        is_right: Of each column, whether its texts end at the right edge.
    """
    columns = [
        _justified(column, right) for column, right in zip(zip(heads, *rows, strict=True), is_right, strict=True)
    ]
    return [_GAP.join(cells) for cells in zip(*columns, strict=True)]


def _justified(column: Sequence[str], is_right: bool) -> list[str]:
    if all(map(str.isascii, column)):
        width = max(map(len, column))
        return [text.rjust(width) if is_right else text.ljust(width) for text in column]
    widths = [sum(map(_cells, text)) for text in column]
    width = max(widths)
    gaps = [" " * (width - own) for own in widths]
    return [gap + text if is_right else text + gap for gap, text in zip(gaps, column, strict=True)]


def _cells(character: str) -> int:
    """Return how many cells of a terminal a character takes: two for a wide one, none for what joins the one before."""
    if character.isascii():
        return 1
    if category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1
