"""Links of the selected event, found in the background if the search takes longer than a frame; search hits as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal, Slot

from satview.base.errors import Cancelled, SourceChangedError
from satview.base.safe_text import csv_text
from satview.linkage.calls import are_made
from satview.linkage.chain import Connections, Hop, are_linked, connections, link_of, way
from satview.linkage.links import Link
from satview.session.event_text import COLUMNS, Meaning, are_named, argument_names, list_row
from satview.session.highlight import Selection
from satview.session.tasks import IsCancelled, Report, Task
from satview.store.trace import Trace

# Search hits as text for the clipboard.


_BLOCK: Final = 1 << 10
_FIRST_TEXT: Final = COLUMNS.index("Process")  # from this column on, cells hold names chosen by programs


def hits_text(trace: Trace, rows: NDArray[np.uint32], is_cancelled: IsCancelled, report: Report) -> str:
    """Return event rows as tab-separated text with a header line, for the clipboard.

    Raises:
        Cancelled: `is_cancelled()` returned True.
    """
    lines = _lines(trace, rows, is_cancelled, report)
    return "\n".join(["\t".join(COLUMNS), *("\t".join(cells) for cells in lines)])


def _lines(
    trace: Trace, rows: NDArray[np.uint32], is_cancelled: IsCancelled, report: Report
) -> Iterator[tuple[str, ...]]:
    """Yield the texts of each event, one per column."""
    previous: int | None = None
    for start in range(0, len(rows), _BLOCK):
        if is_cancelled():
            raise Cancelled("the copy was stopped")
        report(start / len(rows))
        for event in rows[start : start + _BLOCK].tolist():
            cells = list_row(trace, event, previous)
            yield (*cells[:_FIRST_TEXT], *map(csv_text, cells[_FIRST_TEXT:]))
            previous = event


_PAIRS_AT_ONCE: Final = 500_000  # events whose pairs are found within a frame
LINKS_AT_ONCE: Final = 20_000  # events whose links of all kinds are found within a frame


@dataclass(frozen=True, slots=True)
class FoundLinks:
    """The known links of an event.

    Attributes:
        link: The call, interrupt, handler or state that the event begins or ends; None = none, or not yet known.
        connected: Causes and effects of the event; None = not yet known.
        way: Steps from event to event, from the first cause to the last effect, drawn as arrows.
        names: Meaning of the event's arguments, by argument name.
    """

    link: Link | None = None
    connected: Connections | None = None
    way: tuple[Hop, ...] = ()
    names: Mapping[str, Meaning] = field(default_factory=dict)


class EventLinks(QObject):
    """The links of the selected event, for all views of a trace.

    Signals:
        changed: More links are known, or another event is selected.
    """

    changed = Signal()

    def __init__(self, selection: Selection, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._selection = selection
        self._trace: Trace | None = None
        self._event: int | None = None
        self.links = FoundLinks()
        self._job = Task(self, self._on_found)
        selection.changed.connect(self._on_selection)

    @property
    def is_busy(self) -> bool:
        """Whether links are still being searched for."""
        return self._job.is_busy

    def take(self, trace: Trace) -> None:
        """Switch to another trace object, for example after a reload, and search again for the selection's links."""
        self._trace, self._event = trace, None
        self._on_selection()

    def close(self) -> None:
        """Stop the background task."""
        self._job.close()

    @Slot()
    def _on_selection(self) -> None:
        event, trace = self._selection.event, self._trace
        if event == self._event or trace is None:
            return
        self._job.cancel()
        self._event, self.links = event, FoundLinks()
        if event is not None:
            if len(trace.events) <= LINKS_AT_ONCE or (are_linked(trace) and are_named(trace)):
                self.links = find_links(trace, event)
            else:
                if len(trace.events) <= _PAIRS_AT_ONCE or are_made(trace):
                    self.links = FoundLinks(link_of(trace, event))
                self._job.start(lambda _: find_links(trace, event))  # the first call builds all links of the trace
        self.changed.emit()

    @Slot(object)
    def _on_found(self, answer: object) -> None:
        if isinstance(answer, FoundLinks):
            self.links = answer
            self.changed.emit()


def find_links(trace: Trace, event: int) -> FoundLinks:
    """Return the links of an event; none if its arguments are gone because the file was truncated.

    The first call for a trace builds all its links.
    """
    try:
        return FoundLinks(link_of(trace, event), connections(trace, event), way(trace, event),
                          argument_names(trace, event))  # fmt: skip
    except SourceChangedError:  # the window reports that itself
        return FoundLinks()
