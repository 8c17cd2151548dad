"""What the commands do that need an open trace."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtGui import QGuiApplication

from satview.base.errors import UsageError
from satview.gui import dialogs
from satview.gui.quick_pick import Choice, LinePrompt, QuickPick
from satview.session.commands import CommandRegistry, Needs
from satview.session.settings import Settings
from satview.session.step import BACK, ON

if TYPE_CHECKING:
    from satview.gui.main_window import MainWindow
    from satview.gui.workspace import Workspace
    from satview.session.open_trace import OpenTrace


class TraceCommands:
    """Binds the commands; each looks up what is open when it runs, so one binding serves one window for its life."""

    def __init__(self, window: MainWindow, settings: Settings) -> None:
        self._window = window
        self._settings = settings

    def bind(self, registry: CommandRegistry) -> None:
        """Bind all of them."""
        for command_id, run in (*self._view_commands(), *self._go_commands(), *self._lane_commands(), *self._mark_commands(),
                                *self._edit_commands()):
            registry.bind(command_id, partial(self._run, run))
        registry.bind("lanes.pin", partial(self._run, self._pin), self._is_pinned)
        registry.bind("lanes.hide_empty", partial(self._run, self._hide_empty), self._hides_empty)
        registry.bind("view.legend", self._toggle_legend, partial(self._settings.flag, "swimlane/show_legend"))
        for name in ("events", "details", "filter", "problems"):
            registry.bind(f"panels.{name}", partial(self._toggle_panel, name), partial(self._panel_shows, name))
        registry.bind("panels.bottom", self._toggle_bottom)
        registry.bind("panels.reset", self._arrange)

    def is_met(self, needs: Needs) -> bool:
        """Tell whether what a command needs is there."""
        work = self._window.workspace
        if needs is Needs.NOTHING:
            return True
        if work is None:
            return False
        selection = work.opened.selection
        return {
            Needs.TRACE: True,
            Needs.EVENT: selection.event is not None,
            Needs.SELECTION: not selection.is_empty,
            Needs.LANE: selection.lane is not None,
            Needs.RANGE: selection.time_range is not None,
            Needs.HITS: len(work.opened.search.hits) > 0,
        }[needs]

    @property
    def _work(self) -> Workspace:
        work = self._window.workspace
        assert work is not None, "the command is disabled while no trace is open"
        return work

    @property
    def _opened(self) -> OpenTrace:
        return self._work.opened

    def _run(self, run: Callable[[], None]) -> None:
        try:
            run()
        except UsageError as error:
            text = str(error)
            self._work.tell(text[:1].upper() + text[1:])

    def _view_commands(self) -> tuple[tuple[str, Callable[[], None]], ...]:
        return (
            ("view.zoom_in", lambda: self._work.motion.zoom(1)),
            ("view.zoom_out", lambda: self._work.motion.zoom(-1)),
            ("view.pan_left", lambda: self._work.motion.pan(BACK)),
            ("view.pan_right", lambda: self._work.motion.pan(ON)),
            ("view.page_left", lambda: self._opened.viewport.pan(BACK)),
            ("view.page_right", lambda: self._opened.viewport.pan(ON)),
            ("view.focus", lambda: self._work.navigation.focus()),
            ("view.zoom_range", self._zoom_range),
            ("view.zoom_all", lambda: self._opened.viewport.show_all()),
            ("view.back", lambda: self._opened.viewport.back()),
            ("view.forward", lambda: self._opened.viewport.forward()),
        )

    def _go_commands(self) -> tuple[tuple[str, Callable[[], None]], ...]:
        return (
            ("go.previous_edge", lambda: self._work.navigation.step_edge(BACK)),
            ("go.next_edge", lambda: self._work.navigation.step_edge(ON)),
            ("go.extend_left", lambda: self._work.navigation.step_edge(BACK, extend=True)),
            ("go.extend_right", lambda: self._work.navigation.step_edge(ON, extend=True)),
            ("go.previous_event", lambda: self._work.navigation.step_event(BACK)),
            ("go.next_event", lambda: self._work.navigation.step_event(ON)),
            ("go.partner", lambda: self._work.navigation.show_partner()),
            ("go.lane_up", lambda: self._work.navigation.step_lane(lambda place, _: place - 1)),
            ("go.lane_down", lambda: self._work.navigation.step_lane(lambda place, _: place + 1)),
            ("go.page_up", lambda: self._work.navigation.step_lane(lambda place, _: place - self._page())),
            ("go.page_down", lambda: self._work.navigation.step_lane(lambda place, _: place + self._page())),
            ("go.first_lane", lambda: self._work.navigation.step_lane(lambda _place, _count: 0)),
            ("go.last_lane", lambda: self._work.navigation.step_lane(lambda _, count: count - 1)),
            ("go.start", lambda: self._opened.viewport.pan(-1e6)),
            ("go.end", lambda: self._opened.viewport.pan(1e6)),
            ("go.to_time", self._ask_time),
            ("go.to_lane", self._ask_lane),
        )

    def _lane_commands(self) -> tuple[tuple[str, Callable[[], None]], ...]:
        return (
            ("lanes.fold", lambda: self._opened.lanes.fold(self._lane())),
            ("lanes.unfold_all", lambda: self._opened.lanes.unfold_all()),
            ("lanes.fold_all", lambda: self._opened.lanes.fold_all()),
            ("lanes.hide", lambda: self._opened.lanes.hide(self._lane())),
            ("lanes.show_all", lambda: self._opened.lanes.show_all()),
            ("lanes.taller", lambda: self._work.area.change_lane_height(1)),
            ("lanes.shorter", lambda: self._work.area.change_lane_height(-1)),
        )

    def _mark_commands(self) -> tuple[tuple[str, Callable[[], None]], ...]:
        return (
            ("marks.cursor_a", lambda: self._opened.selection.set_cursors(self._here(), self._opened.selection.cursor_b)),
            ("marks.cursor_b", lambda: self._opened.selection.set_cursors(self._opened.selection.cursor_a, self._here())),
            ("marks.clear_cursors", lambda: self._opened.selection.set_cursors(None, None)),
            ("marks.range", lambda: self._opened.selection.set_range(self._work.navigation.target())),
            ("marks.temporary", lambda: self._add_mark("", is_temporary=True)),
            ("marks.bookmark", lambda: self._add_mark("")),
            ("marks.note", self._ask_note),
            ("marks.next", lambda: self._work.navigation.step_mark(ON)),
            ("marks.previous", lambda: self._work.navigation.step_mark(BACK)),
            ("marks.remove", self._remove_mark),
        )

    def _edit_commands(self) -> tuple[tuple[str, Callable[[], None]], ...]:
        return (
            ("edit.undo", self._undo),
            ("edit.redo", self._redo),
            ("edit.copy", self._copy),
            ("edit.find", lambda: self._work.find_bar.start()),
            ("edit.find_next", lambda: self._work.navigation.step_hit(ON)),
            ("edit.find_previous", lambda: self._work.navigation.step_hit(BACK)),
            ("edit.clear", self._clear),
            ("filter.only_thread", lambda: self._opened.filters.only_threads([self._thread()], "only this thread")),
            ("filter.hide_thread", lambda: self._opened.filters.show_threads([self._thread()], False, "hide this thread")),
            ("filter.only_event", lambda: self._opened.filters.only_codes([self._code()], "only this kind of event")),
            ("filter.hide_event", lambda: self._opened.filters.show_codes([self._code()], False, "hide this kind of event")),
            ("filter.show_all", lambda: self._opened.filters.show_all()),
            ("file.export_picture", self._export_picture),
        )

    def _page(self) -> int:
        return max(1, len(self._work.area.view.visible_rows()) - 1)

    def _lane(self) -> int:
        lane = self._opened.selection.lane
        assert lane is not None, "the command needs a lane"
        return lane

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

    def _here(self) -> int:
        return self._work.motion.anchor()

    def _zoom_range(self) -> None:
        time_range = self._opened.selection.time_range
        if time_range is not None:
            self._opened.viewport.jump(time_range)

    def _undo(self) -> None:
        title = self._opened.edits.undo_title
        self._opened.edits.undo()
        self._work.tell(f"Undone: {title}" if title else "Nothing to undo")

    def _redo(self) -> None:
        title = self._opened.edits.redo_title
        self._opened.edits.redo()
        self._work.tell(f"Done again: {title}" if title else "Nothing to do again")

    def _copy(self) -> None:
        work = self._work
        text = work.events.selected_text() if work.events.table.hasFocus() else work.details.selected_or_all()
        QGuiApplication.clipboard().setText(text)
        work.tell("Copied")

    def _clear(self) -> None:
        selection = self._opened.selection
        if selection.time_range is not None:
            selection.set_range(None)
        else:
            selection.select(None, None, None)

    def _pin(self) -> None:
        self._opened.lanes.pin(self._lane())

    def _is_pinned(self) -> bool:
        lane = self._opened.selection.lane
        return lane is not None and self._opened.lanes.is_pinned(lane)

    def _hide_empty(self) -> None:
        lanes = self._opened.lanes
        lanes.hide_empty(not lanes.hides_empty, self._opened.viewport.window)

    def _hides_empty(self) -> bool:
        return self._opened.lanes.hides_empty

    def _toggle_legend(self) -> None:
        self._settings.set("swimlane/show_legend", not self._settings.flag("swimlane/show_legend"))

    def _toggle_panel(self, name: str) -> None:
        self._work.toggle_panel(name)

    def _panel_shows(self, name: str) -> bool:
        return self._work.panel_shows(name)

    def _toggle_bottom(self) -> None:
        self._work.toggle_bottom()

    def _arrange(self) -> None:
        self._work.arrange()

    def _ask_time(self) -> None:
        LinePrompt("Go to time, cycles or event number", "1.25s   350us   0x1f00c   #1200", self._work.navigation.show_place,
                   self._window)

    def _ask_lane(self) -> None:
        infos = self._opened.timeline.infos
        choices = []
        for info in infos:
            parent = f"{infos[info.parent].title} \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} " if info.parent >= 0 else ""
            choices.append(Choice(f"{parent}{info.title}", info.subtitle if info.subtitle != info.title else "",
                                  partial(self._work.navigation.show_lane, info.index)))
        QuickPick(choices, "Process, thread, CPU or interrupts", self._window)

    def _add_mark(self, text: str, is_temporary: bool = False) -> None:
        from satview.session.marks import Mark  # with the trace, not before: brings the time types and numpy

        time_range = self._opened.selection.time_range
        start, end = (time_range.start, time_range.end) if time_range is not None else (self._here(), self._here())
        self._opened.marks.add(Mark(start, end, text, is_temporary))

    def _ask_note(self) -> None:
        selected = self._opened.marks.selected
        LinePrompt("Note on the selected range or moment", "What is to be remembered?", self._add_mark, self._window,
                   selected.text if selected else "")

    def _remove_mark(self) -> None:
        selected = self._opened.marks.selected
        if selected is None:
            raise UsageError("no mark is selected; N goes to the next one")
        self._opened.marks.remove(selected)

    def _export_picture(self) -> None:
        suggestion = self._opened.trace.path.with_suffix(".png")
        path = dialogs.ask_save(self._window, suggestion, "PNG (*.png)")
        if path is not None:
            saved = self._work.area.picture().save(str(path))
            self._work.tell(f"Saved {path.name}" if saved else f"{path} could not be written")
