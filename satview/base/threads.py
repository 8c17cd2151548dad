"""Sharing work among threads: background functions, and values made by only one of them."""

from __future__ import annotations

import ctypes
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from threading import Thread
from typing import Any, Final, Generic, TypeVar

# Ends Python code of a user's file that does not come to an end by itself.


_LOOKS: Final = 20  # in the time that a block may take


class Stuck(BaseException):  # no Exception, which a loop without an end may well catch
    """Code ran for too long without getting anywhere."""

    def __str__(self) -> str:
        return "it ran for too long"


class Watchdog:
    """Watches `with` blocks, one at a time; millions of short ones cost next to nothing.

    A block that gets nowhere for `limit_s` raises `Stuck`, and again should it go on. The watching thread begins with
    the first block and ends when there was none for that long, or nobody has the watchdog any more. On Pythons other
    than CPython nothing is watched.

    Args:
        limit_s: Patience.
        progress: A number that changes while the block gets on; None while it waits for others and cannot. Without it
            only the end of a block counts.
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
        if self._has_raised:  # perhaps it has not arrived yet: it is not meant for what comes after the block
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
            # Looks are counted, not seconds: a computer that slept has not been stuck.
            looks = looks + 1 if sign is not None and sign == seen else 0
            seen = sign
            if looks >= _LOOKS and sign is not None:
                if not dog._bark(sign[0]):
                    return
                looks = 0
            del dog  # or it would live as long as this thread
            time.sleep(look_s)

    def _sign(self) -> tuple[int, int] | None:
        """Return the number of the block and how far it got, None if that cannot be said now."""
        block = self._block
        progress = self._progress() if self._is_on else 0
        return None if progress is None else (block, progress)

    def _bark(self, block: int) -> bool:
        """Raise `Stuck` in a block that still runs; return False if none does, so that the thread may end."""
        with self._lock:
            if self._is_on and self._block == block:
                self._has_raised = True
                _raise_in(self._watched, Stuck)
            self._has_thread = False
            self._has_thread = self._is_on  # a block that began just now relies on this thread
            return self._has_thread


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Have another thread raise an exception as soon as it runs Python code; None takes back one that waits for it."""
    python = getattr(ctypes, "pythonapi", None)
    if python is not None:
        argument = ctypes.py_object(error) if error is not None else ctypes.py_object()
        python.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), argument)


# Functions that run in a thread beside the one that starts them.


_Made = TypeVar("_Made")


class Begun(Generic[_Made]):
    """A function that runs in a thread of its own from now on, and what it returns.

    Worth it for what does not hold the interpreter: reading files, the compiled core, numpy on large arrays.

    Args:
        make: The function.
        name: Of the thread.
    """

    def __init__(self, make: Callable[[], _Made], name: str) -> None:
        self._made: _Made
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run, args=(make,), name=name, daemon=True)
        self._thread.start()

    def _run(self, make: Callable[[], _Made]) -> None:
        try:
            self._made = make()
        except BaseException as error:  # noqa: BLE001 - raised where the result is taken
            self._error = error

    @property
    def is_done(self) -> bool:
        """Whether `result` answers at once."""
        return not self._thread.is_alive()

    def wait(self) -> None:
        """Return when it is done, however it ended."""
        self._thread.join()

    def result(self) -> _Made:
        """Return what the function returns, when it does; raise what it raises."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._made


# What several threads request and only one of them makes.


class Once:
    """Values that are made at the first request under a name; who requests one meanwhile waits for it."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}
        self._locks: dict[str, threading.RLock] = {}
        self._lock = threading.Lock()

    def __contains__(self, name: str) -> bool:
        return name in self._made

    def get(self, name: str, make: Callable[[], Any]) -> Any:
        """Return the value of a name. What `make` raises is raised here, and the next request tries again."""
        value = self._made.get(name, self)
        if value is self:  # which no value is
            with self._lock:
                lock = self._locks.setdefault(name, threading.RLock())
            with lock:
                value = self._made.get(name, self)
                if value is self:
                    value = self._made[name] = make()
        return value

    def forget(self, name: str) -> None:
        """Free the value of a name; the next request makes it again."""
        self._made.pop(name, None)


class Claims:
    """Assigns numbered items to the threads that request them, so that no item is made twice."""

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
        """Release claimed items: they are made, or another thread is to make them."""
        with self._changed:
            self._claimed.difference_update(claimed)
            self._changed.notify_all()

    def wait(self, limit_s: float) -> None:
        """Wait until a thread releases items, or the time limit is over."""
        with self._changed:
            self._changed.wait(limit_s)
