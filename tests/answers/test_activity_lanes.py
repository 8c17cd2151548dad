"""Lanes of activities: bars from start to end, their outcomes, deadlines, and lanes below each other for overlaps."""

from __future__ import annotations

import numpy as np
import pytest

from satview.analysis.activities import CALLED, Timing, activities
from satview.answers.activity_lanes import ACTIVITIES, DONE, IN_TIME, LATE, UNFINISHED, ActivityLanes, without_overlap
from satview.base.errors import UsageError
from satview.capture.workloads import registry
from satview.timeline.lane_tree import Timeline
from tests.capture.made import traced
from tests.helpers.scene import rounds_of_a_loop

BASE = 1 << 32  # of all times, as TraceBuilder writes them


def lanes(trace, **timing):
    """Return the lanes of activities by title, each as (start, end, outcome, deadline, text)."""
    timeline = Timeline(trace)
    timeline.use_finder(ACTIVITIES, ActivityLanes(timing))
    timeline.show_classes([ACTIVITIES])
    shown = {}
    for lane in sorted(timeline.lanes_of_class(ACTIVITIES)):
        info, spans = timeline.infos[lane], timeline.lane(lane).spans
        columns = (
            info.track.content.start,
            info.track.content.end,
            info.track.content.value,
            info.track.content.deadline,
        )
        texts = [text for text in spans.texts if text]
        shown[info.title] = [
            (start - BASE, end - BASE, value, deadline - BASE if deadline >= 0 else None, text)
            for start, end, value, deadline, text in zip(*(column.tolist() for column in columns), texts, strict=True)
        ]
    return shown


def test_a_bar_goes_from_start_to_end_and_says_how_late_it_is(tmp_path):
    """Rounds begin every 10,000 ns and take 1,100; the one at 110,000 takes 5,100 of the 5,000 that it may."""
    bars = lanes(rounds_of_a_loop().open(tmp_path), **{"control 1": Timing(deadline="5us")})["control 1"]
    assert bars[0] == (10_000, 11_100, IN_TIME, 15_000, "1.100 µs")
    assert bars[10] == (110_000, 115_100, LATE, 115_000, "5.100 µs, 100 ns late")
    assert [bar[2] for bar in bars].count(LATE) == 3


def test_a_round_that_the_trace_cuts_goes_on_to_its_end(tmp_path):
    """The last round of five is cut after 800: so far it is neither in time nor late."""
    bars = lanes(rounds_of_a_loop(5, (), is_cut=True).open(tmp_path))["control 1"]
    start, end, outcome, _, text = bars[-1]
    assert (start, outcome) == (50_000, UNFINISHED)
    assert text == f"\N{GREATER-THAN OR EQUAL TO} {end - start} ns, not done"
    bars = lanes(rounds_of_a_loop(5, (), is_cut=True).open(tmp_path), **{"control 1": Timing(deadline="500 ns")})
    assert bars["control 1"][-1][2] == LATE, "its deadline is over"


def test_only_what_a_file_of_timing_names_has_a_lane(tmp_path):
    trace = rounds_of_a_loop().open(tmp_path)
    starts = Timing(start='event == THREADY and name == "control"', end="event == THNANOSLEEP")
    assert list(lanes(trace)) == ["control 1"]
    assert list(lanes(trace, round=starts)) == ["round"]
    assert list(lanes(trace, round=starts, control=Timing(deadline="5us"))) == ["control 1", "round"], "late ones first"
    assert {bar[2] for bar in lanes(trace, round=starts)["round"]} <= {DONE, IN_TIME, UNFINISHED}
    with pytest.raises(UsageError, match="names no activity"):
        lanes(trace, nobody=Timing(deadline="5us"))


def test_instances_that_overlap_are_on_lanes_below_each_other(tmp_path):
    """Every instance is on one lane, but for calls within other work; on none two overlap."""
    setup, cpus = registry.find("automotive").setup, registry.find("automotive").cpus
    trace = traced(setup, 40, tmp_path, cpus=cpus).trace
    learned = activities(trace)
    timeline = Timeline(trace)
    timeline.use_finder(ACTIVITIES, ActivityLanes())
    timeline.show_classes([ACTIVITIES])
    drawn = 0
    for lane in timeline.lanes_of_class(ACTIVITIES):
        found = timeline.infos[lane].track.content
        assert (found.start[1:] >= found.end[:-1]).all()
        drawn += len(found)
    shown = [number for number, activity in enumerate(learned.activities) if activity.trigger not in CALLED]
    assert drawn == np.count_nonzero(np.isin(learned.instances.activity, shown))
    titles = [timeline.infos[lane].title for lane in timeline.lanes_of_class(ACTIVITIES)]
    assert len(titles) > len(shown), "some overlap"


def test_a_lane_takes_always_the_next_interval_that_has_room():
    """0-10 and 12-20 have room; 5-15 has none beside the first, 15-18 none beside 12-20."""
    start, end = np.array([0, 5, 12, 15]), np.array([10, 15, 20, 18])
    assert without_overlap(start, end).tolist() == [True, False, True, False]
    assert without_overlap(start[:1], end[:1]).tolist() == [True]
    many = np.arange(1000)
    assert without_overlap(many, many + 3).tolist() == [number % 3 == 0 for number in range(1000)]
