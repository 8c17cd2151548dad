"""Questions to the user, one function each, so that tests can answer them."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

from satview import __version__


def ask_open(parent: QWidget, folder: Path | None) -> list[Path]:
    """Return the files to be opened; empty if the user changed his mind."""
    names, _ = QFileDialog.getOpenFileNames(
        parent,
        "Open trace",
        str(folder or ""),
        "Traces (*.kev *.txt *.log);;Kernel event traces (*.kev);;All files (*)",
    )
    return [Path(name) for name in names]


def ask_save(parent: QWidget, suggestion: Path, pattern: str) -> Path | None:
    """Return where to save, None if the user changed his mind."""
    name, _ = QFileDialog.getSaveFileName(parent, "Save", str(suggestion), pattern)
    return Path(name) if name else None


def tell(parent: QWidget, title: str, text: str, details: str = "") -> None:
    """Tell something that needs an answer."""
    box = QMessageBox(parent)
    box.setWindowTitle(title)
    box.setText(text)
    if details:
        box.setDetailedText(details)
    box.exec()


def about(parent: QWidget) -> None:
    """Tell version and licence."""
    tell(
        parent,
        "About satview",
        f"<b>satview {__version__}</b><br>System Analysis Toolkit for QNX Neutrino in Python."
        "<br><br>MIT licence. Built with PySide6 (LGPL), numpy, pyqtgraph and construct.",
    )
