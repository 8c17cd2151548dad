"""Statistics against what really happened in the simulated kernel."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest

from satview.analysis.statistics import Statistics
from satview.analysis.statistics_sheets import message_sheet
from satview.base.time import TimeWindow
from satview.capture.workloads import registry
from satview.events.spec import Release
from satview.events.states import STATE_BY_VALUE
from satview.store.idle import idle_threads
from tests.capture.made import traced

WIDE = (("ADDALLCLASSES",), ("SETALLCLASSESWIDE",))


@pytest.fixture(scope="module", params=[("automotive", Release.QNX_7), ("interrupt-flood", Release.QNX_6),
                                        ("inversion", Release.QNX_8)], ids=lambda case: case[0])
def made(request, tmp_path_factory):
    name, release = request.param
    workload = registry.find(name)
    return traced(workload.setup, 60, tmp_path_factory.mktemp("truth"), release, workload.cpus, 3, WIDE)


@pytest.fixture(scope="module")
def found(made):
    """Statistics from the end of the opening dump, where truth and trace begin to agree, to the last event."""
    return Statistics(made.trace, TimeWindow(made.since, made.trace.window.end))


def row_of(trace, thread):
    return trace.threads.row(*thread)


def test_cpu_time_runs_and_migrations(made, found):
    trace, window = made.trace, found.window
    ran, runs, migrations, last = Counter(), Counter(), Counter(), {}
    is_idle = idle_threads(trace)
    for run in sorted(made.truth.runs, key=lambda run: run.start):
        row = row_of(trace, run.thread)
        start, end = max(run.start, window.start), min(run.end, window.end)
        if row is None or run.start >= window.end:
            continue
        if run.start >= window.start:
            runs[row] += 1
            migrations[row] += last.get(row, run.cpu) != run.cpu and not is_idle[row]
        last[row] = run.cpu
        ran[row] += max(0, end - start)
    threads = found.threads
    total = threads.cpu_cycles + threads.interrupted_cycles
    worst = max(abs(int(total[row]) - cycles) for row, cycles in ran.items() if cycles)
    assert worst <= 0.002 * window.length, "the truth ends a run when the thread is off, the trace when it says so"
    for row, count in runs.items():
        assert abs(int(threads.switches[row]) - count) <= 1, trace.thread_name(row)
        assert abs(int(threads.migrations[row]) - migrations[row]) <= 1, trace.thread_name(row)


def test_times_in_states(made, found):
    trace, window = made.trace, found.window
    changes = defaultdict(list)
    for change in made.truth.states:
        changes[change.thread].append((change.time, change.state))
    checked = 0
    for thread, entries in changes.items():
        row = row_of(trace, thread)
        inside = [entry for entry in entries if window.start <= entry[0] < window.end]
        if row is None or not inside:
            continue
        expected = Counter()
        for (time, state), following in zip(inside, [*(t for t, _ in inside[1:]), window.end], strict=True):
            expected[state] += following - time
        found_here = Statistics(trace, TimeWindow(inside[0][0], window.end)).states
        mine = found_here.thread == row
        times = {STATE_BY_VALUE[v].name if v in STATE_BY_VALUE else v: t
                 for v, t in zip(found_here.value[mine].tolist(), found_here.total_cycles[mine].tolist(), strict=True)}
        if not idle_threads(trace)[row] and "DEAD" not in expected:
            assert times == {state: cycles for state, cycles in expected.items() if cycles}, thread
            checked += 1
        if checked == 12:
            break
    assert checked >= 3


def test_kernel_calls(made, found):
    trace, window = made.trace, found.window
    expected = defaultdict(list)
    for call in made.truth.calls:
        if window.start <= call.enter < window.end:
            expected[call.name].append(call)
    calls = found.calls
    names = [trace.catalogue.name(code) for code in calls.code.tolist()]
    assert set(names) <= set(expected)
    checked = 0
    for i, name in enumerate(names):
        done = [call for call in expected[name] if 0 <= call.exit < window.end]
        if calls.count[i] == len(expected[name]) and calls.times.count[i] == len(done) and done:
            lengths = [call.exit - call.enter for call in done]
            assert calls.times.total_cycles[i] == sum(lengths), name
            assert (calls.times.least_cycles[i], calls.times.most_cycles[i]) == (min(lengths), max(lengths))
            assert calls.failed[i] == sum(call.error != 0 for call in done), name
            checked += 1
    assert checked >= len(names) - 2


def test_blocked_clients(made, found):
    trace, window = made.trace, found.window
    messages = found.messages
    sent = Counter((row_of(trace, m.client), m.server_pid) for m in made.truth.messages
                   if window.start <= m.sent < window.end)
    pairs = zip(messages.client.tolist(), messages.server_pid.tolist(), strict=True)
    assert dict(zip(pairs, messages.count.tolist(), strict=True)) == dict(sent)
    for state, times in (("SEND", messages.send_blocked), ("REPLY", messages.reply_blocked)):
        waits = [wait for wait in made.truth.waits if wait.state == state and wait.start >= window.start
                 and 0 <= wait.end < window.end and row_of(trace, wait.thread) is not None]
        assert abs(int(times.count.sum()) - len(waits)) <= 2
        if waits:
            assert times.most_cycles.max() == pytest.approx(max(w.end - w.start for w in waits), rel=0.05, abs=3000)


def test_bytes_are_told_by_wide_events(made, found):
    if found.trace.release is Release.QNX_7:
        assert (found.messages.sized > 0).any()
        assert message_sheet(found).column("bytes").values.max() > 0


def test_interrupts(made, found):
    expected = defaultdict(list)
    for span in made.truth.interrupts:
        if found.window.start <= span.enter < found.window.end:
            expected[span.vector].append(span.exit - span.enter)
    interrupts = found.interrupts
    if made.trace.release is Release.QNX_8 and not len(interrupts):
        pytest.skip("8.0 logs no entries")
    assert set(interrupts.vector.tolist()) == set(expected)
    for i, vector in enumerate(interrupts.vector.tolist()):
        assert interrupts.count[i] == len(expected[vector])
        if interrupts.times.count[i] == len(expected[vector]):
            assert interrupts.times.total_cycles[i] == sum(expected[vector])
            assert interrupts.times.most_cycles[i] == max(expected[vector])
    assert np.all(interrupts.times.count >= interrupts.count - 1)
