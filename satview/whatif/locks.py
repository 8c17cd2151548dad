"""Adds mutex locks that a trace does not show because no thread waited and the library needed no kernel call.

A trace shows a lock call that has to wait, and an unlock call for which another thread waits. If some rounds of a piece
of work show a lock or unlock of a mutex, all rounds are assumed to have it, after the same amount of work.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from satview.whatif.steps import (
    Await,
    AwaitInterrupt,
    Every,
    Lock,
    Meet,
    Programs,
    Receive,
    Send,
    SleepStep,
    Step,
    TimedWait,
    Unlock,
    Work,
)

LEAST_SEEN: Final = 2
"""Fewest rounds that show a mutex before all rounds are assumed to use it."""
_WAITS: Final = (Await, AwaitInterrupt, Every, Meet, Receive, Send, SleepStep, TimedWait)
_BEGIN_ROUNDS: Final = (Await, AwaitInterrupt, Every, Meet, Receive, SleepStep, TimedWait)
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
    steps: list[Step]
    begin: int
    end: int
    kept: set[int] = field(default_factory=set)


@dataclass(slots=True)
class _Seen:
    """When one lock is taken and released in all rounds of a piece of work, in ns of work from its begin or to its end.

    Attributes:
        is_write: Whether the lock is taken for writing; None if the trace does not show that.
    """

    rounds: int = 0
    locks: list[int] = field(default_factory=list)
    unlocks: list[int] = field(default_factory=list)
    to_end: list[int] = field(default_factory=list)
    holds: list[int] = field(default_factory=list)
    is_write: bool | None = None

    def note(self, lock: int, unlock: int, length: int, is_write: bool | None) -> None:
        """Add the times of one round; values that the trace does not show are -1 or None."""
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
        """Return the work before the unlock, ns: the median hold after the lock, else as usual from begin or end."""
        if self.holds:
            return lock + int(np.median(self.holds))
        if not self.unlocks:
            return lock + usual_hold if usual_hold >= 0 else length
        if np.ptp(self.to_end) <= np.ptp(self.unlocks):
            return length - int(np.median(self.to_end))
        return int(np.median(self.unlocks))


def with_unseen_locks(programs: Programs) -> int:
    """Add locks and unlocks that the trace does not show to the steps; return in how many rounds a lock was added."""
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
            places.append((Lock(thing, bool(what.is_write)), lock, min(max(lock, unlock), length)))
        if places:
            piece.steps[piece.begin : piece.end] = _rebuilt(piece.steps[piece.begin : piece.end], places)
    return added


def _keep_held_over_waits(pieces: Sequence[_Piece]) -> None:
    """Store in `kept` the mutexes held over a wait: most of their locks are followed by an unlock in the next piece."""
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


def _step_lists(programs: Programs) -> Iterator[tuple[list[Step], _Key]]:
    """Yield all lists of steps, each with the key of its thread, message kind or stream."""
    for thread in programs.threads:
        yield thread.steps, ("thread", thread.row)
    for message in programs.messages:
        if message.steps:
            yield message.steps, ("message", message.pid, message.first_word)
    for number, stream in enumerate(programs.streams):
        for work in stream.works:
            yield work, ("stream", number)


def _pieces(programs: Programs, steps: list[Step], owner: _Key) -> Iterator[_Piece]:
    """Yield the non-empty pieces of work between the waits of a list."""
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


def _target(programs: Programs, step: Step) -> tuple[object, ...]:
    if isinstance(step, Send):
        message = programs.messages[step.message]
        return message.pid, message.first_word
    return (step.thing,) if isinstance(step, Await) else ()


def _lock_times(piece: _Piece) -> tuple[int, dict[int, tuple[int, int]]]:
    """Return the work of a piece, and for each mutex the work before its lock and before its unlock, ns; -1 = none."""
    now = 0
    out: dict[int, tuple[int, int]] = {}
    for step in piece.steps[piece.begin : piece.end]:
        if isinstance(step, Work):
            now += step.ns
        elif isinstance(step, (Lock, Unlock)) and step.thing in piece.kept:
            continue
        elif isinstance(step, Lock):
            out[step.thing] = (now, out.get(step.thing, (-1, -1))[1])
        elif isinstance(step, Unlock):
            out[step.thing] = (out.get(step.thing, (-1, -1))[0], now)
    return now, out


def _modes(piece: _Piece) -> dict[int, bool | None]:
    """Return for each lock in a piece whether it is taken for writing; None if the trace does not show that."""
    out: dict[int, bool | None] = {}
    for step in piece.steps[piece.begin : piece.end]:
        if isinstance(step, (Lock, Unlock)) and out.get(step.thing) is None:
            out[step.thing] = step.is_write
    return out


def _rebuilt(steps: Sequence[Step], places: Sequence[tuple[Lock, int, int]]) -> list[Step]:
    """Return the steps of a piece, with each lock and its unlock inserted after two given amounts of work, ns."""
    changes: list[tuple[int, int, Step]] = []
    for order, (lock, begin, end) in enumerate(places):
        changes += [(begin, order, lock), (end, len(places) + order, Unlock(lock.thing))]
    changes.sort(key=lambda change: change[:2])
    moved = {lock.thing for lock, _, _ in places}
    out: list[Step] = []
    now = 0
    for step in steps:
        if isinstance(step, (Lock, Unlock)) and step.thing in moved:
            continue
        if isinstance(step, Work):
            end = now + step.ns
            while changes and changes[0][0] < end:
                moment, _, change = changes.pop(0)
                if moment > now:
                    out.append(Work(moment - now))
                    now = moment
                out.append(change)
            if end > now:
                out.append(Work(end - now))
            now = end
        else:
            out.append(step)
    return out + [change for _, _, change in changes]
