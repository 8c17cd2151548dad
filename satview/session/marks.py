"""Marks, notes and bookmarks, kept in a file beside the trace so that they travel with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from PySide6.QtCore import QObject, Signal

from satview.base.time import TimeWindow

SUFFIX: Final = ".marks.json"
_FILE_BYTES_MAX: Final = 16 << 20
_TEXT_MAX: Final = 4000


@dataclass(frozen=True, slots=True)
class Mark:
    """A place the user wants to find again.

    Attributes:
        start_cycles: Where it begins.
        end_cycles: Where it ends; the same for a moment.
        text: What the user wrote; may be empty.
        is_temporary: It goes when the next temporary mark is set, and is not stored.
    """

    start_cycles: int
    end_cycles: int
    text: str = ""
    is_temporary: bool = False


class Marks(QObject):
    """The marks of one trace, ordered by time.

    Attributes:
        selected: The one that was set or visited last, or None.

    Signals:
        changed: A mark came, went, or was selected.
        store_failed: Why the file beside the trace could not be written.
    """

    changed = Signal()
    store_failed = Signal(str)

    def __init__(self, trace_path: Path, limits: TimeWindow, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._path = trace_path.with_name(trace_path.name + SUFFIX)
        self._marks = _stored(self._path, limits)
        self.selected: Mark | None = None

    def __iter__(self) -> Iterator[Mark]:
        return iter(self._marks)

    def __len__(self) -> int:
        return len(self._marks)

    def add(self, mark: Mark) -> None:
        """Set a mark; a temporary one takes the place of the temporary one before."""
        kept = [old for old in self._marks if not (mark.is_temporary and old.is_temporary)]
        self._marks = sorted([*kept, mark], key=_by_time)
        self.selected = mark
        self._store(was_stored=not mark.is_temporary)

    def remove(self, mark: Mark) -> None:
        """Remove a mark."""
        self._marks = [old for old in self._marks if old != mark]
        self.selected = None
        self._store(was_stored=not mark.is_temporary)

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

    def _store(self, was_stored: bool) -> None:
        if was_stored:
            rows = [asdict(mark) for mark in self._marks if not mark.is_temporary]
            try:
                if rows:
                    self._path.write_text(json.dumps({"satview_marks": 1, "marks": rows}, indent=1), encoding="utf-8")
                else:
                    self._path.unlink(missing_ok=True)
            except OSError as error:
                self.store_failed.emit(f"marks are not kept: {error.strerror or error}")
        self.changed.emit()


def _by_time(mark: Mark) -> tuple[int, int]:
    return mark.start_cycles, mark.end_cycles


def _stored(path: Path, limits: TimeWindow) -> list[Mark]:
    """Return the marks of a file that fit the trace; whatever else stands there is left out."""
    try:
        if path.stat().st_size > _FILE_BYTES_MAX:
            return []
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return []
    rows = data.get("marks") if isinstance(data, dict) else None
    marks = []
    for row in rows if isinstance(rows, list) else []:
        start, end, text = (
            (row.get(key) for key in ("start_cycles", "end_cycles", "text")) if isinstance(row, dict) else (0, 0, 0)
        )
        if (
            type(start) is int
            and type(end) is int
            and isinstance(text, str)
            and limits.contains(start)
            and end >= start
        ):
            marks.append(Mark(start, min(end, limits.end), text[:_TEXT_MAX]))
    return sorted(marks, key=_by_time)
