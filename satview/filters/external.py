"""One event as rules see it: its numbers for TraceEvent(), and its pid and tid, in captures and views."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Final, Literal

from satview.events.spec import Release
from satview.events.variants import WORD_MASK
from satview.events.wire import (
    CPU_SHIFT,
    KER_64BIT,
    PROC_CREATE,
    VTHREAD_OFFSET,
    WireClass,
    class_of,
    code,
    event_of,
    external_classes,
    plain_classes,
)

# Classes and events with their numbers for TraceEvent(), and the mapping to the codes in trace slots.
#
# Programs use *external* classes and events; slots hold *internal* ones (`satview.events.wire`). Sources: kernel event
# trace format, section 7.1; description of the capture side, section 1.1. Up to 7.x the events of CONTROL, PROCESS,
# THREAD and VTHREAD are bit masks; in 8.0 thread events are plain state numbers.


class ExternalClass(IntEnum):
    """Class numbers of TraceEvent() and the traceparser library; names are without `_NTO_TRACE_`."""

    _ignore_ = "plain"
    EMPTY = 0
    CONTROL = 1
    KERCALL = 2
    KERCALLENTER = 3
    KERCALLEXIT = 4
    KERCALLINT = 5
    INT = 6
    INTENTER = 7
    INTEXIT = 8
    PROCESS = 9
    THREAD = 10
    VTHREAD = 11
    USER = 12
    SYSTEM = 13
    COMM = 14
    INT_HANDLER_ENTER = 15
    INT_HANDLER_EXIT = 16
    for plain in plain_classes():
        vars()[plain.name] = plain.external


NO_RING0: Final = 11  # undocumented number for `-F` of the 6.4 logger; it is read, but not written
RING0: Final = 2  # kernel call number
KER_CLASSES: Final = frozenset({ExternalClass.KERCALL, ExternalClass.KERCALLENTER, ExternalClass.KERCALLEXIT})
INT_CLASSES: Final = frozenset({
    ExternalClass.INT, ExternalClass.INTENTER, ExternalClass.INTEXIT, ExternalClass.INT_HANDLER_ENTER,
    ExternalClass.INT_HANDLER_EXIT,
})  # fmt: skip
MASK_CLASSES: Final = frozenset(
    {ExternalClass.CONTROL, ExternalClass.PROCESS, ExternalClass.THREAD, ExternalClass.VTHREAD}
)
LATER_CLASSES: Final = {ExternalClass(plain.external): WireClass(plain.internal) for plain in plain_classes()}
SECURITY: Final = next(external for external in LATER_CLASSES if external.name == "SEC")
CALL_COUNT: Final = 128  # kernel call numbers that have a switch
VECTOR_COUNT: Final = 256  # interrupt vectors that have a switch
USER_COUNT: Final = 1024
STATE_COUNT: Final = 64  # upper limit of thread state numbers, 8.0
OTHER_VECTOR: Final = VECTOR_COUNT  # index for all vectors that have no switch of their own

COMM_NAMES: Final = (
    "SMSG", "SPULSE", "RMSG", "RPULSE", "SPULSE_EXE", "SPULSE_DIS", "SPULSE_DEA", "SPULSE_UN", "SPULSE_QUN", "SIGNAL",
    "REPLY", "ERROR",
)  # fmt: skip
SYSTEM_COUNT: Final = {
    Release.QNX_6: 14,
    Release.QNX_6_6: 20,
    Release.QNX_7: 29,
    Release.QNX_8: 33,
    Release.UNIXWARE: 0,
    Release.LINUX: 0,
}  # number of SYSTEM events of a release
PROCESS_NAMES: Final = ("PROCCREATE", "PROCDESTROY", "PROCCREATE_NAME", "PROCDESTROY_NAME", "PROCTHREAD_NAME")


def classes_of(release: Release) -> tuple[ExternalClass, ...]:
    """Return the classes of TraceEvent() in a release, ascending."""
    return tuple(ExternalClass(number) for number in sorted(external_classes(release).values()))


def has_event_masks(external: ExternalClass, release: Release) -> bool:
    """Return whether the event argument of a class is a bit mask, which may select several events."""
    if external is ExternalClass.THREAD:
        return release is not Release.QNX_8
    return external in MASK_CLASSES


@dataclass(frozen=True, slots=True)
class ExternalEvent:
    """Class and number by which TraceEvent() addresses an event.

    Attributes:
        external: The most specific class (KERCALLENTER, never KERCALL); None if TraceEvent() has no class for it.
        number: Index of the event in its class: call number, state number, bit number of PROCESS, bit value of
            CONTROL, event number; 0 for interrupts, whose vector is in the payload.
        vector_word: Payload word that holds the interrupt vector; -1 for all other events.
    """

    external: ExternalClass | None
    number: int
    vector_word: int = -1


_INTERRUPTS: Final = {
    1: (ExternalClass.INTENTER, 0),
    5: (ExternalClass.INTENTER, 0),
    7: (ExternalClass.INTENTER, 0),
    2: (ExternalClass.INTEXIT, 0),
    3: (ExternalClass.INT_HANDLER_ENTER, 1),
    6: (ExternalClass.INT_HANDLER_ENTER, 1),
    4: (ExternalClass.INT_HANDLER_EXIT, 0),
}
_KERNEL: Final = (ExternalClass.KERCALLENTER, ExternalClass.KERCALLEXIT, ExternalClass.KERCALLINT)
_PLAIN: Final = {
    WireClass.SYSTEM: ExternalClass.SYSTEM,
    WireClass.USER: ExternalClass.USER,
    WireClass.COMM: ExternalClass.COMM,
}
_HAS_64BIT: Final = (Release.QNX_7, Release.QNX_8)  # kernel calls and SYSTEM events come in two widths


def _process_or_thread(event: int, release: Release) -> ExternalEvent:
    if event >= STATE_COUNT:
        index = (event >> 6) - 1
        is_process = not event & 63 and index < len(PROCESS_NAMES)
        return ExternalEvent(ExternalClass.PROCESS, index) if is_process else ExternalEvent(None, event)
    if release is Release.QNX_8 or event < VTHREAD_OFFSET:
        return ExternalEvent(ExternalClass.THREAD, event)
    if event < 2 * VTHREAD_OFFSET:
        return ExternalEvent(ExternalClass.VTHREAD, event - VTHREAD_OFFSET)
    return ExternalEvent(None, event)


def external_of(event_code: int, release: Release) -> ExternalEvent:
    """Return class and number by which TraceEvent() addresses the events of a code; class None = not addressable."""
    wire_class, event = class_of(event_code), event_of(event_code)
    if not release.is_qnx:  # other systems have no TraceEvent(), and their codes have other meanings
        return ExternalEvent(None, event)
    if wire_class == WireClass.KER_CALL:
        kind = event >> 7 & 3
        known = kind < 3 and (event & KER_64BIT == 0 or release in _HAS_64BIT)
        return ExternalEvent(_KERNEL[kind], event & 0x7F) if known else ExternalEvent(None, event)
    if wire_class == WireClass.PR_TH:
        return _process_or_thread(event, release)
    if wire_class == WireClass.INT:
        external, word = _INTERRUPTS.get(event, (None, -1))
        return ExternalEvent(external, 0 if external is not None else event, word)
    if wire_class == WireClass.CONTROL:
        return ExternalEvent(ExternalClass.CONTROL, event)
    if wire_class in _PLAIN:
        is_64 = wire_class == WireClass.SYSTEM and release in _HAS_64BIT
        return ExternalEvent(_PLAIN[WireClass(wire_class)], event & ~KER_64BIT if is_64 else event)
    for plain in plain_classes():
        if wire_class == plain.internal and plain.is_in(release):
            return ExternalEvent(ExternalClass(plain.external), event)
    return ExternalEvent(None, event)


def internal_codes(external: ExternalClass, number: int, release: Release) -> tuple[int, ...]:
    """Return the codes in slots for an event of TraceEvent(), in both widths; `number` is ignored for interrupts.

    KERCALL includes all its subclasses, INT only INTENTER and INTEXIT.
    """
    flags = (0, KER_64BIT) if release in _HAS_64BIT else (0,)
    if external in (*_KERNEL, ExternalClass.KERCALL):
        kinds = [_KERNEL.index(external)] if external in _KERNEL else [0, 1]
        kinds += [2] if 1 in kinds else []
        return tuple(code(WireClass.KER_CALL, number | kind << 7 | flag) for kind in kinds for flag in flags)
    if external in INT_CLASSES:
        requested = (ExternalClass.INTENTER, ExternalClass.INTEXIT) if external is ExternalClass.INT else (external,)
        return tuple(code(WireClass.INT, e) for e, (c, _) in sorted(_INTERRUPTS.items()) if c in requested)
    if external is ExternalClass.PROCESS:
        return (code(WireClass.PR_TH, (number + 1) << 6),)
    if external in (ExternalClass.THREAD, ExternalClass.VTHREAD):
        return (code(WireClass.PR_TH, number + (VTHREAD_OFFSET if external is ExternalClass.VTHREAD else 0)),)
    if external is ExternalClass.SYSTEM:
        return tuple(code(WireClass.SYSTEM, number | flag) for flag in flags)
    for wire_class, plain in _PLAIN.items():
        if plain is external:
            return (code(wire_class, number),)
    if external is ExternalClass.CONTROL:
        return (code(WireClass.CONTROL, number),)
    return (code(LATER_CLASSES[external], number),) if external in LATER_CLASSES else ()


# One event as rules see it, in captures and views, and the pid and tid that the kernel compares for it.


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
        cpu: CPU that logged the event.
        time_ns: Nanoseconds since the start of the trace.
        tested: (pid, tid) that pid and tid rules compare, if the payload does not show them but the caller knows them
            (the receiving thread of a message); None = the result of `tested_thread`.
        process_name: Path or name of the process; empty if not known.
        thread_name: Name of the thread; empty if it has none.
        priority: Priority of the thread at that time; None = not known.
        duration_ns: Length of the kernel call or interrupt that the event enters or leaves; None = not known (yet).
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
        """The header word of the event, with struct bits 0, as an event handler in the kernel gets it."""
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
