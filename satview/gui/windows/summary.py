"""The summary in the toolbar: trace length, losses, missing classes, worst verdict; each part opens a panel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QToolBar, QToolButton, QWidget

from satview.analysis.needs import PRIORITIES, has_no_states
from satview.analysis.verdicts.verdict import Severity
from satview.answers.verdicts import Verdicts
from satview.base.memory import borrowed
from satview.base.safe_text import counted, menu_text, tool_tip
from satview.base.time_text import format_duration
from satview.gui.swimlane.cpu_use import busy_share, knows_use
from satview.gui.theme import restyle
from satview.gui.widgets import line_up
from satview.session.open_trace import OpenTrace
from satview.store.problems import KINDS
from satview.store.trace import Trace


@dataclass(frozen=True, slots=True)
class SummaryPart:
    """One part of the summary, and the panel that it opens.

    Attributes:
        text: Text of the button.
        panel: Name of the panel.
        tone: `error`, `warning`, or empty if nothing is wrong.
        hint: Tool tip that describes the result of a click.
    """

    text: str
    panel: str
    tone: str = ""
    hint: str = ""


def size_part(trace: Trace, busy: float | None) -> SummaryPart:
    """Return the part with the length of the trace and, if `busy` (0 to 1) is known, the busy share of its CPUs."""
    length = format_duration(trace.clock.duration_ns(trace.window.length))
    if trace.pairs is not None:  # recorded by a threads library, which has no CPU information
        threads = counted(len(trace.threads) - 1, "thread")
        return SummaryPart(f"{length}, {threads}", "statistics", hint="Show statistics")
    of_cpus = f" {busy:.0%} busy".replace("%", " %") if busy is not None else ""
    return SummaryPart(f"{length}, {counted(trace.cpu_count, 'CPU')}{of_cpus}", "statistics", hint="Show statistics")


def verdict_part(trace: Trace, verdicts: Verdicts) -> SummaryPart:
    """Return the part with the most severe verdict, its longest occurrence, and the number of further verdicts."""
    wrong = [verdict for verdict in verdicts.verdicts if verdict.severity is not Severity.INFO]
    if not wrong:
        if verdicts.verdicts:  # only verdicts of severity INFO; the status bar counts them too
            return SummaryPart(f"nothing wrong for certain, {verdicts.summary}", "verdicts", hint=verdicts.summary)
        unknown = len(verdicts.undecided)
        doubt = f", {counted(unknown, 'kind')} of verdict undecided" if unknown else ""
        return SummaryPart(f"nothing wrong found{doubt}", "verdicts", hint=verdicts.summary)
    worst = wrong[0]
    length = format_duration(trace.clock.duration_ns(max(
        case.end_cycles - case.start_cycles for case in worst.occurrences)))  # fmt: skip
    times = len(worst.occurrences)
    lasts = f" of {length}" if times == 1 else f" {times:,} times, longest {length}"
    more = f", {counted(len(wrong) - 1, 'more verdict')}" if len(wrong) > 1 else ""
    return SummaryPart(f"{worst.kind.replace('-', ' ')}{lasts}{more}", "verdicts", str(worst.severity), worst.says)


def loss_part(trace: Trace) -> SummaryPart:
    """Return the part that describes lost events or data of the file."""
    counts = trace.problems.counts()
    costly = [f"{KINDS[slug].title.lower()}: {count:,}" for slug, count in counts.items() if KINDS[slug].costs_data]
    if not costly:
        return SummaryPart("nothing lost", "problems", hint="Show problems of the file")
    more = "\N{HORIZONTAL ELLIPSIS}" if len(costly) > 2 else ""
    return SummaryPart(", ".join(costly[:2]) + more, "problems", "warning", "Show problems of the file")


def lack_part(trace: Trace, knows_priorities: bool | None) -> SummaryPart | None:
    """Return the part that names data missing for most questions, and what to capture; None if nothing is missing.

    Args:
        trace: The trace.
        knows_priorities: Result of `has_priorities`; None until it is known.
    """
    if not trace.release.is_qnx or trace.pairs is not None or not len(trace.events):
        return None
    if has_no_states(trace):
        return SummaryPart(
            "no states of threads: capture the class THREAD", "doctor", "warning", "Show what to capture"
        )
    if knows_priorities is False:
        return SummaryPart(f"no priorities: {PRIORITIES.remedy}", "doctor", "warning", "Show what to capture")
    return None


_LEAST_PX = 60


class TraceSummary(QWidget):
    """Buttons at the right end of the toolbar; buttons that do not fit are hidden.

    The button of a part that takes time to compute appears once the part is known.

    Attributes:
        buttons: Button of each part, the most important one last, at the right end.

    Signals:
        panel_requested: A part was clicked; sends the name of its panel.
    """

    panel_requested = Signal(str)

    def __init__(self, opened: OpenTrace, bar: QToolBar) -> None:
        super().__init__(bar)
        self._opened, self._bar = opened, bar
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        line = line_up(QHBoxLayout(self), None, margins=(12, 0, 0, 0), spacing=0)
        self.buttons: dict[str, QToolButton] = {}
        for name in ("size", "loss", "lack", "verdict"):
            button = self.buttons[name] = QToolButton(self)
            button.setProperty("role", "summary")
            button.setCursor(Qt.CursorShape.PointingHandCursor)
            button.hide()
            button.clicked.connect(partial(borrowed(self._on_click), name))
            line.addWidget(button)
        self._panels: dict[str, str] = {}
        self._action = bar.addWidget(self)
        for signal in (opened.verdicts.changed, opened.has_priorities.changed, opened.reloaded):
            signal.connect(self.refresh)
        self.refresh()

    def minimumSizeHint(self) -> QSize:
        """Return a small width: a toolbar hides a widget that does not fit."""
        return QSize(_LEAST_PX, super().minimumSizeHint().height())

    def remove(self) -> None:
        """Remove the summary from the toolbar."""
        self._bar.removeAction(self._action)
        self._action.deleteLater()
        self.deleteLater()

    @Slot()
    def refresh(self) -> None:
        """Show the parts that are known now."""
        trace, timeline, verdicts = self._opened.trace, self._opened.timeline, self._opened.verdicts.answer
        self._show("size", size_part(trace, busy_share(timeline) if knows_use(timeline) else None))
        self._show("loss", loss_part(trace))
        self._show("lack", lack_part(trace, self._opened.has_priorities.answer))
        self._show("verdict", verdict_part(trace, verdicts) if verdicts is not None else None)
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Show the buttons that fit the new width."""
        super().resizeEvent(event)
        self._fit()

    def _show(self, name: str, part: SummaryPart | None) -> None:
        button = self.buttons[name]
        if part is None:
            self._panels.pop(name, None)
            return
        self._panels[name] = part.panel
        button.setText(menu_text(part.text))
        button.setToolTip(tool_tip(part.hint))
        restyle(button, "state", part.tone)

    def _fit(self) -> None:
        """Show as many buttons as fit, in the order of importance: verdict, missing data, losses, size."""
        room_px = self.width() - self.layout().contentsMargins().left()  # type: ignore[union-attr]  # it has one
        for name in ("verdict", "lack", "loss", "size"):
            width_px = self.buttons[name].sizeHint().width()
            is_shown = name in self._panels and width_px <= room_px
            self.buttons[name].setVisible(is_shown)
            room_px -= width_px if is_shown else 0

    def _on_click(self, name: str) -> None:
        self.panel_requested.emit(self._panels[name])
