"""Answers about a trace from which buffers, or a class of events, are cut out, held to those about the whole trace.

What is exact is equal, a lower bound is not above the value of the whole trace, an upper bound is not below it, and
where rows are missing, the table says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import cycle, product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from satview.answers.comparison import compare
from satview.answers.functions import function_table
from satview.answers.late import late
from satview.answers.latencies import latency_figures, latency_table
from satview.answers.snapshot import snapshot
from satview.answers.table import Column, Kind, Known, Table
from satview.answers.transactions import TransactionFilter, transaction_table
from satview.base.time import TimeWindow
from satview.capture.kernel import Kernel
from satview.capture.workloads import registry
from satview.events import wire
from satview.events.spec import Release
from satview.filters.external import ExternalClass
from satview.store.time_ranges import losses
from satview.store.trace import Trace
from tests.capture.made import WIDE, as_trace, finish, kernel, mode, run
from tests.helpers.extent import points, usually

RELEASES = (Release.QNX_6, Release.QNX_7, Release.QNX_8)
WORKLOADS = ("automotive", "client-server", "producer-consumer", "nested-servers", "instrumented", "interrupt-flood")
EVERY_RUN = list(product(WORKLOADS, RELEASES))
RUNS = {
    f"{workload}-{release}": (workload, release)
    for workload, release in usually(
        list(zip(WORKLOADS, cycle(RELEASES), strict=False)), complete=EVERY_RUN, thorough=EVERY_RUN
    )
}  # what is captured: in the usual run each workload once, and each release
MS, SLOTS = 60, 60
MOMENTS = 6  # of snapshots
WINDOWS = 12
ANSWERS: Mapping[str, tuple[Callable[[Trace], Table], Sequence[str]]] = {  # with the columns that name a row
    "transactions": (transaction_table, ("start",)),
    "latencies": (latency_table, ("source", "start")),
    "figures": (lambda trace: latency_figures(trace, latency_table(trace)), ("source", "thread", "leg")),
    "activities": (lambda trace: late(trace).activities(), ("thread", "trigger")),
    "instances": (lambda trace: late(trace).instances(), ("thread", "start")),
    "functions": (function_table, ("thread", "source", "function", "place", "stack")),
}
# Of what is seen: how much of it is lacking, how it is linked; what only some events show; what has names in it.
UNCHECKED = ("undecided", "certainty", "type", "waits_for", "activity", "process")
CLASSES = tuple(ExternalClass[name] for name in ("KERCALL", "INT", "THREAD", "COMM", "SYSTEM", "PROCESS"))
ANYTHING = (Known.ESTIMATE, Known.INFERRED, Known.GUESS, Known.UNKNOWN)


class Cut:
    """A capture of a workload, and the same run with buffers cut out or captured without a class."""

    def __init__(self, workload: str, release: Release, folder: Path) -> None:
        self._workload, self._release, self._folder = registry.find(workload), release, folder
        self._kernel, self._slots = self._captured()
        self.whole = as_trace(self._kernel, self._slots, self._made("whole"))

    def _captured(self, *modes: tuple[object, ...]) -> tuple[Kernel, NDArray[np.generic]]:
        made, sink = kernel(
            self._release, self._workload.cpus, modes=(WIDE[0], *modes, *WIDE[1:]), skew_ns=0, slots=SLOTS
        )
        made.trace_event(mode("START"))
        self._workload.setup(made)
        run(made, MS)
        return made, finish(made, sink)

    def _made(self, name: str) -> Path:
        (self._folder / name).mkdir()
        return self._folder / name

    @cached_property
    def lossy(self) -> Trace:
        """The trace without three of its buffers."""
        events = self.whole.events
        starts = np.append(events.slot[events.code == wire.CONTROL_BUFFER].astype(np.int64), len(self._slots))
        keep, count = np.ones(len(self._slots), np.bool_), len(starts) - 1
        for first in (count // 4, count // 2, count * 3 // 4):  # what is lost behind the last buffer, no trace shows
            keep[starts[first] : starts[first + 1]] = False
        part = as_trace(self._kernel, self._slots[keep], self._made("lossy"))
        assert len(losses(part))
        return part

    @cache  # noqa: B019 - as long as the module
    def without(self, missing: ExternalClass) -> Trace:
        """Return a trace of the same run, captured without a class; capturing takes no simulated time."""
        part = as_trace(*self._captured(("DELCLASS", missing)), self._made(missing.name))
        assert not len(losses(part))
        return part


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Release], Cut]:
    """Return a function that returns the capture of a workload on a release; each is made once."""
    return cache(lambda workload, release: Cut(workload, release, tmp_path_factory.mktemp("holes")))


def value_of(table: Table, row: int, column: Column) -> str | int | float | None:
    """Return a value as it is written, but a time in cycles and a thread by its numbers.

    Traces of one run may start at different events, and not each shows all names.
    """
    if column.kind is Kind.TIME:
        return table.held(row, column.name)
    if column.kind is Kind.THREAD and (thread := table.held(row, column.name)) > 0:
        return f"{table.trace.threads.pid[thread]}:{table.trace.threads.tid[thread]}"
    return table.plain(row, column.name)


def by_name(table: Table, names: Sequence[str]) -> Iterator[tuple[tuple[object, ...], int]]:
    """Yield the names of rows that no other row has, with their numbers."""
    columns = [column for column in table.question.columns if column.name in names]
    keys = [tuple(value_of(table, row, column) for column in columns) for row in range(len(table))]
    for row, key in enumerate(keys):
        if keys.count(key) == 1:
            yield key, row


def contradictions(whole: Table, part: Table, names: Sequence[str]) -> list[tuple[object, ...]]:
    """Return the figures of a part that contradict those of the whole: row, column, value, mark, true value."""
    rows, wrong = dict(by_name(whole, names)), []
    for key, row in by_name(part, names):
        if key not in rows:
            continue
        for column in part.question.columns:
            if column.name in (*names, *UNCHECKED) or column.kind in (Kind.EVENT, Kind.THREAD) or not column.title:
                continue
            seen, true = value_of(part, row, column), value_of(whole, rows[key], column)
            if column.name == "outcome" and seen in ("unknown", "done"):  # done: in time or not, if its period is known
                continue
            if column.kind is Kind.SHARE and part.trace.window.length != whole.trace.window.length:
                continue
            known = part.known(row, column.name)
            if seen == true or known in ANYTHING or whole.known(rows[key], column.name) is not Known.EXACT:
                continue
            if column.kind is Kind.TEXT and known is Known.AT_LEAST:
                is_right = True
            elif known is Known.EXACT or not isinstance(seen, int | float) or not isinstance(true, int | float):
                is_right = False
            else:
                is_right = seen <= true if known is Known.AT_LEAST else seen >= true
            if not is_right:
                wrong.append((key, column.name, seen, known.word, true))
    return wrong


def check(answer: str, whole: Trace, part: Trace) -> None:
    make, names = ANSWERS[answer]
    true, seen = make(whole), make(part)
    assert contradictions(true, seen, names) == []
    assert len(seen) >= len(true) or seen.cannot_tell or answer == "figures"  # of all unknown sources one row


def check_snapshots(whole: Trace, part: Trace) -> None:
    names = ("pid", "tid")
    for moment in np.linspace(part.window.start, part.window.end, MOMENTS + 2).astype(int)[1:-1].tolist():
        true, seen = snapshot(whole, moment), snapshot(part, moment)
        states = {key: true.text(row, "state") for key, row in by_name(true, names)}
        for key, row in by_name(seen, names):
            assert seen.text(row, "state") in ("UNKNOWN", states.get(key)), (moment, key)
        assert contradictions(true, seen, (*names, "state")) == [], moment


@points(traced_run=RUNS, answer=list(ANSWERS))
def test_answers_about_a_lossy_trace_do_not_contradict_those_about_the_whole(
    traced_run: tuple[str, Release], answer: str, cut: Callable[[str, Release], Cut]
) -> None:
    capture = cut(*traced_run)
    check(answer, capture.whole, capture.lossy)


@points(traced_run=RUNS)
def test_messages_are_all_there_in_ranges_without_losses(
    traced_run: tuple[str, Release], cut: Callable[[str, Release], Cut]
) -> None:
    """Losses elsewhere in the trace do not count, and where rows of the range are lost, the table says so."""
    whole, part = (getattr(cut(*traced_run), name) for name in ("whole", "lossy"))
    edges, said = np.linspace(whole.window.start, whole.window.end, WINDOWS + 1).astype(int).tolist(), set()
    for window in map(TimeWindow, edges[:-1], edges[1:]):
        seen = transaction_table(part, TransactionFilter(window=window))
        said.add("events were lost" in seen.cannot_tell)
        true = transaction_table(whole, TransactionFilter(window=window))
        assert seen.cannot_tell or len(seen) >= len(true), window
    assert said == {True, False}


@points(traced_run=RUNS, answer=list(ANSWERS), missing=CLASSES)
def test_answers_without_a_class_do_not_contradict_those_with_it(
    traced_run: tuple[str, Release], answer: str, missing: ExternalClass, cut: Callable[[str, Release], Cut]
) -> None:
    capture = cut(*traced_run)
    check(answer, capture.whole, capture.without(missing))


@points(traced_run=RUNS)
def test_snapshots_of_a_lossy_trace_do_not_contradict_those_of_the_whole(
    traced_run: tuple[str, Release], cut: Callable[[str, Release], Cut]
) -> None:
    capture = cut(*traced_run)
    check_snapshots(capture.whole, capture.lossy)


@points(traced_run=RUNS, missing=CLASSES)
def test_snapshots_without_a_class_do_not_contradict_those_with_it(
    traced_run: tuple[str, Release], missing: ExternalClass, cut: Callable[[str, Release], Cut]
) -> None:
    capture = cut(*traced_run)
    check_snapshots(capture.whole, capture.without(missing))


def false_changes(whole: Trace, part: Trace) -> list[tuple[object, ...]]:
    """Return the changes between a trace and a part of it that are said to be sure; the traces are of one run."""
    wrong = list[tuple[object, ...]]()
    is_same_length = whole.window == part.window
    is_about_as_long = (
        part.window.length > 0.99 * whole.window.length
    )  # without INT, 6.x and 7.x log nothing at the end
    for change in compare(whole, part):
        before, after, (_, known) = change.before, change.after, change.known
        is_shown = not (math.isnan(before) or math.isnan(after))
        is_above = is_shown and after > before * (1 + 1e-9)
        is_wrong = (
            (change.is_worse(1.1) is True and is_about_as_long)
            or (known is Known.EXACT and (math.isnan(after) and before > 0))
            or (known is Known.EXACT and is_shown and is_same_length and (is_above or after < before * (1 - 1e-9)))
            or (known is Known.AT_LEAST and is_same_length and is_above)
        )
        if is_wrong and change.known[0] is Known.EXACT and " in unknown" not in change.name:
            wrong.append((change.by, change.column.name, change.name, before, known.word, after))
    return wrong


@points(traced_run=RUNS)
def test_a_run_is_not_worse_than_itself_where_events_are_lost(
    traced_run: tuple[str, Release], cut: Callable[[str, Release], Cut]
) -> None:
    capture = cut(*traced_run)
    assert false_changes(capture.whole, capture.lossy) == []


@points(traced_run=RUNS, missing=CLASSES)
def test_a_run_is_not_worse_than_itself_without_a_class(
    traced_run: tuple[str, Release], missing: ExternalClass, cut: Callable[[str, Release], Cut]
) -> None:
    capture = cut(*traced_run)
    assert false_changes(capture.whole, capture.without(missing)) == []
