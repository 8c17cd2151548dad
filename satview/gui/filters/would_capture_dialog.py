"""What a capture with some rules would have logged of this run, and what every view would miss."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QTextBrowser, QVBoxLayout, QWidget

from satview.base.safe_text import html_text
from satview.filters.rules.building import BuiltRules
from satview.filters.views.would_capture import WouldCapture, would_capture
from satview.gui.screen_fit import resize_on_screen
from satview.session.open_trace import OpenTrace
from satview.session.tasks import IsCancelled, Report, Task


class WouldCaptureDialog(QDialog):
    """Works in the background; shows the answer when it is there.

    Attributes:
        browser: The text.
    """

    def __init__(self, opened: OpenTrace, rules: BuiltRules, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("What would these rules capture?")
        resize_on_screen(self, 640, 680)
        self.browser = QTextBrowser(self)
        self.browser.setHtml("<p>Working\N{HORIZONTAL ELLIPSIS}</p>")
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        buttons.rejected.connect(self.close)
        layout = QVBoxLayout(self)
        layout.addWidget(self.browser)
        layout.addWidget(buttons)
        self._job = Task(self)
        self._job.done.connect(self._on_answer)
        self._job.failed.connect(self._on_failed)
        evaluator, trace = opened.filters.evaluator, opened.trace

        def run(is_cancelled: IsCancelled, _report: Report) -> object:
            return evaluator.alone(is_cancelled, lambda: would_capture(rules, trace, evaluator.derived))

        self._job.start(run)

    def done(self, result: int) -> None:
        """Cancel the task; this is the way out for the button, Esc and the window's cross."""
        self._job.close()
        super().done(result)

    @Slot(object)
    def _on_answer(self, answer: object) -> None:
        if isinstance(answer, WouldCapture):
            self.browser.setHtml(answer_html(answer))

    @Slot(object)
    def _on_failed(self, error: object) -> None:
        self.browser.setPlainText(str(error))


def answer_html(answer: WouldCapture) -> str:
    """Return the answer as a page."""
    least = "" if answer.is_exact else "at least "
    rows = [
        ("Events", f"{least}{answer.events:,}", f"{answer.total_events:,}", _share(answer.events, answer.total_events)),
        ("Slots", f"{least}{answer.slots:,}", f"{answer.total_slots:,}", _share(answer.slots, answer.total_slots)),
        (
            "Bytes per second",
            f"{least}{answer.bytes_per_s:,.0f}",
            f"{answer.total_bytes_per_s:,.0f}",
            _share(answer.bytes_per_s, answer.total_bytes_per_s),
        ),
    ]
    by_class = answer.by_class.items()
    classes = [(name, f"{some:,}", f"{total:,}", _share(some, total)) for name, (some, total) in by_class]
    losses = "".join(
        f"<tr><td style='padding-right:14px'>{html_text(loss.view)}</td>"
        f"<td>{html_text(loss.text or 'complete')}</td></tr>"
        for loss in answer.losses
    )
    notes = "".join(f"<p>{html_text(note)}.</p>" for note in answer.notes)
    return (
        f"{_table(('', 'captured', 'of', ''), rows)}<h4>By class</h4>{_table(('Class', 'captured', 'of', ''), classes)}"
        f"<h4>What views would miss</h4><table cellpadding='3'>{losses}</table>{notes}"
    )


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else ""


def _table(head: tuple[str, ...], rows: list[tuple[str, str, str, str]]) -> str:
    first, *others = head
    heads = "".join(f"<th align='right'>{html_text(text)}</th>" for text in others)
    lines = [f"<tr><th align='left'>{html_text(first)}</th>{heads}</tr>"]
    for name, *values in rows:
        cells = "".join(f"<td align='right'>{html_text(value)}</td>" for value in values)
        lines.append(f"<tr><td>{html_text(name)}</td>{cells}</tr>")
    return f"<table cellpadding='4' cellspacing='2'>{''.join(lines)}</table>"
