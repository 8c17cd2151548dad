"""Latencies as a table, one by one and by source; checked by hand."""

from __future__ import annotations

from pathlib import Path

from satview.answers.latencies import LEGS, LatencyFilter, latency_figures, latency_table
from satview.answers.table import Known, Outcome
from satview.base.time import TimeWindow
from satview.events import wire
from tests.helpers.kev import START, TraceBuilder
from tests.linkage.test_latencies import interrupted


def test_a_trace_without_any_cannot_tell(tmp_path: Path) -> None:
    empty = TraceBuilder().time_event(0).state("RUNNING", 5, 1, 1).open(tmp_path)
    table = latency_table(empty)
    assert (len(table), table.outcome) == (0, Outcome.CANNOT_TELL)
    assert len(latency_figures(empty, table)) == 0


def test_how_latencies_are_distributed(tmp_path: Path) -> None:
    """One interrupt twice: legs of 10 and 20, of 10 and 5 to the pulse; and a pulse of an unknown source."""
    build = interrupted()
    for event, time, words in ((1, 400, (7, 0)), (3, 420, (5, 7, 0x1000, 0)), (4, 425, (7, 4, 5, 1)), (2, 430, (7, 0))):
        build.event(wire.code(wire.WireClass.INT, event), time, words)
    build.event(wire.code(wire.WireClass.COMM, 4), 435, (0x40000001, 5))
    build.state("READY", 440, 5, 2).state("RUNNING", 450, 5, 2)
    trace = build.event(wire.code(wire.WireClass.COMM, 3), 460, (0x40000001, 5)).open(tmp_path)
    figures_table = latency_figures(trace, latency_table(trace))
    rows = {record["leg"]: record for record in figures_table.records()}
    assert list(rows) == ["handler-entry", "handler", "delivery", "ready", "scheduling", "receipt", "total"]
    figures = {
        leg: [row[name] for name in ("count", "min_ns", "median_ns", "p95_ns", "max_ns")] for leg, row in rows.items()
    }
    assert figures["handler-entry"] == [2, 10, 10, 20, 20]
    assert figures["handler"] == [2, 5, 5, 20, 20]
    assert figures["total"] == [2, 60, 60, 90, 90]
    assert {(row["source"], row["thread"]) for row in rows.values()} == {("interrupt 0x7", "driver 2")}
    table = latency_table(trace)
    assert table.sorted_by("total").positions.tolist() == [0, 1]
    assert table.sorted_by("handler_entry").positions.tolist() == [1, 0]
    assert latency_table(trace, LatencyFilter(thread="other")).positions.tolist() == []
    late = LatencyFilter(interrupt=7, window=TimeWindow(START + 300, START + 999))
    assert latency_table(trace, late).positions.tolist() == [1]
    single = table.sorted_by("total").records()[0]
    legs = [single[f"{leg.replace('-', '_')}_ns"] for leg in list(rows)[:-1]]
    assert sum(legs) == single["total_ns"] == 90


def test_a_handler_is_inferred_and_the_way_to_the_cpu_is_not(tmp_path: Path) -> None:
    """No event names the handler of an interrupt; what the thread does is in its own events."""
    trace = interrupted().open(tmp_path)
    table = latency_table(trace)
    words = {leg: table.known(0, leg).word for leg in LEGS}
    assert words["handler_entry"] == words["handler"] == words["total"] == "inferred"
    assert words["scheduling"] == "exact"
    assert table.text(0, "handler") == "~ 20 ns"
    figures = latency_figures(trace, table)
    by_leg = {record["leg"]: record for record in figures.records()}
    assert by_leg["handler"]["known"]["max_ns"] == "inferred"
    assert "known" not in by_leg["scheduling"]


def test_a_thread_that_never_runs_waits_to_the_end(tmp_path: Path) -> None:
    """An interrupt at 100 makes it ready at 150; the trace goes on to 5,000 without it."""
    build = TraceBuilder().time_event(0).process_name(1, 5, "usr/bin/driver")
    build.state("RUNNING", 10, 5, 2).state("INTR", 20, 5, 2).state("RUNNING", 30, 6, 1)
    build.event(wire.code(wire.WireClass.INT, 1), 100, (7, 0)).state("READY", 150, 5, 2)
    build.event(wire.code(wire.WireClass.INT, 2), 155, (7, 0))
    build.event(wire.code(wire.WireClass.USER, 7), 4999)
    trace = build.open(tmp_path)
    table = latency_table(trace)
    assert (table["scheduling_cycles"][0], table.known(0, "scheduling")) == (4850, Known.AT_LEAST)
    assert (table["receipt_cycles"][0], table.known(0, "receipt")) == (-1, Known.EXACT)
    assert (table["total_cycles"][0], table["total_known"][0]) == (4900, "at least")
    [figure] = [row for row in latency_figures(trace, table).records() if row["leg"] == "scheduling"]
    assert (figure["count"], figure["max_ns"], figure["known"]["max_ns"]) == (1, 4850, "at least")


def test_a_pulse_that_nobody_receives_waits_to_the_end(tmp_path: Path) -> None:
    """No thread waits for it. Where the trace has no receipt at all they were not captured: then that is unknown."""
    build = TraceBuilder().time_event(0).state("RUNNING", 10, 6, 1)
    build.event(wire.code(wire.WireClass.COMM, 4), 140, (0x40000001, 5))
    build.event(wire.code(wire.WireClass.USER, 7), 4999)
    assert latency_table(build.open(tmp_path)).known(0, "receipt") is Known.UNKNOWN
    build.event(wire.code(wire.WireClass.COMM, 3), 5999, (0x40000002, 6))
    table = latency_table(build.open(tmp_path))
    assert (table["receipt_cycles"][0], table.known(0, "receipt")) == (5860, Known.AT_LEAST)
