"""The marks that a flight recorder adds to a trace: user events with a text, or keys of the header.

A mark shows where a trigger hit. A kernel inserts the user event right after the event that hit, an event handler right
before it. A recorder that only watches a stream cannot insert events, and stores the time in the header.
"""

from __future__ import annotations

import re
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from satview.events import wire
from satview.events.variants import user_text
from satview.store.trace import Trace

MARK_EVENT: Final = wire.EVENT_MASK
"""Number of the user event of a mark: the highest number of a user event."""
_MARK: Final = re.compile(r"#(?P<number>\d{7}) trigger: (?P<text>.+)", re.DOTALL)
_MOST_MARKS: Final = 10_000_000  # mark numbers are modulo this
_NUMBER_BYTES: Final = 8  # size of `#` and the number, all in the first slot
HEADER_MARK: Final = "CAPTURE_MARK_"
"""Start of the header keys of marks, before a number from 0; the value is a time in cycles and a text."""
HEADER_MARKS_MAX: Final = 100
_MARK_IN_HEADER: Final = re.compile(r"(\d{1,19}) (.+)")
_MARK_CODE: Final = wire.WireClass.USER << wire.CLASS_SHIFT | MARK_EVENT


def mark_text(number: int, text: str) -> str:
    """Return the text of the user event of a mark.

    Args:
        number: Number of earlier marks in the recording.
        text: Text of the mark from the rule.
    """
    return f"#{number % _MOST_MARKS:07} trigger: {text}"


def mark_number(words: tuple[int, int], byte_order: Literal["little", "big"]) -> int | None:
    """Return the number of a mark from the two words of its first slot; None if the event is not a mark."""
    raw = b"".join(word.to_bytes(4, byte_order) for word in words)
    return int(raw[1:]) if raw[:1] == b"#" and raw[1:_NUMBER_BYTES].isdigit() else None


def is_mark(heads: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return for header words of slots whether the slot may be the first of a mark's event."""
    codes = heads & (wire.CODE_MASK | 3 << wire.STRUCT_SHIFT)
    return np.asarray(codes == (_MARK_CODE | wire.Struct.COMBINE_BEGIN << wire.STRUCT_SHIFT))


def recorded_marks(trace: Trace, limit: int = 1000) -> list[tuple[int, str]]:
    """Return the marks that a recorder added to a trace: event rows, ascending, and texts.

    Args:
        trace: The events.
        limit: Maximum number of marks; later ones are left out.
    """
    marks = []
    for number in range(HEADER_MARKS_MAX):
        mark = _MARK_IN_HEADER.fullmatch(trace.header.get(f"{HEADER_MARK}{number}") or "")
        if mark is None or not len(trace.events):
            break
        row = int(np.searchsorted(trace.events.time_cycles, min(int(mark[1]), np.iinfo(np.int64).max)))
        marks.append((min(row, len(trace.events) - 1), mark[2]))
    if not trace.release.is_qnx or not trace.code_counts[_MARK_CODE]:
        return marks
    for row in np.flatnonzero(trace.events.code == _MARK_CODE)[:limit].tolist():
        text = user_text(trace.payloads.raw(row))
        if text is not None and (mark := _MARK.fullmatch(text)):
            marks.append((row, mark["text"]))
    return sorted(marks)[:limit]
