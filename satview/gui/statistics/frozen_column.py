"""Keeps the first column of a table in sight while the others are scrolled: without it numbers lose their names."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, Slot
from PySide6.QtWidgets import QFrame, QHeaderView, QTableView

from satview.gui.row_table import set_up_rows


class FrozenColumn(QTableView):
    """A second view of the same model and selection that is over the left edge of a table once it is scrolled."""

    def __init__(self, table: QTableView) -> None:
        """Lie over a table that has its model and its looks."""
        super().__init__(table)
        self._table = table
        set_up_rows(self, table.model(), table.accessibleName(), table.verticalHeader().defaultSectionSize())
        self.setSelectionModel(table.selectionModel())
        self.setItemDelegate(table.itemDelegate())
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setVerticalScrollMode(table.verticalScrollMode())
        for scroll in (self.setHorizontalScrollBarPolicy, self.setVerticalScrollBarPolicy):
            scroll(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.horizontalHeader().sectionClicked.connect(self._on_head)
        self.horizontalHeader().setSectionsClickable(True)
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        table.verticalScrollBar().valueChanged.connect(self.verticalScrollBar().setValue)
        self.verticalScrollBar().valueChanged.connect(table.verticalScrollBar().setValue)
        table.horizontalScrollBar().valueChanged.connect(self._position)
        table.horizontalHeader().sectionResized.connect(self._position)
        self.model().modelReset.connect(self._position)
        table.installEventFilter(self)
        self.hide()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the size of the table."""
        if event.type() == QEvent.Type.Resize:
            self._position()
        return super().eventFilter(watched, event)

    @Slot()
    def _position(self) -> None:
        """Lie over the left edge, or be gone while the table is not scrolled."""
        table = self._table
        if table.horizontalScrollBar().value() == 0 or not self.model().columnCount():
            self.hide()
            return
        for column in range(1, self.model().columnCount()):
            self.setColumnHidden(column, True)
        width = table.columnWidth(0)
        self.setColumnWidth(0, width)
        self.horizontalHeader().setFixedHeight(table.horizontalHeader().height())
        frame = table.frameWidth()
        self.setGeometry(frame, frame, width, table.viewport().height() + table.horizontalHeader().height())
        self.verticalScrollBar().setValue(table.verticalScrollBar().value())
        self.show()
        self.raise_()

    @Slot(int)
    def _on_head(self, section: int) -> None:
        """Sort as a click on the head below would."""
        header = self._table.horizontalHeader()
        is_same = header.sortIndicatorSection() == section
        first, other = Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder
        self._table.sortByColumn(section, other if is_same and header.sortIndicatorOrder() == first else first)
