"""Modal questions to the user, and dialogs about the open trace, the keys and the plug-ins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from itertools import count
from pathlib import Path
from typing import Final

from PySide6.QtCore import QEvent, QObject, QSize, QStandardPaths, Qt, Slot
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QDialogButtonBox,
    QFileDialog,
    QHBoxLayout,
    QHeaderView,
    QKeySequenceEdit,
    QLineEdit,
    QMessageBox,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)
from shiboken6 import isValid

from satview import __version__
from satview.base.errors import UsageError, WriteError
from satview.base.named_files import OutsideError, allow, check_named
from satview.base.new_file import find_target, refuse_ending
from satview.base.plugins import all_plugins, are_disabled
from satview.base.safe_text import html_text, tool_tip, visible, visible_line
from satview.formats.registry import FORMATS, source_files
from satview.gui.widgets import Dialog, PlainLabel, line_up, list_tree, named, push_button, resize_on_screen, sentence
from satview.session.commands import COMMANDS, Command, KeyBindings
from satview.session.event_text import trace_rows
from satview.session.session import Session, Stage
from satview.session.trace_link import TraceLink, parse_link
from satview.store.axis import files_in, is_axis
from satview.store.trace import Trace

# Modal questions to the user, one function each, so that tests can replace them.


def ask_open(parent: QWidget, folder: Path | None, take_link: Callable[[TraceLink], None] | None = None) -> list[Path]:
    """Ask for files to open; return an empty list if the user cancels, or typed a link.

    `take_link` gets a link such as `boot.kev#t=1s..2s` that is typed as file name into Qt's own dialog; system dialogs
    look for a file of that name.
    """
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
    """Detects a link typed into Qt's file dialog and confirmed with Return; `link` is None until then."""

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

    Files of traces that a window shows are refused, and the user is asked again. A relative suggestion starts at
    `folder_for_saving`; `pattern` is in Qt's filter syntax.
    """
    while True:
        typed, kind = QFileDialog.getSaveFileName(parent, "Save", str(folder_for_saving() / suggestion), pattern)
        if not typed:
            return None
        ending = kind.partition("(*")[2].partition(")")[0]
        path = Path(typed).with_suffix(Path(typed).suffix or ending)
        _last_saved_in[:] = [path.parent]
        try:
            find_target(path, _open_files() if path.exists() else ())
        except WriteError as error:
            report(parent, "Not saved", sentence(str(error)))
            continue
        # The dialog has asked about the name as typed only.
        if path == Path(typed) or not path.exists() or may_replace(parent, path):
            return path


def may_replace(parent: QWidget, path: Path) -> bool:
    """Ask whether a file that exists may be replaced."""
    return is_agreed(parent, "Replace the file?", f"{path.name} exists already.", "", "Replace", "Cancel")


def is_agreed(
    parent: QWidget,
    title: str,
    text: str,
    html: str,
    accept: str,
    refuse: str,
    icon: QMessageBox.Icon = QMessageBox.Icon.Question,
) -> bool:
    """Ask a question in plain text, with HTML below it; return True only if the user clicks `accept`."""
    box = _message_box(parent, title, text, html, icon)
    agreed = box.addButton(accept, QMessageBox.ButtonRole.AcceptRole)
    refused = box.addButton(refuse, QMessageBox.ButtonRole.RejectRole)
    box.setDefaultButton(refused)
    box.setEscapeButton(refused)
    return clicked_button(box) is agreed


def _message_box(
    parent: QWidget | None, title: str, text: str, html: str = "", icon: QMessageBox.Icon = QMessageBox.Icon.NoIcon
) -> QMessageBox:
    box = QMessageBox(icon, title, "", parent=parent)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText(visible(text))
    box.setInformativeText(html)
    return box


def free_path(folder: Path, name: str) -> Path:
    """Return a path in a folder at which no file exists yet: `name`.kev, or with a number, `name`-2.kev."""
    paths = (folder / (f"{name}.kev" if number == 1 else f"{name}-{number}.kev") for number in count(1))
    return next(path for path in paths if not path.exists())


def fault_of_saving(text: str) -> str:
    """Return a sentence on why no trace can be saved at a typed path; "" if one can be saved there."""
    path = Path(text.strip()).expanduser()
    if not text.strip() or path.is_dir():
        return "Name the file to save to."
    if not path.parent.is_dir():
        return f"There is no folder {path.parent}."
    if path.exists() and not path.is_file():
        return f"{path.name} is a device or a pipe, not a file."
    try:
        refuse_ending(path, ".kev", reading=_open_files() if path.exists() else ())
    except WriteError as error:
        return sentence(str(error))
    return ""


def _open_files() -> list[Path]:
    """Return the files of the traces that any window shows or loads, except followed traces: these may be replaced."""
    sessions = [session for window in QApplication.topLevelWidgets() for session in window.findChildren(Session)]
    shown = (session for session in sessions if session.stage in (Stage.LOADING, Stage.READY) and not session.follow)
    return [file for session in shown if session.path is not None for file in source_files(session.path)]


class Unsaved(Enum):
    """Answer of the user to the question what to do with notes that cannot be saved."""

    RETRY = "Try &again"
    ELSEWHERE = "Save &elsewhere..."
    DISCARD = "&Discard notes"
    STAY = "&Cancel"


def ask_unsaved(parent: QWidget, reason: str) -> Unsaved:
    """Ask what to do with notes that cannot be saved when the window closes."""
    box = _message_box(parent, "satview", "Notes on this trace are not saved.", html_text(reason),
                       QMessageBox.Icon.Warning)  # fmt: skip
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
    text = f"{path.name} names files outside of its folder. They are opened with it:"
    names = "<br>".join(html_text(str(file)) for file in files)
    if not is_agreed(parent, "Open files of other folders?", text, names, "Open them", "Do not open"):
        return False
    try:
        allow(path, files)
    except WriteError as error:
        report(parent, "Not stored", visible(str(error)))
        return False
    return True


def report(parent: QWidget, title: str, text: str, *, is_html: bool = False) -> None:
    """Show a message box with an OK button."""
    box = _message_box(parent, title, text)
    if is_html:
        box.setTextFormat(Qt.TextFormat.RichText)
    box.exec()


def report_internal(parent: QWidget | None, kind: str, report: str) -> None:
    """Show a dialog about an internal error, with a report to copy; the windows stay open."""
    advice = (
        "Your trace is untouched, notes are saved as before, and you can go on working. "
        "Please report what Copy report puts on the clipboard; nothing has been sent."
    )
    text = f"Something went wrong inside satview: {kind}."
    box = _message_box(parent, "satview", text, advice, QMessageBox.Icon.Critical)
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


# Information about the open trace.


class InfoDialog(Dialog):
    """Dialog that shows header, system page and event counts of the trace."""

    def __init__(self, trace: Trace, parent: QWidget | None = None) -> None:
        super().__init__(f"{trace.title} \N{EM DASH} information", parent)
        self.tree = list_tree(self, "Information", ["Name", "Value"], is_flat=False)
        self.tree.header().setSectionResizeMode(0, QHeaderView.ResizeMode.ResizeToContents)
        for title, rows in info_sections(trace):
            top = QTreeWidgetItem(self.tree, [title])
            for name, value in rows:
                item = QTreeWidgetItem(top, [visible_line(name), visible_line(value)])
                item.setToolTip(1, tool_tip(value))
            top.setExpanded(title in ("Trace", "Events", "CPUs", "Header"))
            top.setHidden(not top.childCount())
        buttons = self.close_box()
        line_up(QVBoxLayout(self), self.tree, buttons)
        resize_on_screen(self, 640, 620)


def info_sections(trace: Trace) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the sections of `InfoDialog`: for each, the title and the rows as (name, value)."""
    system, buffers = trace.system, trace.buffers
    counts = sorted(trace.class_counts().items(), key=lambda pair: -pair[1])
    cpus = []
    for cpu in system.cpus if system else ():
        facts = (cpu.name, f"{cpu.speed_mhz} MHz" if cpu.speed_mhz else "", " ".join(cpu.flag_names))
        cpus.append((f"CPU {cpu.number}", "  ".join(filter(None, facts))))
    values = [(name, f"{value:,} (0x{value:x})") for name, value in (system.values.items() if system else ())]
    lost = [("Buffers", f"{len(buffers):,}"), ("Lost", f"{int(buffers.lost_before.sum()):,}")] if len(buffers) else []
    return [
        ("Trace", list(trace_rows(trace))),
        ("Events", [(name, f"{count:,}") for name, count in counts]),
        ("CPUs", cpus),
        ("Header", list(trace.header.pairs)),
        ("System page", [*(system.strings if system else ()), *values]),
        ("Buffers", lost),
    ]


# The dialog for key bindings.


_SIZE_PX: Final = (560, 480)
_COMMAND: Final = int(Qt.ItemDataRole.UserRole)


class KeysDialog(Dialog):
    """Dialog with all commands and their keys, which can be changed. Changes apply and are stored immediately."""

    def __init__(self, keys: KeyBindings, parent: QWidget) -> None:
        super().__init__("Change keys", parent)
        self._keys = keys
        self.search = QLineEdit(self, placeholderText="Find a command or a key")
        self.search.textChanged.connect(self._fill)
        self.tree = list_tree(self, "Commands and keys", ["Command", "Keys"])
        self.tree.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.tree.currentItemChanged.connect(self._on_current)
        self.edit = named(QKeySequenceEdit(self), "Key to set")
        self.edit.setMaximumSequenceLength(1)
        self.edit.keySequenceChanged.connect(self._emit_keys)
        self.set_button, self.add_button, self.none_button, self.usual_button = (
            push_button(text, self, run, tip, takes_return=False)
            for text, tip, run in (
                ("Set", "Make this the only key of the command", self._set),
                ("Add", "Add this key to the command", self._add),
                ("None", "The command has no key", self._clear),
                ("Usual", "Restore the default keys of the command", self._use_table),
            )
        )
        self.message = PlainLabel("", self, role="dim", wraps=True)
        self._lay_out()
        keys.changed.connect(self._fill)
        self._fill()
        self.resize(min(_SIZE_PX[0], parent.width() - 40), min(_SIZE_PX[1], parent.height() - 40))

    @property
    def command(self) -> Command | None:
        """The selected command."""
        item = self.tree.currentItem()
        return None if item is None else next(row for row in COMMANDS if row.id == item.data(0, _COMMAND))

    def _lay_out(self) -> None:
        line = line_up(QHBoxLayout(), (self.edit, 1), self.set_button, self.add_button, self.none_button,
                       self.usual_button)  # fmt: skip
        buttons = self.close_box()
        all_usual = buttons.addButton("All usual keys", QDialogButtonBox.ButtonRole.ResetRole)
        all_usual.setAutoDefault(False)
        all_usual.clicked.connect(self._use_table_for_all)
        line_up(QVBoxLayout(self), self.search, (self.tree, 1), line, self.message, buttons, margins=(20, 18, 20, 16),
                spacing=10)  # fmt: skip

    @Slot()
    def _fill(self) -> None:
        selected = self.command
        words = self.search.text().casefold().split()
        self.tree.blockSignals(True)
        self.tree.clear()
        for command in COMMANDS:
            area = command.menu.value.replace("&", "")
            title = f"{area}: {command.whole_title}"
            keys = ", ".join(native(key) for key in self._keys.keys_of(command))
            if all(word in f"{title} {keys}".casefold() for word in words):
                item = QTreeWidgetItem(self.tree, [title, keys])
                item.setData(0, _COMMAND, command.id)
                item.setToolTip(0, tool_tip(command.help))
                font = item.font(1)
                font.setBold(self._keys.is_changed(command))
                item.setFont(1, font)
                if selected is command:
                    self.tree.setCurrentItem(item)
        topmost = self.tree.topLevelItem(0)
        if self.tree.currentItem() is None and topmost is not None:
            self.tree.setCurrentItem(topmost)
        self.tree.resizeColumnToContents(1)
        self.tree.blockSignals(False)
        self._emit_keys()

    @Slot()
    def _on_current(self) -> None:
        self.edit.clear()
        self._emit_keys()

    @Slot()
    def _emit_keys(self) -> None:
        """Show which command the typed key runs now, before the user assigns the key to another."""
        key, command = self._pressed(), self.command
        for button in (self.set_button, self.add_button):
            button.setEnabled(bool(key) and command is not None)
        owner = self._keys.owner_of(key) if key else None
        if owner is not None and owner is not command:
            self.message.setText(f"{native(key)} runs {owner.whole_title} now, and would not any more.")
        else:
            self.message.setText("Click the line and press a key. Bold: changed keys.")

    def _pressed(self) -> str:
        """Return the typed key in the notation of the command table."""
        return table_key(self.edit.keySequence().toString(QKeySequence.SequenceFormat.PortableText))

    @Slot()
    def _set(self) -> None:
        if self.command is not None and self._pressed():
            self._keys.set_keys(self.command, (self._pressed(),))

    @Slot()
    def _add(self) -> None:
        if self.command is not None and self._pressed():
            self._keys.set_keys(self.command, (*self._keys.keys_of(self.command), self._pressed()))

    @Slot()
    def _clear(self) -> None:
        if self.command is not None:
            self._keys.set_keys(self.command, ())

    @Slot()
    def _use_table(self) -> None:
        if self.command is not None:
            self._keys.use_table(self.command)

    @Slot()
    def _use_table_for_all(self) -> None:
        self._keys.use_table()


def native(key: str) -> str:
    """Return a key in the notation of this platform."""
    return QKeySequence(key).toString(QKeySequence.SequenceFormat.NativeText)


def table_key(text: str) -> str:
    """Return a key in the notation of the command table, such as `?` where Qt writes `Shift+?`."""
    if text in ("Shift+?", "Shift++"):
        return text.removeprefix("Shift+")
    same = (key for command in COMMANDS for key in command.keys if QKeySequence(key) == QKeySequence(text))
    return next(same, text)


# The dialog for plug-ins.


_NONE = "No plug-ins are installed. docs/plugins.md explains how to write one; examples/plugins has one of each kind."
_DISABLED = "Plug-ins are disabled by SATVIEW_PLUGINS=off."
_SOME = "These come from other installed packages. A plug-in that fails is switched off until the next start."


class PluginsDialog(Dialog):
    """Dialog that lists the installed plug-ins with their packages, and why some are switched off."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Plug-ins", parent)
        installed = all_plugins()
        self.head = PlainLabel(self, wraps=True)
        self.head.setText(_SOME if installed else _DISABLED if are_disabled() else _NONE)
        self.tree = list_tree(self, "Plug-ins", ["Kind", "Name", "Package", "State"])
        for plugin in installed:
            plugin.value()  # imports it, and sets `fault` if that fails
            state = f"switched off: {plugin.fault}" if plugin.fault else "on"
            words = (plugin.kind.word, plugin.name, plugin.package, state)
            item = QTreeWidgetItem(self.tree, [visible_line(word) for word in words])
            item.setToolTip(3, tool_tip(state))
        for column, width_px in enumerate((80, 140, 200)):
            self.tree.setColumnWidth(column, width_px)
        buttons = self.close_box()
        line_up(QVBoxLayout(self), self.head, self.tree, buttons)
        self.resize(QSize(720, 320))
