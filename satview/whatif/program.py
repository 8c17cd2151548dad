"""A trace as programs: the steps of each thread, and for each message and pulse those of its receiver.

A server's work from a receipt to its next MsgReceive() is charged to the message, so that any thread of a pool can do
it. User code is the time between two events of a CPU if the second one enters the kernel, in nanoseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.partitions import first_budgets, partition_names, partition_title
from satview.base.errors import UsageError
from satview.base.safe_text import counted
from satview.base.time import format_duration
from satview.events import wire
from satview.events.catalogue import call_numbers
from satview.events.spec import Release
from satview.events.states import DEAD, NOT_A_STATE, READY, RUNNING, STATE_BY_NAME, STATE_BY_VALUE
from satview.linkage import calls, messages
from satview.linkage.calls import exits_of, handlers
from satview.linkage.latencies import Latencies, deliveries, latencies
from satview.linkage.links import NO_EVENT, OPEN, comm_words, is_whole, rows_of_codes, rows_where, thread_rows
from satview.linkage.transactions import transactions
from satview.linkage.waits import Waits, entries_of, state_positions, state_values, waits
from satview.store.arguments import argument, argument_under, arguments
from satview.store.time_ranges import idle_threads, losses
from satview.store.trace import Trace
from satview.whatif import steps as parts
from satview.whatif.locks import SPORADIC, priorities_of, roundest, sporadic_of, with_unseen_locks

MOST_NS: Final = 1_000_000_000_000
"""Longest simulated time of a replay."""
MOST_STEPS: Final = 2_000_000
"""Most steps of all threads together; the simulated kernel replays these in some minutes."""
_FOR_EVER_NS: Final = 1 << 50
_BEGUN: Final = -2  # instead of the number of a call: the wait in which a thread is when the trace begins
_LATER_NS: Final = 1_000_000_000  # after the end of the trace, when a sleep of unknown length ends
USER_NS: Final = 525
"""User code that the simulated kernel adds after each call: recorded time is that much longer than the work in it."""
_Ints = NDArray[np.int64]
_CLASS: Final = wire.WireClass
_ALL_CODES: Final = np.arange(wire.CODE_COUNT)
_IS_CALL: Final = _ALL_CODES >> wire.CLASS_SHIFT == _CLASS.KER_CALL
_IS_ENTRY: Final = _IS_CALL & (_ALL_CODES & wire.KER_FORM == 0)
_IS_EXIT: Final = _IS_CALL & (_ALL_CODES & wire.KER_FORM != 0)
_IS_USER_EVENT: Final = _ALL_CODES >> wire.CLASS_SHIFT == _CLASS.USER
_IS_KERNEL: Final = _IS_ENTRY | (_ALL_CODES >> wire.CLASS_SHIFT == _CLASS.INT)  # the kernel runs after it
_INTERRUPT_ENTRIES: Final = tuple(wire.code(_CLASS.INT, event) for event in (1, 5))
_DELIVERY: Final = wire.code(_CLASS.INT, 7)
_RECEIPT: Final = wire.code(_CLASS.COMM, 2)
_ANSWERS: Final = (wire.code(_CLASS.COMM, 10), wire.code(_CLASS.COMM, 11))
BEAT_NS: Final = 1_000_000  # beat of the time slices of 8.0, which has no clock interrupt
_RECEIPTS_NS, _RECEIPT_GAP_NS = 1_500_000, 50_000  # before the start, and at most between the threads of one pool
_LONG_NS: Final = 10_000  # between two events of a CPU: longer than the kernel needs
_LEAST_TICK_NS, _MOST_TICK_NS = 10_000, 1_000_000_000  # that a clock interrupt may have
_IPIS: Final = tuple(wire.code(_CLASS.SYSTEM, event) for event in (16, 528))
_SEND: Final = STATE_BY_NAME["SEND"].value
_REPLY: Final = STATE_BY_NAME["REPLY"].value
_SLEEP: Final = STATE_BY_NAME["NANOSLEEP"].value
_RECEIVE: Final = STATE_BY_NAME["RECEIVE"].value
_MUTEX: Final = STATE_BY_NAME["MUTEX"].value
_CONDVAR: Final = STATE_BY_NAME["CONDVAR"].value
_SEM: Final = STATE_BY_NAME["SEM"].value
_INTR: Final = STATE_BY_NAME["INTR"].value
_SENDS: Final = ("MSG_SENDV", "MSG_SENDVNC")
_RECEIVES: Final = ("MSG_RECEIVEV", "MSG_RECEIVEPULSEV")
_REPLIES: Final = ("MSG_REPLYV", "MSG_ERROR")
_MESSAGE_CALLS: Final = frozenset((*_SENDS, *_RECEIVES, *_REPLIES))
_LOW: Final = 0xFFFFFFFF
_BARRIER: Final = STATE_BY_NAME["BARRIER"].value
_READ, _WRITE = STATE_BY_NAME["RWLOCK_READ"].value, STATE_BY_NAME["RWLOCK_WRITE"].value
_KINDS: Final = {_MUTEX: "MUTEX", _SEM: "SEM", _CONDVAR: "CONDVAR", _READ: "RWLOCK", _WRITE: "RWLOCK"}
"""Kinds of objects by the states in which threads wait for them."""
_GIVES: Final = {
    "SYNC_SEM_POST": (_SEM,), "SYNC_CONDVAR_SIGNAL": (_CONDVAR,), "SYNC_MUTEX_UNLOCK": (_MUTEX,),
    "SYNC_BARRIER_WAIT": (_BARRIER,), "SYNC_RWLOCK": (_READ, _WRITE),
}  # fmt: skip
_SYNC_CALLS: Final = frozenset((*_GIVES, "SYNC_MUTEX_LOCK", "SYNC_SEM_WAIT", "SYNC_CONDVAR_WAIT"))


@dataclass(frozen=True, slots=True)
class Receipt:
    """The receipt of a message at a channel (its index, -1 = none), or of a pulse (of its stream and in that)."""

    chid: int
    message: int = -1
    pulse: tuple[int, int] | None = None


Item = tuple[str, parts.Step | Receipt | None]  # kind, of which `wait` and `receive` end the work before; and step
TimedItem = tuple[int, str, parts.Step | Receipt | None]  # after so many cycles of user code


def programs_of(trace: Trace) -> parts.Programs:
    """Return a trace converted to programs, which can be replayed.

    Raises UsageError if it cannot be: another system, no kernel calls or states, too large.
    """
    if trace.release not in (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8) or trace.axis is not None:
        raise UsageError(f"{trace.path.name}: only a kernel event trace of one QNX target can be replayed")
    lacks = [what for what, table in (("kernel calls", _IS_ENTRY), ("states of threads", _STATES))
             if not trace.code_counts[table].any()]  # fmt: skip
    if lacks:
        raise UsageError(f"{trace.path.name}: it has no {' and no '.join(lacks)}, so that there is nothing to replay")
    return _Builder(trace).build()


_STATES: Final = wire.are_of_threads(_ALL_CODES)


class _Builder:
    """Turns one trace into programs."""

    def __init__(self, trace: Trace) -> None:
        self.trace, self.events = trace, trace.events
        self.begin = max(int(self.events.time_cycles[0]), trace.dump_end_cycles)
        length_ns = self.ns(int(self.events.time_cycles[-1]) - self.begin)
        if length_ns > MOST_NS:
            raise UsageError(f"{trace.path.name}: it lasts {format_duration(length_ns)}, more than "
                             f"{format_duration(MOST_NS)}; cut out a part (satview filter --range)")  # fmt: skip
        self.numbers = call_numbers(trace.release)
        self.waits = waits(trace)
        self.notes: Counter[str] = Counter()
        self.messages: list[parts.RecordedMessage] = []
        self.streams: list[parts.Stream] = []
        self.things: list[parts.Thing] = []
        self.thing_of: dict[tuple[str, int], int] = {}
        self.unfinished: set[int] = set()  # identities of lists of steps
        self.givers, self.ended = self._waking_calls()
        self._meetings = self._barrier_groups()

    def ns(self, cycles: int) -> int:
        """Return a number of cycles in nanoseconds."""
        return self.trace.clock.duration_ns(int(cycles))

    def after_begin_ns(self, row: int) -> int:
        """Return the time from the start of the replay to an event, ns; 0 for earlier events."""
        return max(0, self.ns(int(self.events.time_cycles[row]) - self.begin))

    # Tables that the steps are read from.

    def code_numbers(self, *names: str) -> list[int]:
        """Return the kernel call numbers of the given names; names that the release does not have are left out."""
        return [self.numbers[name] for name in names if name in self.numbers]

    def _clock(self) -> tuple[int, int, int]:
        """Return the clock interrupt's vector (-1 = none), period, and time from the last one to the start, ns."""
        rows = rows_of_codes(self.trace, *_INTERRUPT_ENTRIES)
        every_wait = self.waits
        woken = every_wait.end_row[(every_wait.value == _SLEEP) & (every_wait.end_row < OPEN)]
        if self.trace.release is Release.QNX_8 or not len(rows):
            return -1, 0, self._beat_offset_ns()
        vectors = self.trace.payloads.column(rows, 0)
        causes = vectors[np.maximum(np.searchsorted(rows, woken) - 1, 0)] if len(woken) else vectors
        clock = int(np.bincount(np.unique(causes, return_inverse=True)[1].reshape(-1)).argmax())
        clock = int(np.unique(causes)[clock])
        times = self.events.time_cycles[rows[vectors == clock]]
        if len(times) < 3:
            return clock, 1_000_000, 0
        usual = float(np.median(np.diff(times)))
        if not self.trace.clock.cycles_of(_LEAST_TICK_NS) <= usual <= self.trace.clock.cycles_of(_MOST_TICK_NS):
            return clock, 1_000_000, 0
        count = max(1, round(int(times[-1] - times[0]) / usual))
        tick = int(times[-1] - times[0]) / count
        late = (times - times[0]) - np.round((times - times[0]) / tick) * tick
        phase = (float(times[0]) - self.begin + float(late.min())) % tick  # of the first tick after the start
        period_ns = self.ns(1_000_000) * tick / 1_000_000 if tick else 0.0
        return clock, round(period_ns), round(period_ns - self.ns(round(phase)))

    def _beat_offset_ns(self) -> int:
        """Return the time from the kernel's last beat to the start, ns; 0 if no event shows the beats.

        Only at beats, every `BEAT_NS`, may the 8.0 kernel lower priorities of sporadic threads.
        """
        rows = self.trace.states.event
        (priority, known), (policy, _) = arguments(self.trace, rows, "priority", "policy")
        runs = (state_values(self.trace) == RUNNING) & known & (policy == SPORADIC)
        thread = self.events.thread[rows]
        falls = np.flatnonzero(runs[1:] & runs[:-1] & (priority[1:] < priority[:-1]) & (thread[1:] == thread[:-1])) + 1
        if not len(falls):
            return 0
        moments = [self.ns(int(time) - self.begin) % BEAT_NS for time in self.events.time_cycles[rows[falls]].tolist()]
        around = np.array([(moment - moments[0] + BEAT_NS // 2) % BEAT_NS for moment in moments], np.int64)
        return int(-(moments[0] + int(around.min()) - BEAT_NS // 2) % BEAT_NS)

    def _user_time(self) -> Callable[[_Ints, _Ints], _Ints]:
        """Return a function (threads, rows) that returns how long each thread ran user code before a row, cycles."""
        events, code = self.events, self.events.code
        shown = np.flatnonzero(code >> wire.CLASS_SHIFT != _CLASS.CONTROL)
        order = shown[np.argsort(events.cpu[shown], kind="stable")]
        before, after = order[:-1], order[1:]
        same = events.cpu[before] == events.cpu[after]
        before, after = before[same], after[same]
        enters = _IS_ENTRY | _IS_USER_EVENT
        enters[list(_INTERRUPT_ENTRIES + _IPIS)] = True
        if self.trace.release is Release.QNX_8:  # no clock interrupt, no entry of others
            enters[[calls.TIMER_EVENT, _DELIVERY]] = True
        replayed = np.zeros(128, np.bool_)
        replayed[self.code_numbers(*_SENDS, *_RECEIVES, *_REPLIES, *_GIVES, "SYNC_MUTEX_LOCK", "SYNC_CONDVAR_WAIT",
                                   "SYNC_SEM_WAIT", "TIMER_TIMEOUT", "INTERRUPT_WAIT", "INTERRUPT_UNMASK",
                                   "MSG_SEND_PULSE", "MSG_SEND_PULSEPTR")] = True  # fmt: skip
        closes, opens = code[after], code[before]
        in_other = _IS_ENTRY[opens] & _IS_EXIT[closes] & ~replayed[opens & 0x7F]
        is_user = enters[closes] | _IS_EXIT[opens]
        if len(losses(self.trace)):
            sure = is_whole(self.trace, before, after)
            before, after, closes, opens = before[sure], after[sure], closes[sure], opens[sure]
            is_user, in_other = is_user[sure], in_other[sure]
        gaps = events.time_cycles[after] - events.time_cycles[before]  # a silent beat enters the kernel unseen
        is_user |= (gaps > self.trace.clock.cycles_of(_LONG_NS)) & ~_IS_KERNEL[opens]
        thread = np.where(enters[closes], events.thread[after], events.thread[before]).astype(np.int64)
        work = np.flatnonzero((is_user | in_other) & (events.time_cycles[after] > self.begin) & (thread > 0))
        begin = np.maximum(events.time_cycles[before[work]], self.begin)
        key = thread[work] << 32 | after[work]
        by_thread = np.argsort(key, kind="stable")
        key = key[by_thread]
        total = np.concatenate(([0], np.cumsum((events.time_cycles[after[work]] - begin)[by_thread])))

        def until(threads: _Ints, rows: _Ints) -> _Ints:
            base = total[np.searchsorted(key, threads << 32)]
            return np.asarray(total[np.searchsorted(key, threads << 32 | rows, "right")] - base)

        return until

    def _exits(self, entries: _Ints) -> _Ints:
        """Return the exit row of each call, int64 (n,); the number of events for calls that do not end."""
        exits = exits_of(self.trace, entries.astype(np.uint32)).astype(np.int64)
        exits[exits == NO_EVENT] = len(self.events)
        return exits

    def _first_after(self, keys: _Ints, entries: _Ints) -> _Ints:
        """Return the position in `keys` of the first between each entry and its thread's next; -1 = none.

        Both are ascending, int64, thread << 32 | row.
        """
        position = np.searchsorted(keys, entries)
        ends = np.append(entries[1:], np.iinfo(np.int64).max)
        ends = np.where(ends >> 32 == entries >> 32, ends, (entries >> 32) + 1 << 32)
        inside = position < len(keys)
        inside[inside] = keys[position[inside]] < ends[inside]
        return np.where(inside, position, -1)

    # Synchronisation objects.

    def thing(self, kind: int, address: int) -> int:
        """Return the number of a synchronization object; an address is one object, even if processes share it."""
        key = (_KINDS[kind], address)
        if key not in self.thing_of:
            self.thing_of[key] = len(self.things)
            self.things.append(parts.Thing(*key))
        return self.thing_of[key]

    def barrier(self, thread: int) -> int:
        """Return a thread's barrier, -1 if unknown: threads that are always released together share one."""
        together = self._meetings.get(thread, set())
        members = next(iter(together), frozenset())
        if len(together) != 1 or any(self._meetings[member] != together for member in members):
            return -1
        key = ("BARRIER", min(members))
        if key not in self.thing_of:
            self.thing_of[key] = len(self.things)
            self.things.append(parts.Thing("BARRIER", 0, count=len(members)))
        return self.thing_of[key]

    def _barrier_groups(self) -> dict[int, set[frozenset[int]]]:
        """Return for each thread the groups of threads, itself included, that barriers released together with it."""
        releases: dict[int, set[int]] = {}
        for wait in np.flatnonzero(self.waits.value == _BARRIER).tolist():
            _, _, giver_row = self.ended.get(int(self.waits.row[wait]), (0, 0, -1))
            if giver_row >= 0:
                giver = int(self.events.thread[giver_row])
                releases.setdefault(giver_row, {giver}).add(int(self.waits.thread[wait]))
        out: dict[int, set[frozenset[int]]] = {}
        for members in map(frozenset, releases.values()):
            for member in members:
                out.setdefault(member, set()).add(members)
        return out

    def _waking_calls(self) -> tuple[dict[int, tuple[int, int, int]], dict[int, tuple[int, int, int]]]:
        """Return the calls that wake threads from waits for synchronization objects, and the waits that they end.

        A waking call is under way on the CPU when a wait ends; at a barrier it is the wait call of the last thread. The
        first are by row of the call: kind and address of the object, and number of threads; the second by row of the
        event that begins the wait: kind, address and row of the waking call.
        """
        givers: dict[int, tuple[int, int, int]] = {}
        ended: dict[int, tuple[int, int, int]] = {}
        every_wait, events = self.waits, self.events
        for name, kinds in _GIVES.items():
            rows = entries_of(self.trace, name)
            addresses = argument(self.trace, rows, "sync_p")[0]
            if kinds == (_MUTEX,):
                pauses = entries_of(self.trace, "SYNC_CONDVAR_WAIT")
                addresses = np.concatenate((addresses, argument(self.trace, pauses, "mutex_p")[0]))
                rows = np.concatenate((rows, pauses))
                order = np.argsort(rows, kind="stable")
                rows, addresses = rows[order], addresses[order]
            if not len(rows):
                continue
            ended_waits = np.flatnonzero(np.isin(every_wait.value, kinds) & (every_wait.end_row < OPEN))
            end = every_wait.end_row[ended_waits].astype(np.int64)
            exits = exits_of(self.trace, rows).astype(np.int64)
            exits[exits == NO_EVENT] = len(events)
            given = _under_way(events.cpu[rows].astype(np.int64), rows.astype(np.int64), exits,
                               events.cpu[end].astype(np.int64), end)  # fmt: skip
            for wait, giver in zip(ended_waits[given >= 0].tolist(), given[given >= 0].tolist(), strict=True):
                address, kind = int(addresses[giver]), int(every_wait.value[wait])
                known = givers.get(int(rows[giver]), (kind, address, 0))
                givers[int(rows[giver])] = (known[0], address, known[2] + 1)
                ended[int(every_wait.row[wait])] = (kind, address, int(rows[giver]))
        return givers, ended

    # Sleeps.

    def _sleep_ns(self, entries: _Ints, wait_at: _Ints, tick_ns: int) -> _Ints:
        """Return the requested length of each sleep, in ns, int64 (n,).

        Fast events do not show it. It is then between the recorded length less a tick and the recorded length, and is
        assumed to be the same for all such sleeps of a thread if possible.
        """
        every_wait, time = self.waits, self.events.time_cycles
        (seconds, has_s), (rest, has_ns) = arguments(self.trace, entries, "ntime_sec", "ntime_nsec")
        requested_ns = np.where(has_s & has_ns, seconds * 1_000_000_000 + rest, -1)
        end = every_wait.end_row[wait_at].astype(np.int64)
        is_over = (end < OPEN) & (requested_ns < 0)
        cycles = np.where(is_over, time[np.where(is_over, end, 0)] - time[every_wait.row[wait_at]], 0)
        high = np.array([self.ns(length) for length in cycles.tolist()], np.int64)
        low = np.maximum(high - tick_ns, 1)
        thread = every_wait.thread[wait_at]
        for number in np.unique(thread[is_over]).tolist():
            own = np.flatnonzero(is_over & (thread == number))
            least, most = int(low[own].max()), int(high[own].min())
            requested_ns[own] = roundest(least, most) if least <= most else (low[own] + high[own]) // 2
        for unknown in np.flatnonzero(~is_over & (requested_ns < 0)).tolist():  # the trace ends before the sleep
            others = requested_ns[(thread == thread[unknown]) & (requested_ns >= 0)]
            elapsed_ns = self.ns(int(time[-1] - time[every_wait.row[wait_at[unknown]]]))
            requested_ns[unknown] = max(elapsed_ns, int(np.median(others))) if len(others) else elapsed_ns + _LATER_NS
        return np.asarray(requested_ns)

    # The programs.

    def build(self) -> parts.Programs:
        """Build and return the programs of the trace."""
        trace, events = self.trace, self.events
        clock, tick_ns, tick_offset_ns = self._clock()
        threads = self._threads(tick_ns)
        user = self._user_time()
        items = _Items(self, user, tick_ns)
        for program in threads.values():
            self._steps_of(program, items)
        self._complete_last_works()
        timers, interrupts = self._stimuli(clock, items)
        steps = sum(len(program.steps) for program in threads.values())
        steps += sum(len(message.steps or ()) for message in self.messages)
        if steps > MOST_STEPS:
            raise UsageError(
                f"{trace.path.name}: {counted(steps, 'step')} are more than {MOST_STEPS:,}; cut out a part"
            )
        if len(losses(trace)):
            self.notes["Events are missing: what happened then is not replayed."] = 1
        length = self.ns(int(events.time_cycles[-1]) - self.begin)
        programs = parts.Programs(
            trace, self.begin, length, trace.cpu_count, tick_ns, tick_offset_ns, list(threads.values()),
            self.messages, self.streams, timers, interrupts, self.things, self._partitions(threads), [],
        )  # fmt: skip
        self._set_inheritance(threads)
        added = with_unseen_locks(programs)
        if added:
            self.notes["Locks that nobody waited for are taken to be where others of the same work show them."] = added
        programs.not_shown = self._sentences()
        for program in threads.values():
            last_state = int(state_values(trace)[int(trace.states.start[program.row + 1]) - 1])
            program.repeats = _repeated_steps(program, last_state in (RUNNING, READY))
        return programs

    def _partitions(self, threads: Mapping[int, parts.ThreadProgram]) -> list[parts.PartitionShare]:
        names, budgets = partition_names(self.trace), first_budgets(self.trace)
        if not budgets:
            return []
        if not any(thread.partition >= 0 for thread in threads.values()):
            self.notes["Fast events do not show who is in which partition: there are none in the replay."] = 1
            return []
        return [parts.PartitionShare(number, partition_title(names, number), round(100 * share), critical_ms)
                for number, (share, critical_ms) in sorted(budgets.items())]  # fmt: skip

    def _set_inheritance(self, threads: Mapping[int, parts.ThreadProgram]) -> None:
        """Set `inherits` of mutexes whose unlocking threads run at the priority of the waiting thread."""
        every_wait, trace = self.waits, self.trace
        votes: dict[int, int] = {}
        for_mutexes = np.flatnonzero((every_wait.value == _MUTEX) & np.isin(every_wait.row, list(self.ended)))
        waiting, is_known = argument(trace, every_wait.row[for_mutexes], "priority")
        ends = [self.ended[row] for row in every_wait.row[for_mutexes[is_known]].tolist()]
        giver_rows = np.array([row for _, _, row in ends], np.int64)
        givers = self.events.thread[giver_rows].astype(np.int64)
        before = np.maximum(state_positions(trace, giver_rows, givers) - 1, 0)
        own = argument(trace, trace.states.event[before], "priority")[0]
        columns = (column.tolist() for column in (waiting[is_known], givers, own))
        for (_, address, _), priority, giver, own_priority in zip(ends, *columns, strict=True):
            if giver not in threads or priority <= threads[giver].priority:
                continue  # nothing to inherit
            thing = self.thing(_MUTEX, address)
            votes[thing] = votes.get(thing, 0) + (1 if own_priority >= priority else -1)
        for thing, sum_of_votes in votes.items():
            self.things[thing].inherits = sum_of_votes >= 0

    def _sentences(self) -> list[str]:
        notes = dict(self.notes)
        notes["Locks that nobody had to wait for leave no event: a change may make threads wait that did not."] = 1
        notes["Work that depends on data or time, and code that polls, is repeated as it was."] = 1
        return [text if count == 1 else f"{text} ({count:,} times)" for text, count in notes.items()]

    def _threads(self, tick_ns: int) -> dict[int, parts.ThreadProgram]:
        trace, states = self.trace, self.trace.states
        count = len(trace.threads)
        priorities = priorities_of(trace)
        if priorities.are_inferred:
            self.notes[
                "Fast events have no priorities: their order follows from who preempted whom, as far as that shows."
            ] = 1
        idle = set(np.flatnonzero(idle_threads(trace)).tolist())
        events_time = self.events.time_cycles
        out: dict[int, parts.ThreadProgram] = {}
        partition = argument_under(trace, states.event, "partition", "partition_id")  # 6.x, later
        is_critical = np.maximum(argument_under(trace, states.event, "sched_flags"), 0) & 1
        for row in range(1, count):
            begin, stop = int(states.start[row]), int(states.start[row + 1])
            pid, tid = int(trace.threads.pid[row]), int(trace.threads.tid[row])
            if row in idle or begin == stop or not (0 < tid < 1 << 15 and pid > 0):
                continue
            if events_time[states.event[begin]] > self.begin:
                self.notes["Threads that are created within the trace are there from the start, and wait for it."] += 1
            process = int(trace.threads.process[row])
            program = parts.ThreadProgram(row, pid, tid, trace.processes.names[process] or f"process-{pid}",
                                    trace.threads.names[row], trace.thread_name(row), priorities.own[row],
                                    priorities.policies[row], other_priorities=priorities.others[row])  # fmt: skip
            known = np.flatnonzero(partition[begin:stop] >= 0) + begin
            if len(known):  # a server runs in its clients' partitions: its own is the usual one
                usual = int(np.bincount(partition[known]).argmax())
                program.partition, program.is_critical = usual, bool(np.median(is_critical[known]) > 0)
            if program.policy == SPORADIC:
                program.priority, program.sporadic = sporadic_of(trace, row, program.priority, tick_ns)
            program.ends = int(state_values(trace)[stop - 1]) == DEAD
            program.cpu = self._first_cpu(begin, stop)
            out[row] = program
        return out

    def _first_cpu(self, begin: int, stop: int) -> int:
        """Return the CPU on which a thread runs when the replay begins, or first after that; -1 = it never runs."""
        rows, value = self.trace.states.event[begin:stop], state_values(self.trace)[begin:stop]
        now = int(np.searchsorted(self.events.time_cycles[rows], self.begin, "right"))
        is_running = now > 0 and value[now - 1] == RUNNING
        runs = rows[now:] if is_running else rows[now:][value[now:] == RUNNING]  # it stops where it ran
        return int(self.events.cpu[runs[0]]) if len(runs) else -1

    def _steps_of(self, program: parts.ThreadProgram, items: _Items) -> None:
        """Fill in the steps of one thread, and its work for each message and pulse that it receives."""
        current: list[parts.Step] = program.steps
        done_cycles, is_behind_call = 0, False
        for user_cycles, kind, step in items.of(program):
            work_ns = self.ns(max(0, user_cycles - done_cycles)) - (USER_NS if is_behind_call else 0)
            if work_ns > 0:
                current.append(parts.Work(work_ns))
            done_cycles, is_behind_call = max(done_cycles, user_cycles), kind in ("receive", "wait", "step")
            if isinstance(step, Receipt):
                program.steps.append(parts.Receive(step.chid))
                current = self._work_for(step)
                if step.message in items.before:
                    current.append(parts.Begin())
            elif step is not None:
                current.append(step)
                if isinstance(step, parts.Reply):
                    self.messages[step.message].is_answered = True
        self.unfinished.add(id(current))

    def _complete_last_works(self) -> None:
        """Replace the work of pulses that the end of the trace cuts off by the work of the pulse before."""
        for stream in self.streams:
            for number in range(1, len(stream.works)):
                if id(stream.works[number]) in self.unfinished:
                    stream.works[number] = list(stream.works[number - 1])

    def _work_for(self, receipt: Receipt) -> list[parts.Step]:
        """Return the list to fill with the work for a message or pulse; an unused list if the receipt is unknown."""
        if receipt.message >= 0:
            message = self.messages[receipt.message]
            message.chid, message.steps = receipt.chid, []
            return message.steps
        if receipt.pulse is None:
            return []
        stream = self.streams[receipt.pulse[0]]
        stream.chid = receipt.chid
        return stream.works[receipt.pulse[1]]

    def _stimuli(self, clock: int, items: _Items) -> tuple[list[parts.TimerSource], list[parts.InterruptLine]]:
        """Return the timers that send pulses, and the interrupt vectors but the clock's, with their times."""
        timers: dict[tuple[int, int], parts.TimerSource] = {}
        lines = self._lines(clock)
        latency = latencies(self.trace)
        by_pulse = dict(zip(latency.pulse_row.tolist(), range(len(latency)), strict=True))
        payload = self.trace.payloads
        for row, stream, cause in items.stimuli:
            code = int(self.events.code[cause]) if cause >= 0 else -1
            number = by_pulse.get(row, -1)
            vector = int(latency.number[number]) if number >= 0 else -1
            if vector >= 0 and vector in lines and code != calls.TIMER_EVENT:
                self._deliver(lines[vector], latency, number, stream)
                continue
            is_timer = code == calls.TIMER_EVENT
            ident = int(payload.column(np.array([cause]), 2)[0]) if is_timer else 0
            thread = int(self.events.thread[cause]) if is_timer else 0
            source = timers.setdefault((stream, ident), parts.TimerSource(stream, thread, ident, []))
            source.moments_ns.append(self.after_begin_ns(row))
        for number in np.flatnonzero((latency.pulse_row < 0) & (latency.number >= 0)).tolist():
            if int(latency.number[number]) in lines and latency.thread[number] > 0:
                self._deliver(lines[int(latency.number[number])], latency, number, -1 - int(latency.thread[number]))
        return list(timers.values()), list(lines.values())

    def _lines(self, clock: int) -> dict[int, parts.InterruptLine]:
        codes = (_DELIVERY,) if self.trace.release is Release.QNX_8 else _INTERRUPT_ENTRIES
        rows = rows_of_codes(self.trace, *codes)
        vectors = self.trace.payloads.column(rows, 0).astype(np.int64)
        out: dict[int, parts.InterruptLine] = {}
        self.line_rows: dict[int, _Ints] = {}
        for vector in np.unique(vectors).tolist():
            if vector == clock:
                continue
            own_rows = rows[vectors == vector].astype(np.int64)
            cpu = int(np.bincount(self.events.cpu[own_rows]).argmax())
            out[vector] = parts.InterruptLine(vector, cpu, [self.after_begin_ns(row) for row in own_rows.tolist()])
            self.line_rows[vector] = own_rows
        enters, exits = handlers(self.trace)
        if len(enters):
            number = argument(self.trace, enters, "interrupt_number")[0]
            pid = argument(self.trace, enters, "pid")[0]
            for call in np.argsort(enters).tolist():
                line = out.get(int(number[call]))
                if line is None:
                    continue
                moment = int(np.searchsorted(self.line_rows[line.vector], int(enters[call]))) - 1
                calls = line.handlers.setdefault(int(pid[call]), [(-1, None)] * len(line.moments_ns))
                length = int(self.events.time_cycles[exits[call]] - self.events.time_cycles[enters[call]])
                if moment >= 0:
                    calls[moment] = (self.ns(length), None)
        return out

    def _deliver(self, line: parts.InterruptLine, latency: Latencies, number: int, target: int) -> None:
        """Store the receiver of an interrupt: of the event that its handler returns, or of the interrupt itself.

        `target` is the number of a pulse stream, or -1 minus the row of a thread.
        """
        handler_row = int(latency.handler_row[number])
        if handler_row >= 0 and line.handlers:
            moment = int(np.searchsorted(self.line_rows[line.vector], handler_row)) - 1
            pid = int(argument(self.trace, np.array([handler_row]), "pid")[0][0])
            calls = line.handlers.get(pid)
            if calls is not None and moment >= 0:
                calls[moment] = (calls[moment][0], target)
            return
        if target >= 0 and target not in line.streams:
            line.streams.append(target)
        elif target < 0 and -1 - target not in line.threads:
            line.threads.append(-1 - target)


class _Items:
    """Kernel calls to replay and user events of each thread, ordered by the thread's run time outside the kernel."""

    def __init__(self, builder: _Builder, user: Callable[[_Ints, _Ints], _Ints], tick_ns: int) -> None:
        self.builder, trace, events = builder, builder.trace, builder.events
        self.user, self.tick_ns = user, tick_ns
        rows = rows_where(trace, _IS_ENTRY | _IS_USER_EVENT).astype(np.int64)
        rows = rows[(events.time_cycles[rows] >= builder.begin) & (events.thread[rows] > 0)]
        self.first_wait = self._wait_at_begin()
        self.receives_ns = self._receipts_before()
        self.creates = self._creations()
        self.created = {created for some in self.creates.values() for created, _ in some}
        first_waits = np.array(list(self.first_wait.values()), np.int64)
        begun = builder.waits.row[first_waits].astype(np.int64)
        rows = np.concatenate((rows, begun))
        key = np.sort(events.thread[rows].astype(np.int64) << 32 | rows)
        self.row, self.thread, self.key = key & 0xFFFFFFFF, key >> 32, key
        self.start = np.searchsorted(self.thread, np.arange(len(trace.threads) + 1))
        self.user_cycles = self.user(self.thread, self.row)
        code = events.code[self.row]
        self.is_mark = _IS_USER_EVENT[code]
        self.call = np.where(self.is_mark, -1, code & 0x7F).astype(np.int64)
        self.call[np.isin(self.row, begun)] = _BEGUN
        self.wait = self._first_waits(builder.waits)
        is_begun = self.call == _BEGUN
        self.wait[is_begun] = [self.first_wait[thread] for thread in self.thread[is_begun].tolist()]
        self._messages()
        self._find_earlier_messages()
        self._pulses()
        self.name_of = {number: name for name, number in builder.numbers.items()}
        self.givers, self.ended = builder.givers, builder.ended
        self.sleep = np.full(len(self.row), -1, np.int64)
        slept = np.flatnonzero(self.wait >= 0)
        slept = slept[(builder.waits.value[self.wait[slept]] == _SLEEP) & (self.call[slept] >= 0)]
        self.sleep[slept] = builder._sleep_ns(self.row[slept], self.wait[slept], tick_ns)
        self.chid = np.zeros(len(self.row), np.int64)
        receives = np.flatnonzero(np.isin(self.call, builder.code_numbers(*_RECEIVES)))
        self.chid[receives] = argument(builder.trace, self.row[receives], "chid")[0]
        self.address, self.vector, self.mutex = (self._argument(names, calls) for names, calls in (
            ("sync_p", ("SYNC_MUTEX_LOCK", "SYNC_MUTEX_UNLOCK", "SYNC_CONDVAR_WAIT", "SYNC_CONDVAR_SIGNAL",
                        "SYNC_SEM_WAIT", "SYNC_SEM_POST", "SYNC_RWLOCK")),
            ("id" if trace.release is Release.QNX_8 else "intr", ("INTERRUPT_UNMASK",)),
            ("mutex_p", ("SYNC_CONDVAR_WAIT",)),
        ))  # fmt: skip

    def _argument(self, name: str, calls: tuple[str, ...]) -> _Ints:
        out = np.zeros(len(self.row), np.int64)
        of_calls = np.flatnonzero(np.isin(self.call, self.builder.code_numbers(*calls)))
        out[of_calls] = argument(self.builder.trace, self.row[of_calls], name)[0]
        return out

    def _first_waits(self, every_wait: Waits) -> _Ints:
        """Return for each entry the position in `every_wait` of the first wait in its call, int64 (n,); -1 for none."""
        out = np.full(len(self.row), -1, np.int64)
        positions = np.flatnonzero((every_wait.call_row != NO_EVENT) & (every_wait.row == every_wait.first_row))
        keys = every_wait.thread[positions].astype(np.int64) << 32 | every_wait.call_row[positions]
        order = np.argsort(keys, kind="stable")
        position = np.searchsorted(keys[order], self.key)
        position[position == len(keys)] = 0
        if len(keys):
            fits = keys[order][position] == self.key
            out[fits] = positions[order[position[fits]]]
        return out

    def _messages(self) -> None:
        builder, events = self.builder, self.builder.events
        exchanges = transactions(builder.trace)
        builder.messages = [
            parts.RecordedMessage(pid, first_word=max(0, word) & 0xFFFFFFFF)
            for pid, word in zip(exchanges.server_pid.tolist(), exchanges.message_type.tolist(), strict=True)
        ]
        self.sent = self._numbered(
            exchanges.send_row, exchanges.client, np.arange(len(exchanges)), exchanges.server_pid > 0
        )
        receipt = exchanges.receive_row >= 0
        self.received = self._numbered(
            exchanges.receive_row, exchanges.server, np.arange(len(exchanges)), receipt & (exchanges.server > 0)
        )
        replied = exchanges.reply_row >= 0
        by = events.thread[np.maximum(exchanges.reply_row, 0)].astype(np.int64)
        self.replied = self._numbered(exchanges.reply_row, by, np.arange(len(exchanges)), replied & (by > 0))

    def _pulses(self) -> None:
        """Store the streams (one a connection), each receipt's pulse, and the streams to which calls send."""
        builder, trace, events = self.builder, self.builder.trace, self.builder.events
        table = messages.pulses(trace)
        sends = rows_of_codes(trace, *messages.SENDS)
        sends = sends[events.time_cycles[sends] >= builder.begin]
        scoid, pid = comm_words(trace, sends)
        _, stream = np.unique(pid.astype(np.int64) << 32 | scoid, return_inverse=True)
        stream = stream.reshape(-1)
        link = table.begun_by(sends)
        receipt = np.where(link >= 0, table.to_row[np.maximum(link, 0)].astype(np.int64) if len(table) else -1, -1)
        receipt[receipt >= OPEN] = -1
        builder.streams = [parts.Stream(0) for _ in range(int(stream.max(initial=-1)) + 1)]
        number = np.zeros(len(sends), np.int64)
        for number_of_pulse, (which, to, way) in enumerate(
            zip(stream.tolist(), pid.tolist(), scoid.tolist(), strict=True)
        ):
            number[number_of_pulse] = len(builder.streams[which].works)
            builder.streams[which].pid, builder.streams[which].scoid = to, way & 0xFFFF
            builder.streams[which].works.append([])
        by = events.thread[np.maximum(receipt, 0)].astype(np.int64)
        self.pulse_received = self._numbered(receipt, by, stream << 32 | number, receipt >= 0)
        self._pulse_priorities(receipt, stream)
        causes = deliveries(trace)
        cause_at = causes.ended_by(sends)
        cause = np.where(
            cause_at >= 0, causes.from_row[np.maximum(cause_at, 0)].astype(np.int64) if len(causes) else -1, -1
        )
        is_call = (cause >= 0) & _IS_ENTRY[events.code[np.maximum(cause, 0)]]
        self.pulse_sent: dict[int, list[int]] = {}
        for row, which in zip(cause[is_call].tolist(), stream[is_call].tolist(), strict=True):
            self.pulse_sent.setdefault(row, []).append(which)
        self.last_pulses = self._pulses_at_death(sends.astype(np.int64), np.where(is_call, -1, stream))
        sent_at_ends = [row for pulses_of_thread in self.last_pulses.values() for row, _ in pulses_of_thread]
        free = np.flatnonzero(~is_call & ~np.isin(sends, sent_at_ends))
        self.stimuli = list(zip(sends[free].tolist(), stream[free].tolist(), cause[free].tolist(), strict=True))

    def _pulses_at_death(self, sends: _Ints, stream: _Ints) -> dict[int, list[tuple[int, int]]]:
        """Return the pulses (row, stream) that the kernel sends when a process dies, by the thread that ends."""
        trace = self.builder.trace
        starts, stops = trace.states.start[:-1], trace.states.start[1:]
        is_dead = (stops > starts) & (state_values(trace)[np.maximum(stops - 1, 0)] == DEAD)
        by = trace.events.thread[sends].astype(np.int64)
        makes_no_call_after = np.searchsorted(self.key, by << 32 | sends, "right") == self.start[by + 1]
        out: dict[int, list[tuple[int, int]]] = {}
        for position in np.flatnonzero((stream >= 0) & (by > 0) & is_dead[by] & makes_no_call_after).tolist():
            out.setdefault(int(by[position]), []).append((int(sends[position]), int(stream[position])))
        return out

    def _pulse_priorities(self, receipt: _Ints, stream: _Ints) -> None:
        """Set each stream's priority to that of its receivers, which take over the priority of the pulse."""
        trace, index = self.builder.trace, self.builder.trace.states.event
        is_received = receipt >= 0
        rows = receipt[is_received]
        thread = trace.events.thread[rows].astype(np.int64)
        position = state_positions(trace, rows, thread) - 1
        priority, known = argument(trace, index[np.maximum(position, 0)], "priority")
        for which in np.unique(stream[is_received]).tolist():
            own = (stream[is_received] == which) & known
            if own.any():
                self.builder.streams[which].priority = min(max(1, int(np.median(priority[own]))), 255)
            else:  # fast events: the priority of the thread that receives most, as minus its row
                self.builder.streams[which].priority = -int(np.bincount(thread[stream[is_received] == which]).argmax())

    def _numbered(self, rows: _Ints, threads: _Ints, numbers: _Ints, known: NDArray[np.bool_]) -> _Ints:
        """Return for each kernel call entry the number of its thread's next event before the next entry; -1 = none."""
        chosen = np.flatnonzero(known)
        keys = threads[chosen] << 32 | rows[chosen]
        order = np.argsort(keys, kind="stable")
        position = self.builder._first_after(keys[order], self.key)
        out = np.full(len(self.key), -1, np.int64)
        out[position >= 0] = numbers[chosen][order[position[position >= 0]]]
        return out

    def of(self, program: parts.ThreadProgram) -> list[TimedItem]:
        """Return the actions of a thread, each with the user time before it in cycles, its kind, and its step."""
        begin, stop = int(self.start[program.row]), int(self.start[program.row + 1])
        # Received before the trace begins: what the thread does up to its next receipt is for the last one of them.
        out: list[TimedItem] = [
            (0, "receive", Receipt(self._chid_of(program), message=number))
            for number in self.asked_before.get(program.row, ())
        ]
        if program.row not in self.first_wait:
            born_ns = self.builder.after_begin_ns(int(self.builder.trace.states.of(program.row)[0]))
            out.append((0, "begin", parts.AwaitStart() if program.row in self.created else parts.Begin(born_ns)))
        for call in range(begin, stop):
            out += [
                (cycles, "step", parts.StartThread(row)) for row, cycles in self.creates.get(int(self.row[call]), ())
            ]
            items = self._begun_item(call, program) if self.call[call] == _BEGUN else self._item(call)
            out += [(int(self.user_cycles[call]), kind, step) for kind, step in items]
        end = int(self.user(np.array([program.row]), np.array([len(self.builder.events)]))[0])
        out += [(end, "step", parts.SendPulse(stream)) for _, stream in self.last_pulses.get(program.row, ())]
        return [*out, (end, "end", None)]

    def _begun_item(self, call: int, program: parts.ThreadProgram) -> Iterator[Item]:
        """Yield the steps that bring a thread into its wait at the begin of the trace; `call` is the item's index."""
        builder, every_wait, wait = self.builder, self.builder.waits, int(self.wait[call])
        value, row = int(every_wait.value[wait]), int(every_wait.row[wait])
        end = int(every_wait.end_row[wait])
        after_ns = builder.after_begin_ns(end) if end < OPEN else _FOR_EVER_NS
        if program.row in self.asks_before:
            if value != _REPLY:  # a thread that waits for a reply has sent long before
                yield "begin", parts.Begin()
            yield "wait", parts.Send(self.asks_before[program.row])
        elif value == _RECEIVE:
            if program.row in self.receives_ns:
                yield "begin", parts.Begin(self.receives_ns[program.row])
            chids = self.chid[int(self.start[program.row]) : int(self.start[program.row + 1])]
            yield from self._receipt(call, int(chids[chids > 0][0]) if (chids > 0).any() else self._chid_of(program))
        elif value == _BARRIER and (barrier := builder.barrier(program.row)) >= 0:
            yield "wait", parts.Meet(barrier)
        elif row in self.ended and value in (_SEM, _CONDVAR):
            yield "wait", parts.Await(builder.thing(value, self.ended[row][1]), after_ns)
        elif value == _INTR:
            yield "wait", parts.AwaitInterrupt()
        else:
            yield "wait", parts.Begin(after_ns, STATE_BY_VALUE[value].name, value == _SLEEP)

    def _wait_at_begin(self) -> dict[int, int]:
        """Return by thread the position, in the table of waits, of the wait that the trace begins in."""
        builder, every_wait = self.builder, self.builder.waits
        events, states = builder.events, builder.trace.states
        out: dict[int, int] = {}
        starts = np.searchsorted(every_wait.thread, np.arange(len(builder.trace.threads)))
        for thread, position in enumerate(starts.tolist()):
            if position < len(every_wait) and every_wait.thread[position] == thread:
                own_begin = int(states.start[thread])  # the opening dump reports a thread's creation before its state
                is_begun = int(every_wait.row[position]) in states.event[own_begin : own_begin + 2].tolist()
                if is_begun and events.time_cycles[every_wait.row[position]] <= builder.begin:
                    out[thread] = position
        return out

    def _creations(self) -> dict[int, list[tuple[int, int]]]:
        """Return by row of each call's entry the threads it creates, and the creator's run time until then, cycles."""
        trace, events = self.builder.trace, self.builder.events
        entries = rows_where(trace, _IS_ENTRY).astype(np.int64)
        threads = np.flatnonzero(np.diff(trace.states.start) > 0)
        births = trace.states.event[trace.states.start[threads]].astype(np.int64)
        is_within = (events.time_cycles[births] > self.builder.begin) & (threads > 0)
        threads, births = threads[is_within], births[is_within]
        call = _under_way(events.cpu[entries].astype(np.int64), entries, self.builder._exits(entries),
                          events.cpu[births].astype(np.int64), births)  # fmt: skip
        is_seen = (call >= 0) & (events.time_cycles[entries[np.maximum(call, 0)]] >= self.builder.begin)
        threads, births, call = threads[is_seen], births[is_seen], call[is_seen]
        after_cycles = self.user(events.thread[entries[call]].astype(np.int64), births)
        out: dict[int, list[tuple[int, int]]] = {}
        for row, thread, cycles in zip(entries[call].tolist(), threads.tolist(), after_cycles.tolist(), strict=True):
            out.setdefault(row, []).append((thread, cycles))
        return out

    def _receipts_before(self) -> dict[int, int]:
        """Return, by thread that receives when the trace begins, the time at which it starts to receive, ns; negative.

        The thread that has waited longest gets the next message, so a pool's threads start in the order of messages.
        """
        builder, every_wait = self.builder, self.builder.waits
        pools: dict[int, list[tuple[int, int]]] = {}
        for thread, position in self.first_wait.items():
            if int(every_wait.value[position]) == _RECEIVE:
                pid = int(builder.trace.threads.pid[thread])
                pools.setdefault(pid, []).append((int(every_wait.end_row[position]), thread))
        out = {}
        for pool in pools.values():
            gap_ns = min(_RECEIPT_GAP_NS, _RECEIPTS_NS // 2 // len(pool))
            for place, (_, thread) in enumerate(sorted(pool) if len(pool) > 1 else ()):
                out[thread] = place * gap_ns - _RECEIPTS_NS
        return out

    def _find_earlier_messages(self) -> None:
        """Find the messages sent before the trace begins, by their replies, which name the client."""
        builder, trace, events, every_wait = self.builder, self.builder.trace, self.builder.events, self.builder.waits
        self.asks_before: dict[int, int] = {}
        self.asked_before: dict[int, list[int]] = {}
        replies = rows_of_codes(trace, *_ANSWERS).astype(np.int64)
        tid, pid = comm_words(trace, replies)
        client = thread_rows(trace, pid, tid)
        receipts = rows_of_codes(trace, _RECEIPT).astype(np.int64)
        receipts = receipts[~np.isin(receipts, transactions(trace).receive_row)]  # of messages from before
        receiver, taken = events.thread[receipts], set[int]()
        late: list[tuple[int, int, int]] = []
        for thread, position in self.first_wait.items():
            sent_rows = np.flatnonzero(client == thread)
            if int(every_wait.value[position]) not in (_SEND, _REPLY) or not len(sent_rows):
                continue
            reply = int(replies[sent_rows[0]])
            server, number = int(events.thread[reply]), len(builder.messages)
            builder.messages.append(parts.RecordedMessage(int(trace.threads.pid[server]), is_answered=True))
            self.asks_before[thread] = number
            late.append((reply, server, number))
            own = [int(row) for row in receipts[receiver == server] if row < reply and int(row) not in taken]
            if own and int(every_wait.value[position]) == _SEND:
                taken.add(own[-1])
                self._set_at_last_entry(self.received, own[-1], server, number)
            else:
                self.asked_before.setdefault(server, []).append(number)
        self.before = {numbers[-1] for numbers in self.asked_before.values()}
        for reply, server, number in late:
            self._set_at_last_entry(self.replied, reply, server, number)

    def _set_at_last_entry(self, column: _Ints, row: int, thread: int, number: int) -> None:
        """Store a number in a column at the last entry of a thread before a row."""
        position = int(np.searchsorted(self.key, thread << 32 | row)) - 1
        if position >= 0 and self.thread[position] == thread:
            column[position] = number

    def _chid_of(self, program: parts.ThreadProgram) -> int:
        """Return the channel at which most threads of a process receive."""
        pids = self.builder.trace.threads.pid[self.thread]
        chids = self.chid[(pids == program.pid) & (self.chid > 0)]
        return int(np.bincount(chids[chids < 1 << 16]).argmax()) if len(chids) else 1

    def _item(self, call: int) -> Iterator[Item]:
        """Yield the steps that replay one kernel call."""
        builder, every_wait, row = self.builder, self.builder.waits, int(self.row[call])
        name, wait = self.name_of.get(int(self.call[call]), ""), int(self.wait[call])
        state = int(every_wait.value[wait]) if wait >= 0 else NOT_A_STATE
        if self.is_mark[call]:
            words = [*builder.trace.payloads.words(row)[:2].tolist(), 0, 0]
            yield "step", parts.LogEvent(wire.event_of(int(builder.events.code[row])), (int(words[0]), int(words[1])))
        elif name in _MESSAGE_CALLS:
            yield from self._message_item(call, name)
        elif state == _SLEEP:
            yield "wait", parts.SleepStep(int(self.sleep[call]))
        elif name in _SYNC_CALLS:
            yield from self._sync_item(call, name, state)
        elif name == "INTERRUPT_WAIT":
            yield "wait", parts.AwaitInterrupt()
        elif name == "INTERRUPT_UNMASK":
            yield "step", parts.Unmask(int(self.vector[call]))
        elif row in self.pulse_sent:
            for stream in self.pulse_sent[row]:
                yield "step", parts.SendPulse(stream)
        elif wait >= 0 and int(every_wait.end_row[wait]) < OPEN:
            yield "wait", self._as_recorded_and_noted(wait)

    def _message_item(self, call: int, name: str) -> Iterator[Item]:
        if name in _RECEIVES:
            yield from self._receipt(call, int(self.chid[call]))
        elif name in _SENDS and self.sent[call] >= 0:
            yield "wait", parts.Send(int(self.sent[call]))
        elif name in _REPLIES and self.replied[call] >= 0:
            yield "step", parts.Reply(int(self.replied[call]))

    def _receipt(self, call: int, chid: int) -> Iterator[Item]:
        message, pulse = int(self.received[call]), int(self.pulse_received[call])
        yield "receive", Receipt(chid, message, (pulse >> 32, pulse & _LOW) if pulse >= 0 > message else None)

    def _sync_item(self, call: int, name: str, state: int) -> Iterator[Item]:
        builder, row, wait, address = self.builder, int(self.row[call]), int(self.wait[call]), int(self.address[call])
        if name == "SYNC_MUTEX_LOCK":
            if state == _MUTEX:
                yield "step", parts.Lock(builder.thing(_MUTEX, address))
        elif name == "SYNC_MUTEX_UNLOCK":
            if row in self.givers:
                yield "step", parts.Unlock(builder.thing(_MUTEX, address))
        elif name == "SYNC_BARRIER_WAIT":
            yield from self._barrier_item(call)
        elif name == "SYNC_RWLOCK":
            if state in (_READ, _WRITE):
                yield "step", parts.Lock(builder.thing(state, address), state == _WRITE)
            elif row in self.givers:
                yield "step", _given_up(builder.thing(_WRITE, address), self.givers[row][0])
        elif name in _GIVES:
            yield "step", parts.Signal(builder.thing(_GIVES[name][0], address), self.givers.get(row, (0, 0, 0))[2])
        elif state in (_SEM, _CONDVAR):
            is_over = int(builder.waits.end_row[wait]) < OPEN
            if int(builder.waits.row[wait]) in self.ended or not is_over:
                length_ns = self._as_recorded(wait).ns if is_over else _FOR_EVER_NS
                yield "wait", parts.Await(builder.thing(state, address), length_ns)
            else:  # a timeout or signal ends it
                yield "wait", self._as_recorded(wait)

    def _barrier_item(self, call: int) -> Iterator[Item]:
        barrier, wait = self.builder.barrier(int(self.thread[call])), int(self.wait[call])
        if barrier >= 0:
            yield "wait", parts.Meet(barrier)
        elif wait >= 0 and int(self.builder.waits.end_row[wait]) < OPEN:
            yield "wait", self._as_recorded_and_noted(wait)

    def _as_recorded_and_noted(self, wait: int) -> parts.TimedWait:
        """Return a step that waits as long as recorded, since nothing replayed ends the wait; count it in the notes."""
        step = self._as_recorded(wait)
        self.builder.notes[f"Waits in state {step.state} last as long as they did."] += 1
        return step

    def _as_recorded(self, wait: int) -> parts.TimedWait:
        every_wait, time = self.builder.waits, self.builder.events.time_cycles
        length = int(time[every_wait.end_row[wait]] - time[every_wait.row[wait]])
        return parts.TimedWait(STATE_BY_VALUE[int(every_wait.value[wait])].name, self.builder.ns(length))


def _repeated_steps(program: parts.ThreadProgram, is_busy: bool) -> tuple[int, int]:
    """Return the range of steps that a thread repeats after its last step, as two positions in its list.

    The range is from the thread's first to its last wait of one kind. A busy thread without such waits repeats its last
    work: the trace shows no end of that work, and more CPU time would only bring the thread to this point sooner.
    """
    if program.ends:
        return 0, 0
    for kind in (
        parts.Receive,
        parts.SleepStep,
        parts.AwaitInterrupt,
        parts.Await,
        parts.Meet,
        parts.TimedWait,
        parts.Send,
    ):
        positions = [position for position, step in enumerate(program.steps) if isinstance(step, kind)]
        if kind is parts.TimedWait:
            positions = [position for position in positions if position]  # not the wait at the start
        if kind is parts.Receive and positions:
            return positions[-1], positions[-1] + 1
        if len(positions) > (3 if kind is parts.Send else 1):
            return positions[0], positions[-1]
    if not is_busy or not program.steps or not isinstance(program.steps[-1], (parts.Work, parts.LogEvent)):
        return 0, 0
    is_work = [isinstance(step, (parts.Work, parts.LogEvent)) for step in program.steps]
    last_other = max((position for position, works in enumerate(is_work) if not works), default=-1)
    return last_other + 1, len(is_work)


def _given_up(lock: int, woken_state: int) -> parts.Unlock:
    """Return an unlock step of a reader/writer lock: of a writer if a reader was woken, else of an unknown holder."""
    return parts.Unlock(lock, True if woken_state == _READ else None)


def _under_way(cpus: _Ints, rows: _Ints, exits: _Ints, at_cpu: _Ints, at_row: _Ints) -> _Ints:
    """Return which call is under way on a CPU at each given event, an index in `rows`, int64 (m,); -1 = none."""
    out = np.full(len(at_row), -1, np.int64)
    for cpu in np.unique(at_cpu).tolist():
        of_cpu, asked = np.flatnonzero(cpus == cpu), np.flatnonzero(at_cpu == cpu)
        if not len(of_cpu):
            continue
        last = np.searchsorted(rows[of_cpu], at_row[asked]) - 1
        fits = (last >= 0) & (exits[of_cpu[np.maximum(last, 0)]] >= at_row[asked])
        out[asked[fits]] = of_cpu[last[fits]]
    return out
