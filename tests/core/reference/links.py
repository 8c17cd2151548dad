"""The passes of `core.links`: related events, and sorting."""

from __future__ import annotations

import numpy as np

from satview.core.links import IS_CALL, IS_END, IS_ENTRY, IS_RUNNING, IS_SWITCH, KernelCallTable

# Which events belong together.


NO_EVENT = 2**32 - 1
OPEN = 2**32 - 2
_CALL_NUMBER = 0x7F
_NOBODY = 0  # row of the thread table


def calls(code, cpu, thread, _thread_count, traits, stays, _room):
    """Return the call that every CPU is in, and pairs of entries and ends of known threads and of unknown ones."""
    trait = traits[code]
    every = np.flatnonzero(trait & IS_CALL)
    entry = np.full(len(code), NO_EVENT, np.uint32)
    for number in np.unique(cpu):
        mine = np.flatnonzero(cpu == number)
        changes = mine[trait[mine] & (IS_CALL | IS_SWITCH) != 0]
        position = np.searchsorted(changes, mine) - 1
        entry[mine[position >= 0]] = _calls_from(code, thread, trait, changes)[position[position >= 0]]
    return KernelCallTable(
        entry, _of_threads(code, thread, trait, every), _of_nobody(code, cpu, thread, trait, stays, every)
    )


def _calls_from(code, thread, trait, changes):
    """Return the call that a CPU is in from each change on: one that goes on if its own thread begins to run again."""
    is_switch = trait[changes] & IS_SWITCH != 0
    last = np.maximum.accumulate(np.where(is_switch, 0, np.arange(len(changes))))
    last_call = changes[last]
    is_open = ~is_switch[last] & (trait[last_call] & IS_ENTRY != 0)
    is_open &= ~is_switch | (thread[changes] == thread[last_call])
    return np.where(is_open, last_call, NO_EVENT)


def _is_pair(code, trait, first, second):
    """Return for events whether one enters a call and the other ends the same."""
    is_same = (code[first] ^ code[second]) & _CALL_NUMBER == 0
    return is_same & (trait[first] & IS_ENTRY != 0) & (trait[second] & IS_END != 0)


def _of_threads(code, thread, trait, every):
    """Return entries and ends of calls: two neighbours among the events of calls of a thread.

    An event of the same call of an unknown thread in between may be the end, and the one found that of a later call.
    """
    rows = every[np.argsort(thread[every], kind="stable")]
    first, second = rows[:-1], rows[1:]
    fits = _is_pair(code, trait, first, second) & (thread[first] == thread[second]) & (thread[first] != _NOBODY)
    first, second = first[fits], second[fits]
    unknown = every[thread[every] == _NOBODY]
    key = np.sort((code[unknown] & _CALL_NUMBER).astype(np.int64) << 32 | unknown)
    call = (code[first] & _CALL_NUMBER).astype(np.int64) << 32
    is_clear = np.searchsorted(key, call | first) == np.searchsorted(key, call | second)
    return first[is_clear].astype(np.uint32), second[is_clear].astype(np.uint32)


def _of_nobody(code, cpu, thread, trait, stays, every):
    """Return entries and ends of calls that never block: two neighbours on a CPU, between which no thread began."""
    enters, ends = [np.empty(0, np.intp)], [np.empty(0, np.intp)]
    for number in np.unique(cpu[every]):
        rows = every[cpu[every] == number]
        first, second = rows[:-1], rows[1:]
        fits = _is_pair(code, trait, first, second) & stays[code[first] & _CALL_NUMBER]
        fits &= (thread[first] == _NOBODY) & (thread[second] == _NOBODY)
        runs = np.flatnonzero((trait & IS_RUNNING != 0) & (cpu == number))
        fits &= np.searchsorted(runs, first) == np.searchsorted(runs, second)
        enters.append(first[fits])
        ends.append(second[fits])
    return np.concatenate(enters).astype(np.uint32), np.concatenate(ends).astype(np.uint32)


def last_before(code, cpu, table, rows):
    """Return the last event of the table before each on its CPU."""
    return last_of(cpu, np.flatnonzero(table[code]), rows)


def last_of(cpu, candidates, rows):
    """Return the last candidate before each event on its CPU."""
    out = np.full(len(rows), NO_EVENT, np.uint32)
    for number in np.unique(cpu[rows]):
        at, mine = np.flatnonzero(cpu[rows] == number), candidates[cpu[candidates] == number]
        position = np.searchsorted(mine, rows[at]) - 1
        out[at[position >= 0]] = mine[position[position >= 0]]
    return out


def last_of_number(candidates, number, rows, requested, _numbers):
    """Return the last candidate of the number before each event."""
    return _of_number(candidates, number, rows, requested, -1)


def next_of_number(candidates, number, rows, requested, _numbers):
    """Return the first candidate of the number at or after each event."""
    return _of_number(candidates, number, rows, requested, 0)


def _of_number(candidates, number, rows, requested, step):
    key, requested = np.sort(number << 32 | candidates), requested.astype(np.int64)
    out, position = np.full(len(rows), NO_EVENT, np.uint32), np.searchsorted(key, requested << 32 | rows) + step
    at = np.flatnonzero((position >= 0) & (position < len(key)))
    at = at[key[position[at]] >> 32 == requested[at]]
    out[at] = key[position[at]] & 0xFFFFFFFF
    return out


def states(code, _thread, index, start, value_of_code, nothing):
    """Return the state of every state event, and the thread's next state event."""
    value, following = value_of_code[code[index]], np.append(index[1:], OPEN)[: len(index)].astype(np.uint32)
    following[start[1:][np.diff(start) > 0] - 1] = OPEN
    ends = np.full(len(code), NO_EVENT, np.uint32)
    ends[index[value != nothing]] = following[value != nothing]
    return value, ends


def state_positions(index, start, rows, thread):
    """Return where the first state event of a thread at or after each event is."""
    key = np.repeat(np.arange(len(start) - 1, dtype=np.int64) << 32, np.diff(start)) | index
    return np.searchsorted(key, thread << 32 | rows.astype(np.int64))


def first_in_table(index, value, start, positions, thread, table):
    """Return the event of the first state in the table from each position on, -1 for none."""
    fits = np.append(np.flatnonzero(table[value]), len(value))
    following = fits[np.searchsorted(fits, positions)]
    return np.where(following < start[thread + 1], np.append(index, 0)[following].astype(np.int64), -1)


def rows_with(code, table, _most=None):
    """Return the rows of the events whose code is in the table."""
    return np.flatnonzero(table[code]).astype(np.uint32)


def values_of(code, rows, table):
    """Return what the table has for the codes of the events."""
    return table[code[rows]]


def times_of(time, rows, end):
    """Return the times of the events; behind the last one it is the end."""
    return np.append(time, end)[np.asarray(rows, np.int64)]


def numbered(number):
    """Return how many different numbers there are, and which each is."""
    kinds, which = np.unique(number, return_inverse=True)
    return len(kinds), which


def previous_same(number):
    """Return the position of the last equal number before each."""
    order, out = np.argsort(number, kind="stable"), np.full(len(number), -1, np.int64)
    is_same = number[order[1:]] == number[order[:-1]]
    out[order[1:][is_same]] = order[:-1][is_same]
    return out


def positions(number, requested):
    """Return where each requested number is, or would be."""
    return np.searchsorted(number, requested)


def values_in_ranges(number, start, values, requested, position):
    """Return what the range of each requested number has at a position; None if a number is missing."""
    places = np.searchsorted(number, requested)
    if np.any(np.append(number, -1)[places] != requested):
        return None
    wanted = start[places].astype(np.int64) + position
    return values[np.where(wanted < start[places + 1], wanted, len(values) - 1)]


def nested(code, cpu, step, rows):
    """Return entries and exits that belong together, as brackets do; a new interrupt begins without handlers."""
    open_interrupts: dict[int, list[int]] = {}
    open_handlers: dict[tuple[int, int], list[int]] = {}  # by CPU and depth
    pairs = []
    for row, number, change in zip(rows.tolist(), cpu[rows].tolist(), step[code[rows]].tolist(), strict=True):
        interrupts = open_interrupts.setdefault(number, [])
        if change == 1:
            interrupts.append(row)
        if change == 1 or (change == -1 and not interrupts):
            open_handlers[number, len(interrupts)] = []
        handlers = open_handlers.setdefault((number, len(interrupts)), [])
        if change == 2:
            handlers.append(row)
        elif change == -1 and interrupts:
            pairs.append((interrupts.pop(), row))
        elif change == -2 and handlers:
            pairs.append((handlers.pop(), row))
    first, last = np.array(pairs, np.uint32).reshape(-1, 2).T
    return first, last


def calls_of(entry, thread, rows, own):
    """Return the call that each thread is in when it leaves the CPU."""
    found = entry[rows]
    at = np.flatnonzero(found != NO_EVENT)
    found[at[(thread[found[at]] != own[at]) | (own[at] == _NOBODY)]] = NO_EVENT
    return found


# Events in the order of time.


def stable_order(time):
    """Return the order of times; equal ones stay as they are."""
    return np.argsort(time, kind="stable")


def disordered(time):
    """Return the rows that are earlier than one before them, or later than one behind them."""
    if not len(time):
        return np.empty(0, np.int64)
    before = np.append(np.iinfo(np.int64).min, np.maximum.accumulate(time)[:-1])
    after = np.append(np.minimum.accumulate(time[::-1])[::-1][1:], np.iinfo(np.int64).max)
    return np.flatnonzero((time < before) | (time > after))


def merged(time, _cpu, rows):
    """Return rows in the order of their times."""
    return rows[np.argsort(time[rows], kind="stable")]


def move(_columns, _first, _rows, _went):
    """Move nothing, as where rows go too far: the caller gathers the columns then."""
    return False


def far_rows(time, rows, near):
    """Return the rows that are far from the events before and behind them, on the same side."""
    with np.errstate(over="ignore"):
        before, after = time[rows] - time[rows - 1], time[rows] - time[rows + 1]
        return rows[(np.minimum(np.abs(before), np.abs(after)) > near) & ((before > 0) == (after > 0))]
