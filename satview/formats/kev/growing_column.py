"""A column of a file that grows: every reading gets its own, and what they share is in memory once.

Copying a column for each reading took 19 bytes an event twice, and the allocator did not return the memory. Here the
rows that no later reading changes are pages of one file that has no name; a reading maps them privately and owns only
the pages that it writes. numpy alone cannot do that: an array that grows moves, and older readings would move with it.
"""

from __future__ import annotations

import mmap
import os
import weakref

import numpy as np
from numpy.typing import DTypeLike, NDArray


class GrowingColumn:
    """One column, written by one decoder and seen by many readings.

    Args:
        dtype: Of its rows.

    Raises:
        OSError: The system has no room for it.
    """

    def __init__(self, dtype: DTypeLike) -> None:
        self._dtype = np.dtype(dtype)
        # Memory where the system offers such a file (Linux), else in the folder of temporary files.
        self._is_memory = hasattr(os, "memfd_create")
        if self._is_memory:
            self._file = os.memfd_create("satview-column")
            weakref.finalize(self, os.close, self._file)
        else:
            import tempfile  # on first use: few traces need files beside them

            stored = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed with this object
            self._file = stored.fileno()
            weakref.finalize(self, stored.close)
        self._size = 0

    def writable(self, rows: int) -> NDArray[np.generic]:
        """Return the column with room for `rows` rows, to write to; rows written before are there.

        Returns:
            Of the column's type, (rows,).

        Raises:
            OSError: The system has no room for it.
        """
        self._grow(rows * self._dtype.itemsize)
        return self._mapped(rows, mmap.ACCESS_WRITE)

    def reading(self, written: NDArray[np.generic], settled: int) -> NDArray[np.generic]:
        """Return the column as it is now, for one reading, which may write to it: no other sees that.

        Args:
            written: All rows, as `writable` gave them.
            settled: Rows that will not be written again. The others are copied.

        Returns:
            Of the column's type, (rows,).

        Raises:
            OSError: The system has no room for it.
        """
        column = self._mapped(len(written), mmap.ACCESS_COPY)
        # The decoder writes the unsettled rows again for the next reading; this one must not see that.
        column[settled:] = written[settled:]  # writing makes the pages its own
        return column

    def _mapped(self, rows: int, access: int) -> NDArray[np.generic]:
        if not rows:  # nothing cannot be mapped
            return np.empty(0, self._dtype)
        # The array keeps the map, and the map keeps the file.
        return np.frombuffer(mmap.mmap(self._file, rows * self._dtype.itemsize, access=access), self._dtype)

    def _grow(self, size: int) -> None:
        if size <= self._size:
            return
        if self._is_memory:
            os.ftruncate(self._file, size)  # pages are real once written
        else:
            # Written, not only made longer: a full disk is an error here, and a dead process at the first store else.
            os.lseek(self._file, self._size, os.SEEK_SET)
            blank = bytes(1 << 20)
            at = self._size
            while at < size:
                at += os.write(self._file, blank[: size - at])
        self._size = size
