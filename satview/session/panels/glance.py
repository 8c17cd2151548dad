"""What a trace is and what stands out in it, in a few words: the parts of the line that shows when it is opened."""

from __future__ import annotations

from dataclasses import dataclass

from satview.analysis.needs import PRIORITIES, has_no_states
from satview.analysis.verdicts.verdict import Severity
from satview.answers.verdicts import Verdicts
from satview.base.safe_text import counted
from satview.base.time_text import format_duration
from satview.store.problems import KINDS
from satview.store.trace import Trace


@dataclass(frozen=True, slots=True)
class Part:
    """A few words, and the panel that says more.

    Attributes:
        text: The words.
        panel: Name of the panel.
        tone: `error`, `warning`, or empty where nothing is wrong.
        hint: What a click shows.
    """

    text: str
    panel: str
    tone: str = ""
    hint: str = ""


def size_part(trace: Trace, busy: float | None) -> Part:
    """Return how long the trace is and how busy its CPUs were, 0 to 1, once that is known."""
    length = format_duration(trace.clock.duration_ns(trace.window.length))
    if trace.pairs is not None:  # of a threads library, which knows nothing of CPUs
        return Part(f"{length}, {counted(len(trace.threads) - 1, 'thread')}", "statistics", hint="Show statistics")
    of_cpus = f" {busy:.0%} busy".replace("%", " %") if busy is not None else ""
    return Part(f"{length}, {counted(trace.cpu_count, 'CPU')}{of_cpus}", "statistics", hint="Show statistics")


def verdict_part(trace: Trace, verdicts: Verdicts) -> Part:
    """Return the most severe verdict with its longest case, and how many more there are."""
    wrong = [verdict for verdict in verdicts.verdicts if verdict.severity is not Severity.INFO]
    if not wrong:
        if verdicts.verdicts:  # none that is wrong for certain; the status bar counts them too
            return Part(f"nothing wrong for certain, {verdicts.summary}", "verdicts", hint=verdicts.summary)
        unknown = len(verdicts.undecided)
        doubt = f", {counted(unknown, 'kind')} of verdict undecided" if unknown else ""
        return Part(f"nothing wrong found{doubt}", "verdicts", hint=verdicts.summary)
    worst = wrong[0]
    length = format_duration(trace.clock.duration_ns(max(
        case.end_cycles - case.start_cycles for case in worst.occurrences)))  # fmt: skip
    times = len(worst.occurrences)
    lasts = f" of {length}" if times == 1 else f" {times:,} times, longest {length}"
    more = f", {counted(len(wrong) - 1, 'more verdict')}" if len(wrong) > 1 else ""
    return Part(f"{worst.kind.replace('-', ' ')}{lasts}{more}", "verdicts", str(worst.severity), worst.says)


def loss_part(trace: Trace) -> Part:
    """Return whether anything of the file was lost."""
    counts = trace.problems.counts()
    costly = [f"{KINDS[slug].title.lower()}: {count:,}" for slug, count in counts.items() if KINDS[slug].costs_data]
    if not costly:
        return Part("nothing lost", "problems", hint="Show problems of the file")
    return Part(", ".join(costly[:2]) + ("\N{HORIZONTAL ELLIPSIS}" if len(costly) > 2 else ""), "problems", "warning",
                "Show problems of the file")  # fmt: skip


def lack_part(trace: Trace, knows_priorities: bool | None) -> Part | None:
    """Return what a trace that cannot answer most questions lacks, and what to capture; None if nothing is known.

    Args:
        trace: The trace.
        knows_priorities: As `has_priorities` says; None as long as that is not known.
    """
    if not trace.release.is_qnx or trace.pairs is not None or not len(trace.events):
        return None
    if has_no_states(trace):
        return Part("no states of threads: capture the class THREAD", "doctor", "warning", "Show what to capture")
    if knows_priorities is False:
        return Part(f"no priorities: {PRIORITIES.remedy}", "doctor", "warning", "Show what to capture")
    return None
