"""What a trace can show: for every analysis a mark, the reason, and what to capture for a better answer."""

from __future__ import annotations

from collections.abc import Iterable

from satview.analysis.doctor.analyses import ANALYSES, Analysis
from satview.analysis.doctor.capture_line import CaptureLine, capture_line
from satview.analysis.doctor.needs import CALLS, NO_DAMAGE, NO_LOSS, Need, has_class
from satview.analysis.trust import EXACT, Mark, Trust
from satview.base.dataclass import dataclass
from satview.events.spec import Release
from satview.events.states import NOT_A_STATE
from satview.events.wire import WireClass
from satview.filters.rules.tracelogger_command import from_tracelogger_args
from satview.store.trace import Trace

_NOT_THERE = (Mark.NEEDS_WIDE, Mark.NEEDS_CLASS, Mark.NOT_LOGGED)
NO_EVENTS = Trust(Mark.NEEDS_CLASS, "the trace has no events")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a trace can show of one analysis.

    Attributes:
        analysis: Its row of the table.
        trust: How far its answers can be trusted, and why no further.
        remedy: What to do for better ones, in the imperative; empty if nothing would help.
        capture: How to capture what it needs; None if it is exact, or no capture would help.
    """

    analysis: Analysis
    trust: Trust
    remedy: str = ""
    capture: CaptureLine | None = None

    @property
    def says(self) -> str:
        """The reason and the remedy as one sentence without a full stop; empty if it is exact."""
        return "; ".join(filter(None, (self.trust.reason, self.remedy)))


def doctor(trace: Trace, is_quick: bool = False) -> tuple[Diagnosis, ...]:
    """Return what a trace can show exactly, what as a bound and what not at all, one entry for each analysis.

    The rules are the rows of `satview.analysis.doctor.analyses`; which classes and forms hold what is in the format
    description, section 8.

    Args:
        trace: The events.
        is_quick: Leave out what takes as long as `satview check`: whether the holders of mutexes are known.
    """
    return tuple(diagnosis(trace, key, is_quick) for key, row in ANALYSES.items() if _applies(trace, row))


def diagnosis(trace: Trace, key: str, is_quick: bool = False) -> Diagnosis:
    """Return what a trace can show of one analysis.

    Args:
        trace: The events.
        key: Of the analysis.
        is_quick: As of `doctor`.
    """
    analysis = ANALYSES[key]
    if not len(trace.events):
        return Diagnosis(analysis, NO_EVENTS, "", capture_line(trace, analysis.all_needs))
    unmet = _unmet(trace, analysis.needs, is_quick)
    # What is missing altogether explains why it is not a bound either.
    bounds = tuple(need for need in analysis.bounds if trace.release.is_qnx or need.lack not in _NOT_THERE)
    limits = unmet or _unmet(trace, bounds, is_quick)
    if not limits:
        return Diagnosis(analysis, EXACT)
    trust = trust_of(trace, limits, is_bound=not unmet)
    remedies = [need.remedy for need in limits[:1] if need.remedy] if unmet else _remedies(limits)
    if not trace.release.is_qnx:  # remedies are captures of QNX
        remedies = []
    line = None if trust.mark is Mark.NOT_LOGGED else capture_line(trace, analysis.all_needs)
    return Diagnosis(analysis, trust, "; ".join(remedies), line)


def trust_of(trace: Trace, unmet: tuple[Need, ...], *, is_bound: bool) -> Trust:
    """Return the worst of what is lacking; what makes a bound of an answer is never worse than an estimate.

    Args:
        trace: The events.
        unmet: Needs that it does not meet.
        is_bound: True if there is an answer without them.
    """
    if not is_bound:
        return Trust(unmet[0].lack, unmet[0].reason(trace))
    mark = Mark.ESTIMATE if any(need.lack is Mark.ESTIMATE for need in unmet) else Mark.LOWER_BOUND
    return Trust(mark, "; ".join(need.reason(trace) for need in unmet))


def unanswered(trace: Trace) -> tuple[Diagnosis, ...]:
    """Return what a trace cannot show at all; without what takes long to find out."""
    return tuple(found for found in doctor(trace, is_quick=True) if not found.trust.mark.is_answer)


def grouped(found: Iterable[Diagnosis]) -> list[list[Diagnosis]]:
    """Return diagnoses of the same mark, reason and remedy together, the worst first, else in their order."""
    groups: dict[tuple[Trust, str], list[Diagnosis]] = {}
    for one in found:
        groups.setdefault((one.trust, one.remedy), []).append(one)
    order = tuple(Mark)
    return sorted(groups.values(), key=lambda group: -order.index(group[0].trust.mark))


def capture_for(trace: Trace, found: Iterable[Diagnosis]) -> CaptureLine | None:
    """Return a capture that meets the needs of several analyses; None if none of them gains by one.

    Args:
        trace: The trace.
        found: What it can show of them; those that are exact and those that no capture helps are left out.
    """
    needs = [need for one in found if one.capture for need in one.analysis.all_needs]
    return capture_line(trace, dict.fromkeys(needs)) if needs else None


def titles(found: Iterable[Diagnosis]) -> str:
    """Return what analyses are called, verdicts behind the others."""
    found = tuple(found)
    plain = [one.analysis.title for one in found if not one.analysis.is_verdict]
    verdicts = [one.analysis.title.lower() for one in found if one.analysis.is_verdict]
    logged = f"{'verdicts' if plain else 'Verdicts'} ({', '.join(verdicts)})"
    return ", ".join([*plain, *([logged] if verdicts else [])])


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


def may_be_more(trace: Trace) -> str:
    """Return why verdicts may be missing whatever they look for; empty if none are."""
    return "; ".join(filter(None, (need.reason(trace) for need in (NO_LOSS, NO_DAMAGE))))


def has_no_states(trace: Trace) -> bool:
    """Return whether a kernel trace has kernel calls and no states of threads: lanes of threads would be empty."""
    if trace.pairs is not None or CALLS.reason(trace):
        return False
    is_state = trace.catalogue.state_value_of_code != NOT_A_STATE
    return not trace.code_counts[is_state].any()


def notes(trace: Trace) -> tuple[str, ...]:
    """Return what the command line of the capture says of what may be missing; one sentence each, no full stops."""
    return from_tracelogger_args(trace.header.get("TRACELOGGER_ARGS"), trace.release).notes


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


def _remedies(needs: tuple[Need, ...]) -> list[str]:
    return list(dict.fromkeys(need.remedy for need in needs if need.remedy))
