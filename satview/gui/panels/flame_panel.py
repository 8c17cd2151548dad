"""The panel Flame graph: functions as wide as their share of time or samples, above the functions they call."""

from __future__ import annotations

import math
from functools import partial
from typing import Final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QObject, QPoint, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import (
    QContextMenuEvent,
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QAbstractScrollArea,
    QCheckBox,
    QComboBox,
    QFrame,
    QHBoxLayout,
    QSizePolicy,
    QStackedWidget,
    QToolTip,
    QVBoxLayout,
    QWidget,
)

from satview.answers.functions import ROOT, FlameGraph, FlameWidth, flame_graph, function_table
from satview.answers.table import Known, Table
from satview.base.safe_text import counted, percent, tool_tip, visible_line
from satview.base.time import TimeWindow, format_duration
from satview.events.states import PROCESS_HUES
from satview.gui.colours import FADE, ink_on, mixed, process_colour
from satview.gui.panel import Panel, PanelContext
from satview.gui.theme import Theme, colour
from satview.gui.widgets import ElidedLabel, PlainLabel, line_up
from satview.session.open_trace import OpenTrace
from satview.session.range_view import Extent, ExtentAnswer
from satview.session.tasks import IsCancelled
from satview.store.trace import Trace

_SETTLE_MS: Final = 150  # delay after the last change of the range


class FlameView(ExtentAnswer):
    """Computes the flame graph whenever the range or the function names change, while the panel is visible."""

    def __init__(self, opened: OpenTrace, parent: QObject | None = None) -> None:
        super().__init__(opened, Extent.TRACE, _SETTLE_MS, parent)
        self._opened = opened
        self.graph: FlameGraph | None = None
        self._table: Table | None = None  # functions of the range; reused when only the measure changes
        self._measure: FlameWidth | None = None
        self._is_by_thread = False
        opened.described.connect(self._later)

    def show_measure(self, measure: FlameWidth) -> None:
        """Set the quantity that the width of a rectangle stands for, such as time or samples."""
        self._measure = measure
        self._request()

    def show_by_thread(self, is_by_thread: bool) -> None:
        """Set whether each process and thread has its own functions in the graph; if false, all are added up."""
        self._is_by_thread = is_by_thread
        self._request()

    @Slot()
    def _request(self) -> None:
        self._settle.stop()
        if self._is_watched:
            trace, window = self._opened.trace, self._extent.window()
            self._start(partial(_graph, trace, window, self._table, self._measure, self._is_by_thread))

    def _take(self, result: object) -> None:
        if isinstance(result, FlameGraph):
            self.graph, self._table = result, result.table

    @Slot()
    def _later(self) -> None:
        """Discard the table of functions, and compute again once the range stays unchanged."""
        self._table = None
        self._job.cancel()
        super()._later()
        self.changed.emit()


def _graph(
    trace: Trace,
    window: TimeWindow,
    table: Table | None,
    measure: FlameWidth | None,
    is_by_thread: bool,
    _is_cancelled: IsCancelled,
) -> FlameGraph:
    """Return the flame graph of a time window, on a pool thread; `table` is None until computed."""
    table = function_table(trace, window) if table is None else table
    return flame_graph(table, measure, is_by_thread=is_by_thread)


_LEAST_PX: Final = 2.0  # narrower rectangles are drawn as lines
_LEAST_TEXT_PX: Final = 18
_TEXT_MARGIN_PX: Final = 4
_KEYS: Final = (
    Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Return, Qt.Key.Key_Enter,
    Qt.Key.Key_Escape, Qt.Key.Key_Home,
)  # fmt: skip


class FlameCanvas(QAbstractScrollArea):
    """Draws a flame graph, with the outermost functions at the top.

    Attributes:
        graph: The flame graph; None = none yet.
        zoomed: Rectangle (a function with its callers) drawn in full width; its callers are as wide, but pale.
        current: Rectangle on which keys act.

    Signals:
        changed: The current or zoomed rectangle changed.
        entered: The longest call of the current rectangle is to be shown.
        menu_requested: The context menu of the current rectangle is requested; sends the global position.
    """

    changed = Signal()
    entered = Signal()
    menu_requested = Signal(QPoint)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.theme = theme
        self.graph: FlameGraph | None = None
        self.zoomed, self.current = ROOT, ROOT
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Flame graph")

    @property
    def row_px(self) -> int:
        """Height of a level (one row of rectangles) in pixels."""
        return self.fontMetrics().height() + 5

    def show_graph(self, graph: FlameGraph) -> None:
        """Draw another graph; keep the zoomed and current functions if they exist."""
        if self.graph is not None and graph is not self.graph:
            self.zoomed, self.current = (graph.at(self.graph.path(node)) for node in (self.zoomed, self.current))
            if not graph.width[self.zoomed]:
                self.zoomed = ROOT
            if not graph.width[self.current]:
                self.current = self.zoomed
        self.graph = graph
        self._follow()

    def zoom(self, node: int) -> None:
        """Zoom to a rectangle, and make it current."""
        self.zoomed = self.current = node
        self._follow()

    def rectangle(self, node: int) -> QRectF:
        """Return the area of a rectangle in the viewport."""
        left, right = self._edges(np.array([node]))
        assert self.graph is not None
        top = int(self.graph.depth[node]) * self.row_px - self.verticalScrollBar().value()
        return QRectF(left[0], top, right[0] - left[0], self.row_px)

    def node_at(self, position: QPoint) -> int | None:
        """Return the rectangle at a position of the viewport, or None."""
        if self.graph is None:
            return None
        level = (position.y() + self.verticalScrollBar().value()) // self.row_px
        nodes = self._visible_rectangles(level, level)
        left, right = self._edges(nodes)
        hits = np.flatnonzero((left <= position.x()) & (position.x() < right))
        return int(nodes[hits[0]]) if len(hits) else None

    @property
    def narrow_count(self) -> int:
        """Number of functions within the zoomed rectangle that are too narrow to be drawn."""
        if self.graph is None:
            return 0
        nodes = self._inside()
        left, right = self._edges(nodes)
        return int(np.count_nonzero(self.graph.is_function[nodes] & (right - left < _LEAST_PX)))

    def _inside(self) -> NDArray[np.int64]:
        """Return the zoomed rectangle and all rectangles of its callees that are wider than 0, int64 (n,)."""
        graph, zoomed = self.graph, self.zoomed
        assert graph is not None
        begin, end = graph.start[zoomed], graph.start[zoomed] + graph.width[zoomed]
        ends = graph.start + graph.width
        is_inside = (graph.start >= begin) & (ends <= end) & (graph.depth >= graph.depth[zoomed])
        return np.flatnonzero(is_inside & (graph.width > 0))

    def _visible_rectangles(self, first_level: int, last_level: int) -> NDArray[np.int64]:
        """Return callers and callees of the zoomed rectangle in a range of levels, int64 (n,)."""
        graph = self.graph
        assert graph is not None
        nodes = np.concatenate((self._callers(), self._inside()))
        level = graph.depth[nodes]
        return nodes[(level >= first_level) & (level <= last_level)]

    def _callers(self) -> NDArray[np.int64]:
        """Return the callers of the zoomed rectangle, the innermost first, int64 (n,)."""
        assert self.graph is not None
        callers, node = [], int(self.graph.parent[self.zoomed])
        while node >= 0:
            callers.append(node)
            node = int(self.graph.parent[node])
        return np.array(callers, np.int64)

    def _edges(self, nodes: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the left and right edges of rectangles, px, float64 (n,) each."""
        graph, zoomed = self.graph, self.zoomed
        assert graph is not None
        begin, scale = graph.start[zoomed], self.viewport().width() / max(int(graph.width[zoomed]), 1)
        left = (graph.start[nodes] - begin) * scale
        right = (graph.start[nodes] + graph.width[nodes] - begin) * scale
        return np.clip(left, 0, self.viewport().width()), np.clip(right, 0, self.viewport().width())

    def _fill_of(self, node: int) -> int:
        graph, theme = self.graph, self.theme
        assert graph is not None
        if not graph.is_function[node]:
            return theme.line
        fill = process_colour(crc32(graph.name[node].encode()) % PROCESS_HUES, theme.palette)
        is_outside = graph.depth[node] < graph.depth[self.zoomed]
        return mixed(fill, theme.base, FADE) if is_outside else fill

    def _follow(self) -> None:
        """Update scroll bar and drawing after a change of graph, size, zoom or current rectangle."""
        graph, bar = self.graph, self.verticalScrollBar()
        if graph is None:
            return
        levels = int(graph.depth[self._inside()].max(initial=0)) + 1
        bar.setRange(0, max(0, levels * self.row_px - self.viewport().height()))
        bar.setPageStep(self.viewport().height())
        bar.setSingleStep(self.row_px)
        top = int(graph.depth[self.current]) * self.row_px
        bar.setValue(min(max(bar.value(), top + self.row_px - self.viewport().height()), top))
        self.setAccessibleDescription(graph.name[self.current])
        self.viewport().update()
        self.changed.emit()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the visible levels."""
        painter, theme, viewport = QPainter(self.viewport()), self.theme, self.viewport()
        painter.fillRect(viewport.rect(), colour(theme.base))
        if self.graph is None:
            return
        offset, row_px = self.verticalScrollBar().value(), self.row_px
        nodes = self._visible_rectangles(offset // row_px, (offset + viewport.height()) // row_px)
        left, right = self._edges(nodes)
        is_wide = right - left >= _LEAST_PX
        level, column = self.graph.depth[nodes[~is_wide]], left[~is_wide].astype(np.int64)
        for row, x in np.unique(np.stack((level, column)), axis=1).T.tolist():
            painter.fillRect(QRectF(x, row * row_px - offset, 1, row_px - 1), colour(theme.dim))
        for node, x, end in zip(nodes[is_wide].tolist(), left[is_wide].tolist(), right[is_wide].tolist(), strict=True):
            self._paint(painter, node, QRectF(x, int(self.graph.depth[node]) * row_px - offset, end - x, row_px))
        if self.hasFocus() or self.current != self.zoomed:
            painter.setPen(QPen(colour(theme.text), 2))
            painter.drawRect(self.rectangle(self.current).adjusted(1, 1, -2, -2))

    def _paint(self, painter: QPainter, node: int, area: QRectF) -> None:
        assert self.graph is not None
        fill = self._fill_of(node)
        painter.fillRect(area.adjusted(0, 0, -1, -1), colour(fill))
        text_area = area.adjusted(_TEXT_MARGIN_PX, 0, -_TEXT_MARGIN_PX, -1)
        if text_area.width() >= _LEAST_TEXT_PX:
            painter.setPen(colour(ink_on(fill)))
            text = painter.fontMetrics().elidedText(
                visible_line(self.graph.name[node]), Qt.TextElideMode.ElideRight, math.floor(text_area.width())
            )
            painter.drawText(text_area, Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, text)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Zoom to the function under the mouse; if it is already zoomed, show its longest call."""
        node = self.node_at(event.position().toPoint())
        if node is None:
            return
        if event.button() == Qt.MouseButton.LeftButton:
            self._use(node)
        else:
            self._select(node)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Handle a double click as two single clicks."""
        self.mousePressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Request the context menu of the current rectangle."""
        if self.graph is not None:
            is_key = event.reason() == QContextMenuEvent.Reason.Keyboard
            below = self.rectangle(self.current).bottomLeft().toPoint()
            self.menu_requested.emit(self.viewport().mapToGlobal(below) if is_key else event.globalPos())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move to callers, callees and neighbours with the arrow keys; zoom in with Enter, out with Escape and Home."""
        graph, key, node = self.graph, event.key(), self.current
        if graph is None or key not in _KEYS:
            super().keyPressEvent(event)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._use(node)
        elif key == Qt.Key.Key_Escape:
            self.zoom(max(int(graph.parent[self.zoomed]), ROOT))
        elif key == Qt.Key.Key_Home:
            self.zoom(ROOT)
        elif key == Qt.Key.Key_Down:
            level = self._visible_rectangles(int(graph.depth[node]) + 1, int(graph.depth[node]) + 1)
            self._select(next((child for child in graph.below(node).tolist() if child in level), node))
        elif key == Qt.Key.Key_Up:
            self._select(max(int(graph.parent[node]), ROOT))
        else:
            level = self._visible_rectangles(int(graph.depth[node]), int(graph.depth[node]))
            level = level[np.argsort(graph.start[level])]
            position = int(np.flatnonzero(level == node)[0]) + (1 if key == Qt.Key.Key_Right else -1)
            self._select(int(level[min(max(position, 0), len(level) - 1)]))

    def _use(self, node: int) -> None:
        assert self.graph is not None
        if node != self.zoomed:
            self.zoom(node)
        elif self.graph.event[node] >= 0:
            self.current = node
            self.entered.emit()

    def _select(self, node: int) -> None:
        self.current = node
        self._follow()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Draw again, as the current rectangle is marked while the graph has the focus."""
        super().focusInEvent(event)
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Draw again, as the mark of the current rectangle depends on the focus."""
        super().focusOutEvent(event)
        self.viewport().update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Adjust to the new size."""
        super().resizeEvent(event)
        self._follow()

    def event(self, event: QEvent) -> bool:
        """Keep the keys of the flame graph from running commands."""
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            if event.key() in _KEYS and event.modifiers() in (Qt.KeyboardModifier.NoModifier,
                                                              Qt.KeyboardModifier.KeypadModifier):  # fmt: skip
                event.accept()
            return True
        return super().event(event)

    def viewportEvent(self, event: QEvent) -> bool:
        """Show the tool tip of the rectangle under the mouse."""
        if isinstance(event, QHelpEvent):
            node = self.node_at(event.pos())
            text = "" if self.graph is None or node is None else tip_of(self.graph, node)
            QToolTip.showText(event.globalPos(), tool_tip(text), self)
            return True
        return super().viewportEvent(event)

    def sizeHint(self) -> QSize:
        """Return a size for a few levels."""
        return QSize(400, 8 * self.row_px)


def tip_of(graph: FlameGraph, node: int) -> str:
    """Return the description of a rectangle, one fact per line."""
    clock, whole = graph.table.trace.clock, max(int(graph.width[ROOT]), 1)
    sign = f"{Known(int(graph.known[node])).sign} ".lstrip()

    def length(cycles: int) -> str:
        return f"{sign}{format_duration(clock.duration_ns(cycles))}"

    width, own, count = int(graph.width[node]), int(graph.own[node]), int(graph.count[node])
    is_sampled = graph.measure is FlameWidth.SAMPLES
    lines = [visible_line(graph.name[node])]
    if graph.place[node]:
        lines.append(visible_line(graph.place[node]))
    amount = counted(width, "sample") if is_sampled else length(width)
    lines.append(f"{graph.measure.value}: {amount}, {percent(width / whole)} of all")
    if graph.is_function[node] and not is_sampled:
        lines.append(f"Without what it calls: {length(own)}")
        lines.append(f"{counted(count, 'call')}, {length(int(graph.total[node]))} from entries to exits, the longest "
                     f"{length(int(graph.longest[node]))}")  # fmt: skip
    if graph.known[node] != Known.EXACT:
        lines.append(f"{Known.AT_LEAST.sign}: {graph.table.question.column('total').reasons[Known.AT_LEAST]}")
    return "\n".join(lines)


class FlamePanel(Panel):
    """The flame graph of the trace or the selected range. It is computed only while the panel is visible."""

    saved_fields = ("by_thread",)

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self.setMinimumSize(120, 64)
        self.view = self.watched = FlameView(self._opened, self)
        self.canvas = FlameCanvas(context.theme, self)
        self.measures, self.by_thread = QComboBox(self), QCheckBox("By process and thread", self)
        self.measures.setAccessibleName("What widths are")
        self.measures.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.statement, self.message = ElidedLabel(self, role="dim"), PlainLabel(self, role="dim")
        self.statement.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.message.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.message.setWordWrap(True)
        self.stack = QStackedWidget(self)
        self.stack.addWidget(self.canvas)
        self.stack.addWidget(self.message)
        head = line_up(
            QHBoxLayout(), self.measures, self.by_thread, (self.statement, 1), margins=(8, 2, 8, 2), spacing=8
        )
        line_up(QVBoxLayout(self), head, (self.stack, 1), margins=(0, 0, 0, 0), spacing=0)
        self.measures.activated.connect(self._on_measure)
        self.by_thread.toggled.connect(self.view.show_by_thread)
        self.view.changed.connect(self._on_view)
        self.canvas.changed.connect(self._report)
        self.canvas.entered.connect(self._show_longest)
        self.canvas.menu_requested.connect(self._on_menu)
        self._on_view()

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of a theme."""
        super().set_theme(theme)
        self.canvas.theme = theme
        self.canvas.viewport().update()

    def copied_text(self) -> str:
        """Return the description of the current rectangle, if the flame graph has the focus."""
        graph = self.canvas.graph
        return tip_of(graph, self.canvas.current) if graph is not None and self.canvas.hasFocus() else ""

    @Slot(int)
    def _on_measure(self, _number: int) -> None:
        self.view.show_measure(FlameWidth(self.measures.currentText()))

    @Slot()
    def _on_view(self) -> None:
        """Show the flame graph, or why there is none."""
        graph = self.view.graph
        why_empty = self.view.error or ("Adding up\N{HORIZONTAL ELLIPSIS}" if graph is None else "")
        if graph is not None and not self.view.error:
            if graph is not self.canvas.graph:
                self.measures.clear()
                self.measures.addItems([measure.value for measure in graph.measures])
                self.measures.setCurrentText(graph.measure.value)
                self.canvas.show_graph(graph)
            why_empty = "" if graph.measures else graph.table.says_why_empty
            if not graph.measures and len(graph.table):
                why_empty = "No function takes any time here."
        for field in (self.measures, self.by_thread, self.statement):
            field.setVisible(not why_empty)
        self.message.setText(why_empty)
        self.stack.setCurrentIndex(1 if why_empty else 0)
        self._report()

    @Slot()
    def _report(self) -> None:
        """Describe in `statement` the range of the graph, the current rectangle, and functions that are not drawn."""
        graph, canvas = self.canvas.graph, self.canvas
        if graph is None:
            return
        parts = ["Adding up\N{HORIZONTAL ELLIPSIS}"] if self.view.is_pending else []
        parts += [self.view.extent.value] if self.view.extent is Extent.RANGE else []
        parts += tip_of(graph, canvas.current).splitlines()
        narrow = canvas.narrow_count
        parts += [f"{counted(narrow, 'function')} too narrow to be seen here"] if narrow else []
        unused = int(np.count_nonzero(graph.is_function & (graph.width == 0)))
        parts += [f"{counted(unused, 'function')} without any"] if unused else []
        parts += graph.table.missing
        self.statement.setText(" \N{MIDDLE DOT} ".join(parts))

    @Slot()
    def _show_longest(self) -> None:
        """Show the longest call of the current function, or its first sample, in the lanes."""
        graph, opened = self.canvas.graph, self._opened
        if graph is None or graph.table.trace is not opened.trace:
            return  # the trace was refreshed, and the graph is being computed again
        event, longest = int(graph.event[self.canvas.current]), int(graph.longest[self.canvas.current])
        start = int(opened.trace.events.time_cycles[event])
        self._navigation.show_event(event)
        if longest > 0:
            opened.viewport.fit(TimeWindow(start, start + longest))

    @Slot(QPoint)
    def _on_menu(self, position: QPoint) -> None:
        """Select the longest call of the current function; request the context menu, with filters for this function."""
        graph, opened = self.canvas.graph, self._opened
        if graph is None or graph.table.trace is not opened.trace or graph.event[self.canvas.current] < 0:
            return
        opened.select_event(int(graph.event[self.canvas.current]), reveal=False)
        self.menu_requested.emit(position, "ip" if graph.measure is FlameWidth.SAMPLES else "thisfn")
