"""Commands that need no open trace: files, captures, windows, themes, help."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt, Slot
from PySide6.QtGui import QGuiApplication, QKeySequence
from PySide6.QtWidgets import QDialog, QFrame, QHBoxLayout, QLineEdit, QTextBrowser, QVBoxLayout, QWidget

from satview.base.errors import SatviewError, UsageError
from satview.base.named_files import sample_trace
from satview.base.safe_text import html_text
from satview.base.time import NS_PER_S
from satview.capture.buffers import LoggerOptions
from satview.capture.run import Capture
from satview.fleet.query import is_dataset
from satview.gui import dialogs
from satview.gui.capture.dialog import NewCaptureDialog
from satview.gui.capture.job import CaptureJob, CaptureOutcome, CaptureRequest, OutcomeDialog, failure
from satview.gui.capture.target_dialog import TargetDialog
from satview.gui.dialogs import InfoDialog, KeysDialog, PluginsDialog
from satview.gui.settings_dialog import SettingsDialog, StateLooksDialog
from satview.gui.theme import Theme, css
from satview.gui.widgets import LinePrompt, Option, PlainLabel, QuickPick, line_up, push_button, withdraw
from satview.gui.windows.command_window import CommandActions
from satview.gui.windows.looks import SessionCommands
from satview.gui.windows.trace_commands import TraceCommands
from satview.gui.windows.workspace import StoreField
from satview.session.commands import COMMANDS, MOUSE_HELP, CommandRegistry, Menu
from satview.session.session import Stage
from satview.session.settings import Settings
from satview.session.trace_link import parse_link

if TYPE_CHECKING:
    from satview.gui.windows.command_window import CommandWindow


# The page of all keys over the window.


class KeyOverlay(QFrame):
    """A searchable page of all key bindings over the window; a key that the search field does not take closes it."""

    def __init__(self, registry: CommandRegistry, actions: CommandActions, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("role", "floating")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._registry = registry
        self._actions = actions
        self._theme = theme
        self.search = QLineEdit(self, placeholderText="Find a key")
        self.search.textChanged.connect(self._fill)
        close = push_button("Close", self, self.close)
        title = PlainLabel("Keys and mouse", self, role="title")
        head = line_up(QHBoxLayout(), title, None, self.search, close)
        self.browser = QTextBrowser(self)
        line_up(QVBoxLayout(self), head, self.browser, margins=(20, 16, 20, 16))
        self.resize(min(1060, parent.width() - 40), min(760, parent.height() - 60))
        self.move((parent.width() - self.width()) // 2, (parent.height() - self.height()) // 2)
        self._fill("")
        self.show()
        self.raise_()
        self.setFocus()

    def event(self, event: QEvent) -> bool:
        """Close on a key before a command of the window receives the key."""
        if event.type() == QEvent.Type.ShortcutOverride:
            event.accept()
            return True
        if event.type() == QEvent.Type.KeyPress:
            self.close()
            return True
        return super().event(event)

    @Slot(str)
    def _fill(self, text: str) -> None:
        groups = [(menu.value.replace("&", ""), self._rows(menu)) for menu in Menu]
        groups.append(("Mouse", list(MOUSE_HELP)))
        requested = text.casefold()
        shown = [
            (title, [row for row in rows if requested in f"{row[0]} {row[1]}".casefold()]) for title, rows in groups
        ]
        self.browser.setHtml(self._html([(title, rows) for title, rows in shown if rows]))

    def _rows(self, menu: Menu) -> list[tuple[str, str]]:
        rows = []
        for binding in self._registry:
            keys = self._actions.by_id[binding.command.id].shortcuts()
            if binding.command.menu is menu and keys:
                texts = [key.toString(QKeySequence.SequenceFormat.NativeText) for key in keys]
                names = ", ".join(text for text in texts if text not in ("Shift+?", "Shift++"))
                rows.append((names, binding.command.whole_title))
        return rows

    def _html(self, groups: list[tuple[str, list[tuple[str, str]]]]) -> str:
        if not groups:
            return f"<p style='color:{css(self._theme.faint)}'>No key is called that.</p>"
        # Three columns of about equal length; a group is not split.
        total = sum(len(rows) + 3 for _, rows in groups)
        columns: list[list[str]] = [[], [], []]
        used = 0
        for title, rows in groups:
            columns[min(2, used * 3 // total)].append(self._group_html(title, rows))
            used += len(rows) + 3
        cells = "".join(
            f"<td width='33%' valign='top' style='padding-right:18px'>{''.join(column)}</td>" for column in columns
        )
        return f"<table width='100%' cellspacing='0' cellpadding='0'><tr>{cells}</tr></table>"

    def _group_html(self, title: str, rows: list[tuple[str, str]]) -> str:
        theme = self._theme
        lines = "".join(
            f"<tr><td style='color:{css(theme.accent)}; padding-right:12px; white-space:nowrap'>{html_text(keys)}</td>"
            f"<td style='color:{css(theme.text)}'>{html_text(description)}</td></tr>"
            for keys, description in rows
        )
        style = f"margin:10px 0 2px 0; color:{css(theme.faint)}; font-size:{theme.px(11)}px"
        return (
            f"<p style='{style}'>{html_text(title.upper())}</p><table cellspacing='0' cellpadding='2'>{lines}</table>"
        )


def add_commands(window: CommandWindow) -> CaptureCommands:
    """Make the commands of a window with its capture job and menu entries; return the commands for captures."""
    window.capture_job = CaptureJob(window)
    captures = CaptureCommands(window)
    window.registry = CommandRegistry(COMMANDS)
    of_traces = TraceCommands(window)
    for commands in (of_traces, WindowCommands(window, window.settings), SessionCommands(window), captures):
        commands.bind(window.registry)
    window.actions_by_id = CommandActions(window.registry, of_traces.is_met, window.shared.keys, window)
    for file, content in ((window.settings.file, "Settings"), (window.shared.keys.file, "Keys")):
        StoreField(file, content, window.statusBar())
    return captures


# Commands for captures: the dialogs, live views, the demo, and the results of a capture.


_DEMO_WORKLOAD = "periodic"
_DEMO_S = 120


class CaptureCommands(QObject):
    """Commands for captures; also shows the result of a capture."""

    def __init__(self, window: CommandWindow) -> None:
        super().__init__(window)
        self._window = window
        self._followed: Path | None = None
        self._is_followed_elsewhere = False
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        job, session = window.capture_job, window.session
        job.began.connect(self._on_began)
        job.grows.connect(self._on_grows)
        job.ended.connect(self._on_followed_ended)
        job.done.connect(self._on_done)
        job.failed.connect(self._on_failed)
        session.reported.connect(self._report)
        session.withdrawn.connect(self._withdraw)

    def bind(self, registry: CommandRegistry) -> None:
        """Bind all commands of this class."""
        registry.bind("file.new_capture", self.new_capture)
        registry.bind("file.capture_target", self._capture_target)
        registry.bind("capture.live", self._toggle_live, lambda: self._window.session.follow is not None)
        registry.bind("capture.stick", self.toggle_stick, self._is_linked)
        registry.bind("capture.demo", self.start_demo)
        registry.bind("capture.stop", self._window.capture_job.stop)

    @Slot()
    def new_capture(self) -> None:
        """Open the capture dialog."""
        self.capture_with(None)

    def capture_with(self, rules: str | None) -> None:
        """Open the capture dialog, with given rules if any."""
        dialog = self._window.findChild(NewCaptureDialog)
        if dialog is None:
            recent = self._window.recent.files()
            folder = recent[0].parent if recent else Path.home()
            dialog = NewCaptureDialog(self._window.capture_job, folder, self._window.settings, self._window)
            dialog.live_requested.connect(self.start_live)
        if rules is not None:
            dialog.rules.edit.setPlainText(rules)
        _bring_to_front(dialog)

    def _capture_target(self) -> None:
        window = self._window
        _bring_to_front(window.findChild(TargetDialog) or TargetDialog(window.capture_job, window.settings, window))

    @Slot()
    def toggle_stick(self) -> None:
        """Make the view stay at the end of the growing trace, or let it stay where it is."""
        session = self._window.session
        if session.follow is None or session.opened is None:
            return
        sticks = not session.follow.is_sticking
        if sticks:
            session.opened.viewport.go_to_end()
        session.follow.set_sticking(sticks)

    def start_demo(self) -> None:
        """Capture a simulated target in real time into a temporary file, and follow that file."""
        if self._shows_a_trace:
            self._window.live_requested.emit(CaptureCommands.start_demo)
            return
        self.close_down()
        self._folder = tempfile.TemporaryDirectory(prefix="satview-", ignore_cleanup_errors=True)
        options = LoggerOptions(iterations=0, flush_every_s=0.25)
        capture = Capture(_DEMO_WORKLOAD, duration_ns=_DEMO_S * NS_PER_S, options=options, pace=1.0, keeps_truth=False)
        path = Path(self._folder.name) / "live-demo.kev"
        self._window.capture_job.start(CaptureRequest(capture, path, is_live=True))

    @Slot(object)
    def start_live(self, request: object) -> None:
        """Start a capture and follow its file, in a new window if this window shows a trace."""
        assert isinstance(request, CaptureRequest)
        if self._shows_a_trace:
            self._window.live_requested.emit(partial(CaptureCommands.start_live, request=request))
        else:
            self._window.capture_job.start(request)

    @property
    def _shows_a_trace(self) -> bool:
        return self._window.session.stage in (Stage.READY, Stage.LOADING)

    def close_down(self) -> None:
        """Stop a running capture, and delete the file of the demo."""
        self._window.capture_job.close()
        if self._folder is not None:
            folder, self._folder = self._folder, None
            folder.cleanup()

    def _toggle_live(self) -> None:
        session = self._window.session
        if session.opened is not None and session.follow is None and session.opened.trace.format != "kev":
            self._report("Only .kev files can be followed; this is a listing or a trace of another kind")
        else:
            session.set_following(session.follow is None)

    def _is_linked(self) -> bool:
        follow = self._window.session.follow
        return follow is not None and follow.is_sticking

    @Slot(str)
    def _report(self, text: str) -> None:
        self._window.statusBar().showMessage(text, 15_000)

    @Slot(str)
    def _withdraw(self, text: str) -> None:
        withdraw(self._window.statusBar(), text)

    @Slot()
    def _on_began(self) -> None:
        self._followed, self._is_followed_elsewhere = None, False

    @Slot(object)
    def _on_grows(self, path: Path) -> None:
        job = self._window.capture_job
        if self._shows_a_trace:
            self._is_followed_elsewhere = True
            self._window.live_requested.emit(partial(CaptureCommands.follow, path=path, job=job))
        else:
            self.follow(path, job)

    def follow(self, path: Path, job: CaptureJob) -> None:
        """Open and follow the file that a capture job, of this or another window, writes, until the capture ends."""
        self._followed = path
        if job is not self._window.capture_job:
            job.ended.connect(self._on_followed_ended)
        self._window.session.open(path, is_followed=True)

    @Slot()
    def _on_followed_ended(self) -> None:
        if self._followed is not None:
            self._window.session.file_is_complete(self._followed)

    @Slot(object)
    def _on_done(self, outcome: object) -> None:
        assert isinstance(outcome, CaptureOutcome)
        if self._followed is None and not self._is_followed_elsewhere:
            self._window.files_requested.emit([outcome.path])  # opens a new window if this one shows a trace
        self._report(outcome.summary)
        if outcome.findings:
            OutcomeDialog(outcome, self._window).show()

    @Slot(object)
    def _on_failed(self, error: Exception) -> None:
        if not isinstance(error, (SatviewError, OSError, MemoryError)):
            raise error  # the last-resort dialog shows it
        request = self._window.capture_job.last_request
        if isinstance(request, CaptureRequest) and request.is_live:  # for other captures the dialog reports it
            self._on_followed_ended()
            dialogs.report(self._window, "Capture", f"The capture failed: {failure(error, request.path)}.")


def _bring_to_front(dialog: QDialog) -> None:
    dialog.show()
    dialog.raise_()
    dialog.activateWindow()


class WindowCommands:
    """Commands for files, windows, themes and help."""

    def __init__(self, window: CommandWindow, settings: Settings) -> None:
        self._window = window
        self._settings = settings

    def bind(self, registry: CommandRegistry) -> None:
        """Bind all commands of this class."""
        window = self._window
        registry.bind("file.open", self._open)
        registry.bind("file.open_link", self._open_link)
        registry.bind("file.sample", lambda: window.files_requested.emit([sample_trace()]))
        registry.bind("file.trends", self._open_trends)
        registry.bind("file.new_window", window.window_requested.emit)
        registry.bind("file.reload", self._reload)
        registry.bind("file.info", self._info)
        registry.bind("file.settings", lambda: SettingsDialog(self._settings, window).show())
        registry.bind("file.state_looks", lambda: StateLooksDialog(self._settings, window).show())
        registry.bind("file.keys", lambda: KeysDialog(window.shared.keys, window).show())
        registry.bind("file.close", window.close)
        registry.bind("file.quit", window.quit_requested.emit)
        for option in ("system", "light", "dark"):
            registry.bind(
                f"view.theme_{option}",
                partial(self._settings.set, "window/theme", option),
                partial(self._is_theme, option),
            )
        registry.bind("help.palette", self._palette)
        registry.bind("help.keys", lambda: KeyOverlay(window.registry, window.actions_by_id, window.theme, window))
        registry.bind("help.plugins", lambda: PluginsDialog(window).show())
        registry.bind("help.about", lambda: dialogs.about(window))

    def _open(self) -> None:
        recent = self._window.recent.files()
        files = dialogs.ask_open(self._window, recent[0].parent if recent else None, self._window.link_requested.emit)
        if files:
            self._window.files_requested.emit(files)

    def _open_link(self) -> None:
        copied = QGuiApplication.clipboard().text().strip()
        LinePrompt(
            "Open a link",
            "/traces/boot.kev#t=1.2s..1.5s&sel=1200",
            self._take_link,
            self._window,
            copied if "#" in copied and "\n" not in copied else "",
        )

    def _take_link(self, text: str) -> None:
        link = parse_link(text)
        if not link.path.is_file():
            raise UsageError(f"there is no file {str(link.path)[:200]!r}")
        self._window.link_requested.emit(link)

    def _open_trends(self) -> None:
        folder = dialogs.ask_folder(self._window, "Data set of traces")
        if folder is None:
            return
        if not is_dataset(folder):
            dialogs.report(self._window, "No data set of traces",
                         f"{folder.name} is not a data set of traces. Make one on the command line:\n\n"
                         f"satview export {folder} -o fleet")  # fmt: skip
            return
        self._window.files_requested.emit([folder])

    def _reload(self) -> None:
        session = self._window.session
        if session.path is not None:
            session.open(session.path, is_followed=session.follow is not None)

    def _info(self) -> None:
        opened = self._window.session.opened
        if opened is not None:
            InfoDialog(opened.trace, self._window).show()

    def _is_theme(self, option: str) -> bool:
        return self._settings.text("window/theme") == option

    def _palette(self) -> None:
        actions = self._window.actions_by_id
        actions.refresh()
        options = []
        for binding in self._window.registry:
            action = actions.by_id[binding.command.id]
            if action.isEnabled() and binding.command.id != "help.palette":
                area = binding.command.menu.value.replace("&", "")
                keys = ", ".join(key.toString(QKeySequence.SequenceFormat.NativeText) for key in action.shortcuts())
                options.append(Option(f"{area}: {binding.command.whole_title}", keys, action.trigger))
        QuickPick(options, "Command", "No command matches", self._window)
