"""What is exported and opened again: what is the same and what is lost is the table of docs/foreign.md."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow.parquet
import pytest

import satview
from satview.events.states import STATE_BY_NAME
from satview.export.kev import write_subset
from satview.export.perfetto import write_perfetto
from satview.export.tables import write_table
from satview.opened import with_answers
from satview.store.time_ranges import losses
from satview.tables.table import table
from tests.helpers.extent import fewer
from tests.tables.conftest import CASES

SAME_AFTERWARDS = ("automotive-7", "mishaps-6", "servers-66", "convoy-8", "lossy-8", "ring-6")


@pytest.fixture(scope="module", params=fewer(SAME_AFTERWARDS, 3))
def trace(request, tmp_path_factory):
    return with_answers(CASES[request.param](tmp_path_factory.mktemp("round")))


@pytest.fixture(scope="module")
def back(trace, tmp_path_factory):
    path = tmp_path_factory.mktemp("perfetto") / "a.pftrace"
    write_perfetto(trace, path)
    return satview.open_trace(path)


def _texts(found, name):
    values = found.column_values(name)
    return np.array(values.texts)[values.code]


def _states(trace):
    """Return number and total of the intervals of each state of each thread, by name of thread and state."""
    found = table(trace, "state")
    names = [trace.thread_name(row) for row in range(len(trace.threads))]
    count, total = Counter(), Counter()
    for thread, state, length in zip(found["thread"].tolist(), _texts(found, "state").tolist(),
                                     found["length_ns"].tolist(), strict=True):  # fmt: skip
        if (
            state in STATE_BY_NAME and state not in ("RUNNING", "SLEEPING") and length > 1
        ):  # shorter ones are 0 or 1 ns by how their ends are rounded
            count[names[thread], state] += 1
            total[names[thread], state] += length
    return count, total


def test_states_come_back_from_perfetto(trace, back):
    count, total = _states(trace)
    count_back, total_back = _states(back)
    assert count_back == count
    assert len(count) > 1
    # Both ends of an interval are rounded down to a nanosecond; the trace ends one after the last event.
    assert {
        key: total_back[key] - total[key] for key in count if abs(total_back[key] - total[key]) > count[key] + 1
    } == {}


def _runs(trace):
    """Return the runs of each thread on each CPU, and their total; those of less than 2 us are left out.

    Where events are missing another thread may have the CPU before the state RUNNING of the one before ends: the table
    of runs ends it at once, the file has both.
    """
    found = table(trace, "run")
    busy = np.flatnonzero(~found["is_idle"] & (found["length_ns"] > 2_000))
    names = [trace.thread_name(row) for row in range(len(trace.threads))]
    thread, cpu = found["thread"][busy].tolist(), found["cpu"][busy].tolist()
    return Counter((names[row], number) for row, number in zip(thread, cpu, strict=True)), int(
        found["length_ns"][busy].sum()
    )


def test_runs_come_back_from_perfetto(trace, back):
    runs, total = _runs(trace)
    runs_back, total_back = _runs(back)
    assert runs_back == runs
    overlap_ns = 5_000 if len(losses(trace)) else 0  # of all runs at which events are missing
    assert abs(total_back - total) <= sum(runs.values()) + overlap_ns


def _wakes(trace):
    found = table(trace, "wake_up")
    names = [trace.thread_name(row) for row in range(len(trace.threads))]
    return Counter(names[row] for row in found["thread"].tolist())


def test_wake_ups_come_back_from_perfetto(trace, back):
    assert _wakes(back) == _wakes(trace)


def test_events_come_back_from_kev(trace, tmp_path):
    write_subset(trace, tmp_path / "a.kev", np.ones(len(trace.events), np.bool_))
    again = satview.open_trace(tmp_path / "a.kev")
    kind = trace.events.code >> 10
    assert np.array_equal(again.events.code[again.events.code >> 10 != 1], trace.events.code[kind != 1])
    assert np.array_equal(again.events.time_cycles[again.events.code >> 10 != 1], trace.events.time_cycles[kind != 1])
    assert again.threads.names == trace.threads.names


def test_tables_come_back_from_parquet(trace, tmp_path):
    for name in ("event", "state", "run", "wake_up"):
        path = tmp_path / f"{name}.parquet"
        write_table(trace, path, name, "parquet")
        found = pyarrow.parquet.read_table(path)
        for column in found.column_names:
            if column.endswith("_cycles"):
                assert np.array_equal(found.column(column).to_numpy(), table(trace, name)[column]), (name, column)
