"""Events as rows for other programs: CSV, JSON, JSON lines. The same lists and columns as the text listing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from satview.base.safe_text import visible_line
from satview.base.time import Clock
from satview.core import printing
from satview.events.layout import Layout, Part, printed_layout
from satview.events.spec import EventSpec, Show
from satview.events.user_events import UserEvent
from satview.events.variants import DOUBTFUL, ERRNO_WORD, FAILURES
from satview.export import listing_columns as columns
from satview.export.listing_columns import Column, Group
from satview.export.listing_forms import Form
from satview.export.listing_lines import Head
from satview.formats.kev.notation import plain_text
from satview.formats.kev.slots.batch import Batch
from satview.formats.source import Source

FORMATS = ("csv", "json", "jsonl")
CSV_HEAD = "time_ns,time_cycles,cpu,pid,tid,class,event,arguments\n"
_USER_CLASSES = ("USREVENT", "QUIP")
Pair = tuple[str, str, list[Column]]  # name, template of the value, its columns


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

    source: Source
    format: str
    start_cycles: int = 0
    described: Mapping[int, UserEvent] = field(default_factory=dict)

    def head(self, source: Source) -> Iterator[str]:  # noqa: ARG002  -- one signature for all outputs
        """Yield the column names, or the opening bracket."""
        yield {"csv": CSV_HEAD, "json": "[\n", "jsonl": ""}[self.format]

    @property
    def minus_one_fails(self) -> bool:
        """Only what is known to have failed is shown so."""
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
        found = tuple(column for _, _, filled in pairs for column in filled)
        if self.format == "csv":
            arguments = " ".join(f"{name}={template}" for name, template, _ in pairs)
            return Form(f'{spec.class_name},{spec.name},"{arguments}"\n', found)
        arguments = ", ".join(f"{_quoted(name)}: {template}" for name, template, _ in _named_apart(pairs))
        end = "\n" if self.format == "jsonl" else ""
        return Form(f'"class": "{spec.class_name}", "event": "{spec.name}", "arguments": {{{arguments}}}}}{end}', found)

    def _pairs(self, spec: EventSpec, count: int, variant: int) -> list[Pair]:
        if variant in FAILURES:
            return self._failed(count, ERRNO_WORD.get(variant))
        if spec.class_name in _USER_CLASSES:
            return self._user(count)
        layout = None if variant == DOUBTFUL else printed_layout(self.source.release, spec.code, count, variant)
        return self._raw(0, count) if layout is None else self._listed(layout, count)

    def _described(self, code: int, count: int) -> Iterator[Pair]:
        event = self.described.get(code)
        for index, each in enumerate(event.fields if event is not None else ()):
            assert event is not None
            column = self._escaped(columns.fields_column(event, count, index))
            yield each.label or f"field {index}", self._text(), [column]

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

    def _hexadecimal(self, part: Part) -> Pair:
        digits = "0x%016x" if part.words == 2 else "0x%08x"
        return part.name, digits if self.format == "csv" else f'"{digits}"', [columns.number(part)]

    def _words(self, name: str, first: int, count: int) -> list[Pair]:
        return [self._hexadecimal(Part(f"{name}{index}", index, 1, Show.HEX)) for index in range(first, count)]

    def _raw(self, first: int, count: int) -> list[Pair]:
        return self._words("word ", first, count)

    def _user(self, count: int) -> list[Pair]:
        words = self._words("d", 0, count)
        if count <= 2:
            return words
        return [("text", self._text(), [self._escaped(Column(_user_text))]), *words]

    def _text(self) -> str:
        return '""%s""' if self.format == "csv" else "%s"

    def _escaped(self, column: Column) -> Column:
        """Return a column of texts as the format needs them between its quotes."""
        is_csv = self.format == "csv"
        escape = _csv_text if is_csv else partial(json.dumps, ensure_ascii=False)
        field = column.field
        if field is not None:
            field = field._replace(flags=field.flags | (printing.FOR_CSV if is_csv else printing.FOR_JSON))
        return Column(lambda group: [escape(text) for text in column(group)], field)


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


def _errno_column(name_of: Callable[[int], str | None], word: int) -> Column:
    return Column(lambda group: [name_of(number) or "" for number in columns.signed(word)(group)])


def _user_text(group: Group) -> list[str]:
    raw = group.raw(0, group.words.shape[1])
    return [plain_text(bytes(row)) for row in raw]
