"""Kernel buffers: their sequence, gaps between them, and reports of lost events.

Source: kernel event trace format, section 6. Sequence numbers are global up to 7.x and per CPU in 8.0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events import wire
from satview.events.spec import Release
from satview.store.problems import Problems
from satview.store.tables import BufferTable, EventTable


@dataclass(frozen=True, slots=True)
class EventRegion:
    """The slots of a file: byte offset of the first slot, and number of slots.

    `byte_of_slot` returns the byte offset of a slot; None if the slots are contiguous.
    """

    offset: int
    slot_count: int
    byte_of_slot: Callable[[int], int] | None = None

    def byte(self, slot: int) -> int:
        """Return the file offset of a slot."""
        if self.byte_of_slot is not None:
            return self.byte_of_slot(slot)
        return self.offset + slot * wire.SLOT_BYTES


_FAR: Final = 1 << 16  # a jump of more numbers and back is damage, as no logger loses so many buffers


def _sequences(cpu: NDArray[np.uint8], release: Release) -> list[NDArray[np.intp]]:
    """Return groups of buffers that are numbered together: a group for each CPU in 8.0, else one group of all."""
    if release == Release.QNX_8:
        return [np.flatnonzero(cpu == number) for number in np.unique(cpu)]
    return [np.arange(len(cpu))] if len(cpu) else []


def predecessors(cpu: NDArray[np.uint8], time_cycles: NDArray[np.int64], release: Release) -> NDArray[np.intp]:
    """Return for every buffer the index of the buffer that the kernel filled before it; -1 for the first.

    Returns:
        intp (buffers,).
    """
    before = np.full(len(cpu), -1, np.intp)
    for group in _sequences(cpu, release):
        # In time order, not by number or file order: numbers of a ring begin in the middle, and after an overrun whole
        # blocks are in the wrong order (section 5.4).
        in_time = group[np.argsort(time_cycles[group], kind="stable")]
        before[in_time[1:]] = in_time[:-1]
    return before


def missing_before(sequence: NDArray[np.uint32], before: NDArray[np.intp]) -> NDArray[np.uint32]:
    """Return how many buffers are missing, by their numbers, between every buffer and its predecessor, uint32 (n,).

    A number is damaged if it is far from the number before it, while the number after it continues from the number
    before: then nothing is missing. Smaller jumps may come from blocks out of order in a file that lost many buffers.
    """
    numbers = sequence.astype(np.int64)
    missing = np.zeros(len(sequence), np.int64)
    known = np.flatnonzero(before >= 0)
    missing[known] = numbers[known] - numbers[before[known]] - 1
    later = known[before[before[known]] >= 0]  # buffers with two buffers before them
    middle = before[later]
    earlier = before[middle]
    is_wrong = np.abs(numbers[middle] - numbers[earlier]) > max(len(sequence), _FAR)
    is_wrong &= numbers[earlier] < numbers[later]
    is_wrong &= (numbers[middle] <= numbers[earlier]) | (numbers[middle] >= numbers[later])
    later, middle, earlier = later[is_wrong], middle[is_wrong], earlier[is_wrong]
    missing[middle] = 0
    missing[later] = numbers[later] - numbers[earlier] - 2  # the damaged buffer has a number in between
    return np.maximum(missing, 0).astype(np.uint32)


def buffer_table(
    rows: NDArray[np.int64], words: NDArray[np.uint32], events: EventTable, release: Release
) -> BufferTable:
    """Build the table of buffers from the BUFFER events.

    Args:
        rows: Rows of the BUFFER events.
        words: (len(rows), 2): sequence number and slot count of each buffer.
        events: Events in time order.
        release: Determines whether buffers are numbered per CPU.
    """
    order = np.argsort(events.slot[rows], kind="stable")  # file order
    rows, words = rows[order], words[order]
    cpu, time = events.cpu[rows], events.time_cycles[rows]
    return BufferTable(
        events.slot[rows].astype(np.int64),
        cpu,
        words[:, 0],
        words[:, 1],
        time,
        missing_before(words[:, 0], predecessors(cpu, time, release)),
    )


def report_buffers(buffers: BufferTable, region: EventRegion, release: Release, problems: Problems) -> None:
    """Report gaps, buffers out of order, and buffers whose length differs from their announced length."""
    before = predecessors(buffers.cpu, buffers.time_cycles, release)
    for group in _sequences(buffers.cpu, release):
        # The first number of a file shows no gap: the kernel counts on over several captures (section 6.1).
        step = np.diff(buffers.sequence[group].astype(np.int64), prepend=int(buffers.sequence[group[0]]) - 1)
        if release == Release.QNX_8 and buffers.sequence[group[-1]] == 1:
            step[-1] = 1  # the buffer handed over at STOP counts from 1 again
        lost = buffers.lost_before[group] > 0
        lossy, moved = np.flatnonzero(lost), np.flatnonzero((step != 1) & ~lost)
        spelled_out = np.sort(np.concatenate((lossy[: problems.limit], moved[: problems.limit])))
        for i in spelled_out.tolist():
            _report_step(buffers, int(group[i]), int(group[max(i - 1, 0)]), int(before[group[i]]), region, problems)
        rest = lossy[problems.limit :]
        problems.add_rest("lost-buffers", len(rest), int(buffers.lost_before[group[rest]].sum(dtype=np.int64)))
        rest = moved[problems.limit :]
        problems.add_rest("buffer-order", len(rest), len(rest))
    _report_lengths(buffers, region, problems)


def _report_step(
    buffers: BufferTable, row: int, in_file: int, in_time: int, region: EventRegion, problems: Problems
) -> None:
    """Report a buffer after a gap or out of order; `in_file` and `in_time` are its predecessors in these orders."""
    position, time, lost = (
        region.byte(int(buffers.slot[row])),
        int(buffers.time_cycles[row]),
        int(buffers.lost_before[row]),
    )
    number = buffers.sequence[row]
    if not lost:
        problems.add("buffer-order", f"buffer {number} follows buffer {buffers.sequence[in_file]}", position, 1, time)
        return
    text = f"{lost} buffer{'s' * (lost > 1)} lost between number {buffers.sequence[in_time]} at byte "
    text += f"0x{region.byte(int(buffers.slot[in_time])):x} and number {number}"
    problems.add("lost-buffers", text, position, lost, time)


def _report_lengths(buffers: BufferTable, region: EventRegion, problems: Problems) -> None:
    lengths = np.diff(buffers.slot, append=region.slot_count)
    announced = buffers.slots.astype(np.int64)
    # 0: the buffer was not handed over, so the kernel never filled in its count, as in a ring (section 6.1).
    wrong = (announced != 0) & (lengths != announced)
    if len(wrong):
        wrong[-1] = announced[-1] > lengths[-1]  # further slots may belong to an unannounced buffer
    rows = np.flatnonzero(wrong)
    for i in rows[: problems.limit].tolist():
        problems.add(
            "buffer-length",
            f"buffer {buffers.sequence[i]} announces {announced[i]} slots, the file holds {lengths[i]}",
            region.byte(int(buffers.slot[i])),
            1,
            int(buffers.time_cycles[i]),
        )
    problems.add_rest("buffer-length", len(rows[problems.limit :]), len(rows[problems.limit :]))


def report_control_events(
    code: NDArray[np.uint16],
    words: NDArray[np.uint32],
    slot: NDArray[np.integer],
    time_cycles: NDArray[np.int64],
    region: EventRegion,
    problems: Problems,
) -> None:
    """Report damaged BUFFER_END marks and DROPPED events.

    Args:
        code: (n,), codes of the CONTROL events.
        words: (n, 2), first two payload words of these events.
        slot: (n,), slot numbers of these events.
        time_cycles: (n,).
        region: For byte offsets.
        problems: Receives the reports.
    """
    broken = (code == wire.CONTROL_BUFFER_END) & np.any(words != wire.BUFFER_END_COOKIE, axis=1)
    for slug, is_such, text in (
        ("lost-events", code == wire.CONTROL_DROPPED, "the kernel reports dropped events, words"),
        ("buffer-end", broken, "the end mark of a buffer reads words"),
    ):
        rows = np.flatnonzero(is_such)
        for i in rows[: problems.limit].tolist():
            detail = f"{text} 0x{words[i, 0]:08x} 0x{words[i, 1]:08x}"
            problems.add(slug, detail, region.byte(int(slot[i])), 1, int(time_cycles[i]))
        problems.add_rest(slug, len(rows[problems.limit :]), len(rows[problems.limit :]))


def report_ring_tail(events: EventTable, cycles_per_s: int, region: EventRegion, problems: Problems) -> None:
    """Report events that a ring capture logged while it was saved: they follow a pause of more than a second.

    The heuristic is from another reader (format description, 5.5): the end of the capture is the longest pause between
    neighbouring events in the file, ignoring names and control events, if it is longer than a second.
    """
    kind = events.code >> wire.CLASS_SHIFT
    rows = np.flatnonzero(
        (kind != wire.WireClass.CONTROL) & ~((kind == wire.WireClass.PR_TH) & (events.code & 1023 >= 64))
    )
    rows = rows[np.argsort(events.slot[rows], kind="stable")]
    pauses = np.diff(events.time_cycles[rows])
    if not len(pauses):
        return
    longest = int(np.argmax(pauses))
    if int(pauses[longest]) > cycles_per_s:
        first_row = int(rows[longest + 1])
        after = len(rows) - longest - 1
        problems.add(
            "ring-tail",
            f"{after} events after a pause of {pauses[longest] / cycles_per_s:.3g} s were probably "
            "written while the ring was saved",
            region.byte(int(events.slot[first_row])),
            after,
            int(events.time_cycles[first_row]),
        )
