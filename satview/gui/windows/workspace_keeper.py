"""Saves the state of a trace's views, and restores it when the trace is opened again."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QObject, QTimer, Slot

from satview.base.errors import UsageError
from satview.base.time import TimeWindow
from satview.session.lanes.lane_row import lane_keys
from satview.session.state_files import StateFiles, is_same, sign_of
from satview.session.tasks import Task
from satview.session.trace_link import ViewLinks
from satview.session.trace_state import (
    filter_state,
    lanes_state,
    restore_filter,
    restore_lanes,
    restore_selection,
    restore_view,
    selection_state,
    view_state,
)
from satview.session.workspace_file import (
    PanelsState,
    SecondState,
    SelectionState,
    ViewState,
    WorkspaceState,
    from_json,
    to_json,
)

if TYPE_CHECKING:
    from satview.gui.swimlane.area import Pane
    from satview.gui.windows.workspace import Workspace

_AROUND_MARK: Final = 20  # 1/20 of the trace shows on each side of the mark
_CACHE_AFTER_MS: Final = 20_000  # after a change; closing the trace saves immediately


class WorkspaceKeeper(QObject):
    """Saves and restores the state of one workspace.

    Attributes:
        file: File of the state, whose signals report failures.
    """

    def __init__(
        self, views: Workspace, files: StateFiles, path: Path, is_lasting: bool, view_links: ViewLinks
    ) -> None:
        """Prepare; `begin` reads the file. Only the state of a permanent file (`is_lasting`) is stored."""
        super().__init__(views)
        self._view_links = view_links
        self._views, self._files, self._path = views, files, path
        self.file = files.of_trace(path) if is_lasting else StateFiles().of_trace(path)
        self.file.setParent(self)
        self._pending_selection: SelectionState | None = None
        self._build_task = Task(self, self._on_built)
        self._timer = QTimer(self, singleShot=True, interval=_CACHE_AFTER_MS)
        self._timer.timeout.connect(self.save)

    def begin(self, is_followed: bool) -> None:
        """Restore the last state; view, selection, filter and second set of lanes only if the file is the same trace.

        Without a stored state, show the mark that a flight recorder left in the trace, if there is one. Of a growing
        file, show the end, without selection and second set of lanes.
        """
        content = self.file.load()
        if content is not None:
            state = from_json(content)
            same = is_same(state.trace, self._path)
            if not same or is_followed:
                own_filter = state.filter if same else None
                state = replace(state, view=None, selection=None, filter=own_filter, second=None)
            self._begin_with(state, same)
        elif not is_followed:
            self._begin_at_mark()
        if content is None and self.file.notice:
            QTimer.singleShot(0, self, self.save)  # saving sets the damaged file aside and reports that
        opened = self._views.opened
        for signal in (opened.viewport.window_changed, opened.lanes.changed, opened.filters.changed,
                       opened.described, opened.timed, self._views.comparison.changed):  # fmt: skip
            signal.connect(self._on_change)

    def _begin_at_mark(self) -> None:
        """Show the time around the mark for which a flight recorder wrote the file, if the trace has such a mark."""
        opened = self._views.opened
        mark = opened.marks.first_recorded
        if mark is None:
            return
        around = max(1, opened.trace.window.length // _AROUND_MARK)
        opened.viewport.begin_at(TimeWindow(mark.start_cycles - around, mark.start_cycles + around))
        row = int(np.searchsorted(opened.trace.events.time_cycles, mark.start_cycles))
        self._views.navigation.show_event(row)
        opened.marks.select(mark)

    def _begin_with(self, state: WorkspaceState, same: bool) -> None:
        views, opened = self._views, self._views.opened
        self._describe(state.user_events or "")
        self._name(state)
        opened.time_activities(state.timing or "")
        try:
            if state.view is not None:
                restore_view(opened, state.view, same, is_first=True)
            if state.filter is not None:
                restore_filter(opened, state.filter, same, is_first=True)
            if state.lanes is not None:
                restore_lanes(opened, state.lanes, same, is_first=True)
        except UsageError as error:  # a malformed pattern in the file
            views.report_failure(str(error))
        if state.panels is not None:
            restore_panels(views, state.panels)
        if state.selection is not None:
            restore_selection(opened, state.selection)
            lane = opened.selection.lane
            if state.selection.span_start is not None and opened.selection.span is None and lane is not None:
                self._pending_selection = state.selection  # until the lane is built in the background
                timeline, selected = opened.timeline, [lane]
                self._build_task.start(lambda is_cancelled: timeline.build(selected, is_cancelled))
        if state.compared is not None and same and Path(state.compared.path).is_file():
            views.second_trace.open(Path(state.compared.path), state.compared)
        if state.view is not None:
            # One turn of the event loop later, when the lanes have their height.
            QTimer.singleShot(0, self, partial(scroll_to, views.panes.first, state.view))
        if state.second is not None:
            self._begin_second(state.second)

    def _describe(self, file: str) -> None:
        """Apply the file of event descriptions that was used last, unless the command line names one."""
        opened = self._views.opened
        try:
            if file and not self._views.has_user_events:
                opened.describe(file)
        except UsageError as error:  # the file was moved or changed
            self._views.report_failure(str(error))

    def _name(self, state: WorkspaceState) -> None:
        """Read the symbols and the pidin output that were used last, unless the command line names others."""
        opened = self._views.opened
        if state.symbols and not opened.is_named:
            opened.name_addresses(state.symbols)
        if state.pidin and not opened.pidin_file:
            opened.name_processes(state.pidin)

    def _begin_second(self, state: SecondState) -> None:
        """Restore the second set of lanes, and its link with the first."""
        views = self._views
        views.toggle_split()
        pane = views.panes.second
        assert pane is not None
        try:
            restore_lanes(pane.opened, state.lanes, True, is_first=True)
        except UsageError as error:
            views.report_failure(str(error))
        if state.is_linked:
            for view in views.views():
                self._view_links.add(view)
        else:
            restore_view(pane.opened, state.view, True, is_first=True)
        QTimer.singleShot(0, self, partial(scroll_to, pane, state.view))

    @Slot()
    def _on_built(self) -> None:
        """Select the saved interval once its lane is built, unless the user has selected something else meanwhile."""
        selection, state = self._views.opened.selection, self._pending_selection
        if state is not None and selection.span is None and selection.event == state.event:
            view = self._views.area.view
            scroll_px = view.scroll_px
            restore_selection(self._views.opened, state)
            view.scroll_to(scroll_px)  # selecting scrolls to the interval; undo that
        self._pending_selection = None

    @Slot()
    def _on_change(self) -> None:
        if self.file.path is not None and not self._timer.isActive():
            self._timer.start()

    @Slot()
    def save(self) -> None:
        """Save the current state of the workspace."""
        if self.file.path is None:
            return
        self._timer.stop()
        state = replace(workspace_state(self._views), trace=sign_of(self._path), second=self._second())
        if state.trace is not None:  # otherwise the trace was deleted: keep the stored state
            content = to_json(state)
            self.file.store(lambda _before: content)

    def _second(self) -> SecondState | None:
        """Return the state of the second set of lanes of this trace; None if there is no second set."""
        pane = self._views.panes.second if self._views.is_split else None
        if pane is None:
            return None
        is_linked = all(self._view_links.has(view) for view in self._views.views())
        return SecondState(view_state(pane.opened, pane.area.view.scroll_px), lanes_state(pane.opened.lanes), is_linked)

    def close(self) -> None:
        """Save the state, without asking the user if that fails: the state of views is not worth a question."""
        self._build_task.close()
        self.save()
        self.file.give_up()
        self._files.shrink()


def restore_session(views: Workspace, state: WorkspaceState) -> None:
    """Apply a saved session, as far as the names in it exist in the trace; undo restores lanes and filter.

    Raises:
        UsageError: A name pattern or the file of event descriptions is malformed.
    """
    opened = views.opened
    if state.user_events is not None and state.user_events != opened.user_file:
        opened.describe(state.user_events)
    if state.symbols and state.symbols != opened.symbols_folder:
        opened.name_addresses(state.symbols)
    if state.pidin and state.pidin != opened.pidin_file:
        opened.name_processes(state.pidin)
    if state.timing is not None:
        opened.time_activities(state.timing)
    with opened.edits.as_one("session"):
        if state.filter is not None:
            restore_filter(opened, state.filter, is_same=False)
        if state.lanes is not None:
            restore_lanes(opened, state.lanes, is_same=False)
    if state.view is not None:
        restore_view(opened, state.view, is_same=False)
    if state.panels is not None:
        restore_panels(views, state.panels)


def workspace_state(views: Workspace) -> WorkspaceState:
    """Return the state of a workspace, without the signature of its trace."""
    opened = views.opened
    return WorkspaceState(
        None,
        view_state(opened, views.area.view.scroll_px),
        selection_state(opened),
        lanes_state(opened.lanes),
        filter_state(opened.trace, opened.filters.state),
        panels_state(views),
        compared=views.second_trace.state(),
        user_events=opened.user_file,
        symbols=opened.symbols_folder,
        pidin=opened.pidin_file,
        timing=opened.timing_file,
    )


def panels_state(views: Workspace) -> PanelsState:
    """Return the panel layout and the saved values of each panel."""
    values = dict(views.saved_values)
    for name, panel in views.panels.created.items():
        values[name] = panel.saved_values()
    of_panels = {name: of_panel for name, of_panel in values.items() if of_panel}
    return PanelsState(views.layout_of_panels(), of_panels, views.opened.search.text, not views.find_bar.isHidden())


def restore_panels(views: Workspace, state: PanelsState) -> None:
    """Restore the panel layout and the saved values of each panel."""
    if state.layout is not None:
        views.restore_panels(state.layout)
    views.saved_values = {name: dict(of_panel) for name, of_panel in state.values.items()}
    for name, panel in views.panels.created.items():
        panel.restore_values(views.saved_values.get(name, {}))
    views.find_bar.restore(state.search, state.finds)


def scroll_to(pane: Pane, state: ViewState) -> None:
    """Scroll a set of lanes to the lane that was at the top when `state` was saved."""
    keys = lane_keys(pane.opened.timeline)
    top = next((row for row in pane.opened.lanes.rows if keys[row.index] == state.top), None)
    pane.area.view.scroll_to(0 if top is None else top.y_px + state.top_px)
