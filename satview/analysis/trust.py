"""Marks: how far a figure or an answer can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Mark(StrEnum):
    """How far something that is worked out from a trace can be trusted; the most trusted first."""

    EXACT = "exact"
    """As good as the trace: nothing that it rests on is missing."""
    LOWER_BOUND = "lower-bound"
    """At least this: events are missing, and with them there can only be more."""
    ESTIMATE = "estimate"
    """Of the part that the trace has: the whole may be more or less."""
    NEEDS_WIDE = "needs-wide"
    """Not reported: the arguments that it rests on are in wide events only."""
    NEEDS_CLASS = "needs-class"
    """Not reported: the events that it rests on were not captured."""
    NOT_LOGGED = "not-logged"
    """Not reported: the kernel of this release logs nothing of it, or the trace is not that of a kernel."""

    @property
    def is_answer(self) -> bool:
        """True if there is an answer at all."""
        return self in (Mark.EXACT, Mark.LOWER_BOUND, Mark.ESTIMATE)


TITLES: Final = {
    Mark.EXACT: "Exact",
    Mark.LOWER_BOUND: "Lower bound",
    Mark.ESTIMATE: "Estimate",
    Mark.NEEDS_WIDE: "Needs wide events",
    Mark.NEEDS_CLASS: "Needs other events",
    Mark.NOT_LOGGED: "Not logged",
}
SIGNS: Final = {Mark.EXACT: "", Mark.LOWER_BOUND: "\N{GREATER-THAN OR EQUAL TO}"}
_DOUBTFUL: Final = "\N{ALMOST EQUAL TO}"


def sign(mark: Mark) -> str:
    """Return what is before a value: nothing, the sign for "at least", or the one for "about"."""
    return SIGNS.get(mark, _DOUBTFUL)


@dataclass(frozen=True, slots=True)
class Trust:
    """A mark with its reason.

    Attributes:
        mark: How far it can be trusted.
        reason: Why no further, without a full stop; empty if it is exact.
    """

    mark: Mark = Mark.EXACT
    reason: str = ""

    def at_worst(self, other: Trust) -> Trust:
        """Return the one of both that is trusted less, itself if neither is."""
        order = tuple(Mark)
        return other if order.index(other.mark) > order.index(self.mark) else self

    @property
    def says(self) -> str:
        """The sign, the mark and the reason on one line; empty if it is exact."""
        return f"{sign(self.mark)} {TITLES[self.mark]}: {self.reason}" if self.mark is not Mark.EXACT else ""

    def as_record(self) -> dict[str, str]:
        """Return it as plain values, the reason only where there is one."""
        return {"mark": str(self.mark)} | ({"reason": self.reason} if self.reason else {})


EXACT: Final = Trust()
