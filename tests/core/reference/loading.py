"""The passes of `core.loading`: slots to events, streamed slots, times, threads and texts."""

from __future__ import annotations

import numpy as np

from satview.base.column_arrays import numbers_of
from satview.core.loading import (
    IS_ASCII,
    IS_NUMBERS,
    IS_RARE,
    IS_RUNNING,
    IS_STATE,
    IS_SUBJECT,
    IS_UNKNOWN,
    LOG_CROSSING,
    LOG_SEED,
    LOG_TIME,
    MAY_BE_UTF8,
    Grouped,
    Groups,
    StreamColumns,
)
from satview.events import wire
from satview.formats.kev.combine import keys as keys_of
from satview.formats.kev.consensus import ROLLOVER, unwrap
from satview.formats.kev.stream import cpus_of

# Slots to events, times, owners.


_TAIL = 0x80000000  # set in continuation and end slots
_KEY_MASK = 0x3FFFFFFF  # CPU, class and event
_LONGEST_TAIL = 1 << 16  # a chunk ends where an event begins, if one begins that near its end
_UNSET = -(1 << 62)
_CPUS = 64
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5  # wire types of protobuf
_MOST_BYTES = 10  # of a number there


class Grouper:
    """Groups slots into events."""

    def __init__(self, traits, buffer_code, capacity):
        self._traits, self._buffer_code, self._capacity = traits, buffer_code, capacity

    def group(self, slots, first_slot, first_row, code, cpu, slot, size, *, is_last):
        """Return what the slots are made of."""
        headers = slots[:, 0]
        is_tail, is_run = headers >= _TAIL, begins_run(slots)
        if not is_last and len(slots):
            length = _usable_length(headers, ~is_tail, np.flatnonzero(is_run), self._buffer_code)
            slots, headers, is_tail, is_run = (
                slots[:length],
                headers[:length],
                is_tail[:length],
                is_run[:length],
            )
        is_zero = headers == 0
        is_event = ~is_tail & ~is_zero
        border = np.flatnonzero(is_event | is_run | is_zero)
        ends = np.append(border[1:], len(slots))  # of each event, run of tails, and slot of zeros
        kind = headers >> wire.STRUCT_SHIFT
        at, end = border[is_event[border]], ends[is_event[border]]
        runs, run_ends = border[is_run[border]], ends[is_run[border]]
        headers_of = headers[at]
        codes, rows = headers_of & wire.CODE_MASK, slice(0, len(at))
        code[rows], cpu[rows] = codes, headers_of >> wire.CPU_SHIFT & wire.CPU_MASK
        slot[rows] = at + first_slot
        size[rows] = (end - at).astype(size.dtype)
        trait = self._traits[codes]
        is_subject = trait & IS_SUBJECT != 0
        is_open = np.isin(kind[end - 1], (wire.Struct.COMBINE_BEGIN, wire.Struct.COMBINE_CONTINUE))
        payload = np.ascontiguousarray(slots[at[is_subject], 2:4]).view(np.uint64).ravel()
        states = np.flatnonzero(is_subject & (trait & IS_STATE != 0))
        return Grouped(
            len(slots), at.astype(np.uint32), (end - at).astype(np.uint32), slots[at, 1], trait,
            int((end - at).max(initial=0)), np.flatnonzero(is_open).astype(np.uint32), runs.astype(np.uint32),
            (run_ends - runs).astype(np.uint32), np.searchsorted(at, runs) - 1,
            kind[run_ends - 1] == wire.Struct.COMBINE_END, np.flatnonzero(is_zero).astype(np.uint32), payload,
            (first_row + states).astype(np.uint32), np.flatnonzero(trait & IS_RARE).astype(np.uint32),
            np.flatnonzero(trait & IS_UNKNOWN).astype(np.uint32),
        )  # fmt: skip


def begins_run(slots):
    """Return for every slot whether it is a tail that does not go on with the event of the slot before it."""
    headers, stamps = slots[:, 0], slots[:, 1]
    is_run = headers >= _TAIL
    kind = headers[:-1] >> wire.STRUCT_SHIFT
    is_linked = ((headers[1:] ^ headers[:-1]) & _KEY_MASK == 0) & (stamps[1:] == stamps[:-1])
    is_linked &= (kind == wire.Struct.COMBINE_BEGIN) | (kind == wire.Struct.COMBINE_CONTINUE)
    is_run[1:] &= ~is_linked
    return is_run


def _usable_length(headers, is_event, runs, buffer_code):
    """Return where to end a chunk: where its last event or run of tails begins, for that may go on in the next one."""
    count = len(headers)
    low = max(0, count - _LONGEST_TAIL)
    last = np.flatnonzero(is_event[low:]) + low
    if not len(last):
        return count
    cut = max(int(last[-1]), int(runs[-1]) if len(runs) else 0)
    before = last[last < cut]
    is_kept = np.isin(headers[before] & wire.CODE_MASK, (0, buffer_code))
    # A BUFFER takes the time of the event after it, so the two stay together; and so do zero slots in a row.
    if len(before) and is_kept[-1]:
        others = np.flatnonzero((headers[before] != 0) & (headers[before] & wire.CODE_MASK != buffer_code))
        first = int(others[-1]) + 1 if len(others) else 0
        if first < len(before) and before[first] > 0 and (len(others) or count <= _LONGEST_TAIL):
            cut = int(before[first])
    return cut or count


def numbers(requested, done, _keys, _rows, _bits, _multiplier, known, used, limit, out):
    """Write the number of every thread; the table of positions is not needed."""
    number_of = {key: number for number, key in enumerate(known[:used].tolist()) if number}
    for position, key in enumerate(requested[done:].tolist(), done):
        if key not in number_of:
            if used >= limit:
                return position, used
            known[used], number_of[key] = key, used
            used += 1
        out[position] = number_of[key]
    return len(requested), used


def rows_by_thread(rows, thread, thread_count, out):
    """Group rows by thread."""
    order = np.argsort(thread[rows], kind="stable")
    out[:] = rows[order]
    return np.searchsorted(thread[rows][order], np.arange(thread_count + 1))


def word_sum(words, first):
    """Return the sum of words, each times an odd number."""
    factor = 2 * np.arange(first, first + len(words), dtype=np.uint64) + np.uint64(1)
    return int(np.add.reduce(words * factor))


def owners(cpu, trait, thread, discontinuities, now, out):
    """Write the thread that each event belongs to, walking from one to the next."""
    jumps, subjects, running = discontinuities.T.tolist(), iter(thread.tolist()), now.tolist()
    owner = []
    for row, (number, traits) in enumerate(zip(cpu.tolist(), trait.tolist(), strict=True)):
        while jumps and jumps[0][0] <= row:
            of_cpu = jumps.pop(0)[1]
            for lost in range(_CPUS) if of_cpu < 0 else (of_cpu,):
                running[lost] = 0
        mine = next(subjects) if traits & IS_SUBJECT else running[number]
        if traits & IS_RUNNING:
            running[number] = mine
        owner.append(mine)
    out[:], now[:] = owner, running


def clock(stamp, cpu, time_row, time_value, shared, reference, last, out):
    """Write the time of each event by the rules of section 5.3, walking from one to the next."""
    value_of, takes_next = dict(zip(time_row.tolist(), time_value.tolist(), strict=True)), set(shared.tolist())
    begun_in = [time // ROLLOVER for time in reference.tolist()]  # rollover in which each CPU was at its last TIME
    crossed: dict[int, int] = {}  # first event of each CPU beyond it
    latest_of, times, log = reference.tolist(), [], []

    def note_crossing(number):
        if number in crossed:
            row = crossed.pop(number)
            log.append((LOG_CROSSING, row, latest_of[number] // ROLLOVER - begun_in[number], number))

    for row, (low, number) in enumerate(zip(stamp.tolist(), cpu.tolist(), strict=True)):
        if row in takes_next:
            times.append(0)
            continue
        value, is_unset = value_of.get(row, -1), latest_of[number] == _UNSET
        if value >= 0:
            note_crossing(number)
            log.append((LOG_TIME, row, last if is_unset else latest_of[number], int(not is_unset)))
        elif is_unset:
            log.append((LOG_SEED, row, 0, 0))
        if value >= 0 or is_unset:
            latest_of[number] = value if value >= 0 else last
            begun_in[number] = latest_of[number] // ROLLOVER
        last = unwrap(latest_of[number], low)
        times.append(last)
        if value < 0 and last > latest_of[number]:  # the stamp of a TIME is read after its value
            latest_of[number] = last
            if last // ROLLOVER > begun_in[number]:
                crossed.setdefault(number, row)
    for number in sorted(crossed):
        note_crossing(number)
    for row in sorted(takes_next, reverse=True):
        times[row] = times[row + 1]
    out[:], reference[:] = times, latest_of
    return times[-1] if times else last, np.array(log, np.int64).reshape(-1, 4)


def cheapest_path(cost, step_cost):
    """See satview.core.loading."""
    ahead, behind, best = cost.copy(), cost.copy(), np.empty(len(cost), np.int64)
    for at in range(1, len(cost)):
        ahead[at] += (ahead[at - 1][:, None] + step_cost[at - 1]).min(axis=0)
    for at in range(len(cost) - 2, -1, -1):
        behind[at] += (behind[at + 1] + step_cost[at]).min(axis=1)
    best[-1] = np.argmin(ahead[-1])
    for at in range(len(cost) - 2, -1, -1):
        best[at] = np.argmin(ahead[at] + step_cost[at][:, best[at + 1]])
    return best, ahead + behind - cost


def take_halves(*_arguments):
    """Return None, as where not everything can be read: the caller reads run by run then."""


_MOST_BYTES = 10  # of a number


def protobuf_fields(data, begin, end):
    """Return message, number, value and length of each field, and which messages are damaged."""
    octets, rows = data.tobytes(), []
    is_bad = (begin < 0) | (end > len(data))
    stops = np.minimum(end, len(data)).tolist()
    for message, first in enumerate(begin.tolist()):
        at = first
        while 0 <= at < stops[message]:
            field = _field(octets, at, stops[message])
            if field is None:
                is_bad[message] = True
                break
            *row, at = field
            rows.append((message, *row))
    message, number, value, length = np.array(rows, np.int64).reshape(-1, 4).T
    return message, number, value, length, is_bad


def _field(octets, at, stop):
    """Return number, value, length (-1: no bytes) of a field, and where the next one begins; None for damage."""
    tag, at = _number(octets, at, stop)
    number, kind = (tag or 0) >> 3, (tag or 0) & 7
    if tag is None or not 0 < number < 1 << 29:
        return None
    if kind in (_VARINT, _BYTES):
        value, at = _number(octets, at, stop)
        if value is None or (kind == _BYTES and not 0 <= value <= stop - at):
            return None
        return (number, value, -1, at) if kind == _VARINT else (number, at, value, at + value)
    size = {_FIXED_64: 8, _FIXED_32: 4}.get(kind)
    if size is None or stop - at < size:
        return None
    return number, _signed(int.from_bytes(octets[at : at + size], "little")), -1, at + size


def _number(octets, at, stop):
    """Return a number of 7 bits a byte, None where it does not end, and what is behind it."""
    value = 0
    for step in range(min(_MOST_BYTES, stop - at)):
        value |= (octets[at + step] & 0x7F) << 7 * step
        if octets[at + step] < 0x80:
            return _signed(value & 2**64 - 1), at + step + 1
    return None, at


def _signed(value):
    return value - 2**64 if value >= 2**63 else value


# Groups of slots that go by.


def groups(slots, most_slots):
    """Return what a chunk of slots is made of."""
    headers, stamps = np.ascontiguousarray(slots[:, 0]), np.ascontiguousarray(slots[:, 1])
    at = np.flatnonzero(begins_run(slots) | (headers < _TAIL))
    counts, heads = np.diff(at, append=len(slots)), headers[at]
    kinds, ends = heads >> wire.STRUCT_SHIFT, headers[at + counts - 1] >> wire.STRUCT_SHIFT
    is_empty = heads == 0
    begins = (kinds < wire.Struct.COMBINE_CONTINUE) & ~is_empty
    is_whole = begins & ((kinds == wire.Struct.SIMPLE) | (ends == wire.Struct.COMBINE_END)) & (counts <= most_slots)
    zeros, first = at[is_empty], at[begins]
    return Groups(
        np.append(at, len(slots)), is_whole, np.cumsum(begins) - 1, heads[begins] & np.uint32(wire.CODE_MASK),
        cpus_of(heads[begins]), stamps[first], first, np.flatnonzero(~is_whole & ~is_empty),
        np.flatnonzero(kinds == wire.Struct.COMBINE_BEGIN), len(zeros), int(zeros[0]) if len(zeros) else -1,
    )  # fmt: skip


def with_keys(slots, at, group, keys):
    """Return the groups that have one of the keys."""
    first = at[group]
    return group[np.isin(keys_of(slots[first, 0], slots[first, 1]), keys)]


def deliver(slots, found, time, thread, done):
    """Return whole events of a chunk and those that tails have ended, by their last slots."""
    whole = np.flatnonzero(found.is_whole)
    at, end, rows = found.group_slot[whole], found.group_slot[whole + 1], found.event[whole]
    sizes = np.concatenate((2 * (end - at), np.diff(done.start)))
    # Words of events that tails have ended are behind those of the chunk's slots.
    old = np.concatenate((2 * at, done.start[:-1] + 2 * len(slots)))
    last = np.concatenate((end - 1, done.last))
    order = np.argsort(last, kind="stable")
    start = np.concatenate(([0], np.cumsum(sizes[order]))).astype(np.int64)
    words = np.concatenate((slots[:, 2:4].ravel(), done.words))
    return StreamColumns(
        np.concatenate((slots[at, 0], done.header))[order],
        np.concatenate((slots[at, 1], done.stamp))[order],
        np.concatenate((time[rows], done.time))[order],
        np.concatenate((thread[rows], done.thread))[order],
        start,
        words[numbers_of(old[order], sizes[order])],
        last[order],
    )


# Payloads of one length: which are texts, and which are equal.


def text_kinds(data):
    """Return what each payload is."""
    if not data.size:
        return np.full(len(data), IS_NUMBERS, np.uint8)
    is_behind = np.maximum.accumulate(data == 0, axis=1)
    is_plain = ((data >= ord(" ")) & (data != 0x7F)) | (data == ord("\t")) | (data == ord("\n"))
    is_text = (data[:, 0] != 0) & np.where(is_behind, data == 0, is_plain).all(axis=1)
    has_more = (data >= 0x80).any(axis=1)
    return np.where(is_text, np.where(has_more, MAY_BE_UTF8, IS_ASCII), IS_NUMBERS).astype(np.uint8)


def same_rows(data):
    """Return numbers of payloads, and the first payload of each."""
    number_of, first_rows = {}, []
    numbers = np.zeros(len(data), np.uint32)
    for row, item in enumerate(map(bytes, data)):
        if item not in number_of:
            number_of[item] = len(first_rows)
            first_rows.append(row)
        numbers[row] = number_of[item]
    return numbers, np.array(first_rows, np.uint32)


def joined(data):
    """Return payloads up to their first zero, each with a zero behind it."""
    return np.frombuffer(b"".join(bytes(row).split(b"\0")[0] + b"\0" for row in data), np.uint8)
