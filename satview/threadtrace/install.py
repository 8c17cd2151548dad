"""Switches tracing on and off: patches functions, and handles exit and child processes."""

from __future__ import annotations

import atexit
import os
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from satview.threadtrace import codes, locks, state, threads, times
from satview.threadtrace.locks import TracedLock, TracedRLock
from satview.threadtrace.state import RecordOptions, ThreadRecorder

_WAYS_OUT = ("_exit", "abort", "execv", "execve")  # of a process that run no exit functions


class _Installed:
    """Holds the attributes that tracing replaced, to restore them."""

    originals: list[tuple[Any, str, Any]] = []  # noqa: RUF012  -- one list per process on purpose
    watches_forks = False


def install(settings: RecordOptions, program: str = "") -> ThreadRecorder:
    """Start tracing; return the recorder.

    Args:
        settings: Where to, and which categories.
        program: Path of the program, for the file of names.

    Raises:
        OSError: The directory cannot be made or written to.
    """
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
        threads.adopt_main_thread()
    _watch_forks()
    atexit.register(finish)
    return recorder


def _replacements(categories: frozenset[str]) -> list[tuple[Any, str, Any]]:
    replacements: list[tuple[Any, str, Any]] = list(locks.patches(categories))
    if "thread" in categories:
        replacements += threads.patches()
    if "mutex" in categories:
        replacements.append((threading, "Lock", TracedLock))
    if "rmutex" in categories:
        replacements.append((threading, "RLock", TracedRLock))
    if "sema" in categories:
        replacements.append((queue, "SimpleQueue", locks.TracedSimpleQueue))
    if "time" in categories:
        replacements += times.patches()
    return replacements


def _replace(owner: Any, name: str, value: Any) -> None:
    _Installed.originals.append((owner, name, owner.__dict__.get(name)))
    setattr(owner, name, value)


def _flushing(original: Callable[..., Any]) -> Callable[..., Any]:
    def leave(*args: Any, **named: Any) -> Any:
        recorder = state.recorder()
        if recorder.pid == os.getpid():  # in a child made without our knowledge there is nothing of its own
            recorder.flush()
        return original(*args, **named)

    return leave


def _watch_forks() -> None:
    if _Installed.watches_forks or not hasattr(os, "register_at_fork"):
        return
    _Installed.watches_forks = True
    # The writing thread must not hold a lock while the process is copied.
    os.register_at_fork(before=lambda: state.recorder().stop_flusher(), after_in_child=state.fork_child)


def finish() -> None:
    """Make the last record of the main thread and write everything; does nothing the second time."""
    recorder = state.recorder()
    if recorder.is_closed:
        return
    if "thread" in recorder.settings.categories and threading.current_thread() is threading.main_thread():
        threads.end_thread()
    recorder.close()


def uninstall() -> None:
    """Write everything and restore the patched attributes; objects made meanwhile stay usable, untraced."""
    finish()
    atexit.unregister(finish)
    threads.release_main_thread()
    while _Installed.originals:
        owner, name, value = _Installed.originals.pop()
        if value is None:  # it was inherited
            delattr(owner, name)
        else:
            setattr(owner, name, value)


@contextmanager
def tracing(directory: str, categories: str = "", direct: bool = False) -> Iterator[ThreadRecorder]:
    """Trace what happens in a block.

    `with tracing("traces"): ...`

    Args:
        directory: Where the files go; made if it does not exist.
        categories: As THR_TRACE_EVENTS: `mutex:cond`; empty = all.
        direct: Write each record at once, as THR_TRACE_BUF requests.

    Raises:
        OSError: The directory cannot be made or written to.
    """
    requested = frozenset(categories.split(":") if categories else codes.CATEGORIES)
    recorder = install(RecordOptions(os.path.abspath(directory), requested, direct))  # noqa: PTH100
    try:
        yield recorder
    finally:
        uninstall()
