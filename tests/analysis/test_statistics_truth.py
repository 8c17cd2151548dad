"""Statistics against what really happened, to the cycle: every workload, release and form of events."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from satview.analysis.statistics import Statistics
from satview.base.time import TimeWindow
from satview.capture.kernel import Kernel
from satview.capture.workloads import registry
from satview.events.spec import Release
from satview.events.states import READY, RUNNING
from satview.store.trace import Trace
from tests.capture import mishaps
from tests.capture.made import FAST, WIDE, Traced, traced
from tests.capture.truth_sums import Lengths, TruthSums
from tests.helpers.extent import fixture_params

RELEASES = (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8)
NAMES = [*(name for name, _ in registry.names()), "mishaps"]
CASES = fixture_params(name=NAMES, release=RELEASES, modes={"fast": FAST, "wide": WIDE})


def workload(name: str) -> tuple[Callable[[Kernel], None], float, int]:
    """Return the set-up of a workload, for how many milliseconds it is traced, and on how many CPUs."""
    if name == "mishaps":
        return mishaps.setup, mishaps.DURATION_MS, 1
    found = registry.find(name)
    return found.setup, 40 if name == "automotive" else min(found.duration_ns / 1e6, 80), found.cpus


@dataclass
class Case:
    """Statistics of a range of a capture, and the truth about it."""

    made: Traced
    found: Statistics
    truth: TruthSums
    is_wide: bool


@pytest.fixture(scope="module", params=CASES)
def capture(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Traced, bool]:
    name, release, modes = request.param
    setup, ms, cpus = workload(name)
    made = traced(setup, ms, tmp_path_factory.mktemp("truth"), release, cpus, 5, modes, skew_ns=0)
    return made, modes is WIDE


@pytest.fixture(scope="module", params=["all", "part"])
def case(request: pytest.FixtureRequest, capture: tuple[Traced, bool]) -> Case:
    made, is_wide = capture
    window = since_dump(made.trace) if request.param == "all" else within_interrupts(made)
    assert made.since < window.start
    return Case(made, Statistics(made.trace, window), TruthSums(made, window), is_wide)


def since_dump(trace: Trace) -> TimeWindow:
    """Return the range behind the opening dump; threads started straight after it look like a part of it."""
    window = TimeWindow(trace.dump_end_cycles + 1, trace.window.end)
    assert window.length > 0.99 * trace.window.length
    return window


def within_interrupts(made: Traced) -> TimeWindow:
    """Return the middle of a capture, cut within calls or interrupts, just behind their entries."""
    moments = sorted({*(span.enter for span in made.truth.interrupts), *(call.enter for call in made.truth.calls)})
    return TimeWindow(moments[len(moments) // 3] + 1, moments[len(moments) * 2 // 3] + 1)


def test_time_on_cpus(case: Case) -> None:
    truth, threads = case.truth, case.found.threads
    ran, interrupted = Counter(), Counter()
    longest = defaultdict(int)
    for run in truth.runs:
        ran[run.thread] += truth.cut(run)
        interrupted[run.thread] += truth.interrupted(run.cpu, run.start, run.end)
        longest[run.thread] = max(longest[run.thread], truth.cut(run))
    for thread, row in truth.row.items():
        assert threads.interrupted_cycles[row] == interrupted[thread], thread
        assert threads.cpu_cycles[row] == ran[thread] - interrupted[thread], thread
        assert threads.longest_run_cycles[row] == longest[thread], thread


def test_runs_switches_and_migrations(case: Case) -> None:
    truth, threads = case.truth, case.found.threads
    runs, switches, migrations, last = Counter(), Counter(), Counter(), {}
    for run in truth.runs:
        runs[run.thread] += truth.cut(run) > 0
        switches[run.thread] += truth.begins(run.start)
        moved = last.get(run.thread, run.cpu) != run.cpu
        migrations[run.thread] += truth.begins(run.start) and moved and not truth.is_idle(run.thread)
        last[run.thread] = run.cpu
    for thread, row in truth.row.items():
        assert threads.runs[row] == runs[thread], thread
        assert threads.switches[row] == switches[thread], thread
        assert threads.migrations[row] == migrations[thread], thread


def test_cpus(case: Case) -> None:
    truth, cpus, window = case.truth, case.found.cpus, case.truth.window
    for cpu in range(truth.cpus):
        runs = [run for run in truth.runs if run.cpu == cpu]
        net = Counter()
        for run in runs:
            net[run.thread] += truth.cut(run) - truth.interrupted(cpu, run.start, run.end)
        busy = {thread: cycles for thread, cycles in net.items() if not truth.is_idle(thread)}
        handled = truth.interrupted(cpu, window.start, window.end)
        assert cpus.busy_cycles[cpu] == sum(busy.values())
        assert cpus.idle_cycles[cpu] == sum(net.values()) - sum(busy.values())
        assert cpus.interrupt_cycles[cpu] == handled
        assert cpus.unknown_cycles[cpu] == window.length - sum(net.values()) - handled
        assert cpus.runs[cpu] == sum(truth.begins(run.start) for run in runs)
        assert cpus.switches[cpu] == sum(truth.begins(b.start) and a.thread != b.thread for a, b in pairwise(runs))
        assert cpus.busiest_cycles[cpu] == max(busy.values(), default=0)
        longest = max((truth.cut(run) for run in runs if not truth.is_idle(run.thread)), default=0)
        assert cpus.longest_run_cycles[cpu] == longest


def test_times_in_states(case: Case) -> None:
    truth, states = case.truth, case.found.states
    expected = defaultdict(list)
    for span in truth.states:
        if truth.cut(span):
            expected[truth.row[span.thread], span.value].append(truth.cut(span))
    columns = states.thread, states.value, states.count, states.total_cycles, states.longest_cycles
    reported = {
        (thread, value): figures for thread, value, *figures in zip(*(c.tolist() for c in columns), strict=True)
    }
    assert reported == {key: [len(cut), sum(cut), max(cut)] for key, cut in expected.items()}


def test_preemptions(case: Case) -> None:
    truth = case.truth
    expected = Counter(
        b.thread
        for a, b in pairwise(truth.states)
        if a.thread == b.thread and (a.value, b.value) == (RUNNING, READY) and truth.begins(b.start)
    )
    for thread, row in truth.row.items():
        assert case.found.threads.preemptions[row] == expected[thread], thread


def test_kernel_calls(case: Case) -> None:
    calls, catalogue = case.found.calls, case.made.trace.catalogue
    names = [catalogue.name(code) for code in calls.code.tolist()]
    assert sorted(names) == sorted(case.truth.calls)
    for i, name in enumerate(names):
        expected = case.truth.calls[name]
        done = [call for call in expected if call.exit >= 0]
        errors = Counter(call.error for call in done if call.error and not call.is_interrupted)
        assert calls.count[i] == len(expected), name
        assert Lengths.reported(calls.times, i) == Lengths.of(call.exit - call.enter for call in done), name
        assert calls.failed[i] == errors.total(), name
        assert dict(calls.errors[i]) == errors, name
        assert calls.interrupted[i] == sum(call.is_interrupted for call in done), name


def test_what_each_thread_called_and_sent(case: Case) -> None:
    truth, threads = case.truth, case.found.threads
    called = Counter(call.thread for calls in truth.calls.values() for call in calls)
    sent = Counter(message.client for message in truth.messages)
    received = Counter(message.server for message in truth.truth.messages if truth.begins(message.received))
    for thread, row in truth.row.items():
        assert threads.calls[row] == called[thread], thread
        assert threads.sent[row] == sent[thread], thread
        assert threads.received[row] == received[thread], thread
    assert sum(threads.calls) == called.total()


def test_messages(case: Case) -> None:
    truth, table = case.truth, case.found.messages
    expected = defaultdict(list)
    for message in truth.messages:
        expected[truth.row[message.client], message.server_pid].append(message)
    pairs = list(zip(table.client.tolist(), table.server_pid.tolist(), strict=True))
    assert sorted(pairs) == sorted(expected)
    for i, pair in enumerate(pairs):
        messages = expected[pair]
        blocked = [truth.blocked(message) for message in messages]
        assert table.count[i] == len(messages)
        for state, times in (("SEND", table.send_blocked), ("REPLY", table.reply_blocked)):
            assert Lengths.reported(times, i) == Lengths.of(times[state] for times in blocked if state in times), state
        sizes = [message.size for message in messages if case.is_wide and truth.has_logged_size(message)]
        assert (table.sized[i], table.bytes[i]) == (len(sizes), sum(sizes))


def test_interrupts(case: Case) -> None:
    """Up to 7.x from entry to exit; 8.0 logs only that an interrupt was delivered, under the attachment's number."""
    table = case.found.interrupts
    if case.made.trace.release == Release.QNX_8:
        cpus = {(int(vector), cpu) for vector, cpus in zip(table.vector, table.cpus, strict=True) for cpu in cpus}
        deliveries = case.truth.deliveries
        assert cpus == set(deliveries)
        for i, vector in enumerate(table.vector.tolist()):
            assert table.count[i] == sum(n for (ident, _), n in deliveries.items() if ident == vector)
            assert Lengths.reported(table.times, i) == Lengths.reported(table.latency, i) == Lengths()
        return
    assert table.vector.tolist() == sorted(case.truth.interrupts)
    for i, vector in enumerate(table.vector.tolist()):
        spans = case.truth.interrupts[vector]
        assert table.count[i] == len(spans)
        assert Lengths.reported(table.times, i) == Lengths.of(span.exit - span.enter for span in spans)
        late = Lengths.of(span.handlers[0] - span.enter for span in spans if span.handlers)
        assert Lengths.reported(table.latency, i) == late
        assert set(table.cpus[i]) == {span.cpu for span in spans}


def test_the_events_named_longest_are_the_longest(case: Case) -> None:
    times, clock = case.found.calls.times, case.made.trace.events.time_cycles
    exits = {call.enter: call.exit for calls in case.truth.calls.values() for call in calls}
    for row, most in zip(times.longest.tolist(), times.most_cycles.tolist(), strict=True):
        assert row < 0 or exits[int(clock[row])] - int(clock[row]) == most
    assert np.all((times.longest >= 0) == (times.count > 0))


@pytest.fixture(scope="module", params=RELEASES, ids=str)
def unlucky(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Statistics:
    folder = tmp_path_factory.mktemp("mishaps")
    return Statistics(traced(mishaps.setup, mishaps.DURATION_MS, folder, request.param, modes=WIDE).trace)


def by_name(found: Statistics, column: Iterable[Any]) -> dict[str, Any]:
    names = map(found.trace.catalogue.name, found.calls.code.tolist())
    return {name: value for name, value in zip(names, column, strict=True) if value}


def test_failed_calls_of_one_program_by_name(unlucky: Statistics) -> None:
    """What a reader of the program expects, whatever the simulation says that it did."""
    name = unlucky.trace.catalogue.errno_name
    errors = by_name(unlucky, ({name(number): n for number, n in reported} for reported in unlucky.calls.errors))
    # The last thread of a process cannot destroy itself up to 7.x, but has to destroy the process.
    assert errors.pop("THREAD_DESTROY", {}) == ({} if unlucky.trace.release == Release.QNX_8 else {"ENOTSUP": 2})
    assert errors == {
        "MSG_SENDV": {"EBADF": 1, "EINVAL": 1, "ETIMEDOUT": 1, "ESRCH": 2},
        "MSG_ERROR": {"ESRCH": 1},
        "SYNC_MUTEX_LOCK": {"EDEADLK": 1},
        "SYNC_MUTEX_UNLOCK": {"EPERM": 1},
        "SYNC_CONDVAR_WAIT": {"ETIMEDOUT": 1},
        "SYNC_SEM_WAIT": {"EINTR": 1},
        "THREAD_JOIN": {"ESRCH": 1},
    }
    assert by_name(unlucky, unlucky.calls.interrupted.tolist()) == {"TIMER_TIMEOUT": 1}, "Sleep(), ended by SIGUSR1"


def test_calls_that_a_release_lacks_are_logged_as_what_its_library_calls(unlucky: Statistics) -> None:
    """One of two threads at a barrier waits, the other wakes it; one waits for a lock, the other gives it up."""
    counts, release = Counter(by_name(unlucky, unlucky.calls.count.tolist())), unlucky.trace.release
    native = release == Release.QNX_8
    assert (counts["SYNC_BARRIER_WAIT"], counts["SYNC_RWLOCK"]) == ((2, 2) if native else (0, 0))
    assert (counts["SYNC_CONDVAR_WAIT"], counts["SYNC_CONDVAR_SIGNAL"]) == ((1, 0) if native else (3, 2))
    has_both = release in (Release.QNX_7, Release.QNX_8)
    assert counts["MSG_SEND_PULSEPTR" if has_both else "MSG_SEND_PULSE"] == 1
    assert counts["SIGNAL_KILL_SIGVAL" if has_both else "SIGNAL_KILL"] == 1
