"""What several threads request and only one of them makes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any


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
