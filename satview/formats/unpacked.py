"""Opens compressed traces and traces from standard input, unpacking them within limits.

`.gz` is read by Python itself, `.zst` by Python from 3.14 on and by the package `zstandard` before.
"""

from __future__ import annotations

import atexit
import io
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from satview.base.errors import Cancelled, TraceFormatError
from satview.base.new_file import NewFile
from satview.base.process import standard_input
from satview.store.trace import Trace

if TYPE_CHECKING:
    import gzip

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
    """The bytes already read from a file, followed by its other bytes; counts them."""

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
    """Unpacks successive zstd frames; unlike the reader of the package, it detects a missing end.

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
        """Return at least one and at most `size` bytes; no bytes at the end.

        Raises:
            EOFError: The last frame is not complete.
        """
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
        import gzip  # rarely needed

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
    """Unpack zstd frames to at most `size` bytes.

    Raises:
        ValueError: The data is damaged, or unpacks to more bytes.
    """
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
    """Unpack to a temporary file and yield its path; it is removed after the block, but stays readable while open."""
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
