"""What the card under the mouse says of a bin of a lane that shows shares of time, and which interval a click means."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.safe_text import html_text
from satview.base.time import TimeWindow
from satview.base.time_text import format_duration, format_moment
from satview.events import states
from satview.session.open_trace import OpenTrace
from satview.store.axis import file_window
from satview.timeline.lane_info import LaneKind
from satview.timeline.spans import NO_EVENT, LaneSpans
from satview.timeline.state_lanes import USER

_MOST_LINES: Final = 7


def share_text(opened: OpenTrace, lane: int, window: TimeWindow, spans: LaneSpans | None = None) -> str:
    """Return how a lane divides a span of time, the longest first, as rich text.

    Args:
        opened: The trace.
        lane: Index of the lane.
        window: The span of time.
        spans: The intervals that are divided; None = those of the lane.
    """
    timeline, trace = opened.timeline, opened.trace
    info, made = timeline.infos[lane], timeline.lane(lane)
    spans = made.spans if spans is None else spans
    start, end, part = inside(spans, window)
    if not len(start):
        return ""
    lines = [f"<b>{format_duration(trace.clock.duration_ns(window.length))}</b> of {html_text(info.title)}"]
    if made.use is not None:
        used = int(made.use.totals(window)[0]) / window.length
        runs = trace.code_counts[trace.catalogue.state_value_of_code == states.RUNNING].any()
        lines.append(f"{used:.2f} CPUs in use (full height: {made.most_cpus})" if runs else "CPUs in use: unknown")
    key = spans.value[part].astype(np.int64)
    if info.kind is LaneKind.CPU and spans.thread is not None:  # by process, of which several share a hue
        process = trace.threads.process[spans.thread[part]].astype(np.int64)
        key = np.where(key >= states.FIRST_PROCESS, process + states.VALUE_COUNT, key)
    if info.track is not None and info.track.lane_class.text == "{event}":  # several may share a hue
        known = made.spans.event[part] != NO_EVENT
        code = trace.events.code[np.where(known, made.spans.event[part], 0)].astype(np.int64)
        key = np.where(known, code + states.VALUE_COUNT, key)
    kinds, which = np.unique(key, return_inverse=True)
    cycles = np.bincount(which, end - start, len(kinds))
    for position in np.argsort(-cycles, kind="stable")[:_MOST_LINES].tolist():
        first = part.start + int(np.argmax(which == position))
        name = _name(opened, lane, int(kinds[position]), first)
        if name and cycles[position]:
            lines.append(f"{100 * cycles[position] / window.length:.1f} %&nbsp;&nbsp;{html_text(name)}")
    if len(kinds) > _MOST_LINES:
        lines.append(f"and {len(kinds) - _MOST_LINES} more")
    counts = np.ones(len(start), np.bool_) if spans is made.spans else spans.value[part] != states.ABSENT
    if counts.any():
        longest = int(np.argmax(np.where(counts, end - start, -1)))
        name = _name(opened, lane, int(key[longest]), part.start + longest)
        length = format_duration(trace.clock.duration_ns(int(end[longest] - start[longest])))
        lines.append(f"{int(counts.sum()):,} intervals, the longest {length}" + (f" {html_text(name)}" if name else ""))
    lines.append(f"<small>{format_moment(window.start, trace.clock)}</small>")
    return "<br>".join(lines)


def longest_of(spans: LaneSpans, window: TimeWindow, value: int | None) -> int | None:
    """Return a moment within the longest interval of a value in a span of time, of any value for None.

    None if there is none.
    """
    start, end, part = inside(spans, window)
    fits = np.ones(len(start), np.bool_) if value is None else spans.value[part] == value
    if not fits.any():
        return None
    return int(start[int(np.argmax(np.where(fits, end - start, -1)))])


def inside(spans: LaneSpans, window: TimeWindow) -> tuple[NDArray[np.int64], NDArray[np.int64], slice]:
    """Return the parts of intervals that are in a span of time: when they start and end, and which they are.

    Returns:
        Two of int64 (n,), cycles; the slice of the intervals.
    """
    part = spans.visible(window)
    start = spans.start_cycles[part]
    if not len(start):
        return start, start, part
    end = np.append(start[1:], spans.end_of(part))
    return np.maximum(start, window.start), np.minimum(end, window.end), part


def _name(opened: OpenTrace, lane: int, key: int, interval: int) -> str:
    texts = opened.timeline.lane(lane).spans.texts
    if texts is not None:
        return texts[interval]
    if key >= states.VALUE_COUNT:
        return opened.trace.process_name(key - states.VALUE_COUNT)
    if key == USER and opened.timeline.infos[lane].kind is LaneKind.CPU:
        return "user"
    if key in states.STATE_BY_VALUE:
        return states.STATE_BY_VALUE[key].name
    if key == states.ABSENT:
        info = opened.timeline.infos[lane]
        spans = opened.timeline.lane(lane).spans
        if int(spans.value[interval]) != states.ABSENT:
            return "hidden by the filter"
        begin = int(spans.start_cycles[interval])
        if not file_window(opened.trace, info.cpu, info.process).contains(begin):
            return "not in its file"
        return "no interrupt" if info.kind is LaneKind.INTERRUPTS else "does not exist"
    return {
        states.UNKNOWN: "unknown",
        states.IDLE: "idle",
        states.INTERRUPT: "interrupt",
        states.KERNEL_CALL: "kernel call",
        states.WAITING: "no thread runs",
    }.get(key, "")
