"""Many lengths of time of one kind, as tests check them: the longest, percentiles, how many."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from satview.base.time import Cycles
from satview.store.time_ranges import Location, location_of
from satview.store.trace import Trace
from satview.testing.figure import Figure, KevFailure, TimingClaims, Unit


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredDurations:
    """Lengths of time of one kind; each property is a `Figure`, in nanoseconds, that knows its location in the trace.

    Attributes:
        trace: The trace.
        claims: Of the test.
        says: What they are: `tick to done`.
        start_cycles, end_cycles: int64 (n,), of each.
        row: int64 (n,), the event by which each begins, -1 for none.
        why_none: What to say when there are none.
        unanswered: How many began and have no end in the trace.
        unsure: How many were left out because events are missing in between.
        open_cycles: int64 (k,), when those began that go on when the trace ends. They count up to there in the longest
            and in percentiles, as lower bounds.
        open_row: int64 (k,), the event by which each of them begins.
        missing: Why there may be more of them; empty = these are all.
    """

    trace: Trace
    claims: TimingClaims
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
        """All of them, int64 (n,), in the order of the trace."""
        return self.trace.clock.durations_ns(self.end_cycles - self.start_cycles)

    @property
    def location_of_first(self) -> Location:
        """Location of the earliest one."""
        __tracebackhide__ = True
        self._refuse_none()
        return self._location(int(np.argmin(self.start_cycles)))

    @property
    def count(self) -> Figure:
        """How many there are; none is a number too."""
        return self._figure(float(len(self)), "number", 0 if len(self) else None, Unit.COUNT, self.missing)

    @property
    def longest(self) -> Figure:
        """The longest; one that goes on when the trace ends counts up to there."""
        __tracebackhide__ = True
        every = self._with_open()
        position = every._longest()
        return every._figure(float(every.ns[position]), "longest", position)

    @property
    def shortest(self) -> Figure:
        """The shortest."""
        __tracebackhide__ = True
        self._refuse_none()
        position = int(np.argmin(self.end_cycles - self.start_cycles))
        return self._figure(float(self.ns[position]), "shortest", position)

    @property
    def mean(self) -> Figure:
        """The mean; its location is that of the longest."""
        __tracebackhide__ = True
        return self._figure(float(self.ns.mean()) if len(self) else 0.0, "mean", self._longest())

    @property
    def total(self) -> Figure:
        """All of them together, 0 for none; its location is that of the longest."""
        __tracebackhide__ = True
        return self._figure(float(self.ns.sum()), "total", self._longest() if len(self) else None)

    @property
    def jitter(self) -> Figure:
        """The longest less the shortest; its location is that of the longest."""
        __tracebackhide__ = True
        position = self._longest()
        return self._figure(float(self.ns.max() - self.ns.min()), "jitter", position)

    @property
    def p50(self) -> Figure:
        """The median."""
        __tracebackhide__ = True
        return self.percentile(50)

    @property
    def p90(self) -> Figure:
        """What nine of ten do not exceed."""
        __tracebackhide__ = True
        return self.percentile(90)

    @property
    def p99(self) -> Figure:
        """What 99 of 100 do not exceed."""
        __tracebackhide__ = True
        return self.percentile(99)

    def percentile(self, percent: float) -> Figure:
        """Return the value that this part of them does not exceed: one of them, by its rank.

        Those that go on when the trace ends count up to there. Its location is that of the longest.

        Args:
            percent: From 0 to 100.

        Raises:
            KevFailure: There are none.
        """
        __tracebackhide__ = True
        every = self._with_open()
        position = every._longest()
        value = np.percentile(every.ns, percent, method="inverted_cdf")
        return every._figure(float(value), f"p{percent:g}", position)

    def within(self, least_ns: float, most_ns: float) -> bool:
        """Return True if all of them are from one length to another, both included.

        Raises:
            KevFailure: One is not, the worst is named; or there are none.
        """
        __tracebackhide__ = True
        self._refuse_none()
        for figure, holds in ((self.longest, self.longest <= most_ns), (self.shortest, self.shortest >= least_ns)):
            if not holds:
                raise KevFailure("\n".join(figure.claims.failed))
        return True

    def deadline(self, most_ns: float) -> bool:
        """Return True if none is longer, one that goes on when the trace ends included.

        Raises:
            KevFailure: One is, the worst is named; or there are none.
        """
        __tracebackhide__ = True
        return self.within(0, most_ns)

    def all_answered(self) -> bool:
        """Return True if every one that begins has its end in the trace.

        Raises:
            KevFailure: Some have none.
        """
        __tracebackhide__ = True
        self._refuse_none()
        if self.unanswered:
            raise KevFailure(f"{self.says}: {self.unanswered:,} of {len(self) + self.unanswered:,} have no end")
        return True

    def _with_open(self) -> MeasuredDurations:
        """Return them with those that go on when the trace ends, up to there."""
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
    """Times of activities that follow each other.

    Attributes:
        reaction: From each stimulus of the first one to the first response of the last one.
        age: Of the input, the stimulus, whenever the last one is done.
    """

    reaction: MeasuredDurations
    age: MeasuredDurations
