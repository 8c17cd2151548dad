"""What kernel calls took of the CPUs: by hand, and against a plain loop over calls and runs."""

from __future__ import annotations

from collections import defaultdict

import pytest

from satview.analysis.statistics import Statistics
from satview.events.spec import Release
from satview.linkage.chain import link_table
from satview.linkage.links import OPEN, LinkKind
from tests.helpers.kev import TraceBuilder

MSG_SENDV = 11


def test_only_the_time_on_a_cpu_counts(tmp_path):
    """The call takes 80 cycles: 10 on the CPU before it blocks, 5 after it is back; another thread has the rest."""
    builder = TraceBuilder().time_event(0).state("RUNNING", 10, 7, 1).call(MSG_SENDV, 20, (3, 0))
    builder.state("REPLY", 30, 7, 1).state("RUNNING", 32, 8, 1).state("READY", 95, 8, 1).state("RUNNING", 95, 7, 1)
    builder.exit(MSG_SENDV, 100, (0, 0)).call(MSG_SENDV, 110, (3, 0)).exit(MSG_SENDV, 113, (0, 0))
    trace = builder.open(tmp_path)
    calls = Statistics(trace).calls
    assert calls.times.total_cycles.tolist() == [80 + 3]
    assert calls.running.total_cycles.tolist() == [10 + 5 + 3]
    assert calls.running.most_cycles.tolist() == [15]


@pytest.mark.parametrize("name", ["client-server", "producer-consumer", "automotive"])
@pytest.mark.parametrize("loss", [False, True], ids=["whole", "loss"])
def test_running_time_of_calls(name, loss, made_of):
    trace = made_of(name, Release.QNX_7, True, loss).trace
    found = Statistics(trace)
    runs, really = defaultdict(list), defaultdict(int)
    for thread, start, end in zip(*(getattr(found.basis.runs, key).tolist() for key in ("thread", "start", "end")),
                                  strict=True):  # fmt: skip
        runs[thread].append((start, end))
    table, time = link_table(trace, LinkKind.CALL), trace.events.time_cycles
    for link in table:
        thread = int(trace.events.thread[link.from_row])
        if link.to_row != OPEN and thread:
            first, last = int(time[link.from_row]), int(time[link.to_row])
            inside = (min(end, last) - max(start, first) for start, end in runs[thread])
            really[int(trace.events.code[link.from_row]) & 0x7F] += sum(cycles for cycles in inside if cycles > 0)
    calls = found.calls
    mine = dict(zip((calls.code & 0x7F).tolist(), calls.running.total_cycles.tolist(), strict=True))
    assert {number: cycles for number, cycles in mine.items() if cycles} == {
        number: cycles for number, cycles in really.items() if cycles
    }
    assert sum(mine.values())
