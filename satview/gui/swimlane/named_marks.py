"""Draws clickable labels over the lanes: cases of verdicts, steps of the panel Why?, pieces of the critical path."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QLineF, QObject, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPen

from satview.analysis.critical_path import PIECE_WORDS, PieceKind
from satview.answers.verdicts import Verdicts
from satview.base.safe_text import html_text, visible_line
from satview.base.time import format_duration
from satview.gui.swimlane.marks import LABEL_PX, across_line, lane_in, visible_pieces
from satview.gui.swimlane.scale import TimeScale
from satview.gui.theme import Theme, colour
from satview.session.lanes.lane_row import LaneRow
from satview.session.open_trace import OpenTrace

_MOST: Final = 40  # of each kind in a picture, the longest first
_LINE_Y_PX: Final = 1.5  # distance of the line from the top of a lane
_LEAST_PX: Final = 6.0
_TICK_PX: Final = 4.0
_PICK_PX: Final = 3.0
_PAD_PX: Final = 3.0
_GAP_PX: Final = 4.0


@dataclass(frozen=True, slots=True)
class NamedMark:
    """A labelled span on the lane of a thread.

    Attributes:
        thread: Row of the thread table.
        start_cycles, end_cycles: Start and end.
        name: Label, without the length.
        says: A sentence for the hover text; may be empty.
        rgb: Colour, 0xRRGGBB.
        choose: Function that is called on a click.
        has_line: True to draw a line along the span; False for the critical path, whose line `draw_path` draws.
    """

    thread: int
    start_cycles: int
    end_cycles: int
    name: str
    says: str
    rgb: int
    choose: Callable[[], None]
    has_line: bool = True


@dataclass(frozen=True, slots=True)
class _PlacedMark:
    """A mark with the rectangles of its line and label on the screen; no text if there is no room for the label."""

    mark: NamedMark
    line: QRectF
    label: QRectF
    text: str


class NamedMarks(QObject):
    """Draws the marks, and finds the mark under the mouse.

    Signals:
        changed: The marks must be drawn again.
    """

    changed = Signal()

    def __init__(self, opened: OpenTrace, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._opened = opened
        self._cached_cases: tuple[Verdicts | None, _Cases] = None, _Cases.of(opened, None)
        self._placed: list[_PlacedMark] = []
        opened.verdicts.changed.connect(self.changed)
        opened.why.changed.connect(self.changed)

    def draw(self, painter: QPainter, rows: Sequence[LaneRow], scroll_px: int, scale: TimeScale, theme: Theme) -> None:
        """Draw the marks for which there is room on the lanes `rows`, of which `scroll_px` are scrolled out above.

        First the steps of the explanation in the panel Why? and the pieces of the critical path are drawn, then the
        occurrences of verdicts, the longest first.
        """
        font = QFont(painter.font())
        font.setPixelSize(theme.px(LABEL_PX))
        metrics, clock = QFontMetricsF(font), self._opened.trace.clock
        tops = {row.index: float(row.y_px - scroll_px) for row in rows}
        lines: dict[int, list[tuple[float, float]]] = {}
        marks = list[tuple[NamedMark, int, float, float]]()
        for mark in self._marks(tops, scale, theme):
            lane = lane_in(self._opened, self._opened.lane_of_thread(mark.thread), tops)
            if lane is None:
                continue
            left, right = max(scale.x(mark.start_cycles), 0.0), min(scale.x(mark.end_cycles), float(scale.width_px))
            right = max(right, left + _LEAST_PX)
            if mark.has_line:
                if not _is_free(lines.setdefault(lane, []), left, right):
                    continue
                lines[lane].append((left, right))
            marks.append((mark, lane, left, right))
        names: dict[int, list[tuple[float, float]]] = {}
        self._placed = []
        for mark, lane, left, right in marks:
            length = format_duration(clock.duration_ns(mark.end_cycles - mark.start_cycles))
            text, in_lane = f"{mark.name} {length}", names.setdefault(lane, [])
            wide = metrics.horizontalAdvance(text) + 2 * _PAD_PX
            # A label wider than its span is drawn after it, or before it at the right edge.
            behind = right + _GAP_PX if right + _GAP_PX + wide <= scale.width_px else left - _GAP_PX - wide
            label = (left + right - wide) / 2 if right - left >= wide + 2 * _GAP_PX else behind
            other_lines = [line for line in lines.get(lane, []) if line != (left, right)] if in_lane else []
            has_label = label >= 0 and _is_free([*in_lane, *other_lines], label, label + wide)
            if has_label:  # the first mark of a lane always has a label, others where it hides no mark
                in_lane.append((label, label + wide))
            elif not mark.has_line:
                continue
            box = across_line(label, wide, tops[lane] + _LINE_Y_PX, metrics)
            line = QRectF(left, tops[lane], right - left, _LINE_Y_PX + _PICK_PX)
            self._placed.append(_PlacedMark(mark, line, box if has_label else QRectF(), text))
        painter.save()
        painter.setFont(font)
        for placed in self._placed:
            _draw_line(painter, placed, theme)
        for placed in self._placed:
            _draw_name(painter, placed, theme)
        painter.restore()

    def at(self, position: QPointF) -> NamedMark | None:
        """Return the drawn mark at a point of the widget; None = none."""
        for placed in self._placed:
            if placed.label.contains(position) or (placed.mark.has_line and placed.line.contains(position)):
                return placed.mark
        return None

    def text(self, mark: NamedMark) -> str:
        """Return the hover text of a mark, as rich text."""
        length = format_duration(self._opened.trace.clock.duration_ns(mark.end_cycles - mark.start_cycles))
        says = f"<br>{html_text(mark.says)}" if mark.says else ""
        return f"<b>{html_text(mark.name)}</b>&nbsp;&nbsp;{length}{says}"

    def _marks(self, lanes: Mapping[int, object], scale: TimeScale, theme: Theme) -> Iterator[NamedMark]:
        yield from self._steps(scale, theme)
        yield from self._pieces(lanes, scale, theme)
        yield from self._verdicts(lanes, scale, theme)

    def _steps(self, scale: TimeScale, theme: Theme) -> Iterator[NamedMark]:
        """Yield a mark for each visible step of the panel Why?, from the effect to its causes."""
        for number, step in enumerate(self._opened.why.steps, 1):
            if step.until_cycles > scale.window.start and step.since_cycles < scale.window.end:
                yield NamedMark(
                    step.thread, step.since_cycles, step.until_cycles, f"why {number}: {step.state}", step.says,
                    theme.accent, partial(self._select, step.thread, step.at_cycles),
                )  # fmt: skip

    def _visible_threads(self, threads: Iterable[int], lanes: Mapping[int, object]) -> list[int]:
        """Return the threads that are visible on their own lane, or on the folded lane that contains it."""
        opened = self._opened
        return [thread for thread in threads if lane_in(opened, opened.lane_of_thread(thread), lanes) is not None]

    def _pieces(self, lanes: Mapping[int, object], scale: TimeScale, theme: Theme) -> Iterator[NamedMark]:
        """Yield a mark for each visible piece of the critical path, the longest first."""
        if self._opened.path.answer is None:
            return
        path = self._opened.path.answer.path
        pieces = np.array(visible_pieces(path, scale), np.intp)
        threads = path.on_thread[pieces]
        pieces = pieces[np.isin(threads, self._visible_threads(np.unique(threads).tolist(), lanes))]
        longest_first = np.argsort(path.start_cycles[pieces] - path.end_cycles[pieces], kind="stable")
        for piece in pieces[longest_first[:_MOST]].tolist():
            thread, start = int(path.on_thread[piece]), int(path.start_cycles[piece])
            name = f"path: {PIECE_WORDS[PieceKind(int(path.kind[piece]))]}"
            says = f"{self._opened.trace.thread_name(thread)} on the critical path of " \
                   f"{self._opened.trace.thread_name(path.thread)}"  # fmt: skip
            yield NamedMark(thread, start, int(path.end_cycles[piece]), name, says, theme.accent,
                            partial(self._select, thread, start), has_line=False)  # fmt: skip

    def _verdicts(self, lanes: Mapping[int, object], scale: TimeScale, theme: Theme) -> Iterator[NamedMark]:
        """Yield a mark for each visible occurrence of a verdict, the longest first, without the highlighted one."""
        opened = self._opened
        answer, shown = opened.verdicts.answer, opened.highlight.shown
        if answer is not self._cached_cases[0]:
            self._cached_cases = answer, _Cases.of(opened, answer)
        if answer is None:
            return
        cases = self._cached_cases[1]
        inside = (cases.end > scale.window.start) & (cases.start < scale.window.end)
        inside &= np.isin(cases.thread, self._visible_threads(cases.threads, lanes))
        for case in np.flatnonzero(inside)[:_MOST].tolist():
            number, span = int(cases.verdict[case]), (int(cases.start[case]), int(cases.end[case]))
            thread, verdict = int(cases.thread[case]), answer.verdicts[number]
            if shown is not None and shown.span == span and thread in shown.threads:
                continue
            rgb = theme.tone(verdict.severity)
            yield NamedMark(thread, *span, visible_line(verdict.kind), verdict.says, rgb,
                            partial(opened.select_case, number, span))  # fmt: skip

    def _select(self, thread: int, cycles: int) -> None:
        """Select the interval of a thread at a time."""
        lane = self._opened.lane_of_thread(thread)
        if lane is not None:
            self._opened.select_at(lane, cycles)


@dataclass(frozen=True, slots=True, eq=False)
class _Cases:
    """Occurrences of all verdicts that concern threads, the longest first; columns int64 (n,), times in cycles."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    thread: NDArray[np.int64]
    verdict: NDArray[np.int64]
    threads: tuple[int, ...]

    @classmethod
    def of(cls, opened: OpenTrace, answer: Verdicts | None) -> _Cases:
        """Return the occurrences of all verdicts."""
        threads = opened.trace.events.thread
        cases = [
            (case.start_cycles, case.end_cycles, (int(threads[case.row]) if case.row >= 0 else 0) or verdict.threads[0],
             number)
            for number, verdict in enumerate(answer.verdicts if answer is not None else ()) if verdict.threads
            for case in verdict.occurrences
        ]  # fmt: skip
        start, end, thread, number = np.array(cases, np.int64).reshape(-1, 4).T
        order = np.argsort(start - end, kind="stable")
        return cls(start[order], end[order], thread[order], number[order], tuple(np.unique(thread).tolist()))


def _is_free(taken: Sequence[tuple[float, float]], left: float, right: float) -> bool:
    return all(right + _GAP_PX <= other_left or left >= other_right + _GAP_PX for other_left, other_right in taken)


def _draw_line(painter: QPainter, placed: _PlacedMark, theme: Theme) -> None:
    """Draw a bracket along a mark."""
    if not placed.mark.has_line:
        return
    left, right, y = placed.line.left(), placed.line.right(), placed.line.top() + _LINE_Y_PX
    lines = [QLineF(left, y, right, y), QLineF(left, y, left, y + _TICK_PX), QLineF(right, y, right, y + _TICK_PX)]
    for pen in (QPen(colour(theme.base, 230), 4.0), QPen(colour(placed.mark.rgb), 2.0)):
        painter.setPen(pen)
        painter.drawLines(lines)


def _draw_name(painter: QPainter, placed: _PlacedMark, theme: Theme) -> None:
    """Draw the label of a mark across its line, where it hides no name of a state."""
    if not placed.label.isEmpty():
        painter.fillRect(placed.label, colour(theme.base, 235))
        painter.setPen(colour(placed.mark.rgb))
        painter.drawText(placed.label, Qt.AlignmentFlag.AlignCenter, placed.text)
