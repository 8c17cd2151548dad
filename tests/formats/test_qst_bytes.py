"""QST files written byte by byte as their description has them, without the tables of the reader."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

import satview
from satview.base.errors import SourceChangedError, TraceFormatError
from satview.formats.kev import decode
from satview.formats.kev.slot_source import ScatteredSlots, SourceFile
from satview.formats.qst import Contents, one_pass, read_contents, score, times_without_clock
from satview.store.problems import Problems

START_NS, END_NS = 1_718_000_000_123_456_789, 1_718_000_002_500_000_000  # 06:13:20 and 06:13:22 on 10 June 2024, UTC
DATA, MAIN, KBUF, PINF = 0x44415441, 0x4D41494E, 0x4B425546, 0x50494E46
BUFFER, SLOTS_AT = 1024, 64
USER, TIME = 0x1800, 0x401


def head_4(version=4, size=64, flags=0, cpus=1, system=710, buffer=BUFFER, slots_at=SLOTS_AT, per_cpu=0, end=END_NS):
    return struct.pack(
        "<IIIIQqqIIIIII", 0x51535434, version, size, flags, 1_000_000, START_NS, end, cpus, system, buffer, slots_at,
        per_cpu, 0,
    )  # fmt: skip


def section_4(magic: int, data: bytes, entries: int, version: int = 1, length: int | None = None) -> bytes:
    return struct.pack("<IIQII", magic, version, len(data) if length is None else length, entries, 0) + data


def slot(stamp: int, code: int = USER, cpu: int = 0, words: tuple[int, int] = (7, 8), order: str = "<") -> bytes:
    return struct.pack(f"{order}IIII", cpu << 24 | code, stamp, *words)


def buffer(number: int, *slots: bytes, count: int | None = None, order: str = "<") -> bytes:
    head = bytes(20) + struct.pack(f"{order}II", len(slots) if count is None else count, number)
    return (head.ljust(SLOTS_AT, b"\xee") + b"".join(slots)).ljust(BUFFER, b"\xdd")


def listed(number: int, slots: int, cpu: int = 0xFF, index: int = 0) -> bytes:
    return struct.pack("<IIIIB7x", index, number, slots, 0, cpu)


def contents_of(folder: Path, data: bytes) -> tuple[Contents, list[tuple[str, str, int | None, int]]]:
    """Return what is in a file, and its problems: kind, text, byte, how often."""
    path = folder / "a.qst"
    path.write_bytes(data)
    problems = Problems()
    contents = read_contents(SourceFile(path, len(data)), path, problems)
    return contents, [(each.kind.slug, each.detail, each.offset, each.count) for each in problems]


def columns(contents: Contents) -> list[list[int]]:
    main = contents.main
    return [each.tolist() for each in (main.offsets, main.slots, main.cpu, main.sequence)]


def test_the_heads_of_version_4_say_what_they_say(tmp_path):
    data = section_4(DATA, buffer(8, slot(5), slot(6)) + buffer(7, slot(1), slot(2), slot(3)), 2)
    names = section_4(PINF, buffer(1, slot(9)), 1)
    contents, problems = contents_of(tmp_path, head_4(cpus=2) + data + names)
    # 64 bytes of the head, 24 of the section's, 64 of a buffer's; the second buffer, number 7, comes first.
    assert columns(contents) == [[88 + 1024 + 64, 88 + 64], [3, 2], [0, 0], [7, 8]]
    assert (contents.names.offsets.tolist(), contents.names.slots.tolist()) == ([88 + 2048 + 24 + 64], [1])
    assert (contents.version, contents.cycles_per_s, contents.cpus, contents.byte_order) == (4, 1_000_000, 2, "little")
    assert (contents.start_ns, contents.end_ns, contents.sys_release) == (START_NS, END_NS, "7.1.0")
    assert contents.last_stamp == -1
    assert problems == []


def test_big_endian_slots_and_heads_of_buffers(tmp_path):
    two = [slot(1, order=">"), slot(2, words=(10, 11), order=">")]
    path = tmp_path / "big.qst"
    path.write_bytes(head_4(flags=1) + section_4(DATA, buffer(7, *two, order=">"), 1))
    trace = satview.open_trace(path)
    assert [trace.payloads.words(row).tolist() for row in range(2)] == [[7, 8], [10, 11]]
    assert trace.header.get("BIG_ENDIAN") == "TRUE"
    assert np.diff(trace.events.time_cycles).tolist() == [1]


def test_rings_of_two_cpus_follow_each_other_each_by_its_numbers(tmp_path):
    four = [
        buffer(5, slot(50, cpu=0)),
        buffer(4, slot(40, cpu=0)),
        buffer(2, slot(20, cpu=1)),
        buffer(3, slot(30, cpu=1)),
    ]
    data = head_4(cpus=2, system=800, per_cpu=2) + section_4(DATA, b"".join(four), 4)
    contents, problems = contents_of(tmp_path, data)
    assert columns(contents)[2:] == [[0, 0, 1, 1], [4, 5, 2, 3]]
    assert (contents.sys_release, problems) == ("8.0.0", [])
    # On 7.1 all CPUs share one ring, whatever the field says.
    contents, problems = contents_of(
        tmp_path, head_4(cpus=2, system=710, per_cpu=2) + section_4(DATA, b"".join(four), 4)
    )
    assert columns(contents)[2:] == [[0, 0, 0, 0], [2, 3, 4, 5]]


def test_numbers_pass_two_to_the_thirty_two_only_where_they_are_far_apart(tmp_path):
    numbers = [1, 0xFFFFFFFF, 0, 0xFFFFFFFE]
    data = b"".join(buffer(number, slot(1)) for number in numbers)
    contents, _ = contents_of(tmp_path, head_4() + section_4(DATA, data, 4))
    assert [number & 0xFFFFFFFF for number in columns(contents)[3]] == [0xFFFFFFFE, 0xFFFFFFFF, 0, 1]
    data = b"".join(buffer(number, slot(1)) for number in (1 << 31, 0))  # half of them apart: not passed yet
    assert columns(contents_of(tmp_path, head_4() + section_4(DATA, data, 2))[0])[3] == [0, 1 << 31]
    data = b"".join(buffer(number, slot(1)) for number in ((1 << 31) + 1, 0))
    numbers = columns(contents_of(tmp_path, head_4() + section_4(DATA, data, 2))[0])[3]
    assert [number & 0xFFFFFFFF for number in numbers] == [(1 << 31) + 1, 0]


def test_empty_buffers_are_none_and_two_of_one_number_are_listed(tmp_path):
    three = buffer(1, slot(1)) + buffer(2) + buffer(2) + buffer(1, slot(2))
    contents, problems = contents_of(tmp_path, head_4() + section_4(DATA, three, 4))
    assert columns(contents)[1] == [1, 1]
    assert problems == [("buffer-order", "a kernel buffer has the number 1 of another one", 88 + 3 * 1024 + 24, 1)]


def test_a_buffer_is_full_at_sixty_slots_and_impossible_at_sixty_one(tmp_path):
    full = buffer(1, *[slot(stamp) for stamp in range(60)])  # 1024 - 64 bytes of 16
    contents, problems = contents_of(tmp_path, head_4() + section_4(DATA, full + buffer(2, slot(99)), 2))
    assert (columns(contents)[1], problems) == ([60, 1], [])
    data = head_4() + section_4(DATA, buffer(1, slot(1)) + buffer(2, count=61), 2)
    contents, problems = contents_of(tmp_path, data)
    what = "a kernel buffer of DATA announces 61 slots where 60 fit; it is left out"
    assert (columns(contents)[1], problems) == ([1], [("buffer-length", what, 88 + 1024 + 20, 1)])


@pytest.mark.parametrize("count", [200, 203])
def test_two_hundred_impossible_buffers_are_listed_one_by_one_the_others_together(tmp_path, count):
    impossible = b"".join(buffer(number, count=999) for number in range(count))
    _, problems = contents_of(tmp_path, head_4() + section_4(DATA, buffer(999, slot(1)) + impossible, count + 1))
    rows = [row for row in problems if row[0] == "buffer-length"]
    assert [row[2] for row in rows[:200]] == [88 + 1024 * number + 20 for number in range(1, 201)]
    assert [row[1:] for row in rows[200:]] == [("and more of the same", None, 3)] * (count == 203)


@pytest.mark.parametrize("system", [709, 0, 801])
def test_another_system_is_listed_and_has_no_release(tmp_path, system):
    contents, problems = contents_of(tmp_path, head_4(system=system) + section_4(DATA, buffer(1, slot(1)), 1))
    assert contents.sys_release == ""
    assert problems == [("header", f"system {system} is neither 710 nor 800", 44, 1)]


@pytest.mark.parametrize(("cpus", "is_possible"), [(0, False), (1, True), (64, True), (65, False)])
def test_a_target_has_one_to_sixty_four_cpus(tmp_path, cpus, is_possible):
    contents, problems = contents_of(tmp_path, head_4(cpus=cpus) + section_4(DATA, buffer(1, slot(1)), 1))
    assert contents.cpus == (cpus if is_possible else 0)
    assert problems == ([] if is_possible else [("header", f"{cpus} CPUs: a target has 1 to 64", 40, 1)])


@pytest.mark.parametrize(
    ("size", "slots_at", "is_possible"),
    [(1024, 28, True), (1024, 27, False), (1023, 64, False), (1024, 1008, True), (1024, 1009, False)],
)
def test_shapes_of_buffers_that_can_and_cannot_be(tmp_path, size, slots_at, is_possible):
    data = head_4(buffer=size, slots_at=slots_at) + section_4(DATA, buffer(1, slot(1)), 1)
    if is_possible:
        assert columns(contents_of(tmp_path, data)[0])[0] == [88 + slots_at]
        return
    with pytest.raises(
        TraceFormatError, match=f"kernel buffers of {size} bytes with slots from byte {slots_at} on"
    ) as no:
        contents_of(tmp_path, data)
    assert no.value.offset == 48


@pytest.mark.parametrize(("announced", "is_used"), [(63, False), (64, True), (72, True), (1 << 30, False)])
def test_a_longer_head_is_skipped_and_an_impossible_one_is_listed(tmp_path, announced, is_used):
    there = announced if is_used else 64
    data = head_4(size=announced).ljust(there, b"\0") + section_4(DATA, buffer(1, slot(1)), 1)
    contents, problems = contents_of(tmp_path, data)
    assert columns(contents)[0] == [there + 24 + 64]
    what = f"a head of {announced} bytes cannot be; read as 64"
    assert problems == ([] if is_used else [("header", what, 8, 1)])


def test_every_cut_of_a_file_is_listed_where_it_is(tmp_path):
    whole = (
        head_4() + section_4(DATA, buffer(1, slot(1)) + buffer(2, slot(2)), 2) + section_4(PINF, buffer(1, slot(9)), 1)
    )
    end = 88 + 2048
    assert contents_of(tmp_path, whole[: end + 24])[1] == [
        ("section-cut", "section PINF announces 1,024 bytes, 0 are there", end + 8, 1),
        ("section-cut", "PINF announces 1 kernel buffers, 0 are complete", end + 16, 1),
    ]
    assert contents_of(tmp_path, whole[: end + 23])[1] == [("section-cut", "23 bytes of the head of a section", end, 1)]
    contents, problems = contents_of(tmp_path, whole[: 88 + 1024 + 100])
    assert columns(contents)[1] == [1]
    assert problems == [
        ("section-cut", "section DATA announces 2,048 bytes, 1,124 are there", 64 + 8, 1),
        ("section-cut", "a kernel buffer of DATA has 100 of 1024 bytes", 88 + 1024, 1),
    ]
    with pytest.raises(TraceFormatError, match="no complete kernel buffer with events is in it") as refused:
        contents_of(tmp_path, whole[: 88 + 1023])
    assert refused.value.offset == 64
    with pytest.raises(TraceFormatError, match="the file ends inside its head of 64 bytes") as refused:
        contents_of(tmp_path, whole[:63])
    assert refused.value.offset == 63
    with pytest.raises(TraceFormatError, match="version 5 in a file that begins as version 4 does") as refused:
        contents_of(tmp_path, head_4(version=5) + whole[64:])
    assert refused.value.offset == 4


def test_more_and_fewer_buffers_than_announced(tmp_path):
    contents, problems = contents_of(tmp_path, head_4() + section_4(DATA, buffer(1, slot(1)) + buffer(2, slot(2)), 5))
    assert columns(contents)[1] == [1, 1]
    assert problems == [("section-cut", "DATA announces 5 kernel buffers, 2 are complete", 80, 3)]


def test_sections_of_another_kind_or_version_end_the_file(tmp_path):
    first = head_4() + section_4(DATA, buffer(1, slot(1)), 1)
    for other in (section_4(0x58585858, bytes(40), 1), section_4(PINF, buffer(1, slot(9)), 1, version=2)):
        contents, problems = contents_of(tmp_path, first + other)
        assert len(contents.names.offsets) == 0
        what = f"{len(other):,} bytes that are not a known section are left out"
        assert problems == [("section-cut", what, len(first), 1)]


def test_the_older_variant_lists_how_its_slots_lay_in_buffers(tmp_path):
    rows = listed(9, 1, cpu=1) + listed(8, 2, cpu=0) + listed(4, 1, cpu=1)
    slots = slot(90, cpu=1) + slot(80) + slot(81) + slot(40, cpu=1)
    data = head_4(buffer=0, slots_at=0, cpus=2, system=800) + section_4(KBUF, rows, 3) + section_4(MAIN, slots, 4)
    at = 64 + 24 + 72 + 24
    contents, problems = contents_of(tmp_path, data + section_4(PINF, slot(1), 1))
    assert columns(contents) == [[at + 16, at + 48, at], [2, 1, 1], [0, 1, 1], [8, 4, 9]]
    assert (contents.names.offsets.tolist(), contents.names.slots.tolist()) == ([at + 64 + 24], [1])
    assert problems == []
    contents, _ = contents_of(tmp_path, head_4() + section_4(KBUF, listed(3, 1), 1) + section_4(MAIN, slot(1), 1))
    assert columns(contents)[2] == [0]  # 7.1: no CPU of its own
    contents, _ = contents_of(tmp_path, head_4() + section_4(MAIN, slots, 4))
    assert columns(contents) == [[64 + 24], [4], [0], [0]]  # no list: in the order of the file
    assert len(contents.names.offsets) == 0


def test_the_older_variant_when_its_list_and_its_slots_differ(tmp_path):
    slots = slot(1) + slot(2) + slot(3)
    short = section_4(KBUF, listed(5, 1) + listed(6, 1), 2)
    contents, problems = contents_of(tmp_path, head_4() + short + section_4(MAIN, slots, 3))
    assert columns(contents)[1] == [3]
    what = "KBUF lists 2 slots, MAIN has 3; they are read in the order of the file"
    assert problems == [("section-cut", what, 88, 1)]
    cut = section_4(KBUF, listed(5, 3), 2)  # one of two rows is there
    contents, problems = contents_of(tmp_path, head_4() + cut + section_4(MAIN, slots, 3))
    assert [row[1] for row in problems] == ["KBUF lists 3 slots, MAIN has 3; they are read in the order of the file"]
    long = section_4(KBUF, listed(5, 2) + listed(6, 2) + listed(7, 0) + listed(8, 4), 4)
    contents, problems = contents_of(tmp_path, head_4() + long + section_4(MAIN, slots, 3))
    assert columns(contents)[1] == [2]
    assert problems == [("section-cut", "2 kernel buffers of KBUF are not complete in MAIN", 88, 2)]
    contents, problems = contents_of(tmp_path, head_4() + section_4(MAIN, slots + b"xx", 5))
    assert columns(contents)[1] == [3]
    assert problems == [("section-cut", "MAIN announces 5 slots, 3 are there", 88, 2)]


def version_3(names: bytes, slots: bytes, last: int, version: int = 3, magics: tuple[int, int] = (PINF, MAIN)) -> bytes:
    head = struct.pack("<IIQQQI28x", 0x51535433, version, 2_000_000, 1_718_000_000, 250_000_000, last)
    parts = [
        struct.pack("<II8x", magic, len(part) // 16) + part for magic, part in zip(magics, (names, slots), strict=True)
    ]
    return head + b"".join(parts)


def test_the_heads_of_version_3_say_what_they_say(tmp_path):
    contents, problems = contents_of(tmp_path, version_3(slot(1), slot(5) + slot(6), 6))
    assert (contents.version, contents.cycles_per_s, contents.last_stamp) == (3, 2_000_000, 6)
    assert (contents.start_ns, contents.end_ns, contents.cpus) == (0, 1_718_000_000_250_000_000, 0)
    assert (contents.sys_release, contents.byte_order) == ("7.1.0", "little")
    assert (contents.names.offsets.tolist(), contents.names.slots.tolist()) == ([80], [1])
    assert columns(contents) == [[64 + 16 + 16 + 16], [2], [0], [0]]
    assert problems == []


def test_every_cut_of_version_3_is_listed_where_it_is(tmp_path):
    whole = version_3(slot(1), slot(5) + slot(6), 6)
    at = 64 + 16 + 16
    assert contents_of(tmp_path, whole[:-1])[1] == [("section-cut", "MAIN announces 2 slots, 1 are there", at + 16, 1)]
    assert contents_of(tmp_path, whole + b"xy")[1] == [
        ("section-cut", "2 bytes behind the last slot are left out", at + 16 + 32, 1)
    ]
    for data, what in (
        (whole[: at + 15], "section MAIN is missing"),
        (version_3(slot(1), slot(5), 5, magics=(PINF, DATA)), "section MAIN is not where it belongs"),
        (whole[:79], "section PINF is missing"),
        (version_3(slot(1), slot(5), 5, magics=(DATA, MAIN)), "section PINF is not where it belongs"),
    ):
        problems, path = Problems(), tmp_path / "cut.qst"
        path.write_bytes(data)
        with pytest.raises(TraceFormatError, match="no complete kernel buffer with events is in it"):
            read_contents(SourceFile(path, len(data)), path, problems)
        offset = 64 if "PINF" in what else at
        assert [(each.detail, each.offset) for each in problems] == [(what, offset)]
    with pytest.raises(TraceFormatError, match="version 4 in a file that begins as version 3 does") as refused:
        contents_of(tmp_path, version_3(slot(1), slot(5), 5, version=4))
    assert refused.value.offset == 4


def test_the_last_stamp_of_version_3_is_compared(tmp_path):
    path = tmp_path / "last.qst"
    for last, count in ((6, 0), (7, 1), (0, 1)):
        path.write_bytes(version_3(b"", slot(5) + slot(6), last))
        rows = [each for each in satview.open_trace(path).problems if each.kind.slug == "clock-damaged"]
        assert [(row.detail, row.offset) for row in rows] == [
            (f"the last stamp is 0x6, the head of the file says {last:#x}", 64 + 16 + 16 + 16)
        ] * count


def test_who_reads_a_file_is_known_by_its_first_four_bytes():
    assert score(b"\x34TSQ\4\0", Path("a.bin")) == 100
    assert score(b"\x33TSQ\3\0", Path("a.bin")) == 100
    assert score(b"QST4", Path("a.QST")) == 5
    assert score(b"QST4", Path("a.kev")) == 0


def test_the_header_has_the_keys_of_a_kev_file(tmp_path):
    path = tmp_path / "h.qst"
    path.write_bytes(head_4(cpus=2) + section_4(DATA, buffer(1, slot(1)) + buffer(2, slot(2)), 2))
    trace = satview.open_trace(path)
    assert dict(trace.header.pairs) == {
        "FILE_NAME": "h.qst", "QST_VERSION": "4", "DATE": "Mon Jun 10 06:13:20 2024",
        "END_DATE": "Mon Jun 10 06:13:22 2024", "LITTLE_ENDIAN": "TRUE", "CYCLES_PER_SEC": "1000000", "CPU_NUM": "2",
        "SYS_RELEASE": "7.1.0", "BUFFERS": "2",
    }  # fmt: skip
    wall = trace.clock.wall_time(int(trace.events.time_cycles[-1]))
    assert wall.isoformat() == "2024-06-10T06:13:22.500000+00:00"
    path.write_bytes(head_4(cpus=99, end=1 << 62) + section_4(DATA, buffer(1, slot(1)), 1))
    pairs = dict(satview.open_trace(path).header.pairs)
    assert "CPU_NUM" not in pairs
    assert pairs["END_DATE"] == "Thu Feb 20 23:53:38 2116"  # 2^62 ns


# ---- slots that are scattered ------------------------------------------------------------------------------------


@pytest.fixture
def scattered(tmp_path: Path) -> ScatteredSlots:
    """Slots with stamps 10, 11, 12 | 20 | 30, 31 in three buffers that lie the other way round in the file."""
    parts = [(12, 30, 31), (11, 20), (10, 10, 11, 12)]
    data = b"".join(buffer(number, *[slot(s, words=(s * 2, s * 3)) for s in stamps]) for number, *stamps in parts)
    contents, _ = contents_of(tmp_path, head_4() + section_4(DATA, data, 3))
    return contents.main.slots_in(SourceFile(tmp_path / "a.qst", 88 + 3 * 1024), "little")


def test_scattered_slots_are_one_row(scattered):
    at = [88 + 2048 + 64, 88 + 1024 + 64, 88 + 64]
    assert len(scattered) == 6
    assert scattered.first.tolist() == [0, 3, 4, 6]
    assert [scattered.byte(i) for i in range(6)] == [at[0], at[0] + 16, at[0] + 32, at[1], at[2], at[2] + 16]
    assert scattered.byte(6) == at[2] + 32  # behind the last: where the last buffer goes on
    stamps = [10, 11, 12, 20, 30, 31]
    for start in range(7):
        for end in range(start, 7):
            rows = scattered.read(start, end)
            assert rows[:, 1].tolist() == stamps[start:end]
            assert rows[:, 3].tolist() == [stamp * 3 for stamp in stamps[start:end]]
    room = np.zeros((8, 4), np.uint32)
    assert scattered.read(2, 5, room)[:, 1].tolist() == [12, 20, 30]
    assert room[:, 1].tolist() == [12, 20, 30, 0, 0, 0, 0, 0]
    for start, end in ((-1, 2), (3, 2), (0, 7), (7, 7)):
        with pytest.raises(IndexError, match=f"slots {start} to {end} of 6"):
            scattered.read(start, end)


def test_single_words_of_scattered_slots(scattered):
    rows = np.array([5, 0, 3, 1], np.int64)
    assert scattered.take(rows, 0).tolist() == [USER] * 4
    assert scattered.take(rows, 1).tolist() == [31, 10, 20, 11]
    assert scattered.take(rows, 2).tolist() == [62, 20, 40, 22]
    assert scattered.take(rows, 3).tolist() == [93, 30, 60, 33]
    assert scattered.take_halves(rows, 1).tolist() == [[62, 93], [20, 30], [40, 60], [22, 33]]
    assert scattered.take(rows, 1).flags.c_contiguous


def test_one_pass_puts_buffers_of_two_cpus_in_the_order_of_time(tmp_path):
    rings = [
        buffer(1, slot(0, TIME, 0, (0, 0)), slot(100), slot(200)), buffer(2, slot(500), slot(600)),
        buffer(1, slot(50, TIME, 1, (0, 50)), slot(300, cpu=1)), buffer(2, slot(400, cpu=1), slot(700, cpu=1)),
    ]  # fmt: skip
    path = tmp_path / "two.qst"
    path.write_bytes(head_4(cpus=2, system=800, per_cpu=2) + section_4(DATA, b"".join(rings), 4))
    passing = one_pass(path)
    blocks = np.concatenate(list(passing.blocks()))
    assert blocks[:, 1].tolist() == [0, 100, 200, 50, 300, 400, 700, 500, 600]
    times = passing.times - passing.times[0]
    assert times.tolist() == [0, 100, 200, 50, 300, 400, 700, 500, 600]
    assert satview.open_trace(path).events.time_cycles.tolist() == sorted(passing.times.tolist())


# ---- times without TIME events -----------------------------------------------------------------------------------


def _times(folder: Path, *slots: bytes) -> list[int] | None:
    data = head_4(cpus=2, system=800, per_cpu=1) + section_4(DATA, buffer(1, *slots), 1)
    contents, _ = contents_of(folder, data)
    times = times_without_clock(contents.main.slots_in(SourceFile(folder / "a.qst", len(data)), "little"))
    return None if times is None else times.tolist()


def test_times_are_counted_back_from_the_end(tmp_path):
    turn = 1 << 32
    assert _times(tmp_path, slot(5), slot(9)) == [5, 9]
    # The stamp passed zero between the two: the first is before it.
    assert _times(tmp_path, slot(0xFFFFFFF0), slot(4)) == [0xFFFFFFF0, turn + 4]
    # Every CPU ends within a rollover before the latest stamp: CPU 1 at 900, CPU 0 at 100 and not at 100 + a rollover.
    assert _times(tmp_path, slot(50), slot(100), slot(800, cpu=1), slot(900, cpu=1)) == [50, 100, 800, 900]


def test_a_cpu_with_time_events_says_where_one_without_ends(tmp_path):
    turn = 1 << 32
    times = _times(tmp_path, slot(10, TIME, 0, (3, 10)), slot(20), slot(15, cpu=1), slot(30, cpu=1))
    # CPU 0 ends at 3 rollovers and 20; 30 is behind it, so CPU 1's last event was a rollover before.
    assert times == [3 * turn + 10, 3 * turn + 20, 2 * turn + 15, 2 * turn + 30]
    times = _times(tmp_path, slot(10, TIME, 0, (3, 10)), slot(40), slot(15, cpu=1), slot(40, cpu=1))
    assert times == [3 * turn + 10, 3 * turn + 40, 3 * turn + 15, 3 * turn + 40]


def test_events_before_the_first_time_event_are_placed_by_it(tmp_path):
    turn = 1 << 32
    times = _times(tmp_path, slot(0xFFFFFFF0), slot(10, TIME, 0, (5, 10)), slot(20), slot(15, cpu=1))
    assert times == [4 * turn + 0xFFFFFFF0, 5 * turn + 10, 5 * turn + 20, 5 * turn + 15]


def test_where_every_cpu_has_time_events_they_are_used(tmp_path):
    assert _times(tmp_path, slot(10, TIME, 0, (3, 10)), slot(15, TIME, 1, (3, 15))) is None
    # A TIME event whose upper half no counter reaches is none.
    assert _times(tmp_path, slot(10, TIME, 0, (1 << 31, 10)), slot(12)) == [10, 12]


def test_a_file_that_is_written_over_while_it_is_read(tmp_path, monkeypatch):
    """It is looked at before each chunk."""
    monkeypatch.setattr(decode, "CHUNK_SLOTS", 2)
    path, asked = tmp_path / "h.qst", []
    path.write_bytes(head_4() + section_4(DATA, buffer(1, *(slot(stamp) for stamp in range(8))), 1))

    def cancelled() -> bool:
        asked.append(1)
        if len(asked) == 2:
            path.write_bytes(bytes(path.stat().st_size))
        return False

    with pytest.raises(SourceChangedError, match="open it again"):
        satview.open_trace(path, None, cancelled)
    assert len(asked) == 2
