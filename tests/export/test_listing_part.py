"""Some events as a listing and as the list of events: the same lines as of the whole, in the right order."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

import satview
from satview.__main__ import main
from satview.base.errors import Cancelled, UsageError
from satview.events import wire
from satview.export.listing.printer import write_event_list, write_listing
from satview.formats.registry import open_trace
from tests.helpers.kev import TraceBuilder
from tests.helpers.scene import scene


@pytest.fixture
def trace(tmp_path):
    return open_trace(scene(tmp_path))


def list_of(trace, mask=None):
    path = trace.path.with_name("list.csv")
    count = write_event_list(trace, path, mask)
    rows = list(csv.DictReader(io.StringIO(path.read_text("utf-8"))))
    assert count == len(rows)
    return rows


def test_a_row_has_what_the_list_shows(trace):
    rows = list_of(trace)
    assert [int(row["number"]) for row in rows] == list(range(1, 18))
    (call,) = [row for row in rows if (row["class"], row["event"]) == ("KER_CALL", "MSG_SENDV")]
    assert (call["time_ns"], call["delta_cycles"], call["cpu"]) == ("2000", "1000", "0")
    assert (call["process"], call["pid"], call["tid"]) == ("client", "2", "1")
    assert call["arguments"].startswith("coid=0x40000001")


def test_deltas_are_between_the_rows_that_are_there(trace):
    mask = trace.events.code >> wire.CLASS_SHIFT == wire.WireClass.USER
    rows = list_of(trace, mask)
    assert [(row["event"], row["time_ns"], row["delta_cycles"]) for row in rows] == [
        ("EVENT 7", "5000", "0"),
        ("EVENT 8", "20000", "15000"),
    ]


def test_the_list_is_in_order_of_time_where_the_file_is_not(tmp_path):
    """The buffer of CPU 1 comes first in the file, what CPU 0 logged meanwhile after it."""
    user = wire.code(wire.WireClass.USER, 7)
    builder = TraceBuilder(cpus=2).time_event(0).time_event(0, cpu=1)
    for cpu, times in ((1, (1_000, 3_000, 5_000)), (0, (2_000, 4_000, 6_000))):
        for time in times:
            builder.event(user, time, cpu=cpu)
    trace = builder.open(tmp_path)
    assert np.any(np.diff(trace.last_slots()) < 0)
    assert [row["time_ns"] for row in list_of(trace)[-6:]] == ["1000", "2000", "3000", "4000", "5000", "6000"]
    path = tmp_path / "list.csv"
    write_event_list(trace, path)
    numbers = [int(line.split(",")[0]) for line in path.read_text("utf-8").splitlines()[1:]]
    assert numbers == list(range(1, len(trace.events) + 1))


def test_a_listing_of_some_has_the_lines_of_the_whole(trace, tmp_path, capsys):
    assert main(["traceprinter", str(trace.path)]) == 1  # buffers were lost
    whole = capsys.readouterr().out.splitlines()
    mask = np.zeros(len(trace.events), np.bool_)
    mask[[7, 10, 16]] = True
    assert write_listing(trace, tmp_path / "part.txt", mask) == 3
    part = (tmp_path / "part.txt").read_text("utf-8").splitlines()
    lines = [line for line in whole if line.startswith("t:")]
    assert [line for line in part if line.startswith("t:")] == [lines[7], lines[10], lines[16]]
    assert write_listing(trace, tmp_path / "all.txt") == len(trace.events)
    assert (tmp_path / "all.txt").read_text("utf-8").splitlines() == whole


def test_names_are_no_formulas_and_break_no_line(tmp_path):
    name = "=cmd|' \"calc'!A0\n\tsecond"
    made = TraceBuilder().time_event(0).process_name(10, 20, name).state("RUNNING", 20, 20, 1).open(tmp_path)
    rows = list_of(made)
    assert len(rows) == len(made.events)
    assert rows[-1]["process"].startswith("'=cmd|' \"calc'!A0")


def test_thread_traces_have_a_list_and_no_listing_of_this_kind(tmp_path):
    trace = satview.open_trace("sample_traces/threads")
    assert write_event_list(trace, tmp_path / "list.csv") == len(trace.events)
    row = (tmp_path / "list.csv").read_text("utf-8").splitlines()[2]
    assert row.endswith('"time","cpu_time","cpu_ns=53785027"')
    with pytest.raises(UsageError, match="satview records"):
        write_listing(trace, tmp_path / "list.txt")


def test_it_can_be_stopped(trace, tmp_path):
    for write in (write_listing, write_event_list):
        with pytest.raises(Cancelled):
            write(trace, tmp_path / "part", None, None, lambda: True)
    assert not (tmp_path / "part").exists()


def test_the_command_line(trace, tmp_path, capsys):
    assert main(["export", str(trace.path), "-o", str(tmp_path / "a.txt"), "--range", "1us..5us"]) == 1
    assert capsys.readouterr().out.endswith("a.txt: 4 events\n  13 events are outside of the range\n")
    path = tmp_path / "users"
    assert main(["export", str(trace.path), "-o", str(path), "--format", "list", "-e", "class == USREVENT"]) == 1
    assert [line.split(",")[0] for line in path.read_text("utf-8").splitlines()] == ["number", "11", "17"]
