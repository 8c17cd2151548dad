"""Records creation, start, end, join and names of threads, of `threading.Thread` and of `_thread`."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable
from typing import Any

from satview.threadtrace import codes, state
from satview.threadtrace.locks import Patch, quietly
from satview.threadtrace.log import now

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
    """Start a thread and record its creation as a pair of records.

    If the new thread runs before its creator continues, the second record gets a time just before the first record of
    the new thread, so that no thread runs before it is created.
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
        log, here = state.current(), self.__dict__
        if log.busy or not here.get("_initialized") or self.ident is not None or _TID in here:
            start_original(self)  # raises as it should
            return
        tid = here[_TID] = next(state.recorder().tids)
        state.recorder().name("thread", tid, self.name)
        run, own_run = self.run, here.get("run")
        begun_ns: list[int] = []

        def traced_run() -> None:
            # Restore the attribute before the program's own code runs.
            if own_run is None:
                here.pop("run", None)
            else:
                here["run"] = own_run
            _run_in_log(tid, begun_ns, run)

        here["run"] = traced_run
        routine = _routine(here.get("_target") or type(self).run, type(self).__name__)
        try:
            _create(log, routine, _DAEMON_FLAG if self.daemon else 0, tid, begun_ns, lambda: start_original(self))
        except BaseException:
            here.pop(_TID, None)
            here.pop("run", None)
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
        return int(
            _create(
                log,
                _routine(function, "function"),
                0,
                tid,
                begun_ns,
                lambda: original(_run_in_log, (tid, begun_ns, function, *args), named),
            )
        )

    return [(_thread, "start_new_thread", start_new_thread), (_thread, "start_new", start_new_thread)]


def patches() -> list[tuple[Any, str, Any]]:
    """Return owner, name and replacement of the functions that start and join threads."""
    return [*_thread_patches(), *_low_level_patches()]


def adopt_main_thread() -> None:
    """Give the calling thread the next thread number of the recorder, and record the start and name of the thread."""
    here = threading.current_thread()
    tid = here.__dict__[_TID] = next(state.recorder().tids)
    state.recorder().name("thread", tid, here.name)
    begin_thread(tid, [])


def release_main_thread() -> None:
    """Remove the thread numbers from all live threads, as tracing may end before the program does."""
    for thread in threading.enumerate():
        thread.__dict__.pop(_TID, None)
