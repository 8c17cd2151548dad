"""Fills a window according to its session: the loading page, the preview, the views of a trace, or the error."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QPoint, Qt, QTimer, Signal, Slot
from PySide6.QtWidgets import QApplication, QMenu, QStackedWidget

from satview.base.column_arrays import borrowed
from satview.base.errors import WriteError
from satview.base.safe_text import visible_line
from satview.gui import dialogs
from satview.gui.filters.chips import add_filter_menus
from satview.gui.windows.command_window import CommandWindow, freeze_loaded_objects
from satview.gui.windows.pages import FailedPage, LoadingPage
from satview.gui.windows.preview_page import PreviewPage
from satview.gui.windows.workspace import Workspace
from satview.gui.windows.workspace_keeper import WorkspaceKeeper
from satview.session.session import Stage
from satview.session.tasks import dismantle

if TYPE_CHECKING:
    from satview.session.highlight import Marks
    from satview.session.open_trace import OpenTrace


_CACHE_AFTER_MS = 1000
_CONTEXT = (
    "view.focus",
    "marks.range",
    "go.partner",
    "go.why",
    "go.path",
    "go.late",
    "go.what_if",
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


class DocumentViews(QObject):
    """Follows the session of a window, and fills the window accordingly.

    Signals:
        open_requested: The user asks for another file.
        capture_requested: The capture dialog is requested; sends the rules for it.
    """

    open_requested = Signal()
    capture_requested = Signal(str)

    def __init__(self, window: CommandWindow, pages: QStackedWidget) -> None:
        """Add the pages for a file that is read, or cannot be, behind the first one, for no file."""
        super().__init__(window)
        self._window, self._pages = window, pages
        self.loading, self.failed = LoadingPage(window), FailedPage(window)
        for page in (self.loading, self.failed):
            pages.addWidget(page)
        self._cache_timer = QTimer(self, singleShot=True, interval=_CACHE_AFTER_MS)
        self._cache_timer.timeout.connect(self._cache)
        session = window.session
        session.may_reload = self._may_reload
        session.lanes_in_view = self._lanes_in_view
        session.progress.connect(self.loading.set_progress)
        session.previewed.connect(self._on_preview)
        session.stage_changed.connect(self._on_stage)
        session.follow_changed.connect(self._on_follow)
        self.loading.cancel_requested.connect(session.cancel)
        self.failed.open_requested.connect(self.open_requested)
        self.failed.retry_requested.connect(self._retry)

    @Slot()
    def _on_preview(self) -> None:
        """Show samples of the file while it is read."""
        window, session, settings = self._window, self._window.session, self._window.settings
        assert session.preview is not None
        assert session.path is not None
        if window.preview_page is None:
            window.preview_page = PreviewPage(window.theme, window)
            window.preview_page.cancel_requested.connect(session.cancel)
            session.progress.connect(window.preview_page.set_progress)
            self._pages.addWidget(window.preview_page)
        label_px, lane_px = (settings.number(f"swimlane/{name}_px") for name in ("label_width", "lane_height"))
        window.preview_page.lanes.set_up(label_px, lane_px, wheel_zooms=settings.flag("window/wheel_zooms"))
        window.preview_page.begin(session.path, session.preview)
        self._pages.setCurrentWidget(window.preview_page)
        window.preview_page.lanes.setFocus()
        # Make the commands while the file is decoded, one turn of the event loop after the preview is painted.
        QTimer.singleShot(0, self, lambda: QTimer.singleShot(0, self, window.complete))

    @Slot()
    def _on_stage(self) -> None:
        window, session = self._window, self._window.session
        stage, path = session.stage, session.path
        if window.preview_page is not None:
            window.preview_page.leave()
        if stage is not Stage.READY:
            self.leave()
        if stage is not Stage.LOADING:
            window.complete()
        if stage is Stage.LOADING and path is not None:
            self.loading.begin(path)
            self._pages.setCurrentWidget(self.loading)
        elif stage is Stage.FAILED and path is not None and session.error is not None:
            self.failed.show_error(path, session.error)
            self._pages.setCurrentWidget(self.failed)
        elif stage is Stage.READY:
            self._enter_workspace()
        else:
            self._pages.setCurrentIndex(0)
        window.setWindowTitle(self._title())
        self._refresh_commands()

    def _refresh_commands(self) -> None:
        if self._window.is_complete:
            self._window.actions_by_id.refresh()

    def _title(self) -> str:
        """Return the window title: the file name, and the operating system if it is not QNX."""
        path, opened = self._window.session.path, self._window.session.opened
        if path is None:
            return "satview"
        system = opened.trace.foreign_system if opened is not None else ""
        title = visible_line(opened.trace.title) if opened is not None else path.name
        return f"{title}{f' ({system})' if system else ''} \N{EM DASH} satview"

    def _enter_workspace(self) -> None:
        freeze_loaded_objects()
        window, session, opened = self._window, self._window.session, self._window.session.opened
        assert opened is not None
        views = window.workspace = Workspace(opened, window.settings, window.theme, window, self._pages)
        path = opened.trace.path
        is_lasting = _is_lasting(path)
        window.keeper = WorkspaceKeeper(views, window.shared.files, path, is_lasting, window.shared.view_links)
        views.watch_file(window.keeper.file, "Views")
        self._pages.setCurrentWidget(views)
        window.keeper.begin(is_followed=session.follow is not None)
        self._connect_workspace(views, opened)
        for dock in views.docks.values():
            dock.visibilityChanged.connect(window.actions_by_id.refresh_later)
        if session.follow is not None:
            views.show_end()
        if is_lasting:
            window.recent.add(path)
        views.area.view.setFocus()
        views.report_plugins()

    def _connect_workspace(self, views: Workspace, opened: OpenTrace) -> None:
        actions, session = self._window.actions_by_id, self._window.session
        actions.attach_lane_keys(views.area)
        for signal in (opened.selection.changed, opened.selection.range_changed, opened.search.changed):
            signal.connect(actions.refresh)
        views.area.menu_requested.connect(self._show_context_menu)
        views.panes.added.connect(self._on_pane)
        views.menu_requested.connect(self._show_context_menu)
        views.area.view.source.refined.connect(self._on_refined)
        views.comparison.changed.connect(actions.refresh)
        views.second_trace.marks_left.connect(session.adopt)
        session.more_unstored = borrowed(views.second_trace.unstored_marks)
        opened.capture_requested.connect(self.capture_requested)

    @Slot()
    def _on_pane(self) -> None:
        """Connect keys and the context menu to a second set of lanes."""
        second = self._window.workspace.panes.second if self._window.workspace is not None else None
        if second is not None:
            self._window.actions_by_id.attach_lane_keys(second.area)
            second.area.menu_requested.connect(self._show_context_menu)
            for signal in (second.opened.selection.changed, second.opened.selection.range_changed):
                signal.connect(self._window.actions_by_id.refresh)

    @Slot()
    def _on_refined(self) -> None:
        """Start to cache the decoded trace, once the lanes are drawn exactly."""
        views = self._window.workspace
        if views is not None and views.area.is_exact and self._window.session.needs_caching:
            self._cache_timer.start()

    @Slot()
    def _cache(self) -> None:
        if self._window.workspace is not None:
            self._window.session.cache(self._lanes_in_view())

    def _lanes_in_view(self) -> list[int]:
        views = self._window.workspace
        return [row.index for row in views.area.view.visible_rows()] if views is not None else []

    def _may_reload(self) -> bool:
        """Return whether the views may be replaced now: not during a drag, or under an open menu or dialog."""
        is_busy = QApplication.mouseButtons() != Qt.MouseButton.NoButton
        return not is_busy and QApplication.activePopupWidget() is None and QApplication.activeModalWidget() is None

    @Slot()
    def _on_follow(self) -> None:
        follow = self._window.session.follow
        if follow is not None and follow.note and self._window.session.stage is Stage.LOADING:
            self.loading.wait(follow.note)
        self._refresh_commands()

    def leave(self) -> None:
        """Remove the views of the trace, if there are any."""
        window, views = self._window, self._window.workspace
        if views is None:
            return
        self._cache_timer.stop()
        if window.keeper is not None:
            window.keeper.close()
            window.keeper = None
        window.workspace = None
        window.session.more_unstored = list
        views.close_down()
        self._pages.removeWidget(views)
        dismantle(views)

    def open(self, path: Path, is_followed: bool = False) -> bool:
        """Open a file, and follow it if `is_followed`; return False if the user does not allow files that it names."""
        is_allowed = dialogs.may_open(self._window, path)
        if is_allowed:
            self._window.session.open(path, is_followed)
        return is_allowed

    @Slot()
    def _retry(self) -> None:
        if self._window.session.path is not None:
            self._window.session.open(self._window.session.path)

    @Slot(QPoint)
    @Slot(QPoint, str)
    def _show_context_menu(self, position: QPoint, argument: str = "") -> None:
        menu = QMenu(self._window)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._window.actions_by_id.refresh()
        if self._window.workspace is not None:
            add_filter_menus(menu, self._window.workspace.active.opened, argument)
        for command_id in _CONTEXT:
            if command_id is None:
                menu.addSeparator()
            else:
                menu.addAction(self._window.actions_by_id.by_id[command_id])
        menu.popup(position)

    def resolve_unsaved(self) -> bool:
        """Ask about unsaved notes until they are saved or discarded; return False if the window must stay open."""
        while unstored := self._window.session.unstored_marks():
            marks = unstored[0]
            marks.file.retry()
            if marks.file.is_stored:
                continue
            answer = dialogs.ask_unsaved(self._window, marks.file.failure)
            if answer is dialogs.Unsaved.STAY:
                return False
            if answer is dialogs.Unsaved.DISCARD:
                marks.file.give_up()
            elif answer is dialogs.Unsaved.ELSEWHERE and marks.file.path is not None:
                self._save_elsewhere(marks)
        return True

    def _save_elsewhere(self, marks: Marks) -> None:
        assert marks.file.path is not None
        path = dialogs.ask_save(self._window, Path.home() / marks.file.path.name, "Notes (*.marks.json)")
        if path is None:
            return
        try:
            marks.save_copy(path)
        except WriteError as error:
            dialogs.report(self._window, "satview", str(error))


def _is_lasting(path: Path) -> bool:
    """Return whether a file is permanent: False for standard input and for the temporary file of a live demo."""
    return str(path) != "-" and not path.parent.name.startswith("satview-")
