"""Marks of figures against what really happened: what is exact is equal to it, a lower bound is never above it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest

from satview.analysis.statistics import Statistics
from satview.analysis.times.basis import Mark
from satview.answers.statistics import TABLES
from satview.answers.table import SUBJECT, Kind, Known, Table
from satview.base.time import TimeWindow
from satview.capture.kernel import Kernel
from satview.capture.workloads import registry
from satview.events.spec import Release
from satview.events.states import READY, STATE_BY_VALUE, UNKNOWN
from tests.analysis import faults
from tests.capture.made import FAST, WIDE, Traced, damaged, traced
from tests.capture.truth_sums import Lengths, TruthSums
from tests.helpers.extent import RING, points

RELEASES = (Release.QNX_6, Release.QNX_7, Release.QNX_8)
FAULTS = [
    value
    for name, value in vars(faults).items()
    if not name.startswith("_") and callable(value) and getattr(value, "__module__", "") == faults.__name__
]
LESSONS = ("automotive", "client-server", "inversion", "interrupt-flood")
NO_STATES = (("ADDALLCLASSES",), ("DELCLASS", 10))
NO_INTERRUPTS = (("ADDALLCLASSES",), ("DELCLASS", 6))
Key = tuple[str, object, str]  # table, row, column


class Truth:
    """Every figure of the tables that the simulation reports its own, in nanoseconds or as counts."""

    def __init__(self, made: Traced, window: TimeWindow) -> None:
        self.sums, self.trace = TruthSums(made, window), made.trace
        self.sums.row = {thread: row for thread, row in self.sums.row.items() if row}  # row 0 is nobody
        self.figures: dict[Key, float] = {}
        self._threads()
        self._cpus()
        self._calls()
        self._messages()

    def _put(self, table: str, row: object, **figures: float) -> None:
        self.figures.update({(table, row, key): value for key, value in figures.items()})

    def ns(self, cycles: int) -> int:
        """Return cycles in nanoseconds, as tables round them."""
        return self.trace.clock.duration_ns(cycles)

    def _threads(self) -> None:
        sums = self.sums
        ran, runs, longest, in_state = Counter(), Counter(), Counter(), defaultdict(list)
        for run in sums.runs:
            ran[run.thread] += sums.cut(run) - sums.interrupted(run.cpu, run.start, run.end)
            runs[run.thread] += sums.cut(run) > 0
            longest[run.thread] = max(longest[run.thread], sums.cut(run))
        for span in sums.states:
            if sums.cut(span):
                in_state[span.thread, span.value].append(sums.cut(span))
        called = Counter(call.thread for calls in sums.calls.values() for call in calls)
        sent = Counter(message.client for message in sums.messages)
        for thread, row in sums.row.items():
            ready = in_state.get((thread, READY), [])
            self._put("thread", row, cpu_ns=self.ns(ran[thread]), runs=runs[thread],
                      longest_run_ns=self.ns(longest[thread]), ready_ns=self.ns(sum(ready)),
                      longest_ready_ns=self.ns(max(ready, default=0)), calls=called[thread],
                      sent=sent[thread])  # fmt: skip
            for value in (READY, 3, 4, 5, 13):
                times = in_state.get((thread, value), [])
                self._put("state", (row, STATE_BY_VALUE[value].name), total_ns=self.ns(sum(times)),
                          longest_ns=self.ns(max(times, default=0)), count=len(times))  # fmt: skip

    def _cpus(self) -> None:
        sums, window = self.sums, self.sums.window
        for cpu in range(sums.cpus):
            runs = [run for run in sums.runs if run.cpu == cpu]
            net = sum(sums.cut(run) - sums.interrupted(cpu, run.start, run.end) for run in runs
                      if not sums.is_idle(run.thread))  # fmt: skip
            handled = sums.interrupted(cpu, window.start, window.end)
            self._put("cpu", cpu, busy_ns=self.ns(net), interrupt_ns=self.ns(handled))

    def _calls(self) -> None:
        for name, calls in self.sums.calls.items():
            times = Lengths.of(call.exit - call.enter for call in calls if call.exit >= 0)
            failed = sum(bool(call.error) and not call.is_interrupted for call in calls if call.exit >= 0)
            self._put("call", name, count=len(calls), failed=failed, **self._lengths("", times))

    def _messages(self) -> None:
        sums, sent = self.sums, defaultdict(list)
        for message in sums.messages:
            sent[sums.row.get(message.client, -1), message.server_pid].append(message)
        for pair, messages in sent.items():
            blocked = [sums.blocked(message) for message in messages]
            of_state = {state: Lengths.of(times[state] for times in blocked if state in times)
                        for state in ("SEND", "REPLY")}  # fmt: skip
            self._put("message", pair, count=len(messages), **self._lengths("send_", of_state["SEND"]),
                      **self._lengths("reply_", of_state["REPLY"]))  # fmt: skip

    def _lengths(self, key: str, times: Lengths) -> dict[str, float]:
        mean = times.total // times.count if times.count else 0
        return {f"{key}total_ns": self.ns(times.total), f"{key}longest_ns": self.ns(times.most),
                f"{key}mean_ns": self.ns(mean), f"{key}least_ns": self.ns(times.least),
                f"{key}p99_ns": self.ns(times.p99)}  # fmt: skip


def names_of_rows(table: Table, found: Statistics) -> list[object]:
    """Return how the truth calls the rows of a table."""
    rows = range(len(table))
    if table.question.name == "call":
        return [table.text(row, "call") for row in rows]
    if table.question.name == "message":
        return list(zip(found.messages.client.tolist(), found.messages.server_pid.tolist(), strict=True))
    if table.question.name == "state":
        return [(table.held(row, SUBJECT), table.text(row, "state")) for row in rows]
    if table.question.name == "partition":
        return [table.text(row, "partition") for row in rows]
    return [table.held(row, SUBJECT) for row in rows]


def check(made: Traced, window: TimeWindow) -> Counter[Known]:
    """Check all figures of which the truth is known; return how many are known how."""
    found, truth = Statistics(made.trace, window), Truth(made, window)
    seen: Counter[Known] = Counter()
    for make in TABLES.values():
        table = make(found, None)
        for row, name in enumerate(names_of_rows(table, found)):
            for column in table.question.columns:
                true = truth.figures.get((table.question.name, name, column.key))
                if true is None or column.kind is Kind.TEXT:
                    continue
                reported, known = max(0, table[column.key][row]), table.known(row, column.name)
                seen[known] += 1
                figure = table.question.name, name, column.key, reported, true
                assert known is not Known.EXACT or reported == true, figure
                assert known is not Known.AT_LEAST or reported <= true, figure
    return seen


def ranges(made: Traced) -> Iterable[TimeWindow]:
    """Return the range behind the opening dump, and the middle of it."""
    trace = made.trace
    start = max(made.since, trace.window.start, trace.dump_end_cycles + 1)
    third = (trace.window.end - start) // 3
    yield TimeWindow(start, trace.window.end)
    yield TimeWindow(start + third, start + 2 * third)


def workload(name: str) -> tuple[Callable[[Kernel], None], int]:
    """Return the set-up of a lesson and on how many CPUs it runs."""
    found = registry.find(name)
    return found.setup, found.cpus


@points(fault=FAULTS, modes={"fast": FAST, "wide": WIDE}, release=RELEASES)
def test_figures_of_whole_traces_are_exact_and_equal(
    fault: Callable[[Kernel], None], modes: tuple[tuple[str, ...], ...], release: Release, tmp_path: Path
) -> None:
    made = traced(fault, 60, tmp_path, release, modes=modes, skew_ns=0)
    first, middle = ranges(made)
    seen = check(made, first)  # threads that start with the dump are not known for a moment
    assert seen[Known.EXACT] > 20
    assert seen[Known.EXACT] >= seen.total() // 2
    assert set(check(made, middle)) == {Known.EXACT}
    runs = Statistics(made.trace).basis.runs
    switch = np.flatnonzero((runs.value == UNKNOWN) & (runs.start > first.start) & (runs.end - runs.start > 1))[0]
    from_switch = Statistics(made.trace, TimeWindow(int(runs.start[switch]) + 1, first.end))
    busy = TABLES["cpu"](from_switch, None).question.column("busy")
    assert busy.trust is None, "nobody has the CPU, for a moment: that is exact"


@points(setup=[*FAULTS, *LESSONS], ring=RING, release=RELEASES)
def test_figures_of_traces_with_holes_are_bounds_and_never_above(
    setup: Callable[[Kernel], None] | str, ring: bool, release: Release, tmp_path: Path
) -> None:
    made_by, cpus = workload(setup) if isinstance(setup, str) else (setup, 1)
    made = damaged(made_by, 20, tmp_path, release, cpus, ring=ring, wide=True, skew_ns=0)
    for window in ranges(made):
        if window.length > 0:
            check(made, window)
    if not ring:
        assert check(made, next(iter(ranges(made))))[Known.AT_LEAST] > 5, "a workload of two threads has few figures"


@pytest.mark.parametrize(("classes", "touched"), [(NO_STATES, "busy"), (NO_INTERRUPTS, "cpu")])
def test_a_class_that_is_missing_makes_no_exact_figure(
    classes: tuple[tuple[object, ...], ...], touched: str, tmp_path: Path
) -> None:
    setup, cpus = workload("automotive")
    made = traced(setup, 20, tmp_path, Release.QNX_7, cpus, modes=classes, skew_ns=0)
    assert np.array_equal(np.unique(made.trace.events.cpu), np.arange(cpus))
    window = next(iter(ranges(made)))
    check(made, window)
    table = TABLES["thread" if touched == "cpu" else "cpu"](Statistics(made.trace, window), None)
    requested = Mark.NEEDS_CLASS if classes is NO_STATES else Mark.ESTIMATE
    assert table.question.column(touched).trust.mark is requested
    assert table.text(0, touched).startswith("\N{ALMOST EQUAL TO} ")
