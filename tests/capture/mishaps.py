"""A workload in which calls fail in every way: refused, timed out, interrupted, cancelled, their server dead."""

from __future__ import annotations

from satview.capture.kernel import Kernel
from satview.capture.sim.calls import (
    SIGUSR1,
    BarrierWait,
    ChannelCreate,
    Compute,
    CondWait,
    ConnectAttach,
    MsgError,
    MsgReceive,
    MsgSend,
    MsgSendPulsePtr,
    MutexLock,
    MutexUnlock,
    RwLockAcquire,
    RwLockRelease,
    SemWait,
    SignalAction,
    SignalKillSigval,
    Sleep,
    ThreadCancel,
    ThreadCreate,
    ThreadJoin,
    TimerTimeout,
)
from satview.capture.sim.calls.call import Call
from satview.capture.sim.services import QnxError
from satview.capture.sim.threads import Barrier, Condvar, Mutex, Program, RwLock, Semaphore

MS = 1_000_000
DURATION_MS = 40
_EINVAL = 22


def setup(kernel: Kernel) -> None:
    """Start a server that refuses, hesitates and dies, and a client that has all the trouble."""
    pid = kernel.spawn("usr/sbin/moody", _server).pid
    kernel.spawn("usr/bin/unlucky", _client, pid)


def _tried(call: Call) -> Program:
    try:
        return (yield call)
    except QnxError as error:
        return error


def _server() -> Program:
    chid = yield ChannelCreate()
    message = yield MsgReceive(chid)
    yield MsgError(message.rcvid, _EINVAL)
    message = yield MsgReceive(chid)
    yield Sleep(3 * MS)
    yield from _tried(MsgError(message.rcvid, _EINVAL))  # its client has given up
    yield MsgReceive(chid)
    yield Compute(MS)  # and ends without an answer


def _client(server: int) -> Program:
    yield Sleep(2 * MS)
    coid = yield ConnectAttach(server, 1)
    yield from _tried(MsgSend(77))
    yield from _tried(MsgSend(coid, b"refused"))
    yield TimerTimeout(("SEND", "REPLY"), MS)
    yield from _tried(MsgSend(coid, b"too late"))
    yield from _tried(MsgSend(coid, b"nobody answers"))
    yield from _tried(MsgSend(coid, b"nobody is there"))
    own = yield ConnectAttach(0, (yield ChannelCreate()))
    yield MsgSendPulsePtr(own, 10, 1, 7)
    yield from _locks()
    yield from _signals()
    yield from _library()


def _locks() -> Program:
    mutex, condvar = Mutex("twice"), Condvar("never")
    yield MutexLock(mutex)
    yield from _tried(MutexLock(mutex))
    yield TimerTimeout(("CONDVAR",), 2 * MS)
    yield from _tried(CondWait(condvar, mutex))
    yield MutexUnlock(mutex)
    yield from _tried(MutexUnlock(mutex))


def _signals() -> Program:
    def handler(_signo: int) -> Program:
        yield Compute(20_000)

    def sleeper() -> Program:
        yield from _tried(Sleep(50 * MS))
        yield SemWait(Semaphore("empty"))

    yield SignalAction(SIGUSR1, handler)
    tid = yield ThreadCreate(sleeper, (), 12)
    yield Sleep(2 * MS)
    yield SignalKillSigval(0, tid, SIGUSR1)
    yield Sleep(2 * MS)
    yield ThreadCancel(tid)
    yield from _tried(ThreadJoin(tid))
    yield from _tried(ThreadJoin(tid))


def _library() -> Program:
    barrier, lock = Barrier("two", 2), RwLock("table")

    def other() -> Program:
        yield Sleep(MS)
        yield RwLockAcquire(lock)
        yield RwLockRelease(lock)
        yield BarrierWait(barrier)

    yield RwLockAcquire(lock, write=True)
    yield ThreadCreate(other, (), 12)
    yield Sleep(3 * MS)
    yield RwLockRelease(lock)
    yield BarrierWait(barrier)
