"""A lane that shows how many threads are READY at a time: a sample of a lane for satview."""

import numpy as np

from satview.tables.table import table
from satview.timeline.lane_tree import PluggedLane

MOST = 8  # colours that lanes have, less one


def ready_threads(trace):
    """Return the lanes that it adds to a trace: here one."""
    states = table(trace, "state")
    is_ready = states["state"] == "READY"
    start, end = states["start_cycles"][is_ready], states["end_cycles"][is_ready]
    times = np.unique(np.concatenate((start, end)))
    if len(times) < 2:
        return []
    count = np.searchsorted(np.sort(start), times[:-1], side="right") - np.searchsorted(
        np.sort(end), times[:-1], side="right"
    )
    some = count > 0
    return [
        PluggedLane(
            "READY threads",
            times[:-1][some],
            times[1:][some],
            [f"{number} READY" for number in count[some]],
            np.minimum(count[some], MOST),
            "wait for a CPU",
        )
    ]
