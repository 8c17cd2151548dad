"""A file that is mapped, not read: whoever looks into it asks first whether it is still the same."""

from __future__ import annotations

import os
import threading
import weakref
from pathlib import Path
from typing import Final

from satview.base.errors import SourceChangedError

_START_BYTES: Final = 4096


class MappedFile:
    """Remembers what a file was when it was mapped.

    A page of a map that its file has lost ends the program at the next look, whatever Python would have done about it.
    Asking costs a microsecond and leaves only that much time for such an end.

    Args:
        path: The file.
        size: Its length in bytes when it was mapped.
    """

    def __init__(self, path: Path, size: int) -> None:
        self._path, self._size = path, size
        # Stays the mapped file even if another one takes its name; closed with this object.
        self._file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        weakref.finalize(self, os.close, self._file)
        self._start = os.read(self._file, min(size, _START_BYTES))
        self._seen_ns = os.fstat(self._file).st_mtime_ns
        self._lock = threading.Lock()

    def check(self) -> None:
        """Ask whether the file still has the bytes that were mapped.

        Raises:
            SourceChangedError: It is shorter, or another one by its first bytes.
        """
        status = os.fstat(self._file)
        if status.st_size < self._size:
            self._refuse(status.st_size, f"it had {self._size:,} bytes when it was opened, now {status.st_size:,}")
        if status.st_mtime_ns != self._seen_ns:
            with self._lock:
                os.lseek(self._file, 0, os.SEEK_SET)
                start = os.read(self._file, len(self._start))
            if start != self._start:
                self._refuse(0, "it was written over after it had been opened")
            self._seen_ns = status.st_mtime_ns

    def _refuse(self, offset: int, what: str) -> None:
        raise SourceChangedError(self._path, offset, what, "open it again")
