"""Differences between slow and fast instances of an activity, within one trace or across several.

Means over instances are compared. The significance of a difference is given in standard errors, from the spread of the
instances. Threads, calls and servers of different traces are matched by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from satview.analysis.activities import LEAST_INSTANCES, Instances
from satview.analysis.blame import BLAME_WORDS, Blame, BlameParts, blame, object_words
from satview.analysis.times.basis import sum_by
from satview.answers.frames import Texts
from satview.answers.functions import SEPARATOR, call_stacks
from satview.answers.table import Column, Kind, Question, Table
from satview.base.column_arrays import numbers_of
from satview.events import wire
from satview.events.states import RUNNING
from satview.linkage.transactions import addressed_messages
from satview.linkage.waits import state_values
from satview.store.time_ranges import TimeRanges
from satview.store.trace import Trace
from satview.timeline.lane_classes import LANE_CLASS_BY_NAME

_Ints = NDArray[np.int64]
MOST_COMPARED: Final = 1000
"""Maximum number of slow instances, and of fast instances, that are compared."""
_MOST_EVENTS: Final = 1 << 24  # in the instances that are split; bounds time and memory
_MOST_CAUSES: Final = 100
_SURE: Final = 4.0  # standard errors
_LIKELY: Final = 2.0
_HOW_SURE: Final = ("sure", "likely", "unsure")
_SURE_COLUMN: Final = Column("sure", Kind.TEXT, f"`sure`: the difference is {_SURE:g} standard errors or more; "
                             f"`likely`: {_LIKELY:g}; `unsure`: less", "Sure")  # fmt: skip
_WHOM: Final = Column("whom", Kind.THREAD, "with whom", "Whom", is_nullable=True)
OF_ACTIVITY: Final = Column("activity", Kind.TEXT, "of which activity", "Activity")
"""First column of these tables in SQL, where they have the rows of all activities."""
COMPARISON: Final = Question(
    "slow_against_fast",
    "Slow against fast",
    "What do slow instances have that fast ones have not?",
    (
        Column("part", Kind.TEXT, "what the time was spent with", "Part"),
        _WHOM,
        Column("what", Kind.TEXT, "which interrupt, lock, or state", "What"),
        Column("explains", Kind.DURATION, "mean of the slow ones less that of the fast ones", "Explains"),
        Column("share", Kind.SHARE, "of what slow ones take longer; none if they do not", "Share", sql="",
               is_nullable=True),
        Column("slow", Kind.DURATION, "mean of the slow ones", "Slow"),
        Column("fast", Kind.DURATION, "mean of the fast ones", "Fast"),
        Column("in_slow", Kind.COUNT, "slow ones that have any of it", "In slow"),
        Column("in_fast", Kind.COUNT, "fast ones that have any of it", "In fast"),
        _SURE_COLUMN,
        Column("event", Kind.EVENT, "the event that begins the slow instance with most of it; none if all are in "
               "other traces", "Event", is_nullable=True),
    ),
    "",
    "Slow and fast instances spend their time alike, or there are too few of them.",
    note="the slowest tenth against the faster half; what the slow ones have less of is left out",
)  # fmt: skip
CAUSES: Final = Question(
    "more_in_slow",
    "More in slow ones",
    "What happens more often in slow instances than in fast ones?",
    (
        Column("cause", Kind.TEXT, "`CPU moved`: the thread runs on another CPU than before; `call`: of the kernel; "
               "`message`: sent to a server; `page fault`", "Happens"),
        Column("what", Kind.TEXT, "which call or server", "What"),
        Column("slow", Kind.FIGURE, "how often in a slow one, on average", "Slow"),
        Column("fast", Kind.FIGURE, "how often in a fast one, on average", "Fast"),
        Column("in_slow", Kind.COUNT, "slow ones that have any", "In slow"),
        Column("in_fast", Kind.COUNT, "fast ones that have any", "In fast"),
        _SURE_COLUMN,
        Column("event", Kind.EVENT, "the first of these in the longest slow instance that has any; none if all are in "
               "other traces", "Event", is_nullable=True),
    ),
    "",
    "Nothing happens more often in slow instances, or there are too few of them.",
    note="what the thread itself does, and only what is likely or sure; it takes time of the parts above",
)  # fmt: skip
PATHS: Final = Question(
    "slow_paths",
    "Paths of slow ones",
    "Which ways do slow instances take that fast ones do not?",
    (
        Column("via", Kind.TEXT, "`waits`: whom it waits for, and what that one does or waits for meanwhile; "
               "`functions`: entered within the instance, each called by the one before", "Via"),
        Column("path", Kind.TEXT, "the steps, one after the other", "Path"),
        Column("explains", Kind.DURATION, "mean time at its end in slow ones, less that in fast ones", "Explains"),
        *(replace(column, meaning=f"of the time there: {column.meaning}") if column.kind is Kind.DURATION else column
          for column in COMPARISON.columns[4:7]),
        Column("in_slow", Kind.COUNT, "slow ones that come there", "In slow"),
        Column("in_fast", Kind.COUNT, "fast ones that come there", "In fast"),
        *COMPARISON.columns[9:],
    ),
    "",
    "Slow and fast instances take the same ways, or there are too few of them.",
    note="of the parts above those that are spent with others, and functions where these log their calls",
)  # fmt: skip
_VIA: Final = ("waits", "functions")


@dataclass(frozen=True, slots=True)
class Sample:
    """Instances of one trace that take part in a comparison.

    Attributes:
        trace: The events.
        instances: The instances.
    """

    trace: Trace
    instances: Instances


class Measured(Protocol):
    """Interface: the instances of one activity in a trace; the trace need not be open before `samples` is called."""

    @property
    def response_s(self) -> NDArray[np.float64]:
        """Response time of each instance, seconds, float64 (n,)."""

    def samples(self, *chosen: _Ints) -> tuple[Sample, ...]:
        """Return one sample for each given array of instance indices, int64 (k,)."""


@dataclass(frozen=True, slots=True)
class SlowAgainstFast:
    """Differences between slow and fast instances.

    Attributes:
        times: Parts of the time that are longer in slow instances.
        causes: Events that happen more often in slow instances.
        paths: Paths (chains of awaited threads, or of called functions) that take longer in slow instances.
    """

    times: Table
    causes: Table
    paths: Table


def split(trace: Trace, instances: Instances) -> tuple[int, BlameParts]:
    """Return the number of instances, sorted by start, that are split, and how their times are spent (`blame`).

    So many instances are taken that they have at most `_MOST_EVENTS` events in total, but at least one.
    """
    begin, over = (np.searchsorted(trace.events.time_cycles, times) for times in
                   (instances.start_cycles, instances.end_cycles))  # fmt: skip
    count = max(1, int(np.searchsorted(np.cumsum(over - begin), _MOST_EVENTS, side="right")))
    chosen = instances.taken(np.arange(min(count, len(instances))))
    return len(chosen), blame(trace, chosen.thread, chosen.start_cycles, chosen.begin_cycles, chosen.end_cycles)


def thinned(positions: _Ints, most: int = MOST_COMPARED) -> _Ints:
    """Return at most `most` of the positions, evenly distributed, int64 (k,)."""
    return positions[np.unique(np.linspace(0, len(positions) - 1, min(most, len(positions))).astype(np.int64))]


def part_columns(trace: Trace, kind: _Ints, thread: _Ints, value: _Ints) -> dict[str, Texts | _Ints]:
    """Return the table columns `part`, `whom` and `what`, which describe parts of time, (n,) each.

    Args:
        trace: The trace.
        kind: int64 (n,), use of the time, as in `Blame`.
        thread: int64 (n,), rows of the thread table; 0 = not known.
        value: int64 (n,), number of the object, whose meaning depends on `kind`.
    """
    return {
        "part": Texts(kind.astype(np.uint8), tuple(BLAME_WORDS.values())),
        "whom": np.where(thread > 0, thread, -1),
        "what": Texts.of([object_words(trace, *pair) for pair in zip(kind.tolist(), value.tolist(), strict=True)]),
    }


def name_whom(trace: Trace, whom: _Ints) -> dict[str, Callable[[int], str]]:
    """Return for column `whom` the function that names the thread or server of a row, or returns an empty text."""
    return {"whom": lambda row: trace.thread_name(int(whom[row])) if whom[row] > 0 else ""}


@dataclass(slots=True)
class _Pool:
    """Collects the parts, events and paths of all slow, or all fast, instances of several traces."""

    names: dict[str, int]  # numbers of the names of threads and events; shared by both pools
    ways: dict[str, int]  # numbers of the paths; shared by both pools
    trace: Trace  # to which tables refer; events of other traces are not referred to
    is_by_name: bool  # of several traces: threads are numbers from `names`, not rows of a thread table
    count: int = 0
    left_out: int = 0
    responses: list[_Ints] = field(default_factory=list)
    interval: list[_Ints] = field(default_factory=list)
    key: list[_Ints] = field(default_factory=list)  # kind, thread, value
    cycles: list[_Ints] = field(default_factory=list)
    instance: list[_Ints] = field(default_factory=list)
    happens: list[_Ints] = field(default_factory=list)
    start_row: list[_Ints] = field(default_factory=list)  # of instances; -1 = in another trace
    happens_row: list[_Ints] = field(default_factory=list)
    way: list[_Ints] = field(default_factory=list)
    way_instance: list[_Ints] = field(default_factory=list)
    way_cycles: list[_Ints] = field(default_factory=list)

    def add(self, sample: Sample) -> None:
        if not len(sample.instances):
            return
        count, parts = split(sample.trace, sample.instances)
        chosen = sample.instances.taken(np.arange(count))
        self.left_out += len(sample.instances) - count
        top = np.flatnonzero(parts.parent < 0)
        kind, thread, value = parts.kind[top], parts.thread[top], parts.value[top]
        if self.is_by_name:
            thread = _numbers(self.names, thread, lambda row: sample.trace.thread_name(row) if row > 0 else "")
            value = np.where(np.isin(kind, (Blame.LOCK, Blame.MESSAGE)), -1, value)  # addresses and pids of one run
        self.interval.append(parts.interval[top] + self.count)
        self.key.append(np.stack((kind, thread, value)))
        self.cycles.append(self._on_own_clock(sample.trace, parts.cycles[top]))
        self.responses.append(self._on_own_clock(sample.trace, chosen.response_cycles))
        is_own = sample.trace is self.trace
        self.start_row.append(np.where(is_own, chosen.start_row, -1))
        for rows, what in _happenings(sample.trace, chosen):
            instance, position = _within(sample.trace, chosen, rows)
            self.instance.append(instance + self.count)
            self.happens.append(_numbers(self.names, what[0][position], what[1]))
            self.happens_row.append(np.where(is_own, rows[position], -1))
        for way, instance, cycles in (self._waits(sample.trace, parts), self._calls(sample.trace, chosen)):
            self.way.append(way)
            self.way_instance.append(instance + self.count)
            self.way_cycles.append(self._on_own_clock(sample.trace, cycles))
        self.count += count

    def _on_own_clock(self, trace: Trace, cycles: _Ints) -> _Ints:
        """Return durations of another trace in cycles of `self.trace`, int64 (n,)."""
        rate, own_rate = trace.clock.cycles_per_s, self.trace.clock.cycles_per_s
        return cycles if rate == own_rate else np.rint(cycles * (own_rate / rate)).astype(np.int64)

    def _waits(self, trace: Trace, parts: BlameParts) -> tuple[_Ints, _Ints, _Ints]:
        """Return path, instance and cycles of each part of an awaited thread's time while the instance waits."""
        inner = np.flatnonzero(parts.parent >= 0)
        value = np.where(np.isin(parts.kind, (Blame.LOCK, Blame.MESSAGE)) & self.is_by_name, -1, parts.value)
        steps = np.stack((parts.kind, parts.thread, value))
        keys, which = np.unique(np.concatenate((steps[:, parts.parent[inner]], steps[:, inner])), axis=1,
                                return_inverse=True)  # fmt: skip
        ways = [f"{_VIA[0]}\n{_step(trace, *key[:3])} > {_step(trace, *key[3:])}" for key in keys.T.tolist()]
        number = _numbers(self.ways, np.arange(len(ways)), lambda way: ways[way])
        return number[which.reshape(-1)], parts.interval[inner], parts.cycles[inner]

    def _calls(self, trace: Trace, instances: Instances) -> tuple[_Ints, _Ints, _Ints]:
        """Return path, instance and own cycles of each function call that begins within an instance, int64 (n,)."""
        calls = call_stacks(trace)
        is_own = np.isin(trace.events.thread[calls.entry_row], np.unique(instances.thread))
        of_threads = np.flatnonzero(is_own & (calls.stack >= 0))
        instance, position = _within(trace, instances, calls.entry_row[of_threads])
        call = of_threads[position]
        length = np.minimum(calls.end_cycles[call], instances.end_cycles[instance]) - calls.start_cycles[call]
        key, caller = instance << 32 | call, calls.parent[call]
        order = np.argsort(key, kind="stable")
        place = np.minimum(np.searchsorted(key[order], instance << 32 | np.maximum(caller, 0)), max(len(key) - 1, 0))
        own = length.copy()
        if len(key):
            is_called = (caller >= 0) & (key[order][place] == (instance << 32 | np.maximum(caller, 0)))
            np.subtract.at(own, order[place[is_called]], length[is_called])
        ways = [f"{_VIA[1]}\n{stack.replace(SEPARATOR, ' > ')}" for stack in calls.stacks]
        return _numbers(self.ways, calls.stack[call], lambda stack: ways[stack]), instance, own


def _numbers(names: dict[str, int], values: _Ints, name: Callable[[int], str]) -> _Ints:
    """Return for each value the number of its name in `names`; new names are added; int64 (n,)."""
    kinds, which = np.unique(values, return_inverse=True)
    numbers = [names.setdefault(name(kind), len(names)) for kind in kinds.tolist()]
    return np.array(numbers, np.int64)[which.reshape(-1)]


def _step(trace: Trace, kind: int, thread: int, value: int) -> str:
    """Return the text of one step of a path, such as `lock 0x80d4390 of logger 1 (writer)`."""
    what, whom = object_words(trace, kind, value), trace.thread_name(thread) if thread > 0 else ""
    if kind in (Blame.INTERRUPT, Blame.LOCK):
        return f"{what or BLAME_WORDS[Blame(kind)]}{f' of {whom}' if whom else ''}"
    link = {Blame.MESSAGE: "to", Blame.PREEMPTED: "by", Blame.TRACING: "by", Blame.WAIT: "ended by"}.get(
        Blame(kind), "of"
    )
    return f"{BLAME_WORDS[Blame(kind)]}{f' {what}' if what else ''}{f' {link} {whom}' if whom else ''}"


def _happenings(trace: Trace, instances: Instances) -> list[tuple[_Ints, tuple[_Ints, Callable[[int], str]]]]:
    """Return rows, numbers and texts by number of the events that may slow instances down, by kind of event.

    Some of the events are outside the instances; `_within` leaves these out.
    """
    threads, states = np.unique(instances.thread), trace.states
    is_wanted = np.zeros(len(trace.threads), np.bool_)
    is_wanted[threads] = True
    own_states = numbers_of(states.start[threads], states.start[threads + 1] - states.start[threads])
    runs = states.event[own_states[state_values(trace)[own_states] == RUNNING]].astype(np.int64)
    thread, cpu = trace.events.thread[runs], trace.events.cpu[runs]
    moves = runs[1:][(thread[1:] == thread[:-1]) & (cpu[1:] != cpu[:-1])]
    within = TimeRanges.of(instances.begin_cycles, instances.end_cycles + 1)
    begin, end = (np.searchsorted(trace.events.time_cycles, edges) for edges in (within.start, within.end))
    rows = numbers_of(begin, end - begin)
    rows = rows[is_wanted[trace.events.thread[rows]]]
    code = trace.events.code[rows].astype(np.int64)
    is_entry = (code >> wire.CLASS_SHIFT == wire.WireClass.KER_CALL) & (code & wire.KER_FORM == 0)
    calls, code, faults = rows[is_entry], code[is_entry], rows[np.isin(code, LANE_CLASS_BY_NAME["faults"].codes)]
    sent, server_pid = addressed_messages(trace)
    client = trace.events.thread[sent]
    own = np.flatnonzero((client > 0) & is_wanted[client] & (server_pid > 0))
    pids = dict(zip(trace.processes.pid.tolist(), range(len(trace.processes)), strict=True))
    nothing = np.zeros
    return [
        (moves, (nothing(len(moves), np.int64), lambda _: "CPU moved\n")),
        (calls, (code, lambda code: f"call\n{trace.catalogue.name(code)}")),
        (sent[own].astype(np.int64), (server_pid[own], lambda pid: f"message\n{trace.short_process_name(pids[pid])}"
                               if pid in pids else f"message\npid {pid}")),
        (faults, (nothing(len(faults), np.int64), lambda _: "page fault\n")),
    ]  # fmt: skip


def _within(trace: Trace, instances: Instances, rows: _Ints) -> tuple[_Ints, _Ints]:
    """Return all pairs of an instance and an event of its thread inside it, (n,) each: instance, position in `rows`."""
    key = trace.events.thread[rows].astype(np.int64) << 32 | rows
    order = np.argsort(key, kind="stable")
    begin = np.searchsorted(trace.events.time_cycles, instances.begin_cycles)
    last = np.where(instances.end_row < 0, len(trace.events), instances.end_row)
    low, high = (np.searchsorted(key[order], instances.thread << 32 | edge) for edge in (begin, last))
    count = np.maximum(high - low, 0)
    return np.repeat(np.arange(len(instances)), count), order[numbers_of(low, count)]


def compared(
    trace: Trace, samples: Iterable[tuple[Sample, bool]], *, is_by_name: bool, cannot_tell: str = "", note: str = ""
) -> SlowAgainstFast:
    """Return the differences between slow and fast instances.

    Args:
        trace: The trace to whose events and clock the tables refer.
        samples: For each sample, its instances and whether they are slow; read one at a time, so that only one of many
            traces must be open.
        is_by_name: True if samples are of several traces, so that threads and servers are matched by name.
        cannot_tell: More reasons to show as `cannot_tell` of the tables.
        note: Text about which instances are compared; empty = the slowest tenth against the faster half.
    """
    names, ways, wanted = {"": 0}, dict[str, int](), 0
    slow, fast = pools = _Pool(names, ways, trace, is_by_name), _Pool(names, ways, trace, is_by_name)
    for sample, is_slow in samples:
        wanted += len(sample.instances)
        (slow if is_slow else fast).add(sample)
    if left_out := slow.left_out + fast.left_out:
        missing = f"only {wanted - left_out:,} of {wanted:,} instances are compared: others are too long"
        cannot_tell = "\n".join(filter(None, (cannot_tell, missing)))
    return SlowAgainstFast(_times(trace, pools, cannot_tell, note), _causes(trace, pools, cannot_tell, note),
                    _paths(trace, pools, cannot_tell, note))  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Longer:
    """Kinds of parts, or paths (`sort`), in which slow instances spend more time than fast ones, the largest first."""

    sort: _Ints
    columns: dict[str, _Ints | NDArray[np.float64] | Texts]

    @classmethod
    def of(cls, pools: tuple[_Pool, _Pool], parts: Sequence[tuple[_Ints, _Ints, _Ints]], count: int) -> _Longer:
        """Return the comparison of slow instances with fast ones.

        `parts` has for each pool the number of the kind or path of each part of the responses, its instance, and its
        cycles.
        """
        in_slow, in_fast = (_Sums.of(*part, count, pool.count) for part, pool in zip(parts, pools, strict=True))
        longer = in_slow.mean - in_fast.mean
        order = np.argsort(-longer, kind="stable")
        order = order[longer[order] >= 1]
        if not all(pool.count for pool in pools):
            order = order[:0]
        error = np.maximum(np.sqrt(in_slow.error + in_fast.error), 1)
        responses = [_joined(pool.responses) for pool in pools]
        whole = float(responses[0].mean() - responses[1].mean()) if all(map(len, responses)) else 0.0
        sort, instance, cycles = parts[0]
        return cls(order, {
            "explains": longer[order].astype(np.int64),
            "share": longer[order] / whole if whole >= 1 else np.full(len(order), -1.0),
            "slow": in_slow.mean[order].astype(np.int64),
            "fast": in_fast.mean[order].astype(np.int64),
            "in_slow": in_slow.times[order],
            "in_fast": in_fast.times[order],
            "sure": _how_sure(longer[order] / error[order], pools[0].count),
            "event": _events(sort, count, -cycles, _joined(pools[0].start_row)[instance])[order],
        })  # fmt: skip


def _times(trace: Trace, pools: tuple[_Pool, _Pool], cannot_tell: str, note: str) -> Table:
    key = np.concatenate([np.empty((3, 0), np.int64), *pools[0].key, *pools[1].key], axis=1)
    groups, which = np.unique(key, axis=1, return_inverse=True)
    which, edge = which.reshape(-1), len(_joined(pools[0].interval))
    parts = [(sort, _joined(pool.interval), _joined(pool.cycles))
             for sort, pool in zip((which[:edge], which[edge:]), pools, strict=True)]  # fmt: skip
    longer = _Longer.of(pools, parts, groups.shape[1])
    kind, thread, value = (column[longer.sort] for column in groups)
    columns = part_columns(trace, kind, thread, value)
    question, texts = COMPARISON, name_whom(trace, thread)
    if pools[0].is_by_name:
        names, texts = list(pools[0].names), {}
        columns["whom"] = Texts.of([names[number] for number in thread.tolist()])
        text = replace(_WHOM, kind=Kind.TEXT, is_nullable=False)
        question = replace(question, columns=tuple(text if one is _WHOM else one for one in question.columns))
    if note:
        question = replace(question, note=note)
    return Table(question, trace, {**columns, **longer.columns}, cannot_tell=cannot_tell, texts=texts)


def _paths(trace: Trace, pools: tuple[_Pool, _Pool], cannot_tell: str, note: str) -> Table:
    ways = list(pools[0].ways)
    parts = [(_joined(pool.way), _joined(pool.way_instance), _joined(pool.way_cycles)) for pool in pools]
    longer = _Longer.of(pools, parts, len(ways))
    via, path = zip(*(ways[number].split("\n", 1) for number in longer.sort.tolist()), strict=True) if len(
        longer.sort) else ((), ())  # fmt: skip
    question = replace(PATHS, note=f"{note}; {PATHS.note}") if note else PATHS
    return Table(question, trace, {"via": Texts.of(list(via)), "path": Texts.of(list(path)), **longer.columns},
                 cannot_tell=cannot_tell)  # fmt: skip


def _causes(trace: Trace, pools: tuple[_Pool, _Pool], cannot_tell: str, note: str) -> Table:
    names, slow_pool = list(pools[0].names), pools[0]
    sums = []
    for pool in pools:
        sort, instance = _joined(pool.happens), _joined(pool.instance)
        sums.append(_Sums.of(sort, instance, np.ones(len(sort), np.int64), len(names), pool.count))
    in_slow, in_fast = sums
    more = in_slow.mean - in_fast.mean
    # A difference of one instance is never sure: this is the least error of a mean.
    error = np.maximum(np.sqrt(in_slow.error + in_fast.error), 1 / max(1, pools[0].count))
    ratio = more / error
    order = np.lexsort((-more, -np.minimum(ratio, _SURE)))
    order = order[(ratio[order] >= _LIKELY) & (pools[0].count >= LEAST_INSTANCES) & (pools[1].count > 0)]
    left_out, order = max(0, len(order) - _MOST_CAUSES), order[:_MOST_CAUSES]
    cause, what = zip(*(names[number].partition("\n")[::2] for number in order.tolist()), strict=True) if len(
        order) else ((), ())  # fmt: skip
    slow, fast = in_slow.mean[order], in_fast.mean[order]
    return Table(
        replace(CAUSES, note=f"{note}; {CAUSES.note}") if note else CAUSES,
        trace,
        {
            "cause": Texts.of(list(cause)),
            "what": Texts.of(list(what)),
            "slow": slow,
            "fast": fast,
            "in_slow": in_slow.times[order],
            "in_fast": in_fast.times[order],
            "sure": _how_sure(ratio[order], pools[0].count),
            "event": _events(
                _joined(slow_pool.happens),
                len(names),
                -_joined(slow_pool.responses)[_joined(slow_pool.instance)],
                _joined(slow_pool.happens_row),
            )[order],
        },
        cannot_tell=f"{left_out:,} more are left out, that are less sure" if left_out else "" if cause else cannot_tell,
        texts={"slow": lambda row: f"{slow[row]:.2f}", "fast": lambda row: f"{fast[row]:.2f}"},
    )


def _events(sort: _Ints, sorts: int, rank: _Ints, row: _Ints) -> _Ints:
    """Return for each kind the event of this trace with the lowest rank, the first of several; -1 = none."""
    order = np.lexsort((row, rank, sort))
    order = order[row[order] >= 0]
    out = np.full(sorts, -1, np.int64)
    kinds, leaders = np.unique(sort[order], return_index=True)
    out[kinds] = row[order][leaders]
    return out


def _joined(columns: Sequence[_Ints]) -> _Ints:
    return np.concatenate([np.empty(0, np.int64), *columns])


def _how_sure(ratio: NDArray[np.float64], slow_count: int) -> Texts:
    sure = np.where(ratio >= _SURE, 0, np.where(ratio >= _LIKELY, 1, 2)).astype(np.uint8)
    if slow_count < LEAST_INSTANCES:
        sure[:] = 2  # one slow instance has no spread
    return Texts(sure, _HOW_SURE)


@dataclass(frozen=True, slots=True)
class _Sums:
    """Statistics over instances for each kind of part or event; every column has shape (kinds,)."""

    times: _Ints  # number of instances in which the kind occurs
    mean: NDArray[np.float64]  # mean amount over all instances; instances without the kind count as 0
    error: NDArray[np.float64]  # squared standard error of the mean

    @classmethod
    def of(cls, sort: _Ints, instance: _Ints, amount: _Ints, sorts: int, count: int) -> _Sums:
        """Return the statistics of amounts that have a kind (`sort`) and an instance each, over `count` instances."""
        count = max(1, count)
        pairs, which = np.unique(sort * count + instance, return_inverse=True)
        sort, amount = pairs // count, sum_by(which.reshape(-1), amount, len(pairs))
        mean = sum_by(sort, amount, sorts) / count
        squares = np.bincount(sort, amount.astype(np.float64) ** 2, sorts)
        spread = np.maximum(squares / count - mean**2, 0)
        return cls(np.bincount(sort, minlength=sorts), mean, spread / count)
