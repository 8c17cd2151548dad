"""Sheets: how values are written and ordered, and rules that every column keeps."""

from __future__ import annotations

import json

import numpy as np
import pytest

from satview.analysis.sheet import Column, Kind
from satview.analysis.statistics import Statistics
from satview.analysis.statistics_sheets import SHEETS, TITLES, call_sheet, event_sheet, thread_sheet
from satview.formats.kev.reader import open_kev
from tests.helpers.scene import CLIENT, scene


@pytest.fixture
def found(tmp_path):
    return Statistics(open_kev(scene(tmp_path)))


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (Kind.NUMBER, 77838, "77838"),
        (Kind.COUNT, 77838, "77,838"),
        (Kind.DURATION, 1_204_000, "1.204 ms"),
        (Kind.TIME, 1_000_000_000, "1.000 000 000 s"),
        (Kind.SHARE, 0.343, "34.3 %"),
        (Kind.SHARE, 0.0001, "<0.1 %"),
        (Kind.SHARE, 0.0, "0.0 %"),
        (Kind.SHARE, 1.015, "101.5 %"),
        (Kind.RATE, 1317.2, "1,317"),
        (Kind.RATE, 90.22, "90.2"),
        (Kind.RATE, 0.01234, "0.0123"),
        (Kind.DURATION, -1, ""),
        (Kind.COUNT, -1, ""),
    ],
)
def test_values_for_people(kind, value, text):
    column = Column("x", "X", kind, np.array([value]))
    assert column.text(0) == text
    assert (column.plain(0) is None) == (value < 0)


def test_unknown_values_come_last_either_way_and_equal_ones_keep_their_order():
    column = Column("x", "X", Kind.DURATION, np.array([5, -1, 9, 5]))
    assert column.order(descending=True).tolist() == [2, 0, 3, 1]
    assert column.order(descending=False).tolist() == [0, 3, 2, 1]
    names = Column("n", "N", Kind.TEXT, ("b", "A", "c"))
    assert names.order(descending=False).tolist() == [1, 0, 2]


def test_every_sheet_keeps_the_rules(found):
    assert list(SHEETS) == list(TITLES)
    for key, make in SHEETS.items():
        sheet = make(found, None)
        assert (sheet.key, sheet.title) == (key, TITLES[key])
        keys = [column.key for column in sheet.columns]
        assert len(set(keys)) == len(keys)
        assert not sheet.sort_key or sheet.sort_key in keys
        assert sheet.empty.endswith(".")
        for column in sheet.columns:
            assert len(column.values) == len(sheet), column.key
            assert column.key.endswith("_ns") == (column.kind in (Kind.DURATION, Kind.TIME)), column.key
            assert column.kind is Kind.TEXT or column.help.endswith("."), column.key
        json.dumps(sheet.records())


def test_times_of_threads_do_not_follow_and_counts_do(found):
    follows = {column.key for column in thread_sheet(found).columns if column.follows}
    assert follows == {"sent", "received", "calls", "events"}
    assert all(column.follows for column in event_sheet(found).columns if column.kind is not Kind.TEXT)
    assert all(column.follows for column in call_sheet(found).columns if column.kind is not Kind.TEXT)


def test_positions(found):
    trace = found.trace
    threads = thread_sheet(found)
    row = threads.subjects.tolist().index(trace.threads.row(CLIENT, 1))
    assert trace.clock.ns(int(threads.column("longest_run_ns").cycles[row])) == 8_001
    longest = int(call_sheet(found).column("longest_ns").events[0])
    assert trace.spec(longest).class_name == "KER_CALL"


def test_hidden_threads_are_left_out(found):
    shown = np.zeros(len(found.trace.threads), np.bool_)
    shown[found.trace.threads.row(CLIENT, 1)] = True
    # Events of no known thread cannot be hidden with their thread.
    assert thread_sheet(found, shown).column("thread").values == ("unknown", "client 1")
