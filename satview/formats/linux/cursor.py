"""Reads numbers and texts of a file one after the other, and never behind its end."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from satview.base.errors import TraceFormatError

ByteOrder = Literal["little", "big"]


class Cursor:
    """A position in some bytes.

    Args:
        data: The bytes.
        path: Of the file, for errors.
        at: Where to begin.
        order: Byte order of numbers.
        base: What is added to positions for errors, where the bytes are a part of the file.
    """

    def __init__(
        self, data: bytes | memoryview, path: Path, at: int = 0, order: ByteOrder = "little", base: int = 0
    ) -> None:
        self.data, self.path, self.at, self.order, self.base = memoryview(data), path, at, order, base

    @property
    def left(self) -> int:
        """Bytes that are left."""
        return len(self.data) - self.at

    def take(self, count: int, what: str) -> bytes:
        """Return some bytes.

        Raises:
            TraceFormatError: So many are not there.
        """
        if not 0 <= count <= self.left:
            raise TraceFormatError(self.path, self.base + self.at, f"the file ends inside {what}",
                                   "it was cut short; copy it again")  # fmt: skip
        self.at += count
        return bytes(self.data[self.at - count : self.at])

    def number(self, size: int, what: str) -> int:
        """Return an unsigned number of some bytes.

        Raises:
            TraceFormatError: It is not there.
        """
        return int.from_bytes(self.take(size, what), self.order)

    def text(self, what: str) -> str:
        """Return a text up to its NUL.

        Raises:
            TraceFormatError: It has no end.
        """
        end = self.at
        step = bytes(self.data[self.at : self.at + 4096])
        while (found := step.find(0)) < 0:
            end += len(step)
            step = bytes(self.data[end : end + 4096])
            if not step:
                self.take(self.left + 1, what)
        value = self.take(end + found - self.at, what)
        self.at += 1
        return value.decode("utf-8", "replace")
