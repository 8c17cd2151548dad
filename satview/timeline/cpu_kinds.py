"""What kind of code CPUs run when: user code, kernel calls, interrupts, or nothing."""

from __future__ import annotations

from typing import Final

import numpy as np

from satview.events.states import FIRST_PROCESS, INTERRUPT, KERNEL_CALL, RUNNING
from satview.linkage.rows import narrow
from satview.linkage.table import LinkKind
from satview.linkage.trace_links import link_table
from satview.store.time_ranges import TimeRanges, overlaps
from satview.store.trace import Trace
from satview.timeline.per_cpu import run_slices
from satview.timeline.spans import NO_EVENT, LaneSpans, touching

USER: Final = RUNNING  # the lane value of user code on these lanes


def kind_spans(trace: Trace, cpu: int, who: LaneSpans, interrupts: LaneSpans | None) -> LaneSpans:
    """Return what kind of code a CPU runs when: `USER`, `KERNEL_CALL`, `INTERRUPT`, `IDLE` or `UNKNOWN`.

    The first of these that holds counts: an interrupt is handled; the idle thread runs, or it is not known who; the
    thread that runs is between the entry and the exit of a kernel call of which the trace holds both; else user code.

    Args:
        trace: The trace.
        cpu: Its number.
        who: The lane of the CPU.
        interrupts: Its lane of interrupts; None without one.
    """
    calls = trace.cached("timeline.calls_on_cpus", _calls_on_cpus)[cpu]
    starts = [who.start_cycles, calls.start, calls.end]
    starts += [] if interrupts is None else [interrupts.start_cycles]
    time = np.sort(np.concatenate(starts), kind="stable")  # ascending parts, which that merges
    time = time[(time >= who.start_cycles[0]) & (time < who.end_cycles)]
    runs = who.value[np.searchsorted(who.start_cycles, time, side="right") - 1]
    value = np.where(runs >= FIRST_PROCESS, USER, runs).astype(np.uint8)
    in_call = np.searchsorted(calls.start, time, side="right") > np.searchsorted(calls.end, time, side="right")
    value[in_call & (value == USER)] = KERNEL_CALL
    if interrupts is not None:
        at = np.searchsorted(interrupts.start_cycles, time, side="right") - 1
        value[(at >= 0) & (interrupts.value[np.maximum(at, 0)] == INTERRUPT)] = INTERRUPT
    begins = np.append(True, value[1:] != value[:-1])
    time, value = time[begins], value[begins]
    return touching(time, value, np.full(len(time), NO_EVENT, np.uint32), who.end_cycles)


def _calls_on_cpus(trace: Trace) -> tuple[TimeRanges, ...]:
    """Return when a thread that was in a kernel call had each CPU: a call that blocks comes back with its thread."""
    rows, ends = run_slices(trace)
    events, links = trace.events, link_table(trace, LinkKind.CALL)
    thread = events.thread[links.from_row]
    known = np.flatnonzero(thread > 0)
    if not len(rows) or not len(known):
        return (TimeRanges.none(),) * trace.cpu_count
    enters, leaves = links.from_row[known], links.to_row[known]
    by_thread = np.argsort(narrow(events.thread[rows], len(trace.threads)), kind="stable")
    begins, ends = rows[by_thread], ends[by_thread]
    # Whether they meet follows from rows of events, which ascend with time; for how long, by times.
    call, run = overlaps(
        thread[known].astype(np.int64), enters.astype(np.int64), leaves.astype(np.int64),
        events.thread[begins].astype(np.int64), begins.astype(np.int64), np.searchsorted(events.time_cycles, ends),
    )  # fmt: skip
    time, cpu = events.time_cycles, events.cpu[begins[run]]
    start, stop = np.maximum(time[enters[call]], time[begins[run]]), np.minimum(time[leaves[call]], ends[run])
    return tuple(TimeRanges.of(start[cpu == number], stop[cpu == number]) for number in range(trace.cpu_count))
