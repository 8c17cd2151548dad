"""Kernel calls for mutexes, condition variables, semaphores, barriers and reader/writer locks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from satview.capture.sim.call_base import Call
from satview.capture.sim.objects import Barrier, Condvar, Mutex, RwLock, Semaphore, SyncObject

if TYPE_CHECKING:
    from satview.capture.sim.threads import Thread


@dataclass(slots=True)
class MutexLock(Call):
    """Lock; only a wait enters the kernel, as the library takes a free mutex itself."""

    name = "SYNC_MUTEX_LOCK"
    mutex: Mutex

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return the mutex."""
        return self.mutex.values()


@dataclass(slots=True)
class MutexUnlock(Call):
    """Unlock; enters the kernel only if somebody waits."""

    name = "SYNC_MUTEX_UNLOCK"
    mutex: Mutex

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return the mutex."""
        return self.mutex.values()


@dataclass(slots=True)
class CondWait(Call):
    """Give up the mutex, wait for a signal, take the mutex again."""

    name = "SYNC_CONDVAR_WAIT"
    condvar: Condvar
    mutex: Mutex

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return both objects."""
        return {**self.condvar.values("sync->"), "mutex_p": self.mutex.address,
                "mutex->count": 0x80000000, "mutex->owner": self.mutex.owner_word()}


@dataclass(slots=True)
class CondSignal(Call):
    """Wake one waiter, or all of them."""

    name = "SYNC_CONDVAR_SIGNAL"
    condvar: Condvar
    everybody: bool = False

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return the condition variable."""
        return {**self.condvar.values("sync->"), "all": int(self.everybody)}


@dataclass(slots=True)
class SemWait(Call):
    """Take one from a semaphore; enters the kernel only if there is none."""

    name = "SYNC_SEM_WAIT"
    semaphore: Semaphore

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return the semaphore."""
        return self.semaphore.values()


@dataclass(slots=True)
class SemPost(Call):
    """Add one to a semaphore."""

    name = "SYNC_SEM_POST"
    semaphore: Semaphore

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return the semaphore."""
        return self.semaphore.values()


@dataclass(slots=True)
class LibraryWait(Call):
    """A thread waits at an object that is none of the kernel's: inside the library it is a condition variable."""

    name = "SYNC_CONDVAR_WAIT"
    thing: SyncObject

    @property
    def is_cancellation_point(self) -> bool:
        """False: nobody is cancelled at a barrier or a lock."""
        return False

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return the object."""
        return self.thing.values("sync->")


@dataclass(slots=True)
class LibraryWake(Call):
    """Those who wait at such an object are woken."""

    name = "SYNC_CONDVAR_SIGNAL"
    thing: SyncObject

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return the object."""
        return {**self.thing.values("sync->"), "all": 1}


@dataclass(slots=True)
class BarrierWait(Call):
    """Wait until as many threads have come as the barrier counts. A kernel object from 8.0 on."""

    name = "SYNC_BARRIER_WAIT"
    barrier: Barrier

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return the barrier."""
        return self.barrier.values("sync->")

    def older(self) -> Call:
        """All but the last wait; the last wakes them."""
        return LibraryWake(self.barrier) if self.barrier.lacks_one else LibraryWait(self.barrier)


@dataclass(slots=True)
class RwLockAcquire(Call):
    """Lock for reading (`write=False`) or writing. A kernel object from 8.0 on."""

    name = "SYNC_RWLOCK"
    lock: RwLock
    write: bool = False

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return the lock and the operation."""
        return {**self.lock.values("sync->"), "op": 1 + self.write}

    def older(self) -> Call:
        """Wait."""
        return LibraryWait(self.lock)


@dataclass(slots=True)
class RwLockRelease(Call):
    """Give up a reader/writer lock."""

    name = "SYNC_RWLOCK"
    lock: RwLock

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return the lock and the operation."""
        return {**self.lock.values("sync->"), "op": 3}

    def older(self) -> Call:
        """Wake whoever waits."""
        return LibraryWake(self.lock)
