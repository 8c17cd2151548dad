"""Files in formats that plug-ins write."""

from __future__ import annotations

from pathlib import Path

from satview.base.errors import WriteError
from satview.base.new_file import NewFile
from satview.base.plugins import Plugin, PluginKind, plugins
from satview.formats.registry import source_files
from satview.store.trace import Trace


def plugged_endings() -> dict[str, Plugin]:
    """Return ending (`.svg`) to the plug-in that writes such files: its name is the ending without the dot."""
    return {f".{each.name.lower()}": each for each in plugins(PluginKind.EXPORT)}


def write_plugged(trace: Trace, path: Path | str, by: Plugin) -> int:
    """Have a plug-in write a file; return how many things are in it, as it says.

    Raises:
        WriteError: The file cannot be written, or the plug-in failed; an older file is as it was.
    """
    with NewFile(path, reading=source_files(trace.path), streams=True) as file:
        count = by.run(lambda write: int(write(trace, file.stream)), -1)
        if count < 0:
            raise WriteError(path, f"the plug-in {by.name} of {by.package} is switched off: {by.fault}")
    return count
