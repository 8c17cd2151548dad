"""Plug-ins, which installed packages add by entry points, and optional packages, imported on first use."""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module, metadata
from importlib.util import find_spec
from typing import Any, Final, TypeVar

from satview.base.errors import Cancelled, SatviewError, UsageError, one_line

# Finds and runs plug-ins, which installed packages add by entry points; a plug-in that fails is switched off.
#
# A package names a function or an object under one of the groups `satview.readers`, `satview.analyses`,
# `satview.lanes`, `satview.verdicts` and `satview.exports` (docs/plugins.md). Only installed packages can add a plug-
# in: no trace, session or rule file can name one. `SATVIEW_PLUGINS=off` switches all of them off.


_T = TypeVar("_T")


class PluginKind(StrEnum):
    """Kinds of plug-ins; the value is the group of the entry points."""

    READER = "satview.readers"
    ANALYSIS = "satview.analyses"
    LANE = "satview.lanes"
    VERDICT = "satview.verdicts"
    EXPORT = "satview.exports"

    @property
    def word(self) -> str:
        """Display name of the kind, such as `reader`."""
        return self.name.lower()


@dataclass(slots=True, eq=False)
class Plugin:
    """An object that an installed package, by name and version, adds to satview by an entry point.

    `fault` is the reason why the plug-in is switched off; empty if it is not.
    """

    kind: PluginKind
    name: str
    package: str
    fault: str
    _entry: metadata.EntryPoint
    _value: Any = None

    @property
    def failure(self) -> str:
        """Statement that the plug-in is switched off and why, without a full stop; empty if it is not."""
        is_off = f"the {self.kind.word} plug-in {self.name} of {self.package} is switched off: {self.fault}"
        return is_off if self.fault else ""

    def value(self) -> Any:
        """Return the object of the entry point, imported at the first call; None if the plug-in is switched off."""
        if self._value is None and not self.fault:
            try:
                self._value = self._entry.load()
            except (Exception, SystemExit) as error:  # noqa: BLE001  -- importing a foreign module may raise anything
                self.switch_off(error)
        return None if self.fault else self._value

    def switch_off(self, error: BaseException) -> None:
        """Switch the plug-in off because of an error, and log it."""
        self.fault = one_line(error)
        _log("info", self.failure)

    def run(self, function: Callable[[Any], _T], instead: _T) -> _T:
        """Call a function with the plug-in's object and return the result; if the call raises, switch the plug-in off.

        Args:
            function: Called with the object of the entry point.
            instead: The result if the plug-in is switched off, before or during the call.

        Raises:
            SatviewError: The plug-in raised it on purpose.
        """
        value = self.value()
        if value is None:
            return instead
        try:
            return function(value)
        except (SatviewError, Cancelled):
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001  -- any bug of the plug-in, sys.exit() included
            self.switch_off(error)
            return instead


_lock: Final = threading.Lock()
_plugins_by_kind: Final[dict[PluginKind, tuple[Plugin, ...]]] = {}
_reported: Final[list[Plugin]] = []


def are_disabled() -> bool:
    """Return whether the user's environment disables all plug-ins."""
    return os.environ.get("SATVIEW_PLUGINS") == "off"


def plugins(kind: PluginKind) -> tuple[Plugin, ...]:
    """Return the plug-ins of a kind, sorted by name, those that are switched off included; cached."""
    with _lock:
        if kind not in _plugins_by_kind:
            _plugins_by_kind[kind] = () if are_disabled() else _look(kind)
        return _plugins_by_kind[kind]


def plugin(kind: PluginKind, name: str) -> Plugin | None:
    """Return a plug-in by name, None if there is none."""
    return next((plugin for plugin in plugins(kind) if plugin.name == name), None)


def all_plugins() -> tuple[Plugin, ...]:
    """Return the plug-ins of all kinds, one kind after the other."""
    return tuple(plugin for kind in PluginKind for plugin in plugins(kind))


def newly_switched_off() -> list[str]:
    """Return a sentence for each known plug-in that was switched off since the last call."""
    with _lock:
        failed = [
            plugin for of_kind in _plugins_by_kind.values() for plugin in of_kind
            if plugin.fault and plugin not in _reported
        ]  # fmt: skip
        _reported.extend(failed)
    return [plugin.failure for plugin in failed]


def forget() -> None:
    """Clear the cache of plug-ins; for tests."""
    with _lock:
        _plugins_by_kind.clear()


def _log(level: str, text: str) -> None:
    getattr(logging.getLogger(__name__), level)("%s", text)


def _may_have_any() -> bool:
    """Return False if all packages can be listed and none names satview, without `importlib.metadata` (20 ms)."""
    for place in dict.fromkeys(sys.path):
        try:
            with os.scandir(place or ".") as entries:
                packages = [entry.path for entry in entries if entry.name.endswith((".dist-info", ".egg-info"))]
        except FileNotFoundError:
            continue
        except OSError:  # an archive, which only `importlib.metadata` can read
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
        entries = metadata.entry_points(group=kind.value)
    except Exception as error:  # noqa: BLE001  -- damaged metadata of any installed package
        _log("warning", f"plug-ins were not looked for: {one_line(error)}")
        return ()
    by_name: dict[str, Plugin] = {}
    for entry in entries:
        package = f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "a package"
        by_name.setdefault(entry.name, Plugin(kind, entry.name, package, "", entry))
    return tuple(by_name[name] for name in sorted(by_name))


# Imports optional packages on first use; the error for a missing one gives the command that installs it.


def required(name: str) -> Any:
    """Import and return an optional package, or one of its modules such as `pyarrow.parquet`.

    Raises UsageError, with the command that installs it, if it is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise UsageError(
            f"this needs the package {package}, which is not installed: pip install '{_with_versions(package)}'"
        ) from error


def _with_versions(package: str) -> str:
    """Return a package with the versions that this satview needs, as a requirement for pip."""
    try:
        lines = metadata.requires("satview") or []
    except metadata.PackageNotFoundError:  # satview runs from a folder of sources
        lines = []
    needs = [line.partition(";")[0].strip() for line in lines]
    return next((need for need in needs if re.split(r"[^\w-]", need)[0] == package), package)


def refuse_missing(name: str) -> None:
    """Check that an optional package is installed, without importing it; for a package that a child process needs.

    Raises the UsageError of `required`.
    """
    try:
        is_there = find_spec(name) is not None
    except ValueError:  # an entry of `sys.modules` without a spec
        is_there = False
    if not is_there:
        required(name)
