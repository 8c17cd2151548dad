"""The bits of a slot and the numbers of the internal classes: what every reader and writer of events agrees on.

Source: kernel event trace format, sections 3 and 7. Names of events and their arguments are data, in
`resources/events`; here is only what code must know by number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, Final, Literal, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from satview.events.class_table import plain_classes

# How values fall into the 32-bit words of a payload: 64-bit numbers, text, whole argument lists.


WORD_MASK: Final = 0xFFFFFFFF
NAME_BYTES: Final = 126  # as far as the kernel writes names

# A list ready for `encode`: name and words of each argument; 0 words = text up to the end.
Plan = tuple[tuple[str, int], ...]
Halves = TypeVar("Halves", int, NDArray[np.uint64], NDArray[np.int64])


def split64(value: int, byte_order: str) -> tuple[int, int]:
    """Return the two payload words of a 64-bit value, in payload order."""
    low, high = value & WORD_MASK, value >> 32 & WORD_MASK
    return (low, high) if byte_order == "little" else (high, low)


def join64(first: Halves, second: Halves, byte_order: str) -> Halves:
    """Return the 64-bit value of two words in payload order: numbers, or columns of 64-bit integers."""
    low, high = (first, second) if byte_order == "little" else (second, first)
    result: Halves = low | cast(Any, high) << 32  # the type of a shifted column differs between versions of numpy
    return result


def text_words(text: bytes, byte_order: str) -> list[int]:
    """Return a text with its NUL, zero-filled to a whole word."""
    raw = text + b"\0"
    raw += bytes(-len(raw) % 4)
    order = cast(Literal["little", "big"], byte_order)
    return [int.from_bytes(raw[at : at + 4], order) for at in range(0, len(raw), 4)]


def name_bytes(text: str) -> bytes:
    """Return a name as the kernel writes it: UTF-8, cut after 126 bytes."""
    return text.encode("utf-8", "replace")[:NAME_BYTES]


def encode(plan: Plan, values: Mapping[str, int | bytes], byte_order: str) -> list[int]:
    """Return the words of a payload, without padding.

    Args:
        plan: Names and widths in payload order, as `layout.plan_of` makes them.
        values: By name, texts as bytes; a number without a value is 0, a text without one is left out.
        byte_order: Of the target.
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
    """Return the event structure of 6.x: code and priority share the last word, in memory order (section 8.6)."""
    halves = (code & 0xFFFF, priority & 0xFFFF)
    low, high = halves if byte_order == "little" else halves[::-1]
    return [notify & WORD_MASK, number & WORD_MASK, value & WORD_MASK, low | high << 16]


def word_bytes(words: Sequence[int], byte_order: str) -> bytes:
    """Return payload words as the target's bytes."""
    return np.array(words, np.uint32).astype("<u4" if byte_order == "little" else ">u4").tobytes()


SLOT_BYTES: Final = 16

EVENT_MASK: Final = 0x3FF
CLASS_SHIFT: Final = 10
CLASS_MASK: Final = 0x1F
CODE_MASK: Final = 0x7FFF  # class and event together: 15 bits, the `code` column of every table
PROCESS_INJECTED: Final = 0x10000  # 8.0: a process, not the kernel, supplied the event
CPU_SHIFT: Final = 24
CPU_MASK: Final = 0x3F
STRUCT_SHIFT: Final = 30
CODE_COUNT: Final = CODE_MASK + 1


class Struct(IntEnum):
    """Bits 30 and 31 of the header word."""

    SIMPLE = 0
    COMBINE_BEGIN = 1
    COMBINE_CONTINUE = 2
    COMBINE_END = 3


class WireClass(IntEnum):
    """Internal classes, as they are in the header word; those of `class_table.plain_classes` too."""

    _ignore_ = "each"
    EMPTY = 0
    CONTROL = 1
    KER_CALL = 2
    INT = 3
    PR_TH = 4
    SYSTEM = 5
    USER = 6
    COMM = 7
    for each in plain_classes():
        vars()[each.name] = each.internal


def code(wire_class: int, event: int) -> int:
    """Return the 15-bit code of an internal class and event number."""
    return (wire_class & CLASS_MASK) << CLASS_SHIFT | (event & EVENT_MASK)


def class_of(event_code: int) -> int:
    """Return the internal class of a code."""
    return event_code >> CLASS_SHIFT & CLASS_MASK


def event_of(event_code: int) -> int:
    """Return the 10-bit event number of a code."""
    return event_code & EVENT_MASK


def are_of_threads(codes: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
    """Return which codes are events of threads, bool of the same shape: below 64, where those of processes begin.

    Source: section 7.1.
    """
    result: NDArray[np.bool_] = (codes >> CLASS_SHIFT == WireClass.PR_TH) & (codes & EVENT_MASK < 64)
    return result


CONTROL_TIME: Final = code(WireClass.CONTROL, 1)
CONTROL_BUFFER: Final = code(WireClass.CONTROL, 2)
CONTROL_BUFFER_END: Final = code(WireClass.CONTROL, 4)
CONTROL_DROPPED: Final = code(WireClass.CONTROL, 8)
BUFFER_END_COOKIE: Final = 0xE6E6E6E6

KER_EXIT_OFFSET: Final = 128  # event number of a kernel call's exit = call number + 128
KER_INT_OFFSET: Final = 256  # ... of its interrupted form
KER_64BIT: Final = 0x200  # 7.x on: payload holds 64-bit values

THREAD_RUNNING: Final = code(WireClass.PR_TH, 1)
THREAD_CREATE: Final = code(WireClass.PR_TH, 24)
THREAD_DESTROY: Final = code(WireClass.PR_TH, 25)
VTHREAD_OFFSET: Final = 26  # up to 7.x: virtual thread events follow the 26 thread events
PROC_CREATE: Final = code(WireClass.PR_TH, 64)
PROC_DESTROY: Final = code(WireClass.PR_TH, 128)
PROC_CREATE_NAME: Final = code(WireClass.PR_TH, 192)
PROC_DESTROY_NAME: Final = code(WireClass.PR_TH, 256)
PROC_THREAD_NAME: Final = code(WireClass.PR_TH, 320)
