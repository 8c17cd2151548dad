"""Installs satview on an XDG desktop for the current user: menu entry, icon, and file type of `.kev` files.

Follows freedesktop.org's Desktop Entry, Icon Theme and Shared MIME-info specifications.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Final

from satview.base.child import absolute_program, child_command
from satview.base.errors import SatviewError, WriteError
from satview.base.named_files import resource_path
from satview.base.new_file import write_file

MIME_TYPE: Final = "application/x-qnx-kev"
_ENTRY: Final = Path("applications/satview.desktop")
_ICON: Final = Path("icons/hicolor/scalable/apps/satview.svg")
_TYPE: Final = Path("mime/packages/satview.xml")
# Commands that make desktops read the folders again: command, folder below the data folder, effect if it is missing.
_REFRESH: Final = (
    ("update-mime-database", "mime", "desktops may not know .kev files before the package shared-mime-info is there"),
    ("update-desktop-database", "applications", ""),  # other desktops notice changes themselves
    ("gtk-update-icon-cache", "icons/hicolor", ""),
)
_REFRESH_S: Final = 60


def install() -> list[str]:
    """Add satview to the desktop of this user; return lines that name the written files.

    Raises:
        SatviewError: This system has no XDG desktop, or a folder cannot be made.
        WriteError: A file cannot be written.
    """
    folder = _data_folder()
    contents = {
        _ENTRY: desktop_entry(program()),
        _ICON: resource_path("icons/satview.svg").read_text(encoding="utf-8"),
        _TYPE: mime_package(),
    }
    for name, text in contents.items():
        target = folder / name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SatviewError(f"{target.parent}: {error.strerror or error}") from error
        write_file(target, text)
    return [*(f"written: {folder / name}" for name in contents), *_refresh(folder)]


def uninstall() -> list[str]:
    """Remove the files that `install` wrote; return lines that name the removed files.

    Raises:
        SatviewError: This system has no XDG desktop.
        WriteError: A file cannot be removed.
    """
    folder = _data_folder()
    removed = []
    for name in (_ENTRY, _ICON, _TYPE):
        target = folder / name
        try:
            target.unlink()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise WriteError(target, error.strerror or str(error)) from error
        removed.append(f"removed: {target}")
    if not removed:
        return [f"satview was not installed in {folder}"]
    return [*removed, *_refresh(folder)]


def program() -> list[str]:
    """Return the command that runs this satview: its installed script, or this Python with the entry point."""
    script = Path(sysconfig.get_path("scripts")) / "satview"
    # The Desktop Entry specification forbids an equals sign in the name of a program.
    if script.is_file() and "=" not in str(script):
        return [str(script)]
    return child_command("satview.__main__:entry")


def desktop_entry(words: list[str]) -> str:
    """Return the text of the menu entry (.desktop file) for a command, whose words do not include files to open."""
    return "\n".join([
        "[Desktop Entry]",
        "Type=Application",
        "Version=1.0",
        "Name=satview",
        "GenericName=Kernel Trace Viewer",
        "Comment=View kernel event traces of QNX Neutrino",
        f"Exec={' '.join(_quoted(word) for word in words)} %F",
        "Icon=satview",
        "Terminal=false",
        "Categories=Development;Debugger;Qt;",
        f"MimeType={MIME_TYPE};",
        "Keywords=qnx;neutrino;trace;kev;scheduling;",
        "StartupWMClass=satview",
        "",
    ])  # fmt: skip


def mime_package() -> str:
    """Return the MIME description of `.kev` files, by their suffix and their first bytes."""
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<mime-info xmlns="http://www.freedesktop.org/standards/shared-mime-info">
  <mime-type type="{MIME_TYPE}">
    <comment>QNX kernel event trace</comment>
    <icon name="satview"/>
    <glob pattern="*.kev"/>
    <magic priority="60">
      <match type="string" offset="0" value="TRACE_HEADER_BEGIN::"/>
    </magic>
  </mime-type>
</mime-info>
"""


def _quoted(word: str) -> str:
    """Return a word of a command in the form for `Exec=`: quoted, then escaped like all strings in a .desktop file."""
    if all(letter.isalnum() or letter in "/._-+," for letter in word):
        return word
    inner = "".join(f"\\{letter}" if letter in '"`$\\' else letter for letter in word)
    return f'"{inner}"'.replace("\\", "\\\\").replace("%", "%%")


def _data_folder() -> Path:
    if sys.platform in ("win32", "cygwin", "darwin"):
        raise SatviewError("this system has no XDG desktop; on Windows and macOS open .kev files with satview by hand")
    given = os.environ.get("XDG_DATA_HOME", "")
    # The XDG Base Directory specification requires that relative paths are ignored.
    return Path(given) if Path(given).is_absolute() else Path.home() / ".local" / "share"


def _refresh(folder: Path) -> list[str]:
    """Make desktops read the folders again; return lines about commands that are missing or have failed."""
    notes = []
    for command, inner, without in _REFRESH:
        program = absolute_program(command)
        if program is None:
            notes += [f"{command} is not here: {without}"] if without else []
        elif (folder / inner).is_dir():
            done = _succeeds([program, str(folder / inner)])
            notes += [] if done or not without else [f"{command} failed: {without}"]
    return notes


def _succeeds(command: list[str]) -> bool:
    try:
        done = subprocess.run(command, capture_output=True, timeout=_REFRESH_S, check=False)  # noqa: S603  -- own words
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
