"""Compressed traces and traces from standard input: unpacked on the way, within bounds.

`.gz` is read by Python itself, `.zst` by Python from 3.14 on or by the package `zstandard` where it is installed:
satview does not depend on a package for it.
"""

from __future__ import annotations

import atexit
import contextlib
import gzip
import io
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import BinaryIO, Final, cast

from satview.base.errors import Cancelled, TraceFormatError
from satview.base.new_file import NewFile
from satview.base.standard_input import standard_input
from satview.store.trace import Trace

_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_BLOCK: Final = 1 << 18
# Real captures shrink to a tenth or so. What grows a hundredfold is a bomb, not a trace; small files are harmless.
_RATIO_MAX: Final = 100
_FREE_BYTES: Final = 256 << 20


def is_packed(first: bytes) -> bool:
    """Tell by the first bytes whether a file is compressed by gzip or zstd."""
    return first.startswith((_GZIP, _ZSTD))


class _Counting(io.RawIOBase):
    """Passes bytes on and counts them."""

    def __init__(self, first: bytes, file: BinaryIO) -> None:
        self._first, self._file = first, file
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


class _Bounded(io.RawIOBase):
    """The unpacked bytes; refuses a bomb, and says in one sentence what is wrong with a damaged file."""

    def __init__(self, unpacked: BinaryIO, packed: _Counting, path: Path, faults: tuple[type[Exception], ...]) -> None:
        self._unpacked, self._packed, self._path, self._faults = unpacked, packed, path, faults
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            data = self._unpacked.read(len(buffer))
        except self._faults as error:
            raise TraceFormatError(self._path, None, f"the compressed data is damaged or cut short ({error})",
                                   "copy the file again") from error
        self._count += len(data)
        if self._count > _FREE_BYTES and self._count > _RATIO_MAX * self._packed.count:
            raise TraceFormatError(self._path, None, f"it unpacks to more than {_RATIO_MAX} times its size, as no "
                                   "trace does", "unpack it yourself if you trust it")
        buffer[: len(data)] = data
        return len(data)


def unpacked_stream(first: bytes, file: BinaryIO, path: Path) -> BinaryIO:
    """Return the bytes of a file, unpacked if they are compressed.

    Args:
        first: What has been read of it already, 4 bytes or more unless it is shorter.
        file: The rest.
        path: For messages.

    Raises:
        TraceFormatError: It is compressed by zstd, which cannot be unpacked here. While reading: it is damaged, or
            unpacks to more than a trace can.
    """
    packed = _Counting(first, file)
    if first.startswith(_GZIP):
        unpacked = cast(BinaryIO, gzip.GzipFile(fileobj=packed, mode="rb"))
        return io.BufferedReader(_Bounded(unpacked, packed, path, (EOFError, OSError, zlib.error)), _BLOCK)
    if first.startswith(_ZSTD):
        unpacked, fault = _zstd(packed, path)
        return io.BufferedReader(_Bounded(unpacked, packed, path, (EOFError, fault)), _BLOCK)
    return io.BufferedReader(packed, _BLOCK)


def _zstd(packed: _Counting, path: Path) -> tuple[BinaryIO, type[Exception]]:
    with contextlib.suppress(ImportError):
        module = import_module("compression.zstd")
        return module.ZstdFile(packed, "rb"), module.ZstdError
    with contextlib.suppress(ImportError):
        module = import_module("zstandard")
        return module.ZstdDecompressor().stream_reader(packed, read_across_frames=True), module.ZstdError
    raise TraceFormatError(path, 0, "it is compressed by zstd, which this Python cannot unpack",
                           "run `unzstd` on it, install the package zstandard, or use Python 3.14")


def opened_plain(
    path: Path, open_plain: Callable[[Path], Trace], cancelled: Callable[[], bool] | None = None
) -> Trace:
    """Open a trace that may be compressed or come from standard input; its path is the one that was given.

    Args:
        path: A file or a folder, or `-` for standard input.
        open_plain: Opens a file that is neither.
        cancelled: Asked while unpacking.

    Raises:
        TraceFormatError: As `unpacked_stream`, and what `open_plain` raises, about `path`.
        Cancelled: `cancelled()` returned True.
        WriteError: There is no room for the unpacked file.
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
    """Unpack into a file of its own, which goes at the end of the block; a mapping of it lives on."""
    folder = Path(tempfile.mkdtemp(prefix="satview-"))
    try:
        first = file.read(4)
        name = "standard input" if str(path) == "-" else path.stem or path.name
        plain = folder / name
        with NewFile(plain) as out:
            stream = unpacked_stream(first, file, path)
            while data := stream.read(_BLOCK):
                if cancelled is not None and cancelled():
                    raise Cancelled("unpacking was stopped")
                out.stream.write(data)
        yield plain
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if os.name == "nt":  # a mapped file stays until the trace is gone
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
