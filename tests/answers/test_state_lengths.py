"""Percentiles of states that a human can count: ten waits of 1, 2, ... 10 microseconds."""

from __future__ import annotations

import pytest

from satview import Statistics, TimeWindow
from satview.answers.statistics import TABLES
from tests.helpers.kev import TraceBuilder


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """One thread: READY for 1 us, RUNNING for 1 us, READY for 2 us, ..., RUNNING from 64 us to the end at 70 us."""
    builder = TraceBuilder().time_event(0)
    at = 0
    for wait in range(1, 11):
        builder.state("READY", at, 2, 1).state("RUNNING", at + wait * 1_000, 2, 1)
        at += (wait + 1) * 1_000
    builder.state("READY", at, 2, 2)
    return builder.event(8 << 10 | 1, 70_000).open(tmp_path_factory.mktemp("lengths"))


def row_of(table, **names):
    [row] = [row for row in table.records() if names.items() <= row.items()]
    return row


def test_percentiles_of_a_thread(trace):
    ready = row_of(TABLES["state"](Statistics(trace)), thread=trace.thread_name(trace.threads.row(2, 1)), state="READY")
    assert (ready["total_ns"], ready["count"], ready["mean_ns"]) == (55_000, 10, 5_500)
    assert (ready["p50_ns"], ready["p90_ns"], ready["p99_ns"], ready["longest_ns"]) == (5_000, 9_000, 10_000, 10_000)


def test_all_threads_together(trace):
    """The second thread is READY from 65 us to the end, 5 us: one more wait."""
    table = TABLES["state-total"](Statistics(trace))
    ready = row_of(table, state="READY")
    assert (ready["total_ns"], ready["count"], ready["threads"]) == (60_001, 11, 2)
    assert (ready["p50_ns"], ready["p90_ns"], ready["p99_ns"]) == (5_001, 9_000, 10_000)
    assert ready["longest_thread"] == trace.thread_name(trace.threads.row(2, 1))


def test_intervals_are_cut_at_the_range(trace):
    """From 3 us to 8 us: READY from 2 us on is cut to 1 us, RUNNING 4 to 5 us, READY 5 to 8 us."""
    at = trace.clock.cycles
    table = TABLES["state-total"](Statistics(trace, TimeWindow(at(3_000), at(8_000))))
    ready, running = row_of(table, state="READY"), row_of(table, state="RUNNING")
    assert (ready["count"], ready["p50_ns"], ready["longest_ns"]) == (2, 1_000, 3_000)
    assert (running["count"], running["p99_ns"]) == (1, 1_000)
