"""Lanes of events of one sort: found when they are shown, divided by owner and nesting, and named."""

from __future__ import annotations

import numpy as np
import pytest

from satview.base.time import TimeWindow
from satview.events import wire
from satview.events.states import ABSENT, SEEN_EVENT
from satview.events.variants import text_words
from satview.events.wire import KER_64BIT, WireClass
from satview.timeline import lane_tree
from satview.timeline.finders import UserLanes
from satview.timeline.lane import Counter
from satview.timeline.lane_classes import LANE_CLASS_BY_NAME, LANE_CLASSES, classes_in
from satview.timeline.lane_tree import LaneKind, Timeline
from tests.helpers.kev import TraceBuilder

A, B = 2, 3
ENTER, EXIT = 10 | KER_64BIT, 11 | KER_64BIT
MSG_SENDV, MSG_RECEIVEV = 11, 14


def system(number):
    return wire.code(WireClass.SYSTEM, number)


def builder(cpus=1):
    made = TraceBuilder(cpus=cpus).time_event(0)
    made.process_name(10, A, "usr/bin/alpha").process_name(20, B, "usr/bin/beta")
    return made


def text_of(words, text):
    return (*words, *text_words(text.encode(), "little"))


def function(made, code, time, address):
    return made.event(system(code), time, (address, 0, 0x99, 0))


def shown(trace, name, user=None):
    """Return the lanes of a class as (title, parent's title, [(start, end, text), ...]), gaps left out."""
    timeline = Timeline(trace)
    if user is not None:
        timeline.describe_user_events(user)
    before = len(timeline.infos)
    timeline.show_classes([name])
    origin = int(trace.events.time_cycles[0])
    found = []
    for info in timeline.infos[before:]:
        spans = timeline.lane(info.index).spans
        ends = np.append(spans.start_cycles[1:], spans.end_cycles)
        parts = [
            (int(start) - origin, int(end) - origin, text)
            for start, end, text in zip(spans.start_cycles, ends, spans.texts, strict=True)
            if text
        ]
        found.append((info.title, timeline.infos[info.parent].title if info.parent >= 0 else "", parts))
    return found


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    """main(100) calls search(200) twice; the second one is open as the trace ends."""
    made = builder().state("RUNNING", 100, A, 1)
    function(made, ENTER, 1_000, 0x100)
    function(made, ENTER, 2_000, 0x200)
    function(made, EXIT, 3_000, 0x200)
    function(made, ENTER, 5_000, 0x200)
    made.event(wire.code(WireClass.USER, 1), 8_000)
    return made.open(tmp_path_factory.mktemp("functions"))


def test_functions_are_a_flame_chart(functions):
    assert shown(functions, "functions") == [
        ("functions", "thread 1", [(1_000, 8_001, "0x100")]),
        ("functions 2", "thread 1", [(2_000, 3_000, "0x200"), (5_000, 8_001, "0x200")]),
    ]


def test_lanes_are_found_when_shown_and_behind_all_others(functions):
    timeline = Timeline(functions)
    before = timeline.infos
    assert [each.name for each in timeline.lane_classes()] == ["user", "functions"]
    assert not timeline.has_classes(["functions"])
    timeline.show_classes(["functions", "paths", "nonsense"])
    assert timeline.infos[: len(before)] == before
    assert timeline.has_classes(["functions", "paths", "nonsense"])
    lanes = timeline.lanes_of_class("functions")
    assert lanes == {len(before), len(before) + 1}
    assert timeline.lanes_of_class("paths") == frozenset()
    assert not any(timeline.is_ready(lane) for lane in lanes), "lanes are built when they are drawn"
    timeline.show_classes(["functions"])
    assert len(timeline.infos) == len(before) + 2


def test_events_of_a_lane(functions):
    timeline = Timeline(functions)
    timeline.show_classes(["functions"])
    names = [functions.spec(int(row)).name for row in timeline.events_of(len(timeline.infos) - 1)]
    assert names == ["FUNC_ENTER_64", "FUNC_ENTER_64"]


def test_what_is_nested_wrongly_is_left_out(tmp_path):
    made = builder().state("RUNNING", 100, A, 1)
    function(made, ENTER, 1_000, 0x100)
    function(made, EXIT, 2_000, 0x300)  # of another function: its entry is missing
    function(made, ENTER, 3_000, 0x400)
    function(made, EXIT, 4_000, 0x400)
    made.event(wire.code(WireClass.USER, 1), 9_000)
    assert (3_000, 4_000, "0x400") in [part for lane in shown(made.open(tmp_path), "functions") for part in lane[2]]


def test_nothing_goes_on_over_lost_events(tmp_path):
    made = builder().state("RUNNING", 100, A, 1).event(wire.CONTROL_BUFFER, 200, (1, 0))
    function(made, ENTER, 1_000, 0x100)
    made.event(wire.CONTROL_BUFFER, 2_000, (6, 0)).state("RUNNING", 2_100, A, 1)
    function(made, ENTER, 3_000, 0x200)
    function(made, EXIT, 4_000, 0x200)
    assert shown(made.open(tmp_path), "functions") == [("functions", "thread 1", [(3_000, 4_000, "0x200")])]


def test_kernel_calls_from_entry_to_exit_and_to_the_end(tmp_path):
    made = builder().state("RUNNING", 100, A, 1)
    made.call(MSG_SENDV, 1_000).state("REPLY", 1_500, A, 1).state("RUNNING", 2_500, A, 1).exit(MSG_SENDV, 3_000)
    made.call(MSG_RECEIVEV, 4_000).state("RECEIVE", 4_100, A, 1)
    made.event(wire.code(WireClass.USER, 1), 9_000)
    assert shown(made.open(tmp_path), "calls") == [
        ("kernel calls", "thread 1", [(1_000, 3_000, "MSG_SENDV"), (4_000, 9_001, "MSG_RECEIVEV")])
    ]


def test_handlers_are_nested_under_their_cpu(tmp_path):
    made = builder(2).state("RUNNING", 100, A, 1, 1)
    entry, leave, begin, end = (wire.code(WireClass.INT, number) for number in (1, 2, 3, 4))
    made.event(entry, 1_000, (14, 0), 1).event(begin, 1_100, (A, 14, 0, 0), 1)
    made.event(entry, 1_200, (9, 0), 1).event(begin, 1_300, (B, 9, 0, 0), 1)
    made.event(end, 1_400, (9, 0, 0, 0, 0, 0), 1).event(leave, 1_500, (9, 0), 1)
    made.event(end, 1_800, (14, 0, 0, 0, 0, 0), 1).event(leave, 1_900, (14, 0), 1)
    assert shown(made.open(tmp_path), "handlers") == [
        ("handlers", "CPU 1", [(1_100, 1_800, "alpha 14")]),
        ("handlers 2", "CPU 1", [(1_300, 1_400, "beta 9")]),
    ]


def test_frequency_and_idle_of_a_cpu(tmp_path):
    made = builder(2)
    for time, bits, mode in ((100, 1, 3), (1_000, 0x20001, 2), (1_200, 1, 2), (2_000, 0x30001, 5), (3_000, 0x10001, 5)):
        made.event(system(15), time, (bits, mode))
    trace = made.event(wire.code(WireClass.USER, 1), 4_000).open(tmp_path)
    assert shown(trace, "frequency") == [("frequency", "CPU 1", [(0, 1_200, "mode 3"), (1_200, 4_001, "mode 2")])]
    assert shown(trace, "idle") == [("idle mode", "CPU 1", [(2_000, 3_000, "mode 5")])]


def test_guests_and_what_they_raise(tmp_path):
    made = builder().state("RUNNING", 100, A, 1)
    enter, leave, rises = (wire.code(WireClass["QVM"], number) for number in (0, 1, 3))
    made.event(enter, 1_000, (0x8000, 0)).event(leave, 2_000, (0, 1, 0, 0, 0x8000, 0, 0, 0))
    made.event(rises, 2_500, (0, 33))
    made.event(enter, 3_000, (0x8000, 0)).event(wire.code(WireClass.USER, 1), 4_000)
    assert shown(made.open(tmp_path), "guests") == [
        ("guest", "thread 1", [(1_000, 2_000, "GUEST_ENTER 0x8000")]),
        ("guest events", "thread 1", [(2_500, 4_001, "INTR_RAISE 33")]),
    ]


def test_events_of_processes_have_a_lane_for_all_that_unfolds(tmp_path):
    made = builder()
    made.event(system(2), 1_000, text_of((A, 1), "/dev/one")).event(system(2), 2_000, text_of((B, 1), "/dev/two"))
    assert shown(made.open(tmp_path), "paths") == [
        ("path look-ups", "", [(1_000, 2_000, "alpha: /dev/one"), (2_000, 2_001, "beta: /dev/two")]),
        ("alpha", "path look-ups", [(1_000, 2_001, "/dev/one")]),
        ("beta", "path look-ups", [(2_000, 2_001, "/dev/two")]),
    ]


ONE_EVENT = {
    "log": (system(12), text_of((1, 2), "disk is slow"), "disk is slow"),
    "security": (wire.code(WireClass["SEC"], 2), text_of((A, 1, 2, 0), "/dev/x"), "PATH_ATTACH /dev/x"),
    "maps": (system(6), (A, 0, 0, 0x3000, 0, 0x22), "alpha: MMAP 0x3000"),
    "faults": (system(17), (B, 1, 0x100, 0x8042000), "beta: 0x8042000"),
    "timers": (system(18), (B, 1, 4, 0), "beta: timer 4"),
}


@pytest.mark.parametrize("name", ONE_EVENT)
def test_one_event_of_each_class_that_is_moments(tmp_path, name):
    code, words, text = ONE_EVENT[name]
    trace = builder().event(code, 1_000, words).event(wire.code(WireClass.USER, 1), 2_000).open(tmp_path)
    assert shown(trace, name)[0][2][0][2] == text
    timeline = Timeline(trace)
    timeline.show_classes([name])
    [lane, *_] = sorted(timeline.lanes_of_class(name))
    window = TimeWindow(trace.window.start, trace.window.end)
    timeline.lane(lane)
    for exact in (False, True):
        pixels = timeline.raster([lane], window, 10, exact=exact)[0]
        assert (pixels & 0x3F == ABSENT).all(), "a moment has no length"
        marked = np.flatnonzero(pixels & SEEN_EVENT)
        assert marked.tolist() == [5] if exact else len(marked) <= 2, "coarse cells may reach into the next pixel"


def test_every_class_says_what_it_is_and_has_its_own_letter():
    assert len(LANE_CLASS_BY_NAME) == len(LANE_CLASSES)
    assert all(each.help.endswith(".") and (each.codes or not each.finder) for each in LANE_CLASSES)
    assert classes_in("log, calls,nonsense") == {"log", "calls"}


def test_every_class_has_lanes_in_what_the_simulated_kernel_logs(instrumented):
    timeline = Timeline(instrumented)
    there = {each.name for each in timeline.lane_classes()}
    assert there == set(LANE_CLASS_BY_NAME) - {"paths", "activities"}
    timeline.show_classes(there)
    assert all(timeline.lanes_of_class(name) for name in there - {"handlers"})  # interrupts, but no handlers
    titles = [info.title for info in timeline.infos if info.kind is LaneKind.TRACK and info.track.depth]
    assert titles == ["functions 2", "functions 3"]
    timeline.build(range(len(timeline.infos)))


@pytest.fixture(scope="module")
def instrumented(tmp_path_factory):
    from satview.capture.run import Capture, run
    from satview.formats.kev.reader import open_kev

    path = tmp_path_factory.mktemp("instrumented") / "i.kev"
    run(Capture("instrumented"), path)
    return open_kev(path)


def test_counters_have_the_extremes_of_every_pixel():
    start = np.arange(1_000) * 100
    numbers = (np.arange(1_000) % 100).astype(float)
    numbers[500] = np.inf  # not a number that can be drawn
    counter = Counter.of(start, numbers)
    assert (counter.lowest, counter.highest) == (0, 99)
    low, high = counter.extremes(np.array([0, 50, 100, 1_000, 2_000]))
    assert low.tolist() == [0, 0, 1, 10]
    assert high.tolist() == [0, 0, 9, 19]
    low, high = counter.extremes(np.array([-20, -10, 99_999]))
    assert np.isnan(low[0])
    assert (low[1], high[1]) == (0, 99)


def test_counters_cost_pixels_not_values():
    counter = Counter.of(np.arange(1 << 20), np.arange(1 << 20).astype(float))
    low, high = counter.extremes(np.linspace(0, 1 << 20, 101).astype(np.int64))
    assert np.abs(high - np.linspace(0, 1 << 20, 101)[1:]).max() < (1 << 20) / 100 / 8 + 1
    assert (low < high).all()


def test_descriptions_of_nothing_change_nothing(functions):
    assert shown(functions, "user") == shown(functions, "user", UserLanes())
    assert shown(functions, "user") == [("event 1", "", [(8_000, 8_001, "0x0 0x0")])]


def test_a_lone_mark_shows_however_many_events_there_are(tmp_path, monkeypatch):
    """With too many events to draw one by one, marks come from the levels, of which a pixel has many cells."""
    made = builder()
    for position in range(1, 10):
        made.event(system(12), 100_000 * position + 30_000, text_of((1, 2), "late"))
    trace = made.event(wire.code(WireClass.USER, 1), 1_000_000).open(tmp_path)
    timeline = Timeline(trace)
    timeline.show_classes(["log"])
    [lane] = timeline.lanes_of_class("log")
    timeline.lane(lane)
    window = TimeWindow(trace.window.start, trace.window.start + 1_000_000)
    expected = (timeline.raster([lane], window, 10, exact=True)[0] & SEEN_EVENT) > 0
    assert expected.tolist() == [False, *[True] * 9]
    monkeypatch.setattr(lane_tree, "_TICKS_PER_FRAME", 0)
    assert ((timeline.raster([lane], window, 10, exact=True)[0] & SEEN_EVENT) > 0).tolist() == expected.tolist()
