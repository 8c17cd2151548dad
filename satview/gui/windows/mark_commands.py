"""Commands of cursors, ranges, marks and notes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from satview.base.errors import UsageError
from satview.gui.quick_pick import LinePrompt
from satview.session.commands import CommandRegistry
from satview.session.step import BACK, ON

if TYPE_CHECKING:
    from satview.gui.windows.command_window import CommandWindow
    from satview.gui.windows.workspace import Workspace

Run = Callable[["Workspace"], object]


class MarkCommands:
    """Binds the commands.

    Args:
        window: Owner of the prompts.
        run: Runs a function with the views of the open trace, and shows why it cannot.
        workspace: Returns the views of the open trace.
    """

    def __init__(self, window: CommandWindow, run: Callable[[Run], None], workspace: Callable[[], Workspace]) -> None:
        self._window, self._run, self._workspace = window, run, workspace

    def bind(self, registry: CommandRegistry) -> None:
        """Bind all of them."""
        for command_id, run in self._commands():
            registry.bind(command_id, partial(self._run, run))

    def _commands(self) -> tuple[tuple[str, Run], ...]:
        return (
            (
                "marks.cursor_a",
                lambda views: views.active.opened.selection.set_cursors(
                    self._here(), views.active.opened.selection.cursor_b
                ),
            ),
            (
                "marks.cursor_b",
                lambda views: views.active.opened.selection.set_cursors(
                    views.active.opened.selection.cursor_a, self._here()
                ),
            ),
            ("marks.clear_cursors", lambda views: views.active.opened.selection.set_cursors(None, None)),
            ("marks.range", lambda views: views.active.opened.selection.set_range(views.active.navigation.target())),
            ("marks.type_range", self._ask_range),
            ("marks.temporary", lambda _: self._add_mark("", is_temporary=True)),
            ("marks.bookmark", lambda _: self._add_mark("")),
            ("marks.note", self._ask_note),
            ("marks.next", lambda views: views.active.navigation.step_mark(ON)),
            ("marks.previous", lambda views: views.active.navigation.step_mark(BACK)),
            ("marks.remove", self._remove_mark),
        )

    def _here(self) -> int:
        """Return the moment that a key is about: an edge or event at the mouse, else the selection, else the middle."""
        from satview.session.snapping import SNAP_PX, snapped  # with the trace, not before: brings numpy

        opened, cycles = self._workspace().active.opened, self._workspace().active.motion.anchor()
        if cycles != opened.selection.mouse_cycles:
            return cycles
        return snapped(
            opened, cycles, self._workspace().active.area.view.scale.length(SNAP_PX), opened.selection.mouse_lane
        )

    def _ask_range(self, views: Workspace) -> None:
        from satview.base.time_text import range_text  # with the trace, not before: brings numpy

        before, clock = views.active.opened.selection.time_range, views.active.opened.trace.clock

        def select(text: str) -> None:
            views.active.opened.viewport.reveal(views.active.navigation.select_range(text).start)

        LinePrompt(
            "Range of time: from..to, or from..+length",
            "1.2s..1.5s   1.2s..+5ms   -5s..   25%..50%   #1200..#1300   06:19:01..06:19:02",
            select,
            self._window,
            range_text(before, clock) if before is not None else "",
        )

    def _range_of_mark(self) -> tuple[int, int]:
        """Return start and end of what a mark is set on: the selected range, else the moment at the mouse."""
        time_range = self._workspace().active.opened.selection.time_range
        return (time_range.start, time_range.end) if time_range is not None else (self._here(),) * 2

    def _add_mark(self, text: str, is_temporary: bool = False, span: tuple[int, int] | None = None) -> None:
        from satview.store.mark_file import Mark  # with the trace, not before: brings the time types and numpy

        start, end = self._range_of_mark() if span is None else span
        self._workspace().active.opened.marks.add(Mark(start, end, text, is_temporary))

    def _ask_note(self, views: Workspace) -> None:
        span = self._range_of_mark()  # now: while somebody types, the mouse may be anywhere
        here = [
            mark for mark in views.active.opened.marks if (mark.start_cycles, mark.end_cycles) == span and mark.text
        ]

        def keep(text: str) -> None:
            for mark in here:
                views.active.opened.marks.remove(mark)
            self._add_mark(text, span=span)

        LinePrompt(
            "Note on the selected range or moment",
            "What is to be remembered?",
            keep,
            self._window,
            here[-1].text if here else "",
        )

    def _remove_mark(self, views: Workspace) -> None:
        selected = views.active.opened.marks.selected
        if selected is None:
            raise UsageError("no mark is selected; N goes to the next one")
        views.active.opened.marks.remove(selected)
