"""Holds the selection, the highlight over the lanes, and the marks (notes, bookmarks) stored beside the trace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal, Slot
from shiboken6 import isValid

from satview.answers.latencies import QUESTION as LATENCIES
from satview.answers.table import Known, Table
from satview.answers.transactions import QUESTION as TRANSACTIONS
from satview.answers.verdicts import QUESTION as VERDICTS
from satview.base.errors import WriteError
from satview.base.shared_file import Damaged
from satview.base.time import TimeWindow
from satview.events.states import DEAD, NOT_A_STATE, READY, RUNNING
from satview.linkage.blockers import REPLY, SEND, blockers
from satview.linkage.chain import Hop, NamedHop
from satview.linkage.latencies import Latencies, latencies
from satview.linkage.links import Certainty
from satview.linkage.transactions import Transactions, transactions
from satview.session.settings import Stored, StoredJson
from satview.store.mark_file import FILE_BYTES_MAX, Mark, MarkFiles, by_time, checked, mark_of, row_of
from satview.store.trace import Trace
from satview.timeline.spans import Span

# The entry of the legend that is highlighted in the lanes.


class LegendHighlight(QObject):
    """The highlighted legend entry, shared by all views of a trace.

    Attributes:
        keys: Highlighted lane values, such as states, or a negative key of `gui.swimlane.fills`; empty = none.

    Signals:
        changed: `keys` has changed.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.keys: frozenset[int] = frozenset()

    def toggle(self, keys: frozenset[int]) -> None:
        """Highlight only the given keys; if exactly these are highlighted already, clear the highlight."""
        self.keys = frozenset() if keys == self.keys else keys
        self.changed.emit()

    def clear(self) -> bool:
        """Clear the highlight; return whether there was one."""
        stood_out = bool(self.keys)
        if stood_out:
            self.toggle(self.keys)
        return stood_out


# The selection: an event, an interval of a lane, a range of time, two cursors, the position under the mouse.


class Selection(QObject):
    """The selection of one window, which all views of the window show and change.

    Attributes:
        event: Row of the event table, or None.
        lane: Index of the lane, or None.
        span: The interval of that lane, or None.
        is_interval: True if the interval was selected, and `event` is only the event that begins the interval.
        point_cycles: Time within that interval that was clicked, or None.
        time_range: The selected range, or None.
        cursor_a, cursor_b: Times of cursors A and B, cycles; None = not set.
        mouse_cycles: Time under the mouse, or None.
        mouse_lane: Index of the lane under the mouse, None if there is none, as on the ruler.

    Signals:
        changed: Event, lane or interval changed.
        range_changed: The range changed.
        cursors_changed: Cursor A or B changed.
        mouse_changed: The time or the lane under the mouse changed.
    """

    changed = Signal()
    range_changed = Signal()
    cursors_changed = Signal()
    mouse_changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        # Hides QObject.event(), which nothing here overrides or calls; `event` is the word of the whole program.
        self.event: int | None = None  # type: ignore[assignment]
        self.lane: int | None = None
        self.span: Span | None = None
        self.is_interval = False
        self.point_cycles: int | None = None
        self.time_range: TimeWindow | None = None
        self.cursor_a: int | None = None
        self.cursor_b: int | None = None
        self.mouse_cycles: int | None = None
        self.mouse_lane: int | None = None

    @property
    def is_empty(self) -> bool:
        """True if neither an event nor an interval is selected."""
        return self.event is None and self.span is None

    def select(
        self,
        event: int | None,
        lane: int | None,
        span: Span | None,
        is_interval: bool = False,
        point_cycles: int | None = None,
    ) -> None:
        """Select an event, an interval, or both.

        Args:
            event: Row of the event table, or None.
            lane: Index of the lane, or None.
            span: The interval of that lane, or None.
            is_interval: True to select the interval instead of its event.
            point_cycles: The clicked time within the interval, or None.
        """
        before = self.event, self.lane, self.span, self.is_interval, self.point_cycles
        if (event, lane, span, is_interval, point_cycles) != before:
            self.event, self.lane, self.span, self.is_interval = event, lane, span, is_interval
            self.point_cycles = point_cycles
            self.changed.emit()

    def set_range(self, time_range: TimeWindow | None) -> None:
        """Select a range of time, or none."""
        if time_range != self.time_range:
            self.time_range = time_range
            self.range_changed.emit()

    def set_cursors(self, cursor_a: int | None, cursor_b: int | None) -> None:
        """Set both cursors."""
        if (cursor_a, cursor_b) != (self.cursor_a, self.cursor_b):
            self.cursor_a, self.cursor_b = cursor_a, cursor_b
            self.cursors_changed.emit()

    def set_mouse(self, cycles: int | None, lane: int | None = None) -> None:
        """Set the position of the mouse."""
        if (cycles, lane) != (self.mouse_cycles, self.mouse_lane):
            self.mouse_cycles, self.mouse_lane = cycles, lane
            self.mouse_changed.emit()


_MOST_WAITS: Final = 8  # length of a chain of threads that wait for each other
_MOST_RUNS: Final = 24  # run intervals shown of each thread that runs instead


@dataclass(frozen=True, slots=True)
class Leg:
    """A part of a transaction, latency or verdict, drawn on the lane of a thread.

    Attributes:
        thread: Row of the thread table.
        from_row, to_row: Rows of the events that begin and end the part.
        title: Name of the part: `queued`, `service`.
    """

    thread: int
    from_row: int
    to_row: int
    title: str


@dataclass(frozen=True, slots=True)
class ShownWait:
    """A thread that waits for another: drawn as an arrow and an outline around the other thread's interval.

    Attributes:
        thread: Row of the waiting thread.
        holder: Row of the thread that is waited for.
        row: The event that begins the wait.
        start_cycles, end_cycles: Time of the wait.
        title: Role of the holder: `holds it`, `serves it`.
        certainty: Certainty that the thread waits for `holder`.
    """

    thread: int
    holder: int
    row: int
    start_cycles: int
    end_cycles: int
    title: str
    certainty: Certainty


@dataclass(frozen=True, slots=True)
class Highlighted:
    """A transaction, latency, verdict or link as it is drawn over the lanes.

    Attributes:
        event: The event that is selected with the highlight; selecting another removes the highlight.
        hops: Arrows from event to event.
        legs: Parts drawn on the lanes of threads.
        waits: Waits of threads for other threads.
        span: Start and end in cycles; None = from the first to the last event drawn.
        link: The link that is highlighted; None if something else is highlighted.
        title: Kind of a verdict; may be empty.
        says: Sentence that explains the verdict; may be empty.
    """

    event: int
    hops: tuple[Hop, ...]
    legs: tuple[Leg, ...]
    waits: tuple[ShownWait, ...] = ()
    span: tuple[int, int] | None = None
    link: NamedHop | None = None
    title: str = ""
    says: str = ""

    @property
    def threads(self) -> tuple[int, ...]:
        """Rows of the threads on whose lanes the highlight is drawn."""
        return (*(leg.thread for leg in self.legs), *(row for wait in self.waits for row in (wait.thread, wait.holder)))


class Highlight(QObject):
    """Holds the highlight that is drawn over the lanes, `shown`; cleared when another event is selected.

    Signals:
        changed: `shown` changed.
    """

    changed = Signal()

    def __init__(self, selection: Selection, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._selection = selection
        self.shown: Highlighted | None = None
        selection.changed.connect(self._on_selection)

    def show(self, shown: Highlighted) -> None:
        """Draw a highlight over the lanes; the caller must have selected its event before."""
        self.shown = shown
        self.changed.emit()

    def forget(self) -> None:
        """Clear the highlight."""
        if self.shown is not None:
            self.shown = None
            self.changed.emit()

    @Slot()
    def _on_selection(self) -> None:
        if self.shown is not None and self._selection.event != self.shown.event:
            self.forget()


def of_row(table: Table, row: int) -> Highlighted:
    """Return the highlight of an answer's row: event, arrows, parts; unfinished parts have their minimum length."""
    trace, position = table.trace, int(table.positions[row])
    legs: tuple[tuple[str, str, NDArray[np.int64], NDArray[np.int64]], ...]
    if table.question is TRANSACTIONS:
        sent = transactions(trace)
        shown, client, received = of_transaction(sent, position), sent.client, sent.receive_row
        legs = (("queued", "queued", sent.send_row, client), ("service", "in service", received, client),
                ("service", "service", received, sent.server), ("reply", "reply", sent.reply_row, client))  # fmt: skip
    elif table.question is LATENCIES:
        ways = latencies(trace)
        shown, thread = of_latency(ways, position), ways.thread
        legs = (("scheduling", "to RUNNING", ways.ready_row, thread), ("receipt", "to receipt", ways.pulse_row, thread))
    elif table.question is VERDICTS:
        return _of_verdict(table, row)
    else:
        return Highlighted(table.event(row), (), ())
    row_values, times = table.at(table.positions[row : row + 1]), trace.events.time_cycles
    unfinished = []
    for name, title, begins, threads in legs:
        if table.known(row, name) is Known.AT_LEAST and threads[position] > 0:
            begin = int(begins[position])
            end = int(np.searchsorted(times, times[begin] + row_values[f"{name}_cycles"][0]))
            unfinished.append(Leg(int(threads[position]), begin, min(end, len(times) - 1), title))
    return Highlighted(shown.event, shown.hops, (*shown.legs, *unfinished))


def of_transaction(exchanges: Transactions, position: int) -> Highlighted:
    """Return the highlight of one transaction, drawn over the lanes of client and server."""
    sent, received, replied, done = (int(column[position]) for column in (
        exchanges.send_row, exchanges.receive_row, exchanges.reply_row, exchanges.done_row))  # fmt: skip
    client, server = int(exchanges.client[position]), int(exchanges.server[position])
    certainty = Certainty(int(exchanges.certainty[position]))
    hops = [Hop(begin, end, certainty) for begin, end in ((sent, received), (replied, done)) if min(begin, end) >= 0]
    legs = [Leg(thread, begin, end, title) for thread, begin, end, title in (
        (client, sent, received, "queued"), (client, received, replied, "in service"),
        (client, replied, done, "reply"), (server, received, replied, "service"),
    ) if min(begin, end) >= 0 and thread > 0]  # fmt: skip
    return Highlighted(sent, tuple(hops), tuple(legs))


def of_latency(waking: Latencies, position: int) -> Highlighted:
    """Return the highlight of one latency, drawn over the lane of the thread that answers."""
    names = (("handler_row", "to handler"), ("handler_exit_row", "handler"), ("pulse_row", "to pulse"),
             ("ready_row", "to READY"), ("running_row", "to RUNNING"), ("received_row", "to receipt"))  # fmt: skip
    thread, woken = int(waking.thread[position]), int(waking.cause_row[position])
    cause, legs = int(waking.first_row[position]), []
    for name, title in names:
        row = int(getattr(waking, name)[position])
        if row >= 0 and woken >= 0 and thread > 0:
            legs.append(Leg(thread, woken, row, title))
        woken = row if row >= 0 else woken
    answer = int(waking.ready_row[position]) if waking.ready_row[position] >= 0 else int(waking.received_row[position])
    hops = (Hop(cause, answer, Certainty(int(waking.certainty[position]))),) if answer >= 0 else ()
    return Highlighted(cause, hops, tuple(legs))


def _of_verdict(table: Table, row: int) -> Highlighted:
    """Return the highlight of a verdict: of the case in `row`, or of the worst case if `row` is the verdict itself.

    It shows the wait of the suffering thread, the wait of each thread along the chain of waits, and the runs or wait of
    each other thread of the verdict.
    """
    trace, main = table.trace, table.parent(row)
    if main >= 0 and table.span(row) is None:  # an event or a text of the verdict, not a case
        return Highlighted(table.event(row), (), ())
    verdict = table.at(table.positions[row : row + 1] if main < 0 else np.array([main]))
    cases = verdict.at(verdict.children(0))
    spans = [span for case in range(len(cases)) if (span := cases.span(case)) is not None]
    worst = max(spans, key=lambda span: span[1] - span[0], default=verdict.span(0))
    span = table.span(row) if main >= 0 else worst
    threads = [int(thread) for thread in verdict.several(0, "threads")]
    if span is None or not threads:
        return Highlighted(table.event(row), (), ())
    chain, waits, legs, ahead = list[int](), list[ShownWait](), list[Leg](), threads[0]
    while ahead > 0 and ahead not in chain and len(chain) < _MOST_WAITS:
        chain.append(ahead)
        wait = _wait_in(trace, ahead, span)
        waits += [wait] if wait is not None else []
        ahead = wait.holder if wait is not None else -1
    for thread in (*chain, *(thread for thread in threads if thread not in chain)):
        blocked = _legs(trace, thread, span, lambda value: value not in (NOT_A_STATE, RUNNING, DEAD))
        runs = _legs(trace, thread, span, lambda value: value == RUNNING)
        # Threads that suffer or hold something are shown with their waits, the others with their runs.
        wait = None if thread in chain else _wait_in(trace, thread, span)
        times = trace.events.time_cycles
        ran = sum(int(times[leg.to_row] - times[leg.from_row]) for leg in runs)
        suffers = wait is not None and wait.end_cycles - wait.start_cycles > ran
        waits += [wait] if wait is not None and suffers else []
        begins = {wait.row for wait in waits}
        # A thread that waits for another may sleep for longer than the span.
        blocked.sort(key=lambda leg: leg.from_row not in begins)
        legs += blocked[:1] if thread in chain or suffers or not runs else runs[:_MOST_RUNS]
    title_of_holder = {wait.holder: wait.title for wait in waits}
    legs = [replace(leg, title=", ".join(filter(None, (title_of_holder.get(leg.thread), leg.title)))) for leg in legs]
    event = legs[0].from_row if legs and legs[0].thread == threads[0] else table.event(row)
    return Highlighted(event, (), tuple(legs), tuple(waits), span, title=verdict.text(0, "kind"),
                       says=verdict.text(0, "says"))  # fmt: skip


def _wait_in(trace: Trace, thread: int, span: tuple[int, int]) -> ShownWait | None:
    """Return the longest wait of a thread in a time span for which the holder is known."""
    blocked_by, times = blockers(trace), trace.events.time_cycles
    begin, stop = np.searchsorted(blocked_by.waits.thread, (thread, thread + 1)).tolist()
    known = np.flatnonzero(blocked_by.thread[begin:stop] > 0) + begin
    end_rows = np.minimum(blocked_by.waits.end_row[known].astype(np.int64), len(times))
    start = np.maximum(times[blocked_by.waits.row[known]], span[0])
    end = np.minimum(np.append(times, trace.window.end)[end_rows], span[1])
    if not len(known) or (end - start).max() <= 0:
        return None
    longest = int((end - start).argmax())
    wait = int(known[longest])
    title = "serves it" if blocked_by.waits.value[wait] in (SEND, REPLY) else "holds it"
    return ShownWait(thread, int(blocked_by.thread[wait]), int(blocked_by.waits.row[wait]), int(start[longest]),
                     int(end[longest]), title, Certainty(int(blocked_by.certainty[wait])))  # fmt: skip


def _legs(trace: Trace, thread: int, span: tuple[int, int], is_asked: Callable[[int], bool]) -> list[Leg]:
    """Return a thread's intervals in a time span whose state value `is_asked` accepts; longest overlap first."""
    rows, times = trace.states.of(thread).astype(np.int64), np.append(trace.events.time_cycles, trace.window.end)
    ends = np.append(rows[1:], len(times) - 1)
    length = np.minimum(times[ends], span[1]) - np.maximum(times[rows], span[0])
    values = trace.catalogue.state_value_of_code[trace.events.code[rows]].tolist()
    longest_ones = [
        number
        for number in np.argsort(-length, kind="stable").tolist()
        if length[number] > 0 and is_asked(values[number])
    ]
    titles = {READY: "ready", RUNNING: "runs"}
    return [Leg(thread, int(rows[number]), min(int(ends[number]), len(times) - 2), titles.get(values[number], "waits"))
            for number in longest_ones]  # fmt: skip


def window_of(trace: Trace, shown: Highlighted) -> TimeWindow:
    """Return the time range of a highlight: from its first event to its last, at least one cycle."""
    if shown.span is not None:
        return TimeWindow(*shown.span)
    rows = [shown.event, *(row for hop in shown.hops for row in (hop.from_row, hop.to_row)),
            *(row for leg in shown.legs for row in (leg.from_row, leg.to_row))]  # fmt: skip
    times = trace.events.time_cycles
    start, end = int(times[min(rows)]), int(times[max(rows)])
    return TimeWindow(start, max(end, start + 1))


# Marks, notes and bookmarks, stored in files beside the trace so that they travel with it.


class StoredMarks(Stored):
    """The files with the marks of a trace, with attributes that tell whether all marks are stored."""

    def __init__(self, files: MarkFiles, parent: QObject | None = None) -> None:
        super().__init__(files.path, parent)
        self._files = files

    def load(self) -> None:
        """Read the files; `notice` describes problems with them."""
        try:
            self._files.read()
        except (OSError, ValueError) as error:
            self._say(f"notes cannot be read: {getattr(error, 'strerror', None) or error}", self.failure)
        else:
            self._say(self._files.problem(), self.failure)

    def _write(self) -> tuple[object, list[Damaged]]:
        return None, self._files.write()


_open_marks: Final[WeakSet[Marks]] = WeakSet()  # of all windows


class Marks(QObject):
    """Holds the marks (bookmarks, notes) of one trace, ordered by time, and stores them beside the trace.

    Changes that other windows store are shown at once; those of other programs are kept, and shown after the next
    change made in this window. An edit is stored as a removal and an addition: if two people edit one note, both texts
    stay.

    Attributes:
        selected: The mark that was set or visited last, or None.
        file: The files beside the trace; its attributes tell whether all marks are stored.

    Signals:
        changed: A mark was added, removed or selected.
    """

    changed = Signal()

    def __init__(
        self, trace_path: Path, limits: TimeWindow, parent: QObject | None = None, recorded: Iterable[Mark] = ()
    ) -> None:
        """Read the files beside a trace; marks that a recorder left in the trace are shown, but stored in no file."""
        super().__init__(parent)
        self._recorded, self._hits = set(recorded), set[Mark]()
        self._files = MarkFiles(trace_path)
        self.file = StoredMarks(self._files, self)
        self.file.stored.connect(self._show)
        self.file.stored.connect(self._show_elsewhere)
        self.file.load()
        self._limits = limits
        self._added: set[Mark] = set()  # in this window; may be beyond the end of a growing trace
        self._marks = self._fitting()
        self.selected: Mark | None = None
        _open_marks.add(self)

    def __iter__(self) -> Iterator[Mark]:
        return iter(self._marks)

    def __len__(self) -> int:
        return len(self._marks)

    def add(self, mark: Mark) -> None:
        """Add a mark; a temporary one replaces the previous temporary one."""
        others = [old for old in self._marks if old != mark and not (mark.is_temporary and old.is_temporary)]
        self._marks = sorted([*others, mark], key=by_time)
        self.selected = mark
        self._change(None, mark)

    def remove(self, mark: Mark) -> None:
        """Remove a mark."""
        self._marks = [old for old in self._marks if old != mark]
        self.selected = None
        self._change(mark, None)

    def replace(self, old: Mark, new: Mark) -> None:
        """Replace a mark by another, in a single change of the files."""
        self._marks = sorted([*(mark for mark in self._marks if mark not in (old, new)), new], key=by_time)
        self.selected = new
        self._change(old, new)

    def select(self, mark: Mark | None) -> None:
        """Select a mark."""
        self.selected = mark
        self.changed.emit()

    def next_to(self, direction: int, cycles: int) -> Mark | None:
        """Return the mark after or before the selected one, wrapping round at the ends; None if there are no marks.

        Args:
            direction: 1 = after, -1 = before.
            cycles: The time to start from if no mark is selected.
        """
        if not self._marks:
            return None
        if self.selected in self._marks:
            position = self._marks.index(self.selected) + direction
        elif direction > 0:
            position = sum(mark.start_cycles <= cycles for mark in self._marks)
        else:
            position = sum(mark.start_cycles < cycles for mark in self._marks) - 1
        return self._marks[position % len(self._marks)]

    @property
    def first_recorded(self) -> Mark | None:
        """The earliest mark that a recorder left in the trace."""
        return min(self._recorded, key=by_time, default=None)

    def show_recorded(self, marks: Iterable[Mark]) -> None:
        """Add marks that a recorder has left in the new part of a growing trace."""
        self._recorded |= set(marks)
        self._show()

    def show_hits(self, hits: Iterable[Mark]) -> None:
        """Show the given hits of triggers as marks, in place of earlier hits; hits are not stored."""
        self._hits = set(hits)
        self._show()

    def set_limits(self, limits: TimeWindow) -> None:
        """Set the time range of a trace that has grown, and show the stored marks that begin in this range."""
        self._limits = limits
        self._show()

    def save_copy(self, path: Path) -> None:
        """Store all marks in another file, for when the file beside the trace cannot be written.

        Raises:
            WriteError: That file cannot be written either.
        """
        copy = StoredJson(path, checked, FILE_BYTES_MAX)
        copy.store(self._files.merged)
        if not copy.is_stored:
            failure = copy.failure
            copy.give_up()
            raise WriteError(path, failure.partition(": ")[2] or failure)
        self.file.give_up()

    def _change(self, old: Mark | None, new: Mark | None) -> None:
        """Remove the mark `old`, add the mark `new` and store both changes; None = no mark."""
        if old is not None:
            self._recorded.discard(old)
            self._hits.discard(old)
        stored = [(key, mark_of(row, self._limits)) for key, row in self._files.rows.items()]
        if old is not None and old != new:
            shown = mark_of(row_of(old), self._limits)  # in the files it may extend beyond the trace
            self._files.take([key for key, mark in stored if mark == shown])
        if new is not None and not new.is_temporary:
            self._added.add(new)
            if all(mark != new for _, mark in stored):
                self._files.put(row_of(new))
        if any(mark is not None and not mark.is_temporary for mark in (old, new)):
            self.file.store_now()
        self.changed.emit()

    @Slot()
    def _show(self) -> None:
        """Update the shown marks: all within the trace, and marks of this window that are temporary or outside it."""
        stored = self._files.marks(self._limits)
        own = [mark for mark in self._marks if mark.is_temporary or (mark in stored and mark in self._added)]
        marks = sorted({*self._fitting(), *own}, key=by_time)
        if marks != self._marks:
            self._marks = marks
            self.changed.emit()

    @Slot()
    def _show_elsewhere(self) -> None:
        """Update the marks of the same trace in other windows."""
        for other in tuple(_open_marks):
            if other is not self and isValid(other) and other._files.path == self._files.path:
                other.file.load()
                other._show()

    def _fitting(self) -> list[Mark]:
        """Return the stored and recorded marks and trigger hits that begin within the trace, by time."""
        marks = self._files.marks(self._limits) | self._recorded | self._hits
        return sorted((mark for mark in marks if self._limits.contains(mark.start_cycles)), key=by_time)
