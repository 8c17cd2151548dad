"""Marks, notes and bookmarks, stored in files beside the trace so that they travel with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from satview.base.errors import WriteError
from satview.base.shared_file import Damaged
from satview.base.time import TimeWindow
from satview.session.settings import Stored, StoredJson
from satview.store.mark_file import FILE_BYTES_MAX, Mark, MarkFiles, by_time, checked, mark_of, row_of


class StoredMarks(Stored):
    """The files with the marks of a trace; shows whether all marks are stored."""

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


class Marks(QObject):
    """The marks of one trace, ordered by time.

    Changes that other programs store are kept, and shown after the next change made here. An edit is stored as a
    removal and an addition: if two people edit one note, both texts stay.

    Attributes:
        selected: The mark that was set or visited last, or None.
        file: The files beside the trace; shows whether all marks are stored.

    Signals:
        changed: A mark was added, removed or selected.
    """

    changed = Signal()

    def __init__(
        self, trace_path: Path, limits: TimeWindow, parent: QObject | None = None, recorded: Iterable[Mark] = ()
    ) -> None:
        """Read the files.

        Args:
            trace_path: The trace.
            limits: Its time range.
            parent: Owner.
            recorded: Marks that a recorder left in the trace: shown, but stored in no file.
        """
        super().__init__(parent)
        self._recorded, self._hits = set(recorded), set[Mark]()
        self._files = MarkFiles(trace_path)
        self.file = StoredMarks(self._files, self)
        self.file.stored.connect(self._show)
        self.file.load()
        self._limits = limits
        self._added: set[Mark] = set()  # in this window; may be beyond the end of a growing trace
        self._marks = self._fitting()
        self.selected: Mark | None = None

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

    def next_after(self, cycles: int) -> Mark | None:
        """Return the first mark after a time, or the first of all."""
        return next(
            (mark for mark in self._marks if mark.start_cycles > cycles), self._marks[0] if self._marks else None
        )

    def previous_before(self, cycles: int) -> Mark | None:
        """Return the last mark before a time, or the last of all."""
        earlier = [mark for mark in self._marks if mark.start_cycles < cycles]
        return earlier[-1] if earlier else self._marks[-1] if self._marks else None

    @property
    def first_recorded(self) -> Mark | None:
        """The earliest mark that a recorder left in the trace."""
        return min(self._recorded, key=by_time, default=None)

    def show_recorded(self, marks: Iterable[Mark]) -> None:
        """Add marks that a recorder has left in the new part of a growing trace."""
        self._recorded |= set(marks)
        self._show()

    def show_hits(self, hits: Iterable[Mark]) -> None:
        """Replace the shown trigger hits by these; hits are not stored."""
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
        """Show the marks of the files, and marks set here that the files lack: temporary, or beyond the trace's end."""
        stored = self._files.marks(self._limits)
        own = [mark for mark in self._marks if mark.is_temporary or (mark in stored and mark in self._added)]
        marks = sorted({*self._fitting(), *own}, key=by_time)
        if marks != self._marks:
            self._marks = marks
            self.changed.emit()

    def _fitting(self) -> list[Mark]:
        """Return the marks of the files that begin within the trace, by time."""
        marks = self._files.marks(self._limits) | self._recorded | self._hits
        return sorted((mark for mark in marks if self._limits.contains(mark.start_cycles)), key=by_time)
