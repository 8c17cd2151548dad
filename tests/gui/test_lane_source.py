from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from satview.base.time import TimeWindow
from satview.gui.swimlane import lane_source
from satview.gui.swimlane.lane_source import LaneRequest, LaneSource, column_blocks, exact_values
from satview.timeline import lane
from satview.timeline.lane_tree import Timeline
from satview.timeline.spans import pixel_edges


@pytest.mark.parametrize("events", [0, 10, 10**6, 10**9])
@pytest.mark.parametrize("width_px", [1, 7, 1600])
def test_blocks_cover_every_pixel_once(events, width_px):
    request = LaneRequest((0,), TimeWindow(1_000, 1_000 + 3_333_333), width_px)
    blocks = column_blocks(request, events)
    assert [x for columns, _ in blocks for x in range(columns.start, columns.stop)] == list(range(width_px))
    edges = pixel_edges(request.window, width_px)
    for columns, window in blocks:
        assert (window.start, window.end) == (edges[columns.start], edges[columns.stop])


@pytest.mark.thorough
def test_exact_picture_is_the_same_in_blocks_and_in_one_piece(window, opened, view, monkeypatch):
    limits = opened.viewport.limits
    # Whole cycles per pixel, as the viewport makes them, so that block edges are pixel edges.
    shown = TimeWindow(limits.start, limits.start + 20_000)
    request = LaneRequest(tuple(range(6)), shown, 400)
    monkeypatch.setattr(lane_source, "_EVENTS_PER_BLOCK", 2)
    part = opened.trace.rows_between(shown)
    assert len(column_blocks(request, part.stop - part.start)) > 3
    done, values = exact_values(opened.timeline, lambda: request, None, None, lambda: False, lambda share: None)
    assert done == request
    assert np.array_equal(values, opened.timeline.raster(request.lanes, shown, 400, exact=True))


@pytest.mark.thorough
def test_cancelled_work_gives_nothing(opened):
    request = LaneRequest((0, 1), opened.viewport.limits, 100)
    assert exact_values(opened.timeline, lambda: request, None, None, lambda: True, lambda share: None) is None


@pytest.mark.thorough
def test_what_shares_are_drawn_from_is_found_before_the_frame(opened, monkeypatch):
    monkeypatch.setattr(lane, "_LEAST_CELLS", 1)  # as of long lanes
    monkeypatch.setattr(lane, "_PER_CELL", 1)
    timeline = Timeline(opened.trace)
    request = LaneRequest(tuple(range(len(timeline.infos))), opened.trace.window, 100, kinds=True)
    exact_values(timeline, lambda: request, None, None, lambda: False, lambda share: None)

    def refuse(self, edges):
        raise AssertionError("the frame adds intervals up")

    with monkeypatch.context() as patch:  # not until the test ends: the window may paint its overview before
        patch.setattr(lane.LaneShares, "cycles", refuse)
        of_lanes = [timeline.lane(index) for index in request.lanes]
        of_cpus = [timeline.kinds(index) for index in timeline.cpu_lanes]
        found = [each for lane in of_lanes for each in (lane.shares, lane.use)] + of_cpus
        assert sum(each is not None for each in found) > len(request.lanes)
        for each in found:
            if each is not None:
                each.binned(timeline.trace.window, max(each._levels), 0, 1)


def built_while_the_view_changes(timeline, request, change, monkeypatch):
    """Work a request out, which changes as each lane is built; return the last request, its values, and the lanes."""
    built, due, original = [], [request], Timeline._spans

    def spans(self, info):
        if self is timeline:  # not that of the window
            built.append(info.index)
            due[0] = change(due[0], info.index)
        return original(self, info)

    monkeypatch.setattr(Timeline, "_spans", spans)
    done, values = exact_values(timeline, lambda: due[0], None, None, lambda: False, lambda share: None)
    return done, values, sorted(built)


@pytest.mark.thorough
def test_lanes_that_are_being_built_stay_of_use_when_the_view_gets_wider(opened, monkeypatch):
    timeline = Timeline(opened.trace)
    narrow = LaneRequest(tuple(range(len(timeline.infos))), opened.trace.window, 100)
    wide = replace(narrow, width_px=120)
    done, values, built = built_while_the_view_changes(timeline, narrow, lambda _due, _lane: wide, monkeypatch)
    assert (done, values.shape) == (wide, (len(timeline.infos), 120))
    assert built == list(narrow.lanes)


@pytest.mark.thorough
def test_lanes_that_show_no_more_are_left(opened, monkeypatch):
    timeline = Timeline(opened.trace)
    first, *others = (info.index for info in timeline.infos if info.index not in timeline.cpu_lanes)
    request = LaneRequest(tuple(others), opened.trace.window, 100)

    def scrolled(due, lane):
        return replace(due, lanes=(first,)) if lane == others[0] else due

    done, _, built = built_while_the_view_changes(timeline, request, scrolled, monkeypatch)
    assert done.lanes == (first,)
    assert built == sorted([*timeline.cpu_lanes, first, others[0]])


@pytest.mark.thorough
def test_some_lanes_have_the_values_that_they_have_among_all(opened, view, qtbot):
    source = LaneSource(opened)
    request = LaneRequest(tuple(row.index for row in view.visible_rows()), opened.trace.window, 50)
    opened.timeline.build(request.lanes)
    source.show(request)
    some = replace(request, lanes=request.lanes[3:1:-1])
    for is_exact in (False, True):
        if is_exact:
            with qtbot.waitSignal(source.refined):
                pass
        assert source.is_refined is is_exact
        assert np.array_equal(source.values(some), source.values(request)[3:1:-1])
    opened.filters.show_threads([1], False)
    assert not source.is_refined
    source.close()
