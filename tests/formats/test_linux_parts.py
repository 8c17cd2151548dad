"""Parts of the readers of Linux by hand: pages of the ring buffer, formats, and from columns to a trace."""

from __future__ import annotations

import struct
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from satview.base.errors import TraceFormatError
from satview.events import linux
from satview.events.states import READY, STATE_BY_NAME
from satview.formats.linux import records
from satview.formats.linux.reader import trace_from_schedule
from satview.formats.linux.records import (
    CpuSwitches,
    Cursor,
    Metadata,
    Points,
    RecordDetails,
    RecordField,
    Records,
    Schedule,
    States,
    Tasks,
    TracepointFormat,
    WakeUps,
    lane_value,
    parse_format,
    read_header_info,
    read_names,
    schedule_of,
)
from satview.formats.linux.trace_dat import Pages, Walked, walk
from satview.store.problems import Problems
from satview.store.trace import NumberPayloads, Trace
from tests.helpers.columns import ints

SLEEPING = STATE_BY_NAME["SLEEPING"].value
PAGE = 64


# ---- pages of the ring buffer ------------------------------------------------------------------------------------


def word(order: str, kind: int, delta: int) -> bytes:
    """Return the first word of an event: bit fields begin at the low end in little-endian files."""
    return struct.pack(f"{order}I", kind | delta << 5 if order == "<" else kind << 27 | delta)


def page(order: str, time: int, content: bytes, commit: int | None = None, commit_bytes: int = 8) -> bytes:
    commit = len(content) if commit is None else commit
    head = struct.pack(f"{order}q{'Q' if commit_bytes == 8 else 'I'}", time, commit)
    return (head + content).ljust(PAGE, b"\xaa")


def walked(order: str, *pages: bytes, cpus: tuple[int, ...] = (), commit_bytes: int = 8) -> Walked:
    data = np.frombuffer(b"".join(pages), np.uint8)
    at = np.arange(len(pages), dtype=np.int64) * PAGE
    return walk(data, Pages(at, ints(*(cpus or range(len(pages)))), PAGE, commit_bytes), order)


def rows(found: Walked) -> list[tuple[int, int, int, int]]:
    """Return CPU, time, offset and bytes of every record."""
    records = found.records
    columns = (records.cpu, records.time_ns, records.offsets, records.size)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("order", "<>")
def test_events_of_a_page(order):
    content = word(order, 2, 5) + b"12345678" + word(order, 1, 7) + b"abcd"
    found = walked(order, page(order, 1000, content))
    assert rows(found) == [(0, 1005, 20, 8), (0, 1012, 32, 4)]
    assert (found.lossy.tolist(), found.damaged.tolist()) == ([], [])
    assert found.records.bytes_of(0) == b"12345678"


@pytest.mark.parametrize("order", "<>")
def test_events_that_say_their_length_behind_their_head(order):
    content = word(order, 0, 3) + struct.pack(f"{order}I", 4 + 6) + b"123456" + b"\0\0" + word(order, 1, 1) + b"wxyz"
    assert rows(walked(order, page(order, 10, content))) == [(0, 13, 24, 8), (0, 14, 36, 4)]


@pytest.mark.parametrize("order", "<>")
def test_times_that_need_more_bits(order):
    extend = word(order, 30, 9) + struct.pack(f"{order}I", 3)  # 3 << 27 and 9 later
    stamp = word(order, 31, 77) + struct.pack(f"{order}I", 5)  # at (top of the time before) | 5 << 27 | 77
    one = word(order, 1, 2) + b"1234"
    top = 3 << 59
    found = rows(walked(order, page(order, top + 100, extend + one + stamp + one)))
    assert [time for _, time, _, _ in found] == [top + 100 + (3 << 27) + 9 + 2, top + (5 << 27) + 77 + 2]


@pytest.mark.parametrize("order", "<>")
def test_padding_is_skipped_and_ends_a_page_where_it_has_no_time(order):
    gap = word(order, 29, 4) + struct.pack(f"{order}I", 8) + b"...."  # 4 + 8 bytes that were taken back
    one = word(order, 1, 2) + b"1234"
    for rest in (b"????", bytes(4)):
        found = walked(order, page(order, 100, gap + one + word(order, 29, 0) + rest + one))
        assert (rows(found), found.damaged.tolist()) == ([(0, 102, 32, 4)], [])
    last = word(order, 29, 4) + struct.pack(f"{order}I", 4)  # all that is left of the page
    found = walked(order, page(order, 100, one + last))
    assert (rows(found), found.damaged.tolist()) == ([(0, 102, 20, 4)], [])


def test_what_is_behind_the_used_bytes_is_not_read():
    one = word("<", 1, 2) + b"1234"
    assert len(rows(walked("<", page("<", 100, one * 3, commit=16)))) == 2
    assert len(rows(walked("<", page("<", 100, one * 3, commit=15)))) == 1
    found = walked("<", page("<", 100, one * 6, commit=48))  # as much as fits a page of 64 bytes
    assert (len(rows(found)), found.damaged.tolist()) == (6, [])
    for commit in (49, 56, 0xFFFFF):
        found = walked("<", page("<", 100, one * 6, commit=commit), page("<", 200, one), cpus=(0, 1))
        assert ([cpu for cpu, *_ in rows(found)], found.damaged.tolist()) == ([0] * 6 + [1], [0])


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("words", [1, 27, 28])
def test_records_whose_words_are_in_their_first_word(order, words):
    """Up to 28 of them."""
    content = word(order, words, 2) + bytes(4 * words) + word(order, 1, 3) + b"last"
    data = np.frombuffer((struct.pack(f"{order}qQ", 100, len(content)) + content).ljust(256, b"\xaa"), np.uint8)
    found = walk(data, Pages(ints(0), ints(6), 256, 8), order)
    assert rows(found) == [(6, 102, 20, 4 * words), (6, 105, 24 + 4 * words, 4)]


def test_lost_events_and_small_words_of_used_bytes():
    one = word("<", 1, 2) + b"1234"
    found = walked("<", page("<", 100, one), page("<", 200, one, commit=8 | 1 << 31), cpus=(4, 2))
    assert rows(found) == [(4, 102, 20, 4), (2, 202, 84, 4)]
    assert found.lossy.tolist() == [1]
    found = walked("<", page("<", 100, one * 6, commit_bytes=4), commit_bytes=4)
    assert [at for _, _, at, _ in rows(found)] == [16, 24, 32, 40, 48, 56]


def test_an_event_that_runs_over_the_end_costs_its_page_from_there_on():
    one = word("<", 1, 2) + b"1234"
    found = walked("<", page("<", 100, one + word("<", 3, 1) + b"12345678"), page("<", 50, one))
    assert rows(found) == [(0, 102, 20, 4), (1, 52, 84, 4)]
    assert found.damaged.tolist() == [0]


# ---- formats and records -----------------------------------------------------------------------------------------

SWITCH = """name: sched_switch
ID: 316
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:char prev_comm[4];\toffset:8;\tsize:4;\tsigned:0;
\tfield:pid_t prev_pid;\toffset:12;\tsize:4;\tsigned:1;
\tfield:long prev_state;\toffset:16;\tsize:8;\tsigned:1;
\tfield:__data_loc char[] note;\toffset:24;\tsize:4;\tsigned:0;
\tfield:char next_comm[4];\toffset:28;\tsize:4;\tsigned:0;
\tfield:pid_t next_pid;\toffset:32;\tsize:4;\tsigned:1;
\tfield:u8 raw[3];\toffset:36;\tsize:3;\tsigned:0;

print fmt: "%s", __print_flags(REC->prev_state, "|", { 0x01, "S" }, { 2, "D" })
"""


def test_a_format_says_where_fields_are():
    known = parse_format(SWITCH, "sched")
    assert known is not None
    assert (known.ident, known.group, known.name) == (316, "sched", "sched_switch")
    kinds = {name: (each.offset, each.size, each.is_signed, each.is_text, each.is_dynamic, each.is_number)
             for name, each in known.fields.items()}  # fmt: skip
    assert kinds == {
        "common_type": (0, 2, False, False, False, True), "common_pid": (4, 4, True, False, False, True),
        "prev_comm": (8, 4, False, True, False, False), "prev_pid": (12, 4, True, False, False, True),
        "prev_state": (16, 8, True, False, False, True), "note": (24, 4, False, False, True, False),
        "next_comm": (28, 4, False, True, False, False), "next_pid": (32, 4, True, False, False, True),
        "raw": (36, 3, False, False, False, False),
    }  # fmt: skip
    assert known.state_flags == ((1, "S"), (2, "D"))
    assert parse_format(SWITCH.replace("name:", "nam:"), "") is None
    assert parse_format(SWITCH.replace("ID:", "I:"), "") is None
    first = f"name: a\nID: 5\n{'x' * 2**20}"
    for cut, names in ((0, ["b"]), (1, [])):  # the first MiB counts
        field = "\n\tfield:int b;\toffset:8;\tsize:4;"
        known = parse_format(first[: 2**20 - len(field) + cut] + field, "")
        assert known is not None
        assert list(known.fields) == names
    other = parse_format(SWITCH[: SWITCH.index("print fmt")], "")
    assert other is not None
    assert other.state_flags[:2] == ((1, "S"), (2, "D"))
    assert len(other.state_flags) == 8


@pytest.mark.parametrize(("state", "name"), [(0, "READY"), (1, "SLEEPING"), (2, "UNINTERRUPTIBLE"), (3, "SLEEPING"),
                                             (0x100, "READY"), (0x102, "UNINTERRUPTIBLE")])  # fmt: skip
def test_a_state_is_its_lowest_flag(state, name):
    assert lane_value(state, ((1, "S"), (2, "D"))) == STATE_BY_NAME[name].value


def _record(order: str, kind: int, pid: int, before: int, state: int, after: int) -> bytes:
    fixed = struct.pack(
        f"{order}HxxI4siqI4si3sx", kind, pid, b"one", before, state, 40 | 6 << 16, b"two\0", after, b"\1\2\3"
    )
    return fixed + b"hello\0"


@pytest.mark.parametrize("order", "<>")
def test_records_become_switches_and_points(order):
    known = parse_format(SWITCH, "sched")
    parts = [_record(order, 316, 7, 7, 1, 8), _record(order, 316, 8, 8, 2, 0), struct.pack(f"{order}HxxI", 99, 5),
             _record(order, 316, 0, 0, 0, 9)[:20]]  # fmt: skip
    sizes = [len(part) for part in parts]
    at = np.cumsum([0, *sizes[:-1]])
    data = np.frombuffer(b"".join(parts), np.uint8)
    records = Records(data, ints(10, 20, 30, 40), ints(0, 1, 0, 1), at, ints(*sizes), order)
    tasks = Tasks({5: "five"})
    found = schedule_of(records, {316: known}, tasks)
    switches = found.switches
    assert switches.time_ns.tolist() == [10, 20, 40]
    assert switches.record.tolist() == [0, 1, 3]
    assert switches.cpu.tolist() == [0, 1, 1]
    assert switches.before.tolist() == [7, 8, 0]
    assert switches.after.tolist() == [8, 0, 0]  # the last record is cut: what is not there is 0
    assert switches.state.tolist() == [SLEEPING, STATE_BY_NAME["UNINTERRUPTIBLE"].value, READY]
    assert (found.points.record.tolist(), found.points.thread.tolist()) == ([2], [5])
    assert found.points.code.tolist() == [linux.POINT]
    assert found.unknown == 1
    assert tasks.names == {5: "five", 7: "one", 8: "one"}  # 8 is `two` first, then leaves as `one`
    details = RecordDetails(records, {316: known})
    name, values = details.text(0)
    assert name == "sched_switch"
    assert dict(values) == {"prev_comm": "one", "prev_pid": 7, "prev_state": 1, "note": "hello", "next_comm": "two",
                            "next_pid": 8, "raw": "01 02 03"}  # fmt: skip
    assert details.text(2) == ("tracepoint 99", ())
    assert dict(details.text(3)[1]) == {"prev_comm": "one", "prev_pid": 0, "next_comm": ""}
    assert details.raw(2) == parts[2]


def test_wake_ups_by_formats_with_and_without_a_cpu():
    """A number of a format that no record can have, 65536, is passed over."""

    def fields(*names: str) -> dict[str, RecordField]:
        return {
            name: RecordField(name, 8 + 4 * row, 4, is_signed=True, is_text=False, is_dynamic=False)
            for row, name in enumerate(names)
        }

    formats = {
        number: TracepointFormat(number, "sched", name, fields(*names), ())
        for number, name, names in (
            (5, "sched_waking", ("pid", "prio", "target_cpu")), (6, "sched_wakeup_new", ("pid",)),
            (0xFFFF, "timer_start", ()), (0x10000, "sched_switch", ("prev_pid",)), (8, "sched_wakeup", ("pid",)),
        )
    }  # fmt: skip
    data = b"".join(struct.pack("<HBBiiii", number, 0, 0, 9, 100, 20, 3) for number in (5, 6, 0xFFFF, 8, 7))
    at = 20 * np.arange(5)
    tasks = Tasks()
    found = schedule_of(Records(np.frombuffer(data, np.uint8), at + 1, at * 0 + 2, at, at * 0 + 20), formats, tasks)
    wakes, points = found.wakeups, found.points
    columns = (wakes.time_ns, wakes.record, wakes.cpu, wakes.waker, wakes.thread, wakes.prio, wakes.target_cpu)
    assert [column.tolist() for column in columns] == [
        [1, 21], [0, 1], [2, 2], [9, 9], [100, 100], [20, 0], [3, -1]
    ]  # fmt: skip
    codes = linux.point_codes()
    assert points.code.tolist() == [codes["timer_start"], codes["sched_wakeup"], linux.POINT]
    assert (points.record.tolist(), points.thread.tolist(), found.unknown) == ([2, 3, 4], [9] * 3, 1)
    assert (len(found.switches.time_ns), tasks.names) == (0, {})


@pytest.mark.parametrize(
    ("at", "length", "text"),
    [(5, 5, "hello"), (6, 4, "ello"), (5, 6, "hello!"), (5, 7, "hello!"), (5, 0, ""), (12, 4096, "x" * 4096),
     (12, 4097, "x" * 4096), (12, 0xFFFF, "x" * 4096), (12, 4095, "x" * 4095), (5000, 9, "")],
)  # fmt: skip
def test_texts_whose_place_and_length_are_in_the_record(at, length, text):
    """Both have 16 bits; more than 4,096 characters are damage."""
    field = SimpleNamespace(offset=0, size=4, is_text=False, is_dynamic=True, is_number=False, is_signed=False)
    raw = struct.pack("<HH", at, length) + b"?hello!\0" + b"x" * 4900
    assert records._value(raw, field, "little") == text


def test_names_that_records_spell_out():
    """Of each thread the last one; the idle thread gets none, and a record without a name takes none away."""
    data = np.frombuffer(b"old\0new\0init" + b"idle" + bytes(4), np.uint8)
    begins = 4 * np.arange(5)
    spelled = Records(data, begins, begins * 0, begins, begins * 0 + 4)
    name = RecordField("next_comm", 0, 4, is_signed=False, is_text=True, is_dynamic=False)
    tasks = Tasks({8: "eight"})
    records._add_names(spelled, np.arange(5), ints(7, 7, 1, 0, 8), name, tasks)
    assert tasks.names == {7: "new", 1: "init", 8: "eight"}


def test_numbers_of_one_to_eight_bytes():
    data = np.frombuffer(bytes([0xFF, 0x80, 3, 4, 5, 6, 7, 0x88, 9]), np.uint8)
    records = Records(data, ints(0), ints(0), ints(1), ints(8))
    for size in (1, 2, 4, 8):
        for is_signed in (False, True):
            expected = int.from_bytes(data[1 : 1 + size].tobytes(), "little", signed=is_signed)
            found = records.numbers(ints(0), 0, size, is_signed=is_signed).tolist()
            assert [value & (1 << 64) - 1 for value in found] == [expected & (1 << 64) - 1]
    assert records.numbers(ints(0), 7, 1, is_signed=False).tolist() == [9]
    assert records.numbers(ints(0), 7, 2, is_signed=False).tolist() == [0]


def test_a_cursor_says_where_a_file_ends(tmp_path):
    cursor = Cursor(b"\1\2\3\4ab\0\5", tmp_path / "x", 1, "big", base=100)
    assert (cursor.left, cursor.number(2, "a"), cursor.position) == (7, 0x0203, 3)
    assert cursor.take(1, "b") == b"\4"
    assert (cursor.text("c"), cursor.position, cursor.left) == ("ab", 7, 1)
    with pytest.raises(TraceFormatError, match="the file ends inside the end") as refused:
        cursor.number(2, "the end")
    assert (refused.value.offset, cursor.position) == (107, 7)
    with pytest.raises(TraceFormatError, match="inside the end"):
        cursor.take(-1, "the end")
    assert cursor.take(1, "d") == b"\5"
    assert cursor.take(0, "nothing") == b""
    for length in (4095, 4096, 4097, 8192):
        cursor = Cursor(b"." + b"x" * length + b"\0y", tmp_path / "x", 1)
        assert (cursor.text("a name"), cursor.left) == ("x" * length, 1)
    with pytest.raises(TraceFormatError):
        Cursor(b"no end", tmp_path / "x").text("a name")


@pytest.mark.parametrize(("size", "expected"), [(4, 4), (8, 8), (2, 8), (16, 8)])
def test_the_word_of_used_bytes_has_four_or_eight(tmp_path, size, expected):
    text = f"\tfield: u64 timestamp;\toffset:0;\tsize:8;\n\tfield: local_t commit;\toffset:8;\tsize:{size};\n".encode()
    data = b"header_page\0" + struct.pack("<Q", len(text)) + text + b"header_event\0" + struct.pack("<Q", 1) + b"x"
    found, cursor = Metadata(), Cursor(data, tmp_path / "x")
    read_header_info(cursor, found)
    assert (found.commit_bytes, cursor.left) == (expected, 0)


def test_names_are_lines_of_a_number_and_a_name(tmp_path):
    text = b"1 init\n 22 a b\n-3 x\nx y\n\xd9\xa3 z\n12345678901 long\n1234567890 ten\n"
    found = Metadata()
    read_names(Cursor(struct.pack("<Q", len(text)) + text, tmp_path / "x"), found)
    assert found.names == {1: "init", 22: "a b", 1234567890: "ten"}


def test_numbers_in_memory_are_payload_words():
    payloads = NumberPayloads((np.array([5, -1], np.int8), np.array([1 << 40, 7], np.int64)))
    assert payloads.values(1) == (-1, 7)
    assert payloads.words(0).tolist() == [5, 0, 0, 256]
    assert payloads.words(1).tolist() == [0xFFFFFFFF, 0xFFFFFFFF, 7, 0]
    assert payloads.raw(0) == bytes([5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0])
    both = np.array([1, 0])
    assert [payloads.column(both, at).tolist() for at in range(-1, 5)] == [
        [0, 0], [0xFFFFFFFF, 5], [0xFFFFFFFF, 0], [7, 0], [0, 256], [0, 0]
    ]  # fmt: skip
    assert [each.tolist() for each in payloads.pair(both, 1)] == [[0xFFFFFFFF, 0], [7, 0]]
    assert payloads.block(both, 3).tolist() == [[0xFFFFFFFF, 0xFFFFFFFF, 7], [5, 0, 0]]
    assert payloads.word_counts(both).tolist() == [4, 4]


# ---- from columns to a trace -------------------------------------------------------------------------------------


def switches(*rows_of: tuple[int, int, int, int, int]) -> CpuSwitches:
    """Return switches: time, CPU, who leaves, its state, who comes; priorities are their numbers and 1000."""
    time, cpu, before, state, after = (ints(*column) for column in zip(*rows_of, strict=True))
    return CpuSwitches(time, np.arange(len(time)), cpu, before, before + 1000, state, after, after + 1000)


class Said:
    """What a file says of records beyond the numbers that are stored of all: name, arguments and bytes."""

    def __init__(self, *records: tuple[str, tuple[tuple[str, int | str], ...], bytes]) -> None:
        self.records = records

    def text(self, record: int) -> tuple[str, tuple[tuple[str, int | str], ...]]:
        return self.records[record][:2] if self.records else ("", ())

    def raw(self, record: int) -> bytes:
        return self.records[record][2] if self.records else b""


def opened(
    parts: CpuSwitches, wakeups: WakeUps | None = None, **more: object
) -> tuple[Trace, dict[str, tuple[str, int]]]:
    """Return a trace, and text and count of its problems."""
    problems = Problems()
    values = {"points": Points(), "tasks": Tasks(), "details": Said(), **more}
    schedule = Schedule("made", (("KEY", "value"),), parts, wakeups or WakeUps(), **values)
    trace = trace_from_schedule(Path("x"), "made", schedule, problems)
    return trace, {each.kind.slug: (each.detail, each.count) for each in problems}


def events(trace: Trace) -> list[tuple[int, int, str, str]]:
    """Return time, CPU, name and thread (PID:TID) of every event."""
    table, threads = trace.events, trace.threads
    return [
        (int(table.time_cycles[row]), int(table.cpu[row]), trace.catalogue.name(int(table.code[row])),
         f"{threads.pid[table.thread[row]]}:{threads.tid[table.thread[row]]}")
        for row in range(len(table))
    ]  # fmt: skip


def test_a_switch_is_two_events():
    trace, problems = opened(switches((10, 0, 0, SLEEPING, 7), (30, 0, 7, SLEEPING, 0)), cpus=3)
    assert events(trace) == [(10, 0, "READY", "0:0"), (10, 0, "RUNNING", "7:7"), (30, 0, "SLEEPING", "7:7"),
                             (30, 0, "RUNNING", "0:0")]  # fmt: skip
    assert [trace.payloads.values(row) for row in range(4)] == [(0, 1000, 7), (7, 1007, 0), (7, 1007, 0), (0, 1000, 7)]
    assert trace.threads.names == ("", "swapper/0", "")
    assert trace.processes.names == ("", "swapper", "")
    for column in (trace.processes.parent_pid, trace.processes.created_cycles, trace.processes.destroyed_cycles):
        assert column.tolist() == [-1, -1, -1]
    assert (trace.processes.pid.tolist(), trace.threads.process.tolist()) == ([-1, 0, 7], [0, 1, 2])
    assert (trace.cpu_count, trace.window.start, trace.slot_count) == (3, 10, 4)
    assert dict(trace.header.pairs) == {"SYS_RELEASE": "Linux", "SOURCE": "made", "KEY": "value"}
    assert problems == {"foreign": ("made: names, states and events are those of Linux", 1)}
    assert [trace.states.of(row).tolist() for row in range(3)] == [[], [0, 3], [1, 2]]


def test_arguments_of_events_and_what_their_file_has_besides():
    """Position and words in the payload are those of the stored numbers; what the file says has none."""
    said = Said(("sched_switch", (("prev_prio", 5), ("note", "hello")), b"bytes"), ("odd", (("pid", 9), ("x", 1)), b""))
    points = Points(ints(20), ints(1), ints(0), ints(7), ints(linux.POINT))
    trace, _ = opened(switches((10, 0, 7, SLEEPING, 8)), points=points, tasks=Tasks({8: "eight"}), details=said)
    shown = [[(each.name, each.value, each.text, each.first_word, each.words, each.note)
              for each in trace.payloads.decode(row).arguments] for row in range(3)]  # fmt: skip
    besides = [("prev_prio", 5, "5", 0, 0, ""), ("note", "hello", "hello", 0, 0, "")]
    name = ("tracepoint", "sched_switch", "sched_switch", 0, 0, "")
    assert shown == [
        [name, ("pid", 7, "7", 0, 2, ""),
         ("prio", 1007, "1007", 2, 2, ""), ("by_pid", 8, "8", 4, 2, "eight"), *besides],
        [name, ("pid", 8, "8", 0, 2, "eight"),
         ("prio", 1008, "1008", 2, 2, ""), ("prev_pid", 7, "7", 4, 2, ""), *besides],
        [("tracepoint", "odd", "odd", 0, 0, ""), ("pid", 9, "9", 0, 0, ""), ("x", 1, "1", 0, 0, "")],
    ]  # fmt: skip
    assert [trace.payloads.decode(row).raw for row in range(3)] == [b"bytes", b"bytes", bytes(24)]


def test_the_idle_thread_of_every_cpu_is_one_of_its_own():
    trace, _ = opened(switches((10, 0, 0, 0, 7), (11, 3, 0, 0, 8)))
    assert [name for name in trace.threads.names if name] == ["swapper/3", "swapper/0"]
    assert trace.threads.tid[1:3].tolist() == [3, 0]
    assert trace.cpu_count == 4


def test_a_switch_that_is_missing_is_listed_and_leaves_a_thread_unknown():
    trace, problems = opened(switches((10, 0, 0, 0, 7), (20, 0, 8, SLEEPING, 0), (30, 1, 5, SLEEPING, 0)))
    assert [row for row in events(trace) if row[2] == "UNKNOWN"] == [(20, 0, "UNKNOWN", "7:7")]
    assert problems["lost-events"][0].startswith("switches are missing: a thread leaves a CPU that another one had")
    assert problems["lost-events"][1] == 1
    trace, problems = opened(switches((10, 0, 5, SLEEPING, 0), (20, 0, 8, SLEEPING, 0)))
    assert "UNKNOWN" not in [row[2] for row in events(trace)]  # nobody had it: the idle thread is never unknown
    assert problems["lost-events"][1] == 1
    _, problems = opened(switches((10, 0, 5, SLEEPING, -1), (20, 0, 8, SLEEPING, 0)))
    assert "lost-events" not in problems  # the file does not say who came


def test_a_wake_up_is_two_events_and_an_early_one_is_none():
    parts = switches((10, 0, 0, 0, 7), (30, 0, 7, SLEEPING, 8))
    wakes = WakeUps(
        ints(20, 40, 50), ints(10, 11, 12), ints(0, 0, 1), ints(-1, -1, 0), ints(7, 7, 9), ints(5, 6, 7), ints(1, 2, -1)
    )
    trace, _ = opened(parts, wakes)
    assert events(trace)[2:] == [
        (20, 0, "sched_waking", "7:7"),  # it runs: the switch says what becomes of it
        (30, 0, "SLEEPING", "7:7"), (30, 0, "RUNNING", "8:8"),
        (40, 0, "sched_waking", "8:8"), (40, 0, "READY", "7:7"),
        (50, 1, "sched_waking", "0:1"), (50, 1, "READY", "9:9"),
    ]  # fmt: skip
    assert trace.payloads.values(2) == (7, 5, 1)
    assert [trace.payloads.values(row) for row in range(5, 9)] == [(7, 6, 2), (7, 6, 8), (9, 7, -1), (9, 7, 0)]
    trace, _ = opened(parts, wakes, wakes_make_ready=False)
    assert [row[2] for row in events(trace) if row[0] >= 40] == ["sched_waking", "sched_waking"]


def test_points_and_states_are_events_too():
    trace, _ = opened(CpuSwitches(), points=Points(ints(5), ints(0), ints(1), ints(7), ints(linux.POINT)),
                      states=States(ints(5, 6), ints(0, 1), ints(1, 1), ints(7, 7), ints(READY, SLEEPING),
                                    ints(21, 0)))  # fmt: skip
    assert [(time, cpu, name) for time, cpu, name, _ in events(trace)] == [
        (5, 1, "tracepoint"), (5, 1, "READY"), (6, 1, "SLEEPING")
    ]  # fmt: skip
    assert trace.payloads.values(1) == (7, 21, -1)
    assert trace.payloads.values(2) == (7, 0, -1)


def test_a_state_that_a_file_says_counts_whoever_runs():
    """Unlike a wake-up."""
    states = States(ints(20), ints(9), ints(0), ints(7), ints(READY), ints(0))
    trace, _ = opened(switches((10, 0, 0, 0, 7)), states=states)
    assert events(trace)[1:] == [(10, 0, "RUNNING", "7:7"), (20, 0, "READY", "7:7")]


def test_names_and_processes_come_from_the_tasks():
    tasks = Tasks({7: "seven", 8: "eight", 9: "nine"}, {7: 70, 8: 70, 9: 1 << 40}, {70: "app"}, {8: 88})
    trace, _ = opened(switches((1, 0, 7, 0, 8), (2, 0, 8, 0, 9), (3, 0, 9, 0, 10)), tasks=tasks)
    assert list(zip(trace.threads.pid.tolist(), trace.threads.tid.tolist(), trace.threads.names, strict=True)) == [
        (-1, -1, ""), (70, 7, "seven"), (70, 88, "eight"), (9, 9, "nine"), (10, 10, "")
    ]  # fmt: skip
    assert dict(zip(trace.processes.pid.tolist(), trace.processes.names, strict=True)) == {
        -1: "", 9: "nine", 10: "", 70: "app"
    }  # fmt: skip


def test_impossible_times_are_left_out_and_listed():
    latest = 1 << 61
    trace, problems = opened(switches((-1, 0, 1, 0, 2), (5, 0, 2, 0, 3), (latest, 0, 3, 0, 4)))
    assert {row[0] for row in events(trace)} == {5}
    assert problems["clock-damaged"] == ("events with impossible times are left out", 4)
    trace, _ = opened(switches((5, 0, 2, 0, 3), (latest - 1, 0, 3, 0, 4)))
    assert int(trace.events.time_cycles[-1]) == latest - 1
    with pytest.raises(TraceFormatError, match="none of its events has a possible time"):
        opened(switches((-1, 0, 1, 0, 2)))
    with pytest.raises(TraceFormatError, match="it has no switch of threads, no wake-up and no other event"):
        opened(CpuSwitches())


def test_cpus_beyond_the_table_share_a_lane():
    trace, problems = opened(switches((5, 255, 2, 0, 3), (6, 256, 3, 0, 4), (7, -5, 4, 0, 5)))
    assert [row[1] for row in events(trace)] == [255, 255, 255, 255, 0, 0]
    assert problems["lwp-lanes"] == ("CPUs from number 255 on share one lane", 1)
    assert trace.cpu_count == 256
    assert "lwp-lanes" not in opened(switches((5, 255, 2, 0, 3)))[1]
