"""The one recorder of the process: logs of its threads, numbers, names; all is written at exit at the latest."""

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
_CPU_SAMPLE_NS: Final = 150_000_000  # less than the interval: at each flush of a thread that was not sampled meanwhile


@dataclass(frozen=True, slots=True)
class RecordOptions:
    """Options from the environment.

    Attributes:
        directory: Where the files go.
        categories: Words of THR_TRACE_EVENTS that are traced.
        direct: Write each record at once.
    """

    directory: str
    categories: frozenset[str]
    direct: bool

    @classmethod
    def from_environment(cls) -> tuple[RecordOptions, list[str]]:
        """Return the settings of THR_TRACE_EVENTS, THR_TRACE_DIR and THR_TRACE_BUF, and words that are no category."""
        words = {word.strip() for word in os.environ.get("THR_TRACE_EVENTS", "").split(":")} - {""}
        known = frozenset(codes.CATEGORIES)
        requested = known & words if words else known
        directory = os.path.abspath(os.environ.get("THR_TRACE_DIR") or ".")  # noqa: PTH100  -- no pathlib here
        return cls(directory, frozenset(requested), "THR_TRACE_BUF" in os.environ), sorted(words - known)


class ThreadRecorder:
    """Gives threads their logs, objects their addresses, and writes the files of one process.

    Args:
        settings: Directory and categories.

    Attributes:
        addresses: The next address for an object; never used twice in a process, whatever recorders it has.
    """

    addresses = itertools.count(_FIRST_ADDRESS, _ADDRESS_STEP)

    def __init__(self, settings: RecordOptions) -> None:
        self.settings = settings
        self.is_closed = False
        self.tids = itertools.count(1)
        self._start_process()

    def _start_process(self) -> None:
        """Begin again: at the start, and in a child process."""
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
        """Return a log for the calling thread, on the lowest LWP number that is free."""
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
        """Write a log for the last time and give its LWP number back."""
        log.busy = True
        log.flush()
        with self._lock:
            if self._logs.get(log.lwp) is log:
                del self._logs[log.lwp]
                log.close()
                heapq.heappush(self._free_lwps, log.lwp)

    def name(self, kind: str, number: int, text: str) -> None:
        """Note a name for the file of names."""
        self._names.append(f"{kind}:{number}:{text.replace(chr(10), ' ')[:300]}\n")
        if self.settings.direct:
            self._write_names()

    def flush(self) -> None:
        """Write all that is recorded so far."""
        for log in list(self._logs.values()):
            log.sample_from_outside(0)
            log.flush()
        self._write_names()

    def close(self) -> None:
        """Write everything and record no more."""
        if not self.is_closed:
            self.is_closed = True
            self.stop_flusher()
            self.flush()
            for log in list(self._logs.values()):
                log.busy = True

    def after_fork(self) -> None:
        """Begin new files in a child process; what the parent had not written is the parent's to write."""
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
        """Start the thread that writes now and then, so that a program that hangs or is killed leaves its records."""
        with self._lock:
            if self._flusher is not None or self.is_closed or self.settings.direct:
                return
            stop, stopped = _thread.allocate_lock(), _thread.allocate_lock()
            stop.acquire()
            stopped.acquire()
            self._flusher = stop, stopped
        _raw_start(self._flush_until, (stop, stopped))

    def stop_flusher(self) -> None:
        """Stop that thread; the next new thread of the program starts it again."""
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
    """Holds the recorder and `local.log`, the log of the calling thread, which locks read without a call.

    A module variable would need `global` in every function that assigns it.
    """

    recorder: ThreadRecorder | None = None
    local: Any = _thread._local()
    routines: dict[CodeType, int] = {}  # noqa: RUF012  -- one per process on purpose


def recorder() -> ThreadRecorder:
    """Return the recorder; there is one while tracing is installed."""
    assert OwnState.recorder is not None
    return OwnState.recorder


def current() -> Log:
    """Return the log of the calling thread, a new one for a thread that nobody announced."""
    try:
        log: Log = OwnState.local.log
    except AttributeError:
        return begin(next(recorder().tids))
    return log


def begin(tid: int) -> Log:
    """Make the log of the calling thread; one that it has already gets the number."""
    if hasattr(OwnState.local, "log"):
        OwnState.local.log.tid = tid
        return current()
    log = OwnState.local.log = recorder().new_log(tid)
    return log


def start(new: ThreadRecorder) -> None:
    """Install a recorder as the only one of this process."""
    OwnState.recorder = new
    OwnState.local = _thread._local()
    OwnState.routines = {}


def fork_child() -> None:
    """Begin new files in a child process; the thread that forked keeps its number."""
    tid = getattr(getattr(OwnState.local, "log", None), "tid", 0)
    here = recorder()
    here.after_fork()
    OwnState.local = _thread._local()
    if not here.is_closed:
        begin(tid or next(here.tids))


def new_object(kind: str) -> int:
    """Return an address for an object and record its name: `Lock app.py:12`.

    Addresses are numbers made up here: those of Python objects come back as soon as an object is gone.
    """
    here = recorder()
    address = next(here.addresses)
    here.name("object", address, f"{kind} {_maker()}")
    return address


def routine(code: CodeType | None, name: str) -> int:
    """Return an address that represents a thread's function, named at the first call; 0 if there is no code."""
    if code is None:
        return 0
    address = OwnState.routines.get(code)
    if address is None:
        here = recorder()
        address = OwnState.routines[code] = next(here.addresses)
        here.name("object", address, f"{name} {_position(code.co_filename, code.co_firstlineno)}")
    return address


def _maker() -> str:
    """Return the line outside the standard library that created an object, then the library line in brackets."""
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
