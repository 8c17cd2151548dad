"""Finds gaps between kernel buffers, and reassembles combine events, whose slots need not be adjacent."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.column_arrays import ColumnTable
from satview.events import wire
from satview.events.spec import Release
from satview.events.wire import CPU_MASK, CPU_SHIFT
from satview.formats.kev.consensus import ROLLOVER
from satview.store.problems import Problems
from satview.store.tables import BufferTable, EventTable

# Reassembles combine events: matches runs of slots that do not follow the first slots of their event.
#
# Source: kernel event trace format, section 3.3. Almost every slot of a combine event follows the previous slot of that
# event, which a single comparison shows. Only runs of tail slots after another event are matched with the open events,
# oldest first.
#
# A tail belongs to the oldest open event of its key, even if it follows another event of the key. Stamps of a CPU
# differ, so only damage gives two events the same key; such events are found by their time, and their tails are matched
# as if they were separated. An open event is dropped when its CPU's clock is a rollover away, back or ahead, because
# its stamp may then be used again.


KEY_MASK: Final = np.uint32(0x3FFFFFFF)  # CPU, class and event: all except the structure bits
_BLOCK_ROWS: Final = 1 << 12  # a tenth of a second of a busy system, far less than a rollover
_LONG_AGO: Final = -(1 << 62)
MAX_SLOTS: Final = 1 << 20  # of one event; more are reported as damage


def keys(headers: NDArray[np.uint32], stamps: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Return for each slot the key that all slots of its combine event share: stamp, CPU, class, event; uint64 (n,).

    The stamp is the upper half, so that the keys of a file nearly ascend and can be sorted fast.
    """
    return stamps.astype(np.uint64) << np.uint64(32) | (headers & KEY_MASK)


def contested(event_keys: NDArray[np.uint64], is_open: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which events have a key that several events share, at least one of them open (without end), bool (n,)."""
    open_keys = np.unique(event_keys[is_open])
    if not len(open_keys):
        return np.zeros(len(event_keys), np.bool_)
    position = np.searchsorted(open_keys, event_keys)
    position[position == len(open_keys)] = 0
    is_open_key = open_keys[position] == event_keys
    # If a key has only one event, its tails are certain.
    counts = np.bincount(position[is_open_key], minlength=len(open_keys))
    return np.asarray(is_open_key & (counts[position] > 1))


def is_expired(now: NDArray[np.int64], start: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which open events are given up: those whose start is a rollover or more from `now`, bool (n,).

    `now` is the current time of each event's CPU, `begun` the start of the event, both in cycles.
    """
    return np.asarray(np.abs(now - start) >= ROLLOVER)


@dataclass(frozen=True, slots=True)
class Unmatched(ColumnTable):
    """Open events, and runs of continuation slots that do not follow their own event; one row each, in file order.

    Attributes:
        slot: int64, first slot.
        count: int64, number of adjacent slots.
        header: uint32, header of the first slot.
        stamp: uint32.
        closes: bool, whether the last slot is an end slot.
        event: int64, row in file order of an open event; -1 for a run of continuation slots.
        before: int64, row of the last event that begins before these slots in the file; -1 = none.
    """

    slot: NDArray[np.int64]
    count: NDArray[np.int64]
    header: NDArray[np.uint32]
    stamp: NDArray[np.uint32]
    closes: NDArray[np.bool_]
    event: NDArray[np.int64]
    before: NDArray[np.int64]

    @classmethod
    def none(cls) -> Unmatched:
        """Return an empty table."""
        whole = np.empty(0, np.int64)
        return cls(whole, whole, whole.astype(np.uint32), whole.astype(np.uint32), whole.astype(np.bool_), whole, whole)


def split(
    unmatched: Unmatched,
    rows: NDArray[np.int64],
    slot: NDArray[np.int64],
    counts: NDArray[np.int64],
    headers: NDArray[np.uint32],
    stamps: NDArray[np.uint32],
) -> Unmatched:
    """Return `unmatched` with some events and their continuation slots as separate rows, to match these slots again.

    Args:
        unmatched: Unmatched rows so far.
        rows: (k,), rows of the events in file order, ascending.
        slot: (k,), first slots of the events.
        counts: (k,), numbers of adjacent slots.
        headers: (k,), headers of the first slots.
        stamps: (k,), stamps of the events.
    """
    is_open = np.isin(rows, unmatched.event)
    others = ~np.isin(unmatched.event, rows) | (unmatched.event < 0)
    has_tails = counts > 1
    no_end, no_event = np.zeros(len(rows), np.bool_), np.full(len(rows), -1)
    heads = Unmatched(slot, np.ones_like(counts), headers, stamps, no_end, rows, rows)
    tails = Unmatched(slot + 1, counts - 1, headers, stamps, ~is_open, no_event, rows)
    parts = Unmatched.concatenated([unmatched.taken(others), heads, tails.taken(has_tails)])
    return parts.taken(np.argsort(parts.slot, kind="stable"))


@dataclass(frozen=True, slots=True)
class Matched:
    """Result of `match`: the event to which each run of continuation slots belongs.

    Attributes:
        owner: int64 (n,), for each row of the given `Unmatched` the event to which it belongs, as a row in file order;
            -1 = a run of continuation slots without an event.
        unfinished: int64, rows in file order of the events whose end is missing, ascending.
    """

    owner: NDArray[np.int64]
    unfinished: NDArray[np.int64]


def match(
    unmatched: Unmatched, event_times: NDArray[np.int64], event_cpus: NDArray[np.uint8], *, ascends: bool = False
) -> Matched:
    """Match runs of continuation slots with open events of the same key, first come first served.

    Within a key the k-th closing run closes the k-th open event; closing runs without an open event do not count.

    Args:
        unmatched: Rows to match.
        event_times: int64 (events,), cycles, in file order.
        event_cpus: uint8 (events,).
        ascends: Whether the times never decrease, which speeds up the search for events that were given up.
    """
    n = len(unmatched.slot)
    owner = unmatched.event.copy()
    if not n:
        return Matched(owner, np.empty(0, np.int64))
    key = keys(unmatched.header, unmatched.stamp)
    order = np.argsort(key, kind="stable")
    key = key[order]
    begins = np.concatenate(([True], key[1:] != key[:-1]))
    is_rest = _match_pairs(owner, unmatched, order, begins)
    if is_rest.any():
        _match_queues(owner, unmatched, order[is_rest], begins[is_rest])
    is_changed = _expire(owner, unmatched, order, begins, event_times, event_cpus, ascends=ascends)
    # Paired events have their end; it is searched for other events, and for all if any event was dropped.
    doubtful = unmatched.event if is_changed else unmatched.event[order[is_rest]]
    heads = np.sort(doubtful[doubtful >= 0])
    finished = np.sort(owner[(unmatched.event < 0) & (owner >= 0) & unmatched.closes]) if len(heads) else heads
    return Matched(owner, heads[~contains(finished, heads)])


def _match_pairs(
    owner: NDArray[np.int64], unmatched: Unmatched, order: NDArray[np.intp], begins: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Match rows of keys with just one event and one run that ends it, nearly all; return which of `order` are others.

    `order` has the unmatched rows sorted by key and then in file order, and `begins` marks the first row of each key.
    """
    pairs = np.flatnonzero(begins & np.append(~begins[1:], False) & np.append(begins[2:], [True, True])[: len(begins)])
    heads, tails = order[pairs], order[pairs + 1]
    events = unmatched.event[heads]
    fits = (events >= 0) & (unmatched.event[tails] < 0) & unmatched.closes[tails]
    owner[tails[fits]] = events[fits]
    is_rest = np.ones(len(order), np.bool_)
    is_rest[pairs[fits]] = is_rest[pairs[fits] + 1] = False
    return is_rest


def _match_queues(
    owner: NDArray[np.int64], unmatched: Unmatched, order: NDArray[np.intp], begins: NDArray[np.bool_]
) -> None:
    """Match the rows of some keys by the queues of section 3.3, without a loop; arguments are as for `_match_pairs`.

    The k-th closing run of continuation slots of a key belongs to the k-th event of the key, not counting runs that
    came while no event was open.
    """
    n, segment = len(order), np.cumsum(begins) - 1
    is_head = unmatched.event[order] >= 0
    closing = unmatched.closes[order] & ~is_head
    heads = _within(np.cumsum(is_head), segment, begins)
    closed_before = _within(np.cumsum(closing), segment, begins) - closing
    orphan_ends = _running_excess(closed_before + closing - heads, segment, n)
    before = np.concatenate(([0], orphan_ends[:-1]))
    before[begins] = 0
    index = closed_before - before  # the oldest open event of the key
    has_owner = ~is_head & (index < heads)
    head_rows = np.flatnonzero(is_head)
    head_start = np.concatenate(([0], np.cumsum(is_head)))[np.flatnonzero(begins)[segment]]
    owner_sorted = np.where(is_head, unmatched.event[order], -1)
    owner_sorted[has_owner] = unmatched.event[order][head_rows[head_start[has_owner] + index[has_owner]]]
    owner[order] = owner_sorted


def contains(ascending: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which values are in an ascending array, bool (n,); fast if the values ascend too."""
    if not len(ascending):
        return np.zeros(len(values), np.bool_)
    position = np.searchsorted(ascending, values)
    position[position == len(ascending)] = 0
    return np.asarray(ascending[position] == values)


def _within(counts: NDArray[np.intp], segment: NDArray[np.intp], begins: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return running counts, `counts` over all rows, that restart in every segment, intp (n,)."""
    base = np.concatenate(([0], counts))[np.flatnonzero(begins)]
    return counts - base[segment]


def _running_excess(excess: NDArray[np.intp], segment: NDArray[np.intp], n: int) -> NDArray[np.intp]:
    """Return the running maximum of `excess`, at most `n`, restarted in every segment, intp (n,); never less than 0."""
    # No excess is larger than n, so values lifted in a segment are never above those in the next one.
    lifted = np.maximum(excess, 0) + segment * n
    return np.maximum.accumulate(lifted) - segment * n


def _expire(
    owner: NDArray[np.int64],
    unmatched: Unmatched,
    order: NDArray[np.intp],
    begins: NDArray[np.bool_],
    event_times: NDArray[np.int64],
    event_cpus: NDArray[np.uint8],
    *,
    ascends: bool,
) -> bool:
    """Match again the continuation slots whose event had been given up (`is_expired`); return whether any exist.

    Args:
        owner: int64 (n,), owners found so far; changed in place.
        unmatched: Rows to match.
        order: (n,), rows sorted by key, in file order within each key.
        begins: bool (n,), whether a row of `order` is the first of its key.
        event_times: int64 (events,), cycles, in file order.
        event_cpus: uint8 (events,).
        ascends: Whether the times never decrease.
    """
    tails = np.flatnonzero((unmatched.event < 0) & (owner >= 0))
    tails = tails[_may_be_given_up(unmatched.before[tails], owner[tails], event_times, ascends=ascends)]
    if not len(tails):
        return False
    aged = is_expired(_cpu_times(unmatched, tails, event_times, event_cpus), event_times[owner[tails]])
    if not aged.any():
        return False
    # Dropping an event shifts the rest of its queue, so the few keys concerned are processed one by one.
    segment = np.cumsum(begins, dtype=np.intp)
    segment_of = np.empty_like(segment)
    segment_of[order] = segment
    concerned = np.zeros(int(segment[-1]) + 1, np.bool_)
    concerned[segment_of[tails[aged]]] = True
    rows = order[concerned[segment]]  # by key, within a key in file order
    owner[rows] = _owners_one_by_one(unmatched, rows, segment_of[rows], event_times, event_cpus)
    return True


def _may_be_given_up(
    before: NDArray[np.int64], owner: NDArray[np.int64], event_times: NDArray[np.int64], *, ascends: bool
) -> NDArray[np.bool_]:
    """Return which runs of continuation slots may belong to an event that was given up before, bool (n,).

    This is a fast test (see `is_expired`) by the time ranges of blocks of rows from the event (`owner`) to the last
    event before the run (`before`); runs that it cannot exclude are examined exactly later. If times never decrease,
    the time of `before` is the latest.
    """
    if ascends:
        return is_expired(event_times[before], event_times[owner])
    if not len(before):
        return np.zeros(0, np.bool_)
    starts = np.arange(0, len(event_times), _BLOCK_ROWS)
    low, high = np.minimum.reduceat(event_times, starts), np.maximum.reduceat(event_times, starts)
    first_block, last_block = owner // _BLOCK_ROWS, before // _BLOCK_ROWS
    is_near = last_block - first_block <= 1
    lowest = np.where(is_near, np.minimum(low[first_block], low[last_block]), low.min())
    highest = np.where(is_near, np.maximum(high[first_block], high[last_block]), high.max())
    start = event_times[owner]
    return np.asarray(is_expired(lowest, start) | is_expired(highest, start))


def _owners_one_by_one(
    unmatched: Unmatched,
    rows: NDArray[np.intp],
    segments: NDArray[np.intp],
    event_times: NDArray[np.int64],
    event_cpus: NDArray[np.uint8],
) -> list[int]:
    events, now = unmatched.event[rows], _cpu_times(unmatched, rows, event_times, event_cpus)
    now[events >= 0] = event_times[events[events >= 0]]
    owners: list[int] = []
    queue: deque[tuple[int, int]] = deque()  # open events of the key, oldest first, and their start times
    last = -1
    columns = (segments, events, now, unmatched.closes[rows])
    for segment, event, time, closes in zip(*(column.tolist() for column in columns), strict=True):
        if segment != last:
            queue.clear()
            last = segment
        if event >= 0:
            queue.append((event, time))
            owners.append(event)
            continue
        while queue and abs(time - queue[0][1]) >= ROLLOVER:
            queue.popleft()
        owners.append(queue[0][0] if queue else -1)
        if queue and closes:
            queue.popleft()
    return owners


def _cpu_times(
    unmatched: Unmatched, rows: NDArray[np.intp], event_times: NDArray[np.int64], event_cpus: NDArray[np.uint8]
) -> NDArray[np.int64]:
    """Return for some unmatched rows the time of the last event before on their CPU, int64 (k,); `_LONG_AGO` = none."""
    cpus = (unmatched.header[rows] >> np.uint32(CPU_SHIFT) & np.uint32(CPU_MASK)).astype(np.uint8)
    return last_times(cpus, unmatched.before[rows], event_times, event_cpus, np.full(CPU_MASK + 1, _LONG_AGO))


def last_times(
    cpus: NDArray[np.uint8],
    before: NDArray[np.int64],
    event_times: NDArray[np.int64],
    event_cpus: NDArray[np.uint8],
    earlier: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the time of the last event of a CPU up to a row, for many pairs, in cycles, shape (len(cpus),).

    Args:
        cpus: (n,), CPU of each pair.
        before: (n,), row of each pair.
        event_times: Times of all events, in file order.
        event_cpus: CPUs of all events.
        earlier: (64,), result for a CPU that has no such event.
    """
    times = earlier[cpus]
    for cpu in np.unique(cpus).tolist():
        rows_of_cpu = np.flatnonzero(event_cpus == cpu)
        requests = np.flatnonzero(cpus == cpu)
        last = np.searchsorted(rows_of_cpu, before[requests], side="right") - 1
        times[requests[last >= 0]] = event_times[rows_of_cpu[last[last >= 0]]]
    return times


# Kernel buffers: their sequence, gaps between them, and reports of lost events.
#
# Source: kernel event trace format, section 6. Sequence numbers are global up to 7.x and per CPU in 8.0.


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
    """Return groups of buffers that are numbered together, intp (n,): a group for each CPU in 8.0, else one of all."""
    if release == Release.QNX_8:
        return [np.flatnonzero(cpu == number) for number in np.unique(cpu)]
    return [np.arange(len(cpu))] if len(cpu) else []


def predecessors(cpu: NDArray[np.uint8], time_cycles: NDArray[np.int64], release: Release) -> NDArray[np.intp]:
    """Return for every buffer the index of the buffer that the kernel filled before it; -1 for the first.

    Args:
        cpu: uint8 (buffers,).
        time_cycles: int64 (buffers,), times of the BUFFER events.
        release: Determines whether each CPU has its own buffers.

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

    A buffer number is damaged if it is far from the number before it, and the number after it continues from the number
    before it. No buffer is then missing before it. Smaller jumps are not taken for damage, as blocks out of order in a
    file that lost many buffers cause them, too.

    Args:
        sequence: uint32 (n,), sequence number of each buffer.
        before: intp (n,), result of `predecessors`.
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
    """Build the table of buffers from the rows of the BUFFER events and their words, (n, 2): number and slot count."""
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
    """Report lost buffers, buffers out of order, and buffers whose length differs from their announced length."""
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
    """Report a gap or wrong order before a buffer, given the buffers before it in file order and in time order."""
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
    """Report DROPPED events, and BUFFER_END marks that are damaged.

    Args:
        code: (n,), codes of the CONTROL events.
        words: (n, 2), first two payload words of these events.
        slot: (n,), slot numbers of these events.
        time_cycles: (n,).
        region: Converts slots to byte offsets, for reports.
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
