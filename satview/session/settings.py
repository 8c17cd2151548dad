"""The table of settings: key, default, bounds, help; the settings dialog is made from it, the file is plain JSON.

To add a setting, add a row to `SETTINGS`. A stored value that is no longer valid is replaced by the default, so an old
file never prevents a start.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from platformdirs import user_config_path
from PySide6.QtCore import QObject, Signal

from satview.base.shared_file import DamagedFileError
from satview.session.stored_json import StoredJson

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
    """One setting.

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
        """Return whether a value is valid."""
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
    Setting(
        "swimlane/palette",
        STANDARD,
        "Colours of states: standard, colour-blind, high contrast, or greys for print.",
        options=PALETTES,
        is_shown=False,
    ),
    Setting(
        "swimlane/hatching",
        HATCH_PRINT,
        "Also distinguish states by hatching: with the print palette, always, or never.",
        options=(HATCH_PRINT, HATCH_ALWAYS, "never"),
        is_shown=False,
    ),
    Setting("swimlane/state_looks", "", "States whose colour or thickness differs from the palette.", is_shown=False),
    Setting("swimlane/labels", "state", "Labels of intervals.", is_shown=False),
    Setting(
        "swimlane/lane_classes",
        "",
        "Event lanes to show in a new trace, if it has such events, separated by commas: log, paths, calls.",
        is_shown=False,
    ),
    Setting("swimlane/shares", True, "When zoomed out, show the share of each state in a lane."),
    Setting(
        "swimlane/arrows",
        "selection",
        "Arrows between lanes: none, only for the selection, or all.",
        options=("off", "selection", "all"),
    ),
    Setting(
        "swimlane/unfold_up_to",
        40,
        "Unfold all processes when the trace has at most this many lanes.",
        low=0,
        high=1000,
    ),
    Setting(
        "verdicts/check_up_to_events",
        2_000_000,
        "Look for verdicts automatically in traces of at most this many events; 0 = never.",
        low=0,
        high=100_000_000,
    ),
    Setting("events/row_height_px", 20, "Height of a row in the event list.", low=16, high=40),
    Setting(
        "events/user_events",
        "",
        "XML file from the vendor's toolkit with names, fields and named values of user events.",
        is_shown=False,
    ),
    Setting("events/pidin", "", "Text that pidin printed, which names processes and threads.", is_shown=False),
    Setting(
        "events/symbols",
        "",
        "Folder with the target's programs, which name functions, files and lines.",
        is_shown=False,
    ),
    Setting(
        "events/user_rules",
        "",
        "Rules for lanes of user events: 10 counter queue; 41..42 interval request; 7 moment.",
        is_shown=False,
    ),
    Setting("files/recent_count", 10, "Number of recent files to remember.", low=0, high=50),
    Setting(
        "files/cache_mb",
        4096,
        "Megabytes of decoded data to cache, so that large traces open at once; 0 = no cache.",
        low=0,
        high=1_000_000,
    ),
    Setting(
        "files/memory_mb",
        0,
        "Megabytes of memory for trace columns; the rest goes to unnamed temporary files; 0 = no limit.",
        low=0,
        high=1_000_000,
    ),
    Setting("capture/last", "", "Options of the last capture.", is_shown=False),
    Setting("capture/last_target", "", "Options of the last capture on a target, and the targets.", is_shown=False),
    Setting("window/geometry", "", "Position and size of the last window.", is_shown=False),
    Setting("window/panels", "", "Arrangement of the panels.", is_shown=False),
)


class Settings(QObject):
    """The current values, stored in one JSON file.

    Attributes:
        file: The file; shows whether all settings are stored.

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
        """Return a value of any type."""
        return self._values[key]

    def is_passing(self, key: str) -> bool:
        """Return whether a setting has a value that is not stored, such as one from the command line."""
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
