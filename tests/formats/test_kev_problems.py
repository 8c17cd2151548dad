"""What is said of damage: of a .kev file with every kind of it, and of each kind: text, byte, how often and when."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from satview.events import wire
from satview.events.catalogue import catalogue
from satview.events.spec import Release
from satview.formats.kev import assemble, repair
from satview.formats.kev.consensus import ClockVerdicts
from satview.formats.kev.reader import open_kev
from satview.formats.kev.sampling import GrowingFile
from satview.store.problems import Problems
from tests.core.reference.replacing import numpy_passes
from tests.helpers.kev import START, TraceBuilder, write_trace

SLOT = 16


def slots() -> np.ndarray:
    """Return slots; the number of each is in front of it."""
    builder = TraceBuilder("7.1.0", cpus=2)
    builder.event(wire.CONTROL_BUFFER, 0, (1, 12)).time_event(0, 0).time_event(1, 1)  # 0, 1, 2; 10 follow, not 12
    builder.state("RUNNING", 10, 7, 1)  # 3
    zeros = 4, 3  # 4, 5, 6
    builder.event(wire.code(3, 999), 30, (1, 2)).event(wire.code(3, 999), 31, (1, 2), 1)  # 7, 8: in no table
    orphan = (wire.Struct.COMBINE_END << 30 | wire.code(2, 5), 77, 1, 2)  # 9
    builder.event(wire.CONTROL_BUFFER, 100, (4, 3)).time_event(100, 0).time_event(101, 1)  # 10, 11, 12: 2, 3 are lost
    builder.event(wire.code(6, 1), 120, (1, 2, 3, 4, 5))  # 13, 14, 15
    builder.event(wire.CONTROL_BUFFER, 200, (3, 4)).time_event(200, 0).time_event(201, 1)  # 16, 17, 18: out of order
    builder.state("READY", 210, 7, 1, 1)  # 19
    builder.event(wire.CONTROL_BUFFER, 300, (4, 0)).event(wire.code(6, 2), 310, (1, 2, 3))  # 20, 21 and 22
    found = np.array(builder.writer.slots(), np.uint32).reshape(-1, 4)
    found = np.insert(found, [zeros[0]] * zeros[1], 0, axis=0)
    found = np.insert(found, 9, orphan, axis=0)
    found[17, 2] ^= np.uint32(1 << 31)  # a TIME that no counter has
    return found[:-1]  # without the end of the last event


# Kind, text, slot at whose first byte it is, how often, cycles.
EXPECTED = [
    ("partial-slot", "7 of 16 bytes of the last slot", 22, 1, None),
    ("empty-slots", "3 slots of zeros", 4, 3, None),
    ("unknown-events", "class 3 event 999 is in no table of 7.x", 7, 2, 30),
    ("clock-doubt", "events of CPU 0 from here on may be off by up to 1 rollovers", 17, 1, 200),
    ("clock-damaged", "a TIME event of CPU 0 holds an impossible value and was ignored", 17, 1, 200),
    ("orphan-slots", "1 slot of an event whose beginning is missing", 9, 1, None),
    ("unfinished-events", "the end of this event is missing", 21, 1, 310),
    ("lost-buffers", "2 buffers lost between number 1 at byte START and number 4", 10, 2, 100),
    ("buffer-order", "buffer 3 follows buffer 4", 16, 1, 200),
    ("buffer-length", "buffer 1 announces 12 slots, the file holds 10", 0, 1, 0),
    ("buffer-length", "buffer 4 announces 3 slots, the file holds 6", 10, 1, 100),
]


@pytest.mark.parametrize("core", [nullcontext, numpy_passes])
def test_every_problem_of_a_damaged_file(tmp_path, core):
    path = write_trace(tmp_path / "damaged.kev", slots(), cpus=2)
    start = path.stat().st_size - len(slots()) * SLOT
    path.write_bytes(path.read_bytes() + b"seven b")
    with core():
        trace, followed = open_kev(path), GrowingFile(path).read()
    assert trace.problems.cost_data
    # The rest of a file that may grow is yet to come.
    for found, expected in ((trace, EXPECTED), (followed, EXPECTED[1:])):
        assert [
            (problem.kind.slug, problem.detail.replace(f"{start:#x}", "START"), problem.offset, problem.count,
             problem.time_cycles)
            for problem in found.problems
        ] == [
            (slug, detail, start + SLOT * slot, count, None if at is None else START + at)
            for slug, detail, slot, count, at in expected
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ((b"TRACE_CYCLES_PER_SEC", b"TRACE_SYS_RELEASE"),
         ("header", "no TRACE_CYCLES_PER_SEC, no TRACE_SYS_RELEASE", 0, 2)),
        ((b"TRACE_LITTLE_ENDIAN",),
         ("byte-order", "the header says neither byte order; the data reads as little-endian", 0, 1)),
    ],
)  # fmt: skip
def test_what_a_header_lacks(tmp_path, change, expected):
    path = write_trace(tmp_path / "header.kev", slots(), cpus=2)
    content = path.read_bytes()
    for key in change:
        assert key in content
        content = content.replace(key, key[:-1] + b"X")
    path.write_bytes(content)
    first = next(iter(open_kev(path).problems))
    assert (first.kind.slug, first.detail, first.offset, first.count) == expected


REGION = SimpleNamespace(byte=lambda slot: 1000 + SLOT * slot)


def listed(problems: Problems) -> list[tuple[str, str, int | None, int, int | None]]:
    return [(each.kind.slug, each.detail, each.offset, each.count, each.time_cycles) for each in problems]


def decoded(times: list[int], **known: object) -> SimpleNamespace:
    """Return events of CPU 1 in every third slot."""
    count = len(times)
    columns = {"time": np.array(times), "cpu": np.ones(count, np.uint8), "slot": np.arange(count) * 3, "count": count}
    return SimpleNamespace(**columns, **known)


@pytest.mark.parametrize(("most", "said", "rest"), [(2, 2, 1), (3, 3, 0), (4, 3, 0)])
def test_events_with_damaged_stamps_move_between_their_neighbours(monkeypatch, most, said, rest):
    """Three of them; more than `most` are one problem."""
    assert repair.MANY == 200, "fewer are enough here"
    monkeypatch.setattr(repair, "MANY", most)
    far = 9 << 24
    events, problems = decoded([n + far * (n in (4, 8, 12)) for n in range(16)]), Problems()
    assert assemble._move_between_neighbours(events, np.arange(1, 15), REGION, problems)
    assert events.time.tolist() == [n if n not in (4, 8, 12) else n - 1 for n in range(16)]
    text = f"the stamp of an event is {far + 1} cycles off those around it; it shows between them"
    assert listed(problems) == [
        ("clock-damaged", text, 1000 + SLOT * 3 * 4 * n, 1, 4 * n - 1) for n in range(1, said + 1)
    ] + [("clock-damaged", "and more of the same", None, rest, None)] * bool(rest)  # fmt: skip
    assert not assemble._move_between_neighbours(events, np.arange(1, 15), REGION, problems)


@pytest.mark.parametrize(("most", "rest"), [(2, 1), (3, 0)])
@pytest.mark.parametrize(
    ("name", "slug", "text"),
    [
        ("steps", "clock-step", "CPU 1 went back by 7 cycles"),
        ("reseeded", "clock-seed", "the first TIME of CPU 1 is 7 cycles from where it was placed"),
        ("unproven", "clock-unproven", "a TIME event of CPU 1 is 7 rollovers after the events before it"),
        ("damaged", "clock-damaged", "a TIME event of CPU 1 is 7 rollovers off its neighbours, and ignored"),
        ("doubtful", "clock-doubt", "events of CPU 1 from here on may be off by up to 7 rollovers"),
        ("", "clock-damaged", "a TIME event of CPU 1 holds an impossible value and was ignored"),
    ],
)
def test_what_is_said_of_a_clock(monkeypatch, name, slug, text, most, rest):
    """Three times each, in the order of the file, for the first few events."""
    monkeypatch.setattr(repair, "MANY", most)
    rows, problems = [5, 1, 3], Problems()
    verdicts = ClockVerdicts(**{name: [(row, 1, 7) for row in rows]} if name else {})
    clock = SimpleNamespace(has_time=True, ignored=[] if name else rows)
    events = decoded([n * 10 for n in range(6)], empty=[(2, 1), (4, 2)], unknown={}, clock=clock)
    assemble._report_pass(events, verdicts, REGION, catalogue(Release.QNX_7), problems)
    assert listed(problems) == [
        ("empty-slots", "1 slot of zeros", 1032, 1, None), ("empty-slots", "2 slots of zeros", 1064, 2, None),
        *[(slug, text, 1000 + SLOT * 3 * row, 1, row * 10) for row in (1, 3, 5)[:most]],
        *[(slug, "and more of the same", None, 1, None)] * rest,
    ]  # fmt: skip


@pytest.mark.parametrize(("count", "has_time", "is_said"), [(1, False, True), (0, False, False), (1, True, False)])
def test_events_without_any_time_event(count, has_time, is_said):
    clock, problems = SimpleNamespace(has_time=has_time, ignored=[]), Problems()
    events = decoded([5] * count, empty=[], unknown={}, clock=clock)
    assemble._report_pass(events, ClockVerdicts(), REGION, catalogue(Release.QNX_7), problems)
    expected = ("clock-unknown", "no TIME event: times count from the first event", None, 1, None)
    assert listed(problems) == [expected] * is_said


@pytest.mark.parametrize(("most", "rest"), [(2, 2), (3, 1), (4, 0)])
@pytest.mark.parametrize(
    ("kind", "slug"),
    [(wire.Struct.COMBINE_END, "orphan-slots"), (wire.Struct.COMBINE_BEGIN, "unfinished-events")],
)
def test_parts_of_events_beyond_some_are_counted(tmp_path, monkeypatch, kind, slug, most, rest):
    """Four of them, between events of one slot."""
    monkeypatch.setattr(repair, "MANY", most)
    rows_of = []
    for number in range(4):
        rows_of += [(wire.code(6, 1), 10 * number, 1, 2), (kind << 30 | wire.code(2, 5), 10 * number + 5, 1, 2)]
    path = write_trace(tmp_path / "a.kev", rows_of)
    said = [each for each in open_kev(path).problems if each.kind.slug == slug]
    found = [(each.detail == "and more of the same", each.count) for each in said]
    assert found == [(False, 1)] * most + [(True, rest)] * bool(rest)


@pytest.mark.parametrize("said", ["999999999", "0", "-4", "two"])
def test_a_number_of_cpus_that_no_trace_can_have_is_reported_and_the_system_page_counts(tmp_path, said):
    path = TraceBuilder().time_event(0).state("RUNNING", 10, 7, 1).write(tmp_path / "t.kev")
    path.write_bytes(path.read_bytes().replace(b"TRACE_CPU_NUM::1", b"TRACE_CPU_NUM::" + said.encode(), 1))
    trace = open_kev(path)
    assert trace.cpu_count == 1
    says = f"TRACE_CPU_NUM is '{said}', not 1 to 64: system page and events count"
    assert [(problem.kind.slug, problem.detail) for problem in trace.problems] == [("header", says)]
