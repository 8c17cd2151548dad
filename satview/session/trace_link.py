"""Links to a position in a trace as text, `FILE#t=1.2s..1.5s&sel=1200`; and linked views, which move together."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlparse

from PySide6.QtCore import QObject, Signal

from satview.base.errors import UsageError

if TYPE_CHECKING:
    from satview.session.open_trace import OpenTrace


# Linked views show the same time range and selection.


class ViewLinks(QObject):
    """The linked views of all windows; views of the same file follow each other.

    Signals:
        changed: A view was linked or unlinked.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._members: dict[OpenTrace, list[object]] = {}  # with the connections to each
        self._is_passing_on = False

    def has(self, view: OpenTrace) -> bool:
        """Return whether a view is linked."""
        return view in self._members

    def add(self, view: OpenTrace) -> None:
        """Link a view; it takes over the time range of a linked view of the same file."""
        if view in self._members:
            return
        other = next((member for member in self._members if _is_same(member, view)), None)
        connections: list[object] = []
        for signal, pass_on in (
            (view.viewport.window_changed, self._pass_window),
            (view.selection.changed, self._pass_selection),
            (view.selection.range_changed, self._pass_range),
            (view.selection.cursors_changed, self._pass_cursors),
        ):
            connections.append(signal.connect(partial(pass_on, view)))
        self._members[view] = connections
        view.destroyed.connect(partial(self.remove, view))
        if other is not None:
            self._pass_window(other)
        self.changed.emit()

    def remove(self, view: OpenTrace, *_: object) -> None:
        """Unlink a view; also called when a view was deleted, as its selection may live on in another view."""
        for connection in self._members.pop(view, []):
            QObject.disconnect(connection)  # type: ignore[call-overload]  # PySide declares no connections
        self.changed.emit()

    def _others(self, view: OpenTrace) -> list[OpenTrace]:
        return [other for other in self._members if other is not view and _is_same(other, view)]

    def _pass_window(self, view: OpenTrace) -> None:
        if not self._is_passing_on:
            self._is_passing_on = True
            for other in self._others(view):
                other.viewport.move(view.viewport.window)
            self._is_passing_on = False

    def _pass_selection(self, view: OpenTrace) -> None:
        selection = view.selection
        for other in self._others(view):
            if other.timeline is view.timeline:  # lanes and events have the same numbers
                if selection.lane is not None and not other.lanes.knows(selection.lane):
                    other.lanes.add_classes()
                other.selection.select(selection.event, selection.lane, selection.span, selection.is_interval)

    def _pass_range(self, view: OpenTrace) -> None:
        for other in self._others(view):
            other.selection.set_range(view.selection.time_range)

    def _pass_cursors(self, view: OpenTrace) -> None:
        for other in self._others(view):
            other.selection.set_cursors(view.selection.cursor_a, view.selection.cursor_b)


def _is_same(view: OpenTrace, other: OpenTrace) -> bool:
    return view.trace is other.trace or view.trace.path.absolute() == other.trace.path.absolute()


_FRAGMENT: Final = re.compile(r"(?:t|sel|range)=[^&#]*(?:&(?:t|sel|range)=[^&#]*)*")
_TEXT_MAX: Final = 4096


@dataclass(frozen=True, slots=True)
class TraceLink:
    """A trace file with the range, event, session and second trace to show.

    Attributes:
        path: The file.
        range_text: `A..B`, the visible range, in any notation of ranges; empty for the default.
        event: Number of the event to select, from 1; None for none.
        selected: `A..B`, the selected range; empty for none.
        session: Name or file of a saved session to apply; empty for none.
        beside: File of a second trace to compare with; empty for none.
    """

    path: Path
    range_text: str = ""
    event: int | None = None
    selected: str = ""
    session: str = ""
    beside: str = ""

    @property
    def has_position(self) -> bool:
        """True if the link gives more than the file."""
        return bool(self.range_text or self.selected or self.session or self.beside) or self.event is not None


def parse_link(text: str) -> TraceLink:
    """Return the link in a text: a path or a path with a position, each plain or as a `file:` URL.

    If a file exists whose name looks like a link, the text is taken as the path of this file.

    Raises:
        UsageError: The link or an option is faulty.
    """
    text = text.strip().strip("\"'")
    if not text or len(text) > _TEXT_MAX or "\0" in text:
        raise UsageError("write FILE, or FILE#t=1.2s..1.5s&sel=1200")
    path, hash_sign, fragment = text.rpartition("#")
    if not hash_sign or not _FRAGMENT.fullmatch(fragment) or _exists(Path(text)):
        return TraceLink(_path_of(text))
    values = dict(part.split("=", 1) for part in fragment.split("&"))
    number = values.get("sel", "")
    if number and not (number.isascii() and number.isdigit() and len(number) < 16):
        raise UsageError(f"sel={number[:40]} is not an event number; write sel=1200")
    event = int(number) if number else None
    return TraceLink(_path_of(path), unquote(values.get("t", "")), event, unquote(values.get("range", "")))


def link_to(opened: OpenTrace) -> str:
    """Return a link to the current view: file, visible range, selected event and selected range."""
    from satview.base.time import range_text  # with the trace, not before: brings numpy

    parts, clock, whole = [], opened.trace.clock, opened.trace.window
    if not opened.viewport.is_whole:
        parts.append(f"t={range_text(opened.viewport.window.within(whole), clock)}")
    if opened.selection.event is not None:
        parts.append(f"sel={opened.selection.event + 1}")
    if opened.selection.time_range is not None:
        parts.append(f"range={range_text(opened.selection.time_range.within(whole), clock)}")
    path = str(opened.trace.path.absolute())
    return f"{path}#{'&'.join(parts)}" if parts else path


def _path_of(text: str) -> Path:
    if text.startswith("file:"):
        from urllib.request import url2pathname  # on first use: it brings http and ssl

        return Path(url2pathname(urlparse(text).path))
    return Path(text)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a text may be longer than a name can be
        return False
