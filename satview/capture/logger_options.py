"""Options and results of a logger."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from satview.events import wire
from satview.events.spec import Release
from satview.events.wire import SLOT_BYTES
from satview.filters.external import NO_RING0, RING0, SECURITY, ExternalClass, classes_of

SET_UP_PRIORITY = 45
RULE = tuple[str, tuple[Any, ...]]
Say = Callable[[int, str], None]
DAY_S = 86_400
MOST_BUFFERS: Final = 4096
Buffers = Annotated[int, msgspec.Meta(ge=1, le=MOST_BUFFERS)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=DAY_S)]
_CLASSES_OF_F = {
    1: ExternalClass.KERCALL, 2: ExternalClass.INT, 3: ExternalClass.PROCESS, 4: ExternalClass.THREAD,
    5: ExternalClass.VTHREAD, 6: ExternalClass.COMM, 7: ExternalClass.SYSTEM,
}  # fmt: skip
_CLEARED = (ExternalClass.KERCALL, ExternalClass.THREAD, ExternalClass.VTHREAD, ExternalClass.COMM)


class Output(Protocol):
    """Receiver of slots.

    Attributes:
        is_cut: The output accepts no more slots.
        written: Bytes written so far.
    """

    is_cut: bool
    written: int

    def write(self, slots: NDArray[np.uint32]) -> None:
        """Append slots; raises CaptureError on failure."""

    def is_behind(self) -> bool:
        """Return whether the logger must wait before it can write more."""


@dataclass(slots=True)
class LoggerOptions:
    """Options of tracelogger, and options of the simulation (the last five).

    Attributes:
        iterations: `-n`: maximum number of buffers to log; 0 = no limit.
        kernel_buffers: `-k`: number of kernel buffers.
        own_buffers: `-b`: number of tracelogger's own buffers.
        seconds: `-s`: duration; 0 = no limit.
        is_daemon: `-d1`: wait for a program that sets filters and starts tracing.
        sets_filters: `-E`: set the filters in daemon mode too.
        is_ring: `-r`: ring mode.
        is_wide: `-w`: log wide events.
        without: `-F`: numbers of the classes to leave out.
        with_security: `-a`: log class SECURITY too.
        flush_every_s: `-D`: interval at which buffers that are not full are flushed; 0 = never.
        keeps_buffers: `-P`: leave the kernel's buffers allocated at the end.
        reuses_buffers: `-R`: use the buffers that a logger with `-P` has left on this machine, if any.
        physical_address: `-p`: address of the kernel's buffers; 0 = any.
        flushes_at_end: Save the last buffer even if it is not full; tracelogger itself leaves it in the kernel.
        rules: TraceEvent() calls that set filters instead of "all classes": mode without its prefix, and arguments.
        disk_ns_per_buffer: Time that the disk needs for a full buffer; a long time makes the logger too slow.
        priority: Priority of the capture thread while it copies buffers; if low, buffers of a busy system are lost.
        is_probe: Take the buffers with a `Probe` instead of a logger process.
    """

    iterations: Annotated[int, msgspec.Meta(ge=0)] = 32
    kernel_buffers: Buffers = 32
    own_buffers: Buffers = 64
    seconds: Seconds = 0
    is_daemon: bool = False
    sets_filters: bool = False
    is_ring: bool = False
    is_wide: bool = False
    without: Annotated[tuple[int, ...], msgspec.Meta(max_length=64)] = ()
    with_security: bool = False
    flush_every_s: Seconds = 0
    keeps_buffers: bool = False
    reuses_buffers: bool = False
    physical_address: Annotated[int, msgspec.Meta(ge=0)] = 0
    flushes_at_end: bool = True
    rules: Sequence[RULE] | None = None
    disk_ns_per_buffer: Annotated[int, msgspec.Meta(ge=0, le=60_000_000_000)] = 150_000
    priority: Annotated[int, msgspec.Meta(ge=1, le=255)] = SET_UP_PRIORITY
    is_probe: bool = False


@dataclass(slots=True)
class LoggerReport:
    """Results of a logger.

    Attributes:
        buffers, slots: Number of buffers and of slots logged.
        events: Number of events in the slots, without class CONTROL, which describes the buffers themselves.
        dropped: Number of kernel buffers discarded because no buffer of the logger was free.
        most_used: Maximum number of the logger's buffers in use at a time.
        interrupts: Number of trace interrupts.
        errors: Errors, one sentence each.
    """

    buffers: int = 0
    slots: int = 0
    events: int = 0
    dropped: int = 0
    most_used: int = 0
    interrupts: int = 0
    errors: list[str] = field(default_factory=list)

    def write(self, slots: NDArray[np.uint32], output: Output) -> None:
        """Write slots, and count the slots and events written.

        Raises:
            CaptureError: Not all slots could be written.
        """
        before = output.written
        try:
            output.write(slots)
        finally:
            written = (output.written - before) // SLOT_BYTES
            self.slots += written
            heads = slots[:written, 0]
            is_control = heads >> wire.CLASS_SHIFT & wire.CLASS_MASK == wire.WireClass.CONTROL
            self.events += int(np.count_nonzero(begin_events(heads) & ~is_control))


def begin_events(heads: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return for each header word whether its slot begins an event: a simple event, or an event of several slots."""
    return heads >> wire.STRUCT_SHIFT <= 1


def filter_calls(options: LoggerOptions, release: Release) -> list[RULE]:
    """Return the TraceEvent() calls that set a logger's filters, in tracelogger's order (capture side, section 7.2)."""
    known = classes_of(release)
    clear: list[RULE] = [(name, (cls,)) for cls in _CLEARED if cls in known for name in ("CLRCLASSPID", "CLRCLASSTID")]
    width: RULE = ("SETALLCLASSESWIDE" if options.is_wide else "SETALLCLASSESFAST", ())
    if options.rules is not None:
        return [("DELALLCLASSES", ()), *clear, width, *options.rules]
    without: list[RULE] = [("DELCLASS", (_CLASSES_OF_F[n],)) for n in options.without if _CLASSES_OF_F.get(n) in known]
    if NO_RING0 in options.without and release is Release.QNX_6:
        without.append(("DELEVENT", (ExternalClass.KERCALL, RING0)))
    has_security = options.with_security and SECURITY in known
    security: list[RULE] = [("ADDCLASS", (SECURITY,))] if has_security else []
    return [*clear, ("ADDALLCLASSES", ()), *security, *without, width]
