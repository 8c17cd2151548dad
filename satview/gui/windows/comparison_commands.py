"""What the commands do that are about a second trace, or about several on one axis."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from satview.gui import dialogs
from satview.gui.quick_pick import LinePrompt
from satview.session.commands import CommandRegistry

if TYPE_CHECKING:
    from satview.gui.windows.command_window import CommandWindow
    from satview.gui.windows.workspace import Workspace

Run = Callable[["Workspace"], object]


class ComparisonCommands:
    """Binds the commands of one window.

    Args:
        window: The window.
        run: Carries something out on the open trace, and says why it cannot be.
        workspace: Returns the views of it.
    """

    def __init__(self, window: CommandWindow, run: Callable[[Run], None], workspace: Callable[[], Workspace]) -> None:
        self._window, self._run, self._workspace = window, run, workspace

    def bind(self, registry: CommandRegistry) -> None:
        """Bind all of them."""
        run = self._run
        registry.bind("file.compare", partial(run, self._open))
        registry.bind("file.together", partial(run, self._together))
        registry.bind("compare.linked", partial(run, _toggle_linked), self._is_linked)
        registry.bind("compare.starts", partial(run, lambda views: views.comparison.align_starts()))
        registry.bind("compare.cursors", partial(run, lambda views: views.comparison.align_cursors()))
        registry.bind("compare.selected", partial(run, lambda views: views.comparison.align_selected()))
        registry.bind("compare.by", partial(run, self._ask_alignment))
        registry.bind("compare.end", partial(run, lambda views: views.beside.close()))

    def _is_linked(self) -> bool:
        return self._workspace().comparison.is_linked

    def _open(self, views: Workspace) -> None:
        files = dialogs.ask_open(self._window, views.opened.trace.path.parent)
        if files and dialogs.may_open(self._window, files[0]):
            views.beside.open(files[0])
            views.report(f"Reading {files[0].name}")

    def _ask_alignment(self, views: Workspace) -> None:
        LinePrompt(
            "Align by the first event of each that fits, or begin the second so long after the first",
            'event == MSG_SENDV and name ~ "init"   12.5ms   -2s',
            views.comparison.align_by,
            self._window,
        )

    def _together(self, views: Workspace) -> None:
        from satview.gui.comparison.axis_dialog import AxisDialog  # on first use: brings what reads and aligns files

        dialog = AxisDialog(views.opened.trace, views.comparison, self._window)
        dialog.made.connect(self._open_axis)
        dialog.show()

    def _open_axis(self, path: object) -> None:
        assert isinstance(path, Path)
        self._window.session.open(path)


def _toggle_linked(views: Workspace) -> None:
    views.comparison.set_linked(not views.comparison.is_linked)
