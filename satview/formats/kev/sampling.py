"""Reads a few samples of a large .kev file, spread evenly, for a preview before all of it is decoded.

The concatenated slots of all samples go through the normal decoder, so that the same rules determine events, times and
threads. Samples with uncertain times, before which the clock may have rolled over, are left out; if times contradict
each other, there is no preview.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.debug import timed
from satview.base.errors import SatviewError
from satview.events import wire
from satview.events.spec import Release
from satview.formats.kev.assemble import trace_from_slots
from satview.formats.kev.clocks.rollover import ROLLOVER
from satview.formats.kev.clocks.rollover import unwrap as unwrap_stamp
from satview.formats.kev.header import BEGIN
from satview.formats.kev.reader import KevStart, read_start
from satview.formats.kev.slots.slot_source import SlotSource
from satview.store.problems import Problems
from satview.store.trace import Trace

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
    """Events of some samples of a file.

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

    After a BUFFER event, a TIME event precedes each CPU's first event (7.x and 8.0). Before it, the time of a CPU is
    known only from an earlier sample, and its clock may have rolled over since.
    """
    return int(np.argmax(headers & wire.CODE_MASK == wire.CONTROL_BUFFER))


def _read_order(count: int) -> NDArray[np.int64]:
    """Return the first slots of the samples in reading order; any prefix of this order is spread over the file."""
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
    """Return first and last time of every sample, (samples,); for an empty sample the bounds of int64.

    BUFFER events are ignored, as the time of a BUFFER event before the TIME event of its CPU may be a rollover off.
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
    """Return which samples have certain times.

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
    """Return times of events right after lost events, ascending.

    A BUFFER event has the number of slots of its buffer, so the next BUFFER event can be read even if it is not in a
    sample; a gap between their numbers means lost buffers. 8.0 also reports losses by DROPPED events.
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
