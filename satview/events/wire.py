"""The bits of a trace slot, and the numbers of internal classes and of events that code refers to.

Source: kernel event trace format, sections 3 and 7. Names and arguments of all events are data in `resources/events`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from satview.events.class_table import plain_classes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SLOT_BYTES: Final = 16

EVENT_MASK: Final = 0x3FF
CLASS_SHIFT: Final = 10
CLASS_MASK: Final = 0x1F
CODE_MASK: Final = 0x7FFF  # class and event together: 15 bits, the `code` column of every table
PROCESS_INJECTED: Final = 0x10000  # 8.0: a process, not the kernel, supplied the event
CPU_SHIFT: Final = 24
CPU_MASK: Final = 0x3F
MAX_CPUS: Final = 64
FAST_WORDS: Final = 2  # payload words of an event of one slot
STRUCT_SHIFT: Final = 30
CODE_COUNT: Final = CODE_MASK + 1


class Struct(IntEnum):
    """Bits 30 and 31 of the header word."""

    SIMPLE = 0
    COMBINE_BEGIN = 1
    COMBINE_CONTINUE = 2
    COMBINE_END = 3


class WireClass(IntEnum):
    """Internal classes of the header word, including those of `class_table.plain_classes`."""

    _ignore_ = "plain"
    EMPTY = 0
    CONTROL = 1
    KER_CALL = 2
    INT = 3
    PR_TH = 4
    SYSTEM = 5
    USER = 6
    COMM = 7
    for plain in plain_classes():
        vars()[plain.name] = plain.internal


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
    """Return whether each code is a thread event, bool of the same shape: class PR_TH with a number below 64.

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
KER_FORM: Final = KER_EXIT_OFFSET | KER_INT_OFFSET  # mask for exit and interrupted form of a kernel call; 0 = entry
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
