"""Mouse handling over the lanes: select, range, pan, zoom, scroll, hover."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QLabel, QWidget

from satview.base.safe_text import html_text
from satview.base.time import TimeWindow, format_duration, format_moment
from satview.events.spec import arguments_text
from satview.events.states import READY
from satview.gui.swimlane.scale import TimeScale
from satview.gui.swimlane.shares import longest_of, share_text
from satview.gui.swimlane.view import SwimlaneView
from satview.linkage.chain import are_waits_known, waits_for
from satview.session.event_text import lane_path, wait_lines
from satview.session.lanes.class_loader import event_near
from satview.session.lanes.lane_row import LaneRow
from satview.session.navigation import SNAP_PX, Moved, snapped
from satview.session.open_trace import OpenTrace
from satview.session.settings import Settings
from satview.timeline.lane_tree import LaneKind
from satview.timeline.spans import Span

# The hover card: state, length, thread, CPU, which thread runs instead or is waited for, and the event.


_MOST_CPUS: Final = 4  # limit of CPUs on the card of a READY thread


class HoverCard(QLabel):
    """A small panel over the window that ignores the mouse.

    Attributes:
        home: The widget over which the panel floats.
    """

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.home = parent
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setObjectName("hoverCard")
        self.hide()

    def show_at(self, position: QPoint, text: str) -> None:
        """Show a text beside a position of the parent, on the side that has room."""
        if not text:
            self.hide()
            return
        self.setText(text)
        self.adjustSize()
        room = self.home.rect()
        x, y = position.x() + 16, position.y() + 18
        if x + self.width() > room.width() - 4:
            x = max(4, position.x() - self.width() - 12)
        if y + self.height() > room.height() - 4:
            y = max(4, position.y() - self.height() - 12)
        self.move(x, y)
        self.raise_()
        self.show()


def hover_text(opened: OpenTrace, lane: int, span: Span | None, event: int | None, cycles: int) -> str:
    """Return the text of the hover card, which appears at the mouse over an interval, as rich text."""
    trace, info = opened.trace, opened.timeline.infos[lane]
    lines = []
    if span is not None and (span.value or span.text):
        length = format_duration(trace.clock.duration_ns(span.end_cycles - span.start_cycles))
        # An interval without a value is a point in time and has no length.
        label = opened.timeline.label(span)
        length = length if (span.value or info.is_counter) and length not in label else ""  # in labels of activities
        lines.append(f"<b>{html_text(label)}</b>&nbsp;&nbsp;{length}")
        if meaning := info.meaning(span.value):
            lines.append(f"<i>{html_text(meaning)}</i>")
    if info.track is not None:
        lines.append(html_text(lane_path(opened.timeline, lane)))
    elif info.kind in (LaneKind.CPU, LaneKind.INTERRUPTS):
        lines.append(html_text(trace.cpu_title(info.cpu)))
        if span is not None and span.thread > 0:
            lines.append(_thread_line(opened, span.thread))
    elif info.kind is LaneKind.THREAD:
        lines.append(_thread_line(opened, info.thread) + _cpu_text(opened, span))
    else:
        lines.append(html_text(f"{info.title}  {info.subtitle}"))
    if span is not None and info.kind is LaneKind.THREAD:
        lines += [html_text(line) for line in _reason_lines(opened, span, cycles)]
    if event is not None:
        spec = trace.spec(event)
        lines.append(f"<b>{html_text(spec.class_name)}</b> {html_text(spec.name)}")
        arguments = arguments_text(trace.payloads.decode(event, 40).arguments, 90)
        if arguments:
            lines.append(html_text(arguments))
    lines.append(f"<small>{format_moment(cycles, trace.clock)}</small>")
    return "<br>".join(lines)


def _reason_lines(opened: OpenTrace, span: Span, cycles: int) -> list[str]:
    """Return lines of text: for a READY thread the running threads, for others what they wait for, if already known."""
    trace, timeline = opened.trace, opened.timeline
    if span.value == READY:
        runs = []
        for info in timeline.infos:
            if info.kind is LaneKind.CPU and timeline.is_ready(info.index):
                running = timeline.lane(info.index).at(cycles)
                if running is not None and running.thread > 0:
                    runs.append(f"{trace.cpu_title(info.cpu)}: {timeline.label(running)}")
        more = len(runs) - _MOST_CPUS
        return runs[:_MOST_CPUS] + ([f"and {more} more CPUs"] if more > 0 else [])
    if not 0 <= span.event < len(trace.events) or not are_waits_known(trace):
        return []
    wait = waits_for(trace, span.event)
    lines = wait_lines(trace, wait) if wait is not None and wait.value == span.value else []
    return [f"waits for {line.text}{f', {line.note}' if line.note else ''}" for line in lines if line.name]


def _thread_line(opened: OpenTrace, thread: int) -> str:
    trace = opened.trace
    pid, tid = int(trace.threads.pid[thread]), int(trace.threads.tid[thread])
    return html_text(f"{trace.thread_name(thread)}  (pid {pid}, tid {tid})")


def _cpu_text(opened: OpenTrace, span: Span | None) -> str:
    """Return text such as `, CPU 1`, the CPU that logged the first event of an interval; "" if there is no event."""
    if span is None or not 0 <= span.event < len(opened.trace.events):
        return ""
    return f", CPU {int(opened.trace.events.cpu[span.event])}"


DRAG_PX: Final = 4
PICK_PX: Final = 3
_NOTCH: Final = 120
_ZOOM_PER_NOTCH: Final = 1.25


class _Drag(Enum):
    NONE = auto()
    RANGE = auto()
    PAN = auto()
    ZOOM = auto()


class SwimlaneMouse(QObject):
    """Handles mouse and wheel events of the lanes.

    Signals:
        menu_requested: The right button was clicked without a drag; sends the global position of the mouse.
        fit_requested: The lanes were double-clicked, to fit the view to the selection.
        lane_height_requested: Another lane height is requested; sends 1 = taller or -1 = lower.
    """

    menu_requested = Signal(QPoint)
    fit_requested = Signal()
    lane_height_requested = Signal(int)

    def __init__(self, view: SwimlaneView, opened: OpenTrace, settings: Settings, hover: HoverCard) -> None:
        super().__init__(view)
        self._view = view
        self._opened = opened
        self._settings = settings
        self._hover = hover
        self._pressed: QPointF | None = None
        self._button = Qt.MouseButton.NoButton
        self._drag = _Drag.NONE
        self._anchor_cycles = 0
        self._start_window: TimeWindow | None = None
        self._start_scroll = 0
        self._is_space_down = False
        self._last: QPointF | None = None
        self._pending_hover: QPointF | None = None  # mouse position over a lane that is not built yet
        view.installEventFilter(self)
        view.source.refined.connect(self._on_refined)
        # When the view moves, hide the card; the wheel shows a new one.
        opened.viewport.window_changed.connect(self._on_window)
        view.scrolled.connect(self._forget_hovered)

    def handle_wheel_of(self, widget: QWidget) -> None:
        """Handle wheel events of another widget, which is in the same column as the view, like those of the view."""
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Handle mouse events of the view and wheel events of other widgets."""
        kind = event.type()
        if watched is not self._view:
            if kind != QEvent.Type.Wheel or not isinstance(event, QWheelEvent):
                return False
            self._wheel(event)
            self._leave()
            return True
        if kind == QEvent.Type.MouseMove and isinstance(event, QMouseEvent):
            self._move(event)
        elif kind == QEvent.Type.MouseButtonPress and isinstance(event, QMouseEvent):
            self._press(event)
        elif kind == QEvent.Type.MouseButtonRelease and isinstance(event, QMouseEvent):
            self._release(event)
        elif kind == QEvent.Type.MouseButtonDblClick and isinstance(event, QMouseEvent):
            if event.button() == Qt.MouseButton.LeftButton and not self._view.arrows.has_zoomed:
                is_object = self._view.named_marks.at(event.position()) is not None
                if not is_object and self._view.arrows.at(event.position()) < 0:
                    self._click(event.position())
                self.fit_requested.emit()
        elif kind == QEvent.Type.Wheel and isinstance(event, QWheelEvent):
            self._wheel(event)
        elif kind == QEvent.Type.Leave:
            self._leave()
        elif kind in (QEvent.Type.KeyPress, QEvent.Type.KeyRelease) and isinstance(event, QKeyEvent):
            return self._on_space(event)
        else:
            return False
        return True

    def _press(self, event: QMouseEvent) -> None:
        self._view.setFocus(Qt.FocusReason.MouseFocusReason)
        self._pressed, self._button, self._drag = event.position(), event.button(), _Drag.NONE
        self._view.arrows.has_zoomed = False
        self._start_window, self._start_scroll = self._opened.viewport.window, self._view.scroll_px
        self._anchor_cycles = self._snapped(event.position(), event.modifiers())
        if event.button() == Qt.MouseButton.LeftButton and event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self._drag = _Drag.RANGE
            self._anchor_cycles = self._far_end(self._view.scale.cycles(event.position().x()))
            self._drag_range(event)
        self._pending_hover = None
        self._hover.hide()

    def _move(self, event: QMouseEvent) -> None:
        position = self._last = event.position()
        row = self._view.row_at(position.y())
        self._opened.selection.set_mouse(self._view.scale.cycles(position.x()), row.index if row is not None else None)
        if self._pressed is None:
            self._point_at(position)
            return
        if self._drag is _Drag.NONE:
            if (position - self._pressed).manhattanLength() < DRAG_PX:
                return
            self._drag = self._kind_of_drag()
        if self._drag is _Drag.RANGE:
            self._drag_range(event)
        elif self._drag is _Drag.PAN:
            self._drag_pan(position)
        elif self._drag is _Drag.ZOOM:
            self._view.rubber = (self._pressed.x(), position.x())
            self._view.update()

    def _release(self, event: QMouseEvent) -> None:
        pressed, drag, self._pressed, self._drag = self._pressed, self._drag, None, _Drag.NONE
        self._view.unsetCursor()
        if pressed is None:
            return
        if drag is _Drag.ZOOM:
            self._view.rubber = None
            left, right = sorted((pressed.x(), event.position().x()))
            scale = self._view.scale
            self._opened.viewport.jump(TimeWindow(scale.cycles(left), max(scale.cycles(right), scale.cycles(left) + 1)))
            self._view.update()
        elif drag is _Drag.NONE and event.button() == Qt.MouseButton.LeftButton:
            self._opened.selection.set_range(None)
            if (mark := self._view.named_marks.at(event.position())) is not None:
                mark.choose()
            elif (arrow := self._view.arrows.at(event.position())) >= 0:
                self._view.arrows.choose(arrow)
            else:
                self._click(event.position())
        elif drag is _Drag.NONE and event.button() == Qt.MouseButton.RightButton:
            self._click(event.position())
            self.menu_requested.emit(event.globalPosition().toPoint())

    def _kind_of_drag(self) -> _Drag:
        if self._button == Qt.MouseButton.MiddleButton or self._is_space_down:
            self._view.setCursor(Qt.CursorShape.ClosedHandCursor)
            return _Drag.PAN
        return _Drag.ZOOM if self._button == Qt.MouseButton.RightButton else _Drag.RANGE

    def _drag_range(self, event: QMouseEvent) -> None:
        cycles = self._snapped(event.position(), event.modifiers())
        start, end = sorted((self._anchor_cycles, cycles))
        self._opened.selection.set_range(TimeWindow(start, end) if end > start else None)

    def _drag_pan(self, position: QPointF) -> None:
        assert self._pressed is not None
        assert self._start_window is not None
        moved = position - self._pressed
        scale = TimeScale(self._start_window, self._view.width())
        cycles = round(moved.x() * scale.window.length / max(1, scale.width_px))
        self._opened.viewport.move(self._start_window.shifted(-cycles))
        self._view.scroll_to(self._start_scroll - round(moved.y()))

    def _click(self, position: QPointF) -> None:
        row = self._view.row_at(position.y())
        if row is None:
            self._opened.selection.select(None, None, None)
            return
        share = self._view.share_at(row, position.x(), position.y())
        if share is not None:
            # A bin contains many intervals: select the longest with the value under the mouse.
            window, value = share
            moment = longest_of(self._view.stacks[row.index].spans, window, value)
            self._opened.select_at(row.index, self._view.scale.cycles(position.x()) if moment is None else moment)
            return
        event = self._event_near(row, position.x())
        if event is not None:
            self._opened.select_event(event, row.index, reveal=False)
        else:
            self._opened.select_at(row.index, self._view.scale.cycles(position.x()), is_point=True)

    def _event_near(self, row: LaneRow, x: float) -> int | None:
        opened, scale = self._opened, self._view.scale
        near, filters = scale.length(PICK_PX), opened.filters
        return event_near(opened.timeline, row.index, scale.cycles(x), near, filters.codes, filters.view.passing)

    def _snapped(self, position: QPointF, modifiers: Qt.KeyboardModifier) -> int:
        """Return the time at a position of the widget, snapped to an edge or event of its lane unless Alt is held."""
        scale = self._view.scale
        cycles = scale.cycles(position.x())
        row = self._view.row_at(position.y())
        if row is None or modifiers & Qt.KeyboardModifier.AltModifier:
            return cycles
        return snapped(self._opened, cycles, scale.length(SNAP_PX), row.index, Moved.RANGE)

    def _far_end(self, cycles: int) -> int:
        """Return the end of the selected range, cycles, farther from `cycles`: it stays when the range is extended.

        Without a range: the time of the selected event, else the start of the selected interval, else `cycles`.
        """
        time_range, selection = self._opened.selection.time_range, self._opened.selection
        if time_range is not None:
            return (
                time_range.start if abs(cycles - time_range.end) <= abs(cycles - time_range.start) else time_range.end
            )
        if selection.event is not None:
            return int(self._opened.trace.events.time_cycles[selection.event])
        return selection.span.start_cycles if selection.span is not None else cycles

    def _wheel(self, event: QWheelEvent) -> None:
        delta, modifiers = event.angleDelta(), event.modifiers()
        is_zoom = bool(modifiers & Qt.KeyboardModifier.ControlModifier) != self._settings.flag("window/wheel_zooms")
        notches = (delta.y() or delta.x()) / _NOTCH
        control_shift = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
        if modifiers & control_shift == control_shift:
            self.lane_height_requested.emit(1 if notches > 0 else -1)
        elif modifiers & Qt.KeyboardModifier.ShiftModifier:
            self._opened.viewport.pan(-0.1 * notches)
        elif abs(delta.x()) > abs(delta.y()):
            self._opened.viewport.pan(-0.1 * delta.x() / _NOTCH)
        elif is_zoom:
            self._opened.viewport.zoom(_ZOOM_PER_NOTCH**-notches, self._view.scale.cycles(event.position().x()))
        else:
            self._view.scroll_to(
                self._view.scroll_px - round(notches * 3 * self._settings.number("swimlane/lane_height_px"))
            )
        self._point_at(event.position())

    def _point_at(self, position: QPointF) -> None:
        row = self._view.row_at(position.y())
        scale = self._view.scale
        is_made = row is not None and self._opened.timeline.is_ready(row.index)
        self._pending_hover = position if row is not None and not is_made else None
        before, self._view.hovered = self._view.hovered, None
        arrow_before, self._view.arrows.hovered = self._view.arrows.hovered, self._view.arrows.at(position)
        if row is not None and is_made:
            cycles = scale.cycles(position.x())
            share = self._view.share_at(row, position.x(), position.y())
            if share is not None:
                self._view.hovered = (row, scale.x(share[0].start), scale.x(share[0].end))
                text = share_text(self._opened, row.index, share[0], self._view.stacks[row.index].spans)
            else:
                event = self._event_near(row, position.x())
                # Show the interval of the event, which a click would select; near an edge the mouse is over another.
                selected = cycles if event is None else int(self._opened.trace.events.time_cycles[event])
                span = self._opened.timeline.lane(row.index).at(selected)
                if span is not None and span.value:
                    self._view.hovered = (row, scale.x(span.start_cycles), scale.x(span.end_cycles))
                text = hover_text(self._opened, row.index, span, event, cycles)
            arrow = self._view.arrows.hovered
            if arrow >= 0:
                text = f"{self._view.arrows.text(arrow)}<hr>{text}"
            if (mark := self._view.named_marks.at(position)) is not None:
                text = f"{self._view.named_marks.text(mark)}<hr>{text}"
            self._hover.show_at(self._view.mapTo(self._hover.home, position.toPoint()), text)
        else:
            self._hover.hide()
        if not self._is_space_down:
            is_object = self._view.arrows.hovered >= 0 or self._view.named_marks.at(position) is not None
            self._view.setCursor(Qt.CursorShape.PointingHandCursor if is_object else Qt.CursorShape.ArrowCursor)
        if self._view.hovered != before or self._view.arrows.hovered != arrow_before:
            self._view.update()

    def _leave(self) -> None:
        self._last = None
        self._opened.selection.set_mouse(None)
        self._forget_hovered()

    @Slot()
    def _on_window(self) -> None:
        """Update the time under the mouse after the view has moved; keys for zoom and cursors use this time."""
        if self._last is not None:
            row = self._view.row_at(self._last.y())
            self._opened.selection.set_mouse(
                self._view.scale.cycles(self._last.x()), row.index if row is not None else None
            )
        self._forget_hovered()

    @Slot()
    def _on_refined(self) -> None:
        """Show the hover card once the lane under the mouse is built."""
        position = self._pending_hover
        row = self._view.row_at(position.y()) if position is not None else None
        if position is not None and row is not None and self._opened.timeline.is_ready(row.index):
            self._view.repaint()
            self._point_at(position)

    @Slot()
    def _forget_hovered(self) -> None:
        self._pending_hover = None
        self._hover.hide()
        if self._view.hovered is not None or self._view.arrows.hovered >= 0:
            self._view.hovered, self._view.arrows.hovered = None, -1
            self._view.update()

    def _on_space(self, event: QKeyEvent) -> bool:
        if event.key() != Qt.Key.Key_Space:
            return False
        if not event.isAutoRepeat():
            self._is_space_down = event.type() == QEvent.Type.KeyPress
            if self._is_space_down:
                self._view.setCursor(Qt.CursorShape.OpenHandCursor)
            else:
                self._view.unsetCursor()
        return True
