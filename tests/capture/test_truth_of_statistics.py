"""The statistics of the viewer against what really happened, for every workload and release."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from satview.analysis.cpu_times import cpu_times
from satview.analysis.message_times import message_times
from satview.analysis.scope import Scope, scope_of
from satview.analysis.state_times import state_times
from satview.capture.workloads import registry
from satview.events.spec import Release
from satview.events.states import STATE_BY_NAME
from tests.capture.judge import KERNEL_US
from tests.capture.made import FAST, WIDE, Traced, traced
from tests.capture.truth_sums import inside, thread_row

RELEASES = (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8)


@pytest.mark.parametrize("release", RELEASES, ids=str)
@pytest.mark.parametrize("name", [name for name, _ in registry.names()])
@pytest.mark.parametrize("modes", [FAST, WIDE], ids=["fast", "wide"])
def test_times_add_up_to_what_happened(
    name: str, release: Release, modes: tuple[tuple[str], ...], tmp_path: Path
) -> None:
    workload = registry.find(name)
    ms = 40 if name == "automotive" else min(workload.duration_ns / 1e6, 80)
    made = traced(workload.setup, ms, tmp_path, release, workload.cpus, 5, modes, skew_ns=0)
    scope = scope_of(made.trace, None, None, None, None)
    check_cpu_times(made, scope)
    check_states(made, scope)
    check_messages(made, scope)


def check_cpu_times(made: Traced, scope: Scope) -> None:
    _, runs = cpu_times(scope)
    true: Counter[tuple[int, int]] = Counter()
    count: Counter[tuple[int, int]] = Counter()
    for run in made.truth.runs:
        true[run.thread] += inside(made, run.start, run.end)
        count[run.thread] += 1
    per_run = KERNEL_US * made.trace.clock.cycles_per_s // 10**6
    for thread, cycles in true.items():
        row = thread_row(made, thread)
        shown = int(runs.cpu_cycles[row] + runs.interrupted_cycles[row])
        assert cycles <= shown + count[thread], f"{thread} ran longer than the statistics say"
        assert shown <= cycles + count[thread] * per_run


def check_states(made: Traced, scope: Scope) -> None:
    found = state_times(scope)
    true: Counter[tuple[tuple[int, int], str]] = Counter()
    for wait in made.truth.waits:
        end = wait.end if wait.end >= 0 else made.trace.window.end
        if wait.start > made.since:
            true[wait.thread, wait.state] += inside(made, wait.start, end)
    handed = made.trace.clock.cycles_per_s // 10**5          # a hand-off ends the wait before RUNNING shows it
    for (thread, state), cycles in true.items():
        value = STATE_BY_NAME[state].value
        mine = (found.thread == thread_row(made, thread)) & (found.value == value)
        waits = sum(w.thread == thread and w.state == state for w in made.truth.waits)
        assert cycles <= int(found.total_cycles[mine].sum()) + waits
        before = [w for w in made.truth.waits if w.thread == thread and w.state == state and w.start <= made.since]
        assert before or int(found.total_cycles[mine].sum()) <= cycles + waits * handed


def check_messages(made: Traced, scope: Scope) -> None:
    table = message_times(scope)
    threads = made.trace.threads
    shown = {((int(threads.pid[c]), int(threads.tid[c])), int(s)): int(n)
             for c, s, n in zip(table.client, table.server_pid, table.count, strict=True)}
    assert shown == Counter((m.client, m.server_pid) for m in made.truth.messages if m.sent > made.trace.window.start)
