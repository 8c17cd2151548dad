"""Parts of an axis by hand: numbers of pids, buffers, far slots, problems, what is cached, and words of events."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from satview.base.errors import Cancelled, SourceChangedError, TraceFormatError
from satview.base.time import Clock
from satview.events import wire
from satview.events.spec import Release
from satview.formats import axis as assemble
from satview.formats.axis import JOINERS, Member, open_axis, score, trace_on_axis
from satview.formats.registry import open_trace
from satview.store.axis import _FIRST_SPECIAL, AxisEntry, files_of, write_axis
from satview.store.tables import StateIndex
from satview.store.time_ranges import EVERY_CPU, Doubts
from satview.store.trace import Trace
from tests.helpers import linux_scene
from tests.helpers.columns import ints
from tests.helpers.kev import CYCLES_PER_S, START, TraceBuilder, write_trace
from tests.helpers.thread_trace import write_set

MARK = wire.code(wire.WireClass.USER, 5)
MESSAGE = wire.code(wire.WireClass.COMM, 0)


def axis(folder: Path, *traces: Trace, offset_ps: int = 0) -> Trace:
    members = [Member(name, trace, offset_ps if name == "b" else 0) for name, trace in zip("abc", traces, strict=False)]
    return trace_on_axis(folder / "x.sataxis", members)


def scene(path: Path, *, cpus: int = 1, late: int = 0) -> Trace:
    """Open a trace of two buffers (the one between is lost), an event with a slot of another in it, and one cut short.

    Slots: 0 TIME, 1 BUFFER, 2 a thread runs, 3 and 5 an event of four words, 4 a mark between, 6 BUFFER, 7 a message,
    8 the first slot of an event that the file ends in.
    """
    builder = TraceBuilder(cpus=cpus, start=START + late).time_event(0)
    builder.event(wire.CONTROL_BUFFER, 5, (1, 6)).state("RUNNING", 10, 7, 1)
    first, second = builder.writer.slots_of(MARK, 0, builder.at(20), (1, 2, 3, 4))
    [between] = builder.writer.slots_of(MARK, 0, builder.at(21), (5, 6))
    for slot in (first, between, second):
        builder.writer.append(slot)
    builder.event(wire.CONTROL_BUFFER, 40, (3, 4)).event(MESSAGE, 50, (1 << 16, 7))
    builder.writer.append(builder.writer.slots_of(MARK, 0, builder.at(60), (7, 8, 9, 10))[0])
    return open_trace(write_trace(path, builder.writer.slots(), cpus=cpus))


def test_slots_buffers_and_far_slots_are_numbered_behind_each_other(tmp_path):
    one, two = scene(tmp_path / "a.kev", cpus=2), scene(tmp_path / "b.kev")
    found = axis(tmp_path, one, two, offset_ps=7_000)
    assert (found.slot_count, one.slot_count) == (18, 9)
    assert found.buffers.slot.tolist() == [1, 6, 10, 15]
    assert found.buffers.cpu.tolist() == [0, 0, 2, 2]
    assert found.buffers.sequence.tolist() == [1, 3, 1, 3]
    assert found.buffers.slots.tolist() == [6, 4, 6, 4]
    assert found.buffers.lost_before.tolist() == [0, 1, 0, 1]
    assert (found.buffers.time_cycles - START).tolist() == [5, 40, 12, 47]
    assert len(one.fragments.event) == 1
    far = [part.rows[part.trace.fragments.event[0]] for part in files_of(found).parts]
    assert found.fragments.event.tolist() == far
    assert (found.fragments.start.tolist(), found.fragments.slot.tolist()) == ([0, 2, 4], [3, 5, 12, 14])
    assert [(part.threads.tolist(), part.processes.tolist()) for part in files_of(found).parts] == [
        ([0, 1], [0, 1]), ([0, 2], [0, 2])
    ], "nobody is the same in all"  # fmt: skip
    for part, slot in zip(files_of(found).parts, (0, 9), strict=True):
        assert found.last_slots()[part.rows].tolist() == (part.trace.last_slots() + slot).tolist()
    assert len(one.truncated) == 1
    assert found.truncated.tolist() == sorted(int(part.rows[part.trace.truncated[0]]) for part in files_of(found).parts)
    assert found.dump_end_cycles == one.dump_end_cycles
    assert trace_on_axis(tmp_path / "x", [Member("a", two), Member("b", one, -9_000)]).dump_end_cycles == (
        two.dump_end_cycles - 9
    ), "of the file that begins first"  # fmt: skip


def test_far_slots_of_files_whose_events_alternate(tmp_path):
    """The second file begins 1 cycle before the first one: its event is the earlier row."""
    one, two = scene(tmp_path / "a.kev"), scene(tmp_path / "b.kev")
    found = axis(tmp_path, one, two, offset_ps=-1_000)
    assert np.all(np.diff(found.fragments.event.astype(np.int64)) > 0)
    assert (found.fragments.start.tolist(), found.fragments.slot.tolist()) == ([0, 2, 4], [12, 14, 3, 5])


def test_files_without_buffers_and_far_slots(tmp_path):
    plain = TraceBuilder().time_event(0).event(MARK, 5).open(tmp_path)
    found = axis(tmp_path, plain, plain)
    assert (len(found.buffers), len(found.fragments.event), len(found.truncated)) == (0, 0, 0)
    assert found.fragments.start.tolist() == [0]
    assert len(axis(tmp_path, scene(tmp_path / "a.kev"), plain).fragments.event) == 1
    empty = TraceBuilder().open(tmp_path)
    nothing = axis(tmp_path, empty, empty)
    assert (len(nothing.events), nothing.clock.start_cycles) == (0, 0)


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        (((0, 7), (0, 9)), [[-1, 0, 7], [-1, 10, 19]]),
        (((0, 7), (10,), (99, 3)), [[-1, 0, 7], [-1, 110], [-1, 299, 203]]),
        (((), ()), [[-1], [-1]]),
        # 10**9 for each file fits two files; three share 2**31 - 1 evenly, and larger pids fall together.
        (((999_999_999,), (1,)), [[-1, 999_999_999], [-1, 1_000_000_001]]),
        (((999_999_999, 5), (1,), (2**31 - 1,)), [[-1, 715_827_881, 5], [-1, 715_827_883], [-1, 2_147_483_645]]),
        (((2**31 - 1,), (5,)), [[-1, 1_073_741_822], [-1, 1_073_741_828]]),
        (((715_827_881,), (9,), (3,)), [[-1, 715_827_881], [-1, 715_827_891], [-1, 1_431_655_767]]),
        (((10,), (9,), (3,)), [[-1, 10], [-1, 109], [-1, 203]]),
        (((99,), (100,), (3,)), [[-1, 99], [-1, 1100], [-1, 2003]]),
    ],
)
def test_pids_of_further_files_begin_with_a_digit_of_their_own(tables, expected):
    """The number of the file is in front of the digits of a pid; of damaged ones 2^31 is shared by all."""
    traces = [SimpleNamespace(processes=SimpleNamespace(pid=np.array((-1, *pids), np.int32))) for pids in tables]
    assert [pids.tolist() for pids in assemble._pids(traces)] == expected


def member(first: int, rate: int, boot_s: int | None = 9, *, is_absolute: bool = True) -> Member:
    clock = Clock(rate, first, boot_s, is_absolute=is_absolute)
    return Member("a", SimpleNamespace(clock=clock, window=SimpleNamespace(start=first)))


@pytest.mark.parametrize(
    ("first", "rate", "base"),
    [(1000, 1000, 1000), (1000, 300, 3333), (-1, 300, -4), (2**61 - 1, 1000, 2**61 - 1), (2**61, 1000, 0),
     (-(2**61), 1000, 0)],
)  # fmt: skip
def test_the_first_file_begins_at_its_own_stamp(first, rate, base):
    assert assemble._base([member(first, rate)], 1000) == base


def test_the_date_is_that_of_the_first_file_at_any_rate():
    trace = member(70, 1000).trace
    assert assemble._clock(trace, 1000, 50) == Clock(1000, 50, 9, is_absolute=True)
    assert assemble._clock(trace, 2000, 50) == Clock(2000, 50, 9, is_absolute=True)
    assert assemble._clock(member(70, 1000, is_absolute=False).trace, 1000, 50) == Clock(1000, 50, 9, is_absolute=False)


@pytest.mark.parametrize(
    ("offset", "says"),
    [(41, None), (42, "0 ns"), (52, "10 ns"), (-41, None), (-42, "0 ns"), (-1042, "1.000 µs")],
)
def test_files_that_do_not_overlap(tmp_path, offset, says):
    """Each lasts from 0 to 40 ns, both included."""
    trace = TraceBuilder().time_event(0).event(MARK, 40).open(tmp_path)
    length = trace.window.length
    found = list(axis(tmp_path, trace, trace, offset_ps=(offset + np.sign(offset) * (length - 42)) * 1000).problems)
    assert [(each.kind.slug, each.file, each.detail.endswith(" between it and a")) for each in found] == (
        [("no-overlap", "b", True)] if says else []
    )
    if says:
        assert found[0].time_cycles == trace.window.start + offset + np.sign(offset) * (length - 42)
        assert found[0].detail.startswith(says)


def test_problems_name_their_file_and_when_on_the_axis(tmp_path):
    one, two = scene(tmp_path / "a.kev"), scene(tmp_path / "b.kev")
    found = axis(tmp_path, one, two, offset_ps=7_000)

    def rows(trace: Trace, name: str, later: int) -> list[tuple[object, ...]]:
        return [
            (each.kind.slug, each.detail, each.offset, each.count, each.line, f"{name} {each.file}".rstrip(),
             each.time_cycles if each.time_cycles is None else each.time_cycles + later)
            for each in trace.problems
        ]  # fmt: skip

    shown = [(each.kind.slug, each.detail, each.offset, each.count, each.line, each.file, each.time_cycles)
             for each in found.problems]  # fmt: skip
    assert shown == rows(one, "a", 0) + rows(two, "b", 7)
    assert len(shown) >= 4
    assert any(row[-1] is not None for row in shown)
    assert found.header.pairs == (
        ("FILE_COUNT", "2"),
        ("FILE_1_NAME", "a"), ("FILE_1", str(one.path)), ("FILE_1_FORMAT", "kev, release 7.x"),
        ("FILE_2_NAME", "b"), ("FILE_2", str(two.path)), ("FILE_2_FORMAT", "kev, release 7.x"),
    )  # fmt: skip


def test_cpus_and_times_that_do_not_fit(tmp_path, monkeypatch):
    trace = TraceBuilder(cpus=2).time_event(0).event(MARK, 40).open(tmp_path)
    monkeypatch.setattr(assemble, "_MOST_CPUS", 4)
    axis(tmp_path, trace, trace)
    monkeypatch.setattr(assemble, "_MOST_CPUS", 3)
    with pytest.raises(TraceFormatError, match="the files have 4 CPUs together; at most 3 fit; name fewer"):
        axis(tmp_path, trace, trace)
    monkeypatch.setattr(assemble, "_MOST_CPUS", 255)
    assert 2**31 < assemble._MOST_EVENTS < _FIRST_SPECIAL, "rows are numbers of 32 bits, of which the last mean none"
    room = assemble._LARGEST - START - trace.clock.cycles_per_s  # a file takes a second more than it lasts, at most
    for fits, refused in ((room - 1, room), (-START - assemble._LARGEST + 1, -START - assemble._LARGEST)):
        assert len(axis(tmp_path, trace, trace, offset_ps=fits * 1000).events) == 4
        with pytest.raises(TraceFormatError, match="the times of b are too far away; check its offset"):
            axis(tmp_path, trace, trace, offset_ps=refused * 1000)
    for far in (1 << 75, -(1 << 75)):
        with pytest.raises(TraceFormatError, match="the times of b are too far away"):
            axis(tmp_path, trace, trace, offset_ps=far)
    for offset_ps, later in ((499, 0), (500, 1), (-500, 0), (-501, -1)):
        part = files_of(axis(tmp_path, trace, trace, offset_ps=offset_ps)).parts[1]
        assert part.at_cycles == START + later, "rounded to the nearest cycle"


def test_the_most_cpus_and_events_that_fit(tmp_path):
    """A lane is left for CPUs that only damaged slots name; 255 CPUs and 2^32 - 16 events fit."""
    traces = [TraceBuilder(cpus=cpus).time_event(0).open(tmp_path) for cpus in (64, 64, 64, 63)]
    members = [Member("a", trace) for trace in traces]
    assert trace_on_axis(tmp_path / "x", members).cpu_count == 255
    with pytest.raises(TraceFormatError, match="the files have 256 CPUs together; at most 255 fit; name fewer"):
        trace_on_axis(tmp_path / "x", [*members[:3], members[0]])
    for last, fits in ((2**31 - 16, True), (2**31 - 15, False)):
        large = [Member("a", SimpleNamespace(cpu_count=1, events=range(count))) for count in (2**31, last)]
        if fits:
            assemble._refuse(tmp_path, large)
        else:
            with pytest.raises(TraceFormatError, match="too many events together; name fewer, or cut them"):
                assemble._refuse(tmp_path, large)


def test_no_file_begins_below_zero(tmp_path):
    """The second file begins 1.5 s before the first one, whose counter is then at 1 s: both are moved by a second."""
    builder = TraceBuilder(start=CYCLES_PER_S).time_event(0).event(MARK, 40)
    trace = builder.open(tmp_path)
    later = axis(tmp_path, trace, trace, offset_ps=-1_500_000_000_000)
    half = CYCLES_PER_S // 2
    assert [part.at_cycles for part in files_of(later).parts] == [2 * CYCLES_PER_S, half]
    assert later.events.time_cycles.tolist() == [half, half + 40, 2 * CYCLES_PER_S, 2 * CYCLES_PER_S + 40]
    assert later.clock.wall_time(2 * CYCLES_PER_S) == trace.clock.wall_time(CYCLES_PER_S), (
        "the date is that of the file"
    )
    exact = axis(tmp_path, trace, trace, offset_ps=-1_000_000_000_000)
    assert [part.at_cycles for part in files_of(exact).parts] == [CYCLES_PER_S, 0], "at zero nothing is moved"


def test_columns_of_an_axis_are_not_written_to(tmp_path):
    trace = TraceBuilder().time_event(0).event(MARK, 5).open(tmp_path)
    parts = files_of(axis(tmp_path, trace, trace))
    for column in (parts.part_of, parts.own_row, parts.parts[0].rows, parts.parts[1].rows):
        assert not column.flags.writeable


def test_codes_are_those_of_the_first_file_of_qnx(tmp_path):
    """Where there is none they are those of the first file."""
    (tmp_path / "guest.txt").write_text(linux_scene.TEXT)
    write_set(tmp_path, "0 lwp1 t1 thr_self")
    guest, threads = open_trace(tmp_path / "guest.txt"), open_trace(tmp_path / "tr.00010e1.001")
    host = TraceBuilder().time_event(0).event(MARK, 5).open(tmp_path)
    for members, release in (((guest, host), Release.QNX_7), ((host, guest), Release.QNX_7),
                             ((guest, threads), Release.LINUX), ((threads, guest), Release.UNIXWARE)):  # fmt: skip
        found = axis(tmp_path, *members)
        assert (found.release, found.catalogue.release) == (release, release)
        assert sorted(found.events.code.tolist()) == sorted(
            int(part.codes[code]) for part in files_of(found).parts for code in part.trace.events.code
        )
        own = next(part for part in files_of(found).parts if part.trace.release is release)
        assert own.codes[own.trace.events.code].tolist() == own.trace.events.code.tolist()


def test_what_is_cached_of_each_file_is_put_together(tmp_path):
    """Losses of all CPUs are one of each CPU of the file; numbers and times are those of the axis."""
    one, two = scene(tmp_path / "a.kev", cpus=2), scene(tmp_path / "b.kev", cpus=3)
    parts = files_of(found := axis(tmp_path, one, two, offset_ps=7_000))
    begin = START
    losses = JOINERS["losses"](parts, [
        np.array([[begin + 1, begin + 2, EVERY_CPU]]),
        np.array([[begin + 5, begin + 6, 1], [begin + 3, begin + 4, EVERY_CPU], [begin + 5, begin + 6, 1]]),
    ])  # fmt: skip
    assert (losses - ints(begin, begin, 0)).tolist() == [
        [1, 2, 0], [1, 2, 1], [10, 11, 2], [10, 11, 3], [10, 11, 4], [12, 13, 3]
    ]  # fmt: skip

    def doubts(trace: Trace, cpus: tuple[int, ...], threads: tuple[int, ...], processes: tuple[int, ...]) -> Doubts:
        sizes = (256, len(trace.threads), len(trace.processes))
        return Doubts(*(np.isin(np.arange(n), rows) for n, rows in zip(sizes, (cpus, threads, processes), strict=True)))

    last_thread, last_process = len(one.threads) - 1, len(one.processes) - 1
    whole = JOINERS["doubts"](parts, [doubts(one, (), (last_thread,), ()), doubts(two, (9,), (1,), (1,))])
    assert np.flatnonzero(whole.cpus).tolist() == [5], "of both files together: a lane behind the others"
    sizes = (256, len(found.threads), len(found.processes))
    assert (len(whole.cpus), len(whole.threads), len(whole.processes)) == sizes
    assert np.flatnonzero(whole.threads).tolist() == [last_thread, last_thread + 1]
    assert np.flatnonzero(whole.processes).tolist() == [last_process + 1]
    assert not JOINERS["doubts"](parts, [doubts(one, (), (), ()), doubts(two, (), (), ())]).cpus.any()
    first, second = (part.rows for part in parts.parts)
    rows, ends, is_cut = JOINERS["timeline.run_slices"](parts, [
        (np.array([2], np.uint32), ints(begin + 30), np.array([True])),
        (np.array([1, 2], np.uint32), ints(begin + 8, begin + 9), np.array([False, False])),
    ])  # fmt: skip
    both = sorted([(int(first[2]), 30), (int(second[1]), 15), (int(second[2]), 16)])
    assert list(zip(rows.tolist(), (ends - begin).tolist(), strict=True)) == both
    assert rows[is_cut].tolist() == [int(first[2])]
    assert not rows.flags.writeable
    assert not ends.flags.writeable


# ---- words -------------------------------------------------------------------------------------------------------


def test_words_of_events_have_the_pids_of_the_axis(tmp_path):
    """Pid 7 is 17 for the second file; a word is a pid in events of threads (the first) and messages (the second)."""
    traces = []
    for name in "ab":
        builder = TraceBuilder().time_event(0).process_name(2, 7, "app").state("RUNNING", 10, 7, 3)
        builder.event(MESSAGE, 20, (7, 7)).event(MARK, 30, (7, 7)).state("READY", 40, 8_000, 7, extra=(7, 7))
        traces.append(open_trace(write_trace(tmp_path / f"{name}.kev", builder.writer.slots())))
    found = axis(tmp_path, *traces, offset_ps=1_000)
    payloads, parts = found.payloads, files_of(found).parts
    step = int(parts[1].pids[-1]) - int(traces[1].processes.pid[-1])
    own = {"RUNNING": [7, 3], "message": [7, 7], "mark": [7, 7], "READY": [8000, 7, 7, 7]}
    later = {"RUNNING": [7 + step, 3], "message": [7, 7 + step], "mark": [7, 7], "READY": [8000 + step, 7, 7, 7]}
    rows = {name: np.array([part.rows[row] for row in range(-4, 0)]) for name, part in zip("ab", parts, strict=True)}
    for name, expected in (("a", own), ("b", later)):
        lists, some = list(expected.values()), rows[name]
        assert [payloads.words(int(row)).tolist() for row in some] == lists
        assert payloads.word_counts(some).tolist() == [2, 2, 2, 4]
        for word in range(4):
            column = [each[word] if word < len(each) else 0 for each in lists]
            after = [each[word + 1] if word + 1 < len(each) else 0 for each in lists]
            assert payloads.column(some, word).tolist() == column
            assert [each.tolist() for each in payloads.pair(some, word)] == [column, after]
        for count in (1, 2, 4):
            assert payloads.block(some, count).tolist() == [[*each, 0, 0][:count] for each in lists]
    mixed = np.array([rows["b"][0], rows["a"][0], rows["b"][3]])
    assert payloads.column(mixed, 0).tolist() == [7 + step, 7, 8000 + step]
    assert payloads.word_counts(mixed).tolist() == [2, 2, 4]
    assert payloads.block(mixed, 2).tolist() == [[7 + step, 3], [7, 3], [8000 + step, 7]]
    with payloads.reading_ahead(mixed.astype(np.uint32)):
        assert payloads.column(mixed, 1).tolist() == [3, 3, 7]
    pids = [[(each.value, each.note) for each in payloads.decode(int(rows[name][0])).arguments if each.name == "pid"]
            for name in "ab"]  # fmt: skip
    assert [value for [(value, _)] in pids] == [7, 7 + step]
    shown = [[(each.name, each.value) for each in payloads.decode(int(rows["b"][row])).arguments] for row in range(4)]
    assert shown == [
        [("pid", 7 + step), ("tid", 3)],
        [("rcvid", 7), ("pid", 7 + step)],
        [("d0", 7), ("d1", 7)],
        [("pid", 8000 + step), ("tid", 7), ("priority", 7), ("policy", 7)],
    ], "only pids are other numbers"
    assert pids[1][0][1].startswith("7 in b")
    assert pids[0][0][1] == traces[0].payloads.decode(len(traces[0].events) - 4).arguments[0].note


def test_a_file_of_the_axis_that_is_written_over_is_named(tmp_path):
    paths = [TraceBuilder().time_event(0).event(MARK, 40).write(tmp_path / f"{name}.kev") for name in "ab"]
    found = axis(tmp_path, *map(open_trace, paths))
    found.payloads.check()
    content = paths[1].read_bytes()
    paths[1].write_bytes(content.replace(b"/tmp/test.kev", b"/tmp/TEST.kev"))
    with pytest.raises(SourceChangedError, match=r"b\.kev.*: b: ") as changed:
        found.payloads.check()
    assert changed.value.path == paths[1]
    row = int(files_of(found).parts[1].rows[-1])
    with pytest.raises(SourceChangedError):
        found.payloads.decode(row)
    found.payloads.tolerate_loss()
    assert "not readable any more" in str(found.payloads.decode(row))
    found.payloads.close()


def test_opening_reports_each_file_s_share_and_stops(tmp_path):
    paths = [TraceBuilder().time_event(0).event(MARK, 40).write(tmp_path / f"{name}.kev") for name in "ab"]
    target = tmp_path / "x.sataxis"
    write_axis(target, [AxisEntry(path, path.stem) for path in paths])
    assert score(target.read_bytes(), target) == 100
    assert score(paths[0].read_bytes()[:4096], paths[0]) == 0
    shares: list[float] = []
    assert len(open_axis(target, shares.append).events) == 4
    assert shares == sorted(shares)
    assert {0.5, 1.0} <= set(shares)
    with pytest.raises(Cancelled):
        open_axis(target, None, lambda: True)


def test_columns_of_events_of_two_files():
    """Rows in the order of time; threads, slots and CPUs of the second file behind those of the first.

    CPUs beyond those of a file, up to 255, which only damaged slots name, become one behind those of all.
    """
    events = SimpleNamespace(
        time_cycles=np.array([5, 6, 7]), code=np.array([1, 2, 3], np.uint16), cpu=np.array([0, 1, 255], np.uint8),
        thread=np.array([0, 1, 1], np.uint16), slot=np.array([0, 4, 9], np.uint32),
        slot_count=np.array([1, 3, 1], np.uint8),
    )  # fmt: skip
    parts = [
        SimpleNamespace(
            trace=SimpleNamespace(events=events, cpu_count=cpus, slot_count=10), rows=np.array(rows), first_cpu=first,
            cycles=lambda cycles, factor=factor: cycles * 2 + factor, codes=np.arange(10, dtype=np.uint16) + factor,
            threads=np.array([0, factor], np.uint32),
        )
        for cpus, rows, first, factor in ((1, [0, 2, 4], 0, 1), (254, [1, 3, 5], 1, 2))
    ]  # fmt: skip
    found = assemble._events(parts)
    assert found.time_cycles.tolist() == [11, 12, 13, 14, 15, 16]
    assert found.code.tolist() == [2, 3, 3, 4, 4, 5]
    assert found.cpu.tolist() == [0, 1, 255, 2, 255, 255]
    assert found.thread.tolist() == [0, 0, 1, 2, 1, 2]
    assert found.slot.tolist() == [0, 10, 4, 14, 9, 19]
    assert found.slot_count.tolist() == [1, 1, 3, 3, 1, 1]
    assert [found.thread.dtype, found.slot.dtype, found.cpu.dtype] == [np.uint16, np.uint32, np.uint8]


def test_columns_are_as_wide_as_threads_and_slots_need():
    """Numbers of 16 bits hold 65,536 threads with nobody, those of 32 bits 2^32 slots."""
    events = SimpleNamespace(
        time_cycles=ints(5), code=np.zeros(1, np.uint16), cpu=np.zeros(1, np.uint8), thread=np.zeros(1, np.uint16),
        slot=np.zeros(1, np.uint32), slot_count=np.ones(1, np.uint8),
    )  # fmt: skip

    def dtypes(threads: int, slots: int) -> list[object]:
        parts = [
            SimpleNamespace(trace=SimpleNamespace(events=events, cpu_count=1, slot_count=part_slots), rows=ints(row),
                            first_cpu=0, cycles=lambda cycles: cycles, codes=np.zeros(1, np.uint16),
                            threads=np.zeros(1 + part_threads, np.uint32))
            for row, part_threads, part_slots in ((0, threads - 10, slots - 100), (1, 10, 100))
        ]  # fmt: skip
        found = assemble._events(parts)
        assert found.slot.tolist() == [0, slots - 100]
        return [found.thread.dtype, found.slot.dtype]

    assert dtypes(65_534, 2**32 - 1) == [np.uint16, np.uint32]
    assert dtypes(65_535, 2**32) == [np.uint32, np.uint64]


def test_states_of_two_files():
    """Events of nobody first, of both; then of each thread its own."""
    own = StateIndex(np.array([0, 1, 2, 3, 4], np.uint32), np.array([0, 1, 3, 3, 5]))  # of nobody: row 0
    parts = [SimpleNamespace(trace=SimpleNamespace(states=own), rows=np.arange(5) * 2 + number) for number in (0, 1)]
    found = assemble._states(parts)
    assert found.event.tolist() == [0, 1, 2, 4, 6, 8, 3, 5, 7, 9]
    assert found.start.tolist() == [0, 2, 4, 4, 6, 8, 8, 10]
