"""Prints the lines of events by the compiled core."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from satview.base.safe_text import visible_line
from satview.base.time import Clock
from satview.core import printing
from satview.core.printing import LineField
from satview.events import wire
from satview.events.layout import Layout, PayloadPart, printed_layout
from satview.events.spec import EventSpec, Show
from satview.events.user_events import UserEvent
from satview.events.variants import DOUBTFUL, ERRNO_WORD, EXITS, FAILED_FOR_VENDOR, FAILURES, MINUS_ONE, variants
from satview.export import listing_columns as columns
from satview.export.listing_columns import EventGroup, TemplateColumn
from satview.export.listing_forms import Form
from satview.formats.kev.notation import plain_text
from satview.formats.kev.stream import Batch
from satview.formats.source import TraceSource

_CONVERSION: Final = re.compile(r"%(?:%|(0?)(\d*)([dxs])|.|$)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Head:
    """A column of values with which every line begins.

    Attributes:
        values: int64, uint64 or smaller (n,): numbers, or positions among the texts.
        texts: None for numbers.
    """

    values: NDArray[np.integer]
    texts: Sequence[str] | None = None

    def of(self, members: NDArray[np.intp]) -> list[Any]:
        """Return the printed values of some events."""
        values: list[Any] = self.values[members].tolist()
        return values if self.texts is None else [self.texts[value] for value in values]


class Rows(Protocol):
    """Writes the events of one kind as rows of text; one per output format.

    Attributes:
        start_cycles: Time of the first event, from which relative times count; set before the first row.
    """

    start_cycles: int

    @property
    def separator(self) -> str:
        """The text between two lines."""

    @property
    def minus_one_fails(self) -> bool:
        """Whether every exit that begins with -1 is printed as that of a failed call, however long it is."""

    def head(self, source: TraceSource) -> Iterator[str]:
        """Yield what comes before the first event."""

    def form(self, spec: EventSpec, count: int, variant: int) -> Form | None:
        """Return the template of a kind of event, behind the common columns; None if it is not printed.

        Args:
            spec: The kind.
            count: Payload words.
            variant: What the words say of their layout, see `events.variants`.
        """

    def begin(self, form: Form) -> str:
        """Return the template of the common columns with which every line of a form begins."""

    def heads(self, batch: Batch, rows: NDArray[np.int64]) -> list[Head]:
        """Return the columns that fill the template of `begin`, the same for all forms."""

    def tail(self, printed: int) -> str:
        """Return what comes after the last event.

        Args:
            printed: How many lines there are.
        """


@dataclass(frozen=True, slots=True)
class Lines:
    """The text of some events, UTF-8.

    Attributes:
        text: One after the other, each with the separator before it.
        ends: int64 (n,), where each ends; those that are not printed have no bytes.
        printed: How many are printed.
    """

    text: bytes | memoryview
    ends: NDArray[np.int64]
    printed: int

    def split(self) -> list[bytes]:
        """Return the lines one by one."""
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
    """Return the lines of events of one kind."""
    values = [*heads, *(column(group) for column in columns)]
    # One `%` for the whole group; no text holds a NUL, so it parts the lines again.
    text = (f"{template}\0" * len(group.words)) % tuple(chain.from_iterable(zip(*values, strict=True)))
    return text.encode("utf-8", "surrogateescape").split(b"\0")[:-1]


@dataclass(frozen=True, slots=True)
class _Texts:
    """A form with texts that Python makes instead of the core.

    Attributes:
        count: Payload words.
        columns: What makes them, one text of each line each.
        template: Of whole lines, where the core cannot print them; then `columns` fill it and a line is one text.
    """

    count: int
    columns: tuple[TemplateColumn, ...]
    template: str | None = None


class CoreLines:
    """Prints by the compiled core; Python only makes those texts that it cannot.

    Args:
        source: What is printed.
        rows: The output format.
    """

    def __init__(self, source: TraceSource, rows: Rows) -> None:
        self._source, self._rows = source, rows
        self._forms = printing.Forms()
        self._printer = printing.LinePrinter(self._forms)
        self._texts: dict[int, _Texts] = {}

    def begin(self, batch: Batch, rows: NDArray[np.int64]) -> Callable[[], Lines]:
        """Return a function that prints some events of a batch in the core, without the interpreter's lock."""
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
        """Make the form of a kind of event; return its number, -1 if it is not printed."""
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
        """Return the texts that Python makes, and int64 (rows,), the number of the first one of each line."""
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
    """Return the columns of heads as the core takes them: int64 (columns, count), and all their texts."""
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
    """Return a number as a conversion shows it."""
    flags = field.flags | (printing.HEXADECIMAL if conversion[3] == "x" else 0)
    return field._replace(flags=flags | (printing.ZEROS if conversion[1] else 0), width=int(conversion[2] or 0))


def _conversions(template: str) -> int:
    return sum(conversion[0] != "%%" for conversion in _CONVERSION.finditer(template))


# Events as rows for other programs: CSV, JSON, JSON lines. The same lists and columns as the text listing.


FORMATS = ("csv", "json", "jsonl")
CSV_HEAD = "time_ns,time_cycles,cpu,pid,tid,class,event,arguments\n"
_USER_CLASSES = ("USREVENT", "QUIP")
Pair = tuple[str, str, list[TemplateColumn]]  # name, template of the value, its columns


@dataclass(slots=True)
class RecordRows:
    """Rows in one of `FORMATS`.

    A row has `time_ns` (since the first event), `time_cycles`, `cpu`, `pid` and `tid` (-1 where not known), `class`,
    `event` and `arguments`: an object in JSON, `name=value` pairs in CSV. Decimal arguments are numbers, all others
    text in hexadecimal.

    Attributes:
        source: What is printed.
        format: One of `FORMATS`.
        start_cycles: Time of the first event.
        described: What a file says of events, by code: its fields are arguments too, as text.
    """

    source: TraceSource
    format: str
    start_cycles: int = 0
    described: Mapping[int, UserEvent] = field(default_factory=dict)

    def head(self, source: TraceSource) -> Iterator[str]:  # noqa: ARG002  -- one signature for all outputs
        """Yield the column names, or the opening bracket."""
        yield {"csv": CSV_HEAD, "json": "[\n", "jsonl": ""}[self.format]

    @property
    def minus_one_fails(self) -> bool:
        """False: only exits that are known to have failed are shown as failures."""
        return False

    @property
    def separator(self) -> str:
        """The text between two rows."""
        return ",\n" if self.format == "json" else ""

    def tail(self, printed: int) -> str:
        """Return the closing bracket."""
        return ("\n]\n" if printed else "]\n") if self.format == "json" else ""

    def begin(self, form: Form) -> str:
        """Return the template of the columns that every row begins with."""
        del form
        if self.format == "csv":
            return "%d,%d,%d,%d,%d,"
        return '{"time_ns": %d, "time_cycles": %d, "cpu": %d, "pid": %d, "tid": %d, '

    def heads(self, batch: Batch, rows: NDArray[np.int64]) -> list[Head]:
        """Return these columns."""
        cycles = batch.time_cycles[rows]
        ns = Clock(self.source.cycles_per_s, self.start_cycles).ns_array(cycles)
        pid, tid = self.source.events.thread_ids()
        threads = batch.thread[rows]
        return [Head(column) for column in (ns, cycles, batch.cpu[rows], pid[threads], tid[threads])]

    def form(self, spec: EventSpec, count: int, variant: int) -> Form | None:
        """Return class, event and arguments of a kind as a template."""
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
            column = self._escaped(columns.fields_column(event, count, index))
            yield user_field.label or f"field {index}", self._text(), [column]

    def _failed(self, count: int, errno_word: int | None) -> list[Pair]:
        returned: Pair = ("ret_val", "-1", [])
        if errno_word is None:
            return [returned, *self._raw(2, count)]
        name_of = self.source.catalogue.errno_name
        return [
            returned,
            ("errno", "%d", [columns.signed(errno_word)]),
            ("errno_name", self._text(), [self._escaped(_errno_column(name_of, errno_word))]),
        ]

    def _listed(self, layout: Layout, count: int) -> list[Pair]:
        pairs: list[Pair] = []
        for index, part in enumerate(layout.parts):
            if part.show is Show.STRUCT:
                return pairs + self._raw(part.word, count)
            if part.is_text:
                pairs.append((part.name, self._text(), [self._escaped(columns.texts(part, is_vendor=False))]))
            elif part.is_signed:
                pairs.append((part.name, "%d", [columns.number(part)]))
            else:
                pairs.append(self._hexadecimal(part))
                if part.show is Show.MSG:
                    text = columns.message(part.word, layout.message_words(index))
                    pairs.append((f"{part.name}.text", self._text(), [self._escaped(text)]))
        return pairs

    def _hexadecimal(self, part: PayloadPart) -> Pair:
        digits = "0x%016x" if part.words == 2 else "0x%08x"
        return part.name, digits if self.format == "csv" else f'"{digits}"', [columns.number(part)]

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
    """Return the pairs with names made unique: JSON objects keep one value per name."""
    seen: dict[str, int] = {}
    apart = []
    for name, template, filled in pairs:
        seen[name] = seen.get(name, 0) + 1
        apart.append((name if seen[name] == 1 else f"{name}_{seen[name]}", template, filled))
    return apart


def _errno_column(name_of: Callable[[int], str | None], word: int) -> TemplateColumn:
    return TemplateColumn(lambda group: [name_of(number) or "" for number in columns.signed(word)(group)])


def _user_text(group: EventGroup) -> list[str]:
    raw = group.raw(0, group.words.shape[1])
    return [plain_text(bytes(row)) for row in raw]
