"""From slots to tables by hand: release and rate, who is who, where the opening dump ends, who runs, and samples."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from satview.base.errors import SourceChangedError
from satview.events import wire
from satview.events.spec import Release
from satview.formats.kev import assemble, decode, sampling
from satview.formats.kev.consensus import ROLLOVER
from satview.formats.kev.decode import Discontinuities, ThreadNumbers
from satview.formats.kev.slot_source import MemorySlots
from satview.store.problems import Problems
from satview.store.tables import EventTable
from satview.store.trace import Header
from tests.helpers.columns import event_table, ints
from tests.helpers.kev import START, TraceBuilder

MARK = wire.code(wire.WireClass.USER, 5)
RUNNING, READY = wire.THREAD_RUNNING, wire.code(wire.WireClass.PR_TH, 2)
CREATE, NAMED, THREAD = wire.PROC_CREATE, wire.PROC_CREATE_NAME, wire.THREAD_CREATE


def header(**pairs: str) -> Header:
    return Header(tuple(pairs.items()))


def page(**values: int) -> SimpleNamespace:
    return SimpleNamespace(values={name.replace("qtime_", "qtime."): value for name, value in values.items()})


# ---- release and clock -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("named", "kind", "release", "says"),
    [
        ("6.4.1", 0x1100, Release.QNX_6, None), ("6.6.0", None, Release.QNX_6_6, None),
        ("7.1.0", 0, Release.QNX_7, None),
        ("8.0.0", 0x1100, Release.QNX_8, None), ("8.0.0", 0x1101, Release.QNX_8, None),
        ("8.0.0", None, Release.QNX_8, None),
        ("8.0.0", 0x100, Release.QNX_6_6, "the header says 8.0 but the system page has the old layout: read as 6.6"),
        ("7.1.0", 0x1100, Release.QNX_7, None),
        ("", 0x1100, Release.QNX_8, "no usable SYS_RELEASE; the system page looks like 8.0"),
        ("x", 0x101, Release.QNX_7, "no usable SYS_RELEASE; the system page looks like 7.x"),
        ("x", 0x100, Release.QNX_7, "no usable SYS_RELEASE; the system page looks like 7.x"),
        ("x", 0xFF, Release.QNX_6, "no usable SYS_RELEASE; the system page looks like 6.x"),
        ("x", None, Release.QNX_7, "no usable SYS_RELEASE and no system page: read as 7.x"),
    ],
)  # fmt: skip
def test_the_release(named, kind, release, says):
    problems = Problems()
    found = assemble.choose_release(header(SYS_RELEASE=named), None if kind is None else page(type=kind), problems)
    assert found == release
    assert [(each.kind.slug, each.detail) for each in problems] == ([("release-assumed", says)] if says else [])


@pytest.mark.parametrize(
    ("text", "of_page", "rate", "says"),
    [
        ("5", 7, 5, None), ("0", 7, 7, None), ("1000000000000", 7, 10**12, None), ("1000000000001", 7, 7, None),
        ("", 1, 1, None), ("x", None, 10**9, "TRACE_CYCLES_PER_SEC is x"), ("0", 0, 10**9, "TRACE_CYCLES_PER_SEC is 0"),
        (None, 10**12 + 1, 10**9, "TRACE_CYCLES_PER_SEC is missing"),
    ],
)  # fmt: skip
def test_the_rate_of_stamps(text, of_page, rate, says):
    problems = Problems()
    pairs = {} if text is None else {"CYCLES_PER_SEC": text}
    system = None if of_page is None else page(qtime_cycles_per_sec=of_page)
    assert assemble.choose_rate(header(**pairs), system, problems) == rate
    assert [(each.kind.slug, each.detail) for each in problems] == ([("clock-rate", says)] if says else [])


@pytest.mark.parametrize(
    ("flags", "release", "common"),
    [(None, Release.QNX_7, True), (8, Release.QNX_7, True), (0xF, Release.QNX_8, True), (7, Release.QNX_7, False),
     (7, Release.QNX_6, True), (7, Release.QNX_6_6, False)],
)  # fmt: skip
def test_what_is_known_of_clocks(flags, release, common):
    dates = header(CYCLES_PER_SEC="10", DATE="Thu Oct 21 08:28:25 2021", BOOT_DATE="Thu Oct 21 07:57:55 2021")
    system = page(**({} if flags is None else {"qtime_flags": flags}))
    found = assemble.clock_surroundings(dates, system, release)
    assert (found.has_common_clock, found.uptime_cycles) == (common, (30 * 60 + 30) * 10)
    assert assemble.clock_surroundings(header(DATE="Thu Oct 21 08:28:25 2021"), None, release).uptime_cycles is None
    problems = Problems()
    assemble._report_skew(2, system, release, problems)
    assert [each.detail for each in problems] == (
        [] if common else ["the system page does not set the flag of a common clock"]
    )


# ---- where the opening dump ends ---------------------------------------------------------------------------------


def events(*rows: tuple[int, int, int, int]) -> EventTable:
    """Return events: time, code, CPU, thread."""
    time, code, cpu, thread = (ints(*column) for column in (zip(*rows, strict=True) if rows else [()] * 4))
    return event_table(time, code, cpu, thread)


DUMP = ((10, wire.CONTROL_TIME, 0, 0), (11, NAMED, 0, 0), (12, THREAD, 0, 1), (13, READY, 0, 1), (14, RUNNING, 0, 2))


@pytest.mark.parametrize(
    ("more", "end"),
    [
        ((), 14),
        (((15, MARK, 0, 1), (16, READY, 0, 9)), 14),  # a user event is no part of it
        (((15, MARK, 1, 1), (16, READY, 0, 3), (17, MARK, 0, 1)), 16),  # of another CPU it does not count
        (((15, wire.code(wire.WireClass.SYSTEM, 3), 0, 0), (16, MARK, 0, 1)), 15),
        (((15, wire.PROC_DESTROY, 0, 0),), 14), (((15, wire.PROC_DESTROY_NAME, 0, 0),), 14),
        (((15, wire.THREAD_DESTROY, 0, 5),), 14),
        (((15, READY, 0, 3), (16, READY, 0, 1)), 15),  # a second state of a thread
        (((15, CREATE, 0, 0), (16, THREAD, 0, 1), (17, READY, 1, 1)), 16),
        (((15, wire.PROC_THREAD_NAME, 0, 0), (16, READY, 0, 2)), 15),
    ],
)  # fmt: skip
def test_where_the_opening_dump_ends(more, end):
    activity = assemble._activity()
    assert assemble.dump_end(events(*DUMP, *more), activity, 1 << 60) == end
    assert assemble.dump_end(events(*DUMP, *more), activity, 13) == 12, "events are missing from 13 on"


@pytest.mark.parametrize(
    ("rows_of", "end"),
    [
        ((), 0), (((10, MARK, 0, 0),), 9), (((10, READY, 0, 1), *DUMP[1:]), 9), (((10, MARK, 1, 1), *DUMP[1:]), 9),
        (((10, RUNNING, 0, 1),), 9), (((10, THREAD, 0, 1), (11, MARK, 0, 1)), 10), (((10, CREATE, 0, 1),), 10),
    ],
)  # fmt: skip
def test_a_trace_without_a_dump(rows_of, end):
    activity = assemble._activity()
    assert assemble.dump_end(events(*rows_of), activity, 1 << 60) == end
    assert assemble.dump_end(events(*rows_of), activity, 0) == (9 if rows_of else 0)


@pytest.mark.parametrize(("second", "end"), [(2, 5), (3, 3)])
def test_a_dump_ends_where_buffers_are_missing_at_the_latest(tmp_path, second, end):
    """It is in buffer 1 and in the next one, at 4."""
    builder = TraceBuilder("7.1.0").event(wire.CONTROL_BUFFER, 0, (1, 4)).time_event(1).process_name(2, 7, "one")
    builder.event(THREAD, 3, (7, 1)).event(wire.CONTROL_BUFFER, 4, (second, 3)).process_name(5, 8, "two")
    assert builder.event(MARK, 6).open(tmp_path).dump_end_cycles == START + end


def test_a_process_that_a_dump_names_last_is_older_than_the_trace(tmp_path):
    trace = TraceBuilder("7.1.0").time_event(0).process_name(3, 7, "one").event(MARK, 6).open(tmp_path)
    assert (trace.dump_end_cycles, trace.processes.created_cycles.tolist()) == (START + 3, [-1, -1])


def test_as_many_events_as_a_dump_may_have():
    """131,072; what follows is no part of it, whatever it is."""
    born = event_table(np.arange((1 << 17) + 3), THREAD)
    assert assemble.dump_end(born, assemble._activity(), 1 << 60) == (1 << 17) - 1


@pytest.mark.parametrize("length", [0, 1, 255, 256, 257, 512, 1000])
def test_the_first_value_that_comes_again(length):
    values = np.arange(length, dtype=np.uint16)
    assert assemble._first_repetition(values) is None
    for again in {0, length // 2, length - 1} if length else ():
        assert assemble._first_repetition(np.append(values, np.uint16(again))) == length
        assert assemble._first_repetition(np.insert(values, length // 2 + 1, length // 2)) == length // 2 + 1


# ---- threads and processes ---------------------------------------------------------------------------------------


def test_who_is_who(tmp_path):
    """Processes of the dump are older than the trace; others begin, end, and may come again under their number."""
    builder = TraceBuilder("7.1.0").time_event(0)
    builder.process_name(1, 7, "old").event(THREAD, 2, (7, 1)).event(RUNNING, 3, (7, 1)).event(MARK, 10, (0, 0))
    builder.process_name(20, 8, "new", ppid=7).state("READY", 21, 8, 1).thread_name(22, 8, 1, "first")
    builder.thread_name(23, 8, 1, "second").thread_name(24, 8, 5, "nobody").thread_name(25, 9, 1, "nobody's")
    builder.process_name(30, 8, "", ppid=6).event(wire.PROC_DESTROY, 40, (7, 8)).event(wire.PROC_DESTROY, 41, (1, 7))
    builder.event(CREATE, 50, (0xFFFFFFFF, 7)).event(CREATE, 60, (7, 10)).event(wire.PROC_DESTROY, 70, (7, 10))
    builder.process_name(71, 11, "late", code=wire.PROC_DESTROY_NAME)
    trace = builder.open(tmp_path)
    assert trace.dump_end_cycles == START + 3
    found = trace.processes
    rows = zip(found.pid.tolist(), found.parent_pid.tolist(), found.names, (found.created_cycles - START).tolist(),
               (found.destroyed_cycles - START).tolist(), strict=True)  # fmt: skip
    never = -1 - START
    assert list(rows) == [
        (-1, -1, "", never, never), (7, -1, "old", never, never), (8, 6, "new", 20, 40), (9, -1, "", never, never),
        (10, 7, "", 60, 70), (11, -1, "late", never, 71),
    ]  # fmt: skip
    kinds = [
        getattr(trace.events, name).dtype for name in ("time_cycles", "code", "cpu", "thread", "slot", "slot_count")
    ]
    assert kinds == [np.int64, np.uint16, np.uint8, np.uint16, np.uint32, np.uint16]
    threads = trace.threads
    columns = (threads.pid.tolist(), threads.tid.tolist(), threads.process.tolist(), threads.names)
    assert list(zip(*columns, strict=True)) == [
        (-1, -1, 0, ""), (7, 1, 1, ""), (8, 1, 2, "second")
    ]  # fmt: skip


def test_where_a_problem_is():
    """Counted from the first slot where nobody says where that is."""
    slots = np.zeros((1, 4), np.uint32)
    for more, offset in (({}, 0), ({"offset": 160}, 160)):
        problems = Problems()
        assemble.trace_from_slots("x", "kev", header(SYS_RELEASE="7.1.0"), b"", slots, "little", problems, **more)
        assert [problem.offset for problem in problems if problem.kind.slug == "empty-slots"] == [offset]


def test_a_file_that_changed_while_it_was_decoded_is_refused():
    """Its slots could be read, but nobody knows which of them are those of the file that was opened."""

    class Changed(MemorySlots):
        def check(self) -> None:
            raise SourceChangedError("x", None, "it was written over", "open it again")

    slots = Changed(np.array([(MARK, 5, 0, 0)], np.uint32))
    with pytest.raises(SourceChangedError, match="it was written over"):
        assemble.trace_from_slots("x", "kev", header(SYS_RELEASE="7.1.0"), b"", slots, "little", Problems())


@pytest.mark.parametrize(
    ("pid", "shown"),
    [(0, 0), (2**31 - 1, 2**31 - 1), (2**31, -1), (-(2**31), -(2**31)), (-(2**31) - 1, -1)],
)
def test_a_parent_that_is_no_number(pid, shown):
    assert assemble._in_range(pid) == shown


# ---- numbers of threads, and buffers that are missing ------------------------------------------------------------


def test_threads_are_numbered_as_they_come(monkeypatch):
    """Tables grow by thousands of ids; ids that collide are spread by a multiplier that nobody knows."""
    numbers, expected = ThreadNumbers(), {}
    rng = np.random.default_rng(3)
    for size in (1, 10, 500, 4000, 9000):
        keys = rng.integers(1, 12_000, size).astype(np.uint64)
        rows = [expected.setdefault(key, len(expected) + 1) for key in keys.tolist()]
        assert numbers.numbers(keys).tolist() == rows
    assert len(numbers) == len(expected) + 1
    assert numbers.keys()[1:].tolist() == list(expected)
    assert len(numbers._keys) >= 8 * len(numbers)
    assert numbers._multiplier == decode._MULTIPLIER, "no need for another one"
    # Keys whose products have the same upper bits: all at one position.
    inverse = pow(int(decode._MULTIPLIER), -1, 1 << 64)
    colliding = np.array([(number * inverse) % (1 << 64) for number in range(1, 1001)], np.uint64)
    assert decode._random_odd() % 2 == 1
    numbers, given = ThreadNumbers(), [0x9E3779B97F4A7C17, int(decode._MULTIPLIER)]
    monkeypatch.setattr(decode, "_random_odd", given.pop)  # that which collides, then another one
    # 257 are near enough to their position; the next one, which is too far, comes first in a request.
    assert numbers.numbers(colliding[:257]).tolist() == list(range(1, 258))
    assert len(given) == 2
    assert numbers.numbers(colliding[257:]).tolist() == list(range(258, 1001))
    assert (given, numbers._multiplier) == ([], 0x9E3779B97F4A7C17)
    assert numbers.numbers(colliding[::-1].copy()).tolist() == list(range(1000, 0, -1))


def found(per_cpu: bool, *chunks: tuple[tuple[int, int, int, bool], ...]) -> list[list[tuple[int, int]]]:
    """Return the discontinuities of each chunk: position, CPU, number, DROPPED."""
    finder = Discontinuities(per_cpu)
    out = []
    for chunk in chunks:
        rows, cpus, numbers, dropped = zip(*chunk, strict=True) if chunk else [()] * 4
        out.append(finder.find(ints(*rows), ints(*cpus, kind=np.uint8), ints(*numbers, kind=np.uint32),
                               ints(*dropped, kind=np.bool_)))  # fmt: skip
    return out


def test_where_buffers_are_missing():
    """Numbers count on over chunks; lower bits alone are compared, as listings show no others."""
    one = ((3, 0, 7, False), (5, 1, 8, False), (9, 0, 10, False))
    two = ((1, 1, 11, False), (4, 0, 0, True), (6, 0, 12, False), (8, 0, 12, False))
    three = ((2, 0, 13 + 0x800, False), (3, 0, 13 + 0x801 + 0x400, False))
    assert found(False, one, (), two, three) == [[(9, -1)], [], [(4, -1), (8, -1)], [(3, -1)]]
    # Of each CPU in 8.0: CPU 0 has 7, 10, 12, 12; a number of 1 begins again.
    assert found(True, one, (), two) == [[(9, 0)], [], [(1, 1), (4, 0), (6, 0), (8, 0)]]
    again = (
        (0, 0, 5, False),
        (1, 1, 9, False),
        (2, 0, 1, False),
        (3, 1, 10, False),
        (4, 0, 2, False),
        (5, 0, 2, False),
        (6, 1, 12, False),
    )
    assert found(True, again) == [[(5, 0), (6, 1)]]
    assert found(False, ((0, 0, 5, False), (1, 0, 1, False))) == [[(1, -1)]]


# ---- samples -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "samples"), [(4096 * 4, 10), (60_000, 20), (1 << 20, 262), (5_000_000, 407)])
def test_samples_are_spread_over_a_file(count, samples):
    """Eight at the start, and one for each 4,096 slots, 600 at most, that is not among the eight."""
    order = sampling._read_order(count)
    length, head = sampling.SAMPLE_LENGTH, sampling._HEAD_SAMPLES
    assert len(set(order.tolist())) == len(order)
    assert order[:head].tolist() == [length * n for n in range(head)]
    assert order[head] == count - length, "the end comes next"
    assert len(order) == samples
    for taken in range(head + 2, len(order) + 1):
        begins = np.sort(order[:taken])
        if taken > head + 4:
            assert np.diff(begins).max() <= 4 * (count / (taken - head)), "any number of them is spread"
    assert np.all(np.diff(np.sort(order)) >= length) or count < 1 << 16


def sample(rows_of, positions: int, *, rate: int = 10**9, is_absolute: bool = True):
    """Return a trace of events (sample, time, CPU, is TIME), and the sample of each."""
    ordered = sorted(rows_of, key=lambda row: row[1])
    table = events(*((time, wire.CONTROL_TIME if is_time else MARK, cpu, 0) for _, time, cpu, is_time in ordered))
    clock = SimpleNamespace(cycles_per_s=rate, is_absolute=is_absolute)
    return SimpleNamespace(events=table, clock=clock), ints(*(row[0] for row in ordered))


@pytest.mark.parametrize(
    ("back", "rate", "ascends"),
    [(0, 10**9, True), (10**7, 10**9, True), (10**7 + 1, 10**9, False), (10, 1000, True), (11, 1000, False),
     (ROLLOVER // 4, 10**12, True), (ROLLOVER // 4 + 1, 10**12, False)],
)  # fmt: skip
def test_times_of_a_cpu_ascend_from_sample_to_sample(back, rate, ascends):
    """CPU 0 has 2000 in sample 0 and that less something in sample 2; CPU 1 is earlier, but ascends itself."""
    at = 2 * ROLLOVER
    rows_of = [(0, at, 0, False), (0, 5, 1, False), (2, at - back, 0, False), (2, 6, 1, False)]
    trace, position = sample(rows_of, 3, rate=rate)
    assert sampling._ascends(trace, position, 3) is ascends


def timed(rows_of, first: tuple[int, ...], **more) -> list[bool]:
    trace, position = sample(rows_of, len(first), **more)
    return sampling._are_timed(trace, position, ints(*first)).tolist()


QUARTER, PAUSE = ROLLOVER // 4, ROLLOVER // 16


@pytest.mark.parametrize(
    ("rows_of", "expected"),
    [
        # Each sample lasts 1000 cycles; the gaps of 1024 slots would take as long.
        ([(0, 0, 0, True), (0, 1000, 0, False), (1, 2000, 0, False), (1, 3000, 0, False)], [True, True, False]),
        ([(0, 0, 0, False), (0, 1000, 0, False), (1, 2000, 0, True), (1, 3000, 0, False)], [False, True, False]),
        ([(0, 0, 0, True), (0, 1000, 0, False), (1, 1000 + 4000 + PAUSE - 1, 0, False),
          (1, 6000 + PAUSE, 0, False)], [True, True, False]),
        ([(0, 0, 0, True), (0, 1000, 0, False), (1, 1000 + 4000 + PAUSE, 0, False), (1, 6000 + PAUSE, 0, False)],
         [True, False, False]),
        # A silence of a quarter: all since the last TIME may be on either side of it.
        ([(0, 0, 0, True), (0, 1000, 0, False), (1, 2000, 0, False), (1, 3000, 0, False),
          (2, 3000 + QUARTER, 0, True)], [True, False, True]),
        ([(0, 0, 0, True), (0, 1000, 0, False), (1, 2000, 0, False), (1, 3000, 0, False),
          (2, 3000 + QUARTER - 1, 0, True)], [True, True, True]),
        # A sample that lasts a quarter, and one with a pace that the gap makes a quarter of.
        ([(0, 0, 0, True), (0, QUARTER, 0, True), (2, QUARTER + 5, 0, True)], [False, False, True]),
        ([(0, 0, 0, True), (0, QUARTER - 1, 0, True), (1, QUARTER + 5, 0, False)], [True, True, False]),
    ],
)  # fmt: skip
def test_samples_whose_times_are_sure(rows_of, expected):
    assert timed(rows_of, (0, 2048, 4096)) == expected


def test_a_sample_without_events_says_nothing():
    rows_of = [(0, 0, 0, True), (0, 1000, 0, False), (2, 2000, 0, False), (2, 3000, 0, False)]
    assert timed(rows_of, (0, 1024, 2048)) == [True, False, True]


def test_a_disk_that_is_slow_gives_fewer_samples(tmp_path, monkeypatch):
    """One sample at the start and those that there is time for, in the order of the file."""
    builder = TraceBuilder().time_event(0)
    for number in range(3000):
        builder.event(MARK, number)
    path = builder.write(tmp_path / "a.kev")
    assert (sampling.LEAST_SLOTS, sampling.SAMPLE_LENGTH, sampling._LONGEST_S) == (1_048_576, 1024, 0.3)
    monkeypatch.setattr(sampling, "SAMPLE_LENGTH", 64)
    for least, longest_s, count in ((3000, 9, None), (3000, -1, 1), (3001, -1, 1), (3002, 9, 0)):
        monkeypatch.setattr(sampling, "LEAST_SLOTS", least)
        monkeypatch.setattr(sampling, "_LONGEST_S", longest_s)
        found = sampling.sampled(path)
        if count == 0:
            assert found is None
            continue
        assert found.first_slot.tolist() == sorted(found.first_slot.tolist())
        assert len(found.first_slot) == (count or len(sampling._read_order(3001)))
        slots = found.first_slot[found.position] + found.trace.events.slot - found.position * 64
        assert (found.trace.events.time_cycles - START).tolist() == [max(slot - 1, 0) for slot in slots.tolist()]


def test_each_gap_between_samples_counts_by_itself():
    """Of a cycle for each slot; one of the two gaps is as long as a quarter of a rollover."""
    rows_of = [(n, 1024 * n + m, 0, not n and not m) for n in range(3) for m in (0, 1024)]
    for gaps, expected in (((1024, QUARTER), [True, True, False]), ((QUARTER, 1024), [True, False, False]),
                           ((QUARTER - 1, QUARTER - 1), [True, True, True])):  # fmt: skip
        first = np.cumsum((0, *(1024 + gap for gap in gaps)))
        assert timed(rows_of, tuple(first.tolist())) == expected


@pytest.mark.parametrize(
    ("announced", "next_at", "number", "cpu", "release", "is_timed", "lost"),
    [
        (1, 1, 8, 0, Release.QNX_7, True, True), (3, 3, 8, 0, Release.QNX_7, True, True),
        (3, 3, 7, 0, Release.QNX_7, True, True),
        (3, 3, 6, 0, Release.QNX_7, True, False), (3, 3, 5, 0, Release.QNX_7, True, False),
        (0, 1, 8, 0, Release.QNX_7, True, False), (3, 2, 8, 0, Release.QNX_7, True, False),
        (9, 9, 8, 0, Release.QNX_7, True, True), (10, 9, 8, 0, Release.QNX_7, True, False),
        (3, 3, 8, 0, Release.QNX_7, False, False), (3, 3, 8, 1, Release.QNX_7, True, True),
        (3, 3, 8, 1, Release.QNX_8, True, False), (3, 3, 8, 0, Release.QNX_8, True, True),
    ],
)  # fmt: skip
def test_buffers_behind_a_sample_that_show_a_loss(announced, next_at, number, cpu, release, is_timed, lost):
    """Buffer 5 of CPU 0 in slot 0; the next one is as many slots behind it as it has, in a file of ten."""
    slots = np.zeros((10, 4), np.uint32)
    slots[:, 0] = MARK
    slots[next_at] = wire.CONTROL_BUFFER | cpu << wire.CPU_SHIFT, 700, number, 1
    buffers = SimpleNamespace(slot=ints(0), slots=ints(announced), sequence=ints(5), cpu=ints(0),
                              time_cycles=ints(2 * ROLLOVER + 500))  # fmt: skip
    sampled = events((3 * ROLLOVER + 40, wire.CONTROL_DROPPED, 0, 0))
    trace = SimpleNamespace(buffers=buffers, release=release, events=sampled)
    found = sampling._lost(trace, MemorySlots(slots), ints(0), np.array([is_timed]))
    assert found.tolist() == [3 * ROLLOVER + 40, *[3 * ROLLOVER + 700] * lost], "not by the time of its BUFFER event"


def test_samples_without_any_time_event():
    rows_of = [(0, 0, 0, False), (0, 1000, 0, False), (1, 2000, 0, False)]
    assert timed(rows_of, (0, 2048)) == [False, False]
    assert timed(rows_of, (0, 2048), is_absolute=False) == [True, True]
    # Gaps of 2^22 slots at a cycle for each: a quarter of a rollover is too far.
    assert timed([(0, 0, 0, True), (0, 1024, 0, False), (1, 2000, 0, False)], (0, QUARTER + 1024)) == [True, False]
    assert timed([(0, 0, 0, True), (0, 1024, 0, False), (1, 2000, 0, False)], (0, QUARTER + 1023)) == [True, True]
