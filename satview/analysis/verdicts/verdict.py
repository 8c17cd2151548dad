"""One verdict: what was found, where, by which events, and what would help."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from satview.linkage.table import Certainty


class Severity(StrEnum):
    """How much a verdict matters."""

    ERROR = "error"
    """Something does not work: it is still, is wrong, or is missing."""
    WARNING = "warning"
    """It works, later than it should."""
    INFO = "info"
    """Worth knowing; it may be meant so."""


@dataclass(frozen=True, slots=True, order=True)
class Occurrence:
    """One time at which something is wrong.

    Attributes:
        start_cycles, end_cycles: From when to when; the end is not included.
        row: The event by which it begins; -1 where it begins by none in particular.
    """

    start_cycles: int
    end_cycles: int
    row: int = -1


@dataclass(frozen=True, slots=True)
class Verdict:
    """Something wrong that was found in a trace.

    Attributes:
        kind: What it is, as the rule is called; of a plug-in its name.
        severity: How much it matters.
        start_cycles, end_cycles: The time that the sentence names, the end not included: of several the longest,
            or the worst one where it is about windows of a fixed length.
        threads: Rows of the thread table, those that suffer first.
        objects: What it is about, in words: mutexes, channels, interrupts, CPUs.
        evidence: Rows of the event table that show it, ascending; the first ones if there are many.
        says: One sentence: who, what, when, for how long. Names of the trace are in it as they are.
        remedy: One sentence: what would help.
        occurrences: All times at which it happens, in time order; that of the sentence is one of them.
        roles: What each event of `evidence` is in it: waits, holder, preempts, ...; empty where that is not known.
        certainty: Of the weakest link that it rests on.
        proof: One sentence: what would prove it, where that link is not exact; else empty.
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
