"""Prints the events of a trace: as traceprinter does, or as rows for other programs.

One pass, chunk by chunk: events are grouped by kind and size, each group is formatted with one template, and the lines
go back into the order of the file. Only one chunk is held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import UsageError
from satview.base.time import NS_PER_S, Clock
from satview.events import wire
from satview.events.spec import EventSpec, Release
from satview.events.variants import variants
from satview.export.listing_columns import Group
from satview.export.listing_format import EventFormat, arguments_form
from satview.export.listing_forms import Form, Style, make_form
from satview.export.listing_select import Selection, Selector
from satview.formats.kev.batch import Batch
from satview.formats.listing.head import head_lines, slot_lines, stray_line
from satview.formats.source import Source

_COUNT_SHIFT = 15
_VARIANT_SHIFT = 46
TIMES = ("cycles", "full", "ns", "wall")


def layout_of(release: Release) -> str:
    """Return the layout in which a release's own printer writes."""
    return {Release.QNX_7: "7", Release.QNX_8: "8"}.get(release, "6")


def default_time(layout: str) -> str:
    """Return the form of time of a layout: 6.x prints the low word, later ones the full count."""
    return "cycles" if layout.startswith("6") else "full"


class Rows(Protocol):
    """Writes the events of one kind as rows of text; one per output format.

    Attributes:
        start_cycles: Time of the first event, from which relative times count; set before the first row.
    """

    start_cycles: int

    def head(self, source: Source) -> Iterator[str]:
        """Yield what comes before the first event."""

    def form(self, spec: EventSpec, count: int, variant: int) -> Form | None:
        """Return the template of a kind of event, behind the common columns; None if it is not printed.

        Args:
            spec: The kind.
            count: Payload words.
            variant: What the words say of their layout, see `events.variants`.
        """

    def common(self, batch: Batch, rows: NDArray[np.int64], form: Form) -> tuple[str, list[Sequence[Any]]]:
        """Return template and columns of what every event of a kind begins with."""

    def joined(self, lines: list[str]) -> str:
        """Return the lines of some events as one text."""

    def tail(self) -> Iterator[str]:
        """Yield what comes after the last event."""


@dataclass(slots=True)
class TextRows:
    """The vendor's layouts.

    Attributes:
        source: What is printed.
        style: The layout.
        time: One of `TIMES`.
        is_verbose: With the system page.
        start_cycles: Time of the first event.
        format: Of `-p`; None = the layout's own columns.
    """

    source: Source
    style: Style
    time: str
    is_verbose: bool = False
    start_cycles: int = 0
    format: EventFormat | None = None

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
        return form if form is None or self.format is None else arguments_form(form, spec)

    def common(self, batch: Batch, rows: NDArray[np.int64], form: Form) -> tuple[str, list[Sequence[Any]]]:
        """Return time and CPU, or what the format of `-p` has."""
        if self.format is not None:
            clock = Clock(self.source.cycles_per_s, self.start_cycles)
            return self.format.head(form, batch, rows, clock)
        template, times = self._times(batch, rows)
        return f"t:{template} CPU:%02d ", [times, batch.cpu[rows].tolist()]

    def joined(self, lines: list[str]) -> str:
        """Return the lines one after the other."""
        return "".join(lines)

    def tail(self) -> Iterator[str]:
        """Yield nothing."""
        return iter(())

    def _times(self, batch: Batch, rows: NDArray[np.int64]) -> tuple[str, Sequence[Any]]:
        cycles = batch.time_cycles[rows]
        if self.time == "cycles":
            return "0x%08x", batch.stamp[rows].tolist()
        if self.time == "full":
            return "0x%08x", cycles.view(np.uint64).tolist()  # as `hex_cycles`
        clock = Clock(self.source.cycles_per_s, self.start_cycles)
        if self.time == "ns":
            return "%s", [f"{ns // NS_PER_S}.{ns % NS_PER_S:09d}s" for ns in clock.ns_array(cycles).tolist()]
        return "%s", self._wall(cycles)

    def _wall(self, cycles: NDArray[np.int64]) -> list[str]:
        boot_s = boot_time(self.source)
        since_boot = Clock(self.source.cycles_per_s).ns_array(cycles) + boot_s * NS_PER_S
        seconds, rest = np.divmod(since_boot, NS_PER_S)
        kinds, inverse = np.unique(seconds, return_inverse=True)
        dates = [_date(second) for second in kinds.tolist()]
        return [f"{dates[at]}.{ns:09d}Z" for at, ns in zip(inverse.ravel().tolist(), rest.tolist(), strict=True)]


def boot_time(source: Source) -> int:
    """Return the target's boot time, seconds since 1970: of the system page, else of TRACE_BOOT_DATE.

    Raises:
        UsageError: Neither shows it.
    """
    if source.system is not None and source.system.boot_time_s:
        return source.system.boot_time_s
    try:
        date = datetime.strptime(source.header.get("BOOT_DATE"), "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC)
        return int(date.timestamp())
    except ValueError as error:
        raise UsageError("the trace does not show when its target was started, so dates cannot be given") from error


def _date(second: int) -> str:
    try:
        return datetime.fromtimestamp(second, tz=UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return f"{second}"


@dataclass(slots=True)
class Printer:
    """Prints one source.

    Attributes:
        source: What to print; read once.
        rows: The output format.
        selection: Which events.
        is_verbose: `-v`: every slot before the event it completes.
        chosen: Returns which events of a batch to print, ascending; None leaves it to the selection.
    """

    source: Source
    rows: Rows
    selection: Selection = field(default_factory=Selection)
    is_verbose: bool = False
    chosen: Callable[[Batch], NDArray[np.int64]] | None = None
    printed: int = 0
    _forms: dict[int, Form | None] = field(default_factory=dict)

    def text(self, after: Callable[[Batch], None] | None = None) -> Iterator[str]:
        """Yield the listing in pieces of at most a chunk of slots each.

        Args:
            after: Called with each chunk once it is printed.

        Raises:
            UsageError: The selection names a class or event that the release does not have.
        """
        batches = self.batches(after)
        yield from self.rows.head(self.source)
        for batch, rows, lines in batches:
            yield self.rows.joined(self._with_slots(batch, rows, lines) if self.is_verbose else lines)
        yield from self.rows.tail()

    def batches(
        self, after: Callable[[Batch], None] | None = None
    ) -> Iterator[tuple[Batch, NDArray[np.int64], list[str]]]:
        """Return chunk by chunk the events, which of them are printed, and the lines of these.

        Args:
            after: Called with each chunk once it is printed.

        Raises:
            UsageError: The selection names a class or event that the release does not have.
        """
        return self._batches(Selector(self.selection, self.source.catalogue, self.source.cycles_per_s), after)

    def _batches(
        self, selector: Selector, after: Callable[[Batch], None] | None
    ) -> Iterator[tuple[Batch, NDArray[np.int64], list[str]]]:
        start_cycles: int | None = None
        for batch in self.source.events:
            if start_cycles is None and len(batch):
                start_cycles = int(batch.time_cycles.min())
                self.rows.start_cycles = start_cycles
            rows = np.arange(len(batch))
            if self.chosen is not None:
                rows = self.chosen(batch)
            elif not selector.is_everything:
                rows = selector.rows(batch, start_cycles or 0, self.source.events.thread_ids())
            yield batch, rows, self._lines(batch, rows)
            if after is not None:
                after(batch)

    def _lines(self, batch: Batch, rows: NDArray[np.int64]) -> list[str]:
        """Return the text of each selected event; empty for those that are not printed."""
        if not len(rows):
            return []
        counts = (batch.start[rows + 1] - batch.start[rows]).astype(np.int64)
        code = batch.code[rows].astype(np.int64)
        found = variants(self.source.release, code, counts, lambda at, word: batch.words[batch.start[rows[at]] + word])
        kinds = code | counts << _COUNT_SHIFT | found.astype(np.int64) << _VARIANT_SHIFT
        order = np.argsort(kinds, kind="stable")
        cuts = np.flatnonzero(np.diff(kinds[order])) + 1
        lines = np.empty(len(rows), object)
        for members in np.split(order, cuts):
            form = self._form(int(kinds[members[0]]))
            if form is None:
                lines[members] = ""
                continue
            self.printed += len(members)
            lines[members] = self._filled(form, batch, rows[members], int(counts[members[0]]))
        return list(lines)

    def _form(self, kind: int) -> Form | None:
        if kind not in self._forms:
            spec = self.source.catalogue.spec(kind & wire.CODE_MASK)
            count = kind >> _COUNT_SHIFT & 0x7FFFFFFF
            self._forms[kind] = self.rows.form(spec, count, kind >> _VARIANT_SHIFT)
        return self._forms[kind]

    def _filled(self, form: Form, batch: Batch, rows: NDArray[np.int64], count: int) -> list[str]:
        words = batch.words[batch.start[rows][:, None] + np.arange(count)]
        group = Group(words, self.source.byte_order)
        head, common = self.rows.common(batch, rows, form)
        columns = [*common, *(column(group) for column in form.columns)]
        # One `%` for the whole group; no text holds a NUL, so it parts the lines again.
        template = f"{head}{form.template}\0" * len(rows)
        return (template % tuple(chain.from_iterable(zip(*columns, strict=True)))).split("\0")[:-1]

    def _with_slots(self, batch: Batch, rows: NDArray[np.int64], lines: list[str]) -> list[str]:
        """Return the text with a line per slot before what the slot completes."""
        texts = slot_lines(batch.slots, self.source.byte_order)
        for slot in batch.stray_tails.tolist():
            texts[slot] += stray_line(int(batch.slots[slot, 0]))
        for slot, line in zip(batch.last_slot[rows].tolist(), lines, strict=True):
            texts[slot] += line
        return texts
