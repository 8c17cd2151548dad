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
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from satview.base.errors import TraceFormatError
from satview.base.process import standard_input
from satview.base.time import Clock
from satview.events.spec import Release
from satview.formats.source import Source, source_of
from satview.traceparser.constants import ERROR_TEXTS, Error, Info, Sort, info_key
from satview.traceparser.delivery import deliver, say_head
from satview.traceparser.registry import RegistrationError, codes_of, codes_of_range
from satview.traceparser.state import Callback, Registration, State

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
        found = codes(state.release)
    except RegistrationError:
        return state.fail(Error.UNKNOWN_ERROR)
    for code in found:
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


def _refusal(state: State, source: Source) -> Error | None:
    """Return the error with which the vendor's library would refuse a file."""
    keys = {key for key, _ in source.header.pairs}
    if "MIDDLE_ENDIAN" in keys or not keys & {"LITTLE_ENDIAN", "BIG_ENDIAN"}:
        return Error.WRONG_ENDIAN_TYPE
    version = (source.header.number("VER_MAJOR") or 0, source.header.number("VER_MINOR") or 0)
    return Error.WRONG_FILE_VERSION if version < _FIRST_VERSION and state.is_strict else None
