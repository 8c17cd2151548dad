"""Ends a program that never yields: a loop in Python that the simulation cannot see from inside."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from types import TracebackType


class Stuck(BaseException):
    """Raised inside a program that has not yielded for too long."""


class Watchdog:
    """Watches a counter that grows with every step; if it stands still too long, raises `Stuck` in the watched thread.

    Works on CPython; elsewhere it only does nothing.

    Args:
        count: Returns the counter.
        limit_s: Patience.
    """

    def __init__(self, count: Callable[[], int], limit_s: float = 10.0) -> None:
        self._count = count
        self._limit_s = limit_s
        self._watched = threading.get_ident()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="satview-watchdog", daemon=True)

    def __enter__(self) -> Watchdog:  # noqa: PYI034  -- nobody subclasses it
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        last = self._count()
        while not self._end.wait(self._limit_s):
            now = self._count()
            if now == last and not self._end.is_set():
                raiser = getattr(getattr(ctypes, "pythonapi", None), "PyThreadState_SetAsyncExc", None)
                if raiser is not None:
                    raiser(ctypes.c_ulong(self._watched), ctypes.py_object(Stuck))
            last = now
