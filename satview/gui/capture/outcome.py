"""What a capture has found: a deadlock, a program that raised, a logger that was too slow."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QFrame, QLabel, QVBoxLayout, QWidget

from satview.base.time_text import format_duration
from satview.gui.capture.job import CaptureOutcome
from satview.gui.plain_label import PlainLabel


def summary(outcome: CaptureOutcome) -> str:
    """Return one sentence about the amount captured."""
    result = outcome.result
    lost = ""
    if result.lost_buffers or result.dropped_events:
        lost = f"; too slow a logger: {result.lost_buffers:,} buffers lost, {result.dropped_events:,} events dropped"
    ended = "Stopped" if result.was_cancelled else "Captured"
    buffers = f"{result.buffers:,} buffer{'s' * (result.buffers != 1)}"
    time = f"{format_duration(result.duration_ns)} of the target's time"
    return f"{ended}: {result.slots:,} slots in {buffers}, {time}, in {result.path.name}{lost}"


class OutcomeDialog(QDialog):
    """Shows findings beside the trace; it does not have to be answered before one goes on."""

    def __init__(self, outcome: CaptureOutcome, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(f"Capture of {outcome.result.path.name}")
        self.setMinimumWidth(560)
        findings = outcome.result.findings
        layout = QVBoxLayout(self)
        layout.setContentsMargins(24, 20, 24, 18)
        layout.setSpacing(12)
        layout.addWidget(self._label("1 finding" if len(findings) == 1 else f"{len(findings)} findings", "title"))
        for finding in findings[:20]:
            layout.addWidget(self._card(finding))
        if len(findings) > 20:
            layout.addWidget(self._label(f"and {len(findings) - 20} more", "dim"))
        layout.addWidget(self._label(summary(outcome) + ".", "dim"))
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        buttons.rejected.connect(self.close)
        layout.addWidget(buttons)

    def _card(self, finding: str) -> QFrame:
        card = QFrame(self)
        card.setProperty("role", "card")
        box = QVBoxLayout(card)
        box.setContentsMargins(14, 10, 14, 10)
        kind, colon, rest = finding.partition(": ")
        if colon and len(kind) < 24:
            box.addWidget(self._label(kind[:1].upper() + kind[1:], "error"))
            finding = rest
        label = self._label(finding[:2000], "")
        label.setObjectName("finding")
        box.addWidget(label)
        return card

    def _label(self, text: str, role: str) -> QLabel:
        label = PlainLabel(text, self)
        label.setTextFormat(Qt.TextFormat.PlainText)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        label.setWordWrap(True)
        label.setProperty("role", role)
        return label
