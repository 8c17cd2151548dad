"""Compiled passes over payloads of equal length, which find texts and equal payloads; see texts.c."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.core.library import call

IS_NUMBERS, IS_ASCII, MAY_BE_UTF8 = range(3)
_MIN_PLACES: Final = 16  # minimum size of the hash table


def text_kinds(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the kind of each payload, uint8 (n,): `IS_NUMBERS`, `IS_ASCII`, or `MAY_BE_UTF8` = text if valid UTF-8.

    Args:
        data: uint8 (n, bytes).
    """
    kinds = np.empty(len(data), np.uint8)
    call("text_kinds", data.shape[1], np.ascontiguousarray(data), kinds)
    return kinds


def same_rows(data: NDArray[np.uint8]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Number the distinct payloads; return the number of each payload, and the first payload with each number.

    If very many different payloads have the same hash, equal payloads may get different numbers.

    Args:
        data: uint8 (n, bytes).

    Returns:
        uint32 (n,) and uint32 (numbers,), ascending.
    """
    number, first_row = np.empty(len(data), np.uint32), np.empty(len(data), np.uint32)
    table = np.zeros(max(_MIN_PLACES, 1 << (2 * len(data)).bit_length()), np.uint32)
    count = call("same_rows", data.shape[1], np.ascontiguousarray(data), number, first_row, table)
    return number, first_row[:count]


def joined(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the concatenated payloads, each cut at its first zero byte and terminated by a zero byte, uint8.

    Args:
        data: uint8 (n, bytes).
    """
    count, size = data.shape
    out = np.empty(count * (size + 1), np.uint8)
    return out[: call("joined", size, count, np.ascontiguousarray(data), out)]
