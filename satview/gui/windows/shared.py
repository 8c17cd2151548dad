"""What all windows of the program have in common."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from satview.session.loading.recent_files import RecentFiles
from satview.session.settings import Settings
from satview.session.state_files import StateFiles

if TYPE_CHECKING:
    from satview.session.key_bindings import KeyBindings
    from satview.session.view_links import ViewLinks


class Shared:
    """One for the program.

    Attributes:
        settings: Those of the user.
        recent: Files opened last.
        files: Where what windows show of traces is stored; nowhere unless it is said.
    """

    def __init__(
        self, settings: Settings, recent: RecentFiles, files: StateFiles | None = None, *, has_users_keys: bool = False
    ) -> None:
        self.settings = settings
        self.recent = recent
        self.files = StateFiles() if files is None else files
        self._has_users_keys = has_users_keys

    @cached_property
    def keys(self) -> KeyBindings:
        """Which keys run which commands."""
        from satview.session.key_bindings import KeyBindings, keys_file  # brings all commands: once a window shows

        return KeyBindings(keys_file() if self._has_users_keys else None)

    @cached_property
    def view_links(self) -> ViewLinks:
        """Which views show the same."""
        from satview.session.view_links import ViewLinks  # once a window shows

        return ViewLinks()
