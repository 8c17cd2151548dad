"""Finds missing events that no BUFFER event reports: in truncated buffers, and where events contradict each other.

A buffer with another length than it announces was truncated or spliced. The gap is assumed at the longest step in time
from its first slot to the next buffer. If a CPU begins to run a thread, or calls the kernel, inside an interrupt, the
exit of the interrupt is missing.

Source: kernel event trace format, sections 6.1, 8.2 and 8.6.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.core import links, statistics
from satview.events import wire
from satview.events.states import STEP_OF_CODE
from satview.formats.kev.decoded import Decoded
from satview.formats.kev.slots.buffers import EventRegion
from satview.store.losses import EVERY_CPU
from satview.store.problems import Problems
from satview.store.tables import EventTable

Gaps = NDArray[np.int64]  # (n, 4), as `Trace.gaps`
_NO_BUFFER: Final = -1
_MOST: Final = 500  # maximum number of buffers that are examined; garbage has more
_LONGER: Final = 4  # minimum ratio of a step within a truncated buffer to the step to the next buffer of its ring
_FASTER: Final = 10  # events may come this many times faster than usual where buffers are lost
_MOST_CPUS: Final = 256  # number of buffers that contain at least one of every CPU
_NEAR: Final = 1 << 16  # number of events before a splice that are searched for the last one of a CPU
_MOST_OPEN: Final = 0.1  # if a larger share of a CPU's interrupts has no exit, nothing is concluded
_MOST_WITHIN: Final = 8  # maximum number of interrupt events from entry to exit of nested interrupts
_SAMPLE: Final = 4096  # number of a CPU's interrupt events that decide whether the others are examined
_CALLS: Final = wire.KER_EXIT_OFFSET  # kernel call entries have smaller numbers


def no_gaps() -> Gaps:
    """Return an empty array of gaps."""
    return np.empty((0, 4), np.int64)


def cut_buffers(decoded: Decoded, count: int, region: EventRegion, *, per_cpu: bool) -> Gaps:
    """Return gaps inside buffers, and clear the threads of events after the gaps.

    Args:
        decoded: Columns in file order; threads of events after a gap are set to 0 until their CPU shows again which
            thread runs.
        count: Number of events of the capture.
        region: For the number of slots.
        per_cpu: Whether every CPU has its own buffers (8.0).

    Returns:
        int64 (n, 4): last time before the gap, first time after it, CPU or `EVERY_CPU`, and time of the BUFFER event
        that shows the loss, -1 = none.
    """
    is_buffer = (decoded.code[decoded.rare_rows] == wire.CONTROL_BUFFER) & (decoded.rare_rows < count)
    rows, words = decoded.rare_rows[is_buffer], decoded.rare_words[is_buffer].astype(np.int64)
    if not len(rows):
        return no_gaps()
    ends = np.append(rows[1:], count)
    slot_counts = np.diff(decoded.slot[rows].astype(np.int64), append=region.slot_count)
    ring = decoded.cpu[rows].astype(np.int64) if per_cpu else np.full(len(rows), EVERY_CPU)
    following = _following(ring)
    has_next = following >= 0
    missing = np.where(has_next, words[following, 0] - words[:, 0] - 1, 0)
    announced = words[:, 1]
    # A buffer is cut if it has fewer slots than announced, or slots of another buffer after its own. In a ring, and if
    # the length happens to match, only missing buffer numbers show it, if these buffers do not fit before the next one.
    is_cut = (announced > 0) & ((slot_counts < announced) | ((slot_counts != announced) & (missing > 0)))
    is_cut[-1] &= announced[-1] > slot_counts[-1]
    is_cut |= (announced == 0) & (missing > 0)
    begins, to_next = decoded.time[rows], decoded.time[rows[following]] - decoded.time[ends - 1]
    spans = (begins[following] - begins)[has_next & (missing == 0) & (2 * announced >= announced.max())]
    least = int(spans[spans > 0].min()) if np.any(spans > 0) else 0  # shortest time of a buffer
    is_cut |= (announced > 0) & (missing > 0) & (to_next >= 0) & (to_next * _FASTER < missing * least)
    gaps: list[tuple[int, int, int, int]] = []
    for number in np.flatnonzero(is_cut)[:_MOST].tolist():
        begin, end = int(rows[number]), int(ends[number])
        for cpu, before, behind in _longest_steps(decoded, begin, end, int(ring[number])):
            # The last slot before the gap may be cut in two, with a wrong time, usually far too early.
            start, stop = int(decoded.time[min(begin, before) : before + 1].max()), int(decoded.time[behind])
            if stop <= start or behind >= end:
                continue  # the next buffer itself shows this loss
            if not announced[number] and stop - start < _LONGER * to_next[number]:
                continue  # buffers are missing after it, which take longer than any step within one
            # A ring has no lengths, so it is unknown whether this buffer is truncated or later ones are lost.
            shown_by = _next_buffer(decoded, rows[number + 1 :], cpu) if announced[number] else _NO_BUFFER
            gaps.append((start, stop, cpu, shown_by))
            _forget_runners(decoded, behind, end, cpu)
    return np.array(gaps, np.int64).reshape(-1, 4)


def _following(ring: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return for each buffer the index of the next buffer of its ring in the file; -1 = last."""
    after = np.full(len(ring), -1)
    for number in np.unique(ring):
        buffers = np.flatnonzero(ring == number)
        after[buffers[:-1]] = buffers[1:]
    return after


def _longest_steps(decoded: Decoded, begin: int, end: int, ring: int) -> list[tuple[int, int, int]]:
    """Return (CPU, event before, event after) of the longest step in time between the events of a truncated buffer.

    If a buffer of one CPU contains events of other CPUs, it was spliced: return the steps to these events instead.
    """
    cpus = decoded.cpu[begin:end]
    if ring != EVERY_CPU and (cpus != ring).any():
        strangers = []
        for cpu in np.unique(cpus[cpus != ring]).tolist():
            behind = begin + int(np.argmax(cpus == cpu))
            near = max(0, begin - _NEAR)
            earlier = np.flatnonzero(decoded.cpu[near:begin] == cpu)
            if len(earlier):
                strangers.append((cpu, near + int(earlier[-1]), behind))
        return strangers
    # The next buffer's first event counts too: if the longest step leads to it, the next buffer shows the loss itself.
    time = np.maximum.accumulate(decoded.time[begin : min(end + 1, len(decoded.time))])
    steps = np.diff(time)
    if not len(steps):
        return []
    longest = begin + len(steps) - 1 - int(np.argmax(steps[::-1]))  # of equal steps the one nearest to the next buffer
    return [(ring, longest, longest + 1)]


def _next_buffer(decoded: Decoded, rows: NDArray[np.int64], cpu: int) -> int:
    """Return the time of the first BUFFER event in `rows` that is of a CPU; -1 = none."""
    near = rows[:_MOST_CPUS] if cpu == EVERY_CPU else rows[:_MOST_CPUS][decoded.cpu[rows[:_MOST_CPUS]] == cpu]
    return int(decoded.time[near[0]]) if len(near) else _NO_BUFFER


def _forget_runners(decoded: Decoded, begin: int, end: int, cpu: int) -> None:
    """Set the threads of events from `begin` to 0 up to the next RUNNING event of their CPU, or `end`."""
    code, cpus = decoded.code[begin:end], decoded.cpu[begin:end]
    is_own = wire.are_of_threads(code)
    for number in np.unique(cpus).tolist() if cpu == EVERY_CPU else [cpu]:
        of_cpu = np.flatnonzero(cpus == number)
        runs = of_cpu[code[of_cpu] == wire.THREAD_RUNNING]
        until = int(runs[0]) if len(runs) else end - begin
        unknown = of_cpu[(of_cpu < until) & ~is_own[of_cpu]]
        decoded.thread[begin + unknown] = 0


def open_interrupts(events: EventTable, known: Gaps, region: EventRegion, problems: Problems) -> Gaps:
    """Return gaps that contain missing exits of interrupts: from the CPU's last interrupt event to running a thread.

    Args:
        events: Events in time order.
        known: Other gaps, after which the nesting depth is reset.
        region: For byte offsets.
        problems: Receives the contradictions.

    Returns:
        As for `cut_buffers`; empty if so many interrupts have no exit that interrupt events prove nothing.
    """
    rows = links.rows_with(events.code, np.arange(wire.CODE_COUNT) >> wire.CLASS_SHIFT == wire.WireClass.INT)
    gaps: list[Gaps] = [no_gaps()]
    entries: list[int] = []
    of_threads: NDArray[np.intp] | None = None
    cpus = events.cpu[rows]
    is_open = statistics.left_open(events.code, events.cpu, STEP_OF_CODE, rows, _MOST_WITHIN)
    for cpu in np.flatnonzero(is_open).tolist() if not len(known) else np.unique(cpus).tolist():
        ends = np.sort(known[(known[:, 2] == EVERY_CPU) | (known[:, 2] == cpu), 1])
        own, part, step, depth, _ = statistics.nesting(
            events.code, events.cpu, events.time_cycles, STEP_OF_CODE, rows[cpus == cpu], cpu, ends
        )
        # The usual case: the depth is often 0, also at the end of each part, so that no exit is missing; or exits were
        # not captured. A missing entry can hide a missing exit only at the end of a part.
        outside = np.flatnonzero(depth == 0)
        is_long = np.any(np.diff(outside, prepend=-1, append=len(own)) > _MOST_WITHIN)
        is_end = np.append(part[1:] != part[:-1], True)[: len(part)]
        if not np.any(step < 0) or not (is_long or np.any(depth[is_end] > 0)):
            continue
        head = own[:_SAMPLE]
        near = _of_threads(events, int(head[0]), int(head[-1]) + 1)
        near = near[events.cpu[near] == cpu]
        entry, _ = _left_open(np.searchsorted(near, head), part[:_SAMPLE], step[:_SAMPLE])
        if len(entry) > max(1, _MOST_OPEN * np.count_nonzero(step[:_SAMPLE] > 0)):
            continue
        of_threads = _of_threads(events, 0, len(events)) if of_threads is None else of_threads
        calls = of_threads[events.cpu[of_threads] == cpu]
        segment = np.searchsorted(calls, own)
        entry, last = _left_open(segment, part, step)
        behind = segment[last]
        is_followed = behind < len(calls)
        entry, last, behind = entry[is_followed], last[is_followed], behind[is_followed]
        if len(entry) > max(1, _MOST_OPEN * np.count_nonzero(step > 0)):
            continue
        entries += own[entry].tolist()
        start, stop = events.time_cycles[own[last]], events.time_cycles[calls[behind]]
        gaps.append(np.stack((start, stop, np.full(len(entry), cpu), np.full(len(entry), _NO_BUFFER)), axis=1))
    for row in sorted(entries)[: problems.limit]:
        what = f"CPU {events.cpu[row]} enters an interrupt and runs threads without having left it"
        problems.add("contradiction", what, region.byte(int(events.slot[row])), 1, int(events.time_cycles[row]))
    problems.add_rest("contradiction", len(entries[problems.limit :]), len(entries[problems.limit :]))
    return np.concatenate(gaps)


def _of_threads(events: EventTable, begin: int, end: int) -> NDArray[np.intp]:
    """Return the rows from `begin` to `end` at which CPUs enter kernel calls or begin to run threads."""
    codes = np.arange(wire.CODE_COUNT)
    table = (codes >> wire.CLASS_SHIFT == wire.WireClass.KER_CALL) & (codes & 0x1FF < _CALLS)
    table[wire.THREAD_RUNNING] = True
    return begin + links.rows_with(events.code[begin:end], table).astype(np.intp)


def _left_open(
    segment: NDArray[np.intp], part: NDArray[np.int64], step: NDArray[np.int8]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return first and last event of every run of interrupt events that ends within an interrupt."""
    begins = np.flatnonzero(np.append(True, (segment[1:] != segment[:-1]) | (part[1:] != part[:-1]))[: len(segment)])
    last_rows = np.append(begins[1:], len(segment)) - 1
    total = np.cumsum(step, dtype=np.int64)
    before = total[begins] - step[begins]
    lowest = np.minimum(np.minimum.reduceat(total, begins) - before, 0)
    is_open = total[last_rows] - before - lowest > 0
    is_cut = np.append(part[begins[1:]] != part[last_rows[:-1]], False)  # the exit may be among missing events after it
    runs = np.flatnonzero(is_open & ~is_cut)
    return begins[runs], last_rows[runs]
