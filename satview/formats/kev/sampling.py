"""Reads a few samples of a large .kev file, spread evenly, so that something true can show before all of it is decoded.

The slots of all samples, one behind the other, go through the decoder that reads whole files: the same rules group,
sample and own events. What a sample cannot show, such as times where the clock may have wrapped between two samples,
is left out; where times contradict each other nothing is said at all.
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

LEAST_SLOTS: Final = 1 << 20  # files of fewer are decoded as soon as they would be sampled
SAMPLE_LENGTH: Final = 1024  # as long as a kernel buffer, so that nearly every sample has a TIME event
SAMPLES: Final = 400  # one or two for every four pixels of a wide window
_HEAD_SAMPLES: Final = 8  # at the start, where the state dump names processes and threads
_LONGEST_S: Final = 0.3  # on a disk that is slow to seek, fewer samples have to do
_NO_EVENT: Final = wire.Struct.COMBINE_CONTINUE << wire.STRUCT_SHIFT  # the middle of an event that never began
_SURE_CYCLES: Final = ROLLOVER // 4
_PAUSE_CYCLES: Final = ROLLOVER // 16  # longer than the pace explains, and there may be whole rollovers in it
_DISORDER_PER_S: Final = 100  # stamps of a CPU step back by less than 10 ms without a cause (6.1)
_DOUBTS: Final = ("clock-damaged", "clock-step", "clock-seed", "clock-unproven")


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """Events of some samples of a file.

    Attributes:
        trace: Events of those samples; its slots count from 0 without gaps, `SAMPLE_LENGTH` for each sample.
        position: int64 (events,), the sample of each event.
        first_slot: int64 (samples,), where each sample begins in the file.
        is_timed: bool (samples,), the times of a sample are known.
        lost_cycles: int64 (k,), ascending: when events came that follow lost ones, as far as these samples show.
    """

    trace: Trace
    position: NDArray[np.int64]
    first_slot: NDArray[np.int64]
    is_timed: NDArray[np.bool_]
    lost_cycles: NDArray[np.int64]


def sampled(path: Path, cancelled: Callable[[], bool] | None = None) -> Sampled | None:
    """Return what some samples of a large .kev file show; None for small files, other formats and doubtful times.

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
    except (SatviewError, OSError):  # reading all of it says what is wrong
        return None


def sample_of(path: Path, start: KevStart, cancelled: Callable[[], bool] | None = None) -> Sampled | None:
    """Return what some samples of a file show, None if the times are doubtful.

    Args:
        path: The file.
        start: What is in front of its slots, and they.
        cancelled: Called now and then; True stops the decoder.
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
            # At the start samples follow each other.
            skipped = _to_next_buffer(window[:SAMPLE_LENGTH, 0]) if begin >= _HEAD_SAMPLES * SAMPLE_LENGTH else 0
            if begin + skipped + SAMPLE_LENGTH > count:  # the last sample shows where the trace ends
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
        # Samples skip most TIME events, so what is odd about the clock here may be a rollover that went unseen.
        if not len(trace.events) or any(slug in problems.counts() for slug in _DOUBTS):
            return None
        position = trace.events.slot.astype(np.int64) // SAMPLE_LENGTH
        if not _ascends(trace, position, len(first_slots)):
            return None
        logged = _are_timed(trace, position, first_slots)
        return Sampled(trace, position, first_slots, logged, _lost(trace, start.slots, first_slots, logged))


def _to_next_buffer(headers: NDArray[np.uint32]) -> int:
    """Return how many slots are in front of the first BUFFER event, 0 where none is there.

    Behind it, each CPU's first event comes with its TIME (7.x and 8.0); in front of it only its last sample says when
    a CPU was, and its clock may have gone around since.
    """
    return int(np.argmax(headers & wire.CODE_MASK == wire.CONTROL_BUFFER))


def _read_order(count: int) -> NDArray[np.int64]:
    """Return where samples begin, coarse ones first, so that any number of the first ones is spread over the file."""
    most = min(SAMPLES, count // (4 * SAMPLE_LENGTH))
    spread = np.linspace(0, count - SAMPLE_LENGTH, most).astype(np.int64)
    head = np.arange(_HEAD_SAMPLES) * SAMPLE_LENGTH
    spread = spread[(spread == 0) | (spread >= head[-1] + SAMPLE_LENGTH)]
    number = np.arange(len(spread))
    bits = max(1, int(len(spread) - 1).bit_length())
    # Numbers with their bits reversed: each one halves the widest gap that is left.
    reversed_ = sum(((number >> bit) & 1) << (bits - 1 - bit) for bit in range(bits))
    order = spread[np.argsort(reversed_, kind="stable")]
    order = np.concatenate((head, order[order != spread[-1]][1:], spread[-1:]))
    return np.concatenate((order[:_HEAD_SAMPLES], order[-1:], order[_HEAD_SAMPLES:-1]))


def _extents(trace: Trace, position: NDArray[np.int64], positions: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return first and last time of every sample, (samples,); of one without events the bounds of int64.

    The BUFFER event of a CPU comes before its TIME event: in a sample it may be a rollover off.
    """
    bounds = np.iinfo(np.int64)
    first_cycles, last_cycles = np.full(positions, bounds.max), np.full(positions, bounds.min)
    counts = trace.events.code != wire.CONTROL_BUFFER
    np.minimum.at(first_cycles, position[counts], trace.events.time_cycles[counts])
    np.maximum.at(last_cycles, position[counts], trace.events.time_cycles[counts])
    return first_cycles, last_cycles


def _ascends(trace: Trace, position: NDArray[np.int64], positions: int) -> bool:
    """Return whether the times of each CPU ascend from sample to sample, but for what buffers may be out of order."""
    cpus = int(trace.events.cpu.max()) + 1
    first_cycles, last_cycles = _extents(trace, position * cpus + trace.events.cpu, positions * cpus)
    before = np.maximum.accumulate(last_cycles.reshape(positions, cpus), axis=0)[:-1]
    after = first_cycles.reshape(positions, cpus)[1:]
    seen = (after != np.iinfo(np.int64).max) & (before != np.iinfo(np.int64).min)
    # Stamps of a CPU step back without a loss in 7.x and 8.0 too (section 6.1), far less than 10 ms.
    slack = min(_SURE_CYCLES, trace.clock.cycles_per_s // _DISORDER_PER_S)
    return bool(np.all(after[seen] >= before[seen] - slack))


def _are_timed(trace: Trace, position: NDArray[np.int64], first_slot: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return of which samples the times are sure.

    Those with a TIME event are, and those after them as long as the clock cannot have gone around in between, as far as
    the pace on both sides shows. Where the target was silent for longer than that, the clock may have gone around
    unseen, and where it did, the samples since the TIME event before may be on either side.
    """
    positions = len(first_slot)
    first_cycles, last_cycles = _extents(trace, position, positions)
    is_empty = last_cycles < first_cycles
    has_time = np.zeros(positions, np.bool_)
    has_time[position[trace.events.code == wire.CONTROL_TIME]] = True
    length = np.where(is_empty, 0, last_cycles - np.where(is_empty, 0, first_cycles))
    gap_slots = np.diff(first_slot) - SAMPLE_LENGTH
    # Cycles per slot on both sides of a gap; the slower of the two, to be on the safe side.
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
    """Return when events came that follow lost ones, ascending.

    A BUFFER event says how many slots its buffer has, so that the next one can be looked at wherever it is; between the
    two numbers are missing if buffers were lost. 8.0 shows with DROPPED events too.
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
