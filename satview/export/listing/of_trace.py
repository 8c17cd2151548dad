"""Writes events of a trace as a listing, or as CSV of the event list, in one pass of the printer over the file.

The printer reads events in slot order, while the selection consists of rows of the trace. An event's last slot
identifies it in both; the printer prints an event when it reads this slot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import Cancelled, UsageError
from satview.base.new_file import NewFile
from satview.base.safe_text import csv_text
from satview.events.spec import EventSpec, Release
from satview.export.listing.forms import Form, Style
from satview.export.listing.printer import Lines, Printer
from satview.export.listing.rows import Head, RecordRows, TextRows, layout_of
from satview.formats.kev.stream import Batch
from satview.formats.registry import source_files
from satview.formats.source import TraceSource, opened
from satview.store.trace import Trace

LIST_HEAD: Final = "number,time_ns,time_cycles,delta_cycles,cpu,process,pid,thread,tid,class,event,arguments\n"
_BLOCK: Final = 1 << 10
Bools = NDArray[np.bool_]
Report = Callable[[float], None]
IsCancelled = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Selected:
    """Selected events of a trace, in row order and in the printer's order.

    Attributes:
        rows: int64 (n,), rows of the event table, ascending.
        slots: int64 (n,), last slots of these events, ascending.
        positions: int64 (n,), index into `rows` of the event of each of `slots`.
        total: Number of slots of the file up to the last event, at least 1.
    """

    rows: NDArray[np.int64]
    slots: NDArray[np.int64]
    positions: NDArray[np.int64]
    total: int

    @classmethod
    def of(cls, trace: Trace, mask: Bools | None) -> Selected:
        """Return the events selected by a mask, bool (events,); None = all."""
        rows = np.arange(len(trace.events)) if mask is None else np.flatnonzero(mask)
        last = trace.last_slots()
        slots = last[rows]
        positions = np.argsort(slots, kind="stable")
        return cls(rows, slots[positions], positions, int(last.max(initial=0)) + 1)

    def in_batch(self, batch: Batch) -> NDArray[np.int64]:
        """Return which events of a batch are selected, int64 (k,), ascending."""
        if not len(self.slots):
            return np.empty(0, np.int64)
        slots = batch.first_slot + batch.last_slot
        position = np.minimum(np.searchsorted(self.slots, slots), len(self.slots) - 1)
        return np.flatnonzero(self.slots[position] == slots)

    def by_position(self, batch: Batch) -> NDArray[np.int64]:
        """Return which events of a batch are selected, int64 (k,), in the order of `rows`."""
        rows = self.in_batch(batch)
        return rows[np.argsort(self.positions_in(batch, rows), kind="stable")]

    def positions_in(self, batch: Batch, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return indices into `self.rows` of selected events, given by rows of a batch, int64 (len(rows),)."""
        return self.positions[np.searchsorted(self.slots, batch.first_slot + batch.last_slot[rows])]

    def behind(self, batch: Batch) -> int:
        """Return the number of selected events up to the end of a batch."""
        return int(np.searchsorted(self.slots, batch.first_slot + len(batch.slots)))


def write_listing(
    trace: Trace, path: Path | str, mask: Bools | None = None, progress: Report | None = None,
    cancelled: IsCancelled | None = None,
) -> int:  # fmt: skip
    """Print events in the layout of the release's own traceprinter; return their number.

    Args:
        trace: A trace of QNX that was read from a file.
        path: The new file, or `-`; it appears once it is complete.
        mask: bool (events,), which events; None = all.
        progress: Called with the share that is done, 0 to 1.
        cancelled: Called between chunks; True stops.

    Raises:
        UsageError: The trace is not of QNX, is of several files or was read from standard input, or the file cannot
            be written.
        Cancelled: `cancelled()` returned True; nothing is left behind.
    """
    selected = Selected.of(trace, mask)
    with _source(trace) as source, _new_file(trace, path) as file:
        layout = layout_of(source.release)
        style = Style(layout, source.release, source.byte_order, False, False, source.notations)
        printer = Printer(
            source,
            TextRows(source, style, "", described=trace.payloads.described),
            rows_to_print=selected.in_batch,
            is_ahead=True,
        )
        for text in printer.encoded(_checked(selected, progress, cancelled)):
            file.write(text)
        return printer.printed


def write_event_list(
    trace: Trace, path: Path | str, mask: Bools | None = None, progress: Report | None = None,
    cancelled: IsCancelled | None = None,
) -> int:  # fmt: skip
    """Write events as CSV in the order of the event list, with the columns of `LIST_HEAD`; return their number.

    The column `number` is the event's number in the whole list, `delta_cycles` the time since the row above.

    Args:
        trace: Any trace.
        path: The new file, or `-`; it appears once it is complete.
        mask: bool (events,), which events; None = all.
        progress: Called with the share that is done, 0 to 1.
        cancelled: Called between chunks; True stops.

    Raises:
        UsageError: The file cannot be written.
        Cancelled: `cancelled()` returned True; nothing is left behind.
    """
    selected = Selected.of(trace, mask)
    with _new_file(trace, path) as file:
        file.write(LIST_HEAD.encode())
        count = 0
        lines = _printed_lines if trace.can_be_read_again else _decoded_lines
        for text, more in lines(trace, selected, progress, cancelled):
            file.write(text)
            count += more
        return count


def _printed_lines(
    trace: Trace, selected: Selected, progress: Report | None, cancelled: IsCancelled | None
) -> Iterator[tuple[bytes | memoryview, int]]:
    """Yield lines of the list in row order, and their number; each text is valid until the next.

    The printer makes lines in slot order, so a line is held back until the lines of all rows above it exist.
    """
    coming = np.minimum.accumulate(selected.positions[::-1])[::-1]  # the first position that is still to come
    waiting: dict[int, bytes] = {}
    with _source(trace) as source:
        printer = Printer(
            source,
            ListRows(trace, selected, RecordRows(source, "csv", described=trace.payloads.described)),
            rows_to_print=selected.by_position,
            is_ahead=True,
        )
        for batch, rows, lines in printer.batches(_checked(selected, progress, cancelled)):
            positions, behind = selected.positions_in(batch, rows), selected.behind(batch)
            ready = int(coming[behind]) if behind < len(coming) else len(selected.rows)
            count = int(np.searchsorted(positions, ready))
            yield from ((text, 0) for text in _in_order(lines, positions[:count], waiting, ready))
            starts = np.append(0, lines.ends)
            for position, start, end in zip(
                *(part[count:].tolist() for part in (positions, starts, lines.ends)), strict=False
            ):
                waiting[position] = bytes(lines.text[start:end])
            yield b"", lines.printed


def _in_order(
    lines: Lines, positions: NDArray[np.int64], waiting: dict[int, bytes], ready: int
) -> Iterator[bytes | memoryview]:
    """Yield the first lines of a batch (`positions` are their rows), merged with waiting lines of rows < `ready`."""
    ends, done = np.append(0, lines.ends), 0
    for position in sorted(position for position in waiting if position < ready):
        before = int(np.searchsorted(positions, position))
        yield lines.text[int(ends[done]) : int(ends[before])]
        yield waiting.pop(position)
        done = before
    yield lines.text[int(ends[done]) : int(ends[len(positions)])]


def _decoded_lines(
    trace: Trace, selected: Selected, progress: Report | None, cancelled: IsCancelled | None
) -> Iterator[tuple[bytes, int]]:
    """Yield lines of the list for a trace whose file the printer cannot read, such as a thread trace; slower."""
    columns = ListColumns(trace, selected.rows)
    for start in range(0, len(selected.rows), _BLOCK):
        _check(start / len(selected.rows), progress, cancelled)
        positions = np.arange(start, min(start + _BLOCK, len(selected.rows)))
        every = np.arange(len(positions))
        heads = zip(*(head.of(every) for head in columns.of(positions)), strict=True)
        tails = map(partial(_decoded, trace), selected.rows[positions].tolist())
        text = "".join(ListColumns.TEMPLATE % head + tail for head, tail in zip(heads, tails, strict=True))
        yield text.encode("utf-8", "surrogateescape"), len(positions)


def _decoded(trace: Trace, event: int) -> str:
    spec, arguments = trace.spec(event), trace.payloads.decode(event).arguments
    text = " ".join(f"{argument.name}={argument.text}" for argument in arguments)
    return f"{_quoted(spec.class_name)},{_quoted(spec.name)},{_quoted(text)}\n"


class ListColumns:
    """The columns of the list before class and event name.

    Args:
        trace: The trace.
        rows: int64 (n,), rows of the event table, ascending.
    """

    TEMPLATE: Final = "%d,%d,%d,%d,%d,%s,%d,%s,%d,"

    def __init__(self, trace: Trace, rows: NDArray[np.int64]) -> None:
        threads = trace.threads
        process = [trace.process_name(int(row), with_pid=False) if row else "" for row in threads.process]
        owners, names = ([_quoted(name) for name in column] for column in (process, threads.names))
        self._of_thread = (owners, threads.pid, names, threads.tid)
        self._trace, self._rows = trace, rows
        time = trace.events.time_cycles[rows]
        self._delta = np.diff(time, prepend=time[:1])

    def of(self, positions: NDArray[np.int64]) -> list[Head]:
        """Return the columns of `TEMPLATE` for the rows at some positions."""
        rows, events = self._rows[positions], self._trace.events
        cycles, thread = events.time_cycles[rows], events.thread[rows]
        owners, pid, names, tid = self._of_thread
        columns = [rows + 1, self._trace.clock.ns_array(cycles), cycles, self._delta[positions], events.cpu[rows]]
        return [*map(Head, columns), Head(thread, owners), Head(pid[thread]), Head(thread, names), Head(tid[thread])]


@dataclass(slots=True)
class ListRows:
    """Rows of the event list: columns from the trace, and arguments as the printer writes them.

    Attributes:
        trace: The trace.
        selected: The events.
        records: Writes class, event name and arguments.
        start_cycles: Not used; times come from the trace.
        separator: Text between two rows.
        minus_one_fails: As for `Rows`; False.
    """

    trace: Trace
    selected: Selected
    records: RecordRows
    start_cycles: int = 0
    separator: str = ""
    minus_one_fails: bool = False
    _columns: ListColumns = field(init=False)

    def __post_init__(self) -> None:
        self._columns = ListColumns(self.trace, self.selected.rows)

    def head(self, source: TraceSource) -> Iterator[str]:
        """Yield the names of the columns."""
        del source
        yield LIST_HEAD

    def form(self, spec: EventSpec, count: int, variant: int) -> Form | None:
        """Return the template of class, event and arguments for a kind of event."""
        return self.records.form(spec, count, variant)

    def begin(self, form: Form) -> str:
        """Return the template of the columns before class and event name."""
        del form
        return ListColumns.TEMPLATE

    def heads(self, batch: Batch, rows: NDArray[np.int64]) -> list[Head]:
        """Return the columns before class and event name."""
        return self._columns.of(self.selected.positions_in(batch, rows))

    def tail(self, printed: int) -> str:
        """Return an empty text: nothing follows the last row."""
        del printed
        return ""


def _quoted(name: str) -> str:
    return '"' + csv_text(name).replace('"', '""') + '"'


@contextmanager
def _source(trace: Trace) -> Iterator[TraceSource]:
    """Open the file of a trace to read it again.

    Raises:
        UsageError: The file has no listing, or cannot be read again.
    """
    if trace.release is Release.LINUX:
        raise UsageError(f"{trace.path.name}: the vendor's layout has no lines for a trace of Linux; export it as CSV")
    if trace.release is Release.UNIXWARE:
        raise UsageError(f"{trace.path.name}: thread traces have a listing of their own; `satview records` prints it")
    if trace.axis is not None:
        raise UsageError(f"{trace.path.name}: files on one axis have no listing together; list each, or write CSV")
    if str(trace.path) == "-":
        raise UsageError("the trace came from standard input, which cannot be read again; write it to a file first")
    with opened(trace.path) as source:
        yield source


@contextmanager
def _new_file(trace: Trace, path: Path | str) -> Iterator[BinaryIO]:
    with NewFile(path, reading=source_files(trace.path), streams=True) as file:
        yield file.stream


def _checked(selected: Selected, progress: Report | None, cancelled: IsCancelled | None) -> Callable[[Batch], None]:
    """Return the function that the printer calls after each batch."""
    return lambda batch: _check((batch.first_slot + len(batch.slots)) / selected.total, progress, cancelled)


def _check(share: float, progress: Report | None, cancelled: IsCancelled | None) -> None:
    if cancelled is not None and cancelled():
        raise Cancelled("the listing was stopped")
    if progress is not None:
        progress(min(1.0, share))
