"""Tables by hand-written columns: order, marks, nesting, and what every consumer gets of one table."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from satview.answers.frames import Texts
from satview.answers.table import SCHEMA_VERSION, Column, Kind, Known, Outcome, Question, Table, least_known
from satview.base.errors import UsageError
from satview.base.safe_text import with_sign
from satview.store.trace import Trace
from tests.helpers.kev import START, TraceBuilder

WAITED = {Known.AT_LEAST: "not over when the trace ends", Known.UNKNOWN: "no events of class COMM"}
QUESTION = Question(
    "waits",
    "Waits",
    "Who waits longest?",
    (
        Column("who", Kind.TEXT, "who waits", "Who"),
        Column("start", Kind.TIME, "when it begins", "Start"),
        Column("waited", Kind.DURATION, "how long it waits", "Waited", "wait", is_nullable=True, reasons=WAITED),
        Column("times", Kind.COUNT, "how often", "Times"),
        Column("event", Kind.EVENT, "the event that begins it", "Event"),
        Column("inner", Kind.NUMBER, "for programs alone"),
        Column("shown", Kind.HEX, "for people alone", "Shown", sql="", is_nullable=True),
    ),
    "waited",
    "Nobody waits.",
)


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """One cycle is a nanosecond; the trace begins at START."""
    return TraceBuilder().time_event(0).state("RUNNING", 5, 1, 1).open(tmp_path)


def waits(trace: Trace, **options: object) -> Table:
    """Four rows: 300, at least 500, unknown, none."""
    return Table(
        QUESTION,
        trace,
        {
            "who": Texts(np.array([1, 0, 2, 0], np.uint8), ("a", "b", "=c")),
            "start": lambda: START + np.array([10, 20, 30, 40]),
            "waited": np.array([300, 500, -1, -1]),
            "times": np.array([1000, 2, 3, 4]),
            "event": np.array([0, 1, 2, 3]),
            "inner": np.array([7, 8, 9, 10]),
            "shown": np.array([255, -1, -1, -1]),
        },
        known={"waited": np.array([Known.EXACT, Known.AT_LEAST, Known.UNKNOWN, Known.EXACT], np.uint8)},
        **options,  # type: ignore[arg-type]
    )


def test_bounds_sort_by_their_value_and_unknown_comes_last(trace: Trace) -> None:
    table = waits(trace)
    assert table.sorted_by("waited").positions.tolist() == [1, 0, 2, 3]
    assert table.sorted_by("waited", descending=False).positions.tolist() == [0, 1, 2, 3]
    assert table.sorted_by("who", descending=False).positions.tolist() == [1, 3, 0, 2]
    assert table.sorted_by("times").head(2).positions.tolist() == [0, 3]
    assert table.rows(np.array([False, True, False, True])).sorted_by("waited").positions.tolist() == [1, 3]
    with pytest.raises(UsageError, match="is waited meant"):
        table.sorted_by("waitd")


def test_texts_of_rows_sort_as_they_are_read(trace: Trace) -> None:
    question = Question("names", "Names", "Which names?", (Column("name", Kind.TEXT, ""),), "", "")
    names = Table(question, trace, {"name": Texts.of(["b 2", "C 1", "a 3", "b 2"])})
    assert list(names.sorted_by("name", descending=False)["name"]) == ["a 3", "b 2", "b 2", "C 1"]


def test_values_are_marked_in_text(trace: Trace) -> None:
    table = waits(trace)
    assert [table.text(row, "waited") for row in range(4)] == [
        "300 ns",
        "\N{GREATER-THAN OR EQUAL TO} 500 ns",
        "unknown",
        "",
    ]
    assert [table.text(0, name) for name in ("start", "times", "event", "shown")] == [
        "0.000 000 010 s",
        "1,000",
        "1",
        "0xff",
    ]
    assert [table.plain(row, "waited") for row in range(4)] == [300, 500, None, None]
    assert table.doubt(1, "waited") == "At least: not over when the trace ends."
    assert table.doubt(3, "waited") == ""
    assert table.doubts() == [
        "\N{GREATER-THAN OR EQUAL TO} 1 of 4 in Waited: not over when the trace ends",
        "unknown 1 of 4 in Waited: no events of class COMM",
    ]


def test_files_say_how_values_are_known(trace: Trace) -> None:
    table = waits(trace)
    rows = [list(row) for row in table.csv_rows()]
    assert rows[0] == ["who", "start_ns", "waited_ns", "waited_known", "times", "event", "shown"]
    assert [row[2:4] for row in rows[1:]] == [[300, "exact"], [500, "at least"], [None, "unknown"], [None, "exact"]]
    assert rows[3][0] == "'=c"  # no formula in a spreadsheet
    assert "waited_known" not in next(table.head(1).csv_rows())
    document = json.loads(json.dumps(table.document("waits")))
    assert (document["schema_version"], document["outcome"]) == (SCHEMA_VERSION, "found")
    assert [row.get("known") for row in document["waits"]] == [
        None,
        {"waited_ns": "at least"},
        {"waited_ns": "unknown"},
        None,
    ]
    assert table.lines([1]) == "Who\tStart\tWaited\tTimes\tEvent\tShown\na\t0.000 000 020 s\t\u2265 500 ns\t2\t2\t"


def test_programs_get_cycles_nanoseconds_and_how_they_are_known(trace: Trace) -> None:
    table = waits(trace).sorted_by("waited")
    assert table.columns == (
        *("who", "start_cycles", "start_ns", "wait_cycles", "wait_ns", "wait_known", "times", "event"),
        "inner",
    )
    assert table["wait_cycles"].tolist() == [500, 300, -1, -1]
    assert table["start_ns"].tolist() == [20, 10, 30, 40]
    assert table["who"].tolist() == ["a", "b", "=c", "a"]
    with pytest.raises(UsageError, match="no column 'shown'"):
        table["shown"]
    arrow = table.to_arrow()
    assert arrow.column("wait_ns").to_pylist() == [500, 300, None, None]
    assert arrow.column("wait_known").to_pylist() == ["at least", "exact", "unknown", "exact"]
    assert table.to_pandas()["inner"].tolist() == [8, 7, 9, 10]


def test_other_libraries_take_it_as_it_is(trace: Trace) -> None:
    pyarrow, polars = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    table = waits(trace)
    assert pyarrow.table(table).num_rows == 4
    assert polars.DataFrame(table)["wait_ns"].to_list() == [300, 500, None, None]


def test_reading_a_table(trace: Trace) -> None:
    table = waits(trace)
    assert (len(table), [row["times"] for row in table]) == (4, [1000, 2, 3, 4])
    lines = repr(table).splitlines()
    assert lines[0].endswith("4 of 4 rows>")
    assert lines[1].split() == ["Who", "Start", "Waited", "Times", "Event", "Shown"]
    assert len(lines) == 6
    assert "<th title=" in table._repr_html_()
    assert [column.title for column in table.at(np.array([3])).filled()] == ["Who", "Start", "Times", "Event"]


def test_an_empty_table_says_why(trace: Trace) -> None:
    none = np.zeros(4, np.bool_)
    assert waits(trace).outcome is Outcome.FOUND
    assert (waits(trace).rows(none).outcome, waits(trace).rows(none).says_why_empty) == (
        Outcome.NOTHING,
        "Nobody waits.",
    )
    table = waits(trace, cannot_tell="the trace has no messages").rows(none)
    assert (table.outcome, table.says_why_empty) == (Outcome.CANNOT_TELL, "Cannot tell: the trace has no messages.")
    assert table.document("waits")["reason"] == "the trace has no messages"


def test_rows_below_others(trace: Trace) -> None:
    """1 and 2 are below 0, 3 below 2."""
    table = waits(trace, parent=np.array([-1, 0, 0, 2]))
    assert [table.children(row).tolist() for row in range(4)] == [[1, 2], [], [3], []]
    unfolded = table.at(np.array([0])).unfolded()
    assert unfolded.positions.tolist() == [0, 1, 2, 3]
    assert [unfolded.text(row, "who") for row in range(4)] == ["b", "  a", "  =c", "    a"]
    assert [record["depth"] for record in unfolded.records()] == [0, 1, 1, 2]
    assert unfolded.records()[1]["who"] == "a"


def test_a_sum_is_as_known_as_its_least_known_part() -> None:
    parts = [
        np.array(row, np.uint8)
        for row in ([Known.EXACT, Known.INFERRED, Known.GUESS], [Known.AT_LEAST, Known.AT_LEAST, Known.UNKNOWN])
    ]
    assert least_known(*parts).tolist() == [Known.AT_LEAST, Known.AT_LEAST, Known.UNKNOWN]
    assert least_known(*reversed(parts)).tolist() == [Known.AT_LEAST, Known.AT_LEAST, Known.UNKNOWN]


@pytest.mark.parametrize(
    ("sign", "text", "shown"),
    [
        ("", "<0.1 %", "<0.1 %"),
        ("\u2265", "12.5 %", "\u2265 12.5 %"),
        ("\u2265", "<0.1 %", "> 0 %"),
        ("\u2265", "< 0.01 CPU", "> 0 CPU"),
        ("\u2265", "<unnamed>", "\u2265 <unnamed>"),
        ("\u2248", "<0.1 %", "\u2248 <0.1 %"),
    ],
)
def test_a_sign_before_a_figure(sign, text, shown):
    assert with_sign(sign, text) == shown
