"""Events one at a time, for programs that read like prose: `for event in trace.iter_events("KER_CALL")`.

Each event is a small view of one row; names and arguments are looked up when asked for. For millions of events columns
are far faster: `trace.events.time_cycles`, `trace.payloads.column(rows, 0)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import UsageError

if TYPE_CHECKING:
    from satview.events.spec import Argument, EventSpec
    from satview.store.trace import Trace

_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a trace.

    Attributes:
        trace: The trace it is of.
        row: Its row in the event table: its number in time order, from 0.
    """

    trace: Trace
    row: int

    @property
    def time_cycles(self) -> int:
        """When, in cycles of the target's counter."""
        return int(self.trace.events.time_cycles[self.row])

    @property
    def time_ns(self) -> int:
        """When, in nanoseconds since the first event."""
        return self.trace.clock.ns(self.time_cycles)

    @property
    def cpu(self) -> int:
        """The CPU that logged it, from 0."""
        return int(self.trace.events.cpu[self.row])

    @property
    def thread(self) -> int:
        """Row in the thread table; 0 = not known."""
        return int(self.trace.events.thread[self.row])

    @property
    def pid(self) -> int:
        """Process of its thread; -1 = not known."""
        return int(self.trace.threads.pid[self.thread])

    @property
    def tid(self) -> int:
        """Thread number within the process, from 1; -1 = not known."""
        return int(self.trace.threads.tid[self.thread])

    @property
    def thread_name(self) -> str:
        """Process and thread by name, such as `devb-ahci 2 (worker)`."""
        return self.trace.thread_name(self.thread)

    @property
    def spec(self) -> EventSpec:
        """What the catalogue knows of this kind of event."""
        return self.trace.spec(self.row)

    @property
    def class_name(self) -> str:
        """Printed class, such as `KER_CALL`."""
        return self.spec.class_name

    @property
    def name(self) -> str:
        """The event as QNX spells it, such as `MSG_SENDV` or `THRUNNING`."""
        return self.spec.name

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """Its arguments with their notation."""
        return self.trace.payloads.decode(self.row).arguments

    @property
    def args(self) -> dict[str, int | str | bytes]:
        """Its arguments by name, values only."""
        return {argument.name: argument.value for argument in self.arguments}

    @property
    def words(self) -> tuple[int, ...]:
        """All payload words, padding included."""
        return tuple(self.trace.payloads.words(self.row).tolist())


def iterate(
    trace: Trace,
    names: Sequence[str],
    *,
    pid: int | None = None,
    tid: int | None = None,
    cpu: int | None = None,
    start_ns: int | None = None,
    end_ns: int | None = None,
    rows: NDArray[np.integer] | None = None,
) -> Iterator[Event]:
    """Yield chosen events in time order; what is not given does not restrict.

    Args:
        trace: The trace.
        names: Printed classes (`KER_CALL`) and event names (`MSG_SENDV`, `KER_EXIT/MSG_SENDV`); any of them may match.
        pid: Process id of the event's thread.
        tid: Thread number of the event's thread.
        cpu: Number of the CPU.
        start_ns: Not before this time since the first event.
        end_ns: Before this time since the first event.
        rows: Event rows to choose from, ascending, such as those that a filter passes.

    Raises:
        UsageError: A name is neither a class nor an event of this release.
    """
    codes = _codes(trace, names)
    threads = np.ones(len(trace.threads), np.bool_)
    if pid is not None:
        threads &= trace.threads.pid == pid
    if tid is not None:
        threads &= trace.threads.tid == tid
    return _walk(trace, codes, threads, cpu, _bounds(trace, start_ns, end_ns), rows)


def _walk(
    trace: Trace,
    codes: NDArray[np.bool_],
    threads: NDArray[np.bool_],
    cpu: int | None,
    bounds: tuple[int, int],
    rows: NDArray[np.integer] | None,
) -> Iterator[Event]:
    events = trace.events
    for at in range(bounds[0], bounds[1], _CHUNK):
        part = slice(at, min(at + _CHUNK, bounds[1]))
        mask = codes[events.code[part]] & threads[events.thread[part]]
        if cpu is not None:
            mask &= events.cpu[part] == cpu
        found = np.flatnonzero(mask) + at
        if rows is not None:
            found = np.intersect1d(found, rows[np.searchsorted(rows, part.start) : np.searchsorted(rows, part.stop)])
        for row in found.tolist():
            yield Event(trace, row)


def _bounds(trace: Trace, start_ns: int | None, end_ns: int | None) -> tuple[int, int]:
    times = trace.events.time_cycles
    first = 0 if start_ns is None else int(np.searchsorted(times, trace.clock.cycles(start_ns)))
    last = len(times) if end_ns is None else int(np.searchsorted(times, trace.clock.cycles(end_ns)))
    return first, last


def _codes(trace: Trace, names: Sequence[str]) -> NDArray[np.bool_]:
    catalogue = trace.catalogue
    table = np.full(len(catalogue.class_index_of_code), not names)
    classes = {entry.name: i for i, entry in enumerate(catalogue.classes)}
    for name in names:
        if name in classes:
            table |= catalogue.class_index_of_code == classes[name]
        elif found := catalogue.find(name):
            table[list(found)] = True
        else:
            near = ", ".join((*catalogue.suggest(name), *classes)[:5])
            raise UsageError(f"{name!r} is neither a class nor an event of {catalogue.release}; there are {near}")
    return table
