"""Which keys run which commands: those of the table, and those that the user has set instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import QObject, Signal

from satview.base.checked_json import Fields
from satview.base.shared_file import DamagedFileError
from satview.session.command_table import COMMANDS
from satview.session.commands import Command
from satview.session.stored_json import StoredJson

_KEY: Final = "satview_keys"
_VERSION: Final = 1
_BYTES_MAX: Final = 1 << 20
_KEYS_MAX: Final = 8
_TEXT_MAX: Final = 80


class KeyBindings(QObject):
    """The keys in force, in all windows. One key runs one command: a key that is given to one is taken from others.

    Attributes:
        file: Where the user's keys are stored; says whether that worked.

    Signals:
        changed: Some command has other keys.
    """

    changed = Signal()

    def __init__(self, path: Path | None, parent: QObject | None = None) -> None:
        """Read the file.

        Args:
            path: Where the keys are stored; None keeps them in memory only.
            parent: Owner.
        """
        super().__init__(parent)
        self.file = StoredJson(path, _checked, _BYTES_MAX, self, makes_folder=True)
        self._selected = _keys_in(self.file.load())

    def keys_of(self, command: Command) -> tuple[str, ...]:
        """Return the keys of a command, in Qt's portable spelling; the first one shows in menus."""
        if command.id in self._selected:
            return self._selected[command.id]
        taken = {key for keys in self._selected.values() for key in keys}
        return tuple(key for key in command.keys if key not in taken)

    def is_changed(self, command: Command) -> bool:
        """Return whether the user gave a command other keys than it has in the table."""
        return self.keys_of(command) != command.keys

    def owner_of(self, key: str) -> Command | None:
        """Return the command that a key runs, None if it runs none."""
        return next((command for command in COMMANDS if key in self.keys_of(command)), None)

    def set_keys(self, command: Command, keys: tuple[str, ...]) -> None:
        """Give a command other keys; whatever they ran before has them no longer."""
        keys = tuple(dict.fromkeys(keys))[:_KEYS_MAX]
        for other in COMMANDS:
            had = self.keys_of(other)
            if other is not command and set(had).intersection(keys):
                self._put(other, tuple(key for key in had if key not in keys))
        self._put(command, keys)
        self._store()

    def use_table(self, command: Command | None = None) -> None:
        """Give a command the keys of the table again; None = all of them."""
        if command is None:
            self._selected = {}
            self._store()
        else:
            self.set_keys(command, command.keys)

    def _put(self, command: Command, keys: tuple[str, ...]) -> None:
        self._selected.pop(command.id, None)
        if keys != command.keys:
            self._selected[command.id] = keys

    def _store(self) -> None:
        found = {name: list(keys) for name, keys in self._selected.items()}
        self.file.store(lambda content: {**(content or {}), _KEY: _VERSION, "keys": _unknown_in(content) | found})
        self.changed.emit()


def _checked(content: Any) -> Any:
    if not isinstance(content, dict) or type(content.get(_KEY)) is not int:
        raise DamagedFileError("it holds no keys")
    _keys_in(content)
    return content


def _keys_in(content: Any) -> dict[str, tuple[str, ...]]:
    """Return the keys of the commands that there are; of several with one key the first has it.

    Raises:
        DamagedFileError: They are no lists of texts.
    """
    part = None if content is None else Fields(content, "keys").part("keys")
    known, taken = {command.id for command in COMMANDS}, set[str]()
    found = {}
    for name in part.names() if part is not None else ():
        keys = part.texts(name) if part is not None else ()
        if any(len(key) > _TEXT_MAX for key in keys):
            raise DamagedFileError(f"keys: one of {name[:40]} is too long")
        if name in known:
            found[name] = tuple(key for key in dict.fromkeys(keys) if key and key not in taken)[:_KEYS_MAX]
            taken.update(found[name])
    return found


def _unknown_in(content: Any) -> dict[str, Any]:
    """Return the keys of commands that this satview does not have: a newer one wrote them, and they stay."""
    known = {command.id for command in COMMANDS}
    return {name: keys for name, keys in ((content or {}).get("keys") or {}).items() if name not in known}


def keys_file() -> Path:
    """Return where this user's keys are stored on this system."""
    from platformdirs import user_config_path  # on first use, as for the settings

    return user_config_path("satview", appauthor=False) / "keys.json"
