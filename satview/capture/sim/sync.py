"""How threads lock, wait and wake each other: the calls on synchronisation objects, with priority inheritance."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from satview.capture.sim.errors import Errno
from satview.capture.sim.objects import Condvar, Mutex, RwLock, SyncObject

if TYPE_CHECKING:
    from satview.capture.sim.calls import (
        BarrierWait,
        Call,
        CondSignal,
        CondWait,
        MutexLock,
        MutexUnlock,
        RwLockAcquire,
        RwLockRelease,
        SemPost,
        SemWait,
    )
    from satview.capture.sim.cpu import Cpu
    from satview.capture.sim.machine import Machine
    from satview.capture.sim.threads import Thread

# Priority inheritance


def effective_priority(thread: Thread) -> int:
    """Return the priority a thread is due: its own, or that of the most urgent one it keeps waiting."""
    waiting = [waiter.priority for lock in thread.held if lock.inherit for waiter in lock.waiters]
    channel = thread.received_from
    if channel is not None and not channel.fixed_priority and thread.state != "RECEIVE":
        waiting += [message.client.priority for message in channel.senders]
        waiting += [pulse.priority for pulse in channel.pulses]
    return int(max([thread.base_priority, *waiting]))


def pass_on_priority(machine: Machine, cpu: Cpu, thread: Thread) -> None:
    """Give a thread the priority it is due, and so on along the chain of those it waits for."""
    for _ in range(64):   # a deadlock is a ring; it must not hold the kernel
        due = effective_priority(thread)
        if due == thread.priority:
            return
        machine.scheduler.set_priority(cpu, thread, due)
        owner = getattr(thread.waiting_on, "owner", None)
        if thread.state != "MUTEX" or owner is None:
            return
        thread = owner


def _is_gone(machine: Machine, cpu: Cpu, thread: Thread, call: Call, thing: SyncObject) -> bool:
    """Let a call on an object that SyncDestroy() has removed fail; tell whether it did."""
    if thing.is_destroyed:
        machine.enter(cpu, thread, call)
        machine.fail(thread, Errno.EINVAL, f"{thing.label} is destroyed")
    return thing.is_destroyed


# Mutexes


def mutex_lock(machine: Machine, cpu: Cpu, thread: Thread, call: MutexLock) -> None:
    """Take a free mutex in user code; else enter the kernel and wait."""
    mutex = call.mutex
    if _is_gone(machine, cpu, thread, call, mutex):
        return
    if mutex.owner is None and not mutex.waiters:
        _acquire(machine, thread, mutex)
        machine.complete(thread)
        thread.remaining = 40
        return
    machine.enter(cpu, thread, call)
    if mutex.owner is thread:
        machine.fail(thread, Errno.EDEADLK, mutex.label)
        return
    machine.complete(thread)
    _wait_for(machine, cpu, thread, mutex)


def _acquire(machine: Machine, thread: Thread, mutex: Mutex) -> None:
    mutex.owner = thread
    thread.held.append(mutex)
    machine.history.got_mutex(machine.now, thread, mutex.address)


def _release(machine: Machine, thread: Thread, mutex: Mutex) -> None:
    mutex.owner = None
    thread.held.remove(mutex)
    machine.history.gave_mutex_up(machine.now, thread, mutex.address)


def _wait_for(machine: Machine, cpu: Cpu, thread: Thread, mutex: Mutex) -> None:
    mutex.waiters.append(thread)
    owner = mutex.owner
    machine.block(cpu, thread, "MUTEX", mutex, (owner,) if owner is not None else ())
    if mutex.inherit and owner is not None:
        pass_on_priority(machine, cpu, owner)


def mutex_unlock(machine: Machine, cpu: Cpu, thread: Thread, call: MutexUnlock) -> None:
    """Give up a mutex; if somebody waits, the kernel hands it on."""
    mutex = call.mutex
    if mutex.owner is not thread:
        machine.enter(cpu, thread, call)
        machine.fail(thread, Errno.EPERM, f"{mutex.label} belongs to another thread")
        return
    if not mutex.waiters:
        _release(machine, thread, mutex)
        machine.complete(thread)
        thread.remaining = 40
        return
    machine.enter(cpu, thread, call)
    machine.complete(thread)
    hand_on(machine, cpu, mutex)


def hand_on(machine: Machine, cpu: Cpu, mutex: Mutex) -> None:
    """Give a mutex to its most urgent waiter, or to nobody; the old owner falls back to its own priority."""
    old = mutex.owner
    if old is not None:
        _release(machine, old, mutex)
    if mutex.waiters:
        new = mutex.take_best()
        _acquire(machine, new, mutex)
        machine.wake(cpu, new, waker=old)
    if old is not None and old.state != "DEAD":
        pass_on_priority(machine, cpu, old)


def forget_waiter(machine: Machine, cpu: Cpu, thread: Thread) -> None:
    """Take a thread out of whatever object it waits for: its time is up, a signal came, or it died."""
    thing = thread.waiting_on
    if isinstance(thing, SyncObject) and thread in thing.waiters:
        thing.waiters.remove(thread)
        if isinstance(thing, Mutex) and thing.owner is not None:
            pass_on_priority(machine, cpu, thing.owner)
    if isinstance(thing, RwLock):
        thing.queue = deque(entry for entry in thing.queue if entry[0] is not thread)


# Condition variables


def cond_wait(machine: Machine, cpu: Cpu, thread: Thread, call: CondWait) -> None:
    """Give up the mutex and wait."""
    if _is_gone(machine, cpu, thread, call, call.condvar):
        return
    machine.enter(cpu, thread, call)
    if call.mutex.owner is not thread:
        machine.fail(thread, Errno.EPERM, f"{call.mutex.label} is not locked by the caller")
        return
    machine.complete(thread)
    call.condvar.waiters.append(thread)
    call.condvar.mutex_of[thread] = call.mutex
    machine.block(cpu, thread, "CONDVAR", call.condvar)
    hand_on(machine, cpu, call.mutex)


def cond_signal(machine: Machine, cpu: Cpu, thread: Thread, call: CondSignal) -> None:
    """Wake one waiter or all; each needs its mutex first. Without a waiter the signal is lost, as POSIX has it."""
    machine.enter(cpu, thread, call)
    machine.complete(thread)
    condvar = call.condvar
    while condvar.waiters:
        retake(machine, cpu, condvar, condvar.take_best(), thread)
        if not call.everybody:
            return


def retake(machine: Machine, cpu: Cpu, condvar: Condvar, waiter: Thread, waker: Thread | None,
           outcome: str = "ok") -> None:
    """Let a thread that waited on a condition variable take its mutex, or wait for that."""
    mutex = condvar.mutex_of.pop(waiter)
    if mutex.owner is None:
        _acquire(machine, waiter, mutex)
        machine.wake(cpu, waiter, waker, outcome)
        return
    mutex.waiters.append(waiter)
    machine.change_wait(cpu, waiter, "MUTEX", mutex, (mutex.owner,), waker)
    if mutex.inherit:
        pass_on_priority(machine, cpu, mutex.owner)


# Semaphores


def sem_wait(machine: Machine, cpu: Cpu, thread: Thread, call: SemWait) -> None:
    """Take one, or wait until there is one."""
    semaphore = call.semaphore
    if _is_gone(machine, cpu, thread, call, semaphore):
        return
    if semaphore.count > 0:
        semaphore.count -= 1
        machine.complete(thread)
        thread.remaining = 40
        return
    machine.enter(cpu, thread, call)
    machine.complete(thread)
    semaphore.waiters.append(thread)
    machine.block(cpu, thread, "SEM", semaphore)


def sem_post(machine: Machine, cpu: Cpu, thread: Thread, call: SemPost) -> None:
    """Add one and wake the most urgent waiter."""
    if _is_gone(machine, cpu, thread, call, call.semaphore):
        return
    machine.enter(cpu, thread, call)
    machine.complete(thread)
    if call.semaphore.waiters:
        machine.wake(cpu, call.semaphore.take_best(), waker=thread)
    else:
        call.semaphore.count += 1


# Barriers and reader/writer locks: kernel objects in 8.0, condition variables inside the library before


def _native(machine: Machine, state: str) -> str:
    return state if machine.target.has_buffer_end else "CONDVAR"


def barrier_wait(machine: Machine, cpu: Cpu, thread: Thread, call: BarrierWait) -> None:
    """Wait until all have come; the last one wakes the others."""
    barrier = call.barrier
    is_last = barrier.lacks_one
    machine.enter(cpu, thread, call)
    machine.complete(thread)
    if not is_last:
        barrier.waiters.append(thread)
        machine.block(cpu, thread, _native(machine, "BARRIER"), barrier)
        return
    waiters, barrier.waiters = barrier.waiters, []
    for waiter in waiters:
        machine.wake(cpu, waiter, waker=thread)


def rwlock_acquire(machine: Machine, cpu: Cpu, thread: Thread, call: RwLockAcquire) -> None:
    """Lock for reading or writing, or queue up."""
    lock = call.lock
    is_free = lock.writer is None and not lock.queue and not (call.write and lock.readers)
    if is_free:
        _admit(lock, thread, call.write)
        machine.complete(thread)
        thread.remaining = 40
        return
    machine.enter(cpu, thread, call)
    machine.complete(thread)
    lock.queue.append((thread, call.write))
    owners = (lock.writer,) if lock.writer is not None else tuple(sorted(lock.readers, key=lambda t: (t.pid, t.tid)))
    machine.block(cpu, thread, _native(machine, "RWLOCK_WRITE" if call.write else "RWLOCK_READ"), lock, owners)


def _admit(lock: RwLock, thread: Thread, write: bool) -> None:
    if write:
        lock.writer = thread
    else:
        lock.readers.add(thread)


def rwlock_release(machine: Machine, cpu: Cpu, thread: Thread, call: RwLockRelease) -> None:
    """Give up the lock and let in whoever is next."""
    lock = call.lock
    if lock.writer is not thread and thread not in lock.readers:
        machine.enter(cpu, thread, call)
        machine.fail(thread, Errno.EPERM, f"{lock.label} is not held by the caller")
        return
    if lock.writer is thread:
        lock.writer = None
    lock.readers.discard(thread)
    machine.complete(thread)
    if not lock.queue:
        thread.remaining = 40
        return
    machine.enter(cpu, thread, call)
    while lock.queue and lock.writer is None:
        waiter, write = lock.queue[0]
        if write and lock.readers:
            return
        lock.queue.popleft()
        _admit(lock, waiter, write)
        machine.wake(cpu, waiter, waker=thread)
