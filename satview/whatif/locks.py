"""Infers data that a replay needs and a trace does not show: mutex locks without waits, and priorities of threads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events.states import READY, RUNNING, STATE_BY_NAME
from satview.linkage.links import OPEN
from satview.linkage.transactions import Transactions, transactions
from satview.linkage.waits import following, state_values
from satview.store.arguments import argument, arguments
from satview.store.time_ranges import idle_threads
from satview.store.trace import Trace
from satview.whatif import steps as parts

# Adds mutex locks that a trace does not show because no thread waited and the library needed no kernel call.
#
# A trace shows a lock call that has to wait, and an unlock call for which another thread waits. If some rounds of a
# piece of work show a lock or unlock of a mutex, all rounds are assumed to have it, after the same amount of work.


LEAST_SEEN: Final = 2
"""Fewest rounds that show a mutex before all rounds are assumed to use it."""
_WAITS: Final = (
    parts.Await,
    parts.AwaitInterrupt,
    parts.Every,
    parts.Meet,
    parts.Receive,
    parts.Send,
    parts.SleepStep,
    parts.TimedWait,
)
_BEGIN_ROUNDS: Final = (
    parts.Await,
    parts.AwaitInterrupt,
    parts.Every,
    parts.Meet,
    parts.Receive,
    parts.SleepStep,
    parts.TimedWait,
)
_Key = tuple[object, ...]


@dataclass(slots=True)
class _Piece:
    """A piece of work: the steps of a thread between two waits.

    Attributes:
        key: Key that is the same for this piece of work in every round.
        begin, end: Range of the piece's positions in `steps`, `end` exclusive.
        kept: Mutexes held over a wait; their steps stay as recorded.
    """

    key: _Key
    steps: list[parts.Step]
    begin: int
    end: int
    kept: set[int] = field(default_factory=set)


@dataclass(slots=True)
class _Seen:
    """Times at which one lock is taken and released in the rounds of a piece of work, ns of work.

    Attributes:
        locks, unlocks: From the start of the piece to the lock, and to the unlock.
        to_end: From the unlock to the end of the piece.
        is_write: Whether the lock is taken for writing; None if the trace does not show that.
    """

    rounds: int = 0
    locks: list[int] = field(default_factory=list)
    unlocks: list[int] = field(default_factory=list)
    to_end: list[int] = field(default_factory=list)
    holds: list[int] = field(default_factory=list)
    is_write: bool | None = None

    def note(self, lock: int, unlock: int, length: int, is_write: bool | None) -> None:
        """Add the times of a round, ns of work from the start of the piece; -1 or None = the trace does not show it."""
        self.rounds += 1
        self.is_write = self.is_write if is_write is None else is_write
        if lock >= 0:
            self.locks.append(lock)
        if unlock >= 0:
            self.unlocks.append(unlock)
            self.to_end.append(length - unlock)
        if 0 <= lock <= unlock:
            self.holds.append(unlock - lock)

    def lock_at(self) -> int:
        """Return the median work before the lock is taken, ns; 0 if no round shows it."""
        return int(np.median(self.locks)) if self.locks else 0

    def unlock_at(self, lock: int, length: int, usual_hold: int) -> int:
        """Return the usual work from the start of the piece to the unlock, ns.

        This is `lock` plus the median hold; else the median distance from the start or the end of the piece, whichever
        varies less; if no round shows an unlock, `lock` plus `usual_hold`, or `length` if that is -1.
        """
        if self.holds:
            return lock + int(np.median(self.holds))
        if not self.unlocks:
            return lock + usual_hold if usual_hold >= 0 else length
        if np.ptp(self.to_end) <= np.ptp(self.unlocks):
            return length - int(np.median(self.to_end))
        return int(np.median(self.unlocks))


def with_unseen_locks(programs: parts.Programs) -> int:
    """Add to the steps the locks and unlocks that the trace does not show; return the number of added locks."""
    pieces = [piece for steps, owner in _step_lists(programs) for piece in _pieces(programs, steps, owner)]
    _keep_held_over_waits(pieces)
    seen: dict[tuple[_Key, int], _Seen] = defaultdict(_Seen)
    holds: dict[int, list[int]] = defaultdict(list)
    for piece in pieces:
        length, locks_of = _lock_times(piece)
        modes = _modes(piece)
        for thing, (lock, unlock) in locks_of.items():
            seen[piece.key, thing].note(lock, unlock, length, modes[thing])
    by_key: dict[_Key, list[int]] = defaultdict(list)
    for (key, thing), what in seen.items():
        holds[thing] += what.holds or ([unlock - what.lock_at() for unlock in what.unlocks])
        if what.rounds >= LEAST_SEEN:
            by_key[key].append(thing)
    usual = {thing: max(0, int(np.median(lengths))) for thing, lengths in holds.items() if lengths}
    added = 0
    for piece in reversed(pieces):  # positions of earlier pieces stay valid
        length, locks_of = _lock_times(piece)
        things = sorted({*locks_of, *by_key.get(piece.key, ())} - piece.kept)
        places = []
        for thing in things:
            lock, unlock = locks_of.get(thing, (-1, -1))
            what = seen[piece.key, thing]
            added += thing not in locks_of
            lock = lock if lock >= 0 else min(what.lock_at(), length if unlock < 0 else unlock)
            unlock = unlock if unlock >= 0 else what.unlock_at(lock, length, usual.get(thing, -1))
            places.append((parts.Lock(thing, bool(what.is_write)), lock, min(max(lock, unlock), length)))
        if places:
            piece.steps[piece.begin : piece.end] = _rebuilt(piece.steps[piece.begin : piece.end], places)
    return added


def _keep_held_over_waits(pieces: Sequence[_Piece]) -> None:
    """Add mutexes held over a wait to `kept` of the pieces around it: the piece after usually has the unlock."""
    locks_of = [_lock_times(piece)[1] for piece in pieces]
    held: dict[tuple[_Key, int], list[int]] = defaultdict(list)
    alone: dict[tuple[_Key, int], int] = defaultdict(int)  # locks and unlocks that are no such pair
    given_up: set[tuple[_Key, int]] = set()  # unlocked in the same piece: a lock alone there has an unseen unlock
    paired: set[tuple[int, int]] = set()  # piece and mutex of the unlocks of such pairs
    for number, piece in enumerate(pieces):
        after = pieces[number + 1] if number + 1 < len(pieces) else piece
        for thing, (lock, unlock) in locks_of[number].items():
            if lock < 0:
                alone[piece.key, thing] += (number, thing) not in paired
                continue
            if unlock >= lock:
                given_up.add((piece.key, thing))
                continue
            next_lock, next_unlock = locks_of[number + 1].get(thing, (-1, -1)) if after is not piece else (-1, -1)
            is_held = after.steps is piece.steps and after.begin == piece.end + 1
            is_held &= next_unlock >= 0 and not 0 <= next_lock <= next_unlock
            if is_held:
                held[piece.key, thing].append(number)
                paired.add((number + 1, thing))
            else:
                alone[piece.key, thing] += 1
    for (key, thing), positions in held.items():
        is_usual = len(positions) >= LEAST_SEEN and len(positions) > alone[key, thing]
        if is_usual and (key, thing) not in given_up:
            for number in positions:
                pieces[number].kept.add(thing)
                pieces[number + 1].kept.add(thing)


def _step_lists(programs: parts.Programs) -> Iterator[tuple[list[parts.Step], _Key]]:
    """Yield all lists of steps, each with the key of its thread, message kind or stream."""
    for thread in programs.threads:
        yield thread.steps, ("thread", thread.row)
    for message in programs.messages:
        if message.steps:
            yield message.steps, ("message", message.pid, message.first_word)
    for number, stream in enumerate(programs.streams):
        for work in stream.works:
            yield work, ("stream", number)


def _pieces(programs: parts.Programs, steps: list[parts.Step], owner: _Key) -> Iterator[_Piece]:
    """Yield the non-empty pieces of work between the waits of the steps of a thread, message kind or stream."""
    begin, waits, key = 0, 0, (*owner, 0, "")
    for number, step in enumerate([*steps, None]):
        if step is not None and not isinstance(step, _WAITS):
            continue
        if number > begin:
            yield _Piece(key, steps, begin, number)
        if step is None:
            return
        waits = 0 if isinstance(step, _BEGIN_ROUNDS) else waits + 1
        key = (*owner, waits, type(step).__name__, *_target(programs, step))
        begin = number + 1


def _target(programs: parts.Programs, step: parts.Step) -> tuple[object, ...]:
    if isinstance(step, parts.Send):
        message = programs.messages[step.message]
        return message.pid, message.first_word
    return (step.thing,) if isinstance(step, parts.Await) else ()


def _lock_times(piece: _Piece) -> tuple[int, dict[int, tuple[int, int]]]:
    """Return the work of a piece, and for each mutex the work before its lock and before its unlock, ns; -1 = none."""
    now = 0
    out: dict[int, tuple[int, int]] = {}
    for step in piece.steps[piece.begin : piece.end]:
        if isinstance(step, parts.Work):
            now += step.ns
        elif isinstance(step, (parts.Lock, parts.Unlock)) and step.thing in piece.kept:
            continue
        elif isinstance(step, parts.Lock):
            out[step.thing] = (now, out.get(step.thing, (-1, -1))[1])
        elif isinstance(step, parts.Unlock):
            out[step.thing] = (out.get(step.thing, (-1, -1))[0], now)
    return now, out


def _modes(piece: _Piece) -> dict[int, bool | None]:
    """Return for each lock in a piece of a thread's program whether it is taken for writing; None if not shown."""
    out: dict[int, bool | None] = {}
    for step in piece.steps[piece.begin : piece.end]:
        if isinstance(step, (parts.Lock, parts.Unlock)) and out.get(step.thing) is None:
            out[step.thing] = step.is_write
    return out


def _rebuilt(steps: Sequence[parts.Step], places: Sequence[tuple[parts.Lock, int, int]]) -> list[parts.Step]:
    """Return the steps of a piece with locks and unlocks inserted, each at its work in ns from the start."""
    changes: list[tuple[int, int, parts.Step]] = []
    for order, (lock, begin, end) in enumerate(places):
        changes += [(begin, order, lock), (end, len(places) + order, parts.Unlock(lock.thing))]
    changes.sort(key=lambda change: change[:2])
    moved = {lock.thing for lock, _, _ in places}
    out: list[parts.Step] = []
    now = 0
    for step in steps:
        if isinstance(step, (parts.Lock, parts.Unlock)) and step.thing in moved:
            continue
        if isinstance(step, parts.Work):
            end = now + step.ns
            while changes and changes[0][0] < end:
                moment, _, change = changes.pop(0)
                if moment > now:
                    out.append(parts.Work(moment - now))
                    now = moment
                out.append(change)
            if end > now:
                out.append(parts.Work(end - now))
            now = end
        else:
            out.append(step)
    return out + [change for _, _, change in changes]


# Priorities of threads: those that wide events show, or else an order that fits the fast events.


SPORADIC: Final = 4
_SLICE_NS: Final = 3_500_000  # of round robin, less half a tick
_SPREAD_LEVELS: Final = 200  # of priorities in an order of all threads
_MOST_LEVELS: Final = 40  # of priorities that follow from who preempts whom
_LEAST_FALLS: Final = 2
_MOST_RUNS: Final = 12  # before a rise
_NEAR_NS: Final = 100_000  # lengths that are taken to be the same
_MUTEX: Final = STATE_BY_NAME["MUTEX"].value
_LOW: Final = 0xFFFFFFFF
_Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LearnedPriorities:
    """Priorities and policies of all threads, by row of the thread table.

    Attributes:
        own: Priority of each thread, without inheritance.
        policies: Numbers of the policies on the wire.
        others: Alternative priorities of each thread, see `ThreadProgram.other_priorities`.
        are_inferred: Whether the trace shows no priorities, so that these are inferred from its events.
    """

    own: list[int]
    policies: list[int]
    others: list[tuple[int, ...]]
    are_inferred: bool


def priorities_of(trace: Trace) -> LearnedPriorities:
    """Return the priority that every thread has most often while it is blocked, and its most frequent policy."""
    rows, value, count = trace.states.event, state_values(trace), len(trace.threads)
    thread = np.repeat(np.arange(count), np.diff(trace.states.start))
    (priority, known), (policy, has_policy) = arguments(trace, rows, "priority", "policy")
    if not known.any():
        return _inferred(trace)
    calm = known & ~np.isin(value, (RUNNING, READY, _MUTEX))
    out, policies = [10] * count, [2] * count
    for mask in (known, calm):  # blocked states count more than others
        with_priority = np.flatnonzero(mask & (priority > 0) & (priority < 1 << 8))
        pairs, size = np.unique(thread[with_priority] << 8 | priority[with_priority], return_counts=True)
        for pair, _ in sorted(zip(pairs.tolist(), size.tolist(), strict=True), key=lambda entry: entry[1]):
            out[pair >> 8] = pair & 0xFF
    with_priority = np.flatnonzero(has_policy & (policy > 0))
    for number, which in zip(thread[with_priority].tolist(), policy[with_priority].tolist(), strict=True):
        policies[number] = which
    return LearnedPriorities(out, policies, [()] * count, are_inferred=False)


def sporadic_of(trace: Trace, row: int, usual_priority: int, tick_ns: int) -> tuple[int, tuple[int, int, int] | None]:
    """Return a sporadic thread's priority, and (low priority, budget, period) if its states show them, else None.

    The kernel checks the budget on ticks, so runs at the high priority are up to one tick longer than the budget. The
    priority rises one replenishment period after an earlier run; the period is the distance that most rises share.
    Budget and period are in ns.
    """
    rows = trace.states.of(row)
    priority, known = argument(trace, rows, "priority")
    value = state_values(trace)[int(trace.states.start[row]) :][: len(rows)]
    time = trace.events.time_cycles[rows]
    is_busy = known & np.isin(value, (RUNNING, READY))
    if not is_busy.any() or not 0 < priority[is_busy].min() < priority[is_busy].max() < 1 << 8:
        return usual_priority, None
    high, low = int(priority[is_busy].max()), int(priority[is_busy].min())
    runs = (value == RUNNING) & (priority == high)
    used = np.concatenate(([0], np.cumsum(np.where(runs[:-1], np.diff(time), 0))))
    falls = np.flatnonzero((priority[1:] == low) & (priority[:-1] == high)) + 1
    rises = np.flatnonzero((priority[1:] == high) & (priority[:-1] == low)) + 1
    begins = np.flatnonzero(runs)
    if len(falls) < _LEAST_FALLS or not len(rises) or not len(begins):
        return high, None
    usual = int(np.median(np.diff(used[falls], prepend=0)))
    used_ns = trace.clock.duration_ns(usual)
    budget_ns = roundest(max(1, used_ns - (tick_ns or 1_000_000)), used_ns)
    before = np.maximum(np.searchsorted(begins, rises)[:, None] - np.arange(1, _MOST_RUNS), 0)
    lengths = (time[rises][:, None] - time[begins[before]]).reshape(-1)
    lengths = lengths[lengths > usual]
    if not len(lengths):
        return high, None
    near = trace.clock.cycles_of(_NEAR_NS)
    common = lengths[np.argmax([np.count_nonzero(abs(lengths - length) < near) for length in lengths.tolist()])]
    period_ns = trace.clock.duration_ns(int(np.median(lengths[abs(lengths - common) < near])))
    return high, (low, budget_ns, roundest(max(budget_ns, period_ns - _NEAR_NS), period_ns + _NEAR_NS))


def _inferred(trace: Trace) -> LearnedPriorities:
    """Return priorities and policies that fit the order of events in a trace of fast events, which shows none.

    Other priorities that fit as well are returned as alternatives. A thread is above a second one if it takes the CPU
    from the second before the time slice is over, or sends a message later but is served first. Servers run at their
    clients' priorities, which show nothing about their own. A thread that runs longer than a slice without ever losing
    the CPU has no time slices.
    """
    events, index, value, count = trace.events, trace.states.event, state_values(trace), len(trace.threads)
    ends = following(trace)
    is_run = (value == RUNNING) & (ends < OPEN)
    begin, end = index[is_run], ends[is_run]
    is_lost = np.zeros(len(events), np.bool_)  # READY of threads that ran
    is_lost[end] = True
    length = np.zeros(len(events), np.int64)
    length[end] = events.time_cycles[end] - events.time_cycles[begin]
    state = np.zeros(len(events), np.uint8)
    state[index] = value
    rows = np.sort(index[np.isin(value, (RUNNING, READY))])
    order = rows[np.argsort(events.cpu[rows], kind="stable")]
    ready, runs = order[:-1], order[1:]
    taken = is_lost[ready] & (state[ready] == READY) & (state[runs] == RUNNING)
    taken &= events.cpu[ready] == events.cpu[runs]
    winner, loser = events.thread[runs[taken]].astype(np.int64), events.thread[ready[taken]].astype(np.int64)
    slice_cycles = trace.clock.cycles_of(_SLICE_NS)
    is_slice = length[ready[taken]] > slice_cycles
    messages = transactions(trace)
    servers = np.unique(messages.server)
    is_sure = ~is_slice & ~np.isin(winner, servers) & ~np.isin(loser, (*servers, *idle_threads(trace)))
    high, low = _served_first(messages)
    pairs, size = np.unique(np.concatenate((winner[is_sure] << 32 | loser[is_sure], high << 32 | low)),
                            return_counts=True)  # fmt: skip
    wins = dict(zip(pairs.tolist(), size.tolist(), strict=True))
    above = [(pair >> 32, pair & _LOW) for pair, times in wins.items()
             if times > 2 * wins.get((pair & _LOW) << 32 | pair >> 32, 0)]  # fmt: skip
    level = _levels(count, above)
    longest = np.zeros(count, np.int64)
    np.maximum.at(longest, events.thread[end], length[end])
    sliced = np.isin(np.arange(count), loser[is_slice])
    policies = np.where((longest > 2 * slice_cycles) & ~sliced, 1, 2).tolist()
    return LearnedPriorities(level, policies, other_orders(count, above), are_inferred=True)


def _served_first(messages: Transactions) -> tuple[_Ints, _Ints]:
    """Return clients whose messages overtook another's in a server, and the clients overtaken, thread rows."""
    received = np.flatnonzero((messages.receive_row >= 0) & (messages.client > 0))
    received = received[np.lexsort((messages.receive_row[received], messages.server_pid[received]))]
    earlier, later = received[:-1], received[1:]
    has_overtaken = (messages.server_pid[earlier] == messages.server_pid[later]) & (
        messages.send_row[earlier] > messages.send_row[later]
    )
    return messages.client[earlier[has_overtaken]], messages.client[later[has_overtaken]]


def other_orders(count: int, above: list[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Return for each thread its priorities in three orders; in all, the first thread of each pair is above the second.

    In the first order all priorities are as low as the pairs allow. The second is the reverse of the first, as far as
    the pairs allow. In the third all priorities are as high as possible.
    """
    level, height = _levels(count, above), _levels(count, [(low, high) for high, low in above])
    order = sorted(range(count), key=lambda row: (level[row], row))
    urgent = sorted(range(count), key=lambda row: (height[row], row), reverse=True)
    return list(zip(*map(_spread, (order, _reversed(order, above), urgent)), strict=True))


def _reversed(order: list[int], above: list[tuple[int, int]]) -> list[int]:
    """Return threads, least urgent first, in the reverse of `order` as far as pairs (upper, lower) allow.

    Each step takes the last thread of `order` that is above no untaken one; if pairs form a cycle, the last untaken.
    """
    rank, missing = {row: place for place, row in enumerate(order)}, [0] * len(order)
    highs = defaultdict[int, list[int]](list)
    for high, low in above:
        highs[low].append(high)
        missing[high] += 1
    free = [(-rank[row], row) for row in order if not missing[row]]
    heapify(free)
    out, rest = list[int](), list(order)
    is_placed = [False] * len(order)
    while len(out) < len(order):
        if free:
            row = heappop(free)[1]
        else:
            while is_placed[rest[-1]]:
                rest.pop()
            row = rest[-1]
        is_placed[row] = True
        out.append(row)
        for high in highs[row]:
            missing[high] -= 1
            if not missing[high] and not is_placed[high]:
                heappush(free, (-rank[high], high))
    return out


def _levels(count: int, above: list[tuple[int, int]]) -> list[int]:
    """Return for each thread the lowest level, from 10 on, that puts the first thread of each pair above the second."""
    level = [10] * count
    for _ in range(_MOST_LEVELS):
        lower = [(high, low) for high, low in above if level[high] <= level[low] < 10 + _MOST_LEVELS]
        for high, low in lower:
            level[high] = level[low] + 1
        if not lower:
            break
    return level


def _spread(order: list[int]) -> list[int]:
    """Return a priority for each thread of `order` (ascending urgency); up to 200 threads get distinct priorities."""
    out = [0] * len(order)
    for rank, row in enumerate(order):
        out[row] = 10 + rank * _SPREAD_LEVELS // max(len(order), _SPREAD_LEVELS)
    return out


def roundest(least: int, most: int) -> int:
    """Return the number between `least` and `most`, inclusive, that has the largest number of trailing zeros."""
    unit = 10 ** len(str(most))
    while unit > 1:
        number = -(-least // unit) * unit
        if number <= most:
            return int(number)
        unit //= 10
    return most
