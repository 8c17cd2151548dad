"""Semaphores, barriers and reader/writer locks.

Barriers and reader/writer locks are kernel objects from 8.0 on; before, the library makes them of condition variables.
"""

from __future__ import annotations

from dataclasses import dataclass

from satview.capture.sim.calls.call import Call
from satview.capture.sim.calls.mutexes import LIBRARY_CYCLES, check_exists
from satview.capture.sim.parts.cpu import Cpu
from satview.capture.sim.parts.errors import Errno, QnxError
from satview.capture.sim.parts.objects import Barrier, RwLock, Semaphore, SyncObject
from satview.capture.sim.parts.services import KernelServices
from satview.capture.sim.parts.threads import Thread

__all__ = ["BarrierWait", "RwLockAcquire", "RwLockRelease", "SemPost", "SemWait"]


@dataclass(slots=True)
class SemWait(Call):
    """Take one from a semaphore; enters the kernel only if there is none."""

    name = "SYNC_SEM_WAIT"
    semaphore: Semaphore

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the semaphore."""
        return self.semaphore.values()

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Take one, or wait until there is one."""
        semaphore = self.semaphore
        check_exists(kernel, cpu, thread, self, semaphore)
        if semaphore.count > 0:
            semaphore.count -= 1
            kernel.complete(thread)
            thread.remaining = LIBRARY_CYCLES
            return
        kernel.enter(cpu, thread, self)
        kernel.complete(thread)
        semaphore.waiters.append(thread)
        kernel.block(cpu, thread, "SEM", semaphore)


@dataclass(slots=True)
class SemPost(Call):
    """Add one to a semaphore."""

    name = "SYNC_SEM_POST"
    semaphore: Semaphore

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the semaphore."""
        return self.semaphore.values()

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Add one and wake the most urgent waiter."""
        check_exists(kernel, cpu, thread, self, self.semaphore)
        kernel.enter(cpu, thread, self)
        kernel.complete(thread)
        if self.semaphore.waiters:
            kernel.wake(cpu, self.semaphore.take_best(), waker=thread)
        else:
            self.semaphore.count += 1


@dataclass(slots=True)
class LibraryWait(Call):
    """A thread waits at an object that is none of the kernel's: inside the library it is a condition variable."""

    name = "SYNC_CONDVAR_WAIT"
    thing: SyncObject

    @property
    def is_cancellation_point(self) -> bool:
        """False: nobody is cancelled at a barrier or a lock."""
        return False

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the object."""
        return self.thing.values("sync->")


@dataclass(slots=True)
class LibraryWake(Call):
    """Those who wait at such an object are woken."""

    name = "SYNC_CONDVAR_SIGNAL"
    thing: SyncObject

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the object."""
        return {**self.thing.values("sync->"), "all": 1}


def _native(kernel: KernelServices, state: str) -> str:
    return state if kernel.target.has_buffer_end else "CONDVAR"


@dataclass(slots=True)
class BarrierWait(Call):
    """Wait until as many threads have come as the barrier counts. A kernel object from 8.0 on."""

    name = "SYNC_BARRIER_WAIT"
    barrier: Barrier

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the barrier."""
        return self.barrier.values("sync->")

    def older(self) -> Call:
        """All but the last wait; the last wakes them."""
        return LibraryWake(self.barrier) if self.barrier.lacks_one else LibraryWait(self.barrier)

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Wait until all have come; the last one wakes the others."""
        barrier = self.barrier
        is_last = barrier.lacks_one
        kernel.enter(cpu, thread, self)
        kernel.complete(thread)
        if not is_last:
            barrier.waiters.append(thread)
            kernel.block(cpu, thread, _native(kernel, "BARRIER"), barrier)
            return
        waiters, barrier.waiters = barrier.waiters, []
        for waiter in waiters:
            kernel.wake(cpu, waiter, waker=thread)


def _admit(lock: RwLock, thread: Thread, write: bool) -> None:
    if write:
        lock.writer = thread
    else:
        lock.readers.add(thread)


@dataclass(slots=True)
class RwLockAcquire(Call):
    """Lock for reading (`write=False`) or writing. A kernel object from 8.0 on."""

    name = "SYNC_RWLOCK"
    lock: RwLock
    write: bool = False

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the lock and the operation."""
        return {**self.lock.values("sync->"), "op": 1 + self.write}

    def older(self) -> Call:
        """Wait."""
        return LibraryWait(self.lock)

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Lock for reading or writing, or queue up."""
        lock = self.lock
        is_free = lock.writer is None and not lock.queue and not (self.write and lock.readers)
        if is_free:
            _admit(lock, thread, self.write)
            kernel.complete(thread)
            thread.remaining = LIBRARY_CYCLES
            return
        kernel.enter(cpu, thread, self)
        kernel.complete(thread)
        lock.queue.append((thread, self.write))
        readers = tuple(sorted(lock.readers, key=lambda t: (t.pid, t.tid)))
        owners = (lock.writer,) if lock.writer is not None else readers
        kernel.block(cpu, thread, _native(kernel, "RWLOCK_WRITE" if self.write else "RWLOCK_READ"), lock, owners)


@dataclass(slots=True)
class RwLockRelease(Call):
    """Give up a reader/writer lock."""

    name = "SYNC_RWLOCK"
    lock: RwLock

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the lock and the operation."""
        return {**self.lock.values("sync->"), "op": 3}

    def older(self) -> Call:
        """Wake the waiters."""
        return LibraryWake(self.lock)

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Give up the lock and let in the next in the queue.

        Raises:
            QnxError: EPERM (the lock is not held by the caller).
        """
        lock = self.lock
        if lock.writer is not thread and thread not in lock.readers:
            kernel.enter(cpu, thread, self)
            raise QnxError(Errno.EPERM, f"{lock.label} is not held by the caller")
        if lock.writer is thread:
            lock.writer = None
        lock.readers.discard(thread)
        kernel.complete(thread)
        if not lock.queue:
            thread.remaining = LIBRARY_CYCLES
            return
        kernel.enter(cpu, thread, self)
        while lock.queue and lock.writer is None:
            waiter, write = lock.queue[0]
            if write and lock.readers:
                return
            lock.queue.popleft()
            _admit(lock, waiter, write)
            kernel.wake(cpu, waiter, waker=thread)
