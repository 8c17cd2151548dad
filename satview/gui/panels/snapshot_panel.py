"""What every thread does at the selected moment: a tree of states, what is waited for, and threads."""

from __future__ import annotations

from itertools import groupby
from typing import Final

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtGui import QIcon, QPixmap, QShowEvent
from PySide6.QtWidgets import QHeaderView, QStackedWidget, QTreeWidget, QTreeWidgetItem, QVBoxLayout, QWidget

from satview.analysis.reasons.snapshot import SnapshotGroup, ThreadThen, holder_text
from satview.base.safe_text import csv_text, tool_tip, visible_line
from satview.base.time_text import format_duration, format_moment
from satview.gui.colours import state_colour
from satview.gui.panel import Panel, PanelContext
from satview.gui.theme import Theme, colour
from satview.gui.widgets import Notice, PlainLabel
from satview.session.panels.snapshot_view import SnapshotView

_GROUPS: Final = int(Qt.ItemDataRole.UserRole)  # of a state: its groups; of a group: itself
_THREAD: Final = _GROUPS + 1
_HOLDER: Final = _GROUPS + 2
_KEY: Final = _GROUPS + 3  # what an open branch is known by in the next snapshot
_COLUMNS: Final = (("State and thread", 260), ("Threads", 64), ("Waits for, or runs on", 300),
                   ("Held or served by", 200), ("For", 0))  # fmt: skip
_COUNT, _WHAT, _BY, _FOR = 1, 2, 3, 4
_RIGHT: Final = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_OPEN_UP_TO: Final = 12  # threads of a state that are shown at first
_MOST: Final = 200  # rows under one branch: more than anybody reads, and few enough for a frame
_SWATCH_PX: Final = 10


class SnapshotPanel(Panel):
    """Threads by state at the moment of the selection or cursor A. Works only while it can be seen.

    Attributes:
        view: What is worked out.
        tree, moment: What shows.
    """

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self.view = SnapshotView(self._opened, self)
        self.moment = PlainLabel("", self)
        self.moment.setProperty("role", "dim")
        self.moment.setContentsMargins(8, 3, 8, 3)
        self.tree = QTreeWidget(self)
        self._set_up_tree()
        self._empty = Notice("", self)
        self._stack = QStackedWidget(self)
        self._stack.addWidget(self.tree)
        self._stack.addWidget(self._empty)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.moment)
        layout.addWidget(self._stack, 1)
        self._shown: object = None
        self._selected: dict[str, bool] = {}  # branches that the user opened or closed
        self.view.changed.connect(self._on_view)
        self._on_view()

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        super().set_theme(theme)
        self._shown = None
        self._on_view()

    def close_down(self) -> None:
        """Cancel the background task."""
        self.view.close()

    def copied_text(self) -> str:
        """Return the whole snapshot as tab-separated text with column names, while the tree has the focus."""
        if not self.tree.hasFocus():
            return ""
        lines = [("State", "Waits for", "Held or served by", "Thread", "For")]
        for group in self.view.found.groups if self.view.found is not None else ():
            lines += [(group.state, self._what(group), self._by(group), self._name(each.thread), self._for(each))
                      for each in group.threads]  # fmt: skip
        return "\n".join("\t".join(map(csv_text, line)) for line in lines)

    def showEvent(self, event: QShowEvent) -> None:
        """Follow the trace from now on."""
        super().showEvent(event)
        self.view.watch(True)

    def rest(self) -> None:
        """Stop working: nobody looks."""
        self.view.watch(False)

    def _set_up_tree(self) -> None:
        tree = self.tree
        tree.setAccessibleName("Snapshot")
        tree.setHeaderLabels([title for title, _ in _COLUMNS])
        tree.headerItem().setTextAlignment(_COUNT, _RIGHT)
        tree.setUniformRowHeights(True)
        tree.setIconSize(QSize(_SWATCH_PX, _SWATCH_PX))
        tree.header().setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        for column, (_, width_px) in enumerate(_COLUMNS[:-1]):
            tree.setColumnWidth(column, width_px)
        tree.itemExpanded.connect(self._on_expanded)
        tree.itemCollapsed.connect(self._on_collapsed)
        tree.itemClicked.connect(self._on_item)
        tree.itemActivated.connect(self._on_item)

    @Slot()
    def _on_view(self) -> None:
        """Show what there is, or why there is nothing."""
        view = self.view
        reason = view.error
        if not reason and view.found is None:
            reason = ("Select an event or interval, or set cursor A (1), to see the state of every thread at that time."
                      if view.at_cycles is None else "Examining all threads\N{HORIZONTAL ELLIPSIS}")  # fmt: skip
        self._empty.setText(reason)
        self._stack.setCurrentWidget(self._empty if reason else self.tree)
        self.moment.setVisible(not reason)
        if view.found is None:
            return
        clock = view.trace.clock
        count = f"{view.found.thread_count:,} threads"
        waits = " \N{MIDDLE DOT} updating\N{HORIZONTAL ELLIPSIS}" if view.is_pending else ""
        self.moment.setText(f"At {format_moment(view.found.at_cycles, clock)}: {count}{waits}")
        if self._shown is not view.found:
            self._shown = view.found
            self._fill()

    def _fill(self) -> None:
        """Write the states; what is below them once they are open."""
        assert self.view.found is not None
        bar = self.tree.verticalScrollBar()
        position = bar.value()
        self.tree.blockSignals(True)
        self.tree.clear()
        for _, groups in groupby(self.view.found.groups, key=lambda group: group.state):
            self._add_state(tuple(groups))
        self.tree.blockSignals(False)
        bar.setValue(position)

    def _add_state(self, groups: tuple[SnapshotGroup, ...]) -> None:
        count = sum(len(group.threads) for group in groups)
        item = QTreeWidgetItem(self.tree, [groups[0].state, f"{count:,}", "", "", ""])
        item.setTextAlignment(_COUNT, _RIGHT)
        item.setIcon(0, self._swatch(groups[0].value))
        item.setData(0, _GROUPS, groups)
        self._set_key(item, groups[0].state, count <= _OPEN_UP_TO)

    def _set_key(self, item: QTreeWidgetItem, key: str, is_open: bool) -> None:
        """Open a branch if it was open in the snapshot before, or else at first."""
        item.setData(0, _KEY, key)
        item.setChildIndicatorPolicy(QTreeWidgetItem.ChildIndicatorPolicy.ShowIndicator)
        if self._selected.get(key, is_open):
            self._add_below(item)
            item.setExpanded(True)

    def _add_below(self, item: QTreeWidgetItem) -> None:
        """Write what is below a branch, when it is first opened."""
        if item.childCount():
            return
        groups = item.data(0, _GROUPS)
        if isinstance(groups, SnapshotGroup):
            for each in groups.threads[:_MOST]:
                self._add_thread(item, groups, each, is_alone=False)
            self._add_more(item, len(groups.threads))
        elif isinstance(groups, tuple):
            for group in groups[:_MOST]:
                self._add_group(item, group)
            self._add_more(item, len(groups))

    def _add_group(self, top: QTreeWidgetItem, group: SnapshotGroup) -> None:
        if len(group.threads) == 1 or not group.waits_for:
            for each in group.threads[:_MOST]:
                self._add_thread(top, group, each, is_alone=True)
            self._add_more(top, len(group.threads))
            return
        what, by = self._what(group), self._by(group)
        item = QTreeWidgetItem(top, [f"{len(group.threads):,} threads", "", visible_line(what), visible_line(by), ""])
        item.setData(0, _GROUPS, group)
        self._mark_holder(item, group)
        item.setToolTip(_WHAT, tool_tip(what))
        self._set_key(item, f"{group.state}\n{what}\n{by}", len(group.threads) <= _OPEN_UP_TO)

    def _add_thread(self, top: QTreeWidgetItem, group: SnapshotGroup, each: ThreadThen, is_alone: bool) -> None:
        name, what = self._name(each.thread), self._what(group) if is_alone else ""
        by = self._by(group) if is_alone else ""
        item = QTreeWidgetItem(top, [visible_line(name), "", visible_line(what), visible_line(by), self._for(each)])
        item.setData(0, _THREAD, each)
        item.setToolTip(0, tool_tip(f"{name}\nClick to go to the thread and the event that started this state."))
        item.setToolTip(_WHAT, tool_tip(what))
        if is_alone:
            self._mark_holder(item, group)

    def _mark_holder(self, item: QTreeWidgetItem, group: SnapshotGroup) -> None:
        if group.holder > 0:
            item.setData(0, _HOLDER, group.holder)
            item.setForeground(_BY, colour(self._theme.accent))
            item.setToolTip(_BY, tool_tip(f"{self._by(group)}\nClick to go to that thread."))

    def _add_more(self, top: QTreeWidgetItem, count: int) -> None:
        if count > _MOST:
            item = QTreeWidgetItem(top, [f"and {count - _MOST:,} more", "", "", "", ""])
            item.setForeground(0, colour(self._theme.dim))

    @Slot(QTreeWidgetItem)
    def _on_expanded(self, item: QTreeWidgetItem) -> None:
        self._selected[item.data(0, _KEY)] = True
        self.tree.blockSignals(True)  # branches that open with it are not the user's selection
        self._add_below(item)
        self.tree.blockSignals(False)

    @Slot(QTreeWidgetItem)
    def _on_collapsed(self, item: QTreeWidgetItem) -> None:
        self._selected[item.data(0, _KEY)] = False

    @Slot(QTreeWidgetItem, int)
    def _on_item(self, item: QTreeWidgetItem, column: int) -> None:
        """Go to the thread, or to who holds what it waits for; the snapshot stays at its moment."""
        each, holder = item.data(0, _THREAD), item.data(0, _HOLDER)
        if self.view.found is None or self.view.trace is not self._opened.trace:
            return
        self.view.hold(True)
        if column == _BY and isinstance(holder, int):
            self._show(holder, -1)
        elif isinstance(each, ThreadThen):
            self._show(each.thread, each.row)
        self.view.hold(False)

    def _show(self, thread: int, row: int) -> None:
        """Select the event that began what a thread does, or, without one, what it does at the moment."""
        lane, found = self._opened.lane_of_thread(thread), self.view.found
        if row >= 0:
            self._navigation.show_event(row)
        elif lane is not None and found is not None:
            self._opened.lanes.reveal(lane)
            self._opened.select_at(lane, found.at_cycles)

    def _swatch(self, value: int) -> QIcon:
        rgb = state_colour(value, self._theme)
        pixmap = QPixmap(_SWATCH_PX, _SWATCH_PX)
        pixmap.fill(colour(self._theme.base if rgb is None else rgb))
        return QIcon(pixmap)

    def _what(self, group: SnapshotGroup) -> str:
        """Return what a group waits for, or where it runs."""
        return self.view.trace.cpu_title(group.cpu) if group.cpu >= 0 else group.waits_for

    def _by(self, group: SnapshotGroup) -> str:
        return holder_text(self.view.trace, group)

    def _name(self, thread: int) -> str:
        return self.view.trace.thread_name(thread)

    def _for(self, each: ThreadThen) -> str:
        """Return for how long a thread has been in its state."""
        found = self.view.found
        if each.row < 0 or found is None:
            return ""
        return format_duration(self.view.trace.clock.duration_ns(found.at_cycles - each.since_cycles))
