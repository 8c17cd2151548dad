"""Statistics of scenes that a reader can add up, and properties that hold for every trace."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import satview
from satview.analysis.statistics import Statistics
from satview.answers.statistics import statistics_table
from satview.base.errors import Cancelled, UsageError
from satview.base.time import TimeWindow
from satview.events import wire
from satview.events.states import ABSENT, FIRST_STATE, STATE_BY_NAME, UNKNOWN, VALUE_COUNT
from satview.formats.kev.reader import open_kev
from satview.timeline.lane_tree import LaneKind, Timeline
from tests.helpers.kev import START, TraceBuilder, from_lanes
from tests.helpers.scene import CLIENT, END_NS, MSG_SENDV, SERVER, scene

VALUE = {name: state.value for name, state in STATE_BY_NAME.items()}
ENTER, EXIT, HANDLER, HANDLER_EXIT = (wire.code(wire.WireClass.INT, event) for event in (1, 2, 3, 4))
SEND, RECEIVE, REPLY = (wire.code(wire.WireClass.COMM, event) for event in (0, 2, 10))


@pytest.fixture
def trace(tmp_path):
    return open_kev(scene(tmp_path))


def window(start, end):
    return TimeWindow(START + start, START + end)


def times(found, pid, tid=1):
    """Return state name to cycles of one thread."""
    states, thread = found.states, found.trace.threads.row(pid, tid)
    names = {state.value: name for name, state in STATE_BY_NAME.items()} | {UNKNOWN: "?", ABSENT: "absent"}
    mine = states.thread == thread
    return {names[v]: t for v, t in zip(states.value[mine].tolist(), states.total_cycles[mine].tolist(), strict=True)}


class TestScene:
    def test_states_add_up_and_what_was_lost_is_unknown(self, trace):
        found = Statistics(trace)
        assert times(found, CLIENT) == {
            "?": 8000,
            "READY": 1000,
            "RUNNING": 3000 + 3999,
            "REPLY": 4001,
            "NANOSLEEP": 1,
        }  # the opening dump shows READY
        assert times(found, SERVER) == {"?": 8000, "RECEIVE": 4001 + 4001, "RUNNING": 3999}

    def test_the_longest_interval_ends_where_events_were_lost(self, trace):
        states = Statistics(trace).states
        for pid, state, longest, start, count in (
            (SERVER, "RECEIVE", 4001, 0, 2),  # from 8,000 on it is only known to last to 12,000
            (CLIENT, "NANOSLEEP", 1, 12_000, 1),
        ):
            mine = (states.thread == trace.threads.row(pid, 1)) & (states.value == VALUE[state])
            assert (states.longest_cycles[mine].tolist(), states.count[mine].tolist()) == ([longest], [count])
            assert states.longest_start_cycles[mine].tolist() == [START + start]

    def test_a_range_cuts_intervals(self, trace):
        found = Statistics(trace, window(2_000, 5_000))
        assert times(found, CLIENT) == {"RUNNING": 2000, "REPLY": 1000}
        assert times(found, SERVER) == {"RECEIVE": 2001, "RUNNING": 999}
        assert found.threads.longest_run_cycles[trace.threads.row(CLIENT, 1)] == 2000
        assert found.threads.longest_run_start_cycles[trace.threads.row(CLIENT, 1)] == START + 2000

    def test_cpus(self, trace):
        cpus = Statistics(trace).cpus
        assert cpus.busy_cycles.tolist() == [3000 + 3999 + 3999, 0]
        assert cpus.idle_cycles.tolist() == [0, 0]
        assert cpus.unknown_cycles.tolist() == [END_NS + 1 - 10_998, END_NS + 1]
        assert cpus.switches.tolist() == [2, 0]
        assert cpus.runs.tolist() == [3, 0]
        assert cpus.busiest.tolist() == [trace.threads.row(CLIENT, 1), 0]
        assert cpus.longest_run_start_cycles.tolist()[0] == START + 4001

    def test_threads_and_processes(self, trace):
        found = Statistics(trace)
        client = trace.threads.row(CLIENT, 1)
        threads = found.threads
        assert (threads.cpu_cycles[client], threads.runs[client], threads.switches[client]) == (6999, 2, 2)
        assert (threads.ready_cycles[client], threads.longest_ready_start_cycles[client]) == (1000, START)
        assert (threads.calls[client], threads.preemptions[client], threads.migrations[client]) == (1, 0, 0)
        row = trace.processes.row(CLIENT)
        assert (found.processes.cpu_cycles[row], found.processes.threads[row]) == (6999, 1)

    def test_calls(self, trace):
        calls = Statistics(trace).calls
        assert [trace.catalogue.name(code) for code in calls.code.tolist()] == ["MSG_SENDV"]
        assert (calls.count[0], calls.times.total_cycles[0], calls.times.longest[0]) == (1, 7000, calls.first[0])

    def test_a_call_belongs_to_the_range_in_which_it_begins_and_is_not_cut(self, trace):
        assert Statistics(trace, window(1_000, 3_000)).calls.times.most_cycles.tolist() == [7000]
        assert len(Statistics(trace, window(3_000, 10_000)).calls) == 0

    def test_events(self, trace):
        events = Statistics(trace).events
        counts = dict(zip(events.code.tolist(), events.count.tolist(), strict=True))
        assert counts[wire.code(wire.WireClass.USER, 7)] == 1
        assert counts[wire.THREAD_RUNNING] == 3
        at = events.code.tolist().index(wire.THREAD_RUNNING)
        first, last = (int(trace.events.time_cycles[rows[at]]) for rows in (events.first, events.last))
        assert (first, last) == (START + 1000, START + 8001)

    def test_a_mask_changes_counts_and_no_time(self, trace):
        passes = satview.select(trace, "class == USREVENT")
        mask = np.zeros(len(trace.events), np.bool_)
        mask[passes] = True
        found, whole = Statistics(trace, None, mask), Statistics(trace)
        assert found.events.count.sum() == 2
        assert len(found.calls) == 0
        assert (found.threads.cpu_cycles == whole.threads.cpu_cycles).all()
        assert times(found, CLIENT) == times(whole, CLIENT)

    def test_hiding_exits_does_not_make_calls_endless(self, trace):
        mask = np.ones(len(trace.events), np.bool_)
        mask[satview.select(trace, "class == KER_EXIT")] = False
        assert Statistics(trace, None, mask).calls.times.total_cycles.tolist() == [7000]

    def test_nanoseconds(self, trace):
        assert Statistics(trace).ns(np.array([0, 1234])).tolist() == [0, 1234]

    def test_ranges_and_masks_that_do_not_fit(self, trace):
        with pytest.raises(UsageError, match="outside"):
            Statistics(trace, TimeWindow(0, 10))
        with pytest.raises(UsageError, match="mask has 3 rows"):
            Statistics(trace, None, np.ones(3, np.bool_))

    def test_can_be_stopped(self, trace):
        found = Statistics(trace, cancelled=lambda: True)
        for table in ("states", "cpus", "events", "calls", "messages", "interrupts"):
            with pytest.raises(Cancelled):
                getattr(found, table)


def test_migrations_and_idle(tmp_path):
    trace = from_lanes(
        tmp_path,
        """
        cpu0  A A . B A .
        cpu1  . B B . . A
    """,
    )
    found = Statistics(trace)
    a, b = trace.threads.row(2, 1), trace.threads.row(3, 1)
    assert (found.threads.migrations[a], found.threads.migrations[b]) == (1, 1)
    assert found.threads.runs[[a, b]].tolist() == [3, 2]
    assert found.threads.migrations.sum() == 2  # idle threads do not count
    assert (found.cpus.busy_cycles + found.cpus.idle_cycles + found.cpus.unknown_cycles).tolist() == [
        found.window.length
    ] * 2
    assert found.cpus.idle_cycles.tolist() == [2001, 3000]  # the last column ends with the last event
    assert found.processes.cpu_cycles[trace.processes.row(1)] == 0


def test_interrupts_take_time_from_threads_and_are_late(tmp_path):
    builder = TraceBuilder().time_event(0).state("RUNNING", 0, 7, 1)
    builder.event(ENTER, 1000, (5, 0)).event(HANDLER, 1100, (9, 5)).event(HANDLER_EXIT, 1400, (5, 0))
    builder.event(EXIT, 1500, (5, 0)).event(ENTER, 3000, (5, 0)).event(ENTER, 3100, (6, 0))
    builder.event(EXIT, 3200, (6, 0)).event(EXIT, 3400, (5, 0)).event(wire.code(6, 1), 5000)
    found = Statistics(builder.open(tmp_path))
    interrupts = found.interrupts
    assert interrupts.vector.tolist() == [5, 6]
    assert interrupts.times.total_cycles.tolist() == [500 + 400, 100]
    assert interrupts.times.most_cycles.tolist() == [500, 100]
    assert (interrupts.latency.count.tolist(), interrupts.latency.total_cycles.tolist()) == ([1, 0], [100, 0])
    assert found.cpus.interrupt_cycles.tolist() == [900]
    thread = found.trace.threads.row(7, 1)
    assert (found.threads.cpu_cycles[thread], found.threads.interrupted_cycles[thread]) == (5001 - 900, 900)
    assert found.cpus.busy_cycles.tolist() == [5001 - 900]


def test_errors_and_preemption(tmp_path):
    builder = TraceBuilder().time_event(0).state("RUNNING", 0, 7, 1)
    builder.call(MSG_SENDV, 10).exit(MSG_SENDV, 30, (0xFFFFFFFF, 3)).call(MSG_SENDV, 40)
    builder.exit(MSG_SENDV, 90, (0xFFFFFFFF, 3)).call(MSG_SENDV, 100).exit(MSG_SENDV, 101, (0, 0))
    builder.call(MSG_SENDV, 200).event(wire.code(2, MSG_SENDV + 256), 205).call(MSG_SENDV, 300)
    builder.state("READY", 400, 7, 1).state("RUNNING", 500, 7, 1).state("RECEIVE", 600, 7, 1)
    builder.state("READY", 700, 7, 1)
    found = Statistics(builder.open(tmp_path))
    calls = found.calls
    assert (calls.count[0], calls.times.count[0], calls.failed[0], calls.interrupted[0]) == (5, 4, 2, 1)
    assert calls.errors == (((3, 2),),)
    assert (calls.times.least_cycles[0], calls.times.most_cycles[0], calls.times.total_cycles[0]) == (1, 50, 76)
    assert found.threads.preemptions[found.trace.threads.row(7, 1)] == 1


def test_what_is_across_a_loss_has_no_duration(tmp_path):
    builder = TraceBuilder().time_event(0).event(wire.CONTROL_BUFFER, 0, (1, 0)).state("RUNNING", 0, 7, 1)
    builder.call(MSG_SENDV, 10).exit(MSG_SENDV, 30).call(MSG_SENDV, 40).event(ENTER, 50, (5, 0))
    builder.event(wire.CONTROL_BUFFER, 100, (4, 0)).event(EXIT, 110, (5, 0)).state("RUNNING", 115, 7, 1)
    builder.exit(MSG_SENDV, 120)
    found = Statistics(builder.open(tmp_path))
    assert (found.calls.count.tolist(), found.calls.times.count.tolist()) == ([2], [1])
    assert found.calls.times.most_cycles.tolist() == [20]
    assert (found.interrupts.count.tolist(), found.interrupts.times.count.tolist()) == ([1], [0])
    assert found.lost_cycles == 50


def test_messages(tmp_path):
    builder = TraceBuilder().time_event(0).state("RUNNING", 0, 7, 1)
    builder.event(SEND, 10, (1, 9)).state("SEND", 11, 7, 1).state("RUNNING", 12, 9, 1)
    builder.event(RECEIVE, 20, (1, 9)).state("REPLY", 21, 7, 1).event(REPLY, 60, (1, 7)).state("READY", 61, 7, 1)
    builder.state("RECEIVE", 70, 9, 1).state("RUNNING", 71, 7, 1).event(SEND, 80, (1, 9))
    builder.state("REPLY", 81, 7, 1).state("RUNNING", 82, 9, 1).event(wire.code(6, 1), 300)
    found = Statistics(builder.open(tmp_path))
    messages = found.messages
    assert messages.client.tolist() == [found.trace.threads.row(7, 1)]
    assert (messages.server_pid.tolist(), messages.count.tolist()) == ([9], [2])
    assert (messages.send_blocked.count.tolist(), messages.send_blocked.total_cycles.tolist()) == ([1], [10])
    assert (messages.reply_blocked.count.tolist(), messages.reply_blocked.total_cycles.tolist()) == ([1], [40])
    assert messages.sized.tolist() == [0]
    assert found.threads.sent.sum() == 2
    assert found.threads.received[found.trace.threads.row(9, 1)] == 1


STEPS = st.lists(
    st.tuples(
        st.integers(0, 40),  # time since the one before
        st.sampled_from(("RUNNING", "READY", "REPLY", "RECEIVE", "MUTEX", "enter", "exit", "call", "back", "lost")),
        st.integers(0, 1),  # CPU
        st.integers(1, 3),  # tid
    ),
    min_size=1,
    max_size=60,
)


def any_trace(folder, steps, release="7.1.0"):
    builder, now, sequence = TraceBuilder(release, cpus=2).time_event(0), 0, 0
    builder.event(wire.CONTROL_BUFFER, 0, (0, 0))
    for wait, what, cpu, tid in steps:
        now += wait
        if what == "enter":
            builder.event(ENTER, now, (tid, 0), cpu)
        elif what == "exit":
            builder.event(EXIT, now, (tid, 0), cpu)
        elif what == "call":
            builder.call(MSG_SENDV, now, cpu=cpu)
        elif what == "back":
            builder.exit(MSG_SENDV, now, cpu=cpu)
        elif what == "lost":
            sequence += 1 + tid
            builder.event(wire.CONTROL_BUFFER, now, (sequence, 0), cpu)
        else:
            builder.state(what, now, 7, tid, cpu)
    return builder.event(wire.code(6, 1), now + 5).open(folder)


def thread_totals(found):
    out = np.zeros(len(found.trace.threads), np.int64)
    np.add.at(out, found.states.thread, found.states.total_cycles)
    return out[1:]


@pytest.mark.thorough
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS, st.sampled_from(("7.1.0", "8.0.0")), st.data())
def test_sums_agree(tmp_path, steps, release, data):
    trace = any_trace(tmp_path, steps, release)
    whole = trace.window
    cut = data.draw(st.integers(whole.start + 1, whole.end)) if whole.length > 1 else whole.end
    parts = [Statistics(trace)]
    if whole.start < cut < whole.end:
        parts += [Statistics(trace, TimeWindow(whole.start, cut)), Statistics(trace, TimeWindow(cut, whole.end))]
    for found in parts:
        length, cpus, threads = found.window.length, found.cpus, found.threads
        assert (thread_totals(found) == length).all()
        assert (cpus.busy_cycles + cpus.idle_cycles + cpus.interrupt_cycles + cpus.unknown_cycles == length).all()
        assert (cpus.unknown_cycles >= 0).all()
        assert threads.cpu_cycles.sum() == cpus.busy_cycles.sum() + cpus.idle_cycles.sum()
        assert threads.events.sum() == found.events.count.sum()
        assert threads.switches.sum() == cpus.runs.sum()
        assert (found.states.longest_cycles <= found.states.total_cycles).all()
    if len(parts) == 3:
        first, second = parts[1:]
        for name in ("cpu_cycles", "ready_cycles", "switches", "migrations", "preemptions", "events", "calls"):
            total = getattr(first.threads, name) + getattr(second.threads, name)
            assert (getattr(parts[0].threads, name) == total).all(), name


@pytest.mark.thorough
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS, st.sampled_from(("7.1.0", "8.0.0")))
def test_states_are_those_of_the_lanes(tmp_path, steps, release):
    trace = any_trace(tmp_path, steps, release)
    states, lanes = Statistics(trace).states, Timeline(trace)
    for info in lanes.infos:
        if info.kind is LaneKind.THREAD:
            spans = lanes.lane(info.index).spans
            length = np.diff(spans.start_cycles, append=spans.end_cycles)
            expected = np.bincount(spans.value, weights=length, minlength=VALUE_COUNT)
            found = np.zeros(VALUE_COUNT)
            mine = states.thread == info.thread
            found[states.value[mine]] = states.total_cycles[mine]
            assert (found == expected).all()


@pytest.mark.thorough
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS, st.randoms(use_true_random=False))
def test_counts_are_those_of_a_loop(tmp_path, steps, random):
    trace = any_trace(tmp_path, steps)
    mask = np.array([random.random() < 0.6 for _ in range(len(trace.events))])
    found, plain = Statistics(trace, None, mask), Statistics(trace)
    expected = {}
    for code in trace.events.code[mask].tolist():
        expected[code] = expected.get(code, 0) + 1
    assert dict(zip(found.events.code.tolist(), found.events.count.tolist(), strict=True)) == expected
    rows = np.flatnonzero(mask)
    for code, first, last in zip(
        found.events.code.tolist(), found.events.first.tolist(), found.events.last.tolist(), strict=True
    ):
        mine = rows[trace.events.code[rows] == code]
        assert (first, last) == (mine[0], mine[-1])
    assert (found.states.total_cycles == plain.states.total_cycles).all()
    assert (found.cpus.busy_cycles == plain.cpus.busy_cycles).all()
    assert (Statistics(trace, None, np.ones_like(mask)).calls.count == plain.calls.count).all()


def test_threads_that_never_change_their_state_are_unknown_all_the_time(tmp_path):
    """THREAD events of a number that no state has, as damage leaves them, come before those of a thread with states."""
    builder = TraceBuilder().time_event(0).event(wire.code(wire.WireClass.PR_TH, 59), 100, (3, 1))
    trace = builder.state("RUNNING", 200, 5, 1).state("READY", 700, 5, 1).event(wire.code(6, 1), 999).open(tmp_path)
    found = Statistics(trace)
    assert times(found, 3) == {"?": 1000}
    assert times(found, 5) == {"?": 200, "RUNNING": 500, "READY": 300}


def test_a_trace_of_nothing(tmp_path):
    found = Statistics(TraceBuilder().time_event(0).open(tmp_path))
    assert found.events.count.sum() == 1
    assert all(not len(getattr(found, table)) for table in ("calls", "messages", "interrupts"))
    assert found.cpus.unknown_cycles.tolist() == [1]
    assert FIRST_STATE > UNKNOWN > ABSENT


def test_a_call_with_64_bit_arguments_is_the_same_kind_of_event(tmp_path):
    builder = TraceBuilder().time_event(0).state("RUNNING", 10, 7, 1)
    for time, number in ((20, 11), (30, 11 | wire.KER_64BIT), (40, 11 | wire.KER_64BIT)):
        builder.call(number, time)
    trace = builder.open(tmp_path)
    (row,) = (row for row in statistics_table("event", Statistics(trace)).records() if row["class"] == "KER_CALL")
    assert (row["event"], row["count"], row["first_ns"], row["last_ns"]) == ("MSG_SENDV", 3, 20, 40)
