"""Starts and stops tracing; records threads, their sleep, input and output; handles process exit and forks."""

from __future__ import annotations

import _thread
import atexit
import builtins
import io
import os
import queue
import select
import selectors
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from satview.threadtrace import codes, locks, state
from satview.threadtrace.locks import Patch, TracedLock, TracedRLock, quietly
from satview.threadtrace.log import Log, now
from satview.threadtrace.state import RecordOptions, ThreadRecorder

# Records sleep, input and output: waits of threads for which thread_trace(4) has no records.
#
# Their records go into the `.time` file of the LWP (`Log.note_time`), so that the thread_trace(4) files contain only
# records that other readers know.


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
    """Call a function and record its start and end in the `.time` file; return its value."""
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


def wait_patches() -> list[tuple[Any, str, Any]]:
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


# Records creation, start, end, join and names of threads, of `threading.Thread` and of `_thread`.


_TID = "_trace_tid"
_DAEMON_FLAG = 0x100  # THR_DAEMON; thread_trace(4) does not give its value


def begin_thread(tid: int, begun_ns: list[int]) -> None:
    """Record the start of the calling thread, and append its time to `begun_ns`."""
    log = state.begin(tid)
    begun_ns.append(now())
    log.note(begun_ns[0], codes.THREAD, codes.THR_SELF, codes.SINGLE)
    log.sample_cpu(begun_ns[0], 0)


def end_thread() -> None:
    """Record the end of the calling thread."""
    log = state.current()
    if not log.busy:
        end_ns = now()
        log.sample_cpu(end_ns, 0)
        log.note(end_ns, codes.THREAD, codes.THR_EXIT, codes.SINGLE)
    state.recorder().end_log(log)


def _run_in_log(tid: int, begun_ns: list[int], run: Callable[..., Any], *args: Any, **named: Any) -> None:
    begin_thread(tid, begun_ns)
    try:
        run(*args, **named)
    finally:
        end_thread()


def _routine(target: Any, name: str) -> int:
    function = getattr(target, "__func__", target)
    return state.routine(getattr(function, "__code__", None), getattr(function, "__qualname__", name))


def _create(log: Any, routine: int, flags: int, tid: int, begun_ns: list[int], start: Callable[[], Any]) -> Any:
    """Start a thread and record its creation as a pair of records; return the value of `start`.

    The new thread appends the time of its first record to `begun_ns`: the second record gets a time just before that,
    so that no thread runs before it is created.
    """
    start_ns = now()
    log.note(start_ns, codes.THREAD, codes.THR_CREATE, codes.FIRST, 0, threading.stack_size(), routine, 0, flags)
    result, new_tid = codes.EAGAIN, 0
    try:
        value = quietly(log, start)
        result, new_tid = codes.OK, tid
    finally:
        end_ns = max(start_ns, begun_ns[0] - 1) if begun_ns else now()
        log.note(end_ns, codes.THREAD, codes.THR_CREATE, codes.SECOND, result, new_tid)
    return value


def _thread_patches() -> list[Patch]:
    thread = threading.Thread
    init_original, start_original, join_original = thread.__init__, thread.start, thread.join

    def __init__(self: threading.Thread, *args: Any, **named: Any) -> None:  # noqa: N807
        quietly(state.current(), init_original, self, *args, **named)

    def start(self: threading.Thread) -> None:
        log, attributes = state.current(), self.__dict__
        if log.busy or not attributes.get("_initialized") or self.ident is not None or _TID in attributes:
            start_original(self)  # raises as it should
            return
        tid = attributes[_TID] = next(state.recorder().tids)
        state.recorder().name("thread", tid, self.name)
        run, own_run = self.run, attributes.get("run")
        begun_ns: list[int] = []

        def traced_run() -> None:
            # Restore the attribute before the program's own code runs.
            if own_run is None:
                attributes.pop("run", None)
            else:
                attributes["run"] = own_run
            _run_in_log(tid, begun_ns, run)

        attributes["run"] = traced_run
        routine = _routine(attributes.get("_target") or type(self).run, type(self).__name__)
        try:
            _create(log, routine, _DAEMON_FLAG if self.daemon else 0, tid, begun_ns, lambda: start_original(self))
        except BaseException:
            attributes.pop(_TID, None)
            attributes.pop("run", None)
            raise

    def join(self: threading.Thread, timeout: float | None = None) -> None:
        tid = self.__dict__.get(_TID, 0)
        log = state.current() if tid else None
        if log is None or log.busy:
            join_original(self, timeout)
            return
        start_ns = now()
        log.sample_cpu(start_ns)
        log.note(start_ns, codes.THREAD, codes.THR_JOIN, codes.FIRST, tid)
        result, departed = codes.EINTR, 0
        try:
            quietly(log, join_original, self, timeout)
            result, departed = (codes.ETIME, 0) if self.is_alive() else (codes.OK, tid)
        except RuntimeError:
            result = codes.EDEADLK
            raise
        finally:
            end_ns = now()
            log.note(end_ns, codes.THREAD, codes.THR_JOIN, codes.SECOND, departed, 0, result)
            log.sample_cpu(end_ns)

    return [(thread, "__init__", __init__), (thread, "start", start), (thread, "join", join), _name_patch()]


def _name_patch() -> Patch:
    original: Any = threading.Thread.name

    def set_name(self: threading.Thread, name: str) -> None:
        original.fset(self, name)
        if tid := self.__dict__.get(_TID):
            state.recorder().name("thread", tid, str(name))

    return threading.Thread, "name", property(original.fget, set_name, doc=original.__doc__)


def _low_level_patches() -> list[tuple[Any, str, Any]]:
    """Return the patches of `_thread.start_new_thread`, which starts a thread without a Thread object."""
    original = _thread.start_new_thread

    def start_new_thread(function: Any, args: Any, kwargs: Any = None, /) -> int:
        log = state.current()
        if log.busy or not callable(function) or not isinstance(args, tuple):
            return original(function, args) if kwargs is None else original(function, args, kwargs)
        tid = next(state.recorder().tids)
        named, begun_ns = kwargs or {}, list[int]()
        routine, in_log = _routine(function, "function"), (tid, begun_ns, function, *args)
        return int(_create(log, routine, 0, tid, begun_ns, lambda: original(_run_in_log, in_log, named)))

    return [(_thread, "start_new_thread", start_new_thread), (_thread, "start_new", start_new_thread)]


def adopt_main_thread() -> None:
    """Give the calling thread the next thread number of the recorder, and record the start and name of the thread."""
    thread = threading.current_thread()
    tid = thread.__dict__[_TID] = next(state.recorder().tids)
    state.recorder().name("thread", tid, thread.name)
    begin_thread(tid, [])


def release_main_thread() -> None:
    """Remove the thread numbers from all live threads, as tracing may end before the program does."""
    for thread in threading.enumerate():
        thread.__dict__.pop(_TID, None)


# Starts and stops tracing: patches functions, and handles process exit and forks.


_WAYS_OUT = ("_exit", "abort", "execv", "execve")  # end or replace the process without running exit functions


class _Installed:
    """State of the installation: the replaced attributes, to be restored by `uninstall`."""

    originals: list[tuple[Any, str, Any]] = []  # noqa: RUF012  -- one list per process on purpose
    watches_forks = False


def install(settings: RecordOptions, program: str = "") -> ThreadRecorder:
    """Start tracing into the settings' directory; return the recorder. OSError if it is not writable."""
    os.makedirs(settings.directory, exist_ok=True)  # noqa: PTH103
    if not os.access(settings.directory, os.W_OK):
        raise PermissionError(13, "Permission denied", settings.directory)
    recorder = ThreadRecorder(settings)
    state.start(recorder)
    recorder.name("process", recorder.pid, program)
    for owner, name, value in _replacements(settings.categories):
        _replace(owner, name, value)
    for name in _WAYS_OUT:
        if hasattr(os, name):
            _replace(os, name, _flushing(getattr(os, name)))
    if "thread" in settings.categories:
        adopt_main_thread()
    _watch_forks()
    atexit.register(finish)
    return recorder


def _replacements(categories: frozenset[str]) -> list[tuple[Any, str, Any]]:
    replacements: list[tuple[Any, str, Any]] = list(locks.patches(categories))
    if "thread" in categories:
        replacements += [*_thread_patches(), *_low_level_patches()]
    if "mutex" in categories:
        replacements.append((threading, "Lock", TracedLock))
    if "rmutex" in categories:
        replacements.append((threading, "RLock", TracedRLock))
    if "sema" in categories:
        replacements.append((queue, "SimpleQueue", locks.TracedSimpleQueue))
    if "time" in categories:
        replacements += wait_patches()
    return replacements


def _replace(owner: Any, name: str, value: Any) -> None:
    _Installed.originals.append((owner, name, owner.__dict__.get(name)))
    setattr(owner, name, value)


def _flushing(original: Callable[..., Any]) -> Callable[..., Any]:
    def leave(*args: Any, **named: Any) -> Any:
        recorder = state.recorder()
        if recorder.pid == os.getpid():  # not in a child process whose fork was not traced
            recorder.flush()
        return original(*args, **named)

    return leave


def _watch_forks() -> None:
    if _Installed.watches_forks or not hasattr(os, "register_at_fork"):
        return
    _Installed.watches_forks = True
    # The flusher thread must not hold a lock during the fork.
    os.register_at_fork(before=lambda: state.recorder().stop_flusher(), after_in_child=state.fork_child)


def finish() -> None:
    """Record the end of the main thread, and write all records; a second call does nothing."""
    recorder = state.recorder()
    if recorder.is_closed:
        return
    if "thread" in recorder.settings.categories and threading.current_thread() is threading.main_thread():
        end_thread()
    recorder.close()


def uninstall() -> None:
    """Write all records and restore the patched attributes; traced objects stay usable, but record nothing."""
    finish()
    atexit.unregister(finish)
    release_main_thread()
    while _Installed.originals:
        owner, name, value = _Installed.originals.pop()
        if value is None:  # the attribute was inherited
            delattr(owner, name)
        else:
            setattr(owner, name, value)


@contextmanager
def tracing(directory: str, categories: str = "", direct: bool = False) -> Iterator[ThreadRecorder]:
    """Trace the block of a `with` statement.

    Args:
        directory: Directory of the files; created if missing.
        categories: Categories as in THR_TRACE_EVENTS, such as `mutex:cond`; empty = all.
        direct: Whether each record is written at once, as with THR_TRACE_BUF.

    Raises:
        OSError: The directory cannot be created or is not writable.
    """
    requested = frozenset(categories.split(":") if categories else codes.CATEGORIES)
    recorder = install(RecordOptions(os.path.abspath(directory), requested, direct))  # noqa: PTH100
    try:
        yield recorder
    finally:
        uninstall()
