"""A measured value that knows what it is and where it comes from; claims of it fail with a location and a picture."""

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
    """What a value counts."""

    NS = "ns"
    COUNT = ""
    SHARE = "share"


@dataclass(slots=True)
class TimingClaims:
    """What a test has claimed so far.

    Attributes:
        test: Its name in the baseline.
        baseline: Values of earlier runs; None = none was given.
        failed: The value of the last claim that did not hold, and the claim in words.
        locations: Of claims that did not hold, the last one last.
    """

    test: str = ""
    baseline: Baseline | None = None
    failed: tuple[str, ...] = ()
    locations: list[Location] = field(default_factory=list)
    skipped: int = 0


class KevFailure(AssertionError):  # noqa: N818  -- pytest shows the name, and it is a failure of an assertion
    """A claim about a trace does not hold; its text says where."""


class Figure(float):
    """A value in a claim of a test: nanoseconds, a count, or a share of time.

    It is a number like any other; a comparison that does not hold remembers the location for the report of the failure.

    Attributes:
        says: What it is, such as `p99 of tick to done`.
        unit: What it counts.
        location: Where to look when a claim about it fails; None = nowhere in particular.
        claims: Of the test.
        missing: Why the value is only a lower bound, such as lost events; empty = it is exact.
    """

    says: str
    unit: Unit
    location: Location | None
    claims: TimingClaims
    missing: str

    __slots__ = ("claims", "location", "missing", "says", "unit")

    def __new__(
        cls, value: float, says: str, unit: Unit, location: Location | None, claims: TimingClaims, missing: str = ""
    ) -> Self:
        """Return the value with what it is."""
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
        """Return value and meaning: `210.3 µs (p99 of tick to done)`."""
        return f"{value_text(float(self), self.unit)} ({self.says})"

    def no_worse_than_baseline(self, by: float = 0.1, *, more_is_better: bool = False) -> bool:
        """Return True if the value is not worse than the one in the file of `--baseline`.

        Without `--baseline`, and for a value that the file does not have yet, there is nothing to compare; the summary
        of the run says of how many values that was so.

        Args:
            by: It may be worse by this part: 0.1 = a tenth.
            more_is_better: A smaller value is the worse one.

        Raises:
            KevFailure: It is worse.
        """
        __tracebackhide__ = True
        before = None if self.claims.baseline is None else self.claims.baseline.compared(
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
    """Return what a claim was and how it came out, and where to look."""
    claimed = value_text(float(other), figure.unit) if isinstance(other, int | float) else repr(other)
    lines = [f"{figure.says} is {value_text(float(figure), figure.unit)}, not {sign} {claimed}"]
    if figure.location is not None:
        lines += [f"  {figure.location}", f"  {figure.location.command}"]
    return tuple(lines)


def value_text(value: float, unit: Unit) -> str:
    """Return a value with its unit."""
    if unit is Unit.NS:
        return format_duration(round(value))
    return f"{value:.2%}" if unit is Unit.SHARE else f"{value:,g}"


_WHERE: Final = "\n  "


def _where(location: Location | None) -> str:
    return "" if location is None else f"{_WHERE}{location}{_WHERE}{location.command}"


# Pictures of the locations at which claims fail, taken by a process of its own: the tests need no Qt in theirs.


MOST_PICTURES: Final = 20  # of one run: a broken build fails everywhere
_SIZE: Final = "1400x860"
_NOT_IN_NAMES: Final = re.compile(r"[^\w.\-\[\]]+")
_LONGEST_NAME: Final = 120


@dataclass(slots=True)
class Pictures:
    """The pictures of one run.

    Attributes:
        folder: Where they go; created with the first picture. None = no pictures are requested.
        taken: How many pictures have been taken.
    """

    folder: Path | None
    taken: int = 0

    def take(self, location: Location, test: str) -> str:
        """Take a picture of a location; return its path, or why there is none.

        Args:
            location: What to show, selected.
            test: Name of the test that failed, for the name of the file.
        """
        if self.folder is None:
            return "none is requested"
        if self.taken >= MOST_PICTURES:
            return f"none: this run has {MOST_PICTURES} already"
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
