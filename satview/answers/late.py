"""Why activities are late: figures, instances, blame, slow against fast, chains; and bounds of responses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.activities import (
    CALLED,
    LEAST_INSTANCES,
    LEAST_PERIODS,
    MOST_ACTIVITIES,
    MOST_CALLS,
    Activities,
    ChainTimes,
    Instances,
    Timing,
    activities,
    ages,
    bound_cycles,
    chain_of,
    lacks,
    reactions,
    said_needs,
)
from satview.analysis.blame import BLAME_WORDS, Blame, BlameParts, nested_interrupts, part_words, writes_trace
from satview.analysis.doctor import may_be_more
from satview.analysis.needs import CALLS, INTERRUPT_CAUSES, KERNEL, MESSAGES, PULSES, STATES
from satview.analysis.schedulability import Bound, response_bounds
from satview.analysis.times.basis import largest_by, percentiles_by, sum_by
from satview.analysis.times.message_times import Histogram, histogram
from satview.answers.frames import Texts
from satview.answers.late_comparison import (
    CAUSES,
    COMPARISON,
    MOST_COMPARED,
    OF_ACTIVITY,
    PATHS,
    Measured,
    Sample,
    SlowAgainstFast,
    compared,
    name_whom,
    part_columns,
    split,
    thinned,
)
from satview.answers.table import Column, Kind, Known, Question, Table, below_each_other, known_where, least_known
from satview.base.errors import UsageError
from satview.base.threads import Begun
from satview.base.time import format_duration, format_moment
from satview.core.links import stable_order
from satview.linkage.blockers import blockers
from satview.linkage.calls import scanned
from satview.linkage.chain import reading_ahead
from satview.linkage.latencies import deliveries
from satview.linkage.waits import waits
from satview.linkage.wake_ups import wake_ups
from satview.store.time_ranges import TimeRanges, losses
from satview.store.trace import Trace
from satview.timeline.state_lanes import contradicted_runs, run_slices, slices_by_cpu

# Why activities are late: figures, instances, how the time of each was spent (blame), slow against fast instances.


_Ints = NDArray[np.int64]
_LONG: Final = 1 << 20  # events: with fewer, a second thread gains nothing
_NAMED_PARTS: Final = 4  # most parts named in a sentence
_SQL_INSTANCES: Final = 100
_SHARES: Final = (0.0, 0.5, 0.99, 1.0)
_WORDS: Final = ", ".join(f"`{word}`" for word in BLAME_WORDS.values())
_OUTCOMES: Final = ("in time", "late", "done", "unfinished", "unknown")
_REASONS: Final = {
    Known.AT_LEAST: "an instance is not done when the trace ends; counted up to there",
    Known.INFERRED: "it follows from the order of events which of them belong together",
    Known.ESTIMATE: "events are missing, so that some instances are left out",
    Known.UNKNOWN: "events are missing in between, or its thread is not known",
}
_MISSES: Final = {
    Known.AT_LEAST: "events are missing, and instances that are lost with them may be late too",
    Known.UNKNOWN: "events are missing, so that neither its period nor whether it was late is known",
}
_PERIODS: Final = {
    Known.ESTIMATE: "it is learned from starts between which no events are missing",
    Known.UNKNOWN: "too few starts are left between which no events are missing",
}
_DIFFERENCES: Final = _REASONS | {
    Known.AT_MOST: _REASONS[Known.AT_LEAST],
    Known.ESTIMATE: "events are missing, so that the period, which is its deadline, may be another",
    Known.UNKNOWN: "its deadline is its period, which is not known, or events are missing in between",
}
_COUNTS: Final = {Known.AT_LEAST: "events are missing, and whole instances may be among them"}
_JITTER: Final = {
    Known.INFERRED: _REASONS[Known.INFERRED],
    Known.AT_LEAST: "events are missing; what is before them and what is after is not compared",
    Known.ESTIMATE: "events are missing, so that some ends are not compared",
    Known.UNKNOWN: "events are missing between most of them",
}


def _length(name: str, title: str, meaning: str) -> Column:
    return Column(name, Kind.DURATION, meaning, title, is_nullable=True, reasons=_REASONS)


ACTIVITIES: Final = Question(
    "activities",
    "Activities",
    "What is done again and again, how long does it take, and is it in time?",
    (
        Column("activity", Kind.TEXT, "the thread that does it, or its name in a timing file", "Activity"),
        Column("trigger", Kind.TEXT, "what begins it: `pulse`, `message`, `sleep` (its end), `interrupt`, `events` "
               "(of a user), `function`, `call`, or `said`", "Triggered by"),
        Column("thread", Kind.THREAD, "the thread that does it most often"),
        Column("count", Kind.COUNT, "its instances", "Count", reasons=_COUNTS),
        Column("undecided", Kind.COUNT, "of these, those within which events are missing", "Unknown"),
        Column("period", Kind.DURATION, "from start to start, if that is regular", "Period", is_nullable=True,
               reasons=_PERIODS),
        _length("min", "Min", "shortest response: from what triggers it to when it is done"),
        _length("median", "Median", "half of the responses are not longer"),
        _length("p99", "99 %", "99 % of the responses are not longer"),
        _length("max", "Max", "longest response"),
        Column("start_jitter", Kind.DURATION, "longest time from one start to the next, less the shortest",
               "Start jitter", is_nullable=True, reasons=_JITTER),
        Column("end_jitter", Kind.DURATION, "the same of the ends", "End jitter", is_nullable=True, reasons=_JITTER),
        Column("utilisation", Kind.SHARE, "of one CPU: its threads run within its instances", "Utilisation", sql="",
               is_nullable=True, reasons=_REASONS),
        Column("running", Kind.DURATION, "how long its threads run within its instances", is_nullable=True,
               reasons=_REASONS),
        Column("deadline", Kind.DURATION, "how long a response may be", "Deadline", is_nullable=True,
               reasons=_PERIODS),
        Column("deadline_from", Kind.TEXT, "`said` in a timing file, or its `period`", "From", is_nullable=True,
               reasons=_PERIODS),
        Column("misses", Kind.COUNT, "responses longer than the deadline, if there is one", "Misses", is_nullable=True,
               reasons=_MISSES),
        Column("margin", Kind.DURATION, "the deadline less the longest response, if none is missed", "Margin",
               is_nullable=True, reasons=_DIFFERENCES),
        Column("overrun", Kind.DURATION, "the longest response less the deadline, if one is missed", "Overrun",
               is_nullable=True, reasons=_DIFFERENCES),
        Column("event", Kind.EVENT, "the event that begins the longest response", "Event", is_nullable=True),
    ),
    "misses",
    f"Nothing is done {LEAST_INSTANCES} times or more.",
    note=f"what pulses, messages, interrupts, sleeps, user events or calls begin {LEAST_INSTANCES} times or more",
)  # fmt: skip
INSTANCES: Final = Question(
    "activity_instances",
    "Instances",
    "When was each activity done, and which were late?",
    (
        Column("activity", Kind.TEXT, "which", "Activity"),
        Column("thread", Kind.THREAD, "who did it", "Thread", is_nullable=True),
        Column("start", Kind.TIME, "when it was triggered", "Start"),
        Column("end", Kind.TIME, "when it was done", "End", is_nullable=True, reasons=_REASONS),
        _length("response", "Response", "from start to end"),
        Column("deadline", Kind.DURATION, "how long that may be", "Deadline", is_nullable=True, reasons=_PERIODS),
        Column("overrun", Kind.DURATION, "how much longer it is", "Overrun", is_nullable=True,
               reasons=_DIFFERENCES),
        Column("outcome", Kind.TEXT, "`in time` or `late`; without a deadline `done`; `unfinished`; `unknown`",
               "Outcome", reasons={Known.ESTIMATE: _DIFFERENCES[Known.ESTIMATE]}),
        Column("event", Kind.EVENT, "the event that begins it", "Event"),
        Column("end_event", Kind.EVENT, "the event that ends it", is_nullable=True),
    ),
    "",
    ACTIVITIES.empty,
)  # fmt: skip
BLAME: Final = Question(
    "blame",
    "Blame",
    "Where did the time of late instances go?",
    (
        Column("activity", Kind.TEXT, "which", "Activity"),
        Column("start", Kind.TIME, "when the instance was triggered", "Start"),
        Column("part", Kind.TEXT, f"what the time was spent with: {_WORDS}", "Part"),
        Column("whom", Kind.THREAD, "who had the CPU, holds the lock, serves the message, or ends the wait", "Whom",
               is_nullable=True),
        Column("what", Kind.TEXT, "which interrupt, lock, or state", "What"),
        Column("length", Kind.DURATION, "how long in all; those of depth 0 add up to the response", "Length"),
        Column("share", Kind.SHARE, "of the instance", "Share", sql=""),
        Column("depth", Kind.COUNT, "1 = what the holder or server did in that part", ""),
        Column("event", Kind.EVENT, "the event that begins the instance", "Event"),
    ),
    "",
    "There is no instance to explain.",
)  # fmt: skip
CHAINS: Final = Question(
    "chains",
    "Chains",
    "How long from a stimulus to the first response, and how old is the input of an output?",
    (
        Column("chain", Kind.TEXT, "its name in the timing file", "Chain"),
        Column("measure", Kind.TEXT, "`reaction`: from the stimulus to the first response; `age`: of the oldest input "
               "of an output", "Measure"),
        Column("count", Kind.COUNT, "stimuli, or outputs", "Count", reasons=_COUNTS),
        Column("undecided", Kind.COUNT, "of these, those within which events are missing", "Unknown"),
        _length("min", "Min", "the shortest"),
        _length("median", "Median", "half are not longer"),
        _length("p99", "99 %", "99 % are not longer"),
        _length("max", "Max", "the longest"),
        Column("bound", Kind.DURATION, "how long it may be", "Bound", is_nullable=True),
        Column("misses", Kind.COUNT, "how many are longer than the bound, if there is one", "Misses", is_nullable=True,
               reasons=_MISSES),
        Column("event", Kind.EVENT, "the event that begins the longest", "Event", is_nullable=True),
    ),
    "",
    "The timing file names no chain.",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Late:
    """Answers on late activities in a trace.

    Attributes:
        trace: The events.
        learned: Activities and instances.
        timing: The user's settings for activities.
    """

    trace: Trace
    learned: Activities
    timing: Mapping[str, Timing] = field(default_factory=dict)

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(activity.name for activity in self.learned.activities)

    @property
    def _deadline(self) -> _Ints:
        """Deadline of each activity, int64, cycles; -1 = none."""
        return np.array([activity.deadline_cycles for activity in self.learned.activities], np.int64)

    @property
    def _period(self) -> _Ints:
        """Period of each activity, int64, cycles; -1 = not periodic."""
        return np.array([activity.period_cycles for activity in self.learned.activities], np.int64)

    def _doubt_of_periods(self) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Return how well the period and the deadline of each activity are known, `Known` as uint8 (activities,)."""
        lost, period, learned = TimeRanges.of_rows(losses(self.trace)), self._period, self.learned
        if not len(lost.start):
            return (exact := np.zeros(len(period), np.uint8)), exact
        number, starts = learned.instances.activity, learned.instances.start_cycles
        is_compared = (number[1:] == number[:-1]) & ~lost.meet(starts[:-1], starts[1:])
        count = np.bincount(number[1:][is_compared], minlength=len(period))
        doubt = np.where(period > 0, Known.ESTIMATE, np.where(count < LEAST_PERIODS, Known.UNKNOWN, Known.EXACT))
        is_said, has_own_deadline = (
            np.array(flags, np.bool_)
            for flags in (
                [activity.is_period_said for activity in learned.activities],
                [activity.deadline_from == "said" or activity.trigger in CALLED for activity in learned.activities],
            )
        )
        periodic = np.where(is_said, Known.EXACT, doubt).astype(np.uint8)
        return periodic, np.where(has_own_deadline, Known.EXACT, periodic).astype(np.uint8)

    @property
    def _cannot_tell(self) -> str:
        more = f"the {self.learned.left_out:,} rarest activities of more than {MOST_ACTIVITIES:,} are left out"
        unseen = () if self.learned.activities else _unseen_triggers(self.trace)
        return "\n".join(filter(None, (STATES.advice(self.trace), *unseen, more if self.learned.left_out else "")))

    def _cannot_tell_of(self, numbers: Iterable[int]) -> str:
        """Return the reasons why the trace has no full answer on the activities with these `numbers`, a line each."""
        names, needs = {self._names[number] for number in numbers}, said_needs(self.trace, self.timing)
        reasons = lacks(self.trace, {name: own for name, own in needs.items() if name in names})
        return "\n".join(filter(None, (self._cannot_tell, *reasons)))

    def _why_not_all(self, activity: int | None = None) -> tuple[str, ...]:
        """Return the reasons why instances of an activity may be missing; None = why whole activities may be."""
        reasons = self._cannot_tell_of(range(len(self._names)) if activity is None else [activity]).splitlines()
        unseen = _unseen_triggers(self.trace) if activity is None else ()
        return tuple(dict.fromkeys(filter(None, (*reasons, *unseen, may_be_more(self.trace)))))

    def worst(self, activity: int | None = None, count: int | None = None) -> _Ints:
        """Return indices of instances by overrun of the deadline, then response, longest first, int64 (k,).

        Instances with missing events come last.

        Args:
            activity: The activity; None = all.
            count: Maximum number of instances; None = all.
        """
        instances = self.learned.instances
        ranked = np.arange(len(instances)) if activity is None else np.flatnonzero(instances.activity == activity)
        overrun = self.learned.overrun_cycles[ranked]
        order = np.lexsort((-instances.response_cycles[ranked], -overrun, ~instances.is_known[ranked]))
        return ranked[order][:count]

    def most_telling(self) -> int | None:
        """Return the index of the activity to show first; None if there are no activities.

        This is the activity with the largest ratio of longest response to deadline; if no activity has a deadline, of
        longest to median response. Kernel calls, functions, and activities of the program that writes the trace are
        chosen only if there are no others.
        """
        instances, count = self.learned.instances, len(self.learned.activities)
        if not count:
            return None
        known_rows = np.flatnonzero(instances.is_known)
        response = instances.response_cycles[known_rows]
        longest, _ = largest_by(instances.activity[known_rows], response, count)
        median = percentiles_by(instances.activity[known_rows], response, count, (0.5,))[0]
        deadline = self._deadline
        ratio = longest / np.maximum(np.where(deadline > 0, deadline, median), 1)
        is_own = writes_trace(self.trace)[[activity.thread for activity in self.learned.activities]]
        is_called = np.array([activity.trigger in CALLED for activity in self.learned.activities])
        return int(np.lexsort((-ratio, deadline <= 0, is_called, is_own))[0])

    def activities(self) -> Table:
        """Return a table of all activities with their figures."""
        trace, instances, count = self.trace, self.learned.instances, len(self.learned.activities)
        known = instances.is_known
        number, response = instances.activity[known], instances.response_cycles[known]
        size = np.bincount(instances.activity, minlength=count)
        undecided = np.bincount(instances.activity[~known], minlength=count)
        shares = percentiles_by(number, response, count, _SHARES)
        none = size == undecided
        longest = np.append(instances.start_row[known], -1)[largest_by(number, response, count)[1]]
        deadline, overrun = self._deadline, self.learned.overrun_cycles
        misses = np.bincount(instances.activity[overrun > 0], minlength=count)
        doubt = np.zeros(count, np.uint8)
        for is_so, value in ((~instances.is_exact, Known.INFERRED), (instances.is_open & known, Known.AT_LEAST),
                             (~known, Known.ESTIMATE)):  # fmt: skip
            doubt[instances.activity[is_so]] = value
        lost = TimeRanges.of_rows(losses(trace))
        is_lossy, times_known = bool(len(lost.start)), np.full(count, Known.EXACT, np.uint8)
        starts_known = times_known.copy()
        starts_known[instances.activity[~instances.is_exact]] = Known.INFERRED
        if is_lossy:
            doubt[:], times_known[:], starts_known[:] = Known.ESTIMATE, Known.AT_LEAST, Known.AT_LEAST
        missed = _doubt_of_misses(size, undecided, deadline, is_lossy=is_lossy)
        periodic, limited = self._doubt_of_periods()
        missed[limited == Known.UNKNOWN] = Known.UNKNOWN
        is_unknown = none & (size > 0)
        doubt[is_unknown] = Known.UNKNOWN
        is_estimate = is_lossy | (undecided > 0)
        ran = np.where(is_unknown, Known.UNKNOWN, Known.ESTIMATE * is_estimate).astype(np.uint8)
        values = {name: np.where(none, -1, share)
                  for name, share in zip(("min", "median", "p99", "max"), shares, strict=True)}  # fmt: skip
        has_bound = (deadline > 0) & ~none
        every, done = np.ones(len(instances), np.bool_), ~instances.is_open
        start_jitter = _jitter(instances.activity, instances.start_cycles, every, count, lost)
        end_jitter = _jitter(instances.activity[done], instances.end_cycles[done], known[done], count, lost)
        too_few = np.where(is_lossy & (size > 2), Known.UNKNOWN, Known.EXACT)
        margin = np.where(has_bound & (misses == 0), deadline - values["max"], -1)
        exceeded = np.where(has_bound & (misses > 0), values["max"] - deadline, -1)
        left = np.where(doubt == Known.AT_LEAST, Known.AT_MOST, doubt).astype(np.uint8)
        unsure = missed == Known.UNKNOWN  # whether a deadline is missed
        may_exceed = unsure | (missed == Known.AT_LEAST) & (misses == 0)
        has_margin, has_overrun = (
            least_known(limited, known_where(is_so, Known.UNKNOWN)) for is_so in (unsure, may_exceed)
        )
        running, window = self._running(), max(1, trace.window.length)
        calls = (f"{self.learned.calls_left_out:,} kernel calls or functions of threads are left out, which take less "
                 f"time in all than the {MOST_CALLS} of each that are listed")  # fmt: skip
        return Table(
            ACTIVITIES,
            trace,
            {
                "activity": Texts.of(self._names),
                "trigger": Texts.of([activity.trigger for activity in self.learned.activities]),
                "thread": np.array([activity.thread for activity in self.learned.activities], np.int64),
                "count": size,
                "undecided": undecided,
                "period": self._period,
                **values,
                "start_jitter": start_jitter,
                "end_jitter": end_jitter,
                "utilisation": np.where(is_unknown, -1.0, running / window),
                "running": np.where(is_unknown, -1, running),
                "deadline": deadline,
                "deadline_from": Texts.of([activity.deadline_from for activity in self.learned.activities]),
                "misses": np.where((missed == Known.UNKNOWN) | (deadline <= 0), -1, misses),
                "margin": margin,
                "overrun": exceeded,
                "event": longest,
            },
            known=dict.fromkeys(values, doubt)
            | {"count": times_known, "start_jitter": np.where(start_jitter < 0, too_few, starts_known).astype(np.uint8),
               "end_jitter": np.where(end_jitter < 0, too_few, Known.ESTIMATE * is_estimate).astype(np.uint8),
               "deadline_from": known_where(limited == Known.UNKNOWN, Known.UNKNOWN),
               "misses": missed, "utilisation": ran, "running": ran, "period": periodic, "deadline": limited,
               "margin": _doubt_of_difference(margin, left, has_margin),
               "overrun": _doubt_of_difference(exceeded, doubt, has_overrun)},
            cannot_tell="\n".join((*self._why_not_all(), *([calls] if self.learned.calls_left_out else []))),
        )  # fmt: skip

    def _running(self) -> _Ints:
        """Return for each activity how long its threads run within its instances, interrupts included, cycles."""
        instances, (rows, ends) = self.learned.instances, run_slices(self.trace)
        threads, starts = self.trace.events.thread[rows], self.trace.events.time_cycles[rows]
        order, by_thread = stable_order(threads), stable_order(instances.thread)
        count, total = len(self.trace.threads), np.zeros(len(instances), np.int64)
        begins, edges = (np.append(0, np.cumsum(np.bincount(column, minlength=count)))
                         for column in (threads, instances.thread))  # fmt: skip
        for thread in (np.flatnonzero(np.diff(edges)[1:]) + 1).tolist():  # but for 0, which is not known
            of_thread = by_thread[edges[thread] : edges[thread + 1]]
            own = order[begins[thread] : begins[thread + 1]]
            ran = TimeRanges(starts[own], ends[own])
            total[of_thread] = ran.within(instances.begin_cycles[of_thread], instances.end_cycles[of_thread])
        return sum_by(instances.activity, total, len(self.learned.activities))

    def instances(self, activity: int | None = None) -> Table:
        """Return a table of the instances of one activity, or of all, the worst first."""
        instances, ranked = self.learned.instances, self.worst(activity)
        shown = instances.taken(ranked)
        deadline, overrun = self._deadline[shown.activity], self.learned.overrun_cycles[ranked]
        outcome = np.where(deadline > 0, np.where(overrun > 0, 1, 0), 2)
        outcome[shown.is_open & (overrun <= 0)] = 3
        outcome[~shown.is_known] = 4
        known = known_where(~shown.is_exact, Known.INFERRED)
        known[shown.is_open] = Known.AT_LEAST
        known[~shown.is_known] = Known.UNKNOWN
        limited = self._doubt_of_periods()[1][shown.activity]
        is_estimate = limited == Known.ESTIMATE
        return Table(
            INSTANCES,
            self.trace,
            {
                "activity": Texts(shown.activity.astype(np.uint32), self._names),
                "thread": np.where(shown.thread > 0, shown.thread, -1),
                "start": shown.start_cycles,
                "end": np.where(shown.is_open, -1, shown.end_cycles),
                "response": np.where(shown.is_known, shown.response_cycles, -1),
                "deadline": deadline,
                "overrun": overrun,
                "outcome": Texts(outcome.astype(np.uint8), _OUTCOMES),
                "event": shown.start_row,
                "end_event": shown.end_row,
            },
            known={
                "response": known,
                "end": known_where(~shown.is_known, Known.UNKNOWN),
                "deadline": limited,
                "overrun": np.where(is_estimate, Known.ESTIMATE, _doubt_of_difference(overrun, known, limited)).astype(
                    np.uint8
                ),
                "outcome": known_where(is_estimate & (outcome < 2), Known.ESTIMATE),
            },
            cannot_tell="\n".join(self._why_not_all(activity)),
        )

    def chains(self) -> Table:
        """Return a table of the reaction times and input ages of the chains in the timing file.

        Raises:
            UsageError: A chain names an activity that does not exist.
        """
        names, times, bounds = list[str](), list[ChainTimes](), list[int]()
        is_lossy = bool(len(losses(self.trace)))
        for name, entry in self.timing.items():
            if entry.chain:
                chain = chain_of(self.learned, entry.chain)
                names.append(name)
                times += [reactions(self.trace, self.learned, chain), ages(self.trace, self.learned, chain)]
                bounds += [bound_cycles(self.trace, text) if text else -1
                           for text in (entry.reaction, entry.age)]  # fmt: skip
        figures, doubt = np.full((len(times), 6), -1, np.int64), np.zeros(len(times), np.uint8)
        for row, measured in enumerate(times):
            length, known = measured.length_cycles, np.flatnonzero(measured.is_known)
            if len(known):
                shares = percentiles_by(np.zeros(len(known), np.int64), length[known], 1, _SHARES)
                longest = known[np.argmax(length[known])]
                misses = np.count_nonzero(length[known] > bounds[row]) if bounds[row] > 0 else 0
                figures[row] = (*(int(share[0]) for share in shares), misses, int(measured.start_row[longest]))
            is_partial, is_open = len(known) < len(measured), bool(measured.is_open[known].any())
            doubt[row] = Known.ESTIMATE if is_partial or is_lossy else Known.AT_LEAST if is_open else Known.INFERRED
        columns = dict(zip(("min", "median", "p99", "max", "misses", "event"), figures.T, strict=True))
        count = np.array([len(measured) for measured in times], np.int64)
        undecided = np.array([np.count_nonzero(~measured.is_known) for measured in times], np.int64)
        bound = np.array(bounds, np.int64)
        counted_to = np.full(len(times), Known.AT_LEAST if is_lossy else Known.EXACT, np.uint8)
        missed = _doubt_of_misses(count, undecided, bound, is_lossy=is_lossy)
        unmet = lacks(self.trace, said_needs(self.trace, self.timing, ("chain",)))
        return Table(
            CHAINS,
            self.trace,
            {
                "chain": Texts.of([name for name in names for _ in range(2)]),
                "measure": Texts.of(["reaction", "age"] * len(names)),
                "count": count,
                "undecided": undecided,
                **columns,
                "misses": np.where((missed == Known.UNKNOWN) | (bound <= 0), -1, np.maximum(columns["misses"], 0)),
                "bound": bound,
            },
            known=dict.fromkeys(("min", "median", "p99", "max"), doubt) | {"misses": missed, "count": counted_to},
            cannot_tell="\n".join(filter(None, (*unmet, may_be_more(self.trace)))),
        )

    def explained(self, chosen_rows: _Ints) -> tuple[Table, tuple[str, ...]]:
        """Return a table that splits the time of instances into parts, and for each instance a text on the longest.

        `chosen_rows`, int64 (n,), are rows of the table of instances; the result keeps their order. Parts of a lock
        holder or server are nested below the part they explain. Instances that are too long to be split have no text.
        """
        count, parts = split(self.trace, self.learned.instances.taken(chosen_rows))
        bounds = np.searchsorted(parts.interval, np.arange(count + 1)).tolist()
        says = (self._says(instance, parts, range(begin, stop)) for instance, begin, stop in
                zip(chosen_rows[:count].tolist(), bounds[:-1], bounds[1:], strict=True))  # fmt: skip
        return self._blame_table(chosen_rows, count, parts), tuple(says)

    def blame(self, chosen_rows: _Ints) -> Table:
        """Return the table of `explained` without the texts."""
        return self._blame_table(chosen_rows, *split(self.trace, self.learned.instances.taken(chosen_rows)))

    def says(self, instance: int) -> str:
        """Return a text about the response time of an instance and its longest parts."""
        return self.explained(np.array([instance]))[1][0]

    def _blame_table(self, chosen_rows: _Ints, count: int, parts: BlameParts) -> Table:
        chosen = self.learned.instances.taken(chosen_rows[:count])
        missing = f"only {count:,} of {len(chosen_rows):,} instances are split: they are too long for more"
        response = chosen.response_cycles[parts.interval]
        cannot_tell = self._cannot_tell_of(np.unique(chosen.activity) if count else range(len(self._names)))
        is_inner, holder = parts.parent >= 0, parts.thread[parts.parent] if len(parts) else parts.thread
        whom = np.where(is_inner & (parts.kind == Blame.OWN), holder, parts.thread)
        return Table(
            BLAME,
            self.trace,
            {
                "activity": Texts(chosen.activity[parts.interval].astype(np.uint32), self._names),
                "start": chosen.start_cycles[parts.interval],
                **part_columns(self.trace, parts.kind, whom, parts.value),
                "length": parts.cycles,
                "share": parts.cycles / np.maximum(response, 1),
                "depth": is_inner.astype(np.int64),
                "event": chosen.start_row[parts.interval],
            },
            texts=name_whom(self.trace, whom),
            parent=parts.parent,
            has_parts=True,
            cannot_tell="\n".join(filter(None, (cannot_tell, missing if count < len(chosen_rows) else ""))),
        )

    def slow_against_fast(self, activity: int) -> Table:
        """Return a table of the kinds of time that the slowest tenth of instances has more of than the faster half."""
        return self.compared(activity).times

    def compared(
        self, activity: int | None, others: Sequence[Late | Measured] = (), against: Sequence[Late | Measured] = ()
    ) -> SlowAgainstFast:
        """Return the differences between slow and fast instances of an activity.

        Args:
            activity: The activity; None if there is none, for tables without rows.
            others: More traces; their instances are added to those of this trace before the slowest tenth is compared
                with the faster half.
            against: Fast traces; if given, all their instances count as fast, those of this trace and `others` as slow.

        Raises:
            UsageError: One of the other traces has no activity of that name.
        """
        if activity is None:
            return compared(self.trace, (), is_by_name=False, cannot_tell=self._cannot_tell_of(()))
        name = self.learned.activities[activity].name
        group, fast_group = ([one.measured(name) if isinstance(one, Late) else one for one in some]
                             for some in ((self, *others), against))  # fmt: skip
        compare = partial(compared, self.trace, is_by_name=bool(others or against),
                          cannot_tell=self._cannot_tell_of([activity]))  # fmt: skip
        if against:
            note = "the instances of both, evenly chosen if there are many; what the first has less of is left out"
            return compare((
                (one.samples(thinned(np.arange(len(one.response_s)), max(1, MOST_COMPARED // len(some))))[0], is_slow)
                for some, is_slow in ((group, True), (fast_group, False)) for one in some
            ), note=note)  # fmt: skip
        response_s = np.concatenate([one.response_s for one in group])
        of = np.repeat(np.arange(len(group)), [len(one.response_s) for one in group])
        position = np.concatenate([np.arange(len(one.response_s)) for one in group])
        order = np.argsort(-response_s, kind="stable")
        count = len(order) if len(order) >= 2 * LEAST_INSTANCES else 0
        slow_order = order[: min(max(1, count // 10), MOST_COMPARED)] if count else order[:0]
        fast_order = order[count - count // 2 : count][:MOST_COMPARED]
        chosen = ((one, [position[some][of[some] == number] for some in (slow_order, fast_order)])
                  for number, one in enumerate(group))  # fmt: skip
        return compare(pair for one, rows in chosen if any(map(len, rows))
                       for pair in zip(one.samples(*rows), (True, False), strict=True))  # fmt: skip

    def measured(self, name: str) -> Measured:
        """Return the instances of an activity that end within the trace and lack no events.

        Raises:
            UsageError: There is no such activity; the text names the trace, as it may be one of many.
        """
        instances = self.learned.instances
        try:
            number = self.learned.named(name)
        except UsageError as error:
            raise UsageError(f"{self.trace.path.name}: {error}") from error
        is_done = (instances.activity == number) & instances.is_known & ~instances.is_open
        return _Instances(self.trace, instances.taken(is_done))

    def every_comparison(self) -> SlowAgainstFast:
        """Return the differences between slow and fast instances of all activities; a column names the activity."""
        by_name = {activity.name: self.compared(number) for number, activity in enumerate(self.learned.activities)}
        by_name = by_name or {"": self.compared(None)}
        return SlowAgainstFast(*(
            below_each_other(question, OF_ACTIVITY, {name: getattr(entry, column) for name, entry in by_name.items()})
            for question, column in ((COMPARISON, "times"), (CAUSES, "causes"), (PATHS, "paths"))
        ))  # fmt: skip

    def _says(self, instance: int, parts: BlameParts, rows: range) -> str:
        trace, instances = self.trace, self.learned.instances
        activity = self.learned.activities[int(instances.activity[instance])]
        start = format_moment(int(instances.start_cycles[instance]), trace.clock)
        if not instances.is_known[instance]:
            return f"{activity.name} from {start}: cannot tell how long it took: {_REASONS[Known.UNKNOWN]}."
        response, deadline = int(instances.response_cycles[instance]), activity.deadline_cycles
        at_least = "at least " if instances.is_open[instance] else ""
        late = ""
        if deadline > 0:
            word = "longer" if response > deadline else "less"
            late = f", {self._length(abs(response - deadline))} {word} than its deadline of {self._length(deadline)}"
        top = [row for row in rows if parts.parent[row] < 0]
        named = [part_words(trace, parts, row) for row in top[:_NAMED_PARTS]]
        if rest := int(parts.cycles[top[_NAMED_PARTS:]].sum()):
            named.append(f"{self._length(rest)} other things")
        return f"{activity.name} took {at_least}{self._length(response)} from {start}{late}: {', '.join(named)}."

    def _length(self, cycles: int) -> str:
        return format_duration(self.trace.clock.duration_ns(cycles))


@dataclass(frozen=True, slots=True)
class _Instances:
    """Instances of one activity of one trace."""

    trace: Trace
    instances: Instances

    @property
    def response_s(self) -> NDArray[np.float64]:
        return self.instances.response_cycles / self.trace.clock.cycles_per_s

    def samples(self, *chosen: _Ints) -> tuple[Sample, ...]:
        return tuple(Sample(self.trace, self.instances.taken(some)) for some in chosen)


def _unseen_triggers(trace: Trace) -> tuple[str, ...]:
    """Return why the trace does not show what triggers work, each reason once; empty for triggers that it shows."""
    needs = (PULSES, MESSAGES, CALLS, INTERRUPT_CAUSES)
    return tuple(dict.fromkeys(KERNEL.advice(trace) or need.advice(trace) for need in needs))


def _doubt_of_misses(count: _Ints, undecided: _Ints, limit: _Ints, *, is_lossy: bool) -> NDArray[np.uint8]:
    """Return how well the number of late instances is known for each activity or chain, `Known` as uint8 (n,)."""
    doubt = known_where(is_lossy | (undecided > 0), Known.AT_LEAST)
    doubt[(undecided == count) & (count > 0)] = Known.UNKNOWN
    doubt[limit <= 0] = Known.EXACT
    return doubt


def _doubt_of_difference(cycles: _Ints, longest: NDArray[np.uint8], limited: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return how well the difference (-1 = none) of a response and its deadline is known, `Known` as uint8 (n,)."""
    return np.where((cycles >= 0) | (limited == Known.UNKNOWN), least_known(longest, limited), Known.EXACT).astype(
        np.uint8
    )


def _jitter(number: _Ints, moments: _Ints, is_known: NDArray[np.bool_], count: int, lost: TimeRanges) -> _Ints:
    """Return for each activity the longest minus the shortest interval between its times, cycles, int64 (count,).

    Intervals from or to a time that is not known, or in which events are lost, do not count. It is -1 for activities
    with fewer than 2 intervals.
    """
    out = np.full(count, -1, np.int64)
    edges = np.searchsorted(number, np.arange(count + 1)).tolist()
    for activity, (begin, stop) in enumerate(pairwise(edges)):
        ordered, known = moments[begin:stop], is_known[begin:stop]
        if known.all():
            ordered = np.sort(ordered)  # ends of instances that overlap are not
        gap = np.diff(ordered)
        gap = gap[known[1:] & known[:-1] & (gap >= 0) & ~lost.meet(ordered[:-1], ordered[1:])]
        if len(gap) >= 2:
            out[activity] = gap.max() - gap.min()
    return out


def responses(answers: Late, activity: int) -> Histogram | None:
    """Return the histogram of an activity's response times, split at its deadline; None if no response is known.

    The durations are in the order of `Late.worst`, without the unknown ones.
    """
    instances = answers.learned.instances.taken(answers.worst(activity))
    instances = instances.taken(instances.is_known)
    if not len(instances):
        return None
    clock, deadline = answers.trace.clock, answers.learned.activities[activity].deadline_cycles
    is_late = instances.response_cycles > deadline if deadline > 0 else None
    return histogram(clock.durations_ns(instances.response_cycles), is_late, clock.duration_ns(max(deadline, 0)))


def late(trace: Trace, timing: Mapping[str, Timing] | None = None) -> Late:
    """Return answers on late activities.

    Args:
        trace: The events.
        timing: The user's settings for activities, from `analysis.activities.read_timing`.

    Raises:
        UsageError: An expression is wrong, or there is no activity of a name.
    """
    if len(trace.events) < _LONG:
        return Late(trace, activities(trace, timing), timing or {})
    with reading_ahead(trace):
        beside = Begun(partial(_make_links, trace), "satview-late")
        try:
            for make in (scanned, contradicted_runs, STATES.reason):  # these need no words, which are still being read
                make(trace)
            learned = activities(trace, timing)
            deliveries(trace)
            slices_by_cpu(trace)
            for cpu in range(trace.cpu_count):
                nested_interrupts(trace, cpu)
        finally:
            beside.wait()
    return Late(trace, learned, timing or {})


def _make_links(trace: Trace) -> None:
    """Compute and cache the links that blame needs; runs in a second thread, during the search for activities."""
    for make in (waits, wake_ups, blockers):
        make(trace)


def blame_table(trace: Trace, timing: Mapping[str, Timing] | None = None) -> Table:
    """Return a table of where the worst hundred instances of a trace spent their time; arguments as for `late`."""
    answers = late(trace, timing)
    return answers.blame(answers.worst(count=_SQL_INSTANCES))


# Whether activities can be late: upper bounds of response times, and the longest measured and replayed ones.


QUESTION: Final = Question(
    "schedulability",
    "Schedulability",
    "Does each activity meet its deadline even if all that its CPU has to do comes at once?",
    (
        Column("activity", Kind.TEXT, "which", "Activity"),
        Column("priority", Kind.COUNT, "the lowest at which its thread runs within its instances", "Priority",
               is_nullable=True),
        Column("cpus", Kind.TEXT, "on which CPUs its thread may run", "CPUs", reasons={
            Known.INFERRED: "no event of the trace, and no timing file, shows its runmask: it ran on these"}),
        Column("period", Kind.DURATION, "least time from start to start, as the timing file says or as seen",
               "Period", is_nullable=True),
        Column("execution", Kind.DURATION, "the most that its thread runs in an instance, without interrupts",
               "Execution", is_nullable=True),
        Column("blocking", Kind.DURATION, "the most that an instance waits, but for CPUs that do work of its priority "
               "or a higher one", "Blocking", is_nullable=True),
        Column("bound", Kind.DURATION, "longest possible response, under the assumptions", "Bound", is_nullable=True),
        Column("measured", Kind.DURATION, "longest response in the trace", "Measured", is_nullable=True),
        Column("deadline", Kind.DURATION, "how long a response may be", "Deadline", is_nullable=True),
        Column("holds", Kind.TEXT, "`yes`: the bound is not longer than the deadline; `no`; `cannot tell`", "Holds"),
        Column("reason", Kind.TEXT, "why that cannot be told", "Reason"),
    ),
    "",
    ACTIVITIES.empty,
)  # fmt: skip
_REPLAYED: Final = Column(
    "replayed", Kind.DURATION, "longest response of the unchanged replay (`satview whatif`)", "Replayed",
    is_nullable=True, reasons={
        Known.ESTIMATE: "the trace ran again on the simulated kernel, where calls and switches may take another time",
        Known.UNKNOWN: "it is a part of other work, is not done within the replay, or the trace cannot be replayed",
    },
)  # fmt: skip
_MEASURED: Final = [column.name for column in QUESTION.columns].index("measured")
WITH_REPLAY: Final = replace(
    QUESTION, columns=(*QUESTION.columns[: _MEASURED + 1], _REPLAYED, *QUESTION.columns[_MEASURED + 1 :])
)
"""`QUESTION` with a column for the replay."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """Response times in the unchanged replay of a trace, which the caller has made.

    Attributes:
        longest_ns: Longest response of each activity in the replay, by its name in the trace.
        why_none: Why there is no replay; empty if there is one.
    """

    longest_ns: Mapping[str, int]
    why_none: str = ""


def schedulability(
    trace: Trace, timing: Mapping[str, Timing] | None = None, only: str | None = None, replayed: Replayed | None = None
) -> Table:
    """Return the response bounds of activities; those that may miss their deadline first, then undecided ones.

    Args:
        trace: The events.
        timing: The user's settings for activities, from `analysis.activities.read_timing`.
        only: The name of the activity to return, or a part of it; None = all.
        replayed: Result of the unchanged replay, for the column `replayed`; None = without that column.

    Raises:
        UsageError: An entry of `timing` is wrong, see `analysis.activities.activities`; or `only` matches no activity
            or several.
    """
    learned, settings = activities(trace, timing), timing or {}
    periods = np.full(len(learned.activities), -1, np.int64)
    for name, entry in settings.items():
        if entry.period:
            periods[learned.named(name)] = bound_cycles(trace, entry.period)
    cpus = {learned.named(name): entry.cpus for name, entry in settings.items() if entry.cpus}
    if wrong := [cpu for own_cpus in cpus.values() for cpu in own_cpus if not 0 <= cpu < trace.cpu_count]:
        raise UsageError(f"the timing file names CPU {wrong[0]}; the trace has CPUs 0 to {trace.cpu_count - 1}")
    bounds = response_bounds(trace, learned, periods.tolist(), cpus)
    deadlines = [activity.deadline_cycles for activity in learned.activities]
    holds = [_holds(bound, deadline) for bound, deadline in zip(bounds, deadlines, strict=True)]
    order = np.argsort([("no", "cannot tell", "yes").index(word) for word in holds], kind="stable")
    names = [activity.name for activity in learned.activities]
    longest_ns = [-1 if replayed is None else replayed.longest_ns.get(name, -1) for name in names]
    table = Table(
        QUESTION if replayed is None else WITH_REPLAY,
        trace,
        {
            "activity": Texts.of(names),
            "priority": _column(bounds, "priority"),
            "cpus": Texts.of([", ".join(map(str, bound.cpus)) for bound in bounds]),
            "period": _column(bounds, "period_cycles"),
            "execution": _column(bounds, "execution_cycles"),
            "blocking": _column(bounds, "blocking_cycles"),
            "bound": _column(bounds, "bound_cycles"),
            "measured": _column(bounds, "measured_cycles"),
            "replayed": np.array([trace.clock.cycles_of(ns) if ns >= 0 else -1 for ns in longest_ns], np.int64),
            "deadline": np.array(deadlines, np.int64),
            "holds": Texts.of(holds),
            "reason": Texts.of([
                bound.reason or ("" if deadline > 0 else "it has no deadline")
                for bound, deadline in zip(bounds, deadlines, strict=True)
            ]),
        },
        known={
            "cpus": np.array([Known.INFERRED if bound.cpus and not bound.is_affinity_shown else Known.EXACT
                              for bound in bounds], np.uint8),
            "replayed": np.array([Known.ESTIMATE if ns >= 0 else Known.UNKNOWN for ns in longest_ns], np.uint8),
        },
        cannot_tell="\n".join(filter(None, _unseen_triggers(trace))) if not names else
        f"no replay: {replayed.why_none}" if replayed is not None and replayed.why_none else "",
    )  # fmt: skip
    return table.at(order[order == learned.named(only)] if only is not None else order)


def _holds(bound: Bound, deadline_cycles: int) -> str:
    if bound.reason or deadline_cycles <= 0:
        return "cannot tell"
    return "yes" if bound.bound_cycles <= deadline_cycles else "no"


def _column(bounds: list[Bound], name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.array([getattr(bound, name) for bound in bounds], np.int64)
