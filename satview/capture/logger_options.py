"""What a logger is asked to do, and what it reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

SET_UP_PRIORITY = 45
NO_RING0 = 11        # a number of `-F` that the logger of 6.4 knows, but no manual
RULE = tuple[str, tuple[Any, ...]]


@dataclass(slots=True)
class LoggerOptions:
    """What the options of tracelogger say.

    Attributes:
        iterations: `-n`: buffers to log, 0 = no limit.
        kernel_buffers: `-k`.
        own_buffers: `-b`.
        seconds: `-s`: log for so long, 0 = not timed.
        is_daemon: `-d1`: wait for a program that sets filters and starts.
        sets_filters: `-E`: set the filters in daemon mode too.
        is_ring: `-r`.
        is_wide: `-w`.
        without: `-F`: numbers of what to leave out.
        with_security: `-a`.
        flush_every_s: `-D`.
        keeps_buffers: `-P`.
        reuses_buffers: `-R`: take the buffers that a logger with `-P` has left on this machine, if there are any.
        physical_address: `-p`: where the kernel is to put its buffers, 0 = where it likes.
        flushes_at_end: Hand over the partly filled last buffer too; tracelogger itself leaves it in the kernel.
        rules: TraceEvent() calls instead of "all classes": name of the mode without prefix, and arguments.
        disk_ns_per_buffer: How long the disk takes for a full buffer: the knob for loggers that are too slow.
        priority: Of the capture thread while it takes buffers; a low one lets a busy system overrun it.
    """

    iterations: int = 32
    kernel_buffers: int = 32
    own_buffers: int = 64
    seconds: float = 0
    is_daemon: bool = False
    sets_filters: bool = False
    is_ring: bool = False
    is_wide: bool = False
    without: tuple[int, ...] = ()
    with_security: bool = False
    flush_every_s: float = 0
    keeps_buffers: bool = False
    reuses_buffers: bool = False
    physical_address: int = 0
    flushes_at_end: bool = True
    rules: Sequence[RULE] | None = None
    disk_ns_per_buffer: int = 150_000
    priority: int = SET_UP_PRIORITY


@dataclass(slots=True)
class LoggerReport:
    """What a logger did.

    Attributes:
        buffers, slots: Logged.
        dropped: Kernel buffers that found none of the logger's own free.
        most_used: Largest number of its own buffers in use.
        interrupts: Hand-overs: full buffers it heard of.
        stale: Hand-overs whose buffer the kernel had taken back meanwhile.
        errors: What failed, one sentence each.
    """

    buffers: int = 0
    slots: int = 0
    dropped: int = 0
    most_used: int = 0
    interrupts: int = 0
    stale: int = 0
    errors: list[str] = field(default_factory=list)
