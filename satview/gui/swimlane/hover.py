"""The card that follows the mouse: state, length, thread, CPU, who runs instead or is waited for, and the event."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QLabel, QWidget

from satview.base.safe_text import html_text
from satview.base.time_text import format_duration, format_moment
from satview.events.spec import arguments_text
from satview.events.states import READY, STATE_BY_VALUE
from satview.linkage.chain import are_waits_known, waits_for
from satview.session.events.connection_text import wait_lines
from satview.session.events.event_text import lane_path
from satview.session.open_trace import OpenTrace
from satview.timeline.lane_tree import LaneKind
from satview.timeline.spans import Span

_MOST_CPUS: Final = 4  # that the card of a thread that is ready names


class HoverCard(QLabel):
    """A small panel over the window; never takes the mouse.

    Attributes:
        home: The widget it floats over.
    """

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.home = parent
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setObjectName("hoverCard")
        self.hide()

    def show_at(self, position: QPoint, text: str) -> None:
        """Show a text beside a position of the parent, wherever there is room."""
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
    """Return what the card says, as rich text."""
    trace, info = opened.trace, opened.timeline.infos[lane]
    lines = []
    if span is not None and (span.value or span.text):
        length = format_duration(trace.clock.duration_ns(span.end_cycles - span.start_cycles))
        # A moment lasts for nothing, whatever follows it when.
        length = length if span.value or info.is_counter else ""
        lines.append(f"<b>{html_text(opened.timeline.label(span))}</b>&nbsp;&nbsp;{length}")
        state = STATE_BY_VALUE.get(span.value)
        if state is not None:
            lines.append(f"<i>{html_text(state.meaning)}</i>")
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
    """Return who runs while a thread is ready, or whom it waits for; only what is known without looking for it."""
    trace, timeline = opened.trace, opened.timeline
    if span.value == READY:
        runs = []
        for info in timeline.infos:
            if info.kind is LaneKind.CPU and timeline.is_ready(info.index):
                there = timeline.lane(info.index).at(cycles)
                if there is not None and there.thread > 0:
                    runs.append(f"{trace.cpu_title(info.cpu)}: {timeline.label(there)}")
        more = len(runs) - _MOST_CPUS
        return runs[:_MOST_CPUS] + ([f"and {more} more CPUs"] if more > 0 else [])
    if not 0 <= span.event < len(trace.events) or not are_waits_known(trace):
        return []
    found = waits_for(trace, span.event)
    lines = wait_lines(trace, found) if found is not None and found.value == span.value else []
    return [f"waits for {line.text}{f', {line.note}' if line.note else ''}" for line in lines if line.name]


def _thread_line(opened: OpenTrace, thread: int) -> str:
    trace = opened.trace
    pid, tid = int(trace.threads.pid[thread]), int(trace.threads.tid[thread])
    return html_text(f"{trace.thread_name(thread)}  (pid {pid}, tid {tid})")


def _cpu_text(opened: OpenTrace, span: Span | None) -> str:
    """Return the CPU that logged the beginning of an interval; a thread that waits is on none."""
    if span is None or not 0 <= span.event < len(opened.trace.events):
        return ""
    return f", CPU {int(opened.trace.events.cpu[span.event])}"
