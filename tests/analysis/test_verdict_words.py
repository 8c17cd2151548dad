"""What verdicts call what threads wait for, how often, and what every rule and plug-in makes of it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from satview.analysis.verdicts.evidence import (
    _MOST_EVENTS,
    Evidence,
    Occurrence,
    Severity,
    Verdict,
    counts_within,
    full_windows,
    groups,
    longest,
    named,
    of_whom,
    waited_for,
)
from satview.analysis.verdicts.find import _verdicts_of_plugin, all_kinds, find_verdicts, on_axis
from satview.analysis.verdicts.rule import Limits, Thresholds, default_thresholds, rules
from satview.analysis.verdicts.system import _does, leaks
from satview.analysis.verdicts.waiting import _priority, _remedy, _row_before, _way_out
from satview.base.errors import Cancelled
from satview.events import wire
from satview.events.catalogue import call_numbers
from satview.events.spec import Release
from satview.events.states import STATE_BY_NAME
from satview.formats.axis import Member, trace_on_axis
from satview.linkage.blockers import REPLY as REPLY_STATE
from satview.linkage.blockers import SEND as SEND_STATE
from satview.linkage.blockers import blockers
from satview.linkage.links import Certainty
from satview.linkage.waits import MUTEX
from satview.store.axis import files_of
from tests.helpers.kev import START, TraceBuilder

CALLS = call_numbers(Release.QNX_8)
SEND, RECEIPT = wire.code(7, 0), wire.code(7, 2)


def waiting(state, call="", words=(0, 0), events=()):
    """Return a trace of 8.0 in which thread 1 of `app` waits from 50 on, 5.2 and 6.1 being there too."""
    builder = TraceBuilder("8.0.0").time_event(0).process_name(0, 5, "bin/app").process_name(1, 6, "bin/srv")
    builder.state("READY", 2, 5, 2).state("READY", 3, 6, 1).state("RUNNING", 10, 5, 1)
    if call:
        builder.call(CALLS[call], 20, words)
    for number, (code, payload) in enumerate(events):
        builder.event(code, 30 + number, payload)
    builder.state("REPLY" if state == "answered" else state, 50, 5, 1)
    return builder.state("RUNNING", 50, 1, 1).event(wire.code(6, 1), 90)


TO_SERVER = ((SEND, (0x10001, 6)),)


@pytest.mark.parametrize(("scene", "what", "whom"), [
    (waiting("SEND", "MSG_SENDV", (7, 0), TO_SERVER), "srv to receive its message", ""),
    (waiting("SEND", "MSG_SENDV", (7, 0), ((SEND, (0x10001, 77)),)), "pid 77 to receive its message", ""),
    (waiting("SEND"), "a server to receive its message", ""),
    (waiting("REPLY", "MSG_SENDV", (7, 0), TO_SERVER), "the reply", ""),
    (waiting("JOIN", "THREAD_JOIN", (2, 0)), "the end", " of app 2"),
    (waiting("MUTEX", "SYNC_MUTEX_LOCK", (0x1000, 2 << 16 | 5)), "mutex 0x1000 (process app)", ", held by app 2"),
    (waiting("MUTEX", "SYNC_MUTEX_LOCK", (0x1000, 1 << 16 | 6)), "mutex 0x1000 (process app)", ", held by srv 1"),
    (waiting("MUTEX"), "a mutex", ""),
    (waiting("RECEIVE", "MSG_RECEIVEV", (3, 0)), "a message or pulse on channel 3", ""),
    (waiting("RECEIVE"), "a message or pulse", ""),
    (waiting("CONDVAR", "SYNC_CONDVAR_WAIT", (0x3000, 0)), "condition variable 0x3000 (process app)", ""),
    (waiting("CONDVAR"), "what ends state CONDVAR", ""),
    (waiting("SEM", "SYNC_SEM_WAIT", (0x4000, 0)), "semaphore 0x4000 (process app)", ""),
    (waiting("BARRIER", "SYNC_BARRIER_WAIT", (0x5000, 0)), "what ends state BARRIER", ""),
    (waiting("RWLOCK_READ", "SYNC_RWLOCK", (0x6000, 0)), "read/write lock 0x6000 (process app)", ""),
    (waiting("RWLOCK_WRITE", "SYNC_RWLOCK", (0x6000, 0)), "read/write lock 0x6000 (process app)", ""),
    (waiting("NANOSLEEP"), "time to pass", ""),
    (waiting("INTR"), "an interrupt", ""),
    (waiting("SIGSUSPEND"), "what ends state SIGSUSPEND", ""),
])  # fmt: skip
def test_what_and_whom_a_thread_waits_for(scene, what, whom, tmp_path):
    trace = scene.open(tmp_path)
    evidence, found = Evidence(trace), blockers(trace)
    [wait] = [i for i in range(len(found)) if trace.events.time_cycles[found.waits.row[i]] == START + 50]
    assert waited_for(evidence, found, wait) == what
    assert of_whom(evidence, found, wait) == whom


def test_who_is_not_known_has_no_name(tmp_path):
    """Row 0 of the threads is that of nobody; of two processes with one number the last one is meant."""
    trace = waiting("JOIN", "THREAD_JOIN", (2, 0)).open(tmp_path)
    evidence, found = Evidence(trace), blockers(trace)

    def named(row):
        return of_whom(evidence, replace(found, thread=np.array([row])), 0)

    assert [trace.thread_name(row) for row in (1, 2)] == ["app 2", "srv 1"]
    assert [named(row) for row in (-1, 0, 1, 2)] == ["", "", " of app 2", " of srv 1"]
    assert [evidence.process_of(pid) for pid in (5, 6)] == ["app", "srv"]
    both = replace(trace.processes, pid=np.where(trace.processes.pid == 6, 5, trace.processes.pid))
    assert Evidence(replace(trace, processes=both)).process_of(5) == "srv"


def test_how_often_something_happened_besides_the_time_that_is_reported(tmp_path):
    evidence = Evidence(waiting("INTR").open(tmp_path))
    first, longer, last = ((START + time, START + time + length, -1) for time, length in ((10, 5), (30, 8), (60, 2)))
    assert evidence.again([first], first[0]) == ""
    assert evidence.again([first, last], first[0]) == "; it happens once more"
    assert evidence.again([first, last, last], first[0]) == "; it happens 2 more times"
    assert evidence.again([first, longer], longer[0]) == "; it happened once before, at 0.000 000 010 s"
    assert evidence.again([first, longer, last], longer[0]) == "; it happens 2 more times, first at 0.000 000 010 s"
    assert longest([first, longer, last, longer]) == 1


def test_a_verdict_is_cut_to_the_trace_and_to_its_first_events(tmp_path):
    builder = TraceBuilder().time_event(0)
    for time in range(1, 40):
        builder.state("RUNNING", time, 5, 1 + time % 2)
    trace = builder.open(tmp_path)
    evidence, end = Evidence(trace), trace.window.end
    rows = [5, 3, *range(len(trace.events) - 1, 5, -1), len(trace.events), -1, 3]
    made = evidence.verdict(Severity.INFO, (START - 5, end + 9), [1], ["x"], rows, ("a", "b"), roles={3: "waits"})
    assert _MOST_EVENTS == 24
    assert made.evidence == (3, *range(5, 28))
    assert made.roles == ("waits", *[""] * 23)
    assert (made.start_cycles, made.end_cycles) == (START, end)
    assert made.occurrences == (Occurrence(START, end, -1),)
    assert made.certainty is Certainty.EXACT
    spans = [(START + 20, START + 20, 7), (START - 9, START + 3, 2), (end, end + 3, 4)]
    made = evidence.verdict(Severity.INFO, (START + 1, START + 2), [], [], [], ("a", "b"), 1, spans)
    assert made.occurrences == (
        Occurrence(START, START + 3, 2),
        Occurrence(START + 20, START + 21, 7),
        Occurrence(end, end + 1, 4),
    )
    assert made.certainty is Certainty.GUESS


def test_how_much_of_windows_intervals_cover():
    """[10, 20) and [15, 40) in windows of 10: one begins at 10 (10 + 5), at 15 (5 + 10), at 30 (10)."""
    at, sums = full_windows(np.array([10, 15]), np.array([20, 40]), 10, 10)
    assert dict(zip(at.tolist(), sums.tolist(), strict=True)) == {10: 15, 15: 15, 30: 10}
    far = 1 << 62
    at, sums = full_windows(np.array([10, 15]) + far, np.array([20, 40]) + far, 100, 30)
    assert dict(zip((at - far).tolist(), sums.tolist(), strict=True)) == {10: 35, 15: 30}
    assert counts_within(np.array([0, 5, 10, 15]), 10).tolist() == [2, 2, 2, 1]


def test_positions_by_the_numbers_of_columns():
    def grouped(*columns):
        return [(numbers, own.tolist()) for numbers, own in groups(*columns)]

    assert grouped(np.array([7, 3, 7, 3])) == [((3,), [1, 3]), ((7,), [0, 2])]
    assert grouped(np.array([2, 1, 2, 2, 1]), np.array([5, 0xFFFFFFFF, 4, 5, 0], np.uint32)) == [
        ((1, 0), [4]), ((1, 0xFFFFFFFF), [1]), ((2, 4), [2]), ((2, 5), [0, 3])]  # fmt: skip
    assert groups(np.empty(0, np.int64)) == []


def test_which_slices_have_a_part_in_a_span(tmp_path):
    """CPU 0: 5.1 from 10 to 30, 5.2 from 30 on; CPU 1: 6.1 from 20 to 40, 6.2 from 40 on; the trace ends at 90."""
    builder = TraceBuilder(cpus=2).time_event(0).state("RUNNING", 10, 5, 1).state("RUNNING", 20, 6, 1, 1)
    builder.state("READY", 29, 5, 1).state("RUNNING", 30, 5, 2).state("READY", 39, 6, 1, 1).state(
        "RUNNING", 40, 6, 2, 1
    )
    evidence = Evidence(builder.event(wire.code(6, 1), 90).open(tmp_path))
    rows, ends = evidence.slices

    def found(first, last):
        inside = evidence.slices_in((START + first, START + last))
        starts = evidence.times[rows[inside]] - START
        return sorted(zip(starts.tolist(), (ends[inside] - START).tolist(), strict=True))

    assert found(0, 10) == []
    assert found(0, 11) == [(10, 29)]
    assert found(25, 35) == [(10, 29), (20, 39), (30, 91)]
    assert found(29, 30) == [(20, 39)]
    assert found(30, 31) == [(20, 39), (30, 91)]
    assert found(50, 60) == [(30, 91), (40, 91)]


def circle(pid):
    """Threads 1 and 2 of a process wait for each other from 30 on, until 30 ms later the trace ends."""
    builder = TraceBuilder().time_event(0).state("READY", 1, pid, 2).state("RUNNING", 10, pid, 1)
    builder.call(80, 12, (0x2000, 2 << 16 | pid)).state("MUTEX", 15, pid, 1).state("RUNNING", 20, pid, 2)
    builder.call(80, 22, (0x1000, 1 << 16 | pid)).state("MUTEX", 30, pid, 2).state("RUNNING", 30, 1, 1)
    return builder.event(wire.code(6, 1), 30_000_030)


def test_a_search_for_verdicts_says_how_far_it_is_and_can_be_stopped(tmp_path):
    trace, shares, asked = circle(5).open(tmp_path), [], []
    [found] = find_verdicts(trace, progress=shares.append, cancelled=lambda: bool(asked.append(1)))
    assert found.kind == "deadlock"
    assert shares == sorted(shares)
    assert (shares[0] >= 0, shares[-1]) == (True, 1)
    assert 1 + len(all_kinds()) - len(rules()) <= len(asked) <= 1 + len(all_kinds())
    with pytest.raises(Cancelled):
        find_verdicts(trace, cancelled=lambda: True)
    assert find_verdicts(TraceBuilder().open(tmp_path)) == ()


def test_verdicts_of_two_files_are_about_the_axis(tmp_path):
    """Each file has a circle; the second one begins 1 ms later."""
    traces = []
    for name, pid in (("a", 5), ("b", 6)):
        (tmp_path / name).mkdir()
        traces.append(circle(pid).open(tmp_path / name))
    both = trace_on_axis(tmp_path / "x", [Member("host", traces[0]), Member("guest", traces[1], 1_000_000_000)])
    for found, part, trace in zip(find_verdicts(both), files_of(both).parts, traces, strict=True):
        [own] = find_verdicts(trace)
        later = 1_000_000 if part.name == "guest" else 0
        assert found.kind == own.kind == "deadlock"
        assert (found.start_cycles, found.end_cycles) == (own.start_cycles + later, own.end_cycles + later)
        assert found.threads == tuple(part.threads[row] for row in own.threads)
        assert found.evidence == tuple(part.rows[row] for row in own.evidence)
        assert [(each.start_cycles, each.end_cycles, each.row) for each in found.occurrences] == [
            (found.start_cycles, found.end_cycles, -1)]  # fmt: skip
    part = files_of(both).parts[1]
    [own] = find_verdicts(traces[1])
    [moved] = on_axis(part, _with_rows(own)).occurrences
    assert moved.row == part.rows[0]


def _with_rows(verdict):
    return replace(verdict, occurrences=(Occurrence(START + 1, START + 2, 0),))


@pytest.mark.parametrize(("row", "thread", "says"), [
    (0, 1, ""), (9, 2, ""), (10, 1, "its evidence is not an event of the trace"), (-1, 1, "its evidence is not"),
    (0, 0, "its threads are none of the trace"), (0, 4, "its threads are none"),
])  # fmt: skip
def test_a_plug_in_speaks_of_what_the_trace_has(row, thread, says, tmp_path):
    """The trace has 10 events; threads 1 to 3."""
    trace = circle(5).open(tmp_path)
    assert (len(trace.events), len(trace.threads)) == (10, 4)
    made = Verdict("", Severity.INFO, START + 3, START + 4, (thread,), (), (row,), "a", "b")
    plugged = partial(_verdicts_of_plugin, Evidence(trace), "mine", lambda _trace: [made])
    if says:
        with pytest.raises(ValueError, match=says):
            plugged()
    else:
        [found] = plugged()
        assert (found.kind, found.occurrences) == ("mine", (Occurrence(START + 3, START + 4, row),))
    with pytest.raises(TypeError, match="it returned int, no Verdict"):
        _verdicts_of_plugin(Evidence(trace), "mine", lambda _trace: [7])


@pytest.mark.parametrize(("rows", "threads", "says"), [
    ((7, 10), (1,), "evidence"), ((7, -1), (1,), "evidence"), ((7,), (1, 4), "threads"), ((7,), (3, 0), "threads"),
])  # fmt: skip
def test_all_that_a_plug_in_speaks_of_must_be_there(rows, threads, says, tmp_path):
    def plugged(rows, threads):
        made = Verdict("", Severity.INFO, START + 3, START + 4, threads, (), rows, "a", "b")
        return _verdicts_of_plugin(Evidence(trace), "mine", lambda _trace: [made])

    trace = circle(5).open(tmp_path)
    with pytest.raises(ValueError, match=f"its {says} "):
        plugged(rows, threads)
    [found] = plugged((7, 3), (1, 3))
    assert found.occurrences == (Occurrence(START + 3, START + 4, 7),)
    [found] = plugged((), ())
    assert found.occurrences == (Occurrence(START + 3, START + 4, -1),)


class Plugged:
    """A plug-in that finds one thing; the finder asks it for a function of the trace."""

    name = "mine"

    def run(self, function, _instead):
        return function(lambda _trace: [Verdict("", Severity.WARNING, START + 3, START + 4, (1,), (), (2,), "a", "b")])


def test_plug_ins_come_behind_the_rules(tmp_path, monkeypatch):
    monkeypatch.setattr("satview.analysis.verdicts.find.plugins", lambda _kind: (Plugged(),))
    trace, asked = circle(5).open(tmp_path), []
    assert [found.kind for found in find_verdicts(trace)] == ["deadlock", "mine"], "errors before warnings"
    assert [found.kind for found in find_verdicts(trace, kinds=["mine"])] == ["mine"]
    assert [found.kind for found in find_verdicts(trace, kinds=["deadlock"])] == ["deadlock"]
    assert all_kinds() == (*rules(), "mine")
    with pytest.raises(Cancelled):
        find_verdicts(trace, kinds=["mine"], cancelled=lambda: len(asked) == 1 or bool(asked.append(1)))


def test_which_interrupts_are_handled_in_spans(tmp_path):
    """Each CPU: 0x21 from 10 to 50, in which 0x22 takes 5, and from 60 to 62; CPU 1 has 0x23 from 70 to 80 as well."""
    builder = TraceBuilder(cpus=2).time_event(0).time_event(1, 1).state("RUNNING", 2, 5, 1).state("RUNNING", 3, 6, 1, 1)
    for time, is_exit, number in ((10, 0, 0x21), (20, 0, 0x22), (25, 1, 0x22), (50, 1, 0x21), (60, 0, 0x21),
                                  (62, 1, 0x21)):  # fmt: skip
        for cpu in (0, 1):
            builder.event(wire.code(3, 1 + is_exit), time + cpu, (number, 0), cpu)
    builder.event(wire.code(3, 1), 70, (0x23, 0), 1).event(wire.code(3, 2), 80, (0x23, 0), 1)
    evidence = Evidence(builder.event(wire.code(6, 1), 99).open(tmp_path))

    def handled(*spans):
        start, end, cpu = np.array(spans).T
        found = evidence.interrupts_in(start + START, end + START, cpu)
        return sorted(zip(*(column.tolist() for column in found), strict=True))

    assert handled((0, 99, 0)) == [(0, 0x21, 2), (0, 0x21, 40)]
    assert handled((0, 99, 1)) == [(0, 0x21, 2), (0, 0x21, 40), (0, 0x23, 10)]
    assert handled((20, 61, 0), (26, 55, 1)) == [(0, 0x21, 1), (0, 0x21, 30), (1, 0x21, 25)]
    assert handled((52, 58, 0)) == []
    assert evidence.interrupts_of_all((START, START + 99), least=94) == "interrupt 0x21 84 ns, interrupt 0x23 10 ns"
    assert evidence.interrupts_of_all((START, START + 99), least=95) == ""
    assert evidence.interrupts_of_all((START + 52, START + 58), least=0) == ""


def test_who_is_worth_a_name(tmp_path):
    """Three at most, and nobody with less than a hundredth of all; the rest is one sum."""
    builder = TraceBuilder().time_event(0).state("RUNNING", 1, 1, 1)
    for tid in range(1, 6):
        builder.state("RUNNING", 1 + tid, 5, tid)
    trace = builder.open(tmp_path)
    evidence, rows = Evidence(trace), [trace.threads.row(5, tid) for tid in range(1, 6)]
    for cycles, who, says in (
        ((10, 40, 30, 0, 20), [2, 3, 5], "pid 5 2 40 ns, pid 5 3 30 ns, pid 5 5 20 ns, and 1 more 10 ns"),
        ((990, 10, 0, 0, 0), [1, 2], "pid 5 1 990 ns, pid 5 2 10 ns"),
        ((991, 9, 0, 0, 0), [1], "pid 5 1 991 ns, and 1 more 9 ns"),
        ((991, 4, 5, 0, 0), [1], "pid 5 1 991 ns, and 2 more 9 ns"),
        ((0, 1, 0, 0, 0), [2], "pid 5 2 1 ns"),
        ((0, 0, 0, 0, 0), [], ""),
    ):  # fmt: skip
        lengths = [*cycles, 700, 900]  # the idle thread, and who is not known
        found = evidence.most_of(np.array([*rows, trace.threads.row(1, 1), 0]), np.array(lengths))
        assert [int(trace.threads.tid[row]) for row in named(found)] == who
        assert evidence.shares(found) == says
    assert evidence.most_of(np.array([rows[0], rows[1], rows[0]]), np.array([5, 8, 4])) == [(rows[0], 9), (rows[1], 8)]
    assert (evidence.process_of(5), evidence.process_of(77)) == ("pid 5", "pid 77")


def test_what_would_help_against_a_circle():
    """By the states of its waits; objects that have an address are named once."""
    objects = ["mutex 0x1000 (process a)", "the reply", "mutex 0x1000 (process a)", "semaphore 0x2000 (process a)"]
    named = "mutex 0x1000 (process a) and semaphore 0x2000 (process a)"
    for states, what, says in (
        ({SEND_STATE}, objects, "Break the circle: "),
        ({SEND_STATE, REPLY_STATE}, objects, "Break the circle: "),
        ({REPLY_STATE, MUTEX}, objects, f"Give up {named} before a message is sent"),
        ({MUTEX}, objects, f"Let all threads take {named} in the same order."),
        ({MUTEX}, ["a mutex"], "Let all threads take these objects in the same order."),
    ):  # fmt: skip
        assert _way_out(states, what).startswith(says)


HELPS = (
    ("MUTEX", "Look where mutex 0x1000 (process app) is made without priority inheritance (PTHREAD_PRIO_NONE), and "
     "give it the protocol PTHREAD_PRIO_INHERIT: app 2 then runs at priority 30 while it holds it. Or give it a "
     "ceiling not below the priority of any thread that locks it."),
    ("RWLOCK_READ", "A read/write lock passes no priority on: use a mutex with PTHREAD_PRIO_INHERIT in place of "
     "read/write lock 0x1000 (process app)."),
    ("RWLOCK_WRITE", "A read/write lock passes no priority on: use a mutex with PTHREAD_PRIO_INHERIT in place of "
     "read/write lock 0x1000 (process app)."),
    *((state, "Create the channels of app 2 without _NTO_CHF_FIXED_PRIORITY, so that each server runs at the priority "
       "of its client (30) while it serves; a thread that it hands a message to needs that priority too.")
      for state in ("SEND", "REPLY")),
    ("JOIN", "Let app 2 run at priority 30 while others wait for it."),
)  # fmt: skip


def test_what_would_help_against_an_inversion(tmp_path):
    """By what the last wait of the chain is for, and whom."""
    trace = waiting("MUTEX", "SYNC_MUTEX_LOCK", (0x1000, 2 << 16 | 5)).open(tmp_path)
    evidence, found = Evidence(trace), blockers(trace)
    [wait] = np.flatnonzero(found.thread > 0).tolist()
    for name, says in HELPS:
        value = found.waits.value.copy()
        value[wait] = STATE_BY_NAME[name].value
        of_state = replace(found, waits=replace(found.waits, value=value))
        assert _remedy(evidence, of_state, wait, wait, 30) == says


def test_the_last_event_of_a_state_up_to_an_event(tmp_path):
    trace = waiting("INTR").open(tmp_path)
    row = trace.threads.row(5, 1)
    mine = trace.states.of(row).tolist()  # RUNNING and INTR
    assert len(mine) == 2
    evidence = Evidence(trace)
    assert [_row_before(evidence, row, at) for at in (mine[0] - 1, mine[0], mine[1] - 1, mine[1], 99)] == [
        -1, mine[0], mine[0], mine[1], mine[1]
    ]  # fmt: skip
    assert _priority(evidence, -1) == -1
    wide = Evidence(TraceBuilder().state("READY", 1, 5, 1, extra=(10, 2)).open(tmp_path))
    assert (len(wide.trace.events), _priority(wide, 0)) == (1, 10)


@pytest.mark.parametrize(("lengths", "says"), [
    ((400, 300, 150, 100, 45, 5), "RUNNING 40 %, NANOSLEEP 30 %, MUTEX 15 %, SEM 10 %"),
    ((991, 9), "RUNNING 99 %"), ((99_005, 995), "RUNNING 99 %"), ((990, 10), "RUNNING 99 %, NANOSLEEP 1 %"), ((0,), ""),
])  # fmt: skip
def test_what_a_server_does_meanwhile(lengths, says, tmp_path):
    """The four states with the largest shares, none below a hundredth."""
    builder, now = TraceBuilder().time_event(0).state("RUNNING", 1, 6, 1), 10
    for name, length in zip(("RUNNING", "NANOSLEEP", "MUTEX", "SEM", "RECEIVE", "READY"), lengths, strict=False):
        builder.state(name, now, 5, 1)
        now += length
    builder.state("DEAD", now, 5, 1).event(wire.code(6, 1), now + 50)
    trace = builder.open(tmp_path)
    evidence = Evidence(trace)
    evidence.__dict__["has_states"] = True  # 5.1 and 6.1 run on one CPU at a time, which does not matter here
    assert _does(evidence, np.array([trace.threads.row(5, 1)]), (START + 10, START + now)) == says


def test_thresholds_of_a_rule_are_in_cycles_of_the_trace(tmp_path):
    trace = TraceBuilder(rate=2_000_000_000).time_event(0).open(tmp_path)
    limits = Limits(default_thresholds(), "deadlock", trace.clock)
    assert limits.cycles("least_ms") == 40_000_000
    assert Thresholds({"leak": {"spread_ms": 1.000001}}).ns("leak", "spread_ms") == 1_000_001
    assert limits.of("ping-pong").number("least_count") == 100
    assert limits.of("ping-pong").cycles("slice_us") == 60_000
    nothing = Limits(Thresholds({"leak": {"spread_ms": 0, "least_count": 0.5, "part_percent": 0}}), "leak", trace.clock)
    assert (nothing.cycles("spread_ms"), nothing.number("least_count"), nothing.number("part_percent")) == (1, 1, 0)
    assert rules()["waits-for-ever"].title == "Waits for ever"
    assert list(rules()) == sorted(rules())
    assert rules()["leak"].search is leaks
    assert {need.key for need in rules()["ping-pong"].needs} == {"kernel", "states"}
