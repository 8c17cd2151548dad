"""The list of workloads: each with its name and what it teaches."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import (
    QListWidget,
    QListWidgetItem,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from satview.base.safe_text import tool_tip
from satview.capture.workloads.registry import names

_OFF: Final = 0.45  # how strong names are while nothing can be selected


class WorkloadList(QListWidget):
    """All workloads; the arrows go through them."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Workload")
        self.setProperty("role", "card")
        self.setItemDelegate(_TwoLines(self))
        self.setVerticalScrollMode(QListWidget.ScrollMode.ScrollPerItem)
        for name, summary in names():
            QListWidgetItem(name, self).setToolTip(tool_tip(summary))

    @property
    def selected(self) -> str:
        """The name of the one that is selected; empty if none is."""
        item = self.currentItem()
        return item.text() if item is not None else ""

    def choose(self, name: str) -> None:
        """Select one by its name."""
        for item in self.findItems(name, Qt.MatchFlag.MatchExactly):
            self.setCurrentItem(item)
            self.scrollToItem(item)


class _TwoLines(QStyledItemDelegate):
    """A workload: its name, under it what it teaches."""

    _PAD_PX: Final = 7

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._lessons = dict(names())

    def sizeHint(self, option: QStyleOptionViewItem, _index: QModelIndex | QPersistentModelIndex) -> QSize:
        """Return room for two lines."""
        return QSize(200, 2 * option.fontMetrics.height() + 2 * self._PAD_PX + 2)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """Draw both lines."""
        self.initStyleOption(option, index)
        name = str(index.data())
        option.text = ""
        widget: QWidget = option.widget
        widget.style().drawControl(QStyle.ControlElement.CE_ItemViewItem, option, painter, widget)
        box: QRect = option.rect.adjusted(12, self._PAD_PX, -10, -self._PAD_PX)
        metrics = option.fontMetrics
        painter.save()
        if not widget.isEnabled():
            painter.setOpacity(_OFF)
        font = painter.font()
        font.setBold(True)
        painter.setFont(font)
        painter.setPen(widget.palette().text().color())
        painter.drawText(box, Qt.AlignmentFlag.AlignTop, name)
        font.setBold(False)
        painter.setFont(font)
        dim = widget.palette().text().color()
        dim.setAlphaF(0.66)
        painter.setPen(dim)
        lesson = metrics.elidedText(self._lessons.get(name, ""), Qt.TextElideMode.ElideRight, box.width())
        painter.drawText(box, Qt.AlignmentFlag.AlignBottom, lesson)
        painter.restore()
