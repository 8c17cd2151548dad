"""Commands that need an open trace."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtGui import QGuiApplication

from satview.base.errors import UsageError
from satview.base.safe_text import visible_line
from satview.base.time import range_text
from satview.events.user_events import parse_rules
from satview.formats.registry import source_files
from satview.gui import dialogs
from satview.gui.comparison.what_if_dialog import AxisDialog, WhatIfDialog
from satview.gui.panels.details_panel import DetailsPanel
from satview.gui.panels.late_panel import LatePanel
from satview.gui.save_events import SaveEventsDialog
from satview.gui.widgets import LinePrompt, Option, QuickPick
from satview.session.commands import BACK, ON, PANELS, CommandRegistry, Needs
from satview.session.event_text import lane_path
from satview.session.lanes.lane_arrangement import GroupBy, Label, LaneArrangement, SortBy
from satview.session.navigation import SNAP_PX, snapped
from satview.session.trace_link import link_to
from satview.store.arguments import misfits
from satview.store.mark_file import Mark
from satview.timeline.lane_classes import LANE_CLASSES, LaneClass, Owner

if TYPE_CHECKING:
    from satview.gui.windows.command_window import CommandWindow
    from satview.gui.windows.workspace import Workspace
    from satview.session.filter_stack import FilterStack
    from satview.session.highlight import Selection
    from satview.session.open_trace import OpenTrace


Run = Callable[["Workspace"], object]


class _OfTrace:
    """Base class of commands that need an open trace; they look it up when they run, so each window binds them once."""

    def __init__(self, window: CommandWindow) -> None:
        self._window, self._settings = window, window.settings

    @property
    def workspace(self) -> Workspace:
        """The views of the open trace."""
        views = self._window.workspace
        assert views is not None, "the command is disabled while no trace is open"
        return views

    @property
    def _opened(self) -> OpenTrace:
        """The trace whose lanes last had the keyboard focus: the open trace, or the second trace of a comparison."""
        return self.workspace.active.opened

    def run(self, run: Run) -> None:
        """Call a function with the views of the open trace, and show its `UsageError` in the status bar."""
        try:
            run(self.workspace)
        except UsageError as error:
            self.workspace.report_failure(str(error))


# Commands that arrange lanes.


class LaneCommands(_OfTrace):
    """Commands that arrange lanes; settings store defaults for traces that are opened later."""

    def bind(self, registry: CommandRegistry) -> None:
        """Bind all commands of this class."""
        run = self.run
        for command_id, action in self._lane_commands():
            registry.bind(command_id, partial(run, action))
        registry.bind("lanes.pin", partial(run, lambda _: self._opened.lanes.pin(self._lane())), self._is_pinned)
        registry.bind("lanes.hide_empty", partial(run, self._hide_empty), lambda: self._opened.lanes.hides_empty)
        registry.bind("view.cpu_kinds", partial(run, self._show_kinds), self._shows_kinds)
        for sort in SortBy:
            is_checked = partial(lambda sort: self._arrangement.sort is sort, sort)
            arrange: Run = partial(lambda sort, views: views.active.opened.sort_lanes(sort), sort)
            registry.bind(f"lanes.sort_{sort.value}", partial(run, arrange), is_checked)
        for group in GroupBy:
            is_checked = partial(lambda group: self._arrangement.group is group, group)
            arrange = partial(lambda group, views: views.active.opened.group_lanes(group), group)
            arrange = _ask_groups if group is GroupBy.PATTERN else arrange
            registry.bind(f"lanes.group_{group.value}", partial(run, arrange), is_checked)
        registry.bind("lanes.user_file", partial(run, self._ask_user_file))
        registry.bind("lanes.no_user_file", partial(run, self._forget_user_file))
        registry.bind("lanes.symbols", partial(run, _ask_symbols))
        registry.bind("lanes.pidin", partial(run, _ask_names))
        registry.bind("lanes.user_rules", partial(run, self._ask_user_rules))
        for lane_class in LANE_CLASSES:
            shows = partial(lambda name: name in self._arrangement.classes, lane_class.name)
            registry.bind(f"lanes.show_{lane_class.name}", partial(run, partial(self._toggle_class, lane_class)), shows)
        for label in Label:
            is_on = partial(lambda label: label in self._arrangement.labels, label)
            registry.bind(f"view.label_{label.value}", partial(run, partial(self._toggle_label, label)), is_on)

    def _lane_commands(self) -> tuple[tuple[str, Run], ...]:
        return (
            ("lanes.fold", lambda views: views.active.opened.lanes.fold(self._lane())),
            ("lanes.unfold_all", lambda views: views.active.opened.lanes.unfold_all()),
            ("lanes.fold_all", lambda views: views.active.opened.lanes.fold_all()),
            ("lanes.hide", lambda views: views.active.opened.lanes.hide(self._lane())),
            ("lanes.show_all", lambda views: views.active.opened.lanes.show_all()),
            ("lanes.up", lambda views: views.active.opened.lanes.step(self._lane(), BACK)),
            ("lanes.down", lambda views: views.active.opened.lanes.step(self._lane(), ON)),
            ("lanes.taller", lambda views: views.active.area.change_lane_height(1)),
            ("lanes.shorter", lambda views: views.active.area.change_lane_height(-1)),
        )

    def _is_pinned(self) -> bool:
        lane = self._opened.selection.lane
        return lane is not None and self._opened.lanes.is_pinned(lane)

    def _hide_empty(self, views: Workspace) -> None:
        lanes = views.active.opened.lanes
        lanes.hide_empty(not lanes.hides_empty, views.active.opened.viewport.window)

    def _show_kinds(self, views: Workspace) -> None:
        shows = not self._shows_kinds()
        views.active.opened.lanes.show_kinds(shows)
        infos = views.active.opened.timeline.infos
        if shows and not any(infos[lane].cpu >= 0 for lane in views.active.area.view.stacks):
            views.report("When zoomed out, CPU lanes now show kinds of work; bars still show what runs")

    def _shows_kinds(self) -> bool:
        return self._opened.lanes.shows_kinds

    def _toggle_class(self, lane_class: LaneClass, views: Workspace) -> None:
        """Show or hide the lanes of an event class, here and in traces that are opened later."""
        opened, name = views.active.opened, lane_class.name
        if name not in self._arrangement.classes and lane_class not in opened.timeline.lane_classes():
            raise UsageError(f"the trace has no events for lanes of {lane_class.title}")
        opened.lanes.show_classes(opened.lanes.arrangement.classes ^ {name})
        self._settings.set("swimlane/lane_classes", ",".join(sorted(opened.lanes.arrangement.classes)))
        is_empty = opened.timeline.has_classes([name]) and not opened.timeline.lanes_of_class(name)
        if name in opened.lanes.arrangement.classes and not is_empty:
            self._report_place(lane_class, views)

    def _ask_user_file(self, views: Workspace) -> None:
        """Ask for a file with event descriptions, and apply it to the trace."""
        path = dialogs.ask_file(views.window(), "User events", "XML (*.xml);;All files (*)")
        if path is None:
            return
        opened = views.opened
        opened.describe(str(path))
        self._show_users(views)
        notes = [*opened.descriptions.notes, *misfits(opened.trace)]
        views.report(f"{len(opened.descriptions.events):,} kinds of events described by {visible_line(path.name)}"
                     + (f"; {notes[0]}" if notes else ""))  # fmt: skip

    def _forget_user_file(self, views: Workspace) -> None:
        opened = views.opened
        if not opened.user_file:
            raise UsageError("no file describes events of this trace")
        opened.describe("")

    def _ask_user_rules(self, views: Workspace) -> None:
        def take(text: str) -> None:
            parse_rules(text)
            self._settings.set("events/user_rules", text)
            self._show_users(views)

        before = self._settings.text("events/user_rules")
        LinePrompt("Rules for lanes of user events", "10 counter queue; 41..42 interval request; 7 moment", take,
                   views.window(), before)  # fmt: skip

    def _show_users(self, views: Workspace) -> None:
        """Show the lanes of user events, if there are any."""
        if not any(lane_class.name == "user" for lane_class in views.active.opened.timeline.lane_classes()):
            return
        lanes = views.active.opened.lanes
        lanes.show_classes(lanes.arrangement.classes | {"user"})
        self._settings.set("swimlane/lane_classes", ",".join(sorted(lanes.arrangement.classes)))

    def _report_place(self, lane_class: LaneClass, views: Workspace) -> None:
        """Show a message that tells where the new lanes are, because they may be outside the visible part."""
        where = {
            Owner.TRACE: "below the CPUs",
            Owner.PROCESS: "below the CPUs",
            Owner.CPU: "under their CPUs",
            Owner.THREAD: "under their threads; Shift+E unfolds the processes",
        }[lane_class.owner_kind]
        views.report(f"The {lane_class.title} lanes are {where}")

    def _toggle_label(self, label: Label, views: Workspace) -> None:
        """Switch a label of the active set of lanes on or off, here and in traces that are opened later."""
        lanes = views.active.opened.lanes
        lanes.set_labels(lanes.arrangement.labels ^ {label})
        self._settings.set("swimlane/labels", ",".join(on.value for on in Label if on in lanes.arrangement.labels))

    def _lane(self) -> int:
        lane = self._opened.selection.lane
        assert lane is not None, "the command needs a lane"
        return lane

    @property
    def _arrangement(self) -> LaneArrangement:
        return self._opened.lanes.arrangement


def _ask_groups(views: Workspace) -> None:
    LinePrompt(
        "Group lanes by process names",
        "Drivers: devb-*, io-*; HMI: hmi*",
        partial(views.active.opened.group_lanes, GroupBy.PATTERN),
        views.window(),
        views.active.opened.lanes.arrangement.patterns,
    )


# Commands for cursors, ranges, marks and notes.


class MarkCommands(_OfTrace):
    """Commands for cursors, ranges, marks and notes."""

    def bind(self, registry: CommandRegistry) -> None:
        """Bind all commands of this class."""
        for command_id, run in self._commands():
            registry.bind(command_id, partial(self.run, run))

    def _commands(self) -> tuple[tuple[str, Run], ...]:
        selection = self._selection
        return (
            ("marks.cursor_a", lambda _: selection().set_cursors(self._key_time(), selection().cursor_b)),
            ("marks.cursor_b", lambda _: selection().set_cursors(selection().cursor_a, self._key_time())),
            ("marks.clear_cursors", lambda _: selection().set_cursors(None, None)),
            ("marks.range", lambda views: selection().set_range(views.active.navigation.target())),
            ("marks.type_range", self._ask_range),
            ("marks.temporary", lambda _: self._add_mark("", is_temporary=True)),
            ("marks.bookmark", lambda _: self._add_mark("")),
            ("marks.note", self._ask_note),
            ("marks.next", lambda views: views.active.navigation.step_mark(ON)),
            ("marks.previous", lambda views: views.active.navigation.step_mark(BACK)),
            ("marks.remove", self._remove_mark),
        )

    def _selection(self) -> Selection:
        return self._opened.selection

    def _key_time(self) -> int:
        """Return the time on which a key acts, cycles: at the mouse, snapped; else as `Motion.anchor`."""
        active = self.workspace.active
        opened, cycles = active.opened, active.motion.anchor()
        if cycles != opened.selection.mouse_cycles:
            return cycles
        return snapped(opened, cycles, active.area.view.scale.length(SNAP_PX), opened.selection.mouse_lane)

    def _ask_range(self, views: Workspace) -> None:
        before, clock = views.active.opened.selection.time_range, views.active.opened.trace.clock

        def select(text: str) -> None:
            views.active.opened.viewport.reveal(views.active.navigation.select_range(text).start)

        LinePrompt(
            "Time range: from..to, or from..+length",
            "1.2s..1.5s   1.2s..+5ms   -5s..   25%..50%   #1200..#1300   06:19:01..06:19:02",
            select,
            self._window,
            range_text(before, clock) if before is not None else "",
        ).line.selectAll()  # typing replaces the text

    def _range_of_mark(self) -> tuple[int, int]:
        """Return start and end of a new mark, cycles: those of the selected range, or else `_key_time` for both."""
        time_range = self._selection().time_range
        return (time_range.start, time_range.end) if time_range is not None else (self._key_time(),) * 2

    def _add_mark(self, text: str, is_temporary: bool = False, span: tuple[int, int] | None = None) -> None:
        start, end = self._range_of_mark() if span is None else span
        self._opened.marks.add(Mark(start, end, text, is_temporary))

    def _ask_note(self, views: Workspace) -> None:
        span = self._range_of_mark()  # before the prompt opens, because the mouse may move while the user types
        marks = views.active.opened.marks
        existing = [mark for mark in marks if (mark.start_cycles, mark.end_cycles) == span and mark.text]

        def keep(text: str) -> None:
            for mark in existing:
                marks.remove(mark)
            self._add_mark(text, span=span)

        before = existing[-1].text if existing else ""
        LinePrompt("Note on the selected range or moment", "Text of the note", keep, self._window, before)

    def _remove_mark(self, views: Workspace) -> None:
        selected = views.active.opened.marks.selected
        if selected is None:
            raise UsageError("no mark is selected; N goes to the next one")
        views.active.opened.marks.remove(selected)


# Commands for a second trace, or several traces on one time axis.


class ComparisonCommands(_OfTrace):
    """Commands for a second trace, or several traces on one time axis."""

    def bind(self, registry: CommandRegistry) -> None:
        """Bind all commands of this class."""
        run = self.run
        registry.bind("file.compare", partial(run, self._open))
        registry.bind("file.together", partial(run, self._show_together))
        registry.bind("compare.linked", partial(run, _toggle_linked), self._is_linked)
        registry.bind("compare.starts", partial(run, lambda views: views.comparison.align_starts()))
        registry.bind("compare.cursors", partial(run, lambda views: views.comparison.align_cursors()))
        registry.bind("compare.selected", partial(run, lambda views: views.comparison.align_selected()))
        registry.bind("compare.by", partial(run, self._ask_alignment))
        registry.bind("compare.end", partial(run, lambda views: views.second_trace.close()))

    def _is_linked(self) -> bool:
        return self.workspace.comparison.is_linked

    def _open(self, views: Workspace) -> None:
        files = dialogs.ask_open(self._window, views.opened.trace.path.parent)
        if files and dialogs.may_open(self._window, files[0]):
            views.second_trace.open(files[0])
            views.report(f"Reading {files[0].name}")

    def _ask_alignment(self, views: Workspace) -> None:
        LinePrompt(
            "Align by the first event in each that matches, or by the offset of the second trace",
            'event == MSG_SENDV and name ~ "init"   12.5ms   -2s',
            views.comparison.align_by,
            self._window,
        )

    def _show_together(self, views: Workspace) -> None:
        dialog = AxisDialog(views.opened.trace, views.comparison, self._window)
        dialog.written.connect(self._open_axis)
        dialog.show()

    def _open_axis(self, path: object) -> None:
        assert isinstance(path, Path)
        self._window.session.open(path)


def _toggle_linked(views: Workspace) -> None:
    views.comparison.set_linked(not views.comparison.is_linked)


class TraceCommands(_OfTrace):
    """The other commands that need an open trace."""

    def bind(self, registry: CommandRegistry) -> None:
        """Bind all commands of this class and of the classes above."""
        for command_id, run in (*self._view_commands(), *self._go_commands(), *self._edit_commands()):
            registry.bind(command_id, partial(self.run, run))
        for commands in (MarkCommands, LaneCommands, ComparisonCommands):
            commands(self._window).bind(registry)
        for mode in ("off", "selection", "all"):
            registry.bind(f"view.arrows_{mode}", partial(self._set_arrows, mode), partial(self._has_arrows, mode))
        registry.bind("view.split", partial(self.run, self._split), lambda: self.workspace.is_split)
        registry.bind("view.another", self._window.another_requested.emit)
        registry.bind("view.linked", partial(self.run, self._toggle_linked), self._is_linked)
        for command_id, key in (("view.shares", "swimlane/shares"), ("view.legend", "swimlane/show_legend")):
            registry.bind(command_id, partial(self._toggle, key), partial(self._settings.flag, key))
        for row in PANELS:
            shows = partial(self._panel_shows, row.name)
            registry.bind(f"panels.{row.name}", partial(self._toggle_panel, row.name), shows)
        registry.bind("panels.bottom", partial(self.run, lambda views: views.toggle_bottom()))
        registry.bind("panels.reset", partial(self.run, lambda views: views.arrange()))

    def is_met(self, needs: Needs) -> bool:
        """Return whether the thing exists that a command needs, such as a selected event."""
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
            ("go.why", self._show_why),
            ("go.path", self._path),
            ("go.late", self._show_late),
            ("go.what_if", self._what_if),
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
        def filters() -> FilterStack:
            return self._opened.filters

        return (
            ("edit.undo", self._undo),
            ("edit.redo", self._redo),
            ("edit.copy", self._copy),
            ("edit.copy_link", _copy_link),
            ("edit.find", lambda views: views.find_bar.start()),
            ("edit.find_next", lambda views: views.active.navigation.step_hit(ON)),
            ("edit.find_previous", lambda views: views.active.navigation.step_hit(BACK)),
            ("edit.clear", self._clear),
            ("filter.only_thread", lambda _: filters().only_threads([self._thread()], "only this thread")),
            ("filter.hide_thread", lambda _: filters().show_threads([self._thread()], False, "hide this thread")),
            ("filter.only_event", lambda _: filters().only_codes([self._code()], "only this kind of event")),
            ("filter.hide_event", lambda _: filters().show_codes([self._code()], False, "hide this kind of event")),
            ("filter.show_all", lambda _: filters().show_all()),
            ("file.save_events", lambda views: SaveEventsDialog(views.active.opened, self._window).open()),
            ("file.export_picture", self._export_picture),
        )

    def _page(self) -> int:
        return max(1, len(self.workspace.active.area.view.visible_rows()) - 1)

    def _thread(self) -> int:
        """Return the thread's row of the selected interval, lane or event; raise `UsageError` if none is known."""
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

    def _show_why(self, views: Workspace) -> None:
        views.active.navigation.request_why(self._thread())
        views.show_panel("why")

    def _path(self, views: Workspace) -> None:
        views.active.navigation.request_path(self._thread())
        views.show_panel("path")

    def _show_late(self, views: Workspace) -> None:
        if views.active.opened.trace is not views.opened.trace:
            raise UsageError("the panel Late is about the upper trace")
        panel = views.panel(LatePanel)
        if not panel.explain_selected():
            panel.explain(self._thread(), views.active.navigation.moment)
        views.show_panel("late")

    def _what_if(self, views: Workspace) -> None:
        if views.active.opened.trace is not views.opened.trace:
            raise UsageError("predictions are made from the upper trace")
        change = "cpus="
        with suppress(UsageError):  # raised if no thread is selected
            change = f"{views.opened.trace.thread_name(self._thread())}:priority="
        WhatIfDialog(views.opened, change, views.second_trace, views).show()

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
        text = next(filter(None, (panel.copied_text() for panel in views.panels.created.values())), "")
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
            views.active.opened.why.forget()

    def _split(self, views: Workspace) -> None:
        views.toggle_split()
        if views.is_split:
            self._link(views, True)
            views.report("Linked: both views show the same range; Ctrl+Shift+L unlinks them")

    def _link(self, views: Workspace, links: bool) -> None:
        for view in views.views():
            change = self._window.shared.view_links.add if links else self._window.shared.view_links.remove
            change(view)

    def _toggle_linked(self, views: Workspace) -> None:
        links = not self._is_linked()
        self._link(views, links)
        views.report("Linked with the other views of this trace" if links else "This window is no longer linked")

    def _is_linked(self) -> bool:
        return all(self._window.shared.view_links.has(view) for view in self.workspace.views())

    def _toggle(self, key: str) -> None:
        self._settings.set(key, not self._settings.flag(key))

    def _set_arrows(self, mode: str) -> None:
        # One key toggles between all arrows and the arrows of the selection.
        is_back = mode == "all" and self._has_arrows(mode)
        self._settings.set("swimlane/arrows", "selection" if is_back else mode)

    def _has_arrows(self, mode: str) -> bool:
        return self._settings.text("swimlane/arrows") == mode

    def _toggle_panel(self, name: str) -> None:
        self.workspace.toggle_panel(name)

    def _panel_shows(self, name: str) -> bool:
        return self.workspace.panel_shows(name)

    def _ask_time(self, views: Workspace) -> None:
        LinePrompt(
            "Go to a time, a range, cycles or an event number",
            "1.25s   2s..3s   -5s..   25%   06:19:01   0x1f00c   #1200",
            views.active.navigation.show_position,
            self._window,
        )

    def _ask_lane(self, views: Workspace) -> None:
        timeline, show = views.active.opened.timeline, views.active.navigation.show_lane
        options = [Option(lane_path(timeline, info.index), info.subtitle, partial(show, info.index))
                   for info in timeline.infos]  # fmt: skip
        QuickPick(options, "Process, thread, CPU or interrupts", "No lane matches", self._window)

    def _export_picture(self, views: Workspace) -> None:
        suggestion = Path(f"{views.active.opened.trace.path.stem}.png")
        path = dialogs.ask_save(self._window, suggestion, "PNG (*.png);;SVG (*.svg);;PDF (*.pdf)")
        if path is not None:
            views.active.area.save_picture(path, source_files(views.active.opened.trace.path))
            views.report(f"Saved {path.name}")


def _copy_link(views: Workspace) -> None:
    QGuiApplication.clipboard().setText(link_to(views.active.opened))
    views.report("Copied a link to this view; File > Open link or satview 'LINK' opens it")


def _ask_symbols(views: Workspace) -> None:
    folder = dialogs.ask_folder(views.window(), "Folder with the target's programs")
    if folder is not None:
        views.opened.name_addresses(str(folder))


def _ask_names(views: Workspace) -> None:
    path = dialogs.ask_file(views.window(), "Text that pidin printed", "Text (*.txt *.log);;All files (*)")
    if path is not None:
        views.opened.name_processes(str(path))
