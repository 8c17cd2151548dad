"""Smaller .kev files: the selected events are in them, at their time, with thread and words; nothing looks damaged."""

from pathlib import Path

import numpy as np
import pytest

from satview.__main__ import main
from satview.base.errors import Cancelled, UsageError
from satview.base.time import TimeWindow
from satview.events.spec import Release
from satview.events.wire import (
    CONTROL_BUFFER,
    CONTROL_BUFFER_END,
    CONTROL_DROPPED,
    CONTROL_TIME,
    PROC_CREATE_NAME,
    THREAD_CREATE,
    WireClass,
    code,
)
from satview.export.kev import opening_state, write_subset
from satview.filters.expressions.expression import Expression
from satview.formats.kev.assemble import trace_from_slots
from satview.formats.kev.header import write_kev
from satview.formats.kev.reader import open_kev
from satview.formats.registry import open_trace
from satview.store.problems import Problems
from satview.store.trace import Header
from tests.filters.made import (
    MSG_SENDV,
    MSG_SENDV_EXIT,
    READY,
    RELEASES,
    RUNNING,
    START_CYCLES,
    THREADS,
    Maker,
    make_trace,
    random_trace,
)
from tests.helpers.growth import cpu_s
from tests.helpers.shared import shared_path

CONTROL = WireClass.CONTROL


def no_control(trace):
    return trace.events.code >> 10 != CONTROL


def seen(trace, rows):
    """Events as plain values: time, code, CPU, pid, tid, words."""
    events, threads = trace.events, trace.threads
    return [
        (
            int(events.time_cycles[r]),
            int(events.code[r]),
            int(events.cpu[r]),
            int(threads.pid[events.thread[r]]),
            int(threads.tid[events.thread[r]]),
            tuple(trace.payloads.words(r).tolist()),
        )
        for r in rows
    ]


def contains(trace, requested):
    """Whether a trace has some events, each as often, in the same order."""
    at = iter(seen(trace, np.flatnonzero(no_control(trace))))
    return all(any(event == found for found in at) for event in requested)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("byte_order", ["little", "big"])
def test_everything_is_written_as_it_was(tmp_path, release, byte_order):
    trace = random_trace(3, 300, release, byte_order)
    report = write_subset(trace, tmp_path / "all.kev", np.ones(len(trace.events), np.bool_))
    again = open_kev(tmp_path / "all.kev")
    assert seen(again, np.flatnonzero(no_control(again))) == seen(trace, np.flatnonzero(no_control(trace)))
    assert again.byte_order == byte_order
    assert again.release == release
    assert set(again.problems.counts()) <= {"unknown-events"}
    assert report.selected == len(trace.events)
    assert report.context == 0
    assert report.slots == again.slot_count
    assert again.header.get("SATVIEW") == "subset"


@pytest.mark.parametrize(
    "text",
    [
        "event == MSG_SENDV",
        "pid == 7 and class != THREAD",
        "cpu == 1",
        "class == USREVENT",
        "time > 3s and class == COMM",
        "failed",
    ],
)
def test_what_is_selected_keeps_its_time_its_thread_and_its_words(tmp_path, text):
    for seed in range(4):
        trace = random_trace(seed, 400)
        selected = Expression(text, trace.release).mask(trace) & no_control(trace)
        write_subset(trace, tmp_path / "some.kev", selected)
        again = open_kev(tmp_path / "some.kev")
        assert contains(again, seen(trace, np.flatnonzero(selected)))
        assert len(again.events) < len(trace.events) + 30
        assert not again.problems.cost_data
        for pid in set(trace.threads.pid[trace.events.thread[selected]].tolist()) - {-1}:
            old, new = trace.processes.row(pid), again.processes.row(pid)
            assert again.processes.names[new] == trace.processes.names[old]


@pytest.mark.parametrize("seed", range(6))
def test_a_window_begins_with_the_state_of_that_moment(tmp_path, seed):
    trace = random_trace(seed, 400)
    cut = len(trace.events) // 2
    window = TimeWindow(int(trace.events.time_cycles[cut]), trace.window.end)
    rows = trace.rows_between(window)
    report = write_subset(trace, tmp_path / "late.kev", np.ones(len(trace.events), np.bool_), window)
    again = open_kev(tmp_path / "late.kev")
    inside = np.arange(rows.start, rows.stop)
    captured = inside[no_control(trace)[inside]]
    assert seen(again, np.flatnonzero(no_control(again)))[-len(captured) :] == seen(trace, captured)
    assert report.opening > 10
    assert not again.problems.cost_data
    # Each thread that had a state before the cut has the same one just before it in the new file.
    for thread in range(1, len(trace.threads)):
        before = [int(r) for r in trace.states.of(thread) if r < rows.start and trace.events.code[r] & 1023 < 24]
        row = again.threads.row(int(trace.threads.pid[thread]), int(trace.threads.tid[thread]))
        if before and trace.events.code[before[-1]] & 1023 != 0:
            assert row is not None
            states = [int(r) for r in again.states.of(row) if again.events.time_cycles[r] < window.start]
            assert again.events.code[states[-1]] == trace.events.code[before[-1]]
            assert again.threads.names[row] == trace.threads.names[thread]


def test_the_opening_is_a_dump_like_that_of_start():
    maker = Maker()
    begin = maker.start()
    maker.at(begin + 10, 1, RUNNING, 12, 1, 30, 2)
    maker.at(begin + 20, 0, READY, 7, 2)
    maker.text_at(begin + 30, 0, code(WireClass.PR_TH, 320), (7, 2), b"worker")
    maker.at(begin + 40, 0, MSG_SENDV, 1, 2)
    trace = make_trace(maker)
    opening = opening_state(trace, len(trace.events) - 1)
    codes = opening.code.tolist()
    assert codes.count(THREAD_CREATE) == len(THREADS)
    assert codes.count(RUNNING) == 1
    assert codes[:3] == [PROC_CREATE_NAME, THREAD_CREATE, READY]
    running = codes.index(RUNNING)
    assert opening.cpu[running] == 1
    assert opening.cpu.sum() == 1
    assert (np.diff(opening.time_cycles) == 1).all()
    assert opening.time_cycles[-1] == trace.events.time_cycles[-1] - 1


def rollovers(release=Release.QNX_6, buffers=True):
    """Two CPUs, one silent for several rollovers of the 32-bit stamp; in buffers, one of which is lost."""
    maker = Maker()
    time, rollover = START_CYCLES, 1 << 32
    for n, (number, step) in enumerate([(5, 0), (6, rollover // 3), (8, 3 * rollover + 77)]):
        time += step
        body = Maker()
        for cpu in (0, 1):
            body.event(CONTROL_TIME, cpu, time, (time >> 32, time & 0xFFFFFFFF))
        for i in range(900 if n < 2 else 800):  # the last one is handed over before it is full
            body.event(
                RUNNING if i % 3 == 0 else MSG_SENDV, 0, time + 10 + i, (7 + i % 2, 1) if i % 3 == 0 else (i, 1, 2, 3)
            )
        body.event(MSG_SENDV_EXIT, 1, time + 2000, (n, 0))
        if buffers:
            maker.event(CONTROL_BUFFER, 0, time, (number, len(body) + 1 + (release is Release.QNX_8)))
        for slot in body.slots().tolist():
            maker.append(tuple(slot))
        if buffers and release is Release.QNX_8:
            maker.event(CONTROL_BUFFER_END, 0, time + 1000, (0xE6E6E6E6, 0xE6E6E6E6))
    return make_trace(maker, release)


@pytest.mark.parametrize("release", [Release.QNX_6, Release.QNX_7, Release.QNX_8])
def test_buffers_are_made_again_and_gaps_stay(tmp_path, release):
    trace = rollovers(release)
    # Three rollovers pass where a buffer is missing: nothing proves that the TIME event behind it is sound.
    assert {**trace.problems.counts(), "clock-doubt": 0} == {"lost-buffers": 1, "clock-doubt": 0}
    selected = Expression("event == MSG_SENDV and word[0] % 2 == 0", release).mask(trace)
    write_subset(trace, tmp_path / "part.kev", selected)
    again = open_kev(tmp_path / "part.kev")
    captured = np.flatnonzero(selected)
    assert contains(again, seen(trace, captured))
    assert {**again.problems.counts(), "clock-doubt": 0} == {"lost-buffers": 1, "clock-doubt": 0}
    assert (again.buffers.slots <= 714).all()
    assert int(again.buffers.slots.sum()) == again.slot_count
    gap = int(np.flatnonzero(again.buffers.lost_before)[0])
    last = trace.buffers.time_cycles[2]
    assert again.buffers.time_cycles[gap - 1] < last <= again.buffers.time_cycles[gap]


def test_a_cpu_that_is_silent_for_turns_keeps_its_time(tmp_path):
    trace = rollovers(buffers=False)
    selected = trace.events.code == MSG_SENDV_EXIT
    write_subset(trace, tmp_path / "part.kev", selected, with_context=False)
    again = open_kev(tmp_path / "part.kev")
    exits = again.events.time_cycles[again.events.code == MSG_SENDV_EXIT].tolist()
    assert exits == trace.events.time_cycles[trace.events.code == MSG_SENDV_EXIT].tolist()
    assert len(again.buffers) == 0, "a trace without BUFFER events gets none"


def test_without_context_there_is_nothing_else(tmp_path):
    trace = random_trace(2, 200)
    selected = trace.events.code == MSG_SENDV
    report = write_subset(trace, tmp_path / "part.kev", selected, with_context=False)
    again = open_kev(tmp_path / "part.kev")
    assert set(again.events.code.tolist()) <= {MSG_SENDV, CONTROL_TIME}
    assert (report.context, report.opening) == (0, 0)


def test_nothing_selected_gives_a_file_that_opens(tmp_path):
    trace = random_trace(2, 50)
    write_subset(trace, tmp_path / "none.kev", np.zeros(len(trace.events), np.bool_), with_context=False)
    assert len(open_kev(tmp_path / "none.kev").events) == 0


def test_an_event_cut_short_stays_cut_short(tmp_path):
    maker = Maker()
    begin = maker.start()
    for slot in maker.slots_of(MSG_SENDV, 0, START_CYCLES + begin + 10, range(6))[:2]:
        maker.append(slot)
    maker.at(begin + 20, 0, MSG_SENDV_EXIT, 0, 0)
    trace = make_trace(maker)
    assert len(trace.truncated) == 1
    write_subset(trace, tmp_path / "cut.kev", np.ones(len(trace.events), np.bool_))
    again = open_kev(tmp_path / "cut.kev")
    assert again.problems.counts() == trace.problems.counts() == {"unfinished-events": 1}


@pytest.mark.parametrize("options", [["-o", "out", "--format", "list"], ["-o", "out.txt"]])
def test_a_listing_says_that_it_lacks_events_without_end(options, tmp_path, monkeypatch, capsys):
    maker = Maker()
    begin = maker.start()
    for number in range(2):
        for slot in maker.slots_of(MSG_SENDV, 0, START_CYCLES + begin + 10 + number, range(6))[:2]:
            maker.append(slot)
    maker.at(begin + 20, 0, MSG_SENDV_EXIT, 0, 0)
    trace = make_trace(maker)
    monkeypatch.chdir(tmp_path)
    write_subset(trace, "cut.kev", np.ones(len(trace.events), np.bool_))
    says = "  left out, as by the vendor's printer: 2 events without end"
    assert main(["export", "cut.kev", *options]) == 1
    assert capsys.readouterr().out.splitlines()[1:] == [says]
    assert main(["export", "cut.kev", *options, "-e", "event != MSG_SENDV"]) == 1
    assert "without end" not in capsys.readouterr().out


def rings(lost):
    """8.0: each CPU fills buffers of its own, which come into the file when they are full; one of them may be lost."""
    maker = Maker()
    number = [0, 0]
    for n in range(8):
        cpu = n % 2
        number[cpu] += 1
        time = START_CYCLES + 10_000 * (n // 2) + 100 * cpu
        if (cpu, number[cpu]) == lost:
            continue
        body = Maker()
        body.event(CONTROL_TIME, cpu, time, (time >> 32, time & 0xFFFFFFFF))
        body.event(RUNNING, cpu, time + 1, (7, 1 + cpu))
        for i in range(300):
            body.event(MSG_SENDV, cpu, time + 10 + 30 * i, (i, 1, 2, 3))
        maker.event(CONTROL_BUFFER, cpu, time, (number[cpu], len(body) + 2))
        for slot in body.slots().tolist():
            maker.append(tuple(slot))
        maker.event(CONTROL_BUFFER_END, cpu, time + 9500, (0xE6E6E6E6, 0xE6E6E6E6))
    return make_trace(maker, Release.QNX_8)


@pytest.mark.parametrize(("lost", "of_cpu"), [(None, []), ((0, 2), [0]), ((1, 3), [1])])
def test_every_cpu_of_8_0_has_buffers_of_its_own(tmp_path, lost, of_cpu):
    trace = rings(lost)
    selected = Expression("event == MSG_SENDV and word[0] < 250", Release.QNX_8).mask(trace)
    write_subset(trace, tmp_path / "part.kev", selected)
    again = open_kev(tmp_path / "part.kev")
    assert again.problems.counts() == trace.problems.counts() == ({"lost-buffers": 1} if lost else {})
    assert again.buffers.cpu[again.buffers.lost_before > 0].tolist() == of_cpu
    assert contains(again, seen(trace, np.flatnonzero(selected)))


@pytest.mark.parametrize("release", [Release.QNX_6, Release.QNX_7])
def test_an_opening_claims_nothing_that_events_were_lost_of(tmp_path, release):
    maker = Maker()
    step = 1000
    for n, (number, events) in enumerate(
        [
            (1, [(RUNNING, 0, (7, 1)), (READY, 1, (7, 2)), (RUNNING, 1, (12, 1))]),
            (3, [(MSG_SENDV, 0, (1, 2, 3, 4)), (READY, 0, (7, 2)), (MSG_SENDV, 0, (5, 2, 3, 4))]),
            (4, [(RUNNING, 0, (7, 1)), (MSG_SENDV, 0, (6, 2, 3, 4)), (MSG_SENDV, 1, (7, 2, 3, 4))]),
        ]
    ):
        time = START_CYCLES + n * step
        maker.event(CONTROL_BUFFER, 0, time, (number, 2 + len(events)))
        maker.event(CONTROL_TIME, 0, time, (time >> 32, time & 0xFFFFFFFF))
        for i, (event, cpu, words) in enumerate(events, 1):
            maker.event(event, cpu, time + i, words)
    trace = make_trace(maker, release)
    assert trace.buffers.lost_before.tolist() == [0, 1, 0]
    window = TimeWindow(START_CYCLES + step + 2, trace.window.end)
    rows = trace.rows_between(window)
    write_subset(trace, tmp_path / "late.kev", np.ones(len(trace.events), np.bool_), window)
    again = open_kev(tmp_path / "late.kev")
    captured = np.arange(rows.start, rows.stop)[no_control(trace)[rows]]
    assert seen(again, np.flatnonzero(no_control(again)))[-len(captured) :] == seen(trace, captured)
    assert seen(trace, captured)[1][3] == -1, "who called before the first switch after the loss is not known"
    # The gap is inside of a window that begins before it: it stays.
    early = TimeWindow(START_CYCLES + 3, trace.window.end)
    write_subset(trace, tmp_path / "early.kev", np.asarray(trace.events.code == MSG_SENDV), early)
    assert open_kev(tmp_path / "early.kev").buffers.lost_before.sum() == 1


@pytest.mark.thorough
def test_very_many_losses_of_cpus_take_no_longer_each(tmp_path):
    count = 20_000
    slots = np.ones((count, 4), np.uint32)
    slots[:, 0], slots[:, 1] = MSG_SENDV, np.arange(count) * 1000
    slots[::2, 0] = CONTROL_DROPPED
    slots[::500, 0], slots[::500, 2] = CONTROL_BUFFER, np.arange(1, count // 500 + 1)
    header = Header((("SYS_RELEASE", "8.0.0"), ("CYCLES_PER_SEC", "1000000000")))
    trace = trace_from_slots("made", "kev", header, b"", slots, "little", Problems())
    everything = np.ones(len(trace.events), np.bool_)
    assert cpu_s(write_subset, trace, tmp_path / "part.kev", everything) * 1e6 / count < 20, "us per slot"


def test_thread_traces_are_refused(tmp_path):
    trace = open_trace(Path(__file__).parents[2] / "sample_traces" / "threads")
    with pytest.raises(UsageError, match=r"traces of other systems have events that no \.kev"):
        write_subset(trace, tmp_path / "x.kev", np.ones(len(trace.events), np.bool_))
    assert not list(tmp_path.iterdir())


def test_refusals_leave_nothing_behind(tmp_path):
    trace = random_trace(2, 50)
    everything = np.ones(len(trace.events), np.bool_)
    with pytest.raises(Cancelled):
        write_subset(trace, tmp_path / "a.kev", everything, cancelled=lambda: True)
    with pytest.raises(UsageError, match="there is no folder"):
        write_subset(trace, tmp_path / "none" / "a.kev", everything)
    assert list(tmp_path.iterdir()) == []
    write_kev(tmp_path / "own.kev", trace.header.pairs, b"", np.zeros((0, 4), np.uint32), "little")
    own = open_kev(tmp_path / "own.kev")
    with pytest.raises(UsageError, match="is being read"):
        write_subset(own, tmp_path / "own.kev", np.zeros(0, np.bool_))


@pytest.mark.parametrize("name", ["threads", "threads_be", "ker_fast", "process", "int", "user"])
def test_vendor_files_survive(tmp_path, name):
    trace = open_kev(shared_path(f"golden/vendor-6.x/{name}.kev"))
    write_subset(trace, tmp_path / "same.kev", np.ones(len(trace.events), np.bool_))
    again = open_kev(tmp_path / "same.kev")
    assert seen(again, np.flatnonzero(no_control(again))) == seen(trace, np.flatnonzero(no_control(trace)))
    assert again.system == trace.system
    pairs = [pair for pair in again.header.pairs if pair[0] != "SATVIEW"]
    assert pairs == list(trace.header.pairs)
    assert all(len(f"TRACE_{key}::{value}") < 80 for key, value in again.header.pairs), "the old library's window"
