"""Cuts out of traces with holes: their lanes claim nothing that those of the whole trace do not."""

from __future__ import annotations

import numpy as np
import pytest

from satview.base.time import TimeWindow
from satview.capture.workloads import registry
from satview.events.spec import Release
from satview.events.states import ABSENT, FIRST_PROCESS, UNKNOWN
from satview.export.kev import write_subset
from satview.formats.kev.reader import open_kev
from satview.timeline.lane_tree import LaneKind, Timeline
from tests.capture.made import damaged
from tests.helpers.extent import RING, fewer, points

SAMPLES = 300


def states(trace, times):
    """Return values by (pid, tid) or CPU at some moments; which process has a CPU is left open: its hue may differ."""
    timeline = Timeline(trace)
    found = {}
    for info in timeline.infos:
        if info.kind not in (LaneKind.CPU, LaneKind.THREAD):
            continue
        spans = timeline.lane(info.index).spans
        value = spans.value[np.maximum(np.searchsorted(spans.start_cycles, times, side="right") - 1, 0)]
        if info.kind is LaneKind.CPU:
            found["CPU", info.cpu] = np.minimum(value, FIRST_PROCESS)
        else:
            found[int(trace.threads.pid[info.thread]), int(trace.threads.tid[info.thread])] = value
    return found


@pytest.mark.thorough
@points(ring=RING, release=fewer([Release.QNX_8, Release.QNX_6, Release.QNX_7], 2))
def test_lanes_of_a_cut_are_those_of_the_whole(release, ring, tmp_path):
    workload = registry.find("automotive")
    trace = damaged(workload.setup, 20, tmp_path, release, workload.cpus, ring=ring, wide=True, skew_ns=0).trace
    random = np.random.default_rng(7)
    known = compared = 0
    for _ in range(8):
        start, end = np.sort(random.integers(trace.window.start, trace.window.end, 2)).tolist()
        write_subset(trace, tmp_path / "cut.kev", np.ones(len(trace.events), np.bool_), TimeWindow(start, end + 1))
        cut = open_kev(tmp_path / "cut.kev")
        if not len(cut.events):
            continue
        times = np.linspace(max(start, cut.dump_end_cycles + 1), cut.window.end - 1, SAMPLES).astype(np.int64)
        whole = states(trace, times)
        for lane, mine in states(cut, times).items():
            says = (mine != UNKNOWN) & (mine != ABSENT)
            wrong = says & (mine != whole[lane])
            assert not wrong.any(), (lane, times[wrong][:3] - start, mine[wrong][:3], whole[lane][wrong][:3])
            known += int(says.sum())
            compared += int(((whole[lane] != UNKNOWN) & (whole[lane] != ABSENT)).sum())
    assert known > 0.9 * compared, "and it still shows nearly all that the whole trace shows"
