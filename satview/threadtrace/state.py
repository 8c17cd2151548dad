"""The one recorder of the process, and the log of the calling thread."""

from __future__ import annotations

import _thread
import os
import sys
import threading
from types import CodeType, FrameType
from typing import Any, Final

from satview.threadtrace.log import Log
from satview.threadtrace.recorder import Recorder

_OWN: Final = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  -- pathlib is not for traced programs
_STANDARD: Final = os.path.dirname(os.path.abspath(os.__file__))  # noqa: PTH100, PTH120
_SITE: Final = ("site-packages", "dist-packages")
_DEEPEST: Final = 40


class State:
    """Holds the recorder and `local.log`, the log of the calling thread, which locks read without a call.

    A module variable would need `global` in every position that changes it.
    """

    recorder: Recorder | None = None
    local: Any = _thread._local()
    routines: dict[CodeType, int] = {}  # noqa: RUF012  -- one per process on purpose


def recorder() -> Recorder:
    """Return the recorder; there is one while tracing is installed."""
    assert State.recorder is not None
    return State.recorder


def current() -> Log:
    """Return the log of the calling thread, a new one for a thread that nobody announced."""
    try:
        log: Log = State.local.log
    except AttributeError:
        return begin(next(recorder().tids))
    return log


def begin(tid: int) -> Log:
    """Make the log of the calling thread; one that it has already gets the number."""
    if hasattr(State.local, "log"):
        State.local.log.tid = tid
        return current()
    log = State.local.log = recorder().new_log(tid)
    return log


def start(new: Recorder) -> None:
    """Make a recorder the one of the process."""
    State.recorder = new
    State.local = _thread._local()
    State.routines = {}


def fork_child() -> None:
    """Begin new files in a child process; the thread that forked keeps its number."""
    tid = getattr(getattr(State.local, "log", None), "tid", 0)
    here = recorder()
    here.after_fork()
    State.local = _thread._local()
    if not here.is_closed:
        begin(tid or next(here.tids))


def new_object(kind: str) -> int:
    """Return an address for an object and note what it is: `Lock app.py:12`.

    Addresses are numbers made up here: those of Python objects come back as soon as an object is gone.
    """
    here = recorder()
    address = next(here.addresses)
    here.name("object", address, f"{kind} {_maker()}")
    return address


def routine(code: CodeType | None, name: str) -> int:
    """Return an address for a function that a thread runs."""
    if code is None:
        return 0
    address = State.routines.get(code)
    if address is None:
        here = recorder()
        address = State.routines[code] = next(here.addresses)
        here.name("object", address, f"{name} {_position(code.co_filename, code.co_firstlineno)}")
    return address


def _maker() -> str:
    """Return the line that made an object: the first outside the standard library, with the one inside it behind."""
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
