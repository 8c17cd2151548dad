"""Lanes of one file on the axis of several: for as long as the file lasts, with nothing before and after."""

from __future__ import annotations

import numpy as np

from satview.events.states import ABSENT, FIRST_PROCESS, process_values
from satview.store.axis import Part
from satview.store.trace import Trace
from satview.timeline.spans import NO_EVENT, LaneSpans


def on_axis(trace: Trace, part: Part, own: LaneSpans) -> LaneSpans:
    """Return the lane of a file as it is on the axis.

    Args:
        trace: The trace of all files.
        part: The file.
        own: The lane, in cycles and rows of the file.
    """
    start, event = part.cycles(own.start_cycles), part.axis_rows(own.event).astype(np.uint32)
    value, thread = own.value, None
    if own.thread is not None:
        thread = part.threads[own.thread]
        runs = value >= FIRST_PROCESS  # the hue of a process follows from its row
        value = np.where(runs, process_values(trace.threads.process[thread]), value).astype(np.uint8)
    whole, end = trace.window, int(part.cycles(np.array([own.end_cycles]))[0])
    before, after = int(start[0]) > whole.start, end < whole.end

    def extended(column: np.ndarray, first: int, last: int) -> np.ndarray:
        return np.concatenate(([first] * before, column, [last] * after)).astype(column.dtype)

    return LaneSpans(
        extended(start, whole.start, end),
        extended(value, ABSENT, ABSENT),
        extended(event, NO_EVENT, NO_EVENT),
        None if thread is None else extended(thread, 0, 0),
        whole.end,
    )
