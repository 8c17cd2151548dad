"""How far a trace can show what each analysis answers, without the captures that `report` proposes."""

from __future__ import annotations

from dataclasses import dataclass

from satview.analysis.doctor.analyses import ANALYSES, Analysis
from satview.analysis.needs import Need, has_class
from satview.analysis.trust import EXACT, Mark, Trust
from satview.events.spec import Release
from satview.events.wire import WireClass
from satview.store.trace import Trace

_NOT_THERE = (Mark.NEEDS_WIDE, Mark.NEEDS_CLASS, Mark.NOT_LOGGED)
NO_EVENTS = Trust(Mark.NEEDS_CLASS, "the trace has no events")


@dataclass(frozen=True, slots=True)
class Shown:
    """How far a trace shows what an analysis answers.

    Attributes:
        analysis: Its row of the table.
        trust: How far its answers can be trusted, and why no further.
        limits: Needs that the trace does not meet; empty if it is exact.
        is_bound: True if there is an answer without them.
    """

    analysis: Analysis
    trust: Trust
    limits: tuple[Need, ...] = ()
    is_bound: bool = False


def shown(trace: Trace, key: str, is_quick: bool = False) -> Shown:
    """Return how far a trace shows what an analysis answers.

    Args:
        trace: The events.
        key: Of the analysis.
        is_quick: Leave out what takes as long as `satview check`: whether the holders of mutexes are known.
    """
    analysis = ANALYSES[key]
    if not len(trace.events):
        return Shown(analysis, NO_EVENTS)
    unmet = _unmet(trace, analysis.needs, is_quick)
    # What is missing altogether explains why it is not a bound either.
    bounds = tuple(need for need in analysis.bounds if trace.release.is_qnx or need.lack not in _NOT_THERE)
    limits = unmet or _unmet(trace, bounds, is_quick)
    if not limits:
        return Shown(analysis, EXACT)
    return Shown(analysis, _trust(trace, limits, is_bound=not unmet), limits, not unmet)


def applicable(trace: Trace) -> tuple[str, ...]:
    """Return the keys of the analyses that look at what traces of this kind can have."""
    return tuple(key for key, row in ANALYSES.items() if _applies(trace, row))


def unanswered(trace: Trace) -> tuple[Shown, ...]:
    """Return what a trace cannot show at all; without what takes long to find out."""
    found = (shown(trace, key, is_quick=True) for key in applicable(trace))
    return tuple(each for each in found if not each.trust.mark.is_answer)


def summary(trace: Trace) -> str:
    """Return in one line what a trace cannot show, by reason, without verdicts; empty if it shows everything.

    Most targets have no partitions: that nothing reports them is worth a line only where it was not captured.
    """
    has_none = has_class(trace, WireClass.SYSTEM)
    by_reason: dict[str, list[str]] = {}
    for found in unanswered(trace):
        if not found.analysis.is_verdict and not (has_none and found.analysis.key == "partitions"):
            title = found.analysis.title
            by_reason.setdefault(found.trust.reason, []).append(title[0].lower() + title[1:])
    return "; ".join(f"{', '.join(logged)} ({reason})" for reason, logged in by_reason.items())


def _trust(trace: Trace, unmet: tuple[Need, ...], *, is_bound: bool) -> Trust:
    """Return the worst of what is lacking; what makes a bound of an answer is never worse than an estimate."""
    if not is_bound:
        return Trust(unmet[0].lack, unmet[0].reason(trace))
    mark = Mark.ESTIMATE if any(need.lack is Mark.ESTIMATE for need in unmet) else Mark.LOWER_BOUND
    return Trust(mark, "; ".join(need.reason(trace) for need in unmet))


def _applies(trace: Trace, analysis: Analysis) -> bool:
    """Return whether traces of this kind can have what an analysis looks at.

    Locks are reported by threads libraries only; what needs calls, messages or interrupts of QNX is nothing for Linux.
    """
    if trace.release is Release.LINUX:
        return analysis.key != "locks" and not any(
            need.lack in _NOT_THERE and need.reason(trace) for need in analysis.needs
        )
    return analysis.key != "locks" or trace.release is Release.UNIXWARE


def _unmet(trace: Trace, needs: tuple[Need, ...], is_quick: bool) -> tuple[Need, ...]:
    return tuple(need for need in needs if not (is_quick and need.is_slow) and need.reason(trace))
