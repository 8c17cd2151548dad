"""The main window: menu titles and the welcome page show at once, the rest is made after the first paint."""

from __future__ import annotations

import base64
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6 import QtCore
from PySide6.QtCore import QSize, Signal, Slot
from PySide6.QtWidgets import QMainWindow, QMenu, QStackedWidget, QStatusBar, QToolBar, QToolButton, QWidget

from satview.base.safe_text import menu_text, tool_tip
from satview.gui.theme import Theme, restyle
from satview.gui.widgets import resize_on_screen
from satview.gui.windows.command_window import CommandWindow, Shared
from satview.gui.windows.pages import WelcomePage
from satview.session.commands import Menu
from satview.session.loading.files import RecentFiles

if TYPE_CHECKING:
    from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QKeyEvent

    from satview.gui.windows.document_views import DocumentViews
    from satview.gui.windows.window_commands import CaptureCommands
    from satview.session.session import Session


# The menu of recently opened files.


class RecentMenu(QMenu):
    """The submenu of recently opened files, filled each time it opens."""

    file_requested = Signal(Path)

    def __init__(self, recent: RecentFiles, parent: QWidget) -> None:
        super().__init__("Open &recent", parent)
        self._recent = recent
        self.aboutToShow.connect(self.fill)

    @Slot()
    def fill(self) -> None:
        """List the recent files that still exist."""
        self.clear()
        for file in self._recent.files():
            action = self.addAction(menu_text(file.name))
            action.setToolTip(tool_tip(str(file)))
            action.setData(str(file))
            action.triggered.connect(self._on_file)
        if self.isEmpty():
            self.addAction("No recent files").setEnabled(False)

    @Slot()
    def _on_file(self) -> None:
        action = self.sender()
        self.file_requested.emit(Path(action.data()))  # type: ignore[attr-defined]  # the sender is a QAction


# The status bar field of a file that is followed while it grows.


class LiveField(QToolButton):
    """Field `LIVE 12,300 events/s` while a file is followed; a click makes the view follow the end, or stops that.

    Signals:
        stick_requested: The field was clicked.
    """

    stick_requested = Signal()

    def __init__(self, session: Session, bar: QStatusBar) -> None:
        super().__init__(bar)
        self._session = session
        self.setObjectName("live")
        self.setAccessibleName("Live")
        bar.addPermanentWidget(self)
        self.clicked.connect(self.stick_requested)
        session.follow_changed.connect(self.refresh)
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        """Show the current rate and whether the view follows the end."""
        follow = self._session.follow
        self.setVisible(follow is not None)
        if follow is None:
            return
        if follow.note or follow.is_quiet:
            state, text = "quiet", "LIVE  waiting"
        else:
            state, text = "busy", f"LIVE  {round(follow.events_per_s):,} events/s"
        self.setText(f"\N{BLACK CIRCLE} {text}" + ("  \N{RIGHTWARDS ARROW TO BAR}" if follow.is_sticking else ""))
        where = "The view follows the end; click to stop" if follow.is_sticking else "Click to follow the end"
        self.setToolTip(tool_tip(f"{follow.note or f'Following {follow.path.name}'}.\n{where}."))
        restyle(self, "state", state)


_ICON_PX = 18
_TOOLS_PX, _STATUS_PX = 41, 32  # least heights of the bars, so that nothing moves when they are filled


class MainWindow(CommandWindow):
    """A window with at most one trace; further attributes and signals are those of `CommandWindow`.

    The window is on the screen before `complete` makes its commands; any user action calls `complete` first. A window
    with a session but without commands (`has_document`) can already open a file; its commands are made while the file
    is decoded.
    """

    captures: CaptureCommands
    views: DocumentViews

    def __init__(self, shared: Shared, theme: Theme) -> None:
        super().__init__()
        self.has_document = self.is_complete = False
        self.setAcceptDrops(True)
        self.setWindowTitle("satview")
        resize_on_screen(self, 1440, 900)
        self.shared = shared
        self.settings = shared.settings
        self.recent = shared.recent
        self.theme = theme
        self.keeper = None
        self.workspace = None
        self.preview_page = None
        self._asks_about_unsaved = True
        # Before Qt 6.11 a menu that is fetched by QAction.menu() dies with its wrapper.
        self._menus: dict[Menu, QMenu] = {}
        self._set_up_bars()
        self._set_up_pages()
        self._restore_geometry()

    def make_document(self) -> None:
        """Make the session and the pages for files, if they do not exist."""
        if self.has_document:
            return
        self.has_document = True
        # Imports here and in `complete` would double the time until the window shows.
        from satview.gui.windows.document_views import DocumentViews
        from satview.session.session import Session

        self.session = Session(self.settings, self)
        self.views = DocumentViews(self, self._pages)

    def complete(self) -> None:
        """Make the commands, and the session if it does not exist."""
        if self.is_complete:
            return
        self.make_document()
        self.is_complete = True
        from satview.gui.windows.window_commands import add_commands

        self.setAttribute(QtCore.Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setContextMenuPolicy(QtCore.Qt.ContextMenuPolicy.PreventContextMenu)
        option = QMainWindow.DockOption
        self.setDockOptions(option.AnimatedDocks | option.AllowTabbedDocks | option.AllowNestedDocks)
        self.setCorner(QtCore.Qt.Corner.BottomRightCorner, QtCore.Qt.DockWidgetArea.RightDockWidgetArea)
        self.captures = add_commands(self)
        self._fill_bars()
        self.views.open_requested.connect(self.registry["file.open"].run)
        self.views.capture_requested.connect(self.captures.capture_with)
        self.actions_by_id.set_theme(self.theme)
        self.capture_job.began.connect(self.actions_by_id.refresh)
        self.capture_job.ended.connect(self.actions_by_id.refresh)
        self.actions_by_id.refresh()

    def close_unasked(self) -> None:
        """Close without asking about unsaved notes."""
        self._asks_about_unsaved = False
        self.close()

    def save_notes(self) -> list[str]:
        """Retry saving unsaved notes; return a message for each file that still cannot be saved."""
        unstored = self.session.unstored_marks() if self.is_complete else []
        for marks in unstored:
            marks.file.retry()
        return [f"notes are not saved: {marks.file.failure}" for marks in unstored if not marks.file.is_stored]

    def set_theme(self, theme: Theme) -> None:
        """Use the colours and text size of a theme, with icons scaled to the text."""
        self.theme = theme
        self._scale_bars()
        if self.is_complete:
            self.actions_by_id.set_theme(theme)
        if self.preview_page is not None:
            self.preview_page.lanes.set_theme(theme)
        if self.workspace is not None:
            self.workspace.set_theme(theme)

    def _set_up_bars(self) -> None:
        """Show the menu titles, an empty toolbar and an empty status bar."""
        for entry in Menu:
            self._menus[entry] = menu = self.menuBar().addMenu(entry.value)
            menu.aboutToShow.connect(self.complete)
        self._bar = bar = QToolBar("Tools", self)
        bar.setObjectName("toolbar")
        bar.setMovable(False)
        self.addToolBar(bar)
        self.statusBar().setSizeGripEnabled(False)
        self._scale_bars()

    def _scale_bars(self) -> None:
        px = self.theme.px
        self._bar.setIconSize(QSize(px(_ICON_PX), px(_ICON_PX)))
        self._bar.setMinimumHeight(px(_TOOLS_PX))
        self.statusBar().setMinimumHeight(px(_STATUS_PX))

    def _set_up_pages(self) -> None:
        self._pages = QStackedWidget(self)
        self.welcome = WelcomePage(self.recent, self)
        self._pages.addWidget(self.welcome)
        self.setCentralWidget(self._pages)
        for signal, command_id in (
            (self.welcome.open_requested, "file.open"),
            (self.welcome.sample_requested, "file.sample"),
            (self.welcome.capture_requested, "file.new_capture"),
        ):
            signal.connect(partial(self._run, command_id))
        self.welcome.file_requested.connect(self._open)

    def _restore_geometry(self) -> None:
        stored = self.settings.text("window/geometry")
        if stored:
            encoded = QtCore.QByteArray(stored.encode("ascii", "ignore"))
            self.restoreGeometry(QtCore.QByteArray.fromBase64(encoded))

    def _fill_bars(self) -> None:
        self.actions_by_id.fill_menus(self._menus)
        self.actions_by_id.fill_toolbar(self._bar)
        self.recent_menu = RecentMenu(self.recent, self)
        self.recent_menu.file_requested.connect(self._request)
        self._menus[Menu.FILE].insertMenu(self.actions_by_id.by_id["file.reload"], self.recent_menu)
        self.live = LiveField(self.session, self.statusBar())
        self.live.stick_requested.connect(self.captures.toggle_stick)

    def _run(self, command_id: str) -> None:
        self.complete()
        self.registry[command_id].run()

    @Slot(Path)
    def _open(self, path: Path) -> None:
        self.complete()
        self.views.open(path)

    @Slot(Path)
    def _request(self, path: Path) -> None:
        self.files_requested.emit([path])

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Complete the window and run the command of the key, if the key is pressed before the window is complete."""
        if self.is_complete:
            super().keyPressEvent(event)
            return
        self.complete()
        self.actions_by_id.run_key(event.keyCombination())

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Accept a drag of local files."""
        if any(url.isLocalFile() for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Open dropped files."""
        paths = [Path(url.toLocalFile()) for url in event.mimeData().urls() if url.isLocalFile()]
        if paths:
            event.acceptProposedAction()
            self.complete()
            self.files_requested.emit(paths)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Ask about unsaved notes, then save the layout, cancel all tasks and release the trace."""
        self.complete()
        if self._asks_about_unsaved and not self.views.resolve_unsaved():
            event.ignore()
            return
        self.views.leave()
        self.settings.set("window/geometry", base64.b64encode(self.saveGeometry().data()).decode("ascii"))
        self.session.shut_down()
        self.captures.close_down()
        # Bindings hold the window; without them nothing keeps it alive.
        self.registry.clear()
        super().closeEvent(event)
