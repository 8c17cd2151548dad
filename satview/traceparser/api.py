"""The functions and numbers of the library, with the return values of C; `state.errno` stands for errno.

    def on_thread(state, userdata, header, time, buffer, length):
        userdata.append(header & 0x3FF)

    events = []
    state = traceparser_init(None)
    traceparser_cs_range(state, events, on_thread, 10, 1, 1 << 25)
    traceparser(state, None, "trace.kev")
    traceparser_destroy(state)

Errors in a trace are return values, as in C; other errors raise exceptions. `docs/traceparser.md` is the guide for
ported programs.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from pathlib import Path
from typing import Any, BinaryIO, Final, TextIO

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import TraceFormatError
from satview.base.process import standard_input
from satview.base.time import Clock
from satview.events import wire
from satview.events.spec import Release
from satview.events.wire import WireClass, external_classes, plain_classes
from satview.formats.kev.stream import Batch
from satview.formats.listing import model
from satview.formats.source import TraceSource, source_of

# Numbers of the traceparser library: information modes, errors, debug flags. Source: listing format, section 6.


class Info(IntEnum):
    """Information modes of `traceparser_get_info`; the C names have the prefix `_TRACEPARSER_INFO_`.

    Modes of 0 and above are header values. In 8.0, HEADER_END is 19 and 18 is NORMALIZEDN.
    """

    HEADER_BEGIN = 0
    FILE_NAME = 1
    DATE = 2
    VER_MAJOR = 3
    VER_MINOR = 4
    LITTLE_ENDIAN = 5
    BIG_ENDIAN = 6
    MIDDLE_ENDIAN = 7
    ENCODING = 8
    BOOT_DATE = 9
    CYCLES_PER_SEC = 10
    CPU_NUM = 11
    SYSNAME = 12
    NODENAME = 13
    SYS_RELEASE = 14
    SYS_VERSION = 15
    MACHINE = 16
    SYSPAGE_LEN = 17
    HEADER_END = 18
    SYSPAGE = -1
    ENDIAN_CONV = -2
    NOW_CALLBACK_CLASS = -3
    NOW_CALLBACK_EVENT = -4
    PREV_CALLBACK_CLASS = -5
    PREV_CALLBACK_EVENT = -6
    PREV_CALLBACK_RETURN = -7
    DEBUG = -8
    ERROR = -9
    ERROR_STR = -10  # this and the following: 7.1 on
    CLK_MSB = -13
    CLK_INTIAL = -14  # misspelt in the original too
    CLK = -15
    CLK_DELTA = -16
    TIME_DELTA = -17


NORMALIZEDN_8: Final = 18
HEADER_END_8: Final = 19


class Error(IntEnum):
    """Error numbers; the C names have the prefix `_TRACEPARSER_`. 0 is UNKNOWN_CLASS and also means no error.

    15 is UNKNOWN_ERROR up to 7.1 and INVALID_DATA in 8.0, where UNKNOWN_ERROR is 17.
    """

    UNKNOWN_CLASS = 0
    UNKNOWN_PR_TH_EVENT = 1
    UNKNOWN_CONTROL_EVENT = 2
    UNKNOWN_KER_CALL_EVENT = 3
    UNKNOWN_INT_EVENT = 4
    UNKNOWN_CONTAINER_EVENT = 5
    UNKNOWN_USR_EVENT = 6
    UNKNOWN_COMM_EVENT = 7
    NO_MORE_MEMORY = 8
    WRONG_H_KEYWORD = 9
    NULL_STATE_PTR = 10
    WRONG_ENDIAN_TYPE = 11
    CANNOT_READ_IN_FILE = 12
    WRONG_FILE_VERSION = 13
    MISSING_FIELD = 14
    UNKNOWN_ERROR = 15
    INVALID_DATA = 15
    NOT_SEEKABLE = 16  # 8.0
    UNKNOWN_ERROR_8 = 17


class Debug(IntFlag):
    """Flags of `traceparser_debug`; the C names have the prefix `_TRACEPARSER_DEBUG_`."""

    NONE = 0
    ERRORS = 1
    HEADER = 2
    SYSPAGE = 4
    EVENTS = 8
    ALL = 0xFFFFFFFF


class Sort(IntEnum):
    """Orders of delivery for `traceparser_sort` (8.0)."""

    NOSORT = 0
    SORT = 1


ERROR_TEXTS: Final = {
    Error.NO_MORE_MEMORY: "no memory left",
    Error.WRONG_H_KEYWORD: "no such information mode",
    Error.NULL_STATE_PTR: "there is no state",
    Error.WRONG_ENDIAN_TYPE: "the byte order keys of the header are missing or contradict each other",
    Error.CANNOT_READ_IN_FILE: "the file cannot be read, or ends before its events",
    Error.WRONG_FILE_VERSION: "the file is older than version 1.01",
    Error.MISSING_FIELD: "the header has no such key",
    Error.UNKNOWN_ERROR: "class or event cannot be registered",
    Error.NOT_SEEKABLE: "events of a pipe cannot be sorted",
}


def info_key(mode: int, release: Release) -> str | None:
    """Return the header key of an information mode; None if the mode is not a header value."""
    if release == Release.QNX_8 and mode in (NORMALIZEDN_8, HEADER_END_8):
        return "NORMALIZEDN" if mode == NORMALIZEDN_8 else "HEADER_END"
    return Info(mode).name if 0 <= mode <= Info.HEADER_END else None


def header_number(name: str) -> int | None:
    """Return the number of a name in <sys/traceparser.h>; None if there is no such name.

    `_TRACEPARSER_INFO_DATE` is an information mode, `_TRACEPARSER_DEBUG_ALL` a flag, `_TRACEPARSER_SORT` an order, any
    other name an error.
    """
    rest = name.removeprefix("_TRACEPARSER_")
    for prefix, kind in (("INFO_", Info), ("DEBUG_", Debug), ("", Sort), ("", Error)):
        if rest.startswith(prefix) and rest.removeprefix(prefix) in kind.__members__:
            return int(kind[rest.removeprefix(prefix)])
    return None


# The state of a parse, which is an opaque struct in the C library.


Callback = Callable[["State", Any, int, int, "NDArray[np.uint32] | None", int], int | None]


@dataclass(slots=True)
class Registration:
    """A callback and its user data."""

    function: Callback
    userdata: Any


@dataclass(slots=True)
class State:
    """State of a parse; created by `traceparser_init`.

    Attributes:
        release: Defines the external classes and events: thread states are numbers in 8.0, bits in other releases.
        is_strict: Whether to reject the files that QNX's library rejects: below version 1.01, or of unclear byte order.
        errno: Value of the C variable errno after a failed call.
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
        """Record an error and return -1."""
        self.error, self.errno = error, errno.EINVAL
        self.say(Debug.ERRORS, f"TRACEPARSER: {ERROR_TEXTS.get(error, error.name)}\n")
        return -1

    def say(self, flag: int, text: str) -> None:
        """Write to the debug stream if all bits of `flag` are enabled."""
        if self.debug_stream is not None and self.debug_flags & flag == flag:
            self.debug_stream.write(text)


# Delivery of events to callbacks, in file order or sorted by time, and the debug output of the library.


def say_head(state: State, source: TraceSource) -> None:
    """Write header and system page to the debug stream if its flags enable them."""
    state.say(Debug.HEADER, model.LIBRARY_BANNER + model.HEADER_TITLE)
    is_all = state.debug_flags & Debug.ALL == Debug.ALL
    if state.debug_flags and state.debug_stream is not None:
        state.debug_stream.writelines(model.header_lines(source.header, is_vendor=True, is_verbose=is_all))
    if is_all:
        state.say(Debug.ALL, model.SYSPAGE_TITLE)
        if source.system is not None:
            state.say(Debug.ALL, "".join(model.syspage_lines(source.system, source.byte_order)))


def deliver(state: State, userdata: Any, source: TraceSource) -> None:
    """Call the callbacks of all registered events."""
    start = state.registrations.get(0)
    if start is not None:
        _call(state, start, userdata, 0, 0, None)
    state.say(Debug.HEADER, model.EVENTS_TITLE)
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
    """Call the callbacks for some rows of a batch; a row below 0 is not an event but the empty slot `~row`."""
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
    """Call the callback for a slot of class EMPTY, which is not an event and leaves the current time unchanged."""
    header, stamp = batch.slots[slot, :2].tolist()
    words = _as_in_file(batch.slots[slot, 2:4], source)
    _call(state, state.registrations[0], userdata, header, stamp, words)


def _with_empty(batch: Batch, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return rows of events merged with the empty slots of a batch, as ~slot, in file order; intp (n,)."""
    empty = np.flatnonzero(batch.slots[:, 0] == 0)
    order = np.argsort(np.concatenate((batch.last_slot[rows], empty)), kind="stable")
    return np.concatenate((rows, ~empty))[order]


def _deliver_with_slots(state: State, userdata: Any, source: TraceSource, batch: Batch, rows: NDArray[np.intp]) -> None:
    """Write every slot to the debug stream, followed by the callback for the event that the slot completes."""
    texts = model.slot_lines(batch.slots, source.byte_order)
    for slot in batch.stray_tails.tolist():
        texts[slot] += model.stray_line(int(batch.slots[slot, 0]))
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
    """Return the times of rows from `_with_empty`, int64 (n,); an empty slot has the time of the event before it."""
    if not len(batch):
        return np.zeros(len(rows), np.int64)
    times = batch.time_cycles[np.maximum(rows, 0)]
    before = np.maximum.accumulate(np.where(rows >= 0, np.arange(len(rows)), -1))
    return np.where((rows >= 0) | (before < 0), times, times[np.maximum(before, 0)])


def _as_in_file(words: NDArray[np.uint32], source: TraceSource) -> NDArray[np.uint32]:
    """Return payload words in the byte order of the file, as in the C library's buffer, uint32 of the same shape."""
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


# Conversion of external classes and events, as used by programs, to the internal codes of the header word.


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
    "INT": range(wire.EVENT_MASK + 1),  # includes undocumented events
    "INTENTER": (1, 5),
    "INTEXIT": (2,),
    "INT_HANDLER_ENTER": (3, 6),
    "INT_HANDLER_EXIT": (4,),
}


class RegistrationError(ValueError):
    """A class or event cannot be registered."""


def class_name(number: int, release: Release) -> str:
    """Return the name of an external class; RegistrationError if the release has none with that number."""
    for name, known in external_classes(release).items():
        if known == number:
            return name
    raise RegistrationError(f"release {release} has no class {number}")


def codes_of(number: int, event: int, release: Release) -> list[int]:
    """Return the internal codes of one external event.

    Raises RegistrationError if the class cannot be registered event by event, or there is no such event.
    """
    name = class_name(number, release)
    if name in _INTERRUPT:
        raise RegistrationError("interrupt classes are registered as a whole range only")
    return list(_codes(name, event, event, release))


def codes_of_range(number: int, lowest: int, highest: int, release: Release) -> list[int]:
    """Return the internal codes of a range of external events, both ends included.

    Raises:
        RegistrationError: See `codes_of`; for interrupt classes only the range 0 to 0xffffffff is valid.
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
        # States are numbers in 8.0, bits in other releases.
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
    """Return a new state, or reset an existing state.

    Args:
        state: The state to reset; None = create a new state.
        release: `6.x`, `6.6`, `7.x` or `8.0`.
        is_strict: See `State`.
    """
    if state is None:
        return State(Release(release), is_strict)
    state.__init__(Release(release), is_strict)  # type: ignore[misc]
    return state


def traceparser_destroy(state: State | None) -> None:
    """Close the file and clear the state; return None, which the caller may assign to its variable."""
    if state is not None:
        _close(state)
        state.registrations.clear()
        state.source = None


def traceparser_debug(state: State | None, stream: TextIO | None, flags: int) -> int:
    """Set the stream and the `Debug` flags of debug output; return 0, or -1 if state or stream is None."""
    if state is None or stream is None:
        if state is not None:
            state.errno = errno.EINVAL
        return -1
    state.debug_stream, state.debug_flags = stream, flags
    return 0


def traceparser_cs(state: State | None, userdata: Any, function: Callback, event_class: int, event: int) -> int:
    """Register a callback for one external class and event, replacing an earlier callback; return 0 or -1."""
    return _register(state, userdata, function, lambda release: codes_of(event_class, event, release))


def traceparser_cs_range(
    state: State | None, userdata: Any, function: Callback, event_class: int, first: int, last: int
) -> int:
    """Register a callback for a range of events of an external class, both ends included; return 0 or -1."""
    return _register(state, userdata, function, lambda release: codes_of_range(event_class, first, last, release))


def _register(state: State | None, userdata: Any, function: Callback, codes: Callable[[Release], list[int]]) -> int:
    if state is None:
        return -1
    try:
        requested = codes(state.release)
    except RegistrationError:
        return state.fail(Error.UNKNOWN_ERROR)
    for code in requested:
        state.registrations[code] = Registration(function, userdata)
    return 0


def traceparser_sort(state: State | None, order: int) -> int:
    """Set the order of delivery (8.0): `Sort.NOSORT` = file order, `Sort.SORT` = by time; return 0 or -1."""
    if state is None:
        return -1
    try:
        state.sort = Sort(order)
    except ValueError:
        return state.fail(Error.UNKNOWN_ERROR)
    return 0


def traceparser_get_info(state: State | None, mode: int, length: list[int] | None = None) -> Any:
    """Return the value of an `Info` mode: text of a header key, bytes of the system page, a number; None on an error.

    `length` is a list that receives the length of the value in bytes as its only element; for SYSPAGE it is the length
    of the text of TRACE_SYSPAGE_LEN, as in QNX's library.
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
    """Parse a .kev file or a listing (`-` is standard input) and call the registered callbacks.

    A callback is called with `(state, userdata, header, time, buffer, length)`: header and time as numbers, the payload
    as an array of `length` 32-bit words in the byte order of the file (see ENDIAN_CONV). Events are delivered in file
    order (see `traceparser_sort`), those of several slots (combine events) after their last slot. The callback of class
    0, event 0 is called before the first event, with None as the buffer, and then for every empty slot. `userdata` is
    for callbacks that were registered with None. Returns 0, or -1 if the parse failed; `Info.ERROR` gives the error.
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
        refusal = _refusal(state.source) if state.is_strict else None
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


def _refusal(source: TraceSource) -> Error | None:
    """Return the error with which QNX's library rejects a file; None if it accepts the file."""
    keys = {key for key, _ in source.header.pairs}
    if "MIDDLE_ENDIAN" in keys or not keys & {"LITTLE_ENDIAN", "BIG_ENDIAN"}:
        return Error.WRONG_ENDIAN_TYPE
    version = (source.header.number("VER_MAJOR") or 0, source.header.number("VER_MINOR") or 0)
    return Error.WRONG_FILE_VERSION if version < _FIRST_VERSION else None
