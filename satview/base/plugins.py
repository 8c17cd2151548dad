"""Plug-ins: what other installed packages add by entry points, each switched off and named when it fails.

A package names a function or an object under one of the groups `satview.readers`, `satview.analyses`, `satview.lanes`,
`satview.verdicts` and `satview.exports` (docs/plugins.md). It is code that somebody has installed; nothing in a trace,
a session or a rule file can name one. `SATVIEW_PLUGINS=off` does without all of them.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeVar

from satview.base.errors import Cancelled, SatviewError, one_line

if TYPE_CHECKING:
    from importlib import metadata


_T = TypeVar("_T")


class PluginKind(StrEnum):
    """What a plug-in adds; the value is the group of its entry point."""

    READER = "satview.readers"
    ANALYSIS = "satview.analyses"
    LANE = "satview.lanes"
    VERDICT = "satview.verdicts"
    EXPORT = "satview.exports"

    @property
    def word(self) -> str:
        """For people: `reader`."""
        return self.name.lower()


@dataclass(slots=True, eq=False)
class Plugin:
    """A plug-in.

    Attributes:
        kind: What it adds.
        name: Of the entry point.
        package: The package that brings it, with its version.
        fault: Why it is switched off; empty = it is not.
    """

    kind: PluginKind
    name: str
    package: str
    fault: str
    _entry: metadata.EntryPoint
    _value: Any = None

    def value(self) -> Any:
        """Return the object that the plug-in names, None if it is switched off; imported at the first call."""
        if self._value is None and not self.fault:
            try:
                self._value = self._entry.load()
            except Exception as error:  # noqa: BLE001  -- whatever somebody else's module does when it is imported
                self.switch_off(error)
        return None if self.fault else self._value

    def switch_off(self, error: BaseException) -> None:
        """Do not use the plug-in from now on."""
        self.fault = one_line(error)
        _log("info", f"the {self.kind.word} plug-in {self.name} of {self.package} is switched off: {self.fault}")

    def run(self, function: Callable[[Any], _T], instead: _T) -> _T:
        """Return the result of a function called with the plug-in; if it raises, switch it off and return `instead`.

        Args:
            function: Gets what the plug-in names.
            instead: Returned if it is switched off.

        Raises:
            SatviewError: It refuses on purpose, in a sentence.
        """
        value = self.value()
        if value is None:
            return instead
        try:
            return function(value)
        except (SatviewError, Cancelled):
            raise
        except Exception as error:  # noqa: BLE001  -- its faults are not ours
            self.switch_off(error)
            return instead


_lock: Final = threading.Lock()
_found: Final[dict[PluginKind, tuple[Plugin, ...]]] = {}
_reported: Final[list[Plugin]] = []


def plugins(kind: PluginKind) -> tuple[Plugin, ...]:
    """Return the plug-ins of a kind by name, those that are switched off too; looked for once, imported later."""
    with _lock:
        if kind not in _found:
            _found[kind] = () if os.environ.get("SATVIEW_PLUGINS") == "off" else _look(kind)
        return _found[kind]


def plugin(kind: PluginKind, name: str) -> Plugin | None:
    """Return a plug-in by name, None if there is none."""
    return next((plugin for plugin in plugins(kind) if plugin.name == name), None)


def all_plugins() -> tuple[Plugin, ...]:
    """Return all plug-ins, by kind."""
    return tuple(plugin for kind in PluginKind for plugin in plugins(kind))


def newly_switched_off() -> list[str]:
    """Return a sentence for each plug-in that was switched off since the last call; looks for none."""
    with _lock:
        failed = [
            plugin for of_kind in _found.values() for plugin in of_kind if plugin.fault and plugin not in _reported
        ]
        _reported.extend(failed)
    return [
        f"the {plugin.kind.word} plug-in {plugin.name} of {plugin.package} is switched off: {plugin.fault}"
        for plugin in failed
    ]


def forget() -> None:
    """Look for plug-ins again; for tests."""
    with _lock:
        _found.clear()


def _log(level: str, text: str) -> None:
    getattr(logging.getLogger(__name__), level)("%s", text)


def _may_have_any() -> bool:
    """Return False if no installed package can have a plug-in: none names a group, and all are in folders.

    Found from the files that `importlib.metadata` reads; importing that takes 20 ms, which all windows would wait for.
    """
    for place in dict.fromkeys(sys.path):
        try:
            with os.scandir(place or ".") as entries:
                packages = [entry.path for entry in entries if entry.name.endswith((".dist-info", ".egg-info"))]
        except FileNotFoundError:
            continue
        except OSError:  # an archive: what reads those knows more
            return True
        for package in packages:
            try:
                with open(os.path.join(package, "entry_points.txt"), "rb") as file:  # noqa: PTH118, PTH123  -- 50 of them
                    if b"[satview." in file.read():
                        return True
            except OSError:
                continue
    return False


def _look(kind: PluginKind) -> tuple[Plugin, ...]:
    if not _may_have_any():
        return ()
    try:
        from importlib import metadata  # brings a reader of e-mail, for which each start would wait

        entries = metadata.entry_points(group=kind.value)
    except Exception as error:  # noqa: BLE001  -- damaged metadata of any installed package
        _log("warning", f"plug-ins were not looked for: {one_line(error)}")
        return ()
    by_name: dict[str, Plugin] = {}
    for entry in entries:
        package = f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "a package"
        by_name.setdefault(entry.name, Plugin(kind, entry.name, package, "", entry))
    return tuple(by_name[name] for name in sorted(by_name))
