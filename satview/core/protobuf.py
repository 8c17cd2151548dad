"""The compiled pass over messages of protobuf; `passes.c` says what it does and which numpy code is its twin."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from satview.core.signatures import call

_Ints = NDArray[np.int64]


def fields(data: NDArray[np.uint8], begin: _Ints, end: _Ints) -> tuple[_Ints, _Ints, _Ints, _Ints, NDArray[np.bool_]]:
    """Return the fields of messages.

    Args:
        data: uint8, contiguous.
        begin: int64 (n,), contiguous: where each message begins.
        end: int64 (n,), and where it ends.

    Returns:
        Message, number, value and length of each field, int64; which messages are damaged, bool (n,).
    """
    capacity = max(1024, int(np.maximum(end - begin, 0).sum()) // 8)
    is_bad = np.zeros(len(begin), np.uint8)
    while True:
        columns = [np.empty(capacity, np.int64) for _ in range(4)]
        rows = int(
            call("satview_protobuf", data, len(data), begin, end, len(begin), capacity, *columns, is_bad)
        )  # fmt: skip
        if rows <= capacity:
            message, number, value, length = (column[:rows] for column in columns)
            return message, number, value, length, is_bad.astype(np.bool_)
        capacity = rows
