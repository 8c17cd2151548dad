"""What is written into intervals beside the name of the state: priority, CPU, partner, kernel call, partition.

Worked out for the intervals that show and are wide enough, some hundred a frame, and cached by event. No Qt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.partitions import partition_names, partition_title
from satview.events import wire
from satview.events.states import READY, RUNNING
from satview.linkage.blockers import blockers
from satview.linkage.rows import rows_of_class
from satview.session.lanes.lane_arrangement import Label
from satview.session.lanes.priorities import Priorities
from satview.store.arguments import argument_under
from satview.store.trace import Trace

_CACHE_LIMIT: Final = 100_000
_FORM: Final = 0x180  # of the codes of kernel calls: 0 = entry
_NONE: Final = np.empty(0, np.uint32)
Rows = NDArray[np.uint32]


class IntervalLabels:
    """The labels of the intervals of one trace; each by the state event that begins the interval.

    `make_ready` takes a while for some labels and belongs into a job; until then they are left out.

    Args:
        trace: The events.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._cache: dict[Label, dict[int, str]] = {label: {} for label in Label}
        self._ready = {Label.CPU: True}
        self._priorities: Priorities | None = None
        self._calls = _NONE.astype(np.int64)
        self._waits = _NONE.astype(np.int64), _NONE.astype(np.intp)
        self._partitions: dict[int, str] = {}

    def needs(self, labels: Iterable[Label]) -> frozenset[Label]:
        """Return which of some labels have to be made ready first."""
        return frozenset(label for label in labels if label is not Label.STATE and label not in self._ready)

    def make_ready(self, labels: Iterable[Label]) -> None:
        """Compute what labels need of the whole trace; on a worker thread."""
        makers: dict[Label, Callable[[], None]] = {
            Label.PRIORITY: self._make_priorities,
            Label.PARTNER: self._make_waits,
            Label.CALL: self._make_calls,
            Label.PARTITION: self._make_partitions,
        }
        for label in Label:  # in their order, whatever the set says
            if label in labels and label in makers and label not in self._ready:
                makers[label]()
                self._ready[label] = True

    def texts(self, rows: Sequence[int], labels: frozenset[Label]) -> list[tuple[str, ...]]:
        """Return what is known of intervals, but for their states, which the caller names.

        Args:
            rows: Rows of the state events that begin them; what is no state event has no labels.
            labels: Which; those that are not ready are left out.

        Returns:
            For each interval its labels in their order, without those that it has not.
        """
        shown = [label for label in Label if label in labels and label in self._ready]
        if not shown:
            return [()] * len(rows)
        for label in shown:
            self._find(label, rows)
        caches = [self._cache[label] for label in shown]
        return [tuple(text for found in caches if (text := found.get(row, ""))) for row in rows]

    def _find(self, label: Label, rows: Sequence[int]) -> None:
        cache = self._cache[label]
        if len(cache) > _CACHE_LIMIT:
            cache.clear()
        missing = [row for row in rows if row not in cache]
        if not missing:
            return
        found = np.array(missing, np.int64)
        found = found[found < len(self._trace.events)]  # an interval may begin with no event
        makers: dict[Label, Callable[[NDArray[np.int64]], list[str]]] = {
            Label.PRIORITY: self._priority_texts,
            Label.CPU: self._cpu_texts,
            Label.PARTNER: self._partner_texts,
            Label.CALL: self._call_texts,
            Label.PARTITION: self._partition_texts,
        }
        cache.update(dict.fromkeys(missing, ""))
        cache.update(zip(found.tolist(), makers[label](found), strict=True))

    def _values(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        return np.asarray(self._trace.catalogue.state_value_of_code[self._trace.events.code[rows]])

    def _cpu_texts(self, rows: NDArray[np.int64]) -> list[str]:
        runs = self._values(rows) == RUNNING
        cpus = self._trace.events.cpu[rows]
        return [f"CPU {cpu}" if is_on else "" for cpu, is_on in zip(cpus.tolist(), runs.tolist(), strict=True)]

    def _make_priorities(self) -> None:
        self._priorities = Priorities.of(self._trace)

    def _priority_texts(self, rows: NDArray[np.int64]) -> list[str]:
        assert self._priorities is not None
        now, own = self._priorities.at(self._trace.events.thread[rows], rows)
        return [priority_text(*pair) for pair in zip(now.tolist(), own.tolist(), strict=True)]

    def _make_partitions(self) -> None:
        self._partitions = partition_names(self._trace)

    def _partition_texts(self, rows: NDArray[np.int64]) -> list[str]:
        numbers = argument_under(self._trace, rows, "partition", "partition_id").tolist()
        return [partition_title(self._partitions, number) if number >= 0 else "" for number in numbers]

    def _make_calls(self) -> None:
        rows = rows_of_class(self._trace, wire.WireClass.KER_CALL)
        keys = self._trace.events.thread[rows].astype(np.int64) << 32 | rows
        keys.sort()
        self._calls = keys[keys >> 32 > 0]  # of threads that are known

    def _call_texts(self, rows: NDArray[np.int64]) -> list[str]:
        """Return the kernel calls that threads wait in: the last one that each has entered, if it has not left it."""
        events, trace = self._trace.events, self._trace
        texts = [""] * len(rows)
        if not len(self._calls):
            return texts
        thread = events.thread[rows].astype(np.int64)
        at = np.searchsorted(self._calls, thread << 32 | rows) - 1
        call = self._calls[np.maximum(at, 0)]
        row = call & 0xFFFFFFFF
        waits = ~np.isin(self._values(rows), (RUNNING, READY))
        waits &= (at >= 0) & (call >> 32 == thread) & (events.code[row] & _FORM == 0)
        for i in np.flatnonzero(waits).tolist():
            texts[i] = trace.spec(int(row[i])).name
        return texts

    def _make_waits(self) -> None:
        row = blockers(self._trace).waits.row.astype(np.int64)
        order = np.argsort(row, kind="stable")
        self._waits = row[order], order

    def _partner_texts(self, rows: NDArray[np.int64]) -> list[str]:
        """Return whom threads wait for: who has received the message, holds the mutex or is joined."""
        texts, (keys, order) = [""] * len(rows), self._waits
        if not len(keys):
            return texts
        known, trace = blockers(self._trace), self._trace
        at = np.minimum(np.searchsorted(keys, rows), len(keys) - 1)
        for i in np.flatnonzero(keys[at] == rows).tolist():
            wait = int(order[at[i]])
            # In SEND nobody has received the message yet: its process may.
            thread, pid = int(known.thread[wait]), int(known.pid[wait])
            name = trace.thread_name(thread) if thread > 0 else self._process_name(pid) if pid > 0 else ""
            texts[i] = f"\N{RIGHTWARDS ARROW} {name}" if name else ""
        return texts

    def _process_name(self, pid: int) -> str:
        found = np.flatnonzero(self._trace.processes.pid == pid)
        return self._trace.process_name(int(found[-1])) if len(found) else f"pid {pid}"


def priority_text(now: int, own: int) -> str:
    """Return a priority as a label, 15 with 10 of its own as `p15\N{UPWARDS ARROW}10`; empty for -1, not known."""
    if now < 0:
        return ""
    return f"p{now}\N{UPWARDS ARROW}{own}" if 0 <= own < now else f"p{now}"
