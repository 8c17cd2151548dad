"""Prints the events of a trace chunk by chunk in one pass, as a listing or as CSV; the core makes the lines."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import Cancelled, UsageError
from satview.base.new_file import NewFile
from satview.base.safe_text import counted, csv_text
from satview.base.time import NS_PER_S, TimeWindow, format_duration
from satview.core import printing
from satview.core.printing import LineField
from satview.events import wire
from satview.events.catalogue import Catalogue
from satview.events.spec import EventSpec, Release
from satview.events.variants import EXITS, FAILED_FOR_VENDOR, MINUS_ONE, variants
from satview.export.listing.forms import EventGroup, Form, Style, TemplateColumn
from satview.export.listing.rows import Head, RecordRows, Rows, TextRows, layout_of
from satview.formats.kev.stream import Batch
from satview.formats.listing.model import slot_lines, stray_line
from satview.formats.registry import source_files
from satview.formats.source import TraceSource, opened
from satview.store.trace import Trace

# Selection of the listed events by class, event, thread, CPU and time.


@dataclass(frozen=True, slots=True)
class ListedEvents:
    """A selection of events; an empty set does not restrict the selection.

    Attributes:
        classes: Printed class names, any case.
        events: Event names in a notation of `Catalogue.find`.
        tids: Threads, by number within their process.
        from_ns: Earliest time, nanoseconds since the first event of the trace, exactly; None = no limit.
        to_ns: End of the range, excluded, in the same unit; None = no limit.
        window: Range in cycles of the trace's counter; None = no limit.
    """

    classes: frozenset[str] = frozenset()
    events: frozenset[str] = frozenset()
    pids: frozenset[int] = frozenset()
    tids: frozenset[int] = frozenset()
    cpus: frozenset[int] = frozenset()
    from_ns: Fraction | None = None
    to_ns: Fraction | None = None
    window: TimeWindow | None = None


@dataclass(slots=True)
class Selector:
    """Applies a selection to the events of one release.

    Attributes:
        events: Number of events that `rows` was given so far.
        length_cycles: Time from the first to the last of them.
        fitting: How many of them fit each part of the selection: `class and event`, `pid`, `tid`, `cpu` and `time`.
    """

    selection: ListedEvents
    names: Catalogue
    cycles_per_s: int
    events: int = 0
    length_cycles: int = 0
    fitting: dict[str, int] = dataclasses.field(default_factory=dict)
    _codes: NDArray[np.bool_] = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self._codes = self._code_table()

    def _code_table(self) -> NDArray[np.bool_]:
        selected = self.selection
        table = np.ones(wire.CODE_COUNT, np.bool_)
        if selected.classes:
            known = {spec.name: index for index, spec in enumerate(self.names.classes)}
            table = np.isin(self.names.class_index_of_code, [known[name] for name in self._known_classes(known)])
        if selected.events:
            events = np.zeros(wire.CODE_COUNT, np.bool_)
            for name in sorted(selected.events):
                events[list(self._known_event(name))] = True
            if selected.classes and not (table & events).any():
                named = (", ".join(sorted(names)) for names in (selected.events, selected.classes))
                raise UsageError("no event can ever fit: no {} is of the class {}".format(*named))
            table = table & events
        return table

    def _known_classes(self, known: Iterable[str]) -> list[str]:
        names = set(known)
        requested = [name.upper() for name in sorted(self.selection.classes)]
        if unknown := [name for name in requested if name not in names]:
            listed = ", ".join(name for name in known if not name.startswith("CLASS "))
            raise UsageError(f"no class {unknown[0]}; there are {listed}")
        return requested

    def _known_event(self, name: str) -> tuple[int, ...]:
        codes = self.names.find(name)
        if not codes:
            near = self.names.suggest(name)
            hint = f"; perhaps {', '.join(near)}" if near else ""
            raise UsageError(f"release {self.names.release} has no event {name}{hint}")
        return codes

    @property
    def is_everything(self) -> bool:
        """Whether all events are selected."""
        return self.selection == ListedEvents()

    def rows(
        self, batch: Batch, start_cycles: int, ids: tuple[NDArray[np.int32], NDArray[np.int32]]
    ) -> NDArray[np.int64]:
        """Return the selected rows of a batch, ascending, int64 (n,); `ids` are pid and tid by thread number."""
        shown = np.ones(len(batch), np.bool_)
        for name, fits in self._parts(batch, start_cycles, ids):
            self.fitting[name] = self.fitting.get(name, 0) + int(np.count_nonzero(fits))
            shown &= fits
        self.events += len(batch)
        self.length_cycles = max(self.length_cycles, int(batch.time_cycles.max(initial=start_cycles)) - start_cycles)
        return np.flatnonzero(shown)

    def _parts(
        self, batch: Batch, start_cycles: int, ids: tuple[NDArray[np.int32], NDArray[np.int32]]
    ) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        """Yield each part of the selection, and which events of a batch fit it, bool (events,)."""
        selected, times = self.selection, batch.time_cycles
        if selected.classes or selected.events:
            yield "class and event", self._codes[batch.code]
        for name, requested, values in (("pid", selected.pids, ids[0]), ("tid", selected.tids, ids[1])):
            if requested:
                yield name, np.isin(values, list(requested))[batch.thread]
        if selected.cpus:
            yield "cpu", np.isin(batch.cpu, list(selected.cpus))
        starts, ends = list[int](), list[int]()
        if selected.from_ns is not None:
            starts.append(start_cycles + self._cycles_of(selected.from_ns))
        if selected.to_ns is not None:
            ends.append(start_cycles + self._cycles_of(selected.to_ns))
        if selected.window is not None:
            starts.append(selected.window.start)
            ends.append(selected.window.end)
        if starts or ends:
            fits = np.ones(len(batch), np.bool_)
            if starts:
                fits &= times >= max(starts)
            if ends:
                fits &= times < min(ends)
            yield "time", fits

    def _cycles_of(self, length_ns: Fraction) -> int:
        """Return a length in cycles, rounded up."""
        return -int(-length_ns * self.cycles_per_s // NS_PER_S)

    def refuse_beyond(self) -> None:
        """Raise a UsageError, once all events are read, if the selection begins after the last one."""
        from_ns = self.selection.from_ns
        if self.events and from_ns is not None and self._cycles_of(from_ns) > self.length_cycles:
            length_ns = self.length_cycles * NS_PER_S // self.cycles_per_s
            raise UsageError(
                f"{format_duration(int(from_ns))} from the start is outside this trace, which takes "
                f"{format_duration(length_ns)}"
            )


# Lines of events of a chunk.

_CONVERSION: Final = re.compile(r"%(?:%|(0?)(\d*)([dxs])|.|$)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Lines:
    """The text of some events, UTF-8: lines, each with the separator before it, and the end of each, int64 (n,).

    An event that is not printed has an empty line.
    """

    text: bytes | memoryview
    ends: NDArray[np.int64]
    printed: int

    def split(self) -> list[bytes]:
        """Return the lines as a list."""
        ends, text = self.ends.tolist(), bytes(self.text)
        return [text[before:end] for before, end in zip([0, *ends], ends, strict=False)]


def _counts(batch: Batch, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    return batch.start[rows + 1] - batch.start[rows]


def _variants(
    source: TraceSource,
    batch: Batch,
    rows: NDArray[np.int64],
    counts: NDArray[np.int64],
    *,
    minus_one_fails: bool = False,
) -> NDArray[np.int32]:
    variant = variants(
        source.release, batch.code[rows], counts, lambda which, word: batch.words[batch.start[rows[which]] + word]
    ).astype(np.int32)
    if minus_one_fails:
        variant[(batch.words[batch.start[rows]] == MINUS_ONE) & EXITS.take(batch.code[rows])] = FAILED_FOR_VENDOR
    slots, listed = source.listed
    if not len(slots):
        return variant
    last = batch.first_slot + batch.last_slot[rows]
    position = np.minimum(np.searchsorted(slots, last), len(slots) - 1)
    return np.where(slots[position] == last, listed[position], variant)


def _group(source: TraceSource, batch: Batch, rows: NDArray[np.int64], count: int) -> EventGroup:
    return EventGroup(batch.words[batch.start[rows][:, None] + np.arange(count)], source.byte_order)


def _filled(template: str, columns: Sequence[TemplateColumn], heads: list[list[Any]], group: EventGroup) -> list[bytes]:
    """Return the lines of events of one kind, formatted in Python."""
    values = [*heads, *(column(group) for column in columns)]
    # One `%` for the whole group; no text contains a NUL, so it can separate the lines.
    text = (f"{template}\0" * len(group.words)) % tuple(chain.from_iterable(zip(*values, strict=True)))
    return text.encode("utf-8", "surrogateescape").split(b"\0")[:-1]


@dataclass(frozen=True, slots=True)
class _Texts:
    """The texts that Python makes instead of the core, one for each column of every line of one form.

    With a template the text is the whole line, which the core cannot print.
    """

    count: int
    columns: tuple[TemplateColumn, ...]
    template: str | None = None


class CoreLines:
    """Prints lines by the compiled core; Python makes only the texts that the core cannot make."""

    def __init__(self, source: TraceSource, rows: Rows) -> None:
        self._source, self._rows = source, rows
        self._forms = printing.Forms()
        self._printer = printing.LinePrinter(self._forms)
        self._texts: dict[int, _Texts] = {}

    def begin(self, batch: Batch, rows: NDArray[np.int64]) -> Callable[[], Lines]:
        """Return a function that prints some events of a batch by the core, without holding the interpreter's lock."""
        form = self._form_numbers(batch, rows)
        heads = self._rows.heads(batch, rows)
        texts, base = self._python_texts(batch, rows, form, heads)
        values, head_texts = _head_table(heads, len(rows))
        printed = self._printer.begin(printing.PrintJob(
            batch.start, batch.words, self._source.byte_order == "big", rows, form, values,
            sum(1 << number for number, head in enumerate(heads) if head.values.dtype.kind == "u"), head_texts,
            printing.TextTable.of(texts), base, self._rows.separator.encode(),
        ))  # fmt: skip
        return lambda: Lines(*printed(), int(np.count_nonzero(form >= 0)))

    def _form_numbers(self, batch: Batch, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        counts, form, done = _counts(batch, rows), np.empty(len(rows), np.int32), 0
        row_variants = _variants(self._source, batch, rows, counts, minus_one_fails=self._rows.minus_one_fails)
        header = np.ascontiguousarray(batch.header)
        while (done := self._forms.find(header, batch.start, rows, row_variants, form, done)) < len(rows):
            code, count, variant = int(header[rows[done]]) & wire.CODE_MASK, int(counts[done]), int(row_variants[done])
            self._forms.assign(code, count, variant, self._add(code, count, variant))
        return form

    def _add(self, code: int, count: int, variant: int) -> int:
        """Add the form of a kind of event; return the form's number, -1 if the events are not printed."""
        form = self._rows.form(self._source.catalogue.spec(code), count, variant)
        if form is None:
            return -1
        begin = self._rows.begin(form)
        pieces = _pieces(begin, form)
        if pieces is None:
            number = self._forms.add([LineField(printing.TEXT, 0)])
            self._texts[number] = _Texts(count, form.columns, begin + form.template)
            return number
        number = self._forms.add(pieces)
        if text_columns := tuple(column for column in form.columns if column.field is None):
            self._texts[number] = _Texts(count, text_columns)
        return number

    def _python_texts(
        self, batch: Batch, rows: NDArray[np.int64], form: NDArray[np.int32], heads: list[Head]
    ) -> tuple[list[bytes], NDArray[np.int64]]:
        """Return the texts of lines that Python makes, and the index of each line's first text, int64 (rows,)."""
        texts: list[bytes] = []
        base = np.zeros(len(rows), np.int64)
        if not self._texts:
            return texts, base
        has_texts = np.zeros(int(form.max(initial=0)) + 1, np.bool_)
        has_texts[[number for number in self._texts if number < len(has_texts)]] = True
        lines = np.flatnonzero(has_texts[form] & (form >= 0))
        order = lines[np.argsort(form[lines], kind="stable")]
        for members in np.split(order, np.flatnonzero(np.diff(form[order])) + 1) if len(order) else []:
            form_texts = self._texts[int(form[members[0]])]
            group = _group(self._source, batch, rows[members], form_texts.count)
            if form_texts.template is not None:
                columns = [
                    _filled(form_texts.template, form_texts.columns, [head.of(members) for head in heads], group)
                ]
            else:
                columns = [[_encoded(text) for text in column(group)] for column in form_texts.columns]
            base[members] = len(texts) + len(columns) * np.arange(len(members))
            texts += chain.from_iterable(zip(*columns, strict=True))
        return texts, base


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _head_table(heads: list[Head], count: int) -> tuple[NDArray[np.int64], printing.TextTable]:
    """Return the values of the columns that begin each line, int64 (columns, count), and their texts, for the core."""
    values, texts = np.empty((len(heads), count), np.int64), list[bytes]()
    for number, head in enumerate(heads):
        values[number] = head.values.view(np.int64) if head.values.dtype == np.uint64 else head.values
        if head.texts is not None:
            values[number] += len(texts)
            texts += map(_encoded, head.texts)
    return values, printing.TextTable.of(texts)


def _pieces(begin: str, form: Form) -> list[bytes | LineField] | None:
    """Return the literals and fields of a line; None if the core cannot print one of its conversions."""
    pieces: list[bytes | LineField] = []
    literal, numbers, text_count = "", 0, 0
    template, heads = begin + form.template, _conversions(begin)
    position = 0
    for conversion in _CONVERSION.finditer(template):
        literal += template[position : conversion.start()]
        position = conversion.end()
        if conversion[0] == "%%":
            literal += "%"
            continue
        if conversion[3] is None:
            return None
        column = None if numbers < heads else form.columns[numbers - heads]
        if column is None:
            field = LineField(printing.HEAD_TEXT if conversion[3] == "s" else printing.HEAD, numbers)
        elif column.field is None:
            field, text_count = LineField(printing.TEXT, text_count), text_count + 1
        else:
            field = column.field
        is_text = field.kind in (printing.TEXT, printing.HEAD_TEXT, printing.MESSAGE)
        if is_text != (conversion[3] == "s") or (is_text and conversion[2]):
            return None
        numbers += 1
        pieces += [_encoded(literal), field if is_text else _shown(field, conversion)]
        literal = ""
    return [*pieces, _encoded(literal + template[position:])]


def _shown(field: LineField, conversion: re.Match[str]) -> LineField:
    """Return the field of a number, with the flags and the width of a `%` conversion applied."""
    flags = field.flags | (printing.HEXADECIMAL if conversion[3] == "x" else 0)
    return field._replace(flags=flags | (printing.ZEROS if conversion[1] else 0), width=int(conversion[2] or 0))


def _conversions(template: str) -> int:
    return sum(conversion[0] != "%%" for conversion in _CONVERSION.finditer(template))


# The pass over a file.

_Pending = tuple[Batch, NDArray[np.int64], Callable[[], Lines]]  # events, printed rows, function that makes the lines


def _one_ahead(batches: Iterator[_Pending]) -> Iterator[_Pending]:
    """Yield each batch with its lines, which another thread makes while the next batch is read."""
    before: _Pending | None = None
    with ThreadPoolExecutor(1, "satview-lines") as pool:  # one thread: to start one for each batch takes longer
        try:
            for batch, rows, make in batches:
                last, before = before, (batch, rows, pool.submit(make).result)
                if last is not None:
                    yield last
        except Exception:
            if before is not None:
                yield before  # the last batch before the error
            raise
        if before is not None:
            yield before


@dataclass(slots=True)
class Printer:
    """Prints the events of a trace in an output format.

    Raises:
        UsageError: The selection names a class or event that the release does not have.

    Attributes:
        source: The trace to print; it is read once.
        is_verbose: `-v`: print every slot before the event that the slot completes.
        rows_to_print: Returns the events of a batch to print, ascending; None = `selection` decides.
        is_ahead: Read the next events before the last ones are yielded; not for a pipe, where this may take long.
        printed: Number of events printed so far.
    """

    source: TraceSource
    rows: Rows
    selection: ListedEvents = dataclasses.field(default_factory=ListedEvents)
    is_verbose: bool = False
    rows_to_print: Callable[[Batch], NDArray[np.int64]] | None = None
    is_ahead: bool = False
    printed: int = 0
    selector: Selector = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.selector = Selector(self.selection, self.source.catalogue, self.source.cycles_per_s)

    def text(self, after: Callable[[Batch], None] | None = None) -> Iterator[str]:
        """Yield the listing as text, in pieces, like `encoded`."""
        for piece in self.encoded(after):
            yield str(piece, "utf-8", "surrogateescape")

    def encoded(self, after: Callable[[Batch], None] | None = None) -> Iterator[bytes | memoryview]:
        """Yield the listing as UTF-8 in pieces, each valid until the next; `after` gets each printed chunk."""
        batches = self.batches(after)
        yield "".join(self.rows.head(self.source)).encode("utf-8", "surrogateescape")
        separator = len(self.rows.separator.encode())
        for batch, rows, lines in batches:
            if self.is_verbose:
                yield "".join(self._with_slots(batch, rows, lines)).encode("utf-8", "surrogateescape")
            else:  # the separator comes before each line but the first
                yield lines.text[separator if self.printed == lines.printed else 0 :]
        yield self.rows.tail(self.printed).encode()

    def batches(self, after: Callable[[Batch], None] | None = None) -> Iterator[tuple[Batch, NDArray[np.int64], Lines]]:
        """Yield for each chunk its events, rows to print, int64 (k,), and lines; `after` gets each printed chunk."""
        batches = self._pending()
        for batch, rows, make in _one_ahead(batches) if self.is_ahead else batches:
            lines = make()
            self.printed += lines.printed
            yield batch, rows, lines
            if after is not None:
                after(batch)

    def _pending(self) -> Iterator[_Pending]:
        """Yield for each chunk its events, the rows to print, and a function that makes their lines."""
        start_cycles: int | None = None
        job = CoreLines(self.source, self.rows)
        for batch in self.source.events:
            if start_cycles is None and len(batch):
                start_cycles = int(batch.time_cycles.min())
                self.rows.start_cycles = start_cycles
            rows = np.arange(len(batch))
            if self.rows_to_print is not None:
                rows = self.rows_to_print(batch)
            elif not self.selector.is_everything:
                rows = self.selector.rows(batch, start_cycles or 0, self.source.events.thread_ids())
            yield batch, rows, job.begin(batch, rows)

    def _with_slots(self, batch: Batch, rows: NDArray[np.int64], lines: Lines) -> list[str]:
        """Return for each slot its line, and after it the line of the event that the slot completes."""
        texts = slot_lines(batch.slots, self.source.byte_order)
        for slot in batch.stray_tails.tolist():
            texts[slot] += stray_line(int(batch.slots[slot, 0]))
        for slot, line in zip(batch.last_slot[rows].tolist(), lines.split(), strict=True):
            texts[slot] += line.decode("utf-8", "surrogateescape")
        return texts


# Writes events of a trace as a listing, or as CSV of the event list, in one pass of the printer over the file.
#
# The printer reads events in slot order, while the selection consists of rows of the trace. An event's last slot
# identifies it in both; the printer prints an event when it reads this slot.


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
        """Return the indices of the events of a batch that are selected, int64 (k,), ascending."""
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


def left_out_of_listing(trace: Trace, mask: Bools | None, printed: int) -> str:
    """Return a sentence on events that a listing lacks because their last slots never came; empty if none is missing.

    `mask` are the events to be written, bool (events,), None = all; `printed` is the number of those written.
    """
    left = (len(trace.events) if mask is None else int(np.count_nonzero(mask))) - printed
    return f"left out, as by the vendor's printer: {counted(left, 'event')} without end" if left else ""


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
    """Yield the first lines of a batch, merged in row order with earlier `waiting` lines of rows below `ready`."""
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
    """The columns of the list before class and event name, for ascending rows of the event table, int64 (n,)."""

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
class ListRows(Rows):
    """Rows of the event list: columns from the trace, with its times, and arguments as `records` writes them."""

    trace: Trace
    selected: Selected
    records: RecordRows
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
        """Return the columns that are printed before class and event name, each with a text per row in `rows`."""
        return self._columns.of(self.selected.positions_in(batch, rows))


def _quoted(name: str) -> str:
    return '"' + csv_text(name).replace('"', '""') + '"'


@contextmanager
def _source(trace: Trace) -> Iterator[TraceSource]:
    """Open the file of a trace to read it again."""
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
    """Return the function that the printer calls after each batch to report progress and to stop if cancelled."""
    return lambda batch: _check((batch.first_slot + len(batch.slots)) / selected.total, progress, cancelled)


def _check(share: float, progress: Report | None, cancelled: IsCancelled | None) -> None:
    if cancelled is not None and cancelled():
        raise Cancelled("the listing was stopped")
    if progress is not None:
        progress(min(1.0, share))
