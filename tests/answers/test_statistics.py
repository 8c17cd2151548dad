"""Statistics as tables: how their values are written and ordered, and rules that every column keeps."""

from __future__ import annotations

import json

import numpy as np
import pytest

from satview.analysis.statistics import Statistics
from satview.answers.frames import Texts
from satview.answers.statistics import TABLES, TITLES
from satview.answers.table import SUBJECT, Column, Kind, Outcome, Question, Table
from satview.formats.kev.reader import open_kev
from tests.helpers.kev import TraceBuilder
from tests.helpers.scene import CLIENT, scene


@pytest.fixture
def found(tmp_path):
    return Statistics(open_kev(scene(tmp_path)))


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (Kind.NUMBER, 77838, "77838"),
        (Kind.COUNT, 77838, "77,838"),
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
def test_values_for_people(found, kind, value, text):
    table = one_column(found.trace, kind, np.array([value]))
    assert table.text(0, "x") == text
    assert (table.plain(0, "x") is None) == (value < 0)


def one_column(trace, kind, values):
    question = Question("q", "Q", "?", (Column("x", kind, "a value", "X"),), "", "No row.")
    return Table(question, trace, {"x": values}, place="")


def test_unknown_values_come_last_either_way_and_equal_ones_keep_their_order(found):
    for kind, values in ((Kind.DURATION, np.array([5, -1, 9, 5])), (Kind.SHARE, np.array([0.5, -1.0, 0.9, 0.5]))):
        table = one_column(found.trace, kind, values)
        assert table.sorted_by("x").positions.tolist() == [2, 0, 3, 1]
        assert table.sorted_by("x", descending=False).positions.tolist() == [0, 3, 2, 1]


def test_a_share_fills_its_bar_and_the_largest_does_where_several_cpus_make_it_more(found):
    for values, filled in (([0.25, -1.0], [0.25, 0.0]), ([0.5, 2.0], [0.25, 1.0])):
        table = one_column(found.trace, Kind.SHARE, np.array(values))
        assert [table.bar(row, table.question.column("x")) for row in (0, 1)] == filled


def test_names_sort_without_regard_to_capitals(found):
    threads = TABLES["thread"](found, None).sorted_by("thread", descending=False)
    assert threads["thread"].tolist() == ["client 1", "server 1", "unknown"]


def test_every_table_keeps_the_rules(found):
    assert list(TABLES) == list(TITLES)
    for key, make in TABLES.items():
        table = make(found, None)
        question, columns = table.question, table.question.columns
        assert (question.name, question.title) == (key, TITLES[key])
        for names in ([column.name for column in columns], [column.key for column in columns]):
            assert len(set(names)) == len(names)
        assert not question.sort_name or question.column(question.sort_name)
        assert question.empty.endswith(".")
        for column in columns:
            assert column.meaning
            assert not column.meaning.endswith(".")
        json.dumps(table.records())


def test_times_of_threads_do_not_follow_the_filter_and_counts_do(found):
    threads, events, calls = (TABLES[key](found, None).question.columns for key in ("thread", "event", "call"))
    assert {column.name for column in threads if column.follows_filter} == {"sent", "received", "calls", "events"}
    for column in (*events, *calls):
        assert column.follows_filter == (column.kind is not Kind.TEXT and column.name != SUBJECT), column.name


def test_positions(found):
    trace = found.trace
    threads = TABLES["thread"](found, None)
    row = threads["thread"].tolist().index("client 1")
    assert threads.held(row, SUBJECT) == trace.threads.row(CLIENT, 1)
    assert trace.clock.ns(threads.moment(row, "longest_run")) == 8_001
    assert not threads.has_place(row, "cpu")
    longest = TABLES["call"](found, None).event(0, "longest")
    assert trace.spec(longest).class_name == "KER_CALL"


def test_hidden_threads_are_left_out(found):
    shown = np.zeros(len(found.trace.threads), np.bool_)
    shown[found.trace.threads.row(CLIENT, 1)] = True
    # Events of no known thread cannot be hidden with their thread.
    assert TABLES["thread"](found, shown)["thread"].tolist() == ["unknown", "client 1"]


def test_no_name_of_a_trace_is_a_formula_in_a_spreadsheet(found):
    names = Texts.of(["=cmd|' /c calc'!A0", "+1", "two\nlines"])
    _, *rows = one_column(found.trace, Kind.TEXT, names).csv_rows()
    assert [name for [name] in rows] == ["'=cmd|' /c calc'!A0", "'+1", "two lines"]


@pytest.mark.parametrize(
    ("key", "reason"), [("message", "the trace has no messages"), ("call", "the trace has no kernel calls")]
)
def test_a_table_of_a_class_that_is_missing_cannot_tell(key, reason, tmp_path):
    trace = TraceBuilder().time_event(0).state("RUNNING", 10, 7, 1).state("RECEIVE", 20, 7, 1).open(tmp_path)
    table = TABLES[key](Statistics(trace), None)
    assert table.outcome is Outcome.CANNOT_TELL
    assert table.cannot_tell.startswith(reason)
