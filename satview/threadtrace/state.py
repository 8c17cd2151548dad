"""The recorder of the process: assigns thread and object numbers, and writes the logs of all threads."""

from __future__ import annotations

import _thread
import heapq
import itertools
import os
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any, Final

from satview.threadtrace import codes
from satview.threadtrace.log import GrowingText, Log, now

_INTERVAL_S: Final = 0.2
_FIRST_ADDRESS: Final = 0x10000
_ADDRESS_STEP: Final = 16
_CPU_SAMPLE_NS: Final = 150_000_000  # less than the flush interval, so that each flush samples idle threads too


@dataclass(frozen=True, slots=True)
class RecordOptions:
    """Options of a recording: folder, categories from `codes.CATEGORIES`, whether each record is written at once."""

    directory: str
    categories: frozenset[str]
    direct: bool

    @classmethod
    def from_environment(cls) -> tuple[RecordOptions, list[str]]:
        """Read THR_TRACE_EVENTS, THR_TRACE_DIR and THR_TRACE_BUF; return the options and unknown categories."""
        words = {word.strip() for word in os.environ.get("THR_TRACE_EVENTS", "").split(":")} - {""}
        known = frozenset(codes.CATEGORIES)
        requested = known & words if words else known
        directory = os.path.abspath(os.environ.get("THR_TRACE_DIR") or ".")  # noqa: PTH100  -- no pathlib here
        return cls(directory, frozenset(requested), "THR_TRACE_BUF" in os.environ), sorted(words - known)


class ThreadRecorder:
    """Creates the logs of threads, and writes the files of one process; recorders share addresses, never reused."""

    addresses = itertools.count(_FIRST_ADDRESS, _ADDRESS_STEP)

    def __init__(self, settings: RecordOptions) -> None:
        self.settings = settings
        self.is_closed = False
        self.tids = itertools.count(1)
        self._start_process()

    def _start_process(self) -> None:
        """Initialize the state of a process: at the start, and after a fork in the child."""
        self.pid = os.getpid()
        self.offset_ns = time.time_ns() - now()
        self._lock = _thread.allocate_lock()
        self._logs: dict[int, Log] = {}
        self._outputs: dict[int, tuple[GrowingText, GrowingText]] = {}
        self._free_lwps: list[int] = []
        self._lwp_count = 0
        self._names: deque[str] = deque()
        self._names_guard = _thread.allocate_lock()
        self._names_output = GrowingText(self._path("names"), is_new=True)
        self._flusher: tuple[_thread.LockType, _thread.LockType] | None = None

    def _path(self, suffix: str) -> str:
        return os.path.join(self.settings.directory, f"tr.{self.pid & 0xFFFFFFF:07x}.{suffix}")  # noqa: PTH118

    def new_log(self, tid: int) -> Log:
        """Return a new log for the calling thread, with the lowest free LWP number."""
        with self._lock:
            if self._free_lwps:
                lwp = heapq.heappop(self._free_lwps)
            else:
                self._lwp_count += 1
                lwp = self._lwp_count
            number = lwp & 0xFFF
            if number not in self._outputs:
                self._outputs[number] = (
                    GrowingText(self._path(f"{number:03x}"), is_new=True),
                    GrowingText(self._path(f"{number:03x}.time"), is_new=True),
                )
            takes_times = "time" in self.settings.categories
            log = Log(self.pid, lwp, tid, self._outputs[number], self.offset_ns, self.settings.direct, takes_times)
            log.watch_cpu()
            self._logs[lwp] = log
            log.busy = self.is_closed
        self._start_flusher()
        return log

    def end_log(self, log: Log) -> None:
        """Write the remaining records of a log, and free its LWP number."""
        log.busy = True
        log.flush()
        with self._lock:
            if self._logs.get(log.lwp) is log:
                del self._logs[log.lwp]
                log.close()
                heapq.heappush(self._free_lwps, log.lwp)

    def name(self, kind: str, number: int, text: str) -> None:
        """Add a line to the file of names, such as `thread:1:MainThread`."""
        self._names.append(f"{kind}:{number}:{text.replace(chr(10), ' ')[:300]}\n")
        if self.settings.direct:
            self._write_names()

    def flush(self) -> None:
        """Write all records so far."""
        for log in list(self._logs.values()):
            log.sample_from_outside(0)
            log.flush()
        self._write_names()

    def close(self) -> None:
        """Write all records and stop recording."""
        if not self.is_closed:
            self.is_closed = True
            self.stop_flusher()
            self.flush()
            for log in list(self._logs.values()):
                log.busy = True

    def after_fork(self) -> None:
        """Start new files in a forked child; the parent writes the records made before the fork."""
        self._names_output.forget()
        for outputs in self._outputs.values():
            for output in outputs:
                output.forget()
        self._start_process()

    def _write_names(self) -> None:
        if not self._names_guard.acquire(False):
            return
        try:
            lines = [self._names.popleft() for _ in range(len(self._names))]
            if lines:
                self._names_output.write("".join(lines))
        finally:
            self._names_guard.release()

    def _start_flusher(self) -> None:
        """Start the flusher thread, which writes records regularly, in case the program hangs or is killed."""
        with self._lock:
            if self._flusher is not None or self.is_closed or self.settings.direct:
                return
            stop, stopped = _thread.allocate_lock(), _thread.allocate_lock()
            stop.acquire()
            stopped.acquire()
            self._flusher = stop, stopped
        _raw_start(self._flush_until, (stop, stopped))

    def stop_flusher(self) -> None:
        """Stop the flusher thread; the next new thread of the program starts it again."""
        with self._lock:
            flusher, self._flusher = self._flusher, None
        if flusher is not None:
            flusher[0].release()
            flusher[1].acquire(True, _INTERVAL_S)

    def _flush_until(self, stop: _thread.LockType, stopped: _thread.LockType) -> None:
        while not stop.acquire(True, _INTERVAL_S):
            for log in list(self._logs.values()):
                log.sample_from_outside(_CPU_SAMPLE_NS)
                log.flush(0)
            self._write_names()
        stopped.release()


_raw_start = _thread.start_new_thread


_OWN: Final = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  -- pathlib is not for traced programs
_STANDARD: Final = os.path.dirname(os.path.abspath(os.__file__))  # noqa: PTH100, PTH120
_SITE: Final = ("site-packages", "dist-packages")
_DEEPEST: Final = 40


class OwnState:
    """Global state; class attributes, as module variables would need `global`. `local.log` is the thread's own log."""

    recorder: ThreadRecorder | None = None
    local: Any = _thread._local()
    routines: dict[CodeType, int] = {}  # noqa: RUF012  -- one per process on purpose


def recorder() -> ThreadRecorder:
    """Return the recorder; tracing must be installed."""
    assert OwnState.recorder is not None
    return OwnState.recorder


def current() -> Log:
    """Return the log of the calling thread; create it if the start of the thread was not traced."""
    try:
        log: Log = OwnState.local.log
    except AttributeError:
        return begin(next(recorder().tids))
    return log


def begin(tid: int) -> Log:
    """Set the thread number of the calling thread's log to `tid` and return the log, which is created if missing."""
    if hasattr(OwnState.local, "log"):
        OwnState.local.log.tid = tid
        return current()
    log = OwnState.local.log = recorder().new_log(tid)
    return log


def start(new: ThreadRecorder) -> None:
    """Make a recorder the recorder of this process."""
    OwnState.recorder = new
    OwnState.local = _thread._local()
    OwnState.routines = {}


def fork_child() -> None:
    """Start new files in a forked child; the forking thread keeps its number."""
    tid = getattr(getattr(OwnState.local, "log", None), "tid", 0)
    own_recorder = recorder()
    own_recorder.after_fork()
    OwnState.local = _thread._local()
    if not own_recorder.is_closed:
        begin(tid or next(own_recorder.tids))


def new_object(kind: str) -> int:
    """Return a unique number as the address of an object, and record the object's name, such as `Lock app.py:12`.

    Addresses of Python objects cannot be used, as they are reused after an object is deleted.
    """
    own_recorder = recorder()
    address = next(own_recorder.addresses)
    own_recorder.name("object", address, f"{kind} {_maker()}")
    return address


def routine(code: CodeType | None, name: str) -> int:
    """Return the address that stands for a thread's function, 0 without code; the first call records its name."""
    if code is None:
        return 0
    address = OwnState.routines.get(code)
    if address is None:
        own_recorder = recorder()
        address = OwnState.routines[code] = next(own_recorder.addresses)
        own_recorder.name("object", address, f"{name} {_position(code.co_filename, code.co_firstlineno)}")
    return address


def _maker() -> str:
    """Return the program's line that created an object, and in brackets that of the standard library, if any."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and _is_inner(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return ""
    inner = outer = frame
    for _ in range(_DEEPEST):
        if not _is_standard(outer.f_code.co_filename) or outer.f_back is None:
            break
        outer = outer.f_back
    if _is_standard(outer.f_code.co_filename) or _is_own(outer.f_code.co_filename):
        outer = inner
    text = _position(outer.f_code.co_filename, outer.f_lineno)
    return text if outer is inner else f"{text} ({_position(inner.f_code.co_filename, inner.f_lineno)})"


def _position(file: str, line: int) -> str:
    return f"{os.path.basename(file)}:{line}"  # noqa: PTH119


def _is_own(file: str) -> bool:
    return file.startswith(_OWN)


def _is_inner(file: str) -> bool:
    return file.startswith(_OWN) or file == threading.__file__


def _is_standard(file: str) -> bool:
    return file.startswith((_STANDARD, "<frozen")) and not any(part in file for part in _SITE)
