"""Prints the events of a trace: as traceprinter does, or as rows for other programs.

One pass, chunk by chunk: `listing_lines` makes the lines of a chunk. Only one chunk is held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import UsageError
from satview.base.time import NS_PER_S, Clock
from satview.events.spec import EventSpec, Release
from satview.events.user_events import UserEvent
from satview.export.listing_columns import fields_column
from satview.export.listing_format import EventFormat, arguments_form
from satview.export.listing_forms import Form, Style, make_form
from satview.export.listing_lines import CoreLines, Head, Lines, Rows
from satview.export.listing_select import Selection, Selector
from satview.formats.kev.slots.batch import Batch
from satview.formats.listing.head import head_lines, slot_lines, stray_line
from satview.formats.source import Source

_Made = tuple[Batch, NDArray[np.int64], Callable[[], Lines]]  # events, which of them are printed, their lines

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

    source: Source
    style: Style
    time: str
    is_verbose: bool = False
    start_cycles: int = 0
    format: EventFormat | None = None
    separator: str = ""
    described: Mapping[int, UserEvent] = field(default_factory=dict)

    @property
    def minus_one_fails(self) -> bool:
        """Whether every exit that begins with -1 is that of a failed call: for the vendor's printer of 6.x."""
        return self.style.is_vendor and self.style.is_old

    def head(self, source: Source) -> Iterator[str]:
        """Yield banner, header and titles."""
        yield from head_lines(
            source.header,
            source.system,
            source.byte_order,
            is_vendor=self.style.is_vendor,
            is_verbose=self.is_verbose,
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
        """Return the columns that fill it."""
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


def boot_time(source: Source) -> int:
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


def _one_ahead(made: Iterator[_Made]) -> Iterator[_Made]:
    """Yield what is made, each while the next one is read: by the core, which needs no lock of the interpreter."""
    before: _Made | None = None
    with ThreadPoolExecutor(1, "satview-lines") as pool:  # a thread for each would start later than it could print
        try:
            for batch, rows, make in made:
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
    """Prints one source.

    Attributes:
        source: What to print; read once.
        rows: The output format.
        selection: Which events.
        is_verbose: `-v`: every slot before the event it completes.
        rows_to_print: Returns which events of a batch to print, ascending; None leaves it to the selection.
        is_ahead: Read the next events while the last ones are printed: not from a pipe, where they may take a while.
    """

    source: Source
    rows: Rows
    selection: Selection = field(default_factory=Selection)
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
        made = self._made(selector)
        for batch, rows, make in _one_ahead(made) if self.is_ahead else made:
            lines = make()
            self.printed += lines.printed
            yield batch, rows, lines
            if after is not None:
                after(batch)

    def _made(self, selector: Selector) -> Iterator[_Made]:
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
        """Return the text with a line per slot before what the slot completes."""
        texts = slot_lines(batch.slots, self.source.byte_order)
        for slot in batch.stray_tails.tolist():
            texts[slot] += stray_line(int(batch.slots[slot, 0]))
        for slot, line in zip(batch.last_slot[rows].tolist(), lines.each(), strict=True):
            texts[slot] += line.decode("utf-8", "surrogateescape")
        return texts
