"""Arguments of many events as columns by name, for all releases, modes and widths."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from satview.answers.frames import ColumnsByName, Frames, Partial, Texts, Values, arrow_array, html_rows
from satview.base.errors import UsageError
from satview.base.plugins import required
from satview.base.safe_text import visible_line
from satview.events.catalogue import Catalogue
from satview.events.layout import PayloadPart, arguments_of, one_spelling, text_name
from satview.events.spec import Show
from satview.events.wire import CODE_COUNT
from satview.linkage.rows import rows_of_codes
from satview.store.arguments import EVENTS_AT_ONCE, Arguments, Piece, Rows, all_arguments, argument_pieces, taught
from satview.store.axis import files_of
from satview.store.trace import Trace
from satview.tables.schema import SCHEMAS, views

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN_ROWS: Final = 10
_OWN: Final = ("event", "time_cycles", "time_ns", "cpu", "thread")
_CLASSES: Final = {"KER_CALL": "call", "KER_EXIT": "exit", "USREVENT": "user"}  # shorter names in names of tables


def kinds(trace: Trace) -> dict[str, tuple[int, ...]]:
    """Return the codes of the events in each argument table of a trace, by the table's name; cached with the trace.

    There is a table for each kind of event that the release of the trace defines or that the trace contains. The
    table's name is class and name of the event in lower case, such as `thread_thready`; `call_msg_sendv` and
    `exit_msg_sendv` for kernel calls, `user_100` for user events. The 64-bit form of an event has the same table.
    """
    return trace.cached("tables.kinds", _kinds)


def _kinds(trace: Trace) -> dict[str, tuple[int, ...]]:
    return kinds_of(trace.catalogue, np.flatnonzero(trace.code_counts).tolist())


def kinds_of(book: Catalogue, more: Iterable[int] = ()) -> dict[str, tuple[int, ...]]:
    """Return the codes in each argument table, as `kinds` does, for all events of a catalogue and further codes."""
    known, name_of = dict[str, list[int]](), dict[tuple[str, str], str]()
    for code in sorted({*book.codes(), *more}):
        spec = book.spec(code)
        event = (spec.class_name, spec.name.removesuffix("_64") if spec.is_64bit else spec.name)
        if event not in name_of:
            name = plain = _kind_name(*event)
            while name in known or name in SCHEMAS or name in views():
                name = f"{plain}_{len(known)}"
            name_of[event] = name
        known.setdefault(name_of[event], []).append(code)
    return {name: tuple(codes) for name, codes in known.items()}


def _kind_name(class_name: str, name: str) -> str:
    shown_class = _CLASSES.get(class_name, class_name)
    name = name.removeprefix("EVENT ") if shown_class == "user" else name
    plain = re.sub(r"[^a-z0-9]+", "_", f"{shown_class}_{name}".lower()).strip("_")
    return plain if plain[:1].isalpha() else f"event_{plain}"


def kind_rows(trace: Trace) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the word `table` and a description for each argument table that has rows, for `show tables`."""
    for name, codes in kinds(trace).items():
        if count := int(trace.code_counts[list(codes)].sum()):
            spec = trace.catalogue.spec(codes[0])
            yield name, "table", f"{count:,} events {spec.class_name} {spec.name}, arguments as columns"


def argument_table(trace: Trace, name: str, selected: Rows | None = None) -> ArgumentTable:
    """Return a table of the events with a name, which has their arguments as columns.

    Args:
        trace: The trace.
        name: Name as for `Trace.iter_events`: `MSG_SENDV`, `KER_EXIT/MSG_SENDV`, `SND_MESSAGE`; the name of a kernel
            call alone means its entries, in both widths. Or the name of an argument table, such as `call_msg_sendv`.
        selected: (n,), ascending rows of the event table to which the result is restricted; None = all.

    Raises:
        UsageError: No event of the release has that name.
    """
    book = trace.catalogue
    codes = book.find(name)
    if codes:
        entries = tuple(code for code in codes if book.class_name(code) == "KER_CALL")
        return ArgumentTable(trace, name, entries or codes, selected)
    if name.lower() in kinds(trace):
        return ArgumentTable(trace, name, kinds(trace)[name.lower()], selected)
    near = ", ".join(book.suggest(name))
    raise UsageError(f"{name[:40]!r} is no event of {book.release}{f'; there are {near}' if near else ''}")


def _listed_arguments(trace: Trace, codes: Sequence[int]) -> Iterator[PayloadPart]:
    """Yield the arguments that events with these codes can have; with several files, by the release of each file."""
    axis = files_of(trace)
    files = [(trace, codes)] if axis is None else [
        (file.trace, np.flatnonzero(np.isin(file.codes, codes)).tolist()) for file in axis.parts
    ]  # fmt: skip
    for own, own_codes in files:
        for code in own_codes:
            parts = arguments_of(own.release, code, taught(own))
            for part in parts:
                yield part
                if part.texts:
                    yield replace(part, name=text_name(part, parts), words=0, show=Show.STRING, texts=())


def _as_columns(arguments: Arguments) -> Arguments:
    """Return arguments by unique column names; case does not distinguish names, as in SQL."""
    named: Arguments = {}
    taken = {*_OWN}
    for argument, values in arguments.items():
        name = plain = f"arg_{argument}" if argument.lower() in _OWN else argument
        number = 1
        while name.lower() in taken:
            number += 1
            name = f"{plain}_{number}"
        taken.add(name.lower())
        named[name] = values
    return named


class ArgumentTable(Frames):
    """Events of one kind and their arguments; every column has shape (n,).

        sent = trace.arguments("MSG_SENDV")
        sent.columns                       # event, time_cycles, time_ns, cpu, thread, coid, ...
        sent["coid"], sent.known("coid")   # int64 (n,), and bool (n,): the event has it

    Attributes:
        name: The requested name.
        columns: Row of the event table, times, CPU and thread as in the table `event`; then the arguments. An argument
            with one of the first names gets the prefix `arg_`.
    """

    def __init__(self, trace: Trace, name: str, codes: Sequence[int], selected: Rows | None = None) -> None:
        self._trace, self.name, self._codes = trace, name, codes
        rows: Rows = rows_of_codes(trace, *codes)
        self._rows = rows if selected is None else np.intersect1d(rows, selected, assume_unique=True)
        arguments = all_arguments(trace, self._rows)
        spelt = {one_spelling(argument) for argument in arguments}
        for part in _listed_arguments(trace, codes):
            if one_spelling(part.name) not in spelt:
                empty = np.zeros(len(self._rows), np.int64)
                arguments[part.name] = (
                    (empty.astype(np.uint32), ("",)) if part.is_text else empty, np.zeros(len(self._rows), np.bool_)
                )  # fmt: skip
        self._arguments = _as_columns(arguments)
        self._columns: tuple[str, ...] = (*_OWN, *self._arguments)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<ArgumentTable {visible_line(self.name)}: {len(self):,} events, {', '.join(self._arguments)}>"

    def _repr_html_(self) -> str:
        """Return the first rows as HTML for notebooks."""
        shown = ArgumentTable(self._trace, self.name, self._codes, self._rows[:_SHOWN_ROWS])
        parts = [shown._or_none(name) for name in shown.columns]
        return html_rows(shown.columns, zip(*parts, strict=True), f"{len(self):,} events")

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return one column as a numpy array: int64 (n,), texts as objects.

        Decimal arguments are signed, others unsigned; 64-bit values from 2^63 on are negative, with the same bits.
        Arguments that an event does not have are 0 or empty text; `known` tells which.

        Raises:
            UsageError: There is no such column.
        """
        values = self._values(name)
        return values if isinstance(values, np.ndarray) else values.numpy()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return self._columns

    def known(self, name: str) -> NDArray[np.bool_]:
        """Return for each event whether it has an argument, bool (n,)."""
        if name in _OWN:
            return np.ones(len(self), np.bool_)
        self._values(name)
        return self._arguments[name][1]

    def arrow(self) -> pa.Table:
        """Return the columns as an Arrow table; arguments that an event does not have are null.

        Raises:
            UsageError: The package pyarrow is not installed.
        """
        arrays = {
            name: arrow_array(self._values(name), is_nullable=name not in _OWN, known=self.known(name))
            for name in self.columns
        }
        return required("pyarrow").table(arrays)

    def _or_none(self, name: str) -> list[Any]:
        """Return the values of a column, None where the event does not have the argument."""
        pairs = zip(self[name].tolist(), self.known(name).tolist(), strict=True)
        return [value if is_known else None for value, is_known in pairs]

    def _values(self, name: str) -> Values:
        events, rows = self._trace.events, self._rows
        if name in self._arguments:
            values = self._arguments[name][0]
            return Texts(*values) if isinstance(values, tuple) else values
        if name not in _OWN:
            raise UsageError(f"{self.name} has no argument {name[:40]!r}; it has {', '.join(self._arguments)}")
        if name == "event":
            return rows
        if name == "time_ns":
            return self._trace.clock.ns_array(events.time_cycles[rows])
        column: NDArray[Any] = getattr(events, name)[rows]
        return column


# ---- the table `argument`, with one argument per row -----------------------------------------------------------------


def argument_chunks(trace: Trace, rows: Rows | None = None) -> Iterator[ColumnsByName]:
    """Yield the columns of the table `argument`, except those in nanoseconds, for one chunk of events after another.

    Args:
        trace: The trace.
        rows: (n,), rows of the events, ascending; None = all.
    """
    book = kinds(trace)
    kind_of_code = np.zeros(CODE_COUNT, np.uint16)
    for number, codes in enumerate(book.values()):
        kind_of_code[list(codes)] = number
    number_of: dict[str, int] = {}
    count = len(trace.events) if rows is None else len(rows)
    for start in range(0, max(count, 1), EVENTS_AT_ONCE):
        stop = min(start + EVENTS_AT_ONCE, count)
        part = np.arange(start, stop, dtype=np.uint32) if rows is None else rows[start:stop]
        columns = _one_a_row(list(chain.from_iterable(argument_pieces(trace, part))), len(part), number_of)
        event = np.repeat(part.astype(np.uint32), columns.pop("counts"))
        yield {
            "event": event,
            "time_cycles": trace.events.time_cycles[event],
            "kind": Texts(kind_of_code.take(trace.events.code[event]), tuple(book)),
            **columns,
        }  # fmt: skip


def _one_a_row(pieces: list[Piece], events: int, number_of: dict[str, int]) -> dict[str, Any]:
    """Return columns with one argument per row, in order of events, and `counts`, the number of rows of each event.

    Args:
        pieces: The arguments of all events.
        events: Number of events.
        number_of: Number of each argument name; new names are added.
    """
    counts = np.zeros(events, np.int64)
    for piece in pieces:
        counts[piece.at] += 1
    row_of_event = np.cumsum(counts) - counts
    size = int(counts.sum())
    name, number = np.zeros(size, np.uint32), np.zeros(size, np.int64)
    is_text, text, text_number = np.zeros(size, np.bool_), np.zeros(size, np.uint32), {"": 0}  # numbers have no text
    for piece in pieces:
        rows = row_of_event[piece.at]
        row_of_event[piece.at] += 1
        name[rows] = number_of.setdefault(piece.name, len(number_of))
        if piece.texts is None:
            number[rows] = piece.values
        else:
            numbers = [text_number.setdefault(word, len(text_number)) for word in piece.texts]
            text[rows], is_text[rows] = np.array(numbers, np.uint32)[piece.values], True
    return {
        "counts": counts,
        "argument": Texts(name, tuple(number_of)),
        "number": Partial(number, ~is_text),
        "text": Partial(Texts(text, tuple(text_number)), is_text),
    }


def argument_columns(trace: Trace, rows: Rows | None = None) -> ColumnsByName:
    """Return all columns of the table `argument` at once, except those in nanoseconds; see `argument_chunks`."""
    chunks = [*argument_chunks(trace, rows)]
    return {name: _joined([chunk[name] for chunk in chunks]) for name in chunks[0]}


def _joined(parts: Sequence[Values]) -> Values:
    """Return columns joined into one."""
    partial = [part for part in parts if isinstance(part, Partial)]
    if partial:
        return Partial(
            cast("NDArray[Any] | Texts", _joined([part.values for part in partial])),
            np.concatenate([part.known for part in partial]),
        )
    texts = [part for part in parts if isinstance(part, Texts)]
    if not texts:
        return np.concatenate([cast("NDArray[Any]", part) for part in parts])
    number_of: dict[str, int] = {}
    numbers = [
        np.array([number_of.setdefault(text, len(number_of)) for text in part.texts], np.uint32)[part.code]
        for part in texts
    ]
    return Texts(np.concatenate(numbers), tuple(number_of))
