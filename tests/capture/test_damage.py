"""Traces with holes against what really happened: what the viewer claims to know is true."""

from __future__ import annotations

from pathlib import Path

import pytest

from satview.capture.workloads import registry
from satview.events.spec import Release
from tests.capture.judge import Judge
from tests.capture.made import damaged
from tests.capture.truth_sums import check_nothing_is_overstated

RELEASES = (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8)
NAMES = [name for name, _ in registry.names()]


@pytest.mark.parametrize("release", RELEASES, ids=str)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wide", [False, True], ids=["fast", "wide"])
@pytest.mark.parametrize("ring", [False, True], ids=["loss", "ring"])
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
        oldest = {int(cpu if release == Release.QNX_8 else 0): int(number) for cpu, number in
                  sorted(zip(made.trace.buffers.cpu, made.trace.buffers.sequence, strict=True), reverse=True)}
        lost_at_first = sum(oldest.values()) - len(oldest)
        assert buffers.lost_buffers == int(made.trace.buffers.lost_before.sum()) + lost_at_first > 0
        assert len(judge.lost)
