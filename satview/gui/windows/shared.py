"""What all windows of the program have in common."""

from __future__ import annotations

from dataclasses import field

from satview.base.dataclass import dataclass
from satview.session.key_bindings import KeyBindings
from satview.session.loading.recent_files import RecentFiles
from satview.session.settings import Settings
from satview.session.state_files import StateFiles
from satview.session.view_links import ViewLinks


@dataclass(frozen=True, slots=True)
class Shared:
    """One for the program.

    Attributes:
        settings: Those of the user.
        recent: Files opened last.
        files: Where what windows show of traces is stored; nowhere unless it is said.
        keys: Which keys run which commands.
        view_links: Which views show the same.
    """

    settings: Settings
    recent: RecentFiles
    files: StateFiles = field(default_factory=StateFiles)
    keys: KeyBindings = field(default_factory=lambda: KeyBindings(None))
    view_links: ViewLinks = field(default_factory=ViewLinks)
