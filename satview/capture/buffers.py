"""The trace buffers of the kernel, options and results of a logger, and the .kev file that the logger writes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, BinaryIO, Final, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from satview.base.errors import SatviewError, UsageError, WriteError
from satview.base.new_file import NewFile
from satview.capture.sim.target import Target
from satview.events import wire
from satview.events.spec import Release
from satview.events.variants import WORD_MASK
from satview.events.wire import SLOT_BYTES
from satview.filters.external import NO_RING0, RING0, SECURITY, ExternalClass, classes_of
from satview.formats.kev.header import GLOBAL_CLOCK, header_bytes, slots_as_bytes, standard_header, syspage_bytes

# The kernel's trace buffers: rings of buffers, high-water mark, linear and ring mode, and lost buffers.
#
# Source of the rules: capture side, section 4; kernel event trace format, sections 3.2, 5.2 and 6.


_BEGIN, _CONTINUE, _END = (kind << wire.STRUCT_SHIFT for kind in (1, 2, 3))
EARLY_CYCLES = 0x32C  # in 6.x the clock for a TIME payload is read this many cycles before the slot's stamp


@dataclass(slots=True, eq=False, repr=False)
class Buffer:
    """A trace buffer of 16 KiB in the kernel.

    Attributes:
        words: Slot words, four per slot, in host byte order.
        is_full: The buffer has been handed over, and the logger has not copied it yet.
        is_busy: The logger is copying the buffer.
        close_number: Position in the order in which the buffers of the ring were closed, from 1; 0 = never closed.
    """

    index: int
    words: list[int] = field(default_factory=list)
    sequence: int = 0
    is_full: bool = False
    is_busy: bool = False
    close_number: int = 0

    @property
    def slots(self) -> int:
        """Number of slots in use."""
        return len(self.words) >> 2

    def empty(self) -> None:
        """Discard all slots and clear `is_full`."""
        self.words = []
        self.is_full = False


class BufferRing:
    """A ring of buffers. The kernel has one ring for all CPUs; in 8.0 it has a ring for each CPU.

    Attributes:
        skew_cycles: Offset of the CPU's stamps from the machine's clock.
        current: The buffer being filled; None until the next event acquires a buffer.
        dropped_events: Number of events, whole or cut short, that were dropped for lack of a buffer.
        lost_buffers: Number of full buffers that were discarded before the logger copied them.
    """

    def __init__(
        self, target: Target, count: int, cpu: int, hand_over: Callable[[Buffer], None], skew_cycles: int = 0
    ) -> None:
        self.target = target
        self.cpu = cpu
        self.skew_cycles = skew_cycles
        self.buffers = [Buffer(cpu * count + i) for i in range(count)]
        self.hand_over = hand_over
        self.current: Buffer | None = None
        self.is_ring = False
        self.skips = False
        self.sequence = 0
        self.dropped_events = 0
        self.lost_buffers = 0
        self.closed = 0
        self.must_report_drop = False
        self._position = -1
        self.mark = target.mark_linear

    def set_mode(self, is_ring: bool) -> None:
        """Set ring or linear mode, and empty all buffers."""
        self.is_ring = is_ring
        self.mark = self.target.mark_ring if is_ring else self.target.mark_linear
        for buffer in self.buffers:
            buffer.empty()
            buffer.is_busy = False
        self.current = None
        self._position = -1

    def acquire(self) -> Buffer | None:
        """Make the next buffer the current one and return it; None if no buffer is free, so the event is dropped."""
        count = len(self.buffers)
        position = (self._position + 1) % count
        if not self.is_ring:
            for _ in range(2):
                if not self.buffers[position].is_full or not (self.buffers[position].is_busy or self.skips):
                    break
                position = (position + 1) % count
        buffer = self.buffers[position]
        if buffer.is_busy:
            return None
        if buffer.is_full:
            self.lost_buffers += 1
        self._position = position
        buffer.empty()
        self.sequence = self.sequence + 1 & WORD_MASK
        buffer.sequence = self.sequence
        self.current = buffer
        return buffer

    def close(self, stamp: int, sequence: int | None = None, hand_over: bool = True) -> None:
        """Close the current buffer; with `hand_over`, write its slot count into its first slot and mark it as full.

        `stamp` is that of BUFFER_END (8.0), `sequence` the new number of the buffer; None = keep its number.
        """
        buffer = self.current
        if buffer is None:
            return
        if self.target.has_buffer_end:
            cookie = wire.BUFFER_END_COOKIE
            buffer.words += (wire.CONTROL_BUFFER_END | self.cpu << wire.CPU_SHIFT, stamp & WORD_MASK, cookie, cookie)
        if sequence is not None:
            buffer.words[2] = buffer.sequence = sequence
        self.current = None
        self.closed += 1
        buffer.close_number = self.closed
        if hand_over:
            if not self.target.is_old:
                buffer.words[3] = buffer.slots
            buffer.is_full = True
            self.hand_over(buffer)

    def end(self, stamp: int) -> None:
        """Hand over the current buffer of a stopped ring, or the newest one if an event has just filled it.

        A logger in ring mode waits only for this hand-over, which is therefore made even if there was no event.
        """
        if self.current is not None:
            self.close(stamp)
        else:
            self.hand_over(self.buffers[self._position])

    def flush(self, stamp: int) -> None:
        """Hand over the current buffer; in ring mode after STOP, hand over the newest buffer once more."""
        if self.is_ring and self.current is None:
            if self.buffers[self._position].words:
                self.hand_over(self.buffers[self._position])
        else:
            self.close(stamp)

    def oldest_first(self) -> list[Buffer]:
        """Return the buffers that are not empty, oldest first, which is the order in which a ring is saved."""
        count = len(self.buffers)
        ordered = [self.buffers[(self._position + 1 + i) % count] for i in range(count)]
        return [buffer for buffer in ordered if buffer.words]


class TraceBuffers:
    """Writes events as slots into the kernel's rings of buffers.

    Args:
        target: Specifies buffer sizes and high-water marks.
        count: Number of buffers per ring.
        hand_over: Called with every full buffer.
        time_enabled: Called with CPU, time and payload of a TIME event; returns whether the event passes the filters.
        between_slots: Called between two slots of an event, where interrupts may occur.
        skew_cycles: Offset of each CPU's stamps from the machine's clock.
    """

    def __init__(
        self,
        target: Target,
        count: int,
        hand_over: Callable[[Buffer], None],
        time_enabled: Callable[[int, int, tuple[int, int]], bool],
        between_slots: Callable[[], None],
        skew_cycles: Sequence[int] = (),
    ) -> None:
        rings = target.cpus if target.has_buffer_end else 1
        self.target = target
        skews = skew_cycles or (0,) * target.cpus
        self.rings = [BufferRing(target, count, cpu, hand_over, skews[cpu]) for cpu in range(rings)]
        self._time_enabled = time_enabled
        self._between_slots = between_slots
        self.skew_cycles = skews
        self._per_cpu = target.has_buffer_end
        self._limit = target.slots_per_buffer - (1 if target.has_buffer_end else 0)
        self._last_low = [0] * target.cpus
        self._timed = [-1] * target.cpus  # by CPU: sequence number of the buffer with its last TIME event
        self.in_interrupt = 0

    @property
    def dropped_events(self) -> int:
        """Number of events, whole or cut short, that were dropped for lack of a buffer."""
        return sum(ring.dropped_events for ring in self.rings)

    @property
    def lost_buffers(self) -> int:
        """Number of full buffers that were discarded before the logger copied them."""
        return sum(ring.lost_buffers for ring in self.rings)

    def put(self, cpu: int, code: int, time: int, words: Sequence[int], flags: int = 0) -> bool:
        """Write an event; return False if the event, or its last slots, had to be dropped.

        `time` is in cycles by the machine's clock; `flags` are further bits of the header word of each slot.
        """
        ring = self.rings[cpu if self._per_cpu else 0]
        header = code | cpu << wire.CPU_SHIFT | flags
        time += self.skew_cycles[cpu]
        stamp = time & WORD_MASK
        if not self._open(ring, cpu, time):
            return False
        count = len(words)
        if count <= 2:
            low, high = (words[0], words[1]) if count == 2 else (words[0], 0) if count else (0, 0)
            return self._slot(ring, cpu, (header, stamp, low & WORD_MASK, high & WORD_MASK))
        last = count - 2 + count % 2
        for i in range(0, last + 1, 2):
            kind = _BEGIN if i == 0 else _END if i == last else _CONTINUE
            high = words[i + 1] & WORD_MASK if i + 1 < count else 0
            if not self._slot(ring, cpu, (header | kind, stamp, words[i] & WORD_MASK, high)):
                return False
            if kind != _END:
                self._between_slots()
        return True

    def _open(self, ring: BufferRing, cpu: int, time: int) -> bool:
        """Ensure that the current buffer exists and has a TIME event of the CPU; return False if no buffer is free."""
        low = time & WORD_MASK
        buffer = ring.current
        if buffer is None:
            buffer = self._begin(ring, cpu, low)
            if buffer is None:
                return False
        is_new = self._timed[cpu] != buffer.sequence and not self.target.is_old
        must_report = is_new or low < self._last_low[cpu]
        self._last_low[cpu] = low
        if must_report:
            self._timed[cpu] = buffer.sequence
            self._put_time(ring, cpu, time)
            if ring.current is not buffer:  # TIME filled the buffer
                return self._open(ring, cpu, time)
        return True

    def _begin(self, ring: BufferRing, cpu: int, stamp: int) -> Buffer | None:
        buffer = ring.acquire()
        if buffer is None:
            ring.dropped_events += 1
            ring.must_report_drop = self._per_cpu
            return None
        if self.target.is_old:
            return buffer
        buffer.words += (wire.CONTROL_BUFFER | cpu << wire.CPU_SHIFT, stamp, buffer.sequence, 0)
        if ring.must_report_drop:
            ring.must_report_drop = False  # 8.0 reports dropped events; the payload is unknown
            buffer.words += (wire.CONTROL_DROPPED | cpu << wire.CPU_SHIFT, stamp, 0, 0)
        return buffer

    def time(self, cpu: int, time: int) -> None:
        """Write a TIME event of a CPU if it passes the filters; `time` is in cycles, without the skew of the CPU."""
        self._put_time(self.rings[cpu if self._per_cpu else 0], cpu, time + self.skew_cycles[cpu])

    def _put_time(self, ring: BufferRing, cpu: int, time: int) -> None:
        early = time - EARLY_CYCLES if self.target.time_read_early else time
        payload = (early >> 32 & WORD_MASK, early & WORD_MASK)
        if self._time_enabled(cpu, time, payload):
            self._slot(ring, cpu, (wire.CONTROL_TIME | cpu << wire.CPU_SHIFT, time & WORD_MASK, *payload))

    def put_slot(self, cpu: int, slot: tuple[int, int, int, int], time: int) -> bool:
        """Write one slot unchanged; return False if it had to be dropped."""
        ring = self.rings[cpu if self._per_cpu else 0]
        return self._open(ring, cpu, time + self.skew_cycles[cpu]) and self._slot(ring, cpu, slot)

    def _slot(self, ring: BufferRing, cpu: int, slot: tuple[int, int, int, int]) -> bool:
        buffer = ring.current
        if buffer is None:
            buffer = self._begin(ring, cpu, slot[1])
            if buffer is None:
                return False
        if len(buffer.words) >> 2 >= self._limit:
            ring.dropped_events += 1
            return False
        buffer.words += slot
        if len(buffer.words) >> 2 >= ring.mark and not self.in_interrupt:
            ring.close(slot[1], hand_over=not ring.is_ring)
        return True

    def leave_interrupt(self, stamp: int) -> None:
        """Leave an interrupt; if it is the outermost, close the full buffers whose closing was delayed meanwhile."""
        self.in_interrupt -= 1
        if not self.in_interrupt:
            for ring in self.rings:
                if ring.current is not None and ring.current.slots >= ring.mark:
                    ring.close(stamp, hand_over=not ring.is_ring)


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
    """Return the parts of a .kev file before its slots: header (key, value) pairs, system page, and byte order.

    Args:
        target: The traced target.
        file_name: The value of TRACE_FILE_NAME.
        started_cycles: Start of the capture, in cycles since boot.
        attributes: Extra header keys and values.
    """
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


class Output:
    """A receiver of slots, such as a file; as a context manager it is closed at the end.

    Attributes:
        is_cut: The output accepts no more slots.
        written: Bytes written so far, including a header.
    """

    is_cut = False
    written = 0

    @property
    def is_waiting(self) -> bool:
        """A write is in progress, which takes long if the reader of a pipe is slow."""
        return False

    def write(self, slots: NDArray[np.uint32]) -> None:
        """Append slots, shape (n, 4), in host byte order; raises CaptureError if they cannot be written."""
        raise NotImplementedError

    def is_behind(self) -> bool:
        """Return whether the logger must wait before it can write more; a file never makes it wait."""
        return False

    def close(self, error: BaseException | None = None) -> None:
        """Complete the output, or after an error close it as it is; raises CaptureError if it cannot be finished."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(error)


class KevFile(Output):
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
    """

    is_waiting = False

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
        """Append slots, shape (n, 4), in host byte order; raises CaptureError if the file cannot be written."""
        data = slots_as_bytes(slots, self._order)
        if self.limit and self.written + len(data) > self.limit:
            data = data[: max(0, self.limit - self.written)]
            self.is_cut = True
        self._put(data)

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
        """Close the file after an error; return how the message ends: what is in its place, empty for a stream."""
        new, self._new = self._new, None
        if new is None:
            return ""
        new.discard(error if self.written >= self._start_bytes else None)
        if new.is_stream:
            return ""
        return "; what was written can be opened" if new.has_name else "; the older file is as it was"

    def close(self, error: BaseException | None = None) -> None:
        """Complete the file, or after an error close it as it is; raises CaptureError if it cannot be finished."""
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
        """Write slots, and count the slots and events written; raises CaptureError if not all were."""
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
    """Return which header words are of slots that begin an event, of one slot or several, bool (n,)."""
    return heads >> wire.STRUCT_SHIFT <= 1


def filter_calls(options: LoggerOptions, release: Release) -> list[RULE]:
    """Return the TraceEvent() calls that set a logger's filters, in the order in which tracelogger makes them.

    Source: capture side, section 7.2.
    """
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
