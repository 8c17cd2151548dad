"""The table type for links between events, each a pair of rows of the event table, with searches by either event."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import IntEnum, StrEnum
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.core import links
from satview.core.links import stable_order

Rows = NDArray[np.integer]
Pairs = tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint8]]  # from_row, to_row, certainty; in any order
NO_EVENT: Final = 2**32 - 1  # instead of a row: there is no link
OPEN: Final = 2**32 - 2  # instead of the row that ends a link: the trace ends before it does


@dataclass(frozen=True, slots=True)
class ReadOnlyColumns:
    """Base of tables that are cached with a trace: makes all fields, which are arrays, read-only."""

    def __post_init__(self) -> None:
        for column in fields(self):
            getattr(self, column.name).setflags(write=False)


class LinkKind(StrEnum):
    """Kinds of links, by the events that they join."""

    CALL = "call"
    """A kernel call and its exit, or the interrupted form that ends it."""
    INTERRUPT = "interrupt"
    """The entry of an interrupt and its exit."""
    HANDLER = "handler"
    """The entry of an interrupt handler and its exit."""
    DISPATCH = "dispatch"
    """The entry of an interrupt and the entry of its first handler."""
    MESSAGE = "message"
    """A message that is sent and its receipt."""
    REPLY = "reply"
    """The receipt of a message and the reply or error that answers it."""
    ROUND_TRIP = "round trip"
    """A message that is sent and the end of the kernel call that sent it."""
    PULSE = "pulse"
    """A pulse that is sent and its receipt."""
    DELIVERY = "delivery"
    """An interrupt, timer expiry or kernel call and the pulse or signal that it delivers."""
    WAKE_UP = "wake-up"
    """The event that ended a thread's wait and the event that makes the thread ready, or running at once."""
    HOLD = "hold"
    """The kernel call by which a thread locks a mutex and its call that unlocks the mutex."""
    CREATION = "creation"
    """A kernel call and the thread or process that it creates."""
    STATE = "state"
    """The state that a thread enters and the thread's next change of state, or its creation or end."""


class Certainty(IntEnum):
    """How certain a link is; the higher the better."""

    GUESS = 1
    """One of several possibilities that the trace does not distinguish."""
    INFERRED = 2
    """The link follows from the order of events and from what the kernel does; no event names both ends."""
    EXACT = 3
    """The events name each other, or leave no other possibility."""


BRANCHING: Final = frozenset((LinkKind.WAKE_UP, LinkKind.DELIVERY, LinkKind.CREATION))
"""Kinds of links of which one event may begin several, as a broadcast wakes many threads."""


@dataclass(frozen=True, slots=True)
class Link:
    """One link between two rows of the event table; `to_row` is `OPEN` if the trace ends before the link does."""

    kind: LinkKind
    from_row: int
    to_row: int
    certainty: Certainty


@dataclass(frozen=True)
class LinkTable:
    """All links of one kind in a trace; every column has shape (n,) and is read-only.

    No event ends two links of a kind. Only links of the kinds in `BRANCHING` may share the event that begins them; they
    are then in the order of the events that end them.

    Attributes:
        kind: The kind of all links in the table.
        from_row: uint32, ascending, row of the event that begins each link.
        to_row: uint32, row of the event that ends each link; `OPEN` where the trace ends before the link does.
        certainty: uint8, `Certainty`.
    """

    kind: LinkKind
    from_row: NDArray[np.uint32]
    to_row: NDArray[np.uint32]
    certainty: NDArray[np.uint8]

    def __post_init__(self) -> None:
        for column in (self.from_row, self.to_row, self.certainty):
            if column.shape != self.from_row.shape:
                raise ValueError("columns of a link table differ in length")
            column.setflags(write=False)
        rises = self.from_row[1:] > self.from_row[:-1]
        if self.kind in BRANCHING:
            rises |= (self.from_row[1:] == self.from_row[:-1]) & (self.to_row[1:] > self.to_row[:-1])
        if not rises.all():
            raise ValueError("the rows that begin links do not ascend")

    @classmethod
    def of(cls, kind: LinkKind, pairs: Pairs) -> LinkTable:
        """Return the table of links given in any order."""
        from_row, to_row, certainty = pairs
        order = np.lexsort((to_row, from_row)) if kind in BRANCHING else stable_order(from_row)
        return cls(kind, from_row[order], to_row[order], certainty[order])

    def __len__(self) -> int:
        return len(self.from_row)

    def __iter__(self) -> Iterator[Link]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: int) -> Link:
        """Return one link."""
        certainty = Certainty(int(self.certainty[index]))
        return Link(self.kind, int(self.from_row[index]), int(self.to_row[index]), certainty)

    def begun_by(self, rows: Rows) -> NDArray[np.intp]:
        """Return the index of the link that each event begins, -1 for none, same shape. O(log n) for each event.

        For the kinds in `BRANCHING` this is the first link; `all_begun_by` returns all of them.
        """
        return _find(self.from_row, None, rows)

    def all_begun_by(self, row: int) -> slice:
        """Return the indices of all links that one event begins; an empty slice for none. O(log n)."""
        start, stop = np.searchsorted(self.from_row, np.array([row, row + 1], np.int64))
        return slice(int(start), int(stop))

    def ended_by(self, rows: Rows) -> NDArray[np.intp]:
        """Return the index of the link that each event ends, -1 for none, same shape. O(log n) for each event."""
        order, ends = self._by_end
        return _find(ends, order, rows)

    def ends_of(self, rows: Rows) -> NDArray[np.uint32]:
        """Return the end of the link that each event begins, `NO_EVENT` for none, `OPEN` as in `to_row`, same shape.

        For the kinds in `BRANCHING` this is the first link's end.
        """
        link = self.begun_by(rows)
        out = np.full(len(rows), NO_EVENT, np.uint32)
        out[link >= 0] = self.to_row[link[link >= 0]]
        return out

    def cycles(self, time_cycles: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the length of every link, int64 (n,), cycles; -1 where the trace ends before the link does.

        Args:
            time_cycles: Column of the event table.
        """
        known = self.to_row != OPEN
        out = np.full(len(self), -1, np.int64)
        out[known] = time_cycles[self.to_row[known]] - time_cycles[self.from_row[known]]
        return out

    @cached_property
    def _by_end(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Indices of the links sorted by the events that end them, and the rows of these events."""
        order = stable_order(self.to_row)
        return order.astype(np.uint32), self.to_row[order]


def _find(keys: NDArray[np.uint32], number: NDArray[np.uint32] | None, rows: Rows) -> NDArray[np.intp]:
    """Return the index of each row among ascending keys, mapped by `number` if given; -1 for rows not among them."""
    if not len(keys):
        return np.full(len(rows), -1, np.intp)
    key_position = links.positions(keys, rows.astype(np.uint32, copy=False))
    is_other = keys.take(key_position, mode="clip") != rows
    positions = key_position if number is None else number.take(key_position, mode="clip").astype(np.intp)
    positions[is_other] = -1
    return positions


def pairs_of(from_row: Rows, to_row: Rows, certainty: NDArray[np.integer] | Certainty = Certainty.EXACT) -> Pairs:
    """Return the columns of links for `LinkTable.of`; a single certainty applies to all links."""
    column = np.full(len(from_row), certainty, np.uint8) if isinstance(certainty, Certainty) else certainty
    sources, targets = from_row.astype(np.uint32, copy=False), to_row.astype(np.uint32, copy=False)
    return sources, targets, column.astype(np.uint8, copy=False)


def no_pairs() -> Pairs:
    """Return empty columns for `LinkTable.of`."""
    none = np.empty(0, np.uint32)
    return none, none, np.empty(0, np.uint8)
