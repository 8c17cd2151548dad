"""Silence is unknown: slots cut out inside of buffers, and events that one flipped bit took away."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import numpy as np
import pytest

from satview.capture.buffers import LoggerOptions
from satview.capture.run import Capture, run
from satview.events import states, wire
from satview.events.spec import Release
from satview.formats.kev import assemble
from satview.formats.kev.combine import EventRegion
from satview.formats.kev.header import slots_as_bytes
from satview.formats.kev.reader import open_kev, read_start
from satview.linkage.links import rows_of_codes
from satview.store.problems import Problems
from satview.store.time_ranges import EVERY_CPU, losses
from satview.timeline.lane_info import LaneKind
from satview.timeline.lane_tree import Timeline
from tests.helpers.columns import event_table
from tests.helpers.extent import points
from tests.helpers.kev import TraceBuilder

INT_EXIT = wire.code(3, 2)


@cache
def capture(release, is_ring):
    """Return the head of a capture of 250 ms, and its slots, (n, 4) words."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "whole.kev"
        options = LoggerOptions(iterations=0, kernel_buffers=64, is_ring=is_ring)
        run(Capture("automotive", options=options, release=release, duration_ns=250_000_000), path)
        start = read_start(path)
        return path.read_bytes()[: start.offset], np.array(start.slots.read(0, len(start.slots)))


def changed(folder, release, change, *, is_ring=False):
    head, slots = capture(release, is_ring)
    path = folder / "changed.kev"
    path.write_bytes(head + slots_as_bytes(change(slots.copy()), "little"))
    return open_kev(path)


def values_at(timeline, kind, time, cpu):
    """Return the lane values of the lanes of a kind and CPU at a moment."""
    lanes = [timeline.lane(info.index).spans for info in timeline.infos if info.kind is kind and info.cpu == cpu]
    return {int(spans.value[np.searchsorted(spans.start_cycles, time, side="right") - 1]) for spans in lanes}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("release", "is_ring"), [(Release.QNX_7, False), (Release.QNX_8, False), (Release.QNX_7, True)]
)
def test_slots_cut_out_inside_of_buffers_leave_unknown_time(release, is_ring, tmp_path):
    first, count = 2500, 4000
    trace = changed(tmp_path, release, lambda slots: np.delete(slots, slice(first, first + count), 0), is_ring=is_ring)
    events, timeline, lost = trace.events, Timeline(trace), losses(trace)
    running, silent = rows_of_codes(trace, wire.THREAD_RUNNING), []
    for cpu in range(trace.cpu_count):
        own = np.flatnonzero(events.cpu == cpu)
        longest = int(np.argmax(np.diff(events.time_cycles[own])))
        start, end = events.time_cycles[own[longest : longest + 2]].tolist()
        if (end - start) / trace.clock.cycles_per_s < 0.04:
            continue
        silent.append(cpu)
        # Nobody runs in the middle of it on this CPU, and nothing is handled.
        middle = (start + end) // 2
        assert any(before < middle < behind and of in (cpu, EVERY_CPU) for before, behind, of in lost.tolist())
        assert values_at(timeline, LaneKind.CPU, middle, cpu) == {states.UNKNOWN}
        nothing = {states.UNKNOWN} if release is Release.QNX_7 else {0}  # 8.0 logs deliveries, which last for no time
        assert values_at(timeline, LaneKind.INTERRUPTS, middle, cpu) <= nothing
        # Behind it events belong to nobody until the CPU shows who runs on it.
        shown = running[(running > own[longest]) & (events.cpu[running] == cpu)]
        rows = own[(own > own[longest]) & (own < (int(shown[0]) if len(shown) else len(events)))]
        assert not events.thread[rows[events.code[rows] >> 10 == wire.WireClass.KER_CALL]].any()
    assert len(silent) == trace.cpu_count if release is Release.QNX_7 else silent


@pytest.mark.thorough
@pytest.mark.parametrize("release", [Release.QNX_6, Release.QNX_7])
def test_a_cut_that_leaves_the_length_of_the_buffer(release, tmp_path):
    _, slots = capture(release, False)
    buffers = np.flatnonzero((slots[:, 0] & wire.CODE_MASK) == wire.CONTROL_BUFFER)
    begin, end = next(
        (before + 300, behind + 300)
        for before, next_buffer, behind, last in zip(buffers, buffers[1:], buffers[6:], buffers[7:], strict=False)
        if next_buffer - before == last - behind
    )
    trace = changed(tmp_path, release, lambda slots: np.delete(slots, slice(begin, end), 0))
    assert "buffer-length" not in trace.problems.counts()
    lost = losses(trace)
    assert lost[:, 2].tolist() == [EVERY_CPU]
    assert (lost[0, 1] - lost[0, 0]) / trace.clock.cycles_per_s > 0.05  # six buffers of 20 ms


@points(release=[Release.QNX_7, Release.QNX_8], bits={"event": 0x3FF, "class": 0x7C00, "cpu": 0x3F000000})
def test_a_flipped_bit_loses_no_event(release, bits, tmp_path):
    """Simple events only: of one that has several slots the others would not find their first."""
    _, slots = capture(release, False)
    simple = np.flatnonzero(
        (slots[:, 0] >> wire.STRUCT_SHIFT == 0) & (slots[:, 0] >> 10 & 31 != wire.WireClass.CONTROL)
    )
    rng = np.random.default_rng(bits)
    hit = rng.choice(simple, 60, replace=False)
    masks = np.uint32(1) << rng.choice([bit for bit in range(32) if bits >> bit & 1], 60).astype(np.uint32)

    def flip(slots):
        slots[hit, 0] ^= masks
        return slots

    whole, trace = changed(tmp_path, release, lambda slots: slots), changed(tmp_path, release, flip)
    empty = int(np.count_nonzero((slots[hit, 0] ^ masks) == 0))
    assert len(trace.events) == len(whole.events) - empty
    assert set(trace.events.slot.tolist()) >= set(hit.tolist()) - set(hit[(slots[hit, 0] ^ masks) == 0].tolist())
    Timeline(trace)


def test_a_buffer_from_which_slots_are_missing_lost_events_too(tmp_path):
    builder = TraceBuilder()
    for number in range(3):
        builder.event(wire.CONTROL_BUFFER, number * 100, (number + 1, 6 if number == 1 else 4))
        builder.time_event(number * 100)
        for step in (1, 2) if number != 1 else (1, 80):
            builder.event(wire.code(6, 1), number * 100 + step)
    trace = builder.open(tmp_path)
    assert trace.problems.counts() == {"buffer-length": 1}
    assert losses(trace).tolist() == [[builder.at(101), builder.at(180), EVERY_CPU]]


def test_an_interrupt_without_its_exit_ends_where_threads_run_again(tmp_path):
    _, slots = capture(Release.QNX_7, False)
    exits = np.flatnonzero((slots[:, 0] & wire.CODE_MASK) == INT_EXIT)
    # One behind which the CPU runs a thread: where it stays idle nothing shows that the interrupt is over.
    flipped = next(row for row in exits[len(exits) // 3 :].tolist()
                   if slots[row + 1, 0] & wire.CODE_MASK == wire.THREAD_RUNNING
                   and slots[row + 1, 0] >> wire.CPU_SHIFT == slots[row, 0] >> wire.CPU_SHIFT)  # fmt: skip

    def flip(slots):
        slots[flipped, 0] ^= 0x40
        return slots

    whole, trace = changed(tmp_path, Release.QNX_7, lambda slots: slots), changed(tmp_path, Release.QNX_7, flip)
    assert trace.problems.counts() == {"unknown-events": 1, "contradiction": 1}
    cpu = int(slots[flipped, 0] >> wire.CPU_SHIFT & wire.CPU_MASK)
    lengths = []
    for each in (whole, trace):
        timeline = Timeline(each)
        lane = next(info for info in timeline.infos if info.kind is LaneKind.INTERRUPTS and info.cpu == cpu)
        spans = timeline.lane(lane.index).spans
        length = np.append(spans.start_cycles[1:], spans.end_cycles) - spans.start_cycles
        lengths.append(int(length[spans.value == states.INTERRUPT].sum()))
    assert 0 <= lengths[0] - lengths[1] < 100_000
    assert len(losses(trace)) == 1


def test_a_thread_does_not_run_on_where_its_cpu_runs_another(tmp_path):
    builder = TraceBuilder().time_event(0)
    builder.state("RUNNING", 10, 2, 1).state("RUNNING", 200, 3, 1)  # what ended the first run is damaged
    trace = builder.state("RECEIVE", 900, 2, 1).event(wire.code(6, 1), 1000).open(tmp_path)
    timeline = Timeline(trace)
    lanes = {info.thread: timeline.lane(info.index).spans for info in timeline.infos if info.kind is LaneKind.THREAD}
    first = lanes[int(np.flatnonzero(trace.threads.pid == 2)[0])]
    receive = states.STATE_BY_NAME["RECEIVE"].value
    assert first.value.tolist()[1:] == [states.RUNNING, states.UNKNOWN, receive]
    assert (first.start_cycles[1:] - builder.start).tolist() == [10, 200, 900]
    assert (
        sum(states.RUNNING in spans.value[spans.start_cycles <= builder.at(500)][-1:] for spans in lanes.values()) == 1
    )


# ---- parts -------------------------------------------------------------------------------------------------------

MARK, CALL, RUNNING = wire.code(wire.WireClass.USER, 5), wire.code(2, 11), wire.THREAD_RUNNING


def decoded(*rows, words=None):
    """Return columns in the order of the file: (code, CPU, time) of each event, of thread 7; words of BUFFER events."""
    code, cpu, time = (np.array(column) for column in zip(*rows, strict=True))
    n = len(rows)
    rare = np.flatnonzero(code == wire.CONTROL_BUFFER)
    words = np.array(words or [[0, 0]] * len(rare), np.uint32)
    return SimpleNamespace(
        code=code.astype(np.uint16), cpu=cpu.astype(np.uint8), time=time.astype(np.int64), thread=np.full(n, 7),
        slot=np.arange(n, dtype=np.uint32), rare_rows=rare, rare_words=words,
    )  # fmt: skip


def in_buffers(*buffers, cpu=0):
    """Return events of buffers, (number, announced slots, times) each: the first one of each is its BUFFER event."""
    rows = [(MARK if at else wire.CONTROL_BUFFER, cpu, time) for *_, times in buffers for at, time in enumerate(times)]
    return decoded(*rows, words=[buffer[:2] for buffer in buffers])


@pytest.mark.parametrize(
    ("buffers", "gaps"),
    [
        ([(1, 3, (0, 50, 51)), (2, 3, (60, 61, 62))], []),
        ([(1, 4, (0, 1, 51)), (2, 3, (60, 61, 62))], [(1, 51, 60)]),
        ([(1, 2, (0, 1, 51)), (2, 3, (60, 61, 62))], []),  # longer, and the next one follows it
        ([(1, 2, (0, 1, 51)), (3, 3, (60, 61, 62))], [(1, 51, 60)]),
        ([(1, 3, (0, 1, 51)), (3, 3, (60, 61, 62))], []),  # whole: what is missing is behind it
        # A buffer lasts for 20 at least (a tenth of 200): no two fit between 900 and 939. The length fits by chance.
        ([(1, 3, (0, 1, 2)), (2, 3, (200, 201, 900)), (5, 3, (939, 940, 941))], [(201, 900, 939)]),
        ([(1, 3, (0, 1, 2)), (2, 3, (200, 201, 900)), (5, 3, (940, 941, 942))], []),
        ([(1, 3, (0, 1, 2)), (2, 3, (200, 201, 900)), (5, 3, (899, 941, 942))], []),  # a block out of order
        ([(1, 4, (0, 1, 51)), (2, 3, (130, 131, 132))], []),  # time stands still in front of the next, which shows it
        ([(1, 4, (0, 0, 0)), (2, 3, (0, 1, 2))], []),
        ([(1, 4, (0, 10, 20))], [(10, 20, -1)]),  # of equal steps the last
        ([(1, 4, (0, 50, 10, 60))], []),
        ([(1, 5, (0, 50, 10, 60))], [(0, 50, -1)]),  # back, and to 60 from 50
        ([(1, 3, (0, 1, 51)), (2, 2, (60, 61, 62))], []),  # the last one is longer
        ([(1, 0, (0, 1, 41)), (3, 0, (51, 52))], [(1, 41, -1)]),  # of a ring: four times the step to the next
        ([(1, 0, (0, 1, 40)), (3, 0, (50, 51))], []),
        ([(1, 0, (0, 1, 41)), (2, 0, (51, 52))], []),
        ([(1, 4, (0, 1, 51)), (2, 4, (60, 61, 99)), (3, 2, (100, 101))], [(1, 51, 60), (61, 99, 100)]),
    ],
)  # fmt: skip
def test_where_cut_buffers_lack_events(buffers, gaps):
    """Last time before, first behind, and the BUFFER event that shows it."""
    columns = in_buffers(*buffers)
    count = len(columns.time)
    found = assemble.cut_buffers(columns, count, EventRegion(0, count), per_cpu=False)
    assert found.tolist() == [[before, behind, EVERY_CPU, shown] for before, behind, shown in gaps]
    ends = [*columns.rare_rows.tolist()[1:], count]
    unknown = {
        row for _, behind, _ in gaps for start in np.flatnonzero(columns.time == behind).tolist()
        for row in range(start, min(end for end in ends if end > start))
    }  # fmt: skip
    assert set(np.flatnonzero(columns.thread == 0).tolist()) == unknown


def test_buffers_of_each_cpu():
    """Those of CPU 0 are numbered on, and so are those of CPU 1; that of CPU 1 was cut and has an event of CPU 0."""
    rows = [(wire.CONTROL_BUFFER, 0, 0), (MARK, 0, 5), (wire.CONTROL_BUFFER, 1, 1), (MARK, 1, 2), (MARK, 0, 70),
            (MARK, 0, 71), (wire.CONTROL_BUFFER, 1, 90), (wire.CONTROL_BUFFER, 0, 95), (MARK, 0, 96)]  # fmt: skip
    columns = decoded(*rows, words=[(8, 2), (3, 5), (4, 1), (9, 2)])
    found = assemble.cut_buffers(columns, 9, EventRegion(0, 9), per_cpu=True)
    assert found.tolist() == [[5, 70, 0, 95]]
    assert columns.thread.tolist() == [7, 7, 7, 7, 0, 0, 7, 7, 7]
    # As buffers of all CPUs: number 3 does not follow 8, and only the one that is shorter than it says is cut.
    assert assemble.cut_buffers(decoded(*rows, words=[(8, 2), (3, 5), (4, 1), (9, 2)]), 9, EventRegion(0, 9),
                               per_cpu=False).tolist() == [[2, 70, EVERY_CPU, 90]]  # fmt: skip


def test_the_step_to_the_next_buffer_of_the_same_cpu():
    """Both buffers of CPU 0 are whole, and one between them is lost; CPU 1 has a buffer at the end of the first."""
    rows = [(wire.CONTROL_BUFFER, 0, 0), (MARK, 0, 1), (MARK, 0, 51), (wire.CONTROL_BUFFER, 1, 52),
            (wire.CONTROL_BUFFER, 0, 80)]  # fmt: skip
    columns = decoded(*rows, words=[(1, 3), (1, 1), (3, 1)])
    assert assemble.cut_buffers(columns, 5, EventRegion(0, 5), per_cpu=True).tolist() == []


def test_as_many_buffers_as_are_looked_into():
    """The first 500; those of names behind the capture are none of it."""
    columns = in_buffers(*((number, 4, (100 * number, 100 * number + 80, 100 * number + 81)) for number in range(502)))
    for count, gaps, last_shown_by in (
        (len(columns.time), 500, 50_000),
        (6, 2, -1),
        (5, 2, -1),
        (4, 1, 100),
        (3, 1, -1),
    ):
        found = assemble.cut_buffers(columns, count, EventRegion(0, count), per_cpu=False)
        assert found[:, :2].tolist() == [[100 * number, 100 * number + 80] for number in range(gaps)]
        assert found[:, 3].tolist() == [*range(100, 100 * gaps, 100), last_shown_by]
    assert assemble.cut_buffers(decoded((MARK, 0, 5)), 1, EventRegion(0, 1), per_cpu=False).tolist() == []


@pytest.mark.parametrize(("begin", "found"), [(5, []), (1 << 16, [(2, 0, 1 << 16)]), ((1 << 16) + 1, [])])
def test_how_far_back_the_last_event_of_a_cpu_is_looked_for(begin, found):
    """Of an event of CPU 2 in a buffer of CPU 1: 65,536 events."""
    cpu = np.ones(begin + 3, np.uint8)
    cpu[0 if found or begin > 5 else begin], cpu[begin:] = 2, (2, 1, 2)
    columns = SimpleNamespace(cpu=cpu, time=np.arange(begin + 3))
    assert assemble._longest_steps(columns, begin, begin + 3, 1) == found


def test_the_next_buffer_of_a_cpu():
    """Among the next 256."""
    columns = decoded(*((wire.CONTROL_BUFFER, 1 if row in (255, 300) else 0, 1000 + row) for row in range(301)))
    rows = np.arange(301)
    assert [assemble._next_buffer(columns, rows[at:], cpu) for at, cpu in (
        (0, 0), (3, 0), (0, 1), (255, 1), (256, 1), (44, 1), (1, 5), (7, EVERY_CPU), (301, EVERY_CPU)
    )] == [1000, 1003, 1255, 1255, 1300, 1255, -1, 1007, -1]  # fmt: skip
    assert assemble._next_buffer(columns, rows[256:], 0) == 1256
    assert assemble._next_buffer(columns, np.append(np.arange(1, 256) * 0, [1, 255]), 1) == -1


@pytest.mark.parametrize(
    ("begin", "end", "cpu", "unknown"),
    [(0, 8, 0, [0]), (1, 8, 0, []), (3, 8, 0, [3, 5, 7]), (3, 6, 0, [3, 5]), (3, 7, 0, [3, 5]), (0, 8, 1, [1, 6]),
     (0, 6, 1, [1]), (0, 8, EVERY_CPU, [0, 1, 6]), (3, 8, EVERY_CPU, [3, 5, 6, 7])],
)  # fmt: skip
def test_who_ran_is_unknown_until_a_cpu_shows_it(begin, end, cpu, unknown):
    """Events of threads name them themselves."""
    ready = wire.code(wire.WireClass.PR_TH, 2)
    columns = decoded((MARK, 0, 0), (CALL, 1, 1), (RUNNING, 0, 2), (MARK, 0, 3), (ready, 0, 4), (CALL, 0, 5),
                      (MARK, 1, 6), (MARK, 0, 7))  # fmt: skip
    assemble._forget_runners(columns, begin, end, cpu)
    assert np.flatnonzero(columns.thread == 0).tolist() == unknown


STEPS = {"<": (wire.code(3, 1), 1), ">": (INT_EXIT, -1)}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<>", []), ("<|", [(0, 0)]), ("<>|<", [(2, 2)]), ("</<", [(1, 1)]), ("></<>", []), ("><|", [(0, 1)]),
        (">|<>|", []),
        (">>|", []), (">>|<", [(2, 2)]), ("<<>|<>", [(0, 2)]), ("<<|>>", [(0, 1)]), ("<|/<>", []), ("<|<>/>", [(0, 0)]),
        ("<|<|<>|<", [(0, 0), (1, 1), (4, 4)]), ("<><<>>|", []), ("<>>><|", [(0, 4)]),
    ],
)  # fmt: skip
def test_interrupts_left_open_between_calls(text, found):
    """`<` enters, `>` leaves, `|` is a call of a thread, `/` a loss; behind a loss the exit may be what is missing."""
    segment, part, step, at = [], [], [], [0, 0]
    for letter in text:
        if letter in STEPS:
            segment.append(at[0])
            part.append(at[1])
            step.append(STEPS[letter][1])
        else:
            at["|/".index(letter)] += 1
    first, last = assemble._left_open(np.array(segment), np.array(part), np.array(step, np.int8))
    assert list(zip(first.tolist(), last.tolist(), strict=True)) == found


def interrupts(text, cpu=0, call=CALL):
    """Return events of `<`, `>` and `|`, ten cycles apart."""
    code = [STEPS[letter][0] if letter in STEPS else call for letter in text]
    return event_table(np.arange(len(code)) * 10, code, cpu)


@pytest.mark.parametrize(
    ("text", "gaps"),
    [
        ("<>|<|<>|", [(30, 40)]), ("<>|<>|", []), ("<|<|<|", []), ("<>|<", []), ("|<>|<||<>|", [(40, 50)]),
        ("<>|<<|<>|", [(40, 50)]), ("<>|<<>|<>|", [(50, 60)]),
        # An exit without its entry, later: at the end of the trace the CPU is in no interrupt.
        ("<>|<|" + "<>|" * 4 + ">|<>|", [(30, 40)]), ("<>|<|" + "<>|" * 3 + ">|<>|", []),
        # More than a tenth, and more than one: nothing that they show can be believed.
        ("<|<|" + "<>|" * 17, []), ("<|<|" + "<>|" * 18, [(0, 10), (20, 30)]),
        ("<|" * 3 + "<>|" * 26, []), ("<|" * 3 + "<>|" * 27, [(0, 10), (20, 30), (40, 50)]),
    ],
)  # fmt: skip
def test_interrupts_that_nothing_ends(text, gaps):
    for cpu in (0, 3):
        problems = Problems()
        found = assemble.open_interrupts(interrupts(text, cpu), assemble.no_gaps(), EventRegion(1000, 99), problems)
        assert found.tolist() == [[start, stop, cpu, -1] for start, stop in gaps]
        assert [(each.kind.slug, each.detail) for each in problems] == [
            ("contradiction", f"CPU {cpu} enters an interrupt and runs threads without having left it")
        ] * len(gaps)
    if len(gaps) == 1:
        entry = text.replace("<>", "..").index("<")
        assert [(each.offset, each.count, each.time_cycles) for each in problems] == [
            (1000 + 16 * entry, 1, 10 * entry)
        ]


@pytest.mark.parametrize(
    ("call", "counts"),
    [(CALL, True), (wire.code(2, 127), True), (wire.code(2, 128), False), (wire.code(2, 256), False),
     (wire.code(2, 11) | wire.KER_64BIT, True), (wire.code(2, 128) | wire.KER_64BIT, False), (RUNNING, True),
     (wire.code(wire.WireClass.PR_TH, 2), False), (MARK, False)],
)  # fmt: skip
def test_what_shows_that_a_cpu_handles_no_interrupt(call, counts):
    found = assemble.open_interrupts(interrupts("<|<>|", 0, call), assemble.no_gaps(), EventRegion(0, 9), Problems())
    assert found.tolist() == ([[0, 10, 0, -1]] if counts else [])
    of_two = interrupts("<|<>|", [0, 1, 0, 0, 1], call)
    assert assemble.open_interrupts(of_two, assemble.no_gaps(), EventRegion(0, 9), Problems()).tolist() == []


@pytest.mark.parametrize(
    ("known", "gaps"),
    [((5, 15, 0, -1), []), ((5, 15, 1, -1), [(0, 10)]), ((5, 15, EVERY_CPU, -1), []), ((25, 35, 0, -1), [(0, 10)])],
)
def test_a_loss_may_hold_the_exit(known, gaps):
    """An interrupt is entered at 0, and a thread calls the kernel at 10; then one is entered and left."""
    ends = interrupts("<|<>|<>|")
    found = assemble.open_interrupts(ends, np.array([known]), EventRegion(0, 9), Problems())
    assert found.tolist() == [[start, stop, 0, -1] for start, stop in gaps]


def test_the_first_interrupts_show_whether_to_look_at_the_others(monkeypatch):
    """Of 4,096 events; those of a capture of 19.2 MHz last for a second or two."""
    text = "<|<|" + "<>|" * 30
    events = interrupts(text)
    assert assemble._SAMPLE == 4096
    for sample, count in ((4, 0), (4096, 2)):
        monkeypatch.setattr(assemble, "_SAMPLE", sample)
        assert len(assemble.open_interrupts(events, assemble.no_gaps(), EventRegion(0, 9), Problems())) == count


def test_contradictions_beyond_some_are_counted():
    problems = Problems(limit=3)
    found = assemble.open_interrupts(
        interrupts(("<|" + "<>|" * 20) * 5), assemble.no_gaps(), EventRegion(0, 9), problems
    )
    assert len(found) == problems.counts()["contradiction"] == 5
    assert [each.time_cycles for each in problems] == [0, 620, 1240]
