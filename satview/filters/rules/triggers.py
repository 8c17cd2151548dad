"""Triggers: `WHEN condition THEN MARK "late"; KEEP 20 buffers; STOP`, for views, captures and streams.

A trigger hits at each event that passes the rules and fits its condition. The condition is decided with the values
known at that event. `latency("tick", "done")` is the time between two events of one thread: from the last "tick" before
a "done" to that "done". It is known at that "done" and at later events of the thread, up to the next "tick" or "done".
A rule counts each such span once: after its hit the latency is unknown. An event that is both ends of the pair ends
one span and begins the next.

`store.mark_file` describes how a hit is recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.time import NS_PER_S
from satview.core.links import stable_order
from satview.filters.derived_columns import UNKNOWN, Bools, DerivedColumns, TraceDerivedColumns
from satview.filters.expressions import nodes
from satview.filters.expressions.compiled import compile_expression
from satview.filters.expressions.expression import Expression, evaluate
from satview.filters.expressions.reach import codes_that_fit
from satview.filters.external import EventContext
from satview.filters.rules.text import Action
from satview.linkage.links import is_whole
from satview.store.trace import Trace

DEFAULT_MARK: Final = "hit"
MOST_THREADS: Final = 1 << 16
"""Number of threads whose spans are kept; if there are more, those without events for longest are forgotten."""
_Rows = NDArray[np.int64]
_NONE: Final = -1


@dataclass(frozen=True, slots=True)
class Trigger:
    """One `WHEN` line of rules, from line 1: a condition, and the action at each event that fits it."""

    condition: Expression
    action: Action
    line: int = 0

    @property
    def mark(self) -> str:
        """Text of the marks that the trigger makes."""
        return self.action.mark or DEFAULT_MARK

    @property
    def codes(self) -> Bools:
        """Codes of the events that must be passed to the trigger, bool (32768,)."""
        pair = self.condition.latency
        ends = (part for part in (pair.begins, pair.ends) if part is not None) if pair is not None else ()
        return np.asarray(np.any([codes_that_fit(part) for part in (self.condition.tree, *ends)], axis=0))


class Watch:
    """Tests a trigger on one event after another, as a kernel logs them.

    Args:
        cycles_per_s: Rate of the stamps.

    Attributes:
        forgotten: Number of threads whose spans were dropped, because there were more than `MOST_THREADS`.
    """

    def __init__(self, trigger: Trigger, cycles_per_s: int) -> None:
        self.trigger, self.forgotten = trigger, 0
        self._cycles_per_s = cycles_per_s
        self._spans: dict[tuple[int, int], tuple[int, int | None]] = {}  # begin, -1 for none, and length in nanoseconds

    def hits(self, context: EventContext, cycles: int) -> bool:
        """Return whether the trigger hits at an event; call this once per event, in the order of the stamps.

        Args:
            context: The event; its latency is set here.
            cycles: Stamp of the event.
        """
        condition = self.trigger.condition
        pair, thread = condition.latency, (context.pid, context.tid)
        if pair is None or context.pid < 0:
            return bool(condition(context))
        assert pair.begins is not None
        assert pair.ends is not None
        begins, ends = (evaluate(part, context, condition.release) for part in (pair.begins, pair.ends))
        begin, length_ns = self._spans.get(thread, (_NONE, None))
        if begins or ends:
            length_ns = (cycles - begin) * NS_PER_S // self._cycles_per_s if ends and begin != _NONE else None
            self._keep(thread, cycles if begins else _NONE, length_ns)
        context.latency_ns = length_ns
        is_hit = bool(condition(context))
        if is_hit and length_ns is not None:
            self._keep(thread, self._spans[thread][0], None)
        return is_hit

    def _keep(self, thread: tuple[int, int], begin: int, length_ns: int | None) -> None:
        self._spans.pop(thread, None)  # so that the first one is the thread without events for the longest time
        self._spans[thread] = (begin, length_ns)
        if len(self._spans) > MOST_THREADS:
            del self._spans[next(iter(self._spans))]
            self.forgotten += 1


@dataclass(slots=True)
class _Spans:
    """The state of each thread's span (from the first event of a pair to the last) at the end of one part of a stream.

    All columns are int64 (threads,), sorted by key: `key` is pid << 32 | tid; `begin` is when an unfinished span began,
    in cycles, -1 for none; `length_ns` is the length of the last finished span, -1 for none or one that has hit; `seen`
    is the time of the thread's last event of the pair, in cycles.
    """

    key: _Rows = field(default_factory=lambda: np.empty(0, np.int64))
    begin: _Rows = field(default_factory=lambda: np.empty(0, np.int64))  # cycles, -1 for none
    length_ns: _Rows = field(default_factory=lambda: np.empty(0, np.int64))  # -1 for none, or for one that has hit
    seen: _Rows = field(default_factory=lambda: np.empty(0, np.int64))  # cycles of its last event

    def find(self, key: _Rows) -> _Rows:
        """Return for each thread, given by its key, the index of its entry, int64 (n,); -1 = no entry."""
        if not len(self.key):
            return np.full(len(key), _NONE)
        position = np.minimum(np.searchsorted(self.key, key), len(self.key) - 1)
        return np.where(self.key[position] == key, position, _NONE)


class _WithLatency(TraceDerivedColumns):
    """Derived columns of a trace, with latencies for some of its rows."""

    def __init__(self, trace: Trace, derived: DerivedColumns, rows: _Rows, latency_ns: _Rows) -> None:
        super().__init__(trace)
        self._rows, self._latency_ns = rows, latency_ns
        self.priority = derived.priority  # type: ignore[method-assign]

    def latency_ns(self, rows: NDArray[np.integer]) -> _Rows:
        return np.asarray(self._latency_ns[np.searchsorted(self._rows, rows)])


class Scan:
    """Tests a trigger on all events of a trace at once, or on a stream part by part."""

    def __init__(self, trigger: Trigger) -> None:
        self.trigger, self.forgotten = trigger, 0
        self._spans = _Spans()

    def restart(self) -> None:
        """Forget all spans, because events are missing."""
        self._spans = _Spans()

    def hits(self, trace: Trace, rows: _Rows, derived: DerivedColumns | None = None) -> _Rows:
        """Return the events at which the trigger hits, int64 (n,), ascending.

        Args:
            trace: The trace.
            rows: Rows to test, ascending, after those of the last call.
            derived: Source of priorities; None = computed from the trace.
        """
        condition = self.trigger.condition
        derived = derived or TraceDerivedColumns(trace)
        table = codes_that_fit(condition.tree)
        candidates = rows[table[trace.events.code[rows]]]
        if condition.latency is None:
            return candidates[condition.mask(trace, candidates, derived)]
        ends, key, begin, length_ns = self._ends(trace, rows, condition.latency)
        own = _keys(trace, candidates)
        span = _last_of_thread(ends, key, candidates, own)  # a position among the ends, -1 for none
        kept = self._spans.find(own)
        known = np.where(span >= 0, length_ns[span] if len(ends) else _NONE,
                         self._spans.length_ns[kept] if len(self._spans.key) else _NONE)  # fmt: skip
        known[(own < 0) | ((span < 0) & (kept < 0))] = UNKNOWN
        follows = np.flatnonzero(span >= 0)
        whole = is_whole(trace, ends[span[follows]].astype(np.uint32), candidates[follows].astype(np.uint32))
        known[follows[~whole]] = UNKNOWN
        with_span = condition.mask(trace, candidates, _WithLatency(trace, derived, candidates, known))
        is_hit, spent = self._once(trace, candidates, np.where(span >= 0, span, len(ends) + kept), known, with_span)
        self._go_on(trace, (ends, key, begin, length_ns), spent)
        return candidates[is_hit]

    def _once(
        self, trace: Trace, rows: _Rows, span: _Rows, known: _Rows, with_span: Bools
    ) -> tuple[Bools, NDArray[np.int64]]:
        """Return which events are hits if each span counts once, bool (len(rows),), and the spans that have counted."""
        is_hit = with_span.copy()
        counted = np.flatnonzero(with_span & (known >= 0))
        spent, earliest = np.unique(span[counted], return_index=True)
        later = np.flatnonzero((known >= 0) & np.isin(span, spent))
        later = later[rows[later] > rows[counted[earliest[np.searchsorted(spent, span[later])]]]]
        is_hit[later] = self.trigger.condition.mask(trace, rows[later])  # without a latency
        return is_hit, spent

    def _ends(self, trace: Trace, rows: _Rows, pair: nodes.Latency) -> tuple[_Rows, _Rows, _Rows, _Rows]:
        """Return the events that begin or end a span, sorted by thread and time, without events of unknown threads.

        They are int64 (n,) each: row; thread (pid << 32 | tid); time at which a span begins there, cycles, -1 = none;
        length of the span that ends there, nanoseconds, negative = none or not known.
        """
        begins, ends = (_fitting(trace, rows, part) for part in (pair.begins, pair.ends))
        either = np.union1d(begins, ends)
        key = _keys(trace, either)
        either, key = either[key >= 0], key[key >= 0]
        order = stable_order(key)
        either, key = either[order], key[order]
        is_begin, is_end = np.isin(either, begins), np.isin(either, ends)
        time = trace.events.time_cycles[either].astype(np.int64)
        begin = np.where(is_begin, time, _NONE)
        before = np.full(len(either), _NONE, np.int64)
        follows = np.flatnonzero(key[1:] == key[:-1]) + 1
        before[follows] = begin[follows - 1]
        unsure = follows[~is_whole(trace, either[follows - 1].astype(np.uint32), either[follows].astype(np.uint32))]
        before[unsure] = _NONE
        is_first = np.ones(len(either), np.bool_)
        is_first[follows] = False
        kept = self._spans.find(key)
        continued = np.flatnonzero(is_first & (kept >= 0))
        before[continued] = self._spans.begin[kept[continued]]
        length_ns = np.full(len(either), UNKNOWN, np.int64)
        measured = np.flatnonzero(is_end & (before != _NONE))
        length_ns[measured] = trace.clock.durations_ns(time[measured] - before[measured])
        return either, key, begin, length_ns

    def _go_on(self, trace: Trace, spans: tuple[_Rows, _Rows, _Rows, _Rows], spent: NDArray[np.int64]) -> None:
        """Store the last span of each thread for the next part of the stream.

        `spent` are the spans that have fired: below `len(spans[0])` of `spans`, from there on of those stored before.
        """
        rows, key, begin, length_ns = spans
        length_ns[spent[spent < len(rows)]] = UNKNOWN
        old = self._spans
        old.length_ns[spent[spent >= len(rows)] - len(rows)] = UNKNOWN
        is_last = np.append(key[1:] != key[:-1], True)[: len(key)]
        stays = ~np.isin(old.key, key)
        columns = [
            np.concatenate([before[stays], new[is_last]])
            for before, new in (
                (old.key, key), (old.begin, begin), (old.length_ns, length_ns),
                (old.seen, trace.events.time_cycles[rows].astype(np.int64)),
            )
        ]  # fmt: skip
        if (too_many := len(columns[0]) - MOST_THREADS) > 0:
            self.forgotten += too_many
            newest = np.argsort(columns[3], kind="stable")[too_many:]
            columns = [column[newest] for column in columns]
        order = np.argsort(columns[0])
        self._spans = _Spans(*(column[order] for column in columns))


def _fitting(trace: Trace, rows: _Rows, part: nodes.Node | None) -> _Rows:
    """Return those of some events that meet the condition for one end of a pair (`part`), int64 (k,), ascending."""
    assert part is not None
    candidates = rows[codes_that_fit(part)[trace.events.code[rows]]]
    if not len(candidates):
        return candidates
    return candidates[compile_expression(part, trace, TraceDerivedColumns(trace)).of(candidates)]


def _keys(trace: Trace, rows: _Rows) -> _Rows:
    """Return the thread of each event as pid << 32 | tid, int64 (n,); -1 = not known."""
    thread = trace.events.thread[rows]
    pid, tid = trace.threads.pid[thread].astype(np.int64), trace.threads.tid[thread].astype(np.int64)
    return np.where(pid < 0, _NONE, pid << 32 | np.maximum(tid, 0))


def _last_of_thread(rows: _Rows, key: _Rows, events: _Rows, own: _Rows) -> _Rows:
    """Return for each event the index of the last entry of its thread up to the event, int64 (n,); -1 = none.

    The entries, `rows` with `key`, are sorted by thread and row.
    """
    if not len(rows):
        return np.full(len(events), _NONE)
    threads, thread = np.unique(key, return_inverse=True)
    number = np.minimum(np.searchsorted(threads, own), len(threads) - 1)
    joint = thread.reshape(-1).astype(np.int64) << 32 | rows
    position = np.searchsorted(joint, number.astype(np.int64) << 32 | events, side="right") - 1
    return np.where((position >= 0) & (key[position] == own), position, _NONE)


def trigger_hits(
    triggers: Sequence[Trigger], trace: Trace, passes: Bools | None = None, derived: DerivedColumns | None = None
) -> tuple[_Rows, _Rows]:
    """Return the hits of triggers in a trace: event rows, ascending, and indices in `triggers`, int64 (n,) each.

    Args:
        triggers: The triggers; hits at the same event are in the order of the triggers.
        trace: The trace.
        passes: Events that the rules let pass, bool (events,); None = all.
        derived: Source of priorities; None = computed from the trace.
    """
    rows = np.arange(len(trace.events), dtype=np.int64) if passes is None else np.flatnonzero(passes).astype(np.int64)
    hits = [Scan(trigger).hits(trace, rows, derived) for trigger in triggers]
    joined = np.concatenate(hits) if hits else np.empty(0, np.int64)
    which = np.repeat(np.arange(len(hits)), [len(part) for part in hits])
    order = np.lexsort((which, joined))
    return joined[order], which[order]
