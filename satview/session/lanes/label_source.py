"""Returns labels to draw in intervals: known labels at once, others soon afterwards, from a worker thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal, Slot

from satview.analysis.partitions import partition_names, partition_title
from satview.base.errors import SourceChangedError
from satview.events import wire
from satview.events.catalogue import call_numbers
from satview.events.states import READY, RUNNING, STATE_BY_NAME
from satview.filters.derived_columns import logged_priorities
from satview.linkage.blockers import blockers
from satview.linkage.links import rows_of_class, rows_of_codes, thread_rows
from satview.session.lanes.lane_arrangement import Label
from satview.session.tasks import IsCancelled, Task
from satview.store.arguments import argument_under, arguments
from satview.store.tables import UNKNOWN_THREAD
from satview.store.trace import Trace

# Priorities of threads at their state changes: effective and own, which differ by inheritance.


_RECEIVE: Final = STATE_BY_NAME["RECEIVE"].value
_Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class ThreadPriorities:
    """Priorities as wide thread events log them, sorted by thread and time.

    Attributes:
        keys: int64 (n,), row of the thread << 32 | row of the event, ascending.
        effective: int64 (n,), effective priority of the thread from that event on.
        own: int64 (n,), priority of the thread without inheritance.
    """

    keys: _Ints
    effective: _Ints
    own: _Ints

    @classmethod
    def of(cls, trace: Trace) -> ThreadPriorities:
        """Return the priorities logged in a trace."""
        keys, effective = logged_priorities(trace)
        if not len(keys):
            return cls(keys, effective, effective)
        rows = keys & 0xFFFFFFFF
        is_own = trace.catalogue.state_value_of_code[trace.events.code[rows]] == _RECEIVE
        is_own |= np.append(True, keys[1:] >> 32 != keys[:-1] >> 32)
        after = np.searchsorted(keys, _changes(trace), side="right")
        is_own[after[after < len(keys)]] = True
        last = np.maximum.accumulate(np.where(is_own, np.arange(len(keys)), 0))
        return cls(keys, effective, effective[last])

    def at(self, threads: NDArray[np.integer], rows: NDArray[np.integer]) -> tuple[_Ints, _Ints]:
        """Return the priorities logged by given state events.

        Args:
            threads: (n,), threads of the state events.
            rows: (n,), rows of the state events.

        Returns:
            Effective priority from then on, and own priority, int64 (n,) each; -1 = not logged.
        """
        none = np.full(len(rows), -1, np.int64)
        if not len(self.keys):
            return none, none
        pairs = threads.astype(np.int64) << 32 | rows.astype(np.int64)
        position = np.minimum(np.searchsorted(self.keys, pairs), len(self.keys) - 1)
        known = self.keys[position] == pairs
        return np.where(known, self.effective[position], -1), np.where(known, self.own[position], -1)


def _changes(trace: Trace) -> _Ints:
    """Return the key (affected thread << 32 | row of the call) of each kernel call that sets a priority, int64 (n,)."""
    number = call_numbers(trace.release).get("SCHED_SET")
    if number is None:
        return np.empty(0, np.int64)
    code = wire.code(wire.WireClass.KER_CALL, number)
    rows = rows_of_codes(trace, code, code | wire.KER_64BIT).astype(np.int64)
    (pid, _), (tid, knows_tid) = arguments(trace, rows, "pid", "tid")
    own = trace.events.thread[rows].astype(np.int64)
    pid = np.where(pid > 0, pid, trace.threads.pid[own])
    tid = np.where(tid > 0, tid, trace.threads.tid[own])
    named = thread_rows(trace, pid.astype(np.int32).view(np.uint32), tid.astype(np.uint32))
    whose = np.where(knows_tid & (named != UNKNOWN_THREAD), named, own)
    return np.asarray(whose << 32 | rows)


# Labels of intervals beside the name of the state: priority, CPU, partner, kernel call, partition.


_CACHE_LIMIT: Final = 100_000
_NONE: Final = np.empty(0, np.uint32)
Rows = NDArray[np.uint32]


class IntervalLabels:
    """The labels of the intervals of one trace, by the state event that begins the interval.

    Some labels need results from the whole trace: a worker thread computes these with `make_ready`; until that is done,
    `texts` leaves these labels out.

    Args:
        trace: The trace.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._cache: dict[Label, dict[int, str]] = {label: {} for label in Label}
        self._ready = {Label.CPU: True}
        self._priorities: ThreadPriorities | None = None
        self._calls = _NONE.astype(np.int64)
        self._waits = _NONE.astype(np.int64), _NONE.astype(np.intp)
        self._partitions: dict[int, str] = {}

    def needs(self, labels: Iterable[Label]) -> frozenset[Label]:
        """Return the given labels that `texts` leaves out, because `make_ready` was not called for these labels yet."""
        return frozenset(label for label in labels if label is not Label.STATE and label not in self._ready)

    def make_ready(self, labels: Iterable[Label]) -> None:
        """Compute the data of the whole trace from which the labels are made; for a worker thread."""
        makers: dict[Label, Callable[[], None]] = {
            Label.PRIORITY: self._make_priorities,
            Label.PARTNER: self._make_waits,
            Label.CALL: self._make_calls,
            Label.PARTITION: self._make_partitions,
        }
        for label in Label:  # in a fixed order, unlike the set's
            if label in labels and label in makers and label not in self._ready:
                makers[label]()
                self._ready[label] = True

    def texts(self, rows: Sequence[int], labels: frozenset[Label]) -> list[tuple[str, ...]]:
        """Return the known labels of intervals, given by the events that begin them, in the order of `Label`.

        The state, which the caller adds, and labels that are not ready are left out.
        """
        shown = [label for label in Label if label in labels and label in self._ready]
        if not shown:
            return [()] * len(rows)
        for label in shown:
            self._find(label, rows)
        caches = [self._cache[label] for label in shown]
        return [tuple(text for cache in caches if (text := cache.get(row, ""))) for row in rows]

    def _find(self, label: Label, rows: Sequence[int]) -> None:
        cache = self._cache[label]
        if len(cache) > _CACHE_LIMIT:
            cache.clear()
        missing = [row for row in rows if row not in cache]
        if not missing:
            return
        known_rows = np.array(missing, np.int64)
        known_rows = known_rows[known_rows < len(self._trace.events)]  # some intervals begin without an event
        makers: dict[Label, Callable[[NDArray[np.int64]], list[str]]] = {
            Label.PRIORITY: self._priority_texts,
            Label.CPU: self._cpu_texts,
            Label.PARTNER: self._partner_texts,
            Label.CALL: self._call_texts,
            Label.PARTITION: self._partition_texts,
        }
        cache.update(dict.fromkeys(missing, ""))
        cache.update(zip(known_rows.tolist(), makers[label](known_rows), strict=True))

    def _values(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        return np.asarray(self._trace.catalogue.state_value_of_code[self._trace.events.code[rows]])

    def _cpu_texts(self, rows: NDArray[np.int64]) -> list[str]:
        runs = self._values(rows) == RUNNING
        cpus = self._trace.events.cpu[rows]
        return [f"CPU {cpu}" if is_on else "" for cpu, is_on in zip(cpus.tolist(), runs.tolist(), strict=True)]

    def _make_priorities(self) -> None:
        self._priorities = ThreadPriorities.of(self._trace)

    def _priority_texts(self, rows: NDArray[np.int64]) -> list[str]:
        assert self._priorities is not None
        effective, own = self._priorities.at(self._trace.events.thread[rows], rows)
        return [priority_text(*pair) for pair in zip(effective.tolist(), own.tolist(), strict=True)]

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
        """Return the name of the kernel call that each row's thread has entered and waits in; "" = none."""
        events, trace = self._trace.events, self._trace
        texts = [""] * len(rows)
        if not len(self._calls):
            return texts
        thread = events.thread[rows].astype(np.int64)
        position = np.searchsorted(self._calls, thread << 32 | rows) - 1
        call = self._calls[np.maximum(position, 0)]
        row = call & 0xFFFFFFFF
        waits = ~np.isin(self._values(rows), (RUNNING, READY))
        waits &= (position >= 0) & (call >> 32 == thread) & (events.code[row] & wire.KER_FORM == 0)
        for i in np.flatnonzero(waits).tolist():
            texts[i] = trace.spec(int(row[i])).name
        return texts

    def _make_waits(self) -> None:
        row = blockers(self._trace).waits.row.astype(np.int64)
        order = np.argsort(row, kind="stable")
        self._waits = row[order], order

    def _partner_texts(self, rows: NDArray[np.int64]) -> list[str]:
        """Return the name of the thread that each row's thread waits for, or of its process if not known; "" = none."""
        texts, (keys, order) = [""] * len(rows), self._waits
        if not len(keys):
            return texts
        known, trace = blockers(self._trace), self._trace
        position = np.minimum(np.searchsorted(keys, rows), len(keys) - 1)
        for i in np.flatnonzero(keys[position] == rows).tolist():
            wait = int(order[position[i]])
            # In SEND no thread has received the message yet, and only the process is known.
            thread, pid = int(known.thread[wait]), int(known.pid[wait])
            name = trace.thread_name(thread) if thread > 0 else trace.name_of_pid(pid) if pid > 0 else ""
            texts[i] = f"\N{RIGHTWARDS ARROW} {name}" if name else ""
        return texts


def priority_text(effective: int, own: int) -> str:
    r"""Return a priority label, `p15\N{UPWARDS ARROW}10` for 15 with an own priority of 10; empty for -1 = unknown."""
    if effective < 0:
        return ""
    return f"p{effective}\N{UPWARDS ARROW}{own}" if 0 <= own < effective else f"p{effective}"


class LabelSource(QObject):
    """Returns labels without delaying a frame; shared by all views of a trace.

    Signals:
        refined: More labels are known; draw again.
    """

    refined = Signal()

    def __init__(self, trace: Trace, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._labels = IntervalLabels(trace)
        self._failed: frozenset[Label] = frozenset()
        self._requested: frozenset[Label] = frozenset()
        self._job = Task(self, self._on_done, self._on_failed)

    @property
    def is_busy(self) -> bool:
        """True while requested labels are being computed."""
        return self._job.is_busy

    def take(self, trace: Trace) -> None:
        """Switch to a reloaded trace."""
        self._job.cancel()
        self._labels, self._failed, self._requested = IntervalLabels(trace), frozenset(), frozenset()

    def texts(self, rows: Sequence[int], labels: frozenset[Label]) -> list[tuple[str, ...]]:
        """Return labels as `IntervalLabels.texts` does, and start to compute those that are not ready."""
        missing = self._labels.needs(labels) - self._failed
        if missing and not missing <= self._requested:
            self._requested = missing
            self._job.start(partial(_made_ready, self._labels, missing))
        return self._labels.texts(rows, labels)

    def close(self) -> None:
        """Stop the background task."""
        self._job.close()

    @Slot(object)
    def _on_done(self, _result: object) -> None:
        self._requested = frozenset()
        self.refined.emit()

    @Slot(object)
    def _on_failed(self, error: Exception) -> None:
        self._failed |= self._requested
        if not isinstance(error, SourceChangedError):  # the window reports that itself
            raise error


def _made_ready(labels: IntervalLabels, requested: frozenset[Label], _is_cancelled: IsCancelled) -> IntervalLabels:
    labels.make_ready(requested)
    return labels
