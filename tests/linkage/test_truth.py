"""Links against what really happened: every workload, release and form of events, whole and with lost buffers."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest

import satview
from satview.capture.kernel import Kernel, mode
from satview.capture.run import MemorySink
from satview.capture.sim.target import target
from satview.capture.sim.truth import ThreadId
from satview.capture.workloads import registry
from satview.events.spec import Release
from satview.events.wire import THREAD_CREATE
from satview.linkage.blockers import blockers
from satview.linkage.chain import link_table
from satview.linkage.links import Certainty, LinkKind
from tests.capture import mishaps
from tests.capture.made import ALL, FAST, WIDE, Traced, as_trace, damaged, finish, run, traced
from tests.helpers.extent import fixture_params, points, usually

RELEASES = (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8)
NAMES = [*(name for name, _ in registry.names()), "mishaps"]
LONGEST_MS = usually(35, complete=50, thorough=50)
CASES = fixture_params(name=NAMES, release=RELEASES, form=["fast", "wide"], loss=["whole", "loss"])


def workload(name: str, longest_ms: float = LONGEST_MS) -> tuple[Callable[[Kernel], None], float, int]:
    """Return the set-up of a workload, for how many milliseconds it is traced, and on how many CPUs."""
    if name == "mishaps":
        return mishaps.setup, mishaps.DURATION_MS, 1
    found = registry.find(name)
    ms = 0.4 * longest_ms if name == "automotive" else min(found.duration_ns / 1e6, longest_ms)
    return found.setup, ms, found.cpus


@dataclass
class Case:
    """A capture, and the truth about it by the rows of its events."""

    made: Traced
    is_whole: bool
    names_owners: bool  # events of mutexes name owners, those of condition variables mutexes

    @cached_property
    def row_at(self) -> dict[int, int]:
        """Time of an event behind the opening dump to its row; no two have one time, those of class CONTROL apart."""
        events = self.made.trace.events
        rows = np.flatnonzero((events.code >> 10 != 1) & (events.time_cycles > self.made.since)).tolist()
        return dict(zip(events.time_cycles[rows].tolist(), rows, strict=True))

    @cached_property
    def rows(self) -> set[int]:
        """Rows of the events behind the opening dump."""
        return set(self.row_at.values())

    def pairs(self, times: list[tuple[int, int]]) -> dict[int, int]:
        """Return {later row: earlier row} of pairs of moments of which the trace has both."""
        return {
            self.row_at[last]: self.row_at[first]
            for first, last in times
            if first in self.row_at and last in self.row_at
        }

    @cached_property
    def changes(self) -> dict[ThreadId, list[int]]:
        """When each thread changed its state."""
        found = defaultdict(list)
        for change in self.made.truth.states:
            found[change.thread].append(change.time)
        return found

    @cached_property
    def wakes(self) -> dict[int, tuple[int, str]]:
        """Return {row of the event that ends a wait: (row of its cause or -1, state)}."""
        found = {}
        states = {(change.thread, change.time): change.state for change in self.made.truth.states}
        for wait in self.made.truth.waits:
            changes = self.changes[wait.thread]
            position = bisect_left(changes, wait.end)
            if wait.end < 0 or position == len(changes) or changes[position] not in self.row_at:
                continue
            # No event shows that a new thread has set itself up.
            if states[wait.thread, changes[position]] in ("READY", "RUNNING") and wait.state != "WAITTHREAD":
                found[self.row_at[changes[position]]] = self.row_at.get(wait.cause, -1), wait.state
        return found


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    return capture(tmp_path_factory.mktemp("links"), *request.param)


def capture(folder: Path, name: str, release: Release, form: str, loss: str, longest_ms: float = LONGEST_MS) -> Case:
    """Return a capture of a workload with all classes, whole or through a logger that loses buffers."""
    setup, ms, cpus = workload(name, longest_ms)
    if loss == "loss":
        made = damaged(
            setup, ms, folder, release, cpus, ring=False, wide=form == "wide", slots=60, skew_ns=0, classes=ALL
        )
    else:
        made = traced(setup, ms, folder, release, cpus, 5, WIDE if form == "wide" else FAST, skew_ns=0)
    return Case(made, loss == "whole", form == "wide" or not made.kernel.target.is_64bit)


def check(case: Case, kind: LinkKind, true: dict[int, int], least: float) -> None:
    """Check that no link is wrong, guesses apart, and that so many of those that are true are found."""
    table = link_table(case.made.trace, kind)
    assert np.all(table.from_row < table.to_row)
    found = {
        link.to_row: link.from_row
        for link in table
        if link.certainty is not Certainty.GUESS and link.from_row in case.rows
    }
    wrong = {last: first for last, first in found.items() if true.get(last) != first}
    assert not wrong, f"{len(wrong)} of {len(found)} are wrong"
    if case.is_whole:
        assert len(found) >= least * len(true)


def test_messages(case: Case) -> None:
    messages = case.made.truth.messages
    check(case, LinkKind.MESSAGE, case.pairs([(m.sent, m.received) for m in messages]), 1)


def test_replies(case: Case) -> None:
    messages = case.made.truth.messages
    check(case, LinkKind.REPLY, case.pairs([(m.received, m.replied) for m in messages if m.received >= 0]), 1)


def test_round_trips(case: Case) -> None:
    calls = defaultdict(list)
    for call in case.made.truth.calls:
        calls[call.thread].append((call.enter, call.exit))
    ends = []
    for message in case.made.truth.messages:
        mine = calls[message.client]
        ends.append((message.sent, mine[bisect_left(mine, (message.sent, 0)) - 1][1]))
    check(case, LinkKind.ROUND_TRIP, case.pairs(ends), 1)


def test_pulses(case: Case) -> None:
    pulses = case.made.truth.pulses
    check(case, LinkKind.PULSE, case.pairs([(p.sent, p.received) for p in pulses]), 0.8)


def test_wake_ups(case: Case) -> None:
    true = {row: cause for row, (cause, state) in case.wakes.items()}
    check(case, LinkKind.WAKE_UP, true, 0.9)


def test_deliveries(case: Case) -> None:
    """Of pulses; the truth does not show who had a signal sent."""
    is_pulse = [row for row in case.rows if case.made.trace.catalogue.name(int(case.made.trace.events.code[row])) in (
        "SND_PULSE", "SND_PULSE_EXE", "SND_PULSE_DIS", "SND_PULSE_UN")]  # fmt: skip
    true = case.pairs([(pulse.origin, pulse.sent) for pulse in case.made.truth.pulses])
    true = {row: true[row] for row in is_pulse if row in true}
    table = link_table(case.made.trace, LinkKind.DELIVERY)
    found = {link.to_row: link.from_row for link in table if link.to_row in is_pulse and link.from_row in case.rows}
    wrong = {last: first for last, first in found.items() if true.get(last) != first}
    assert not wrong, f"{len(wrong)} of {len(found)} are wrong"
    if case.is_whole:
        assert len(found) == len(true)


def test_creations(case: Case) -> None:
    lives = [life for life in case.made.truth.lives if life.state == "CREATE" and life.time in case.row_at]
    calls = sorted((call.enter, call.exit, call.name) for call in case.made.truth.calls)
    expected = {}
    for life in lives:
        within = [call for call in calls if call[0] < life.time < call[1] and call[2] in ("THREAD_CREATE", "RING0")]
        if within and within[-1][0] in case.row_at:
            expected[case.row_at[life.time]] = case.row_at[within[-1][0]]
    table = link_table(case.made.trace, LinkKind.CREATION)
    codes = case.made.trace.events.code
    found = {link.to_row: link.from_row for link in table if int(codes[link.to_row]) == THREAD_CREATE}
    assert found.items() <= expected.items()
    if case.is_whole:
        assert len(found) >= 0.9 * len(expected)


def test_holds(case: Case) -> None:
    trace, holds = case.made.trace, defaultdict(list)
    for hold in case.made.truth.holds:
        holds[hold.thread].append((hold.start, hold.end))
    ends = {call.enter: call.exit for call in case.made.truth.calls}
    times, threads = trace.events.time_cycles, trace.threads
    found = 0
    for link in link_table(trace, LinkKind.HOLD):
        row = trace.events.thread[link.from_row]
        mine = holds[int(threads.pid[row]), int(threads.tid[row])]
        begin, end = int(times[link.from_row]), int(times[link.to_row])
        if begin <= case.made.since:
            continue
        found += 1
        # It got the mutex within the first call and gave it up within the second.
        got = [span for span in mine if begin <= span[0] <= ends[begin]]
        gave = [span for span in mine if span[0] < end <= span[1]]
        assert got, link
        assert gave, link
        assert link.certainty is not Certainty.EXACT or set(got) & set(gave), "held all the time"
    if case.is_whole and case.names_owners:
        assert found >= 0.9 * contended(case)


def contended(case: Case) -> int:
    """Return how many mutexes threads got by waiting in MUTEX and gave up by a call that the trace has."""
    got = {
        (wait.thread, wait.address, wait.end)
        for wait in case.made.truth.waits
        if wait.state == "MUTEX" and wait.outcome == "ok" and wait.start in case.row_at
    }
    gives = defaultdict(list)
    for call in case.made.truth.calls:
        if call.name in ("SYNC_MUTEX_UNLOCK", "SYNC_CONDVAR_WAIT") and call.enter in case.row_at:
            gives[call.thread].append((call.enter, call.exit))
    return sum(any(first - wait[2] >= 0 and first <= hold.end <= max(last, first) for first, last in gives[hold.thread])
               for hold in case.made.truth.holds for wait in got
               if hold.thread == wait[0] and hold.address == wait[1] and 0 <= wait[2] - hold.start <= 2000)  # fmt: skip


def test_whom_threads_wait_for(case: Case) -> None:
    trace = case.made.trace
    truth = {(wait.thread, wait.start): wait for wait in case.made.truth.waits}
    found, threads, events = blockers(trace), trace.threads, trace.events
    named = requested = 0
    for i in range(len(found)):
        row = int(found.waits.thread[i])
        wait = truth.get(((int(threads.pid[row]), int(threads.tid[row])), int(events.time_cycles[found.waits.row[i]])))
        if wait is None or wait.start <= case.made.since:
            continue
        # Fast events with 64-bit values have no room for the owner: it is known once it gives the mutex up.
        requested += wait.state in ("REPLY", "JOIN") or (wait.state == "MUTEX" and case.names_owners)
        requested += wait.state.startswith("RWLOCK") and wait.end >= 0  # reported by who ends it
        if wait.address and found.waits.has_object[i]:
            assert found.waits.object[i] == wait.address
        if found.thread[i] >= 0:
            holder = int(threads.pid[found.thread[i]]), int(threads.tid[found.thread[i]])
            assert holder in wait.owners, (wait, found.certainty[i])
            named += 1
        elif found.pid[i] >= 0 and wait.owners:
            assert int(found.pid[i]) in {pid for pid, _ in wait.owners}
    if case.is_whole:
        assert named >= 0.8 * requested


def test_transactions(case: Case) -> None:
    trace, made = case.made.trace, satview.transactions(case.made.trace)
    threads, times = trace.threads, trace.events.time_cycles
    truth = {message.sent: message for message in case.made.truth.messages}
    runs = defaultdict(list)
    for change in case.made.truth.states:
        if change.state == "RUNNING":
            runs[change.thread].append(change.time)

    def time_of(row: int) -> int:
        return int(times[row]) if row >= 0 else -1

    sent = [time_of(row) for row in made.send_row.tolist()]
    complete = 0
    for i, start in enumerate(sent):
        if start <= case.made.since:
            continue
        message = truth[start]
        reported = time_of(made.receive_row[i]), time_of(made.reply_row[i]), time_of(made.done_row[i])
        mine = runs[message.client]
        position = bisect_left(mine, max(message.replied, message.sent))
        real = message.received, message.replied, mine[position] if position < len(mine) else -1
        for one, other in zip(reported, real, strict=True):
            assert one in (-1, other)
            assert one == other or not case.is_whole or other > times[-1] or other < 0
        if made.client[i] >= 0 or case.is_whole:
            client = made.client[i]
            assert (int(threads.pid[client]), int(threads.tid[client])) == message.client
        if made.server[i] >= 0:
            server = made.server[i]
            assert (int(threads.pid[server]), int(threads.tid[server])) == message.server
        if min(reported) >= 0:
            complete += 1
            parts = made.queued_cycles[i], made.service_cycles[i], made.reply_cycles[i]
            assert parts == (reported[0] - start, reported[1] - reported[0], reported[2] - reported[1])
            assert sum(parts) == made.round_trip_cycles[i] == reported[2] - start
        parent = sent[made.parent[i]] if made.parent[i] >= 0 else -1
        if message.parent > case.made.since or parent > case.made.since:
            assert parent == message.parent or (parent == -1 and not case.is_whole), (message, parent)
    if case.is_whole:
        answered = [message for message in truth.values() if message.replied >= 0]
        assert complete >= 0.9 * len(answered) - 2


@pytest.mark.thorough
@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_how_much_is_found_between_losses(release: Release, tmp_path: Path) -> None:
    """Of all workloads together, of what the trace has both ends of: a wait that a loss interrupts ends unknown."""
    kinds = LinkKind.MESSAGE, LinkKind.REPLY, LinkKind.PULSE, LinkKind.WAKE_UP
    true, found = dict.fromkeys(kinds, 0), dict.fromkeys(kinds, 0)
    for name in NAMES:
        case = capture(tmp_path, name, release, "fast", "loss")
        truth = case.made.truth
        expected = {
            LinkKind.MESSAGE: case.pairs([(m.sent, m.received) for m in truth.messages]),
            LinkKind.REPLY: case.pairs([(m.received, m.replied) for m in truth.messages if m.received >= 0]),
            LinkKind.PULSE: case.pairs([(p.sent, p.received) for p in truth.pulses]),
            LinkKind.WAKE_UP: {row: cause for row, (cause, _) in case.wakes.items() if cause >= 0},
        }
        for kind, pairs in expected.items():
            true[kind] += len(pairs)
            found[kind] += sum(link.to_row in pairs for link in link_table(case.made.trace, kind))
    for kind, least in zip(kinds, (0.9, 0.85, 0.9, 0.7), strict=True):
        assert found[kind] >= least * true[kind], kind


@points(name=["small-system", "producer-consumer", "mishaps"], release=RELEASES)
def test_the_byte_order_does_not_matter(name: str, release: Release, tmp_path: Path) -> None:
    setup, ms, cpus = workload(name)
    found = []
    for big_endian in (False, True):
        made = Kernel(replace(target(release, cpus, skew_ns=0), big_endian=big_endian), seed=5)
        sink = MemorySink()
        made.trace_event(mode("ALLOCBUFFER"), 8, [])
        made.control.hook = sink
        for step, *args in (*WIDE, ("START",)):
            made.trace_event(mode(step), *args)
        setup(made)
        run(made, ms)
        trace = as_trace(made, finish(made, sink), tmp_path)
        assert trace.byte_order == ("big" if big_endian else "little")
        holders, sent = satview.links(trace).blockers, satview.transactions(trace)
        found.append(
            (
                [list(link_table(trace, kind)) for kind in LinkKind],
                holders.thread.tolist(),
                holders.waits.object.tolist(),
                sent.parent.tolist(),
                sent.done_row.tolist(),
            )
        )
    assert found[0] == found[1]
    assert any(found[0][0])
