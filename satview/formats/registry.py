"""Finds the reader for a file by its first bytes and opens it; unpacks compressed traces and standard input."""

from __future__ import annotations

import atexit
import gzip
import io
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from satview.base.errors import IS_A_FOLDER, NO_SUCH_FILE, Cancelled, TraceFormatError
from satview.base.named_files import check_below, folders, name_fault
from satview.base.new_file import NewFile
from satview.base.plugins import Plugin, PluginKind, plugins
from satview.base.process import standard_input
from satview.formats.unixware import columns
from satview.store import axis
from satview.store.mark_file import note_files
from satview.store.trace import Trace

if TYPE_CHECKING:
    import gzip


# Opens compressed traces and traces from standard input, unpacking them within limits.
#
# `.gz` is read by Python itself, `.zst` by Python from 3.14 on and by the package `zstandard` before.


TRACE_PATTERNS: Final = ("*.kev", "*.kev.gz", "*.kev.zst", "*.qst")  # of the traces in a folder
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_BLOCK: Final = 1 << 18
_ZSTD_FEED: Final = 1 << 12  # four bytes can unpack to 128 KiB, so a read stays below 128 MiB
# Real captures shrink to about a tenth. A file that grows a hundredfold is a decompression bomb, unless it is small.
RATIO_MAX: Final = 100
_FREE_BYTES: Final = 256 << 20


def is_packed(first_bytes: bytes) -> bool:
    """Return whether the first bytes of a file show that it is compressed by gzip or zstd."""
    return first_bytes.startswith((_GZIP, _ZSTD))


class _Counting(io.RawIOBase):
    """A stream of the bytes already read from a file, then of its other bytes; `count` counts the bytes returned."""

    def __init__(self, first_bytes: bytes, file: BinaryIO) -> None:
        self._first, self._file = first_bytes, file
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if self._first:
            data, self._first = self._first[: len(buffer)], self._first[len(buffer) :]
        else:
            data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self.count += len(data)
        return len(data)


class _Zstd:
    """Unpacks successive zstd frames; unlike the reader of the zstd package, this class detects a missing end.

    Args:
        packed: The frames.
        new_frame: Returns a decompressor for a frame, with `decompress(data)`, `eof` and `unused_data` as in Python
            3.14.
    """

    def __init__(self, packed: _Counting, new_frame: Callable[[], Any]) -> None:
        self._packed, self._new_frame = packed, new_frame
        self._frame: Any = None
        self._next = b""
        self._ready = memoryview(b"")

    def read(self, size: int) -> memoryview:
        """Return at least one and at most `size` bytes; none at the end. EOFError if the last frame is not complete."""
        while not self._ready:
            data, self._next = self._next or self._packed.read(_ZSTD_FEED) or b"", b""
            if not data:
                if self._frame is not None:
                    raise EOFError("its last frame is not complete")
                break
            self._frame = self._frame or self._new_frame()
            self._ready = memoryview(self._frame.decompress(data))
            if self._frame.eof:
                self._next, self._frame = self._frame.unused_data, None
        part, self._ready = self._ready[:size], self._ready[size:]
        return part


def grows_too_much(size: int, packed: int) -> bool:
    """Return whether `size` unpacked bytes are more than a trace of `packed` compressed bytes can have."""
    return size > _FREE_BYTES and size > RATIO_MAX * packed


class _Bounded(io.RawIOBase):
    """A stream of unpacked bytes that raises TraceFormatError for decompression bombs and damaged data."""

    def __init__(
        self, unpacked: gzip.GzipFile | _Zstd, packed: _Counting, path: Path, faults: tuple[type[Exception], ...]
    ) -> None:
        self._unpacked, self._packed, self._path, self._faults = unpacked, packed, path, faults
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            data = self._unpacked.read(len(buffer))
        except self._faults as error:
            raise TraceFormatError(
                self._path, None, f"the compressed data is damaged or cut short ({error})", "copy the file again"
            ) from error
        self._count += len(data)
        if grows_too_much(self._count, self._packed.count):
            raise TraceFormatError(
                self._path,
                None,
                f"it unpacks to more than {RATIO_MAX} times its size, as no trace does",
                "unpack it yourself if you trust it",
            )
        buffer[: len(data)] = data
        return len(data)


def unpacked_stream(first_bytes: bytes, file: BinaryIO, path: Path) -> BinaryIO:
    """Return a stream of the bytes of a file, unpacked if they are compressed.

    Args:
        first_bytes: Bytes that were already read, at least 4 unless the file is shorter.
        file: The rest of the file.
        path: The file, for messages.

    Raises:
        TraceFormatError: On reading from the stream: the file is damaged, or unpacks to more than a trace can.
    """
    packed = _Counting(first_bytes, file)
    if first_bytes.startswith(_GZIP):
        unpacked = gzip.GzipFile(fileobj=packed, mode="rb")
        return io.BufferedReader(_Bounded(unpacked, packed, path, (EOFError, OSError, zlib.error)), _BLOCK)
    if first_bytes.startswith(_ZSTD):
        frames, fault = _zstd(packed)
        return io.BufferedReader(_Bounded(frames, packed, path, (EOFError, fault)), _BLOCK)
    return io.BufferedReader(packed, _BLOCK)


def _zstd(packed: _Counting) -> tuple[_Zstd, type[Exception]]:
    if sys.version_info >= (3, 14):
        module = import_module("compression.zstd")
        return _Zstd(packed, module.ZstdDecompressor), module.ZstdError
    import zstandard  # a package that few files need

    return _Zstd(packed, lambda: zstandard.ZstdDecompressor().decompressobj()), zstandard.ZstdError


def zstd_block(data: bytes, size: int) -> bytes:
    """Unpack zstd frames to at most `size` bytes; ValueError if they are damaged, or unpack to more."""
    frames, fault = _zstd(_Counting(b"", io.BytesIO(data)))
    content = bytearray()
    try:
        while len(content) <= size and (more := frames.read(_BLOCK)):
            content += more
    except (fault, EOFError) as error:
        raise ValueError(str(error)) from error
    if len(content) > size:
        raise ValueError("it unpacks to more than it announces")
    return bytes(content)


def opened_plain(path: Path, open_plain: Callable[[Path], Trace], cancelled: Callable[[], bool] | None = None) -> Trace:
    """Open a trace that may be compressed or come from standard input; the trace has the given path.

    Args:
        path: A file or a folder, or `-` for standard input.
        open_plain: Opens an uncompressed file or a folder.
        cancelled: Called while unpacking; True stops.

    Raises:
        TraceFormatError: As for `unpacked_stream` and `open_plain`, with `path`.
        Cancelled: `cancelled()` returned True.
        WriteError: There is not enough disk space for the unpacked file.
    """
    if str(path) == "-":
        with _plain_file(standard_input(), path, cancelled) as plain:
            return _renamed(plain, path, open_plain)
    if path.is_file():
        with path.open("rb") as file:
            if is_packed(file.read(4)):
                file.seek(0)
                with _plain_file(file, path, cancelled) as plain:
                    return _renamed(plain, path, open_plain)
    return open_plain(path)


def _renamed(plain: Path, path: Path, open_plain: Callable[[Path], Trace]) -> Trace:
    try:
        return replace(open_plain(plain), path=path)
    except TraceFormatError as error:
        raise TraceFormatError(path, error.offset, error.what, error.remedy) from error


@contextmanager
def _plain_file(file: BinaryIO, path: Path, cancelled: Callable[[], bool] | None) -> Iterator[Path]:
    """Unpack to a temporary file and yield its path; the file is removed after the block, but readable while open."""
    folder = Path(tempfile.mkdtemp(prefix="satview-"))
    try:
        first_bytes = file.read(4)
        name = "standard input" if str(path) == "-" else path.stem or path.name
        plain = folder / name
        with NewFile(plain) as out:
            stream = unpacked_stream(first_bytes, file, path)
            while data := stream.read(_BLOCK):
                if cancelled is not None and cancelled():
                    raise Cancelled("unpacking was stopped")
                out.stream.write(data)
        yield plain
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if os.name == "nt":  # Windows cannot delete a file that is still open
            atexit.register(shutil.rmtree, folder, ignore_errors=True)


# Finds the reader for a file by its first bytes, and opens it.


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
    Format("qst", "QST files", ("*.qst",), "satview.formats.qst", "open_qst"),
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
    Format("axis", "Traces on one time axis", ("*.sataxis",), "satview.formats.axis", "open_axis"),
)


def open_trace(path: Path | str, progress: Progress | None = None, cancelled: CancelCheck | None = None) -> Trace:
    """Open a trace of any format, also compressed by gzip or zstd; the content determines the reader.

    `-` is standard input.

    Raises:
        TraceFormatError: No reader accepts the file, or nothing can be read; the error has file, byte, reason and
            remedy.
        Cancelled: `cancelled()` returned True.
    """
    if not str(path):  # as a Path it would be the current folder
        raise TraceFormatError(None, None, "the name of the file is empty", "name a trace")
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
    if columns.is_member_name(path.name) or path.is_dir():
        try:
            files = columns.files_of([path])
        except (TraceFormatError, OSError):
            return [path]
        return [*files, *columns.names_files(files), *columns.times_files(files)]
    if axis.is_axis(path):  # its members are not axis files themselves
        return [path, *(part for member in axis.files_in(path) for part in _parts(member))]
    return [path]


def _best(path: Path) -> _Opener:
    if columns.is_set(path) or (columns.is_member_name(path.name) and path.is_file() and not path.stat().st_size):
        return cast(_Opener, import_module("satview.formats.unixware.reader").open_thread_trace)
    if path.is_dir():
        raise TraceFormatError(path, None, *IS_A_FOLDER)
    if not path.exists():
        raise TraceFormatError(path, None, *NO_SUCH_FILE)
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
            "this is not a trace that satview knows",
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
