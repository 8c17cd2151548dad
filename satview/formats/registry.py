"""Finds the reader for a file by its first bytes, and opens it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Final, cast

from satview.base.errors import TraceFormatError
from satview.base.named_files import check_below, folders, name_fault
from satview.base.plugins import Plugin, PluginKind, plugins
from satview.formats.unixware import members
from satview.formats.unpacked import opened_plain
from satview.store import axis_file
from satview.store.mark_file import note_files
from satview.store.trace import Trace

Progress = Callable[[float], None]
CancelCheck = Callable[[], bool]
_Opener = Callable[[Path, Progress | None, CancelCheck | None], Trace]
_SAMPLE_BYTES: Final = 4096
_CERTAIN: Final = 100


@dataclass(frozen=True, slots=True)
class Format:
    """A file format and its reader; the module is imported when a file needs it.

    Attributes:
        name: Short name, as in `Trace.format`.
        title: Title for file dialogs.
        patterns: File name patterns, for file dialogs.
        module: Module with `score(first_bytes, path) -> int` (0 = certainly not, 100 = certainly).
        opener: Name of the function `(path, progress, cancelled) -> Trace` in this module.
    """

    name: str
    title: str
    patterns: tuple[str, ...]
    module: str
    opener: str


FORMATS: Final = (
    Format("kev", "Kernel event traces", ("*.kev",), "satview.formats.kev.reader", "open_kev"),
    Format("qst", "QST files", ("*.qst",), "satview.formats.qst.reader", "open_qst"),
    Format(
        "linux",
        "Schedules of Linux",
        ("*.dat", "*.data", "*.perf", "*.pftrace", "*.perfetto-trace"),
        "satview.formats.linux.reader",
        "open_linux",
    ),
    Format(
        "traceprinter", "traceprinter listings", ("*.txt", "*.log"), "satview.formats.listing.reader", "open_listing"
    ),
    Format(
        "thread_trace", "UnixWare thread traces", ("tr.*.*",), "satview.formats.unixware.reader", "open_thread_trace"
    ),
    Format("axis", "Traces on one time axis", ("*.sataxis",), "satview.formats.axis.reader", "open_axis"),
)


def open_trace(path: Path | str, progress: Progress | None = None, cancelled: CancelCheck | None = None) -> Trace:
    """Open a trace of any format, also compressed by gzip or zstd; the content determines the reader.

    `-` is standard input.

    Raises:
        TraceFormatError: No reader knows the format, or nothing can be read; has file, byte, reason and remedy.
        Cancelled: `cancelled()` returned True.
    """
    path = Path(path)
    if fault := name_fault(str(path)):
        raise TraceFormatError(path, None, fault, "check the name")
    if folders() is not None:
        for file in source_files(path):
            check_below(file)
    try:
        return opened_plain(path, lambda plain: _best(plain)(plain, progress, cancelled), cancelled)
    except MemoryError as error:
        raise TraceFormatError(
            path,
            None,
            "there is not enough memory to hold its events",
            "cut it with `satview filter`, or open it on a larger machine",
        ) from error
    except OSError as error:
        raise TraceFormatError(
            path, None, f"cannot be read: {error.strerror or error}", "check the name and the permissions"
        ) from error


def source_files(path: Path) -> list[Path]:
    """Return the files that belong to a trace, so that no output replaces them: all its files, and their notes."""
    return [file for part in _parts(path) for file in (part, *note_files(part))]


def _parts(path: Path) -> list[Path]:
    """Return the files that the trace at a path consists of."""
    if members.is_member_name(path.name) or path.is_dir():
        try:
            files = members.files_of([path])
        except (TraceFormatError, OSError):
            return [path]
        return [*files, *members.names_files(files), *members.times_files(files)]
    if axis_file.is_axis(path):  # its members are not axis files themselves
        return [path, *(part for member in axis_file.files_in(path) for part in _parts(member))]
    return [path]


def _best(path: Path) -> _Opener:
    if members.is_set(path) or (members.is_member_name(path.name) and path.is_file() and not path.stat().st_size):
        return cast(_Opener, import_module("satview.formats.unixware.reader").open_thread_trace)
    if path.is_dir():
        raise TraceFormatError(path, None, "this is a directory", "name a file in it")
    if not path.exists():
        raise TraceFormatError(path, None, "there is no such file", "check the name")
    if not path.is_file():
        raise TraceFormatError(path, None, "this is neither a file nor a directory", "copy it into a file first")
    with path.open("rb") as file:
        first_bytes = file.read(_SAMPLE_BYTES)
    if not first_bytes:
        raise TraceFormatError(
            path, 0, "the file is empty", "the capture wrote nothing; look at tracelogger's messages"
        )
    best, entry = 0, FORMATS[0]
    for candidate in FORMATS:
        sure = import_module(candidate.module).score(first_bytes, path)
        if sure > best:
            best, entry = sure, candidate
        if best >= _CERTAIN:
            break  # the remaining readers are not even imported
    if best < _CERTAIN and (other := _plugged(first_bytes, path, best)) is not None:
        return other
    if best <= 0:
        raise TraceFormatError(
            path,
            0,
            "this is no trace that satview knows",
            "open a .kev file written by tracelogger, or a listing printed by traceprinter",
        )
    return cast(_Opener, getattr(import_module(entry.module), entry.opener))


def _plugged(first_bytes: bytes, path: Path, best: int) -> _Opener | None:
    """Return the opener of the plug-in with the highest score for a file; None if no score is above `best`."""
    surest: Plugin | None = None
    for plugin in plugins(PluginKind.READER):
        sure = plugin.run(lambda reader: int(reader.score(first_bytes, path)), 0)
        if sure > best:
            best, surest = sure, plugin
    return None if surest is None else partial(_open_plugged, surest)


def _open_plugged(plugin: Plugin, path: Path, progress: Progress | None, cancelled: CancelCheck | None) -> Trace:
    trace = plugin.run(lambda reader: reader.open(path, progress, cancelled), None)
    if isinstance(trace, Trace):
        return trace
    if not plugin.fault:
        plugin.switch_off(TypeError(f"open() returned {type(trace).__name__}, no Trace"))
    raise TraceFormatError(
        path, None, f"the plug-in {plugin.name} of {plugin.package} failed to read it ({plugin.fault})",
        "report it to those who wrote the plug-in",
    )  # fmt: skip
