"""Judges what the viewer shows of a trace by what really happened: lanes may be silent, never wrong."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from itertools import pairwise

import numpy as np

from satview.base.time import TimeWindow
from satview.capture.sim.truth import Run, ThreadId, Truth
from satview.events.spec import Release
from satview.events.states import ABSENT, DEAD, IDLE, INTERRUPT, READY, RUNNING, STATE_BY_NAME, UNKNOWN, WAITING
from satview.linkage.calls import partner
from satview.store.time_ranges import EVERY_CPU, losses
from satview.store.trace import Trace
from satview.timeline.lane_tree import LaneInfo, LaneKind, Timeline

KERNEL_US = 40  # entering and leaving the kernel is nobody's time, but a lane gives it to somebody
PAIRS = 60
_LIVES = {"CREATE": UNKNOWN, "DESTROY": ABSENT, "DEAD": ABSENT}
_OF_IDLE = {RUNNING: IDLE, READY: WAITING}


def is_idle(thread: ThreadId, cpus: int) -> bool:
    """Return whether a thread is the one of an idle CPU: the first ones of the kernel's process."""
    return thread[0] == 1 and thread[1] <= cpus


def histories(truth: Truth) -> dict[ThreadId, list[tuple[int, int]]]:
    """Return for each thread every moment that changes its lane, by the CPU's own clock, and the lane's value from it.

    Nobody can show the state of a new thread before the kernel reports one.
    """
    found: dict[ThreadId, list[tuple[int, int]]] = defaultdict(list)
    for change in sorted([*truth.states, *truth.lives], key=lambda change: change.time):
        value = _LIVES[change.state] if change.state in _LIVES else STATE_BY_NAME[change.state].value
        if is_idle(change.thread, len(truth.skew_cycles)):
            value = as_idle(value)
        found[change.thread].append((change.time + truth.skew_cycles[change.cpu], value))
    return found


def as_idle(value: int) -> int:
    """Return what the lane of an idle thread shows where that of any other thread shows `value`."""
    return _OF_IDLE.get(value, value)


class Judge:
    """Compares one trace with the truth.

    Args:
        trace: The trace, possibly with holes.
        truth: Of the simulation.
        since: When the dump of START was over; earlier events show what was, not what happens.
    """

    def __init__(self, trace: Trace, truth: Truth, since: int) -> None:
        self.trace, self.truth = trace, truth
        self.since = max(since, trace.window.start)
        self.timeline = Timeline(trace)
        self.lost = losses(trace)
        self.skew = np.array([*truth.skew_cycles, *[0] * 64], np.int64)
        self.histories = histories(truth)

    def everything(self) -> None:
        """Judge all that is judged."""
        self.captured_spans()
        for info in self.timeline.infos:
            if info.kind == LaneKind.THREAD:
                self.thread(info)
            elif info.kind == LaneKind.CPU:
                self.cpu(info)
            elif info.kind == LaneKind.INTERRUPTS:
                self.interrupts(info)
        self.pairs()

    def is_lost(self, time: int, cpu: int, with_edges: bool = False) -> bool:
        """Return whether the viewer marks a moment of a CPU as missing.

        An event whose last slot is the first after the gap gives the gap's end its time, and one whose TIME event is
        the last before it gives its beginning; both are missing themselves.
        """
        lost = self.lost
        mine = (lost[:, 2] == EVERY_CPU) | (lost[:, 2] == cpu)
        return bool(np.any(mine & (lost[:, 0] - with_edges < time) & (time < lost[:, 1] + with_edges)))

    def captured_spans(self) -> None:
        """What is not marked as lost is complete, and what is there is true."""
        trace, window = self.trace, self.trace.window
        rows = np.sort(trace.states.event)
        rows = rows[trace.catalogue.state_value_of_code[trace.events.code[rows]] != 255]
        pid, tid = trace.threads.pid[trace.events.thread[rows]], trace.threads.tid[trace.events.thread[rows]]
        time, cpu = trace.events.time_cycles[rows], trace.events.cpu[rows]
        code = trace.events.code[rows]
        seen = {
            (int(t), (int(p), int(i)), trace.catalogue.name(int(c))[2:], int(n))
            for t, p, i, c, n in zip(time, pid, tid, code, cpu, strict=True)
            if t > self.since
        }
        true = {(s.time + int(self.skew[s.cpu]), s.thread, s.state, s.cpu) for s in self.truth.states}
        assert seen <= true, sorted(seen - true)[:3]
        missing = [s for s in true - seen if self.since < s[0] < window.end]
        wrong = [s for s in missing if not self.is_lost(s[0], s[3], with_edges=True)]
        assert not wrong, f"{len(wrong)} of {len(true)} are missing without a mark, first {min(wrong)}"
        marked = [s for s in seen if self.is_lost(s[0], s[3])]
        assert not marked, "events inside what is marked as lost"

    # Lanes

    def thread(self, info: LaneInfo) -> None:
        """The lane of a thread shows its true state wherever it shows any."""
        thread = (int(self.trace.threads.pid[info.thread]), int(self.trace.threads.tid[info.thread]))
        history = self.histories[thread]
        times = np.array([time for time, _ in history], np.int64)
        values = np.array([value for _, value in history], np.uint8)
        spans = self.timeline.lane(info.index).spans
        at = np.unique(np.concatenate((spans.start_cycles, times[times > self.since])))
        at = at[(at >= self.since) & (at < spans.end_cycles) & ~np.isin(at, self.lost[:, 0])]
        shown = spans.value[np.searchsorted(spans.start_cycles, at, side="right") - 1]
        index = np.searchsorted(times, at, side="right") - 1
        real = np.where(index >= 0, values[index], ABSENT) if len(values) else np.full(len(at), ABSENT)
        shown[shown == DEAD] = ABSENT  # shown where DESTROY is missing
        is_nameless = self.trace.release == Release.QNX_8 and not self.trace.threads.names[info.thread]
        if is_nameless and is_idle(thread, self.trace.cpu_count):  # only its name would show
            shown = np.array([as_idle(value) for value in shown.tolist()], np.uint8)
        wrong = np.flatnonzero((shown != UNKNOWN) & (shown != real))
        assert not len(wrong), (
            f"{thread} at {at[wrong[0]]}: {shown[wrong[0]]} is shown, {real[wrong[0]]} is true; "
            f"{len(wrong)} such positions"
        )
        self._unknown_only_where_it_must_be(info, at[(shown == UNKNOWN) & (real != UNKNOWN)])

    def _unknown_only_where_it_must_be(self, info: LaneInfo, at: np.ndarray) -> None:
        """A thread is unknown from a loss to its next event, and before its first one."""
        own = self.trace.events.time_cycles[self.trace.states.of(info.thread)]
        for time in at.tolist():
            before = int(own[own <= time].max(initial=-1))
            lost_since = np.any((self.lost[:, 1] > before) & (self.lost[:, 0] <= time))
            assert before < 0 or lost_since, f"{info.title} is unknown at {time} without need"

    def _cycles(self, us: float) -> int:
        return int(us * self.trace.clock.cycles_per_s / 1e6)

    def cpu(self, info: LaneInfo) -> None:
        """The lane of a CPU shows who had it; together its spans of a thread are no longer than that one ran."""
        spans = self.timeline.lane(info.index).spans
        runs = sorted((r for r in self.truth.runs if r.cpu == info.cpu), key=lambda r: r.start)
        if spans.thread is None:
            assert set(spans.value.tolist()) == {UNKNOWN}, "no RUNNING event of this CPU is left"
            return
        shift, wrong = int(self.skew[info.cpu]), 0
        for run in runs:
            moment = (run.start + run.end) // 2 + shift
            if run.end - run.start < 2 or not self.since < moment < spans.end_cycles:
                continue
            i = spans.index_at(moment)
            row = int(spans.thread[i])
            shown = (int(self.trace.threads.pid[row]), int(self.trace.threads.tid[row]))
            wrong += bool(spans.value[i] != UNKNOWN and shown != run.thread)
            assert spans.value[i] != UNKNOWN or self._may_be_unknown(spans.start_cycles[i], moment, info.cpu)
        assert not wrong, f"CPU {info.cpu}: {wrong} of {len(runs)} runs are shown as somebody else's"
        self._no_longer_than(info, runs)

    def _may_be_unknown(self, since: int, time: int, cpu: int) -> bool:
        mine = self.lost[(self.lost[:, 2] == EVERY_CPU) | (self.lost[:, 2] == cpu)]
        from_start = since <= self.since  # before the first RUNNING event of the CPU
        return bool(from_start or np.any((mine[:, 0] <= time) & (mine[:, 1] > since)))

    def _no_longer_than(self, info: LaneInfo, runs: list[Run]) -> None:
        spans = self.timeline.lane(info.index).spans
        assert spans.thread is not None
        ends = np.append(spans.start_cycles[1:], spans.end_cycles)
        shift, kernel = int(self.skew[info.cpu]), self._cycles(KERNEL_US)
        for i in np.flatnonzero((spans.value != UNKNOWN) & (spans.start_cycles > self.since)).tolist():
            row = int(spans.thread[i])
            thread = (int(self.trace.threads.pid[row]), int(self.trace.threads.tid[row]))
            start, end = int(spans.start_cycles[i]) - shift, int(ends[i]) - shift
            first = bisect_left(runs, start, key=lambda r: r.end)
            last = bisect_left(runs, end, key=lambda r: r.start)
            true = sum(min(r.end, end) - max(r.start, start) for r in runs[first:last] if r.thread == thread)
            assert end - start <= true + kernel, f"CPU {info.cpu}: too long for {thread}"

    def interrupts(self, info: LaneInfo) -> None:
        """The lane of interrupts shows all that are not lost, and none that was not."""
        spans = self.timeline.lane(info.index).spans
        shift = int(self.skew[info.cpu])
        real = sorted((i.enter + shift, i.exit + shift) for i in self.truth.interrupts if i.cpu == info.cpu)
        for enter, leave in real:
            for moment in (enter, leave - 1):
                if self.since < moment < spans.end_cycles:
                    assert spans.value[spans.index_at(moment)] in (INTERRUPT, UNKNOWN)
        enters, leaves = np.array([r[0] for r in real]), np.array([r[1] for r in real])
        edges = [*spans.start_cycles.tolist(), spans.end_cycles]
        for value, (start, end) in zip(spans.value.tolist(), pairwise(edges), strict=True):
            if value == INTERRUPT and start > self.since:
                k = int(np.searchsorted(enters, start, side="right")) - 1
                assert enters[k] == start
                assert end in (leaves[k], spans.end_cycles) or self.is_lost(end, info.cpu)
            elif value == UNKNOWN:
                assert self._may_be_unknown(start, end, info.cpu)

    # Pairs

    def pairs(self) -> None:
        """`partner` pairs what belongs together, or says that it does not know."""
        events = self.trace.events
        exits = {c.enter: c.exit for c in self.truth.calls}
        kind = events.code >> 10
        rows = np.flatnonzero((kind == 2) & (events.code & 0x180 == 0) & (events.time_cycles > self.since))
        found = 0
        for row in rows[:: max(1, len(rows) // PAIRS)].tolist():
            enter = int(events.time_cycles[row] - self.skew[events.cpu[row]])
            other = partner(self.trace, row)
            if other is None:
                assert exits[enter] < 0 or self._may_be_alone(row, exits[enter])
                continue
            assert int(events.time_cycles[other] - self.skew[events.cpu[other]]) == exits[enter]
            assert partner(self.trace, other) == row
            found += 1
        assert found or len(rows) < 20 or len(self.lost)

    def _may_be_alone(self, row: int, leave: int) -> bool:
        """Return whether the pair of a call is out of reach: after the end, beyond a loss, its caller not known."""
        events = self.trace.events
        if leave >= self.trace.window.end or np.any(self.lost[:, 1] > events.time_cycles[row]):
            return True
        between = TimeWindow(int(events.time_cycles[row]), leave + int(self.skew.max()) + 1)
        return not events.thread[row] or not events.thread[self.trace.rows_between(between)].all()
