"""Lanes zoomed out: what is drawn are the shares of time that the statistics show, and the mouse speaks of them."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from PySide6.QtCore import QPoint
from PySide6.QtGui import QImage

from satview.analysis.statistics import Statistics
from satview.base.time import TimeWindow
from satview.events import states, wire
from satview.events.states import process_value
from satview.filters.passes import Effect
from satview.gui.colours import class_colour, state_colour, value_colour
from satview.gui.swimlane.fills import half_way
from satview.gui.swimlane.lane_image import ShownMarks, bands, stack_of_lane
from satview.gui.swimlane.shares import Stack, busy_text, draw_stack, figure, share_text, tops_of
from satview.gui.swimlane.text import NARROWEST_PX, stack_texts
from satview.gui.theme import LIGHT
from satview.opened import open_trace
from satview.timeline.lane_info import LaneKind
from satview.timeline.lane_tree import Timeline
from satview.timeline.spans import constant_lane, pixel_edges
from tests.core.reference.replacing import numpy_passes
from tests.gui.conftest import part, settle, stack_of
from tests.gui.hands import LEFT, SHIFT, K
from tests.helpers.extent import fewer
from tests.helpers.kev import TraceBuilder
from tests.helpers.scene import scene

NOTHING = constant_lane(TimeWindow(0, 1))
USER_EVENTS = class_colour("USREVENT", False)


def pixels_of(view):
    image = view.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    return np.frombuffer(image.constBits(), np.uint32).reshape(image.height(), image.width()) & 0xFFFFFF


def row_of(window, kind, title):
    opened = window.session.opened
    info = next(info for info in opened.timeline.infos if info.kind is kind and info.title == title)
    opened.lanes.reveal(info.index)
    window.workspace.area.view.reveal_lane(info.index)
    return opened.lanes.row_of(info.index)


def bar(window, row):
    """Return the pixels of a lane's bar, from its bottom up, shape (height, width)."""
    view = window.workspace.area.view
    top, bottom = stack_of_lane(row, view.scroll_px, 1.0, view.lanes.painter.marks, view.stacks[row.index])
    return pixels_of(view)[top:bottom][::-1]


def show(window, qtbot, start_ns, end_ns):
    window.session.opened.viewport.jump(part(window.session.opened, start_ns, end_ns))
    settle(qtbot, window)


@pytest.mark.thorough
def test_a_cpu_is_as_high_as_it_is_busy(dense, qtbot):
    """Every tenth bin against the statistics of just that time, to a pixel."""
    view, trace = dense.workspace.area.view, dense.session.opened.trace
    row = row_of(dense, LaneKind.CPU, "CPU 1")
    shown = bar(dense, row)
    stack = stack_of(qtbot, dense, row.index)
    idle = {int(colour) & 0xFFFFFF for value, colour in zip(stack.values, stack.colours, strict=True)
            if not states.IS_BUSY[value]} | {view._theme.base}  # fmt: skip
    heights = []
    for position in range(3, len(stack.edges) - 3, 10):
        found = Statistics(trace, stack.window_of(position)).cpus
        busy = int(found.busy_cycles[1] + found.interrupt_cycles[1]) / stack.window_of(position).length
        column = shown[:, (stack.columns[position] + stack.columns[position + 1]) // 2]
        height = sum(int(pixel) not in idle for pixel in column)
        assert abs(height - busy * len(column)) <= 1, position
        heights.append(height)
    assert len(heights) > 8
    assert max(heights) - min(heights) >= 3  # it is not the same everywhere


@pytest.mark.thorough
@pytest.mark.parametrize("part", fewer((0.03, 1, 0.3, 0.003), 1))
def test_a_process_is_as_high_as_the_cpus_it_uses_on_one_scale(dense, qtbot, part):
    """At four zooms, on the scale that the head states: each bin against the statistics, to a pixel."""
    area, trace = dense.workspace.area, dense.session.opened.trace
    show(dense, qtbot, 3_500_000_000, 3_500_000_000 + int(part * 3_400_000_000))
    green, highest = value_colour(states.RUNNING, False), []
    line = int(area.view.lanes.painter.palette.line)
    lined = (green >> 1 & 0x7F7F7F) + (line >> 1 & 0x7F7F7F)  # where it crosses the line of a CPU
    for title in ("map_update", "planner", "logger"):
        row = row_of(dense, LaneKind.PROCESS, title)
        stack_of(qtbot, dense, row.index)
        settle(qtbot, dense)
        stack = area.view.stacks[row.index]
        shown, process = bar(dense, row), dense.session.opened.timeline.infos[row.index].process
        assert stack.cpus == area.view.cpus_high
        heights = []
        for position in range(3, len(stack.edges) - 3, len(stack.edges) // 25):
            window = stack.window_of(position)
            used = int(Statistics(trace, window).processes.cpu_cycles[process]) / window.length / stack.cpus
            column = shown[:, (stack.columns[position] + stack.columns[position + 1]) // 2]
            height = int(np.sum(np.isin(column, (green, lined))))
            assert abs(height - used * len(column)) <= 1, (title, position)
            heights.append(height)
        highest.append(max(heights))
    assert max(highest) > 3
    assert area._heads[1].text() == f"Time, processes up to {area.view.cpus_high} CPUs"


def test_loads_are_bounds_where_events_are_lost(tmp_path):
    """The scene shows who runs up to 12,000 ns, of CPU 0; then buffers are lost."""
    trace = open_trace(scene(tmp_path))
    timeline, start = Timeline(trace), trace.window.start
    parts = [TimeWindow(start + begin, start + end) for begin, end in ((0, 20_000), (2_000, 10_000), (12_500, 15_000))]
    found = {info.title if info.kind is not LaneKind.THREAD else timeline.infos[info.parent].title + " 1":
             [figure(timeline, SimpleNamespace(index=info.index, process=-1), part) for part in parts]
             for info in timeline.infos if timeline.lane(info.index)}  # fmt: skip
    assert found == {
        "CPU 0": ["\u2265 55 %", "100 %", "unknown"],
        "CPU 1": ["unknown", "unknown", "unknown"],
        "client": ["\u2265 0.35 CPU", "0.50 CPU", "unknown"],
        "client 1": ["\u2265 35 %", "50 %", "unknown"],
        "server": ["\u2265 0.20 CPU", "0.50 CPU", "unknown"],
        "server 1": ["\u2265 20 %", "50 %", "unknown"],
    }
    assert busy_text(timeline) == "\u2265 27 %"


@pytest.mark.thorough
def test_stacks_in_which_a_process_has_most_of_a_cpu_have_its_name(dense, qtbot):
    """In 200 ms, where CPUs show shares: each name is of the process that ran for most of that time."""
    view, opened = dense.workspace.area.view, dense.session.opened
    show(dense, qtbot, 1_000_000_000, 1_200_000_000)
    rows = view.visible_rows()
    width_px = round(view.width() * view.devicePixelRatioF())
    texts = stack_texts(opened.timeline, rows, view.stacks, view.scale, width_px, LIGHT)
    assert len(texts) >= 3
    for text in texts:
        assert text.right_px - text.left_px >= NARROWEST_PX
        found = Statistics(opened.trace, TimeWindow(text.start_cycles, text.end_cycles))
        cpu = opened.timeline.infos[text.row.index].cpu
        lane = opened.timeline.lane(text.row.index).shares
        value = process_value(text.text)
        cycles = lane.totals(TimeWindow(text.start_cycles, text.end_cycles))[lane.values == value].sum()
        assert cycles >= 0.8 * (text.end_cycles - text.start_cycles), (text.text, cpu)
        assert found.cpus.busy_cycles[cpu] >= cycles


@pytest.mark.thorough
def test_all_lanes_change_to_bars_together(dense, qtbot):
    """CPU 2 has few intervals where CPU 0 has many: both show shares, or both bars; processes stay areas."""
    view, cpus = dense.workspace.area.view, dense.session.opened.timeline.cpu_lanes
    process = row_of(dense, LaneKind.PROCESS, "map_update").index
    seen = set()
    for length_ms in (7000, 400, 200, 100, 50, 20, 5):
        show(dense, qtbot, 1_000_000_000, 1_000_000_000 + length_ms * 1_000_000)
        shown = {row.index in view.stacks for row in view.visible_rows() if row.index in cpus}
        assert len(shown) == 1, length_ms
        assert stack_of(qtbot, dense, process).cpus == view.cpus_high
        seen |= shown
    assert seen == {True, False}


@pytest.mark.thorough
def test_threads_that_wait_for_a_cpu_are_stacked_above_those_that_run(dense):
    """In one bin of the trace, against the statistics of its threads."""
    timeline, trace = dense.session.opened.timeline, dense.session.opened.trace
    row = row_of(dense, LaneKind.PROCESS, "map_update")
    lane, info = timeline.lane(row.index), timeline.infos[row.index]
    window = TimeWindow(trace.window.start, trace.window.start + trace.window.length // 7)
    found = Statistics(trace, window)
    mine = trace.threads.process[found.states.thread] == info.process
    ready = int(found.states.total_cycles[mine & (found.states.value == states.READY)].sum())
    assert ready > 0
    assert abs(int(lane.ready.totals(window)[0]) - ready) <= len(np.flatnonzero(mine))


@pytest.mark.thorough
def test_figures_are_those_of_the_statistics(dense, qtbot):
    opened = dense.session.opened
    found = Statistics(opened.trace)
    whole = opened.trace.window
    for title, expected in (("map_update", "1.05 CPU"), ("sensor_fusion", "0.53 CPU"), ("slogger2", "< 0.01 CPU")):
        row = row_of(dense, LaneKind.PROCESS, title)
        stack_of(qtbot, dense, row.index)
        assert figure(opened.timeline, row, whole) == expected
        process = opened.timeline.infos[row.index].process
        used = int(found.processes.cpu_cycles[process]) / whole.length
        assert abs(used - float(opened.timeline.lane(row.index).use.totals(whole)[0]) / whole.length) < 0.01
    assert figure(opened.timeline, row_of(dense, LaneKind.CPU, "CPU 0"), whole) == "53 %"


def test_who_runs_is_unknown_without_events_of_threads(tmp_path):
    trace = TraceBuilder().time_event(0).process_name(10, 2, "sbin/quiet").event(6 << 10, 1000, (2, 1)).open(tmp_path)
    timeline = Timeline(trace)
    for info in timeline.infos:
        timeline.lane(info.index)
        assert figure(timeline, SimpleNamespace(index=info.index), trace.window) == "unknown", info.title


@pytest.mark.thorough
def test_what_is_rare_is_a_dot_and_the_card_speaks_of_the_bin(dense, qtbot):
    """A process runs for 0.3 % of the time: one row of pixels at the bottom, not a bar, not nothing."""
    view = dense.workspace.area.view
    row = row_of(dense, LaneKind.PROCESS, "slogger2")
    stack_of(qtbot, dense, row.index)
    shown = bar(dense, row)
    green = value_colour(states.RUNNING, False)
    first, last = view.stacks[row.index].columns[2], view.stacks[row.index].columns[-2]
    assert (shown[0, first:last] == green).mean() > 0.95
    assert not (shown[1:, first:last] == green).any()
    # Shares add up to the whole, and are those of the statistics.
    opened = dense.session.opened
    row = row_of(dense, LaneKind.PROCESS, "map_update")
    stack = stack_of(qtbot, dense, row.index)
    window = stack.window_of(len(stack.edges) // 2)
    text = share_text(opened, row.index, window)
    shares = [float(line.split(" %")[0]) for line in text.split("<br>") if " %" in line]
    assert abs(sum(shares) - 100) < 0.5
    lines = text.split("<br>")
    used = int(opened.timeline.lane(row.index).use.totals(window)[0]) / window.length
    assert lines[1].startswith(f"{used:.2f} CPUs in use")
    assert "intervals, the longest" in lines[-2]


@pytest.mark.thorough
def test_bins_stay_in_position_while_the_view_moves_and_a_key_brings_the_longest_states_back(dense, qtbot, application):
    row = row_of(dense, LaneKind.CPU, "CPU 2")
    show(dense, qtbot, 1_000_000_000, 3_000_000_000)
    before = stack_of(qtbot, dense, row.index)
    dense.session.opened.viewport.pan(0.1)
    settle(qtbot, dense)
    after = stack_of(qtbot, dense, row.index)
    same, mine, other = np.intersect1d(before.edges[1:-2], after.edges[1:-2], return_indices=True)
    assert len(same) > 0.8 * len(before.edges)
    assert before.values == after.values
    assert np.array_equal(before.tops[:, mine + 1], after.tops[:, other + 1])
    view = dense.workspace.area.view
    assert view.stacks
    qtbot.keyClick(view, K.Key_S, SHIFT)
    settle(qtbot, dense)
    assert not view.stacks
    assert not application.settings.flag("swimlane/shares")
    qtbot.keyClick(view, K.Key_S, SHIFT)
    settle(qtbot, dense)
    assert view.stacks


@pytest.mark.thorough
def test_a_click_selects_the_longest_interval_of_what_it_points_at(dense, qtbot):
    opened, view = dense.session.opened, dense.workspace.area.view
    row = row_of(dense, LaneKind.PROCESS, "map_update")
    stack = stack_of(qtbot, dense, row.index)
    shares = opened.timeline.lane(row.index).shares
    waits = shares.cycles(stack.edges)[:, shares.values.tolist().index(states.WAITING)]
    waits = waits / np.maximum(np.diff(stack.edges), 1)
    position = int(np.argmin(np.abs(waits - 0.5)))  # it runs half of the time
    x = int(stack.columns[position : position + 2].mean())
    top, bottom = stack_of_lane(row, view.scroll_px, 1.0, ShownMarks.NONE, stack)
    qtbot.mouseClick(view, LEFT, pos=QPoint(x, bottom - 1))
    span, window = opened.selection.span, stack.window_of(position)
    assert opened.selection.lane == row.index
    assert span.value == states.RUNNING
    spans = opened.timeline.lane(row.index).spans
    ends = np.append(spans.start_cycles[1:], spans.end_cycles)
    inside = np.minimum(ends, window.end) - np.maximum(spans.start_cycles, window.start)
    longest = int(np.argmax(np.where(spans.value == states.RUNNING, inside, -1)))
    assert span.start_cycles == int(spans.start_cycles[longest])
    qtbot.mouseClick(view, LEFT, pos=QPoint(x, top + 1))
    assert opened.selection.span.value in (states.WAITING, states.READY)


def marked_columns(window, row):
    """Return the columns in which a lane has marks of events above its bar, and their colours."""
    view = window.workspace.area.view
    line = pixels_of(view)[row.y_px - view.scroll_px + bands(row.height_px).ticks_top]
    marked = np.flatnonzero(line != LIGHT.base)
    return marked.tolist(), set(line[marked].tolist())


def event_columns(window, codes, row):
    """Return the columns of the view in which events of some codes and the process of a lane are."""
    opened, view = window.session.opened, window.workspace.area.view
    trace = opened.trace
    mine = np.isin(trace.events.code, list(codes))
    mine &= trace.threads.process[trace.events.thread] == opened.timeline.infos[row.index].process
    edges = pixel_edges(view.scale.window, round(view.scale.width_px))
    times = trace.events.time_cycles[mine]
    times = times[(times >= edges[0]) & (times < edges[-1])]
    return sorted(set((np.searchsorted(edges, times, side="right") - 1).tolist()))


@pytest.mark.thorough
def test_events_that_a_filter_leaves_are_marked_above_shares(dense, qtbot):
    opened = dense.session.opened
    stack_of(qtbot, dense, row_of(dense, LaneKind.PROCESS, "logger").index)
    opened.filters.add_pass("event == MSG_SENDV")
    qtbot.waitUntil(lambda: opened.filters.row_count < len(opened.trace.events), timeout=10_000)
    settle(qtbot, dense)
    row = row_of(dense, LaneKind.PROCESS, "logger")
    columns = event_columns(dense, opened.trace.catalogue.find("MSG_SENDV"), row)
    assert 100 < len(columns) < 800
    assert marked_columns(dense, row)[0] == columns
    opened.filters.remove_pass("A")
    qtbot.waitUntil(lambda: opened.filters.row_count == len(opened.trace.events), timeout=10_000)
    settle(qtbot, dense)
    assert dense.workspace.area.view.lanes.painter.marks is ShownMarks.NONE


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("effect", "colour"), [(Effect.HIDE, USER_EVENTS), (Effect.MARK, LIGHT.hit), (Effect.DIM, USER_EVENTS)]
)
def test_few_events_that_a_filter_chooses_show_above_shares_and_no_others_do(dense, qtbot, effect, colour):
    """Of 200,000 events these 720 have the colour of their class; it would only flicker if all of them were marked."""
    opened = dense.session.opened
    opened.filters.add_pass("class == USREVENT", effect=effect)
    marks = ShownMarks.ALL if effect is Effect.HIDE else ShownMarks.TICKS
    qtbot.waitUntil(lambda: dense.workspace.area.view.lanes.painter.marks is marks, timeout=10_000)
    settle(qtbot, dense)
    row = row_of(dense, LaneKind.PROCESS, "planner")
    stack_of(qtbot, dense, row.index)
    begins = event_columns(dense, np.flatnonzero(np.arange(1 << 15) >> 10 == wire.WireClass.USER), row)
    assert len(begins) > 5
    assert marked_columns(dense, row) == (sorted({x + step for x in begins for step in (0, 1)}), {colour})


@pytest.mark.thorough
def test_hidden_threads_leave_shares_their_whole_height(dense, qtbot):
    dense.session.opened.filters.show_threads([1], False)
    settle(qtbot, dense)
    assert dense.workspace.area.view.lanes.painter.marks is ShownMarks.NONE


@pytest.mark.thorough
def test_the_core_draws_what_numpy_draws():
    rng = np.random.default_rng(5)
    for _ in range(60):
        kinds, bins, width, height = (int(rng.integers(1, most)) for most in (7, 40, 90, 40))
        shares = rng.random((kinds, bins)) * rng.choice([0.001, 0.05, 1], (kinds, bins))
        shares[rng.random((kinds, bins)) < 0.3] = 0
        tops = np.cumsum(shares / max(1.0, float(shares.sum(axis=0).max())), axis=0)
        columns = np.sort(rng.integers(0, width + 1, bins + 1))
        values = tuple(rng.choice([2, 3, 36, 37, 39, 40, 41], kinds).tolist())
        stack = Stack(
            np.arange(bins + 1), columns, values, tops, rng.integers(0, 2**32, kinds).astype(np.uint32), NOTHING
        )
        top = int(rng.integers(-10, height))
        bottom = top + int(rng.integers(1, 30))
        mine, theirs = (np.full((height, width), 7, np.uint32) for _ in range(2))
        draw_stack(mine, stack, top, bottom, 99)
        with numpy_passes():
            draw_stack(theirs, stack, top, bottom, 99)
        assert np.array_equal(mine, theirs)
        inside = slice(max(0, top), min(height, bottom))
        assert (mine[: inside.start] == 7).all()
        assert (mine[inside.stop :] == 7).all()


@pytest.mark.thorough
def test_the_strip_shows_the_load_of_the_cpus(dense, qtbot):
    """Each column against the statistics of its time; while a filter chooses events, the strip counts these."""
    overview, trace = dense.workspace.area.overview, dense.session.opened.trace
    overview.resize(611, overview.height())  # whether the lanes have a scroll bar or not
    overview.grab()
    use = overview.shown_use
    assert len(use.most) == 611
    assert use.cpus == 4
    for column in range(50, len(use.most) - 50, 97):
        window = use.window_of(column)
        busy = Statistics(trace, window).cpus
        expected = (busy.busy_cycles + busy.interrupt_cycles).sum() / window.length
        assert abs(use.used[:, column].sum() - expected) < 0.01
        assert use.least[column] <= expected <= use.most[column]
    assert 2.0 < use.used.sum(axis=0).mean() < 2.24
    image = overview.grab().toImage()
    colours = [[image.pixel(x, y) & 0xFFFFFF for y in range(39, 8, -1)] for x in range(300, 330)]
    busiest = state_colour(use.values[0], dense.theme)
    assert all(column[0] == busiest for column in colours)
    shown = {state_colour(value, dense.theme) for value in use.values}
    heights = [max(y for y, rgb in enumerate(column) if rgb in shown) + 1 for column in colours]
    assert all(13 <= height <= 20 for height in heights)  # of 32 pixels, which are 4 CPUs
    assert max(abs(a - b) for a, b in pairwise(heights)) <= 2
    dense.session.opened.filters.only_codes([wire.THREAD_RUNNING], "one event")
    settle(qtbot, dense)
    overview.grab()
    assert overview.shown_use is None


@pytest.mark.thorough
def test_interrupts_are_as_strong_as_the_time_they_take(empty_window, load, tmp_path, qtbot):
    """One a millisecond: of 100 us for 300 ms, 10 % of the time, then of 1 us for 300 ms, 0.1 %, then none."""
    builder = TraceBuilder(cpus=1).time_event(0).process_name(10, 2, "worker").process_name(20, 3, "other")
    for number in range(1000):
        start, length = 1_000 + number * 1_000_000, 100_000 if number < 300 else 1_000
        builder.state("RUNNING", start, 2 + number % 2, 1)
        if number < 600:
            builder.event(wire.code(wire.WireClass.INT, 1), start + 500_000, (5, 0))
            builder.event(wire.code(wire.WireClass.INT, 2), start + 500_000 + length, (5, 0))
    window = load(empty_window, builder.write(tmp_path / "interrupts.kev"))
    settle(qtbot, window)
    view, opened = window.workspace.area.view, window.session.opened
    row = next(row for row in opened.lanes.rows if opened.timeline.infos[row.index].kind is LaneKind.INTERRUPTS)
    image = view.grab().toImage()
    full, ground = value_colour(states.INTERRUPT, False) & 0xFF, LIGHT.base & 0xFF

    def strengths(ns):
        """Return how strong the colour is at each height of the bar."""
        x = round(view.scale.x(opened.trace.clock.cycles(ns)))
        heights = range(row.y_px - view.scroll_px + 2, row.y_px - view.scroll_px + row.height_px - 3)
        return [(ground - (image.pixel(x, y) & 0xFF)) / (ground - full) for y in heights]

    # A decade is a fourth of the strength; the bins of four pixels hold four or five interrupts.
    assert strengths(150_000_000) == pytest.approx([0.75] * (row.height_px - 5), abs=0.05)
    assert strengths(450_000_000) == pytest.approx([0.25] * (row.height_px - 5), abs=0.05)
    assert strengths(800_000_000) == [0] * (row.height_px - 5)
    x, y = view.scale.x(opened.trace.clock.cycles(250_000_000)), row.y_px - view.scroll_px + 5
    assert view.share_at(row, x, y)[1] == states.INTERRUPT


def test_the_core_stacks_as_numpy_does():
    rng = np.random.default_rng(6)
    for bins, kinds, stacked in ((1, 1, 1), (300, 9, 4), (600, 5, 5)):
        cycles, order = rng.integers(0, 1 << 40, (bins, kinds)), rng.permutation(kinds)[:stacked]
        length = rng.integers(1, 1 << 42, bins)
        found = tops_of(cycles, order, length)
        assert found[-1, 0] == int(cycles[0, order].sum()) / int(length[0])
        with numpy_passes():
            assert np.array_equal(tops_of(cycles, order, length), found)


@pytest.mark.thorough
def test_what_a_filter_marks_is_underlined_and_changes_no_share(dense, qtbot):
    """Only logger and diag wait for a reply for 2 ms; processes go on to show the CPUs that they have."""
    opened = dense.session.opened
    interrupts = next(row for row in opened.lanes.rows if opened.timeline.infos[row.index].kind is LaneKind.INTERRUPTS)
    stack_of(qtbot, dense, interrupts.index)
    before = bar(dense, interrupts)[4, 200:400]
    opened.filters.add_pass("state == REPLY and length > 2ms", effect=Effect.MARK)
    legend = dense.workspace.area.legend
    qtbot.waitUntil(lambda: "marked by a filter" in legend.accessibleName(), timeout=10_000)
    legend.hide()  # it has just become higher, which the lanes follow later
    qtbot.waitUntil(lambda: np.all(bar(dense, interrupts)[4, 200:400] != before))  # they fade like all else
    for name, is_marked in (("logger", True), ("screen", False)):
        row = row_of(dense, LaneKind.PROCESS, name)
        stack = stack_of(qtbot, dense, row.index)
        assert stack.values == (states.RUNNING, states.READY, states.UNKNOWN, states.WAITING)
        qtbot.waitUntil(lambda row=row: len(bar(dense, row)) > 10)
        foot = bar(dense, row)[0]
        assert bool((foot == LIGHT.hit).sum() > 50) is is_marked, name
        area = bar(dense, row)[:, foot != LIGHT.hit]  # where nothing is highlighted, which fades
        green = state_colour(states.RUNNING, LIGHT)
        assert not np.any(area == green), name
        assert np.any(area == half_way(half_way(np.array([green], np.uint32), LIGHT.base), LIGHT.base) & 0xFFFFFF), name


@pytest.mark.thorough
@pytest.mark.parametrize("effect", fewer((Effect.HIDE, Effect.DIM), 1))
def test_a_filter_leaves_shares_of_what_passes(dense, qtbot, effect):
    """CPU 1 with one process alone: as high as it ran there; with the others faded above it, as high as without."""
    opened, view = dense.session.opened, dense.workspace.area.view
    row = row_of(dense, LaneKind.CPU, "CPU 1")
    before = stack_of(qtbot, dense, row.index)
    trace, spans = opened.trace, opened.timeline.lane(row.index).spans
    process = next(i for i in range(len(trace.processes)) if trace.process_name(i) == "map_update")
    opened.filters.add_pass(f"pid == {trace.processes.pid[process]}", "", effect)
    qtbot.waitUntil(lambda: row.index in view.stacks and view.stacks[row.index] is not before, timeout=10_000)
    settle(qtbot, dense)
    stack = view.stacks[row.index]
    mine = trace.threads.process[spans.thread] == process
    start, end = spans.start_cycles[:], np.append(spans.start_cycles[1:], spans.end_cycles)
    hue = int(spans.value[mine][0])
    own = stack.values.index(hue)
    heights = stack.tops[own] - (stack.tops[own - 1] if own else 0)
    for position in range(2, len(stack.edges) - 2, 7):
        window = stack.window_of(position)
        ran = np.minimum(end, window.end) - np.maximum(start, window.start)
        expected = int(ran[mine & (ran > 0)].sum()) / window.length
        assert heights[position] == pytest.approx(expected, abs=1e-9)
    assert heights[2:-2].max() > 0.1
    if effect is Effect.DIM:
        assert stack.tops[-1, 2:-2] == pytest.approx(before.tops[-1, 2:-2])
    else:
        assert stack.tops[-1, 2:-2].mean() < before.tops[-1, 2:-2].mean() / 2
    card = share_text(opened, row.index, stack.window_of(20), stack.spans)
    assert ("hidden by the filter" in card) == (effect is Effect.HIDE), card
