"""What is wrong in the trace, found without being requested: verdicts with their position, evidence and remedy."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt, Slot
from PySide6.QtWidgets import (
    QHeaderView,
    QStackedWidget,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from satview.analysis.verdicts.verdict import Occurrence, Severity, Verdict
from satview.base.safe_text import tool_tip, visible_line
from satview.base.time import TimeWindow
from satview.base.time_text import format_duration, format_moment
from satview.events.states import DEAD, NOT_A_STATE, READY, RUNNING
from satview.gui.panel import Panel, PanelContext
from satview.gui.plain_label import Notice
from satview.gui.theme import Theme, colour
from satview.session.events.event_text import arguments_text

_VERDICT: Final = int(Qt.ItemDataRole.UserRole)
_EVENT: Final = _VERDICT + 1
_OCCURRENCE: Final = _VERDICT + 2
_WHAT: Final = 3
_HIGH_PX: Final = 1 << 16
_PADDING_PX: Final = 6
_MOST_OCCURRENCES: Final = 200  # rows below one verdict
_COLUMNS: Final = (("Verdict", 200), ("Time", 150), ("Length", 90), ("What", 0))


class VerdictsPanel(Panel):
    """Verdicts, each with its evidence below it; they are looked for when the panel is first seen."""

    waits_to_be_seen = True

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self._report = context.report
        self.tree = QTreeWidget(self)
        self.tree.setAccessibleName("Verdicts")
        self.tree.setHeaderLabels([title for title, _ in _COLUMNS])
        self.tree.setItemDelegateForColumn(_WHAT, WrappedText(self.tree))
        self.tree.setWordWrap(True)
        self.tree.header().setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        self.tree.header().setStretchLastSection(True)
        for column, (_, width_px) in enumerate(_COLUMNS[:-1]):
            self.tree.setColumnWidth(column, width_px)
        self.tree.header().sectionResized.connect(self._on_resized)
        self.tree.itemExpanded.connect(self._add_evidence)
        self.tree.itemClicked.connect(self._on_item)
        self.tree.itemActivated.connect(self._on_item)
        self._empty = Notice("", self)
        self._stack = QStackedWidget(self)
        self._stack.addWidget(self.tree)
        self._stack.addWidget(self._empty)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._stack)
        self._opened.verdicts.changed.connect(self._fill)
        self._fill()

    def reload(self) -> None:
        """Look for verdicts, at first and in a refreshed trace."""
        self._opened.verdicts.start()

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        self._theme = theme
        self._fill()

    @Slot()
    def _fill(self) -> None:
        search = self._opened.verdicts
        self.tree.clear()
        found = search.found
        if found is None or search.error:
            self._empty.setText(search.error or "Looking for what is wrong\N{HORIZONTAL ELLIPSIS}")
            self._stack.setCurrentWidget(self._empty)
            return
        for verdict in found.verdicts:
            self._add(verdict)
        if found.more:
            more = QTreeWidgetItem(self.tree, ["there may be more", "", "", visible_line(found.more)])
            more.setForeground(0, colour(self._theme.dim))
        if found.undecided:
            self._add_undecided()
        if not found.verdicts and not found.undecided:
            self._empty.setText("Nothing wrong was found: no deadlock, no inversion, no thread that waits too long.")
        self._stack.setCurrentWidget(self.tree if found.verdicts or found.undecided else self._empty)

    @Slot(int)
    def _on_resized(self, column: int) -> None:
        """Wrap sentences at the new width."""
        if column == _WHAT:
            self.tree.scheduleDelayedItemsLayout()

    def _add(self, verdict: Verdict) -> None:
        theme = self._theme
        top = QTreeWidgetItem(self.tree, [
            str(verdict.kind), *self._time_and_length(verdict.occurrences[0]), visible_line(verdict.says),
        ])  # fmt: skip
        severities = {Severity.ERROR: theme.error, Severity.WARNING: theme.warning}
        top.setForeground(0, colour(severities.get(verdict.severity, theme.dim)))
        top.setToolTip(0, tool_tip(f"{verdict.severity}, {verdict.certainty.name.lower()}"))
        top.setToolTip(_WHAT, tool_tip(f"{verdict.says}\n{verdict.remedy}"))
        top.setTextAlignment(2, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        top.setData(0, _VERDICT, verdict)
        top.setChildIndicatorPolicy(QTreeWidgetItem.ChildIndicatorPolicy.ShowIndicator)

    @Slot(QTreeWidgetItem)
    def _add_evidence(self, top: QTreeWidgetItem) -> None:
        """Write what is below a verdict, when it is first opened: of hundreds it would hold the window for long."""
        verdict = top.data(0, _VERDICT)
        if not isinstance(verdict, Verdict) or top.childCount():
            return
        QTreeWidgetItem(top, ["remedy", "", "", visible_line(verdict.remedy)])
        for number, occurrence in enumerate(verdict.occurrences if len(verdict.occurrences) > 1 else (), 1):
            if number > _MOST_OCCURRENCES:
                QTreeWidgetItem(top, [f"and {len(verdict.occurrences) - _MOST_OCCURRENCES:,} more"])
                break
            self._add_occurrence(top, verdict, occurrence, number)
        for event, role in zip(verdict.evidence, verdict.roles, strict=True):
            self._add_event(top, event, role)

    def _time_and_length(self, occurrence: Occurrence) -> tuple[str, str]:
        clock = self._opened.trace.clock
        length = format_duration(clock.duration_ns(occurrence.end_cycles - occurrence.start_cycles))
        return format_moment(occurrence.start_cycles, clock), length

    def _add_occurrence(self, top: QTreeWidgetItem, verdict: Verdict, occurrence: Occurrence, number: int) -> None:
        is_main = occurrence.start_cycles == verdict.start_cycles
        item = QTreeWidgetItem(top, [
            f"{number} of {len(verdict.occurrences):,}", *self._time_and_length(occurrence),
            "the time that the sentence reports" if is_main else "",
        ])  # fmt: skip
        item.setTextAlignment(2, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        item.setData(0, _OCCURRENCE, occurrence)

    def _add_event(self, top: QTreeWidgetItem, event: int, role: str) -> None:
        trace = self._opened.trace
        thread = int(trace.events.thread[event])
        said = f"{trace.spec(event).name}  {arguments_text(trace.payloads.decode(event, 40).arguments, 120)}"
        item = QTreeWidgetItem(top, [
            f"event {event + 1:,}", format_moment(int(trace.events.time_cycles[event]), trace.clock), "",
            visible_line(f"{f'{role}: ' if role else ''}{f'{trace.thread_name(thread)}  ' if thread else ''}{said}"),
        ])  # fmt: skip
        item.setData(0, _EVENT, event)

    def _add_undecided(self) -> None:
        found = self._opened.verdicts.found
        assert found is not None
        top = QTreeWidgetItem(self.tree, ["not known here", "", "", "What this trace cannot show, and what to capture"])
        top.setForeground(0, colour(self._theme.dim))
        for kind, reason in found.undecided.items():
            QTreeWidgetItem(top, [str(kind), "", "", visible_line(reason)])
        top.setExpanded(not found.verdicts)

    def _shown_of(self, verdict: Verdict) -> int | None:
        """Return the event of the evidence that shows most: what the thread that suffers waits in, or is ready from."""
        trace = self._opened.trace
        mine = [event for event in verdict.evidence if int(trace.events.thread[event]) in verdict.threads[:1]]
        state = {event: int(trace.catalogue.state_value_of_code[trace.events.code[event]]) for event in mine}
        waits = [event for event in mine if state[event] not in (NOT_A_STATE, RUNNING, READY, DEAD)]
        ready = [event for event in mine if state[event] == READY]
        return next(iter(waits or ready or mine or verdict.evidence), None)

    @Slot(QTreeWidgetItem, int)
    def _on_item(self, item: QTreeWidgetItem, _column: int) -> None:
        verdict, event, occurrence = (item.data(0, role) for role in (_VERDICT, _EVENT, _OCCURRENCE))
        if isinstance(verdict, Verdict):
            is_first = verdict.occurrences[0].start_cycles == verdict.start_cycles
            self._show(verdict.occurrences[0], self._shown_of(verdict) if is_first else None)
        elif isinstance(occurrence, Occurrence):
            self._show(occurrence, None)
        elif isinstance(event, int):
            self._navigation.show_event(event)

    def _show(self, occurrence: Occurrence, event: int | None) -> None:
        """Show a time, and select an event: the one given, else the one by which it begins."""
        shown = event if event is not None else occurrence.row
        if shown >= 0:
            self._navigation.show_event(shown)
            self._report("Y says why the selected thread is in its state; I shows its details")
        self._opened.viewport.fit(TimeWindow(occurrence.start_cycles, occurrence.end_cycles))


class WrappedText(QStyledItemDelegate):
    """Gives a row the height that its text needs in the width of the column; Qt itself gives every row one line."""

    def __init__(self, tree: QTreeWidget) -> None:
        super().__init__(tree)
        self._tree = tree

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        """Return the size of a row."""
        size = super().sizeHint(option, index)
        margin_px = 2 * (self._tree.style().pixelMetric(QStyle.PixelMetric.PM_FocusFrameHMargin) + 2)
        room = QRect(0, 0, max(80, self._tree.columnWidth(index.column()) - margin_px), _HIGH_PX)
        flags = int(Qt.TextFlag.TextWordWrap)
        needed = option.fontMetrics.boundingRect(room, flags, str(index.data()))
        return QSize(size.width(), max(size.height(), needed.height() + _PADDING_PX))
