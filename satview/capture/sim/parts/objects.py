"""Synchronization objects as the kernel stores them: mutex, condition variable, semaphore, barrier, lock."""

from __future__ import annotations

from collections import deque
from typing import Any

from satview.capture.sim.parts.threads import Thread

_FIRST_ADDRESS = 0x804A000


class SyncObject:
    """A synchronization object in user memory; `name` identifies it in reports and determines its address.

    Attributes:
        waiters: Threads blocked on it, in order of arrival.
        is_destroyed: By SyncDestroy().
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.address = _FIRST_ADDRESS + sum(ord(c) * 31**i for i, c in enumerate(name)) % 0xFFFF * 16
        self.waiters: list[Thread] = []
        self.is_destroyed = False

    @property
    def label(self) -> str:
        """Type and name."""
        return f"{type(self).__name__.lower()} {self.name}"

    def values(self, prefix: str = "") -> dict[str, int]:
        """Return address, count and owner under the names of the event table."""
        return {"sync_p": self.address, f"{prefix}count": 0, f"{prefix}owner": 0}

    def take_best(self) -> Thread:
        """Remove and return the waiter with the highest priority, the oldest of equal ones."""
        best = max(range(len(self.waiters)), key=lambda i: (self.waiters[i].priority, -i))
        return self.waiters.pop(best)


class Mutex(SyncObject):
    """A mutex; `inherit=False` makes one without priority inheritance.

    Attributes:
        ceiling: Minimum priority at which its holder runs; the kernel then locks and unlocks it. 0 = none.
    """

    def __init__(self, name: str, inherit: bool = True, ceiling: int = 0) -> None:
        super().__init__(name)
        self.inherit = inherit
        self.ceiling = ceiling
        self.owner: Thread | None = None

    def owner_word(self) -> int:
        """Return owner and waiters flag as stored in memory."""
        if self.owner is None:
            return 0
        word = (self.owner.tid << 16 | self.owner.pid & 0xFFFF) & 0x7FFFFFFF
        return word | (0x80000000 if self.waiters else 0)

    def values(self, prefix: str = "") -> dict[str, int]:
        """Return address, count and owner."""
        return {
            "sync_p": self.address,
            f"{prefix}count": 0x80000000,
            f"{prefix}owner": self.owner_word(),
            "owner": self.owner_word(),
        }


class Condvar(SyncObject):
    """A condition variable."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.mutex_of: dict[Thread, Mutex] = {}


class Semaphore(SyncObject):
    """A counting semaphore."""

    def __init__(self, name: str, count: int = 0) -> None:
        super().__init__(name)
        self.count = count

    def values(self, prefix: str = "") -> dict[str, int]:
        """Return address and count."""
        return {"sync_p": self.address, f"{prefix}count": self.count, f"{prefix}owner": 0xFFFFFFFE}


class Barrier(SyncObject):
    """Blocks threads until `count` of them have arrived."""

    def __init__(self, name: str, count: int) -> None:
        super().__init__(name)
        self.count = count

    @property
    def lacks_one(self) -> bool:
        """True if only one thread is missing."""
        return len(self.waiters) + 1 >= self.count


class RwLock(SyncObject):
    """A readers/writer lock; waiting writers go first."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.readers: set[Thread] = set()
        self.writer: Thread | None = None
        self.queue: deque[tuple[Thread, bool]] = deque()


class BoundedQueue(SyncObject):
    """A message queue or pipe with limited capacity, ordered by priority.

    Attributes:
        items: (priority, message) of each entry.
        waiting_entries: The entries that threads in `waiters` want to add; empty while these wait for an entry.
    """

    def __init__(self, name: str, capacity: int) -> None:
        super().__init__(name)
        self.capacity = capacity
        self.items: list[tuple[int, bytes]] = []
        self.waiting_entries: dict[Thread, tuple[int, bytes]] = {}

    def put(self, entry: tuple[int, bytes]) -> None:
        """Add an entry behind those of the same priority."""
        position = next((i for i, (priority, _) in enumerate(self.items) if priority < entry[0]), len(self.items))
        self.items.insert(position, entry)


def lock_state(thing: Any) -> tuple[Thread, ...]:
    """Return the threads that hold an object that another thread waits for; empty if there is no holder."""
    if isinstance(thing, Mutex):
        return (thing.owner,) if thing.owner is not None else ()
    if isinstance(thing, RwLock):
        return (thing.writer,) if thing.writer is not None else tuple(thing.readers)
    holder = getattr(thing, "holder", None)
    return holder() if holder is not None else ()
