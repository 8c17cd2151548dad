"""Where arguments are in payloads, as tables for C: what `satview.events` decides, requested every size and variant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events import variants
from satview.events.layout import Part
from satview.events.spec import Release
from satview.export.c_text import constants

_MOST_WORDS: Final = 64  # payloads longer than this end in a text: their arguments are where those of this size are
_ENDLESS: Final = 0xFFFF

Find = Callable[[int, int, int], Part | None]


def offset_rows(release: Release, codes: Iterable[int], find: Find) -> list[str]:
    """Return the rows of a `struct position` table.

    Args:
        release: Of the events.
        codes: The events, ascending.
        find: Says where the argument is, for a code, a word count and a variant.
    """
    alike: list[tuple[int, int, list[str]]] = []  # first and last code, where it is
    for code in codes:
        rows = [*_rows_of(release, code, find)]
        if alike and alike[-1][1] == code - 1 and alike[-1][2] == rows:
            alike[-1] = (alike[-1][0], code, rows)
        elif rows:
            alike.append((code, code, rows))
    return [f"{{0x{first:x}, 0x{last:x}, {row}}}" for first, last, rows in alike for row in rows]


def _rows_of(release: Release, code: int, find: Find) -> Iterator[str]:
    """Yield variant, least and most words of payloads that have something at one position, and the position."""
    for variant in _variants_of(release, code):
        least, before = 2, _position(find(code, 2, variant))
        for count in (*range(4, _MOST_WORDS + 2, 2), 0):
            position = _position(find(code, count, variant)) if count else ""
            if position == before and count:
                continue
            if before:
                yield f"{variant}, {least}, {count - 2 if count else _ENDLESS}, {before}"
            least, before = count, position


def _variants_of(release: Release, code: int) -> tuple[int, ...]:
    if variants.is_exit(code):
        return (variants.BY_COUNT, *variants.FAILURES)
    counted, most = variants.counted_call(release)
    return tuple(range(most + 1)) if code == counted else (variants.BY_COUNT,)


def _position(part: Part | None) -> str:
    return "" if part is None else f"{part.word}, {part.words}, {int(part.is_signed)}"


def code_ranges(table: NDArray[np.bool_]) -> list[str]:
    """Return the first and the last code of every range that is set in a table of codes, as rows for C."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], table.view(np.int8), [0]))))
    pairs = zip(edges[::2].tolist(), (edges[1::2] - 1).tolist(), strict=True)
    return [f"{{0x{first:x}, 0x{last:x}}}" for first, last in pairs]


def variant_tables(release: Release) -> list[str]:
    """Return what `variant_of()` needs to know of a release."""
    exits_64, values_64 = variants.wide_exits(release)
    counted, most = variants.counted_call(release)
    names = ("BY_COUNT", "FAILED", "FAILED_64", "FAILED_UNKNOWN", "DOUBTFUL", "LAST_ERRNO")
    known = {name: getattr(variants, name) for name in names} | {"COUNTED_CALL": counted, "COUNTED_MOST": most}
    nothing = ["{1, 0}"]  # C has no empty tables
    return [
        f"enum {{ {', '.join(f'{name} = {value}' for name, value in known.items())} }};",
        "/* Exits of calls with 64-bit values, and those whose first value is one. */",
        *constants("uint16_t exits_64[][2]", code_ranges(exits_64) or nothing),
        *constants("uint16_t values_64[][2]", code_ranges(values_64) or nothing),
        "",
    ]
