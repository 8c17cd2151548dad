"""Value of the pytest fixture `kev`: a trace and its threads, with methods for assertions."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.activities import (
    ChainTimes,
    Instances,
    Timing,
    activities,
    ages,
    chain_of,
    lacks,
    reactions,
    said_needs,
)
from satview.analysis.doctor import may_be_more
from satview.analysis.needs import (
    EXITS,
    INTERRUPT_EXITS,
    INTERRUPTS,
    LOGGED_INTERRUPTS,
    NAMES,
    OPENING,
    SOME_NAME,
    STATES,
    Need,
    events_need,
    missing_class,
)
from satview.analysis.thread_names import names_of_process, names_of_thread, thread_of
from satview.analysis.verdicts.evidence import Verdict
from satview.analysis.verdicts.find import all_kinds, find_verdicts, kind_of
from satview.analysis.verdicts.rule import Thresholds, default_thresholds, refuse_unsearched
from satview.answers.frames import Texts
from satview.answers.latencies import refuse_unknown_interrupt
from satview.answers.table import Known, Table
from satview.answers.verdicts import undecided_table
from satview.base.errors import UsageError
from satview.base.safe_text import counted, listed, visible_line
from satview.base.time import format_duration
from satview.events import wire
from satview.events.catalogue import call_numbers
from satview.events.states import STATE_BY_VALUE
from satview.events.variants import text_words
from satview.filters.diagnostics import did_you_mean, nearest
from satview.filters.expressions.nodes import glob
from satview.filters.expressions.semantics import event_names, state_value
from satview.filters.expressions.syntax import in_quotes, looks_like_condition
from satview.linkage.links import is_whole, rows_of_codes
from satview.opened import OpenedTrace
from satview.store.axis import files_of, last_rows
from satview.store.time_ranges import Location, location_of, lost_marks
from satview.store.trace import Trace
from satview.testing.figure import Chain, ClaimResults, Figure, KevFailure, MeasuredDurations, Unit

# What the trace cannot show: an assertion that depends on it fails, unless the trace is read leniently.


def _unmet(trace: Trace, is_lenient: bool, *needs: Need) -> str:
    """Return the reason why a trace cannot decide an assertion; empty if it can, or if `is_lenient`."""
    return "" if is_lenient else next(filter(None, (need.advice(trace) for need in needs)), "")


def _lost(trace: Trace, is_lenient: bool) -> str:
    """Return a text with the number of ranges in which events are missing; empty if none are, or if lenient."""
    lost = 0 if is_lenient else len(lost_marks(trace))
    return f"events are missing in {counted(lost, 'range')}" if lost else ""


# Assertions about one thread or several threads.


@dataclass(frozen=True, slots=True)
class Threads:
    """One thread or several threads; assertions are about all of them together.

    Attributes:
        says: Name of the thread or threads in messages.
        is_lenient: Whether an assertion passes if the trace lacks the events to decide it.
    """

    trace: OpenedTrace
    claims: ClaimResults
    says: str
    rows: tuple[int, ...]
    is_lenient: bool = False

    def never(self, *states: str) -> bool:
        """Return True if no thread is ever in one of these states.

        Args:
            states: Names such as `MUTEX`, `STATE_SEND`, `THREADY`.

        Raises:
            KevFailure: A thread is in such a state (the message has count, total time and first location); or the
                trace cannot tell, unless `if_known` is used.
            UsageError: There is no such state, or none is given.
        """
        __tracebackhide__ = True
        if not states:
            raise UsageError("never() of no state holds always; name a state, such as never('MUTEX')")
        times_there = self.in_state(*states)
        what = " or ".join(states)
        if not len(times_there):
            self._refuse_unknown(f"a state of {self.says} is {what}", self._unmet(OPENING))
            return True
        location = times_there.location_of_first
        self.claims.locations.append(location)
        total = format_duration(int(times_there.ns.sum()))
        times = "once" if len(times_there) == 1 else f"{len(times_there):,} times"
        raise KevFailure(f"{self.says}: {what} {times}, {total} in all, first {location}\n  {location.command}")

    def in_state(self, *states: str) -> MeasuredDurations:
        """Return the durations of the threads' intervals in some states: `in_state("READY").longest`.

        An interval that is cut by lost events or by the start or end of the trace counts only as far as it is recorded.

        Raises:
            UsageError: There is no such state.
        """
        names = [_state(name) for name in states]
        table = self.trace.table("state")
        column = table.column_values("state")
        assert isinstance(column, Texts)
        codes = [code for code, text in enumerate(column.texts) if text in names]
        selected = np.isin(column.code, codes) & np.isin(table["thread"], self.rows)
        measured = self._rows(f"{' or '.join(names)} of {self.says}", table, selected)
        return replace(measured, lost=measured.lost or self._unmet(OPENING))

    @property
    def runs(self) -> MeasuredDurations:
        """Durations for which the threads run without being descheduled; interrupts in between are included."""
        runs = self.trace.table("run")
        selected = np.isin(runs["thread"], self.rows)
        return self._rows(f"runs of {self.says}", runs, selected)

    @property
    def responses(self) -> MeasuredDurations:
        """Durations from a thread's wake-up until the thread blocks again; only those with both ends in the trace."""
        activations = self.trace.table("activation")
        selected = np.isin(activations["thread"], self.rows) & ~activations["is_cut"]
        return self._rows(f"responses of {self.says}", activations, selected)

    @property
    def periods(self) -> MeasuredDurations:
        """Durations from a thread's wake-up to its next wake-up; only those with both ends in the trace."""
        activations = self.trace.table("activation")
        selected = np.flatnonzero(np.isin(activations["thread"], self.rows) & (activations["period_cycles"] >= 0))
        ends, before = activations["start_cycles"][selected], selected - 1  # the table is by thread, then in time order
        return self._durations(
            f"periods of {self.says}", ends - activations["period_cycles"][selected], ends, activations["event"][before]
        )

    @property
    def cpu_share(self) -> Figure:
        """CPU time of the threads without interrupts, as a share of one CPU; failures refer to their longest run."""
        __tracebackhide__ = True
        runs = self.trace.table("run")
        selected = np.isin(runs["thread"], self.rows)
        used = int(runs["cpu_cycles"][selected].sum())
        location = None if not selected.any() else self.runs.longest.location
        return Figure(used / self.trace.window.length, f"CPU share of {self.says}", Unit.SHARE, location, self.claims,
                      self._missing() or self._lost())  # fmt: skip

    def stays_on(self, *cpus: int) -> bool:
        """Return True if the threads run only on these CPUs.

        Raises:
            KevFailure: A thread runs on another CPU (the message has the first location); or the trace cannot tell,
                unless `if_known` is used.
            UsageError: The trace has no CPU with one of these numbers.
        """
        __tracebackhide__ = True
        runs = self.trace.table("run")
        wrong = np.flatnonzero(np.isin(runs["thread"], self.rows) & ~np.isin(runs["cpu"], cpus))
        if not len(wrong):
            count = self.trace.cpu_count
            if unknown := [cpu for cpu in cpus if not 0 <= cpu < count]:
                raise UsageError(f"the trace has no CPU {unknown[0]}; it has {counted(count, 'CPU')}, from 0 on")
            self._refuse_unknown(f"runs of {self.says} are on other CPUs than {', '.join(map(str, cpus))}")
            return True
        earliest = int(wrong[np.argmin(runs["start_cycles"][wrong])])
        location = location_of(self.trace, int(runs["start_cycles"][earliest]), int(runs["end_cycles"][earliest]),
                         int(runs["event"][earliest]))  # fmt: skip
        self.claims.locations.append(location)
        raise KevFailure(
            f"{self.says}: {len(wrong):,} runs on other CPUs than {', '.join(map(str, cpus))}, first on CPU "
            f"{int(runs['cpu'][earliest])} {location}\n  {location.command}"
        )

    def _rows(self, says: str, table: Table, selected: NDArray[np.bool_]) -> MeasuredDurations:
        return self._durations(says, *(table[name][selected] for name in ("start_cycles", "end_cycles", "event")))

    def _durations(
        self, says: str, starts: NDArray[np.int64], ends: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> MeasuredDurations:
        order = np.argsort(starts, kind="stable")
        return MeasuredDurations(self.trace, self.claims, says, starts[order], ends[order], rows[order],
                                 missing=self._missing(), lost=self._lost())  # fmt: skip

    def _missing(self) -> str:
        return self._unmet(STATES)

    def _unmet(self, *needs: Need) -> str:
        """Return the first reason why the traces of the threads do not meet the needs; empty if they do."""
        return next(filter(None, (_unmet(trace, self.is_lenient, *needs) for trace in self._traces())), "")

    def _lost(self) -> str:
        return next(filter(None, (_lost(trace, self.is_lenient) for trace in self._traces())), "")

    def _traces(self) -> tuple[Trace, ...]:
        """Return the trace; for several files on one axis, the traces of the files that contain the threads."""
        if (files := files_of(self.trace)) is None:
            return (self.trace,)
        has_them = {part[0].name for row in self.rows if (part := files.part_of_thread(row)) is not None}
        return tuple(part.trace for part in files.parts if part.name in has_them)

    def _refuse_unknown(self, what: str, more: str = "") -> None:
        """Raise `KevFailure` if the trace lacks events, or for `more`: finding nothing does not prove `what`."""
        __tracebackhide__ = True
        if why := self._missing() or self._lost() or more:
            raise KevFailure(f"cannot tell whether {what}: {why}")


def _state(name: str) -> str:
    """Return the name that the table `state` uses for a state."""
    value = state_value(name)
    if value not in STATE_BY_VALUE:
        known = ", ".join(state.name for state in STATE_BY_VALUE.values())
        raise UsageError(f"{name[:40]!r} is not a state; there are {known}")
    return STATE_BY_VALUE[value].name


# Value of the pytest fixture `kev`: a trace with methods for assertions.


_LIKE_A_NAME: Final = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*")  # as QNX spells its events
_USER_EVENT: Final = re.compile(r"EVENT[ :]?\d+")
_MISSPELT: Final = 0.8  # similarity from which a text counts as a misspelt event name
_USER_EVENTS: Final = (wire.code(wire.WireClass.USER, 0),)
_MESSAGES: Final = (wire.code(wire.WireClass.COMM, 0),)
_MAX_NAMED: Final = 4
_SHORT_BYTES: Final = 8  # shorter texts fit into two words with their NUL


@dataclass(frozen=True, slots=True)
class Kev:
    """A trace for the assertions of one test.

    Methods such as `never` and `no_verdict` return True or raise `KevFailure`, an `AssertionError`; numbers such as
    `p99` and `count` are compared in an `assert`.

    Attributes:
        names: The project's own names of events, each with its expression.
        timing: The project's timing file: timing of activities and chains, by name.
        is_lenient: Whether an assertion passes if the trace lacks the events to decide it (see `if_known`).
    """

    trace: OpenedTrace
    names: Mapping[str, str]
    claims: ClaimResults
    timing: Mapping[str, Timing] = field(default_factory=dict)
    is_lenient: bool = False

    @property
    def if_known(self) -> Kev:
        """The same trace, but assertions that it cannot decide pass: `kev.if_known.events("MSG_ERROR") == 0`."""
        return replace(self, is_lenient=True)

    def thread(self, name: str) -> Threads:
        """Return one thread for assertions.

        Args:
            name: Label, name or `PID:TID` of the thread, or the name of a process with one thread.

        Raises:
            KevFailure: No thread or more than one thread matches.
        """
        __tracebackhide__ = True
        try:
            row = thread_of(self.trace, name)
        except UsageError as error:
            raise KevFailure(f"{error}{self._nearest(name)}") from None
        return Threads(self.trace, self.claims, self.trace.thread_name(row), (row,), self.is_lenient)

    def threads(self, pattern: str) -> Threads:
        """Return all threads of which a thread or process name equals or matches a pattern such as `io-*`.

        Raises:
            KevFailure: No thread matches.
        """
        __tracebackhide__ = True
        fits, threads = glob(pattern).matches, self.trace.threads
        rows = tuple(
            row
            for row in range(1, len(threads))
            if int(threads.tid[row]) > 0 and any(text == pattern or fits(text) for text in self._names_of(row))
        )
        if not rows:
            raise KevFailure(f"no thread of the trace fits {pattern!r}{self._nearest(pattern)}")
        return Threads(self.trace, self.claims, f"threads {pattern}", rows, self.is_lenient)

    def rows(self, event: str) -> NDArray[np.uint32]:
        """Return the rows in the event table of the events with the given name, uint32 (n,), ascending.

        Args:
            event: A name of the fixture `kev_names`, the name of an event in any form that satview shows (`MSG_SENDV`,
                `KER_CALL/MSG_SENDV`, `MsgSendv()`, `EVENT 100`), an expression (`class == USREVENT and number == 3`),
                or the text of user events.

        Raises:
            UsageError: The expression is invalid; or the name looks like the name of a QNX event that does not exist.
        """
        if event in self.names:
            return self.trace.select(self.names[event])
        if codes := self._codes(event):
            return rows_of_codes(self.trace, *codes)
        if looks_like_condition(event):
            return self.trace.select(event)
        rows = _user_rows(self.trace, event)
        if not len(rows) and (meant := self._meant(event)) is not None:
            raise UsageError(f"there is no event {event[:40]!r}{did_you_mean(meant)}; write "
                             f'text == "{event[:40]}" for a user event with that text')  # fmt: skip
        return rows

    def _meant(self, event: str) -> tuple[str, ...] | None:
        """Return event names similar to a text that no user event has; None = the text is unlike an event name."""
        book, known = self.trace.catalogue, event_names(self.trace.release)
        if _LIKE_A_NAME.fullmatch(event) or event.endswith("()") or _USER_EVENT.fullmatch(event):
            return nearest(event, known)
        if codes := book.find_shown(event):  # an event name in another case than QNX's
            return tuple(dict.fromkeys(map(book.name, codes)))[:_MAX_NAMED]
        return tuple(difflib.get_close_matches(event[:64].upper(), known, 3, _MISSPELT)) or None

    def events(self, event: str) -> Figure:
        """Return the number of events with the given name (see `rows`); its location is the first event.

        The number is a lower bound if events were lost, or if the trace has no events of that class.
        """
        rows = self.rows(event)
        location = self._location_of_row(int(rows[0])) if len(rows) else None
        missing = self._missing_events(event) or self._lost()
        return Figure(float(len(rows)), f"number of events {event}", Unit.COUNT, location, self.claims, missing)

    def latency(self, begin: str, end: str, *, same_thread: bool = False) -> MeasuredDurations:
        """Return the durations from each event named `begin` to the next event named `end`.

        Consecutive begins share the end after them. Durations that span lost events are left out.

        Args:
            begin: Name of the start events (see `rows`).
            end: Name of the end events (see `rows`).
            same_thread: Whether the end must be logged by the thread that logs the start.
        """
        begins, ends = self.rows(begin), self.rows(end)
        begin_rows, end_rows = _paired(begins, ends) if not same_thread else self._paired_by_thread(begins, ends)
        whole = is_whole(self.trace, begin_rows, end_rows)
        times = self.trace.events.time_cycles
        unanswered = np.setdiff1d(begins, begin_rows)
        unanswered = unanswered[is_whole(self.trace, unanswered, last_rows(self.trace, unanswered))]
        missing = dict.fromkeys(filter(None, map(self._missing_events, (begin, end))))
        return MeasuredDurations(
            self.trace,
            self.claims,
            f"{begin} to {end}",
            times[begin_rows[whole]],
            times[end_rows[whole]],
            begin_rows[whole].astype(np.int64),
            f"{begin!r} happens {len(begins):,} times, {end!r} {len(ends):,} times, and none follows the other",
            len(begins) - len(begin_rows),
            int(np.count_nonzero(~whole)),
            times[unanswered],
            unanswered.astype(np.int64),
            "" if whole.any() else "; ".join(missing),
            self._lost(),
        )

    def activity(self, name: str) -> MeasuredDurations:
        """Return the durations of a recurring activity, each from trigger to end (docs/late.md).

        Args:
            name: Name in `satview late` or in the project's timing file, or a unique part of it.

        Raises:
            UsageError: No activity or more than one activity matches.
        """
        learned = activities(self.trace, self.timing)
        number = learned.named(name)
        own = learned.instances.taken(learned.instances.activity == number)
        return self._durations(own, learned.activities[number].name, (number,))

    def chain(self, names: str) -> Chain:
        """Return the end-to-end times of a chain of activities.

        Args:
            names: Names of activities (see `activity`), such as `camera > fusion > control`; or the name of a chain in
                the project's timing file.

        Raises:
            UsageError: The chain has fewer than two activities, or one of them does not exist.
        """
        learned = activities(self.trace, self.timing)
        timing = self.timing.get(names)
        chain = chain_of(learned, timing.chain if timing is not None and timing.chain else names)
        return Chain(self._durations(reactions(self.trace, learned, chain), f"reaction of {names}", chain),
                     self._durations(ages(self.trace, learned, chain), f"age of {names}", chain))  # fmt: skip

    def round_trips(self, client: str = "", server: str = "") -> MeasuredDurations:
        """Return the durations of messages, each from the send until the client runs again.

        Args:
            client: Only messages from this thread (see `thread`); empty = from all threads.
            server: Only messages to the process with this name; empty = to all processes.

        Raises:
            KevFailure: No thread or more than one thread matches `client`.
        """
        __tracebackhide__ = True
        messages = self.trace.table("message")
        selected, missing = np.ones(len(messages), np.bool_), self._missing_of(_MESSAGES)
        if client:
            selected &= messages["client"] == self.thread(client).rows[0]
        if server:
            pids = [int(self.trace.processes.pid[row]) for row in range(1, len(self.trace.processes))
                    if server in names_of_process(self.trace, row)]  # fmt: skip
            selected &= np.isin(messages["server_pid"], pids)
            missing = missing or ("" if pids else self._unmet(SOME_NAME, NAMES))
        says = f"messages{f' of {client}' if client else ''}{f' to {server}' if server else ''}"
        is_over = messages["round_trip_known"] != Known.AT_LEAST.word
        return self._lengths(messages, selected, "time_cycles", "round_trip_cycles", says, is_over, missing)

    def calls(self, name: str) -> MeasuredDurations:
        """Return the durations of a kernel call, each from entry to exit.

        Args:
            name: Name in any form that satview shows: `MSG_SENDV`, `__KER_MSG_SENDV`, `MsgSendv()`.

        Raises:
            UsageError: The release has no such call.
        """
        book = self.trace.catalogue
        number = book.kernel_call_number(name)
        if number is None:
            known = call_numbers(self.trace.release)
            raise UsageError(f"there is no kernel call {name[:40]!r}{did_you_mean(nearest(name, known))}")
        code = wire.code(wire.WireClass.KER_CALL, number)
        calls, spelt = self.trace.table("call"), book.name(code)
        missing = self._missing_of((code,)) or self._unmet(EXITS)
        return self._lengths(calls, calls["name"] == spelt, "start_cycles", "length_cycles", f"kernel calls {spelt}",
                             missing=missing)  # fmt: skip

    def interrupts(self, vector: int | str) -> MeasuredDurations:
        """Return the durations of an interrupt, each from entry to exit.

        Args:
            vector: Number of the interrupt, or a text such as `0x1b` or `interrupt 0x1b`.

        Raises:
            KevFailure: The trace has interrupts, but none with that number.
            UsageError: The text is not a number.
        """
        __tracebackhide__ = True
        number = vector if isinstance(vector, int) else _interrupt_number(vector)
        interrupts = self.trace.table("interrupt")
        if not self.is_lenient:
            try:
                refuse_unknown_interrupt(self.trace, number)
            except UsageError as error:
                raise KevFailure(str(error)) from None
        missing = self._unmet(INTERRUPTS, LOGGED_INTERRUPTS, INTERRUPT_EXITS)
        return self._lengths(interrupts, interrupts["vector"] == number, "start_cycles", "length_cycles",
                             f"interrupt 0x{number:x}", missing=missing)  # fmt: skip

    def no_verdict(self, kind: str = "", thresholds: Thresholds | None = None) -> bool:
        """Return True if the trace has no verdict of a kind, or no verdict of any kind.

        Args:
            kind: Name such as `deadlock` or `Priority inversion`, or a unique part of it: `inversion`; empty = all.
            thresholds: Thresholds of the verdicts (`satview.read_thresholds`); None = the defaults and the project's
                timing file.

        Raises:
            KevFailure: There is a verdict; or the trace lacks the events to decide, unless `if_known` is used.
            UsageError: There is no such kind, it is switched off, or it needs a timing file.
        """
        __tracebackhide__ = True
        limits = thresholds or replace(default_thresholds(), timing=self.timing)
        if kind:
            refuse_unsearched([kind_of(kind)], limits)
        kinds = [name for name in ([kind_of(kind)] if kind else all_kinds()) if limits.is_enabled(name)]
        verdicts = find_verdicts(self.trace, limits, kinds)
        if verdicts:
            raise self._verdict_failure(verdicts)
        if self.is_lenient:
            return True
        words = {"none": "the trace cannot show", "some": "the trace may not show every"}
        lacks = [f"{words[row['shown']]} {row['kind']}: {row['reason']}"
                 for row in undecided_table(self.trace, kinds, limits.timing).records()]  # fmt: skip
        if reason := may_be_more(self.trace):
            lacks.append(f"the trace may not show every {listed(kinds, _MAX_NAMED)}: {reason}")
        if lacks:
            raise KevFailure("\n".join(lacks))
        return True

    def no_losses(self) -> bool:
        """Return True if no events are missing from the trace.

        Raises:
            KevFailure: Events are missing.
        """
        __tracebackhide__ = True
        lost = lost_marks(self.trace)
        if not len(lost):
            return True
        location = location_of(self.trace, int(lost[0, 0]), int(lost[0, 1]))
        raise self._failure(f"events are missing in {counted(len(lost), 'range')}, the first one", location)

    def value(self, query: str) -> Figure:
        """Return the number in the first row and column of the result of an SQL query (docs/tables.md).

        Raises:
            KevFailure: The result has no rows, or that value is not a number. Unless `if_known` is used, also: rows of
                the query's tables are missing because events were lost; or the value is 0, and the trace cannot show
                the rows of a table.
            UsageError: The query is invalid, or a package is missing.
        """
        __tracebackhide__ = True
        result = self.trace.sql(query, timing=self.timing)
        value = result.value(0, result.columns[0]) if len(result) else None
        if not isinstance(value, int | float):
            raise KevFailure(f"{query}: {f'{value!r} is not a number' if len(result) else 'the result has no rows'}")
        reasons = "; ".join(result.cannot_tell) if value == 0 else ""
        reasons = reasons or (may_be_more(self.trace) if result.not_all else "")
        if reasons and not self.is_lenient:
            raise KevFailure(f"{query}: cannot tell: {reasons}")
        unit = Unit.NS if result.columns[0].endswith("_ns") else Unit.COUNT
        return Figure(float(value), query, unit, None, self.claims)

    def _durations(self, times: Instances | ChainTimes, says: str, of: Sequence[int]) -> MeasuredDurations:
        """Return the durations of the instances of an activity, or of the passes through a chain."""
        needs, known = said_needs(self.trace, self.timing), activities(self.trace, self.timing).activities
        missing = lacks(self.trace, {known[number].name: needs.get(known[number].name, ()) for number in of})
        said_missing = "" if self.is_lenient else "; ".join(missing)
        is_done, goes_on = times.is_known & ~times.is_open, times.is_known & times.is_open
        return MeasuredDurations(
            self.trace, self.claims, says, times.start_cycles[is_done], times.end_cycles[is_done],
            times.start_row[is_done], unsure=int(np.count_nonzero(~times.is_known)),
            open_cycles=times.start_cycles[goes_on], open_row=times.start_row[goes_on],
            missing="" if is_done.any() else said_missing, lost=said_missing or self._lost(),
        )  # fmt: skip

    def _paired_by_thread(
        self, begins: NDArray[np.uint32], ends: NDArray[np.uint32]
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        owner = self.trace.events.thread
        parts = [_paired(begins[owner[begins] == thread], ends[owner[ends] == thread])
                 for thread in np.unique(owner[begins]).tolist()]  # fmt: skip
        if not parts:
            return begins[:0], ends[:0]
        begin = np.concatenate([part[0] for part in parts])
        order = np.argsort(begin)
        return begin[order], np.concatenate([part[1] for part in parts])[order]

    def _lengths(
        self, table: Table, selected: NDArray[np.bool_], start: str, length: str, says: str,
        is_over: NDArray[np.bool_] | bool = True, missing: str = "",
    ) -> MeasuredDurations:  # fmt: skip
        """Return durations from the columns of a table, by names of columns in cycles; a negative length is not known.

        `missing` says why the trace cannot show these durations; a duration that is not over lasts to its end at least.
        """
        has_length = selected & (table[length] >= 0)
        known, goes_on = has_length & is_over, has_length & ~np.broadcast_to(is_over, has_length.shape)
        starts = table[start][known]
        return MeasuredDurations(
            self.trace, self.claims, says, starts, starts + table[length][known],
            table["event"][known].astype(np.int64), "the trace has none with both ends",
            int(np.count_nonzero(selected & ~known)), open_cycles=table[start][goes_on],
            open_row=table["event"][goes_on].astype(np.int64), missing="" if known.any() else missing,
            lost=self._lost(),
        )  # fmt: skip

    def _names_of(self, thread: int) -> tuple[str, ...]:
        process = int(self.trace.threads.process[thread])
        return (*names_of_thread(self.trace, thread), *names_of_process(self.trace, process))

    def _codes(self, event: str) -> tuple[int, ...]:
        """Return the codes of an event in QNX's spelling or of a kernel call such as `MsgSendv()`; empty for others."""
        codes = self.trace.catalogue.find_shown(event)
        calls = {call for code in codes for call in self.trace.catalogue.spec(code).calls}
        return codes if event == event.upper() or event.removesuffix("()") in calls else ()

    def _missing_of(self, codes: Sequence[int]) -> str:
        """Return a text that names the classes of some codes as missing; empty if one is present, or if lenient."""
        missing = "" if self.is_lenient else missing_class(self.trace, np.array(codes, np.int64))
        return f"{missing}; capture them" if missing else ""

    def _missing_events(self, event: str) -> str:
        """Return a text that names the class of the events with the given name (see `rows`) as missing, if it is."""
        codes = () if event in self.names else self._codes(event)
        if not codes and (event in self.names or looks_like_condition(event)):
            return self._unmet(events_need(self.trace, self.names.get(event, event)))
        return self._missing_of(codes or _USER_EVENTS)

    def _unmet(self, *needs: Need) -> str:
        return _unmet(self.trace, self.is_lenient, *needs)

    def _lost(self) -> str:
        return _lost(self.trace, self.is_lenient)

    def _location_of_row(self, row: int) -> Location:
        cycles = int(self.trace.events.time_cycles[row])
        return location_of(self.trace, cycles, cycles, row)

    def _verdict_failure(self, verdicts: tuple[Verdict, ...]) -> KevFailure:
        worst = verdicts[0]
        lines = [
            f"{verdict.severity}: {verdict.kind}: {visible_line(verdict.says)}" for verdict in verdicts[:_MAX_NAMED]
        ]
        if len(verdicts) > _MAX_NAMED:
            lines.append(f"and {len(verdicts) - _MAX_NAMED} more verdicts")
        lines.append(f"  {visible_line(worst.remedy)}")
        return self._failure("\n".join(lines), worst.location(self.trace), "\n  ")

    def _failure(self, says: str, location: Location, between: str = " ") -> KevFailure:
        self.claims.locations.append(location)
        return KevFailure(f"{says}{between}{location}\n  {location.command}")

    def _nearest(self, name: str) -> str:
        labels = {self.trace.thread_name(row) for row in range(1, len(self.trace.threads))}
        near = difflib.get_close_matches(name, sorted(labels | set(filter(None, self.trace.threads.names))), 3, 0.4)
        if near:
            return f"; is it {' or '.join(map(repr, near))}?"
        return f"; {STATES.advice(self.trace)}" if len(self.trace.threads) == 1 else ""  # row 0 is no thread


def _user_rows(trace: OpenedTrace, text: str) -> NDArray[np.uint32]:
    """Return the rows of the user events with the given text, uint32 (n,), ascending."""
    raw = text.encode("utf-8", "replace")
    if len(raw) >= _SHORT_BYTES:
        return trace.select(f"class == USREVENT and text == {in_quotes(text)}")
    rows = trace.select("class == USREVENT and words == 2")
    low, high = (*text_words(raw, trace.byte_order), 0)[:2]
    is_text = (trace.payloads.column(rows, 0) == low) & (trace.payloads.column(rows, 1) == high)
    return np.asarray(rows[is_text], np.uint32)


def _interrupt_number(text: str) -> int:
    try:
        return int(text.casefold().removeprefix("interrupt").strip(), 0)
    except ValueError:
        raise UsageError(f"{text[:40]!r} is not the number of an interrupt; write 0x1b") from None


def _paired(begins: NDArray[np.uint32], ends: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the starts that are followed by an end, and for each of them the first end after it; uint32 (n,) each."""
    position = np.searchsorted(ends, begins, side="right")
    has_end = position < len(ends)
    return begins[has_end], ends[position[has_end]]
