"""Encodes values as 32-bit payload words: 64-bit numbers, text, whole argument lists.

Source: kernel event trace format, sections 2 and 8. The words of a payload are numbers in host order; a 64-bit value
takes two words in the target's memory order, text keeps its bytes in the order of the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

WORD_MASK: Final = 0xFFFFFFFF
NAME_BYTES: Final = 126  # the kernel cuts names after this length

# An argument list for `encode`: name and number of words of each argument; 0 words = text up to the end.
Plan = tuple[tuple[str, int], ...]
Halves = TypeVar("Halves", int, NDArray[np.uint64], NDArray[np.int64])


def split64(value: int, byte_order: str) -> tuple[int, int]:
    """Return the two payload words of a 64-bit value, in payload order."""
    low, high = value & WORD_MASK, value >> 32 & WORD_MASK
    return (low, high) if byte_order == "little" else (high, low)


def join64(word_0: Halves, word_1: Halves, byte_order: str) -> Halves:
    """Return the 64-bit value of two words in payload order: numbers, or columns of 64-bit integers."""
    low, high = (word_0, word_1) if byte_order == "little" else (word_1, word_0)
    result: Halves = low | cast(Any, high) << 32  # the type of a shifted column differs between versions of numpy
    return result


def text_words(text: bytes, byte_order: str) -> list[int]:
    """Return the payload words of a text and a NUL; the last word is filled with zeros."""
    raw = text + b"\0"
    raw += bytes(-len(raw) % 4)
    order = cast(Literal["little", "big"], byte_order)
    return [int.from_bytes(raw[start : start + 4], order) for start in range(0, len(raw), 4)]


def name_bytes(text: str) -> bytes:
    """Return a name as the kernel writes it: UTF-8, cut after 126 bytes."""
    return text.encode("utf-8", "replace")[:NAME_BYTES]


def encode(plan: Plan, values: Mapping[str, int | bytes], byte_order: str) -> list[int]:
    """Return the words of a payload, without padding.

    Args:
        plan: Names and widths in payload order, from `layout.plan_of`.
        values: Values by name, texts as bytes; a missing number is 0, a missing text is left out.
        byte_order: Byte order of the target.
    """
    words: list[int] = []
    get = values.get
    for name, width in plan:
        value = get(name, 0)
        if width == 1:
            words.append(value & WORD_MASK)  # type: ignore[operator]  # only texts are bytes, and their width is 0
        elif width:
            words += split64(cast(int, value), byte_order)
        elif isinstance(value, bytes):
            words += text_words(value, byte_order)
    return words


def sigevent_words(notify: int, number: int, value: int, code: int, priority: int, byte_order: str) -> list[int]:
    """Return the words of a sigevent of 6.x: code and priority share the last word, in memory order (section 8.6)."""
    halves = (code & 0xFFFF, priority & 0xFFFF)
    low, high = halves if byte_order == "little" else halves[::-1]
    return [notify & WORD_MASK, number & WORD_MASK, value & WORD_MASK, low | high << 16]


def word_bytes(words: Sequence[int], byte_order: str) -> bytes:
    """Return payload words as bytes in the target's byte order."""
    return np.array(words, np.uint32).astype("<u4" if byte_order == "little" else ">u4").tobytes()
