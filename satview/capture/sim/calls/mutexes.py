"""Kernel calls for mutexes, condition variables, semaphores, barriers and readers/writer locks."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import ClassVar

from satview.capture.sim.calls.call import CLOCK_MONOTONIC, Call, pass_on_priority
from satview.capture.sim.services import Errno, KernelServices, QnxError
from satview.capture.sim.threads import (
    Barrier,
    BoundedQueue,
    Condvar,
    Cpu,
    Mutex,
    RwLock,
    Semaphore,
    SyncObject,
    Thread,
)

__all__ = [
    "BarrierWait", "CondSignal", "CondWait", "MutexLock", "MutexUnlock", "RwLockAcquire", "RwLockRelease", "SemPost",
    "SemWait", "SyncCreate", "SyncDestroy", "SyncMutexRevive", "SyncTypeDestroy",
]  # fmt: skip

LIBRARY_CYCLES = 40  # user code that acquires or releases a free object without entering the kernel


def check_exists(kernel: KernelServices, cpu: Cpu, thread: Thread, call: Call, thing: SyncObject) -> None:
    """Raise EINVAL as a QnxError if SyncDestroy() has destroyed the object `thing` that a thread passes to `call`."""
    if thing.is_destroyed:
        kernel.enter(cpu, thread, call)
        raise QnxError(Errno.EINVAL, f"{thing.label} is destroyed")


def _acquire(kernel: KernelServices, thread: Thread, mutex: Mutex) -> None:
    mutex.owner = thread
    thread.held.append(mutex)
    kernel.history.mutex_acquired(kernel.now, thread, mutex.address)


def _release(kernel: KernelServices, thread: Thread, mutex: Mutex) -> None:
    mutex.owner = None
    thread.held.remove(mutex)
    kernel.history.mutex_released(kernel.now, thread, mutex.address)


def _wait_for(kernel: KernelServices, cpu: Cpu, thread: Thread, mutex: Mutex) -> None:
    mutex.waiters.append(thread)
    owner = mutex.owner
    kernel.block(cpu, thread, "MUTEX", mutex, (owner,) if owner is not None else ())
    if mutex.inherit and owner is not None:
        pass_on_priority(kernel, cpu, owner)


def release_mutex(kernel: KernelServices, cpu: Cpu, mutex: Mutex) -> None:
    """Release a mutex and give it to the waiter with the highest priority, if any; update inherited priorities."""
    old = mutex.owner
    if old is not None:
        _release(kernel, old, mutex)
    if mutex.waiters:
        new = mutex.take_best()
        _acquire(kernel, new, mutex)
        if mutex.ceiling:
            pass_on_priority(kernel, cpu, new)
        kernel.wake(cpu, new, waker=old)
    if old is not None and old.state != "DEAD":
        pass_on_priority(kernel, cpu, old)


def forget_waiter(kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
    """Remove a thread from the waiters of an object, because the wait ends by a timeout, a signal or a cancellation."""
    thing = thread.waiting_on
    if isinstance(thing, SyncObject) and thread in thing.waiters:
        thing.waiters.remove(thread)
        if isinstance(thing, Mutex) and thing.owner is not None:
            pass_on_priority(kernel, cpu, thing.owner)
    if isinstance(thing, BoundedQueue):
        thing.waiting_entries.pop(thread, None)
    if isinstance(thing, RwLock):
        thing.queue = deque(entry for entry in thing.queue if entry[0] is not thread)


def reacquire_mutex(
    kernel: KernelServices, cpu: Cpu, condvar: Condvar, waiter: Thread, waker: Thread | None, outcome: str = "ok"
) -> None:
    """End a thread's wait on a condition variable: give it the mutex, or let it wait for the mutex.

    `waker` is the thread whose call ends the wait, None = no thread, and `outcome` how it ends, as in `TrueWait`.
    """
    mutex = condvar.mutex_of.pop(waiter)
    if mutex.owner is None:
        _acquire(kernel, waiter, mutex)
        kernel.wake(cpu, waiter, waker, outcome)
        return
    mutex.waiters.append(waiter)
    kernel.change_wait(cpu, waiter, "MUTEX", mutex, (mutex.owner,), waker)
    if mutex.inherit:
        pass_on_priority(kernel, cpu, mutex.owner)


@dataclass(slots=True)
class MutexLock(Call):
    """Lock a mutex; enters the kernel only to wait, because the library locks a free mutex itself."""

    name = "SYNC_MUTEX_LOCK"
    mutex: Mutex

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Lock a free mutex, in user code unless it has a ceiling; wait in the kernel if it is not free.

        Raises:
            QnxError: EDEADLK (the caller has locked the mutex already), EINVAL (the mutex is destroyed).
        """
        mutex = self.mutex
        check_exists(kernel, cpu, thread, self, mutex)
        if mutex.owner is None and not mutex.waiters:
            if mutex.ceiling:
                kernel.enter(cpu, thread, self)
            _acquire(kernel, thread, mutex)
            kernel.complete(thread)
            if mutex.ceiling:
                pass_on_priority(kernel, cpu, thread)
            else:
                thread.remaining = LIBRARY_CYCLES
            return
        kernel.enter(cpu, thread, self)
        if mutex.owner is thread:
            raise QnxError(Errno.EDEADLK, mutex.label)
        kernel.complete(thread)
        _wait_for(kernel, cpu, thread, mutex)


@dataclass(slots=True)
class MutexUnlock(Call):
    """Unlock a mutex; enters the kernel only if a thread waits for the mutex."""

    name = "SYNC_MUTEX_UNLOCK"
    mutex: Mutex

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Unlock the mutex; if threads wait, the kernel gives the mutex to one of them.

        Raises:
            QnxError: EPERM (the mutex belongs to another thread).
        """
        mutex = self.mutex
        if mutex.owner is not thread:
            kernel.enter(cpu, thread, self)
            raise QnxError(Errno.EPERM, f"{mutex.label} belongs to another thread")
        if not mutex.waiters and not mutex.ceiling:
            _release(kernel, thread, mutex)
            kernel.complete(thread)
            thread.remaining = LIBRARY_CYCLES
            return
        kernel.enter(cpu, thread, self)
        kernel.complete(thread)
        release_mutex(kernel, cpu, mutex)


@dataclass(slots=True)
class CondWait(Call):
    """Unlock a mutex, wait on a condition variable, and lock the mutex again."""

    name = "SYNC_CONDVAR_WAIT"
    condvar: Condvar
    mutex: Mutex

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the logged arguments: the condition variable and the mutex."""
        return {
            **self.condvar.values(),
            "mutex_p": self.mutex.address,
            "mutex->count": 0x80000000,
            "mutex->owner": self.mutex.owner_word(),
        }

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Unlock the mutex and wait.

        Raises:
            QnxError: EPERM (the mutex is not locked by the caller).
        """
        check_exists(kernel, cpu, thread, self, self.condvar)
        kernel.enter(cpu, thread, self)
        if self.mutex.owner is not thread:
            raise QnxError(Errno.EPERM, f"{self.mutex.label} is not locked by the caller")
        kernel.complete(thread)
        self.condvar.waiters.append(thread)
        self.condvar.mutex_of[thread] = self.mutex
        kernel.block(cpu, thread, "CONDVAR", self.condvar)
        release_mutex(kernel, cpu, self.mutex)


@dataclass(slots=True)
class CondSignal(Call):
    """Wake one thread that waits on a condition variable, or all threads with `everybody`."""

    name = "SYNC_CONDVAR_SIGNAL"
    logs: ClassVar = {"all": "everybody"}
    condvar: Condvar
    everybody: bool = False

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Let one waiter or all lock their mutex again. Without a waiter the signal is lost, as in POSIX."""
        kernel.enter(cpu, thread, self)
        kernel.complete(thread)
        condvar = self.condvar
        while condvar.waiters:
            reacquire_mutex(kernel, cpu, condvar, condvar.take_best(), thread)
            if not self.everybody:
                return


@dataclass(slots=True)
class SyncCreate(Call):
    """Register a synchronization object with the kernel; required only for objects with attributes."""

    name = "SYNC_CREATE"
    logs: ClassVar = {"clockid": CLOCK_MONOTONIC}
    sync: SyncObject

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Make the object usable, also after SyncDestroy()."""
        kernel.enter(cpu, thread, self)
        self.sync.is_destroyed = False
        kernel.complete(thread)


@dataclass(slots=True)
class SyncDestroy(Call):
    """Destroy a synchronization object; fails while a thread holds the object or waits for it."""

    name = "SYNC_DESTROY"
    sync: SyncObject

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Destroy the object unless a thread uses it.

        Raises:
            QnxError: EINVAL (the object is destroyed already); EBUSY (a thread holds the object or waits for it).
        """
        kernel.enter(cpu, thread, self)
        if self.sync.is_destroyed:
            raise QnxError(Errno.EINVAL, f"{self.sync.label} is destroyed already")
        if self.sync.waiters or getattr(self.sync, "owner", None) is not None:
            raise QnxError(Errno.EBUSY, self.sync.label)
        self.sync.is_destroyed = True
        kernel.complete(thread)


@dataclass(slots=True)
class SyncTypeDestroy(SyncDestroy):
    """Destroy a synchronization object by a call that exists from 8.0 on."""

    name = "SYNC_TYPE_DESTROY"

    def older(self) -> Call:
        """Return `SyncDestroy`, which exists in all releases."""
        return SyncDestroy(self.sync)


@dataclass(slots=True)
class SyncMutexRevive(Call):
    """Lock a mutex whose owner has ended without unlocking it (up to 7.x)."""

    name = "SYNC_MUTEX_REVIVE"
    mutex: Mutex

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Make the caller the owner of the mutex.

        Raises:
            QnxError: EINVAL (the mutex has no owner, or the owner has not ended).
        """
        kernel.enter(cpu, thread, self)
        owner = self.mutex.owner
        if owner is None or owner.state != "DEAD":
            raise QnxError(Errno.EINVAL, f"the owner of {self.mutex.label} is alive")
        self.mutex.owner = thread
        thread.held.append(self.mutex)
        kernel.complete(thread)


# Semaphores, barriers and reader/writer locks.


@dataclass(slots=True)
class SemWait(Call):
    """Decrement a semaphore; enters the kernel only to wait, if the count is 0."""

    name = "SYNC_SEM_WAIT"
    semaphore: Semaphore

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Decrement the semaphore, or wait until another thread posts it."""
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
    """Increment a semaphore, or wake a thread that waits for it."""

    name = "SYNC_SEM_POST"
    semaphore: Semaphore

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Wake the waiter with the highest priority; increment the semaphore if there is no waiter."""
        check_exists(kernel, cpu, thread, self, self.semaphore)
        kernel.enter(cpu, thread, self)
        kernel.complete(thread)
        if self.semaphore.waiters:
            kernel.wake(cpu, self.semaphore.take_best(), waker=thread)
        else:
            self.semaphore.count += 1


@dataclass(slots=True)
class LibraryWait(Call):
    """Wait on a barrier or lock that is no kernel object: the library waits on a condition variable instead."""

    name = "SYNC_CONDVAR_WAIT"
    thing: SyncObject

    @property
    def is_cancellation_point(self) -> bool:
        """Always False: threads are not cancelled during a wait on a barrier or lock."""
        return False


@dataclass(slots=True)
class LibraryWake(Call):
    """Wake the threads that wait on a barrier or lock that is no kernel object."""

    name = "SYNC_CONDVAR_SIGNAL"
    logs: ClassVar = {"all": 1}
    thing: SyncObject


def _native(kernel: KernelServices, state: str) -> str:
    return state if kernel.target.has_buffer_end else "CONDVAR"


@dataclass(slots=True)
class BarrierWait(Call):
    """Wait until all threads that a barrier requires have arrived; barriers are kernel objects from 8.0 on."""

    name = "SYNC_BARRIER_WAIT"
    barrier: Barrier

    def older(self) -> Call:
        """Return the call made on older kernels: the thread waits or, as the last one, wakes the others."""
        return LibraryWake(self.barrier) if self.barrier.lacks_one else LibraryWait(self.barrier)

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Wait until all threads have arrived; the last one wakes the others."""
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
    """Acquire a readers/writer lock for reading or writing; these locks are kernel objects from 8.0 on."""

    name = "SYNC_RWLOCK"
    lock: RwLock
    write: bool = False

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the logged arguments: the lock and the operation."""
        return {**self.lock.values(), "op": 1 + self.write}

    def older(self) -> Call:
        """Return the call made on older kernels, which waits on a condition variable."""
        return LibraryWait(self.lock)

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Acquire the lock for reading or writing, or wait in its queue."""
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
    """Release a readers/writer lock."""

    name = "SYNC_RWLOCK"
    logs: ClassVar = {"op": 3}
    lock: RwLock

    def older(self) -> Call:
        """Return the call made on older kernels, which wakes the waiters."""
        return LibraryWake(self.lock)

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Release the lock, and give it to the next threads in the queue.

        Raises:
            QnxError: EPERM (the caller does not hold the lock).
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
