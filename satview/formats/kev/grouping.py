"""Groups the slots of a chunk into events where the compiled core is missing."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events import wire
from satview.formats.kev.decoded import Parts

KIND_SHIFT: Final = np.uint32(wire.STRUCT_SHIFT)
_FEW: Final = 1 << 8
_LONGEST_TAIL: Final = 1 << 16  # a chunk ends where an event begins, if one begins that near its end


def usable_length(is_event: NDArray[np.bool_], unmatched: NDArray[np.intp], headers: NDArray[np.uint32]) -> int:
    """Return where to end the chunk: where its last group begins, for that may go on in the next chunk."""
    n = len(headers)
    # A few slots decide it but where there are long events, or BUFFER events in a row.
    first = max(0, n - _FEW)
    last = np.flatnonzero(is_event[first:]) + first
    if not len(last[:-1]) or int(headers[last[0]]) & wire.CODE_MASK in (0, wire.CONTROL_BUFFER):
        first = max(0, n - _LONGEST_TAIL)
        last = np.flatnonzero(is_event[first:]) + first
    if not len(last):
        return n
    cut = max(int(last[-1]), int(unmatched[-1]) if len(unmatched) else 0)
    before = last[: np.searchsorted(last, cut)]
    # A BUFFER takes the time of the event after it, so the two stay together; and so do zero slots in a row.
    if len(before) and int(headers[before[-1]]) & wire.CODE_MASK in (0, wire.CONTROL_BUFFER):
        ends = np.flatnonzero((headers[before] != 0) & (headers[before] & wire.CODE_MASK != wire.CONTROL_BUFFER))
        first = int(ends[-1]) + 1 if len(ends) else 0
        # Where all of them are such, orphans may be in front of them; at 0 nothing would be done.
        if first < len(before) and before[first] > 0 and (len(ends) or n <= _LONGEST_TAIL):
            cut = int(before[first])
    return cut or n


def adjacent_slots(
    parts: Parts,
    start: int,
    first_row: int,
    part: NDArray[np.uint32],
    is_event: NDArray[np.bool_],
    at: NDArray[np.intp],
    unmatched: NDArray[np.intp],
    zeros: NDArray[np.intp],
    cut: NDArray[np.intp],
) -> NDArray[np.intp]:
    """Note open events, runs of tails and zero slots; return how many adjacent slots every event has, intp (events,).

    Args:
        parts: Receives what is noted.
        start: Slot of the file at which the chunk begins.
        first_row: Row of its first event.
        part: uint32 (n, 4), its slots.
        is_event: bool (n,), the slots at which events begin.
        at: These slots.
        unmatched: Slots at which runs of tails begin that do not follow their event.
        zeros: Slots of zeros.
        cut: Behind which slots an end lacks, as `combine.link` gives them.
    """
    length = len(part)
    # Slots up to the next event are its own, less those of zeros and of runs that belong to events further back.
    counts = np.empty(len(at), np.intp)
    np.subtract(at[1:], at[:-1], out=counts[:-1])
    counts[-1:] = length - at[-1:]
    others, sizes, before, cut = unmatched, unmatched, unmatched, cut[cut <= length]
    # Looking the few up in all events would take longer.
    begun = np.cumsum(is_event, dtype=np.int32) if len(others) or len(zeros) or len(cut) else at
    if len(zeros):
        others = np.sort(np.concatenate((unmatched, zeros)))
        parts.note_empty(start + zeros)
    if len(others):
        before = begun[others].astype(np.intp) - 1
        ends = np.full(len(others), length)
        is_inside = before + 1 < len(at)
        ends[is_inside] = at[before[is_inside] + 1]
        sizes = np.minimum(ends, np.append(others[1:], length)) - others
        is_behind = before >= 0
        np.subtract.at(counts, before[is_behind], sizes[is_behind])
        runs = part[others, 0] != 0
        others, sizes, before = others[runs], sizes[runs], before[runs]
    opened = _opened(at, others, cut, begun)
    if len(others) or len(opened):
        closes = part[others + sizes - 1, 0] >> KIND_SHIFT == wire.Struct.COMBINE_END
        runs = (others, sizes, before, closes)
        parts.note_unmatched(start, first_row, part, (at[opened], counts[opened], opened), runs)
    return counts


def _opened(
    at: NDArray[np.intp], runs: NDArray[np.intp], cut: NDArray[np.intp], begun: NDArray[np.integer]
) -> NDArray[np.intp]:
    """Return the events whose end is elsewhere in the file, or lost with a buffer.

    Args:
        at: Slots at which events begin.
        runs: Slots at which runs of tails begin.
        cut: Behind which slots an end lacks: that of an event, or of a run of tails.
        begun: (n,), how many events have begun up to each slot.
    """
    event = begun[cut - 1].astype(np.intp) - 1
    cut, event = cut[event >= 0], event[event >= 0]
    run = np.append(-1, runs)[np.searchsorted(runs, cut)]  # the last one that begins before it
    return event[at[event] > run]
