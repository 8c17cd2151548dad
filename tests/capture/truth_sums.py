"""Sums of what really happened, to hold statistics against."""

from __future__ import annotations

from collections import Counter

import numpy as np

from satview.analysis.cpu_times import cpu_times
from satview.analysis.message_times import message_times
from satview.analysis.scope import scope_of
from satview.analysis.state_times import state_times
from satview.events.states import STATE_BY_VALUE
from tests.capture.judge import KERNEL_US
from tests.capture.made import Traced


def thread_row(made: Traced, thread: tuple[int, int]) -> int:
    """Return the row of a thread."""
    threads = made.trace.threads
    return int(np.flatnonzero((threads.pid == thread[0]) & (threads.tid == thread[1]))[0])


def inside(made: Traced, start: int, end: int) -> int:
    """Return how much of a stretch lies in the trace."""
    window = made.trace.window
    return max(0, min(end, window.end) - max(start, window.start))


def check_nothing_is_overstated(made: Traced) -> None:
    """Check that statistics of a trace with holes never tell more than what happened."""
    scope = scope_of(made.trace, None, None, None, None)
    threads = made.trace.threads
    of_row = [(int(pid), int(tid)) for pid, tid in zip(threads.pid, threads.tid, strict=True)]
    slack = KERNEL_US * made.trace.clock.cycles_per_s // 10**6
    ran: Counter[tuple[int, int]] = Counter()
    for run in made.truth.runs:
        ran[run.thread] += inside(made, run.start, run.end) + slack
    _, runs = cpu_times(scope)
    for row in range(1, len(threads)):
        assert int(runs.cpu_cycles[row]) <= ran[of_row[row]], f"{of_row[row]} ran less than that"
    waited: Counter[tuple[tuple[int, int], str]] = Counter()
    for wait in made.truth.waits:
        end = wait.end if wait.end >= 0 else made.trace.window.end
        waited[wait.thread, wait.state] += inside(made, wait.start, end) + slack
    states = state_times(scope)
    kinds = {state for _, state in waited}
    for row, value, total in zip(states.thread, states.value, states.total_cycles, strict=True):
        state = STATE_BY_VALUE[int(value)].name if int(value) in STATE_BY_VALUE else ""
        if state in kinds and row:
            assert int(total) <= waited[of_row[row], state], f"{of_row[row]} was less long in {state}"
    sent = Counter((m.client, m.server_pid) for m in made.truth.messages)
    table = message_times(scope)
    for client, server, count in zip(table.client, table.server_pid, table.count, strict=True):
        assert int(count) <= sent[of_row[client], int(server)] or not client
