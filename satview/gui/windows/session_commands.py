"""What the commands do that are about saved sessions."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from satview.base.errors import SatviewError
from satview.gui import dialogs
from satview.gui.quick_pick import Option, QuickPick
from satview.gui.settings_dialog import SaveSessionDialog
from satview.gui.windows.workspace_keeper import put_session, taken
from satview.session.commands import CommandRegistry
from satview.session.state_files import SUFFIX

if TYPE_CHECKING:
    from satview.gui.windows.command_window import CommandWindow

_PATTERN = f"Sessions (*{SUFFIX})"


class SessionCommands:
    """Binds the commands of one window."""

    def __init__(self, window: CommandWindow) -> None:
        self._window = window

    def bind(self, registry: CommandRegistry) -> None:
        """Bind all of them."""
        registry.bind("file.save_session", self._save)
        registry.bind("file.use_session", self._choose)
        registry.bind("file.remove_session", self._choose_to_remove)

    def _save(self) -> None:
        window = self._window
        files = window.shared.files
        if window.workspace is not None:
            SaveSessionDialog(taken(window.workspace), files.names(), files.save, window).show()

    def _choose(self) -> None:
        options = [Option(name, "session", partial(self._use, name)) for name in self._window.shared.files.names()]
        options.append(Option("From a file\N{HORIZONTAL ELLIPSIS}", "", self._use_file))
        QuickPick(options, "Session", "No session has that name", self._window)

    def _choose_to_remove(self) -> None:
        options = [Option(name, "session", partial(self._remove, name)) for name in self._window.shared.files.names()]
        QuickPick(options, "Session to remove", "No session has that name", self._window)

    def _use(self, name: str) -> None:
        views = self._window.workspace
        try:
            use_session(self._window, name)
        except SatviewError as error:
            if views is not None:
                views.report_failure(str(error))
        else:
            if views is not None:
                views.report(
                    f"Session {Path(name).stem if name.endswith(SUFFIX) else name}; undo restores lanes and filter"
                )

    def _use_file(self) -> None:
        path = dialogs.ask_file(self._window, "Use session", _PATTERN)
        if path is not None:
            self._use(str(path))

    def _remove(self, name: str) -> None:
        views = self._window.workspace
        try:
            self._window.shared.files.remove(name)
        except SatviewError as error:
            if views is not None:
                views.report_failure(str(error))


def use_session(window: CommandWindow, name: str) -> None:
    """Let the open trace of a window look as a saved session says.

    Args:
        window: The window.
        name: Of the session, or of its file.

    Raises:
        UsageError: There is none, or it cannot be used.
    """
    if window.workspace is not None:
        put_session(window.workspace, window.shared.files.load(name))
