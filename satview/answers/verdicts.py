"""Tables of the verdicts on a trace, with cases and evidence, and of the kinds of verdicts that it cannot show."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from satview.analysis.activities import Timing, lacks, said_needs
from satview.analysis.doctor import ANALYSES, diagnosis, may_be_more, unmet_bounds
from satview.analysis.needs import PRIORITIES, CaptureLine, capture_line
from satview.analysis.verdicts.evidence import Occurrence, Severity, Verdict
from satview.analysis.verdicts.find import all_kinds, find_verdicts, kind_of, verdicts_of
from satview.analysis.verdicts.rule import Thresholds, default_thresholds, rules
from satview.answers.frames import Several, Texts
from satview.answers.table import CERTAINTIES, Column, Kind, Known, Question, Table, known_where
from satview.base.plugins import PluginKind, plugins
from satview.base.safe_text import counted
from satview.base.time import TimeWindow
from satview.events.spec import arguments_text
from satview.events.states import DEAD, NOT_A_STATE, READY, RUNNING
from satview.store.axis import ends_of_files, file_window
from satview.store.trace import Trace

_MOST_CASES: Final = 200  # most rows of cases below one verdict
_ARGUMENT_WORDS, _ARGUMENT_LETTERS = 40, 120  # bounds for the arguments of an event of the evidence
_MOST_KINDS: Final = 2  # most kinds that a summary names
_SEVERITIES: Final = (*(str(severity) for severity in Severity), "")
_GOES_ON: Final = {Known.AT_LEAST: "it is still so when the trace ends"}

QUESTION: Final = Question(
    "verdicts",
    "Verdicts",
    "What is wrong in this trace?",
    (
        Column("severity", Kind.TEXT, "`error`: something does not work; `warning`: it works, later than it should; "
               "`info`: it may be meant so", "Severity"),
        Column("kind", Kind.TEXT, "`deadlock`, `priority-inversion`, ...", "Verdict"),
        Column("start", Kind.TIME, "where it begins; of several cases the worst, which the sentence is about", "From"),
        Column("end", Kind.TIME, "where it ends; not included", "To"),
        Column("length", Kind.DURATION, "how long it lasts", "Length", reasons=_GOES_ON),
        Column("cases", Kind.COUNT, "how often it happens", "Cases", sql="case_count"),
        Column("thread", Kind.THREAD, "who suffers first", sql="thread", is_nullable=True),
        Column("event", Kind.EVENT, "the first event that shows it", sql="event", is_nullable=True),
        Column("shown_event", Kind.EVENT, "the event that shows most of it", sql=""),
        Column("threads", Kind.THREAD, "who takes part, those that suffer first", "Threads", sql=""),
        Column("objects", Kind.TEXT, "what it is about: mutexes, channels, interrupts, CPUs", "Objects"),
        Column("evidence", Kind.EVENT, "the events that show it, the first ones if there are many", "Events", sql=""),
        Column("says", Kind.SENTENCE, "one sentence: who, what, when, for how long", "What"),
        Column("remedy", Kind.SENTENCE, "advice, one sentence: what would help", "Advice"),
        Column("proof", Kind.SENTENCE, "one sentence: what would prove it, where it rests on what is inferred",
               "Proof"),
        Column("certainty", Kind.TEXT, "how sure the least certain of the links is that it rests on", "Certainty"),
    ),
    "",
    "Nothing wrong was found: no deadlock, no inversion, no thread that waits too long.",
    tone="severity",
)  # fmt: skip
UNDECIDED: Final = Question(
    "undecided",
    "Undecided",
    "Which kinds of verdicts can this trace not show, or not all of them?",
    (
        Column("kind", Kind.TEXT, "a kind of verdict that was looked for", "Verdict"),
        Column("shown", Kind.TEXT, "`none` of these verdicts, or `some`, so that there may be more", "Shown"),
        Column("question", Kind.SENTENCE, "what the trace cannot answer, or not fully", "Question"),
        Column("reason", Kind.SENTENCE, "what is missing, and what to capture", "Why"),
    ),
    "",
    "The trace has what every verdict needs.",
)


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The verdicts on a trace, as records and as tables.

    Attributes:
        verdicts: The verdicts, the most severe first, in the order of the rows of `table`.
        table: The verdicts; advice, proof, cases and events are nested below each.
        undecided: The requested kinds that the trace cannot show, or not fully.
        capture: The capture (in wide mode) that would decide these kinds and prove inferred verdicts; None if no
            capture would show more.
    """

    verdicts: tuple[Verdict, ...]
    table: Table
    undecided: Table
    capture: CaptureLine | None = None

    def within(self, window: TimeWindow | None) -> Verdicts:
        """Return only the verdicts whose problem occurs at least once in a range; None = all."""
        if window is None:
            return self
        mask = np.array([_is_in(verdict, window) for verdict in self.verdicts], np.bool_)
        inside = tuple(verdict for verdict, is_in in zip(self.verdicts, mask, strict=True) if is_in)
        return replace(self, verdicts=inside, table=self.table.rows(mask))

    @property
    def severities(self) -> str:
        """Text on the number of verdicts of each severity, `2 errors, 1 warning`; empty if there are none."""
        counts = [(severity, sum(verdict.severity is severity for verdict in self.verdicts)) for severity in Severity]
        return ", ".join(f"{count} info" if severity is Severity.INFO else counted(count, severity)
                         for severity, count in counts if count)  # fmt: skip

    @property
    def summary(self) -> str:
        """The number of verdicts and the kinds of the most severe; if there are none, the number of undecided kinds."""
        kinds, unknown = list(dict.fromkeys(verdict.kind for verdict in self.verdicts)), len(self.undecided)
        if not kinds:
            return "No verdicts" + (f", {counted(unknown, 'kind')} cannot be decided" if unknown else "")
        more = "\N{HORIZONTAL ELLIPSIS}" if len(kinds) > _MOST_KINDS else ""
        return f"{counted(len(self.verdicts), 'verdict')}: {', '.join(kinds[:_MOST_KINDS])}{more}"


def find(
    trace: Trace,
    thresholds: Thresholds | None = None,
    kinds: Collection[str] | None = None,
    cancelled: Callable[[], bool] | None = None,
    progress: Callable[[float], None] | None = None,
    *,
    everything: bool = False,
) -> Verdicts:
    """Return the verdicts on a trace, and the kinds that it cannot show.

    Args:
        trace: The events.
        thresholds: Thresholds of the rules; None = the defaults.
        kinds: Kinds to search for, each as for `kind_of`; None = all. Kinds that the thresholds switch off are never
            searched for.
        cancelled: See `find_verdicts`.
        progress: See `find_verdicts`.
        everything: See `find_verdicts`.

    Raises:
        Cancelled: `cancelled` returned true.
        UsageError: There is no such kind, or the thresholds name a thread or an activity that the trace does not have.
    """
    limits = thresholds or default_thresholds()
    kinds = None if kinds is None else {kind_of(kind) for kind in kinds}
    requested = [kind for kind in all_kinds() if (kinds is None or kind in kinds) and limits.is_enabled(kind)]
    if limits == default_thresholds() and len(requested) == len(all_kinds()) and not everything:
        verdicts = verdicts_of(trace, cancelled, progress)
    else:
        verdicts = find_verdicts(trace, limits, requested, cancelled, progress, everything=everything)
    undecided = undecided_table(trace, requested, limits.timing)
    table = verdict_table(trace, verdicts, undecided)
    return Verdicts(verdicts, table, undecided, _capture_again(trace, verdicts, undecided, limits.timing))


def undecided_table(
    trace: Trace, kinds: Collection[str] | None = None, timing: Mapping[str, Timing] | None = None
) -> Table:
    """Return a table of the kinds of verdicts that a trace cannot show, or not fully.

    Every answer includes this table, so that a trace without data does not look like a trace without faults.

    Args:
        trace: The events.
        kinds: Kinds to check; None = all that need no timing file. Those of plug-ins are undecided if they failed.
        timing: Contents of the timing file, for the kinds that need one; None = no file.

    Raises:
        UsageError: An activity of the timing file does not exist, or an expression is wrong.
    """
    failed = [
        plugin for plugin in plugins(PluginKind.VERDICT) if plugin.fault and (kinds is None or plugin.name in kinds)
    ]
    if kinds is None:
        kinds = [kind for kind in rules() if default_thresholds().has_timing_for(kind)]
    missing = list[tuple[str, str, str, str]]()
    for rule in rules().values() if len(trace.events) else ():
        if rule.kind not in kinds:
            continue
        own = any(need.reason(trace) for need in rule.needs)
        said = lacks(trace, said_needs(trace, timing or {}, rule.timing)) if rule.timing else []
        if own or said:
            reason = "; ".join([diagnosis(trace, rule.kind).advice] * own + said)
            missing.append((rule.kind, "none", rule.question, reason))
        elif unmet := unmet_bounds(trace, rule.kind):
            advice = "; ".join(dict.fromkeys(need.advice(trace) for need in unmet))
            missing.append((rule.kind, "some", rule.question, advice))
    missing += [(plugin.name, "none", f"Is there any {plugin.name}?", plugin.failure) for plugin in failed]
    texts = {
        name: Texts.of([row[number] for row in missing])
        for number, name in enumerate(("kind", "shown", "question", "reason"))
    }
    return Table(UNDECIDED, trace, texts, place="")


def verdict_table(trace: Trace, verdicts: Sequence[Verdict], undecided: Table) -> Table:
    """Return verdicts as a table; advice, proof, several cases (the worst first) and events are nested below each."""
    rows, parent = [_row_of(trace, verdict) for verdict in verdicts], [-1] * len(verdicts)
    for number, verdict in enumerate(verdicts):
        parts = _parts(trace, verdict)
        rows += parts
        parent += [number] * len(parts)
    start, end = (np.array([getattr(row, name) for row in rows], np.int64) for name in ("start", "end"))
    length = np.where(end >= 0, end - start, -1)
    events = [row.event for row in rows]
    says = [row.says for row in rows]
    return Table(
        QUESTION,
        trace,
        {
            "severity": Texts(np.array([_SEVERITIES.index(row.severity) for row in rows], np.uint8), _SEVERITIES),
            "kind": Texts.of([row.kind for row in rows]),
            "start": start,
            "end": end,
            "length": length,
            "cases": np.array([row.cases for row in rows], np.int64),
            "thread": np.array([next(iter(row.threads), -1) for row in rows], np.int64),
            "event": np.array([next(iter(row.evidence), -1) for row in rows], np.int64),
            "shown_event": np.array(events, np.int64),
            "threads": Several(tuple(row.threads for row in rows)),
            "objects": Several(tuple(row.objects for row in rows)),
            "evidence": Several(tuple(row.evidence for row in rows)),
            "says": Texts.of(says),
            "remedy": Texts.of([row.remedy for row in rows]),
            "proof": Texts.of([row.proof for row in rows]),
            "certainty": Texts(np.array([row.certainty for row in rows], np.uint8), CERTAINTIES),
        },
        known={"length": known_where(np.array([row.is_open for row in rows], np.bool_), Known.AT_LEAST)},
        texts={"says": lambda row: _event_text(trace, rows[row]) if rows[row].is_event else says[row]},
        parent=np.array(parent, np.int64),
        has_parts=True,
        place="shown_event",
        cannot_tell="\n".join(filter(None, (_undecided_words(undecided), may_be_more(trace)))),
    )


def _capture_again(
    trace: Trace, verdicts: Sequence[Verdict], undecided: Table, timing: Mapping[str, Timing]
) -> CaptureLine | None:
    kinds = dict.fromkeys(undecided.text(row, "kind") for row in range(len(undecided)))
    if trace.axis is not None:  # a file of another system may be all that lacks something
        kinds = dict.fromkeys(kind for kind in kinds if kind not in ANALYSES or diagnosis(trace, kind).is_helped)
    if not len(trace.events) or PRIORITIES.reason(trace):  # not wide mode, which may log what is now inferred
        # Verdicts about timing files are left out: no kernel event shows what goes through a chain.
        proven = {kind for kind, rule in rules().items() if not rule.timing}
        kinds |= dict.fromkeys(verdict.kind for verdict in verdicts if verdict.proof and verdict.kind in proven)
    needs = dict.fromkeys(need for kind in kinds if kind in ANALYSES for need in ANALYSES[kind].all_needs)
    for kind in kinds:
        if kind in rules() and rules()[kind].timing:
            needs |= dict.fromkeys(itertools.chain(*said_needs(trace, timing, rules()[kind].timing).values()))
    return capture_line(trace, needs, is_wide=True) if needs else None


@dataclass(frozen=True, slots=True)
class _VerdictRow:
    """One row of the table: a verdict or a part of a verdict; for an event `says` is its role in the verdict."""

    kind: str
    severity: str = ""
    start: int = -1
    end: int = -1
    event: int = -1
    says: str = ""
    remedy: str = ""
    proof: str = ""
    is_event: bool = False
    is_open: bool = False
    cases: int = -1
    certainty: int = 0
    threads: tuple[int, ...] = ()
    objects: tuple[str, ...] = ()
    evidence: tuple[int, ...] = ()


def _row_of(trace: Trace, verdict: Verdict) -> _VerdictRow:
    shown = _shown_event(trace, verdict)
    return _VerdictRow(verdict.kind, str(verdict.severity), verdict.start_cycles, verdict.end_cycles, shown,
                verdict.says, remedy=verdict.remedy, proof=verdict.proof,
                is_open=verdict.end_cycles >= _file_end(trace, verdict), cases=len(verdict.occurrences),
                certainty=int(verdict.certainty), threads=verdict.threads, objects=verdict.objects,
                evidence=verdict.evidence)  # fmt: skip


def _parts(trace: Trace, verdict: Verdict) -> list[_VerdictRow]:
    parts = [_VerdictRow("advice", says=verdict.remedy)]
    if verdict.proof:
        parts.append(_VerdictRow("proof", says=verdict.proof))
    count = len(verdict.occurrences)
    worst_first = sorted(enumerate(verdict.occurrences, 1),
                         key=lambda case: case[1].start_cycles - case[1].end_cycles)  # fmt: skip
    for number, case in worst_first[:_MOST_CASES] if count > 1 else ():
        parts.append(_VerdictRow(f"{number} of {count:,}", "", case.start_cycles, case.end_cycles, case.row,
                          _case_text(trace, verdict, case, is_longest=case is worst_first[0][1]),
                          is_open=case.end_cycles >= _file_end(trace, verdict)))  # fmt: skip
    if count > _MOST_CASES:
        parts.append(_VerdictRow(f"and {count - _MOST_CASES:,} more"))
    for event, role in zip(verdict.evidence, verdict.roles or ("",) * len(verdict.evidence), strict=True):
        parts.append(_VerdictRow(f"event {event + 1:,}", "", int(trace.events.time_cycles[event]), -1, event, role,
                          is_event=True))  # fmt: skip
    return parts


def _file_end(trace: Trace, verdict: Verdict) -> int:
    """Return the end of the file that a verdict is about, cycles; problems that are not over count up to that time."""
    if verdict.evidence:
        return int(ends_of_files(trace, np.array(verdict.evidence[:1]))[0])
    return file_window(trace, -1, int(trace.threads.process[next(iter(verdict.threads), 0)])).end


def _case_text(trace: Trace, verdict: Verdict, case: Occurrence, *, is_longest: bool) -> str:
    """Return a text about one of several occurrences: affected thread, first event, and whether it is the longest."""
    texts = ["the longest"] if is_longest else []
    if case.row >= 0:
        thread = int(trace.events.thread[case.row]) or next(iter(verdict.threads), 0)
        texts.insert(0, f"{f'{trace.thread_name(thread)}, ' if thread else ''}from {trace.spec(case.row).name} on")
    elif verdict.threads:
        texts.insert(0, trace.thread_name(verdict.threads[0]))
    if case.start_cycles == verdict.start_cycles:
        texts.append("the one that the sentence is about")
    return "; ".join(texts)


def _event_text(trace: Trace, row: _VerdictRow) -> str:
    """Return a text about an event of the evidence: role in the verdict, thread, name and arguments."""
    thread = int(trace.events.thread[row.event])
    arguments = arguments_text(trace.payloads.decode(row.event, _ARGUMENT_WORDS).arguments, _ARGUMENT_LETTERS)
    says = f"{trace.spec(row.event).name}  {arguments}"
    return f"{f'{row.says}: ' if row.says else ''}{f'{trace.thread_name(thread)}  ' if thread else ''}{says}"


def _shown_event(trace: Trace, verdict: Verdict) -> int:
    """Return the event to show for a verdict: start of the affected thread's longest wait, else of a READY state."""
    own = [event for event in verdict.evidence if int(trace.events.thread[event]) in verdict.threads[:1]]
    state = {event: int(trace.catalogue.state_value_of_code[trace.events.code[event]]) for event in own}
    waits = [event for event in own if state[event] not in (NOT_A_STATE, RUNNING, READY, DEAD)]
    ready = [event for event in own if state[event] == READY]
    if waits:
        rows = trace.states.of(verdict.threads[0])
        times = np.append(trace.events.time_cycles[rows], _file_end(trace, verdict))
        return max(waits, key=lambda event: np.diff(times)[np.searchsorted(rows, event)])
    return next(iter(ready or own or verdict.evidence), -1)


def _undecided_words(undecided: Table) -> str:
    """Return a text on the undecided kinds, grouped by the missing data, a line each without a full stop."""
    kinds: dict[str, list[str]] = {}
    for row in range(len(undecided)):
        kinds.setdefault(undecided.text(row, "reason"), []).append(undecided.text(row, "kind"))
    return "\n".join(f"{', '.join(names)}: {reason}" for reason, names in kinds.items())


def _is_in(verdict: Verdict, window: TimeWindow) -> bool:
    """Return whether the problem of a verdict occurs at least once in a range."""
    return any(case.start_cycles < window.end and window.start < max(case.end_cycles, case.start_cycles + 1)
               for case in verdict.occurrences)  # fmt: skip
