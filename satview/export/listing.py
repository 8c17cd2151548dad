"""Prints the events of a trace: as traceprinter does, or as rows for other programs.

One pass, chunk by chunk: `listing_lines` makes the lines of a chunk. Only one chunk is held.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import UsageError
from satview.base.time import NS_PER_S, Clock, TimeWindow
from satview.events import wire
from satview.events.catalogue import Catalogue
from satview.events.spec import EventSpec, Release
from satview.events.user_events import UserEvent
from satview.export.listing_columns import fields_column
from satview.export.listing_forms import Form, Style, make_form
from satview.export.listing_lines import CoreLines, Head, Lines, Rows
from satview.formats.kev.stream import Batch
from satview.formats.listing.head import head_lines, slot_lines, stray_line
from satview.formats.source import TraceSource

# Which events a listing shows: by class, event, thread, CPU and time.


@dataclass(frozen=True, slots=True)
class ListedEvents:
    """Selection of events; an empty set selects everything of its kind.

    Attributes:
        classes: Printed class names, any case.
        events: Event names as `Catalogue.find` takes them.
        pids: Processes.
        tids: Threads, by number within their process.
        cpus: CPUs.
        from_ns: Earliest time, nanoseconds since the first event of the trace, exactly; None = no limit.
        to_ns: Latest time, not included.
        window: The same in cycles of the trace's counter; None = no limit.
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
    """A selection made ready for the events of one release."""

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
        """True if nothing is left out."""
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
        # Whole cycles: the first one that is not before the limit.
        if selected.from_ns is not None:
            shown &= batch.time_cycles >= start_cycles - (-selected.from_ns * self.cycles_per_s // NS_PER_S)
        if selected.to_ns is not None:
            shown &= batch.time_cycles < start_cycles - (-selected.to_ns * self.cycles_per_s // NS_PER_S)
        if selected.window is not None:
            shown &= (batch.time_cycles >= selected.window.start) & (batch.time_cycles < selected.window.end)
        return np.flatnonzero(shown)


# `traceprinter -p fmt`: what is before the arguments, as a `printf()` format. Listing format, section 1.1.


_CLASS_COLUMN = 17  # of the layouts from 7.x on: padded to 15, a blank, a colon
_EVENT_COLUMN = 18
_SPEC = re.compile(r"%([-+ #0]*)(\d{1,4})?(?:\.(-?\d{1,4}))?([A-Za-z%])")
_FIELDS = "cCetZz%"
_NAME = re.compile(r"(?:EVENT|state) \d+|[A-Za-z_]\w*(?:/\d+|:\d+)?")


@dataclass(frozen=True, slots=True)
class _Field:
    """One conversion, or literal text where `letter` is empty."""

    letter: str
    text: str = ""
    flags: str = ""
    width: int = 0
    precision: int | None = None

    @property
    def is_padded(self) -> bool:
        """True if `shown` may change a time: zeros fill no text, so `%014t` is as long as the time."""
        return "0" not in self.flags and (self.width > 0 or self.precision is not None)

    def shown(self, text: str) -> str:
        """Return a text cut and padded; a negative precision cuts leading characters."""
        if self.precision is not None:
            count = abs(self.precision)
            text = text[:count] if self.precision >= 0 else text[max(len(text) - count, 0) :]
        return text.ljust(self.width) if "-" in self.flags else text.rjust(self.width)


@dataclass(frozen=True, slots=True)
class PrintedFormat:
    """A format of `-p`.

    Attributes:
        fields: Literal text and conversions in order.
    """

    fields: tuple[_Field, ...]

    @classmethod
    def parse(cls, text: str) -> PrintedFormat:
        """Return the format of a text.

        Raises:
            UsageError: It has a conversion that the printer does not know, or control characters.
        """
        if not text.isprintable():
            raise UsageError("-p: the format holds control characters")
        return cls(tuple(_fields(text)))

    def begin(self, form: Form) -> str:
        """Return a `%` template for the events of one kind.

        Args:
            form: The kind, as `arguments_form` returns it.
        """
        return "".join(self._template(field, form) for field in self.fields)

    @staticmethod
    def _template(field: _Field, form: Form) -> str:
        class_name, event_name = form.names
        literal = {"": field.text, "%": "%", "Z": class_name, "z": event_name}.get(field.letter)
        if literal is not None:
            return (field.shown(literal) if field.letter in ("Z", "z") else literal).replace("%", "%%")
        if field.letter == "t":
            return "%s" if field.is_padded else "%d.%03d.%03dus"
        return (_number(field) % form.event).replace("%", "%%") if field.letter == "e" else _number(field)

    def heads(self, batch: Batch, rows: NDArray[np.int64], clock: Clock) -> list[Head]:
        """Return the columns that fill the templates.

        Args:
            batch: Where the events are.
            rows: Which of the batch.
            clock: Counts from the first event.
        """
        columns: list[Head] = []
        for field in self.fields:
            if field.letter == "t":
                us = clock.ns_array(batch.time_cycles[rows]) // 1000
                parts = [us // 1_000_000, us // 1000 % 1000, us % 1000]
                if field.is_padded:
                    texts = map("{}.{:03d}.{:03d}us".format, *(part.tolist() for part in parts))
                    columns.append(Head(np.arange(len(rows)), [field.shown(text) for text in texts]))
                else:
                    columns += map(Head, parts)
            elif field.letter in ("c", "C"):
                columns.append(Head(batch.time_cycles[rows] if field.letter == "c" else batch.cpu[rows]))
        return columns


def arguments_form(form: Form, spec: EventSpec) -> Form:
    """Return a form of the layouts from 7.x on without its class and event columns; interrupts have no name there."""
    text = form.template[_CLASS_COLUMN:]
    head = _NAME.match(text)
    name, rest = (head[0], text[max(_EVENT_COLUMN, head.end()) :]) if head else ("", text)
    if not rest.startswith((" ", "\n")):
        rest = f" {rest}"
    return replace(form, template=rest, names=(spec.class_name, name), event=wire.event_of(spec.code))


def _fields(text: str) -> Iterator[_Field]:
    start = 0
    while start < len(text):
        spec = _SPEC.match(text, start) if text[start] == "%" else None
        if spec is None:
            if text[start] == "%":
                raise UsageError(f"-p: {text[start : start + 8]!a} is no conversion; there are %c %C %e %t %Z %z %%")
            end = text.find("%", start)
            end = len(text) if end < 0 else end
            yield _Field("", text[start:end])
            start = end
            continue
        if spec[4] not in _FIELDS:
            raise UsageError(f"-p: %{spec[4]} is no conversion; there are %c %C %e %t %Z %z %%")
        precision = int(spec[3]) if spec[3] is not None else None
        yield _Field(spec[4], "", spec[1], int(spec[2] or 0), precision)
        start = spec.end()


def _number(field: _Field) -> str:
    """Return the template of a count of cycles in hexadecimal, or of a CPU or event in decimal."""
    precision = f".{field.precision}" if field.precision is not None and field.precision >= 0 else ""
    return f"%{field.flags}{field.width or ''}{precision}{'x' if field.letter == 'c' else 'd'}"


_Pending = tuple[Batch, NDArray[np.int64], Callable[[], Lines]]  # events, which of them are printed, their lines

TIMES = ("cycles", "full", "ns", "wall")


def layout_of(release: Release) -> str:
    """Return the layout in which a release's own printer writes."""
    return {Release.QNX_7: "7", Release.QNX_8: "8"}.get(release, "6")


def default_time(layout: str) -> str:
    """Return the form of time of a layout: 6.x prints the low word, later ones the full count."""
    return "cycles" if layout.startswith("6") else "full"


@dataclass(slots=True)
class TextRows:
    """The vendor's layouts.

    Attributes:
        source: What is printed.
        style: The layout.
        time: One of `TIMES`; empty = as a listing has it, else as the layout does.
        is_verbose: With the system page.
        start_cycles: Time of the first event.
        format: Of `-p`; None = the layout's own columns.
        separator: Text between two lines.
        described: What a file says of events, by code: it is behind their arguments.
    """

    source: TraceSource
    style: Style
    time: str
    is_verbose: bool = False
    start_cycles: int = 0
    format: PrintedFormat | None = None
    separator: str = ""
    described: Mapping[int, UserEvent] = dataclasses.field(default_factory=dict)

    @property
    def minus_one_fails(self) -> bool:
        """Whether every exit that begins with -1 is that of a failed call: for the vendor's printer of 6.x."""
        return self.style.is_vendor and self.style.is_old

    def head(self, source: TraceSource) -> Iterator[str]:
        """Yield banner, header and titles."""
        yield from head_lines(
            source.header, source.system, source.byte_order, is_vendor=self.style.is_vendor, is_verbose=self.is_verbose
        )

    def form(self, spec: EventSpec, count: int, variant: int) -> Form | None:
        """Return the form of the layout."""
        form = make_form(spec, count, self.style, self.source.catalogue, variant)
        if form is not None and spec.code in self.described:
            more = fields_column(self.described[spec.code], count)
            form = replace(form, template=f"{form.template.removesuffix(chr(10))}%s\n", columns=(*form.columns, more))
        return form if form is None or self.format is None else arguments_form(form, spec)

    def begin(self, form: Form) -> str:
        """Return the template of time and CPU, or of what the format of `-p` has."""
        if self.format is not None:
            return self.format.begin(form)
        time = {"ns": "%d.%09ds", "wall": "%s.%09dZ"}.get(self.time, "0x%08x")
        stamps = self.source.stamps
        if not self.time and stamps is not None:
            time = stamps.template
        return f"t:{time} CPU:%02d "

    def heads(self, batch: Batch, rows: NDArray[np.int64]) -> list[Head]:
        """Return the columns that fill the template of `begin`."""
        if self.format is not None:
            return self.format.heads(batch, rows, Clock(self.source.cycles_per_s, self.start_cycles))
        return [*self._times(batch, rows), Head(batch.cpu[rows])]

    def tail(self, printed: int) -> str:
        """Return nothing."""
        del printed
        return ""

    def _times(self, batch: Batch, rows: NDArray[np.int64]) -> list[Head]:
        time = self.time
        if not time:
            stamps = self.source.stamps
            is_low = stamps.is_low if stamps is not None else default_time(self.style.layout) == "cycles"
            time = "cycles" if is_low else "full"
        if time == "cycles":
            return [Head(batch.stamp[rows])]
        cycles = batch.time_cycles[rows]
        if time == "full":
            return [Head(cycles.view(np.uint64))]  # as `hex_cycles`
        if self.time == "ns":
            ns = Clock(self.source.cycles_per_s, self.start_cycles).ns_array(cycles)
            return [Head(part) for part in np.divmod(ns, NS_PER_S)]
        since_boot = Clock(self.source.cycles_per_s).ns_array(cycles) + boot_time(self.source) * NS_PER_S
        seconds, rest = np.divmod(since_boot, NS_PER_S)
        kinds, inverse = np.unique(seconds, return_inverse=True)
        return [Head(inverse.ravel(), [_date(second) for second in kinds.tolist()]), Head(rest)]


def boot_time(source: TraceSource) -> int:
    """Return the target's boot time, seconds since 1970: of the system page, else of TRACE_BOOT_DATE.

    Raises:
        UsageError: Neither shows it.
    """
    if source.system is not None and source.system.boot_time_s:
        return source.system.boot_time_s
    if (date := source.header.date("BOOT_DATE")) is None:
        raise UsageError("the trace does not show when its target was started, so dates cannot be given")
    return int(date.timestamp())


def _date(second: int) -> str:
    try:
        return datetime.fromtimestamp(second, tz=UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return f"{second}"


def _one_ahead(batches: Iterator[_Pending]) -> Iterator[_Pending]:
    """Yield results, each computed while the next is read: the core needs no lock of the interpreter."""
    before: _Pending | None = None
    with ThreadPoolExecutor(1, "satview-lines") as pool:  # a thread for each would start later than it could print
        try:
            for batch, rows, make in batches:
                last, before = before, (batch, rows, pool.submit(make).result)
                if last is not None:
                    yield last
        except Exception:
            if before is not None:
                yield before  # all that was read before the fault
            raise
        if before is not None:
            yield before


@dataclass(slots=True)
class Printer:
    """Prints the events of one source.

    Attributes:
        source: What to print; read once.
        rows: The output format.
        selection: Which events.
        is_verbose: `-v`: every slot before the event it completes.
        rows_to_print: Returns which events of a batch to print, ascending; None leaves it to the selection.
        is_ahead: Read the next events while the last ones are printed: not from a pipe, where they may take a while.
    """

    source: TraceSource
    rows: Rows
    selection: ListedEvents = dataclasses.field(default_factory=ListedEvents)
    is_verbose: bool = False
    rows_to_print: Callable[[Batch], NDArray[np.int64]] | None = None
    is_ahead: bool = False
    printed: int = 0

    def text(self, after: Callable[[Batch], None] | None = None) -> Iterator[str]:
        """Yield the listing in pieces of at most a chunk of slots each; see `encoded`."""
        for piece in self.encoded(after):
            yield str(piece, "utf-8", "surrogateescape")

    def encoded(self, after: Callable[[Batch], None] | None = None) -> Iterator[bytes | memoryview]:
        """Yield the listing in pieces of at most a chunk of slots each, as UTF-8; each is valid until the next.

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
        """Return chunk by chunk the events, which of them are printed, int64 (k,), and the lines of these.

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
        """Yield the events, which of them are printed, and what makes their lines."""
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
        """Return a line per slot, each followed by the line of the event that the slot completes."""
        texts = slot_lines(batch.slots, self.source.byte_order)
        for slot in batch.stray_tails.tolist():
            texts[slot] += stray_line(int(batch.slots[slot, 0]))
        for slot, line in zip(batch.last_slot[rows].tolist(), lines.split(), strict=True):
            texts[slot] += line.decode("utf-8", "surrogateescape")
        return texts
