"""Where full kernel buffers go when no simulated logger takes them: straight into memory."""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

from satview.capture.buffers import Buffer
from satview.formats.kev.writer import slot_array


class MemorySink:
    """Takes every buffer at once, as an infinitely fast logger would."""

    def __init__(self) -> None:
        self._words = array("I") if array("I").itemsize == 4 else array("L")
        self.buffers = 0

    def __call__(self, buffer: Buffer) -> None:
        """Copy a full buffer and give it back."""
        self._words.extend(buffer.words)
        self.buffers += 1
        buffer.empty()

    def slots(self) -> NDArray[np.uint32]:
        """Return everything so far, shape (n, 4), uint32 in host order."""
        return slot_array(self._words)
