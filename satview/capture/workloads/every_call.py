"""A workload that makes every kernel call of the release: successfully, and with an error if the call can fail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from satview.capture.kernel import Kernel
from satview.capture.sim.calls import (
    CHF_DISCONNECT,
    PLAIN_CALLS,
    SIG_BLOCK,
    SIG_UNBLOCK,
    SIGSEGV,
    SIGUSR1,
    BarrierWait,
    Call,
    ChannelCreate,
    ChannelDestroy,
    ClockAdjust,
    ClockPeriod,
    ClockTime,
    Compute,
    CondSignal,
    CondWait,
    ConnectAttach,
    ConnectClientInfo,
    ConnectDetach,
    ConnectFlags,
    ConnectServerInfo,
    InterruptAttach,
    InterruptAttachEvent,
    InterruptDetach,
    InterruptDetachFunc,
    InterruptMask,
    InterruptUnmask,
    InterruptWait,
    KernelCall,
    MsgCurrent,
    MsgDeliverEvent,
    MsgError,
    MsgInfo,
    MsgKeyData,
    MsgQueueClose,
    MsgQueueCtl,
    MsgQueueOpen,
    MsgQueueReceive,
    MsgQueueSend,
    MsgRead,
    MsgReadIov,
    MsgReadWrite,
    MsgReceive,
    MsgReceivePulse,
    MsgReply,
    MsgSend,
    MsgSendnc,
    MsgSendPulse,
    MsgSendPulsePtr,
    MsgVerifyEvent,
    MsgWrite,
    MutexLock,
    MutexUnlock,
    NetSignalKill,
    NetUnblock,
    NetVtid,
    PipeClose,
    PipeOpen,
    PipeRead,
    PipeWrite,
    RwLockAcquire,
    RwLockRelease,
    SchedCtl,
    SchedGet,
    SchedInfo,
    SchedSet,
    SchedYield,
    SemPost,
    SemWait,
    Sigevent,
    SignalAction,
    SignalFault,
    SignalKill,
    SignalKillSigval,
    SignalProcmask,
    SignalSuspend,
    SignalWaitinfo,
    Sleep,
    SyncCreate,
    SyncDestroy,
    SyncMutexRevive,
    SyncTypeDestroy,
    ThreadCancel,
    ThreadCreate,
    ThreadCtl,
    ThreadCtlExt,
    ThreadDetach,
    ThreadJoin,
    TimerAlarm,
    TimerCreate,
    TimerDestroy,
    TimerInfo,
    TimerSettime,
)
from satview.capture.sim.services import Errno, QnxError
from satview.capture.sim.threads import Barrier, BoundedQueue, Condvar, Mutex, Policy, Program, RwLock, Semaphore
from satview.capture.workloads.parts import MS, US

VECTOR = 11
HOLD_ONE, LET_ONE_GO = 8, 9  # _NTO_TCTL_ONE_THREAD_HOLD, _NTO_TCTL_ONE_THREAD_CONT
QUERIES = ("parameters", "partition", "partition statistics", "overall statistics", "thread", "process", "configure")
# Arguments of the calls of `PLAIN_CALLS`; `chid` is that of the caller's channel.
_VALUES: Mapping[str, Mapping[str, int]] = {
    "CHANCON_ATTR": {"chid": 1, "flags": 0x1},
    "CHANNEL_CTL": {"chid": 1, "cmd": 2},
    "CLOCK_ID": {"tid": 1},
    "SYS_CPUPAGE_GET": {"index": 1},
    "SYS_CPUPAGE_SET": {"index": 1, "value": 0x8047FF0},
    "CACHE_FLUSH": {"addr": 0x8050000, "nlines": 64},
    "CACHE_CONTROL": {"addr": 0x8050000, "len": 4096},
    "NOP": {"dummy": 7},
    "SYNC_CTL": {"cmd": 1, "sync_p": 0x804A000},
    "INTERRUPT_QUERY": {"id": 1},
    "MSG_REGISTER_EVENT": {"word 0": 4, "word 1": 1},
    "TIMER_DELEGATE": {"action": 1},
}


def setup_every_call(kernel: Kernel) -> None:
    """Start a program for calls that need no second thread, and others for messages, objects, queues, interrupts."""
    [share] = kernel.partitions(("Share", 50, 0))
    kernel.device(VECTOR, lambda: 3 * MS)
    kernel.spawn("usr/bin/rows", _rows, kernel, priority=9, thread_name="rows")
    kernel.spawn("usr/bin/prompt", _prompt, share.ident, priority=8, thread_name="prompt")
    kernel.spawn("usr/bin/threads", _threads, priority=8, thread_name="main")
    kernel.spawn("usr/bin/objects", _objects, priority=8, thread_name="main")
    kernel.spawn("usr/sbin/server", _server, kernel, priority=9, thread_name="server")
    kernel.spawn("sbin/driver", _driver, kernel, priority=9, thread_name="driver")
    if kernel.target.has_call("MSG_QUEUE_OPEN"):
        kernel.spawn("usr/bin/queues", _queues, priority=9, thread_name="main")


def _tried(call: Call) -> Program:
    """Make a call that may fail; return its result, or None if it fails."""
    try:
        return (yield call)
    except QnxError:
        return None


def _rows(kernel: Kernel) -> Program:
    """Make every call in `PLAIN_CALLS`, once successfully and once with an error."""
    yield ChannelCreate()
    yield ThreadCtl()
    for name in PLAIN_CALLS:
        if kernel.target.has_call(name):
            yield from _tried(KernelCall(name, _VALUES.get(name, {})))
            yield from _tried(KernelCall(name, error=Errno.EINVAL))
            yield Compute(20 * US)


def _prompt(share: int) -> Program:
    """Make calls that return at once."""
    chid = yield ChannelCreate(flags=CHF_DISCONNECT)
    coid = yield ConnectAttach(0, chid)
    yield ThreadCreate(_pulses, (chid,), 12, Policy.RR, "pulses")
    pulse = Sigevent("pulse", coid, 11, code=1)
    timer = yield TimerCreate(pulse)
    mutex, destroyed = Mutex("attributes"), Semaphore("gone")
    yield SyncDestroy(destroyed)
    for call in (
        ClockTime(), ClockPeriod(), ClockPeriod(1), ClockAdjust(10, 1000), ClockAdjust(), SchedGet(), SchedInfo(),
        SchedInfo(policy=99), SchedYield(), SchedSet(11, Policy.FIFO), SchedSet(999), SchedCtl("join", share),
        *(SchedCtl(query, share) for query in QUERIES), SchedCtl("partition", 99),
        ConnectServerInfo(0, coid), ConnectServerInfo(0, 0x7FFFFFFF), ConnectClientInfo(99), ConnectFlags(coid, 1, 1),
        ConnectFlags(99), TimerSettime(timer, 50 * MS), TimerInfo(timer), TimerInfo(99), TimerSettime(99, 1),
        TimerDestroy(timer), TimerDestroy(99), TimerAlarm(40 * MS), TimerAlarm(0), SyncCreate(mutex),
        SyncDestroy(mutex), SyncDestroy(mutex), SyncTypeDestroy(Mutex("typed")),
        SyncMutexRevive(Mutex("revived")), MutexUnlock(mutex),
        SignalAction(99), SignalAction(SIGUSR1, None), SignalKill(0, 0, SIGUSR1), SignalKillSigval(0, 0, SIGUSR1),
        SignalKill(99, 0, SIGUSR1), SignalProcmask(SIG_BLOCK, (SIGUSR1,)), SignalProcmask(SIG_UNBLOCK, (SIGUSR1,)),
        SignalProcmask(9), MsgSendPulse(99), ThreadDetach(99),
        ThreadCancel(99), ThreadJoin(99), MsgSend(99), MsgReply(99), ConnectAttach(99, 1), ConnectDetach(99),
        ChannelDestroy(99), InterruptDetach(99), InterruptMask(99), MsgReceive(99), MsgReceivePulse(99), SchedGet(99),
        MsgSendPulsePtr(99), SignalKillSigval(99, 0, SIGUSR1), ThreadCtlExt(pid=99), ThreadCreate(_brief, priority=999),
        InterruptAttachEvent(VECTOR), RwLockRelease(RwLock("free")), MsgError(99, Errno.EBUSY), MsgCurrent(99),
        MsgRead(99), MsgReadIov(99), MsgReadWrite(99, 99), MsgWrite(99), MsgKeyData(99), MsgDeliverEvent(99),
        CondWait(Condvar("alone"), mutex), SemWait(destroyed), NetVtid(-1), MsgQueueClose(99), MsgQueueCtl(99),
        MsgQueueReceive(99), PipeClose(99),
    ):  # fmt: skip
        yield from _tried(call)
        yield Compute(10 * US)
    for call in (MsgSendPulse(coid, 11, 2), MsgSendPulsePtr(coid, 11, 3), ConnectDetach(coid), ChannelDestroy(chid)):
        yield call
        yield Sleep(MS)


def _pulses(chid: int) -> Program:
    """Receive two pulses from `_prompt`, and the kernel's pulse after the last connection to the channel is closed."""
    for _ in range(3):
        yield MsgReceivePulse(chid)


def _threads() -> Program:
    """Start, join, detach, cancel, stop and continue threads, and send them signals."""
    joined = yield ThreadCreate(_brief, (), 12, Policy.RR, "joined")
    yield ThreadJoin(joined)
    detached = yield ThreadCreate(_sleeper, (), 12, Policy.RR, "detached")
    yield ThreadDetach(detached)
    cancelled = yield ThreadCreate(_sleeper, (), 12, Policy.RR, "cancelled")
    yield Sleep(2 * MS)
    for call in (ThreadCtl(HOLD_ONE, detached), ThreadCtl(LET_ONE_GO, detached), ThreadCtl(HOLD_ONE, 99)):
        yield from _tried(call)
        yield Sleep(2 * MS)
    yield from _tried(ThreadCtlExt(0, tid=1))
    yield ThreadCancel(cancelled)
    yield SignalAction(SIGUSR1, _on_signal)
    yield SignalAction(SIGSEGV, _on_signal)
    yield SignalFault(SIGSEGV, 1, 0x10)
    suspended = yield ThreadCreate(_suspended, (), 12, Policy.RR, "suspended")
    waiting = yield ThreadCreate(_waiting, (), 12, Policy.RR, "waiting")
    yield Sleep(2 * MS)
    yield SignalKill(0, suspended, SIGUSR1)
    yield SignalKill(0, waiting, SIGUSR1 + 1)
    yield Sleep(3 * MS)


def _brief() -> Program:
    yield Compute(200 * US)
    return 7


def _sleeper() -> Program:
    for _ in range(4):
        yield Sleep(4 * MS)


def _on_signal(_signo: int) -> Program:
    yield Compute(100 * US)


def _suspended() -> Program:
    yield from _tried(SignalSuspend())


def _waiting() -> Program:
    yield SignalWaitinfo((SIGUSR1 + 1,))


def _objects() -> Program:
    """Synchronize with a second thread by a mutex, condition variable, semaphore, barrier and readers/writer lock."""
    mutex, condvar, semaphore = Mutex("m"), Condvar("c"), Semaphore("s")
    barrier, lock = Barrier("b", 2), RwLock("l")
    orphan = Mutex("orphan")
    tid = yield ThreadCreate(_owner, (orphan,), 12, Policy.RR, "owner")
    yield ThreadJoin(tid)
    yield from _tried(SyncMutexRevive(orphan))  # its owner has ended
    yield MutexLock(mutex)
    yield from _tried(MutexLock(mutex))
    yield ThreadCreate(_partner, (mutex, condvar, semaphore, barrier, lock), 12, Policy.RR, "partner")
    yield Sleep(2 * MS)
    yield MutexUnlock(mutex)
    yield MutexLock(mutex)
    yield CondSignal(condvar)
    yield MutexUnlock(mutex)
    yield SemPost(semaphore)
    yield RwLockAcquire(lock, True)
    yield Sleep(2 * MS)
    yield RwLockRelease(lock)
    yield BarrierWait(barrier)


def _owner(mutex: Mutex) -> Program:
    yield MutexLock(mutex)


def _partner(mutex: Mutex, condvar: Condvar, semaphore: Semaphore, barrier: Barrier, lock: RwLock) -> Program:
    yield MutexLock(mutex)
    yield CondWait(condvar, mutex)
    yield MutexUnlock(mutex)
    yield SemWait(semaphore)
    yield Sleep(MS)
    yield RwLockAcquire(lock)
    yield RwLockRelease(lock)
    yield BarrierWait(barrier)


def _server(kernel: Kernel) -> Program:
    """Make all calls of a server for the messages of three clients."""
    yield SignalAction(SIGUSR1, None)
    chid = yield ChannelCreate()
    clients = []
    for size in (20, 40, 60):
        tid = yield ThreadCreate(_client, (chid, size), 12, Policy.RR, f"client-{size}")
        clients.append(tid)
    yield Sleep(2 * MS)
    first, second, third = (yield MsgReceive(chid)), (yield MsgReceive(chid)), (yield MsgReceive(chid))
    for call in (
        MsgInfo(first.rcvid), MsgInfo(99), ConnectClientInfo(first.scoid), MsgRead(first.rcvid),
        MsgWrite(second.rcvid, b"later", 2), MsgReadIov(first.rcvid),
        MsgReadWrite(first.rcvid, second.rcvid), MsgCurrent(first.rcvid),
        MsgKeyData(first.rcvid), MsgVerifyEvent(first.rcvid, Sigevent("intr")),
        MsgVerifyEvent(first.rcvid, Sigevent("pulse", 0x40000099)),
        MsgDeliverEvent(first.rcvid, Sigevent("signal", signo=SIGUSR1)),
        KernelCall("MSG_PAUSE", {"rcvid": first.rcvid}), NetVtid(1), NetUnblock(1), NetUnblock(9), NetVtid(0),
        NetSignalKill(0, 0, SIGUSR1), NetSignalKill(99, 0, SIGUSR1),
    ):  # fmt: skip
        yield from _tried(call)
    yield MsgReply(first.rcvid, 0, b"OK")
    yield MsgReply(second.rcvid, 0, b"OK")
    yield MsgError(third.rcvid, Errno.EBUSY)
    for tid in clients:
        yield ThreadJoin(tid)
    if kernel.target.has_call("NET_CRED"):
        coid = yield ConnectAttach(0, chid)
        yield KernelCall("NET_CRED", {"coid": coid})


def _client(chid: int, size: int) -> Program:
    coid = yield ConnectAttach(0, chid)
    yield from _tried(MsgSend(coid, bytes(size)) if size == 20 else MsgSendnc(coid, bytes(size)))


def _driver(kernel: Kernel) -> Program:
    """Attach to an interrupt, mask it, wait for it, and detach again."""
    yield ThreadCtl()
    if kernel.target.has_handlers:
        ident = yield InterruptAttach(VECTOR, _handler)
        yield Sleep(5 * MS)
        yield InterruptDetach(ident)
        yield InterruptAttach(VECTOR, _handler)
        yield InterruptDetachFunc(VECTOR, _handler)
        yield from _tried(InterruptDetachFunc(VECTOR, _handler))
    ident = yield InterruptAttachEvent(VECTOR, Sigevent("intr"))
    for _ in range(3):
        yield InterruptWait()
        yield Compute(50 * US)
        yield InterruptUnmask(VECTOR, ident)
    yield InterruptMask(VECTOR, ident)
    yield InterruptUnmask(VECTOR, ident)
    yield InterruptDetach(ident)


def _handler() -> Sigevent | None:
    return None


def _queues() -> Program:
    """Send to and receive from a message queue and a pipe; sender and receiver have to wait (8.0)."""
    queue, pipe = BoundedQueue("/mq", 2), BoundedQueue("pipe", 1)
    yield from _both_ends(MsgQueueOpen(queue), MsgQueueSend, MsgQueueReceive, MsgQueueClose)
    yield from _both_ends(PipeOpen(pipe), PipeWrite, PipeRead, PipeClose)


def _both_ends(opening: MsgQueueOpen, send: Any, receive: Any, close: Any) -> Program:
    fd = yield opening
    reader = yield ThreadCreate(_reader, (fd, receive), 13, Policy.RR, "reader")
    yield send(fd, b"one")  # the reader waits for it
    if send is MsgQueueSend:
        yield MsgQueueCtl(fd, 1)
    yield Compute(100 * US)
    for text in (b"two", b"three", b"four", b"five"):
        yield send(fd, text)  # the queue is full while the reader sleeps
    yield ThreadJoin(reader)
    yield close(fd)
    yield from _tried(send(fd, b"late"))


def _reader(fd: int, receive: Any) -> Program:
    yield receive(fd)
    yield Sleep(3 * MS)
    for _ in range(4):
        yield receive(fd)
        yield Compute(50 * US)
