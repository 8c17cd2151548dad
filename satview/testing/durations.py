"""Measured durations of one kind, with the statistics that tests check: maximum, percentiles, count."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from satview.base.time import Cycles
from satview.store.time_ranges import Location, location_of
from satview.store.trace import Trace
from satview.testing.figure import ClaimResults, Figure, KevFailure, Unit


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredDurations:
    """Durations of one kind. Each statistic is a `Figure` in nanoseconds with its location in the trace.

    An open duration is one that has not ended at the end of the trace. The longest and the percentiles include open
    durations, measured up to the end of the trace, as lower bounds.

    Attributes:
        trace: The trace.
        claims: Assertions of the test.
        says: Description of the durations, such as `tick to done`.
        start_cycles, end_cycles: int64 (n,), start and end of each duration.
        row: int64 (n,), row of the event that starts each duration, -1 for none.
        why_none: Text of the failure if there are no durations.
        unanswered: Number of durations that have no end in the trace.
        unsure: Number of durations that were left out because events are missing between start and end.
        open_cycles: int64 (k,), start of each open duration.
        open_row: int64 (k,), row of the event that starts each open duration.
        missing: Why the trace may lack some durations; empty = none is missing.
    """

    trace: Trace
    claims: ClaimResults
    says: str
    start_cycles: Cycles
    end_cycles: Cycles
    row: NDArray[np.int64]
    why_none: str = "there are none"
    unanswered: int = 0
    unsure: int = 0
    open_cycles: Cycles = field(default_factory=lambda: np.empty(0, np.int64))
    open_row: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    missing: str = ""

    def __len__(self) -> int:
        return len(self.start_cycles)

    def __repr__(self) -> str:
        return f"<Durations: {self._says_all()}>"

    @property
    def ns(self) -> NDArray[np.int64]:
        """The durations in nanoseconds, int64 (n,), in trace order."""
        return self.trace.clock.durations_ns(self.end_cycles - self.start_cycles)

    @property
    def location_of_first(self) -> Location:
        """Location of the duration that starts first."""
        __tracebackhide__ = True
        self._refuse_none()
        return self._location(int(np.argmin(self.start_cycles)))

    @property
    def count(self) -> Figure:
        """Number of durations; zero is not a failure."""
        return self._figure(float(len(self)), "number", 0 if len(self) else None, Unit.COUNT, self.missing)

    @property
    def longest(self) -> Figure:
        """The longest duration, open durations included."""
        __tracebackhide__ = True
        every = self._with_open()
        position = every._longest()
        return every._figure(float(every.ns[position]), "longest", position)

    @property
    def shortest(self) -> Figure:
        """The shortest duration."""
        __tracebackhide__ = True
        self._refuse_none()
        position = int(np.argmin(self.end_cycles - self.start_cycles))
        return self._figure(float(self.ns[position]), "shortest", position)

    @property
    def mean(self) -> Figure:
        """The mean; its location is that of the longest duration."""
        __tracebackhide__ = True
        return self._figure(float(self.ns.mean()) if len(self) else 0.0, "mean", self._longest())

    @property
    def total(self) -> Figure:
        """The sum, 0 without durations; its location is that of the longest duration."""
        __tracebackhide__ = True
        return self._figure(float(self.ns.sum()), "total", self._longest() if len(self) else None)

    @property
    def jitter(self) -> Figure:
        """The longest minus the shortest duration; its location is that of the longest."""
        __tracebackhide__ = True
        position = self._longest()
        return self._figure(float(self.ns.max() - self.ns.min()), "jitter", position)

    @property
    def p50(self) -> Figure:
        """The median, as `percentile(50)`."""
        __tracebackhide__ = True
        return self.percentile(50)

    @property
    def p90(self) -> Figure:
        """The 90th percentile."""
        __tracebackhide__ = True
        return self.percentile(90)

    @property
    def p99(self) -> Figure:
        """The 99th percentile."""
        __tracebackhide__ = True
        return self.percentile(99)

    def percentile(self, percent: float) -> Figure:
        """Return a percentile by nearest rank, so it is a measured value; open durations are included.

        Its location is that of the longest duration.

        Args:
            percent: From 0 to 100.

        Raises:
            KevFailure: There are no durations.
        """
        __tracebackhide__ = True
        every = self._with_open()
        position = every._longest()
        value = np.percentile(every.ns, percent, method="inverted_cdf")
        return every._figure(float(value), f"p{percent:g}", position)

    def within(self, least_ns: float, most_ns: float) -> bool:
        """Return True if every duration is between two limits, both inclusive.

        Raises:
            KevFailure: A duration is outside the limits (the message names the worst); or there are no durations.
        """
        __tracebackhide__ = True
        self._refuse_none()
        for figure, holds in ((self.longest, self.longest <= most_ns), (self.shortest, self.shortest >= least_ns)):
            if not holds:
                raise KevFailure("\n".join(figure.claims.failed))
        return True

    def deadline(self, most_ns: float) -> bool:
        """Return True if no duration is longer than a limit, open durations included.

        Raises:
            KevFailure: A duration is longer (the message names the longest); or there are no durations.
        """
        __tracebackhide__ = True
        return self.within(0, most_ns)

    def all_answered(self) -> bool:
        """Return True if every duration has its end in the trace.

        Raises:
            KevFailure: Some durations have no end, or there are no durations.
        """
        __tracebackhide__ = True
        self._refuse_none()
        if self.unanswered:
            raise KevFailure(f"{self.says}: {self.unanswered:,} of {len(self) + self.unanswered:,} have no end")
        return True

    def _with_open(self) -> MeasuredDurations:
        """Return the durations with the open durations added, measured up to the end of the trace."""
        if not len(self.open_cycles):
            return self
        return replace(
            self,
            start_cycles=np.append(self.start_cycles, self.open_cycles),
            end_cycles=np.append(self.end_cycles, np.full(len(self.open_cycles), self.trace.window.end)),
            row=np.append(self.row, self.open_row),
            open_cycles=self.open_cycles[:0],
            open_row=self.open_row[:0],
        )

    def _says_all(self) -> str:
        unsure = f", {self.unsure:,} left out where events are missing" if self.unsure else ""
        return f"{self.says}, {len(self):,} of them{unsure}"

    def _longest(self) -> int:
        __tracebackhide__ = True
        self._refuse_none()
        return int(np.argmax(self.end_cycles - self.start_cycles))

    def _refuse_none(self) -> None:
        __tracebackhide__ = True
        if not len(self):
            unsure = f"; {self.unsure:,} were left out where events are missing" if self.unsure else ""
            raise KevFailure(f"{self.says}: {self.why_none}{unsure}")

    def _figure(self, value: float, what: str, position: int | None, unit: Unit = Unit.NS, missing: str = "") -> Figure:
        location = None if position is None else self._location(position)
        return Figure(value, f"{what} of {self.says}", unit, location, self.claims, missing)

    def _location(self, position: int) -> Location:
        return location_of(
            self.trace, int(self.start_cycles[position]), int(self.end_cycles[position]), int(self.row[position])
        )


@dataclass(frozen=True, slots=True)
class Chain:
    """End-to-end times of a chain of activities.

    Attributes:
        reaction: From each stimulus of the first activity to the first response of the last activity.
        age: At each end of the last activity, the time since the stimulus that its data comes from.
    """

    reaction: MeasuredDurations
    age: MeasuredDurations
