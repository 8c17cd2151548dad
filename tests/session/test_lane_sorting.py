"""Lanes sorted, grouped and moved, on a trace that can be worked out by hand.

At 1 GHz; wide thread events carry priority, policy and partition:

    zeta   pid 2, thread 1: cpu0 0 to 1,000 at priority 10, then RECEIVE; thread 2: cpu1 3,000 to 4,100 at 63
    alpha  pid 3, thread 1: READY 0 to 1,000, cpu0 1,000 to 6,000 at 10, partition 1
    mid    pid 4, thread 1: cpu1 0 to 3,000 at 21, then READY to 6,000
"""

from __future__ import annotations

import pytest

from satview.base.errors import UsageError
from satview.base.time import TimeWindow
from satview.session.lanes.lane_arrangement import GroupBy, SortBy
from satview.session.lanes.lane_list import OTHERS
from satview.session.open_trace import OpenTrace
from satview.session.settings import Settings
from satview.timeline.lane_tree import Timeline
from tests.helpers.kev import TraceBuilder

ZETA, alpha, MID = 2, 3, 4
FIFO = 1


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    builder = TraceBuilder(cpus=2).time_event(0)
    for pid, name in ((ZETA, "sbin/zeta"), (alpha, "bin/alpha"), (MID, "bin/mid")):
        builder.process_name(1, pid, name)
    builder.state("RUNNING", 2, ZETA, 1, 0, (10, FIFO, 0, 0)).state("READY", 3, alpha, 1, 0, (10, FIFO, 1, 0))
    builder.state("RUNNING", 4, MID, 1, 1, (21, FIFO, 0, 0))
    builder.state("RECEIVE", 1_000, ZETA, 1, 0, (10, FIFO, 0, 0))
    builder.state("RUNNING", 1_001, alpha, 1, 0, (10, FIFO, 1, 0))
    builder.state("READY", 3_000, MID, 1, 1, (21, FIFO, 0, 0)).state("RUNNING", 3_001, ZETA, 2, 1, (63, FIFO, 0, 0))
    builder.state("SEM", 4_100, ZETA, 2, 1, (63, FIFO, 0, 0))
    builder.state("RECEIVE", 6_000, alpha, 1, 0, (10, FIFO, 1, 0))
    return builder.open(tmp_path_factory.mktemp("lanes"))


@pytest.fixture
def opened(qapp, trace):
    found = OpenTrace(trace, Timeline(trace), Settings(None))
    found.viewport.set_width(1000)
    yield found
    found.shut_down()


def shown(opened):
    """Return the names of lanes below those of CPUs, headings in brackets; a process of one thread has one lane."""
    infos = opened.timeline.infos
    parts = [(head.y_px, f"[{head.title}]") for head in opened.lanes.heads]
    parts += [(row.y_px, infos[row.unit].title) for row in opened.lanes.rows if infos[row.index].cpu < 0]
    return " ".join(text.replace("thread ", "t") for _, text in sorted(parts))


def lane(opened, title):
    return next(info.index for info in opened.timeline.infos if info.title == title)


@pytest.fixture
def wait(qtbot, opened):
    return lambda: qtbot.waitUntil(lambda: not opened.sorter.is_busy)


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        (SortBy.NAME, "alpha mid zeta t1 t2"),
        (SortBy.CPU, "alpha mid zeta t2 t1"),  # of zeta thread 2 ran 1,099, thread 1 999
        (SortBy.PRIORITY, "zeta t2 t1 mid alpha"),
        (SortBy.READY, "mid alpha zeta t1 t2"),  # 3,000, 998, 0
        (SortBy.BLOCKED, "zeta t1 t2 alpha mid"),
    ],
)
def test_sorts(opened, wait, sort, order):
    assert shown(opened) == "zeta t1 t2 alpha mid"
    opened.sort_lanes(sort)
    wait()
    assert shown(opened) == order
    assert opened.lanes.arrangement.sort is sort
    opened.sort_lanes(SortBy.TRACE)
    wait()
    assert shown(opened) == "zeta t1 t2 alpha mid"


def test_sorts_by_what_is_in_the_range(opened, wait):
    cycles = opened.trace.clock.cycles
    opened.selection.set_range(TimeWindow(cycles(3_100), cycles(3_900)))  # only alpha, and thread 2 of zeta
    opened.sort_lanes(SortBy.CPU)
    wait()
    assert shown(opened) == "zeta t2 t1 alpha mid"  # equal: as in the trace
    opened.edits.undo()
    assert shown(opened) == "zeta t1 t2 alpha mid"


@pytest.mark.parametrize(
    ("group", "lanes"),
    [
        (GroupBy.PRIORITY, "[Priority 63] t2 [Priority 21] t1 [Priority 10] t1 t1"),
        (GroupBy.CPU, "[Mostly on CPU 0] t1 t1 [Mostly on CPU 1] t2 t1"),
        (GroupBy.PARTITION, "[Partition 0: partition 0] t1 t2 t1 [Partition 1: partition 1] t1"),
    ],
)
def test_groups_of_threads(opened, wait, group, lanes):
    opened.group_lanes(group)
    wait()
    assert shown(opened) == lanes
    assert all(row.is_alone for row in opened.lanes.rows if opened.timeline.infos[row.index].thread)
    opened.group_lanes(GroupBy.PROCESS)
    assert shown(opened) == "zeta t1 t2 alpha mid"


def test_groups_of_names_fold_and_hold_the_rest(opened, wait):
    opened.group_lanes(GroupBy.PATTERN, "Letters: al*, zeta")
    wait()
    assert shown(opened) == f"[Letters] zeta t1 t2 alpha [{OTHERS}] mid"
    opened.lanes.fold_group("Letters")
    assert shown(opened) == f"[Letters] [{OTHERS}] mid"
    opened.lanes.reveal(lane(opened, "alpha"))
    assert shown(opened) == f"[Letters] zeta t1 t2 alpha [{OTHERS}] mid"
    with pytest.raises(UsageError, match="write patterns"):
        opened.group_lanes(GroupBy.PATTERN, " ; ")


def test_what_no_name_fits_is_said_and_changes_nothing(opened, wait):
    failures = []
    opened.sorter.failed.connect(failures.append)
    opened.group_lanes(GroupBy.PATTERN, "nothing*")
    wait()
    assert failures == ["no process has such a name"]
    assert opened.lanes.heads == ()


def test_moves_among_siblings_and_back(opened):
    opened.lanes.move(lane(opened, "mid"), lane(opened, "zeta"))
    assert shown(opened) == "mid zeta t1 t2 alpha"
    opened.lanes.step(lane(opened, "mid"), 1)
    assert shown(opened) == "zeta t1 t2 mid alpha"
    opened.lanes.step(lane(opened, "zeta") + 2, -1)  # thread 2 above thread 1
    assert shown(opened) == "zeta t2 t1 mid alpha"
    opened.lanes.step(lane(opened, "alpha"), 1)  # it is the last
    assert shown(opened) == "zeta t2 t1 mid alpha"
    for _ in range(3):
        opened.edits.undo()
    assert shown(opened) == "zeta t1 t2 alpha mid"


def test_pinned_lanes_are_moved_among_themselves(opened):
    for name in ("zeta", "mid"):
        opened.lanes.pin(lane(opened, name))
    opened.lanes.step(lane(opened, "mid"), -1)
    assert shown(opened) == "mid zeta t1 t2 alpha t1"


def test_empty_lanes_are_left_out_of_groups_too(opened, wait):
    cycles = opened.trace.clock.cycles
    opened.group_lanes(GroupBy.PRIORITY)
    wait()
    opened.lanes.hide_empty(True, TimeWindow(cycles(3_500), cycles(4_500)))
    assert shown(opened) == "[Priority 63] t2"
