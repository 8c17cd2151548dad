"""What changes states of threads beside messages and locks: faults, stops, exec, queues, networks, kernel pulses."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from satview.capture.kernel import Kernel
from satview.capture.sim.calls import (
    CHF_COID_DISCONNECT,
    CHF_DISCONNECT,
    CHF_UNBLOCK,
    SIGCHLD,
    SIGCONT,
    SIGSEGV,
    SIGSTOP,
    SIGUSR1,
    ChannelCreate,
    ChannelDestroy,
    Compute,
    ConnectAttach,
    ConnectDetach,
    Dlopen,
    Exec,
    Fork,
    InterruptAttachEvent,
    InterruptDetach,
    KernelCall,
    MsgError,
    MsgQueueClose,
    MsgQueueCtl,
    MsgQueueOpen,
    MsgQueueReceive,
    MsgQueueSend,
    MsgReceive,
    MsgReply,
    MsgSend,
    MsgSendPulse,
    NetUnblock,
    NetVtid,
    PipeOpen,
    PipeRead,
    PipeWrite,
    Ring0,
    SchedCtl,
    Sigevent,
    SignalAction,
    SignalFault,
    SignalKill,
    SignalProcmask,
    Sleep,
    Spawn,
    ThreadCreate,
    ThreadCtl,
    ThreadCtlExt,
    TimerTimeout,
    Touch,
    WaitPid,
    transmitted,
)
from satview.capture.sim.services import Errno, QnxError
from satview.capture.sim.threads import BoundedQueue, Policy
from satview.capture.sim.truth import Truth
from satview.events.spec import Release
from tests.capture.made import FAST, WIDE, Traced, events, names, traced

MS, US = 1_000_000, 1_000
RELEASES = (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8)
WITH_NETWORK = RELEASES[:3]
SIGTSTP = 24
HOLD, LET_GO = 8, 9  # _NTO_TCTL_ONE_THREAD_HOLD, _NTO_TCTL_ONE_THREAD_CONT
PID = 2  # of the first process that is spawned
Results = dict[str, Any]


def made_by(folder: Path, *programs: Any, release: Release = Release.QNX_7, cpus: int = 1, modes: Any = WIDE) -> Traced:
    """Trace programs for 60 ms, each the only thread of a process with priority 10; their pids are 2, 3, ..."""

    def setup(kernel: Kernel) -> None:
        for i, program in enumerate(programs):
            kernel.spawn(f"bin/p{i + 2}", program)

    made = traced(setup, 60, folder, release, cpus, modes=modes)
    assert [str(fault) for fault in made.kernel.machine.faults] == []
    return made


def drawn(truth: Truth, pid: int, tid: int = 1) -> str:
    """Return the states of a thread in their order, without those that repeat."""
    return " ".join(state for state, _ in groupby(change.state for change in truth.states_of((pid, tid))))


def tried(results: Results, what: str, call: Any) -> Any:
    """Make a call; note its result, or the name of its error."""
    try:
        results[what] = yield call
    except QnxError as error:
        results[what] = error.name


def lengths_ms(truth: Truth, state: str) -> list[int]:
    """Return how long the waits in a state were, in whole milliseconds."""
    per_ms = 2_592_000
    return [round((wait.end - wait.start) / per_ms) for wait in truth.waits if wait.state == state and wait.end >= 0]


# Calls that are rows of data


def call_events(
    folder: Path, call: KernelCall, release: Release, modes: Any, bits: int = 0
) -> tuple[list[Any], Results]:
    results: Results = {}

    def program() -> Any:
        yield ChannelCreate()
        yield from tried(results, "result", call)

    def setup(kernel: Kernel) -> None:
        kernel.spawn("bin/p", program, bits=bits)

    made = traced(setup, 10, folder, release, modes=modes)
    results["faults"] = [str(fault) for fault in made.kernel.machine.faults]
    return [words for _, _, words in events(made.trace, call.name)], results


@pytest.mark.parametrize(
    ("call", "release", "modes", "bits", "entry", "leave"),
    [
        (KernelCall("CLOCK_ID", {"pid": 0, "tid": 1}, {"ret_val": 77}), Release.QNX_6, WIDE, 32, (0, 1), (77, 0)),
        (KernelCall("CACHE_FLUSH", {"addr": 0x5000, "nlines": 3}), Release.QNX_7, FAST, 32, (0x5000, 3), (0, 0)),
        (KernelCall("CACHE_FLUSH", {"addr": 0x5000, "nlines": 3, "index": 9}), Release.QNX_7, WIDE, 32,
         (0x5000, 3, 0, 9), (0, 0)),
        (KernelCall("CACHE_FLUSH", {"addr": 1 << 32, "nlines": 3, "index": 9}), Release.QNX_7, WIDE, 64,
         (0, 1, 3, 0, 0, 9), (0, 0)),
        (KernelCall("CHANNEL_CTL", {"chid": 1, "cmd": 2}), Release.QNX_8, WIDE, 64, (1, 2), (0, 0)),
        (KernelCall("POWER_ACTIVE", {"word 0": 5, "word 1": 6}, {"ret_val": 8}), Release.QNX_7, WIDE, 64,
         (5, 6), (8, 0)),
    ],
    ids=["6.x", "fast", "32 bits", "64 bits", "8.0", "raw"],
)  # fmt: skip
def test_a_row_logs_its_arguments_and_results(
    call: KernelCall, release: Release, modes: Any, bits: int, entry: Any, leave: Any, tmp_path: Path
) -> None:
    words, results = call_events(tmp_path, call, release, modes, bits)
    assert words == [entry, leave]
    assert results == {"result": next(iter(call.returns.values()), 0), "faults": []}


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (KernelCall("SPARE2"), "ENOSYS"),
        (KernelCall("BAD"), "ENOSYS"),
        (KernelCall("CHANCON_ATTR", {"chid": 9}), "EINVAL"),
        (KernelCall("CLOCK_ID", {"pid": 99}), "ESRCH"),
        (KernelCall("MSG_PAUSE", {"rcvid": 3}), "ESRCH"),
        (KernelCall("NET_CRED", {"coid": 3}), "EBADF"),
        (KernelCall("INTERRUPT_CHARACTERISTIC", {"id": 1}), "EPERM"),
        (KernelCall("SYNC_CTL", error=Errno.EBUSY), "EBUSY"),
    ],
    ids=lambda value: value.name if isinstance(value, KernelCall) else value,
)
def test_a_row_fails_as_the_kernel_would(call: KernelCall, error: str, tmp_path: Path) -> None:
    words, results = call_events(tmp_path, call, Release.QNX_6_6, WIDE)
    assert results == {"result": error, "faults": []}
    assert words[1] == (0xFFFFFFFF, Errno[error])


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (KernelCall("CLOCK_ID", {"pdi": 1}), "EINVAL", "KernelCall('CLOCK_ID') with pdi, which it does not have"),
        (KernelCall("MSG_SENDV"), "EINVAL", "KernelCall('MSG_SENDV'), which is not a call, or has a class of its own"),
        (KernelCall("TEST"), "ENOSYS", ""),
        (KernelCall("CLOCK_ID", {"pid": "x"}), "EFAULT", "called KernelCall with bad arguments"),  # type: ignore[dict-item]
    ],
    ids=["argument", "call", "release", "type"],
)
def test_a_wrong_call_is_the_programs_fault(call: KernelCall, error: str, said: str, tmp_path: Path) -> None:
    _, results = call_events(tmp_path, call, Release.QNX_7, WIDE)
    assert results["result"] == error
    assert len(results["faults"]) == bool(said)
    assert said in "".join(results["faults"])


# Faults


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_a_page_is_waited_for(release: Release, tmp_path: Path) -> None:
    def program() -> Any:
        yield Sleep(2 * MS)
        yield Touch(0x5000)
        yield Touch(is_context=True)

    made = made_by(tmp_path, program, release=release)
    assert drawn(made.truth, PID) == (
        "READY RUNNING NANOSLEEP READY RUNNING WAITPAGE READY RUNNING WAITCTX READY RUNNING DEAD"
    )
    waits = [wait for wait in made.truth.waits if wait.state in ("WAITPAGE", "WAITCTX")]
    assert [(wait.outcome, wait.waker and wait.waker[0]) for wait in waits] == [("ok", 1), ("ok", 1)]
    pages = [words[:4] for _, _, words in events(made.trace, "PAGEWAIT")]
    assert pages == ([] if release is Release.QNX_6 else [(PID, 1, 0x8048100, 0x5000)])


def test_a_thread_without_a_stack_waits_for_one(tmp_path: Path) -> None:
    def brief() -> Any:
        yield Compute(MS)

    def program() -> Any:
        yield ThreadCreate(brief, has_stack=False)
        yield Sleep(5 * MS)

    made = made_by(tmp_path, program)
    assert drawn(made.truth, PID, 2) == "STACK READY RUNNING DEAD"
    made = made_by(tmp_path, program, release=Release.QNX_8)
    assert drawn(made.truth, PID, 2) == "READY RUNNING DEAD", "8.0 has no such state"


def test_a_signal_that_comes_while_a_page_is_waited_for_does_not_end_that(tmp_path: Path) -> None:
    results: Results = {}
    order: list[str] = []

    def handler(_signo: int) -> Any:
        order.append("handler")
        yield Compute(10 * US)

    def victim() -> Any:
        yield SignalAction(SIGUSR1, handler)
        yield from tried(results, "touch", Touch(0x5000))
        order.append("page")

    def program() -> Any:
        tid = yield ThreadCreate(victim, priority=12)  # more urgent than this thread, and this than who has the page
        yield SignalKill(0, tid, SIGUSR1)

    def setup(kernel: Kernel) -> None:
        kernel.spawn("bin/p", program, priority=11)

    made = traced(setup, 20, tmp_path)
    assert results == {"touch": None}
    assert order == ["handler", "page"]
    assert drawn(made.truth, PID, 2) == "READY RUNNING WAITPAGE READY RUNNING DEAD"


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_a_fault_is_repaired_by_its_handler_or_ends_the_process(release: Release, tmp_path: Path) -> None:
    seen: list[int] = []

    def handler(signo: int) -> Any:
        seen.append(signo)
        yield Compute(10 * US)

    def program() -> Any:
        yield SignalAction(SIGSEGV, handler)
        yield SignalFault(SIGSEGV, 1, 0x10)
        yield SignalAction(SIGSEGV, default=True)
        yield SignalFault(SIGSEGV, 2, 0x20)
        seen.append(0)

    made = made_by(tmp_path, program, release=release)
    assert seen == [SIGSEGV]
    assert drawn(made.truth, PID).endswith("RUNNING DEAD")
    calls = [words for _, name, words in events(made.trace, "SIGNAL_FAULT")]
    expected = [(11 | 1 << 8, 0x10), (11 | 2 << 8, 0x20)] if release is Release.QNX_6 else [(11 | 1 << 8,)]
    assert not calls if release is Release.QNX_8 else calls[0][: len(expected[0])] == expected[0]
    signals = [words[:2] for _, _, words in events(made.trace, "SIGNAL")]
    assert signals == [(11, 1), (11, 2)]


# Stop and continue


@pytest.mark.parametrize(  # the parent has the CPU if there is but one
    ("cpus", "before", "signo"), [(1, "READY", SIGSTOP), (2, "RUNNING", SIGSTOP), (2, "RUNNING", SIGTSTP)]
)
def test_a_stopped_process_goes_on_where_it_was(cpus: int, before: str, signo: int, tmp_path: Path) -> None:
    def sleeper() -> Any:
        yield Sleep(4 * MS)

    def child() -> Any:
        yield ThreadCreate(sleeper)
        yield Compute(10 * MS)

    def program() -> Any:
        pid = yield Spawn("bin/child", child)
        yield Sleep(2 * MS)
        yield SignalKill(pid, 0, signo)
        yield Sleep(8 * MS)
        yield SignalKill(pid, 0, SIGCONT)
        yield WaitPid(pid)

    made = made_by(tmp_path, program, cpus=cpus)
    pid = next(pid for _, event, pid, _ in made.truth.processes if event == "created")
    stopped = [wait for wait in made.truth.waits if wait.state == "STOPPED"]
    assert [(wait.thread, wait.on, wait.outcome) for wait in stopped] == [
        ((pid, 1), "SIGCONT", "ok"), ((pid, 2), "SIGCONT", "ok")]  # fmt: skip
    parent = (PID, 1)
    assert {wait.waker for wait in stopped} == {parent}
    assert f"{before} STOPPED READY RUNNING" in drawn(made.truth, pid)
    assert "RUNNING NANOSLEEP STOPPED READY RUNNING DEAD" in drawn(made.truth, pid, 2), "its sleep ended meanwhile"
    assert lengths_ms(made.truth, "STOPPED")[0] == 9, "as long as the parent sleeps: 8 ms and the rest of a tick"
    assert "THSTOPPED" in names(made.trace)


def test_a_cpu_whose_thread_is_stopped_is_given_to_another_at_once(tmp_path: Path) -> None:
    def busy() -> Any:
        yield Compute(30 * MS)

    def program() -> Any:
        first = yield ThreadCreate(busy, priority=9, runmask=2)
        yield ThreadCreate(busy, priority=8, runmask=2)
        yield Sleep(2 * MS)
        yield ThreadCtl(HOLD, first)
        yield Sleep(5 * MS)
        yield ThreadCtl(LET_GO, first)

    made = made_by(tmp_path, program, cpus=2)
    assert "RUNNING STOPPED READY RUNNING" in drawn(made.truth, PID, 2)
    stop = next(wait.start for wait in made.truth.waits if wait.state == "STOPPED")
    start = next(run.start for run in made.truth.runs if run.thread == (PID, 3))
    assert 0 < start - stop < 20_000, "within 8 us: an interrupt of the other CPU, not the next tick"


def test_the_kernels_own_process_cannot_be_stopped(tmp_path: Path) -> None:
    results: Results = {}

    def program() -> Any:
        yield SignalKill(1, 0, SIGSTOP)
        yield from tried(results, "hold", ThreadCtlExt(HOLD, pid=1, tid=3))
        yield from tried(results, "none", ThreadCtlExt(HOLD, pid=99))
        pid = yield Spawn("bin/child", brief)
        results["waited"] = yield WaitPid(pid)

    def brief() -> Any:
        yield Compute(MS)
        return 5

    made = made_by(tmp_path, program)
    assert results == {"hold": 0, "none": "ESRCH", "waited": 5}
    assert "STOPPED" not in {change.state for change in made.truth.states}


# Processes


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_a_forked_child_runs_another_program_in_its_process(release: Release, tmp_path: Path) -> None:
    results: Results = {}

    def helper() -> Any:
        yield Sleep(40 * MS)

    def tool() -> Any:
        results["address"] = yield Dlopen(file="libx.so.1")
        yield Compute(MS)
        return 3

    def child() -> Any:
        yield ThreadCreate(helper)
        yield Compute(MS)
        yield Exec("bin/tool", tool)
        results["after"] = "never"

    def program() -> Any:
        pid = yield Fork(child)
        results["pid"] = pid
        results["value"] = yield WaitPid(pid)

    made = made_by(tmp_path, program, release=release)
    pid = results["pid"]
    assert results["value"] == 3
    assert "after" not in results
    assert [entry[1:] for entry in made.truth.processes if entry[2] == pid] == [
        ("created", pid, "bin/p2"), ("replaced", pid, "bin/tool"), ("destroyed", pid, "bin/tool")]  # fmt: skip
    assert drawn(made.truth, pid, 2).endswith("DEAD"), "other threads end with the old program"
    assert made.trace.class_counts()["INT_CALL"] == 1, "the call of exec has no exit"
    loaded = events(made.trace, "MAPNAME", "MAPNAME_64")
    is_wide = release in (Release.QNX_7, Release.QNX_8)
    assert [name for _, name, _ in loaded] == ["MAPNAME_64" if is_wide else "MAPNAME"]
    words = loaded[0][2]
    assert words[0] == pid
    assert words[1] == results["address"] & 0xFFFFFFFF


def test_wrong_programs_of_fork_and_exec_are_their_own_faults(tmp_path: Path) -> None:
    def program() -> Any:
        yield Fork(None)  # type: ignore[arg-type]
        pid = yield Fork(other)
        yield WaitPid(pid)

    def other() -> Any:
        yield Exec("bin/none", 7)  # type: ignore[arg-type]

    def setup(kernel: Kernel) -> None:
        kernel.spawn("bin/p", program)

    made = traced(setup, 30, tmp_path)
    assert [fault.thread for fault in made.kernel.machine.faults] == ["p 1", "none 1"]


def test_a_parent_hears_of_its_childs_end_if_it_wants_to(tmp_path: Path) -> None:
    heard: list[int] = []

    def brief() -> Any:
        yield Compute(MS)

    def on_child(signo: int) -> Any:
        heard.append(signo)
        yield Compute(10 * US)

    def program() -> Any:
        yield Spawn("bin/first", brief)
        yield Sleep(5 * MS)
        yield SignalAction(SIGCHLD, on_child)
        yield Spawn("bin/second", brief)
        for _ in range(4):
            try:
                yield Sleep(5 * MS)
            except QnxError:
                heard.append(0)
        yield SignalProcmask(0, (SIGCHLD,))
        yield Spawn("bin/third", brief)
        yield Sleep(5 * MS)

    made = made_by(tmp_path, program)
    assert heard == [SIGCHLD, 0]
    signals = [words[:2] for _, _, words in events(made.trace, "SIGNAL") if words[0] == SIGCHLD]
    assert signals == [(18, 1), (18, 1)], "not of the first child: the parent had no use for it"


# Pulses of the kernel


def test_a_server_is_asked_before_a_client_gives_up(tmp_path: Path) -> None:
    results: Results = {}

    def server(flags: int, address: dict[str, int]) -> Any:
        chid = yield ChannelCreate(flags=flags)
        address[f"{flags}"] = chid
        got = yield MsgReceive(chid)
        pulse = None
        if flags:
            pulse = yield MsgReceive(chid)
            results["pulse"] = (pulse.code, pulse.value == got.rcvid)
        else:
            yield Sleep(9 * MS)
        yield from tried(results, f"reply {flags}", MsgReply(got.rcvid, 4))

    def program() -> Any:
        chids: dict[str, int] = {}
        for flags in (CHF_UNBLOCK, 0):
            yield ThreadCreate(server, (flags, chids), 12, Policy.RR)
            coid = yield ConnectAttach(0, chids[f"{flags}"])
            yield TimerTimeout(("SEND", "REPLY"), 3 * MS)
            yield from tried(results, f"send {flags}", MsgSend(coid, b"x"))
        yield Sleep(12 * MS)

    made = made_by(tmp_path, program)
    assert results == {"pulse": (-1, True), "reply 2": 0, "send 2": (4, b""), "reply 0": "ESRCH", "send 0": "ETIMEDOUT"}
    assert names(made.trace).count("SND_PULSE_UN") == 1
    replies = [wait.outcome for wait in made.truth.waits if wait.state == "REPLY" and wait.thread[0] != 1]
    assert replies == ["ok", "timeout"]


def test_who_lost_a_connection_is_told(tmp_path: Path) -> None:
    server_pid = 0
    pulses: list[tuple[str, int, int]] = []
    place: dict[str, int] = {}

    def server() -> Any:
        place["chid"] = chid = yield ChannelCreate(flags=CHF_DISCONNECT)
        for _ in range(2):
            got = yield MsgReceive(chid)
            pulses.append(("server", got.code, got.value))
        yield ChannelDestroy(chid)

    def client() -> Any:
        chid = yield ChannelCreate(flags=CHF_COID_DISCONNECT)
        yield Sleep(2 * MS)
        first = yield ConnectAttach(server_pid, place["chid"])
        second = yield ConnectAttach(server_pid, place["chid"])
        yield ConnectDetach(first)
        yield Sleep(MS)
        assert not pulses, "it has another connection"
        yield ConnectDetach(second)
        place["coid"] = yield ConnectAttach(server_pid, place["chid"])
        yield ThreadCreate(listener, (chid,), 12, Policy.RR)
        pid = yield Spawn("bin/brief", brief)
        yield WaitPid(pid)
        yield Sleep(2 * MS)

    def listener(chid: int) -> Any:
        got = yield MsgReceive(chid)
        pulses.append(("client", got.code, got.value))

    def brief() -> Any:
        yield ConnectAttach(server_pid, place["chid"])
        yield Compute(MS)  # it ends: so does its connection

    def setup(kernel: Kernel) -> None:
        nonlocal server_pid
        server_pid = kernel.spawn("bin/server", server).pid
        kernel.spawn("bin/client", client)

    made = traced(setup, 60, tmp_path)
    assert not made.kernel.machine.faults
    assert pulses == [("server", -2, 0), ("server", -2, 0), ("client", -4, place["coid"])]
    assert names(made.trace).count("SND_PULSE_DIS") == 2


# Queues and pipes of 8.0


def test_a_message_queue_of_8_0_hands_on_the_most_urgent_message(tmp_path: Path) -> None:
    results: Results = {}
    received: list[bytes] = []

    def reader(fd: int) -> Any:
        for pause in (5 * MS, US, US, US, US):
            text = yield MsgQueueReceive(fd)
            received.append(text)
            yield Sleep(pause)

    def program() -> Any:
        fd = yield MsgQueueOpen(BoundedQueue("/q", 3))
        results["fd"] = fd
        yield ThreadCreate(reader, (fd,), 12, Policy.RR)
        for text, priority in ((b"a", 1), (b"b", 1), (b"c", 9), (b"e", 1)):
            yield MsgQueueSend(fd, text, priority)
        results["held"] = yield MsgQueueCtl(fd)
        yield MsgQueueSend(fd, b"d", 5)  # full: waits for the reader
        yield Sleep(5 * MS)
        yield MsgQueueClose(fd)
        for what, call in (
            ("send", MsgQueueSend(fd)), ("receive", MsgQueueReceive(fd)), ("ctl", MsgQueueCtl(fd)),
            ("close", MsgQueueClose(fd)),
        ):  # fmt: skip
            yield from tried(results, what, call)

    made = made_by(tmp_path, program, release=Release.QNX_8)
    assert received == [b"a", b"c", b"d", b"b", b"e"]
    errors = dict.fromkeys(("send", "receive", "ctl", "close"), "EBADF")
    assert results == {"fd": 3, "held": 3, **errors}
    assert "RUNNING MQ_SEND READY RUNNING" in drawn(made.truth, PID)
    assert drawn(made.truth, PID, 2).startswith("READY RUNNING MQ_RECEIVE READY RUNNING NANOSLEEP READY RUNNING")
    wakers = [wait.waker for wait in made.truth.waits if wait.state.startswith("MQ_")]
    assert wakers == [(PID, 1), (PID, 2)]
    sends = [words for _, name, words in events(made.trace, "MSG_QUEUE_SEND") if len(words) > 2]
    assert sends[0][:5] == (3, ord("a"), 1, 0, 1), "descriptor, text, length in two words, priority"


def test_a_wait_for_a_queue_can_time_out_and_leaves_nothing_behind(tmp_path: Path) -> None:
    results: Results = {}

    def program() -> Any:
        fd = yield PipeOpen(BoundedQueue("p", 1))
        yield PipeWrite(fd, b"first")
        yield TimerTimeout(("PIPE",), 2 * MS)
        yield from tried(results, "full", PipeWrite(fd, b"lost"))
        results["read"] = yield PipeRead(fd)
        yield TimerTimeout(("PIPE",), 2 * MS)
        yield from tried(results, "empty", PipeRead(fd))
        yield ThreadCreate(reader, (fd,), 12, Policy.RR)
        yield PipeWrite(fd, b"second")

    def reader(fd: int) -> Any:
        results["again"] = yield PipeRead(fd)

    made = made_by(tmp_path, program, release=Release.QNX_8)
    assert results == {"full": "ETIMEDOUT", "read": b"first", "empty": "ETIMEDOUT", "again": b"second"}
    assert lengths_ms(made.truth, "PIPE") == [2, 2, 0]


def test_several_writers_wait_for_room(tmp_path: Path) -> None:
    read: list[bytes] = []

    def writer(fd: int, text: bytes) -> Any:
        yield PipeWrite(fd, text)

    def program() -> Any:
        fd = yield PipeOpen(BoundedQueue("p", 1))
        for text in (b"one", b"two", b"three"):
            yield ThreadCreate(writer, (fd, text), 12, Policy.RR)
        for _ in range(3):
            text = yield PipeRead(fd)
            read.append(text)

    made = made_by(tmp_path, program, release=Release.QNX_8)
    assert read == [b"one", b"two", b"three"]
    assert [wait.thread for wait in made.truth.waits if wait.state == "PIPE"] == [(PID, 3), (PID, 4)]


def test_releases_before_8_0_have_no_queues(tmp_path: Path) -> None:
    results: Results = {}

    def program() -> Any:
        yield from tried(results, "open", MsgQueueOpen(BoundedQueue("/q", 2)))

    made_by(tmp_path, program)
    assert results == {"open": "ENOSYS"}


# Other nodes


@pytest.mark.parametrize("release", WITH_NETWORK, ids=str)
@pytest.mark.parametrize("answer", [MsgReply, lambda rcvid: MsgError(rcvid, Errno.EBUSY)], ids=["reply", "error"])
def test_a_virtual_thread_shows_what_the_other_node_waits_for(release: Release, answer: Any, tmp_path: Path) -> None:
    results: Results = {}

    def server(chid: int) -> Any:
        yield Sleep(3 * MS)
        got = yield MsgReceive(chid)
        yield Compute(MS)
        yield answer(got.rcvid)
        results["sent on"] = True

    def program() -> Any:
        chid = yield ChannelCreate()
        coid = yield ConnectAttach(0, chid)
        yield ThreadCreate(server, (chid,), 11, Policy.RR)
        yield NetVtid(7, coid=coid, srcnd=2)
        yield from tried(results, "taken", NetVtid(7))
        yield from tried(results, "message", MsgSend(coid, b"x"))
        yield Compute(2 * MS)
        assert "sent on" not in results
        results["count"] = yield Ring0(transmitted)
        yield NetVtid(0)
        yield from tried(results, "nobody", NetUnblock(7))

    made = made_by(tmp_path, program, release=release)
    states = ["CREATE", "SEND", "REPLY", "READY", "DESTROY", "DEAD"]
    assert [(change.thread, change.state) for change in made.truth.virtual] == [((PID, 7), state) for state in states]
    shown = [(time, name, words) for time, name, words in events(made.trace) if name.startswith("VTH")]
    assert shown == [(c.time, f"VTH{c.state}", (PID, 7)) for c in made.truth.virtual]
    expected = (0, b"") if answer is MsgReply else "EBUSY"
    assert results == {"taken": "EBUSY", "message": expected, "count": 1, "sent on": True, "nobody": "ESRCH"}
    assert "RUNNING NET_REPLY READY" in drawn(made.truth, PID, 2)
    [reply] = [wait for wait in made.truth.waits if wait.state == "NET_REPLY"]
    assert (reply.owners, reply.waker, reply.outcome) == (((PID, 1),), (PID, 1), "ok")


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_a_pulse_to_another_node_is_waited_for_or_given_up(release: Release, tmp_path: Path) -> None:
    manager_pid = 0
    results: Results = {}
    place: dict[str, int] = {}

    def manager() -> Any:
        place["chid"] = chid = yield ChannelCreate()
        for _ in range(2):
            yield MsgReceive(chid)
            yield Sleep(4 * MS)
            yield Ring0(transmitted)
        got = yield MsgReceive(chid)
        results["unblock"] = got.code

    def program() -> Any:
        yield Sleep(2 * MS)
        coid = yield ConnectAttach(manager_pid, place["chid"], nd=2)
        yield from tried(results, "first", MsgSendPulse(coid))
        yield TimerTimeout(("NET_SEND",), 2 * MS)
        yield from tried(results, "second", MsgSendPulse(coid))

    def setup(kernel: Kernel) -> None:
        nonlocal manager_pid
        manager_pid = kernel.spawn("sbin/manager", manager).pid
        kernel.spawn("bin/p", program)

    made = traced(setup, 60, tmp_path, release)
    if release is Release.QNX_8:
        assert results == {"first": 0, "second": 0}, "8.0 knows no other nodes"
        return
    assert results == {"first": 0, "second": "ETIMEDOUT", "unblock": -6}
    assert [words for _, _, words in events(made.trace, "SND_PULSE_QUN")] == [(0xFFFFFFFF, 0)]
    outcomes = [(wait.outcome, wait.waker) for wait in made.truth.waits if wait.state == "NET_SEND"]
    assert outcomes == [("ok", (manager_pid, 1)), ("timeout", None)]


# The partition scheduler answers


def test_queries_of_the_partition_scheduler_are_events(tmp_path: Path) -> None:
    results: Results = {}

    def program() -> Any:
        for what, call in (
            ("join", SchedCtl("join", 1)), ("parameters", SchedCtl("parameters")), ("budget", SchedCtl("partition", 1)),
            ("wrong query", SchedCtl("colour")), ("wrong partition", SchedCtl("partition", 9)),
        ):  # fmt: skip
            yield from tried(results, what, call)

    def setup(kernel: Kernel) -> None:
        kernel.partitions(("Drivers", 30, 10))
        kernel.spawn("bin/p", program)

    made = traced(setup, 10, tmp_path, modes=WIDE)
    assert results["join"] == {"partition_id": 1, "pid": PID, "tid": 1}
    assert results["wrong query"] == results["wrong partition"] == "EINVAL"
    assert [words[:3] for _, _, words in events(made.trace, "APS_JOIN")] == [(1, PID, 1)]
    assert [words[:6] for _, _, words in events(made.trace, "APS_INFO")] == [(100, 0, 0, 0, 2, 32)]
    assert [words for _, _, words in events(made.trace, "APS_NEW_BUDGET")][-1] == (1, 30, 10, 100, 0, 100)
    without: Results = {}

    def alone() -> Any:
        yield from tried(without, "query", SchedCtl("parameters"))

    made_by(tmp_path, alone)
    assert without == {"query": "ENOSYS"}


def test_a_service_thread_of_8_0_detaches(tmp_path: Path) -> None:
    def program() -> Any:
        ident = yield InterruptAttachEvent(5, Sigevent("intr"))
        yield InterruptDetach(ident)

    made = made_by(tmp_path, program, release=Release.QNX_8)
    changes = [(name, words[:3]) for _, name, words in events(made.trace, "IST_ATTACH", "IST_DETACH")]
    assert changes == [("IST_ATTACH", (PID, 1, 1)), ("IST_DETACH", (PID, 1, 1))]
