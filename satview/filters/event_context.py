"""One event as rules see it, in captures and views, and the pid and tid that the kernel compares for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

from satview.events.spec import Release
from satview.events.wire import CPU_SHIFT, PROC_CREATE, VTHREAD_OFFSET, WireClass, class_of, event_of
from satview.events.words import WORD_MASK

NOT_TESTED: Final = -1  # instead of a tid: the kernel does not compare it, or the trace does not have it

_RECEIVED: Final = (2, 3)  # COMM RMSG, RPULSE
_KERNEL_PULSES: Final = range(4, 9)
_ANSWERED: Final = (10, 11)  # COMM REPLY, ERROR: word 0 is the client's tid, word 1 its pid


@dataclass(slots=True)
class EventContext:
    """One event with all that is known about it.

    Attributes:
        code: Internal class and event, 15 bits.
        pid: Process of the thread that the event belongs to; -1 = not known. Thread state events belong to the thread
            that changes its state, all others to the thread that runs on the CPU.
        tid: Number of this thread in its process, from 1; -1 = not known.
        words: Payload words in host order, padding included.
        cpu: CPU that logged it.
        time_ns: Nanoseconds since the start of the trace.
        tested: (pid, tid) that pid and tid rules compare, if the payload does not show them but the caller knows them
            (the receiving thread of a message); None = the result of `tested_thread`.
        process_name: Path or name of the process; empty if not known.
        thread_name: Name of the thread; empty if it has none.
        priority: Priority of the thread at that time; None = not known.
        duration_ns: Length of the kernel call that the event enters or leaves; None = not known (yet).
        length_ns: How long the thread stays in the state that the event begins; None = not known (yet).
        raw: Payload bytes as they are in the file; None = made from the words.
        word_count: Payload words without the padding of the last slot, at least 2; 0 = not known.
        latency_ns: Time between the two events of the pair that a trigger compares; None = not known.
        is_little_endian: Byte order of the target, for text and 64-bit values.
    """

    code: int
    pid: int = -1
    tid: int = -1
    words: tuple[int, ...] = (0, 0)
    cpu: int = 0
    time_ns: int = 0
    tested: tuple[int, int] | None = None
    process_name: str = ""
    thread_name: str = ""
    priority: int | None = None
    duration_ns: int | None = None
    length_ns: int | None = None
    raw: bytes | None = None
    is_little_endian: bool = True
    word_count: int = 0
    latency_ns: int | None = None

    @property
    def el_num(self) -> int:
        """Number of payload words that an event handler gets; padding is included if `word_count` is not known."""
        return self.word_count or len(self.words)

    @property
    def header(self) -> int:
        """The header word of the event, struct bits 0, as an event handler in the kernel gets it."""
        return self.cpu << CPU_SHIFT | self.code

    @property
    def payload(self) -> bytes:
        """The payload bytes; made from the words if the event is not from a file."""
        if self.raw is not None:
            return self.raw
        order: Literal["little", "big"] = "little" if self.is_little_endian else "big"
        return b"".join((word & WORD_MASK).to_bytes(4, order) for word in self.words)

    def word(self, index: int) -> int:
        """Return payload word `index`, unsigned; 0 if the payload is shorter."""
        return self.words[index] & WORD_MASK if index < len(self.words) else 0


FEATURE_PID: Final = 1  # bit 0 of feature_mask: pid is valid
FEATURE_TID: Final = 2
_APS_BANKRUPTCY: Final = 5


@cache
def has_feature(code: int) -> bool:
    """Return whether event handlers get a valid pid and tid for the events of a code (capture side, section 3.4)."""
    wire_class, event = class_of(code), event_of(code)
    if wire_class == WireClass.COMM:
        return event not in _KERNEL_PULSES
    if wire_class == WireClass.SYSTEM:
        return event == _APS_BANKRUPTCY
    return wire_class == WireClass.KER_CALL or (wire_class == WireClass.PR_TH and event < event_of(PROC_CREATE))


def feature_of(context: EventContext, release: Release) -> tuple[int, tuple[int, int]]:
    """Return the feature_mask that a handler gets for an event, and (pid, tid), which are (0, 0) if the mask is 0."""
    if not has_feature(context.code):
        return 0, (0, 0)
    pid, tid = tested_thread(context, release)
    return FEATURE_PID | FEATURE_TID, (pid, max(tid, 0))


def signed_word(word: int) -> int:
    """Return a 32-bit word as a signed number."""
    return word - (1 << 32) if word & 0x80000000 else word


def tested_thread(context: EventContext, release: Release) -> tuple[int, int]:
    """Return the pid and tid that a static pid or tid rule compares for one event.

    This is the calling thread for kernel calls, the thread whose state changes for THREAD and VTHREAD, the answered
    client for REPLY and ERROR, and the sending or receiving thread for other COMM events. For the kernel's own pulses,
    and for a receiver that is not the running thread, only the pid is known: then the tid is `NOT_TESTED` and is not
    compared. Source: description of the capture side, section 3.3.
    """
    if context.tested is not None:
        return context.tested
    wire_class, event = class_of(context.code), event_of(context.code)
    if wire_class == WireClass.PR_TH and release is not Release.QNX_8 and VTHREAD_OFFSET <= event < 2 * VTHREAD_OFFSET:
        return signed_word(context.word(0)), signed_word(context.word(1))
    if wire_class != WireClass.COMM:
        return context.pid, context.tid
    if event in _ANSWERED:
        return signed_word(context.word(1)), signed_word(context.word(0))
    if event in _KERNEL_PULSES:
        return signed_word(context.word(1)), NOT_TESTED
    if event in _RECEIVED and signed_word(context.word(1)) not in (-1, context.pid):
        return signed_word(context.word(1)), NOT_TESTED
    return context.pid, context.tid
