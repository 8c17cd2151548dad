"""A tree of check boxes with counts and notes, a search box and buttons; groups are tri-state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from PySide6.QtCore import QPoint, Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QMenu,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from satview.base.safe_text import menu_text, tool_tip, visible_line
from satview.gui.widgets import PlainLabel, flat_button, is_low, line_up

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
    """Tree item of a group. A click emits one change for the group, not one for each leaf that Qt then checks.

    Attributes:
        passes_on: True while Qt sets the check state of the leaves.
    """

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
    """Groups of leaves with check boxes.

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

        Args:
            groups: All groups with all their leaves; none may be missing.

        Returns:
            The groups in the order of the tree.
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
        """Return the keys of the selected rows; a group stands for its leaves."""
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
            ("All", self._on_all),
            ("None", self._on_none),
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

    @Slot()
    def _on_all(self) -> None:
        self.toggled.emit(self.visible_keys(), True)

    @Slot()
    def _on_none(self) -> None:
        self.toggled.emit(self.visible_keys(), False)

    @Slot()
    def _on_invert(self) -> None:
        self.inverted.emit(self.visible_keys())

    @Slot()
    def _on_only(self) -> None:
        self.only_requested.emit(self.selected_keys() or self.visible_keys())


def _set_text(item: QTreeWidgetItem, column: int, text: str) -> None:
    if item.text(column) != visible_line(text):
        item.setText(column, visible_line(text))
