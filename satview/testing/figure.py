"""Values that tests compare: a failed comparison is reported with the location in the trace and a picture."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final, Self

from satview.base.child import screenshot
from satview.base.errors import WriteError
from satview.base.new_file import NewFile
from satview.base.time_text import format_duration
from satview.store.time_ranges import Location
from satview.testing.baseline import Baseline


class Unit(StrEnum):
    """Unit of a `Figure`."""

    NS = "ns"
    COUNT = ""
    SHARE = "share"


@dataclass(slots=True)
class ClaimResults:
    """Results of the assertions (claims) of one test so far.

    Attributes:
        test: Name of the test in the baseline.
        baseline: Values of earlier runs; None = no baseline is used.
        failed: Lines that describe the last comparison that failed.
        locations: Locations of failed assertions, in order.
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
        unit: Unit of the value.
        location: Location to show if a comparison fails; None = no specific location.
        claims: Assertions of the test.
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
        counts these values.

        Args:
            by: Tolerance as a fraction of the baseline: 0.1 = 10 %.
            more_is_better: Whether a smaller value is worse.

        Raises:
            KevFailure: The value is worse.
        """
        __tracebackhide__ = True
        before = None if self.claims.baseline is None else self.claims.baseline.record(
            self.claims.test, self.says, float(self)
        )  # fmt: skip
        if before is None:
            self.claims.skipped += self.claims.baseline is None
            return True
        limit = before * (1 - by if more_is_better else 1 + by)
        if float(self) >= limit if more_is_better else float(self) <= limit:
            return True
        if self.location is not None:
            self.claims.locations.append(self.location)
        raise KevFailure(
            f"{self.says} is {value_text(float(self), self.unit)}, in the baseline "
            f"{value_text(before, self.unit)}: {'less' if more_is_better else 'more'} than {by:.0%} worse"
            f"{_where(self.location)}"
        )

    def _judged(self, compare: Callable[[float, float], bool], sign: str, other: object) -> bool:
        """Compare with another number; record the location if False, and fail if a lower bound decides nothing."""
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
    """Return lines that describe a failed comparison: the value, the expected value, and the location."""
    claimed = value_text(float(other), figure.unit) if isinstance(other, int | float) else repr(other)
    lines = [f"{figure.says} is {value_text(float(figure), figure.unit)}, not {sign} {claimed}"]
    if figure.location is not None:
        lines += [f"  {figure.location}", f"  {figure.location.command}"]
    return tuple(lines)


def value_text(value: float, unit: Unit) -> str:
    """Format a value with its unit."""
    if unit is Unit.NS:
        return format_duration(round(value))
    return f"{value:.2%}" if unit is Unit.SHARE else f"{value:,g}"


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
    """Takes the pictures of one test run.

    Attributes:
        folder: Folder of the pictures, created with the first picture; None = take no pictures.
        taken: Number of pictures taken so far.
    """

    folder: Path | None
    taken: int = 0

    def take(self, location: Location, test: str) -> str:
        """Take a picture of a location; return its path, or the reason for having no picture.

        Args:
            location: Location to show, selected.
            test: Name of the failed test, used as the file name.
        """
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
