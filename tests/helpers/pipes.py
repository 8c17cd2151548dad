"""Pipes as they come to a reader: a few bytes at a time."""

from __future__ import annotations

import io


class Trickle(io.RawIOBase):
    """A pipe that gives a few bytes at a time."""

    def __init__(self, content: bytes, step: int) -> None:
        self._file, self._step = io.BytesIO(content), step

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._file.read(min(size, self._step) if size >= 0 else self._step)
