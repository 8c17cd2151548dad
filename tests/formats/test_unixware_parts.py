"""Thread traces in parts: bounds of lists, names beside the traces, numbers of threads, and rules of waits by hand."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from satview.base.errors import UsageError
from satview.base.time import Clock
from satview.events.spec import Release
from satview.events.unixware import cpu_time_codes, record_code
from satview.formats.registry import open_trace
from satview.formats.unixware import columns
from satview.formats.unixware import reader as assemble
from satview.formats.unixware.columns import (
    SetReader,
    concatenated,
    files_of,
    is_member_name,
    is_set,
    names_files,
    times_files,
)
from satview.formats.unixware.reader import Names, address_text, open_thread_trace, read_names, score
from satview.store.problems import Problems
from tests.helpers.thread_trace import PID, record, write_set


def problems_of(trace) -> list[tuple[str, str, int, int | None, int | None, str]]:
    return [
        (each.kind.slug, each.detail, each.count, each.time_cycles, each.line, each.file) for each in trace.problems
    ]


def read(content: bytes, *, is_own: bool = False, categories=None) -> tuple[SetReader, Problems]:
    problems = Problems()
    reader = SetReader(categories, problems, None, None)
    columns._FileReader(reader, "name", problems, is_own).read(io.BytesIO(content))
    return reader, problems


# ---- columns -----------------------------------------------------------------------------------------------------


def test_damaged_lines_beyond_some_are_counted_together(monkeypatch):
    assert columns._MANY == 200, "fewer are enough here"
    monkeypatch.setattr(columns, "_MANY", 2)
    good = record(7, 1, 1, "thr_self").encode()
    for bad, extra in ((2, []), (3, [(4, "it has not 13 fields; and more such lines after it", 1)]),
                       (5, [(4, "it has not 13 fields; and more such lines after it", 3)])):  # fmt: skip
        _, problems = read(good + b"bad\n" * bad)
        assert [(each.line, each.detail, each.count, each.file) for each in problems] == [
            (2, "it has not 13 fields", 1, "name"), (3, "it has not 13 fields", 1, "name"),
            *((line, what, count, "name") for line, what, count in extra),
        ]  # fmt: skip


def test_a_clock_that_is_set_back_again_and_again(monkeypatch):
    """Each time that is before the one in front of it; the latest time so far counts until it is reached."""
    monkeypatch.setattr(columns, "_MANY", 2)
    monkeypatch.setattr(columns, "_BLOCK_BYTES", 100)  # a block of a few lines
    times = [50, 20, 30, 25, 60, 60, 10, 70]
    content = "".join(record(time, 1, 1, "thr_self") for time in times).encode()
    reader, problems = read(content)
    found = (concatenated(reader.columns.time_ns) - 1_000_000_000_000) // 1000
    assert found.tolist() == [50, 50, 50, 50, 60, 60, 60, 70]
    assert [(each.line, each.time_cycles // 1000 - 1_000_000_000) for each in problems if each.line] == [
        (2, 50), (3, 50), (4, 50), (7, 60)
    ]  # fmt: skip
    monkeypatch.setattr(columns, "_BLOCK_BYTES", 2 * len(record(10, 1, 1, "thr_self")))
    again, _ = read("".join(record(time, 1, 1, "thr_self") for time in (10, 50, 20, 60)).encode())
    found = (concatenated(again.columns.time_ns) - 1_000_000_000_000) // 1000
    assert found.tolist() == [10, 50, 50, 60], "the last time of a block counts for the next one"
    own, problems = read(content, is_own=True)
    assert ((concatenated(own.columns.time_ns) - 1_000_000_000_000) // 1000).tolist() == times
    assert list(problems) == []
    monkeypatch.setattr(columns, "_BLOCK_BYTES", 1 << 20)
    _, problems = read("".join(record(time, 1, 1, "thr_self") for time in (9, 8, 7, 6, 5)).encode())
    assert [(each.detail, each.count, each.line) for each in problems] == [
        ("it is older than the record before it; the order of the file counts", 1, 2),
        ("it is older than the record before it; the order of the file counts", 1, 3),
        ("and more of the same", 2, None),
    ]


@pytest.mark.parametrize("block", [1, 7, 50, 1000])
def test_lines_of_every_length_in_blocks_of_every_size(monkeypatch, block):
    """The last line has no end; an empty one counts, and one longer than any is skipped up to its end."""
    monkeypatch.setattr(columns, "_BLOCK_BYTES", block)
    assert columns.LONGEST_LINE == 4096, "less is enough here"
    monkeypatch.setattr(columns, "LONGEST_LINE", 80)
    good = record(7, 1, 1, "thr_self").encode()
    reader, problems = read(good + b"\n" + b"9" * 200 + b"\n" + good + b"cut")
    assert len(concatenated(reader.columns.time_ns)) == 2
    # A block that holds the whole line has other words for it.
    assert [(each.line, each.detail) for each in problems][-1] == (5, "the file ends inside this line")
    assert [each.line for each in problems] == [3, 5]
    if block < 80:
        assert next(iter(problems)).detail == "it is longer than 80 bytes"


@pytest.mark.parametrize("block", [1, 1000])
def test_a_line_of_the_greatest_length(monkeypatch, block):
    monkeypatch.setattr(columns, "_BLOCK_BYTES", block)
    good = record(7, 1, 1, "thr_self").encode()
    for longest, says in ((len(good) - 1, []), (len(good) - 2, [] if block > 1 else [(1, 1, "it is longer than ")])):
        monkeypatch.setattr(columns, "LONGEST_LINE", longest)
        reader, problems = read(good)
        assert [(each.line, each.count, each.detail[:18]) for each in problems] == says
        assert len(reader.columns.time_ns) == 1 - len(says)


def test_files_that_hold_nothing():
    empty = "it is empty: its LWP recorded nothing, or was killed before it wrote"
    for content, is_own, expected in ((b"", False, [("missing-file", empty)]), (b"", True, []), (b"\n", False, [])):
        assert [(each.kind.slug, each.detail) for each in read(content, is_own=is_own)[1]] == expected


def test_columns_are_as_narrow_as_their_numbers():
    for low, high, kind in ((-128, 127, np.int8), (-129, 0, np.int16), (0, 128, np.int16),
                            (-(2**15), 2**15 - 1, np.int16),
                            (0, 2**15, np.int32), (-(2**31), 2**31 - 1, np.int32), (-(2**31) - 1, 0, np.int64),
                            (0, 2**31, np.int64)):  # fmt: skip
        narrow = columns._narrow(np.array([low, high], np.int64))
        assert (narrow.dtype, narrow.tolist()) == (kind, [low, high])
    assert columns._narrow(np.empty(0, np.int64)).dtype == np.int8
    assert (concatenated([]).dtype, len(concatenated([]))) == (np.int8, 0)
    parts = [np.array([1]), np.array([2])]
    assert (concatenated(parts).tolist(), parts) == ([1, 2], [])


# ---- names and members -------------------------------------------------------------------------------------------


def test_names_of_a_set(tmp_path):
    """The last process that is named is whose the lines after it are; a name has 300 characters at most."""
    path, names = tmp_path / "x", Names()
    path.write_bytes(
        b"thread:1:nobody's\nprocess:7:/bin/a\r\nthread:2:one\nthread:2:two\nobject:65552:Lock\x07 \xff\n"
        b"process:8:/bin/b\nthread:2:other\nThread:3:x\nthread:x:y\nthread:" + b"1" * 18 + b":" + b"n" * 301 + b"\n"
        b"thread:" + b"1" * 19 + b":long\nthread:5:a:b\nthread:6:\n"
    )
    read_names(path, names)
    assert names.processes == {7: "/bin/a", 8: "/bin/b"}
    assert names.threads == {(-1, 1): "nobody's", (7, 2): "two", (8, 2): "other", (8, int("1" * 18)): "n" * 300,
                             (8, 5): "a:b", (8, 6): ""}  # fmt: skip
    assert names.objects == {(7, 65552): "Lock\N{REPLACEMENT CHARACTER} \N{REPLACEMENT CHARACTER}"}
    read_names(tmp_path / "missing", names)
    assert names.processes == {7: "/bin/a", 8: "/bin/b"}


def test_which_files_make_a_set(tmp_path):
    for name, is_one in (("tr.1.1", True), ("tr.1234567.abc", True), ("tr.12345678.1", False), ("tr.1.1234", False),
                         ("tr..1", False), ("tr.1.", False), ("tr.g.1", False), ("tr.1.1.time", False)):  # fmt: skip
        assert is_member_name(name) is is_one
    for name in ("tr.0000010.002", "tr.0000010.001", "tr.2.001", "tr.0000010.names", "tr.2.001.time", "other"):
        (tmp_path / name).touch()
    (tmp_path / "tr.3.001").mkdir()
    inside = [tmp_path / name for name in ("tr.2.001", "tr.0000010.001", "tr.0000010.002")]
    assert files_of([tmp_path]) == inside
    assert files_of([inside[1]]) == inside[1:]
    assert files_of([inside[1], inside[0]]) == inside[:2]
    assert files_of([tmp_path / "other"]) == [tmp_path / "other"]
    largest = tmp_path / "tr.fffffff.fff"
    assert files_of([tmp_path / "other", tmp_path / "another", largest]) == [
        largest, tmp_path / "another", tmp_path / "other"
    ]  # fmt: skip
    assert files_of([tmp_path / "other", inside[2]]) == [inside[2], tmp_path / "other"]
    assert files_of([tmp_path / "none" / "tr.1.1"]) == [tmp_path / "none" / "tr.1.1"]
    assert names_files(inside) == [tmp_path / "tr.0000010.names"]
    assert times_files([*inside, tmp_path / "other"]) == [tmp_path / "tr.2.001.time"]
    assert is_set(tmp_path)
    assert not is_set(tmp_path / "tr.3.001")
    assert not is_set(inside[0])


LINE = record(0, 1, 1, "thr_self").encode()


@pytest.mark.parametrize(
    ("first", "named", "other"),
    [
        (LINE, 95, 80), (b"rubbish\n\n" + LINE, 95, 80), (b"rubbish\n" * 4 + LINE, 95, 80),
        (b"7 rubbish\n" * 5 + LINE, 65, 0), (b"\n" * 5 + LINE, 0, 0),  # the first five lines count
        (LINE[:-1], 65, 0), (b"1:2", 65, 0), (b"1\0", 0, 0), (b"x", 0, 0), (b"", 0, 0),
    ],
)  # fmt: skip
def test_how_sure_a_line_and_a_name_make(first, named, other):
    assert (score(first, Path("tr.0000001.001")), score(first, Path("x"))) == (named, other)


def test_a_category_that_is_none(tmp_path):
    write_set(tmp_path, "0 lwp1 t1 thr_self")
    for text, says in (("mutx", "did you mean mutex?"), ("mutex:77", "'77' is not a category of thread traces")):
        with pytest.raises(UsageError, match=says.replace("?", r"\?")):
            open_thread_trace(tmp_path, categories=text)
    assert len(open_thread_trace(tmp_path, categories=" thread :").events) == 1
    assert len(open_thread_trace(tmp_path, categories=["mutex"]).events) == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0x0"), (16, "0x10"), (-1, "0xffffffff"), (-(1 << 31), "0x80000000"), (-(1 << 31) - 1, "0xffffffff7fffffff"),
     (1 << 40, "0x10000000000")],
)  # fmt: skip
def test_addresses(value, text):
    assert address_text(value) == text


def test_numbers_that_no_table_names(tmp_path):
    """Small ones are decimal alone."""
    write_set(tmp_path, "0 lwp1 t1 thr_self 0 4095 4096 -4095 -4096 1")
    shown = {each.name: each.text for each in open_trace(tmp_path).payloads.decode(0).arguments}
    assert shown == {
        "a1": "4095", "a2": "4096 (0x1000)", "a3": "-4095", "a4": "-4096 (0xfffff000)", "a5": "1",
    }  # fmt: skip


# ---- from columns to a trace -------------------------------------------------------------------------------------


def test_lists_of_problems_end_with_a_count(tmp_path, monkeypatch):
    assert assemble._MANY == 200, "fewer are enough here"
    monkeypatch.setattr(assemble, "_MANY", 2)
    lines = [f"1:{time}:1:1:1:2:{kind}:0:0:0:0:0:0\n" for time, kind in enumerate((25, 26, 26, 27, 27, 27))]
    (tmp_path / "tr.1.1").write_text("".join(lines) + "1:9:1:1:1:11:0:0:0:0:0:0:0\n1:10:1:1:1:2:-1:0:0:0:0:0:0\n")
    assert problems_of(open_trace(tmp_path)) == [
        ("unknown-events", "event1 2, event2 -1, which 0 is in no table", 1, 1_000_000_010, None, ""),
        ("unknown-events", "event1 2, event2 25, which 0 is in no table", 1, 1_000_000_000, None, ""),
        ("unknown-events", "and more of the same", 6, None, None, ""),
    ]
    (tmp_path / "tr.1.1").write_text(lines[0] + lines[1])
    assert [count for _, _, count, *_ in problems_of(open_trace(tmp_path))] == [1, 1], "no more than are listed"
    (tmp_path / "tr.1.1").write_text("".join(record(time, 1, 1, "mutex_lock", 1, 16) for time in range(4)))
    start = 1_000_000_000_000
    assert problems_of(open_trace(tmp_path)) == [
        ("unfinished-calls", "mutex_lock 1 has no counterpart", 1, start, None, ""),
        ("unfinished-calls", "mutex_lock 1 has no counterpart", 1, start + 1000, None, ""),
        ("unfinished-calls", "and more of the same", 1, None, None, ""),
    ], "the last one still waits: no fault"  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "fits"),
    [((2, 31, 2), True), ((2, 32, 2), False), ((2, 31, 3), False), ((2, 0, 0), True), ((2, -1, 0), False),
     ((2, 0, -1), False), ((1, 0, 0), True), ((0, 0, 0), False), ((9, 0, 0), True), ((10, 0, 0), False)],
)  # fmt: skip
def test_numbers_that_a_code_can_hold(kind, fits):
    columns_of = [np.array([number], np.int64) for number in kind]
    time = np.array([5], np.int64)
    code, odd = assemble._codes(columns_of, np.array([False]), time, Problems())
    assert bool(code[0] != assemble.OTHER) == fits
    assert odd.numbers.tolist() == ([] if fits else [list(kind)])
    assert odd.event.tolist() == ([] if fits else [0])
    own, _ = assemble._codes(columns_of, np.array([True]), time, Problems())
    assert bool(own[0] != assemble.OTHER) == (kind == (10, 0, 0))


@pytest.mark.parametrize(("number", "titles", "says"), [(2, ["LWP 1", "LWP 2"], []), (3, ["LWP 1", "other LWPs"],
                         [("3 LWPs; those from number 2 on share one lane", 2)])])  # fmt: skip
def test_lanes_of_lwps(monkeypatch, number, titles, says):
    assert assemble._MOST_LANES == 256, "fewer are enough here"
    monkeypatch.setattr(assemble, "_MOST_LANES", 2)
    problems = Problems()
    lane, found = assemble._lanes(np.full(number, 7), np.arange(number) + 1, problems)
    assert (lane.tolist(), list(found)) == ([0, 1, 1][:number], titles)
    assert [(each.detail, each.count) for each in problems] == says


def test_threads_that_were_only_created(tmp_path):
    """A thread is known when it was created without an error and has a number; of two processes by pid and number."""
    write_set(tmp_path, """
        0 lwp1 t5 thr_create 1 0 0 4096 0 0
        1 lwp1 t5 thr_create 2 0 9
        2 lwp1 t5 thr_create 2 3 8       # failed
        3 lwp1 t5 thr_create 2 0 0       # no number
        4 lwp1 t5 thr_create 2 0 2147483648
        5 lwp1 t5 thr_create 2 0 2147483647
    """)  # fmt: skip
    write_set(tmp_path, "6 lwp1 t1 thr_self", pid=7)
    trace = open_trace(tmp_path)
    assert list(zip(trace.threads.pid.tolist(), trace.threads.tid.tolist(), strict=True)) == [
        (-1, -1), (7, 1), (PID, 5), (PID, 9), (PID, 2**31 - 1)
    ]  # fmt: skip
    assert trace.threads.process.tolist() == [0, 1, 2, 2, 2]
    assert trace.processes.pid.tolist() == [-1, 7, PID]
    for column in (trace.processes.parent_pid, trace.processes.created_cycles, trace.processes.destroyed_cycles):
        assert column.tolist() == [-1, -1, -1], "of processes there is no record"
    assert trace.header.pairs == (("FILE_COUNT", "2"), ("DIRECTORY", tmp_path.as_posix()))
    assert [trace.cpu_title(cpu) for cpu in range(2)] == ["LWP 1 of 7", f"LWP 1 of {PID}"]
    assert (trace.byte_order, trace.format, trace.release) == ("little", "thread_trace", Release.UNIXWARE)
    assert (trace.clock, trace.slot_count) == (Clock(10**9, 1_000_000_000_000, 0), 7)


# ---- calls -------------------------------------------------------------------------------------------------------


def made(*rows_of: tuple[str, int, int, int, int, int]) -> assemble.PairedRecords:
    """Return records: name of the interface, which, thread row, time, a1, a2."""
    names, which, thread, time, first, second = zip(*rows_of, strict=True)
    code = np.array([record_code(*pair) for pair in zip(names, which, strict=True)], np.uint16)
    arguments = tuple(np.array(column, np.int64) for column in (first, second, *([[0] * len(names)] * 3)))
    return assemble.pair_records(np.array(time, np.int64), code, np.array(thread, np.uint16), arguments)


def waits_of(found: assemble.PairedRecords, threads: dict[tuple[int, int], int] | None = None) -> list[int]:
    rows = assemble.waits(found, threads or {}, np.array([0, 1, 1, 1], np.int32))
    return np.flatnonzero(rows).tolist()


def test_records_are_paired_by_thread_and_interface():
    found = made(
        ("mutex_lock", 1, 1, 0, 0, 0), ("mutex_lock", 1, 2, 1, 0, 0), ("mutex_lock", 2, 1, 2, 0, 0),
        ("sema_wait", 2, 2, 3, 0, 0), ("sema_wait", 1, 1, 4, 0, 0), ("thr_self", 0, 1, 5, 0, 0),
        ("sema_wait", 2, 1, 6, 0, 0), ("cond_wait", 1, 1, 7, 0, 0), ("cond_wait", 2, 2, 8, 0, 0),
    )  # fmt: skip
    none = assemble.NOBODY
    assert found.partner.tolist() == [2, none, 0, none, none, none, none, none, none]
    assert assemble.which_of(found.code).tolist() == [1, 1, 2, 2, 1, 0, 2, 1, 2]
    assert np.flatnonzero(assemble.last_of_thread(found)).tolist() == [7, 8]
    assert found.first_records("mutex_lock").tolist() == [0, 1]


@pytest.mark.parametrize(
    ("interface", "lasted", "first", "second", "waited"),
    [
        ("mutex_lock", 1, 0, 0, False), ("mutex_lock", 1, 0, 1, True), ("cond_wait", 1, 0, 0, True),
        ("cond_timedwait", 1, 0, 0, True), ("sema_wait", 99_999, 1, 0, False), ("sema_wait", 100_000, 1, 0, True),
        ("sema_wait", 1, 0, 0, True), ("sema_wait", 1, -1, 0, True), ("thr_join", 99_999, 0, 0, False),
        ("thr_join", 100_000, 0, 0, True), ("barrier_wait", 10**6, 0, 0, False), ("thr_suspend", 10**6, 0, 0, False),
    ],
)  # fmt: skip
def test_when_a_call_waits(interface, lasted, first, second, waited):
    """`block?` is the second number of the second record, the count of a semaphore that of the first."""
    end = (interface, 2, 1, lasted, 0, second)
    found = made((interface, 1, 1, 0, 64, first), end, ("thr_self", 0, 1, lasted + 1, 0, 0))
    assert waits_of(found) == ([0] if waited else [])
    unfinished = made((interface, 1, 1, 0, 64, first), ("thr_self", 0, 2, 5, 0, 0))
    assert waits_of(unfinished) == [0]
    assert waits_of(made((interface, 1, 1, 0, 64, first), ("thr_self", 0, 1, 5, 0, 0))) == []


def test_a_join_waits_for_the_end_of_its_thread():
    for end_at, expected in ((0, []), (1, [0]), (2, [0]), (3, [])):
        rows_of = [("thr_join", 1, 1, 1, 9, 0), ("thr_self", 0, 3, 2, 0, 0), ("thr_join", 2, 1, 10**7, 0, 0),
                   ("thr_self", 0, 1, 10**7 + 1, 0, 0)]  # fmt: skip
        rows_of.insert(end_at, ("thr_exit", 0, 2, 0, 0, 0))
        assert waits_of(made(*rows_of), {(1, 9): 2}) == expected
    found = made(("thr_suspend", 1, 1, 0, 9, 0), ("thr_suspend", 2, 1, 1, 0, 0))
    assert (waits_of(found, {(1, 9): 1}), waits_of(found, {(1, 9): 2})) == ([0], [])


def test_the_last_at_each_barrier_does_not_wait():
    """Threads 1 to 3 at barrier 64 while threads 4 and 5 meet at barrier 80 twice."""
    rows_of = (
        ("barrier_wait", 1, 1, 0, 64, 0), ("barrier_wait", 1, 4, 1, 80, 0), ("barrier_wait", 1, 2, 2, 64, 0),
        ("barrier_wait", 1, 5, 3, 80, 0), ("barrier_wait", 2, 4, 4, 0, 0), ("barrier_wait", 1, 4, 5, 80, 0),
        ("barrier_wait", 2, 5, 6, 0, 0), ("barrier_wait", 1, 3, 7, 64, 0), ("barrier_wait", 1, 5, 8, 80, 0),
        ("barrier_wait", 2, 5, 9, 0, 0), ("barrier_wait", 2, 4, 10, 0, 0), ("barrier_wait", 2, 3, 11, 0, 0),
        ("barrier_wait", 2, 1, 12, 0, 0), ("barrier_wait", 2, 2, 13, 0, 0),
    )  # fmt: skip
    rows = assemble.waits(made(*rows_of), {}, np.zeros(6, np.int32))
    assert np.flatnonzero(rows).tolist() == [0, 1, 2, 5], "3, 7 and 8 are the last ones"


def test_who_changes_the_state_of_another_thread():
    rows_of = (
        ("thr_create", 2, 1, 0, 0, 9), ("thr_create", 2, 1, 1, 1, 9), ("thr_create", 2, 1, 2, 0, 0),
        ("thr_continue", 0, 1, 3, 9, 0), ("thr_continue", 0, 1, 4, 9, 1), ("thr_continue", 0, 1, 5, 8, 0),
        ("thr_suspend", 1, 1, 6, 9, 0), ("thr_suspend", 2, 1, 7, 0, 0), ("thr_suspend", 1, 1, 8, 9, 0),
        ("thr_suspend", 2, 1, 9, 1, 0), ("thr_suspend", 2, 1, 10, 0, 0), ("thr_continue", 0, 1, 11, 7, 0),
        ("thr_continue", 0, 1, 12, 9, 0),
    )  # fmt: skip
    found, threads = made(*rows_of), {(1, 9): 2, (1, 8): 1, (2, 7): 3}
    needed = np.zeros(len(rows_of), np.bool_)
    needed[12] = True
    other = assemble.effects(found, threads, np.array([0, 1, 1, 2], np.int32), needed)
    assert list(zip(other.event.tolist(), other.thread.tolist(), strict=True)) == [(0, 2), (3, 2), (7, 2)]


@pytest.mark.parametrize(
    ("waited", "lwp", "needed"),
    [([], (0, 1, 0, 2), [0, 1, 3]), ([0], (0, 1, 0, 2), [0, 1, 2, 3]), ([3], (0, 1, 0, 2), [0, 1, 3]),
     ([2], (0, 1, 0, 2), [0, 1, 3]), ([], (0, 1, 0, 1), [0, 1]), ([], (1, 0, 0, 0), [0, 1, 2]),
     ([1], (0, 1, 0, 1), [0, 1, 3])],
)  # fmt: skip
def test_records_that_show_a_change_of_their_own_thread(waited, lwp, needed):
    """Records of threads 5, 7, 5 and 7: the first of each, that on another LWP, and what follows a wait of the same."""
    calls = SimpleNamespace(
        code=np.zeros(4), by_thread=np.array([0, 2, 1, 3]), thread=np.array([5, 7, 5, 7], np.uint32)
    )
    waiting = np.isin(np.arange(4), waited)
    found = assemble.needed_for_own_state(calls, waiting, np.array(lwp, np.uint8))
    assert np.flatnonzero(found).tolist() == needed
    none = SimpleNamespace(code=np.zeros(0), by_thread=np.zeros(0, np.intp), thread=np.zeros(0, np.uint32))
    assert assemble.needed_for_own_state(none, np.zeros(0, np.bool_), np.zeros(0, np.uint8)).tolist() == []


def test_records_of_processor_time_that_count():
    """The last one of a thread that neither waited nor ended before; a second value for the same is one of them."""
    passing, last = cpu_time_codes()
    plain, first, ended = (record_code(*of) for of in (("mutex_init", 0), ("mutex_lock", 1), ("thr_exit", 0)))
    of_threads = (
        (passing,), (plain, last), (first, passing), (ended, passing), (passing,), (passing, plain),
        (plain, passing, passing), (plain, first, passing), (first, plain, last),
    )  # fmt: skip
    code = np.array([each for codes in of_threads for each in codes], np.uint16)
    thread = np.array([number for number, codes in enumerate(of_threads) for _ in codes], np.uint32)
    kept = assemble._without_samples(code, thread)
    assert kept.tolist() == [1, 2, 3, 5, 9, 10, 12, 13, 14, 16, 17, 18]
    mixed = np.argsort(-thread.astype(int), kind="stable")
    assert sorted(mixed[assemble._without_samples(code[mixed], thread[mixed])].tolist()) == kept.tolist()
    one = np.zeros(2, np.uint32)
    assert assemble._without_samples(np.array([plain, last], np.uint16), one).tolist() == [0, 1]
    assert assemble._without_samples(np.array([last, passing], np.uint16), one).tolist() == []
    none = code == plain
    assert assemble._without_samples(code[none], thread[none]).tolist() == [0, 1, 2, 3, 4]


def test_what_a_second_record_has_from_the_first(tmp_path):
    """The object of the call; a stack is none, nor is the number of a thread."""
    write_set(tmp_path, """
        0 lwp1 t1 thr_create 1 4096 0 0 0 0
        1 lwp1 t1 thr_create 2 0 9
        2 lwp1 t1 thr_join 1 9
        3 lwp1 t1 thr_join 2 9 7
        4 lwp1 t1 sema_wait 1 0x10 1
        5 lwp1 t1 sema_wait 2 22
    """)  # fmt: skip
    trace = open_trace(tmp_path)
    assert trace.pairs.tolist() == [1, 0, 3, 2, 5, 4]
    shown = [[(each.name, each.text, each.note) for each in trace.payloads.decode(event).arguments]
             for event in (1, 3, 5)]  # fmt: skip
    assert shown == [
        [("rval", "0", ""), ("new_tid", "9", "")], [("departed", "9", ""), ("status", "0x7", ""), ("rval", "0", "")],
        [("rval", "22", "EINVAL"), ("sema", "0x10", "from the first record")],
    ]  # fmt: skip


def test_numbers_of_a_record_in_no_table(tmp_path):
    """They are shown of the last record of a thread too, whose code says that it is the last."""
    (tmp_path / "tr.0000001.001").write_text("1:0:1:1:1:300:-4:9:7:0:0:0:0\n1:1:1:1:1:301:-5:1:8:0:0:0:0\n")
    trace = open_trace(tmp_path)
    shown = [[(each.name, each.value) for each in trace.payloads.decode(event).arguments][:4] for event in (0, 1)]
    assert shown == [
        [("event1", 300), ("event2", -4), ("which", 9), ("a1", 7)],
        [("event1", 301), ("event2", -5), ("which", 1), ("a1", 8)]
    ]  # fmt: skip
