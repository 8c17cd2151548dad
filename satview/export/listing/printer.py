"""Prints the events of a trace chunk by chunk, in one pass; the compiled core makes the lines."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import UsageError
from satview.base.time import NS_PER_S, TimeWindow
from satview.core import printing
from satview.core.printing import LineField
from satview.events import wire
from satview.events.catalogue import Catalogue
from satview.events.variants import EXITS, FAILED_FOR_VENDOR, MINUS_ONE, variants
from satview.export.listing.columns import EventGroup, TemplateColumn
from satview.export.listing.forms import Form
from satview.export.listing.rows import Head, Rows
from satview.formats.kev.stream import Batch
from satview.formats.listing.head import slot_lines, stray_line
from satview.formats.source import TraceSource

# Selection of the listed events by class, event, thread, CPU and time.


@dataclass(frozen=True, slots=True)
class ListedEvents:
    """A selection of events; an empty set does not restrict the selection.

    Attributes:
        classes: Printed class names, any case.
        events: Event names in a notation of `Catalogue.find`.
        pids: Processes.
        tids: Threads, by number within their process.
        cpus: CPUs.
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
    """Applies a selection to the events of one release."""

    selection: ListedEvents
    names: Catalogue
    cycles_per_s: int
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
            table = table & events if selected.classes else events
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
        """Return the selected events of a batch, ascending.

        Args:
            batch: Events.
            start_cycles: Time of the first event of the trace.
            ids: pid and tid by thread number.

        Returns:
            int64 (n,), rows within the batch.
        """
        selected = self.selection
        shown = self._codes[batch.code]
        if selected.cpus:
            shown &= np.isin(batch.cpu, list(selected.cpus))
        for requested, values in ((selected.pids, ids[0]), (selected.tids, ids[1])):
            if requested:
                shown &= np.isin(values, list(requested))[batch.thread]
        # Limits are rounded up to whole cycles.
        if selected.from_ns is not None:
            shown &= batch.time_cycles >= start_cycles - (-selected.from_ns * self.cycles_per_s // NS_PER_S)
        if selected.to_ns is not None:
            shown &= batch.time_cycles < start_cycles - (-selected.to_ns * self.cycles_per_s // NS_PER_S)
        if selected.window is not None:
            shown &= (batch.time_cycles >= selected.window.start) & (batch.time_cycles < selected.window.end)
        return np.flatnonzero(shown)


# Lines of events of a chunk.

_CONVERSION: Final = re.compile(r"%(?:%|(0?)(\d*)([dxs])|.|$)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Lines:
    """The text of some events, UTF-8.

    Attributes:
        text: The lines, each with the separator before it.
        ends: int64 (n,), end of each event's line in `text`; an event that is not printed has an empty line.
        printed: Number of printed events.
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
    """The texts of a form that Python makes instead of the core.

    Attributes:
        count: Number of payload words.
        columns: Columns that make the texts; each makes one text of every line.
        template: Template of whole lines, if the core cannot print them: the text is then the whole line.
    """

    count: int
    columns: tuple[TemplateColumn, ...]
    template: str | None = None


class CoreLines:
    """Prints lines by the compiled core; Python makes only the texts that the core cannot make.

    Args:
        source: The trace to print.
        rows: The output format.
    """

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
        """Return the texts that Python makes, and the index of each line's first text, int64 (rows,)."""
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
    """Return the values of heads, int64 (columns, count), and their texts, in the form that the core takes."""
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
    """Return the field of a number with the flags and width of a conversion."""
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
    """Prints the events of one source.

    Attributes:
        source: The trace to print; it is read once.
        rows: The output format.
        selection: The events to print.
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

    def text(self, after: Callable[[Batch], None] | None = None) -> Iterator[str]:
        """Yield the listing as text, in pieces, like `encoded`."""
        for piece in self.encoded(after):
            yield str(piece, "utf-8", "surrogateescape")

    def encoded(self, after: Callable[[Batch], None] | None = None) -> Iterator[bytes | memoryview]:
        """Yield the listing as UTF-8, in pieces of at most a chunk of slots; each piece is valid until the next.

        Args:
            after: Called with each chunk once it is printed.

        Raises:
            UsageError: The selection names a class or event that the release does not have.
        """
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
        """Return for each chunk its events, the rows to print, int64 (k,), and their lines.

        Args:
            after: Called with each chunk once it is printed.

        Raises:
            UsageError: The selection names a class or event that the release does not have.
        """
        return self._batches(Selector(self.selection, self.source.catalogue, self.source.cycles_per_s), after)

    def _batches(
        self, selector: Selector, after: Callable[[Batch], None] | None
    ) -> Iterator[tuple[Batch, NDArray[np.int64], Lines]]:
        batches = self._pending(selector)
        for batch, rows, make in _one_ahead(batches) if self.is_ahead else batches:
            lines = make()
            self.printed += lines.printed
            yield batch, rows, lines
            if after is not None:
                after(batch)

    def _pending(self, selector: Selector) -> Iterator[_Pending]:
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
            elif not selector.is_everything:
                rows = selector.rows(batch, start_cycles or 0, self.source.events.thread_ids())
            yield batch, rows, job.begin(batch, rows)

    def _with_slots(self, batch: Batch, rows: NDArray[np.int64], lines: Lines) -> list[str]:
        """Return for each slot its line, and after it the line of the event that the slot completes."""
        texts = slot_lines(batch.slots, self.source.byte_order)
        for slot in batch.stray_tails.tolist():
            texts[slot] += stray_line(int(batch.slots[slot, 0]))
        for slot, line in zip(batch.last_slot[rows].tolist(), lines.split(), strict=True):
            texts[slot] += line.decode("utf-8", "surrogateescape")
        return texts
