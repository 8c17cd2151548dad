"""What is worked out, when, and what is said of it; without any widget."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from satview.base.errors import UsageError
from satview.base.time import TimeWindow
from satview.session.panels.statistics import StatisticsView, write_table
from satview.session.range_view import Extent
from tests.helpers.scene import CLIENT


@pytest.fixture
def view(opened, qtbot):
    view = StatisticsView(opened)
    view.watch(True)
    settled(view, qtbot)
    yield view
    view.close()


def settled(view, qtbot):
    qtbot.waitUntil(lambda: not view.is_pending)
    return view.counted


def cpu_of(counted, name="client 1"):
    return next(row["cpu_ns"] for row in counted.table.records() if row["thread"] == name)


def test_nothing_is_worked_out_while_nobody_looks(opened, qtbot):
    view = StatisticsView(opened)
    view.show_table("call")
    assert not view.is_pending
    view.watch(True)
    assert settled(view, qtbot).table.question.name == "call"
    view.watch(False)
    view.set_extent(Extent.VIEW)
    assert not view.is_pending
    view.close()


def test_the_whole_trace_first(view):
    assert cpu_of(view.counted) == 6999
    assert view.counted.statement == "Counts all 17 events"


def test_the_view_is_followed_once_it_rests(view, opened, qtbot, ns):
    view.set_extent(Extent.VIEW)
    settled(view, qtbot)
    opened.viewport.jump(TimeWindow(ns(1_000), ns(3_000)))
    assert view.is_pending
    assert cpu_of(settled(view, qtbot)) == pytest.approx(2_000, abs=2)


@pytest.mark.thorough
def test_the_selected_range(view, opened, qtbot, ns):
    view.set_extent(Extent.RANGE)
    assert view.needs_range
    assert not view.is_pending
    opened.selection.set_range(TimeWindow(ns(2_000), ns(2_500)))
    assert cpu_of(settled(view, qtbot)) == 500
    assert not view.needs_range
    opened.selection.set_range(None)
    settled(view, qtbot)
    assert view.needs_range


def test_a_range_beside_the_trace_is_the_whole_trace(view, opened, qtbot, ns):
    opened.selection.set_range(TimeWindow(ns(-100), ns(-10)))
    view.set_extent(Extent.RANGE)
    assert cpu_of(settled(view, qtbot)) == 6999


def test_following_the_filter_changes_counts_only(view, opened, qtbot):
    opened.filters.add_pass(f"pid == {CLIENT} and class == KER_CALL")
    qtbot.waitUntil(lambda: not opened.filters.is_pending)
    assert view.ignores_filter
    assert view.counted.statement == "Counts all 17 events"
    view.set_follows(True)
    counted = settled(view, qtbot)
    assert not view.ignores_filter
    kinds = np.count_nonzero(opened.trace.code_counts)
    assert counted.statement == f"Follows the filter: 1 of {kinds} kinds, 1 of 2 threads; counts 1 of 17 events"
    assert counted.table["thread"].tolist() == ["client 1"]
    assert cpu_of(counted) == 6999
    assert counted.table["events"].tolist() == [1]


@pytest.mark.thorough
def test_check_boxes_are_followed_too(view, opened, qtbot):
    view.set_follows(True)
    assert settled(view, qtbot).statement == "Follows the filter, which hides none of the 17 events"
    opened.filters.only_threads([opened.trace.threads.row(CLIENT, 1)], "client")
    counted = settled(view, qtbot)
    assert counted.table["thread"].tolist() == ["client 1"]
    opened.filters.show_all()
    assert "hides none" in settled(view, qtbot).statement


def test_another_table_of_the_same_range_uses_what_is_known(view, qtbot):
    before = view._statistics
    view.show_table("state")
    assert settled(view, qtbot).table.question.name == "state"
    assert view._statistics is before
    view.set_follows(True)
    settled(view, qtbot)
    assert view._statistics is not before
    assert view._statistics._statistics.basis is before._statistics.basis


def test_moving_on_stops_what_is_no_longer_requested(view, opened, qtbot, ns, monkeypatch):
    view.set_extent(Extent.VIEW)
    settled(view, qtbot)
    seen = []
    view.changed.connect(lambda: seen.append(view.counted))
    for start in (1_000, 2_000, 3_000):
        opened.viewport.jump(TimeWindow(ns(start), ns(start + 500)))
    settled(view, qtbot)
    assert len({id(counted) for counted in seen}) == 2  # the old one, and that of the last position
    assert view.counted.window.start == pytest.approx(ns(3_000), abs=2)


def test_a_longer_reading_of_the_file_is_counted_again(view, opened, qtbot):
    before = view.counted
    opened.reloaded.emit(None)
    assert settled(view, qtbot) is not before


def test_csv(view, tmp_path):
    path = tmp_path / "threads.csv"
    table = view.counted.table
    assert write_table(table.at(np.array([2, 1])), path, (), lambda: False) == 2
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["thread"], row["cpu_ns"]) for row in rows] == [("server 1", "3999"), ("client 1", "6999")]
    assert [row["cpu_known"] for row in rows] == ["estimate", "estimate"]
    with pytest.raises(UsageError, match="csv"):
        write_table(table, tmp_path / "no" / "x.csv", (), lambda: False)


@pytest.mark.thorough
def test_a_range_is_counted_as_soon_as_it_is_selected(view, opened, qtbot, ns):
    view.set_extent(Extent.VIEW)
    opened.selection.set_range(TimeWindow(ns(2_000), ns(2_500)))
    assert view.extent is Extent.RANGE
    assert cpu_of(settled(view, qtbot)) == 500
    opened.selection.set_range(TimeWindow(ns(2_000), ns(2_600)))  # as a drag goes on
    assert cpu_of(settled(view, qtbot)) == 600
    opened.selection.set_range(None)
    assert view.extent is Extent.VIEW


def test_what_the_user_chose_stays_until_the_next_range(view, opened, ns):
    opened.selection.set_range(TimeWindow(ns(2_000), ns(2_500)))
    view.set_extent(Extent.TRACE)
    opened.selection.set_range(TimeWindow(ns(2_000), ns(2_600)))
    assert view.extent is Extent.TRACE
    opened.selection.set_range(None)
    opened.selection.set_range(TimeWindow(ns(2_000), ns(2_500)))
    assert view.extent is Extent.RANGE
