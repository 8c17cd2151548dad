"""What the commands do that need an open trace."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtGui import QGuiApplication

from satview.base.errors import UsageError
from satview.gui import dialogs
from satview.gui.quick_pick import LinePrompt, Option, QuickPick
from satview.gui.windows.comparison_commands import ComparisonCommands
from satview.gui.windows.lane_commands import LaneCommands
from satview.gui.windows.mark_commands import MarkCommands
from satview.session.commands import CommandRegistry, Needs
from satview.session.panel_table import PANELS
from satview.session.settings import Settings
from satview.session.step import BACK, ON
from satview.session.trace_link import link_to

if TYPE_CHECKING:
    from satview.gui.windows.command_window import CommandWindow
    from satview.gui.windows.workspace import Workspace
    from satview.session.open_trace import OpenTrace


Run = Callable[["Workspace"], object]


class TraceCommands:
    """Binds the commands; each looks up what is open when it runs, so one binding serves one window for its life."""

    def __init__(self, window: CommandWindow, settings: Settings) -> None:
        self._window = window
        self._settings = settings

    def bind(self, registry: CommandRegistry) -> None:
        """Bind all of them."""
        for command_id, run in (
            *self._view_commands(),
            *self._go_commands(),
            *self._edit_commands(),
        ):
            registry.bind(command_id, partial(self.run, run))
        MarkCommands(self._window, self.run, lambda: self.workspace).bind(registry)
        LaneCommands(self.run, lambda: self.workspace, self._settings).bind(registry)
        ComparisonCommands(self._window, self.run, lambda: self.workspace).bind(registry)
        for mode in ("off", "selection", "all"):
            registry.bind(f"view.arrows_{mode}", partial(self._set_arrows, mode), partial(self._has_arrows, mode))
        registry.bind("view.split", partial(self.run, self._split), lambda: self.workspace.is_split)
        registry.bind("view.another", self._window.another_requested.emit)
        registry.bind("view.linked", partial(self.run, self._toggle_linked), self._is_linked)
        registry.bind("view.shares", self._toggle_shares, partial(self._settings.flag, "swimlane/shares"))
        registry.bind("view.legend", self._toggle_legend, partial(self._settings.flag, "swimlane/show_legend"))
        for row in PANELS:
            shows = partial(self._panel_shows, row.name)
            registry.bind(f"panels.{row.name}", partial(self._toggle_panel, row.name), shows)
        registry.bind("panels.bottom", self._toggle_bottom)
        registry.bind("panels.reset", self._arrange)

    def is_met(self, needs: Needs) -> bool:
        """Return whether what a command needs is there."""
        views = self._window.workspace
        if needs is Needs.NOTHING:
            return True
        if needs is Needs.CAPTURE:
            return self._window.capture_job.is_busy
        if views is None:
            return False
        opened = views.active.opened
        selection = opened.selection
        return {
            Needs.TRACE: True,
            Needs.EVENT: selection.event is not None,
            Needs.SELECTION: not selection.is_empty,
            Needs.LANE: selection.lane is not None,
            Needs.RANGE: selection.time_range is not None,
            Needs.HITS: len(opened.search.hits) > 0,
            Needs.LIVE: self._window.session.follow is not None,
            Needs.SECOND: views.comparison.second is not None,
        }[needs]

    @property
    def workspace(self) -> Workspace:
        """The views of the open trace."""
        views = self._window.workspace
        assert views is not None, "the command is disabled while no trace is open"
        return views

    @property
    def _opened(self) -> OpenTrace:
        """The trace whose lanes have the keyboard: the one that is open, or a second one that is compared."""
        return self.workspace.active.opened

    def run(self, run: Run) -> None:
        """Carry a command out; say why it cannot be."""
        try:
            run(self.workspace)
        except UsageError as error:
            self.workspace.report_failure(str(error))

    def _view_commands(self) -> tuple[tuple[str, Run], ...]:
        return (
            ("view.zoom_in", lambda views: views.active.motion.zoom(1)),
            ("view.zoom_out", lambda views: views.active.motion.zoom(-1)),
            ("view.pan_left", lambda views: views.active.motion.pan(BACK)),
            ("view.pan_right", lambda views: views.active.motion.pan(ON)),
            ("view.page_left", lambda views: views.active.opened.viewport.pan(BACK)),
            ("view.page_right", lambda views: views.active.opened.viewport.pan(ON)),
            ("view.focus", lambda views: views.active.navigation.focus()),
            ("view.zoom_range", self._zoom_range),
            ("view.zoom_all", lambda views: views.active.opened.viewport.show_all()),
            ("view.back", lambda views: views.active.opened.viewport.back()),
            ("view.forward", lambda views: views.active.opened.viewport.forward()),
        )

    def _go_commands(self) -> tuple[tuple[str, Run], ...]:
        return (
            ("go.previous_edge", lambda views: views.active.navigation.step_edge(BACK)),
            ("go.next_edge", lambda views: views.active.navigation.step_edge(ON)),
            ("go.extend_left", lambda views: views.active.navigation.step_edge(BACK, extend=True)),
            ("go.extend_right", lambda views: views.active.navigation.step_edge(ON, extend=True)),
            ("go.previous_event", lambda views: views.active.navigation.step_event(BACK)),
            ("go.next_event", lambda views: views.active.navigation.step_event(ON)),
            ("go.partner", lambda views: views.active.navigation.show_partner()),
            ("go.cause", lambda views: views.active.navigation.show_cause()),
            ("go.effect", lambda views: views.active.navigation.show_effect()),
            ("go.why", self._why),
            ("go.path", self._path),
            ("go.lane_up", lambda views: views.active.navigation.step_lane(lambda row, _: row - 1)),
            ("go.lane_down", lambda views: views.active.navigation.step_lane(lambda row, _: row + 1)),
            ("go.page_up", lambda views: views.active.navigation.step_lane(lambda row, _: row - self._page())),
            ("go.page_down", lambda views: views.active.navigation.step_lane(lambda row, _: row + self._page())),
            ("go.first_lane", lambda views: views.active.navigation.step_lane(lambda _row, _count: 0)),
            ("go.last_lane", lambda views: views.active.navigation.step_lane(lambda _, count: count - 1)),
            ("go.start", lambda views: views.active.opened.viewport.pan(-1e6)),
            ("go.end", lambda views: views.active.opened.viewport.pan(1e6)),
            ("go.to_time", self._ask_time),
            ("go.to_lane", self._ask_lane),
        )

    def _edit_commands(self) -> tuple[tuple[str, Run], ...]:
        return (
            ("edit.undo", self._undo),
            ("edit.redo", self._redo),
            ("edit.copy", self._copy),
            ("edit.copy_link", _copy_link),
            ("edit.find", lambda views: views.find_bar.start()),
            ("edit.find_next", lambda views: views.active.navigation.step_hit(ON)),
            ("edit.find_previous", lambda views: views.active.navigation.step_hit(BACK)),
            ("edit.clear", self._clear),
            (
                "filter.only_thread",
                lambda views: views.active.opened.filters.only_threads([self._thread()], "only this thread"),
            ),
            (
                "filter.hide_thread",
                lambda views: views.active.opened.filters.show_threads([self._thread()], False, "hide this thread"),
            ),
            (
                "filter.only_event",
                lambda views: views.active.opened.filters.only_codes([self._code()], "only this kind of event"),
            ),
            (
                "filter.hide_event",
                lambda views: views.active.opened.filters.show_codes([self._code()], False, "hide this kind of event"),
            ),
            ("filter.show_all", lambda views: views.active.opened.filters.show_all()),
            ("file.save_events", self._save_events),
            ("file.export_picture", self._export_picture),
        )

    def _page(self) -> int:
        return max(1, len(self.workspace.active.area.view.visible_rows()) - 1)

    def _thread(self) -> int:
        """Return the thread of the selection: of its interval, else of its event.

        Raises:
            UsageError: It has none.
        """
        selection, opened = self._opened.selection, self._opened
        thread = selection.span.thread if selection.span is not None else 0
        if not thread and selection.lane is not None:
            thread = opened.timeline.infos[selection.lane].thread
        if not thread and selection.event is not None:
            thread = int(opened.trace.events.thread[selection.event])
        if not thread:
            raise UsageError("no thread is known for the selection")
        return thread

    def _code(self) -> int:
        event = self._opened.selection.event
        assert event is not None, "the command needs an event"
        return int(self._opened.trace.events.code[event])

    def _why(self, views: Workspace) -> None:
        views.active.navigation.request_why(self._thread())
        views.show_panel("details")

    def _path(self, views: Workspace) -> None:
        views.active.navigation.request_path(self._thread())
        views.show_panel("path")

    def _zoom_range(self, views: Workspace) -> None:
        time_range = views.active.opened.selection.time_range
        if time_range is not None:
            views.active.opened.viewport.jump(time_range)

    def _undo(self, views: Workspace) -> None:
        title = views.active.opened.edits.undo_title
        views.active.opened.edits.undo()
        views.report(f"Undone: {title}" if title else "Nothing to undo")

    def _redo(self, views: Workspace) -> None:
        title = views.active.opened.edits.redo_title
        views.active.opened.edits.redo()
        views.report(f"Done again: {title}" if title else "Nothing to do again")

    def _copy(self, views: Workspace) -> None:
        from satview.gui.panels.details_panel import DetailsPanel  # with the trace, not before: brings numpy

        text = next(filter(None, (panel.copied_text() for panel in views.panels.made.values())), "")
        text = text or views.panel(DetailsPanel).selected_or_all()
        QGuiApplication.clipboard().setText(text)
        views.report("Copied")

    def _clear(self, views: Workspace) -> None:
        selection = views.active.opened.selection
        if views.active.opened.legend.clear():
            return
        if selection.time_range is not None:
            selection.set_range(None)
        elif not selection.is_empty:
            selection.select(None, None, None)
        else:
            views.active.opened.path.forget()

    def _split(self, views: Workspace) -> None:
        views.toggle_split()
        if views.is_split:
            self._link(views, True)
            views.report("Linked: both show the same part of time; Ctrl+Shift+L lets each go its own way")

    def _link(self, views: Workspace, links: bool) -> None:
        for view in views.views():
            change = self._window.shared.view_links.add if links else self._window.shared.view_links.remove
            change(view)

    def _toggle_linked(self, views: Workspace) -> None:
        links = not self._is_linked()
        self._link(views, links)
        views.report("Linked with the other views of this trace" if links else "This window's views go their own ways")

    def _is_linked(self) -> bool:
        return all(self._window.shared.view_links.has(view) for view in self.workspace.views())

    def _toggle_legend(self) -> None:
        self._settings.set("swimlane/show_legend", not self._settings.flag("swimlane/show_legend"))

    def _toggle_shares(self) -> None:
        self._settings.set("swimlane/shares", not self._settings.flag("swimlane/shares"))

    def _set_arrows(self, mode: str) -> None:
        # All arrows are switched on and off by one key; what comes back is the arrows of the selection.
        is_back = mode == "all" and self._has_arrows(mode)
        self._settings.set("swimlane/arrows", "selection" if is_back else mode)

    def _has_arrows(self, mode: str) -> bool:
        return self._settings.text("swimlane/arrows") == mode

    def _toggle_panel(self, name: str) -> None:
        self.workspace.toggle_panel(name)

    def _panel_shows(self, name: str) -> bool:
        return self.workspace.panel_shows(name)

    def _toggle_bottom(self) -> None:
        self.workspace.toggle_bottom()

    def _arrange(self) -> None:
        self.workspace.arrange()

    def _ask_time(self, views: Workspace) -> None:
        LinePrompt(
            "Go to a time, a range, cycles or an event number",
            "1.25s   2s..3s   -5s..   25%   06:19:01   0x1f00c   #1200",
            views.active.navigation.show_position,
            self._window,
        )

    def _ask_lane(self, views: Workspace) -> None:
        from satview.session.events.event_text import lane_path  # with the trace, not before: brings numpy

        timeline, show = views.active.opened.timeline, views.active.navigation.show_lane
        options = [
            Option(lane_path(timeline, info.index), info.subtitle, partial(show, info.index)) for info in timeline.infos
        ]
        QuickPick(options, "Process, thread, CPU or interrupts", "No lane matches", self._window)

    def _save_events(self, views: Workspace) -> None:
        from satview.gui.save_events import SaveEventsDialog  # on first use: brings what prints listings

        SaveEventsDialog(views.active.opened, self._window).open()

    def _export_picture(self, views: Workspace) -> None:
        suggestion = views.active.opened.trace.path.with_suffix(".png")
        path = dialogs.ask_save(self._window, suggestion, "PNG (*.png);;SVG (*.svg);;PDF (*.pdf)")
        if path is not None:
            from satview.formats.registry import source_files  # with the trace, not before: brings numpy

            views.active.area.save_picture(path, source_files(views.active.opened.trace.path))
            views.report(f"Saved {path.name}")


def _copy_link(views: Workspace) -> None:
    QGuiApplication.clipboard().setText(link_to(views.active.opened))
    views.report("Copied a link to this view; File > Open link or satview 'LINK' opens it")
