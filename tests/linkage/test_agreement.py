"""Captures of kernel calls alone, and of everything: a click, a filter, statistics and the columns report the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from satview.analysis.statistics import Statistics
from satview.analysis.times.basis import scope_of
from satview.analysis.times.message_times import IS_CALL
from satview.capture.workloads import registry
from satview.events import wire
from satview.events.catalogue import never_block
from satview.events.spec import Release
from satview.events.states import KERNEL_CALL
from satview.filters.expressions.expression import select
from satview.filters.rules.switches import C
from satview.formats.registry import open_trace
from satview.linkage.calls import partner
from satview.linkage.chain import link_of, link_table
from satview.linkage.links import Certainty, LinkKind
from satview.session.event_text import event_details
from satview.store.time_ranges import losses
from satview.store.trace import Trace
from satview.timeline.lane_tree import LaneKind, Timeline
from tests.capture.made import ALL, Traced, damaged, traced
from tests.helpers.extent import LOSS, WIDTH, points
from tests.helpers.shared import shared_path

RELEASES = (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8)
NAMES = [name for name, _ in registry.names()]
CALLS_ALONE = (("ADDCLASS", int(C.KERCALL)),)
LOW = 0xFFFFFFFF  # without TIME events the upper half of the clock is not known


def capture(name: str, release: Release, folder: Path, *, wide: bool, loss: bool, everything: bool = False) -> Traced:
    """Return a capture of a workload whose CPUs share a clock."""
    found, classes = registry.find(name), ALL if everything else CALLS_ALONE
    ms = 20 if name == "automotive" else min(found.duration_ns / 1e6, 60)
    if loss:
        return damaged(found.setup, ms, folder, release, found.cpus, ring=False, wide=wide, skew_ns=0, classes=classes)
    form = "SETALLCLASSESWIDE" if wide else "SETALLCLASSESFAST"
    return traced(found.setup, ms, folder, release, found.cpus, 5, (*classes, (form,)), skew_ns=0)


def agreed_calls(trace: Trace) -> int:
    """Check that every part of the program knows the same calls; return how many."""
    calls, times = link_table(trace, LinkKind.CALL), trace.events.time_cycles
    pairs = list(zip(calls.from_row.tolist(), calls.to_row.tolist(), strict=True))
    cycles = calls.cycles(times)
    assert cycles.tolist() == [int(times[last]) - int(times[first]) for first, last in pairs]

    kernel = np.flatnonzero(trace.events.code >> wire.CLASS_SHIFT == wire.WireClass.KER_CALL).tolist()
    clicked = {row: other for row in kernel if (other := partner(trace, row)) is not None}
    assert clicked == {**dict(pairs), **{last: first for first, last in pairs}}
    for first, last in pairs[:: max(1, len(pairs) // 20)]:
        lines = {line.name: line for part in event_details(trace, first, link_of(trace, first)).sections
                 for line in part.lines}  # fmt: skip
        assert lines["Ends with"].event == last
        assert lines["Duration"].note == f"{int(times[last] - times[first]):,} cycles"

    assert select(trace, "class in (KER_CALL, KER_EXIT, INT_CALL) and duration >= 0s").tolist() == sorted(clicked)
    if pairs:
        longest_ns = trace.clock.duration_ns(int(cycles.max()))
        slow = select(trace, f"class == KER_CALL and duration >= {longest_ns}ns").tolist()
        in_ns = [trace.clock.duration_ns(length) for length in cycles.tolist()]
        assert slow == [first for (first, _), length in zip(pairs, in_ns, strict=True) if length == longest_ns]

    scope = scope_of(trace, None, None, None, None)
    enters = scope.selected(IS_CALL)
    lengths, exits = scope.lengths(enters)
    assert dict(zip(enters[exits >= 0].tolist(), exits[exits >= 0].tolist(), strict=True)) == dict(pairs)
    assert lengths[exits >= 0].tolist() == cycles.tolist()
    table = Statistics(trace).calls
    assert int(table.times.count.sum()) == len(pairs)
    assert int(table.times.total_cycles.sum()) == int(cycles.sum())
    return len(pairs)


def never_blocking(trace: Trace) -> int:
    """Return how many calls were entered that never block."""
    entered = trace.events.code[(trace.events.code >> 10 == wire.WireClass.KER_CALL) & (trace.events.code & 0x180 == 0)]
    return int(np.count_nonzero(never_block(trace.release)[entered & 0x7F]))


def check_truth(made: Traced) -> None:
    """Check that every link joins the two ends of one call."""
    true = {(call.enter & LOW, call.exit & LOW) for call in made.truth.calls}
    calls, times = link_table(made.trace, LinkKind.CALL), made.trace.events.time_cycles & LOW
    wrong = set(zip(times[calls.from_row].tolist(), times[calls.to_row].tolist(), strict=True)) - true
    assert not wrong, f"{len(wrong)} of {len(calls)} links join events of different calls"


@points(name=NAMES, loss=LOSS, wide=WIDTH, release=RELEASES)
def test_calls_alone(name: str, release: Release, wide: bool, loss: bool, tmp_path: Path) -> None:
    made = capture(name, release, tmp_path, wide=wide, loss=loss)
    trace = made.trace
    assert not trace.events.thread.any(), "no THREAD event shows who ran"
    found = agreed_calls(trace)
    check_truth(made)
    calls = link_table(trace, LinkKind.CALL)
    assert (calls.certainty == Certainty.INFERRED).all()
    stays = never_block(release)
    assert stays[trace.events.code[calls.from_row] & 0x7F].all()
    if not loss:
        assert found >= 0.5 * never_blocking(trace), "where calls wake others, half of the callers are preempted"
    shown = Timeline(trace)
    drawn = sum(np.count_nonzero(shown.lane(info.index).spans.value == KERNEL_CALL)
                for info in shown.infos if info.kind is LaneKind.CPU)  # fmt: skip
    assert drawn == found


def test_how_much_there_is_to_agree_on(tmp_path: Path) -> None:
    whole = capture("small-system", Release.QNX_7, tmp_path, wide=False, loss=False).trace
    assert len(link_table(whole, LinkKind.CALL)) > 50
    holed = capture("small-system", Release.QNX_7, tmp_path, wide=False, loss=True).trace
    assert len(losses(holed)) > 1
    assert len(link_table(holed, LinkKind.CALL)) > 10


@points(name=["automotive", "client-server", "signals", "interrupt-flood"], loss=LOSS, release=RELEASES)
def test_calls_among_all_classes(name: str, release: Release, loss: bool, tmp_path: Path) -> None:
    made = capture(name, release, tmp_path, wide=False, loss=loss, everything=True)
    agreed_calls(made.trace)
    check_truth(made)
    handled, messages = made.truth.interrupts, made.truth.messages
    check_kind(made, LinkKind.INTERRUPT, {(span.enter, span.exit) for span in handled}, loss)
    check_kind(made, LinkKind.DISPATCH, {(span.enter, span.handlers[0]) for span in handled if span.handlers}, loss)
    check_kind(made, LinkKind.MESSAGE, {(message.sent, message.received) for message in messages}, loss)


def check_kind(made: Traced, kind: LinkKind, true: set[tuple[int, int]], loss: bool) -> None:
    """Check that links of a kind join what belongs together: without losses everything that ended."""
    table, times = link_table(made.trace, kind), made.trace.events.time_cycles
    found = set(zip(times[table.from_row].tolist(), times[table.to_row].tolist(), strict=True))
    assert found <= true
    assert loss or found == {(start, end) for start, end in true if 0 <= end < made.trace.window.end}
    assert len(found) == len(table)


@pytest.mark.thorough
def test_calls_of_a_real_system(tmp_path: Path) -> None:
    """One CPU, calls alone: what is linked took less time than a call that blocks, and most of what never blocks is."""
    trace = open_trace(shared_path("real/qnx71-ker_call.traceprinter.txt"))
    found = agreed_calls(trace)
    assert found > 0.9 * never_blocking(trace) > 0
