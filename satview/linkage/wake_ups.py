"""Finds the event that caused each wake-up: what made a blocked thread ready, or let it run at once."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.core import links
from satview.core.links import stable_order
from satview.events import linux, wire
from satview.events.catalogue import call_numbers
from satview.events.spec import Release
from satview.events.states import READY, RUNNING, STATE_BY_NAME
from satview.linkage import calls, messages
from satview.linkage.calls import interrupt_rows
from satview.linkage.links import (
    NO_EVENT,
    Certainty,
    LinkKind,
    Pairs,
    cached_links,
    comm_words,
    is_whole,
    last_of_codes,
    no_pairs,
    pairs_of,
    positions,
    rows_of_codes,
    thread_rows,
)
from satview.linkage.waits import Waits, entries_of, number_of, objects_of, waits
from satview.store.arguments import argument, arguments
from satview.store.trace import Trace, cached_with_trace

_ENDED: Final = "links.ended_waits"
_SIGNAL: Final = wire.code(wire.WireClass.COMM, 9)
_NO_TIMER: Final = 0xFFFFFFFF  # timer_id of the expiry of a TimerTimeout()
# By state, the calls of other threads that end such a wait, and their argument that names the object waited for.
_ENDS_BY_OBJECT: Final = {
    "MUTEX": {"SYNC_MUTEX_UNLOCK": "sync_p", "SYNC_CONDVAR_WAIT": "mutex_p"},
    "CONDVAR": {"SYNC_CONDVAR_SIGNAL": "sync_p"},
    "SEM": {"SYNC_SEM_POST": "sync_p"},
    "BARRIER": {"SYNC_BARRIER_WAIT": "sync_p"},
    "RWLOCK_READ": {"SYNC_RWLOCK": "sync_p"},
    "RWLOCK_WRITE": {"SYNC_RWLOCK": "sync_p"},
}
# Waits that only a call of another thread, a signal or a timeout ends.
_LIMITED: Final = ("SEND", "REPLY", "MUTEX", "CONDVAR", "SEM", "JOIN")
# By state ("" is any), calls that may end waits of other threads though no argument names the thread or object.
_ENDS_FROM_OUTSIDE: Final = {
    "": ("THREAD_CANCEL", "CHANNEL_DESTROY", "CONNECT_DETACH", "SYNC_DESTROY"),
    "JOIN": ("THREAD_DETACH",),
    "INTR": ("INTERRUPT_UNMASK", "MSG_DELIVER_EVENT"),
    "STOPPED": ("THREAD_CTL", "THREAD_CTLEXT"),
    "MQ_SEND": ("MSG_QUEUE_RECEIVE",),
    "MQ_RECEIVE": ("MSG_QUEUE_SEND",),
    "PIPE": ("PIPE_CTL",),
    **dict.fromkeys(("WAITPAGE", "WAITCTX", "STACK", "NET_SEND", "NET_REPLY", "NANOSLEEP"), ("RING0",)),
}
# Waits that no timeout ends.
_UNLIMITED: Final = ("STOPPED", "WAITPAGE", "WAITCTX", "STACK")
# By state, the calls that stand in for COMM events where class COMM was not captured.
_ENDS_WITHOUT_COMM: Final = {
    "RECEIVE": ("MSG_SENDV", "MSG_SENDVNC", "MSG_SEND_PULSE", "MSG_SEND_PULSEPTR", "MSG_DELIVER_EVENT"),
    "REPLY": ("MSG_REPLYV", "MSG_ERROR"),
    "SIGSUSPEND": ("SIGNAL_KILL", "SIGNAL_KILL_SIGVAL"),
    "SIGWAITINFO": ("SIGNAL_KILL", "SIGNAL_KILL_SIGVAL"),
}


@cached_links(LinkKind.WAKE_UP)
def wake_ups(trace: Trace) -> Pairs:
    """Return the links from the cause that ended each wait to the READY or RUNNING event that follows.

    The cause is the message, pulse or reply rather than the call that sends it, and the expiry of a timer rather than
    the clock interrupt (before 6.6 the interrupt, as the kernel logs no expiry). A thread that gets the CPU together
    with a message runs without a READY event (building block M7 of the reference). Source: formula 1 (a) of the
    reference.

    A link is exact if its events name the same thread, message, object or interrupt, or if only one interrupt came
    during the wait. Other links are inferred from what the CPU was doing.
    """
    if trace.release is Release.LINUX:
        return _linux_pairs(trace)
    cause, effect, certainty = _WakeUps(trace).causes()
    known = np.flatnonzero(cause != NO_EVENT)
    known = known[is_whole(trace, cause[known], effect[known])]
    return pairs_of(cause[known], effect[known], certainty[known])


@cached_with_trace(_ENDED)
def ended_waits(trace: Trace) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the `waits` that end within the trace, and the kernel call that is open on the CPU at each end.

    Cached with the trace, 8 bytes per wait, until `wake_ups` has used it; with this result, `wake_ups` does not need
    the large column of `calls.scanned`.

    Returns:
        uint32 (n,) each: rows of `waits`, in the order of their ends; entries of calls as `calls.open_calls` returns.
    """
    every = waits(trace)
    ended = np.flatnonzero((every.end_value == READY) | (every.end_value == RUNNING))
    # In time order, searches for causes use the processor's cache well.
    ordered = ended[stable_order(every.end_row[ended])].astype(np.uint32)
    return ordered, calls.open_calls(trace, every.end_row[ordered])


def _linux_pairs(trace: Trace) -> Pairs:
    """Return the wake-ups of a Linux trace: for each wait, the last waking event within it that names the thread."""
    code, thread = trace.events.code, trace.events.thread
    causes = np.flatnonzero(code == linux.point_codes()[linux.WAKING])
    state_events = trace.states.event
    can_run = np.isin(trace.catalogue.state_value_of_code[code[state_events]], (READY, RUNNING))
    is_first = np.append(True, thread[state_events[1:]] != thread[state_events[:-1]])[: len(state_events)]
    before = np.where(is_first, -1, np.append(-1, state_events[:-1].astype(np.int64))[: len(state_events)])
    ends_wait = can_run & (is_first | ~np.append(False, can_run[:-1])[: len(state_events)])
    effects, before = state_events[ends_wait].astype(np.int64), before[ends_wait]
    woken, number = trace.payloads.column(causes, 0), trace.payloads.column(effects, 0)
    known, rank = np.unique(woken, return_inverse=True)
    if not len(known):
        return no_pairs()
    index = np.minimum(np.searchsorted(known, number), len(known) - 1)
    order = stable_order(rank.astype(np.int64) << 32 | causes)
    key = (rank.astype(np.int64) << 32 | causes)[order]
    last = np.searchsorted(key, index.astype(np.int64) << 32 | effects) - 1
    cause = causes[order[np.maximum(last, 0)]]
    fits = (last >= 0) & (known[index] == number) & (rank[order[np.maximum(last, 0)]] == index) & (cause > before)
    return pairs_of(cause[fits], effects[fits])


class _WakeUps:
    """Finds the cause of every wake-up.

    An event that names the woken thread is preferred to an event that could only have woken it.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.waits: Waits = waits(trace)
        self.wait, self.call = ended_waits(trace)
        trace.forget(_ENDED)  # 8 bytes per wait that nothing else needs
        self.row = self.waits.end_row[self.wait]
        self.begin = self.waits.row[self.wait]
        self.value = self.waits.value[self.wait]
        self.thread = self.waits.thread[self.wait]  # int32
        self.cause = np.full(len(self.wait), NO_EVENT, np.uint32)
        self.certainty = np.zeros(len(self.wait), np.uint8)
        self.numbers = call_numbers(trace.release)
        own = np.flatnonzero(self.call != NO_EVENT)
        self.call[own[trace.events.thread[self.call[own]] == self.thread[own]]] = NO_EVENT
        self.call_number = number_of(trace, self.call)

    def causes(self) -> Pairs:
        """Return for every wake-up its cause (`NO_EVENT` for none), its row, and the certainty of the cause."""
        if len(self.wait):
            self._replies()
            self._receipts()
            self._objects()
            self._timers()
            self._ends_of_threads()
            self._signals()
            self._outside()
            self._interrupts()
        return self.cause, self.row, self.certainty

    def _offer(self, wakeups: NDArray[np.intp], rows: NDArray[np.uint32], certainty: Certainty) -> None:
        """Set causes (`NO_EVENT` = none) of wake-ups that have no cause yet."""
        is_new = (self.cause[wakeups] == NO_EVENT) & (rows != NO_EVENT)
        self.cause[wakeups[is_new]] = rows[is_new]
        self.certainty[wakeups[is_new]] = certainty

    def _in(self, *states: str) -> NDArray[np.intp]:
        """Return the wake-ups without a cause so far that end a wait in one of the named states, intp (k,)."""
        return np.flatnonzero(self._are_from(states) & (self.cause == NO_EVENT))

    def _are_from(self, states: tuple[str, ...]) -> NDArray[np.bool_]:
        """Return whether each wake-up ends a wait in one of the states, bool (n,)."""
        are_from = np.zeros(len(self.value), np.bool_)
        for name in states:  # comparisons are ten times as fast as a table
            are_from |= self.value == STATE_BY_NAME[name].value
        return are_from

    def _called(self, wakeups: NDArray[np.intp], names: tuple[str, ...]) -> NDArray[np.intp]:
        """Return those wake-ups at which another thread is in one of the named kernel calls on the CPU, intp (k,)."""
        numbers = [self.numbers[name] for name in names if name in self.numbers]
        return wakeups[np.isin(self.call_number[wakeups], numbers)]

    def _last_naming(
        self, rows: NDArray[np.uint32], thread: NDArray[np.int64], wakeups: NDArray[np.intp]
    ) -> NDArray[np.uint32]:
        """Return for each wake-up the last event within the wait that names the woken thread; `NO_EVENT` = none."""
        out = links.last_of_number(rows, thread, self.row[wakeups], self.thread[wakeups], len(self.trace.threads))
        out[out <= self.waits.first_row[self.wait[wakeups]]] = NO_EVENT
        return out

    def _replies(self) -> None:
        trace, wakeups = self.trace, self._in("SEND", "REPLY")
        given = rows_of_codes(trace, messages.REPLY, messages.ERROR)
        if len(wakeups) and len(given):
            tid, pid = comm_words(trace, given)
            self._offer(wakeups, self._last_naming(given, thread_rows(trace, pid, tid), wakeups), Certainty.EXACT)

    def _receipts(self) -> None:
        """Propose as cause the message or pulse that the thread receives next, if the CPU sent it last."""
        trace, wakeups = self.trace, self._in("RECEIVE")
        if not len(wakeups):
            return
        received = rows_of_codes(trace, messages.RECEIPT, messages.PULSE_RECEIPT)
        thread = trace.events.thread[received].astype(np.int64)
        receipt = links.next_of_number(received, thread, self.row[wakeups], self.thread[wakeups], len(trace.threads))
        wakeups, receipt = wakeups[receipt != NO_EVENT], receipt[receipt != NO_EVENT]
        last = last_of_codes(trace, (messages.SEND, *messages.SENDS), self.row[wakeups])
        for table in (messages.messages(trace), messages.pulses(trace)):
            link = table.ended_by(receipt)
            known = np.flatnonzero(link >= 0)
            cause = table.from_row[link[known]]
            is_cause = (cause == last[known]) & (cause > self.begin[wakeups[known]])
            exact = table.certainty[link[known]] == Certainty.EXACT
            self._offer(wakeups[known[is_cause & exact]], cause[is_cause & exact], Certainty.EXACT)
            self._offer(wakeups[known[is_cause & ~exact]], cause[is_cause & ~exact], Certainty.INFERRED)

    def _objects(self) -> None:
        for state, ends in _ENDS_BY_OBJECT.items():
            wakeups = self._called(self._in(state), tuple(ends))
            if not len(wakeups):
                continue
            wait = self.wait[wakeups]
            given, known = objects_of(self.trace, self.call[wakeups], self.call_number[wakeups], ends)
            known &= self.waits.has_object[wait]
            process = self.trace.threads.process
            by = self.trace.events.thread[self.call[wakeups]]
            is_here = process[by] == process[self.thread[wakeups]]
            is_same = (given == self.waits.object[wait]) & is_here
            self._offer(wakeups[known & is_same], self.call[wakeups][known & is_same], Certainty.EXACT)
            # An object in shared memory has another address in each process; a call ends waits for one object only.
            self._offer(wakeups[~known | ~is_here], self.call[wakeups][~known | ~is_here], Certainty.INFERRED)

    def _timers(self) -> None:
        trace = self.trace
        expired = rows_of_codes(trace, calls.TIMER_EVENT)
        if not len(expired):
            return
        (pid, _), (tid, _), (ident, _) = arguments(trace, expired, "pid", "tid", "timer_id")
        thread = thread_rows(trace, pid.astype(np.uint32), tid.astype(np.uint32))
        wakeups = np.flatnonzero((self.cause == NO_EVENT) & ~self._are_from(_UNLIMITED))
        is_timeout = ident == _NO_TIMER
        self._offer(wakeups, self._last_naming(expired[is_timeout], thread[is_timeout], wakeups), Certainty.EXACT)
        wakeups = self._in("INTR")
        last = self._last_naming(expired[~is_timeout], thread[~is_timeout], wakeups)
        known = np.flatnonzero(last != NO_EVENT)
        known = known[calls.quiet_between(trace, last[known], self.row[wakeups[known]])]
        self._offer(wakeups[known], last[known], Certainty.INFERRED)

    def _ends_of_threads(self) -> None:
        """Propose as cause the end of a thread that was joined, or that was the server of a waiting client."""
        trace, threads = self.trace, self.trace.threads
        ended = rows_of_codes(trace, wire.THREAD_DESTROY)
        wakeups = self._in("JOIN", "SEND", "REPLY")
        if not len(ended) or not len(wakeups):
            return
        last = last_of_codes(trace, (wire.THREAD_DESTROY,), self.row[wakeups])
        keep = np.flatnonzero((last != NO_EVENT) & (last > self.begin[wakeups]))
        wakeups, last = wakeups[keep], last[keep]
        dead = trace.events.thread[last].astype(np.int64)
        wait, is_join = self.wait[wakeups], self.value[wakeups] == STATE_BY_NAME["JOIN"].value
        joiners = np.flatnonzero(is_join & (
            ~self.waits.has_object[wait] | (self.waits.object[wait] == threads.tid[dead])))  # fmt: skip
        joiners = joiners[threads.pid[dead[joiners]] == threads.pid[self.thread[wakeups[joiners]]]]
        self._offer(wakeups[joiners], last[joiners], Certainty.EXACT)
        sent = last_sends(trace, self.thread[wakeups], self.row[wakeups])
        known = np.flatnonzero((sent != NO_EVENT) & ~is_join)
        received = messages.messages(trace).ends_of(sent[known])
        to = comm_words(trace, sent[known])[1].view(np.int32)
        is_server = received != NO_EVENT
        is_server[is_server] = trace.events.thread[received[is_server]] == dead[known[is_server]]
        is_process = (received == NO_EVENT) & (to == threads.pid[dead[known]])
        self._offer(wakeups[known[is_server]], last[known[is_server]], Certainty.EXACT)
        self._offer(wakeups[known[is_process]], last[known[is_process]], Certainty.INFERRED)

    def _signals(self) -> None:
        trace, wakeups = self.trace, np.flatnonzero(self.cause == NO_EVENT)
        sent = rows_of_codes(trace, _SIGNAL)
        if not len(sent):
            return
        last = last_of_codes(trace, (_SIGNAL,), self.row[wakeups])
        keep = np.flatnonzero((last != NO_EVENT) & (last > self.begin[wakeups]))
        wakeups, last = wakeups[keep], last[keep]
        # A signal that ends a process wakes its threads one after the other, with no call or thread switch in between.
        call = calls.last_switch(trace, self.row[wakeups])
        fits = (call == NO_EVENT) | (call < last)
        came = interrupt_rows(trace)
        came = came[np.maximum(np.searchsorted(came, self.row[wakeups]) - 1, 0)] if len(came) else last
        is_interrupt = (self.value[wakeups] == STATE_BY_NAME["INTR"].value) & (came > last) & (came < self.row[wakeups])
        fits &= ~is_interrupt
        self._offer(wakeups[fits], last[fits], Certainty.INFERRED)

    def _outside(self) -> None:
        comm = np.arange(wire.CODE_COUNT) >> wire.CLASS_SHIFT == wire.WireClass.COMM
        without = {} if self.trace.code_counts[comm].any() else _ENDS_WITHOUT_COMM
        for state, names in (*_ENDS_FROM_OUTSIDE.items(), *without.items()):
            wakeups = self._in(state) if state else np.flatnonzero(self.cause == NO_EVENT)
            wakeups = self._called(wakeups, names)
            self._offer(wakeups, self.call[wakeups], Certainty.INFERRED)

    def _interrupts(self) -> None:
        """Propose interrupts as causes of the ends of InterruptWait(), and of timed waits if no expiries are logged."""
        trace = self.trace
        wakeups = self._in("INTR")
        wakeups = wakeups[self.call[wakeups] == NO_EVENT]
        self._offer(wakeups, self._attached(wakeups), Certainty.EXACT)
        wakeups = wakeups[self.cause[wakeups] == NO_EVENT]
        own = self.thread[wakeups].astype(np.int64)
        interrupt, is_only = calls.last_of_usual(trace, self.row[wakeups], own, self.begin[wakeups])
        self._offer(wakeups[is_only], interrupt[is_only], Certainty.EXACT)
        self._offer(wakeups, interrupt, Certainty.INFERRED)
        if trace.code_counts[calls.TIMER_EVENT]:
            return
        wakeups = self._in("NANOSLEEP", *_LIMITED)
        wakeups = wakeups[self.call[wakeups] == NO_EVENT]
        one_group = np.zeros(len(wakeups), np.int64)
        interrupt, _ = calls.last_of_usual(trace, self.row[wakeups], one_group, self.begin[wakeups])
        self._offer(wakeups, interrupt, Certainty.INFERRED)

    def _attached(self, wakeups: NDArray[np.intp]) -> NDArray[np.uint32]:
        """Return for each wake-up the last interrupt in the wait whose number the thread attached to, uint32 (n,).

        It is `NO_EVENT` if there is none, for threads that used several numbers, and from 8.0 on, where interrupt
        events show an id instead of the number.
        """
        trace, out = self.trace, np.full(len(wakeups), NO_EVENT, np.uint32)
        attached = entries_of(trace, "INTERRUPT_ATTACH", "INTERRUPT_UNMASK")
        if trace.release is Release.QNX_8 or not len(attached) or not len(wakeups):
            return out
        number, known = argument(trace, attached, "intr")
        by, number = trace.events.thread[attached[known]], number[known] & 0xFFFFFFFF
        entries = interrupt_rows(trace)
        vector = calls.interrupt_numbers(trace)
        for thread in np.unique(self.thread[wakeups]).tolist():
            own = np.unique(number[by == thread])
            if len(own) == 1:
                of_thread = np.flatnonzero(self.thread[wakeups] == thread)
                came = entries[vector == own[0]]
                last = np.searchsorted(came, self.row[wakeups[of_thread]]) - 1
                cause = came[np.maximum(last, 0)] if len(came) else np.full(len(of_thread), NO_EVENT, np.uint32)
                fits = (last >= 0) & (cause > self.begin[wakeups[of_thread]])
                out[of_thread[fits]] = cause[fits]
        return out


def last_sends(trace: Trace, thread: NDArray[np.integer], rows: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the SND_MESSAGE of the last message that each thread sent before an event, uint32 (n,); `NO_EVENT` = none.

    Args:
        trace: The events.
        thread: (n,), rows of the thread table.
        rows: uint32 (n,), rows of the event table.
    """
    out = np.full(len(rows), NO_EVENT, np.uint32)
    key = trace.cached("links.sends_by_thread", _sends_by_thread)
    position = positions(key, thread.astype(np.int64) << 32 | rows) - 1
    preceded = np.flatnonzero(position >= 0)
    last = key[position[preceded]]
    fits = last >> 32 == thread[preceded]
    out[preceded[fits]] = (last[fits] & 0xFFFFFFFF).astype(np.uint32)
    return out


def _sends_by_thread(trace: Trace) -> NDArray[np.int64]:
    sends = messages.sends_of(trace)
    thread = trace.events.thread[sends]
    order = stable_order(thread)
    return thread[order].astype(np.int64) << 32 | sends[order]
