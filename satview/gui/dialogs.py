"""Modal questions to the user, one function each, so that tests can replace them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from itertools import count
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, QStandardPaths, Qt
from PySide6.QtGui import QGuiApplication, QKeyEvent
from PySide6.QtWidgets import QAbstractButton, QFileDialog, QLineEdit, QMessageBox, QWidget
from shiboken6 import isValid

from satview import __version__
from satview.base.errors import UsageError, WriteError
from satview.base.named_files import OutsideError, allow, check_named
from satview.base.safe_text import html_text, visible
from satview.session.trace_link import TraceLink, parse_link
from satview.store.axis_file import files_in, is_axis


def ask_open(parent: QWidget, folder: Path | None, take_link: Callable[[TraceLink], None] | None = None) -> list[Path]:
    """Ask for files to open; return none if the user cancels.

    Args:
        parent: Parent.
        folder: Initial folder.
        take_link: Called with a link such as `boot.kev#t=1s..2s` that the user types as the file name. Works in Qt's
            own dialog only; system dialogs look for a file of that name.
    """
    from satview.formats.registry import FORMATS  # on first use: imports numpy

    patterns = " ".join(pattern for file_format in FORMATS for pattern in file_format.patterns)
    kinds = [
        f"Traces ({patterns})",
        *(f"{file_format.title} ({' '.join(file_format.patterns)})" for file_format in FORMATS),
        "All files (*)",
    ]
    dialog = QFileDialog(parent, "Open trace", str(folder or ""))
    dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
    dialog.setNameFilters(kinds)
    typed = _TypedLink(dialog)
    is_accepted = dialog.exec() == QFileDialog.DialogCode.Accepted
    if not isValid(dialog):  # its window was closed
        return []
    dialog.deleteLater()
    if typed.link is not None and take_link is not None:
        take_link(typed.link)
        return []
    return [Path(name) for name in dialog.selectedFiles()] if is_accepted else []


class _TypedLink(QObject):
    """Detects a link typed into Qt's file dialog and confirmed with Return.

    Attributes:
        link: The link; None until one is typed.
    """

    def __init__(self, dialog: QFileDialog) -> None:
        super().__init__(dialog)
        self._dialog = dialog
        self.link: TraceLink | None = None
        line = dialog.findChild(QLineEdit, "fileNameEdit")
        if isinstance(line, QLineEdit):  # otherwise it is a system dialog
            line.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Check for a link before the dialog reports that the file does not exist."""
        is_return = isinstance(event, QKeyEvent) and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if event.type() != QEvent.Type.KeyPress or not is_return or not isinstance(watched, QLineEdit):
            return False
        try:
            link = parse_link(watched.text())
        except UsageError:
            return False  # the dialog reports the missing file
        link = replace(link, path=Path(self._dialog.directory().absolutePath()) / link.path)
        if not link.has_position or not link.path.is_file():
            return False
        self.link = link
        self._dialog.reject()
        return True


def ask_folder(parent: QWidget, title: str) -> Path | None:
    """Ask for a folder; return None if the user cancels."""
    name = QFileDialog.getExistingDirectory(parent, title)
    return Path(name) if name else None


def ask_file(parent: QWidget, title: str, pattern: str) -> Path | None:
    """Ask for one file to read; return None if the user cancels."""
    name, _ = QFileDialog.getOpenFileName(parent, title, "", pattern)
    return Path(name) if name else None


_last_saved_in: list[Path] = []
"""The folder last saved to in this run; at most one."""


def folder_for_saving() -> Path:
    """Return the initial folder of save dialogs: the last one used, else the user's documents.

    Not the folder of the trace, which may be on a target's disk, in an archive, or among the samples of satview.
    """
    documents = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
    folders = (*_last_saved_in, Path(documents or "."), Path.home())
    return next((folder for folder in folders if folder.is_dir()), Path.home())


def ask_save(parent: QWidget, suggestion: Path, pattern: str) -> Path | None:
    """Ask where to save; return None if the user cancels. A name without extension gets that of the file type.

    Args:
        parent: Parent.
        suggestion: Suggested name; a relative path starts at `folder_for_saving`.
        pattern: File types in Qt's filter syntax.
    """
    typed, kind = QFileDialog.getSaveFileName(parent, "Save", str(folder_for_saving() / suggestion), pattern)
    if not typed:
        return None
    ending = kind.partition("(*")[2].partition(")")[0]
    path = Path(typed)
    _last_saved_in[:] = [path.parent]
    return path.with_suffix(path.suffix or ending)


def free_path(folder: Path, name: str) -> Path:
    """Return the path of a .kev file in a folder that does not exist yet: `name`, with a number if necessary."""
    paths = (folder / (f"{name}.kev" if number == 1 else f"{name}-{number}.kev") for number in count(1))
    return next(path for path in paths if not path.exists())


def fault_of_saving(text: str) -> str:
    """Return a sentence on why no file can be saved at a typed path; "" if one can."""
    path = Path(text.strip()).expanduser()
    if not text.strip() or path.is_dir():
        return "Name the file to save to."
    if not path.parent.is_dir():
        return f"There is no folder {path.parent}."
    return f"{path.name} is a device or a pipe, not a file." if path.exists() and not path.is_file() else ""


class Unsaved(Enum):
    """Answers to the question about notes that cannot be saved."""

    RETRY = "Try &again"
    ELSEWHERE = "Save &elsewhere..."
    DISCARD = "&Discard notes"
    STAY = "&Cancel"


def ask_unsaved(parent: QWidget, reason: str) -> Unsaved:
    """Ask what to do with notes that cannot be saved when the window closes."""
    box = QMessageBox(QMessageBox.Icon.Warning, "satview", "", parent=parent)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText("Notes on this trace are not saved.")
    box.setInformativeText(html_text(reason))
    roles = (
        QMessageBox.ButtonRole.AcceptRole,
        QMessageBox.ButtonRole.ActionRole,
        QMessageBox.ButtonRole.DestructiveRole,
        QMessageBox.ButtonRole.RejectRole,
    )
    buttons = [(box.addButton(answer.value, role), answer) for answer, role in zip(Unsaved, roles, strict=True)]
    clicked = clicked_button(box)
    return next((answer for button, answer in buttons if button is clicked), Unsaved.STAY)


def clicked_button(box: QMessageBox) -> QAbstractButton | None:
    """Show a message box; return the button that was clicked, or None if its window was closed."""
    box.exec()
    return box.clickedButton() if isValid(box) else None


def may_open(parent: QWidget, path: Path) -> bool:
    """Return whether a file may be opened; ask the user if it is an axis file with files outside its folder.

    The question lists those files. Consent is stored, and also applies to the command line.
    """
    if not is_axis(path):
        return True
    try:
        check_named(path, files_in(path))
    except OutsideError as error:
        files = error.files
    else:
        return True
    box = QMessageBox(parent)
    box.setIcon(QMessageBox.Icon.Question)
    box.setWindowTitle("Open files of other folders?")
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText(visible(f"{path.name} names files outside of its folder. They are opened with it:"))
    box.setInformativeText("<br>".join(html_text(str(file)) for file in files))
    accept = box.addButton("Open them", QMessageBox.ButtonRole.AcceptRole)
    refuse = box.addButton("Do not open", QMessageBox.ButtonRole.RejectRole)
    box.setDefaultButton(refuse)
    box.setEscapeButton(refuse)
    if clicked_button(box) is not accept:
        return False
    try:
        allow(path, files)
    except WriteError as error:
        report(parent, "Not stored", visible(str(error)))
        return False
    return True


def report(parent: QWidget, title: str, text: str, details: str = "", *, is_html: bool = False) -> None:
    """Show a message box with an OK button."""
    box = QMessageBox(parent)
    box.setWindowTitle(title)
    box.setTextFormat(Qt.TextFormat.RichText if is_html else Qt.TextFormat.PlainText)
    box.setText(text if is_html else visible(text))
    if details:
        box.setDetailedText(details)
    box.exec()


def report_internal(parent: QWidget | None, kind: str, report: str) -> None:
    """Show a dialog about an internal error, with a report to copy; the windows stay open."""
    box = QMessageBox(QMessageBox.Icon.Critical, "satview", "", parent=parent)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText(f"Something went wrong inside satview: {kind}.")
    box.setInformativeText(
        "Your trace is untouched, notes are saved as before, and you can go on working. "
        "Please report what Copy report puts on the clipboard; nothing has been sent."
    )
    box.setDetailedText(report)
    copy = box.addButton("&Copy report", QMessageBox.ButtonRole.ActionRole)
    box.addButton(QMessageBox.StandardButton.Close)
    if clicked_button(box) is copy:
        QGuiApplication.clipboard().setText(report)


def about(parent: QWidget) -> None:
    """Show a dialog with the version, the licence and the licences of dependencies."""
    report(
        parent,
        "About satview",
        f"<b>satview {__version__}</b><br>System Analysis Toolkit for QNX Neutrino in Python."
        "<br><br>MIT licence. Needs PySide6-Essentials and shiboken6 with Qt (LGPL-3.0), numpy, zstandard, "
        "google-re2, msgspec and colorama (BSD-3-Clause), Pygments (BSD-2-Clause), pyqtgraph, construct, rich, "
        "markdown-it-py, mdurl, platformdirs (MIT), shtab (MPL-2.0) and pyelftools (public domain), which are "
        "installed as packages of their own.",
        is_html=True,
    )
