"""Traces against what really happened, for every workload, release and mode."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from satview.base.errors import UsageError
from satview.capture.buffers import LoggerOptions
from satview.capture.kernel import Kernel
from satview.capture.run import Capture, run
from satview.capture.sim.target import target
from satview.capture.sim.truth import Truth
from satview.capture.workloads import registry
from satview.events.spec import Release
from satview.formats.kev.reader import open_kev
from satview.store.trace import Trace
from tests.capture.judge import Judge
from tests.capture.made import FAST, WIDE, events, traced
from tests.helpers.extent import WIDTH, points, usually

RELEASES = (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8)
STATES = {
    "READY", "RUNNING", "SEND", "RECEIVE", "REPLY", "MUTEX", "CONDVAR", "SEM", "NANOSLEEP", "INTR", "JOIN", "DEAD",
    "SIGWAITINFO", "SIGSUSPEND", "BARRIER", "RWLOCK_READ", "RWLOCK_WRITE", "WAITTHREAD", "STACK", "WAITPAGE", "WAITCTX",
    "STOPPED", "NET_SEND", "NET_REPLY", "MQ_SEND", "MQ_RECEIVE", "PIPE",
}  # fmt: skip


def states_of(trace: Trace, truth: Truth) -> list[tuple[int, tuple[int, int], str]]:
    names = {f"TH{state}" for state in STATES}
    return [(time, words[:2], name[2:]) for time, name, words in events(trace, *names, skew=truth.skew_cycles)]


def setup_of(name: str) -> tuple[registry.Workload, float]:
    workload = registry.find(name)
    longest_ms = usually(40, complete=220, thorough=120)
    ms = 0.5 * longest_ms if name == "automotive" else min(workload.duration_ns / 1e6, longest_ms)
    return workload, ms


@points(name=[name for name, _ in registry.names()], wide=WIDTH, release=RELEASES)
def test_every_state_message_and_interrupt_is_in_the_trace(
    name: str, release: Release, tmp_path: Path, wide: bool
) -> None:
    workload, ms = setup_of(name)
    made = traced(workload.setup, ms, tmp_path, release, workload.cpus, 5, WIDE if wide else FAST)
    trace, truth = made.trace, made.truth
    assert not trace.problems.counts()
    check_states(trace, truth, made.since)
    check_virtual_threads(trace, truth)
    check_messages(trace, truth)
    check_interrupts(trace, truth)
    check_calls(trace, truth, made.since)
    check_one_thread_per_cpu(trace)
    Judge(trace, truth, made.since).everything()
    assert made.kernel.emitter.buffers is not None
    assert not made.kernel.emitter.buffers.dropped_events


def check_states(trace: Trace, truth: Truth, since: int) -> None:
    seen = [entry for entry in states_of(trace, truth) if entry[0] > since]
    expected = [s for s in truth.states if s.time > since]
    assert seen == [(s.time, s.thread, s.state) for s in expected]
    cpus = [
        int(trace.events.cpu[row])
        for row in range(len(trace.events))
        if trace.catalogue.name(int(trace.events.code[row])).removeprefix("TH") in STATES
        and int(trace.events.time_cycles[row]) > since
    ]
    assert cpus == [s.cpu for s in expected]


def check_virtual_threads(trace: Trace, truth: Truth) -> None:
    """Every state of a thread of another node is there, of the virtual thread that stands for it."""
    shown = [entry for entry in events(trace, skew=truth.skew_cycles) if entry[1].startswith("VTH")]
    assert shown == [(s.time, f"VTH{s.state}", s.thread) for s in truth.virtual]


def check_messages(trace: Trace, truth: Truth) -> None:
    skew = truth.skew_cycles
    sent = [(t, w[0], w[1]) for t, _, w in events(trace, "SND_MESSAGE", skew=skew)]
    assert sent == [(m.sent, m.rcvid, m.server_pid) for m in truth.messages]
    received = {(t, w[0]) for t, _, w in events(trace, "REC_MESSAGE", skew=skew)}
    assert received == {(m.received, m.rcvid) for m in truth.messages if m.received >= 0}
    replied = {(t, w[1], w[0]) for t, _, w in events(trace, "REPLY_MESSAGE", "MSG_ERROR", skew=skew) if len(w) == 2}
    assert {(m.replied, *m.client) for m in truth.messages if m.replied >= 0} <= replied


def check_interrupts(trace: Trace, truth: Truth) -> None:
    entered = [(t, w[0]) for t, _, w in events(trace, "INTENTER", "INTENTER_64", skew=truth.skew_cycles)]
    left = [(t, w[0]) for t, _, w in events(trace, "INTEXIT", skew=truth.skew_cycles)]
    assert sorted(entered) == sorted((i.enter, i.vector) for i in truth.interrupts)
    assert sorted(left) == sorted((i.exit, i.vector) for i in truth.interrupts)
    handled = [t for t, _, _ in events(trace, "INT_HANDLER_ENTER", "INT_HANDLER_ENTER_64", skew=truth.skew_cycles)]
    assert sorted(handled) == sorted(time for i in truth.interrupts for time in i.handlers)
    delivered = [(t, w[0]) for t, _, w in events(trace, "INT_DELIVER", skew=truth.skew_cycles)]
    assert delivered == [(d.time, d.ident) for d in truth.deliveries]


def check_calls(trace: Trace, truth: Truth, since: int) -> None:
    """Every call is there with the end it had, under the name that its kernel has for it."""
    entered, ends = [], []
    for row in np.flatnonzero((trace.events.code >> 10 == 2) & (trace.events.time_cycles > since)).tolist():
        code, name = int(trace.events.code[row]), trace.catalogue.name(int(trace.events.code[row]))
        time = int(trace.events.time_cycles[row]) - truth.skew_cycles[trace.events.cpu[row]]
        if code & 0x180:
            words = trace.payloads.words(row)
            failed = code & 0x180 == 0x80 and len(words) == 2 and words[0] == 0xFFFFFFFF
            ends.append((time, name, code & 0x180 == 0x100, int(words[1]) if failed else 0))
        else:
            entered.append((time, name))
    calls = [call for call in truth.calls if call.is_logged and call.enter > since]
    assert entered == [(call.enter, call.name) for call in calls]
    assert sorted(ends) == sorted(
        (call.exit, call.name, call.is_interrupted, 0 if call.is_interrupted else call.error)
        for call in calls
        if call.exit >= 0
    )


def check_one_thread_per_cpu(trace: Trace) -> None:
    """Walk over the events as a scheduler would: who has which CPU, and who is inside which call."""
    running: dict[int, tuple[int, int]] = {}
    calls: dict[tuple[int, int], int] = {}
    for row in range(len(trace.events)):
        code, cpu = int(trace.events.code[row]), int(trace.events.cpu[row])
        name = trace.catalogue.name(code)
        if code >> 10 == 4 and name.removeprefix("TH") in STATES:
            words = trace.payloads.words(row)
            thread = (int(words[0]), int(words[1]))
            if name == "THRUNNING":
                assert running.get(cpu, thread) == thread, f"event {row}: CPU {cpu} has {running[cpu]} already"
                assert all(c == cpu for c, t in running.items() if t == thread)
                running[cpu] = thread
            else:
                running = {c: t for c, t in running.items() if t != thread}
        elif code >> 10 == 2:
            caller, number, kind = running[cpu], code & 0x7F, code >> 7 & 3
            if kind == 0:
                assert caller not in calls, f"event {row}: {caller} is in call {calls.get(caller)}"
                calls[caller] = number
            else:
                assert calls.pop(caller, number) == number


@pytest.mark.thorough
def test_a_lossy_capture_shows_nothing_but_the_truth(tmp_path: Path) -> None:
    """A capture thread of low priority on a busy CPU: the kernel overruns, blocks are lost and come out of order."""
    result = run(
        Capture(
            "automotive",
            seed=4,
            cpus=2,
            duration_ns=600 * 10**6,
            lead_in_ns=20 * 10**6,
            options=LoggerOptions(iterations=0, kernel_buffers=3, priority=7),
        ),
        tmp_path / "lossy.kev",
    )
    trace = open_kev(tmp_path / "lossy.kev")
    assert result.lost_buffers + result.dropped_events > 0
    assert trace.problems.counts().get("lost-buffers", 0) > 0
    true_states = {(s.time, s.thread, s.state) for s in result.truth.states}
    seen = states_of(trace, result.truth)
    first_time = min(s.time for s in result.truth.states if s.time >= int(trace.events.time_cycles[0]))
    dumped = sum(1 for entry in seen if entry not in true_states)
    assert dumped < 120, "only the state dump of START may show states that nobody just entered"
    assert first_time > 0
    assert 0 < len(seen) - dumped < len(true_states)


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_a_ring_capture_keeps_the_newest(release: Release, tmp_path: Path) -> None:
    options = LoggerOptions(iterations=0, kernel_buffers=4, is_ring=True)
    result = run(
        Capture("automotive", seed=5, release=release, duration_ns=400 * 10**6, lead_in_ns=0, options=options),
        tmp_path / "ring.kev",
    )
    trace = open_kev(tmp_path / "ring.kev")
    truth = {(s.time, s.thread, s.state) for s in result.truth.states}
    seen = states_of(trace, result.truth)
    assert seen
    half_way = result.truth.start + 200 * 10**6 * trace.clock.cycles_per_s // 10**9
    if release == Release.QNX_8:  # a ring per CPU: a quiet CPU's may still hold the beginning
        assert len(trace.buffers) <= 4 * trace.cpu_count
        assert {entry for entry in seen if entry[0] > half_way} <= truth
    else:
        assert len(trace.buffers) == 4
        assert set(seen) <= truth, "the dump of START was overwritten long ago"
        assert seen[0][0] > half_way
    newest = max(entry[0] for entry in seen)
    assert newest > result.truth.start + 380 * 10**6 * trace.clock.cycles_per_s // 10**9


def test_runs_cover_every_cpu_without_overlap(tmp_path: Path) -> None:
    truth = traced(registry.find("automotive").setup, 60, tmp_path, cpus=4).truth
    for cpu in range(4):
        runs = sorted((r for r in truth.runs if r.cpu == cpu), key=lambda r: r.start)
        assert all(a.end <= b.start for a, b in pairwise(runs))
    busy = Counter(r.cpu for r in truth.runs)
    assert set(busy) == {0, 1, 2, 3}


@pytest.mark.parametrize("name", ["client-server", "automotive", "interrupt-flood"])
def test_filters_do_not_change_the_history(name: str, tmp_path: Path) -> None:
    """Same seed, same moments, whatever is recorded: wide, fast or nothing."""

    def history(modes: tuple[tuple[str, ...], ...]) -> list[object]:
        workload = registry.find(name)
        # With some other seeds an interrupt of the flood falls between the slots of a wide event, which delays it.
        seed = 5 if name == "interrupt-flood" else 1
        made = traced(workload.setup, 80, tmp_path, cpus=workload.cpus, seed=seed, modes=modes)
        begin = min(s.time for s in made.truth.states if s.time > made.since)
        return [(s.time - begin, s.thread, s.state, s.cpu) for s in made.truth.states if s.time > made.since]

    everything = history(WIDE)
    assert len(everything) > 200
    assert history(FAST) == everything
    assert history(()) == everything


@pytest.mark.thorough
def test_two_runs_with_one_seed_are_equal_and_another_seed_differs(tmp_path: Path) -> None:
    def bytes_of(seed: int, name: str) -> bytes:
        (tmp_path / name).mkdir()
        run(Capture("automotive", seed=seed, duration_ns=50 * 10**6, lead_in_ns=10**6), tmp_path / name / "x.kev")
        return (tmp_path / name / "x.kev").read_bytes()

    assert bytes_of(1, "a") == bytes_of(1, "b")
    assert bytes_of(1, "c") != bytes_of(2, "d")


def test_stamps_roll_over_with_a_time_event(tmp_path: Path) -> None:
    def idle(_made: Kernel) -> None:
        return

    trace = traced(idle, 2000, tmp_path).trace  # 2^32 cycles of 2.592 GHz are 1657 ms
    uppers = {words[0] for _, _, words in events(trace, "TIME")}
    assert max(uppers) - min(uppers) == 1
    assert trace.duration_ns == pytest.approx(2e9, rel=0.01)


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_each_cpu_has_a_clock_of_its_own(release: Release, tmp_path: Path) -> None:
    """Counters up to 20 us apart: every CPU's events are true and in order by its own clock, and the reader warns."""
    made = traced(registry.find("automotive").setup, 30, tmp_path, release, 4, 5, WIDE, skew_ns=20_000)
    trace, truth = made.trace, made.truth
    ahead_ns = [skew * 10**9 // trace.clock.cycles_per_s for skew in truth.skew_cycles]
    assert ahead_ns[0] == 0
    assert 1_000 < max(ahead_ns) - min(ahead_ns) < 20_000
    assert len(set(ahead_ns)) == 4
    seen = sorted(entry for entry in states_of(trace, truth) if entry[0] > made.since + 60_000)
    assert seen == sorted((s.time, s.thread, s.state) for s in truth.states if s.time > made.since + 60_000)
    for cpu in range(4):
        mine = np.flatnonzero(trace.events.cpu == cpu)
        slots = trace.events.slot[mine]
        assert np.all(np.diff(trace.events.time_cycles[mine[np.argsort(slots)]]) >= 0), "a counter never goes back"
    warned = trace.problems.counts().get("clock-skew", 0)
    assert warned == (release != Release.QNX_6), "6.4 measures the difference and subtracts it"
    assert not trace.problems.cost_data


def test_clocks_agree_unless_the_kernel_only_measured_them() -> None:
    """6.4 subtracts what it measured at boot; later kernels read one clock that all CPUs share."""
    for release in RELEASES:
        skew = Kernel(target(release, 4)).machine.truth.skew_cycles
        nearest = 40 * target(release).cycles_per_s // 10**9
        assert any(skew) == (release == Release.QNX_6)
        assert max(skew) - min(skew) <= nearest
    with pytest.raises(UsageError, match="skew"):
        target(Release.QNX_7, 2, skew_ns=-1)
