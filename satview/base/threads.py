"""Threads: watchdogs for user code, functions in the background, and values that only one thread computes."""

from __future__ import annotations

import ctypes
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from threading import Thread
from typing import Any, Final, Generic, TypeVar

# Watchdog that ends endless Python code of a user's file.


_LOOKS: Final = 20  # checks within the time limit of a block


class Stuck(BaseException):  # no Exception, which an endless loop may catch
    """Raised in code that ran for too long without progress."""

    def __str__(self) -> str:
        return "it ran for too long"


class Watchdog:
    """Watches `with` blocks for lack of progress, one block at a time; short blocks cost hardly any time.

    In a block without progress for `limit_s`, `Stuck` is raised, repeatedly if the block goes on. The watching thread
    starts with the first block, and ends after `limit_s` without blocks, or when the watchdog is freed. `progress`
    returns a number that changes as long as the block makes progress, or None while it waits for something else; by
    default only the end of the block counts. Works only on CPython.
    """

    def __init__(self, limit_s: float, progress: Callable[[], int | None] = int) -> None:
        self._limit_s, self._progress = limit_s, progress
        self._lock = threading.Lock()
        self._has_thread = False
        self._watched = 0  # ident of the thread that runs the block
        self._block = 0
        self._is_on = self._has_raised = False

    def __enter__(self) -> None:
        self._watched, self._block, self._is_on = threading.get_ident(), self._block + 1, True
        if not self._has_thread:
            self._begin()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._is_on = False
        if self._has_raised:  # withdraw an exception that the block has not received yet
            self._has_raised = False
            _raise_in(self._watched, None)

    def _begin(self) -> None:
        with self._lock:
            if not self._has_thread:
                self._has_thread = True
                arguments = weakref.ref(self), self._limit_s / _LOOKS
                threading.Thread(target=self._watch, args=arguments, name="satview-watchdog", daemon=True).start()

    @staticmethod
    def _watch(dog_of: weakref.ref[Watchdog], look_s: float) -> None:
        seen, looks = None, 0
        while (dog := dog_of()) is not None:
            sign = dog._sign()
            # Count checks, not seconds: the computer may have been suspended.
            looks = looks + 1 if sign is not None and sign == seen else 0
            seen = sign
            if looks >= _LOOKS and sign is not None:
                if not dog._bark(sign[0]):
                    return
                looks = 0
            del dog  # else this thread would keep the watchdog alive
            time.sleep(look_s)

    def _sign(self) -> tuple[int, int] | None:
        """Return the number of the current block and its progress; None while the block waits."""
        block = self._block
        progress = self._progress() if self._is_on else 0
        return None if progress is None else (block, progress)

    def _bark(self, block: int) -> bool:
        """Raise `Stuck` in the given block if it still runs; return whether the watching thread must go on."""
        with self._lock:
            if self._is_on and self._block == block:
                self._has_raised = True
                _raise_in(self._watched, Stuck)
            self._has_thread = False
            self._has_thread = self._is_on  # a block that just began relies on this thread
            return self._has_thread


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Raise an exception in another thread, as soon as it runs Python code; None withdraws a pending exception."""
    python = getattr(ctypes, "pythonapi", None)
    if python is not None:
        argument = ctypes.py_object(error) if error is not None else ctypes.py_object()
        python.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), argument)


# Functions in the background.


_Result = TypeVar("_Result")


class Begun(Generic[_Result]):
    """A function that is run in a thread of its own, which starts at once, and its result.

    Useful for code that releases the interpreter lock: reading files, the compiled core, numpy on large arrays.
    """

    def __init__(self, make: Callable[[], _Result], name: str) -> None:
        self._result: _Result
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run, args=(make,), name=name, daemon=True)
        self._thread.start()

    def _run(self, make: Callable[[], _Result]) -> None:
        try:
            self._result = make()
        except BaseException as error:  # noqa: BLE001 - raised by `result`
            self._error = error

    @property
    def is_done(self) -> bool:
        """True if `result` returns at once."""
        return not self._thread.is_alive()

    def wait(self) -> None:
        """Wait until the function has ended; exceptions of the function are not raised here."""
        self._thread.join()

    def result(self) -> _Result:
        """Wait until the function has ended, and return its result or raise its exception."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._result


# Values that several threads request, and one of them computes.


class Once:
    """Values by name, each computed by the first thread that requests it; other threads wait until it is computed."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._locks: dict[str, threading.RLock] = {}
        self._lock = threading.Lock()

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def get(self, name: str, make: Callable[[], Any]) -> Any:
        """Return the value stored under a name; the first request computes it by `make`.

        If `make` raises, the next request calls it again.
        """
        value = self._values.get(name, self)
        if value is self:  # stands for no value
            with self._lock:
                lock = self._locks.setdefault(name, threading.RLock())
            with lock:
                value = self._values.get(name, self)
                if value is self:
                    value = self._values[name] = make()
        return value

    def forget(self, name: str) -> None:
        """Free the value stored under a name; the next request computes it again."""
        self._values.pop(name, None)


class Claims:
    """Assigns numbered items to the threads that request them, so that no two threads work on the same item."""

    def __init__(self) -> None:
        self._claimed: set[int] = set()
        self._changed = threading.Condition()

    def take(self, requested: Iterable[int]) -> list[int]:
        """Claim and return the requested items that no thread has claimed."""
        with self._changed:
            claimed = [number for number in requested if number not in self._claimed]
            self._claimed.update(claimed)
            return claimed

    def leave(self, claimed: Iterable[int]) -> None:
        """Release claimed items, because they are done or another thread is to do them."""
        with self._changed:
            self._claimed.difference_update(claimed)
            self._changed.notify_all()

    def wait(self, limit_s: float) -> None:
        """Wait until any thread releases items, at most for the time limit."""
        with self._changed:
            self._changed.wait(limit_s)
