"""Work that threads share: what one of them began, and what only one of them makes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from threading import Thread
from typing import Any, Generic, TypeVar

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
        if name not in self._made:
            with self._lock:
                lock = self._locks.setdefault(name, threading.RLock())
            with lock:
                if name not in self._made:
                    self._made[name] = make()
        return self._made[name]


class Claims:
    """Divides numbered things that are to be made among the threads that request them, so that none is made twice."""

    def __init__(self) -> None:
        self._claimed: set[int] = set()
        self._changed = threading.Condition()

    def take(self, requested: Iterable[int]) -> list[int]:
        """Claim and return those that no thread has claimed."""
        with self._changed:
            mine = [number for number in requested if number not in self._claimed]
            self._claimed.update(mine)
            return mine

    def leave(self, mine: Iterable[int]) -> None:
        """Claim some no more: they are made, or somebody else is to make them."""
        with self._changed:
            self._claimed.difference_update(mine)
            self._changed.notify_all()

    def wait(self, limit_s: float) -> None:
        """Return when a thread leaves some, or after a time."""
        with self._changed:
            self._changed.wait(limit_s)
