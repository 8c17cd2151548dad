"""The one-pass event stream gives the events of the full decoder, in the order of last slots, whatever the chunks."""

import io
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from satview.events import wire
from satview.events.wire import Struct
from satview.formats.kev import stream
from satview.formats.kev.header import FROM_LISTING, SlotWriter, header_bytes
from satview.formats.kev.stream import MAX_OPEN, EventStream, blocks_of_array
from satview.formats.source import source_of
from satview.store.problems import Problems
from tests.formats.test_decode import opened as decoded
from tests.helpers.kev import START, TraceBuilder
from tests.helpers.pipes import Trickle

PAIRS = [
    ("FILE_NAME", "x"),
    ("LITTLE_ENDIAN", "TRUE"),
    ("CYCLES_PER_SEC", "1000"),
    ("SYS_RELEASE", "6.4.1"),
    ("SYSPAGE_LEN", "0"),
]
CALL = wire.code(wire.WireClass.KER_CALL, 11)


def events_of(slots, size=None):
    """Return [(header, stamp, words)] in delivery order, and the problems; `size` cuts the slots into blocks."""
    problems = Problems()
    blocks = blocks_of_array(slots) if size is None else (slots[at : at + size] for at in range(0, len(slots), size))
    found = []
    for batch in EventStream(blocks, problems):
        found += [
            (
                int(batch.header[row]),
                int(batch.stamp[row]),
                batch.words[batch.start[row] : batch.start[row + 1]].tolist(),
            )
            for row in range(len(batch))
        ]
    return found, problems


def combined(code, stamp, words, cpu=0):
    return SlotWriter.slots_of(code, cpu, stamp, words)


def test_interlaced_events_are_delivered_when_their_last_slot_is_read():
    first, second = combined(CALL, 5, [1, 2, 3, 4]), combined(CALL, 6, [5, 6, 7, 8], cpu=1)
    other = combined(wire.THREAD_RUNNING, 7, [9, 1])
    slots = np.array([first[0], second[0], other[0], second[1], first[1]], np.uint32)
    found, problems = events_of(slots)
    assert [words for _, _, words in found] == [[9, 1], [5, 6, 7, 8], [1, 2, 3, 4]]
    assert not len(problems)


def test_damage_is_named_with_its_position():
    tail = (CALL | Struct.COMBINE_END << 30, 5, 1, 2)
    opened_only = combined(CALL, 9, [1, 2, 3, 4])[0]
    found, problems = events_of(np.array([tail, (0, 0, 0, 0), opened_only], np.uint32))
    assert found == []
    assert problems.counts() == {"empty-slots": 1, "orphan-slots": 1, "unfinished-events": 1}
    assert {problem.kind.slug: problem.offset for problem in problems} == {
        "empty-slots": 16,
        "orphan-slots": 0,
        "unfinished-events": 32,
    }


def test_times_and_threads_go_on_from_block_to_block():
    writer = SlotWriter()
    writer.event(wire.CONTROL_TIME, 0, 0xFFFFFF00, [7, 0xFFFFFF00])
    writer.event(wire.THREAD_RUNNING, 0, 0xFFFFFF10, [20, 3])
    writer.event(CALL, 0, 0x10, [1, 2])
    stream = EventStream((writer.slots()[at : at + 1] for at in range(3)), Problems())
    batches = list(stream)
    assert [batch.time_cycles.tolist() for batch in batches] == [[0x7FFFFFF00], [0x7FFFFFF10], [0x800000010]]
    pid, tid = stream.thread_ids()
    assert [(int(pid[b.thread[0]]), int(tid[b.thread[0]])) for b in batches] == [(-1, -1), (20, 3), (20, 3)]


def test_the_first_time_may_be_zero():
    """An event 256 cycles in front of it has a time below zero."""
    writer = SlotWriter()
    writer.event(CALL, 0, 0xFFFFFF00, [1, 2])
    writer.event(wire.CONTROL_TIME, 0, 0, [0, 0])
    writer.event(CALL, 0, 0x10, [1, 2])
    [batch] = EventStream(blocks_of_array(writer.slots()), Problems())
    assert batch.time_cycles.tolist() == [-256, 0, 16]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6])
def test_buffers_in_a_row_wait_for_the_event_whose_time_they_take(size):
    """CPU 1 is a rollover ahead, so its buffers show by their times whether they took that of CPU 0."""
    slots = [(wire.CONTROL_TIME, 0, 1, 0), (wire.CONTROL_TIME | 1 << 24, 0, 2, 0)]
    slots += [(wire.CONTROL_BUFFER | 1 << 24, 500, number, 0) for number in (1, 2)] + [(CALL, 500, 0, 0)]
    slots = np.array(slots, np.uint32)
    batches = EventStream((slots[at : at + size] for at in range(0, len(slots), size)), Problems())
    times = np.concatenate([batch.time_cycles for batch in batches])
    assert (times - (1 << 32)).tolist() == [0, 1 << 32, 500, 500, 500]


def test_buffers_in_a_row_without_end_do_not_pile_up():
    slots = np.full((3000, 4), wire.CONTROL_BUFFER, np.uint32)
    batches = EventStream((slots[at : at + 100] for at in range(0, len(slots), 100)), Problems())
    assert [len(batch) for batch in batches] == [1100, 1100, 800]


def test_a_gap_between_buffers_is_reported():
    writer = SlotWriter()
    for sequence in (4, 5, 9):
        writer.event(wire.CONTROL_BUFFER, 0, sequence, [sequence, 0])
        writer.event(wire.THREAD_RUNNING, 0, sequence, [1, 1])
    _, problems = events_of(writer.slots())
    assert problems.counts() == {"lost-buffers": 3}
    assert next(iter(problems)).offset == 4 * 16


@pytest.mark.parametrize("mark", [wire.CONTROL_BUFFER, wire.CONTROL_DROPPED])
@pytest.mark.parametrize("size", [1, 2, None])
def test_behind_lost_events_nobody_knows_who_runs(mark, size):
    """Buffer 1 is followed by buffer 3, or the kernel says that it dropped events."""
    slots = np.array([
        (wire.CONTROL_BUFFER, 1, 1, 4), (wire.THREAD_RUNNING, 2, 9, 1), (CALL, 3, 0, 0), (mark, 4, 3, 2),
        (CALL, 5, 0, 0),
    ], np.uint32)  # fmt: skip
    blocks = [slots] if size is None else [slots[at : at + size] for at in range(0, len(slots), size)]
    reading = EventStream(blocks, Problems())
    threads = {int(batch.stamp[row]): int(batch.thread[row]) for batch in reading for row in range(len(batch))}
    assert threads == {1: 0, 2: 1, 3: 1, 4: 0, 5: 0}


def test_a_buffer_cut_short_and_lost_events_are_reported():
    writer = SlotWriter()
    writer.event(wire.CONTROL_BUFFER, 0, 1, [4, 3])
    writer.event(wire.THREAD_RUNNING, 0, 1, [1, 1])
    writer.event(wire.CONTROL_BUFFER, 0, 2, [5, 0])
    writer.event(wire.CONTROL_DROPPED, 0, 3, [7, 0])
    writer.event(wire.CONTROL_BUFFER_END, 0, 4, [wire.BUFFER_END_COOKIE, 0])
    _, problems = events_of(writer.slots())
    assert {problem.kind.slug: problem.offset for problem in problems} == {
        "buffer-length": 0,
        "lost-events": 48,
        "buffer-end": 64,
    }


@pytest.mark.parametrize(("own", "kinds"), [((), {"buffer-length"}), ((FROM_LISTING,), set())])
def test_buffers_of_a_file_made_of_a_listing_lack_what_was_not_printed(own, kinds):
    """The first buffer says that it has three slots, and has two."""
    writer = SlotWriter()
    writer.event(wire.CONTROL_BUFFER, 0, 1, [4, 3])
    writer.event(wire.THREAD_RUNNING, 0, 1, [1, 1])
    writer.event(wire.CONTROL_BUFFER, 0, 2, [5, 0])
    source = source_of(io.BytesIO(header_bytes([*PAIRS, *own]) + writer.slots().astype("<u4").tobytes()), "x.kev")
    assert sum(len(batch) for batch in source.events) == 3
    assert {problem.kind.slug for problem in source.problems} == kinds


SLOTS = st.lists(
    st.tuples(
        st.sampled_from([CALL, wire.THREAD_RUNNING, wire.CONTROL_TIME, wire.CONTROL_BUFFER, 0]),
        st.sampled_from(list(Struct)),
        st.integers(0, 2),
        st.integers(0, 3),
    ),
    max_size=30,
)


@given(SLOTS, st.integers(1, 7))
def test_cutting_the_slots_into_blocks_changes_nothing(rows, size):
    slots = np.array(
        [(code | cpu << 24 | kind << 30, stamp, code, stamp) for code, kind, cpu, stamp in rows], np.uint32
    ).reshape(-1, 4)
    whole, whole_problems = events_of(slots)
    pieces, piece_problems = events_of(slots, size)
    assert pieces == whole
    assert piece_problems.counts().get("unfinished-events") == whole_problems.counts().get("unfinished-events")
    assert piece_problems.counts().get("orphan-slots") == whole_problems.counts().get("orphan-slots")


def test_a_pipe_without_a_byte_order_is_read_ahead_for_it():
    """The first 300 slots are little-endian, more than are read to tell the format; the 700 behind them are not."""
    writer = SlotWriter()
    for stamp in range(1000):
        writer.event(CALL, 0, stamp, [1, 2])
    pairs, slots = [pair for pair in PAIRS if not pair[0].endswith("_ENDIAN")], writer.slots()
    data = header_bytes(pairs) + slots[:300].astype("<u4").tobytes() + slots[300:].astype(">u4").tobytes()
    assert source_of(Trickle(data, 7), "x.kev").byte_order == "big"


@given(st.binary(max_size=200))
def test_rubbish_behind_a_header_never_raises(data):
    source = source_of(io.BytesIO(header_bytes(PAIRS) + data), "x.kev")
    assert sum(len(batch) for batch in source.events) <= len(data) // 16


@pytest.mark.thorough
def test_events_without_end_do_not_pile_up():
    """Rubbish opens events for ever; the oldest are given up and counted."""
    slots = np.zeros((MAX_OPEN + 1000, 4), np.uint32)
    slots[:, 0] = CALL | Struct.COMBINE_BEGIN << 30
    slots[:, 1] = np.arange(len(slots))
    problems = Problems()
    stream = EventStream(blocks_of_array(slots), problems)
    assert sum(len(batch) for batch in stream) == 0
    assert problems.counts() == {"unfinished-events": len(slots)}
    assert len(problems) <= problems.limit


HEAD, MIDDLE, END = Struct.COMBINE_BEGIN, Struct.COMBINE_CONTINUE, Struct.COMBINE_END
CLOCK = None  # in place of the kind of a slot: a TIME event
# Slots of a call: kind, CPU, stamp, and the upper half of the clock if it is a TIME event.
NEAR = st.tuples(
    st.sampled_from([Struct.SIMPLE, HEAD, HEAD, MIDDLE, END, END, CLOCK]), st.integers(0, 1),
    st.sampled_from([5, 5, 5, 6, 0x80000000]), st.sampled_from([1, 2, 3, 1 << 20]),
)  # fmt: skip


def both(rows):
    """Return what the stream makes of slots, and what the full decoder does: whole events, orphans and unfinished."""
    slots = [
        (wire.CONTROL_TIME | cpu << 24, stamp, upper, stamp)
        if kind is CLOCK
        else (CALL | cpu << 24 | kind << 30, stamp, at, 0)
        for at, (kind, cpu, stamp, upper) in enumerate(rows)
    ]
    trace = decoded(slots)
    of_trace = Counter(
        (int(trace.events.code[row]), int(trace.events.cpu[row]), *trace.payloads.words(row).tolist())
        for row in sorted(set(range(len(trace.events))) - set(trace.truncated.tolist()))
    )
    found, problems = events_of(np.array(slots, np.uint32).reshape(-1, 4))
    of_stream = Counter((head & wire.CODE_MASK, head >> 24 & 63, *words) for head, _, words in found)
    counts = [
        [each.counts().get(slug, 0) for slug in ("orphan-slots", "unfinished-events")]
        for each in (problems, trace.problems)
    ]
    return (of_stream, counts[0]), (of_trace, counts[1])


@given(st.lists(NEAR, max_size=24))
def test_stream_and_full_decoder_match_the_same_tails(rows):
    stream, batch = both(rows)
    assert stream == batch


def test_tails_belong_to_the_oldest_open_event_even_behind_another_one():
    stream, batch = both([(CLOCK, 0, 4, 1), *[(HEAD, 0, 5, 0)] * 2, *[(END, 0, 5, 0)] * 2])
    events = {(CALL, 0, 1, 0, 3, 0), (CALL, 0, 2, 0, 4, 0), (wire.CONTROL_TIME, 0, 1, 4)}
    assert (set(stream[0]), stream[1]) == (set(batch[0]), batch[1]) == (events, [0, 0])


@pytest.mark.parametrize(("cycles", "matched"), [((1 << 32) - 1, True), (1 << 32, False), (-(1 << 32), False)])
def test_event_is_given_up_once_its_cpu_is_a_rollover_away(cycles, matched):
    at = (8 << 32 | 5) + cycles
    stream, batch = both([(CLOCK, 0, 5, 8), (HEAD, 0, 5, 0), (CLOCK, 0, at & 0xFFFFFFFF, at >> 32), (END, 0, 5, 0)])
    assert stream == batch
    assert ((CALL, 0, 1, 0, 3, 0) in batch[0]) is matched
    assert batch[1] == ([0, 0] if matched else [1, 1])


def test_event_that_is_open_when_the_first_time_comes_late_is_not_given_up():
    slots = np.array(
        [
            (CALL | Struct.COMBINE_BEGIN << 30, 5, 1, 2),
            (wire.CONTROL_TIME, 7, 1 << 20, 7),
            (CALL | Struct.COMBINE_END << 30, 5, 3, 4),
        ],
        np.uint32,
    )
    for size in (1, 2, 3):
        found, problems = events_of(slots, size)
        assert [words for _, _, words in found] == [[1 << 20, 7], [1, 2, 3, 4]]
        assert not len(problems)


USER, BUFFER, TIME = wire.code(wire.WireClass.USER, 1), wire.CONTROL_BUFFER, wire.CONTROL_TIME


@pytest.mark.parametrize(
    ("headers", "usable"),
    [([], 0), ([USER], 1), ([USER, BUFFER], 1), ([USER, BUFFER, 0], 1), ([BUFFER, USER], 2), ([BUFFER], 0),
     ([BUFFER] * 4, 0), ([BUFFER] * 5, 5), ([0] * 6, 6), ([BUFFER, USER, BUFFER, BUFFER], 2)],
)  # fmt: skip
def test_how_many_slots_of_a_block_are_taken(monkeypatch, headers, usable):
    """BUFFER slots at its end wait for the event whose time they take, but for no more than five here."""
    monkeypatch.setattr(stream, "_MOST_WAITING", 5)
    slots = np.zeros((len(headers), 4), np.uint32)
    slots[:, 0] = headers
    assert EventStream._usable(slots) == usable


def test_what_waits_at_once_and_is_read_at_first():
    """At most 1,024 BUFFER slots wait; 16 KiB of a pipe are read in one piece; 100 orphans are listed one by one."""
    buffers = np.full((1024, 4), BUFFER, np.uint32)
    assert (EventStream._usable(buffers[1:]), EventStream._usable(buffers)) == (0, 1024)
    blocks = stream.blocks_of_file(Trickle(bytes(32_000), 7), b"", "little", Problems())
    assert len(next(blocks)) == 1024
    problems, tails = Problems(1000), np.full((105, 4), CALL | Struct.COMBINE_END << 30, np.uint32)
    tails[:, 1] = np.arange(105)
    list(EventStream([tails], problems))
    assert [problem.count for problem in problems] == [1] * 100 + [5]
    problems = Problems()
    assert list(stream.blocks_of_file(io.BytesIO(b"123"), b"", "little", problems)) == []
    assert [problem.offset for problem in problems] == [0]


@pytest.mark.parametrize(
    ("header", "slug"), [(0x80000000, "orphan-slots"), (0xFFFFFFFF, "orphan-slots"), (0x40000000, "unfinished-events"),
                         (0x7FFFFFFF, "unfinished-events")]
)  # fmt: skip
def test_a_slot_of_an_event_of_several_is_the_first_or_not(header, slug):
    """By its two upper bits, whatever the others are."""
    assert events_of(np.array([(header, 5, 1, 2)], np.uint32))[1].counts() == {slug: 1}


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_times_that_the_source_gives(size):
    """Of every slot; an event has that of its first one, whatever the blocks."""
    first, second = combined(CALL, 5, [1, 2, 3, 4])
    slots = np.array([(USER, 1, 0, 0), first, (USER, 2, 0, 0), second, (TIME, 3, 9, 9), (USER, 4, 0, 0)], np.uint32)
    times = np.array([100, 200, 150, 250, 50, 999])
    blocks = [slots[at : at + size] for at in range(0, 6, size)]
    batches = list(EventStream(blocks, Problems(), release=None, times=times))
    found = [(int(code), time) for batch in batches
             for code, time in zip(batch.code.tolist(), batch.time_cycles.tolist(), strict=True)]  # fmt: skip
    assert found == [(USER, 100), (USER, 150), (CALL, 200), (TIME, 50), (USER, 999)]


def test_a_pipe_is_asked_for_the_beginning_and_then_for_what_it_has(monkeypatch):
    monkeypatch.setattr(stream, "_FIRST_BYTES", 100)
    monkeypatch.setattr(stream, "CHUNK_SLOTS", 4)
    content, asked = np.arange(160, dtype=np.uint32).tobytes() + b"rest", []

    class Pipe(io.BytesIO):
        def read(self, size=-1):
            asked.append(size)
            return super().read(min(size, 30))

        read1 = read

    problems = Problems()
    pipe = Pipe(content[20:])
    blocks = list(stream.blocks_of_file(pipe, content[:20], "little", problems, 1000))
    assert asked[:4] == [80, 50, 20, 64]
    assert np.concatenate(blocks).ravel().tolist() == list(range(160))
    assert [len(block) for block in blocks[:2]] == [6, 2]
    assert [(each.kind.slug, each.detail, each.offset) for each in problems] == [
        ("partial-slot", "4 of 16 bytes of the last slot", 1640)
    ]
    big = list(stream.blocks_of_file(io.BytesIO(b""), np.arange(8, dtype=">u4").tobytes(), "big", problems))
    assert np.concatenate(big).ravel().tolist() == list(range(8))


def test_orphans_of_a_chunk_beyond_some_are_counted_together(monkeypatch):
    monkeypatch.setattr(stream, "_SPELLED_OUT", 2)
    tails = [(CALL | Struct.COMBINE_END << 30, stamp, 1, 2) for stamp in (5, 5, 6, 7, 8)]
    problems = Problems()
    list(EventStream([np.array(tails, np.uint32)], problems, 160))
    assert [(each.kind.slug, each.detail, each.offset, each.count) for each in problems] == [
        ("orphan-slots", "1 slot of an event whose beginning is missing", 160, 1),
        ("orphan-slots", "1 slot of an event whose beginning is missing", 176, 1),
        ("orphan-slots", "and more of the same", None, 3),
    ]


@pytest.mark.parametrize(
    ("words", "kinds", "payload"),
    [((), [0], [0, 0]), ((1,), [0], [1, 0]), ((1, 2), [0], [1, 2]), ((1, 2, 3), [1, 3], [1, 2, 3, 0]),
     ((1, 2, 3, 4, 5), [1, 2, 3], [1, 2, 3, 4, 5, 0]), ((-1, 1 << 32), [0], [0xFFFFFFFF, 0])],
)  # fmt: skip
def test_slots_of_an_event(words, kinds, payload):
    """One for up to two words, else a first one, middle ones and a last one, filled with zeros."""
    slots = combined(CALL | 1 << 16, 1 << 32 | 7, words, cpu=65)
    assert [slot[0] for slot in slots] == [kind << 30 | 1 << 24 | CALL for kind in kinds]
    assert {slot[1] for slot in slots} == {7}
    assert [word for slot in slots for word in slot[2:]] == payload


@pytest.mark.parametrize("length", [7, 40, 1000])
@pytest.mark.parametrize("late", [(), (5,), (11, 12), (17,)])
def test_damaged_clocks_are_mended_in_blocks_of_any_length(length, late):
    """Twenty TIME events, some 4,096 rollovers late, and ten events behind each: all of these are where they were."""
    builder = TraceBuilder("7.1.0", cpus=2)
    for number in range(20):
        builder.time_event(number * 1_000_000, number % 2)
        for more in range(10):
            builder.event(wire.code(6, 1), number * 1_000_000 + 100 * more + 10, cpu=number % 2)
    slots = np.array(builder.writer.slots(), np.uint32).reshape(-1, 4)
    at = np.flatnonzero(slots[:, 0] & wire.CODE_MASK == wire.CONTROL_TIME)
    slots[at[list(late)], 2] ^= np.uint32(1 << 12)
    batches = list(EventStream([slots[first : first + length] for first in range(0, len(slots), length)], Problems()))
    time = np.concatenate([batch.time_cycles for batch in batches]) - START
    is_mark = np.concatenate([batch.header for batch in batches]) & wire.CODE_MASK != wire.CONTROL_TIME
    expected = [number * 1_000_000 + 100 * more + 10 for number in range(20) for more in range(10)]
    assert time[is_mark].tolist() == expected
