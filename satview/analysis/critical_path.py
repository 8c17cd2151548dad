"""The critical path between two moments of a thread: the sequence of work that led from one to the other.

The walk goes backwards from the end. While the thread runs or is ready the path stays on it. At a wait the path moves
to the thread that ended the wait, from that moment back to the start of the wait, and then returns: earlier work of the
waker did not matter. Waits of the waker in between are followed likewise. So pieces are adjacent, and their lengths add
up to the interval exactly. Source: formula 1 (a) of the reference, followed for a whole interval.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.thread_names import thread_of
from satview.analysis.verdicts.evidence import Evidence, of_whom, waited_for
from satview.analysis.verdicts.scheduling import instead, ran_instead
from satview.analysis.why import IN_NO_STATE, NO_ROW, Causes
from satview.base.errors import UsageError
from satview.base.safe_text import counted
from satview.base.time import TimeWindow
from satview.events.states import ABSENT, DEAD, READY, RUNNING, STATE_BY_VALUE, UNKNOWN
from satview.linkage.blockers import SEND, blockers
from satview.linkage.links import NO_EVENT, Certainty
from satview.store.trace import Trace
from satview.timeline.spans import LaneSpans
from satview.timeline.state_lanes import thread_spans, value_of_code

MOST_PIECES: Final = 20_000
_MOST_DEPTH: Final = 64  # threads that wait for each other, one for the next

_Ints = NDArray[np.int64]


class PieceKind(IntEnum):
    """Kinds of pieces of a critical path: the state of the thread on the path."""

    RUNNING = 0
    """The thread runs."""
    READY = 1
    """The thread is ready, and other threads have the CPUs."""
    WAITING = 2
    """The thread waits for a time, an interrupt, or a cause that the trace does not show."""
    WAKING = 3
    """The event that ends the wait has happened, but the kernel has not made the thread ready yet."""
    UNKNOWN = 4
    """The trace does not show the thread's state: events are missing, or the thread does not exist."""


PIECE_WORDS: Final = {
    PieceKind.RUNNING: "running", PieceKind.READY: "ready", PieceKind.WAITING: "waiting", PieceKind.WAKING: "waking up",
    PieceKind.UNKNOWN: "not known",
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class CriticalPath:
    """A critical path: adjacent pieces in time order; every column has shape (n,).

    Attributes:
        thread: Row of the thread at both ends of the path.
        window: The interval; the pieces cover it exactly.
        start_cycles, end_cycles: int64, start and end of each piece.
        on_thread: int64, row of the thread on which the path is.
        kind: uint8, `PieceKind`.
        value: uint8, the state of that thread as lane value (`events.states`).
        row: int64, the event that begins the state, -1 if none does.
        cause_row: int64, the event that ends the wait, at which the path returns to the thread above; -1 for none.
        depth: int64, 0 on the thread itself, 1 on a thread that it waits for, and so on.
        certainty: uint8, `Certainty` of the weakest link by which the path came to this thread.
    """

    thread: int
    window: TimeWindow
    start_cycles: _Ints
    end_cycles: _Ints
    on_thread: _Ints
    kind: NDArray[np.uint8]
    value: NDArray[np.uint8]
    row: _Ints
    cause_row: _Ints
    depth: _Ints
    certainty: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.start_cycles)

    def totals(self) -> dict[tuple[int, PieceKind], int]:
        """Return the cycles that the path spends per (thread, kind), the longest first; they add up to the window."""
        sums: dict[tuple[int, PieceKind], int] = defaultdict(int)
        key = self.on_thread * len(PieceKind) + self.kind
        kinds, which = np.unique(key, return_inverse=True)
        lengths = np.zeros(len(kinds), np.int64)
        np.add.at(lengths, which, self.end_cycles - self.start_cycles)
        for which_kind in np.argsort(-lengths, kind="stable").tolist():
            thread, kind = divmod(int(kinds[which_kind]), len(PieceKind))
            sums[thread, PieceKind(kind)] = int(lengths[which_kind])
        return dict(sums)


def count_of_pieces(count: int, kind: str = "") -> str:
    """Return a text with a number of pieces, and their kind: `1 piece`, `1,200 shorter pieces`."""
    return counted(count, f"{kind}piece")


def critical_path(trace: Trace, thread: int | str, window: TimeWindow, most: int = MOST_PIECES) -> CriticalPath:
    """Return the critical path of a thread: the sequence of work that led from the start of an interval to its end.

    Args:
        trace: The events.
        thread: Row of the thread table, or a name for `analysis.thread_names.thread_of`.
        window: The interval, cycles; cut to the trace.
        most: Maximum number of pieces.

    Raises:
        UsageError: No such thread, an interval outside the trace, or a path of more pieces.
    """
    row = thread_of(trace, thread) if isinstance(thread, str) else thread
    if not 0 < row < len(trace.threads):
        raise UsageError(f"there is no thread in row {row} of the thread table")
    whole = trace.window
    if window.end <= whole.start or window.start >= whole.end:
        raise UsageError("that interval is outside the trace")
    inside = TimeWindow(max(window.start, whole.start), min(window.end, whole.end))
    return _Walk(trace, row, inside, most).path()


@dataclass(slots=True)
class _Frame:
    """A thread on the stack of the backward walk.

    The walk follows the thread back to the time `floor`, then returns to the thread below on the stack. `certainty` is
    that of the weakest link by which the walk came to the thread.
    """

    thread: int
    floor: int
    certainty: Certainty


class _Walk:
    """Finds a critical path, by a walk backwards over the states of threads."""

    def __init__(self, trace: Trace, thread: int, window: TimeWindow, most: int) -> None:
        self.trace, self.thread, self.window, self.most = trace, thread, window, most
        self.causes, self.values = Causes(trace), value_of_code(trace)
        self.spans: dict[int, LaneSpans] = {}
        self.stack = [_Frame(thread, window.start, Certainty.EXACT)]
        self.pieces: list[tuple[int, ...]] = []

    def path(self) -> CriticalPath:
        """Return the critical path; raise UsageError if it has more than `most` pieces."""
        time = self.window.end
        while self.stack:
            if time <= self.stack[-1].floor:
                self.stack.pop()
            else:
                time = self._step(time)
            if len(self.pieces) > self.most:
                raise UsageError(f"the path has more than {self.most:,} pieces; take a shorter interval")
        columns = np.array(self.pieces[::-1], np.int64).reshape(-1, 9).T
        start, end, thread, kind, value, row, cause, depth, certainty = columns
        small = (column.astype(np.uint8) for column in (kind, value, certainty))
        kind8, value8, certainty8 = small
        return CriticalPath(self.thread, self.window, start, end, thread, kind8, value8, row, cause, depth, certainty8)

    def _step(self, time: int) -> int:
        """Add the piece of the path that ends at `time`, cycles; return the time at which it begins, cycles."""
        frame = self.stack[-1]
        spans = self._spans_of(frame.thread)
        position = spans.index_at(time - 1)
        value, row = int(spans.value[position]), int(spans.event[position])
        since = max(int(spans.start_cycles[position]), frame.floor)
        row = NO_ROW if row == NO_EVENT else row
        kind = {RUNNING: PieceKind.RUNNING, READY: PieceKind.READY, ABSENT: PieceKind.UNKNOWN, DEAD: PieceKind.UNKNOWN,
                UNKNOWN: PieceKind.UNKNOWN}.get(value, PieceKind.WAITING)  # fmt: skip
        if kind is not PieceKind.WAITING or row == NO_ROW:
            return self._add(since, time, kind, value, row)
        return self._wait(since, time, value, row)

    def _wait(self, since: int, time: int, value: int, row: int) -> int:
        """Add the pieces at the end of a wait, or continue on the thread that ended it; return the time reached."""
        cause, certainty = self._end_of(row, time)
        # A thread whose message is received goes from SEND to REPLY and is not woken.
        ended = int(self.trace.events.time_cycles[cause]) if cause >= 0 and value != SEND else time
        if cause < 0 or not since <= ended <= time:
            holder, certainty = self._holder(row) if cause < 0 else (NO_ROW, certainty)
            if holder > 0 and self._go_on(holder, since, certainty):
                return time
            return self._add(since, time, PieceKind.WAITING, value, row, cause)
        if ended < time:
            self._add(ended, time, PieceKind.WAKING, value, row, cause)
        actor = self.causes.actor(cause)
        if actor > 0 and ended > since and self._go_on(actor, since, certainty):
            return ended
        return self._add(since, ended, PieceKind.WAITING, value, row, cause) if ended > since else ended

    def _go_on(self, thread: int, floor: int, certainty: Certainty) -> bool:
        """Move the path to another thread; return False if the path is too deep, or the thread is already on it.

        Args:
            thread: The other thread, a row of the thread table.
            floor: Time at which the path returns to the present thread, cycles.
            certainty: Certainty of the link that leads to the other thread.
        """
        if len(self.stack) >= _MOST_DEPTH or any(frame.thread == thread for frame in self.stack):
            return False
        self.stack.append(_Frame(thread, floor, min(certainty, self.stack[-1].certainty)))
        return True

    def _end_of(self, row: int, time: int) -> tuple[int, Certainty]:
        """Return the event that ended a wait of the present thread, -1 = none by `time`, and its certainty."""
        own_states = self.trace.states.of(self.stack[-1].thread)
        after = int(np.searchsorted(own_states, row, side="right"))
        if after == len(own_states) or int(self.trace.events.time_cycles[own_states[after]]) > time:
            return NO_ROW, Certainty.EXACT
        return self.causes.of_end(int(own_states[after]))

    def _holder(self, row: int) -> tuple[int, Certainty]:
        """Return the thread that can end a wait that does not end in the interval (-1 = none), and the certainty."""
        blocked_by = blockers(self.trace)
        wait = wait_of(self.trace, self.stack[-1].thread, row)
        if wait < 0:
            return NO_ROW, Certainty.EXACT
        return int(blocked_by.thread[wait]), Certainty(int(blocked_by.certainty[wait]) or Certainty.EXACT)

    def _add(self, start: int, end: int, kind: PieceKind, value: int, row: int, cause: int = NO_ROW) -> int:
        frame = self.stack[-1]
        last = self.pieces[-1] if self.pieces else None
        same = (frame.thread, int(kind), value)
        if (
            last is not None
            and last[0] == end
            and last[2:5] == same
            and kind is not PieceKind.WAKING
            and (last[6] == cause and last[7] == len(self.stack) - 1)
        ):  # the opening dump may report a state twice
            end = last[1]
            self.pieces.pop()
        self.pieces.append((start, end, *same, row, cause, len(self.stack) - 1, int(frame.certainty)))
        return start

    def _spans_of(self, thread: int) -> LaneSpans:
        if thread not in self.spans:
            self.spans[thread] = thread_spans(self.trace, thread, self.values)
        return self.spans[thread]


def wait_of(trace: Trace, thread: int, row: int) -> int:
    """Return the row in `waits` of the wait that the event `row` begins for a thread; -1 = none."""
    every_wait = blockers(trace).waits
    begin, stop = np.searchsorted(every_wait.thread, (thread, thread + 1))
    position = int(begin) + int(np.searchsorted(every_wait.row[begin:stop], row))
    return position if position < stop and int(every_wait.row[position]) == row else NO_ROW


class PathWords:
    """Describes pieces of paths as text.

    Args:
        trace: The events.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._evidence = Evidence(trace)
        self._causes = Causes(trace)

    def interrupted(self, path: CriticalPath) -> dict[tuple[int, PieceKind], int]:
        """Return the cycles in which interrupts were handled on the CPUs of running threads, by (thread, kind)."""
        runs = np.flatnonzero((path.kind == PieceKind.RUNNING) & (path.row >= 0))
        cpu = self._trace.events.cpu[path.row[runs]].astype(np.int64)
        piece, _, cycles = self._evidence.interrupts_in(path.start_cycles[runs], path.end_cycles[runs], cpu)
        total: dict[tuple[int, PieceKind], int] = defaultdict(int)
        for thread, taken in zip(path.on_thread[runs[piece]].tolist(), cycles.tolist(), strict=True):
            total[thread, PieceKind.RUNNING] += taken
        return dict(total)

    def describe(self, path: CriticalPath, piece: int) -> str:
        """Return a text on one piece, to follow the name of its thread, such as `runs on CPU 0`."""
        kind, row = PieceKind(int(path.kind[piece])), int(path.row[piece])
        thread, cause = int(path.on_thread[piece]), int(path.cause_row[piece])
        span = int(path.start_cycles[piece]), int(path.end_cycles[piece])
        if kind is PieceKind.RUNNING:
            if row < 0:
                return "runs"
            cpu = int(self._trace.events.cpu[row])
            start, end, on_cpu = (np.array([number]) for number in (*span, cpu))
            taken = self._evidence.interrupts(start, end, on_cpu, least=0)
            return f"runs on {self._trace.cpu_title(cpu)}{f'; {taken} of it' if taken else ''}"
        if kind is PieceKind.READY:
            return f"is ready{instead(self._evidence, span, ran_instead(self._evidence, span, thread))}"
        if kind is PieceKind.UNKNOWN:
            return IN_NO_STATE[int(path.value[piece])]
        by = f", until {self._causes.words(cause)}" if cause >= 0 else ""
        if kind is PieceKind.WAKING:
            return f"is woken by {self._causes.words(cause)}"
        state = STATE_BY_VALUE[int(path.value[piece])].name
        wait = wait_of(self._trace, thread, row)
        if wait < 0:
            after = piece + 1
            is_cut = after < len(path) and (path.on_thread[after], path.value[after]) == (thread, UNKNOWN)
            return f"waits in {state}{by or (', until events are lost: what ends it is not known' if is_cut else '')}"
        blocked_by = blockers(self._trace)
        words = waited_for(self._evidence, blocked_by, wait)
        return f"waits in {state} for {words}{of_whom(self._evidence, blocked_by, wait)}{by}"
