"""Results of the decoder: columns of events, and slots and events that need a repair or a report."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from satview.formats.kev.clocks.clock import ClockRebuilder
from satview.formats.kev.slots import combine


@dataclass(slots=True)
class Decoded:
    """Columns of events in file order, and slots and events that need a repair or a report.

    Attributes:
        count: Number of events.
        time, code, cpu, thread, slot, slots: Columns of `EventTable`, in file order of first slots.
        state_rows: uint32, rows of THREAD state, create and destroy events, ascending.
        rare_rows: int64, rows of CONTROL and PROCESS events, ascending.
        rare_words: uint32 (rare, 2), the first two payload words of each of these events.
        keys: uint64 (pid, tid) per thread row, as two words in payload order.
        unmatched: Open events and runs of tails for the repair.
        empty: (first slot, slots) of spans of zero slots.
        clock: State of the clock at the end.
        unknown: For each code that no table of the release names, row of the first event and number of events.
    """

    count: int
    time: NDArray[np.int64]
    code: NDArray[np.uint16]
    cpu: NDArray[np.uint8]
    thread: NDArray[np.unsignedinteger]
    slot: NDArray[np.unsignedinteger]
    slots: NDArray[np.unsignedinteger]
    state_rows: NDArray[np.uint32]
    rare_rows: NDArray[np.int64]
    rare_words: NDArray[np.uint32]
    keys: NDArray[np.uint64]
    unmatched: combine.Unmatched
    empty: list[tuple[int, int]]
    clock: ClockRebuilder
    unknown: dict[int, tuple[int, int]]


@dataclass(slots=True)
class Parts:
    """Parts of `Decoded` while chunks are decoded: lists with an array for each chunk."""

    state_rows: list[NDArray[np.uint32]] = field(default_factory=list)
    rare_rows: list[NDArray[np.int64]] = field(default_factory=list)
    rare_words: list[NDArray[np.uint32]] = field(default_factory=list)
    unmatched: list[combine.Unmatched] = field(default_factory=list)
    empty: list[tuple[int, int]] = field(default_factory=list)
    unknown: dict[int, tuple[int, int]] = field(default_factory=dict)

    def copy(self) -> Parts:
        """Return a copy of the lists; the arrays are shared."""
        return Parts(
            list(self.state_rows), list(self.rare_rows), list(self.rare_words), list(self.unmatched), list(self.empty),
            dict(self.unknown),
        )  # fmt: skip

    def note_rare(self, first_row: int, rows: NDArray[np.intp], slots: NDArray[np.uint32]) -> None:
        """Record CONTROL and PROCESS events.

        Args:
            first_row: Row of the first event of the chunk.
            rows: Positions of the events in the chunk.
            slots: uint32 (rows, 4), first slots of the events.
        """
        self.rare_rows.append(rows + first_row)
        self.rare_words.append(slots[:, 2:4].copy())  # a view would keep all of the slots

    def note_empty(self, slots: NDArray[np.intp]) -> None:
        """Record zero slots, ascending."""
        cuts = np.flatnonzero(np.diff(slots) != 1) + 1
        # Many spans, as in a garbage file, are recorded as one.
        for run in np.split(slots, cuts) if len(cuts) < 100 else [slots]:
            self.empty.append((int(run[0]), len(run)))

    def note_unknown(self, positions: NDArray[np.intp], code: NDArray[np.uint16], first_row: int) -> None:
        """Count events whose code is in no table; `positions` are relative to `first_row`."""
        if not len(positions):
            return
        codes, indices, counts = np.unique(code[positions], return_index=True, return_counts=True)
        for number, index, count in zip(codes.tolist(), indices.tolist(), counts.tolist(), strict=True):
            row, before = self.unknown.get(number, (first_row + int(positions[index]), 0))
            self.unknown[number] = row, before + count

    def note_unmatched(
        self,
        start: int,
        first_row: int,
        part: NDArray[np.uint32],
        opened: tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]],
        runs: tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_]],
    ) -> None:
        """Record open events and runs of tails for the repair, in file order.

        Args:
            start: First slot of the chunk in the file.
            first_row: Row of the first event of the chunk.
            part: uint32 (n, 4), slots of the chunk.
            opened: For events without end, intp (k,) each: first slot, adjacent slots, position among the events.
            runs: For runs of tails, (m,) each: first slot, slots, position of the event before the run, and whether the
                run ends an event.
        """
        slot = np.concatenate((opened[0], runs[0]))
        order = np.argsort(slot, kind="stable")
        slot = slot[order]
        stamp = part[slot, 1]
        self.unmatched.append(
            combine.Unmatched(
                slot + start,
                np.concatenate((opened[1], runs[1]))[order],
                part[slot, 0],
                stamp,
                np.concatenate((np.zeros(len(opened[0]), np.bool_), runs[3]))[order],
                np.concatenate((opened[2] + first_row, np.full(len(runs[0]), -1)))[order],
                np.concatenate((opened[2], runs[2]))[order] + first_row,
            )
        )
