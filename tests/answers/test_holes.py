"""Answers about a trace from which buffers are cut out, held to the answers about the whole trace.

What is exact is equal, a lower bound is not above the value of the whole trace, an upper bound is not below it, and
where rows are missing, the table says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from satview.answers.functions import function_table
from satview.answers.late import late
from satview.answers.latencies import latency_figures, latency_table
from satview.answers.snapshot import snapshot
from satview.answers.table import Kind, Known, Table
from satview.answers.transactions import transaction_table
from satview.capture.workloads import registry
from satview.events import wire
from satview.events.spec import Release
from satview.store.time_ranges import losses
from satview.store.trace import Trace
from tests.capture.made import WIDE, as_trace, finish, kernel, mode, run
from tests.helpers.extent import points

RELEASES = (Release.QNX_6, Release.QNX_7, Release.QNX_8)
WORKLOADS = ("automotive", "client-server", "producer-consumer", "nested-servers", "instrumented", "interrupt-flood")
MS, SLOTS = 60, 60
MOMENTS = 6  # of snapshots
ANSWERS: Mapping[str, tuple[Callable[[Trace], Table], Sequence[str]]] = {  # with the columns that name a row
    "transactions": (transaction_table, ("client", "server", "start")),
    "latencies": (latency_table, ("source", "thread", "start")),
    "figures": (lambda trace: latency_figures(trace, latency_table(trace)), ("source", "thread", "leg")),
    "activities": (lambda trace: late(trace).activities(), ("activity", "trigger")),
    "instances": (lambda trace: late(trace).instances(), ("activity", "thread", "start")),
    "functions": (function_table, ("thread", "source", "function", "place", "stack")),
}
UNCHECKED = ("undecided", "certainty")  # of what is seen: how much of it is lacking, how it is linked
ANYTHING = (Known.ESTIMATE, Known.INFERRED, Known.GUESS, Known.UNKNOWN)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Release], tuple[Trace, Trace]]:
    """Return a function that returns a whole trace of a workload, and the same without some of its buffers."""
    known: dict[tuple[str, Release], tuple[Trace, Trace]] = {}

    def pair(workload: str, release: Release) -> tuple[Trace, Trace]:
        if (workload, release) not in known:
            known[workload, release] = cut(workload, release, tmp_path_factory.mktemp("holes"))
        return known[workload, release]

    return pair


def cut(workload: str, release: Release, folder: Path) -> tuple[Trace, Trace]:
    found = registry.find(workload)
    made, sink = kernel(release, found.cpus, modes=WIDE, skew_ns=0, slots=SLOTS)
    made.trace_event(mode("START"))
    found.setup(made)
    run(made, MS)
    slots = finish(made, sink)
    (folder / "whole").mkdir()
    (folder / "cut").mkdir()
    whole = as_trace(made, slots, folder / "whole")
    starts = np.append(whole.events.slot[whole.events.code == wire.CONTROL_BUFFER].astype(np.int64), len(slots))
    count = len(starts) - 1
    keep = np.ones(len(slots), np.bool_)
    for first in (count // 4, count // 2, count * 3 // 4):  # what is lost behind the last buffer, no trace shows
        keep[starts[first] : starts[first + 1]] = False
    part = as_trace(made, slots[keep], folder / "cut")
    assert len(losses(part))
    return whole, part


def by_name(table: Table, names: Sequence[str]) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the names of rows that no other row has, with their numbers."""
    columns = [column.name for column in table.question.columns]
    keys = [tuple(table.text(row, name) for name in names if name in columns) for row in range(len(table))]
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
            seen, true = part.plain(row, column.name), whole.plain(rows[key], column.name)
            if column.name == "outcome" and seen in ("unknown", "done"):  # done: in time or not, if its period is known
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


@points(workload=WORKLOADS, answer=list(ANSWERS), release=RELEASES)
def test_answers_about_a_part_do_not_contradict_those_about_the_whole(
    workload: str, answer: str, release: Release, pairs: Callable[[str, Release], tuple[Trace, Trace]]
) -> None:
    make, names = ANSWERS[answer]
    whole, part = (make(trace) for trace in pairs(workload, release))
    assert contradictions(whole, part, names) == []
    missing = dict(by_name(whole, names)).keys() - dict(by_name(part, names)).keys()
    assert not missing or "events were lost" in part.cannot_tell


@points(workload=WORKLOADS, release=RELEASES)
def test_snapshots_of_a_part_do_not_contradict_those_of_the_whole(
    workload: str, release: Release, pairs: Callable[[str, Release], tuple[Trace, Trace]]
) -> None:
    traces = pairs(workload, release)
    for moment in np.linspace(traces[1].window.start, traces[1].window.end, MOMENTS + 2).astype(int)[1:-1].tolist():
        whole, part = (snapshot(trace, moment) for trace in traces)
        state = {key: whole.text(row, "state") for key, row in by_name(whole, ("pid", "tid"))}
        for key, row in by_name(part, ("pid", "tid")):
            assert part.text(row, "state") in ("UNKNOWN", state.get(key)), (moment, key)
        assert contradictions(whole, part, ("pid", "tid", "state")) == [], moment
