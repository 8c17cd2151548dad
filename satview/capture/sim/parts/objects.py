"""State of synchronization objects: mutex, condition variable, semaphore, barrier, readers/writer lock, queue."""

from __future__ import annotations

from collections import deque
from typing import Any

from satview.capture.sim.parts.threads import Thread

_FIRST_ADDRESS = 0x804A000


class SyncObject:
    """A synchronization object in user memory; `name` identifies it in reports and determines its address.

    Attributes:
        waiters: Threads blocked on the object, in order of arrival.
        is_destroyed: SyncDestroy() has destroyed the object.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.address = _FIRST_ADDRESS + sum(ord(c) * 31**i for i, c in enumerate(name)) % 0xFFFF * 16
        self.waiters: list[Thread] = []
        self.is_destroyed = False

    @property
    def label(self) -> str:
        """Type and name of the object, for reports."""
        return f"{type(self).__name__.lower()} {self.name}"

    def values(self, prefix: str = "") -> dict[str, int]:
        """Return address, count and owner by their names in the event table."""
        return {"sync_p": self.address, f"{prefix}count": 0, f"{prefix}owner": 0}

    def take_best(self) -> Thread:
        """Remove and return the waiter with the highest priority; of equal priorities, the first to wait."""
        best = max(range(len(self.waiters)), key=lambda i: (self.waiters[i].priority, -i))
        return self.waiters.pop(best)


class Mutex(SyncObject):
    """A mutex.

    Attributes:
        inherit: The owner inherits the priority of waiting threads.
        ceiling: Minimum priority of the owner; 0 = none. Locking and unlocking a mutex with a ceiling enter the kernel.
        owner: Thread that has locked the mutex; None = unlocked.
    """

    def __init__(self, name: str, inherit: bool = True, ceiling: int = 0) -> None:
        super().__init__(name)
        self.inherit = inherit
        self.ceiling = ceiling
        self.owner: Thread | None = None

    def owner_word(self) -> int:
        """Return the word in memory that contains the owner and the flag for waiting threads."""
        if self.owner is None:
            return 0
        word = (self.owner.tid << 16 | self.owner.pid & 0xFFFF) & 0x7FFFFFFF
        return word | (0x80000000 if self.waiters else 0)

    def values(self, prefix: str = "") -> dict[str, int]:
        """Return address, count and owner by their names in the event table."""
        return {
            "sync_p": self.address,
            f"{prefix}count": 0x80000000,
            f"{prefix}owner": self.owner_word(),
            "owner": self.owner_word(),
        }


class Condvar(SyncObject):
    """A condition variable; `mutex_of` contains the mutex of each waiting thread."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.mutex_of: dict[Thread, Mutex] = {}


class Semaphore(SyncObject):
    """A counting semaphore."""

    def __init__(self, name: str, count: int = 0) -> None:
        super().__init__(name)
        self.count = count

    def values(self, prefix: str = "") -> dict[str, int]:
        """Return address, count and owner by their names in the event table."""
        return {"sync_p": self.address, f"{prefix}count": self.count, f"{prefix}owner": 0xFFFFFFFE}


class Barrier(SyncObject):
    """A barrier, which blocks threads until `count` threads have arrived."""

    def __init__(self, name: str, count: int) -> None:
        super().__init__(name)
        self.count = count

    @property
    def lacks_one(self) -> bool:
        """Whether the next thread to arrive is the last one needed."""
        return len(self.waiters) + 1 >= self.count


class RwLock(SyncObject):
    """A readers/writer lock, which waiting threads get in order of arrival.

    Attributes:
        queue: Each waiting thread, and whether the thread waits to write.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.readers: set[Thread] = set()
        self.writer: Thread | None = None
        self.queue: deque[tuple[Thread, bool]] = deque()


class BoundedQueue(SyncObject):
    """A message queue or pipe with limited capacity, ordered by priority.

    Attributes:
        items: Priority and message of each entry.
        waiting_entries: The entry that each thread in `waiters` wants to add; empty if the waiters want to receive.
    """

    def __init__(self, name: str, capacity: int) -> None:
        super().__init__(name)
        self.capacity = capacity
        self.items: list[tuple[int, bytes]] = []
        self.waiting_entries: dict[Thread, tuple[int, bytes]] = {}

    def put(self, entry: tuple[int, bytes]) -> None:
        """Add an entry behind the entries of the same priority."""
        position = next((i for i, (priority, _) in enumerate(self.items) if priority < entry[0]), len(self.items))
        self.items.insert(position, entry)


def lock_state(thing: Any) -> tuple[Thread, ...]:
    """Return the threads that hold the object on which a thread is blocked; empty if no thread holds it."""
    if isinstance(thing, Mutex):
        return (thing.owner,) if thing.owner is not None else ()
    if isinstance(thing, RwLock):
        return (thing.writer,) if thing.writer is not None else tuple(thing.readers)
    holder = getattr(thing, "holder", None)
    return holder() if holder is not None else ()
