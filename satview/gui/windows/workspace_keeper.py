"""Keeps what a window shows of a trace, and shows it so again when the trace is opened the next time."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QTimer, Slot

from satview.base.errors import UsageError
from satview.session.lanes.remap import lane_keys
from satview.session.put_state import put_filter, put_lanes, put_selection, put_view
from satview.session.state_files import StateFiles, is_same, sign_of
from satview.session.take_state import take_filter, take_lanes, take_selection, take_view
from satview.session.workspace_state import PanelsState, SelectionState, ViewState, WorkspaceState, from_json, to_json

if TYPE_CHECKING:
    from satview.gui.windows.workspace import Workspace

_KEEP_MS: Final = 20_000  # after a change; what is closed in good order is kept at once


class WorkspaceKeeper(QObject):
    """The kept state of one workspace.

    Attributes:
        file: Where it is kept; tells whether that worked.
    """

    def __init__(self, views: Workspace, files: StateFiles, path: Path, is_lasting: bool) -> None:
        """Prepare; nothing is read yet.

        Args:
            views: The views.
            files: Where states are kept.
            path: The trace.
            is_lasting: The trace will be there the next time; else nothing is kept of it.
        """
        super().__init__(views)
        self._views, self._files, self._path = views, files, path
        self.file = files.of_trace(path) if is_lasting else StateFiles().of_trace(path)
        self.file.setParent(self)
        self._waiting: SelectionState | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_KEEP_MS)
        self._timer.timeout.connect(self.keep)

    def begin(self, is_followed: bool) -> None:
        """Show the trace as it was shown last; what is kept of another file under its name gives the lanes only.

        Args:
            is_followed: The file grows: its end shows, not the part that showed last.
        """
        content = self.file.load()
        if content is not None:
            state = from_json(content)
            same = is_same(state.trace, self._path)
            if not same or is_followed:
                state = replace(state, view=None, selection=None, filter=state.filter if same else None)
            self._begin_with(state, same)
        elif self.file.notice:
            QTimer.singleShot(0, self, self.keep)  # at once: that sets the damaged file aside, and says so
        opened = self._views.opened
        for signal in (opened.viewport.window_changed, opened.lanes.changed, opened.filters.changed):
            signal.connect(self._on_change)

    def _begin_with(self, state: WorkspaceState, same: bool) -> None:
        views, opened = self._views, self._views.opened
        try:
            if state.view is not None:
                put_view(opened, state.view, same, is_first=True)
            if state.filter is not None:
                put_filter(opened, state.filter, same, is_first=True)
            if state.lanes is not None:
                put_lanes(opened, state.lanes, same, is_first=True)
        except UsageError as error:  # a pattern that somebody wrote into the file
            views.report_failure(str(error))
        if state.panels is not None:
            put_panels(views, state.panels)
        if state.selection is not None:
            put_selection(opened, state.selection)
            if state.selection.span_start is not None and opened.selection.span is None:
                self._waiting = state.selection  # for the lane: to build it here would hold the window
                views.area.view.source.refined.connect(self._on_refined)
        if state.view is not None:
            # A turn later: the lanes have their height by then.
            QTimer.singleShot(0, self, partial(scroll_to, views, state.view))

    @Slot()
    def _on_refined(self) -> None:
        """Select the interval that was selected, unless the user has selected something else meanwhile."""
        selection, state = self._views.opened.selection, self._waiting
        self._views.area.view.source.refined.disconnect(self._on_refined)
        if state is not None and selection.span is None and selection.event == state.event:
            put_selection(self._views.opened, state)
        self._waiting = None

    @Slot()
    def _on_change(self) -> None:
        if self.file.path is not None and not self._timer.isActive():
            self._timer.start()

    @Slot()
    def keep(self) -> None:
        """Store what shows now."""
        if self.file.path is None:
            return
        self._timer.stop()
        state = replace(taken(self._views), trace=sign_of(self._path))
        if state.trace is not None:  # else the trace is gone: what was kept of it stays
            content = to_json(state)
            self.file.store(lambda _before: content)

    def close(self) -> None:
        """Keep what shows, and give up what cannot be stored: it is no views of the user."""
        self.keep()
        self.file.give_up()
        self._files.shrink()


def put_session(views: Workspace, state: WorkspaceState) -> None:
    """Let a trace look as a saved session says, as far as it has what the names in it say; undo takes it back.

    Args:
        views: The views of the trace.
        state: The session.

    Raises:
        UsageError: A pattern of names is faulty.
    """
    opened = views.opened
    if state.filter is not None:
        put_filter(opened, state.filter, is_same=False)
    if state.lanes is not None:
        put_lanes(opened, state.lanes, is_same=False)
    if state.view is not None:
        put_view(opened, state.view, is_same=False)
    if state.panels is not None:
        put_panels(views, state.panels)


def taken(views: Workspace) -> WorkspaceState:
    """Return the state of a workspace; it does not say of which trace it is."""
    opened = views.opened
    return WorkspaceState(
        None,
        take_view(opened, views.area.view.scroll_px),
        take_selection(opened),
        take_lanes(opened.lanes),
        take_filter(opened.trace, opened.filters.state),
        take_panels(views),
    )


def take_panels(views: Workspace) -> PanelsState:
    """Return the arrangement of panels, and what each keeps."""
    values = dict(views.kept_values)
    for name, panel in views.panels.made.items():
        values[name] = panel.kept_values()
    kept = {name: found for name, found in values.items() if found}
    return PanelsState(views.layout_of_panels(), kept, views.opened.search.text, not views.find_bar.isHidden())


def put_panels(views: Workspace, state: PanelsState) -> None:
    """Arrange panels as they were, and give each what it kept."""
    if state.layout is not None:
        views.put_panels(state.layout)
    views.kept_values = {name: dict(found) for name, found in state.values.items()}
    for name, panel in views.panels.made.items():
        panel.take_values(views.kept_values.get(name, {}))
    views.find_bar.restore(state.search, state.finds)


def scroll_to(views: Workspace, state: ViewState) -> None:
    """Scroll the lanes to the one that was at the top."""
    if state.top is not None:
        keys = lane_keys(views.opened.timeline)
        top = next((row for row in views.opened.lanes.rows if keys[row.index] == state.top), None)
        if top is not None:
            views.area.view.scroll_to(top.y_px + state.top_px)
