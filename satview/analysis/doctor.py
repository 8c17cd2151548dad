"""Rates how well a trace supports each analysis: a mark, the reason, and the capture for a better answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from satview.analysis import needs as need
from satview.analysis.needs import NO_DAMAGE, NO_LOSS, Need, has_class
from satview.analysis.times.basis import EXACT, Mark, Trust
from satview.analysis.verdicts.find import verdicts_of
from satview.analysis.verdicts.rule import rules
from satview.base.safe_text import counted
from satview.events.spec import Release
from satview.events.wire import WireClass
from satview.store.trace import Trace

if TYPE_CHECKING:
    from satview.analysis.capture_line import CaptureLine

# All analyses: what each answers, what it needs for an answer, and what it needs for more than a bound.


@dataclass(frozen=True, slots=True)
class Analysis:
    """A question about a trace, and what the trace needs for an answer.

    Attributes:
        key: Name of the analysis in files and on the command line; for a verdict its kind.
        title: Display title.
        question: The question that it answers.
        needs: If one of these is unmet, there is no answer or an incomplete one; the first unmet need is named first.
        bounds: If one of these is unmet, the answer is only a bound.
        is_verdict: True if the analysis looks for something wrong (`satview check`).
    """

    key: str
    title: str
    question: str
    needs: tuple[Need, ...] = ()
    bounds: tuple[Need, ...] = (need.NO_DAMAGE, need.NO_LOSS)
    is_verdict: bool = False

    @property
    def all_needs(self) -> tuple[Need, ...]:
        """The needs for an answer, then those for more than a bound."""
        return self.needs + self.bounds


_ALL: Final = (need.NO_DAMAGE, need.NO_LOSS, need.OPENING)  # a thread's state is known from its first event on
_EVENTS: Final = (need.NO_DAMAGE, need.NO_LOSS)

_ROWS: Final = (
    Analysis("cpu", "Who used the CPUs", "How long did each thread and process run?", (need.STATES,),
             (need.INTERRUPTED, need.IDLE, *_ALL)),
    Analysis("states", "States of threads", "How long was each thread in which state?", (need.STATES,),
             (need.IDLE, *_ALL)),
    Analysis("ready", "Waits for a CPU", "How long was each thread ready, and did not run?", (need.STATES,),
             (need.IDLE, *_ALL)),
    Analysis("migrations", "Migrations", "How often did a thread run on another CPU than before?",
             (need.STATES,), _ALL),
    Analysis("events", "Events", "How many events of which kind are there?"),
    Analysis("calls", "Kernel calls", "How long did each kernel call take, and did it fail?",
             (need.KERNEL, need.CALLS, need.EXITS, need.CALLERS)),
    Analysis("messages", "Messages", "Who sends to whom, and how long does each message take?",
             (need.KERNEL, need.MESSAGES), (need.STATES, *_EVENTS)),
    Analysis("message-sizes", "Sizes of messages", "How many bytes have messages?",
             (need.KERNEL, need.MESSAGES, need.CALLS, need.SIZES)),
    Analysis("pulses", "Pulses", "Who sends pulses, and when are they received?", (need.KERNEL, need.PULSES)),
    Analysis("wake-ups", "Wake-ups", "Who made a thread ready: another thread, a timer, an interrupt?",
             (need.KERNEL, need.STATES), (need.CALLS, need.MESSAGES_SENT, need.INTERRUPTS, need.TIMERS, *_EVENTS)),
    Analysis("holders", "Holders of mutexes", "Who holds the mutex that a thread waits for?",
             (need.KERNEL, need.STATES, need.CALLS, need.SOME_HOLDER), (need.ALL_HOLDERS, *_EVENTS)),
    Analysis("priorities", "Priorities", "At which priority does each thread run?",
             (need.KERNEL, need.STATES, need.PRIORITIES), _ALL),
    Analysis("interrupts", "Interrupts", "How often does each interrupt come, how late and how long is it handled?",
             (need.KERNEL, need.INTERRUPTS, need.LOGGED_INTERRUPTS, need.INTERRUPT_EXITS)),
    Analysis("partitions", "Partitions", "How much of its budget does each partition use?",
             (need.KERNEL, need.STATES, need.BUDGETS, need.PRIORITIES), _ALL),
    Analysis("periods", "Periods", "Does each periodic thread run in time?", (need.KERNEL, need.PULSES)),
    Analysis("locks", "Locks of a threads library", "Who waited for which lock, and who held it?", (), _EVENTS),
    Analysis("names", "Names", "What are the processes called?", (need.SOME_NAME,), (need.NAMES,)),
)  # fmt: skip

ANALYSES: Final[dict[str, Analysis]] = {row.key: row for row in _ROWS} | {
    kind: Analysis(kind, rule.title, rule.question, rule.needs, rule.bounds, True) for kind, rule in rules().items()
}


# How well a trace supports each analysis, and how to capture what is missing.


_NOT_THERE = (Mark.NEEDS_WIDE, Mark.NEEDS_CLASS, Mark.NOT_LOGGED)
NO_EVENTS = Trust(Mark.NEEDS_CLASS, "the trace has no events")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """How well a trace supports one analysis.

    Attributes:
        trace: The events.
        analysis: The analysis, one of `ANALYSES`.
        trust: How far the answers of the analysis can be trusted, and why not further.
        remedy: What to do for better answers, in the imperative; empty if nothing would help.
        is_helped: Another capture would help.
    """

    trace: Trace
    analysis: Analysis
    trust: Trust
    remedy: str = ""
    is_helped: bool = False

    @property
    def advice(self) -> str:
        """The reason and the remedy as one sentence without a full stop; empty if the answer is exact."""
        return "; ".join(filter(None, (self.trust.reason, self.remedy)))

    @property
    def capture(self) -> CaptureLine | None:
        """Settings of a capture that has what the analysis needs; None if no capture would help."""
        from satview.analysis.capture_line import capture_line  # with the rules it brings `info` takes over 0.3 s

        return capture_line(self.trace, self.analysis.all_needs) if self.is_helped else None


def diagnosis(trace: Trace, key: str, is_quick: bool = False) -> Diagnosis:
    """Return how well a trace supports one analysis.

    Args:
        trace: The events.
        key: Key of the analysis.
        is_quick: Skip needs that depend on links, which take as long as `satview check`.
    """
    analysis = ANALYSES[key]
    if not len(trace.events):
        return Diagnosis(trace, analysis, NO_EVENTS, is_helped=True)
    unmet = _unmet(trace, analysis.needs, is_quick)
    # Systems other than QNX never log some events; that does not make an answer a bound.
    bounds = tuple(need for need in analysis.bounds if trace.release.is_qnx or need.lack not in _NOT_THERE)
    limits = unmet or _unmet(trace, bounds, is_quick)
    if not limits:
        proofs = [] if is_quick or not analysis.is_verdict else [
            verdict.proof for verdict in verdicts_of(trace) if verdict.kind == key and verdict.proof]  # fmt: skip
        if not proofs:
            return Diagnosis(trace, analysis, EXACT)
        # No event is missing, but verdicts rest on inferred links.
        rest = f"{counted(len(proofs), 'verdict')} of this kind {'rests' if len(proofs) == 1 else 'rest'}"
        proof = f"{proofs[0][:1].lower()}{proofs[0][1:].rstrip('.')}"
        return Diagnosis(trace, analysis, Trust(Mark.ESTIMATE, f"{rest} on links that no event shows"), proof)
    trust = _trust(trace, limits, is_bound=not unmet)
    remedies = dict.fromkeys(need.remedy for need in (unmet[:1] or limits) if need.remedy)
    if not trace.release.is_qnx:  # remedies describe captures on QNX
        remedies = {}
    return Diagnosis(trace, analysis, trust, "; ".join(remedies), trust.mark is not Mark.NOT_LOGGED)


def applicable(trace: Trace) -> tuple[str, ...]:
    """Return the keys of the analyses that apply to traces of this kind."""
    return tuple(key for key, row in ANALYSES.items() if _applies(trace, row))


def unanswered(trace: Trace) -> tuple[Diagnosis, ...]:
    """Return the analyses that a trace does not support at all, without checks that take long."""
    diagnoses = (diagnosis(trace, key, is_quick=True) for key in applicable(trace))
    return tuple(row for row in diagnoses if not row.trust.mark.is_answer)


def summary(trace: Trace) -> str:
    """Return one line with the analyses, except verdicts, that a trace does not support, by reason; empty if none.

    Most targets have no partitions: their absence is reported only if they were not captured.
    """
    has_none = has_class(trace, WireClass.SYSTEM)
    by_reason: dict[str, list[str]] = {}
    for diagnosed in unanswered(trace):
        if not diagnosed.analysis.is_verdict and not (has_none and diagnosed.analysis.key == "partitions"):
            title = diagnosed.analysis.title
            by_reason.setdefault(diagnosed.trust.reason, []).append(title[0].lower() + title[1:])
    return "; ".join(f"{', '.join(logged)} ({reason})" for reason, logged in by_reason.items())


def _trust(trace: Trace, unmet: tuple[Need, ...], *, is_bound: bool) -> Trust:
    """Return the trust that unmet needs leave: that of the first, or if they only make a bound, a bound or estimate."""
    if not is_bound:
        return Trust(unmet[0].lack, unmet[0].reason(trace))
    mark = Mark.ESTIMATE if any(need.lack is Mark.ESTIMATE for need in unmet) else Mark.LOWER_BOUND
    return Trust(mark, "; ".join(need.reason(trace) for need in unmet))


def _applies(trace: Trace, analysis: Analysis) -> bool:
    """Return whether an analysis applies to traces of this kind.

    Only threads libraries report locks; analyses that need calls, messages or interrupts of QNX do not apply to Linux.
    """
    if trace.release is Release.LINUX:
        return analysis.key != "locks" and not any(
            need.lack in _NOT_THERE and need.reason(trace) for need in analysis.needs
        )
    return analysis.key != "locks" or trace.release is Release.UNIXWARE


def _unmet(trace: Trace, needs: tuple[Need, ...], is_quick: bool) -> tuple[Need, ...]:
    return tuple(need for need in needs if not (is_quick and need.is_slow) and need.reason(trace))


def may_be_more(trace: Trace) -> str:
    """Return why verdicts of any kind may be missing; empty if none are."""
    return "; ".join(filter(None, (need.reason(trace) for need in (NO_LOSS, NO_DAMAGE))))


def notes(trace: Trace) -> tuple[str, ...]:
    """Return notes from the capture's command line on events that may be missing; one sentence each, no full stops."""
    from satview.filters.rules.writing import from_tracelogger_args  # as in `capture`

    return from_tracelogger_args(trace.header.get("TRACELOGGER_ARGS"), trace.release).notes
