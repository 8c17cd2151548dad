"""A workload that makes every kernel call of the release: successfully, and with an error if the call can fail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from satview.capture.kernel import Kernel
from satview.capture.sim import calls
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


def _tried(call: calls.Call) -> Program:
    """Make a call that may fail; return its result, or None if it fails."""
    try:
        return (yield call)
    except QnxError:
        return None


def _rows(kernel: Kernel) -> Program:
    """Make every call in `PLAIN_CALLS`, once successfully and once with an error."""
    yield calls.ChannelCreate()
    yield calls.ThreadCtl()
    for name in calls.PLAIN_CALLS:
        if kernel.target.has_call(name):
            yield from _tried(calls.KernelCall(name, _VALUES.get(name, {})))
            yield from _tried(calls.KernelCall(name, error=Errno.EINVAL))
            yield calls.Compute(20 * US)


def _prompt(share: int) -> Program:
    """Make kernel calls that return at once; `share` is the number of the partition that calls join and query."""
    chid = yield calls.ChannelCreate(flags=calls.CHF_DISCONNECT)
    coid = yield calls.ConnectAttach(0, chid)
    yield calls.ThreadCreate(_pulses, (chid,), 12, Policy.RR, "pulses")
    pulse = calls.Sigevent("pulse", coid, 11, code=1)
    timer = yield calls.TimerCreate(pulse)
    mutex, destroyed = Mutex("attributes"), Semaphore("gone")
    yield calls.SyncDestroy(destroyed)
    for call in (
        calls.ClockTime(), calls.ClockPeriod(), calls.ClockPeriod(1), calls.ClockAdjust(10, 1000), calls.ClockAdjust(),
        calls.SchedGet(), calls.SchedInfo(), calls.SchedInfo(policy=99), calls.SchedYield(),
        calls.SchedSet(11, Policy.FIFO), calls.SchedSet(999), calls.SchedCtl("join", share),
        *(calls.SchedCtl(query, share) for query in QUERIES), calls.SchedCtl("partition", 99),
        calls.ConnectServerInfo(0, coid), calls.ConnectServerInfo(0, 0x7FFFFFFF), calls.ConnectClientInfo(99),
        calls.ConnectFlags(coid, 1, 1), calls.ConnectFlags(99), calls.TimerSettime(timer, 50 * MS),
        calls.TimerInfo(timer), calls.TimerInfo(99), calls.TimerSettime(99, 1), calls.TimerDestroy(timer),
        calls.TimerDestroy(99), calls.TimerAlarm(40 * MS), calls.TimerAlarm(0), calls.SyncCreate(mutex),
        calls.SyncDestroy(mutex), calls.SyncDestroy(mutex), calls.SyncTypeDestroy(Mutex("typed")),
        calls.SyncMutexRevive(Mutex("revived")), calls.MutexUnlock(mutex), calls.SignalAction(99),
        calls.SignalAction(calls.SIGUSR1, None), calls.SignalKill(0, 0, calls.SIGUSR1),
        calls.SignalKillSigval(0, 0, calls.SIGUSR1), calls.SignalKill(99, 0, calls.SIGUSR1),
        calls.SignalProcmask(calls.SIG_BLOCK, (calls.SIGUSR1,)),
        calls.SignalProcmask(calls.SIG_UNBLOCK, (calls.SIGUSR1,)), calls.SignalProcmask(9), calls.MsgSendPulse(99),
        calls.ThreadDetach(99), calls.ThreadCancel(99), calls.ThreadJoin(99), calls.MsgSend(99), calls.MsgReply(99),
        calls.ConnectAttach(99, 1), calls.ConnectDetach(99), calls.ChannelDestroy(99), calls.InterruptDetach(99),
        calls.InterruptMask(99), calls.MsgReceive(99), calls.MsgReceivePulse(99), calls.SchedGet(99),
        calls.MsgSendPulsePtr(99), calls.SignalKillSigval(99, 0, calls.SIGUSR1), calls.ThreadCtlExt(pid=99),
        calls.ThreadCreate(_brief, priority=999), calls.InterruptAttachEvent(VECTOR),
        calls.RwLockRelease(RwLock("free")), calls.MsgError(99, Errno.EBUSY), calls.MsgCurrent(99), calls.MsgRead(99),
        calls.MsgReadIov(99), calls.MsgReadWrite(99, 99), calls.MsgWrite(99), calls.MsgKeyData(99),
        calls.MsgDeliverEvent(99), calls.CondWait(Condvar("alone"), mutex), calls.SemWait(destroyed), calls.NetVtid(-1),
        calls.MsgQueueClose(99), calls.MsgQueueCtl(99), calls.MsgQueueReceive(99), calls.PipeClose(99),
    ):  # fmt: skip
        yield from _tried(call)
        yield calls.Compute(10 * US)
    for call in (
        calls.MsgSendPulse(coid, 11, 2),
        calls.MsgSendPulsePtr(coid, 11, 3),
        calls.ConnectDetach(coid),
        calls.ChannelDestroy(chid),
    ):
        yield call
        yield calls.Sleep(MS)


def _pulses(chid: int) -> Program:
    """Receive two pulses from `_prompt`, and the kernel's pulse after the last connection to the channel is closed."""
    for _ in range(3):
        yield calls.MsgReceivePulse(chid)


def _threads() -> Program:
    """Start, join, detach, cancel, stop and continue threads, and send them signals."""
    joined = yield calls.ThreadCreate(_brief, (), 12, Policy.RR, "joined")
    yield calls.ThreadJoin(joined)
    detached = yield calls.ThreadCreate(_sleeper, (), 12, Policy.RR, "detached")
    yield calls.ThreadDetach(detached)
    cancelled = yield calls.ThreadCreate(_sleeper, (), 12, Policy.RR, "cancelled")
    yield calls.Sleep(2 * MS)
    for call in (
        calls.ThreadCtl(HOLD_ONE, detached),
        calls.ThreadCtl(LET_ONE_GO, detached),
        calls.ThreadCtl(HOLD_ONE, 99),
    ):
        yield from _tried(call)
        yield calls.Sleep(2 * MS)
    yield from _tried(calls.ThreadCtlExt(0, tid=1))
    yield calls.ThreadCancel(cancelled)
    yield calls.SignalAction(calls.SIGUSR1, _on_signal)
    yield calls.SignalAction(calls.SIGSEGV, _on_signal)
    yield calls.SignalFault(calls.SIGSEGV, 1, 0x10)
    suspended = yield calls.ThreadCreate(_suspended, (), 12, Policy.RR, "suspended")
    waiting = yield calls.ThreadCreate(_waiting, (), 12, Policy.RR, "waiting")
    yield calls.Sleep(2 * MS)
    yield calls.SignalKill(0, suspended, calls.SIGUSR1)
    yield calls.SignalKill(0, waiting, calls.SIGUSR1 + 1)
    yield calls.Sleep(3 * MS)


def _brief() -> Program:
    yield calls.Compute(200 * US)
    return 7


def _sleeper() -> Program:
    for _ in range(4):
        yield calls.Sleep(4 * MS)


def _on_signal(_signo: int) -> Program:
    yield calls.Compute(100 * US)


def _suspended() -> Program:
    yield from _tried(calls.SignalSuspend())


def _waiting() -> Program:
    yield calls.SignalWaitinfo((calls.SIGUSR1 + 1,))


def _objects() -> Program:
    """Synchronize with a second thread by a mutex, condition variable, semaphore, barrier and readers/writer lock."""
    mutex, condvar, semaphore = Mutex("m"), Condvar("c"), Semaphore("s")
    barrier, lock = Barrier("b", 2), RwLock("l")
    orphan = Mutex("orphan")
    tid = yield calls.ThreadCreate(_owner, (orphan,), 12, Policy.RR, "owner")
    yield calls.ThreadJoin(tid)
    yield from _tried(calls.SyncMutexRevive(orphan))  # its owner has ended
    yield calls.MutexLock(mutex)
    yield from _tried(calls.MutexLock(mutex))
    yield calls.ThreadCreate(_partner, (mutex, condvar, semaphore, barrier, lock), 12, Policy.RR, "partner")
    yield calls.Sleep(2 * MS)
    yield calls.MutexUnlock(mutex)
    yield calls.MutexLock(mutex)
    yield calls.CondSignal(condvar)
    yield calls.MutexUnlock(mutex)
    yield calls.SemPost(semaphore)
    yield calls.RwLockAcquire(lock, True)
    yield calls.Sleep(2 * MS)
    yield calls.RwLockRelease(lock)
    yield calls.BarrierWait(barrier)


def _owner(mutex: Mutex) -> Program:
    yield calls.MutexLock(mutex)


def _partner(mutex: Mutex, condvar: Condvar, semaphore: Semaphore, barrier: Barrier, lock: RwLock) -> Program:
    yield calls.MutexLock(mutex)
    yield calls.CondWait(condvar, mutex)
    yield calls.MutexUnlock(mutex)
    yield calls.SemWait(semaphore)
    yield calls.Sleep(MS)
    yield calls.RwLockAcquire(lock)
    yield calls.RwLockRelease(lock)
    yield calls.BarrierWait(barrier)


def _server(kernel: Kernel) -> Program:
    """Make all calls of a server for the messages of three clients."""
    yield calls.SignalAction(calls.SIGUSR1, None)
    chid = yield calls.ChannelCreate()
    clients = []
    for size in (20, 40, 60):
        tid = yield calls.ThreadCreate(_client, (chid, size), 12, Policy.RR, f"client-{size}")
        clients.append(tid)
    yield calls.Sleep(2 * MS)
    first, second, third = (
        (yield calls.MsgReceive(chid)),
        (yield calls.MsgReceive(chid)),
        (yield calls.MsgReceive(chid)),
    )
    for call in (
        calls.MsgInfo(first.rcvid), calls.MsgInfo(99), calls.ConnectClientInfo(first.scoid), calls.MsgRead(first.rcvid),
        calls.MsgWrite(second.rcvid, b"later", 2), calls.MsgReadIov(first.rcvid),
        calls.MsgReadWrite(first.rcvid, second.rcvid), calls.MsgCurrent(first.rcvid), calls.MsgKeyData(first.rcvid),
        calls.MsgVerifyEvent(first.rcvid, calls.Sigevent("intr")),
        calls.MsgVerifyEvent(first.rcvid, calls.Sigevent("pulse", 0x40000099)),
        calls.MsgDeliverEvent(first.rcvid, calls.Sigevent("signal", signo=calls.SIGUSR1)),
        calls.KernelCall("MSG_PAUSE", {"rcvid": first.rcvid}), calls.NetVtid(1), calls.NetUnblock(1),
        calls.NetUnblock(9), calls.NetVtid(0), calls.NetSignalKill(0, 0, calls.SIGUSR1),
        calls.NetSignalKill(99, 0, calls.SIGUSR1),
    ):  # fmt: skip
        yield from _tried(call)
    yield calls.MsgReply(first.rcvid, 0, b"OK")
    yield calls.MsgReply(second.rcvid, 0, b"OK")
    yield calls.MsgError(third.rcvid, Errno.EBUSY)
    for tid in clients:
        yield calls.ThreadJoin(tid)
    if kernel.target.has_call("NET_CRED"):
        coid = yield calls.ConnectAttach(0, chid)
        yield calls.KernelCall("NET_CRED", {"coid": coid})


def _client(chid: int, size: int) -> Program:
    coid = yield calls.ConnectAttach(0, chid)
    yield from _tried(calls.MsgSend(coid, bytes(size)) if size == 20 else calls.MsgSendnc(coid, bytes(size)))


def _driver(kernel: Kernel) -> Program:
    """Attach to an interrupt, mask it, wait for it, and detach again."""
    yield calls.ThreadCtl()
    if kernel.target.has_handlers:
        ident = yield calls.InterruptAttach(VECTOR, _handler)
        yield calls.Sleep(5 * MS)
        yield calls.InterruptDetach(ident)
        yield calls.InterruptAttach(VECTOR, _handler)
        yield calls.InterruptDetachFunc(VECTOR, _handler)
        yield from _tried(calls.InterruptDetachFunc(VECTOR, _handler))
    ident = yield calls.InterruptAttachEvent(VECTOR, calls.Sigevent("intr"))
    for _ in range(3):
        yield calls.InterruptWait()
        yield calls.Compute(50 * US)
        yield calls.InterruptUnmask(VECTOR, ident)
    yield calls.InterruptMask(VECTOR, ident)
    yield calls.InterruptUnmask(VECTOR, ident)
    yield calls.InterruptDetach(ident)


def _handler() -> calls.Sigevent | None:
    return None


def _queues() -> Program:
    """Send to and receive from a message queue and a pipe; sender and receiver have to wait (8.0)."""
    queue, pipe = BoundedQueue("/mq", 2), BoundedQueue("pipe", 1)
    yield from _both_ends(calls.MsgQueueOpen(queue), calls.MsgQueueSend, calls.MsgQueueReceive, calls.MsgQueueClose)
    yield from _both_ends(calls.PipeOpen(pipe), calls.PipeWrite, calls.PipeRead, calls.PipeClose)


def _both_ends(opening: calls.MsgQueueOpen, send: Any, receive: Any, close: Any) -> Program:
    fd = yield opening
    reader = yield calls.ThreadCreate(_reader, (fd, receive), 13, Policy.RR, "reader")
    yield send(fd, b"one")  # the reader waits for it
    if send is calls.MsgQueueSend:
        yield calls.MsgQueueCtl(fd, 1)
    yield calls.Compute(100 * US)
    for text in (b"two", b"three", b"four", b"five"):
        yield send(fd, text)  # the queue is full while the reader sleeps
    yield calls.ThreadJoin(reader)
    yield close(fd)
    yield from _tried(send(fd, b"late"))


def _reader(fd: int, receive: Any) -> Program:
    yield receive(fd)
    yield calls.Sleep(3 * MS)
    for _ in range(4):
        yield receive(fd)
        yield calls.Compute(50 * US)
