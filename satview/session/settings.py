"""The table of settings, and classes for files of a user's state, which keep changes made by other programs."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from platformdirs import user_config_path
from PySide6.QtCore import QLockFile, QObject, QTimer, Signal, Slot

from satview.base.errors import WriteError
from satview.base.new_file import find_target
from satview.base.shared_file import Damaged, DamagedFileError, change_shared, parsed_json, read_shared

# The user's state in files: merged with changes by other programs; storing is retried until it succeeds.


_RETRY_MS: Final = 3000
_PATIENCE_MS: Final = 1000
_LOCK_NAME: Final = ".satview.lock"
Merge = Callable[[Any], Any]


class Stored(QObject):
    """State of the user that is stored in one or more files; attributes tell whether all of it is stored.

    Attributes:
        path: The file, or the name that stands for several files; None stores nothing.
        failure: Why the last change could not be stored, one sentence; empty if everything is stored.
        notice: Problem of the existing file, one sentence; empty if none.
        is_stored: True if all changes are stored or given up.

    Signals:
        changed: `failure` or `notice` has changed.
        stored: A change was stored; sends the content of the files.
    """

    changed = Signal()
    stored = Signal(object)

    def __init__(self, path: Path | None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.path = path
        self.failure = self.notice = ""
        self.is_stored = True
        self._retry = QTimer(self, interval=_RETRY_MS)
        self._retry.timeout.connect(self.retry)

    @Slot()
    def retry(self) -> None:
        """Try to store changes that are not stored yet."""
        if self.path is None or self.is_stored:
            self.is_stored = True
            return
        try:
            content, damaged = self._write()
        except (OSError, WriteError) as error:
            self._retry.start()
            reason = error.what if isinstance(error, WriteError) else error.strerror or str(error)
            self._say(self.notice, f"{self.path.name}: {reason}")
            return
        self.is_stored = True
        self._retry.stop()
        notice = self.notice
        for file in damaged:
            notice = f"{file.name} was damaged and is now {file.path.name}: {file.reason}"
        self._say(notice, "")
        self.stored.emit(content)

    def store_now(self) -> None:
        """Store changes now; if that fails, retry until it works."""
        self.is_stored = False
        self.retry()

    def dismiss_notice(self) -> None:
        """Clear `notice`; called when the user has read the message."""
        self._say("", self.failure)

    def give_up(self) -> None:
        """Stop trying to store changes."""
        self.is_stored = True
        self._retry.stop()
        self._say(self.notice, "")

    @abstractmethod
    def _write(self) -> tuple[object, list[Damaged]]:
        """Write the files; return their content, and the damaged files that were found and renamed, with reasons."""

    def _say(self, notice: str, failure: str) -> None:
        if (notice, failure) != (self.notice, self.failure):
            self.notice, self.failure = notice, failure
            self.changed.emit()


class StoredJson(Stored):
    """One JSON file, changed only while the lock of its folder is held; a change waits until the lock is free."""

    def __init__(
        self,
        path: Path | None,
        check: Merge,
        limit: int,
        parent: QObject | None = None,
        *,
        makes_folder: bool = False,
    ) -> None:
        """Prepare; nothing is read yet.

        Args:
            path: The file.
            check: Function that converts parsed content; raises `DamagedFileError` if the content is not valid.
            limit: Maximum size of the file in bytes.
            parent: Owner.
            makes_folder: True to create the folder if it is missing; for satview's own folders.
        """
        super().__init__(path, parent)
        self._check = check
        self._limit = limit
        self._makes_folder = makes_folder
        self._merge: Merge = _unchanged

    def load(self) -> Any:
        """Return the content of the file; None if it is missing or cannot be read, which `notice` then explains."""
        if self.path is None:
            return None
        try:
            return self._parsed(read_shared(self.path, self._limit))
        except DamagedFileError as error:
            self._say(f"{self.path.name} is damaged and was not read: {error}", self.failure)
        except (OSError, ValueError) as error:
            self._say(f"{self.path.name} cannot be read: {getattr(error, 'strerror', None) or error}", self.failure)
        return None

    def store(self, merge: Merge) -> None:
        """Change the file now; if that fails, retry until it works.

        `merge` returns the new content (None = remove the file) for the current one (None = no file). While writing
        fails, a later call replaces it.
        """
        self._merge = merge
        self.store_now()

    def _write(self) -> tuple[object, list[Damaged]]:
        assert self.path is not None
        content: Any = None

        def change(data: bytes | None) -> bytes | None:
            nonlocal content
            content = self._merge(self._parsed(data))
            return None if content is None else json.dumps(content, indent=1).encode("utf-8")

        if self._makes_folder:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        path = find_target(self.path).path
        with _locked(path):
            damaged = change_shared(path, change, self._limit)
        return content, [damaged] if damaged is not None else []

    def _parsed(self, data: bytes | None) -> Any:
        if data is None:
            return None
        return self._check(parsed_json(data))


def _unchanged(content: Any) -> Any:
    return content


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file's folder in a `with` block: a Qt lock file, usable on Windows and network disks too.

    Raises:
        WriteError: Another program holds the lock for too long.
    """
    lock = QLockFile(str(path.with_name(_LOCK_NAME)))
    if not lock.tryLock(_PATIENCE_MS) and lock.error() is QLockFile.LockError.LockFailedError:
        raise WriteError(path, f"another program holds {_LOCK_NAME} in its folder")
    # If the lock file cannot be created, neither can the file, and that error says why.
    try:
        yield
    finally:
        lock.unlock()


# The table of settings: key, default, bounds, help; the settings dialog is made from it, the file is plain JSON.
#
# To add a setting, add a row to `SETTINGS`. A stored value that is no longer valid is replaced by the default, so an
# old file never prevents a start.


# Names of the palettes for states; the colours are in `gui.colours`.


STANDARD: Final = "standard"
PRINT: Final = "print"  # greys, always on white
PALETTES: Final = (STANDARD, "colour-blind", "contrast", PRINT)


Value = bool | int | str
_FILE_BYTES_MAX: Final = 1 << 20
HATCH_PRINT: Final = "for print"
HATCH_ALWAYS: Final = "always"


@dataclass(frozen=True, slots=True)
class Setting:
    """Description of one setting.

    Attributes:
        key: Stable name, `area/name`.
        default: Default value; determines the type.
        help: One sentence for the dialog and the docs.
        low, high: Bounds of a number.
        options: Values that a text may have; empty = any.
        is_shown: False if the settings dialog does not show it: windows or other dialogs set it.
    """

    key: str
    default: Value
    help: str
    low: int = 0
    high: int = 0
    options: tuple[str, ...] = ()
    is_shown: bool = True

    def fits(self, value: object) -> bool:
        """Return whether a value is valid for this setting."""
        if type(value) is not type(self.default):
            return False
        if isinstance(value, str):
            return not self.options or value in self.options
        return isinstance(value, bool) or self.low <= int(str(value)) <= self.high


SETTINGS: Final = (
    Setting("window/theme", "system", "Theme: follow the system, light or dark.", options=("system", "light", "dark")),
    Setting("window/text_percent", 100, "Text size, in percent of the system's.", low=75, high=200),
    Setting("window/wheel_zooms", False, "Zoom with the wheel, and scroll lanes with Ctrl+wheel."),
    Setting("swimlane/lane_height_px", 20, "Height of a lane.", low=8, high=64),
    Setting("swimlane/label_width_px", 232, "Width of the lane name column.", low=80, high=600, is_shown=False),
    Setting("swimlane/show_legend", True, "Show the colour legend below the lanes."),
    Setting("swimlane/palette", STANDARD,
            "Colours of states: standard, colour-blind, high contrast, or greys for print.",
            options=PALETTES, is_shown=False),
    Setting("swimlane/hatching", HATCH_PRINT,
            "Also distinguish states by hatching: with the print palette, always, or never.",
            options=(HATCH_PRINT, HATCH_ALWAYS, "never"), is_shown=False),
    Setting("swimlane/state_looks", "", "States whose colour or thickness differs from the palette.", is_shown=False),
    Setting("swimlane/labels", "state", "Labels of intervals.", is_shown=False),
    Setting("swimlane/lane_classes", "",
            "Event lanes to show in a new trace, if it has such events, separated by commas: log, paths, calls.",
            is_shown=False),
    Setting("swimlane/shares", True, "When zoomed out, show the share of each state in a lane."),
    Setting("swimlane/arrows", "selection", "Arrows between lanes: none, only for the selection, or all.",
            options=("off", "selection", "all")),
    Setting("swimlane/unfold_up_to", 40, "Unfold all processes when the trace has at most this many lanes.", high=1000),
    Setting("verdicts/check_up_to_events", 2_000_000,
            "Look for verdicts automatically in traces of at most this many events; 0 = never.", high=100_000_000),
    Setting("events/row_height_px", 20, "Height of a row in the event list.", low=16, high=40),
    Setting("events/user_events", "",
            "XML file from the vendor's toolkit with names, fields and named values of user events.", is_shown=False),
    Setting("events/pidin", "", "Text that pidin printed, which names processes and threads.", is_shown=False),
    Setting("events/symbols", "", "Folder with the target's programs, which name functions, files and lines.",
            is_shown=False),
    Setting("events/user_rules", "",
            "Rules for lanes of user events: 10 counter queue; 41..42 interval request; 7 moment.", is_shown=False),
    Setting("files/recent_count", 10, "Number of recent files to remember.", high=50),
    Setting("files/cache_mb", 4096,
            "Megabytes of decoded data to cache, so that large traces open at once; 0 = no cache.", high=1_000_000),
    Setting("files/memory_mb", 0,
            "Megabytes of memory for trace columns; the rest goes to unnamed temporary files; 0 = no limit.",
            high=1_000_000),
    Setting("capture/last", "", "Options of the last capture.", is_shown=False),
    Setting("capture/last_target", "", "Options of the last capture on a target, and the targets.", is_shown=False),
    Setting("window/geometry", "", "Position and size of the last window.", is_shown=False),
    Setting("window/panels", "", "Arrangement of the panels.", is_shown=False),
)  # fmt: skip


class Settings(QObject):
    """Holds the current values of all settings, stored in one JSON file.

    Attributes:
        file: The file; its attributes tell whether all settings are stored.

    Signals:
        changed: A setting has changed; sends its key.
    """

    changed = Signal(str)

    def __init__(self, path: Path | None, parent: QObject | None = None) -> None:
        """Read the file.

        Args:
            path: The file; None keeps settings in memory only.
            parent: Owner.
        """
        super().__init__(parent)
        self.file = StoredJson(path, _checked, _FILE_BYTES_MAX, self, makes_folder=True)
        self._changed_keys: set[str] = set()
        self._passing: set[str] = set()
        self._rows = {row.key: row for row in SETTINGS}
        self._values: dict[str, Value] = {row.key: row.default for row in SETTINGS}
        for key, value in (self.file.load() or {}).items():
            if key in self._rows and self._rows[key].fits(value):
                self._values[key] = value  # fits() has checked the type

    def number(self, key: str) -> int:
        """Return the value of a numeric setting."""
        return int(self._values[key])

    def text(self, key: str) -> str:
        """Return the value of a text setting."""
        return str(self._values[key])

    def flag(self, key: str) -> bool:
        """Return the value of a setting that is on or off."""
        return bool(self._values[key])

    def value(self, key: str) -> Value:
        """Return the value of a setting of any type."""
        return self._values[key]

    def is_passing(self, key: str) -> bool:
        """Return whether a setting has a temporary value, which is not stored, such as one from the command line."""
        return key in self._passing

    def set(self, key: str, value: Value, is_saved: bool = True) -> None:
        """Change a setting; numbers are clamped to their bounds.

        Args:
            key: Key of the setting.
            value: Its new value.
            is_saved: True to store the value; False = keep it until the program ends or the setting is changed again.

        Raises:
            KeyError: There is no such setting.
            ValueError: The value is not valid.
        """
        row = self._rows[key]
        if type(value) is int and type(row.default) is int:
            value = min(max(value, row.low), row.high)
        if not row.fits(value):
            raise ValueError(f"{value!r} does not fit {key}")
        if self._values[key] == value:
            return
        self._values[key] = value
        if is_saved:
            self._passing.discard(key)
            self._changed_keys.add(key)
            self.file.store(self._merged)
        else:
            self._passing.add(key)
        self.changed.emit(key)

    def _merged(self, content: Any) -> Any:
        """Return the new content of the file: the settings stored by any window, with the changes made here.

        Unknown keys are from a newer version, and stay.
        """
        keys = self._rows if content is None else self._changed_keys
        merged = dict(content or {})
        for key in keys:
            if key not in self._passing:
                merged.pop(key, None)
                if self._values[key] != self._rows[key].default:
                    merged[key] = self._values[key]
        return merged


def _checked(content: Any) -> Any:
    if not isinstance(content, dict):
        raise DamagedFileError("it holds no settings")
    return content


def settings_file() -> Path:
    """Return the path of this user's settings file."""
    return user_config_path("satview", appauthor=False) / "settings.json"
