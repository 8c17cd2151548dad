"""The panel Filter: a condition, check boxes for classes, events, processes and threads, and numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPoint, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QComboBox,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QMenu,
    QPushButton,
    QSizePolicy,
    QTabWidget,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from satview.analysis.statistics import Statistics
from satview.base.errors import UsageError
from satview.base.safe_text import counted, menu_text, percent, tool_tip, visible_line
from satview.filters import passes
from satview.filters.passes import Effect, Pass
from satview.filters.rules.fastwide import has_two_forms
from satview.gui.filters.chips import EFFECTS
from satview.gui.filters.editing import ExpressionLine, fault_text
from satview.gui.filters.rules_tab import RulesTab
from satview.gui.panel import Panel, PanelContext
from satview.gui.theme import Theme
from satview.gui.widgets import LowGrid, MessageLine, PlainLabel, capitalized, drop_down, flat_button, is_low, line_up
from satview.session.filter_stack import count_hits, make_columns_ready
from satview.session.open_trace import OpenTrace
from satview.session.tasks import Task
from satview.store.time_ranges import idle_threads
from satview.store.trace import Trace

# A tree of check boxes with counts and notes, a search box and buttons; groups are tri-state.


_KEY: Final = int(Qt.ItemDataRole.UserRole)
_CHECK: Final = int(Qt.ItemDataRole.CheckStateRole)
_RIGHT: Final = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_NOTE: Final = 2
_PATH: Final = _KEY + 1  # searchable text of a group besides its title
_TIPS: Final = {
    "All": "Check everything that the search box finds",
    "None": "Uncheck everything that the search box finds",
    "Invert": "Invert every check that the search box finds",
    "Only": "Check only the selected rows, or only what the search box finds",
}


@dataclass(frozen=True, slots=True)
class Leaf:
    """An entry of the tree, such as an event or a thread, that can be shown or hidden.

    Attributes:
        key: Number that identifies the entry.
        title: Name of the entry.
        count: Number of events of the entry.
        note: Text of the last column.
    """

    key: int
    title: str
    count: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class LeafGroup:
    """A group of entries of the tree, such as an event class or a process."""

    title: str
    leaves: tuple[Leaf, ...]
    tip: str = ""


class _GroupItem(QTreeWidgetItem):
    """Tree item of a group; a click emits one change, and not one for each leaf that Qt checks (`passes_on`)."""

    passes_on = False

    def setData(self, column: int, role: int, value: object) -> None:
        """Set the check state of the group and its leaves as one change."""
        self.passes_on = True
        super().setData(column, role, value)
        self.passes_on = False
        tree = self.treeWidget()
        if role == _CHECK and tree is not None and self.checkState(0) != Qt.CheckState.PartiallyChecked:
            tree.itemChanged.emit(self, column)


class CheckTree(QWidget):
    """A tree with check boxes: groups, such as classes or processes, and their leaves, such as events or threads.

    Signals:
        toggled: Sends the keys of entries, and True to show or False to hide these.
        inverted: Sends the keys of entries to hide if shown, and show if hidden.
        only_requested: Sends the keys of the only entries to show.
        note_clicked: Sends the keys of the entries whose note was clicked.
    """

    toggled = Signal(list, bool)
    inverted = Signal(list)
    only_requested = Signal(list)
    note_clicked = Signal(list)

    def __init__(
        self,
        groups: Iterable[LeafGroup],
        placeholder: str,
        parent: QWidget | None = None,
        heads: tuple[str, str, str] = ("Name", "Events", ""),
    ) -> None:
        super().__init__(parent)
        self.search = QLineEdit(self, placeholderText=placeholder, clearButtonEnabled=True)
        self.search.textChanged.connect(self._on_search)
        self.tree = QTreeWidget(self)
        self._set_up_tree(heads[: 3 if heads[2] else 2])
        self._leaves: dict[int, QTreeWidgetItem] = {}
        for group in groups:
            self._add_group(group)
        self.tree.itemChanged.connect(self._on_item)
        self.buttons = self._buttons()
        self._head = line_up(QBoxLayout(QBoxLayout.Direction.TopToBottom), self.search, self.buttons, spacing=6)
        line_up(QVBoxLayout(self), self._head, (self.tree, 1), margins=(8, 8, 8, 0), spacing=6)
        self._empty_notice = PlainLabel("Nothing fits the search.", self.tree, role="faint")
        self._empty_notice.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._empty_notice.hide()
        line_up(QVBoxLayout(self.tree.viewport()), self._empty_notice)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Place the buttons beside the search box if the tree is low."""
        super().resizeEvent(event)
        box = QBoxLayout.Direction
        self._head.setDirection(box.LeftToRight if is_low(self) else box.TopToBottom)

    def reload(self, groups: Sequence[LeafGroup]) -> list[LeafGroup]:
        """Update counts and titles, and append new groups and leaves; existing ones keep their positions.

        None of the groups and leaves so far may be missing. Return the groups in the order of the tree.
        """
        order = {}
        self.tree.blockSignals(True)
        for group in groups:
            parents = (self._leaves[leaf.key].parent() for leaf in group.leaves if leaf.key in self._leaves)
            top = next(parents, None)
            if top is None:
                top = self._add_group(LeafGroup(group.title, (), group.tip))
            _set_text(top, 0, group.title)
            _set_text(top, 1, f"{sum(leaf.count for leaf in group.leaves):,}")
            for leaf in group.leaves:
                item = self._leaves.get(leaf.key)
                if item is None:
                    self._add_leaf(top, leaf)
                else:
                    _set_text(item, 0, leaf.title)
                    _set_text(item, 1, f"{leaf.count:,}")
            order[self.tree.indexOfTopLevelItem(top)] = group
        self.tree.blockSignals(False)
        if self.search.text():
            self._on_search(self.search.text())
        return [order[position] for position in sorted(order)]

    def refresh(self, shown: Iterable[int]) -> None:
        """Check the entries with these keys, and uncheck all others."""
        requested = set(shown)
        self.tree.blockSignals(True)
        for key, item in self._leaves.items():
            state = Qt.CheckState.Checked if key in requested else Qt.CheckState.Unchecked
            if item.checkState(0) != state:
                item.setCheckState(0, state)
        self.tree.blockSignals(False)
        self.tree.viewport().update()

    def set_notes(self, notes: Mapping[int, str], of_groups: Sequence[str] = ()) -> None:
        """Set the texts of the last column: for leaves by key, for groups in the order of the tree."""
        self.tree.blockSignals(True)
        for key, text in notes.items():
            if self._leaves[key].text(2) != text:
                self._leaves[key].setText(2, text)
        for i, text in enumerate(of_groups):
            top = self.tree.topLevelItem(i)
            if top is not None and top.text(2) != text:
                top.setText(2, text)
                top.setTextAlignment(2, _RIGHT)
        self.tree.blockSignals(False)
        self.tree.viewport().update()

    def selected_keys(self) -> list[int]:
        """Return the keys of the selected entries; for a group, of its leaves that match the text in the search box."""
        keys: dict[int, None] = {}
        for item in self.tree.selectedItems():
            keys |= dict.fromkeys(leaf.data(0, _KEY) for leaf in self._leaves_of(item) if not leaf.isHidden())
        return list(keys)

    def menu(self) -> QMenu:
        """Return the context menu of the selected rows."""
        keys, rows = self.selected_keys(), self.tree.selectedItems()
        subject = menu_text(rows[0].text(0)) if len(rows) == 1 else f"these {len(rows)}"
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for text, run in (
            (f"Filter &to {subject}", partial(self.only_requested.emit, keys)),
            (f"E&xclude {subject}", partial(self.toggled.emit, keys, False)),
            (f"&Include {subject}", partial(self.toggled.emit, keys, True)),
        ):
            menu.addAction(text).triggered.connect(run)
        return menu

    def visible_keys(self) -> list[int]:
        """Return the keys of the entries that match the text in the search box."""
        return [key for key, item in self._leaves.items() if not item.isHidden()]

    def _set_up_tree(self, heads: Sequence[str]) -> None:
        tree, header = self.tree, self.tree.header()
        tree.setColumnCount(len(heads))
        tree.setHeaderLabels(list(heads))
        header.setStretchLastSection(False)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        for column in range(1, len(heads)):
            tree.headerItem().setTextAlignment(column, _RIGHT)
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.ResizeToContents)
        tree.setSelectionMode(QTreeWidget.SelectionMode.ExtendedSelection)
        tree.setUniformRowHeights(True)
        tree.setIndentation(16)
        tree.itemClicked.connect(self._on_clicked)
        tree.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        tree.customContextMenuRequested.connect(self._on_menu)

    def _buttons(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(2)
        for title, slot in (
            ("All", partial(self._show_visible, True)),
            ("None", partial(self._show_visible, False)),
            ("Invert", self._on_invert),
            ("Only", self._on_only),
        ):
            button = flat_button(title, self, slot, _TIPS[title])
            button.setFocusPolicy(Qt.FocusPolicy.NoFocus)
            row.addWidget(button)
        row.addStretch()
        return row

    def _add_group(self, group: LeafGroup) -> _GroupItem:
        top = _GroupItem(self.tree, [visible_line(group.title), f"{sum(leaf.count for leaf in group.leaves):,}"])
        top.setFlags(top.flags() | Qt.ItemFlag.ItemIsAutoTristate)
        top.setToolTip(0, tool_tip(group.tip))
        top.setData(0, _PATH, group.tip)
        top.setTextAlignment(1, _RIGHT)
        for leaf in group.leaves:
            self._add_leaf(top, leaf)
        return top

    def _add_leaf(self, top: QTreeWidgetItem, leaf: Leaf) -> None:
        item = QTreeWidgetItem(top, [visible_line(leaf.title), f"{leaf.count:,}", visible_line(leaf.note)])
        item.setData(0, _KEY, leaf.key)
        item.setCheckState(0, Qt.CheckState.Checked)
        for column in (1, 2):
            item.setTextAlignment(column, _RIGHT)
        self._leaves[leaf.key] = item

    @Slot(QTreeWidgetItem, int)
    def _on_item(self, item: QTreeWidgetItem, column: int) -> None:
        group = item if isinstance(item, _GroupItem) else item.parent()
        is_passing_on = isinstance(group, _GroupItem) and group.passes_on
        if column != 0 or is_passing_on or item.checkState(0) == Qt.CheckState.PartiallyChecked:
            return
        show = item.checkState(0) == Qt.CheckState.Checked
        self.toggled.emit([leaf.data(0, _KEY) for leaf in self._leaves_of(item)], show)

    def _leaves_of(self, item: QTreeWidgetItem) -> list[QTreeWidgetItem]:
        children = [item.child(i) for i in range(item.childCount())]
        return [child for child in children if child is not None] or [item]

    @Slot(QPoint)
    def _on_menu(self, position: QPoint) -> None:
        if self.selected_keys():
            self.menu().popup(self.tree.viewport().mapToGlobal(position))

    @Slot(QTreeWidgetItem, int)
    def _on_clicked(self, item: QTreeWidgetItem, column: int) -> None:
        if column == _NOTE and self.tree.columnCount() > _NOTE:
            self.note_clicked.emit([leaf.data(0, _KEY) for leaf in self._leaves_of(item) if not leaf.isHidden()])

    @Slot(str)
    def _on_search(self, text: str) -> None:
        words = text.casefold().split()
        for i in range(self.tree.topLevelItemCount()):
            top = self.tree.topLevelItem(i)
            assert top is not None
            title = f"{top.text(0)} {top.data(0, _PATH)}".casefold()
            top_matches = all(word in title for word in words)
            any_shown = False
            for child in filter(None, map(top.child, range(top.childCount()))):
                name = f"{title} {child.text(0).casefold()}"
                shown = all(word in name for word in words)
                child.setHidden(not shown)
                any_shown |= shown
            top.setHidden(not (any_shown or top_matches))
            top.setExpanded(bool(words) and any_shown)
        tops = map(self.tree.topLevelItem, range(self.tree.topLevelItemCount()))
        self._empty_notice.setVisible(all(top.isHidden() for top in tops if top is not None))

    def _show_visible(self, shows: bool) -> None:
        self.toggled.emit(self.visible_keys(), shows)

    @Slot()
    def _on_invert(self) -> None:
        self.inverted.emit(self.visible_keys())

    @Slot()
    def _on_only(self) -> None:
        self.only_requested.emit(self.selected_keys() or self.visible_keys())


def _set_text(item: QTreeWidgetItem, column: int, text: str) -> None:
    if item.text(column) != visible_line(text):
        item.setText(column, visible_line(text))


# Contents of the trees: classes with their events, processes with their threads.


def event_groups(trace: Trace) -> list[LeafGroup]:
    """Return the classes in table order, with the events that occur in the trace, most frequent first."""
    counts = trace.code_counts
    by_class: dict[str, list[Leaf]] = {}
    for code in np.flatnonzero(counts):
        spec = trace.catalogue.spec(int(code))
        name = f"{spec.name} (64 bit)" if spec.is_64bit else spec.name
        by_class.setdefault(spec.class_name, []).append(Leaf(int(code), name, int(counts[code])))
    titles = {spec.name: spec.title for spec in trace.catalogue.classes}
    order = {spec.name: position for position, spec in enumerate(trace.catalogue.classes)}
    return [
        LeafGroup(name, tuple(sorted(by_class[name], key=lambda leaf: -leaf.count)), titles.get(name, ""))
        for name in sorted(by_class, key=lambda name: order.get(name, len(order)))
    ]


def thread_groups(trace: Trace, counts: NDArray[np.int64]) -> list[LeafGroup]:
    """Return the processes with their threads, by descending number of events."""
    by_process: dict[int, list[Leaf]] = {}
    for row in range(len(trace.threads)):
        process = int(trace.threads.process[row])
        tid = int(trace.threads.tid[row])
        title = f"{tid}  {trace.threads.names[row]}".strip() if tid > 0 else "unknown thread"
        if row or counts[0]:
            by_process.setdefault(process, []).append(Leaf(row, title, int(counts[row])))
    groups = [
        LeafGroup(_process_title(trace, process), tuple(leaves), trace.processes.names[process])
        for process, leaves in by_process.items()
    ]
    return sorted(groups, key=lambda group: -sum(leaf.count for leaf in group.leaves))


def _process_title(trace: Trace, process: int) -> str:
    if not process:
        return "not known"
    name = trace.process_name(process)
    pid = int(trace.processes.pid[process])
    return name if name == f"pid {pid}" else f"{name}  (pid {pid})"


# The button that selects threads by what they did.


_TOP: Final = (3, 5, 10, 20)


class ThreadPresets(QPushButton):
    """Button with a menu of thread selections, such as those that used the CPU; a choice hides all other threads.

    `picked` returns the rows of the threads selected in the panel.
    """

    def __init__(self, opened: OpenTrace, picked: Callable[[], list[int]], parent: QWidget | None = None) -> None:
        super().__init__("Presets", parent)
        self.setProperty("flat", "true")
        self._opened = opened
        self._selected = picked
        self._title = ""
        self._job = Task(self, self._on_done, self._on_failed)
        menu = QMenu(self)
        for title, choose in (
            ("Used the CPU", passes.used_cpu),
            ("Changed state", passes.changed_state),
            ("Did IPC", passes.did_ipc),
        ):
            menu.addAction(title, partial(self._start, title, choose))
        menu.addAction("MsgSend family of the selected", self._start_family)
        menu.addSeparator()
        for count in _TOP:
            title = f"Top {count} by CPU"
            menu.addAction(title, partial(self._start, title, partial(_top_by_cpu, count=count)))
        self.setMenu(menu)

    def _start(self, title: str, choose: Callable[[Trace], NDArray[np.bool_]]) -> None:
        trace = self._opened.trace
        self._title = title
        self._job.start(lambda _: choose(trace))

    def _start_family(self) -> None:
        """Show only the selected threads and the threads that they send to, directly or through others."""
        selected = np.zeros(len(self._opened.trace.threads), np.bool_)
        selected[self._selected() or self._selected_in_timeline()] = True
        if not selected.any():
            self._opened.filters.failed.emit("Select a thread first, here or in the timeline")
            return
        self._start("MsgSend family", partial(passes.message_family, threads=selected))

    def _selected_in_timeline(self) -> list[int]:
        selection, opened = self._opened.selection, self._opened
        if selection.lane is not None:
            info = opened.timeline.infos[selection.lane]
            if info.thread > 0:
                return [info.thread]
            if info.process > 0:
                return [int(row) for row in np.flatnonzero(opened.trace.threads.process == info.process)]
        return [int(opened.trace.events.thread[selection.event])] if selection.event is not None else []

    @Slot(object)
    def _on_done(self, threads: object) -> None:
        if isinstance(threads, np.ndarray):
            rows = np.flatnonzero(threads)
            if not len(rows):
                self._opened.filters.failed.emit(f"{self._title}: no thread in this trace matches")
                return
            self._opened.filters.only_threads(rows, self._title)

    @Slot(object)
    def _on_failed(self, error: Exception) -> None:
        if not isinstance(error, UsageError):
            raise error
        self._opened.filters.failed.emit(str(error))


def _top_by_cpu(trace: Trace, count: int) -> NDArray[np.bool_]:
    return passes.top_by_cpu(trace, count, Statistics(trace).threads.cpu_cycles)


# The input for a condition.


_TYPING_MS: Final = 150


class ConditionBox(QWidget):
    """Input for a condition and its effect, with the number of matching events. The key Return applies the condition.

    Attributes:
        editing: Name of the filter pass being edited; empty for a new one.

    Signals:
        search_requested: The user wants to search for the condition instead; sends its text.
    """

    search_requested = Signal(str)

    def __init__(self, opened: OpenTrace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._opened = opened
        self.editing = ""
        self.line = ExpressionLine(opened.trace, theme, self)
        self.line.setPlaceholderText("Condition: pid == 7 and event == MSG_SENDV and duration > 2ms")
        self.line.setAccessibleName("Condition")
        self.effect = drop_down(self, "Effect", EFFECTS)
        self.effect.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.effect.setMinimumContentsLength(6)
        self._add = QPushButton("Add filter", self)
        self._add.setProperty("primary", "true")
        self._find = QPushButton("Find", self)
        self.message = MessageLine(self, wraps=True)
        self._job = Task(self, self._on_count, self._on_failed)
        self._typing = QTimer(self, singleShot=True, interval=_TYPING_MS)
        self._typing.timeout.connect(self._count)
        row = line_up(QHBoxLayout(), (self.effect, 1), self._find, self._add)
        line_up(QVBoxLayout(self), self.line, self.message, row, margins=(8, 6, 8, 4), spacing=6)
        self.line.checked.connect(self._on_checked)
        self.line.submitted.connect(self.submit)
        self.line.focused.connect(self._prepare)
        self._add.clicked.connect(self.submit)
        self._find.clicked.connect(self._on_find)
        opened.filters.failed.connect(self._say_error)
        opened.filters.changed.connect(self._on_filters)
        opened.reloaded.connect(self._on_reloaded)
        self._on_checked()

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of a theme."""
        self.line.set_theme(theme)

    def edit(self, name: str) -> None:
        """Load a filter pass (a condition with its effect) into the fields for editing."""
        item = self._opened.filters.pass_named(name)
        self.line.setText(item.expression)
        self.editing = name
        self.effect.setCurrentIndex(list(EFFECTS).index(item.effect))
        self._add.setText(f"Change {name}")
        self.line.setFocus()

    @Slot()
    def _on_filters(self) -> None:
        # The name of a filter that is gone is soon that of another one.
        if self.editing and not any(self.editing == item.name for item in self._opened.filters.state.stack.passes):
            self._end_editing()

    def _end_editing(self) -> None:
        self.editing = ""
        self._add.setText("Add filter")

    @Slot()
    def submit(self) -> None:
        """Add the condition to the filter, or change the pass being edited."""
        text, effect = self.line.text().strip(), Effect(self.effect.currentData())
        if not text or self.line.fault is not None:
            return
        try:
            if self.editing:
                self._opened.filters.change_pass(self.editing, expression=text, effect=effect)
            else:
                self._opened.filters.add_pass(text, effect=effect)
        except UsageError as error:
            self._say_error(str(error))
            return
        self.line.clear()

    @Slot()
    def _prepare(self) -> None:
        if not self.line.text():
            self._job.start(partial(make_columns_ready, self._opened.filters.evaluator))

    @Slot()
    def _on_reloaded(self) -> None:
        self.line.set_trace(self._opened.trace)

    @Slot()
    def _on_find(self) -> None:
        if self.line.text().strip() and self.line.fault is None:
            self.search_requested.emit(self.line.text().strip())

    @Slot()
    def _on_checked(self) -> None:
        self._job.cancel()
        self._typing.stop()
        text, fault = self.line.text().strip(), self.line.fault
        self._add.setEnabled(bool(text) and fault is None)
        self._find.setEnabled(self._add.isEnabled())
        if not text:
            self._end_editing()
            self.message.say("Tab completes; Return adds the filter.", "faint")
        elif fault is not None:
            self.message.say(fault_text(fault), "error")
        else:
            self.message.say("\N{HORIZONTAL ELLIPSIS}", "dim")
            self._typing.start()

    @Slot()
    def _count(self) -> None:
        self._job.start(partial(count_hits, self._opened.filters.evaluator, Pass("x", "", self.line.text())))

    @Slot(object)
    def _on_count(self, hits: object) -> None:
        if isinstance(hits, tuple):
            count, why_none = hits
            lines = [f"{count:,} of {counted(len(self._opened.trace.events), 'event')}"]
            lines += [f"{capitalized(why_none)}."] if why_none else []
            lines += [f"In views only: {limit.message}." for limit in self.line.limits[:1]]
            self.message.say("\n".join(lines), "dim")

    @Slot(object)
    def _on_failed(self, error: Exception) -> None:
        self._say_error(str(error))

    @Slot(str)
    def _say_error(self, text: str) -> None:
        self.message.say(capitalized(text), "error")


_EFFECTS: Final = {
    Effect.HIDE: "Hide unchecked",
    Effect.DIM: "Dim unchecked",
    Effect.MARK: "Highlight checked",
}
_NEXT_FORM: Final = {None: True, True: False, False: None}  # cycles through as logged, wide, fast
_FORM_TEXT: Final = {None: "as logged", True: "wide", False: "fast"}


class FilterPanel(Panel):
    """Panel with all kinds of filters, and a line with the number of events shown."""

    saved_fields = ("tabs",)

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        opened, theme = context.opened, context.theme
        self._find = context.find
        self.setMinimumSize(160, 134)  # enough for the low layout; a small window clips the panel instead of growing
        trace = opened.trace
        self._codes = np.flatnonzero(trace.code_counts)
        self._shown_forms: Mapping[int, bool] | None = None
        self.condition = ConditionBox(opened, theme, self)
        heads = ("Class, event", "Events", "Form")
        self.events = CheckTree(event_groups(trace), "Find an event or class", self, heads)
        self._groups = thread_groups(trace, opened.events_of_thread)
        heads = ("Process, thread", "Events", "CPU")
        self.threads = CheckTree(self._groups, "Find a process, thread or pid", self, heads)
        self._rules: RulesTab | None = None
        self.rules_page = QWidget(self)
        QVBoxLayout(self.rules_page).setContentsMargins(0, 0, 0, 0)
        self.presets = ThreadPresets(opened, self.threads.selected_keys, self)
        self.threads.buttons.addWidget(self.presets)
        self.tabs = QTabWidget(self, documentMode=True)
        for widget, title in ((self.events, "Events"), (self.threads, "Processes"), (self.rules_page, "Rules")):
            self.tabs.addTab(widget, title)
        self.tabs.currentChanged.connect(self._on_tab)
        foot = self._make_buttons()
        low = ((self.condition, 0, 0, 1), (foot, 1, 0, 1), (self.tabs, 0, 1, 2))
        self._grid = LowGrid(self, (self.condition, self.tabs, foot), self.tabs, low, (2, 3), 0)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(0)
        self._cpu_job = Task(self)
        self._has_cpu = False
        self._connect()
        self._show_summary()

    @property
    def rules(self) -> RulesTab:
        """The content of the tab for rules, created on first use."""
        if self._rules is None:
            self._rules = RulesTab(self._opened, self._theme, self.rules_page)
            layout = self.rules_page.layout()
            assert layout is not None
            layout.addWidget(self._rules)
        return self._rules

    @Slot()
    def _on_tab(self) -> None:
        if self.tabs.currentWidget() is self.rules_page:
            self.rules.show()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Place conditions above the tabs, or beside the tabs if the panel is low."""
        super().resizeEvent(event)
        self._grid.follow()

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of a theme."""
        super().set_theme(theme)
        self.condition.set_theme(theme)
        if self._rules is not None:
            self._rules.set_theme(theme)

    @Slot(str)
    def edit(self, name: str) -> None:
        """Open a filter pass for editing."""
        item = self._opened.filters.pass_named(name)
        if item.rules:
            self.tabs.setCurrentWidget(self.rules_page)
            self.rules.edit(name)
        else:
            self.condition.edit(name)

    def show_rules(self) -> None:
        """Show the tab of rules, with rules that capture the events that the filter shows."""
        self.tabs.setCurrentWidget(self.rules_page)
        self.rules.from_filter.click()

    def reload(self) -> None:
        """Show the refreshed trace; keep expanded branches, the selection and typed text."""
        trace = self._opened.trace
        self._codes = np.flatnonzero(trace.code_counts)
        self._shown_forms = None
        self.events.reload(event_groups(trace))
        self._groups = self.threads.reload(thread_groups(trace, self._opened.events_of_thread))
        self.refresh()
        self._has_cpu = False
        self._count_cpu()

    @Slot()
    def refresh(self) -> None:
        """Show the active filter in the check boxes."""
        state = self._opened.filters.state
        self.events.refresh(int(code) for code in self._codes if state.codes[code])
        self.threads.refresh(int(row) for row in np.flatnonzero(state.threads))
        self.effect.setCurrentIndex(list(_EFFECTS).index(state.effect) if state.effect in _EFFECTS else 0)
        self._show_forms()
        self._show_summary()

    def _connect(self) -> None:
        filters = self._opened.filters
        self.events.toggled.connect(filters.show_codes)
        self.events.inverted.connect(self._on_invert_events)
        self.events.only_requested.connect(partial(filters.only_codes, title="only some events"))
        self.events.note_clicked.connect(self._on_form)
        self.threads.toggled.connect(filters.show_threads)
        self.threads.inverted.connect(self._on_invert_threads)
        self.threads.only_requested.connect(partial(filters.only_threads, title="only some threads"))
        self.effect.activated.connect(self._on_effect)
        self.condition.search_requested.connect(self._find)
        filters.changed.connect(self.refresh)
        self._cpu_job.done.connect(self._on_cpu)
        self._show_forms()
        self._count_cpu()

    def showEvent(self, event: QShowEvent) -> None:
        """Compute the CPU use, if not done yet."""
        super().showEvent(event)
        self._count_cpu()

    @Slot()
    def _count_cpu(self) -> None:
        """Compute the CPU use of threads, once per trace, and only while the panel is visible."""
        if self._has_cpu or not self.isVisible():
            return
        self._has_cpu = True
        basis = self._opened.basis
        self._cpu_job.start(
            lambda cancelled: Statistics(basis.trace, basis=basis, cancelled=cancelled).threads.cpu_cycles
        )

    def _make_buttons(self) -> QWidget:
        widget = QWidget(self)
        self.summary = PlainLabel(self, role="dim")
        self._reset = flat_button("Show all", self, self._opened.filters.show_all)
        self.effect = drop_down(self, "What the check boxes do", _EFFECTS)
        self.effect.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.effect.setMinimumContentsLength(10)
        self.summary.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        line_up(QHBoxLayout(widget), self.effect, (self.summary, 1), self._reset, margins=(8, 4, 8, 6), spacing=8)
        return widget

    def _show_forms(self) -> None:
        """Show whether each event is fast or wide, if that has changed for any event."""
        forms = self._opened.filters.is_wide
        if forms is not self._shown_forms:
            self._shown_forms = forms
            self.events.set_notes({int(code): self._form_text(int(code)) for code in self._codes})

    def _form_text(self, code: int) -> str:
        if not has_two_forms(code, self._opened.trace.release):
            return ""
        return _FORM_TEXT[self._opened.filters.is_wide.get(code)]

    @Slot()
    def _show_summary(self) -> None:
        filters, total = self._opened.filters, len(self._opened.trace.events)
        self._reset.setEnabled(filters.is_active or bool(filters.state.stack.passes))
        text = f"{filters.row_count:,} shown" if filters.is_active else "All events"
        self.summary.setToolTip(tool_tip(f"{filters.row_count:,} of {total:,} events are shown"))
        self.summary.setText("\N{HORIZONTAL ELLIPSIS}" if filters.is_pending else text)

    @Slot(list)
    def _on_invert_events(self, codes: list[int]) -> None:
        state = self._opened.filters.state
        changed = state.codes.copy()
        changed[codes] ^= True
        self._opened.filters.set(changed, state.threads, "inverted events")

    @Slot(list)
    def _on_form(self, codes: list[int]) -> None:
        codes = [code for code in codes if has_two_forms(code, self._opened.trace.release)]
        if codes:
            form = _NEXT_FORM[self._opened.filters.is_wide.get(codes[0])]
            self._opened.filters.set_form(codes, _FORM_TEXT[form])

    @Slot(list)
    def _on_invert_threads(self, rows: list[int]) -> None:
        state = self._opened.filters.state
        changed = state.threads.copy()
        changed[rows] ^= True
        self._opened.filters.set(state.codes, changed, "inverted threads")

    @Slot(int)
    def _on_effect(self, _index: int) -> None:
        self._opened.filters.set_effect(Effect(self.effect.currentData()))

    @Slot(object)
    def _on_cpu(self, cycles: object) -> None:
        """Show the share of the time of all CPUs that each thread used; idle threads show `idle`, and count as 0."""
        trace = self._opened.trace
        whole = trace.window.length * max(1, trace.cpu_count)
        if isinstance(cycles, np.ndarray) and whole > 0:
            idle = idle_threads(trace)
            shares = np.where(idle, 0, cycles / whole)
            of_groups = [_share(sum(float(shares[leaf.key]) for leaf in group.leaves)) for group in self._groups]
            keys = [leaf.key for group in self._groups for leaf in group.leaves]
            notes = {key: "idle" if idle[key] else _share(float(shares[key])) for key in keys}
            self.threads.set_notes(notes, of_groups)


def _share(share: float) -> str:
    return percent(share) if share > 0 else ""
