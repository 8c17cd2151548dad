"""Pages shown while no trace is open: welcome, loading, failed. They need no numpy, so they show at once."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from PySide6 import QtCore
from PySide6.QtCore import QEvent, Signal, SignalInstance, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QProgressBar, QPushButton, QVBoxLayout, QWidget

from satview.base.errors import TraceFormatError
from satview.base.safe_text import menu_text, tool_tip
from satview.gui.widgets import PlainLabel, line_up, push_button, sentence
from satview.session.loading.files import RecentFiles

_CARD_LINES: Final = 33  # width of a card, in heights of a line, so that it grows with the text


def _label(text: str, role: str, parent: QWidget) -> QLabel:
    label = PlainLabel(text, parent, wraps=True)
    label.setProperty("role", role)
    return label


class _Card(QWidget):
    """Base class of pages: a framed card of fixed width in the middle, whose content is `box`."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._card = card = QFrame(self)
        card.setProperty("role", "card")
        self.box = line_up(QVBoxLayout(card), margins=(28, 24, 28, 24), spacing=10)
        # No alignment flag on the card: with a flag, Qt ignores the height that wrapped text needs for its width.
        across = line_up(QHBoxLayout(), None, card, None)
        outer = QVBoxLayout(self)
        outer.addStretch(2)
        outer.addLayout(across)
        outer.addStretch(3)
        self.fit()

    def fit(self) -> None:
        """Set the width of the card, which depends on the text size."""
        self._card.setFixedWidth(self.card_px())

    def card_px(self) -> int:
        """Return the width of the card."""
        return _CARD_LINES * self.fontMetrics().height()

    def changeEvent(self, event: QEvent) -> None:
        """Follow the text size."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self.fit()


class WelcomePage(_Card):
    """The page of an empty window, from which a trace, a sample or a recent file is opened, or a capture begun."""

    open_requested = Signal()
    capture_requested = Signal()
    sample_requested = Signal()
    file_requested = Signal(Path)

    def __init__(self, recent: RecentFiles, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._recent = recent
        self.box.addWidget(_label("satview", "title", self))
        self.box.addWidget(
            _label(
                "Open a kernel event trace of QNX Neutrino: a .kev file written by tracelogger, or a listing"
                " printed by traceprinter. You can also drop files here.",
                "dim",
                self,
            )
        )
        button = push_button("Open trace\N{HORIZONTAL ELLIPSIS}", self, self.open_requested, is_primary=True)
        sample = push_button("Open a sample", self, self.sample_requested)
        capture = push_button("New capture\N{HORIZONTAL ELLIPSIS}", self, self.capture_requested)
        row = line_up(QHBoxLayout(), button, sample, capture, None)
        self.box.addLayout(row)
        self.box.addWidget(_label("Press ? for keys", "faint", self))
        self._recent_box = line_up(QVBoxLayout(), spacing=0)
        self.box.addLayout(self._recent_box)
        recent.changed.connect(self._fill)
        self._fill()

    @Slot()
    def _fill(self) -> None:
        while self._recent_box.count():
            item = self._recent_box.takeAt(0)
            if item is not None and (widget := item.widget()) is not None:
                widget.deleteLater()
        files = self._recent.files()
        if files:
            heading = _label("Recent", "faint", self)
            heading.setWordWrap(False)
            heading.setContentsMargins(0, 10, 0, 4)
            self._recent_box.addWidget(heading)
        for file in files[:6]:
            self._recent_box.addWidget(_RecentButton(file, self.file_requested, self.card_px(), self))


class _RecentButton(QPushButton):
    """Button of a recent file, with the name of the file and its shortened folder."""

    def __init__(self, file: Path, signal: SignalInstance, card_px: int, parent: QWidget) -> None:
        super().__init__(parent)
        self._file = file
        self._signal = signal
        metrics = self.fontMetrics()
        room_px = max(40, card_px - 90 - metrics.horizontalAdvance(file.name))
        folder = metrics.elidedText(str(file.parent), QtCore.Qt.TextElideMode.ElideMiddle, room_px)
        self.setText(menu_text(f"{file.name}   {folder}"))
        self.setCursor(QtCore.Qt.CursorShape.PointingHandCursor)
        self.setToolTip(tool_tip(str(file)))
        self.setMinimumHeight(metrics.height() + 10)
        self.setProperty("row", "true")
        self.clicked.connect(self._on_clicked)

    @Slot()
    def _on_clicked(self) -> None:
        self._signal.emit(self._file)


class LoadingPage(_Card):
    """The page shown while a file is read, which the user can cancel."""

    cancel_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.title = _label("", "title", self)
        self.text = _label("", "dim", self)
        self.bar = QProgressBar(self, textVisible=False)
        self.bar.setRange(0, 1000)
        self.cancel = push_button("Cancel", self, self.cancel_requested)
        line_up(self.box, self.title, self.text, self.bar)
        self.box.addWidget(self.cancel, alignment=QtCore.Qt.AlignmentFlag.AlignRight)

    def begin(self, path: Path) -> None:
        """Show the name and size of the file."""
        self.title.setText(f"Opening {_shorten(path.name)}")
        self.text.setText(_size_text(path))
        self.bar.setRange(0, 0)

    def wait(self, why: str) -> None:
        """Show the reason why a followed file cannot be shown yet, such as that it does not exist."""
        self.title.setText("Waiting for a capture")
        self.text.setText(f"{why}.")
        self.bar.setRange(0, 0)

    @Slot(float)
    def set_progress(self, share: float) -> None:
        """Show the share that has been read, 0 to 1."""
        self.bar.setRange(0, 1000)
        self.bar.setValue(round(share * 1000))


class FailedPage(_Card):
    """The page of a file that could not be read: the error, its position and the remedy, and a button to try again."""

    open_requested = Signal()
    retry_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.title = _label("", "title", self)
        self.what = _label("", "error", self)
        self.remedy = _label("", "dim", self)
        self.position = _label("", "faint", self)
        for label in (self.what, self.remedy, self.position):
            label.setTextInteractionFlags(QtCore.Qt.TextInteractionFlag.TextSelectableByMouse)
        again = push_button("Try again", self, self.retry_requested)
        other = push_button("Open another\N{HORIZONTAL ELLIPSIS}", self, self.open_requested, is_primary=True)
        row = line_up(QHBoxLayout(), None, again, other)
        line_up(self.box, self.title, self.what, self.remedy, self.position, row)

    def show_error(self, path: Path, error: Exception) -> None:
        """Show why a file cannot be opened."""
        self.title.setText(f"{_shorten(path.name)} cannot be opened")
        if isinstance(error, TraceFormatError):
            what, remedy = error.what, error.remedy
            byte = f", byte 0x{error.offset:x}" if error.offset is not None else ""
        else:
            what, remedy, byte = f"{type(error).__name__}: {error}", "This is a bug in satview; please report it.", ""
        self.what.setText(sentence(what))
        self.remedy.setText(sentence(remedy))
        self.position.setText(f"{path}{byte}")


def _shorten(name: str) -> str:
    return name if len(name) <= 34 else f"{name[:20]}\N{HORIZONTAL ELLIPSIS}{name[-13:]}"


def _size_text(path: Path) -> str:
    try:
        size = path.stat().st_size
    except OSError:
        return str(path.parent)
    unit = next((pair for pair in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB")) if size >= pair[0]), (1, "bytes"))
    return f"{size / unit[0]:.1f} {unit[1]}" if unit[0] > 1 else f"{size} bytes"
