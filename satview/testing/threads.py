"""Assertions about one thread or several threads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from satview.answers.frames import Texts
from satview.answers.table import Table
from satview.base.errors import UsageError
from satview.base.time_text import format_duration
from satview.events.states import STATES
from satview.filters.expressions.semantics import state_value
from satview.opened import OpenedTrace
from satview.store.time_ranges import location_of
from satview.testing.durations import MeasuredDurations
from satview.testing.figure import ClaimResults, Figure, KevFailure, Unit


@dataclass(frozen=True, slots=True)
class Threads:
    """One thread or several threads; assertions are about all of them together.

    Attributes:
        trace: The trace.
        claims: Assertions of the test.
        says: Name of the thread or threads in messages.
        rows: Rows of the thread table.
    """

    trace: OpenedTrace
    claims: ClaimResults
    says: str
    rows: tuple[int, ...]

    def never(self, *states: str) -> bool:
        """Return True if no thread is ever in one of these states.

        Args:
            states: Names such as `MUTEX`, `STATE_SEND`, `THREADY`.

        Raises:
            KevFailure: A thread is in such a state; the message has count, total time and first location.
            UsageError: There is no such state.
        """
        __tracebackhide__ = True
        times_there = self.in_state(*states)
        if not len(times_there):
            return True
        what = " or ".join(states)
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
        return self._rows(f"{' or '.join(names)} of {self.says}", table, selected)

    @property
    def runs(self) -> MeasuredDurations:
        """Durations for which the threads run without being descheduled; interrupts in between are included."""
        runs = self.trace.table("run")
        selected = np.isin(runs["thread"], self.rows)
        return self._rows(f"runs of {self.says}", runs, selected)

    @property
    def responses(self) -> MeasuredDurations:
        """Durations from a thread's wake-up until it blocks again; those with both ends in the trace."""
        activations = self.trace.table("activation")
        selected = np.isin(activations["thread"], self.rows) & ~activations["is_cut"]
        return self._rows(f"responses of {self.says}", activations, selected)

    @property
    def periods(self) -> MeasuredDurations:
        """Durations from a thread's wake-up to its next wake-up; those with both ends in the trace."""
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
        return Figure(used / self.trace.window.length, f"CPU share of {self.says}", Unit.SHARE, location, self.claims)

    def stays_on(self, *cpus: int) -> bool:
        """Return True if the threads run only on these CPUs.

        Raises:
            KevFailure: A thread runs on another CPU; the message has the first location.
        """
        __tracebackhide__ = True
        runs = self.trace.table("run")
        wrong = np.flatnonzero(np.isin(runs["thread"], self.rows) & ~np.isin(runs["cpu"], cpus))
        if not len(wrong):
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
        return MeasuredDurations(self.trace, self.claims, says, starts[order], ends[order], rows[order])


def _state(name: str) -> str:
    """Return the name that the table `state` uses for a state.

    Raises:
        UsageError: There is no such state.
    """
    value = state_value(name)
    state_name = next((state.name for state in STATES if state.value == value), None)
    if state_name is None:
        raise UsageError(f"{name[:40]!r} is no state; there are {', '.join(state.name for state in STATES)}")
    return state_name
