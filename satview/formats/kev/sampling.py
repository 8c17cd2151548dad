"""Reads parts of a .kev file: samples of a large file for a preview, and new events while a file is written."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import SatviewError, TraceFormatError
from satview.base.process import timed
from satview.events import wire
from satview.events.catalogue import Catalogue
from satview.events.spec import Release
from satview.events.wire import SLOT_BYTES
from satview.formats.kev.assemble import trace_from_slots
from satview.formats.kev.consensus import ROLLOVER
from satview.formats.kev.consensus import unwrap as unwrap_stamp
from satview.formats.kev.decode import Decoder
from satview.formats.kev.header import BEGIN, MAX_HEADER_BYTES, parse_header
from satview.formats.kev.reader import SAMPLE_SLOTS, KevStart, byte_order_of, read_start, report_header
from satview.formats.kev.slot_source import FileSlots, SlotSource, SourceFile
from satview.store.problems import Problems
from satview.store.trace import Header, Trace

# Reads a few samples of a large .kev file, spread evenly, for a preview before all of it is decoded.
#
# The concatenated slots of all samples go through the normal decoder, so that the same rules determine events, times
# and threads. Samples with uncertain times, before which the clock may have rolled over, are left out; if times
# contradict each other, there is no preview.


LEAST_SLOTS: Final = 1 << 20  # smaller files are decoded as fast as samples of them
SAMPLE_LENGTH: Final = 1024  # as long as a kernel buffer, so that nearly every sample has a TIME event
SAMPLES: Final = 400  # one or two for every four pixels of a wide window
_HEAD_SAMPLES: Final = 8  # at the start, where the state dump names processes and threads
_LONGEST_S: Final = 0.3  # time limit, which gives fewer samples on disks that are slow to seek
_NO_EVENT: Final = wire.Struct.COMBINE_CONTINUE << wire.STRUCT_SHIFT  # the middle of an event that never began
_SURE_CYCLES: Final = ROLLOVER // 4
_PAUSE_CYCLES: Final = ROLLOVER // 16  # a pause this much longer than expected may hide whole rollovers
_DISORDER_PER_S: Final = 100  # stamps of a CPU may go back by less than 1/100 s without an error (6.1)
_DOUBTS: Final = ("clock-damaged", "clock-step", "clock-seed", "clock-unproven")


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """The events in some samples (short parts) of a .kev file.

    Attributes:
        trace: Events of the samples; its slots count from 0 without gaps, `SAMPLE_LENGTH` for each sample.
        position: int64 (events,), number of the sample of each event.
        first_slot: int64 (samples,), first slot of each sample in the file.
        is_timed: bool (samples,), whether the times of a sample are certain.
        lost_cycles: int64 (k,), ascending: times of events right after losses that the samples show.
    """

    trace: Trace
    position: NDArray[np.int64]
    first_slot: NDArray[np.int64]
    is_timed: NDArray[np.bool_]
    lost_cycles: NDArray[np.int64]


def sampled(path: Path, cancelled: Callable[[], bool] | None = None) -> Sampled | None:
    """Return samples of a large .kev file; None for a small file, another format, or doubtful times.

    Raises:
        Cancelled: `cancelled()` returned True.
    """
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            if file.read(len(BEGIN)) != BEGIN:
                return None
        start = read_start(path)
        return None if len(start.slots) < LEAST_SLOTS else sample_of(path, start, cancelled)
    except (SatviewError, OSError):  # reading the whole file will report it
        return None


def sample_of(path: Path, start: KevStart, cancelled: Callable[[], bool] | None = None) -> Sampled | None:
    """Return samples of a file; None if the times are doubtful.

    Args:
        path: The file.
        start: Header, system page and slots of the file.
        cancelled: Polled during the work; True stops the work.
    """
    count = len(start.slots)
    with timed("sample"):
        first_slots = _read_order(count)
        slots = np.empty((len(first_slots), SAMPLE_LENGTH, 4), np.uint32)
        read, end_s = 0, time.monotonic() + _LONGEST_S
        window = np.empty((2 * SAMPLE_LENGTH, 4), np.uint32)
        for read, begin in enumerate(first_slots.tolist(), 1):
            end = min(begin + len(window), count)
            start.slots.read(begin, end, window[: end - begin])
            # Samples at the start are adjacent, and need no alignment.
            skipped = _to_next_buffer(window[:SAMPLE_LENGTH, 0]) if begin >= _HEAD_SAMPLES * SAMPLE_LENGTH else 0
            if begin + skipped + SAMPLE_LENGTH > count:  # the last sample must include the end of the trace
                window[:skipped, 0] = _NO_EVENT
                skipped = 0
            first_slots[read - 1], slots[read - 1] = begin + skipped, window[skipped : skipped + SAMPLE_LENGTH]
            if time.monotonic() > end_s:
                break
        order = np.argsort(first_slots[:read])
        first_slots, slots = first_slots[:read][order], slots[order]
        problems = Problems()
        trace = trace_from_slots(path, "kev", start.header, start.page, slots.reshape(-1, 4), start.byte_order,
                                 problems, cancelled=cancelled, has_whole_buffers=False)  # fmt: skip
        # Samples skip most TIME events, so contradictions of the clock may be unseen rollovers.
        if not len(trace.events) or any(slug in problems.counts() for slug in _DOUBTS):
            return None
        position = trace.events.slot.astype(np.int64) // SAMPLE_LENGTH
        if not _ascends(trace, position, len(first_slots)):
            return None
        logged = _are_timed(trace, position, first_slots)
        return Sampled(trace, position, first_slots, logged, _lost(trace, start.slots, first_slots, logged))


def _to_next_buffer(headers: NDArray[np.uint32]) -> int:
    """Return the number of slots before the first BUFFER event; 0 if there is none.

    After a BUFFER event, a TIME event precedes each CPU's first event (7.x and 8.0). Before the first BUFFER event, the
    time of a CPU is known only from an earlier sample, and the clock may have rolled over since.
    """
    return int(np.argmax(headers & wire.CODE_MASK == wire.CONTROL_BUFFER))


def _read_order(count: int) -> NDArray[np.int64]:
    """Return the first slots of the samples in reading order, of which any prefix is spread over the file, int64."""
    most = min(SAMPLES, count // (4 * SAMPLE_LENGTH))
    spread = np.linspace(0, count - SAMPLE_LENGTH, most).astype(np.int64)
    head = np.arange(_HEAD_SAMPLES) * SAMPLE_LENGTH
    spread = spread[(spread == 0) | (spread >= head[-1] + SAMPLE_LENGTH)]
    number = np.arange(len(spread))
    bits = max(1, int(len(spread) - 1).bit_length())
    # In the order of bit-reversed numbers, each sample halves the widest remaining gap.
    reversed_ = sum(((number >> bit) & 1) << (bits - 1 - bit) for bit in range(bits))
    order = spread[np.argsort(reversed_, kind="stable")]
    order = np.concatenate((head, order[order != spread[-1]][1:], spread[-1:]))
    return np.concatenate((order[:_HEAD_SAMPLES], order[-1:], order[_HEAD_SAMPLES:-1]))


def _extents(trace: Trace, position: NDArray[np.int64], positions: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return first and last time of every sample, int64 (samples,) each; largest and smallest int64 for an empty one.

    BUFFER events are ignored, as the time of one before the TIME event of its CPU may be a rollover off. `position` is
    the number of the sample of each event.
    """
    bounds = np.iinfo(np.int64)
    first_cycles, last_cycles = np.full(positions, bounds.max), np.full(positions, bounds.min)
    counts = trace.events.code != wire.CONTROL_BUFFER
    np.minimum.at(first_cycles, position[counts], trace.events.time_cycles[counts])
    np.maximum.at(last_cycles, position[counts], trace.events.time_cycles[counts])
    return first_cycles, last_cycles


def _ascends(trace: Trace, position: NDArray[np.int64], positions: int) -> bool:
    """Return whether the times of each CPU ascend from sample to sample, except for usual disorder between buffers."""
    cpus = int(trace.events.cpu.max()) + 1
    first_cycles, last_cycles = _extents(trace, position * cpus + trace.events.cpu, positions * cpus)
    before = np.maximum.accumulate(last_cycles.reshape(positions, cpus), axis=0)[:-1]
    after = first_cycles.reshape(positions, cpus)[1:]
    is_known = (after != np.iinfo(np.int64).max) & (before != np.iinfo(np.int64).min)
    # Stamps of a CPU may go back without a loss in 7.x and 8.0 too (section 6.1), by far less than 10 ms.
    slack = min(_SURE_CYCLES, trace.clock.cycles_per_s // _DISORDER_PER_S)
    return bool(np.all(after[is_known] >= before[is_known] - slack))


def _are_timed(trace: Trace, position: NDArray[np.int64], first_slot: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which samples have certain times, bool (samples,).

    These are samples with a TIME event, and the following samples as long as the event rate on both sides shows that
    the clock cannot have rolled over in between. If the target was silent for longer, the clock may have rolled over
    unseen; then the samples since the last TIME event are uncertain, too.
    """
    positions = len(first_slot)
    first_cycles, last_cycles = _extents(trace, position, positions)
    is_empty = last_cycles < first_cycles
    has_time = np.zeros(positions, np.bool_)
    has_time[position[trace.events.code == wire.CONTROL_TIME]] = True
    length = np.where(is_empty, 0, last_cycles - np.where(is_empty, 0, first_cycles))
    gap_slots = np.diff(first_slot) - SAMPLE_LENGTH
    # Cycles per slot on both sides of a gap; the larger, to be safe.
    pace = np.maximum(length[1:], length[:-1]) / SAMPLE_LENGTH
    expected = pace * np.maximum(gap_slots, 0)
    logged = ~is_empty & (length < _SURE_CYCLES)
    sure = not trace.clock.is_absolute or bool(has_time[0])
    since: list[int] = []  # samples since the last TIME event
    latest: int | None = None
    for sample in range(positions):
        if is_empty[sample]:
            continue
        step = int(first_cycles[sample]) - latest if latest is not None else 0
        is_near = not sample or (
            expected[sample - 1] < _SURE_CYCLES and step < 4 * expected[sample - 1] + _PAUSE_CYCLES
        )
        sure = bool(has_time[sample]) or (sure and is_near)
        if step >= _SURE_CYCLES:
            logged[since] = False
        latest = int(last_cycles[sample]) if latest is None else max(latest, int(last_cycles[sample]))
        since = [] if has_time[sample] else [*since, sample]
        logged[sample] &= sure
    return logged


def _lost(
    trace: Trace, slots: SlotSource, first_slot: NDArray[np.int64], is_timed: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return times of events right after lost events, ascending, int64 (k,).

    A BUFFER event contains the number of slots of its buffer, so the next BUFFER event can be read even if it is not in
    a sample; a gap between their numbers means lost buffers. 8.0 also reports losses by DROPPED events.
    """
    buffers, events = trace.buffers, trace.events
    position = buffers.slot // SAMPLE_LENGTH
    # Word 1 of a BUFFER counts slots, itself included, so the next buffer begins exactly there (section 6.1).
    after = first_slot[position] + buffers.slot % SAMPLE_LENGTH + buffers.slots
    rows = np.flatnonzero((buffers.slots > 0) & is_timed[position] & (after < len(slots)))
    rows = rows[np.argsort(after[rows])]
    header, stamp, number = (slots.take(after[rows], word) for word in (0, 1, 2))
    is_next = header & np.uint32(wire.CODE_MASK) == wire.CONTROL_BUFFER
    if trace.release == Release.QNX_8:  # buffers of each CPU have their own numbers
        is_next &= (header >> wire.CPU_SHIFT & wire.CPU_MASK) == buffers.cpu[rows]
    missing = number.astype(np.int64) - buffers.sequence[rows] - 1
    is_lossy = is_next & (missing > 0)
    begins, _ = _extents(trace, events.slot.astype(np.int64) // SAMPLE_LENGTH, len(first_slot))
    lossy = begins[position[rows[is_lossy]]].tolist(), stamp[is_lossy].tolist()
    times = [unwrap_stamp(begin, low) for begin, low in zip(*lossy, strict=True)]
    dropped = events.time_cycles[events.code == wire.CONTROL_DROPPED]
    return np.unique(np.concatenate((np.array(times, np.int64), dropped)))


# Reads a .kev file repeatedly while it is being written.
#
# Each time only new slots are read and decoded. The file is not held in memory; a few samples of old bytes show whether
# another capture has replaced the content.


_HEAD_BYTES: Final = 8192  # enough for header and system page of all real files; more is read if needed
_SAMPLE_SLOTS: Final = 256


class GrowingFile:
    """A .kev file that grows; `read` returns a trace of its current content.

    Slots are only appended, so an older trace stays valid. If the file is shorter than before, or old bytes have
    changed, it is read from the start again.

    Attributes:
        path: The file.
        restart: Sentence on why the last `read` began from the start again; else empty.
    """

    _count: int

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.restart = ""
        self._restarted = ""
        self._last_status = (-1, -1)
        self._file: SourceFile | None = None
        self._forget()

    @property
    def has_changed(self) -> bool:
        """Whether size or modification time have changed since the last `read`; OSError if they cannot be queried."""
        status = self.path.stat()
        return (status.st_size, status.st_mtime_ns) != self._last_status

    def read(
        self, progress: Callable[[float], None] | None = None, cancelled: Callable[[], bool] | None = None
    ) -> Trace:
        """Read new slots and return a trace of all slots.

        An incomplete last slot is ignored, because the rest is not written yet.

        Args:
            progress: Called with the share that is done, 0 to 1.
            cancelled: Polled during the work; True stops the work.

        Raises:
            TraceFormatError: The file is no .kev, or its header is not complete (yet).
            SourceChangedError: The file was truncated while it was read.
            OSError: The file cannot be read.
            Cancelled: `cancelled()` returned True.
        """
        status = self.path.stat()
        file = self._file
        # A replaced file has the same name but another inode number.
        if file is None or file.identity != (status.st_dev, status.st_ino):
            file = SourceFile(self.path, 0)
        size = file.size_now
        self._last_status = (size, status.st_mtime_ns)
        # Checked before reading, as one decoder must not get slots of two files.
        self._check_old(file, size)
        self._file = file
        if self._header is None:
            self._read_start(file, size)
        self._count = max(self._count, (size - self._offset) // SLOT_BYTES)
        file.size = self._offset + self._count * SLOT_BYTES
        self._take_samples(file)
        trace = self._trace(progress, cancelled)
        # Only after a trace was built, as reads between a truncation and the next header fail.
        self.restart, self._restarted = self._restarted, ""
        return trace

    def _forget(self) -> None:
        self._header: Header | None = None
        self._order = ""
        self._count = 0
        self._decoder: Decoder | None = None
        self._samples: dict[int, bytes] = {}

    def _check_old(self, file: SourceFile, size: int) -> None:
        """Forget the old content if the file is shorter or old bytes have changed."""
        if self._header is None:
            return
        reason = ""
        known = self._offset + self._count * SLOT_BYTES
        if size < known:
            reason = f"{self.path.name} shrank from {known:,} to {size:,} bytes"
        else:
            offset = self._first_difference(file)
            if offset >= 0:
                reason = f"{self.path.name} was written over from byte 0x{offset:x} on"
        if reason:
            self._restarted = reason + ": it was cut short, or a new capture began; shown from its start"
            self._forget()

    def _first_difference(self, file: SourceFile) -> int:
        """Return the offset of the first changed byte that a sample shows; -1 = no change.

        The offset is rounded down to the start of the slot, and to 0 within the header.
        """
        for offset, old in self._samples.items():
            new = file.bytes_at(len(old), offset)
            if new != old:
                byte = next(i for i in range(len(old)) if old[i] != new[i])
                # Rounded down to the slot, as the byte within a slot means nothing to the user.
                return offset + byte - (byte % SLOT_BYTES if offset else byte)
        return -1

    def _take_samples(self, file: SourceFile) -> None:
        self._samples = {0: self._start}
        for first_slot in (0, self._count // 2, max(0, self._count - _SAMPLE_SLOTS)):
            offset = self._offset + first_slot * SLOT_BYTES
            self._samples[offset] = file.bytes_at(min(_SAMPLE_SLOTS, self._count - first_slot) * SLOT_BYTES, offset)

    def _read_start(self, file: SourceFile, size: int) -> None:
        data = file.bytes_at(min(size, _HEAD_BYTES), 0)
        if not data:
            raise TraceFormatError(self.path, None, "it is empty so far", "start the capture")
        if not BEGIN.startswith(data[: len(BEGIN)]):
            raise TraceFormatError(self.path, 0, "this is not a .kev file", "only .kev files can be followed")
        if size > _HEAD_BYTES:
            data = file.bytes_at(min(size, _HEAD_BYTES + MAX_HEADER_BYTES), 0)
        header = parse_header(data, self.path, size)
        length = header.number("SYSPAGE_LEN") or 0
        offset = header.length + length
        if offset > size:
            raise TraceFormatError(
                self.path, header.length, f"{size - header.length} of {length} bytes of its system page are there",
                "wait for the rest, or start the capture again",
            )  # fmt: skip
        start = file.bytes_at(offset, 0)
        self._header, self._start, self._page, self._offset = header, start, start[header.length :], offset

    def _trace(self, progress: Callable[[float], None] | None, cancelled: Callable[[], bool] | None) -> Trace:
        assert self._header is not None
        problems = Problems()
        assert self._file is not None
        sample = self._file.bytes_at(min(self._count, SAMPLE_SLOTS) * SLOT_BYTES, self._offset)
        order = byte_order_of(self._header, self._page, sample, problems)
        if order != self._order:  # a guess from the first few slots may have been wrong
            self._order, self._decoder = order, None
        slots = FileSlots(self._file, self._offset, self._count, order)
        report_header(self._header, problems)
        return trace_from_slots(
            self.path, "kev", self._header, self._page, slots, self._order, problems, offset=self._offset,
            progress=progress, cancelled=cancelled, decoder_of=self._decoder_of,
        )  # fmt: skip

    def _decoder_of(self, slots: SlotSource, catalogue: Catalogue) -> Decoder:
        if self._decoder is None:
            self._decoder = Decoder(slots, catalogue, goes_on=True)
        else:
            self._decoder.extend(slots)
        return self._decoder
