"""Arrows between lanes: found by time against a search of all, grouped where they are dense, from the right lanes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from satview.base.time import TimeWindow
from satview.events import wire
from satview.linkage.links import Certainty
from satview.timeline import arrows as groups_module
from satview.timeline.arrows import ArrowIndex, ArrowKind, Arrows, Picture, arrow_groups, arrow_index
from satview.timeline.lane_tree import LaneKind, Timeline
from tests.helpers.exchange import Exchange
from tests.helpers.kev import START, TraceBuilder
from tests.linkage.test_latencies import interrupted


def reported(timeline: Timeline, index: ArrowIndex) -> list[tuple[str, str, str, int, int]]:
    """Return (kind, from, to, start, end) of all arrows, by start."""
    arrows, infos = index.arrows, timeline.infos
    title = [infos[info.parent].title if info.parent >= 0 else info.title for info in infos]
    names = ("kind", "from_lane", "to_lane", "start", "end")
    rows = zip(*(getattr(arrows, name).tolist() for name in names), strict=True)
    return sorted([(ArrowKind(kind).name, title[first], title[last], start - START, end - START)
                   for kind, first, last, start, end in rows], key=lambda row: row[3])  # fmt: skip


def test_a_message_its_receipt_and_its_reply(tmp_path: Path) -> None:
    made = Exchange()
    made.send(100, 2, 3, 1)
    made.receive(200, 2, 3)
    made.reply(300, 2)
    made.goes_on(400, 2)
    timeline = Timeline(made.build.open(tmp_path))
    assert reported(timeline, arrow_index(timeline.trace, timeline.infos)) == [
        ("MESSAGE", "shell", "disk", 102, 201),
        ("REPLY", "disk", "shell", 300, 301),
    ]


def test_the_pulse_of_an_interrupt_begins_at_its_lane(tmp_path: Path) -> None:
    timeline = Timeline(interrupted().open(tmp_path))
    index = arrow_index(timeline.trace, timeline.infos)
    assert reported(timeline, index) == [("PULSE", "CPU 0", "driver", 140, 190)]  # and no second one for READY
    assert timeline.infos[index.arrows.from_lane[0]].kind is LaneKind.INTERRUPTS


def test_a_trace_without_arrows(tmp_path: Path) -> None:
    trace = TraceBuilder().time_event(0).state("RUNNING", 5, 1, 1).open(tmp_path)
    timeline = Timeline(trace)
    index = arrow_index(trace, timeline.infos)
    picture = Picture(trace.window, 100, np.zeros(len(timeline.infos), np.int64), (0, 9))
    found = arrow_groups(trace, index, picture, 5)
    assert (len(found), found.total, found.about, found.is_sample) == (0, 0, 0, False)


@pytest.fixture
def many(tmp_path: Path):
    """Return a trace with a random index of 5,000 arrows between 4 lanes, in 100,000 cycles."""
    trace = TraceBuilder().time_event(0).state("RUNNING", 5, 1, 1).open(tmp_path)
    random = np.random.default_rng(3)
    start = np.sort(random.integers(0, 100_000, 5000)) + START
    end = start + (10 ** random.uniform(0, 4.5, 5000)).astype(np.int64)
    lanes = random.integers(0, 4, (2, 5000)).astype(np.int32)
    lanes[1][lanes[0] == lanes[1]] = (lanes[0][lanes[0] == lanes[1]] + 1) % 4
    arrows = Arrows(start, end, np.zeros(5000, np.uint32), np.zeros(5000, np.uint32), lanes[0], lanes[1],
                    random.integers(0, 4, 5000).astype(np.uint8), np.full(5000, Certainty.EXACT, np.uint8))  # fmt: skip
    power = np.frexp((end - start).astype(float))[1]
    arrows = arrows.taken(np.lexsort((start, power)))
    power.sort()
    edges = [(slice(*np.searchsorted(power, (value, value + 1)).tolist()), 1 << value)
             for value in np.unique(power).tolist()]  # fmt: skip
    return trace, ArrowIndex(arrows, tuple(edges))


@pytest.mark.parametrize("span", [(0, 100_000), (20_000, 20_500), (99_000, 120_000), (50_000, 50_001)])
def test_groups_are_for_exactly_the_arrows_in_the_window(many, span: tuple[int, int]) -> None:
    trace, index = many
    window = TimeWindow(START + span[0], START + span[1])
    found = arrow_groups(trace, index, Picture(window, 500, np.arange(4), (0, 3)))
    arrows = index.arrows
    inside = (arrows.start < window.end) & (arrows.end >= window.start)
    assert found.total == np.count_nonzero(inside)
    drawn = int(found.count.sum())
    assert len(found) <= groups_module.FEW
    assert drawn == found.total
    for kind in ArrowKind:
        mine = inside & (arrows.kind == kind)
        assert found.count[found.arrows.kind == kind].sum() == np.count_nonzero(mine)
    lengths = (arrows.end - arrows.start)[inside]
    assert (found.least_cycles.min(), found.most_cycles.max()) == (lengths.min(), lengths.max())
    assert np.all((found.drawn_at >= arrows.start[inside].min()) & (found.drawn_at < window.end))


def test_a_sample_says_so_and_is_near(many) -> None:
    trace, index = many
    picture = Picture(TimeWindow(START, START + 100_000), 500, np.arange(4), (0, 3))
    found = arrow_groups(trace, index, picture, 700)
    assert found.is_sample
    assert found.total <= 700
    assert abs(found.about - 5000) < 250


def test_only_arrows_across_rows_that_show(many) -> None:
    trace, index = many
    window, arrows = TimeWindow(START, START + 100_000), index.arrows
    positions = np.array([0, 1, -1, 2])  # lane 2 is hidden
    found = arrow_groups(trace, index, Picture(window, 500, positions, (2, 2)))
    visible = (arrows.from_lane != 2) & (arrows.to_lane != 2) & ((arrows.from_lane == 3) | (arrows.to_lane == 3))
    assert found.total == np.count_nonzero(visible)
    folded = np.array([0, 0, 0, 1])  # arrows within a row are not drawn
    found = arrow_groups(trace, index, Picture(window, 500, folded, (0, 9)))
    assert found.total == np.count_nonzero((arrows.from_lane == 3) | (arrows.to_lane == 3))


def test_hidden_events_have_no_arrows(tmp_path: Path) -> None:
    made = Exchange()
    made.send(100, 2, 3, 1)
    made.receive(200, 2, 3)
    timeline = Timeline(made.build.open(tmp_path))
    trace, index = timeline.trace, arrow_index(timeline.trace, timeline.infos)
    positions = np.arange(len(timeline.infos))
    codes = np.ones(wire.CODE_COUNT, np.bool_)

    def count() -> int:
        return arrow_groups(trace, index, Picture(trace.window, 500, positions, (0, 99), codes)).total

    assert count() == 1
    codes[wire.code(wire.WireClass.COMM, 0)] = False
    assert count() == 1  # the receipt shows still
    codes[wire.code(wire.WireClass.COMM, 2)] = False
    assert count() == 0
