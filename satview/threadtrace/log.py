"""Collects the records of one thread in memory without locks, and writes them to the files of its LWP."""

from __future__ import annotations

import _thread
import os
import sys
import time
from itertools import groupby
from typing import Final

from satview.base.errors import WriteError
from satview.base.new_file import begin_growing
from satview.threadtrace import codes

now = time.perf_counter_ns  # monotonic; `text_of` converts values to wall-clock time
cpu_now = getattr(time, "thread_time_ns", None)  # CPU time of the calling thread; missing on some systems
RECORDS_MAX: Final = 1024
_NS: Final = 1_000_000_000
_APPEND: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
_PATIENCE_S: Final = 2.0
_CPU_SAMPLE_NS: Final = 1_000_000  # minimum time between two samples of a thread's CPU time
_WRITE: Final = os.write  # the program's own `os.write` may be traced
# Value of `now()`, and one or two records of that moment as made by `record_text`.
Record = tuple[int, str, str | None]


def record_text(
    category: int, interface: int, which: int, a1: int = 0, a2: int = 0, a3: int = 0, a4: int = 0, a5: int = 0
) -> str:
    """Return the part of a record that follows the thread id, including the newline.

    `which` is first, second or only record of a call, from `codes`; the meaning of the five numbers depends on the
    function.
    """
    return f"{category}:{interface}:{which}:{a1}:{a2}:{a3}:{a4}:{a5}\n"


def text_of(records: list[Record], offset_ns: int, ids: str) -> str:
    """Return records, in time order, as lines of a thread_trace file; `ids` is `:LWP:PROCESS:THREAD:` after the time.

    Half the cost of tracing a lock is spent here, so one expression formats all records of a second. `offset_ns` makes
    a value of `now()` nanoseconds since 1970.
    """
    second = (records[0][0] + offset_ns) // _NS
    if (records[-1][0] + offset_ns) // _NS != second:
        by_second = groupby(records, lambda record: (record[0] + offset_ns) // _NS)
        return "".join([text_of(list(group), offset_ns, ids) for _, group in by_second])
    start_ns, head = second * _NS - offset_ns, f"{second}:"
    return "".join(
        [
            f"{head}{time_ns - start_ns}{ids}{text}"
            if second_text is None
            else f"{head}{(ns := time_ns - start_ns)}{ids}{text}{head}{ns}{ids}{second_text}"
            for time_ns, text, second_text in records
        ]
    )


class GrowingText:
    """A file to which text is appended; it is opened by the first write."""

    __slots__ = ("_fd", "_is_new", "is_broken", "path")

    def __init__(self, path: str, is_new: bool) -> None:
        self.path = path
        self.is_broken = False
        self._is_new = is_new
        self._fd = -1

    def write(self, text: str) -> None:
        """Append text; after a failed write, which is reported on standard error, text is dropped."""
        if self.is_broken:
            return
        data = text.encode("utf-8", "backslashreplace")
        try:
            self._write(data)
        except (OSError, WriteError) as error:
            self.is_broken = True
            reason = error.what if isinstance(error, WriteError) else error.strerror
            print(f"satview.threadtrace: {self.path} cannot be written: {reason}", file=sys.stderr)  # noqa: T201

    def _write(self, data: bytes) -> None:
        if self._fd < 0:
            self._fd = begin_growing(self.path) if self._is_new else os.open(self.path, _APPEND, 0o666)
            self._is_new = False
        while data:
            data = data[_WRITE(self._fd, data) :]

    def close(self) -> None:
        """Close the file; a later write opens it again."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def forget(self) -> None:
        """Close the file and drop later text: in a forked child, as the file belongs to the parent process."""
        self.close()
        self.is_broken = True


class Log:
    """The records of one thread.

    Appending needs no lock: only the thread itself appends, and only the holder of `_guard` removes and writes records.

    Attributes:
        tid: Number of the thread, from 1.
        lwp: Number of its LWP, from 1; reused after the thread has ended.
        busy: True during a traced operation, whose inner operations are not recorded.
        put: Appends a record without limiting the number of records in memory, unlike `note`.
        records: Records that are not written yet.
    """

    __slots__ = (
        "_cpu_clock", "_direct", "_guard", "_offset_ns", "_pid", "_sampled_ns", "_takes_times", "_times",
        "_times_output", "busy", "lwp", "output", "put", "records", "tid",
    )  # fmt: skip

    def __init__(
        self,
        pid: int,
        lwp: int,
        tid: int,
        outputs: tuple[GrowingText, GrowingText],
        offset_ns: int,
        direct: bool,
        takes_times: bool,
    ) -> None:
        self.tid, self.lwp = tid, lwp
        self.output, self._times_output = outputs
        self.busy = False
        self._pid, self._offset_ns, self._direct = pid, offset_ns, direct
        self.records: list[Record] = []
        self._times: list[Record] = []
        self._sampled_ns = 0
        self._cpu_clock: int | None = None
        self._takes_times = takes_times and cpu_now is not None
        self._guard = _thread.allocate_lock()
        self.put = self._put_at_once if direct else self.records.append

    def _put_at_once(self, record: Record) -> None:
        self.records.append(record)
        self.flush(0)

    def note(self, time_ns: int, *numbers: int) -> None:
        """Append a record; `time_ns` is a value of `now()`, `numbers` are those of `record_text`."""
        self.put((time_ns, record_text(*numbers), None))
        if len(self.records) > RECORDS_MAX:
            self.flush(0)

    def note_time(self, time_ns: int, *numbers: int) -> None:
        """Append a record for the `.time` file of the LWP; see `note`."""
        self._times.append((time_ns, record_text(codes.TIME, *numbers), None))
        if self._direct or len(self._times) > RECORDS_MAX:
            self.flush(0)

    def watch_cpu(self) -> None:
        """Allow other threads to read the CPU time of the calling thread, which owns this log."""
        if self._takes_times and hasattr(time, "pthread_getcpuclockid"):
            self._cpu_clock = time.pthread_getcpuclockid(_thread.get_ident())

    def sample_cpu(self, time_ns: int, spacing_ns: int = _CPU_SAMPLE_NS) -> None:
        """Record the CPU time of the calling thread at a value of `now()`, unless it was recorded `spacing_ns` ago."""
        if self._takes_times and time_ns - self._sampled_ns >= spacing_ns and not self.busy:
            self._sampled_ns = time_ns
            self.note_time(time_ns, codes.CPU_TIME, codes.SINGLE, cpu_now())  # type: ignore[misc]

    def sample_from_outside(self, spacing_ns: int) -> None:
        """Record the CPU time of the log's thread, called by another thread.

        Nothing is recorded if the last sample is less than `spacing_ns` old, or the thread is busy or has ended.
        """
        clock, time_ns = self._cpu_clock, now()
        if clock is None or self.busy or time_ns - self._sampled_ns < spacing_ns:
            return
        try:
            cpu_ns = time.clock_gettime_ns(clock)
        except OSError:  # the thread has just ended
            self._cpu_clock = None
        else:
            self._sampled_ns = time_ns
            self.note_time(time_ns, codes.CPU_TIME, codes.SINGLE, cpu_ns)

    def flush(self, patience_s: float = _PATIENCE_S) -> None:
        """Write all records; wait up to `patience_s` while another thread writes them."""
        if not (self._guard.acquire(True, patience_s) if patience_s else self._guard.acquire(False)):
            return
        try:
            self._drain(self.records, self.output)
            self._drain(self._times, self._times_output)
        finally:
            self._guard.release()

    def _drain(self, records: list[Record], output: GrowingText) -> None:
        left = len(records)  # records that are appended meanwhile are left to the next flush
        while left > 0:
            part = records[: min(left, RECORDS_MAX)]
            del records[: len(part)]
            left -= len(part)
            output.write(text_of(part, self._offset_ns, f":{self.lwp}:{self._pid}:{self.tid}:"))

    def close(self) -> None:
        """Close the files; a later write opens them again."""
        self.output.close()
        self._times_output.close()
