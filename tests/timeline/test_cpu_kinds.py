"""What kind of work CPUs do: by hand, and against the statistics, which count the same cycles on another way."""

from __future__ import annotations

from pathlib import Path

from satview.analysis.statistics import Statistics
from satview.events.states import IDLE, INTERRUPT, KERNEL_CALL
from satview.formats.kev.reader import open_kev
from satview.timeline.lane_tree import LaneKind, Timeline
from satview.timeline.state_lanes import USER
from tests.helpers.scene import scene

SAMPLE = Path(__file__).parents[2] / "sample_traces" / "dense-4cpu.kev"


def kinds_of(path):
    timeline = Timeline(open_kev(path))
    assert not timeline.has_kinds
    timeline.build_kinds()
    assert timeline.has_kinds
    window = timeline.trace.window
    found = {}
    for info in timeline.infos:
        if info.kind is LaneKind.CPU:
            shares = timeline.kinds(info.index)
            found[info.cpu] = dict(zip(shares.values.tolist(), shares.totals(window).tolist(), strict=True))
    return timeline.trace, found


def test_a_call_that_blocks_counts_while_its_thread_has_the_cpu(tmp_path):
    """The client is in MSG_SENDV from 2,000 to 9,000, and runs till 4,000 and from 8,001 on; in between the server."""
    _, found = kinds_of(scene(tmp_path))
    assert found[0][KERNEL_CALL] == 2_000 + 999
    assert found[0][USER] == 1_000 + 3_999 + 3_000


def test_kinds_add_up_to_what_statistics_say():
    trace, found = kinds_of(SAMPLE)
    cpus = Statistics(trace).cpus
    for cpu, kinds in found.items():
        assert kinds[USER] + kinds[KERNEL_CALL] == cpus.busy_cycles[cpu]
        assert kinds[IDLE] == cpus.idle_cycles[cpu]
        assert kinds.get(INTERRUPT, 0) == cpus.interrupt_cycles[cpu]
        assert kinds[KERNEL_CALL] > 1_000_000
