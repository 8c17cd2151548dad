"""What the commands do that need no open trace: files, windows, themes, help."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtGui import QGuiApplication, QKeySequence

from satview.base.errors import UsageError
from satview.base.resources import sample_trace
from satview.gui import dialogs
from satview.gui.quick_pick import LinePrompt, Option, QuickPick
from satview.session.commands import CommandRegistry
from satview.session.settings import Settings
from satview.session.trace_link import parse_link

if TYPE_CHECKING:
    from satview.gui.windows.command_window import CommandWindow


class WindowCommands:
    """Binds the commands of one window."""

    def __init__(self, window: CommandWindow, settings: Settings) -> None:
        self._window = window
        self._settings = settings

    def bind(self, registry: CommandRegistry) -> None:
        """Bind all of them."""
        window = self._window
        registry.bind("file.open", self._open)
        registry.bind("file.open_link", self._open_link)
        registry.bind("file.sample", self._open_sample)
        registry.bind("file.trends", self._open_trends)
        registry.bind("file.new_window", window.window_requested.emit)
        registry.bind("file.reload", self._reload)
        registry.bind("file.info", self._info)
        registry.bind("file.settings", self._show_settings)
        registry.bind("file.state_looks", self._show_state_looks)
        registry.bind("file.keys", self._change_keys)
        registry.bind("file.close", self._close)
        registry.bind("file.quit", window.quit_requested.emit)
        for option in ("system", "light", "dark"):
            registry.bind(
                f"view.theme_{option}",
                partial(self._settings.set, "window/theme", option),
                partial(self._is_theme, option),
            )
        registry.bind("help.palette", self._palette)
        registry.bind("help.keys", self._keys)
        registry.bind("help.plugins", self._plugins)
        registry.bind("help.about", lambda: dialogs.about(window))

    def _close(self) -> None:
        self._window.close()

    def _open(self) -> None:
        recent = self._window.recent.files()
        files = dialogs.ask_open(self._window, recent[0].parent if recent else None, self._window.link_requested.emit)
        if files:
            self._window.files_requested.emit(files)

    def _open_link(self) -> None:
        copied = QGuiApplication.clipboard().text().strip()
        LinePrompt(
            "Open a link",
            "/traces/boot.kev#t=1.2s..1.5s&sel=1200",
            self._take_link,
            self._window,
            copied if "#" in copied and "\n" not in copied else "",
        )

    def _take_link(self, text: str) -> None:
        link = parse_link(text)
        if not link.path.is_file():
            raise UsageError(f"there is no file {str(link.path)[:200]!r}")
        self._window.link_requested.emit(link)

    def _open_sample(self) -> None:
        self._window.files_requested.emit([sample_trace()])

    def _open_trends(self) -> None:
        folder = dialogs.ask_folder(self._window, "Data set of traces")
        if folder is None:
            return
        from satview.fleet.layout import is_dataset  # brings the tables

        if not is_dataset(folder):
            dialogs.report(self._window, "No data set of traces",
                         f"{folder.name} is no data set of traces. Make one on the command line:\n\n"
                         f"satview export {folder} -o fleet")  # fmt: skip
            return
        self._window.files_requested.emit([folder])

    def _reload(self) -> None:
        session = self._window.session
        if session.path is not None:
            session.open(session.path, is_followed=session.follow is not None)

    def _info(self) -> None:
        from satview.gui.help_dialogs import InfoDialog  # on first use

        opened = self._window.session.opened
        if opened is not None:
            InfoDialog(opened.trace, self._window).show()

    def _show_settings(self) -> None:
        from satview.gui.settings_dialog import SettingsDialog  # on first use

        SettingsDialog(self._settings, self._window).show()

    def _show_state_looks(self) -> None:
        from satview.gui.settings_dialog import StateLooksDialog  # on first use

        StateLooksDialog(self._settings, self._window).show()

    def _change_keys(self) -> None:
        from satview.gui.help_dialogs import KeysDialog  # on first use

        KeysDialog(self._window.shared.keys, self._window).show()

    def _is_theme(self, option: str) -> bool:
        return self._settings.text("window/theme") == option

    def _palette(self) -> None:
        actions = self._window.actions_by_id
        actions.refresh()
        options = []
        for binding in self._window.registry:
            action = actions.by_id[binding.command.id]
            if action.isEnabled() and binding.command.id != "help.palette":
                area = binding.command.menu.value.replace("&", "")
                keys = ", ".join(key.toString(QKeySequence.SequenceFormat.NativeText) for key in action.shortcuts())
                options.append(Option(f"{area}: {binding.command.whole_title}", keys, action.trigger))
        QuickPick(options, "Command", "No command matches", self._window)

    def _plugins(self) -> None:
        from satview.gui.help_dialogs import PluginsDialog  # on first use

        PluginsDialog(self._window).show()

    def _keys(self) -> None:
        from satview.gui.windows.key_overlay import KeyOverlay  # on first use

        KeyOverlay(self._window.registry, self._window.actions_by_id, self._window.theme, self._window)
