"""Blame against what really happened, to the cycle: every instance of every activity of captures."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from satview.analysis.activities import Instances, activities
from satview.analysis.blame import Blame, blame, cpu_timeline, object_words
from satview.capture import run as capture
from satview.capture.buffers import LoggerOptions
from satview.capture.sim.truth import ThreadId, TrueWait
from satview.events import wire
from satview.events.spec import Release
from satview.linkage.links import row_bounds
from satview.opened import open_trace
from satview.store.time_ranges import TimeRanges, cut_at
from satview.store.trace import Trace
from tests.capture.made import FAST, WIDE, Traced, damaged
from tests.capture.made import traced as capture_of
from tests.capture.truth_sums import TruthSums
from tests.helpers.extent import points
from tests.helpers.kev import START, TraceBuilder

from .test_statistics_truth import NAMES, RELEASES, workload

_LOCKS = ("MUTEX", "RWLOCK_READ", "RWLOCK_WRITE")
OVERLOADED = {"partition-starvation": ("telemetry", "render"), "partitions": ("devc-critical", "shell")}
LEAST_FOUND = {"automotive": 50, "client-server": 20, "nested-servers": 15, "meeting-points": 20}
Parts = Counter[tuple[Blame, ThreadId | None]]


class TrueBlame:
    """Splits an interval moment by moment, as the history of the kernel has it."""

    def __init__(self, made: Traced) -> None:
        truth = made.truth
        self.made, self.interrupts = made, truth.interrupts
        self.sums = TruthSums(made, made.trace.window)
        self.runs = self.sums.runs
        self.states = {thread: truth.states_of(thread) for thread in {change.thread for change in truth.states}}
        self.times = {thread: [change.time for change in states] for thread, states in self.states.items()}
        self.waits: dict[ThreadId, list[TrueWait]] = {}
        for wait in truth.waits:
            self.waits.setdefault(wait.thread, []).append(wait)
        self.ends = {life.thread: life.time for life in truth.lives if life.state == "DESTROY"}
        names = {pid: name for _, _, pid, name in truth.processes}
        self.loggers = {pid for pid, name in names.items() if name.rsplit("/", 1)[-1] == "tracelogger"}

    def of(self, thread: ThreadId, start: int, begin: int, end: int) -> Parts:
        """Return how many cycles of [start, end) belong to what and whom."""
        edges = {start, begin, end, *self.times[thread]}
        for run in self.runs:
            edges |= {run.start, run.end}
        for span in self.interrupts:
            edges |= {span.enter, span.exit}
        inside = sorted(edge for edge in edges if start <= edge <= end)
        parts: Parts = Counter()
        for moment, after in pairwise(inside):
            parts[self._at(thread, moment, begin)] += after - moment
        return parts

    def _at(self, thread: ThreadId, moment: int, begin: int) -> tuple[Blame, ThreadId | None]:
        if moment >= self.ends.get(thread, moment + 1):
            return Blame.UNKNOWN, None
        states = self.states[thread]
        position = bisect_right(self.times[thread], moment) - 1
        state = states[position]
        if state.state not in ("RUNNING", "READY"):
            return self._wait(thread, moment, state.state, begin)
        run = next((one for one in states[position:] if one.state == "RUNNING"), None)
        if run is None:  # it never runs again: on the CPU that it had
            run = next(one for one in reversed(states[:position]) if one.state == "RUNNING")
        if any(span.cpu == run.cpu and span.enter <= moment < span.exit for span in self.interrupts):
            return Blame.INTERRUPT, None
        if state.state == "RUNNING":
            return (Blame.OWN if moment >= begin else Blame.EARLIER), None
        runner = next((one.thread for one in self.runs if one.cpu == run.cpu and one.start <= moment < one.end), None)
        if runner in (None, thread) or self.sums.is_idle(runner):
            return Blame.NO_CPU, None
        return (Blame.TRACING if runner[0] in self.loggers else Blame.PREEMPTED), runner

    def _wait(self, thread: ThreadId, moment: int, state: str, begin: int) -> tuple[Blame, ThreadId | None]:
        if state == "NANOSLEEP":
            return Blame.SLEEP, None
        if state in ("SEND", "REPLY"):
            sent = [one for one in self.made.truth.messages if one.client == thread and one.sent <= moment]
            return Blame.MESSAGE, sent[-1].server
        if state in _LOCKS:
            wait = [one for one in self.waits[thread] if one.start <= moment][-1]
            return Blame.LOCK, wait.waker if wait.waker in wait.owners else next(iter(wait.owners), None)
        if moment < begin and state in ("RECEIVE", "INTR"):
            return Blame.WAKING, None
        return Blame.WAIT, None  # who ends such waits is tested with the links of wake-ups


@points(name=NAMES, release=RELEASES, wide=[True, False])
def test_parts_are_what_happened(name: str, release: Release, wide: bool, tmp_path: Path) -> None:
    setup, ms, cpus = workload(name)
    made = capture_of(setup, ms, tmp_path, release, cpus, 5, WIDE if wide else FAST, skew_ns=0)
    found = known_instances(made)
    parts = blame(made.trace, found.thread, found.start_cycles, found.begin_cycles, found.end_cycles)
    got: list[Parts] = [Counter() for _ in range(len(found))]
    for row in range(len(parts)):
        if parts.parent[row] < 0:
            thread = int(parts.thread[row])
            kind = Blame(int(parts.kind[row]))
            whom = name_of(made, thread) if kind is not Blame.WAIT else None
            got[int(parts.interval[row])][kind, whom] += int(parts.cycles[row])
    assert len(found) >= LEAST_FOUND.get(name, 0)
    truth = TrueBlame(made)
    for number in range(len(found)):
        thread = name_of(made, int(found.thread[number]))
        assert thread is not None
        moments = [int(column[number]) for column in (found.start_cycles, found.begin_cycles, found.end_cycles)]
        assert got[number] == truth.of(thread, *moments), (thread, moments)


def known_instances(made: Traced) -> Instances:
    """Return the instances that the trace holds from their begin to their end."""
    instances = activities(made.trace).instances
    return instances.taken(instances.is_known & ~instances.is_open)


def name_of(made: Traced, thread: int) -> ThreadId | None:
    threads = made.trace.threads
    return (int(threads.pid[thread]), int(threads.tid[thread])) if thread else None


@points(name=["automotive", "nested-servers", "process-life"], release=RELEASES, ring=[True, False])
def test_parts_add_up_where_events_are_missing(name: str, release: Release, ring: bool, tmp_path: Path) -> None:
    """What the trace does not show is a part too; the interval stays as long as it is."""
    setup, ms, cpus = workload(name)
    made = damaged(setup, ms, tmp_path, release, cpus, ring=ring, wide=True, slots=64)
    found = activities(made.trace).instances
    parts = blame(made.trace, found.thread, found.start_cycles, found.begin_cycles, found.end_cycles)
    total = [0] * len(found)
    for row in range(len(parts)):
        if parts.parent[row] < 0:
            total[int(parts.interval[row])] += int(parts.cycles[row])
    assert total == found.response_cycles.tolist()
    lacks = {int(parts.interval[row]) for row in range(len(parts)) if parts.kind[row] == Blame.UNKNOWN}
    assert lacks >= {number for number in range(len(found)) if not found.is_known[number]}


@pytest.mark.parametrize("name", ["partition-starvation", "partitions"])
def test_only_threads_of_the_partition_that_is_overloaded_lack_its_budget(name: str, tmp_path: Path) -> None:
    """Others, and the same one at other times, wait for equal or higher priorities alone."""
    capture.run(capture.Capture(name, options=LoggerOptions(seconds=0.6, is_wide=True)), tmp_path / "overload.kev")
    trace = open_trace(tmp_path / "overload.kev")
    rounds = activities(trace).instances
    rounds = rounds.taken(rounds.is_known)
    parts = blame(trace, rounds.thread, rounds.start_cycles, rounds.begin_cycles, rounds.end_cycles)
    pairs = zip(parts.kind.tolist(), parts.value.tolist(), strict=True)
    words = np.array([object_words(trace, *pair) for pair in pairs])
    lacks = np.flatnonzero(np.char.find(words, "is used up") >= 0)
    who_waits, who_runs = (
        [trace.short_process_name(int(trace.threads.process[thread])) for thread in threads.tolist()]
        for threads in (rounds.thread[parts.interval[lacks]], parts.thread[lacks])
    )
    assert {*zip(who_waits, who_runs, strict=True)} == {OVERLOADED[name]}


def test_an_interrupt_is_not_known_to_go_on_over_lost_events(tmp_path):
    """Its exit may be lost: from the loss on nothing is known before the next event of an interrupt."""
    enter, leave = (wire.code(wire.WireClass.INT, event) for event in (1, 2))
    builder = TraceBuilder().event(wire.CONTROL_BUFFER, 0, (1, 0)).time_event(0).state("RUNNING", 10, 5, 1)
    builder.event(enter, 90, (7, 0)).event(wire.CONTROL_BUFFER, 5000, (4, 0)).time_event(5000)
    builder.state("RUNNING", 5500, 5, 1).event(enter, 6000, (9, 0)).event(leave, 6100, (9, 0))
    edges, _, interrupt = cpu_timeline(builder.event(wire.code(6, 1), 7000).open(tmp_path), 0)
    begins = np.flatnonzero(np.append(True, interrupt[1:] != interrupt[:-1]))
    assert list(zip((edges[begins] - START).tolist(), interrupt[begins].tolist(), strict=True)) == [
        (0, -1), (90, 7), (91, -1), (6000, 9), (6100, -1),
    ]  # fmt: skip


@points(name=["automotive", "process-life"], has_losses=[True, False])
def test_what_ran_within_windows_is_what_ran_in_the_whole_trace(name: str, has_losses: bool, tmp_path: Path) -> None:
    setup, ms, cpus = workload(name)
    if has_losses:
        trace = damaged(setup, ms, tmp_path, Release.QNX_7, cpus, ring=False, wide=True, slots=64).trace
    else:
        trace = capture_of(setup, ms, tmp_path, Release.QNX_7, cpus, 5, WIDE, skew_ns=0).trace
    window, rng = trace.window, np.random.default_rng(4)
    moments = np.unique(trace.events.time_cycles)
    for count, length in ((1, window.length), (30, 2), (20, window.length // 200), (100, window.length // 900)):
        start = np.append(rng.integers(window.start, window.end - length + 1, count), rng.choice(moments, count))
        check_windows(trace, TimeRanges.of(start, np.minimum(start + length, window.end)))


def test_time_on_a_cpu_that_the_target_does_not_have_is_not_known(tmp_path):
    """The CPU number of one event is damaged: thread 5.1 is ready for 40 cycles and runs for 60 on "CPU 3" of 1."""
    builder = TraceBuilder().time_event(0)
    for time in range(10, 1010, 5):  # one number in 200 is too rare for a CPU of the target
        builder.state("RUNNING", time, 6, 1)
    builder.state("READY", 1010, 5, 1).state("RUNNING", 1050, 5, 1, cpu=3).state("RECEIVE", 1110, 5, 1)
    trace = builder.event(wire.code(6, 1), 1200).open(tmp_path)
    assert (trace.cpu_count, trace.events.cpu.max()) == (1, 3)
    thread, begin, end = np.array([trace.threads.pid.tolist().index(5)]), *np.array([[START + 1010], [START + 1110]])
    parts = blame(trace, thread, begin, begin, end)
    assert list(zip(parts.kind.tolist(), parts.cycles.tolist(), strict=True)) == [(Blame.UNKNOWN, 100)]


def test_what_ran_within_windows_between_nested_interrupts(tmp_path):
    enter, leave = (wire.code(wire.WireClass.INT, event) for event in (1, 2))
    builder = TraceBuilder().time_event(0).state("RUNNING", 10, 5, 1).event(enter, 20, (7, 0))
    builder.event(enter, 30, (9, 0)).event(leave, 40, (9, 0)).event(leave, 50, (7, 0)).state("RUNNING", 60, 5, 2)
    builder.event(enter, 70, (9, 0)).event(leave, 80, (9, 0))
    trace = builder.event(wire.code(6, 1), 90).open(tmp_path)
    assert within(TimeRanges.of(*np.array([[START + 42], [START + 45]])), cpu_timeline(trace, 0))[0][3] == 7
    for begin in range(trace.window.start, trace.window.end - 4):
        check_windows(trace, TimeRanges.of(np.array([begin]), np.array([begin + 4])))


def test_what_ran_before_the_first_run_slice_is_known_from_the_dump():
    trace = open_trace("sample_traces/dense-4cpu.kev")
    begin = trace.window.start
    check_windows(trace, TimeRanges.of(np.array([begin]), np.array([begin + 100])))


def check_windows(trace: Trace, windows: TimeRanges) -> None:
    bounds = row_bounds(trace, windows)
    for cpu in range(trace.cpu_count):
        assert within(windows, cpu_timeline(trace, cpu, bounds)) == within(windows, cpu_timeline(trace, cpu))


def within(windows: TimeRanges, timeline: tuple[np.ndarray, np.ndarray, np.ndarray]) -> list[tuple[int, ...]]:
    """Return what ran within windows, a piece for each: begin, end, thread and interrupt."""
    edges, runner, interrupt = timeline
    _, segment, begin, end = cut_at(windows.start, windows.end, edges)
    return list(zip(*(column.tolist() for column in (begin, end, runner[segment], interrupt[segment])), strict=True))
