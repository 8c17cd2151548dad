"""What a capture with some rules would have kept of this trace, and what every view would miss."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QTextBrowser, QVBoxLayout, QWidget

from satview.base.safe_text import html_text
from satview.filters.building import BuiltRules
from satview.filters.kept import Kept, what_would_be_kept
from satview.session.jobs import IsCancelled, LatestJob, Report
from satview.session.open_trace import OpenTrace


class KeptDialog(QDialog):
    """Works in the background; shows the answer when it is there.

    Attributes:
        browser: The text.
    """

    def __init__(self, opened: OpenTrace, rules: BuiltRules, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("What would these rules have kept?")
        self.resize(640, 680)
        self.browser = QTextBrowser(self)
        self.browser.setHtml("<p>Working\N{HORIZONTAL ELLIPSIS}</p>")
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        buttons.rejected.connect(self.close)
        layout = QVBoxLayout(self)
        layout.addWidget(self.browser)
        layout.addWidget(buttons)
        self._job = LatestJob(self)
        self._job.done.connect(self._on_kept)
        self._job.failed.connect(self._on_failed)
        evaluator, trace = opened.filters.evaluator, opened.trace

        def work(is_cancelled: IsCancelled, _report: Report) -> object:
            return evaluator.alone(is_cancelled, lambda: what_would_be_kept(rules, trace, evaluator.facts))

        self._job.start(work)

    def done(self, result: int) -> None:
        """Stop the work; this is the way out for the button, Esc and the window's cross."""
        self._job.close()
        super().done(result)

    @Slot(object)
    def _on_kept(self, kept: object) -> None:
        if isinstance(kept, Kept):
            self.browser.setHtml(kept_html(kept))

    @Slot(object)
    def _on_failed(self, error: object) -> None:
        self.browser.setPlainText(str(error))


def kept_html(kept: Kept) -> str:
    """Return the answer as a page."""
    least = "" if kept.is_exact else "at least "
    rows = [
        ("Events", f"{kept.events:,}", f"{kept.total_events:,}", _share(kept.events, kept.total_events)),
        ("Slots", f"{least}{kept.slots:,}", f"{kept.total_slots:,}", _share(kept.slots, kept.total_slots)),
        (
            "Bytes per second",
            f"{least}{kept.bytes_per_s:,.0f}",
            f"{kept.total_bytes_per_s:,.0f}",
            _share(kept.bytes_per_s, kept.total_bytes_per_s),
        ),
    ]
    classes = [(name, f"{some:,}", f"{total:,}", _share(some, total)) for name, (some, total) in kept.by_class.items()]
    losses = "".join(
        f"<tr><td style='padding-right:14px'>{html_text(loss.view)}</td>"
        f"<td>{html_text(loss.text or 'complete')}</td></tr>"
        for loss in kept.losses
    )
    notes = "".join(f"<p>{html_text(note)}.</p>" for note in kept.ignores)
    return (
        f"{_table(('', 'kept', 'of', ''), rows)}<h4>By class</h4>{_table(('Class', 'kept', 'of', ''), classes)}"
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
