"""The pid and tid that TraceEvent() stores per event of a class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(slots=True)
class PidTidTable:
    """pid and tid per event of one class, int32, 0 = none."""

    pid: NDArray[np.int32]
    tid: NDArray[np.int32]

    @classmethod
    def of_size(cls, count: int) -> PidTidTable:
        """Return a table without any setting."""
        return cls(np.zeros(count, np.int32), np.zeros(count, np.int32))
