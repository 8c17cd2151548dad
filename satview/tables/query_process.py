"""The pool of processes that run queries: started early, kept for the next query, ended when this process ends.

The processes run `satview.tables.query_child`; `satview.tables.question` sends the requests. This module imports no
numpy, so that a process can start while other modules are imported.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import threading
import weakref
from itertools import count
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from satview.base.child import child_command, child_environment
from satview.base.errors import UsageError
from satview.tables.query_child import JSON, receive, send

if TYPE_CHECKING:
    from satview.store.trace import Trace

_PIPE_BYTES: Final = 1 << 20
_MOST_IDLE: Final = 2


class QueryProcess:
    """A process that answers one question at a time.

    Attributes:
        owner: Number of the trace whose tables the process holds; 0 = none.
    """

    def __init__(self) -> None:
        # Allocators reserve much of the limited address space: 64 MiB for each of eight arenas per processor, and
        # Arrow's own allocator 1 GiB.
        environment = child_environment(MALLOC_ARENA_MAX="2", ARROW_DEFAULT_MEMORY_POOL="system")
        try:
            self._child = subprocess.Popen(  # noqa: S603  -- satview itself
                child_command("satview.tables.query_child:serve"),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment,
                pipesize=_PIPE_BYTES, creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )  # fmt: skip
        except OSError as error:
            raise UsageError(f"the process that runs queries does not start: {error}") from error
        self.owner = 0

    def send(self, kind: bytes, data: Any) -> None:
        """Send a message; if the process has ended, `receive` reports it."""
        with contextlib.suppress(OSError):
            send(cast("BinaryIO", self._child.stdin), kind, data)

    def receive(self) -> tuple[bytes, bytes]:
        """Return the next message of the process.

        Raises:
            EOFError: The process has ended.
        """
        with contextlib.suppress(OSError):
            cast("BinaryIO", self._child.stdin).flush()
        return receive(cast("BinaryIO", self._child.stdout))

    def forget(self) -> None:
        """Make the process free its tables."""
        self.owner = 0
        self.send(JSON, {"owner": 0})
        with contextlib.suppress(OSError):
            cast("BinaryIO", self._child.stdin).flush()

    @property
    def is_alive(self) -> bool:
        """Whether the process still runs."""
        return self._child.poll() is None

    def kill(self) -> None:
        """Kill the process; callable from any thread, also while another thread waits for an answer."""
        with contextlib.suppress(OSError):
            self._child.kill()

    def close(self) -> int:
        """Kill the process and wait for its end; return its exit code, negative for a signal."""
        self.kill()
        for stream in (self._child.stdin, self._child.stdout):
            with contextlib.suppress(OSError):
                cast("BinaryIO", stream).close()
        return self._child.wait()


class Waiting:
    """The idle query processes, and those of the parent process if this process was forked."""

    def __init__(self) -> None:
        self.idle: list[QueryProcess] = []
        self.foreign: list[QueryProcess] = []
        # Reentrant: a trace may be freed, which calls `_forget`, whenever Python allocates an object.
        self.lock = threading.RLock()

    def after_fork(self) -> None:
        """In a forked process, give up the query processes, which belong to the parent process."""
        self.foreign, self.idle, self.lock = self.idle, [], threading.RLock()

    def of_owner(self, owner: int) -> list[QueryProcess]:
        """Return the idle processes with the tables of a trace; for 0, those without tables."""
        return [process for process in self.idle if process.owner == owner]

    def keep(self, process: QueryProcess) -> None:
        """Add a process to the idle ones; close the oldest one if there are too many."""
        with self.lock:
            self.idle.append(process)
            while len(self.idle) > _MOST_IDLE:
                self.idle.pop(0).close()

    def take(self, owner: int) -> QueryProcess:
        """Return a process for a query, if possible an idle one with the tables of its trace."""
        with self.lock:
            for process in (*self.of_owner(owner), *self.of_owner(0), *self.idle[: len(self.idle) - _MOST_IDLE + 1]):
                self.idle.remove(process)
                if process.is_alive:
                    return process
                process.close()
        return QueryProcess()


waiting = Waiting()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=waiting.after_fork)
_numbers = count(1)


class _Owner:
    """Object in the cache of a trace that frees the trace's tables in query processes when the trace is freed."""

    def __init__(self) -> None:
        self.number = next(_numbers)
        weakref.finalize(self, _forget, self.number).atexit = False


def owner_number(trace: Trace) -> int:
    """Return the number that identifies the tables of a trace in query processes."""
    return trace.cached("tables.owner", lambda _trace: _Owner()).number


def _forget(owner: int) -> None:
    """Free the tables of a trace in the idle processes."""
    with waiting.lock:
        for process in waiting.of_owner(owner):
            process.forget()


def close_processes(trace: Trace | None = None) -> None:
    """End the idle query processes that have no tables, and those with the tables of `trace`."""
    with waiting.lock:
        for process in waiting.of_owner(0) + (waiting.of_owner(owner_number(trace)) if trace is not None else []):
            waiting.idle.remove(process)
            process.close()


@atexit.register
def _close_all() -> None:
    with waiting.lock:
        while waiting.idle:
            waiting.idle.pop().close()


def start_early(trace: Trace | None = None) -> None:
    """Start a process if none is idle, so that it is ready for the first query; starting takes 0.2 s.

    Args:
        trace: The trace that will be queried, if known, so that `close_processes(trace)` ends the process.
    """
    owner = owner_number(trace) if trace is not None else 0
    with waiting.lock, contextlib.suppress(UsageError):  # the query will raise the same error
        if not waiting.of_owner(owner):
            process = QueryProcess()
            process.owner = owner
            waiting.keep(process)
