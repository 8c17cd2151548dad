"""Small programs whose history can be worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from satview.capture.kernel import Kernel
from satview.capture.sim.calls import (
    BarrierWait,
    ChannelCreate,
    Compute,
    ConnectAttach,
    InterruptAttachEvent,
    InterruptUnmask,
    InterruptWait,
    MsgError,
    MsgReceive,
    MsgReply,
    MsgSend,
    MutexLock,
    MutexUnlock,
    RwLockAcquire,
    RwLockRelease,
    SchedJoinPartition,
    SchedSet,
    SemPost,
    SemWait,
    Sleep,
    Spawn,
    ThreadCreate,
    ThreadCtl,
    ThreadJoin,
    ThreadRunmask,
    TimerTimeout,
    WaitPid,
)
from satview.capture.sim.services import Errno, QnxError
from satview.capture.sim.target import target
from satview.capture.sim.threads import Barrier, Mutex, Policy, Program, RwLock, Semaphore
from satview.events.spec import Release

MS = 1_000_000


def simulate(*bodies: Callable[[], Program], cpus: int = 1, ms: int = 60, release: Release = Release.QNX_7) -> Kernel:
    kernel = Kernel(target(release, cpus), 1)

    def main() -> Program:
        for body in bodies:
            yield ThreadCreate(body, (), getattr(body, "priority", 10), getattr(body, "policy", Policy.RR))
        return len(bodies)

    kernel.spawn("p", main, priority=60)
    kernel.machine.run(kernel.machine.now + kernel.target.cycles(ms * MS))
    kernel.machine.close()
    assert not kernel.machine.faults, kernel.machine.faults
    return kernel


def with_priority(priority: int, body: Callable[[], Program], policy: Policy = Policy.RR) -> Callable[[], Program]:
    made = partial(body)
    made.priority, made.policy = priority, policy  # type: ignore[attr-defined]
    return made


def order(kernel: Kernel, *tids: int) -> list[int]:
    """Return which of some threads got the CPU, in order."""
    return [run.thread[1] for run in kernel.machine.truth.runs if run.thread[0] == 2 and run.thread[1] in tids]


def share_ms(kernel: Kernel, tid: int) -> float:
    runs = [r for r in kernel.machine.truth.runs if r.thread == (2, tid)]
    return sum(r.end - r.start for r in runs) * 1000 / kernel.target.cycles_per_s


def hog() -> Program:
    yield Compute(200 * MS)


def test_the_higher_priority_runs_first_and_preempts() -> None:
    def high() -> Program:
        yield Sleep(10 * MS)
        yield Compute(5 * MS)

    kernel = simulate(with_priority(10, hog), with_priority(20, high))
    assert order(kernel, 2, 3) == [3, 2, 3, 2]
    assert share_ms(kernel, 3) == pytest.approx(5, abs=0.1)


def test_round_robin_slices_of_four_ticks_and_none_for_fifo() -> None:
    kernel = simulate(with_priority(10, hog), with_priority(10, hog), ms=41)
    runs = [r for r in kernel.machine.truth.runs if r.thread in ((2, 2), (2, 3))]
    lengths_ms = [(r.end - r.start) * 1000 / kernel.target.cycles_per_s for r in runs[1:-1]]
    assert lengths_ms == pytest.approx([4.0] * len(lengths_ms), abs=0.1)
    assert len(runs) >= 9
    kernel = simulate(with_priority(10, hog, Policy.FIFO), with_priority(10, hog, Policy.FIFO), ms=41)
    assert order(kernel, 2, 3) == [2]


def test_two_cpus_run_two_threads_and_the_third_waits() -> None:
    kernel = simulate(*(with_priority(10 + i, hog, Policy.FIFO) for i in range(3)), cpus=2, ms=30)
    assert share_ms(kernel, 4) == pytest.approx(30, abs=1)
    assert share_ms(kernel, 3) == pytest.approx(30, abs=1)
    assert share_ms(kernel, 2) < 1


def test_threads_that_one_tick_wakes_run_at_once_where_cpus_are_idle() -> None:
    """All three ran on the CPU that takes the tick, and count on it; it can have one of them only."""

    def sleeper() -> Program:
        yield ThreadRunmask(0b0001)
        yield Compute(100_000)
        yield ThreadRunmask(0b1111)
        yield Sleep(10 * MS)
        yield Compute(2 * MS)

    kernel = simulate(*(with_priority(10 + i, sleeper) for i in range(3)), cpus=4)
    runs = [run for run in kernel.machine.truth.runs if run.thread[0] == 2 and run.thread[1] > 1]
    begins_ms = sorted(run.start * 1000 / kernel.target.cycles_per_s for run in runs)[-3:]
    assert begins_ms[2] - begins_ms[0] < 0.05
    assert [share_ms(kernel, tid) for tid in (2, 3, 4)] == pytest.approx([2.1] * 3, abs=0.1)


def test_runmask_keeps_a_thread_on_its_cpu() -> None:
    def bound() -> Program:
        yield ThreadRunmask(0b10)
        for _ in range(10):
            yield Compute(MS)
            yield Sleep(MS)

    kernel = simulate(with_priority(10, bound), cpus=2)
    cpus = [r.cpu for r in kernel.machine.truth.runs if r.thread == (2, 2)]
    assert set(cpus[1:]) == {1}


def test_sporadic_threads_fall_to_their_low_priority_when_the_budget_is_gone() -> None:
    def sporadic() -> Program:
        yield SchedSet(30, Policy.SPORADIC, low_priority=5, budget_ns=5 * MS, period_ns=20 * MS)
        yield Compute(200 * MS)

    kernel = simulate(with_priority(30, sporadic), with_priority(10, hog), ms=100)
    assert share_ms(kernel, 2) == pytest.approx(25, abs=5), "5 ms in every 20"
    priorities = {s.priority for s in kernel.machine.truth.states if s.thread == (2, 2)}
    assert priorities >= {30, 5}


def test_a_sporadic_thread_uses_up_its_partition_s_budget_like_any_other() -> None:
    def sporadic() -> Program:
        yield SchedSet(30, Policy.SPORADIC, low_priority=5, budget_ns=5 * MS, period_ns=20 * MS)
        yield Compute(500 * MS)

    kernel = Kernel(target(Release.QNX_7, 1), 1)
    (partition,) = kernel.partitions(("small", 20, 0))
    kernel.spawn("p", sporadic, partition=partition)
    kernel.machine.run(kernel.machine.now + kernel.target.cycles(60 * MS))
    assert partition.used_total / kernel.target.cycles(MS) == pytest.approx(60, abs=1.1)


def test_a_mutex_hands_its_owner_the_waiter_s_priority() -> None:
    lock = Mutex("m")

    def low() -> Program:
        yield MutexLock(lock)
        yield Compute(10 * MS)
        yield MutexUnlock(lock)
        yield Compute(5 * MS)

    def high() -> Program:
        yield Sleep(3 * MS)
        yield MutexLock(lock)
        yield MutexUnlock(lock)

    kernel = simulate(with_priority(10, low), with_priority(30, high))
    changes = [(s.state, s.priority) for s in kernel.machine.truth.states if s.thread == (2, 2)]
    assert ("RUNNING", 30) in changes
    assert changes[-2][1] == 10, "back to its own after the unlock"
    wait = next(w for w in kernel.machine.truth.waits if w.state == "MUTEX")
    assert (wait.thread, wait.owners, wait.waker) == ((2, 3), ((2, 2),), (2, 2))


def test_chains_of_owners_inherit() -> None:
    first, second = Mutex("a"), Mutex("b")

    def bottom() -> Program:
        yield MutexLock(first)
        yield Compute(20 * MS)
        yield MutexUnlock(first)

    def middle() -> Program:
        yield Sleep(2 * MS)
        yield MutexLock(second)
        yield MutexLock(first)
        yield MutexUnlock(first)
        yield MutexUnlock(second)

    def top() -> Program:
        yield Sleep(4 * MS)
        yield MutexLock(second)
        yield MutexUnlock(second)

    kernel = simulate(with_priority(10, bottom), with_priority(20, middle), with_priority(40, top))
    assert 40 in {s.priority for s in kernel.machine.truth.states if s.thread == (2, 2)}


def results_of(*bodies: Callable[[list[object]], Program], **options: object) -> list[object]:
    seen: list[object] = []
    simulate(*(lambda body=body: body(seen) for body in bodies), **options)  # type: ignore[misc, arg-type]
    return seen


def test_messages_carry_data_status_and_priority() -> None:
    channel: list[int] = []

    def server(seen: list[object]) -> Program:
        channel.append((yield ChannelCreate()))
        got = yield MsgReceive(channel[0])
        seen.append(("got", got.message, got.tid, got.priority))
        yield MsgReply(got.rcvid, 7, b"answer")
        got = yield MsgReceive(channel[0])
        yield MsgError(got.rcvid, Errno.EBUSY)
        try:
            yield MsgReply(got.rcvid)
        except QnxError as error:
            seen.append(error.name)

    def client(seen: list[object]) -> Program:
        yield Sleep(5 * MS)
        coid = yield ConnectAttach(0, channel[0])
        seen.append((yield MsgSend(coid, b"question")))
        try:
            yield MsgSend(coid, b"again")
        except QnxError as error:
            seen.append((error.errno, error.name))
        try:
            yield MsgSend(coid + 9)
        except QnxError as error:
            seen.append(error.name)

    seen = results_of(server, client)
    assert seen[0] == ("got", b"question", 3, 10)
    assert sorted(map(str, seen[1:])) == sorted(map(str, [(7, b"answer"), (16, "EBUSY"), "ESRCH", "EBADF"]))


def test_a_timeout_ends_a_wait() -> None:
    def waiting(seen: list[object]) -> Program:
        chid = yield ChannelCreate()
        yield TimerTimeout(("RECEIVE",), 10 * MS)
        try:
            yield MsgReceive(chid)
        except QnxError as error:
            seen.append(error.errno)

    assert results_of(waiting) == [260]


def test_semaphores_barriers_and_rwlocks() -> None:
    semaphore, barrier, table = Semaphore("s", 1), Barrier("b", 2), RwLock("t")

    def one(seen: list[object]) -> Program:
        yield SemWait(semaphore)
        yield RwLockAcquire(table, write=True)
        yield BarrierWait(barrier)
        seen.append("one")
        yield Sleep(5 * MS)
        yield RwLockRelease(table)
        yield SemPost(semaphore)

    def two(seen: list[object]) -> Program:
        yield BarrierWait(barrier)
        yield SemWait(semaphore)
        yield RwLockAcquire(table)
        seen.append("two")
        yield RwLockRelease(table)

    for release in (Release.QNX_7, Release.QNX_8):
        semaphore.count = 1
        assert results_of(one, two, release=release) == ["one", "two"]


def test_8_0_has_states_of_its_own_for_barriers_and_rwlocks() -> None:
    def states(release: Release) -> set[str]:
        barrier = Barrier("b", 2)

        def body() -> Program:
            yield BarrierWait(barrier)

        return {s.state for s in simulate(body, release=release).machine.truth.states}

    assert "BARRIER" in states(Release.QNX_8)
    assert "CONDVAR" in states(Release.QNX_7)


def test_join_and_children_return_values() -> None:
    def worker() -> Program:
        yield Compute(MS)
        return "done"

    def main(seen: list[object]) -> Program:
        tid = yield ThreadCreate(worker)
        seen.append((yield ThreadJoin(tid)))
        pid = yield Spawn("bin/child", worker)
        seen.append((yield WaitPid(pid)))
        try:
            yield WaitPid(424242)
        except QnxError as error:
            seen.append(error.name)

    assert results_of(main) == ["done", "done", "ECHILD"]


@pytest.mark.parametrize("release", [Release.QNX_7, Release.QNX_8], ids=str)
def test_an_event_masks_its_interrupt_until_it_is_unmasked(release: Release) -> None:
    """Interrupts every 3 ms; the thread unmasks once, at 20 ms: all that came meanwhile are one, then nothing more."""
    kernel = Kernel(target(release, 1), 1)
    kernel.device(5, lambda: 3 * MS)
    woken: list[float] = []
    begin = kernel.machine.now

    def program() -> Program:
        yield ThreadCtl()
        ident = yield InterruptAttachEvent(5)
        while True:
            yield InterruptWait()
            woken.append((kernel.machine.now - begin) * 1000 / kernel.target.cycles_per_s)
            if len(woken) == 1:
                yield Sleep(16 * MS)
                yield InterruptUnmask(5, ident)

    kernel.spawn("p", program)
    kernel.machine.run(kernel.machine.now + kernel.target.cycles(60 * MS))
    assert not kernel.machine.faults
    assert woken == pytest.approx([3, 20], abs=1.1)


class TestPartitionsOfServers:
    """A client in a partition of 10 %, a server in System, and a hog there and in a partition of 40 %."""

    MS_RUN = 2000

    def run(self, fixed_priority: bool = False, is_critical: bool = False, replies_by_another: bool = False) -> Kernel:
        kernel = Kernel(target(Release.QNX_7, 1), 1)
        small, large = kernel.partitions(("small", 10, 20 if is_critical else 0), ("large", 40, 0))
        rcvids: list[int] = []
        ready = Semaphore("ready", 0)

        def serve() -> Program:
            yield ChannelCreate(fixed_priority=fixed_priority)
            if replies_by_another:
                yield ThreadCreate(answer, (), 20)
            while True:
                received = yield MsgReceive(1)
                yield Compute(5 * MS)
                if replies_by_another:
                    rcvids.append(received.rcvid)
                    yield SemPost(ready)
                else:
                    yield MsgReply(received.rcvid)

        def answer() -> Program:
            while True:
                yield SemWait(ready)
                yield MsgReply(rcvids.pop())

        def client() -> Program:
            yield SchedJoinPartition(small.ident, is_critical=is_critical)
            coid = yield ConnectAttach(server.pid, 1)
            while True:
                yield MsgSend(coid, b"work")

        def busy(partition: int) -> Program:
            yield SchedJoinPartition(partition)
            yield Compute(10_000 * MS)

        server = kernel.spawn("server", serve, priority=20)
        kernel.spawn("client", client, priority=20)
        kernel.spawn("hog", busy, large.ident, priority=10)
        kernel.spawn("shell", busy, 0, priority=10)
        kernel.machine.run(kernel.machine.now + kernel.target.cycles(self.MS_RUN * MS))
        kernel.machine.close()
        assert not kernel.machine.faults, kernel.machine.faults
        return kernel

    def share(self, kernel: Kernel, process: str, partition: int | None = None) -> float:
        """Return the percentage of the time that a process had, or was charged to a partition."""
        pid = next(p.pid for p in kernel.machine.processes.values() if p.name == process)
        charges = kernel.machine.truth.charges
        used = sum(
            end - start for ident, thread, start, end in charges if thread[0] == pid and partition in (None, ident)
        )
        return used * 100 / kernel.target.cycles(self.MS_RUN * MS)

    def test_its_time_is_the_client_s_and_within_the_client_s_budget(self) -> None:
        kernel = self.run()
        assert self.share(kernel, "server", 1) > 0.98 * self.share(kernel, "server"), "charged to the client"
        assert self.share(kernel, "server", 1) + self.share(kernel, "client", 1) == pytest.approx(10, abs=1)
        assert self.share(kernel, "hog") == pytest.approx(40, abs=2)
        assert self.share(kernel, "shell") == pytest.approx(50, abs=2)

    @pytest.mark.thorough
    def test_a_channel_of_fixed_priority_lends_no_partition(self) -> None:
        kernel = self.run(fixed_priority=True)
        assert self.share(kernel, "server", 1) == 0
        assert self.share(kernel, "server", 0) > 30, "System has 50 %, the shell there is less urgent"

    @pytest.mark.thorough
    def test_a_critical_client_makes_its_server_critical(self) -> None:
        kernel = self.run(is_critical=True)
        server = next(p for p in kernel.machine.processes.values() if p.name == "server")
        assert {whose[0] for _, _, whose in kernel.machine.truth.bankruptcies} >= {server.pid}

    def test_whoever_replies_ends_the_work_of_the_receiver(self) -> None:
        kernel = self.run(replies_by_another=True)
        assert self.share(kernel, "server", 1) + self.share(kernel, "client", 1) == pytest.approx(10, abs=1)
        server = next(p for p in kernel.machine.processes.values() if p.name == "server")
        by_thread = {
            (ident, thread[1]) for ident, thread, _, _ in kernel.machine.truth.charges if thread[0] == server.pid
        }
        assert (1, 2) not in by_thread, "who only answers works for nobody"

    def test_the_partition_is_the_client_s_from_receive_to_reply(self) -> None:
        kernel = Kernel(target(Release.QNX_7, 1), 1)
        (small,) = kernel.partitions(("small", 10, 0))
        seen: list[tuple[str, int]] = []

        def serve() -> Program:
            yield ChannelCreate()
            received = yield MsgReceive(1)
            thread = next(iter(server.threads.values()))
            seen.append(("serving", thread.partition.ident if thread.partition else -1))
            yield Compute(MS)
            yield MsgReply(received.rcvid)
            seen.append(("answered", thread.partition.ident if thread.partition else -1))
            yield MsgReceive(1)

        def client() -> Program:
            yield SchedJoinPartition(small.ident)
            coid = yield ConnectAttach(server.pid, 1)
            yield MsgSend(coid, b"x")

        server = kernel.spawn("server", serve, priority=20)
        kernel.spawn("client", client, priority=20)
        kernel.machine.run(kernel.machine.now + kernel.target.cycles(20 * MS))
        assert seen == [("serving", 1), ("answered", 0)]
