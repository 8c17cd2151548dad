"""Starts and stops tracing: patches functions, and handles process exit and forks."""

from __future__ import annotations

import atexit
import os
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from satview.threadtrace import codes, locks, state, times
from satview.threadtrace.locks import TracedLock, TracedRLock
from satview.threadtrace.state import RecordOptions, ThreadRecorder

_WAYS_OUT = ("_exit", "abort", "execv", "execve")  # end or replace the process without running exit functions


class _Installed:
    """State of the installation: the replaced attributes, to be restored by `uninstall`."""

    originals: list[tuple[Any, str, Any]] = []  # noqa: RUF012  -- one list per process on purpose
    watches_forks = False


def install(settings: RecordOptions, program: str = "") -> ThreadRecorder:
    """Start tracing; return the recorder.

    Args:
        settings: Directory and categories.
        program: Path of the program, written to the file of names.

    Raises:
        OSError: The directory cannot be created or is not writable.
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
        times.adopt_main_thread()
    _watch_forks()
    atexit.register(finish)
    return recorder


def _replacements(categories: frozenset[str]) -> list[tuple[Any, str, Any]]:
    replacements: list[tuple[Any, str, Any]] = list(locks.patches(categories))
    if "thread" in categories:
        replacements += times.thread_patches()
    if "mutex" in categories:
        replacements.append((threading, "Lock", TracedLock))
    if "rmutex" in categories:
        replacements.append((threading, "RLock", TracedRLock))
    if "sema" in categories:
        replacements.append((queue, "SimpleQueue", locks.TracedSimpleQueue))
    if "time" in categories:
        replacements += times.wait_patches()
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
        times.end_thread()
    recorder.close()


def uninstall() -> None:
    """Write all records and restore the patched attributes; traced objects stay usable, but record nothing."""
    finish()
    atexit.unregister(finish)
    times.release_main_thread()
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
