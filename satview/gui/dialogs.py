"""Questions to the user, one function each, so that tests can answer them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
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
    """Return the files to be opened; empty if the user changed his mind.

    Args:
        parent: Owner.
        folder: Where to look first.
        take_link: Called with a link into a file, `boot.kev#t=1s..2s`, that was typed as the name: Qt's dialog lets
            a program see that, those of systems do not, and look for a file of that name.
    """
    from satview.formats.registry import FORMATS  # on first use: brings numpy

    every = " ".join(pattern for file_format in FORMATS for pattern in file_format.patterns)
    kinds = [
        f"Traces ({every})",
        *(f"{file_format.title} ({' '.join(file_format.patterns)})" for file_format in FORMATS),
        "All files (*)",
    ]
    dialog = QFileDialog(parent, "Open trace", str(folder or ""))
    dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
    dialog.setNameFilters(kinds)
    typed = _TypedLink(dialog)
    is_accepted = dialog.exec() == QFileDialog.DialogCode.Accepted
    if not isValid(dialog):  # its window was closed meanwhile
        return []
    dialog.deleteLater()
    if typed.link is not None and take_link is not None:
        take_link(typed.link)
        return []
    return [Path(name) for name in dialog.selectedFiles()] if is_accepted else []


class _TypedLink(QObject):
    """Takes a link that is typed into the dialog of Qt and ended by Return.

    Attributes:
        link: The link; None as long as none was typed.
    """

    def __init__(self, dialog: QFileDialog) -> None:
        super().__init__(dialog)
        self._dialog = dialog
        self.link: TraceLink | None = None
        line = dialog.findChild(QLineEdit, "fileNameEdit")
        if isinstance(line, QLineEdit):  # else the dialog is that of the system
            line.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Look at what was typed before the dialog says that there is no such file."""
        is_return = isinstance(event, QKeyEvent) and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if event.type() != QEvent.Type.KeyPress or not is_return or not isinstance(watched, QLineEdit):
            return False
        try:
            link = parse_link(watched.text())
        except UsageError:
            return False  # the dialog names what it cannot find
        link = replace(link, path=Path(self._dialog.directory().absolutePath()) / link.path)
        if not link.has_position or not link.path.is_file():
            return False
        self.link = link
        self._dialog.reject()
        return True


def ask_folder(parent: QWidget, title: str) -> Path | None:
    """Return a folder, None if the user changed his mind."""
    name = QFileDialog.getExistingDirectory(parent, title)
    return Path(name) if name else None


def ask_file(parent: QWidget, title: str, pattern: str) -> Path | None:
    """Return one file to be read, None if the user changed his mind."""
    name, _ = QFileDialog.getOpenFileName(parent, title, "", pattern)
    return Path(name) if name else None


_last_saved_in: list[Path] = []
"""The folder that was saved to last, while the program runs."""


def folder_for_saving() -> Path:
    """Return where dialogs begin: where something was saved last, else the documents of the user.

    Not beside the trace: that may be on a target's disk, in an archive, or among the samples that come with satview.
    """
    documents = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
    places = (*_last_saved_in, Path(documents or "."), Path.home())
    return next((place for place in places if place.is_dir()), Path.home())


def ask_save(parent: QWidget, suggestion: Path, pattern: str) -> Path | None:
    """Return where to save, None if the user changed his mind; a name without an ending gets that of its kind.

    Args:
        parent: Owner.
        suggestion: The proposed name; where it says no folder, that is `folder_for_saving`.
        pattern: The kinds of files, as Qt writes them.
    """
    typed, kind = QFileDialog.getSaveFileName(parent, "Save", str(folder_for_saving() / suggestion), pattern)
    if not typed:
        return None
    ending = kind.partition("(*")[2].partition(")")[0]
    path = Path(typed)
    _last_saved_in[:] = [path.parent]
    return path.with_suffix(path.suffix or ending)


def free_path(folder: Path, name: str) -> Path:
    """Return a .kev file of that name that does not exist yet."""
    for number in range(1, 1000):
        path = folder / (f"{name}.kev" if number == 1 else f"{name}-{number}.kev")
        if not path.exists():
            return path
    return folder / f"{name}.kev"


def fault_of_saving(text: str) -> str:
    """Return why nothing can be saved to what was typed as a file, as a sentence; empty = it can."""
    path = Path(text.strip()).expanduser()
    if not text.strip() or path.is_dir():
        return "Name the file to save to."
    if not path.parent.is_dir():
        return f"There is no folder {path.parent}."
    return f"{path.name} is a device or a pipe, not a file." if path.exists() and not path.is_file() else ""


class Unsaved(Enum):
    """The user's choices for notes that cannot be saved."""

    RETRY = "Try &again"
    ELSEWHERE = "Save &elsewhere..."
    DISCARD = "&Discard notes"
    STAY = "&Cancel"


def ask_unsaved(parent: QWidget, reason: str) -> Unsaved:
    """Return what is to become of notes that cannot be saved, as the window closes."""
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
    """Show a question; return the button that was clicked, None if its window was closed meanwhile."""
    box.exec()
    return box.clickedButton() if isValid(box) else None


def may_open(parent: QWidget, path: Path) -> bool:
    """Return whether a file may be opened: unless it is an axis that names files outside of its folder, it may.

    Of one that does, the user is shown the files; a yes holds from then on, on the command line too.
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
    """Show something that needs an answer."""
    box = QMessageBox(parent)
    box.setWindowTitle(title)
    box.setTextFormat(Qt.TextFormat.RichText if is_html else Qt.TextFormat.PlainText)
    box.setText(text if is_html else visible(text))
    if details:
        box.setDetailedText(details)
    box.exec()


def report_internal(parent: QWidget | None, kind: str, report: str) -> None:
    """Show an error inside satview with a report to copy; the windows stay as they are."""
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
    """Show version and licence."""
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
