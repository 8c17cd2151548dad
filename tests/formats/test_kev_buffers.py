"""Kernel buffers by hand: what is missing before each, order, lengths, marks of losses, and lists that are too long."""

from __future__ import annotations

import numpy as np
import pytest

from satview.events import wire
from satview.events.spec import Release
from satview.formats.kev import combine
from satview.formats.kev.combine import EventRegion
from satview.store.problems import Problems
from satview.store.tables import BufferTable
from tests.helpers.columns import event_table, ints

REGION = EventRegion(1000, 100)
USER, NAME = wire.code(wire.WireClass.USER, 1), wire.code(wire.WireClass.PR_TH, 64)


def told(problems: Problems) -> list[tuple[str, str, int | None, int, int | None]]:
    return [(row.kind.slug, row.detail, row.offset, row.count, row.time_cycles) for row in problems]


def table(*rows: tuple[int, int, int, int, int], release: Release = Release.QNX_7) -> BufferTable:
    """Return buffers: slot, CPU, number, slots that it announces, time."""
    slot, cpu, sequence, slots, time = (ints(*column) for column in zip(*rows, strict=True))
    in_time = np.argsort(time, kind="stable")
    events = event_table(time[in_time], wire.CONTROL_BUFFER, cpu[in_time], slot=slot[in_time])
    words = np.stack((sequence, slots), axis=1)[in_time].astype(np.uint32)
    return combine.buffer_table(np.arange(len(rows)), words, events, release)


def test_a_table_is_in_the_order_of_the_file():
    found = table((10, 1, 5, 10, 300), (20, 0, 4, 7, 200), (27, 2, 8, 9, 400))
    assert [column.tolist() for column in (found.slot, found.cpu, found.sequence, found.slots, found.time_cycles)] == [
        [10, 20, 27], [1, 0, 2], [5, 4, 8], [10, 7, 9], [300, 200, 400]
    ]  # fmt: skip
    assert found.lost_before.tolist() == [0, 0, 2]


@pytest.mark.parametrize(("release", "expected"), [(Release.QNX_7, [-1, 0, 3, 1]), (Release.QNX_8, [-1, -1, 0, 1])])
def test_the_buffer_before(release, expected):
    """In time: those at 1, 2, 3, 4 of the CPUs 0, 1, 1, 0; CPUs count on their own in 8.0."""
    cpu, time = ints(0, 1, 0, 1, kind=np.uint8), ints(1, 2, 4, 3)
    assert combine.predecessors(cpu, time, release).tolist() == expected
    assert combine.predecessors(cpu[:0], time[:0], release).tolist() == []


@pytest.mark.parametrize(
    ("numbers", "missing"),
    [
        ([1, 2, 3], [0, 0, 0]), ([7, 9, 12], [0, 1, 2]), ([5, 4, 6], [0, 0, 1]), ([5, 5, 6], [0, 0, 0]),
        ([1, 65_537, 3], [0, 65_535, 0]), ([1, 65_538, 3], [0, 0, 0]), ([1, 65_538, 4], [0, 0, 1]),  # damaged: far off
        ([100_000, 1, 100_002], [0, 0, 0]), ([100_000, 1, 100_003], [0, 0, 1]),
        ([1, 70_000, 70_001], [0, 69_998, 0]),  # in between: so many are lost
        ([100_000, 1, 2], [0, 0, 0]), ([1, 70_000, 1], [0, 69_998, 0]),
        ([1, 70_000, 70_000], [0, 0, 69_997]), ([7], [0]), ([], []),
    ],
)  # fmt: skip
def test_numbers_that_are_missing(numbers, missing):
    before = np.arange(len(numbers)) - 1
    assert combine.missing_before(ints(*numbers, kind=np.uint32), before).tolist() == missing


LENGTH = "buffer {} announces {} slots, the file holds {}"


@pytest.mark.parametrize(
    ("slots", "expected"),
    [
        ((10, 20, 70), []), ((0, 0, 0), []), ((10, 20, 71), [(3, 71, 70)]), ((10, 20, 1), []),
        ((9, 21, 70), [(1, 9, 10), (2, 21, 20)]),
    ],
)  # fmt: skip
def test_buffers_that_are_shorter_or_longer_than_they_say(slots, expected):
    problems = Problems()
    rows = [(at, 0, i + 1, slots[i], i) for i, at in enumerate((0, 10, 30))]
    combine.report_buffers(table(*rows), REGION, Release.QNX_7, problems)
    assert told(problems) == [
        ("buffer-length", LENGTH.format(*row), 1000 + 16 * rows[row[0] - 1][0], 1, row[0] - 1) for row in expected
    ]


def test_gaps_and_order():
    problems = Problems()
    found = table((0, 0, 7, 10, 1), (10, 0, 9, 10, 2), (20, 0, 14, 10, 4), (30, 0, 12, 10, 3), (40, 0, 15, 60, 5))
    combine.report_buffers(found, REGION, Release.QNX_7, problems)
    assert told(problems) == [
        ("lost-buffers", "1 buffer lost between number 7 at byte 0x3e8 and number 9", 1160, 1, 2),
        ("lost-buffers", "1 buffer lost between number 12 at byte 0x5c8 and number 14", 1320, 1, 4),
        ("lost-buffers", "2 buffers lost between number 9 at byte 0x488 and number 12", 1480, 2, 3),
        ("buffer-order", "buffer 15 follows buffer 12", 1640, 1, 5),
    ]


@pytest.mark.parametrize(
    ("release", "last", "says"),
    [(Release.QNX_8, 1, []), (Release.QNX_8, 2, ["buffer 2 follows buffer 3"]),
     (Release.QNX_7, 1, ["buffer 1 follows buffer 3"])],
)  # fmt: skip
def test_what_stop_hands_over_counts_from_1_again(release, last, says):
    problems = Problems()
    found = table((0, 0, 2, 10, 1), (10, 0, 3, 10, 2), (20, 0, last, 80, 3), release=release)
    combine.report_buffers(found, REGION, release, problems)
    assert [row[1] for row in told(problems)] == says


def test_a_list_that_is_too_long_ends_with_sums():
    """Ten buffers with two lost before each, in files that list two of a kind."""
    problems = Problems(limit=2)
    found = table(*((10 * i, 0, 3 * i + 1, 9, i) for i in range(10)))
    combine.report_buffers(found, REGION, Release.QNX_7, problems)
    assert problems.counts() == {"lost-buffers": 18, "buffer-length": 9}
    assert sum(row.kind.slug == "lost-buffers" for row in problems) == 2
    moved = Problems(limit=2)
    combine.report_buffers(table(*((10 * i, 0, 9 - i, 10, i) for i in range(10))), REGION, Release.QNX_7, moved)
    assert moved.counts() == {"buffer-order": 9}


def test_marks_of_losses_and_ends():
    cookie = wire.BUFFER_END_COOKIE
    code = ints(wire.CONTROL_DROPPED, wire.CONTROL_BUFFER_END, wire.CONTROL_BUFFER_END, wire.CONTROL_TIME,
                wire.CONTROL_BUFFER_END, kind=np.uint16)  # fmt: skip
    words = np.stack([np.broadcast_to(np.array(row, np.uint32), 2) for row in ((7, 8), cookie, (0, 0), (1, 2), cookie)])
    words[4, 1] ^= 1
    problems = Problems()
    combine.report_control_events(code, words, np.arange(5), np.arange(5) * 10, REGION, problems)
    end = "the end mark of a buffer reads words"
    assert told(problems) == [
        ("lost-events", "the kernel reports dropped events, words 0x00000007 0x00000008", 1000, 1, 0),
        ("buffer-end", f"{end} 0x00000000 0x00000000", 1032, 1, 20),
        ("buffer-end", f"{end} 0x{words[4, 0]:08x} 0x{words[4, 1]:08x}", 1064, 1, 40),
    ]
    few = Problems(limit=1)
    combine.report_control_events(code[[0, 0, 0]], words[:3], np.arange(3), np.arange(3), REGION, few)
    assert (few.counts(), len(list(few))) == ({"lost-events": 3}, 1)


@pytest.mark.parametrize(
    ("codes", "times", "slots", "expected"),
    [
        ([USER] * 4, [0, 1, 1002, 1003], [0, 1, 2, 3], (2, 1002, 2, "1")),
        ([USER] * 4, [0, 1, 1001, 1003], [0, 1, 2, 3], None),  # exactly a second
        ([USER] * 4, [0, 1200, 3700, 3701], [0, 1, 2, 3], (2, 3700, 2, "2.5")),
        ([USER, USER, NAME, USER], [0, 1, 5000, 5001], [0, 1, 2, 3], (3, 5001, 1, "5")),
        ([USER, USER, NAME - 1, USER], [0, 1, 5000, 5001], [0, 1, 2, 3], (2, 5000, 2, "5")),
        ([USER, USER, wire.CONTROL_TIME, USER], [0, 1, 900, 1800], [0, 1, 2, 3], (3, 1800, 1, "1.8")),
        ([USER] * 3, [0, 5, 5000], [5, 3, 4], (4, 5000, 2, "5")),  # by where they are in the file
        ([USER], [7], [0], None), ([], [], [], None),
    ],
)  # fmt: skip
def test_what_was_written_while_a_ring_was_saved(codes, times, slots, expected):
    problems = Problems()
    combine.report_ring_tail(event_table(times, codes, slot=slots), 1000, REGION, problems)
    text = "{} events after a pause of {} s were probably written while the ring was saved"
    assert told(problems) == (
        []
        if expected is None
        else [("ring-tail", text.format(expected[2], expected[3]), 1000 + 16 * expected[0], expected[2], expected[1])]
    )


def test_bytes_of_slots():
    assert (REGION.byte(0), REGION.byte(3)) == (1000, 1048)
    assert EventRegion(0, 5, lambda slot: 7 * slot).byte(3) == 21
