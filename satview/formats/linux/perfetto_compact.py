"""The compact form in which Perfetto keeps switches and wake-ups: a column per field, times as differences.

Source: protos/perfetto/trace/ftrace/ftrace_event_bundle.proto.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from satview.formats.linux.event_format import STATE_FLAGS, lane_value
from satview.formats.linux.schedule import Ints, Switches, Tasks, WakeUps
from satview.formats.linux.wire_format import Fields, packed

_TEXTS = 5


def _column(found: Fields, number: int) -> tuple[Ints, Ints]:
    """Return the numbers of a packed field of all messages, and the message of each."""
    values, owners = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for row in found.bytes_rows(number).tolist():  # one per bundle, which holds many events
        part = packed(found.data, int(found.value[row]), int(found.length[row]))
        values.append(part)
        owners.append(np.full(len(part), found.message[row], np.int64))
    return np.concatenate(values), np.concatenate(owners)


def _aligned(found: Fields, owner: Ints, number: int, default: int) -> Ints:
    """Return a column with as many numbers per message as another one has; the default where it has fewer."""
    values, owners = _column(found, number)
    out = np.full(len(owner), default, np.int64)
    rank, count = _rank(owner), np.bincount(owners, minlength=found.messages)
    start = np.concatenate(([0], np.cumsum(count)))
    is_there = rank < count[owner]
    out[is_there] = values[(start[owner] + rank)[is_there]]
    return out


def _rank(owner: Ints) -> Ints:
    """Return the position of each element among those of its message."""
    if not len(owner):
        return owner
    first = np.flatnonzero(np.append(True, owner[1:] != owner[:-1]))
    return np.arange(len(owner)) - np.repeat(first, np.diff(np.append(first, len(owner))))


def _times(deltas: Ints, owner: Ints) -> Ints:
    """Return times from differences, which begin again in each message."""
    total = np.cumsum(deltas)
    first = np.flatnonzero(np.append(True, owner[1:] != owner[:-1])) if len(owner) else owner
    base = total[first] - deltas[first]
    return total - np.repeat(base, np.diff(np.append(first, len(owner))))


def _add_names(found: Fields, owner: Ints, thread: Ints, index: Ints, tasks: Tasks) -> None:
    rows = found.bytes_rows(_TEXTS)
    start = np.searchsorted(found.message[rows], np.arange(found.messages + 1))
    at = start[owner] + index
    is_there = (index >= 0) & (at < start[owner + 1]) & (thread > 0)
    pairs = np.unique(np.stack((thread[is_there], at[is_there]), axis=1), axis=0)
    for number, text in pairs.tolist():
        tasks.names.setdefault(number, found.text_at(int(rows[text])))


def compact_switches(found: Fields, cpu_of: NDArray[np.int64], first: int, tasks: Tasks) -> Switches:
    """Return the switches of compact bundles.

    A bundle says who gets the CPU; who leaves it is who had got it before, in the bundles of that CPU.

    Args:
        found: The compact parts of bundles.
        cpu_of: int64 (messages,), their CPUs.
        first: Number of the first record.
        tasks: Receives the names of threads.
    """
    deltas, owner = _column(found, 1)
    if not len(deltas):
        return Switches()
    time, after = _times(deltas, owner), _aligned(found, owner, 3, -1)
    states, which = np.unique(_aligned(found, owner, 2, 0), return_inverse=True)
    values = np.array([lane_value(state, STATE_FLAGS) for state in states.tolist()], np.int64)
    prio, cpu = _aligned(found, owner, 4, 0), cpu_of[owner]
    _add_names(found, owner, after, _aligned(found, owner, 6, -1), tasks)
    order = np.lexsort((np.arange(len(time)), time, cpu))
    before, before_prio = np.full(len(time), -1, np.int64), np.zeros(len(time), np.int64)
    same = np.flatnonzero(cpu[order[1:]] == cpu[order[:-1]])
    before[order[same + 1]], before_prio[order[same + 1]] = after[order[same]], prio[order[same]]
    return Switches(time, first + np.arange(len(time), dtype=np.int64), cpu, before, before_prio, values[which], after,
                    prio)  # fmt: skip


def compact_wakeups(found: Fields, cpu_of: NDArray[np.int64], first: int, tasks: Tasks) -> WakeUps:
    """Return the wake-ups of compact bundles, arguments as `compact_switches`; they do not say who the waker was."""
    deltas, owner = _column(found, 7)
    if not len(deltas):
        return WakeUps()
    thread = _aligned(found, owner, 8, -1)
    _add_names(found, owner, thread, _aligned(found, owner, 11, -1), tasks)
    return WakeUps(
        _times(deltas, owner), first + np.arange(len(deltas), dtype=np.int64), cpu_of[owner],
        np.full(len(deltas), -1, np.int64), thread, _aligned(found, owner, 10, 0), _aligned(found, owner, 9, -1),
    )  # fmt: skip
