"""The functions of the library. They return what the C functions return; `state.errno` holds what errno would.

    def on_thread(state, userdata, header, time, buffer, length):
        userdata.append(header & 0x3FF)

    found = []
    state = traceparser_init(None)
    traceparser_cs_range(state, found, on_thread, 10, 1, 1 << 25)
    traceparser(state, None, "trace.kev")
    traceparser_destroy(state)

Errors of a trace are return values here, as in C; everything else raises as usual in Python. `docs/traceparser.md` is
the guide for ported programs.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import TraceFormatError
from satview.base.process import standard_input
from satview.base.time import Clock
from satview.events import wire
from satview.events.class_table import external_classes, plain_classes
from satview.events.spec import Release
from satview.events.wire import WireClass
from satview.formats.kev.stream import Batch
from satview.formats.listing import head
from satview.formats.source import TraceSource, source_of
from satview.traceparser.constants import ERROR_TEXTS, Debug, Error, Info, Sort, info_key

# The state of a parse: what the C library keeps behind its opaque pointer.


Callback = Callable[["State", Any, int, int, "NDArray[np.uint32] | None", int], int | None]


@dataclass(slots=True)
class Registration:
    """A callback and the user data it was registered with."""

    function: Callback
    userdata: Any


@dataclass(slots=True)
class State:
    """State of a parse; made by `traceparser_init`.

    Attributes:
        release: Defines the external classes and events: 8.0 numbers thread states, others give them as bits.
        is_strict: Refuse what the vendor's library refuses: files below version 1.01, unclear byte order.
        errno: Error number of the C library after a call that failed.
    """

    release: Release = Release.QNX_7
    is_strict: bool = False
    errno: int = 0
    error: Error = Error.UNKNOWN_CLASS
    debug_stream: TextIO | None = None
    debug_flags: int = 0
    sort: Sort = Sort.NOSORT
    registrations: dict[int, Registration] = field(default_factory=dict)
    source: TraceSource | None = None
    now: tuple[int, int] = (0, 0)
    previous: tuple[int, int] = (0, 0)
    previous_return: int = 0
    time_cycles: int = 0
    previous_time_cycles: int = 0
    first_cycles: int = 0
    file: BinaryIO | None = None

    def fail(self, error: Error) -> int:
        """Note an error and return -1."""
        self.error, self.errno = error, errno.EINVAL
        self.say(Debug.ERRORS, f"TRACEPARSER: {ERROR_TEXTS.get(error, error.name)}\n")
        return -1

    def say(self, flag: int, text: str) -> None:
        """Write to the debug stream if all bits of a flag are on."""
        if self.debug_stream is not None and self.debug_flags & flag == flag:
            self.debug_stream.write(text)


# Delivers events to callbacks, in file order or sorted, with the debug output of the library between them.


def say_head(state: State, source: TraceSource) -> None:
    """Write header and system page to the debug stream, as far as its flags request them."""
    state.say(Debug.HEADER, head.LIBRARY_BANNER + head.HEADER_TITLE)
    is_all = state.debug_flags & Debug.ALL == Debug.ALL
    if state.debug_flags and state.debug_stream is not None:
        state.debug_stream.writelines(head.header_lines(source.header, is_vendor=True, is_verbose=is_all))
    if is_all:
        state.say(Debug.ALL, head.SYSPAGE_TITLE)
        if source.system is not None:
            state.say(Debug.ALL, "".join(head.syspage_lines(source.system, source.byte_order)))


def deliver(state: State, userdata: Any, source: TraceSource) -> None:
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


def _deliver_rows(state: State, userdata: Any, source: TraceSource, batch: Batch, rows: NDArray[np.intp]) -> None:
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


def _deliver_empty(state: State, userdata: Any, source: TraceSource, batch: Batch, slot: int) -> None:
    """Call back for a slot of class EMPTY, which is no event: its time is that of the event before it."""
    header, stamp = batch.slots[slot, :2].tolist()
    words = _as_in_file(batch.slots[slot, 2:4], source)
    _call(state, state.registrations[0], userdata, header, stamp, words)


def _with_empty(batch: Batch, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return rows and, as ~position, the empty slots of a batch, in the order of the file."""
    empty = np.flatnonzero(batch.slots[:, 0] == 0)
    order = np.argsort(np.concatenate((batch.last_slot[rows], empty)), kind="stable")
    return np.concatenate((rows, ~empty))[order]


def _deliver_with_slots(state: State, userdata: Any, source: TraceSource, batch: Batch, rows: NDArray[np.intp]) -> None:
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
    state: State, userdata: Any, source: TraceSource, selected: list[tuple[Batch, NDArray[np.intp]]]
) -> None:
    times = np.concatenate([_times_of(batch, rows) for batch, rows in selected])
    positions = [(batch, int(row)) for batch, rows in selected for row in rows]
    for event in np.argsort(times, kind="stable").tolist():
        batch, row = positions[event]
        _deliver_rows(state, userdata, source, batch, np.array([row]))


def _times_of(batch: Batch, rows: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return the times of what is delivered of a batch; an empty slot has that of what is before it."""
    if not len(batch):
        return np.zeros(len(rows), np.int64)
    times = batch.time_cycles[np.maximum(rows, 0)]
    before = np.maximum.accumulate(np.where(rows >= 0, np.arange(len(rows)), -1))
    return np.where((rows >= 0) | (before < 0), times, times[np.maximum(before, 0)])


def _as_in_file(words: NDArray[np.uint32], source: TraceSource) -> NDArray[np.uint32]:
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


# From external classes and events, which programs name, to the internal numbers of the header word.


ALL_EVENTS = 0xFFFFFFFF
_PLAIN = {"CONTROL": WireClass.CONTROL, "SYSTEM": WireClass.SYSTEM, "USER": WireClass.USER, "COMM": WireClass.COMM} | {
    plain.name: WireClass(plain.internal) for plain in plain_classes()
}
_KERNEL = {
    "KERCALL": (0, wire.KER_EXIT_OFFSET),
    "KERCALLENTER": (0,),
    "KERCALLEXIT": (wire.KER_EXIT_OFFSET,),
    "KERCALLINT": (wire.KER_INT_OFFSET,),
}
_INTERRUPT = {
    "INT": range(wire.EVENT_MASK + 1),  # with forms that no table names
    "INTENTER": (1, 5),
    "INTEXIT": (2,),
    "INT_HANDLER_ENTER": (3, 6),
    "INT_HANDLER_EXIT": (4,),
}


class RegistrationError(ValueError):
    """A class or event that the library does not take."""


def class_name(number: int, release: Release) -> str:
    """Return the name of an external class.

    Raises:
        RegistrationError: The release has none of that number.
    """
    for name, known in external_classes(release).items():
        if known == number:
            return name
    raise RegistrationError(f"release {release} has no class {number}")


def codes_of(number: int, event: int, release: Release) -> list[int]:
    """Return the internal codes of one external event.

    Raises:
        RegistrationError: The class cannot be registered event by event, or there is no such event.
    """
    name = class_name(number, release)
    if name in _INTERRUPT:
        raise RegistrationError("interrupt classes are registered as a whole range only")
    return list(_codes(name, event, event, release))


def codes_of_range(number: int, lowest: int, highest: int, release: Release) -> list[int]:
    """Return the internal codes of a range of external events, both ends included.

    Raises:
        RegistrationError: As for `codes_of`; interrupt classes take 0 to 0xffffffff only.
    """
    name = class_name(number, release)
    if name in _INTERRUPT:
        if (lowest, highest) != (0, ALL_EVENTS):
            raise RegistrationError("interrupt classes take the range 0 to 0xffffffff only")
        return [wire.code(WireClass.INT, event) for event in _INTERRUPT[name]]
    return list(_codes(name, lowest, highest, release))


def _codes(name: str, lowest: int, highest: int, release: Release) -> Iterator[int]:
    if name == "EMPTY":
        if (lowest, highest) != (0, 0):
            raise RegistrationError("class 0 has event 0 only")
        yield 0
        return
    for offset in _KERNEL.get(name, ()):
        yield from _span(WireClass.KER_CALL, lowest + offset, highest + offset)
    if name in _PLAIN:
        yield from _span(_PLAIN[name], lowest, highest)
    if name in ("THREAD", "VTHREAD"):
        offset = wire.VTHREAD_OFFSET if name == "VTHREAD" else 0
        # 8.0 numbers states; before, an event is one bit.
        ends = (lowest, highest) if release == Release.QNX_8 else (_bit(lowest), _bit(highest))
        yield from _span(WireClass.PR_TH, ends[0] + offset, ends[1] + offset)
    if name == "PROCESS":
        yield from _span(WireClass.PR_TH, (_bit(lowest) + 1) << 6, (_bit(highest) + 1) << 6)


def _span(wire_class: int, lowest: int, highest: int) -> Iterator[int]:
    if not 0 <= lowest <= wire.EVENT_MASK or not 0 <= highest <= wire.EVENT_MASK:
        raise RegistrationError("events go from 0 to 1023")
    return (wire.code(wire_class, event) for event in range(lowest, highest + 1))


def _bit(value: int) -> int:
    """Return the number of the lowest set bit."""
    if value <= 0:
        raise RegistrationError("an event of this class is one bit")
    return (value & -value).bit_length() - 1


_FIRST_VERSION = (1, 1)
_NEW_MODES = (Info.ERROR_STR, Info.CLK_MSB, Info.CLK_INTIAL, Info.CLK, Info.CLK_DELTA, Info.TIME_DELTA)


def traceparser_init(
    state: State | None = None, *, release: Release | str = Release.QNX_7, is_strict: bool = False
) -> State:
    """Make a state, or clear one that is to be used again.

    Args:
        state: None for a new one.
        release: `6.x`, `6.6`, `7.x` or `8.0`.
        is_strict: See `State`.
    """
    if state is None:
        return State(Release(release), is_strict)
    state.__init__(Release(release), is_strict)  # type: ignore[misc]
    return state


def traceparser_destroy(state: State | None) -> None:
    """Close the file and forget everything; returns None, to be assigned to the variable that held the state."""
    if state is not None:
        _close(state)
        state.registrations.clear()
        state.source = None


def traceparser_debug(state: State | None, stream: TextIO | None, flags: int) -> int:
    """Send debug output to a stream; `flags` is a sum of `Debug`. Returns 0, or -1 if one of them is None."""
    if state is None or stream is None:
        if state is not None:
            state.errno = errno.EINVAL
        return -1
    state.debug_stream, state.debug_flags = stream, flags
    return 0


def traceparser_cs(state: State | None, userdata: Any, function: Callback, event_class: int, event: int) -> int:
    """Register a callback for one external class and event; a later one replaces it. Returns 0 or -1."""
    return _register(state, userdata, function, lambda release: codes_of(event_class, event, release))


def traceparser_cs_range(
    state: State | None, userdata: Any, function: Callback, event_class: int, first: int, last: int
) -> int:
    """Register a callback for a range of events of an external class, both ends included. Returns 0 or -1."""
    return _register(state, userdata, function, lambda release: codes_of_range(event_class, first, last, release))


def _register(state: State | None, userdata: Any, function: Callback, codes: Callable[[Release], list[int]]) -> int:
    if state is None:
        return -1
    try:
        codes_wanted = codes(state.release)
    except RegistrationError:
        return state.fail(Error.UNKNOWN_ERROR)
    for code in codes_wanted:
        state.registrations[code] = Registration(function, userdata)
    return 0


def traceparser_sort(state: State | None, order: int) -> int:
    """Choose the order of delivery (8.0): `Sort.NOSORT`, as in the file, or `Sort.SORT`, by time. Returns 0 or -1."""
    if state is None:
        return -1
    try:
        state.sort = Sort(order)
    except ValueError:
        return state.fail(Error.UNKNOWN_ERROR)
    return 0


def traceparser_get_info(state: State | None, mode: int, length: list[int] | None = None) -> Any:
    """Return a header value or a part of the state.

    Args:
        state: During or after `traceparser`.
        mode: One of `Info`.
        length: Receives the length in bytes as its only element. Of SYSPAGE it is the length of the text of
            TRACE_SYSPAGE_LEN, as in the vendor's library.

    Returns:
        Text of a header key, bytes of the system page, a number; None on an error.
    """
    if state is None:
        return None
    value = _info(state, mode)
    if value is not None and length is not None:
        text = state.source.header.get("SYSPAGE_LEN") if mode == Info.SYSPAGE and state.source else value
        length[:] = [len(text.encode("utf-8", "surrogateescape")) if isinstance(text, str) else 4]
    return value


def _info(state: State, mode: int) -> Any:
    if (key := info_key(mode, state.release)) is not None:
        return _header_value(state, key)
    is_old = state.release in (Release.QNX_6, Release.QNX_6_6)
    if mode not in Info.__members__.values() or (mode in _NEW_MODES and is_old):
        state.fail(Error.WRONG_H_KEYWORD)
        return None
    values: dict[int, Callable[[], Any]] = {
        Info.SYSPAGE: lambda: state.source.system_page if state.source else None,
        Info.ENDIAN_CONV: lambda: int(state.source is not None and state.source.byte_order != sys.byteorder),
        Info.NOW_CALLBACK_CLASS: lambda: state.now[0],
        Info.NOW_CALLBACK_EVENT: lambda: state.now[1],
        Info.PREV_CALLBACK_CLASS: lambda: state.previous[0],
        Info.PREV_CALLBACK_EVENT: lambda: state.previous[1],
        Info.PREV_CALLBACK_RETURN: lambda: state.previous_return,
        Info.DEBUG: lambda: state.debug_flags,
        Info.ERROR: lambda: int(state.error),
        Info.ERROR_STR: lambda: ERROR_TEXTS.get(state.error, state.error.name),
        Info.CLK_MSB: lambda: state.time_cycles >> 32,
        Info.CLK_INTIAL: lambda: state.first_cycles,
        Info.CLK: lambda: state.time_cycles,
        Info.CLK_DELTA: lambda: state.time_cycles - state.previous_time_cycles,
        Info.TIME_DELTA: lambda: _delta_ns(state),
    }
    return values[mode]()


def _header_value(state: State, key: str) -> str | None:
    if key in ("HEADER_BEGIN", "HEADER_END") and state.source is not None:
        return ""
    if state.source is None or all(name != key for name, _ in state.source.header.pairs):
        state.fail(Error.MISSING_FIELD)
        return None
    return state.source.header.get(key)


def _delta_ns(state: State) -> int:
    rate = state.source.cycles_per_s if state.source else 1
    return Clock(rate).duration_ns(state.time_cycles - state.previous_time_cycles)


def traceparser(state: State | None, userdata: Any, filename: str | Path) -> int:
    """Parse a trace and call the registered callbacks.

    A callback gets `(state, userdata, header, time, buffer, length)`: header and time as numbers, the payload as array
    of `length` words of 32 bits in the byte order of the file (see ENDIAN_CONV). Events come in file order, combine
    events when their last slot was read. The callback of class 0, event 0 is called before the first event with a
    buffer of None.

    Args:
        state: From `traceparser_init`.
        userdata: For callbacks that were registered with None.
        filename: A .kev file or a listing; `-` is standard input.

    Returns:
        0, or -1 with the error in `Info.ERROR`.
    """
    if state is None:
        return -1
    is_pipe = str(filename) == "-"
    if state.sort == Sort.SORT and is_pipe:
        return state.fail(Error.NOT_SEEKABLE)
    try:
        file: BinaryIO = standard_input() if is_pipe else Path(filename).open("rb")  # noqa: SIM115  -- _close does it
        state.file = None if is_pipe else file
        state.source = source_of(file, Path(filename))
    except (TraceFormatError, OSError):
        _close(state)
        return state.fail(Error.CANNOT_READ_IN_FILE)
    try:
        refusal = _refusal(state, state.source) if state.is_strict else None
        if refusal is not None:
            return state.fail(refusal)
        say_head(state, state.source)
        deliver(state, userdata, state.source)
    finally:
        _close(state)
    return 0


def _close(state: State) -> None:
    if state.file is not None:
        state.file.close()
        state.file = None


def _refusal(state: State, source: TraceSource) -> Error | None:
    """Return the error with which the vendor's library would refuse a file."""
    keys = {key for key, _ in source.header.pairs}
    if "MIDDLE_ENDIAN" in keys or not keys & {"LITTLE_ENDIAN", "BIG_ENDIAN"}:
        return Error.WRONG_ENDIAN_TYPE
    version = (source.header.number("VER_MAJOR") or 0, source.header.number("VER_MINOR") or 0)
    return Error.WRONG_FILE_VERSION if version < _FIRST_VERSION and state.is_strict else None
