"""Delivers events to callbacks, in file order or sorted, with the debug output of the library between them."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from satview.events import wire
from satview.formats.kev.slots.batch import Batch
from satview.formats.listing import head
from satview.formats.source import Source
from satview.traceparser.constants import Debug, Sort
from satview.traceparser.state import Registration, State


def say_head(state: State, source: Source) -> None:
    """Write header and system page to the debug stream, as far as its flags request them."""
    state.say(Debug.HEADER, head.LIBRARY_BANNER + head.HEADER_TITLE)
    is_all = state.debug_flags & Debug.ALL == Debug.ALL
    if state.debug_flags and state.debug_stream is not None:
        state.debug_stream.writelines(head.header_lines(source.header, is_vendor=True, is_verbose=is_all))
    if is_all:
        state.say(Debug.ALL, head.SYSPAGE_TITLE)
        if source.system is not None:
            state.say(Debug.ALL, "".join(head.syspage_lines(source.system, source.byte_order)))


def deliver(state: State, userdata: Any, source: Source) -> None:
    """Call back for every registered event."""
    start = state.registrations.get(0)
    if start is not None:
        _call(state, start, userdata, 0, 0, None)
    state.say(Debug.HEADER, head.EVENTS_TITLE)
    requested = np.zeros(wire.CODE_COUNT, np.bool_)
    requested[[code for code in state.registrations if code]] = True
    is_first = True
    selected: list[tuple[Batch, NDArray[np.intp]]] = []
    for batch in source.events:
        if is_first and len(batch):
            state.first_cycles = state.previous_time_cycles = state.time_cycles = int(batch.time_cycles[0])
            is_first = False
        rows = np.flatnonzero(requested[batch.code])
        if start is not None:
            rows = _with_empty(batch, rows)
        if state.sort == Sort.SORT:
            selected.append((batch, rows))
        elif state.debug_flags & Debug.ALL == Debug.ALL:
            _deliver_with_slots(state, userdata, source, batch, rows)
        else:
            _deliver_rows(state, userdata, source, batch, rows)
    if selected:
        _deliver_sorted(state, userdata, source, selected)


def _deliver_rows(state: State, userdata: Any, source: Source, batch: Batch, rows: NDArray[np.intp]) -> None:
    """Call back for some events of a batch."""
    words = _as_in_file(batch.words, source)
    code, times = batch.code, batch.time_cycles
    for row in rows.tolist():
        if row < 0:
            _deliver_empty(state, userdata, source, batch, ~row)
            continue
        state.time_cycles = int(times[row])
        buffer = words[batch.start[row] : batch.start[row + 1]]
        registration = state.registrations[int(code[row])]
        _call(state, registration, userdata, int(batch.header[row]), int(batch.stamp[row]), buffer)
        state.previous_time_cycles = state.time_cycles


def _deliver_empty(state: State, userdata: Any, source: Source, batch: Batch, slot: int) -> None:
    """Call back for a slot of class EMPTY, which is no event: its time is that of the event before it."""
    header, stamp = batch.slots[slot, :2].tolist()
    words = _as_in_file(batch.slots[slot, 2:4], source)
    _call(state, state.registrations[0], userdata, header, stamp, words)


def _with_empty(batch: Batch, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return rows and, as ~position, the empty slots of a batch, in the order of the file."""
    empty = np.flatnonzero(batch.slots[:, 0] == 0)
    order = np.argsort(np.concatenate((batch.last_slot[rows], empty)), kind="stable")
    return np.concatenate((rows, ~empty))[order]


def _deliver_with_slots(state: State, userdata: Any, source: Source, batch: Batch, rows: NDArray[np.intp]) -> None:
    """Write every slot to the debug stream, and call back for the event that it completes."""
    texts = head.slot_lines(batch.slots, source.byte_order)
    for slot in batch.stray_tails.tolist():
        texts[slot] += head.stray_line(int(batch.slots[slot, 0]))
    done = 0
    for row in rows.tolist():
        last = (int(batch.last_slot[row]) if row >= 0 else ~row) + 1
        state.say(Debug.ALL, "".join(texts[done:last]))
        done = last
        _deliver_rows(state, userdata, source, batch, np.array([row]))
    state.say(Debug.ALL, "".join(texts[done:]))


def _deliver_sorted(
    state: State, userdata: Any, source: Source, selected: list[tuple[Batch, NDArray[np.intp]]]
) -> None:
    times = np.concatenate([_times_of(batch, rows) for batch, rows in selected])
    positions = [(batch, int(row)) for batch, rows in selected for row in rows]
    for at in np.argsort(times, kind="stable").tolist():
        batch, row = positions[at]
        _deliver_rows(state, userdata, source, batch, np.array([row]))


def _times_of(batch: Batch, rows: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return the times of what is delivered of a batch; an empty slot has that of what is before it."""
    if not len(batch):
        return np.zeros(len(rows), np.int64)
    times = batch.time_cycles[np.maximum(rows, 0)]
    before = np.maximum.accumulate(np.where(rows >= 0, np.arange(len(rows)), -1))
    return np.where((rows >= 0) | (before < 0), times, times[np.maximum(before, 0)])


def _as_in_file(words: NDArray[np.uint32], source: Source) -> NDArray[np.uint32]:
    """Return payload words as a C program finds them in memory: those of a foreign byte order are not swapped."""
    unswapped = words.byteswap() if source.byte_order != sys.byteorder else words.view()
    unswapped.setflags(write=False)
    return unswapped


def _call(
    state: State, registration: Registration, userdata: Any, header: int, time: int, buffer: NDArray[np.uint32] | None
) -> None:
    state.now = (wire.class_of(header), wire.event_of(header))
    data = registration.userdata if registration.userdata is not None else userdata
    result = registration.function(state, data, header, time, buffer, 0 if buffer is None else len(buffer))
    state.previous, state.previous_return = state.now, int(result or 0)
