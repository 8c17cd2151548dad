"""What a trace can show: for every analysis a mark, the reason, and what to capture for a better answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from satview.analysis.doctor.analyses import Analysis
from satview.analysis.doctor.shown import NO_EVENTS, applicable, shown
from satview.analysis.needs import NO_DAMAGE, NO_LOSS, Need
from satview.analysis.trust import Mark, Trust
from satview.analysis.verdicts.find import verdicts_of
from satview.base.safe_text import counted
from satview.store.trace import Trace

if TYPE_CHECKING:
    from satview.analysis.doctor.capture_line import CaptureLine


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
        is_quick: Leave out what takes as long as `satview check`: what links decide.
    """
    return tuple(diagnosis(trace, key, is_quick) for key in applicable(trace))


def diagnosis(trace: Trace, key: str, is_quick: bool = False) -> Diagnosis:
    """Return what a trace can show of one analysis.

    Args:
        trace: The events.
        key: Of the analysis.
        is_quick: As of `doctor`.
    """
    found = shown(trace, key, is_quick)
    analysis, trust = found.analysis, found.trust
    if trust is NO_EVENTS:
        return Diagnosis(analysis, trust, "", _capture(trace, analysis.all_needs))
    if not found.limits:
        proofs = [] if is_quick or not analysis.is_verdict else [
            verdict.proof for verdict in verdicts_of(trace) if verdict.kind == key and verdict.proof]  # fmt: skip
        if proofs:  # all events are there, and still they do not decide it
            rest = f"{counted(len(proofs), 'verdict')} of this kind {'rests' if len(proofs) == 1 else 'rest'}"
            proof = f"{proofs[0][:1].lower()}{proofs[0][1:].rstrip('.')}"
            return Diagnosis(analysis, Trust(Mark.ESTIMATE, f"{rest} on links that no event shows"), proof)
        return Diagnosis(analysis, trust)
    remedies = dict.fromkeys(need.remedy for need in found.limits[: None if found.is_bound else 1] if need.remedy)
    if not trace.release.is_qnx:  # remedies are captures of QNX
        remedies = {}
    line = None if trust.mark is Mark.NOT_LOGGED else _capture(trace, analysis.all_needs)
    return Diagnosis(analysis, trust, "; ".join(remedies), line)


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
    return _capture(trace, dict.fromkeys(needs)) if needs else None


def titles(found: Iterable[Diagnosis]) -> str:
    """Return what analyses are called, verdicts behind the others."""
    found = tuple(found)
    plain = [one.analysis.title for one in found if not one.analysis.is_verdict]
    verdicts = [one.analysis.title.lower() for one in found if one.analysis.is_verdict]
    logged = f"{'verdicts' if plain else 'Verdicts'} ({', '.join(verdicts)})"
    return ", ".join([*plain, *([logged] if verdicts else [])])


def may_be_more(trace: Trace) -> str:
    """Return why verdicts may be missing whatever they look for; empty if none are."""
    return "; ".join(filter(None, (need.reason(trace) for need in (NO_LOSS, NO_DAMAGE))))


def notes(trace: Trace) -> tuple[str, ...]:
    """Return what the command line of the capture says of what may be missing; one sentence each, no full stops."""
    from satview.filters.rules.tracelogger_command import from_tracelogger_args  # as in `_capture`

    return from_tracelogger_args(trace.header.get("TRACELOGGER_ARGS"), trace.release).notes


def _capture(trace: Trace, needs: Iterable[Need]) -> CaptureLine | None:
    """Return a capture that meets needs; None if none can."""
    from satview.analysis.doctor.capture_line import capture_line  # statistics need none of the rules that it brings

    return capture_line(trace, needs)
