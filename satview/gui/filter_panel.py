"""The filter panel: classes with their events, processes with their threads; hides in lanes and list."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QTabWidget, QVBoxLayout, QWidget

from satview.gui.check_tree import CheckTree, Group, Leaf
from satview.session.open_trace import OpenTrace
from satview.store.trace import Trace


class FilterPanel(QWidget):
    """Two trees, and a line that says how much passes."""

    def __init__(self, opened: OpenTrace, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._opened = opened
        self._codes = np.flatnonzero(opened.trace.code_counts)
        self.events = CheckTree(event_groups(opened.trace), "Find an event or class", self)
        self.threads = CheckTree(thread_groups(opened.trace, opened.events_of_thread), "Find a process or thread", self)
        self.events.toggled.connect(self._on_events)
        self.threads.toggled.connect(self._on_threads)
        tabs = QTabWidget(self)
        tabs.setDocumentMode(True)
        tabs.addTab(self.events, "Events")
        tabs.addTab(self.threads, "Processes")
        self.summary = QLabel(self)
        self.summary.setProperty("role", "dim")
        self._reset = QPushButton("Show all", self)
        self._reset.setProperty("flat", "true")
        self._reset.clicked.connect(opened.filters.show_all)
        foot = QHBoxLayout()
        foot.setContentsMargins(10, 4, 8, 6)
        foot.addWidget(self.summary)
        foot.addStretch()
        foot.addWidget(self._reset)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(tabs)
        layout.addLayout(foot)
        opened.filters.changed.connect(self.refresh)
        opened.filters.rows_changed.connect(self._show_summary)
        self._show_summary()

    @Slot()
    def refresh(self) -> None:
        """Show the filter of now in the check boxes."""
        filters = self._opened.filters
        self.events.refresh(int(code) for code in self._codes if filters.codes[code])
        self.threads.refresh(int(row) for row in np.flatnonzero(filters.threads))
        self._show_summary()

    @Slot()
    def _show_summary(self) -> None:
        filters, total = self._opened.filters, len(self._opened.trace.events)
        self._reset.setEnabled(filters.is_active)
        self.summary.setText(
            f"{filters.row_count:,} of {total:,} events" if filters.is_active else f"All {total:,} events"
        )

    @Slot(list, bool)
    def _on_events(self, codes: list[int], show: bool) -> None:
        self._opened.filters.show_codes(codes, show)

    @Slot(list, bool)
    def _on_threads(self, rows: list[int], show: bool) -> None:
        self._opened.filters.show_threads(rows, show)


def event_groups(trace: Trace) -> list[Group]:
    """Return the classes of a trace in table order with the events that occur, most frequent first."""
    counts = trace.code_counts
    by_class: dict[str, list[Leaf]] = {}
    for code in np.flatnonzero(counts):
        spec = trace.catalogue.spec(int(code))
        name = f"{spec.name} (64 bit)" if spec.is_64bit else spec.name
        by_class.setdefault(spec.class_name, []).append(Leaf(int(code), name, int(counts[code])))
    titles = {spec.name: spec.title for spec in trace.catalogue.classes}
    order = {spec.name: place for place, spec in enumerate(trace.catalogue.classes)}
    return [
        Group(name, tuple(sorted(by_class[name], key=lambda leaf: -leaf.count)), titles.get(name, ""))
        for name in sorted(by_class, key=lambda name: order.get(name, len(order)))
    ]


def thread_groups(trace: Trace, counts: NDArray[np.int64]) -> list[Group]:
    """Return the processes with their threads, by number of events."""
    by_process: dict[int, list[Leaf]] = {}
    for row in range(len(trace.threads)):
        process = int(trace.threads.process[row])
        tid = int(trace.threads.tid[row])
        title = f"{tid}  {trace.threads.names[row]}".strip() if tid > 0 else "thread not known"
        if row or counts[0]:
            by_process.setdefault(process, []).append(Leaf(row, title, int(counts[row])))
    groups = [
        Group(_process_title(trace, process), tuple(leaves), trace.processes.names[process])
        for process, leaves in by_process.items()
    ]
    return sorted(groups, key=lambda group: -sum(leaf.count for leaf in group.leaves))


def _process_title(trace: Trace, process: int) -> str:
    if not process:
        return "not known"
    name = trace.process_name(process)
    pid = int(trace.processes.pid[process])
    return name if name == f"pid {pid}" else f"{name}  (pid {pid})"
