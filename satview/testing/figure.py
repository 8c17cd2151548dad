"""Values and measured durations that tests compare, and the baseline file of an earlier run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from satview.base.child import screenshot
from satview.base.errors import UsageError, WriteError
from satview.base.new_file import NewFile
from satview.base.safe_text import percent
from satview.base.time import Cycles, format_duration
from satview.store.time_ranges import Location, location_of
from satview.store.trace import Trace

# The baseline file: values measured by an earlier run, as sorted JSON with one value per line for version control.


_VERSION: Final = 1
_MAX_BYTES: Final = 1 << 26
Figures = dict[str, dict[str, float]]  # values by test and by name of the measurement; times in nanoseconds


@dataclass(slots=True)
class Baseline:
    """The values in a baseline file (None = it does not exist yet), and those measured by this run."""

    before: Figures | None
    now: Figures = field(default_factory=dict)

    def value(self, test: str, name: str) -> float | None:
        """Return a value in the file; None = the file has none."""
        return None if self.before is None else self.before.get(test, {}).get(name)

    def add(self, measured: Figures) -> None:
        """Add values that another process of this run measured."""
        for test, figures in measured.items():
            self.now.setdefault(test, {}).update(figures)

    @property
    def count(self) -> int:
        """Number of values that this run has measured."""
        return sum(map(len, self.now.values()))

    @property
    def new_count(self) -> int:
        """Number of values of this run that are not in the file."""
        before = self.before or {}
        return sum(name not in before.get(test, {}) for test, figures in self.now.items() for name in figures)

    def merged(self) -> Figures:
        """Return the values of the file, updated with the values of this run."""
        every_figure = {test: dict(figures) for test, figures in (self.before or {}).items()}
        for test, figures in self.now.items():
            every_figure.setdefault(test, {}).update(figures)
        return every_figure


def read_baseline(path: Path) -> Baseline:
    """Read a baseline file; a missing file gives a baseline whose `before` is None.

    Raises UsageError if it cannot be read or is no baseline of this version.
    """
    if not path.exists():
        return Baseline(None)
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise UsageError(f"{path.name}: too large for a baseline; is it another file?")
        contents = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path.name}: no baseline can be read from it: {str(error)[:100]}") from error
    if (
        not isinstance(contents, dict)
        or contents.get("version") != _VERSION
        or not _is_figures(contents.get("figures"))
    ):
        raise UsageError(f"{path.name}: no baseline of this version; delete it, and the next run writes it again")
    return Baseline(contents["figures"])


def write_baseline(path: Path, figures: Figures) -> None:
    """Write a baseline file, atomically, or raise WriteError."""
    text = json.dumps({"version": _VERSION, "figures": figures}, indent=1, sort_keys=True, ensure_ascii=True)
    with NewFile(path) as file:
        file.stream.write(text.encode() + b"\n")


def _is_figures(figures_of_tests: Any) -> bool:
    return isinstance(figures_of_tests, dict) and all(
        isinstance(figures, dict) and all(type(value) in (int, float) for value in figures.values())
        for figures in figures_of_tests.values()
    )


# Values that tests compare: a failed comparison is reported with the location in the trace and a picture.


class Unit(StrEnum):
    """Unit of a `Figure`."""

    NS = "ns"
    COUNT = ""
    SHARE = "share"


@dataclass(slots=True)
class ClaimResults:
    """Results of the assertions (claims) of one test so far.

    Attributes:
        baseline: Values of earlier runs; None = no baseline is used.
        skipped: Number of comparisons with a baseline that were skipped for lack of one.
    """

    test: str = ""
    baseline: Baseline | None = None
    failed: tuple[str, ...] = ()
    locations: list[Location] = field(default_factory=list)
    skipped: int = 0


class KevFailure(AssertionError):  # noqa: N818  -- pytest shows the name, and it is a failure of an assertion
    """An assertion about a trace failed; the message has the location."""


class Figure(float):
    """A float with a description and a location: nanoseconds, a count, or a share of time.

    A comparison that is false records the location in `claims`, for the failure report.

    Attributes:
        says: Description, such as `p99 of tick to done`.
        location: Location to show if a comparison fails; None = no specific location.
        missing: Why the value is only a lower bound, such as lost events; empty = the value is exact.
    """

    says: str
    unit: Unit
    location: Location | None
    claims: ClaimResults
    missing: str

    __slots__ = ("claims", "location", "missing", "says", "unit")

    def __new__(
        cls, value: float, says: str, unit: Unit, location: Location | None, claims: ClaimResults, missing: str = ""
    ) -> Self:
        """Create the value with its attributes."""
        figure = super().__new__(cls, value)
        figure.says, figure.unit, figure.location, figure.claims = says, unit, location, claims
        figure.missing = missing
        return figure

    def __lt__(self, other: float) -> bool:
        return self._judged(float.__lt__, "<", other)

    def __le__(self, other: float) -> bool:
        return self._judged(float.__le__, "<=", other)

    def __gt__(self, other: float) -> bool:
        return self._judged(float.__gt__, ">", other)

    def __ge__(self, other: float) -> bool:
        return self._judged(float.__ge__, ">=", other)

    def __eq__(self, other: object) -> bool:
        return self._judged(float.__eq__, "==", other)

    def __ne__(self, other: object) -> bool:
        return self._judged(float.__ne__, "!=", other)

    __hash__ = float.__hash__

    def __repr__(self) -> str:
        """Return the value and its description: `210.3 µs (p99 of tick to done)`."""
        return f"{value_text(float(self), self.unit)} ({self.says})"

    def no_worse_than_baseline(self, by: float = 0.1, *, more_is_better: bool = False) -> bool:
        """Return True if the value is not worse than its value in the baseline file.

        Also return True without `--baseline`, or if the file does not contain the value yet; the summary of the run
        counts these values. A lower bound is not written to the file.

        Args:
            by: Tolerance as a fraction of the baseline: 0.1 = 10 %.
            more_is_better: Whether a smaller value is worse.

        Raises:
            KevFailure: The value is worse, or only a lower bound, which may be worse.
        """
        __tracebackhide__ = True
        baseline, test = self.claims.baseline, self.claims.test
        if baseline is None:
            self.claims.skipped += 1
            return True
        before = baseline.value(test, self.says)
        if not self.missing:
            baseline.now.setdefault(test, {})[self.says] = float(self)
        elif before is None:
            raise KevFailure(f"{self.says} is only a lower bound, which is no baseline: {self.missing}")
        if before is None:
            return True
        limit = before * (1 - by if more_is_better else 1 + by)
        if float(self) >= limit if more_is_better else float(self) <= limit:
            if self.missing and not more_is_better:
                raise KevFailure(f"cannot tell whether {self.says} is no worse than in the baseline: {self.missing}")
            return True
        if self.location is not None:
            self.claims.locations.append(self.location)
        raise KevFailure(
            f"{self.says} is {value_text(float(self), self.unit)}, in the baseline "
            f"{value_text(before, self.unit)}: {'less' if more_is_better else 'more'} than {percent(by, 0)} worse"
            f"{_where(self.location)}"
        )

    def _judged(self, compare: Callable[[float, float], bool], sign: str, other: object) -> bool:
        """Return the result of a comparison with this value; if False, record the location for the failure report.

        Raises KevFailure if it is True, but might not be with the events that the trace lacks.
        """
        __tracebackhide__ = True
        holds = compare(self, other)  # type: ignore[arg-type]  # NotImplemented goes back to Python
        if holds is True and self.missing and sign not in (">", ">="):
            claimed = value_text(float(other), self.unit) if isinstance(other, int | float) else repr(other)
            raise KevFailure(f"cannot tell whether {self.says} is {sign} {claimed}: {self.missing}")
        if holds is False:
            self.claims.failed = claim_lines(self, sign, other)
            if self.location is not None:
                self.claims.locations.append(self.location)
        return holds


def claim_lines(figure: Figure, sign: str, other: object) -> tuple[str, ...]:
    """Return lines that describe a failed comparison: the value, the sign and expected value, and the location."""
    claimed = value_text(float(other), figure.unit) if isinstance(other, int | float) else repr(other)
    lines = [f"{figure.says} is {value_text(float(figure), figure.unit)}, not {sign} {claimed}"]
    if figure.location is not None:
        lines += [f"  {figure.location}", f"  {figure.location.command}"]
    return tuple(lines)


def value_text(value: float, unit: Unit) -> str:
    """Format a value with its unit."""
    if unit is Unit.NS:
        return format_duration(round(value))
    return percent(value, 2) if unit is Unit.SHARE else f"{value:,g}"


_WHERE: Final = "\n  "


def _where(location: Location | None) -> str:
    return "" if location is None else f"{_WHERE}{location}{_WHERE}{location.command}"


# Pictures of the locations of failed assertions. A separate process takes them, so tests do not load Qt.


MAX_PICTURES: Final = 20  # maximum per run: in a broken build every test fails
_SIZE: Final = "1400x860"
_NOT_IN_NAMES: Final = re.compile(r"[^\w.\-\[\]]+")
_LONGEST_NAME: Final = 120


@dataclass(slots=True)
class Pictures:
    """Takes the pictures of one test run, in a folder made for the first one; None = take none."""

    folder: Path | None
    taken: int = 0

    def take(self, location: Location, test: str) -> str:
        """Take a picture of a location, named after the test; return its path, or a text `none: ` with the reason."""
        if self.folder is None:
            return "none is requested"
        if self.taken >= MAX_PICTURES:
            return f"none: this run has {MAX_PICTURES} already"
        self.taken += 1
        try:
            _make(self.folder)
        except (OSError, WriteError) as error:
            return f"none: {self.folder}: {getattr(error, 'strerror', None) or error}"
        path = self.folder / f"{_NOT_IN_NAMES.sub('-', test)[-_LONGEST_NAME:]}.png"
        why_not = screenshot(location.path, path, location.options, _SIZE)
        return f"none: {why_not}" if why_not else str(path)


def _make(folder: Path) -> None:
    """Create the folder, with a .gitignore that keeps it out of version control."""
    if not folder.is_dir():
        folder.mkdir(parents=True)
        with NewFile(folder / ".gitignore") as file:
            file.stream.write(b"# written by the pytest plug-in of satview\n*\n")


# Measured durations of one kind, with the statistics that tests check: maximum, percentiles, count.


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredDurations:
    """Durations of one kind. Each statistic is a `Figure` in nanoseconds with its location in the trace.

    An open duration is one that has not ended at the end of the trace. The longest and the percentiles include open
    durations, measured up to the end of the trace, as lower bounds.

    Attributes:
        says: Description of the durations, such as `tick to done`.
        start_cycles, end_cycles: int64 (n,), start and end of each duration.
        row: int64 (n,), row of the event that starts each duration, -1 for none.
        why_none: Text of the failure if there are no durations.
        unanswered: Number of starts without an end in the trace, after which no events are missing.
        unsure: Number of durations that were left out because events are missing between start and end.
        open_cycles: int64 (k,), start of each open duration.
        open_row: int64 (k,), row of the event that starts each open duration.
        missing: Why the trace cannot show these durations, such as a class that was not captured; may be empty.
        lost: Why the trace may lack some durations, so that count and total are lower bounds; may be empty.
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
    lost: str = ""

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
        if not len(self):
            self._refuse_none()
        return self._location(int(np.argmin(self.start_cycles)))

    @property
    def count(self) -> Figure:
        """Number of durations; zero is not a failure."""
        return self._figure(float(len(self)), "number", 0 if len(self) else None, Unit.COUNT, self.missing or self.lost)

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
        position = self._longest() if len(self) else None
        return self._figure(float(self.ns.sum()), "total", position, missing=self.missing or self.lost)

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
        if self.missing:
            raise KevFailure(f"cannot tell the lengths of {self.says}: {self.missing}")
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
