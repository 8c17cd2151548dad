"""Kernel calls that answer at once: results, errors, and what the trace shows of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from satview.capture.kernel import Kernel
from satview.capture.sim import calls
from satview.capture.sim.calls import (
    SIG_BLOCK,
    SIG_UNBLOCK,
    SIGALRM,
    SIGUSR1,
    ChannelCreate,
    ClockAdjust,
    ClockPeriod,
    Compute,
    ConnectAttach,
    ConnectClientInfo,
    ConnectFlags,
    ConnectServerInfo,
    InterruptAttachEvent,
    InterruptMask,
    MsgCurrent,
    MsgInfo,
    MsgKeyData,
    MsgReceive,
    MsgReply,
    MsgSend,
    MsgSendnc,
    MsgVerifyEvent,
    MsgWrite,
    MutexLock,
    MutexUnlock,
    SchedGet,
    SchedInfo,
    SchedYield,
    SemWait,
    Sigevent,
    SignalAction,
    SignalKill,
    SignalProcmask,
    Sleep,
    SyncCreate,
    SyncDestroy,
    SyncMutexRevive,
    ThreadCancel,
    ThreadCreate,
    ThreadCtl,
    ThreadDetach,
    ThreadJoin,
    TimerAlarm,
    TimerCreate,
    TimerInfo,
    TimerSettime,
)
from satview.capture.sim.services import QnxError
from satview.capture.sim.threads import Condvar, Mutex, Policy, Semaphore
from satview.events.spec import Release
from tests.capture.made import Traced, events, traced

WIDE = (("ADDALLCLASSES",), ("SETALLCLASSESWIDE",))
RELEASES = (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8)


def outcome(folder: Path, program: Any, release: Release = Release.QNX_7, ms: float = 40) -> tuple[list[Any], Traced]:
    """Run a program that yields calls; return the result of each, or the name of its error."""
    results: list[Any] = []

    def main() -> Any:
        inner, value = program(), None
        while True:
            try:
                call = inner.send(value)
            except StopIteration:
                return
            try:
                value = yield call
                results.append(value)
            except QnxError as failed:
                value = None
                results.append(failed.name)

    def setup(kernel: Kernel) -> None:
        kernel.spawn("usr/bin/prog", main)

    made = traced(setup, ms, folder, release, modes=WIDE)
    assert not made.kernel.machine.faults
    return results, made


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_a_server_asks_who_its_client_is(release: Release, tmp_path: Path) -> None:
    seen: dict[str, Any] = {}

    def client(chid: int) -> Any:
        coid = yield ConnectAttach(0, chid)
        seen["flags"] = [(yield ConnectFlags(coid, 1, 1)), (yield ConnectFlags(coid))]
        seen["server"] = yield ConnectServerInfo(0, coid)
        seen["reply"] = yield MsgSendnc(coid, b"HELLO, SERVER")

    def program() -> Any:
        chid = yield ChannelCreate()
        yield ThreadCreate(client, (chid,), priority=25)
        got = yield MsgReceive(chid)
        seen["info"] = yield MsgInfo(got.rcvid)
        seen["client"] = yield ConnectClientInfo(got.scoid)
        seen["bad client"] = yield ConnectClientInfo(77)
        yield MsgCurrent(got.rcvid)
        yield MsgVerifyEvent(got.rcvid, Sigevent("pulse", 0x40000099))
        seen["wrote"] = yield MsgWrite(got.rcvid, b"later", 2)
        yield MsgReply(got.rcvid, 0, b"OK")
        yield MsgInfo(got.rcvid)

    results, made = outcome(tmp_path, program, release)
    assert seen["info"]["pid"] == seen["client"] == 2
    assert (seen["info"]["tid"], seen["info"]["msglen"], seen["info"]["priority"]) == (2, 13, 25)
    assert seen["flags"] == [0, 1]
    assert seen["wrote"] == 5
    assert seen["reply"] == (0, b"OKlater"), "the reply is where it was put, what was written behind it"
    assert results[-1] == "ESRCH", "nobody waits any more"
    assert results.count("EINVAL") == 1
    assert results.count("EBADF") == 1
    info = [w for _, name, w in events(made.trace, "MSG_INFO") if len(w) >= 14]
    assert info[0][3:6] == (2, 2, 1) if release == Release.QNX_6 else info, "pid, tid, chid"


def test_key_data_exists_up_to_7_x(tmp_path: Path) -> None:
    def client(chid: int) -> Any:
        coid = yield ConnectAttach(0, chid)
        yield MsgSend(coid, b"x")

    def program() -> Any:
        chid = yield ChannelCreate()
        yield ThreadCreate(client, (chid,), priority=25)
        got = yield MsgReceive(chid)
        key = yield MsgKeyData(got.rcvid)
        yield MsgKeyData(got.rcvid, 1, key or 0)
        yield MsgReply(got.rcvid)

    results, _ = outcome(tmp_path, program)
    assert results[-3] > 0
    assert results[-2] == 0, "the key is right"
    results, _ = outcome(tmp_path, program, Release.QNX_8)
    assert results[-3:-1] == ["ENOSYS", "ENOSYS"]


def test_scheduling_can_be_requested(tmp_path: Path) -> None:
    def program() -> Any:
        yield SchedGet()
        yield SchedGet(0, 99)
        yield SchedInfo(0, Policy.FIFO)
        yield SchedInfo(0, 77)
        yield ThreadCtl(1)

    results, made = outcome(tmp_path, program)
    assert results[0] == (Policy.RR, 10, 10)
    assert results[1:] == ["ESRCH", (1, 255, 4_000_000), "EINVAL", 0]
    exits = [w for _, name, w in events(made.trace, "SCHED_INFO")]
    assert exits[1][:5] == (0, 1, 255, 0, 4_000_000)
    assert exits[3] == (0xFFFFFFFF, 22), "-1 and EINVAL"


def test_a_cancelled_thread_cleans_up_and_ends(tmp_path: Path) -> None:
    done: list[str] = []

    def sleeper(name: str) -> Any:
        try:
            yield Sleep(10**9)
        finally:
            done.append(name)

    def worker() -> Any:
        try:
            yield Compute(3_000_000)
            yield SchedYield()  # no cancellation point
            done.append("yielded")
            yield Sleep(10**9)
        finally:
            done.append("worker")

    def program() -> Any:
        first = yield ThreadCreate(sleeper, ("sleeper",), priority=20)
        second = yield ThreadCreate(worker, (), priority=9)
        yield Sleep(1_500_000)
        yield ThreadCancel(first)
        yield ThreadCancel(second)
        yield ThreadCancel(99)
        yield ThreadJoin(first)
        yield ThreadJoin(second)
        third = yield ThreadCreate(sleeper, ("third",), priority=20)
        yield ThreadDetach(third)
        yield ThreadDetach(third)
        yield ThreadJoin(third)

    results, made = outcome(tmp_path, program)
    assert done == ["sleeper", "yielded", "worker"]
    assert results[3:8] == [0, 0, "ESRCH", -1, -1]
    assert results[9:] == [0, "EINVAL", "EINVAL"]
    assert {w.outcome for w in made.truth.waits} >= {"cancelled"}


def test_blocked_signals_wait(tmp_path: Path) -> None:
    caught: list[tuple[int, int]] = []
    now = [0]

    def handler(signo: int) -> Any:
        caught.append((signo, now[0]))
        yield Compute(1000)

    def program() -> Any:
        yield SignalAction(SIGUSR1, handler)
        yield SignalAction(SIGALRM, handler)
        yield SignalProcmask(SIG_BLOCK, (SIGUSR1,))
        yield SignalKill(0, 1, SIGUSR1)
        yield Compute(1_000_000)
        now[0] = 1
        yield SignalProcmask(SIG_UNBLOCK, (SIGUSR1,))
        yield SignalProcmask(9)
        yield TimerAlarm(5_000_000)
        now[0] = 2
        yield Sleep(20_000_000)
        yield TimerAlarm(0)

    results, made = outcome(tmp_path, program)
    assert caught == [(SIGUSR1, 1), (SIGALRM, 2)]
    assert results[-4:] == ["EINVAL", 0, "EINTR", 0]
    assert (SIGUSR1,) in results
    signals = events(made.trace, "SIGNAL")
    assert [w[0] for _, _, w in signals] == [SIGUSR1, SIGALRM], "each is sent once"


def test_clocks_and_timers(tmp_path: Path) -> None:
    def program() -> Any:
        yield ClockPeriod()
        yield ClockPeriod(500)
        yield ClockPeriod(500_000)
        yield ClockAdjust(100, -50)
        yield ClockAdjust()
        chid = yield ChannelCreate()
        coid = yield ConnectAttach(0, chid)
        timer = yield TimerCreate(Sigevent("pulse", coid))
        yield TimerSettime(timer, 8_000_000, 2_000_000)
        yield TimerInfo(timer)
        yield TimerInfo(timer + 1)

    results, made = outcome(tmp_path, program)
    assert results[:5] == [1_000_000, "EINVAL", 1_000_000, (0, 0), (100, -50)]
    number, left, interval = results[-2]
    assert (number, interval) == (0, 2_000_000)
    assert 7_900_000 < left < 8_000_000
    assert results[-1] == "EINVAL"
    ticks = [i.enter for i in made.truth.interrupts]
    assert ticks[9] - ticks[8] == pytest.approx(500_000 * 2.592, rel=0.01), "half a millisecond"


def test_objects_come_and_go(tmp_path: Path) -> None:
    mutex, free, semaphore = Mutex("m"), Condvar("c"), Semaphore("s", 1)

    def owner() -> Any:
        yield MutexLock(mutex)

    def program() -> Any:
        yield SyncCreate(free)
        yield SyncDestroy(free)
        yield SyncDestroy(free)
        yield SyncDestroy(semaphore)
        yield SemWait(semaphore)
        tid = yield ThreadCreate(owner, (), priority=20)
        yield ThreadJoin(tid)
        yield SyncDestroy(mutex)
        yield SyncMutexRevive(mutex)
        yield SyncMutexRevive(mutex)
        yield MutexUnlock(mutex)
        yield InterruptMask(7)
        yield InterruptAttachEvent(7)  # without I/O privilege
        yield ThreadCtl()
        yield InterruptAttachEvent(7)
        yield InterruptMask(7)

    results, _ = outcome(tmp_path, program)
    assert results[:5] == [0, 0, "EINVAL", 0, "EINVAL"]
    assert results[7:11] == ["EBUSY", 0, "EINVAL", 0]
    assert results[-5:-2] == ["EINVAL", "EPERM", 0]
    assert results[-1] == 1


def test_every_call_that_programs_can_make_says_what_it_does() -> None:
    kinds = [kind for kind in vars(calls).values() if isinstance(kind, type) and issubclass(kind, calls.Call)]
    without_effect = {kind.__name__ for kind in kinds if kind.carry_out is calls.Call.carry_out}
    assert without_effect == {"Call"}
    assert len(kinds) > 70
