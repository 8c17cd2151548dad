"""Lanes drawn as text, and their pictures against a brute-force sum."""

import threading
from time import sleep

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from satview.base.time import TimeWindow
from satview.events import states, wire
from satview.events.states import SEEN_EVENT, SEEN_RUNNING, STATE_BY_NAME, VALUE_MASK
from satview.formats.registry import open_trace
from satview.linkage.calls import partner
from satview.store.time_ranges import idle_threads, lost_marks
from satview.timeline.lane import build_levels
from satview.timeline.lane_tree import LaneKind, Timeline
from satview.timeline.spans import LaneSpans, exact_raster, pixel_edges
from tests.helpers.kev import START, TraceBuilder, draw, from_lanes
from tests.helpers.shared import GUIDE_LISTINGS, shared_path

LETTERS = {
    states.ABSENT: " ",
    states.UNKNOWN: "u",
    states.IDLE: ".",
    states.WAITING: "-",
    states.RUNNING: "R",
    states.READY: "r",
    STATE_BY_NAME["RECEIVE"].value: "c",
    STATE_BY_NAME["SEND"].value: "s",
    STATE_BY_NAME["MUTEX"].value: "m",
    states.INTERRUPT: "I",
    states.KERNEL_CALL: "K",
}


def picture(trace, title, columns, start=0, length=None, kind=None):
    """Return one lane as text, a letter per 1000 cycles."""
    timeline = Timeline(trace)
    index = next(i.index for i in timeline.infos if i.title == title and (kind is None or i.kind == kind))
    timeline.build([index])
    window = TimeWindow(START + start, START + start + (length or columns * 1000))
    return draw(timeline.raster([index], window, columns, exact=True)[0], LETTERS)


class TestCpuLanes:
    def test_who_ran(self, tmp_path):
        trace = from_lanes(tmp_path, "cpu0  A A B . A\ncpu1  . C C C .")
        timeline = Timeline(trace)
        timeline.build(range(len(timeline.infos)))
        lane = timeline.lane(0)
        assert [timeline.label(lane.at(START + column * 1000 + 500)) for column in range(5)] == [
            "pid 2 1",
            "pid 2 1",
            "pid 3 1",
            "idle (pid 1 1)",
            "pid 2 1",
        ]
        other = timeline.lane(1)
        assert [timeline.label(other.at(START + c * 1000 + 500)) for c in range(5)] == [
            "idle (pid 1 2)",
            *["pid 4 1"] * 3,
            "idle (pid 1 2)",
        ]
        assert lane.next_edge(START + 500) == START + 2010
        assert lane.previous_edge(START + 2500) == START + 2010

    def test_without_thread_events_calls_are_shown_and_the_rest_is_unknown(self, tmp_path):
        builder = (
            TraceBuilder().time_event(0).call(19, 1000).exit(19, 3000).call(14, 5000).call(42, 6000).exit(42, 8000)
        )
        trace = builder.event(wire.code(6, 1), 10000).open(tmp_path)
        assert picture(trace, "CPU 0", 10) == "uKKuuuKKuu"

    def test_after_a_thread_blocked_and_before_the_next_runs_nothing_is_known(self, tmp_path):
        builder = TraceBuilder().time_event(0).state("RUNNING", 1000, 5, 1).state("RECEIVE", 3000, 5, 1)
        trace = builder.state("RUNNING", 5000, 6, 1).event(wire.code(6, 1), 8000).open(tmp_path)
        hues = picture(trace, "CPU 0", 8)
        assert hues == "u??uu???"

    def test_interrupts_nest(self, tmp_path):
        builder = TraceBuilder().time_event(0)
        for code, time in ((1, 1000), (1, 2000), (2, 3000), (2, 5000), (2, 6000), (1, 8000), (2, 9000)):
            builder.event(wire.code(3, code), time, (4, 0))
        trace = builder.event(wire.code(6, 1), 10000).open(tmp_path)
        assert picture(trace, "interrupts", 10) == " IIII   I "


class TestThreadLanes:
    def test_states(self, tmp_path):
        builder = (
            TraceBuilder()
            .time_event(0)
            .state("RUNNING", 1000, 5, 1)
            .state("SEND", 3000, 5, 1)
            .state("READY", 5000, 5, 1)
        )
        trace = builder.state("RUNNING", 6000, 5, 1).event(wire.code(6, 1), 8000).open(tmp_path)
        assert picture(trace, "thread 1", 8) == "uRRssrRR"

    def test_the_opening_dump_is_the_state_before(self, tmp_path):
        builder = (
            TraceBuilder()
            .time_event(0)
            .process_name(5, 5, "server")
            .state("CREATE", 2000, 5, 1)
            .state("RECEIVE", 2001, 5, 1)
        )
        builder.state("CREATE", 2002, 5, 2).state("MUTEX", 2003, 5, 2).state("RUNNING", 5000, 5, 1)
        trace = builder.event(wire.code(6, 1), 8000).open(tmp_path)
        assert picture(trace, "thread 1", 8) == "cccccRRR"
        assert picture(trace, "thread 2", 8) == "mmmmmmmm"
        assert trace.processes.created_cycles.tolist() == [-1, -1]

    def test_a_thread_lives_from_create_to_destroy(self, tmp_path):
        builder = TraceBuilder().time_event(0).state("RUNNING", 500, 5, 1).call(1, 600).exit(1, 700)
        builder.state("CREATE", 2000, 5, 2).state("READY", 2001, 5, 2).state("RUNNING", 4000, 5, 2).state(
            "DESTROY", 6000, 5, 2
        )
        trace = builder.state("DEAD", 6100, 5, 2).event(wire.code(6, 1), 8000).open(tmp_path)
        assert picture(trace, "thread 2", 8) == "  rrRR  "

    def test_a_process_runs_while_any_of_its_threads_does(self, tmp_path):
        builder = TraceBuilder(cpus=2).time_event(0).state("RUNNING", 0, 5, 1).state("RECEIVE", 1, 5, 2)
        builder.state("RECEIVE", 2000, 5, 1).state("READY", 3000, 5, 2).state("RUNNING", 4000, 5, 2, cpu=1).state(
            "RECEIVE", 6000, 5, 2
        )
        trace = builder.event(wire.code(6, 1), 8000).open(tmp_path)
        assert picture(trace, "pid 5", 8, kind=LaneKind.PROCESS) == "RR-rRR--"

    def test_idle_threads_do_not_make_procnto_busy(self, tmp_path):
        builder = (
            TraceBuilder()
            .time_event(0)
            .state("RUNNING", 0, 1, 1)
            .state("READY", 3000, 1, 1)
            .state("RUNNING", 3001, 5, 1)
        )
        trace = builder.event(wire.code(6, 1), 8000).open(tmp_path)
        assert picture(trace, "pid 1", 8, kind=LaneKind.PROCESS) == "--------"
        assert picture(trace, "CPU 0", 3) == "..."

    def test_a_kernel_thread_of_8_0_without_a_name_is_idle_if_it_never_waits(self, tmp_path):
        builder = TraceBuilder("8.0.0", cpus=2).time_event(0).time_event(0, 1)
        builder.state("RUNNING", 0, 1, 1).state("READY", 3000, 1, 1).state("RUNNING", 3001, 5, 1)
        builder.state("RECEIVE", 5000, 5, 1).state("RUNNING", 5001, 1, 1)
        builder.state("RUNNING", 1, 1, 2, 1).state("RECEIVE", 3000, 1, 2, 1).state("RUNNING", 3001, 1, 3, 1)
        trace = builder.event(wire.code(6, 1), 8000).event(wire.code(6, 1), 8000, cpu=1).open(tmp_path)
        assert idle_threads(trace)[[trace.threads.row(1, tid) for tid in (1, 2, 3)]].tolist() == [True, False, False]


class TestPairs:
    def test_calls_pair_per_thread(self, tmp_path):
        builder = TraceBuilder(cpus=2).time_event(0).state("RUNNING", 1, 5, 1).state("RUNNING", 2, 6, 1, cpu=1)
        builder.call(11, 10).call(11, 11, cpu=1).state("REPLY", 12, 5, 1).state("RUNNING", 13, 7, 1).exit(11, 20, cpu=1)
        trace = builder.state("RUNNING", 30, 5, 1, cpu=1).exit(11, 31, cpu=1).open(tmp_path)
        rows = {int(t) - START: i for i, t in enumerate(trace.events.time_cycles)}
        assert partner(trace, rows[10]) == rows[31]
        assert partner(trace, rows[31]) == rows[10]
        assert partner(trace, rows[11]) == rows[20]
        assert partner(trace, rows[12]) is None

    def test_a_restarted_call_has_one_exit(self, tmp_path):
        builder = TraceBuilder().time_event(0).state("RUNNING", 1, 5, 1).call(14, 10).call(14, 20).exit(14, 30)
        trace = builder.open(tmp_path)
        assert [partner(trace, i) for i in (2, 3, 4)] == [None, 4, 3]

    def test_interrupts_pair_nested(self, tmp_path):
        builder = TraceBuilder().time_event(0)
        for code, time in ((1, 10), (3, 11), (1, 12), (2, 13), (4, 14), (2, 15)):
            builder.event(wire.code(3, code), time)
        trace = builder.open(tmp_path)
        assert [partner(trace, i) for i in range(1, 7)] == [6, 5, 4, 3, 2, 1]


def test_threads_that_request_the_same_lanes_build_each_of_them_once(tmp_path, monkeypatch):
    timeline = Timeline(from_lanes(tmp_path, "cpu0  A A B . A\ncpu1  . C C C ."))
    requested, built, original = range(len(timeline.infos)), [], Timeline._spans

    def spans(self, info):
        built.append(info.index)
        sleep(0.005)
        return original(self, info)

    monkeypatch.setattr(Timeline, "_spans", spans)
    threads = [
        threading.Thread(target=timeline.build, args=(part,)) for part in (requested[:3], requested, requested[2:])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
        assert not thread.is_alive()
    assert sorted(built) == list(requested)
    assert all(timeline.is_ready(index) for index in requested)


def test_lost_buffers_are_marked(tmp_path):
    builder = TraceBuilder().event(wire.CONTROL_BUFFER, 0, (1, 0)).time_event(0).event(wire.code(6, 1), 100)
    trace = (
        builder.event(wire.CONTROL_BUFFER, 5000, (4, 0)).time_event(5000).event(wire.code(6, 1), 6000).open(tmp_path)
    )
    assert (lost_marks(trace) - START).tolist() == [[100, 5000]]


def brute_force(spans, window, width_px):
    """Sum every interval over every pixel."""
    out, edges = [], pixel_edges(window, width_px)
    ends = [*spans.start_cycles[1:].tolist(), spans.end_cycles]
    for left, right in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        share = {}
        for start, end, value in zip(spans.start_cycles.tolist(), ends, spans.value.tolist(), strict=True):
            cycles = min(end, right) - max(start, left)
            if cycles > 0:
                share[value] = share.get(value, 0) + cycles
        best = min(share, key=lambda value: (-share[value], value)) if share else 0
        out.append(best | (SEEN_RUNNING if states.RUNNING in share else 0))
    return out


@st.composite
def lanes(draw_from):
    count = draw_from(st.integers(1, 40))
    steps = draw_from(st.lists(st.sampled_from([1, 2, 3, 50, 1000]), min_size=count, max_size=count))
    starts = np.cumsum([0, *steps[:-1]]).astype(np.int64)
    values = np.array(draw_from(st.lists(st.integers(0, 6), min_size=count, max_size=count)), np.uint8)
    return LaneSpans(starts, values, np.zeros(count, np.uint32), None, int(starts[-1]) + steps[-1])


@given(lanes(), st.integers(-50, 500), st.integers(41, 5000), st.integers(1, 40))
def test_exact_pixels_equal_a_brute_force_sum(spans, start, length, width):
    window = TimeWindow(start, start + length)
    assert exact_raster([spans], window, width)[0].tolist() == brute_force(spans, window, width)


@given(lanes())
def test_level_cells_equal_a_brute_force_sum(spans):
    # One cycle here is 4096 there, so that the finest cells hold several intervals.
    scaled = LaneSpans(spans.start_cycles << 12, spans.value, spans.event, None, spans.end_cycles << 12)
    window = TimeWindow(0, scaled.end_cycles)
    levels = build_levels(scaled, window)
    for i, cells in enumerate(levels.cells[-2:], len(levels.cells) - 2 if len(levels.cells) > 1 else 0):
        size = 1 << levels.shift + i
        grid = TimeWindow(0, len(cells) * size)
        if len(cells) <= 2100:
            assert cells.tolist() == brute_force(scaled, grid, len(cells))


def test_a_short_burst_marks_its_pixel_at_any_zoom(tmp_path):
    builder = TraceBuilder().time_event(0).state("RECEIVE", 1, 5, 1)
    builder.state("RUNNING", 500_000_000, 5, 1).state("RECEIVE", 500_000_010, 5, 1).event(wire.code(6, 9), 700_000_000)
    trace = builder.state("RUNNING", 1_000_000_000, 6, 1).open(tmp_path)
    timeline = Timeline(trace)
    index = next(i.index for i in timeline.infos if i.kind == LaneKind.THREAD and i.process == 1)
    timeline.build([index])
    for width in (100, 1000):
        row = timeline.raster([index], trace.window, width)[0]
        # A level's cell may be across two pixels, then both show it.
        assert width // 2 in np.flatnonzero(row & SEEN_RUNNING).tolist() in ([width // 2], [width // 2 - 1, width // 2])
        exact = timeline.raster([index], trace.window, width, exact=True)[0]
        assert np.flatnonzero(exact & SEEN_RUNNING).tolist() == [width // 2]
    timeline.build([0])
    cpu = timeline.raster([0], trace.window, 100)[0]
    assert 70 in np.flatnonzero(cpu & SEEN_EVENT).tolist() in ([70], [69, 70], [70, 71])
    assert (cpu & VALUE_MASK).any()


def test_deep_zoom_shows_single_cycles(tmp_path):
    builder = TraceBuilder().time_event(0).state("RUNNING", 10, 5, 1).state("RECEIVE", 12, 5, 1)
    trace = builder.state("RUNNING", 13, 5, 1).event(wire.code(6, 1), 20).open(tmp_path)
    timeline = Timeline(trace)
    index = next(i.index for i in timeline.infos if i.kind == LaneKind.THREAD)
    timeline.build([index])
    row = timeline.raster([index], TimeWindow(START + 9, START + 14), 20)[0]
    assert draw(row, LETTERS) == "uuuuRRRRRRRRccccRRRR"


@pytest.mark.parametrize("name", GUIDE_LISTINGS)
def test_vendor_listings_have_lanes(name):
    path = shared_path(f"golden/{name}.results.txt")
    timeline = Timeline(open_trace(path))
    timeline.build(range(len(timeline.infos)))
    rows = timeline.raster(range(len(timeline.infos)), timeline.trace.window, 200)
    assert rows.any(axis=1).all() or name == "usr_event_simple"
    assert (rows & SEEN_EVENT).any() or name == "one_class"
