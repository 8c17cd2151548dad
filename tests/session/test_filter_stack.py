from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from satview.events import wire
from satview.session.filter_stack import passing_rows
from satview.store.tables import EventTable


def table(codes, threads):
    n = len(codes)
    return EventTable(
        np.arange(n, dtype=np.int64),
        np.array(codes, np.uint16),
        np.zeros(n, np.uint8),
        np.array(threads, np.uint16),
        np.arange(n, dtype=np.uint32),
        np.ones(n, np.uint16),
    )


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5)), max_size=200),
    st.sets(st.integers(0, 20)),
    st.sets(st.integers(0, 5)),
)
def test_rows_are_those_of_the_plain_loop(events, codes, threads):
    code_mask, thread_mask = np.zeros(32768, np.bool_), np.zeros(6, np.bool_)
    code_mask[list(codes)] = True
    thread_mask[list(threads)] = True
    expected = [i for i, (code, thread) in enumerate(events) if code in codes and thread in threads]
    found = passing_rows(table([c for c, _ in events], [t for _, t in events]), code_mask, thread_mask)
    assert found.tolist() == expected
    assert found.dtype == np.uint32


def test_hiding_and_showing(opened):
    user = wire.code(wire.WireClass.USER, 7)
    total = len(opened.trace.events)
    opened.filters.show_codes([user], False)
    assert opened.filters.row_count == total - 1
    assert user not in opened.trace.events.code[opened.filters.rows]
    opened.filters.show_all()
    assert opened.filters.rows is None
    assert opened.filters.row_count == total


def test_filter_of_threads_hides_their_lanes(opened):
    client = opened.trace.threads.row(2, 1)
    shown = {row.index for row in opened.lanes.rows}
    lane = opened.lane_of_thread(client)
    assert lane in shown
    opened.filters.show_threads([client], False)
    left = {row.index for row in opened.lanes.rows}
    assert shown - left == {lane}  # which stands for its process


def test_large_traces_are_filtered_in_the_background(opened, qtbot, monkeypatch):
    monkeypatch.setattr("satview.session.filter_stack._AT_ONCE", 0)
    with qtbot.waitSignal(opened.filters.view_changed):
        opened.filters.only_codes([wire.code(wire.WireClass.USER, 7)], "x")
        assert opened.filters.is_pending
    assert opened.filters.row_count == 1
