"""The records of one thread: kept in memory without any lock, written to the file of its LWP."""

from __future__ import annotations

import _thread
import os
import sys
import time
from collections import deque
from typing import Final

from satview.base.errors import WriteError
from satview.base.new_file import begin_growing

now = time.perf_counter_ns  # never steps back; the writer adds what makes it a date
_RECORDS_KEPT: Final = 4096
_NS: Final = 1_000_000_000
_APPEND: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
_PATIENCE_S: Final = 2.0
Record = tuple[int, str]  # value of `now()`; everything behind the thread id, newline included


def record_text(
    category: int, interface: int, which: int, a1: int = 0, a2: int = 0, a3: int = 0, a4: int = 0, a5: int = 0
) -> str:
    """Return a record from behind the thread id to its newline."""
    return f":{category}:{interface}:{which}:{a1}:{a2}:{a3}:{a4}:{a5}\n"


class Output:
    """One file that grows; opened when there is something to write."""

    __slots__ = ("_fd", "_is_new", "is_broken", "path")

    def __init__(self, path: str, is_new: bool) -> None:
        self.path = path
        self.is_broken = False
        self._is_new = is_new
        self._fd = -1

    def write(self, text: str) -> None:
        """Append text; the first failure is told on standard error, later text is dropped."""
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
            data = data[os.write(self._fd, data):]

    def close(self) -> None:
        """Close the file; it is opened again if more comes."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def forget(self) -> None:
        """Leave the file to the parent process, whose descriptor a fork has copied."""
        self.close()
        self.is_broken = True


class Log:
    """The records of one thread.

    Only its thread appends; whoever holds the guard takes out and writes, so no record needs a lock.

    Attributes:
        tid: Number of the thread, from 1.
        lwp: Number of its LWP, from 1; free again when the thread has ended.
        busy: True while a traced operation goes on in the thread: what that does inside is not recorded.
        output: The file of the LWP.
    """

    __slots__ = ("_direct", "_guard", "_offset_ns", "_pid", "_records", "busy", "lwp", "output", "tid")

    def __init__(self, pid: int, lwp: int, tid: int, output: Output, offset_ns: int, direct: bool) -> None:
        self.tid, self.lwp, self.output = tid, lwp, output
        self.busy = False
        self._pid, self._offset_ns, self._direct = pid, offset_ns, direct
        self._records: deque[Record] = deque()
        self._guard = _thread.allocate_lock()

    def note(
        self, time_ns: int, category: int, interface: int, which: int,
        a1: int = 0, a2: int = 0, a3: int = 0, a4: int = 0, a5: int = 0,
    ) -> None:
        """Append a record; `time_ns` is a value of `now()`."""
        self.put(time_ns, f":{category}:{interface}:{which}:{a1}:{a2}:{a3}:{a4}:{a5}\n")

    def put(self, time_ns: int, text: str) -> None:
        """Append a record whose text (`record_text`) was made before: what locks do, for they repeat themselves."""
        records = self._records
        records.append((time_ns, text))
        if self._direct or len(records) > _RECORDS_KEPT:
            self.flush(0)

    def put_pair(self, first_ns: int, first: str, second_ns: int, second: str) -> None:
        """Append two records."""
        records = self._records
        records.append((first_ns, first))
        records.append((second_ns, second))
        if self._direct or len(records) > _RECORDS_KEPT:
            self.flush(0)

    def flush(self, patience_s: float = _PATIENCE_S) -> None:
        """Write all records.

        Args:
            patience_s: How long to wait for another thread that is writing them; 0 = leave it to that one.
        """
        if not (self._guard.acquire(True, patience_s) if patience_s else self._guard.acquire(False)):
            return
        try:
            self._drain()
        finally:
            self._guard.release()

    def _drain(self) -> None:
        take, offset_ns, ids = self._records.popleft, self._offset_ns, f":{self.lwp}:{self._pid}:{self.tid}"
        lines = []
        for _ in range(len(self._records)):
            time_ns, text = take()
            seconds, rest_ns = divmod(time_ns + offset_ns, _NS)
            lines.append(f"{seconds}:{rest_ns}{ids}{text}")
        if lines:
            self.output.write("".join(lines))
