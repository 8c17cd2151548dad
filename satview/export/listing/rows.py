"""Output formats of listings: text in the layouts of traceprinter or in a format of `-p`, CSV and JSON."""

from __future__ import annotations

import dataclasses
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import UsageError
from satview.base.safe_text import visible_line
from satview.base.time import NS_PER_S, Clock
from satview.core import printing
from satview.events import wire
from satview.events.layout import Layout, PayloadPart, printed_layout
from satview.events.spec import EventSpec, Release, Show
from satview.events.user_events import UserEvent
from satview.events.variants import DOUBTFUL, ERRNO_WORD, FAILURES
from satview.export.listing import forms
from satview.export.listing.forms import EventGroup, Form, Style, TemplateColumn, make_form
from satview.formats.kev.payloads import plain_text
from satview.formats.kev.stream import Batch
from satview.formats.listing.model import head_lines
from satview.formats.source import TraceSource


@dataclass(frozen=True, slots=True)
class Head:
    """A column at the start of every line: numbers, or indices into `texts`, int64, uint64 or smaller (n,)."""

    values: NDArray[np.integer]
    texts: Sequence[str] | None = None

    def of(self, members: NDArray[np.intp]) -> list[Any]:
        """Return the printed values of the events at some positions in `values`, (k,)."""
        values: list[Any] = self.values[members].tolist()
        return values if self.texts is None else [self.texts[value] for value in values]


class Rows(ABC):
    """An output format: writes events as rows of text.

    Attributes:
        start_cycles: Time of the first event, which is time 0 of relative times; set before the first row.
    """

    start_cycles: int = 0

    @property
    def separator(self) -> str:
        """The text between two lines, which end with a line feed by default."""
        return ""

    @property
    def minus_one_fails(self) -> bool:
        """Whether every exit whose first word is -1 is printed as a failed call, whatever its length."""
        return False

    @abstractmethod
    def head(self, source: TraceSource) -> Iterator[str]:
        """Yield the text before the first event."""

    @abstractmethod
    def form(self, spec: EventSpec, count: int, variant: int) -> Form | None:
        """Return the template after the common columns for a kind of event; None if the events are not printed."""

    @abstractmethod
    def begin(self, form: Form) -> str:
        """Return the template of the common columns at the start of every line of a form."""

    @abstractmethod
    def heads(self, batch: Batch, rows: NDArray[np.int64]) -> list[Head]:
        """Return the columns that fill the template of `begin`, the same for all forms.

        Args:
            batch: A batch of events.
            rows: int64 (n,), the events to print, as rows of the batch.
        """

    def tail(self, printed: int) -> str:  # noqa: ARG002  -- for those that need it
        """Return the text after the last event, by default none, with the number of printed lines."""
        return ""


# The vendor's layouts.

TIMES = ("cycles", "full", "ns", "wall")


def layout_of(release: Release) -> str:
    """Return the layout of a release's own traceprinter."""
    return {Release.QNX_7: "7", Release.QNX_8: "8"}.get(release, "6")


def default_time(layout: str) -> str:
    """Return how a layout prints time: 6.x the low 32 bits of the cycle count, later layouts the full count."""
    return "cycles" if layout.startswith("6") else "full"


@dataclass(slots=True)
class TextRows(Rows):
    """Rows of text in the layouts of the vendor's traceprinter.

    Attributes:
        time: One of `TIMES`; empty = as in the listing that is read, for other sources as in the layout.
        format: Format of `-p`; None = the layout's own columns.
        described: User's descriptions of events, by code; their fields are printed after the arguments.
    """

    source: TraceSource
    style: Style
    time: str
    is_verbose: bool = False
    format: PrintedFormat | None = None
    described: Mapping[int, UserEvent] = dataclasses.field(default_factory=dict)

    @property
    def minus_one_fails(self) -> bool:
        """Whether every exit whose first word is -1 is a failed call, as in the vendor's printer of 6.x."""
        return self.style.is_vendor and self.style.is_old

    def head(self, source: TraceSource) -> Iterator[str]:
        """Yield banner, header and titles."""
        yield from head_lines(
            source.header, source.system, source.byte_order, is_vendor=self.style.is_vendor, is_verbose=self.is_verbose
        )

    def form(self, spec: EventSpec, count: int, variant: int) -> Form | None:
        """Return the template after the common columns for a kind of event; None if the events are not printed."""
        form = make_form(spec, count, self.style, self.source.catalogue, variant)
        if form is not None and spec.code in self.described:
            more = forms.fields_column(self.described[spec.code], count)
            form = replace(form, template=f"{form.template.removesuffix(chr(10))}%s\n", columns=(*form.columns, more))
        return form if form is None or self.format is None else arguments_form(form, spec)

    def begin(self, form: Form) -> str:
        """Return the template of time and CPU, or of the columns that option `-p` selects."""
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
    """Return the target's boot time, seconds since 1970, from the system page, else from TRACE_BOOT_DATE.

    Raises UsageError if the trace contains no boot time.
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


# `traceprinter -p fmt`: the columns before the arguments, as a `printf()` format. Listing format, section 1.1.


_CLASS_COLUMN = 17  # of the layouts from 7.x on: padded to 15, a blank, a colon
_EVENT_COLUMN = 18
_SPEC = re.compile(r"%([-+ #0]*)(\d{1,4})?(?:\.(-?\d{1,4}))?([A-Za-z%])")
_FIELDS = "cCetZz%"
_NAME = re.compile(r"(?:EVENT|state) \d+|[A-Za-z_]\w*(?:/\d+|:\d+)?")


@dataclass(frozen=True, slots=True)
class _Field:
    """A conversion of a format of `-p`, or literal text.

    Attributes:
        letter: Letter of the conversion; empty = literal text.
        flags: Flags of the conversion, such as `-` and `0`.
        precision: Number of characters to keep; negative = the last ones, None = all.
    """

    letter: str
    text: str = ""
    flags: str = ""
    width: int = 0
    precision: int | None = None

    @property
    def is_padded(self) -> bool:
        """Whether `shown` may cut or pad the text of a time; with flag 0, as in `%014t`, it is left as it is."""
        return "0" not in self.flags and (self.width > 0 or self.precision is not None)

    def shown(self, text: str) -> str:
        """Return a text cut to the precision (a negative one cuts leading characters) and padded to the width."""
        if self.precision is not None:
            count = abs(self.precision)
            text = text[:count] if self.precision >= 0 else text[max(len(text) - count, 0) :]
        return text.ljust(self.width) if "-" in self.flags else text.rjust(self.width)


@dataclass(frozen=True, slots=True)
class PrintedFormat:
    """A format of lines, as given by the option `-p`."""

    fields: tuple[_Field, ...]

    @classmethod
    def parse(cls, text: str) -> PrintedFormat:
        """Return the format that a text describes.

        Raises UsageError if it has a conversion that the printer does not know, or control characters.
        """
        if not text.isprintable():
            raise UsageError("-p: the format holds control characters")
        return cls(tuple(_fields(text)))

    def begin(self, form: Form) -> str:
        """Return the `%` template of the columns before the arguments, for a form from `arguments_form`."""
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
        """Return the columns that fill the templates for rows of a batch; `clock` starts at the first event."""
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
    """Return a form of a 7.x or 8.0 layout without its class and event columns; of interrupts only the class is cut."""
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
                raise UsageError(f"-p: {text[start : start + 8]!a} is not a conversion; there are %c %C %e %t %Z %z %%")
            end = text.find("%", start)
            end = len(text) if end < 0 else end
            yield _Field("", text[start:end])
            start = end
            continue
        if spec[4] not in _FIELDS:
            raise UsageError(f"-p: %{spec[4]} is not a conversion; there are %c %C %e %t %Z %z %%")
        precision = int(spec[3]) if spec[3] is not None else None
        yield _Field(spec[4], "", spec[1], int(spec[2] or 0), precision)
        start = spec.end()


def _number(field: _Field) -> str:
    """Return the `%` conversion of a field: cycles in hexadecimal, a CPU or event number in decimal."""
    precision = f".{field.precision}" if field.precision is not None and field.precision >= 0 else ""
    return f"%{field.flags}{field.width or ''}{precision}{'x' if field.letter == 'c' else 'd'}"


# Events as rows for other programs: CSV, JSON, JSON lines, with the arguments of the text listing.


FORMATS = ("csv", "json", "jsonl")
CSV_HEAD = "time_ns,time_cycles,cpu,pid,tid,class,event,arguments\n"
_USER_CLASSES = ("USREVENT", "QUIP")
Pair = tuple[str, str, list[TemplateColumn]]  # name, template of the value, its columns


@dataclass(slots=True)
class RecordRows(Rows):
    """Rows in one of `FORMATS`.

    A row has `time_ns` (since the first event), `time_cycles`, `cpu`, `pid` and `tid` (-1 where not known), `class`,
    `event` and `arguments`: an object in JSON, `name=value` pairs in CSV. Decimal arguments are numbers, all others
    text in hexadecimal.

    Attributes:
        described: User's descriptions of events, by code; their fields are added to the arguments, as text.
    """

    source: TraceSource
    format: str
    described: Mapping[int, UserEvent] = dataclasses.field(default_factory=dict)

    def head(self, source: TraceSource) -> Iterator[str]:  # noqa: ARG002  -- one signature for all outputs
        """Yield the column names of CSV, or the opening bracket of JSON."""
        yield {"csv": CSV_HEAD, "json": "[\n", "jsonl": ""}[self.format]

    @property
    def separator(self) -> str:
        """The text between two rows."""
        return ",\n" if self.format == "json" else ""

    def tail(self, printed: int) -> str:
        """Return the closing bracket of JSON; empty for other formats."""
        return ("\n]\n" if printed else "]\n") if self.format == "json" else ""

    def begin(self, form: Form) -> str:
        """Return the template of the columns before class and event."""
        del form
        if self.format == "csv":
            return "%d,%d,%d,%d,%d,"
        return '{"time_ns": %d, "time_cycles": %d, "cpu": %d, "pid": %d, "tid": %d, '

    def heads(self, batch: Batch, rows: NDArray[np.int64]) -> list[Head]:
        """Return the columns that fill the template of `begin`."""
        cycles = batch.time_cycles[rows]
        ns = Clock(self.source.cycles_per_s, self.start_cycles).ns_array(cycles)
        pid, tid = self.source.events.thread_ids()
        threads = batch.thread[rows]
        return [Head(column) for column in (ns, cycles, batch.cpu[rows], pid[threads], tid[threads])]

    def form(self, spec: EventSpec, count: int, variant: int) -> Form | None:
        """Return the template of class, event and arguments for a kind of event."""
        pairs = [*self._pairs(spec, count, variant), *self._described(spec.code, count)]
        all_columns = tuple(column for _, _, filled in pairs for column in filled)
        if self.format == "csv":
            arguments = " ".join(f"{name}={template}" for name, template, _ in pairs)
            return Form(f'{spec.class_name},{spec.name},"{arguments}"\n', all_columns)
        arguments = ", ".join(f"{_quoted(name)}: {template}" for name, template, _ in _named_apart(pairs))
        end = "\n" if self.format == "jsonl" else ""
        return Form(
            f'"class": "{spec.class_name}", "event": "{spec.name}", "arguments": {{{arguments}}}}}{end}', all_columns
        )

    def _pairs(self, spec: EventSpec, count: int, variant: int) -> list[Pair]:
        if variant in FAILURES:
            return self._failed(count, ERRNO_WORD.get(variant))
        if spec.class_name in _USER_CLASSES:
            return self._user(count)
        layout = None if variant == DOUBTFUL else printed_layout(self.source.release, spec.code, count, variant)
        return self._raw(0, count) if layout is None else self._listed(layout, count)

    def _described(self, code: int, count: int) -> Iterator[Pair]:
        event = self.described.get(code)
        for index, user_field in enumerate(event.fields if event is not None else ()):
            assert event is not None
            column = self._escaped(forms.fields_column(event, count, index))
            yield user_field.label or f"field {index}", self._text(), [column]

    def _failed(self, count: int, errno_word: int | None) -> list[Pair]:
        returned: Pair = ("ret_val", "-1", [])
        if errno_word is None:
            return [returned, *self._raw(2, count)]
        name_of = self.source.catalogue.errno_name
        return [
            returned,
            ("errno", "%d", [forms.signed(errno_word)]),
            ("errno_name", self._text(), [self._escaped(_errno_column(name_of, errno_word))]),
        ]

    def _listed(self, layout: Layout, count: int) -> list[Pair]:
        pairs: list[Pair] = []
        for index, part in enumerate(layout.parts):
            if part.show is Show.STRUCT:
                return pairs + self._raw(part.word, count)
            if part.is_text:
                pairs.append((part.name, self._text(), [self._escaped(forms.texts(part, plain_text))]))
            elif part.is_signed:
                pairs.append((part.name, "%d", [forms.number(part)]))
            else:
                pairs.append(self._hexadecimal(part))
                if part.show is Show.MSG:
                    text = forms.message(part.word, layout.message_words(index))
                    pairs.append((f"{part.name}.text", self._text(), [self._escaped(text)]))
        return pairs

    def _hexadecimal(self, part: PayloadPart) -> Pair:
        digits = "0x%016x" if part.words == 2 else "0x%08x"
        return part.name, digits if self.format == "csv" else f'"{digits}"', [forms.number(part)]

    def _words(self, name: str, start: int, count: int) -> list[Pair]:
        return [self._hexadecimal(PayloadPart(f"{name}{index}", index, 1, Show.HEX)) for index in range(start, count)]

    def _raw(self, start: int, count: int) -> list[Pair]:
        return self._words("word ", start, count)

    def _user(self, count: int) -> list[Pair]:
        words = self._words("d", 0, count)
        if count <= 2:
            return words
        return [("text", self._text(), [self._escaped(TemplateColumn(_user_text))]), *words]

    def _text(self) -> str:
        return '""%s""' if self.format == "csv" else "%s"

    def _escaped(self, column: TemplateColumn) -> TemplateColumn:
        """Return a column of texts, escaped for use between the quotes of the format."""
        is_csv = self.format == "csv"
        escape = _csv_text if is_csv else partial(json.dumps, ensure_ascii=False)
        field = column.field
        if field is not None:
            field = field._replace(flags=field.flags | (printing.FOR_CSV if is_csv else printing.FOR_JSON))
        return TemplateColumn(lambda group: [escape(text) for text in column(group)], field)


def _csv_text(text: str) -> str:
    return visible_line(text).replace('"', '""')


def _quoted(name: str) -> str:
    return json.dumps(name).replace("%", "%%")


def _named_apart(pairs: list[Pair]) -> list[Pair]:
    """Return the pairs with unique names, as JSON objects have one value per name: a repeated name gets a number."""
    seen: dict[str, int] = {}
    apart = []
    for name, template, filled in pairs:
        seen[name] = seen.get(name, 0) + 1
        apart.append((name if seen[name] == 1 else f"{name}_{seen[name]}", template, filled))
    return apart


def _errno_column(name_of: Callable[[int], str | None], word: int) -> TemplateColumn:
    return TemplateColumn(lambda group: [name_of(number) or "" for number in forms.signed(word)(group)])


def _user_text(group: EventGroup) -> list[str]:
    raw = group.raw(0, group.words.shape[1])
    return [plain_text(bytes(row)) for row in raw]
