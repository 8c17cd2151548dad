"""The application object, its windows and theme, and the dialog for unhandled errors; one instance per process."""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QMessageLogContext, QObject, QTimer, QtMsgType, Signal, Slot, qInstallMessageHandler
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication
from shiboken6 import isValid

from satview import __version__
from satview.base.errors import SatviewError, SourceChangedError
from satview.base.process import internal_report, say
from satview.gui import theme as themes
from satview.gui.theme import app_icon
from satview.gui.windows.command_window import GuiThreadCollector, Shared
from satview.gui.windows.main_window import MainWindow
from satview.session.loading.files import RecentFiles, recent_files_file
from satview.session.settings import Settings, settings_file
from satview.session.state_files import users_files
from satview.session.trace_link import TraceLink

if TYPE_CHECKING:
    from satview.gui.running_instance import InstanceServer
    from satview.gui.trends import TrendsWindow
    from satview.gui.windows.ending import FilesOutcome
    from satview.gui.windows.looks import PendingLinks
    from satview.gui.windows.window_commands import CaptureCommands
    from satview.store.time_ranges import Location


_log = logging.getLogger(__name__)
_SWITCH_S: Final = 0.001  # thread switch interval; Python's 5 ms, ten times while a frame is drawn, is visible
_COMPLETE_MS: Final = 400  # after a file is opened; a preview completes the window earlier


_TEXT_SIZE_SETTINGS: Final = ("swimlane/lane_height_px", "swimlane/label_width_px", "events/row_height_px")


class Application(QObject):
    """Owns the settings, the recent files and all windows, of traces and of trends.

    Signals:
        window_shown: A new window is on the screen.
    """

    window_shown = Signal(QObject)

    def __init__(self, shared: Shared, parent: QObject | None = None) -> None:
        super().__init__(parent)
        GuiThreadCollector(self)
        self.shared, self.settings = shared, shared.settings
        self._pending_links: PendingLinks | None = None
        self.windows: list[MainWindow] = []
        self.trends: list[TrendsWindow] = []
        self.theme = themes.theme_of(self.settings)
        self._apply_theme()
        self.settings.changed.connect(self._on_setting)
        QGuiApplication.styleHints().colorSchemeChanged.connect(self.check_theme)

    def new_window(self) -> MainWindow:
        """Show an empty window."""
        window = self._create_window()
        window.complete()
        self._show(window)
        return window

    def first_window(self) -> MainWindow:
        """Show an empty window without commands; the caller completes it after the first paint."""
        window = self._create_window()
        self._show(window)
        return window

    def _create_window(self) -> MainWindow:
        window = MainWindow(self.shared, self.theme)
        window.files_requested.connect(self._on_files)
        window.link_requested.connect(self._on_link)
        window.another_requested.connect(self._on_another)
        window.window_requested.connect(self.new_window)
        window.live_requested.connect(self._on_live)
        window.quit_requested.connect(self.close_all)
        window.destroyed.connect(self._on_destroyed)
        return window

    def _show(self, window: MainWindow) -> None:
        self.windows.append(window)
        window.show()
        self.window_shown.emit(window)

    def open_files(self, paths: list[Path], window: MainWindow | None = None, is_followed: bool = False) -> None:
        """Open files: the first in the given window if it has no trace, each other file in a new window."""
        self.open_links([TraceLink(path) for path in paths], window, is_followed)

    def open_links(self, links: list[TraceLink], window: MainWindow | None = None, is_followed: bool = False) -> None:
        """Open files and go to the positions in their links; further arguments are those of `open_files`."""
        from satview.gui.windows.looks import PendingLinks  # imported here so that the first window shows sooner
        from satview.session.session import Stage

        pending = self._pending_links = self._pending_links or PendingLinks(self)
        for link in links:
            if _is_dataset(link.path):
                self.show_trends(link.path)
                continue
            if window is None or window.session.stage in (Stage.READY, Stage.LOADING):
                window = self.new_window()
            if window.views.open(link.path, is_followed):
                pending.watch(window, link)

    def open_link(self, link: TraceLink, window: MainWindow) -> None:
        """Go to the position of a link in the window that shows its file; without position or window, open the file.

        Raises:
            UsageError: The open file has no such range or event.
        """
        from satview.gui.windows.looks import look_at

        path = link.path.absolute()
        for shown in (window, *self.windows):
            views, its_path = shown.workspace, shown.session.path
            if views is not None and its_path is not None and its_path.absolute() == path and link.has_position:
                look_at(views, link)
                shown.raise_()
                shown.activateWindow()
                return
        self.open_links([link], window)

    def open_for_others(self, links: list[TraceLink], is_followed: bool) -> None:
        """Open the files that another `satview` process has passed on, each in a new window in front."""
        for link in links:
            window = self.new_window()
            self.open_links([link], window, is_followed)
            window.raise_()
            window.activateWindow()

    def show_trends(self, folder: Path) -> None:
        """Show the trends of a trace data set in a new window."""
        from satview.gui.trends import TrendsWindow  # on first use: imports pyqtgraph

        window = TrendsWindow(folder, self.theme)
        window.trace_requested.connect(self._on_trace)
        self.trends.append(window)
        window.show()

    @Slot()
    def close_all(self) -> None:
        """Close all windows."""
        for window in [*self.windows, *self._open_trends()]:
            window.close()

    def close_unasked(self) -> None:
        """Close all windows without asking; report notes that cannot be saved on standard error."""
        windows = list(self.windows)
        for failure in [failure for window in windows for failure in window.save_notes()]:
            say(failure)
        for window in windows:  # after all notes are saved, because closing waits for background tasks
            window.close_unasked()
        for trends in self._open_trends():
            trends.close()

    def _open_trends(self) -> list[TrendsWindow]:
        self.trends = [window for window in self.trends if isValid(window)]
        return self.trends

    def _apply_theme(self) -> None:
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        themes.apply(app, self.theme)
        for window in self.windows:
            window.set_theme(self.theme)
        for trends in self._open_trends():
            trends.set_theme(self.theme)

    @Slot(object)
    def _on_trace(self, location: Location) -> None:
        window = self.new_window()
        link = TraceLink(location.path, location.range_text if location.options else "", location.event or None)
        self.open_links([link], window)

    @Slot()
    def _on_another(self) -> None:
        """Show the trace of the window that sent the signal in a second window, and link the views of both."""
        window = self.sender()
        if not isinstance(window, MainWindow) or window.workspace is None:
            return
        if window.keeper is not None:
            window.keeper.save()  # the new window restores this state
        other = self.new_window()
        other.session.open_shared(window.session)
        if other.workspace is not None:
            for view in (*window.workspace.views(), *other.workspace.views()):
                self.shared.view_links.add(view)

    @Slot(object)
    def _on_link(self, link: TraceLink) -> None:
        window = self.sender()
        assert isinstance(window, MainWindow)
        try:
            self.open_link(link, window)
        except SatviewError as error:
            if window.workspace is not None:
                window.workspace.report_failure(str(error))

    @Slot(list)
    def _on_files(self, paths: list[Path]) -> None:
        window = self.sender()
        self.open_files(paths, window if isinstance(window, MainWindow) else None)

    @Slot(object)
    def _on_live(self, begin: Callable[[CaptureCommands], None]) -> None:
        """Begin a live view (a capture that is followed) in a new window; the sender's window already shows a trace."""
        begin(self.new_window().captures)

    @Slot(str)
    def _on_setting(self, key: str) -> None:
        if key in themes.THEME_SETTINGS:
            before = self.theme.text_percent
            self.check_theme()
            self._scale_with_text(before)

    def _scale_with_text(self, before_percent: int) -> None:
        """Scale the heights of lanes and table rows, and the width of labels, by the change of the text size."""
        percent = self.theme.text_percent
        for key in _TEXT_SIZE_SETTINGS if percent != before_percent else ():
            self.settings.set(key, round(self.settings.number(key) * percent / before_percent))

    @Slot()
    def check_theme(self) -> None:
        """Apply the theme that settings and system request now, if it is not the present theme."""
        requested = themes.theme_of(self.settings)
        if requested != self.theme:
            self.theme = requested
            self._apply_theme()

    @Slot(QObject)
    def _on_destroyed(self, _window: QObject) -> None:
        self.windows = [window for window in self.windows if isValid(window)]


def run(
    links: list[TraceLink],
    looks: Mapping[str, str | int] = MappingProxyType({}),
    is_followed: bool = False,
    *,
    is_cached: bool = True,
    is_shared: bool = False,
) -> int:
    """Show windows until the user closes them.

    Args:
        links: Files to open, and positions in them.
        looks: Settings for this run only, by key.
        is_followed: True to follow the files while they grow.
        is_cached: True to use the cache of decoded large files.
        is_shared: True to let a running instance open the files, if there is one.

    Returns:
        Exit code: 0; 1 if a file lost data; 2 if a file could not be opened; 128 + number of the signal that ended it.
    """
    if is_shared and links and all(link.path.is_file() for link in links):
        from satview.gui.running_instance import hand_over

        if hand_over(links, is_followed):
            return 0
    app = make_qt_application()
    settings = Settings(settings_file())
    for key, value in looks.items():
        settings.set(key, value, is_saved=False)
    if not is_cached:
        settings.set("files/cache_mb", 0, is_saved=False)
    recent = RecentFiles(recent_files_file(), settings.number("files/recent_count"))
    application = Application(Shared(settings, recent, users_files(), has_users_keys=True))
    sys.excepthook = _report_uncaught
    return _run_windows(app, application, links, is_followed)


def _run_windows(app: QApplication, application: Application, links: list[TraceLink], is_followed: bool) -> int:
    paths = [link.path for link in links]
    window = None if paths and all(map(_is_dataset, paths)) else application.first_window()
    app.processEvents()  # show the window before anything else is imported

    app.setWindowIcon(app_icon())
    from satview.gui.windows.ending import Ending, FilesOutcome

    outcome, ending = FilesOutcome(), Ending(application, application.close_unasked)
    with ending.signals.watched():
        if window is not None:
            window.make_document()
            application.check_theme()
            outcome.watch(window)
            application.window_shown.connect(outcome.watch)
        application.open_links(links, window, is_followed)
        if window is not None:
            QTimer.singleShot(_COMPLETE_MS if links else 0, window, window.complete)
        server = _server(application) if window is not None else None
        code = outcome.code if ending.code else _until_closed(app, outcome)
        if server is not None:
            server.close()
    return ending.code or code


def _server(application: Application) -> InstanceServer:
    from satview.gui.running_instance import InstanceServer  # imported here so that the first window shows sooner

    return InstanceServer(application.open_for_others, application)


def _until_closed(app: QApplication, outcome: FilesOutcome) -> int:
    # No signal has arrived yet; a later one ends the event loop.
    app.exec()
    return outcome.code


def make_qt_application() -> QApplication:
    """Return the process's QApplication, making it if there is none."""
    existing = QApplication.instance()
    if isinstance(existing, QApplication):
        return existing
    gc.disable()  # `GuiThreadCollector` collects later; until then all objects belong to modules
    app = QApplication(["satview", "-style", "Fusion"])
    sys.setswitchinterval(_SWITCH_S)
    app.setApplicationName("satview")
    app.setApplicationDisplayName("")
    return app


def _drop_offscreen_chatter(_kind: QtMsgType, _context: QMessageLogContext, text: str) -> None:
    """Print a message of Qt, unless the offscreen platform reports a missing window manager."""
    if not text.startswith("This plugin does not support"):
        sys.stderr.write(f"{text}\n")


def silence_offscreen() -> None:
    """Suppress messages of Qt's offscreen platform about missing window managers."""
    qInstallMessageHandler(_drop_offscreen_chatter)


def _is_dataset(path: Path) -> bool:
    if not path.is_dir():
        return False
    from satview.fleet.query import is_dataset  # imports the tables, which single files do not need

    return is_dataset(path)


class _Reporting:
    """Namespace of `is_on`, which is True while the dialog about an internal error is open."""

    is_on = False


def _report_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Report an exception that nothing caught, and continue."""
    if issubclass(kind, SourceChangedError):
        return  # the session detects this by itself and shows a page about it
    text = internal_report(error.with_traceback(trace), "window", __version__)
    _log.error("%s", text)
    sys.stderr.write(text)
    from satview.gui import dialogs  # on first use

    if _Reporting.is_on:  # a failure in the dialog or in a timer must not open dialog after dialog
        return
    _Reporting.is_on = True
    try:
        dialogs.report_internal(QApplication.activeWindow(), kind.__name__, text)
    finally:
        _Reporting.is_on = False
