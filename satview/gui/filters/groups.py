"""What the trees of the filter panel list: classes with their events, processes with their threads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from satview.gui.check_tree import Group, Leaf
from satview.store.trace import Trace


def event_groups(trace: Trace) -> list[Group]:
    """Return the classes of a trace in table order with the events that occur, most frequent first."""
    counts = trace.code_counts
    by_class: dict[str, list[Leaf]] = {}
    for code in np.flatnonzero(counts):
        spec = trace.catalogue.spec(int(code))
        name = f"{spec.name} (64 bit)" if spec.is_64bit else spec.name
        by_class.setdefault(spec.class_name, []).append(Leaf(int(code), name, int(counts[code])))
    titles = {spec.name: spec.title for spec in trace.catalogue.classes}
    order = {spec.name: position for position, spec in enumerate(trace.catalogue.classes)}
    return [
        Group(name, tuple(sorted(by_class[name], key=lambda leaf: -leaf.count)), titles.get(name, ""))
        for name in sorted(by_class, key=lambda name: order.get(name, len(order)))
    ]


def thread_groups(trace: Trace, counts: NDArray[np.int64]) -> list[Group]:
    """Return the processes with their threads, by number of events."""
    by_process: dict[int, list[Leaf]] = {}
    for row in range(len(trace.threads)):
        process = int(trace.threads.process[row])
        tid = int(trace.threads.tid[row])
        title = f"{tid}  {trace.threads.names[row]}".strip() if tid > 0 else "thread not known"
        if row or counts[0]:
            by_process.setdefault(process, []).append(Leaf(row, title, int(counts[row])))
    groups = [
        Group(_process_title(trace, process), tuple(leaves), trace.processes.names[process])
        for process, leaves in by_process.items()
    ]
    return sorted(groups, key=lambda group: -sum(leaf.count for leaf in group.leaves))


def _process_title(trace: Trace, process: int) -> str:
    if not process:
        return "not known"
    name = trace.process_name(process)
    pid = int(trace.processes.pid[process])
    return name if name == f"pid {pid}" else f"{name}  (pid {pid})"
