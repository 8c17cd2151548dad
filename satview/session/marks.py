"""Marks, notes and bookmarks, stored in a file beside the trace so that they travel with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import QObject, Signal, Slot

from satview.base.errors import WriteError
from satview.base.time import TimeWindow
from satview.session.stored_json import StoredJson
from satview.store.mark_file import FILE_BYTES_MAX, Mark, by_time, checked, mark_of, mark_path

_VERSION: Final = 1
Row = dict[str, Any]


class Marks(QObject):
    """The marks of one trace, ordered by time.

    What others store in the same file meanwhile is merged: their marks show up here with the next change, ours do
    not undo theirs. An edit is a removal and an addition; when two edit one note, both texts stay.

    Attributes:
        selected: The one that was set or visited last, or None.
        file: The file beside the trace; shows whether all marks are stored.

    Signals:
        changed: A mark came, went, or was selected.
    """

    changed = Signal()

    def __init__(self, trace_path: Path, limits: TimeWindow, parent: QObject | None = None) -> None:
        super().__init__(parent)
        # Those of standard input are gone with the window.
        self.file = StoredJson(mark_path(trace_path), checked, FILE_BYTES_MAX, self)
        self.file.stored.connect(self._on_stored)
        self._limits = limits
        self._marks: list[Mark] = []
        self._content: Any = self.file.load()
        self._marks = self._marks_in(self._content)
        self._seen = self._marks_of(self._content)  # what the file held when we last saw it
        self._added: set[Mark] = set()  # in this window, which may be beyond the end of a trace that grows
        self.selected: Mark | None = None

    def __iter__(self) -> Iterator[Mark]:
        return iter(self._marks)

    def __len__(self) -> int:
        return len(self._marks)

    def add(self, mark: Mark) -> None:
        """Set a mark; a temporary one replaces the temporary one before."""
        others = [old for old in self._marks if old != mark and not (mark.is_temporary and old.is_temporary)]
        self._marks = sorted([*others, mark], key=by_time)
        self._added.add(mark)
        self.selected = mark
        self._store(was_stored=not mark.is_temporary)

    def remove(self, mark: Mark) -> None:
        """Remove a mark."""
        self._marks = [old for old in self._marks if old != mark]
        self.selected = None
        self._store(was_stored=not mark.is_temporary)

    def replace(self, old: Mark, new: Mark) -> None:
        """Put another mark in place of one, in one change of the file."""
        self._marks = sorted([*(mark for mark in self._marks if mark not in (old, new)), new], key=by_time)
        self._added.add(new)
        self.selected = new
        self._store(was_stored=True)

    def select(self, mark: Mark | None) -> None:
        """Select a mark."""
        self.selected = mark
        self.changed.emit()

    def next_after(self, cycles: int) -> Mark | None:
        """Return the first mark after a moment, or the first of all."""
        return next(
            (mark for mark in self._marks if mark.start_cycles > cycles), self._marks[0] if self._marks else None
        )

    def previous_before(self, cycles: int) -> Mark | None:
        """Return the last mark before a moment, or the last of all."""
        earlier = [mark for mark in self._marks if mark.start_cycles < cycles]
        return earlier[-1] if earlier else self._marks[-1] if self._marks else None

    def set_limits(self, limits: TimeWindow) -> None:
        """Show marks up to the end of a trace that has grown."""
        self._limits = limits
        self._show(self._content)

    def save_copy(self, path: Path) -> None:
        """Store all marks in another file, as a way out when the one beside the trace cannot be written.

        Raises:
            WriteError: That file cannot be written either.
        """
        copy = StoredJson(path, checked, FILE_BYTES_MAX)
        copy.store(partial(self._merged, frozenset()))
        if not copy.is_stored:
            failure = copy.failure
            copy.give_up()
            raise WriteError(path, failure.partition(": ")[2] or failure)
        self.file.give_up()

    def _store(self, was_stored: bool) -> None:
        if was_stored:
            self.file.store(lambda content: self._merged(self._seen, content))
        self.changed.emit()

    def _merged(self, before: frozenset[Mark], content: Any) -> Any:
        """Return what the file is to hold: what is in it, less what was removed here, and what was added here.

        A file that is gone was lost: somebody who removes the last mark leaves an empty list.
        """
        ours = [mark for mark in self._marks if not mark.is_temporary]
        before = before if content is not None else frozenset()
        content = content or {"satview_marks": _VERSION, "marks": []}
        known = [self._mark_of(row) for row in content["marks"]]
        removed = {mark for mark in before.difference(ours) if self._fits(mark) or mark in self._added}
        rows = [row for row, mark in zip(content["marks"], known, strict=True) if mark not in removed]
        rows += [_row(mark) for mark in ours if mark not in before and mark not in known]
        return {**content, "marks": sorted(rows, key=self._row_order)}

    @Slot(object)
    def _on_stored(self, content: Any) -> None:
        self._show(content)
        self._seen = self._marks_of(content)

    def _show(self, content: Any) -> None:
        """Show the marks of a file, and ours that are not in it: temporary ones, and those beyond the end so far."""
        self._content = content
        found = self._marks_in(content)
        stored = self._marks_of(content)
        own = [mark for mark in self._marks if mark.is_temporary or (mark in stored and mark in self._added)]
        marks = sorted({*found, *own}, key=by_time)
        if marks != self._marks:
            self._marks = marks
            self.changed.emit()

    def _marks_of(self, content: Any) -> frozenset[Mark]:
        """Return the marks of a file, of whatever time."""
        marks = (self._mark_of(row) for row in (content["marks"] if content else ()))
        return frozenset(mark for mark in marks if mark is not None)

    def _marks_in(self, content: Any) -> list[Mark]:
        """Return the marks of a file that fit the trace, in order of time."""
        return sorted(filter(self._fits, self._marks_of(content)), key=by_time)

    def _fits(self, mark: Mark) -> bool:
        return self._limits.contains(mark.start_cycles)

    def _mark_of(self, row: Any) -> Mark | None:
        """Return the mark of a row; None if it holds none, and then it stays in the file as it is."""
        return mark_of(row, self._limits)

    def _row_order(self, row: Any) -> tuple[bool, tuple[int, int, str, bool]]:
        mark = self._mark_of(row)
        return (True, (0, 0, "", False)) if mark is None else (False, by_time(mark))


def _row(mark: Mark) -> Row:
    row = asdict(mark)
    del row["is_temporary"]
    return row
