"""Ends Python code of a user's file that does not come to an end by itself.

Nothing can ask the clock inside somebody's loop, so a second thread watches and has what runs too long raise
`TakesTooLong`. That ends every loop in Python; a call of the operating system has to return first.
"""

from __future__ import annotations

import ctypes
import threading
import time
from typing import Final

LIMIT_S: Final = 5.0
_LOOK_S: Final = 0.25


class TakesTooLong(BaseException):  # no Exception, which a loop without an end may well catch
    """Code ran longer than it may."""

    def __str__(self) -> str:
        return f"it ran for more than {LIMIT_S:g} seconds"


class Watchdog:
    """Watches `with` blocks, one at a time; millions of short ones cost next to nothing.

    A block that runs longer than `LIMIT_S` raises `TakesTooLong`. The watching thread begins with the first block and
    ends when there was none for a while.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._has_thread = False
        self._watched = 0  # ident of the thread that runs the block
        self._block = 0
        self._is_on = False

    def __enter__(self) -> None:
        self._watched, self._block, self._is_on = threading.get_ident(), self._block + 1, True
        if not self._has_thread:
            self._begin()

    def __exit__(self, *_: object) -> None:
        self._is_on = False

    def _begin(self) -> None:
        with self._lock:
            if not self._has_thread:
                self._has_thread = True
                threading.Thread(target=self._watch, name="handler watchdog", daemon=True).start()

    def _watch(self) -> None:
        seen, since_s = 0, time.monotonic()
        while True:
            time.sleep(_LOOK_S)
            if self._block != seen:
                seen, since_s = self._block, time.monotonic()
            if time.monotonic() - since_s <= LIMIT_S:
                continue
            if self._is_on:
                since_s = time.monotonic()  # should the code catch it, it comes again
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._watched), ctypes.py_object(TakesTooLong)
                )
            elif self._may_end():
                return

    def _may_end(self) -> bool:
        with self._lock:
            self._has_thread = False
            self._has_thread = self._is_on  # a block that began just now relies on this thread
            return not self._has_thread
