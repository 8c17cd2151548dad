"""Standard input that a signal can end, whenever it comes."""

from __future__ import annotations

import io
import os
import select
import sys
from typing import BinaryIO, Final

# Python runs the handler of a signal between two steps of the program. One that arrives after the last step before
# read(2) is noticed when that returns, which on an idle pipe is never. So no read waits longer than this.
_WAIT_S: Final = 0.2


class _Interruptible(io.RawIOBase):
    """Reads from a file descriptor and lets signal handlers run while there is nothing to read."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not select.select([self._descriptor], [], [], _WAIT_S)[0]:
            pass
        return os.readv(self._descriptor, [buffer])


def standard_input() -> BinaryIO:
    """Return the bytes of standard input.

    Make one per process: it reads ahead, so another one would miss bytes. On Windows, where pipes cannot be waited
    for, and where standard input was replaced by an object without a descriptor, it is `sys.stdin.buffer`.
    """
    buffer: BinaryIO = sys.stdin.buffer
    try:
        descriptor = buffer.fileno()
    except (AttributeError, io.UnsupportedOperation):
        return buffer
    return buffer if os.name == "nt" else io.BufferedReader(_Interruptible(descriptor))
