"""A tree of check boxes with counts, a search box and the usual buttons; groups are tri-state."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QPushButton,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

_KEY: Final = int(Qt.ItemDataRole.UserRole)
_CHECK: Final = int(Qt.ItemDataRole.CheckStateRole)


@dataclass(frozen=True, slots=True)
class Leaf:
    """One thing that can be shown or hidden.

    Attributes:
        key: Number that the owner knows it by.
        title: Its name.
        count: Events of it.
    """

    key: int
    title: str
    count: int


@dataclass(frozen=True, slots=True)
class Group:
    """Leaves under one name."""

    title: str
    leaves: tuple[Leaf, ...]
    tip: str = ""


class _GroupItem(QTreeWidgetItem):
    """A group: while Qt passes a check on to its leaves, one after the other, nobody is told.

    Attributes:
        passes_on: True while it does.
    """

    passes_on = False

    def setData(self, column: int, role: int, value: object) -> None:
        """Set the check of the group and its leaves as one change."""
        self.passes_on = True
        super().setData(column, role, value)
        self.passes_on = False
        tree = self.treeWidget()
        if role == _CHECK and tree is not None and self.checkState(0) != Qt.CheckState.PartiallyChecked:
            tree.itemChanged.emit(self, column)


class CheckTree(QWidget):
    """Groups of leaves with check boxes.

    Signals:
        toggled: Keys, and whether they are to show.
    """

    toggled = Signal(list, bool)

    def __init__(self, groups: Iterable[Group], placeholder: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.search = QLineEdit(self)
        self.search.setPlaceholderText(placeholder)
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(self._on_search)
        self.tree = QTreeWidget(self)
        self.tree.setColumnCount(2)
        self.tree.setHeaderHidden(True)
        self.tree.setUniformRowHeights(True)
        self.tree.setIndentation(16)
        self.tree.header().setStretchLastSection(False)
        self.tree.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.tree.header().setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        self._leaves: dict[int, QTreeWidgetItem] = {}
        for group in groups:
            self._add_group(group)
        self.tree.itemChanged.connect(self._on_item)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 8, 8, 0)
        layout.setSpacing(6)
        layout.addWidget(self.search)
        layout.addLayout(self._buttons())
        layout.addWidget(self.tree)

    def refresh(self, shown: Iterable[int]) -> None:
        """Check exactly these keys."""
        wanted = set(shown)
        self.tree.blockSignals(True)
        for key, item in self._leaves.items():
            state = Qt.CheckState.Checked if key in wanted else Qt.CheckState.Unchecked
            if item.checkState(0) != state:
                item.setCheckState(0, state)
        self.tree.blockSignals(False)
        self.tree.viewport().update()

    def visible_keys(self) -> list[int]:
        """Return the keys that the search box lets through."""
        return [key for key, item in self._leaves.items() if not item.isHidden()]

    def _buttons(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(2)
        for title, slot in (("All", self._on_all), ("None", self._on_none), ("Invert", self._on_invert)):
            button = QPushButton(title, self)
            button.setProperty("flat", "true")
            button.setFocusPolicy(Qt.FocusPolicy.NoFocus)
            button.clicked.connect(slot)
            row.addWidget(button)
        row.addStretch()
        return row

    def _add_group(self, group: Group) -> None:
        top = _GroupItem(self.tree, [group.title, f"{sum(leaf.count for leaf in group.leaves):,}"])
        top.setFlags(top.flags() | Qt.ItemFlag.ItemIsUserCheckable | Qt.ItemFlag.ItemIsAutoTristate)
        top.setToolTip(0, group.tip)
        top.setTextAlignment(1, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        for leaf in group.leaves:
            item = QTreeWidgetItem(top, [leaf.title, f"{leaf.count:,}"])
            item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
            item.setData(0, _KEY, leaf.key)
            item.setCheckState(0, Qt.CheckState.Checked)
            item.setTextAlignment(1, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            self._leaves[leaf.key] = item

    @Slot(QTreeWidgetItem, int)
    def _on_item(self, item: QTreeWidgetItem, column: int) -> None:
        group = item if isinstance(item, _GroupItem) else item.parent()
        is_passing_on = isinstance(group, _GroupItem) and group.passes_on
        if column != 0 or is_passing_on or item.checkState(0) == Qt.CheckState.PartiallyChecked:
            return
        show = item.checkState(0) == Qt.CheckState.Checked
        children = [item.child(i) for i in range(item.childCount())]
        leaves = [child for child in children if child is not None] or [item]
        self.toggled.emit([leaf.data(0, _KEY) for leaf in leaves], show)

    @Slot(str)
    def _on_search(self, text: str) -> None:
        words = text.casefold().split()
        for i in range(self.tree.topLevelItemCount()):
            top = self.tree.topLevelItem(i)
            assert top is not None
            top_matches = all(word in top.text(0).casefold() for word in words)
            any_shown = False
            for child in filter(None, map(top.child, range(top.childCount()))):
                name = f"{top.text(0)} {child.text(0)}".casefold()
                shown = all(word in name for word in words)
                child.setHidden(not shown)
                any_shown |= shown
            top.setHidden(not (any_shown or top_matches))
            top.setExpanded(bool(words) and any_shown)

    @Slot()
    def _on_all(self) -> None:
        self.toggled.emit(self.visible_keys(), True)

    @Slot()
    def _on_none(self) -> None:
        self.toggled.emit(self.visible_keys(), False)

    @Slot()
    def _on_invert(self) -> None:
        states = {key: self._leaves[key].checkState(0) == Qt.CheckState.Checked for key in self.visible_keys()}
        self.toggled.emit([key for key, shown in states.items() if not shown], True)
        self.toggled.emit([key for key, shown in states.items() if shown], False)
