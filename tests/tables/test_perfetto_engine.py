"""What is written for Perfetto, loaded into Perfetto's own engine: its rows are those of satview's tables."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import satview
from satview.base.time import TimeWindow
from satview.capture.workloads import registry
from satview.events import wire
from satview.events.spec import Release
from satview.export.perfetto import write_perfetto
from satview.export.perfetto_tracks import NOBODY_PID, thread_numbers
from satview.opened import with_answers
from satview.store.mark_file import Mark, MarkFiles, row_of
from tests.capture.made import FAST, WIDE, damaged, traced
from tests.helpers.extent import RING, WIDTH, fewer, points
from tests.helpers.kev import TraceBuilder
from tests.helpers.perfetto_engine import needs_engine, query

pytestmark = needs_engine
RELEASES = {"6": Release.QNX_6, "66": Release.QNX_6_6, "7": Release.QNX_7, "8": Release.QNX_8}
ERRORS = "select name, value from stats where value > 0 and severity in ('error', 'data_loss')"
LENGTH = "iif(dur < 0, trace_end() - ts, dur)"
STATES = f"select tid, state, sum({LENGTH}) from thread_state join thread using (utid) group by 1, 2"
RUNS = (
    f"select tid, cpu, priority, sum({LENGTH}) from sched_slice join thread using (utid) where {LENGTH} > 0 "
    "group by 1, 2, 3"
)
LETTERS = {"READY": "R", "WAITING": "R", "WAITPAGE": "D", "STOPPED": "T", "SUSPENDED": "T"}  # of all others S


def captured(name, release, folder, *, wide, cpus=None):
    workload = registry.find(name)
    ms = min(workload.duration_ns // 1_000_000, 40)
    return with_answers(
        traced(workload.setup, ms, folder, release, cpus or workload.cpus, 5, WIDE if wide else FAST).trace
    )


def asked(trace, folder, *queries, **part):
    path = folder / "a.pftrace"
    write_perfetto(trace, path, **part)
    errors, *answers = query(path, ERRORS, *queries)
    assert errors == []
    return answers


def cut(trace, found, window):
    """Return how long intervals of a table are inside of a window, in nanoseconds."""
    start, end = (np.clip(found[name], window.start, window.end) for name in ("start_cycles", "end_cycles"))
    return (trace.clock.ns_array(end) - trace.clock.ns_array(start)).tolist()


def assert_same_schedule(trace, folder, window=None):
    """Assert that the engine has the times of all states of all threads, of all runs, and the names of threads."""
    window = window or trace.window
    states, runs, names = asked(trace, folder, STATES, RUNS, "select tid, name from thread", window=window)
    number, of_states, of_runs = thread_numbers(trace).tolist(), Counter(), Counter()
    found = trace.table("state")
    for thread, state, ns in zip(found["thread"].tolist(), found["state"], cut(trace, found, window), strict=True):
        if state not in ("ABSENT", "UNKNOWN", "RUNNING", "IDLE", "DEAD"):
            of_states[number[thread], LETTERS.get(state, "S")] += ns
    found = trace.table("run")
    columns = (found[name].tolist() for name in ("thread", "cpu", "priority"))
    for thread, cpu, priority, ns in zip(*columns, cut(trace, found, window), strict=True):
        of_states[number[thread], "Running"] += ns
        of_runs[number[thread], cpu, max(priority, 0)] += ns
    mine = [row for row in states if row[0] >> 32 != NOBODY_PID and row[1] in ("R", "S", "D", "T", "Running")]
    assert {row[:2]: row[2] for row in mine if row[2]} == {key: ns for key, ns in of_states.items() if ns}
    mine = {row[:3]: row[3] for row in runs if row[0] >> 32 != NOBODY_PID}
    assert mine == {key: ns for key, ns in of_runs.items() if ns}
    named = dict(names)
    shown = {thread for (thread, _), ns in of_states.items() if ns}
    assert {number[row]: trace.thread_name(row) for row in range(len(number)) if number[row] in shown} == {
        tid: name for tid, name in named.items() if tid in shown
    }
    return of_states


@pytest.mark.thorough
@points(name=fewer([name for name, _ in registry.names()][::-1], 4), release=RELEASES, wide=WIDTH)
def test_schedules_of_all_workloads(name, release, wide, tmp_path):
    trace = captured(name, release, tmp_path, wide=wide)
    assert len(assert_same_schedule(trace, tmp_path)) > 3


@pytest.mark.thorough
@points(name=["client-server", "automotive", "fork-storm"], release=RELEASES, wide=WIDTH, ring=RING)
def test_schedules_with_losses(name, release, wide, ring, tmp_path):
    """What is not known after a loss is in no state."""
    setup, cpus = registry.find(name).setup, registry.find(name).cpus
    trace = with_answers(damaged(setup, 30, tmp_path, release, cpus, ring=ring, wide=wide).trace)
    assert_same_schedule(trace, tmp_path)
    assert (trace.table("state")["state"] == "UNKNOWN").any()


@pytest.mark.thorough
@points(name=["automotive", "fork-storm", "nested-servers"], release=RELEASES)
def test_a_range_is_cut_at_its_ends(name, release, tmp_path):
    trace = captured(name, release, tmp_path, wide=True)
    window = TimeWindow(trace.clock.cycles(10_000_000), trace.clock.cycles(25_000_000))
    assert_same_schedule(trace, tmp_path, window)
    (bounds,), slices = asked(trace, tmp_path, "select trace_start(), trace_end()",
                              "select category, count(*) from slice group by 1", window=window)  # fmt: skip
    assert bounds == (10_000_000, 25_000_000)
    calls = trace.table("call")
    last = np.maximum(calls["end_cycles"], calls["start_cycles"] + 1)
    assert dict(slices)["kernel call"] == ((calls["start_cycles"] < window.end) & (last > window.start)).sum()


@pytest.mark.thorough
def test_a_filter_selects_what_its_events_begin(tmp_path):
    trace = captured("automotive", Release.QNX_7, tmp_path, wide=True)

    def selected(expression):
        rows = np.zeros(len(trace.events), np.bool_)
        rows[trace.select(expression)] = True
        return asked(trace, tmp_path, "select category, count(*) from slice group by 1",
                     "select count(*) from thread_state", events=rows)  # fmt: skip

    slices, states = selected("class == KER_CALL")
    assert dict(slices)["kernel call"] == len(trace.table("call"))
    assert set(dict(slices)) == {"kernel call", "wake-up"}, "a call wakes"
    assert states == [(0,)]
    slices, states = selected("class == THREAD")
    assert "kernel call" not in dict(slices)
    assert states[0][0] > 100


@pytest.mark.thorough
def test_a_thread_number_that_comes_again_is_another_thread(tmp_path):
    builder = TraceBuilder().time_event(0).process_name(1, 7, "app").state("RUNNING", 1000, 7, 1)
    for start in (2000, 7000):
        builder.event(wire.THREAD_CREATE, start, (7, 2)).state("READY", start + 1000, 7, 2)
        builder.state("RUNNING", start + 2000, 7, 2).state("DEAD", start + 3000, 7, 2)
        builder.event(wire.THREAD_DESTROY, start + 4000, (7, 2))
    trace = with_answers(builder.state("RUNNING", 12000, 7, 1).open(tmp_path))
    (rows,) = asked(trace, tmp_path, "select utid, state, dur, process.name from thread_state join thread using (utid) "
                    f"join process using (upid) where tid = {7 << 32 | 2} order by ts, thread_state.id")  # fmt: skip
    ids = list(dict.fromkeys(row[0] for row in rows))
    lives = [[row[1] for row in rows if row[0] == utid] for utid in ids]
    assert lives == [["R", "Running", None, "R", "Running", "Z"], ["Created", "R", "Running", "Z"]]
    assert {row[3] for row in rows} == {"app"}


# ---- what only satview knows ---------------------------------------------------------------------------------------


@pytest.mark.thorough
@points(name=["automotive", "instrumented", "nested-servers", "signals", "convoy"], release=RELEASES, wide=WIDTH)
def test_slices_are_the_rows_of_the_tables(name, release, wide, tmp_path):
    trace = captured(name, release, tmp_path, wide=wide)
    (found,) = asked(trace, tmp_path, "select category, slice.name, ts, dur, slice.id from slice")
    by_category = {category: [row[1:4] for row in found if row[0] == category] for category, *_ in found}
    calls = trace.table("call")
    ends = np.where(calls["end_ns"] >= 0, calls["end_ns"], calls["start_ns"])
    assert sorted(by_category["kernel call"]) == sorted(
        zip(calls["name"], calls["start_ns"].tolist(), (ends - calls["start_ns"]).tolist(), strict=True))  # fmt: skip
    assert len(by_category.get("interrupt", ())) == len(trace.table("interrupt"))
    sent = trace.table("message")
    assert (
        len(by_category.get("message", ())) == len(sent) + ((sent["receive_event"] >= 0) & (sent["server"] > 0)).sum()
    )
    pulses = trace.table("pulse")
    assert len(by_category.get("pulse", ())) == len(pulses) + (pulses["receiver"] > 0).sum()
    assert len(by_category.get("verdict", ())) == len(trace.table("verdict"))
    assert len(by_category["wake-up"]) == 2 * len(trace.table("wake_up"))
    assert len(by_category.get("user", ())) == trace.class_counts().get("USREVENT", 0)


@pytest.mark.thorough
@points(release=RELEASES, wide=WIDTH)
def test_arrows_go_from_waker_to_woken_and_from_client_to_server(release, wide, tmp_path):
    trace = captured("nested-servers", release, tmp_path, wide=wide)
    (found,) = asked(trace, tmp_path, "select a.category, a.name, b.name, a.ts, b.ts from flow join slice a on "
                     "a.id = slice_out join slice b on b.id = slice_in")  # fmt: skip
    woken, name = trace.table("wake_up"), trace.thread_name
    columns = (woken[column].tolist() for column in ("thread", "waker", "cause_ns", "time_ns"))
    assert sorted(row[1:] for row in found if row[0] == "wake-up") == sorted(
        (f"wakes {name(thread)}", f"woken by {name(waker)}", cause, time)
        for thread, waker, cause, time in zip(*columns, strict=True)
    )
    sent = trace.table("message")
    at = np.flatnonzero((sent["receive_event"] >= 0) & (sent["server"] > 0))
    assert sorted(row[1:4] for row in found if row[0] == "message") == sorted(
        (f"to {name(int(sent['server'][row]))}", f"for {name(int(sent['client'][row]))}", int(sent["time_ns"][row]))
        for row in at
    )


def test_a_wait_says_what_for(tmp_path):
    trace = captured("convoy", Release.QNX_7, tmp_path, wide=True)
    (found,) = asked(trace, tmp_path, "select slice.name, ts, extract_arg(arg_set_id, 'debug.waits for'), "
                     "extract_arg(arg_set_id, 'debug.certainty') from slice where category = 'state'")  # fmt: skip
    waits = trace.table("wait")
    known = np.flatnonzero(waits["blocker"] > 0)
    assert len(known) > 10
    expected = {(waits["state"][row], int(waits["start_ns"][row]), trace.thread_name(int(waits["blocker"][row])),
                 waits["certainty"][row]) for row in known}  # fmt: skip
    assert {row for row in found if row[2] is not None} == expected


@pytest.mark.thorough
def test_calls_and_messages_of_a_trace_without_states(tmp_path):
    whole = captured("client-server", Release.QNX_7, tmp_path, wide=False)
    whole.export(tmp_path / "part.kev", expression="class != THREAD")
    trace = satview.open_trace(tmp_path / "part.kev")
    assert "VTHREAD" not in trace.class_counts()
    calls, sent = trace.table("call"), trace.table("message")
    rows = np.stack([sent[name] for name in ("receive_event", "reply_event", "done_event")])
    is_long = (np.where(rows >= 0, trace.events.time_cycles[rows], 0) > sent["time_cycles"]).any(axis=0)
    assert (sent["done_event"] < 0).any()
    slices, unknown = asked(
        trace, tmp_path, "select category, count(*), sum(dur > 0) from slice group by 1",
        "select count(*) from slice where category = 'kernel call' and dur = 0 "
        "and extract_arg(arg_set_id, 'debug.end') = 'not known'",
    )  # fmt: skip
    of = {row[0]: row[1:] for row in slices}
    assert of["kernel call"] == (len(calls), (calls["length_ns"] > 0).sum())
    assert unknown == [((calls["end_cycles"] < 0).sum(),)]
    served = (sent["receive_event"] >= 0).sum()
    assert of["message"] == (len(sent) + served, is_long.sum() + (sent["reply_event"] >= 0).sum()), (
        "up to what the trace shows last"
    )


@pytest.mark.thorough
def test_the_wall_clock(tmp_path):
    trace = captured("polite", Release.QNX_7, tmp_path, wide=False)
    (found,) = asked(trace, tmp_path, "select clock_name, clock_value from clock_snapshot")
    wall = trace.clock.wall_time(trace.window.start)
    assert dict(found)["BOOTTIME"] == 0
    assert dict(found)["REALTIME"] // 1000 == pytest.approx(wall.timestamp() * 1e6, abs=2)


@pytest.mark.thorough
def test_marks_losses_and_other_events(tmp_path):
    trace = with_answers(
        damaged(registry.find("client-server").setup, 30, tmp_path, Release.QNX_7, 1, ring=False, wide=True).trace
    )
    start = trace.window.start
    notes = MarkFiles(trace.path)
    for mark in (Mark(start + 500, start + 900, "look here"), Mark(start + 700, start + 700, "and here")):
        notes.put(row_of(mark))
    assert notes.write() == []
    found, events = asked(trace, tmp_path, "select slice.name, ts, dur from slice where category in ('mark', 'loss')",
                          "select slice.name, count(*) from slice where category = 'event' group by 1")  # fmt: skip
    ns = trace.clock.ns
    assert ("look here", ns(start + 500), ns(start + 900) - ns(start + 500)) in found
    assert ("and here", ns(start + 700), 0) in found
    lost = trace.table("loss")
    assert sum(row[0] == "lost" for row in found) == len(lost) > 0
    assert dict(events)["PROCCREATE_NAME"] == (trace.table("event")["name"] == "PROCCREATE_NAME").sum()


@pytest.mark.thorough
def test_counters(tmp_path):
    trace = captured("instrumented", Release.QNX_7, tmp_path, wide=True)
    (found,) = asked(trace, tmp_path, "select t.name, count(*), max(value) from counter join counter_track t on "
                     "t.id = track_id group by 1")  # fmt: skip
    of = {row[0]: row[1:] for row in found}
    assert {"CPU 0 load", "CPU 1 load", "CPU 0 frequency"} <= set(of)
    assert 0 < of["CPU 0 load"][1] <= 100
