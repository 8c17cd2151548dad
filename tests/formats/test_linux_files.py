"""perf.data and trace.dat in parts, by hand: chains of records, layouts of samples, sections, and every bound."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from satview.base.errors import Cancelled, TraceFormatError
from satview.formats import registry as unpacking
from satview.formats.linux import trace_dat
from satview.formats.linux.reader import open_linux
from satview.formats.linux.records import MAGIC, Cursor, Metadata, Records, Tasks, read_all, read_ftrace_formats
from satview.formats.linux.trace_dat import Pages
from satview.store.problems import Problems
from tests.helpers import linux_scene
from tests.helpers.columns import ints
from tests.helpers.trace_dat import metadata

ORDERS = {"little": "<", "big": ">"}
HERE = Path("x")


def rows(problems: Problems) -> list[tuple[str, str, int | None, int]]:
    return [(each.kind.slug, each.detail, each.offset, each.count) for each in problems]


def refused(what: str, offset: int | None, function: Any, *args: Any) -> None:
    with pytest.raises(TraceFormatError, match=what) as error:
        function(*args)
    assert error.value.offset == offset


# ---- perf.data: records ------------------------------------------------------------------------------------------


def chained(data: bytes, begin: int, end: int, order: str) -> tuple[list[int], list[int]]:
    """Return where records begin, and where one has no length, record by record."""
    found, at = [], begin
    while at + 8 <= end:
        size = int.from_bytes(data[at + 6 : at + 8], order) // 8 * 8
        if size == 0:
            return found, [at]
        if at + size > end:
            break
        found.append(at)
        at += size
    return found, []


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(6))
def test_records_follow_each_other_by_their_lengths(monkeypatch, order, seed):
    """In blocks of 16 words, with records of up to 40, some of no length and one that is cut."""
    monkeypatch.setattr(trace_dat, "_BLOCK_SHIFT", 4)
    rng = np.random.default_rng(seed)
    sizes = [8] + [8 * int(n) for n in rng.integers(1, 40, 60)] + ([0, 16] if seed % 2 else [])
    data = bytes(24) + b"".join(
        struct.pack(ORDERS[order] + "IHH", 9, 0, size + int(rng.integers(0, 8)) * bool(size)).ljust(
            max(size, 8), b"\x01"
        )
        for size in sizes
    )
    for end in (len(data), len(data) - 8, len(data) - 5, 24, 31, 32):
        problems = Problems()
        starts = trace_dat._starts(np.frombuffer(data, np.uint8), 24, end, order, problems)
        expected, bad = chained(data, 24, end, order)
        assert starts.tolist() == expected
        assert rows(problems) == [
            ("section-cut", "a record of no length; what follows it is left out", at, 1) for at in bad
        ]


PARTS = {1 << 16: 7, 1: 8, 2: (90, 100), 4: 5_000, 8: 9, 1 << 6: 10, 1 << 9: 11, 1 << 7: (3, 0), 1 << 8: 12}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("more", [0, 1, 1 << 16, 8 | 1 << 6 | 1 << 9, 1 << 8, 1 << 5, 1 << 5 | 1 << 8 | 1 << 16])
def test_samples_of_every_layout(order, more):
    """Parts come in the order of their bits in the manual; a call chain is between them and the record."""
    kind, end = 2 | 4 | 1 << 7 | 1 << 10 | more, ORDERS[order]
    body = b""
    for bit, value in PARTS.items():
        if kind & bit:
            body += struct.pack(end + "II", *value) if isinstance(value, tuple) else struct.pack(end + "Q", value)
    if kind & 1 << 5:
        body += struct.pack(end + "QQQ", 2, 1, 2)
    record = b"twelve bytes"
    sample = struct.pack(end + "IHH", 9, 0, 8 + len(body) + 4 + 12) + body + struct.pack(end + "I", 12) + record
    data = np.frombuffer(bytes(16) + sample + sample[:-2] + b"..", np.uint8)
    at = ints(16, 16 + len(sample))
    heads = Records(data, at * 0, at * 0, at, at * 0 + (1 << 40), end)
    tasks = Tasks()
    found = trace_dat._samples(heads, ints(0, 1), kind, tasks)
    assert [found.bytes_of(row) for row in range(2)] == [record, record[:-2] + b".."]
    assert (found.time_ns.tolist(), found.cpu.tolist(), found.order) == ([5_000] * 2, [3] * 2, end)
    assert tasks.process == {100: 90}
    assert trace_dat._offsets(kind).end == 8 + len(body) - (24 if kind & 1 << 5 else 0)


def test_a_record_is_never_longer_than_its_sample():
    body = struct.pack("<IIQII", 0, 100, 5, 3, 0)
    for size, expected in ((4, 4), (5, 4), (1 << 30, 4), (1 << 31, 4), (0, 0)):
        sample = struct.pack("<IHH", 9, 0, 8 + len(body) + 8) + body + struct.pack("<I", size) + b"abcdrest"
        heads = Records(np.frombuffer(sample, np.uint8), ints(0), ints(0), ints(0), ints(1 << 40), "<")
        tasks = Tasks()
        found = trace_dat._samples(heads, ints(0), 2 | 4 | 1 << 7 | 1 << 10, tasks)
        assert found.size.tolist() == [expected]
        assert tasks.process == {}, "process 0 is nobody's"


def test_processes_of_the_threads_of_samples():
    """The first one of each counts; numbers from 1 on are somebody's."""
    pairs = ((1, 1), (90, 100), (91, 100), (5, 0), (0, 7), (-1, 8), (9, -1))
    samples = [struct.pack("<IHHiiQIII", 9, 0, 32, *pair, 5, 3, 0, 0) for pair in pairs]
    at = 36 * np.arange(len(pairs))
    heads = Records(np.frombuffer(b"".join(samples), np.uint8), at * 0, at * 0, at, at * 0 + 36, "<")
    tasks = Tasks({}, {100: 90})
    trace_dat._samples(heads, np.arange(len(pairs)), 2 | 4 | 1 << 7 | 1 << 10, tasks)
    assert tasks.process == {100: 90, 1: 1}


def test_threads_by_their_names_and_forks():
    """Of a name: process at 8, thread at 12, text of 16 bytes; of a fork: process at 8, thread at 16."""
    records = [struct.pack("<IHHii16s", 3, 0, 32, *row) for row in ((90, 100, b"one\0junk"), (91, 101, b"\0x"),
               (92, 0, b"idle"), (-1, -1, b"gone"), (93, 103, b"sixteen bytes..."))]  # fmt: skip
    records += [struct.pack("<IHHiiii16s", 7, 0, 40, 95, 90, 105, 100, b"z" * 16)]
    data = np.frombuffer(b"".join(records) + b"behind the end  ", np.uint8)
    at = ints(0, 32, 64, 96, 128, 160)
    heads = Records(data, at * 0, at * 0, at, at * 0 + (1 << 40), "<")
    tasks = Tasks()
    trace_dat._read_tasks(heads, ints(0, 1, 2, 3, 4), ints(5), tasks)
    assert tasks.names == {100: "one", 103: "sixteen bytes..."}
    assert tasks.process == {100: 90, 101: 91, 0: 92, -1: -1, 103: 93, 105: 95}


@pytest.mark.parametrize(
    ("lost", "lost_samples", "expected"),
    [((5,), (), (0, 5)), ((), (7,), (24, 7)), ((5,), (7,), (0, 12)), ((), (), None), ((0,), (), None)],
)
def test_losses_of_both_kinds(lost, lost_samples, expected):
    parts = [struct.pack("<IHHQQ", 2, 0, 24, 1, (*lost, 0)[0]), struct.pack("<IHHQ", 13, 0, 16, (*lost_samples, 0)[0])]
    heads = Records(np.frombuffer(b"".join(parts), np.uint8), ints(0, 0), ints(0, 0), ints(0, 24), ints(99, 99), "<")
    problems = Problems()
    trace_dat._report_lost(heads, ints(0)[: len(lost)], ints(1)[: len(lost_samples)], problems)
    assert rows(problems) == (
        [("lost-events", "perf was too slow: samples are missing", *expected)] if expected else []
    )


# ---- perf.data: head ---------------------------------------------------------------------------------------------


def attributes(*kinds: tuple[int, int, tuple[int, ...]], size: int = 128) -> tuple[Cursor, dict[str, int]]:
    """Return a cursor over attributes (type of event, type of sample, identifiers) of some bytes, from byte 16 on."""
    ids_at = 16 + size * len(kinds)
    data, numbers = bytes(16), b""
    for kind, sample, idents in kinds:
        data += struct.pack("<IIQQQ", kind, size, 0, 1, sample).ljust(size - 16, b"\0")
        data += struct.pack("<QQ", ids_at + len(numbers), 8 * len(idents))
        numbers += struct.pack(f"<{len(idents)}Q", *idents)
    return Cursor(data + numbers, HERE), {"attr_size": size, "attrs_at": 16, "attrs_bytes": size * len(kinds)}


NEEDED = 2 | 4 | 1 << 7 | 1 << 10


def test_what_samples_of_tracepoints_hold():
    cursor, head = attributes((2, NEEDED, (7, 8)), (1, 99, (9,)), (2, NEEDED, ((1 << 64) - 1,)))
    kind, idents = trace_dat._tracepoints(cursor, head, HERE)
    assert (kind, idents.tolist()) == (NEEDED, [0, 7, 8, -1])
    for kinds, what in (
        (((1, NEEDED, ()),), "no tracepoints were recorded"),
        (((2, NEEDED, ()), (2, NEEDED | 1, ())), "its samples of tracepoints are of several layouts"),
        (((2, NEEDED | 1 << 4, ()),), "its samples of tracepoints are of several layouts"),
        (((2, NEEDED & ~2 & ~4, ()),), "its samples have no threads, times;"),
        (((2, 0, ()),), "its samples have no threads, times, CPUs, fields of tracepoints;"),
    ):
        cursor, head = attributes(*kinds)
        refused(what, 16, trace_dat._tracepoints, cursor, head, HERE)


@pytest.mark.parametrize(
    ("size", "total", "is_good"),
    [(64, 64, True), (63, 64, False), (4096, 4096, True), (4097, 4097, False), (128, 127, False), (128, 1 << 24, True),
     (128, (1 << 24) + 1, False)],
)  # fmt: skip
def test_sizes_that_a_list_of_attributes_can_have(monkeypatch, size, total, is_good):
    cursor, head = attributes((2, NEEDED, ()), size=max(size, 64))
    cursor.data = memoryview(bytes(cursor.data).ljust(total + 16 + size, b"\0"))
    head |= {"attr_size": size, "attrs_bytes": total}
    if is_good:
        assert trace_dat._tracepoints(cursor, head, HERE)[0] == NEEDED
    else:
        refused("the list of what was recorded has an impossible size", 16, trace_dat._tracepoints, cursor, head, HERE)


def test_formats_are_behind_the_samples():
    """At the offset and with the bytes that the feature's row says; rows of features before it come first."""
    text = metadata("0.6", ((100, "client"),))
    for features, at in ((2, 8), (3, 24), (2 | 4, 8)):
        data = bytes(at) + struct.pack("<QQ", 64, len(text)) + bytes(48 - at) + text
        found, cursor = Metadata(), Cursor(data, HERE)
        trace_dat._read_tracing_data(cursor, features, 8, found, HERE)
        assert (sorted(found.formats), found.names) == ([200, 316, 317], {100: "client"})
    old, found = metadata("0.5", ((100, "client"),)), Metadata()
    trace_dat._read_tracing_data(Cursor(struct.pack("<QQ", 16, len(old)) + old, HERE), 2, 0, found, HERE)
    assert (len(found.formats), found.names) == (3, {}), "names of threads are there from version 0.6 on"
    refused("it brings no formats of tracepoints", 72, trace_dat._read_tracing_data, Cursor(b"", HERE), 1 | 4, 0,
            Metadata(), HERE)  # fmt: skip
    bad = struct.pack("<QQ", 16, 99) + b"x" * 20
    refused("the formats of tracepoints are damaged", 26, trace_dat._read_tracing_data, Cursor(bad, HERE), 2, 0,
            Metadata(), HERE)  # fmt: skip


def changed(offset: int, value: int, size: int = 8) -> np.ndarray:
    data = bytearray(linux_scene.as_perf_data())
    data[offset : offset + size] = value.to_bytes(size, "little")
    return np.frombuffer(bytes(data), np.uint8)


def test_heads_of_perf_data():
    whole = linux_scene.as_perf_data()
    begin, size = struct.unpack("<QQ", whole[40:56])
    refused("it was written to a pipe, where its head has no offsets", 8, trace_dat.read_perf_data, HERE,
            changed(8, 103), Problems())  # fmt: skip
    refused("it holds no samples", 40, trace_dat.read_perf_data, HERE, changed(48, 0), Problems())
    refused("it holds no samples", 40, trace_dat.read_perf_data, HERE, changed(40, len(whole)), Problems())
    refused("the file ends inside the formats of tracepoints", len(whole) - 1 + size, trace_dat.read_perf_data, HERE,
            changed(40, len(whole) - 1), Problems())  # fmt: skip
    compressed = bytearray(whole)
    compressed[begin : begin + 4] = (81).to_bytes(4, "little")
    refused("its samples are compressed", begin, trace_dat.read_perf_data, HERE,
            np.frombuffer(bytes(compressed), np.uint8), Problems())  # fmt: skip
    problems = Problems()
    refused("the file ends inside the formats of tracepoints", begin + size, trace_dat.read_perf_data, HERE,
            np.frombuffer(whole[: begin + size], np.uint8), problems)  # fmt: skip
    assert rows(problems) == []
    refused("the file ends inside the formats of tracepoints", begin + size, trace_dat.read_perf_data, HERE,
            np.frombuffer(whole[: begin + size - 9], np.uint8), problems)  # fmt: skip
    assert rows(problems) == [("section-cut", "9 bytes of samples are missing", begin + size - 9, 1)]


# ---- trace.dat ---------------------------------------------------------------------------------------------------


def file_of(data: bytes, order: str = "little", page_bytes: int = 64) -> trace_dat._TraceDat:
    return trace_dat._TraceDat(Cursor(data, HERE, 0, order), np.frombuffer(data or b"\0", np.uint8), 7, page_bytes)


@pytest.mark.parametrize("pages", [(63, False), (64, True), (1 << 20, True), ((1 << 20) + 1, False)])
def test_how_a_file_of_trace_cmd_begins(pages):
    size, is_good = pages
    for is_big, order in ((0, "little"), (1, "big"), (2, "little")):
        head = MAGIC + b"7\0" + bytes([is_big, 8]) + size.to_bytes(4, order)
        data = np.frombuffer(head, np.uint8)
        if is_good:
            file = trace_dat._start(HERE, data)
            assert (file.version, file.page_bytes, file.cursor.order, file.cursor.left) == (7, size, order, 0)
        else:
            refused(f"pages of {size} bytes cannot be", len(head) - 4, trace_dat._start, HERE, data)


def test_rows_of_the_head_and_the_number_of_cpus():
    file = file_of(b"")
    for option, value in ((5, b" Linux 6.1 \0junk"), (5, b"\0"), (8, bytes([3, 0, 0, 0])), (8, bytes([2, 0, 0, 0])),
                          (8, bytes([9, 0, 0])), (1, b"date")):  # fmt: skip
        trace_dat._read_head_row(file, option, value)
    assert (file.head_rows, file.cpus) == ([("UNAME", "Linux 6.1")], 3)
    trace_dat._read_head_row(file, 8, (5000).to_bytes(4, "little"))
    assert file.cpus == 4096
    assert trace_dat._cpu_count(4096, Cursor(b"....", HERE, 4)) == 4096
    refused("4097 CPUs cannot be", 0, trace_dat._cpu_count, 4097, Cursor(b"....", HERE, 4))


def test_pages_that_are_cut():
    """Pages of 64 bytes in a file of 300: whole ones, half ones, none; beyond the file nothing is left."""
    file, problems = file_of(bytes(300)), Problems()
    file.parts = [(0, 0, 128), (1, 128, 100), (2, 236, 64), (3, 240, 64), (4, 300, 64), (5, 400, 10), (6, 300, 0)]
    trace_dat._cut_parts(file, problems)
    assert file.parts == [(0, 0, 128), (1, 128, 100), (2, 236, 64), (3, 240, 60), (4, 300, 0), (5, 400, 0), (6, 300, 0)]
    pages = trace_dat._pages(file, problems)
    assert (pages.offsets.tolist(), pages.cpu.tolist()) == ([0, 64, 128, 236], [0, 0, 1, 2])
    assert (pages.page_bytes, pages.commit_bytes) == (64, 8)
    assert rows(problems) == [
        ("section-cut", "4 bytes of the pages of CPU 3 are missing", 240, 1),
        ("section-cut", "64 bytes of the pages of CPU 4 are missing", 300, 1),
        ("section-cut", "10 bytes of the pages of CPU 5 are missing", 300, 1),
        ("section-cut", "the last page of CPU 1 has 36 of 64 bytes", 192, 1),
        ("section-cut", "the last page of CPU 3 has 60 of 64 bytes", 240, 1),
    ]
    file.unpacked, problems = np.zeros(130, np.uint8), Problems()
    file.parts = [(7, 0, 131)]
    trace_dat._cut_parts(file, problems)
    trace_dat._pages(file, problems)
    assert rows(problems) == [
        ("section-cut", "1 bytes of the pages of CPU 7 are missing", 0, 1),
        ("section-cut", "the last page of CPU 7 has 2 of 64 bytes", None, 1),
    ]
    assert trace_dat._offset(file, Pages(ints(5), ints(0), 64, 8), 0) is None


def section(end: str, *contents: bytes) -> bytes:
    """Return a section that is not packed: kind, flags, a word, its size, what is in it."""
    content = b"".join(contents)
    return struct.pack(end + "HHIQ", 0, 0, 0, len(content)) + content


def option(end: str, kind: int, value: bytes) -> bytes:
    return struct.pack(end + "HI", kind, len(value)) + value


@pytest.mark.parametrize("order", ORDERS)
def test_options_go_on_where_the_last_one_says(order):
    """A section: kind, flags, a word, its size; an option: kind, size, value; kind 0 names the next section."""
    end = ORDERS[order]

    first = section(end, option(end, 5, b"one"), option(end, 0, struct.pack(end + "Q", 100)), option(end, 5, b"never"))
    second = section(
        end, option(end, 8, b"two"), option(end, 0, struct.pack(end + "Q", 8))
    )  # back to the first one: the end
    data = (bytes(8) + first).ljust(100, b"\xff") + second
    assert list(trace_dat._options(Cursor(data, HERE, 0, order), 8, "none")) == [(5, b"one"), (8, b"two")]
    assert list(trace_dat._options(Cursor(data, HERE, 0, order), 0, "none")) == []
    open_end = bytes(8) + section(end, option(end, 5, b"one"))
    assert list(trace_dat._options(Cursor(open_end, HERE, 0, order), 8, "none")) == [(5, b"one")]
    refused("the file ends before one of its sections", len(data), list,
            trace_dat._options(Cursor(data, HERE, 0, order), len(data), "none"))  # fmt: skip
    refused("the file ends inside the head of a section", len(data) - 1, list,
            trace_dat._options(Cursor(data, HERE, 0, order), len(data) - 1, "none"))  # fmt: skip


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("values", "parts"),
    [
        ((), (0,)), ((b"",), (7,)), ((b"name\0",), (7,)), ((b"", b""), (7,)), ((None, b""), (7,)), ((7,), (0,)),
        ((b"", 7), (7,)),
    ],
)  # fmt: skip
def test_instances_of_version_6(monkeypatch, order, values, parts):
    """Pages of an instance of ftrace count where the usual one has none; its option says where they are described.

    None is an offset behind the file, a number the bytes of an option that is too short for one.
    """
    monkeypatch.setattr(trace_dat.records, "read_all", lambda cursor, meta: cursor.take(3, "metadata"))
    end, instance_at = ORDERS[order], 400
    options = b""
    for value in values:
        at = struct.pack(end + "Q", 5000 if value is None else instance_at)
        content = at[:value] if isinstance(value, int) else at + (value or b"")
        options += struct.pack(end + "HI", 3, len(content)) + content
    options += struct.pack(end + "HI5s", 5, 5, b"Linux")
    head = b"..." + struct.pack(end + "I", 2) + b"options  \0" + options + bytes(2) + b"flyrecord\0"
    head += struct.pack(end + "QQQQ", 300, 0, 310, 0)
    data = head.ljust(instance_at, b"\xff") + b"flyrecord\0" + struct.pack(end + "QQQQ", 320, 7, 330, 0)
    file, problems = file_of(data, order), Problems()
    trace_dat._read_6(file, problems)
    expected = [(0, 320, 7), (1, 330, 0)] if parts == (7,) else [(0, 300, 0), (1, 310, 0)]
    assert (file.parts, file.cpus, file.head_rows, rows(problems)) == (expected, 2, [("UNAME", "Linux")], [])
    plain = file_of(b"..." + struct.pack(end + "I", 1) + b"flyrecord\0" + struct.pack(end + "QQ", 2, 5), order)
    trace_dat._read_6(plain, problems)
    assert (plain.parts, plain.head_rows) == ([(0, 2, 5)], [])
    for kind, what in ((b"latency  \0", "it holds the text of a latency tracer"), (b"flyrecord ", "the kind of its")):
        bad = file_of(b"..." + struct.pack(end + "I", 1) + kind, order)
        refused(what, 7, trace_dat._read_6, bad, problems)


@pytest.mark.parametrize("order", ORDERS)
def test_sections_of_version_7(monkeypatch, order):
    """Options of eight bytes say where a section is; of the buffers the first one with pages is read."""
    end, seen = ORDERS[order], []

    for name in ("read_header_info", "read_ftrace_formats", "read_event_formats", "read_names"):
        monkeypatch.setattr(trace_dat.records, name, lambda cursor, _meta, name=name: seen.append(
            (name, cursor.take(cursor.left, "all"))))  # fmt: skip

    def read_buffer(file, value, algorithm, _problems):
        seen.append((value, algorithm))
        file.parts = [(0, 0, len(value) - 3)]

    monkeypatch.setattr(trace_dat, "_read_buffer", read_buffer)
    kinds = 16, 17, 18, 21
    at = [200, 300, 400, 500]
    options = [option(end, kind, struct.pack(end + "Q", where)) for kind, where in zip(kinds, at, strict=True)]
    options += [
        option(end, kinds[0], struct.pack(end + "Q", 500)[:7]),
        option(end, kinds[0], struct.pack(end + "QB", 500, 0)),
    ]
    options += [option(end, 3, value) for value in (b"one", b"four", b"never")] + [option(end, 5, b"Linux")]
    data = (b"none\0\0" + struct.pack(end + "Q", 20)).ljust(20, b"\xff") + section(end, *options)
    for where, text in zip(at, (b"header", b"ftrace", b"events", b"names"), strict=True):
        data = data.ljust(where, b"\xff") + section(end, text)
    file = file_of(data, order)
    trace_dat._read_7(file, Problems())
    assert seen == [
        ("read_header_info", b"header"), ("read_ftrace_formats", b"ftrace"), ("read_event_formats", b"events"),
        ("read_names", b"names"), (b"one", "none"), (b"four", "none"),
    ]  # fmt: skip
    assert file.head_rows == [("UNAME", "Linux")]


def test_packed_sections():
    packed = zlib.compress(b"content")
    block = struct.pack("<II", len(packed), 7) + packed
    for flags, content, is_packed in (
        (1, block, True),
        (3, block, True),
        (0, b"content", False),
        (2, b"content", False),
    ):
        data = struct.pack("<HHIQ", 9, flags, 0, len(content)) + content
        inner, was_packed = trace_dat._section(Cursor(data, HERE), 0, "zlib")
        assert (inner.take(7, "it"), inner.left, inner.base, was_packed) == (b"content", 0, 16, is_packed)


def test_blocks_that_cannot_be_unpacked(monkeypatch):
    packed = zlib.compress(bytes(2000))

    def unpacked(data: bytes, size: int, algorithm: str = "zlib") -> bytes:
        return trace_dat._unpacked(Cursor(struct.pack("<II", len(data), size) + data, HERE), algorithm)

    assert unpacked(packed, 2000) == bytes(2000)
    assert unpacked(zlib.compress(b""), 0) == b""
    assert trace_dat._unpacker("zlib", Cursor(b"", HERE), 0)(packed, 0) == b"\0", "not all of it"
    for args, what in (
        ((packed, 1999, "lz4"), "the compression 'lz4' is not known"),
        ((packed, 2001), "a packed block is damaged;"),
        ((packed[:-8], 2000), "a packed block is damaged;"),
        ((b"rubbish", 2000), r"a packed block is damaged \(Error -3 .*\);"),
        ((b"rubbish", 2000, "zstd"), r"a packed block is damaged \(.+\);"),
    ):
        refused(what, 8, unpacked, *args)
    monkeypatch.setattr(unpacking, "_FREE_BYTES", 1999)
    size = 100 * len(packed)
    refused("a packed block is damaged", 8, unpacked, packed, size)
    refused("a block unpacks to more than 100 times its size", 8, unpacked, packed, size + 1)


@pytest.mark.parametrize("order", ORDERS)
def test_a_buffer_says_where_the_pages_of_its_cpus_are(order):
    end = ORDERS[order]

    def buffer(page_bytes: int, clock: bytes, *cpus: tuple[int, int, int]) -> bytes:
        rows_of = b"".join(struct.pack(end + "IQQ", *row) for row in cpus)
        return (
            struct.pack(end + "Q", 4)
            + b"name\0"
            + clock
            + b"\0"
            + struct.pack(end + "II", page_bytes, len(cpus))
            + rows_of
        )

    data = b"...." + struct.pack(end + "HH", 3, 0) + bytes(400)
    for page_bytes, expected in ((128, 128), (64, 64), (63, 256), (1 << 20, 1 << 20), ((1 << 20) + 1, 256)):
        file, problems = file_of(data, order, 256), Problems()
        trace_dat._read_buffer(file, buffer(page_bytes, b"mono", (0, 10, 100), (2, 300, 200)), "none", problems)
        assert (file.page_bytes, file.head_rows, file.cpus) == (expected, [("TRACE_CLOCK", "mono")], 2)
        assert file.parts == [(0, 10, 100), (2, 300, 108)]
        assert rows(problems) == [("section-cut", "92 bytes of the pages of CPU 2 are missing", 300, 1)]
    file = file_of(data, order)
    trace_dat._read_buffer(file, buffer(128, b"mono", (0, 10, 0)), "none", Problems())
    assert (file.parts, file.head_rows, file.page_bytes) == ([], [], 64), "an instance without pages changes nothing"
    trace_dat._read_buffer(file, buffer(128, b"", (0, 10, 1)), "none", Problems())
    assert file.head_rows == []


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("flags", "is_packed"), [(0, False), (1, True), (2, False), (3, True), (0x100, False)])
def test_a_buffer_says_whether_its_pages_are_packed(order, flags, is_packed):
    """Behind the kind of the section; a CPU's pages begin with how many blocks they are."""
    end, packed = ORDERS[order], zlib.compress(b"p" * 64)
    pages = struct.pack(end + "III", 1, len(packed), 64) + packed
    file = file_of(struct.pack(end + "HH", 3, flags) + pages, order)
    value = struct.pack(end + "Q", 0) + b"name\0mono\0" + struct.pack(end + "IIIQQ", 64, 1, 0, 4, len(pages))
    trace_dat._read_buffer(file, value, "zlib", problems := Problems())
    assert (file.unpacked is not None, file.parts) == (is_packed, [(0, 0, 64) if is_packed else (0, 4, len(pages))])
    assert rows(problems) == []


def test_packed_pages_of_some_cpus(monkeypatch):
    """CPU 0 has two blocks, CPU 1 a good one and a damaged one, CPU 2 none, CPU 3 is beyond the file."""
    one, two = (
        struct.pack("<II", len(part), 64) + part for part in (zlib.compress(b"a" * 64), zlib.compress(b"b" * 64))
    )
    first, second = struct.pack("<I", 2) + one + two, struct.pack("<I", 2) + two + struct.pack("<II", 3, 64) + b"xyz"
    data = first + second
    file, problems = file_of(data), Problems()
    file.parts = [(0, 0, len(first)), (1, len(first), len(second)), (2, 0, 0), (3, len(data), 9)]
    trace_dat._unpack_pages(file, "zlib", problems)
    assert file.parts == [(0, 0, 128), (1, 128, 64), (2, 192, 0), (3, 192, 0)]
    assert file.unpacked.tobytes() == b"a" * 64 + b"b" * 128
    [(slug, detail, offset, count)] = rows(problems)
    assert (slug, offset, count) == ("section-cut", len(data) - 3, 1)
    assert detail.startswith("pages of CPU 1: a packed block is damaged (Error -3")
    other = file_of(data)
    other.parts = [(0, 0, len(data))]
    refused("the compression 'other' is not known", 12, trace_dat._unpack_pages, other, "other", Problems())
    assert trace_dat._MOST_UNPACKED == 8 << 30, "less is enough here"
    for most, is_good in ((192, True), (191, False)):
        monkeypatch.setattr(trace_dat, "_MOST_UNPACKED", most)
        file.parts = [(0, 0, len(first)), (1, len(first), len(second))]
        if is_good:
            trace_dat._unpack_pages(file, "zlib", Problems())
        else:
            with pytest.raises(TraceFormatError):
                trace_dat._unpack_pages(file, "zlib", Problems())


# ---- what both bring in front of their records -------------------------------------------------------------------


def test_what_is_in_front_of_records_is_read_in_its_order():
    content = metadata("6", ((100, "client"),))
    cursor, found = Cursor(content, HERE, len(MAGIC) + 2 + 2 + 4), Metadata()
    read_all(cursor, found)
    assert cursor.left == 0
    assert [(each.group, each.name) for each in found.formats.values()] == [
        ("sched", "sched_switch"), ("sched", "sched_waking"), ("irq", "irq_handler_entry")
    ]  # fmt: skip
    assert (found.names, found.commit_bytes) == ({100: "client"}, 8)
    cursor.position, found = len(MAGIC) + 8, Metadata()
    read_all(cursor, found, has_names=False)
    assert found.names == {}
    assert cursor.left == 8 + len(b"100 client\n")


def test_formats_of_events_that_are_no_tracepoints():
    formats = [b"name: kernel_stack\nID: 4\nformat:\n\tfield:int a;\toffset:0;\tsize:4;\tsigned:1;\n", b"rubbish",
               b"name: print\nID: 5\nformat:\n"]  # fmt: skip
    content = struct.pack("<I", 3) + b"".join(struct.pack("<Q", len(each)) + each for each in formats)
    cursor, found = Cursor(content + b"more", HERE, 0), Metadata()
    read_ftrace_formats(cursor, found)
    assert cursor.left == 4
    assert {ident: (each.group, each.name, list(each.fields)) for ident, each in found.formats.items()} == {
        4: ("ftrace", "kernel_stack", ["a"]), 5: ("ftrace", "print", [])
    }  # fmt: skip


def test_what_is_no_schedule_and_a_load_that_is_stopped(tmp_path):
    path = tmp_path / "x"
    path.write_text("nothing of the kind")
    with pytest.raises(TraceFormatError, match="it does not begin as a schedule of Linux does; give another file"):
        open_linux(path)
    path.write_text(linux_scene.TEXT)
    assert len(open_linux(path, cancelled=lambda: False).events)
    with pytest.raises(Cancelled, match="loading was stopped"):
        open_linux(path, cancelled=lambda: True)
