"""Records sleep, input and output: waits of threads for which thread_trace(4) has no records.

Their records go into the `.time` file of the LWP (`Log.note_time`), so that the thread_trace(4) files contain only
records that other readers know.
"""

from __future__ import annotations

import builtins
import io
import os
import select
import selectors
import socket
import sys
import time
import weakref
from collections.abc import Callable
from typing import Any, Final

from satview.threadtrace import codes, state
from satview.threadtrace.locks import quietly
from satview.threadtrace.log import Log, now

_SYSTEM_CALLS: Final = {
    "read": codes.READ, "readv": codes.READ, "pread": codes.READ, "preadv": codes.READ, "write": codes.WRITE,
    "writev": codes.WRITE, "pwrite": codes.WRITE, "pwritev": codes.WRITE, "sendfile": codes.WRITE, "fsync": codes.SYNC,
    "fdatasync": codes.SYNC, "waitpid": codes.WAIT_PROCESS, "wait": codes.WAIT_PROCESS, "wait3": codes.WAIT_PROCESS,
    "wait4": codes.WAIT_PROCESS, "waitid": codes.WAIT_PROCESS,
}  # fmt: skip
_SOCKET_CALLS: Final = {
    "recv": codes.READ, "recv_into": codes.READ, "recvfrom": codes.READ, "recvfrom_into": codes.READ,
    "recvmsg": codes.READ, "recvmsg_into": codes.READ, "send": codes.WRITE, "sendall": codes.WRITE,
    "sendto": codes.WRITE, "sendmsg": codes.WRITE, "connect": codes.CONNECT, "_accept": codes.ACCEPT,
}  # fmt: skip
_FILE_CALLS: Final = {"readinto": codes.READ, "readall": codes.READ, "read": codes.READ, "write": codes.WRITE}


def _timed(log: Log, interface: int, argument: int, call: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """Run a call and record it as a pair of records."""
    start_ns, value = now(), None
    log.sample_cpu(start_ns)
    log.note_time(start_ns, interface, codes.FIRST, argument)
    try:
        value = quietly(log, call, *args, **named)
    finally:
        end_ns = now()
        log.note_time(end_ns, interface, codes.SECOND, _size(value))
        log.sample_cpu(end_ns)
    return value


def _size(value: Any) -> int:
    """Return the result of a call as a number: bytes transferred, file descriptor or process id; otherwise 0."""
    if isinstance(value, tuple) and value:
        value = value[0]
    if isinstance(value, (bytes, bytearray)):
        return len(value)
    return value if isinstance(value, int) and abs(value) < 1 << 62 else 0


class _TracedFunction:
    """A traced function. It is an object, as a Python function assigned in a class body would become a method."""

    def __init__(self, owner: Any, name: str, interface: int, first: Callable[[Any], int]) -> None:
        original = getattr(owner, name)
        self.__wrapped__ = original
        self.__name__ = self.__qualname__ = name
        self.__doc__ = original.__doc__
        self.__module__ = owner.__name__  # where pickle finds it
        self._interface, self._first = interface, first

    def __call__(self, *args: Any, **named: Any) -> Any:
        log = state.current()
        if log.busy:
            return self.__wrapped__(*args, **named)
        return _timed(log, self._interface, self._first(args[0]) if args else -1, self.__wrapped__, *args, **named)

    def __reduce__(self) -> str:
        return self.__name__


class _TracedOpen:
    """`open`, traced: reads and writes of the returned files are recorded."""

    def __init__(self, original: Callable[..., Any]) -> None:
        self.__wrapped__ = original
        self.__name__ = self.__qualname__ = "open"
        self.__doc__ = original.__doc__
        self.__module__ = "io"  # where pickle finds it

    def __call__(self, *args: Any, **named: Any) -> Any:
        file = self.__wrapped__(*args, **named)
        watch_file(file)
        return file

    def __reduce__(self) -> str:
        return self.__name__


def watch_file(file: Any) -> None:
    """Record the operations of a file that is based on `io.FileIO`; other files are left unchanged.

    The methods are replaced in the raw file, as the buffered and text layers call them by name. The new methods hold
    only a weak reference to the file, so that it is still closed when its last reference goes.
    """
    raw = getattr(file, "buffer", file)
    raw = getattr(raw, "raw", raw)
    if type(raw) is not io.FileIO or "readinto" in raw.__dict__:
        return
    held = weakref.ref(raw)
    for name, interface in _FILE_CALLS.items():
        raw.__dict__[name] = _file_method(held, getattr(io.FileIO, name), interface)


def _file_method(held: weakref.ref[io.FileIO], original: Callable[..., Any], interface: int) -> Callable[..., Any]:
    def method(*args: Any) -> Any:
        raw = held()
        assert raw is not None  # the caller holds the file whose method this is
        log = state.current()
        if log.busy or raw.closed:
            return original(raw, *args)
        return _timed(log, interface, raw.fileno(), original, raw, *args)

    return method


def _socket_method(name: str, interface: int) -> Callable[..., Any]:
    original = getattr(socket.socket, name)

    def method(self: Any, *args: Any, **named: Any) -> Any:
        log = state.current()
        if log.busy:
            return original(self, *args, **named)
        return _timed(log, interface, self.fileno(), original, self, *args, **named)

    method.__name__, method.__doc__ = name, original.__doc__
    return method


def _selector_method(original: Callable[..., Any]) -> Callable[..., Any]:
    def select(self: Any, timeout: float | None = None) -> Any:
        log = state.current()
        if log.busy or (timeout is not None and timeout <= 0):
            return original(self, timeout)
        return _timed(log, codes.POLL, -1, original, self, timeout)

    select.__doc__ = original.__doc__
    return select


def _sleep_ns(seconds: Any) -> int:
    """Return the requested duration of a sleep, or -1 for an invalid value, for which `time.sleep` raises."""
    try:
        return max(-1, min(int(seconds * 1e9), 1 << 62))
    except (TypeError, ValueError, OverflowError):
        return -1


def _descriptor(given: Any) -> int:
    return given if isinstance(given, int) and -1 <= given < 1 << 31 else -1


def patches() -> list[tuple[Any, str, Any]]:
    """Return owner, name and replacement of all functions that sleep, read, write or wait for a process."""
    patches: list[tuple[Any, str, Any]] = [(time, "sleep", _TracedFunction(time, "sleep", codes.SLEEP, _sleep_ns))]
    for name, interface in _SYSTEM_CALLS.items():
        if hasattr(os, name):
            patches.append((os, name, _TracedFunction(os, name, interface, _descriptor)))
    patches.append((select, "select", _TracedFunction(select, "select", codes.POLL, _descriptor)))
    patches += [
        (socket.socket, name, _socket_method(name, interface))
        for name, interface in _SOCKET_CALLS.items()
        if hasattr(socket.socket, name)
    ]
    for kind in vars(selectors).values():
        if isinstance(kind, type) and kind is not selectors.BaseSelector and "select" in kind.__dict__:
            patches.append((kind, "select", _selector_method(kind.__dict__["select"])))
    opening = _TracedOpen(io.open)
    patches += [(io, "open", opening), (builtins, "open", opening)]
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        watch_file(stream)
    return patches
