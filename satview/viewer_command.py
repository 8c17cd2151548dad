"""The command `satview FILE ...`: its options, the check for a display, and the entry in the menu of the desktop."""

from __future__ import annotations

import argparse
import ctypes
import difflib
import os
import platform
import re
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Final

from satview import __version__
from satview.base import process
from satview.base.child import absolute_program, child_command
from satview.base.errors import SatviewError, UsageError, WriteError
from satview.base.named_files import resource_path, sample_trace
from satview.base.new_file import keeps_inputs, write_file
from satview.base.process import FINE, signals_raise
from satview.cli import PURPOSES, command_names
from satview.cli.shared.files import (
    InputFile,
    OutputFile,
    add_axis_options,
    add_pidin,
    add_range,
    add_symbols,
    completion,
    files_read,
    with_commands,
    with_times_attached,
)
from satview.cli.shared.terminal import working, working_on
from satview.core.library import describe
from satview.session.lanes.lane_arrangement import Label
from satview.session.settings import PALETTES
from satview.session.trace_link import TraceLink, parse_link
from satview.timeline.lane_classes import LANE_CLASSES

# The command `satview FILE ...`: the options of the viewer, and functions that carry them out.


_FIRST_OPTIONS: Final = (
    ("FILE", "trace to open; FILE#t=1.2s..1.5s&sel=1200 opens it there"),
    ("--sample", "open the trace that comes with satview"),
    ("--range A..B", "range to show first: 1.2s..1.5s, -5s.., 25%..50%, #1200..#1300"),
    ("--compare FILE", "open a second trace beside it"),
    ("--follow", "reload a .kev file as it grows"),
    ("--screenshot OUT.png", "save a screenshot and exit; needs no display"),
    ("--version", "print the version"),
    ("--help-all", "all options: themes, lanes, labels, axes, screenshots, set-up"),
)


def run_viewer(arguments: list[str]) -> int:
    """Carry out the options of the viewer: show windows, write a screenshot, set up, or print help.

    Returns:
        The exit code.

    Raises:
        SatviewError: The options cannot be carried out.
    """
    if "--follow" not in arguments:  # whose files need not exist yet
        _refuse_misspelt(arguments[:1])
    if {"-h", "--help"} & set(arguments):
        print(_short_help())
        return FINE
    parser = viewer_parser()
    if "--help-all" in arguments:
        parser.print_help()
        return FINE
    options = parser.parse_args(with_times_attached(arguments))
    if options.version:
        print("\n".join(_version_lines() if options.verbose else [f"satview {__version__}"]))
        return FINE
    if options.install_desktop or options.uninstall_desktop or options.print_completion:
        return _set_up(options)
    if options.verbose:
        raise UsageError("--verbose needs --version")
    if not options.follow:
        _refuse_misspelt([str(file) for file in options.files])
    if options.sample:
        options.files.append(sample_trace())
    if options.together:
        options.files = [_axis_of(options)]
    elif options.names or options.offset or options.align != "start" or options.number != 1:
        raise UsageError("--names, --offset, --align and --number need --together")
    return _show(options)


def whole_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line, for shell completion and the manual page."""
    return with_commands(viewer_parser(), command_names())


def viewer_parser() -> argparse.ArgumentParser:
    """Return the parser of the viewer's options."""
    parser = argparse.ArgumentParser(
        prog="satview",
        usage="satview [options] [FILE ...]\n       satview COMMAND [options] ...",
        description="Opens kernel event traces of QNX Neutrino in a viewer.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
        epilog="Commands: satview --help. Exit codes: docs/exit-codes.md.",
    )
    add = parser.add_argument
    add("-h", "--help", action="store_true", help="show the commands and the most common options")
    add("--help-all", action="store_true", help="show this help: all viewer options")
    add(
        "files",
        nargs="*",
        metavar="FILE",
        type=Path,
        help="traces to open, each in its own window; 'FILE#t=1.2s..1.5s&sel=1200' also sets range and selection",
    )
    add("--sample", action="store_true", help="open the trace that comes with satview")
    add("--version", action="store_true", help="print the version")
    add("--verbose", action="store_true", help="with --version: also print the platform, libraries and core")
    add("--theme", choices=("system", "light", "dark"), help="colour theme of the windows")
    add("--palette", choices=PALETTES, help="colours of thread states; print uses greys on white", default="")
    add_range(add, "time range to show first")
    add("--select", type=int, metavar="N", help="select event number N")
    add("--session", default="", metavar="NAME", help="restore a saved session, given by name or file")
    add("--compare", default="", metavar="FILE", type=InputFile,
        help="open a second trace beside FILE, to compare before and after")  # fmt: skip
    add(
        "--lanes", default="", metavar="NAMES",
        help="event lanes to show if the trace has such events, separated by commas: "
        + ", ".join(lane_class.name for lane_class in LANE_CLASSES),
    )  # fmt: skip
    add(
        "--labels", default="", metavar="NAMES",
        help="text to show inside intervals, separated by commas: " + ", ".join(Label),
    )  # fmt: skip
    add("--user-events", default="", metavar="FILE", type=InputFile,
        help="XML file from the vendor's toolkit with names and fields of user events")  # fmt: skip
    add_pidin(add)
    add_symbols(add)
    add("--new-instance", action="store_true", help="start a new satview instead of using the one that is running")
    add("--follow", action="store_true", help="reload .kev files as they grow; they need not exist yet")
    add("--no-cache", action="store_true", help="decode large files from scratch and do not cache the result")
    add("--memory-limit", type=_megabytes, default=0, metavar="MB",
        help="memory for trace columns; the rest goes to unnamed temporary files")  # fmt: skip
    add(
        "--debug",
        default="",
        metavar="NAMES",
        help="log more; switches: " + ", ".join(f"{name} ({text})" for name, text in process.SWITCHES.items()),
    )
    axis = parser.add_argument_group("several files as one trace on one time axis")
    axis.add_argument("--together", action="store_true", help="open all FILEs as one trace; see `satview together`")
    add_axis_options(axis.add_argument)
    picture = parser.add_argument_group("screenshot instead of a window; needs no display")
    picture.add_argument("--screenshot", type=OutputFile, metavar="OUT.png",
                         help="file to save; .svg and .pdf contain only the lanes, a title and a legend")  # fmt: skip
    picture.add_argument("--size", default="1600x1000", metavar="WxH", help="window size (default %(default)s)")
    picture.add_argument("--scale", type=int, choices=(1, 2), default=1, help="output pixels for each pixel of --size")
    setup = parser.add_argument_group("set-up; opens no window").add_mutually_exclusive_group()
    setup.add_argument(
        "--install-desktop", action="store_true",
        help="add satview to the desktop menu and register the .kev file type"
    )  # fmt: skip
    setup.add_argument("--uninstall-desktop", action="store_true", help="undo --install-desktop")
    setup.add_argument("--print-completion", choices=("bash", "zsh", "tcsh"), help="print a shell completion script")
    return parser


def _version_lines() -> list[str]:
    """Return lines with the versions of satview, Python and the libraries, and which compiled core is loaded."""
    lines = [f"satview {__version__}", f"Python {platform.python_version()} on {platform.platform()}"]
    for name in ("PySide6-Essentials", "numpy", "pyqtgraph", "construct"):
        try:
            lines.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            lines.append(f"{name} is not installed")
    return [*lines, f"core: {describe()}"]


def _refuse_misspelt(words: list[str]) -> None:
    """Raise a `UsageError` if the first word has no folder and no ending, like a command, and is not a file."""
    word = words[0] if words else ""
    if not re.fullmatch(r"\w[\w-]*", word) or Path(word).exists():
        return
    near = difflib.get_close_matches(word.lower(), command_names(), 1)
    if word in near:
        raise UsageError(f"{word!r} is not a file; a command comes first: `satview {word} ...`")
    hint = f"did you mean `satview {near[0]}`?" if near else "`satview --help` lists the commands"
    raise UsageError(f"{word!r} is neither a command nor a file; {hint}")


def _axis_of(options: argparse.Namespace) -> Path:
    """Write the file that puts the files of the command line on one axis, stored for the user; return its path."""
    if options.follow:
        raise UsageError("--together reads whole files; leave out --follow")
    from satview.cli.convert.together import viewer_axis  # brings numpy

    return viewer_axis(options)


def _show(options: argparse.Namespace) -> int:
    """Show windows, or write a screenshot of one; return the exit code."""
    try:
        process.enable(options.debug)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if options.follow and (options.screenshot is not None or not options.files):
        raise UsageError("--follow needs a FILE and a window")
    if options.screenshot is not None:
        with signals_raise():
            return _screenshot(options)
    for name in ("range", "select", "session", "compare"):
        if getattr(options, name) and not options.files:
            raise UsageError(f"--{name} needs a FILE")
    if not has_display():
        raise UsageError(
            "no display is available; `satview FILE --screenshot OUT.png` and the commands in --help do not need one"
        )
    from satview.gui.windows import application  # Qt: only when windows are requested

    looks = _looks(options)
    is_plain = not (looks or options.no_cache or options.debug or options.new_instance)
    return application.run(
        [_link(options, str(file)) for file in options.files],
        looks,
        options.follow,
        is_cached=not options.no_cache,
        is_shared=is_plain,
    )


def _looks(options: argparse.Namespace) -> dict[str, str | int]:
    """Return the settings that the command line gives, by name; they are valid for this run only.

    Raises:
        UsageError: A name is unknown, or a file or folder with names of events, threads or functions is faulty.
    """
    _check_names(options.lanes, [lane_class.name for lane_class in LANE_CLASSES], "event lanes")
    _check_names(options.labels, list(Label), "labels")
    if options.user_events:
        from satview.formats.user_event_file import read_user_events  # brings a parser of XML

        read_user_events(Path(options.user_events))
    if options.pidin:
        from satview.formats.outside_names import read_pidin  # brings numpy

        read_pidin(Path(options.pidin))
    if options.symbols:
        from satview.formats.outside_names import check_folder  # brings a parser of ELF files

        check_folder(Path(options.symbols))
    looks: dict[str, str | int] = {
        "files/memory_mb": options.memory_limit,
        "window/theme": options.theme or "",
        "swimlane/palette": options.palette,
        "swimlane/lane_classes": options.lanes,
        "swimlane/labels": options.labels,
        "events/pidin": str(Path(options.pidin).resolve()) if options.pidin else "",
        "events/symbols": str(Path(options.symbols).resolve()) if options.symbols else "",
        "events/user_events": str(Path(options.user_events).resolve()) if options.user_events else "",
    }
    return {key: value for key, value in looks.items() if value}


def _megabytes(text: str) -> int:
    most = 1_000_000  # as of the setting
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"{text!a} is not a number of megabytes from 1 to {most}")
    return int(text)


def _check_names(text: str, known: Sequence[str], what: str) -> None:
    """Raise a `UsageError` if one of the names in a text, separated by commas, is not among the `known` ones.

    `what` describes the known names in the message.
    """
    for name in (part.strip() for part in text.split(",") if text):
        if name not in known:
            raise UsageError(f"{name!r:.60} is not one of the {what}: {', '.join(known)}")


def _link(options: argparse.Namespace, file: str) -> TraceLink:
    """Return what to open and show first: the options say it where the link, or path, does not."""
    link = parse_link(file)
    return replace(
        link,
        range_text=link.range_text or options.range,
        event=options.select if link.event is None else link.event,
        session=options.session,
        beside=str(Path(options.compare).absolute()) if options.compare else "",
    )


def _set_up(options: argparse.Namespace) -> int:
    """Install or uninstall the desktop entry, or print the shell completion; return the exit code."""
    if options.files or options.sample:
        raise UsageError("--install-desktop, --uninstall-desktop and --print-completion take no FILE")
    if options.print_completion:
        print(completion(whole_parser(), options.print_completion))
        return FINE

    print("\n".join(install_entry() if options.install_desktop else uninstall_entry()))
    return FINE


def _screenshot(options: argparse.Namespace) -> int:
    if len(options.files) != 1:
        raise UsageError("--screenshot takes exactly one FILE")
    width, cross, height = options.size.partition("x")
    if not (
        cross
        and width.isdecimal()
        and height.isdecimal()
        and 200 <= int(width) <= 16000
        and 200 <= int(height) <= 16000
    ):
        raise UsageError(f"--size {options.size[:40]!r}: write WIDTHxHEIGHT, from 200x200 to 16000x16000")
    link = _link(options, str(options.files[0]))
    looks = _looks(options) | {"window/theme": options.theme if options.theme in ("light", "dark") else "light"}
    from satview.gui.windows import screenshot  # Qt: only when a picture is requested
    from satview.session.state_files import users_sessions

    output, is_cached = Path(options.screenshot), not options.no_cache
    request = screenshot.ScreenshotRequest(link, output, int(width), int(height), options.scale, looks, is_cached)
    session = [InputFile(users_sessions().path_of(link.session))] if link.session else []
    inputs = argparse.Namespace(**vars(options), others=[InputFile(link.path), *session])
    with keeps_inputs(lambda: files_read(inputs)), working(working_on("drawing", link.path)):
        return screenshot.take(request)


def commands_by_purpose() -> dict[str, dict[str, str]]:
    """Return the commands with their help texts, grouped by purpose."""
    subparsers = (action for action in whole_parser()._actions if isinstance(action, argparse._SubParsersAction))
    by_purpose: dict[str, dict[str, str]] = {purpose: {} for purpose in PURPOSES}
    for choice in next(subparsers)._choices_actions:  # argparse has no public list; shtab reads the same one
        purpose, _, _ = command_names()[choice.dest].partition(".")
        by_purpose[purpose][choice.dest] = choice.help or ""
    return by_purpose


def _short_help() -> str:
    """Return a help text of one screen: how to open a trace, and the commands by purpose."""
    lines = [
        "usage: satview [options] [FILE ...]",
        "       satview COMMAND [options] ...",
        "Opens kernel event traces of QNX Neutrino in a viewer.",
        "",
        *(f"  {option:<22} {text}" for option, text in _FIRST_OPTIONS),
    ]
    for purpose, commands in commands_by_purpose().items():
        rows = [f"{name:<13} {text}" for name, text in commands.items()]
        lines += ["", *(f"  {'' if number else purpose:<9} {row}" for number, row in enumerate(rows))]
    return "\n".join(
        [*lines, "", "`satview COMMAND --help` lists the options of a command; see also docs/commands.md."]
    )


# Installs satview on an XDG desktop for the current user: menu entry, icon, and file type of `.kev` files.
#
# Follows freedesktop.org's Desktop Entry, Icon Theme and Shared MIME-info specifications.


MIME_TYPE: Final = "application/x-qnx-kev"
_ENTRY: Final = Path("applications/satview.desktop")
_ICON: Final = Path("icons/hicolor/scalable/apps/satview.svg")
_TYPE: Final = Path("mime/packages/satview.xml")
# Commands that make desktops read the folders again: command, folder below the data folder, effect if it is missing.
_REFRESH: Final = (
    ("update-mime-database", "mime", "desktops may not recognize .kev files until shared-mime-info is installed"),
    ("update-desktop-database", "applications", ""),  # other desktops notice changes themselves
    ("gtk-update-icon-cache", "icons/hicolor", ""),
)
_REFRESH_S: Final = 60


def install_entry() -> list[str]:
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


def uninstall_entry() -> list[str]:
    """Remove the files that `install_entry` wrote; return lines that name the removed files.

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
    """Run the commands that tell desktops about the new entries in `folder`; return a line for each failure."""
    notes = []
    for command, subfolder, consequence in _REFRESH:
        program = absolute_program(command)
        if program is None:
            notes += [f"{command} is not installed: {consequence}"] if consequence else []
        elif (folder / subfolder).is_dir():
            is_done = _succeeds([program, str(folder / subfolder)])
            notes += [] if is_done or not consequence else [f"{command} failed: {consequence}"]
    return notes


def _succeeds(command: list[str]) -> bool:
    try:
        done = subprocess.run(command, capture_output=True, timeout=_REFRESH_S, check=False)  # noqa: S603  -- own words
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


# Checks whether a display server answers, because Qt aborts the process without one.


_PATIENCE_S: Final = 3.0
_X_PORT: Final = 6000
_DISPLAY: Final = re.compile(r"(?:unix|[a-z]+/unix)?(?P<host>[^:/]*):(?P<number>[0-9]{1,5})(?:\.[0-9]+)?")


def has_display() -> bool:
    """Return whether windows can be shown; a display can be missing only with X11 or Wayland.

    If Wayland answers and X11 does not, Qt is told to use Wayland.
    """
    if sys.platform in ("win32", "darwin", "cygwin"):
        return True
    platform = os.environ.get("QT_QPA_PLATFORM", "").partition(":")[0].partition(";")[0]
    if platform.startswith("wayland"):
        return _wayland_answers()
    if platform and platform != "xcb":
        return True
    if _x11_answers():
        return True
    if not platform and _wayland_answers():
        os.environ["QT_QPA_PLATFORM"] = "wayland"  # otherwise Qt tries X11 first, and aborts
        return True
    return False


def _wayland_answers() -> bool:
    name = os.environ.get("WAYLAND_DISPLAY")
    if not name:
        return False
    path = Path(os.environ.get("XDG_RUNTIME_DIR", "/"), name)  # an absolute name replaces the folder
    return _connects(socket.AF_UNIX, str(path))


def _x11_answers() -> bool:
    display = os.environ.get("DISPLAY")
    if not display:
        return False
    try:
        xcb = ctypes.CDLL("libxcb.so.1")  # the library that Qt uses; also checks authorization
    except OSError:
        return _x11_socket_answers(display)
    xcb.xcb_connect.restype = ctypes.c_void_p
    xcb.xcb_connect.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    xcb.xcb_connection_has_error.argtypes = xcb.xcb_disconnect.argtypes = [ctypes.c_void_p]
    connection = xcb.xcb_connect(None, None)
    if not connection:
        return False
    is_faulty = bool(xcb.xcb_connection_has_error(connection))
    xcb.xcb_disconnect(connection)
    return not is_faulty


def _x11_socket_answers(display: str) -> bool:
    parts = _DISPLAY.fullmatch(display)
    if parts is None:
        return Path(display).exists()
    number = int(parts["number"])
    if parts["host"]:
        return _connects(socket.AF_INET, (parts["host"], _X_PORT + number))
    return _connects(socket.AF_UNIX, f"/tmp/.X11-unix/X{number}") or _connects(  # noqa: S108  -- X11's fixed path
        socket.AF_UNIX, f"\0/tmp/.X11-unix/X{number}"
    )


def _connects(family: int, address: str | tuple[str, int]) -> bool:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as connection:
            connection.settimeout(_PATIENCE_S)
            connection.connect(address)
    except (OSError, ValueError):
        return False
    return True
