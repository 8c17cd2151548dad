"""Options and results of a logger, and the .kev file that it writes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, BinaryIO, Final, Protocol, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from satview.base.errors import SatviewError, UsageError, WriteError
from satview.base.new_file import NewFile
from satview.capture.sim.target import Target
from satview.events import wire
from satview.events.spec import Release
from satview.events.wire import SLOT_BYTES
from satview.filters.external import NO_RING0, RING0, SECURITY, ExternalClass, classes_of
from satview.formats.kev.header import GLOBAL_CLOCK, header_bytes, syspage_bytes
from satview.formats.kev.writer import slots_as_bytes, standard_header

# Writes the .kev file of a capture: header and system page of the simulated target, then slots as they arrive.
#
# Dates are computed from the target's boot time, which is fixed for most targets, so that two captures with the same
# seed are equal byte for byte.


_KIND = {Release.QNX_6: 0, Release.QNX_6_6: 0, Release.QNX_7: 0x100, Release.QNX_8: 0x1100}
_CPU_NAME = {Release.QNX_6: "Intel 686 F6M8S6", Release.QNX_6_6: "Intel 686 F6M28S10"}
VERSIONS = {
    Release.QNX_6: "2009/05/20-17:35:56EDT",
    Release.QNX_6_6: "2014/02/22-18:29:37EST",
    Release.QNX_7: "2021/05/07-14:19:56EDT",
    Release.QNX_8: "2023/11/08-13:05:11EST",
}
_HOSTNAME, _RELEASE, _MACHINE, _SYSNAME = 2, 3, 5, 11


class CaptureError(SatviewError):
    """A capture could not be saved completely; the part already written can be read."""


def ctime(seconds: int) -> str:
    """Return a time in seconds since 1970 as a date in the header's format, in UTC on every host."""
    return time.strftime("%a %b %d %H:%M:%S %Y", time.gmtime(seconds))


def start_of_file(
    target: Target, file_name: str, started_cycles: int, attributes: Sequence[tuple[str, str]] = ()
) -> tuple[tuple[tuple[str, str], ...], bytes, str]:
    """Return header pairs, system page and byte order of a capture."""
    order = "big" if target.big_endian else "little"
    name = _CPU_NAME.get(target.release, "Intel(R) Core(TM) i7-1185GRE")
    page = syspage_bytes(
        order,
        kind=_KIND[target.release],
        cycles_per_s=target.cycles_per_s,
        boot_time_s=target.boot_s,
        cpu_names=(name,) * target.cpus,
        speed_mhz=target.cycles_per_s // 1_000_000,
        flags=GLOBAL_CLOCK if target.has_global_clock else 0,
        strings=(
            (_HOSTNAME, "simulated"),
            (_RELEASE, target.sys_release),
            (_MACHINE, target.machine),
            (_SYSNAME, "QNX"),
        ),
    )
    pairs = standard_header(
        file_name=file_name,
        date=ctime(target.boot_s + started_cycles // target.cycles_per_s),
        boot_date=ctime(target.boot_s),
        byte_order=order,
        cycles_per_s=target.cycles_per_s,
        cpu_count=target.cpus,
        release=target.sys_release,
        version=VERSIONS[target.release],
        machine=target.machine,
        node="simulated",
        syspage_length=len(page),
        attributes=attributes,
    )
    return pairs, page, order


class KevFile:
    """A .kev file that grows by whole buffers.

    Args:
        path: The file.
        target: Target for the header.
        started_cycles: Start of the capture.
        attributes: Extra header keys and values, such as TRACELOGGER_ARGS.
        limit_bytes: Maximum size; 0 = no limit. The file is cut at that byte, as tracelogger does.
        stream: Write to this stream instead (standard output, a FIFO); `path` is then only its name.
        is_growing: The file gets its name as soon as its header is complete, so that it can be followed while it grows.
            Otherwise it gets its name when it is complete; an incomplete file gets the name only if no older file has
            it.

    Raises:
        UsageError: The limit is smaller than the header.
        CaptureError: The file cannot be written, or the path is a folder or a disk.

    Attributes:
        written: Bytes written so far, including the header.
        is_cut: True once data was cut off at the limit.
        is_waiting: True during a write, which takes long if the reader of a pipe is slow.
    """

    def __init__(
        self,
        path: Path,
        target: Target,
        started_cycles: int,
        attributes: Sequence[tuple[str, str]] = (),
        limit_bytes: int = 0,
        stream: BinaryIO | None = None,
        *,
        is_growing: bool = False,
    ) -> None:
        self.path = path
        self.limit = limit_bytes
        self.is_cut = self.is_waiting = False
        self.written = 0
        pairs, page, self._order = start_of_file(target, path.name, started_cycles, attributes)
        start = header_bytes(pairs) + page
        self._start_bytes = len(start)
        if 0 < limit_bytes < len(start):
            raise UsageError(f"{path.name}: {limit_bytes} bytes are too few, its header alone takes {len(start)}")
        self._new: NewFile | None = None
        if stream is None:
            try:
                # Not buffered: write errors show at once, and a reader that follows the file sees whole buffers.
                self._new = NewFile(path, streams=True, keeps_part=True, is_buffered=False)
            except WriteError as error:
                raise CaptureError(f"{path.name}: cannot be written: {error.what}") from error
            stream = self._new.stream
        self._file = stream
        self._put(start)
        if self._new is not None and is_growing:
            self._new.publish()

    def write(self, slots: NDArray[np.uint32]) -> None:
        """Append slots, shape (n, 4), in host byte order.

        Raises:
            CaptureError: The disk is full, or the file cannot be written for another reason.
        """
        data = slots_as_bytes(slots, self._order)
        if self.limit and self.written + len(data) > self.limit:
            data = data[: max(0, self.limit - self.written)]
            self.is_cut = True
        self._put(data)

    def is_behind(self) -> bool:
        """Return False, because a file never makes the logger wait."""
        return False

    def _put(self, data: bytes) -> None:
        left = memoryview(data)
        self.is_waiting = True
        try:
            while left:
                count = self._file.write(left)
                self.written += count
                left = left[count:]
            self._file.flush()
        except OSError as error:
            raise CaptureError(
                f"{self.path.name}: writing stopped after {self.written} bytes: "
                f"{error.strerror or error}{self._give_up(error)}"
            ) from error
        finally:
            self.is_waiting = False

    def _give_up(self, error: BaseException) -> str:
        """Close the file; return the end of an error message, which says what is left of the file."""
        new, self._new = self._new, None
        if new is None:
            return ""
        new.discard(error if self.written >= self._start_bytes else None)
        if new.is_stream:
            return ""
        return "; what was written can be opened" if new.has_name else "; the older file is as it was"

    def close(self, error: BaseException | None = None) -> None:
        """Complete the file, or after an error close it as it is.

        Raises:
            CaptureError: The file cannot be finished.
        """
        if self._new is None:
            return
        if error is not None:
            self._give_up(error)
            return
        new, self._new = self._new, None
        try:
            new.commit()
        except WriteError as fault:
            raise CaptureError(f"{self.path.name}: could not be finished: {fault.what}") from fault

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(error)


# Options and results of a logger.


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
