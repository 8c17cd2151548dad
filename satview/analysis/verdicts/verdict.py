"""One verdict: the problem, its time, the events that show it, and the remedy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from satview.linkage.table import Certainty
from satview.store.time_ranges import Location, location_of
from satview.store.trace import Trace


class Severity(StrEnum):
    """How much a verdict matters."""

    ERROR = "error"
    """Something does not work: it hangs, is wrong, or is missing."""
    WARNING = "warning"
    """Something works, but later than it should."""
    INFO = "info"
    """Something worth knowing, which may be intended."""


@dataclass(frozen=True, slots=True, order=True)
class Occurrence:
    """One time at which a problem occurs.

    Attributes:
        start_cycles, end_cycles: Begin and end; the end is not included.
        row: The event that begins the occurrence; -1 if there is no particular one.
    """

    start_cycles: int
    end_cycles: int
    row: int = -1


@dataclass(frozen=True, slots=True)
class Verdict:
    """A problem that was found in a trace.

    Attributes:
        kind: Kind of problem, the name of the rule or plug-in that found it.
        severity: How much the problem matters.
        start_cycles, end_cycles: The time that the sentence names, the end not included: the longest occurrence, or the
            worst one if the rule examines windows of a fixed length.
        threads: Rows of the thread table, affected threads first.
        objects: Texts for the objects concerned: mutexes, channels, interrupts, CPUs.
        evidence: Rows of the events that show the problem, ascending; the first ones if there are many.
        says: One sentence: who, what, when, for how long; with names of the trace that are not escaped.
        remedy: One sentence: what would help.
        occurrences: All times at which the problem occurs, in time order, including the one in the sentence.
        roles: Role of each event of `evidence`: waits, holder, preempts, ...; empty if unknown.
        certainty: Certainty of the weakest link that the verdict rests on.
        proof: One sentence: what would prove the problem, if that link is not exact; else empty.
    """

    kind: str
    severity: Severity
    start_cycles: int
    end_cycles: int
    threads: tuple[int, ...]
    objects: tuple[str, ...]
    evidence: tuple[int, ...]
    says: str
    remedy: str
    certainty: Certainty = Certainty.EXACT
    occurrences: tuple[Occurrence, ...] = ()
    roles: tuple[str, ...] = ()
    proof: str = ""

    def location(self, trace: Trace) -> Location:
        """Return the location of the problem in the trace, at the first event of the evidence."""
        row = self.evidence[0] if self.evidence else -1
        return location_of(trace, self.start_cycles, self.end_cycles, row)
