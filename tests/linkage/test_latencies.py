"""Latencies of pulses and interrupts: against what really happened, and by hand."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from pathlib import Path

import pytest

import satview
from satview.capture.kernel import Kernel
from satview.capture.sim.calls import ChannelCreate, ConnectAttach, InterruptAttach, MsgReceive, Sigevent, ThreadCtl
from satview.capture.sim.calls import InterruptWait as Wait
from satview.capture.sim.threads import Program
from satview.events import wire
from satview.events.spec import Release
from satview.linkage.links import Certainty
from tests.capture.made import ALL, WIDE, damaged, traced
from tests.helpers.extent import points
from tests.helpers.kev import TraceBuilder
from tests.linkage.test_truth import RELEASES, Case, capture, workload

WORKLOADS = ("automotive", "small-system", "interrupt-flood", "periodic", "signals", "mishaps", "two-threads")
MOMENTS = ("cause_row", "handler_row", "handler_exit_row", "pulse_row", "ready_row", "running_row", "received_row")
LEGS = ("handler_entry_cycles", "handler_cycles", "delivery_cycles", "ready_cycles", "scheduling_cycles",
        "receipt_cycles")  # fmt: skip


def true_moments(case: Case) -> dict[int, tuple[int, ...]]:
    """Return {time of the pulse or of the end of InterruptWait(): times of the seven moments, -1 for none}."""
    truth = case.made.truth
    runs = defaultdict(list)
    for change in truth.states:
        if change.state == "RUNNING":
            runs[change.thread].append(change.time)

    def running(thread, ready):
        position = bisect_left(runs[thread], ready)
        return runs[thread][position] if position < len(runs[thread]) else -1

    by_pulse = {handler.pulse: handler for handler in truth.handlers if handler.pulse >= 0}
    by_wait = {(handler.interrupt, handler.woken): handler for handler in truth.handlers if handler.woken}
    woken = {}
    found = {}
    for wait in truth.waits:
        changes = case.changes[wait.thread]
        position = bisect_left(changes, wait.end)
        if wait.end < 0 or position == len(changes):
            continue
        ready = changes[position]
        woken[wait.cause] = ready, running(wait.thread, ready)
        if wait.state == "INTR":
            handler = by_wait.get((wait.cause, wait.thread))
            enter, leave = (handler.enter, handler.exit) if handler else (-1, -1)
            found[ready] = wait.cause, enter, leave, -1, ready, running(wait.thread, ready), -1
    for pulse in truth.pulses:
        handler = by_pulse.get(pulse.sent)
        enter, leave = (handler.enter, handler.exit) if handler else (-1, -1)
        found[pulse.sent] = pulse.origin, enter, leave, pulse.sent, *woken.get(pulse.sent, (-1, -1)), pulse.received
    return found


def compared(case: Case) -> tuple[Counter, Counter]:
    """Check every latency of a case; return how many of each moment there are in the trace, and how many are found."""
    trace = case.made.trace
    made, times = satview.latencies(trace), trace.events.time_cycles
    truth = true_moments(case)
    there, found = Counter(), Counter()
    for i in range(len(made)):
        rows = [int(getattr(made, name)[i]) for name in MOMENTS]
        reported = [int(times[row]) if row >= 0 else -1 for row in rows]
        anchor = reported[3] if reported[3] >= 0 else reported[4]
        if min(time for time in reported if time >= 0) <= case.made.since:
            continue
        if made.certainty[i] != Certainty.GUESS:
            for name, one, real in zip(MOMENTS, reported, truth[anchor], strict=True):
                assert one in (-1, real), (name, reported, truth[anchor])
        legs = [int(getattr(made, leg)[i]) for leg in LEGS]
        known = [time for time in reported if time >= 0]
        assert sum(leg for leg in legs if leg >= 0) == max(int(made.total_cycles[i]), 0) == known[-1] - known[0]
        for name, one, real in zip(MOMENTS, reported, truth[anchor], strict=True):
            there[name] += real in case.row_at
            found[name] += real in case.row_at and one == real
    return there, found


def capture_of(folder: Path, name: str, release: Release, form: str, loss: str) -> Case:
    """Return a capture, whole, with lost buffers, or what a ring holds in the end."""
    if loss != "ring":
        return capture(folder, name, release, form, loss, longest_ms=150)
    setup, ms, cpus = workload(name, 150)
    made = damaged(setup, ms, folder, release, cpus, ring=True, wide=form == "wide", slots=120, skew_ns=0, classes=ALL)
    return Case(made, False, True)


@pytest.mark.thorough
@points(loss=["whole", "loss", "ring"], form=["fast", "wide"], release=RELEASES)
def test_no_moment_is_wrong_and_most_are_found(release: Release, form: str, loss: str, tmp_path: Path) -> None:
    there, found, complete = Counter(), Counter(), 0
    for name in WORKLOADS:
        case = capture_of(tmp_path, name, release, form, loss)
        mine = compared(case)
        there, found = there + mine[0], found + mine[1]
        complete += len(true_moments(case))
    # Of a whole trace all causes and pulses, and nearly all that follows; between losses at least two of three.
    least = 0.95 if loss == "whole" else 0.65
    assert sum(there.values()) > (20 if loss == "ring" else 200)
    for name in MOMENTS:
        assert found[name] >= least * there[name], (name, found[name], there[name])


@pytest.mark.parametrize("release", [Release.QNX_6, Release.QNX_7], ids=str)
def test_handlers_of_one_interrupt_are_reported_apart(release: Release, tmp_path: Path) -> None:
    """Two return nothing, one a pulse to its process, one ends an InterruptWait() in another process."""

    def setup(kernel: Kernel) -> None:
        times = iter([200_000] * 20)
        kernel.device(40, lambda: next(times, None))

        def silent() -> Program:
            yield ThreadCtl()
            yield InterruptAttach(40, lambda: None, 1000)
            chid = yield ChannelCreate()
            yield MsgReceive(chid)

        def pulsed() -> Program:
            yield ThreadCtl()
            chid = yield ChannelCreate()
            coid = yield ConnectAttach(0, chid)
            yield InterruptAttach(40, lambda: None, 1500)
            yield InterruptAttach(40, lambda: Sigevent("pulse", coid, 20, code=1), 2000)
            while True:
                yield MsgReceive(chid)

        def waits() -> Program:
            yield ThreadCtl()
            yield InterruptAttach(40, lambda: Sigevent("intr"), 3000)
            while True:
                yield Wait()

        for name, main in (("silent", silent), ("pulsed", pulsed), ("waits", waits)):
            kernel.spawn(name, main, priority=15)

    made = traced(setup, 5, tmp_path, release, 1, 5, WIDE, skew_ns=0)
    case = Case(made, True, True)
    there, found = compared(case)
    assert there["handler_row"] > 20
    assert found == there
    latencies = satview.latencies(made.trace)
    handled = latencies.handler_cycles[latencies.handler_row >= 0]
    assert {round(made.trace.clock.duration_ns(cycles) / 1000) for cycles in handled.tolist()} == {2, 3}


def interrupted(pulse_at: int = 140) -> TraceBuilder:
    """Thread 2 waits in RECEIVE; interrupt 7 at 100 has a handler from 110 to 130; its pulse makes 2 ready at 150."""
    key = (0x40000001, 5)
    build = TraceBuilder().time_event(0).process_name(1, 5, "usr/bin/driver").process_name(2, 6, "usr/bin/other")
    build.state("RUNNING", 10, 5, 2).state("RECEIVE", 20, 5, 2).state("RUNNING", 30, 6, 1)
    build.event(wire.code(wire.WireClass.INT, 1), 100, (7, 0))
    build.event(wire.code(wire.WireClass.INT, 3), 110, (5, 7, 0x1000, 0))
    build.event(wire.code(wire.WireClass.INT, 4), 130, (7, 4, 5, 1))
    build.event(wire.code(wire.WireClass.INT, 2), 135, (7, 0))
    build.event(wire.code(wire.WireClass.COMM, 4), pulse_at, key)
    build.state("READY", 150, 5, 2).state("READY", 160, 6, 1).state("RUNNING", 170, 5, 2)
    return build.event(wire.code(wire.WireClass.COMM, 3), 190, key).state("RECEIVE", 200, 5, 2)


def test_the_legs_of_a_pulse_by_hand(tmp_path: Path) -> None:
    made = satview.latencies(interrupted().open(tmp_path))
    assert len(made) == 1
    assert [int(getattr(made, leg)[0]) for leg in LEGS] == [10, 20, 10, 10, 20, 20]
    assert (int(made.total_cycles[0]), int(made.number[0])) == (90, 7)
    assert made.certainty[0] == Certainty.INFERRED


def test_columns_cannot_be_written(tmp_path: Path) -> None:
    made = satview.latencies(interrupted().open(tmp_path))
    with pytest.raises(ValueError, match="read-only"):
        made.total_cycles[0] = 1


def test_a_trace_without_such_events_has_none(tmp_path: Path) -> None:
    made = satview.latencies(TraceBuilder().time_event(0).state("RUNNING", 5, 1, 1).open(tmp_path))
    assert (len(made), made.first_row.tolist(), made.last_row.tolist()) == (0, [], [])


def test_a_pulse_after_other_work_is_not_that_of_the_interrupt(tmp_path: Path) -> None:
    """Another thread began to run in between: what sent the pulse is not in the trace."""
    build = interrupted().state("RUNNING", 210, 6, 1).event(wire.code(wire.WireClass.COMM, 4), 250, (0x40000001, 5))
    build.state("READY", 260, 5, 2).state("READY", 265, 6, 1).state("RUNNING", 270, 5, 2)
    made = satview.latencies(build.event(wire.code(wire.WireClass.COMM, 3), 280, (0x40000001, 5)).open(tmp_path))
    assert made.number.tolist() == [7, -1]
    assert (int(made.total_cycles[1]), made.delivery_cycles.tolist()) == (30, [10, -1])
