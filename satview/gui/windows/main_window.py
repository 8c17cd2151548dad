"""The main window: pages while no trace is open, the workspace while one is, menus from the commands."""

from __future__ import annotations

import base64
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QPoint, QSize, Qt, QTimer, Slot
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QMainWindow, QMenu, QStackedWidget, QToolBar

from satview.base.errors import WriteError
from satview.base.memory import borrowed
from satview.base.safe_text import menu_text, tool_tip
from satview.gui import dialogs
from satview.gui.capture.job import CaptureJob
from satview.gui.garbage import set_apart
from satview.gui.screen_fit import resize_on_screen
from satview.gui.theme import Theme
from satview.gui.windows.actions import CommandActions
from satview.gui.windows.capture_commands import CaptureCommands
from satview.gui.windows.command_window import CommandWindow
from satview.gui.windows.live_field import LiveField
from satview.gui.windows.pages import FailedPage, LoadingPage, WelcomePage
from satview.gui.windows.session_commands import SessionCommands
from satview.gui.windows.shared import Shared
from satview.gui.windows.store_field import StoreField
from satview.gui.windows.trace_commands import TraceCommands
from satview.gui.windows.window_commands import WindowCommands
from satview.session.command_table import COMMANDS
from satview.session.commands import CommandRegistry, Menu
from satview.session.dismantle import dismantle
from satview.session.panel_table import PANELS
from satview.session.session import Session, Stage

if TYPE_CHECKING:
    from satview.gui.windows.preview_page import PreviewPage
    from satview.session.marks import Marks
    from satview.session.open_trace import OpenTrace

_KEEP_MS = 1000
_CONTEXT = (
    "view.focus",
    "marks.range",
    "go.partner",
    "go.why",
    "go.path",
    "go.cause",
    "go.effect",
    None,
    "filter.show_all",
    None,
    "lanes.pin",
    "lanes.hide",
    "lanes.show_all",
    None,
    "edit.copy",
)


def _import_views() -> None:
    """Import what an open trace needs; on a thread of its own, so that the window stays alive meanwhile."""
    import satview.gui.windows.workspace
    import satview.gui.windows.workspace_keeper  # noqa: F401  -- both for their effect on sys.modules

    for row in PANELS:
        import_module(row.module)
    set_apart()


class MainWindow(CommandWindow):
    """One window with at most one trace; the rest is in `CommandWindow`.

    Attributes:
        preview_page: Shows what samples of a large file contain while it is read; None before the first one.
    """

    def __init__(self, shared: Shared, theme: Theme) -> None:
        super().__init__()
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setAcceptDrops(True)
        self.setWindowTitle("satview")
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
        self.setDockOptions(
            QMainWindow.DockOption.AnimatedDocks
            | QMainWindow.DockOption.AllowTabbedDocks
            | QMainWindow.DockOption.AllowNestedDocks
        )
        resize_on_screen(self, 1440, 900)
        self.shared = shared
        self.settings = settings = shared.settings
        self.recent = shared.recent
        self.theme = theme
        self.keeper = None
        self.workspace = None
        self.preview_page: PreviewPage | None = None
        self._asks = True
        self._keep_timer = QTimer(self)
        self._keep_timer.setSingleShot(True)
        self._keep_timer.setInterval(_KEEP_MS)
        self._keep_timer.timeout.connect(self._keep)
        self.session = Session(settings, self, _import_views)
        self.session.may_reload = self._may_reload
        self.session.lanes_in_view = self._lanes_in_view
        self.capture_job = CaptureJob(self)
        self.registry = CommandRegistry(COMMANDS)
        trace_commands = TraceCommands(self, settings)
        WindowCommands(self, settings).bind(self.registry)
        SessionCommands(self).bind(self.registry)
        self.captures = CaptureCommands(self)
        self.captures.bind(self.registry)
        trace_commands.bind(self.registry)
        self.actions_by_id = CommandActions(self.registry, trace_commands.is_met, shared.keys, self)
        self.actions_by_id.fill_menus(self)
        self._recent_menu = QMenu("Open &recent", self)
        self._recent_menu.aboutToShow.connect(self._fill_recent)
        self._set_up_bars()
        self._set_up_pages()
        self.set_theme(theme)
        self._restore_geometry()
        self.session.stage_changed.connect(self._on_stage)
        self.session.follow_changed.connect(self._on_follow)
        self.capture_job.began.connect(self.actions_by_id.refresh)
        self.capture_job.ended.connect(self.actions_by_id.refresh)
        self.actions_by_id.refresh()

    def close_unasked(self) -> None:
        """Close without the question about notes that are not saved."""
        self._asks = False
        self.close()

    def save_notes(self) -> list[str]:
        """Try once more to save notes that could not be saved; return what failed again, as sentences."""
        unstored = self.session.unstored_marks()
        for marks in unstored:
            marks.file.retry()
        return [f"notes are not saved: {marks.file.failure}" for marks in unstored if not marks.file.is_stored]

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        self.theme = theme
        self.actions_by_id.set_theme(theme)
        if self.preview_page is not None:
            self.preview_page.lanes.set_theme(theme)
        if self.workspace is not None:
            self.workspace.set_theme(theme)

    def _set_up_bars(self) -> None:
        bar = QToolBar("Tools", self)
        bar.setObjectName("toolbar")
        bar.setMovable(False)
        bar.setIconSize(QSize(18, 18))
        bar.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonIconOnly)
        self.actions_by_id.fill_toolbar(bar)
        self.addToolBar(bar)
        self.setCorner(Qt.Corner.BottomRightCorner, Qt.DockWidgetArea.RightDockWidgetArea)
        self.actions_by_id.menus[Menu.FILE].insertMenu(self.actions_by_id.by_id["file.reload"], self._recent_menu)
        self.statusBar().setSizeGripEnabled(False)
        self.unsaved_settings = StoreField(self.settings.file, "Settings", self.statusBar())
        self.unsaved_keys = StoreField(self.shared.keys.file, "Keys", self.statusBar())
        self.live = LiveField(self.session, self.statusBar())
        self.live.stick_requested.connect(self.captures.toggle_stick)

    def _set_up_pages(self) -> None:
        self._pages = QStackedWidget(self)
        self.welcome = WelcomePage(self.recent, self)
        self.loading = LoadingPage(self)
        self.failed = FailedPage(self)
        for page in (self.welcome, self.loading, self.failed):
            self._pages.addWidget(page)
        self.setCentralWidget(self._pages)
        run = self.registry["file.open"].run
        self.welcome.open_requested.connect(run)
        self.welcome.sample_requested.connect(self.registry["file.sample"].run)
        self.welcome.capture_requested.connect(self.registry["file.new_capture"].run)
        self.welcome.file_requested.connect(self.session.open)
        self.loading.cancel_requested.connect(self.session.cancel)
        self.session.progress.connect(self.loading.set_progress)
        self.session.previewed.connect(self._on_preview)
        self.failed.open_requested.connect(run)
        self.failed.retry_requested.connect(self._retry)

    def _restore_geometry(self) -> None:
        stored = self.settings.text("window/geometry")
        if stored:
            self.restoreGeometry(QByteArray.fromBase64(QByteArray(stored.encode("ascii", "ignore"))))

    @Slot()
    def _on_preview(self) -> None:
        """Show what some positions of the file show, while it is read."""
        from satview.gui.windows.preview_page import PreviewPage  # brings numpy

        assert self.session.preview is not None
        assert self.session.path is not None
        if self.preview_page is None:
            self.preview_page = PreviewPage(self.theme, self)
            self.preview_page.cancel_requested.connect(self.session.cancel)
            self.session.progress.connect(self.preview_page.set_progress)
            self._pages.addWidget(self.preview_page)
        label_px, lane_px = (self.settings.number(f"swimlane/{name}_px") for name in ("label_width", "lane_height"))
        self.preview_page.lanes.set_up(label_px, lane_px, wheel_zooms=self.settings.flag("window/wheel_zooms"))
        self.preview_page.begin(self.session.path, self.session.preview)
        self._pages.setCurrentWidget(self.preview_page)
        self.preview_page.lanes.setFocus()

    @Slot()
    def _on_stage(self) -> None:
        stage, path = self.session.stage, self.session.path
        if self.preview_page is not None:
            self.preview_page.leave()
        if stage is not Stage.READY:
            self._leave_workspace()
        if stage is Stage.LOADING and path is not None:
            self.loading.begin(path)
            self._pages.setCurrentWidget(self.loading)
        elif stage is Stage.FAILED and path is not None and self.session.error is not None:
            self.failed.show_error(path, self.session.error)
            self._pages.setCurrentWidget(self.failed)
        elif stage is Stage.READY:
            self._enter_workspace()
        else:
            self._pages.setCurrentWidget(self.welcome)
        self.setWindowTitle(self._title())
        self.actions_by_id.refresh()

    def _title(self) -> str:
        """Return the title of the window: the file, and the system where that is not QNX."""
        path, opened = self.session.path, self.session.opened
        if path is None:
            return "satview"
        system = opened.trace.foreign_system if opened is not None else ""
        return f"{path.name}{f' ({system})' if system else ''} \N{EM DASH} satview"

    def _enter_workspace(self) -> None:
        from satview.gui.windows.workspace import Workspace  # brings numpy: not before the first window shows
        from satview.gui.windows.workspace_keeper import WorkspaceKeeper

        opened = self.session.opened
        assert opened is not None
        self.workspace = Workspace(opened, self.settings, self.theme, self)
        is_lasting = self._is_lasting(opened.trace.path)
        self.keeper = WorkspaceKeeper(
            self.workspace, self.shared.files, opened.trace.path, is_lasting, self.shared.view_links
        )
        self.workspace.watch_file(self.keeper.file, "Views")
        self._pages.addWidget(self.workspace)
        self._pages.setCurrentWidget(self.workspace)
        self.keeper.begin(is_followed=self.session.follow is not None)
        self._connect_workspace(opened)
        for dock in self.workspace.docks.values():
            dock.visibilityChanged.connect(self.actions_by_id.refresh_later)
        if self.session.follow is not None:
            self.workspace.show_end()
        if is_lasting:
            self.recent.add(opened.trace.path)
        self.workspace.area.view.setFocus()
        self.workspace.report_plugins()

    def _connect_workspace(self, opened: OpenTrace) -> None:
        assert self.workspace is not None
        self.actions_by_id.attach_lane_keys(self.workspace.area)
        refresh = self.actions_by_id.refresh
        for signal in (opened.selection.changed, opened.selection.range_changed, opened.search.changed):
            signal.connect(refresh)
        self.workspace.area.menu_requested.connect(self._show_context_menu)
        self.workspace.panes.added.connect(self._on_pane)
        self.workspace.menu_requested.connect(self._show_context_menu)
        self.workspace.area.view.source.refined.connect(self._on_refined)
        self.workspace.comparison.changed.connect(refresh)
        self.workspace.beside.marks_left.connect(self.session.adopt)
        self.session.more_unstored = borrowed(self.workspace.beside.unstored_marks)
        opened.capture_requested.connect(self._capture_with)

    @Slot()
    def _on_pane(self) -> None:
        """Let keys and the menu work in a second set of lanes."""
        second = self.workspace.panes.second if self.workspace is not None else None
        if second is not None:
            self.actions_by_id.attach_lane_keys(second.area)
            second.area.menu_requested.connect(self._show_context_menu)
            for signal in (second.opened.selection.changed, second.opened.selection.range_changed):
                signal.connect(self.actions_by_id.refresh)

    @Slot()
    def _on_refined(self) -> None:
        """Keep what was decoded for the next time, once the picture is exact and the user is not waiting for it."""
        if self.session.has_to_keep and self.workspace is not None and self.workspace.area.is_exact:
            self._keep_timer.start()

    @Slot()
    def _keep(self) -> None:
        if self.workspace is not None:
            self.session.keep(self._lanes_in_view())

    @Slot(str)
    def _capture_with(self, rules: str) -> None:
        """Open the dialog of captures with rules that are already written."""
        self.captures.capture_with(rules)

    def _is_lasting(self, path: Path) -> bool:
        """Return whether a file will still be there tomorrow; that of a live demo will not."""
        return str(path) != "-" and not path.parent.name.startswith("satview-")

    def _lanes_in_view(self) -> list[int]:
        return [row.index for row in self.workspace.area.view.visible_rows()] if self.workspace is not None else []

    def _may_reload(self) -> bool:
        """Return whether the views may be replaced now: not under a drag, a menu or a dialog."""
        is_busy = QApplication.mouseButtons() != Qt.MouseButton.NoButton
        return not is_busy and QApplication.activePopupWidget() is None and QApplication.activeModalWidget() is None

    @Slot()
    def _on_follow(self) -> None:
        follow = self.session.follow
        if follow is not None and follow.note and self.session.stage is Stage.LOADING:
            self.loading.wait(follow.note)
        self.actions_by_id.refresh()

    def _leave_workspace(self) -> None:
        if self.workspace is None:
            return
        self._keep_timer.stop()
        if self.keeper is not None:
            self.keeper.close()
            self.keeper = None
        views, self.workspace = self.workspace, None
        self.session.more_unstored = list
        views.close_down()
        self._pages.removeWidget(views)
        dismantle(views)

    @Slot()
    def _retry(self) -> None:
        if self.session.path is not None:
            self.session.open(self.session.path)

    @Slot(QPoint)
    @Slot(QPoint, str)
    def _show_context_menu(self, position: QPoint, argument: str = "") -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.actions_by_id.refresh()
        if self.workspace is not None:
            from satview.gui.filters.context import add_filter_menus  # brings numpy

            add_filter_menus(menu, self.workspace.active.opened, argument)
        for command_id in _CONTEXT:
            if command_id is None:
                menu.addSeparator()
            else:
                menu.addAction(self.actions_by_id.by_id[command_id])
        menu.popup(position)

    @Slot()
    def _fill_recent(self) -> None:
        self._recent_menu.clear()
        for file in self.recent.files():
            action = self._recent_menu.addAction(menu_text(file.name))
            action.setToolTip(tool_tip(str(file)))
            action.setData(str(file))
            action.triggered.connect(self._on_recent)
        if self._recent_menu.isEmpty():
            self._recent_menu.addAction("No recent files").setEnabled(False)

    @Slot()
    def _on_recent(self) -> None:
        action = self.sender()
        self.files_requested.emit([Path(action.data())])  # type: ignore[attr-defined]  # the sender is a QAction

    def _may_lose_nothing(self) -> bool:
        """Show the question about unsaved notes until they are saved or discarded; False if the window is to stay."""
        while unstored := self.session.unstored_marks():
            marks = unstored[0]
            marks.file.retry()
            if marks.file.is_stored:
                continue
            answer = dialogs.ask_unsaved(self, marks.file.failure)
            if answer is dialogs.Unsaved.STAY:
                return False
            if answer is dialogs.Unsaved.DISCARD:
                marks.file.give_up()
            elif answer is dialogs.Unsaved.ELSEWHERE and marks.file.path is not None:
                self._save_elsewhere(marks)
        return True

    def _save_elsewhere(self, marks: Marks) -> None:
        assert marks.file.path is not None
        path = dialogs.ask_save(self, Path.home() / marks.file.path.name, "Notes (*.marks.json)")
        if path is None:
            return
        try:
            marks.save_copy(path)
        except WriteError as error:
            dialogs.report(self, "satview", str(error))

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Welcome files."""
        if any(url.isLocalFile() for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Open dropped files."""
        paths = [Path(url.toLocalFile()) for url in event.mimeData().urls() if url.isLocalFile()]
        if paths:
            event.acceptProposedAction()
            self.files_requested.emit(paths)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Cancel all tasks and let everything go, after the question about notes that are not saved."""
        if self._asks and not self._may_lose_nothing():
            event.ignore()
            return
        self._leave_workspace()
        self.settings.set("window/geometry", base64.b64encode(self.saveGeometry().data()).decode("ascii"))
        self.session.shut_down()
        self.captures.close_down()
        # Bindings hold the window; without them nothing keeps it alive.
        self.registry.clear()
        super().closeEvent(event)
