"""Slices, moments and counters of tracks, as packets for Perfetto, and which part of a trace they are of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.answers.frames import Texts
from satview.base.column_arrays import ColumnTable
from satview.base.time import TimeWindow
from satview.export import protobuf
from satview.export.protobuf import Block, message, nested, number, text
from satview.store.trace import Trace
from satview.tables.table import Table

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
_CHUNK: Final = 1 << 15  # messages made at once
_SEQUENCE: Final = 1
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4  # TrackEvent.Type
_NAME, _NUMBER, _TEXT = 10, 4, 6  # of DebugAnnotation


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a trace.

    Attributes:
        trace: The trace.
        window: Only what is in it; what reaches beyond is cut there.
        events: bool (events,), only what one of these events begins; None = everything.
    """

    trace: Trace
    window: TimeWindow
    events: Bools | None = None

    def shows(self, start_cycles: Ints, end_cycles: Ints, event: Ints) -> Bools:
        """Return what is in the part, bool (n,).

        Args:
            start_cycles: int64 (n,).
            end_cycles: int64 (n,); the same for a moment.
            event: int64 (n,), rows of the events that begin it; -1 = none does.
        """
        inside = (start_cycles < self.window.end) & (np.maximum(end_cycles, start_cycles + 1) > self.window.start)
        return inside if self.events is None else inside & (event >= 0) & self.events[event]

    def ns(self, cycles: Ints) -> Ints:
        """Return times in nanoseconds since the start of the trace, those outside of the window cut to it."""
        return self.trace.clock.ns_array(np.clip(cycles, self.window.start, self.window.end))


@dataclass(frozen=True, slots=True)
class Arguments:
    """A value of each of some slices: whole numbers, -1 for none, or texts, the empty one for none."""

    name: str
    values: Ints | Texts

    def taken(self, rows: NDArray[Any]) -> Arguments:
        """Return those of some slices."""
        values = self.values
        return replace(
            self, values=Texts(values.code[rows], values.texts) if isinstance(values, Texts) else values[rows]
        )

    def block(self) -> Block:
        """Return the field of track events."""
        values, zeros = self.values, np.zeros(len(self.values), np.int64)
        name = text(_NAME, zeros, [self.name])
        if isinstance(values, Texts):
            is_there = np.array([bool(value) for value in values.texts] or [False])[values.code]
            return nested(4, message(name, text(_TEXT, values.code, values.texts))).where(is_there)
        return nested(4, message(name, number(_NUMBER, values))).where(values != -1)


@dataclass(frozen=True, slots=True)
class Slices(ColumnTable):
    """Slices of tracks and moments on them, (n,) each; those of one track do not cross.

    Attributes:
        track: int64, uuid.
        start_cycles, end_cycles: int64; equal for a moment.
        event: int64, row of the event that begins it; -1 = none does.
        name: What they are called.
        flow: int64, what arrows between slices have in common; 0 = none.
    """

    track: Ints
    start_cycles: Ints
    end_cycles: Ints
    event: Ints
    name: Texts
    flow: Ints

    def taken(self, rows: NDArray[Any] | slice) -> Slices:
        """Return some rows."""
        name = Texts(self.name.code[rows], self.name.texts)
        return Slices(self.track[rows], self.start_cycles[rows], self.end_cycles[rows], self.event[rows], name,
                      self.flow[rows])  # fmt: skip


def uuid_of(kind: int, row: Ints | int) -> Ints:
    """Return the identifier of tracks of a kind."""
    return np.asarray(np.int64(kind) << 32 | row, np.int64)


def in_chunks(count: int) -> Iterator[slice]:
    """Yield ranges of rows that are made into messages at once."""
    for start in range(0, count, _CHUNK):
        yield slice(start, min(start + _CHUNK, count))


def sequenced(*fields: Block) -> Block:
    """Return packets of some fields, all of one sequence."""
    return message(*fields, number(10, np.full(len(fields[0]), _SEQUENCE)))


def text_of(field: int, found: Table, name: str, rows: NDArray[Any] | slice = slice(None)) -> Block:
    """Return a field with a column of texts of a table."""
    values = texts(found, name)
    return text(field, values.code[rows], values.texts)


def texts(found: Table, name: str) -> Texts:
    """Return a column of texts of a table."""
    values = found.values(found.schema.column(name))
    assert isinstance(values, Texts)
    return values


def slice_packets(part: Part, slices: Slices, category: str, arguments: tuple[Arguments, ...] = ()) -> Iterator[Block]:
    """Yield begins, ends and moments in time order; of one moment ends come first, inner before outer.

    Args:
        part: What to write of them.
        slices: The slices.
        category: Of all.
        arguments: What else is known of each.
    """
    slot = np.flatnonzero(part.shows(slices.start_cycles, slices.end_cycles, slices.event))
    start, end = part.ns(slices.start_cycles[slot]), part.ns(slices.end_cycles[slot])
    is_long, count = end > start, len(slot)
    time = np.concatenate((start, end[is_long]))
    kind = np.concatenate((np.where(is_long, _BEGIN, _INSTANT), np.full(int(is_long.sum()), _END)))
    row = np.concatenate((slot, slot[is_long]))
    length = np.concatenate((end - start, start[is_long] - end[is_long]))
    at_end = np.arange(len(row)) >= count
    # Of what begins at one moment the longest is outside; what began last ends first.
    order = np.lexsort((np.where(at_end, -row, row), np.where(at_end, -length, -length), ~at_end, time))
    for rows in in_chunks(len(order)):
        at = order[rows]
        part_of, kinds = row[at], kind[at]
        begins = kinds != _END
        flow = slices.flow[part_of]
        fields = [
            number(9, kinds),
            number(11, slices.track[part_of]),
            text(22, np.zeros(len(at), np.int64), [category]).where(begins),
            text(23, slices.name.code[part_of], slices.name.texts).where(begins),
            *(argument.taken(part_of).block().where(begins) for argument in arguments),
            protobuf.fixed64(47, flow).where(begins & (flow > 0)),
        ]
        yield track_events(time[at], message(*fields))


def counter_packets(part: Part, track: Ints, cycles: Ints, values: NDArray[np.float64]) -> Iterator[Block]:
    """Yield what counters show from some times on, (n,) each; without what is not known (NaN) or stays the same."""
    same = np.append(False, (values[1:] == values[:-1]) & (track[1:] == track[:-1]))[: len(values)]
    at = np.flatnonzero(~np.isnan(values) & ~same)
    time = part.ns(cycles[at])
    for rows in in_chunks(len(at)):
        number_of = values[at[rows]].astype("<f8").view(np.int64)
        yield track_events(
            time[rows],
            message(number(9, np.full(len(number_of), _COUNTER)), number(11, track[at[rows]]),
                    protobuf.fixed64(44, number_of)),
        )  # fmt: skip


def track_events(time_ns: Ints, event: Block) -> Block:
    """Return packets of track events."""
    return sequenced(number(8, time_ns), nested(11, event))


def overlaps(owner: Ints, start: Ints, end: Ints) -> Bools:
    """Return which intervals begin before one of the same owner that began earlier has ended, bool (n,).

    Args:
        owner: int64 (n,), ascending.
        start: int64 (n,), ascending for each owner.
        end: int64 (n,).
    """
    if not len(owner):
        return np.zeros(0, np.bool_)
    span = int(end.max() - start.min()) + 2
    number_of = np.cumsum(np.append(False, owner[1:] != owner[:-1])) * span
    latest = np.maximum.accumulate(end - start.min() + number_of)
    return np.append(False, (start - start.min() + number_of)[1:] < latest[:-1])
