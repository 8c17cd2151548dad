"""Events as rows for other programs: CSV, JSON, JSON lines. The same lists and columns as the text listing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from satview.base.safe_text import visible_line
from satview.base.time import Clock
from satview.events.spec import EventSpec, Field, Show
from satview.export import listing_columns as columns
from satview.export.listing_columns import Column, Group
from satview.export.listing_forms import Form, pick_fields
from satview.formats.kev.batch import Batch
from satview.formats.source import Source

FORMATS = ("csv", "json", "jsonl")
CSV_HEAD = "time_ns,time_cycles,cpu,pid,tid,class,event,arguments\n"
_USER_CLASSES = ("USREVENT", "QUIP")
Pair = tuple[str, str, list[Column]]     # name, template of the value, its columns


@dataclass(slots=True)
class RecordRows:
    """Rows in one of `FORMATS`.

    A row has `time_ns` (since the first event), `time_cycles`, `cpu`, `pid` and `tid` (-1 where not known), `class`,
    `event` and `arguments`: an object in JSON, `name=value` pairs in CSV. Decimal arguments are numbers, all others
    text in hexadecimal.
    """

    source: Source
    format: str
    start_cycles: int = 0
    _has_rows: bool = field(default=False)

    def head(self, source: Source) -> Iterator[str]:  # noqa: ARG002  -- one signature for all outputs
        """Yield the column names, or the opening bracket."""
        yield {"csv": CSV_HEAD, "json": "[\n", "jsonl": ""}[self.format]

    def tail(self) -> Iterator[str]:
        """Yield the closing bracket."""
        if self.format == "json":
            yield "\n]\n" if self._has_rows else "]\n"

    def joined(self, lines: list[str]) -> str:
        """Return rows as one text."""
        if self.format != "json" or not lines:
            return "".join(lines)
        before, self._has_rows = ",\n" if self._has_rows else "", True
        return before + ",\n".join(lines)

    def common(self, batch: Batch, rows: NDArray[np.int64]) -> tuple[str, list[Sequence[Any]]]:
        """Return the columns that every row begins with."""
        cycles = batch.time_cycles[rows]
        ns = Clock(self.source.cycles_per_s, self.start_cycles).ns_array(cycles)
        pid, tid = self.source.events.thread_ids()
        threads = batch.thread[rows]
        values = [ns.tolist(), cycles.tolist(), batch.cpu[rows].tolist(), pid[threads].tolist(), tid[threads].tolist()]
        if self.format == "csv":
            return "%d,%d,%d,%d,%d,", values
        return '{"time_ns": %d, "time_cycles": %d, "cpu": %d, "pid": %d, "tid": %d, ', values

    def form(self, spec: EventSpec, count: int, *, is_failed: bool) -> Form | None:
        """Return class, event and arguments of a kind as a template."""
        pairs = self._pairs(spec, count, is_failed=is_failed)
        found = tuple(column for _, _, filled in pairs for column in filled)
        if self.format == "csv":
            arguments = " ".join(f"{name}={template}" for name, template, _ in pairs)
            return Form(f'{spec.class_name},{spec.name},"{arguments}"\n', found)
        arguments = ", ".join(f"{_quoted(name)}: {template}" for name, template, _ in _named_apart(pairs))
        end = "\n" if self.format == "jsonl" else ""
        return Form(f'"class": "{spec.class_name}", "event": "{spec.name}", "arguments": {{{arguments}}}}}{end}', found)

    def _pairs(self, spec: EventSpec, count: int, *, is_failed: bool) -> list[Pair]:
        if is_failed:
            names = self.source.catalogue
            return [("ret_val", "-1", []), ("errno", "%d", [columns.signed(1)]),
                    ("errno_name", self._text(), [self._escaped(_errno_column(names.errno_name))])]
        if spec.class_name in _USER_CLASSES:
            return self._user(count)
        fields = pick_fields(spec, count, self.source.catalogue)
        return self._raw(0, count) if fields is None else self._listed(fields, count)

    def _listed(self, fields: tuple[Field, ...], count: int) -> list[Pair]:
        pairs: list[Pair] = []
        at = 0
        for item in fields:
            if at >= count or at + item.words > count:
                break
            if item.show == Show.STRUCT:
                return pairs + self._raw(at, count)
            if item.show == Show.STRING:
                pairs.append((item.name, self._text(), [self._escaped(columns.texts(at, is_vendor=False))]))
                break
            if item.show == Show.DEC:
                column = columns.signed64(at) if item.words == 2 else columns.signed(at)
                pairs.append((item.name, "%d", [column]))
            else:
                pairs.append(self._hexadecimal(item.name, at, item.words))
                if item.show == Show.MSG:
                    more = sum(1 for other in fields if other.show == Show.MSG_MORE)
                    text = columns.message(at, min(1 + more, count - at))
                    pairs.append((f"{item.name}.text", self._text(), [self._escaped(text)]))
            at += item.words
        return pairs

    def _hexadecimal(self, name: str, at: int, words: int) -> Pair:
        digits = "0x%016x" if words == 2 else "0x%08x"
        column = columns.unsigned64(at) if words == 2 else columns.unsigned(at)
        return name, digits if self.format == "csv" else f'"{digits}"', [column]

    def _raw(self, first: int, count: int) -> list[Pair]:
        return [self._hexadecimal(f"word {index}", index, 1) for index in range(first, count)]

    def _user(self, count: int) -> list[Pair]:
        words = [self._hexadecimal(f"d{index}", index, 1) for index in range(count)]
        if count <= 2:
            return words
        return [("text", self._text(), [self._escaped(_user_text)]), *words]

    def _text(self) -> str:
        return '""%s""' if self.format == "csv" else "%s"

    def _escaped(self, column: Column) -> Column:
        """Return a column of texts as the format wants them between its quotes."""
        if self.format == "csv":
            return lambda group: [_csv_text(text) for text in column(group)]
        return lambda group: [json.dumps(text, ensure_ascii=False) for text in column(group)]


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


def _errno_column(name_of: Callable[[int], str | None]) -> Column:
    return lambda group: [name_of(number) or "" for number in columns.signed(1)(group)]


def _user_text(group: Group) -> list[str]:
    raw = group.raw(0, group.words.shape[1])
    return [columns.plain_text(bytes(row)) for row in raw]
