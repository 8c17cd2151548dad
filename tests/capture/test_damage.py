"""Traces with holes against what really happened: what the viewer claims to know is true."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from satview.capture.workloads import registry
from satview.events.spec import Release
from satview.events.states import ABSENT, UNKNOWN
from satview.filters.derived_columns import TraceDerivedColumns
from satview.linkage.chain import link_of
from satview.linkage.links import LinkKind
from satview.timeline.lane_tree import LaneKind, Timeline
from tests.capture.judge import Judge
from tests.capture.made import damaged
from tests.capture.overstating import check_nothing_is_overstated
from tests.helpers.extent import RING, WIDTH, points

RELEASES = (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8)
PAIRS = (LinkKind.CALL, LinkKind.INTERRUPT, LinkKind.HANDLER)
NAMES = [name for name, _ in registry.names()]


@points(name=NAMES, ring=RING, wide=WIDTH, release=RELEASES)
def test_holes_are_marked_and_nothing_wrong_is_shown(
    name: str, release: Release, wide: bool, ring: bool, tmp_path: Path
) -> None:
    workload = registry.find(name)
    ms = 20 if name == "automotive" else min(workload.duration_ns / 1e6, 60)
    made = damaged(workload.setup, ms, tmp_path, release, workload.cpus, ring=ring, wide=wide)
    buffers = made.kernel.emitter.buffers
    assert buffers is not None
    assert not buffers.dropped_events
    judge = Judge(made.trace, made.truth, made.since)
    judge.everything()
    check_nothing_is_overstated(made)
    if not ring:
        oldest = {
            int(cpu if release == Release.QNX_8 else 0): int(number)
            for cpu, number in sorted(
                zip(made.trace.buffers.cpu, made.trace.buffers.sequence, strict=True), reverse=True
            )
        }
        lost_at_first = sum(oldest.values()) - len(oldest)
        assert buffers.lost_buffers == int(made.trace.buffers.lost_before.sum()) + lost_at_first > 0
        assert len(judge.lost)


@points(name=["automotive", "client-server", "interrupt-flood"], ring=RING, release=RELEASES)
def test_filters_know_the_pairs_and_states_that_a_click_shows(
    name: str, ring: bool, release: Release, tmp_path: Path
) -> None:
    workload = registry.find(name)
    trace = damaged(workload.setup, 20, tmp_path, release, workload.cpus, ring=ring, wide=True).trace
    columns, timeline = TraceDerivedColumns(trace), Timeline(trace)
    every = np.arange(len(trace.events))
    shown = [link_of(trace, event) for event in every.tolist()]
    durations = columns.duration_ns(every)
    paired = [row for row, link in enumerate(shown) if link and link.kind in PAIRS]
    assert paired == np.flatnonzero(durations >= 0).tolist()
    for row in paired:
        first, last = trace.events.time_cycles[[shown[row].from_row, shown[row].to_row]].tolist()
        assert durations[row] == trace.clock.duration_ns(last - first), row
    lengths = columns.state_length_ns(every)
    for info in timeline.infos:
        if info.kind is not LaneKind.THREAD:
            continue
        spans = timeline.lane(info.index).spans
        ends = np.minimum(np.append(spans.start_cycles[1:], spans.end_cycles), trace.events.time_cycles[-1])
        for start, end, value, event in zip(spans.start_cycles, ends, spans.value, spans.event, strict=True):
            if event < len(every) and value not in (UNKNOWN, ABSENT) and lengths[event] >= 0:
                assert lengths[event] == trace.clock.duration_ns(int(end - start)), event
        follows = spans.value[1:] == UNKNOWN
        forgotten = spans.event[:-1][follows & (spans.event[:-1] < len(every)) & (spans.event[1:] >= len(every))]
        assert (lengths[forgotten] == -1).all()
