"""Rates how well a trace supports each analysis, and how far each column of its statistics can be trusted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis import needs as need
from satview.analysis.needs import IDLE, NO_DAMAGE, NO_LOSS, CaptureLine, Need, are_lost, capture_line, has_class
from satview.analysis.statistics import Statistics
from satview.analysis.times.basis import EXACT, Mark, Trust
from satview.analysis.times.state_times import walk
from satview.analysis.verdicts.find import verdicts_of
from satview.analysis.verdicts.rule import rules
from satview.base.safe_text import counted
from satview.base.time import TimeWindow
from satview.events.spec import Release
from satview.events.states import UNKNOWN
from satview.events.wire import WireClass
from satview.filters.rules.building import from_tracelogger_args
from satview.store.axis import AxisPart, files_of
from satview.store.time_ranges import KERNEL_PID, TimeRanges, losses, losses_of
from satview.store.trace import Trace

# All analyses: what each answers, what it needs for an answer, and what it needs for more than a bound.


@dataclass(frozen=True, slots=True)
class Analysis:
    """A question about a trace, and the needs that the trace must meet for an answer.

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
        """All needs: first `needs`, then `bounds`."""
        return self.needs + self.bounds


# The opening: a thread's state is known from its first event on.
_ALL: Final = (need.NO_DAMAGE, need.NO_LOSS, need.ALL_CPUS, need.OPENING)
_EVENTS: Final = (need.NO_DAMAGE, need.NO_LOSS)
_RUNS: Final = (need.INTERRUPTED, replace(need.CPUS, lack=Mark.ESTIMATE))  # without, time is added to who ran

_ROWS: Final = (
    Analysis("cpu", "Who used the CPUs", "How long did each thread and process run?", (need.STATES,),
             (*_RUNS, need.IDLE, *_ALL)),
    Analysis("states", "States of threads", "How long was each thread in which state?", (need.STATES,),
             (need.IDLE, *_ALL)),
    Analysis("ready", "Waits for a CPU", "How long was each thread ready, and did not run?",
             (need.STATES, need.CPUS), (need.IDLE, *_ALL)),
    Analysis("migrations", "Migrations", "How often did a thread run on another CPU than before?",
             (need.STATES, need.CPUS), _ALL),
    Analysis("events", "Events", "How many events of each kind are there?"),
    Analysis("calls", "Kernel calls", "How long did each kernel call take, and did it fail?",
             (need.KERNEL, need.CALLS, need.EXITS, need.CALLERS)),
    Analysis("messages", "Messages", "Who sends to whom, and how long does each message take?",
             (need.KERNEL, need.MESSAGES), (need.STATES, *_EVENTS)),
    Analysis("message-sizes", "Sizes of messages", "How many bytes does each message have?",
             (need.KERNEL, need.MESSAGES, need.CALLS, need.SIZES)),
    Analysis("pulses", "Pulses", "Who sends pulses, and when are they received?", (need.KERNEL, need.PULSES)),
    Analysis("wake-ups", "Wake-ups", "Who made a thread ready: another thread, a timer, an interrupt?",
             (need.KERNEL, need.STATES), (need.CALLS, need.MESSAGES_SENT, need.INTERRUPTS, need.TIMERS, need.WAKINGS,
                                        *_EVENTS)),
    Analysis("holders", "Holders of mutexes", "Who holds the mutex that a thread waits for?",
             (need.KERNEL, need.STATES, need.CALLS, need.SOME_HOLDER), (need.ALL_HOLDERS, *_EVENTS)),
    Analysis("priorities", "Priorities", "At which priority does each thread run?",
             (need.KERNEL, need.STATES, need.PRIORITIES), _ALL),
    Analysis("interrupts", "Interrupts", "How often does each interrupt come, how late and how long is it handled?",
             (need.KERNEL, need.INTERRUPTS, need.LOGGED_INTERRUPTS, need.INTERRUPT_EXITS)),
    Analysis("partitions", "Partitions", "How much of its budget does each partition use?",
             (need.KERNEL, need.STATES, need.BUDGETS, need.PRIORITIES), _ALL),
    Analysis("periods", "Periods", "Does each periodic thread run in time?", (need.KERNEL, need.STATES, need.PULSES)),
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
    """Rating of how well a trace supports one analysis.

    Attributes:
        trace: The events.
        analysis: The analysis, one of `ANALYSES`.
        trust: How far the answers of the analysis can be trusted, and why not further.
        remedy: What to do for better answers, in the imperative; empty if nothing would help.
        is_helped: True if another capture could give a better answer.
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
        """Settings of a capture that would meet all needs of the analysis; None if no capture would help."""
        return capture_line(self.trace, self.analysis.all_needs) if self.is_helped else None


def diagnosis(trace: Trace, key: str, is_quick: bool = False) -> Diagnosis:
    """Return the rating of one analysis: how well the trace supports it.

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
    bounds = tuple(need for need in analysis.bounds if _may_be_there(trace, need))
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
    remedies = dict.fromkeys(filter(None, (need.remedy_for(trace) for need in unmet[:1] or limits)))
    return Diagnosis(trace, analysis, trust, "; ".join(remedies), trust.mark is not Mark.NOT_LOGGED and bool(remedies))


def unmet_bounds(trace: Trace, key: str) -> tuple[Need, ...]:
    """Return the needs without which an analysis may miss some answers, as far as a trace does not meet them.

    Lost and damaged events are left out, as they make all answers bounds: see `may_be_more`.
    """
    bounds = (need for need in ANALYSES[key].bounds if need not in (NO_DAMAGE, NO_LOSS) and _may_be_there(trace, need))
    return _unmet(trace, tuple(bounds), is_quick=False)


def applicable(trace: Trace) -> tuple[str, ...]:
    """Return the keys of the analyses that apply to traces of this kind."""
    return tuple(key for key, row in ANALYSES.items() if _applies(trace, row))


def unanswered(trace: Trace) -> tuple[Diagnosis, ...]:
    """Return the analyses that a trace does not support at all, without checks that take long."""
    diagnoses = (diagnosis(trace, key, is_quick=True) for key in applicable(trace))
    return tuple(row for row in diagnoses if not row.trust.mark.is_answer)


def summary(trace: Trace) -> str:
    """Return a line with the analyses (no verdicts) that a trace does not support, grouped by reason; empty if none.

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
    """Return the trust in an analysis with unmet needs: the mark and reason of the first need.

    If `is_bound`, the needs only prevent an exact answer: the result is a lower bound or an estimate, with all reasons.
    """
    if not is_bound:
        return Trust(unmet[0].lack, unmet[0].reason(trace))
    mark = Mark.ESTIMATE if any(need.lack is Mark.ESTIMATE for need in unmet) else Mark.LOWER_BOUND
    return Trust(mark, "; ".join(dict.fromkeys(need.reason(trace) for need in unmet)))


def _applies(trace: Trace, analysis: Analysis) -> bool:
    """Return whether an analysis applies to traces of this kind.

    Only threads libraries report locks; analyses that need calls, messages or interrupts of QNX do not apply to Linux.
    """
    if trace.release is Release.LINUX:
        return analysis.key != "locks" and not any(
            need.lack in _NOT_THERE and need.unmet(trace) for need in analysis.needs
        )
    return analysis.key != "locks" or trace.release is Release.UNIXWARE


def _may_be_there(trace: Trace, need: Need) -> bool:
    """Return whether the system of a trace may log what meets a need; QNX logs all of it."""
    return trace.release.is_qnx or (need.lack not in _NOT_THERE and not need.is_of_qnx)


def _unmet(trace: Trace, needs: tuple[Need, ...], is_quick: bool) -> tuple[Need, ...]:
    return tuple(need for need in needs if not (is_quick and need.is_slow) and need.reason(trace))


def lacks_of_rows(trace: Trace, window: TimeWindow | None = None) -> tuple[Need, ...]:
    """Return the needs for whose lack rows of any answer may be missing: no event is lost, or damaged.

    Args:
        trace: The events.
        window: The rows are events of this range, so that events lost outside it do not count; None = of the trace.
    """
    is_whole = window is not None and not are_lost(trace, window.start, window.end)
    return tuple(need for need in ((NO_DAMAGE,) if is_whole else (NO_LOSS, NO_DAMAGE)) if need.reason(trace))


def may_be_more(trace: Trace, window: TimeWindow | None = None) -> str:
    """Return the reason why rows of an answer may be missing, see `lacks_of_rows`; empty if there is none."""
    return "; ".join(need.reason(trace) for need in lacks_of_rows(trace, window))


def deficits(trace: Trace, *needs: Need, window: TimeWindow | None = None) -> str:
    """Return why the rows of an answer may not be all, or parts of them missing, a line each.

    Args:
        trace: The events.
        needs: What the answer needs besides that no events are lost. If the first is not met, the others are not named.
        window: See `lacks_of_rows`.
    """
    basic = needs[0].advice(trace)
    unmet = (basic,) if basic else (need.advice(trace) for need in needs[1:])
    return "\n".join(filter(None, (*unmet, may_be_more(trace, window))))


def notes(trace: Trace) -> tuple[str, ...]:
    """Return notes from the capture's command line on events that may be missing; one sentence each, no full stops."""
    return from_tracelogger_args(trace.header.get("TRACELOGGER_ARGS"), trace.release).notes


# Trust in figures: how far each column of a table of statistics can be trusted, and in which rows.
#
# The table of the doctor lists what a trace lacks; the effect depends on the figure. Missing events make a sum or count
# too small, but a mean or a shortest time may be wrong either way.


_Bools = NDArray[np.bool_]


class Rests(Enum):
    """Kinds of data from which a figure is computed; if such data is missing, the figure is less trustworthy."""

    NOTHING = "a name, or how much is not known"
    STATES = "states of a thread in the range"
    CPU = "who ran on a CPU in the range"
    LOGGED = "events in the range, and who logged them"
    MESSAGES = "messages in the range, and who logged them"
    CALLS = "kernel calls in the range, and who entered them"
    EVENTS = "events in the range"
    PAIRS = "events in the range and what ends them, which may come later"


@dataclass(frozen=True, slots=True)
class DoctorFigures:
    """The analysis and the data on which the columns of one table depend.

    Attributes:
        analysis: Key of the analysis that most columns answer.
        rests: Data on which most columns depend.
        others: Columns that depend on other data, by key.
        either_way: Columns whose values missing events may make larger or smaller, in addition to `_EITHER_WAY`.
    """

    analysis: str
    rests: Rests
    others: dict[str, Rests]
    either_way: tuple[str, ...] = ()

    def of(self, key: str) -> tuple[str, Rests]:
        """Return the analysis that a column answers, and the data on which it depends."""
        return _ANALYSIS_OF.get(key, self.analysis), self.others.get(key, self.rests)


_LOGGED: Final = {"sent": Rests.MESSAGES, "received": Rests.MESSAGES, "calls": Rests.CALLS, "events": Rests.LOGGED}
# Needs of columns of QNX traces, besides those of the table; kernel calls that send nothing prove that no message was.
_ALSO_NEEDED: Final = {
    Rests.MESSAGES: replace(need.MESSAGES_SENT, lack=Mark.NEEDS_CLASS),
    Rests.CALLS: need.CALLS,
}
_COUNTS: Final = dict.fromkeys(("count", "per_s"), Rests.EVENTS)
_UNKNOWN: Final = dict.fromkeys(("unknown_ns", "unknown_share"), Rests.NOTHING)
_ANALYSIS_OF: Final = {  # of columns of threads and processes
    **dict.fromkeys(("cpu_ns", "cpu_share", "all_share", "mean_run_ns", "self_ns"), "cpu"),
    **dict.fromkeys(("ready_ns", "longest_ready_ns", "preemptions"), "ready"),
    "migrations": "migrations",
}
FIGURES: Final = {
    "thread": DoctorFigures("states", Rests.STATES, _LOGGED | _UNKNOWN),
    "state": DoctorFigures("states", Rests.STATES, {}),
    "state-total": DoctorFigures("states", Rests.STATES, {}, ("share",)),
    "process": DoctorFigures("states", Rests.STATES, _LOGGED),
    "cpu": DoctorFigures("cpu", Rests.CPU, _UNKNOWN),
    "event": DoctorFigures("events", Rests.EVENTS, {}, ("share",)),
    "call": DoctorFigures("calls", Rests.PAIRS, _COUNTS),
    "message": DoctorFigures("messages", Rests.PAIRS, dict.fromkeys(_COUNTS, Rests.LOGGED)),
    "interrupt": DoctorFigures("interrupts", Rests.PAIRS, _COUNTS),
    # A message whose receipt is missing is billed to the server itself.
    "client-server": DoctorFigures("messages", Rests.PAIRS, {"self_ns": Rests.STATES},
                             ("own_ns", "caused_ns", "bill_ns", "bill_share")),
    # With the runs in between missing, a move may be one that never happened, or several.
    "migration": DoctorFigures("migrations", Rests.STATES, {}, ("count", "per_s", "thread_count", "share")),
    "cpu-matrix": DoctorFigures("messages", Rests.PAIRS, {"unknown": Rests.NOTHING}, ("elsewhere_share",)),
    "partition": DoctorFigures("partitions", Rests.CPU, {"budget_share": Rests.NOTHING, "from_ns": Rests.NOTHING,
                                                   "critical_budget_ms": Rests.NOTHING,
                                                   "bankruptcies": Rests.EVENTS}, ("of_budget_share",)),
}  # fmt: skip
# Figures that missing events may make too large or too small; others can only be too small.
_EITHER_WAY: Final = ("mean_ns", "mean_run_ns", "mean_running_ns", "least_ns", "p50_ns", "p90_ns", "p99_ns",
                      "migrations", "open", "first_ns", "last_ns")  # fmt: skip


def trust_in_load(statistics: Statistics) -> Trust:
    """Return the trust in the load of the CPUs over the range of some statistics."""
    return Judge(statistics, "cpu", np.empty(0, np.int64)).of("cpu", Rests.CPU)[0]


_ANALYSIS_OF_MEASURE: Final = {  # by the first part of the measure's key
    "run": "cpu", "response": "states", "period": "states", "state": "states",
    "call": "calls", "queued": "messages", "service": "messages",
    "round_trip": "messages", "interrupt": "interrupts", "latency": "interrupts",
}  # fmt: skip


def trust_in_durations(trace: Trace, measure: str) -> Trust:
    """Return the trust in the distribution of the durations of a measure, such as `state:READY`."""
    analysis = _ANALYSIS_OF_MEASURE[measure.partition(":")[0]]
    return _as_estimate(diagnosis(trace, analysis, is_quick=True).trust)


class Judge:
    """Rates how far the columns of one table can be trusted; shared intermediate results are computed once.

    Args:
        statistics: The statistics from which the table is made.
        key: Name of the table.
        subjects: int64 (n,), subject of each row: row of a table, or number of a CPU.
    """

    def __init__(self, statistics: Statistics, key: str, subjects: NDArray[np.int64]) -> None:
        self._statistics, self._trace, self._key, self._subjects = statistics, statistics.trace, key, subjects
        self._trust_of: dict[tuple[str, Rests], tuple[Trust, _Bools | None]] = {}

    def of_column(self, key: str) -> tuple[Trust, _Bools | None]:
        """Return the trust in a column of numbers, and the rows to which it applies, bool (n,); None = all rows.

        The values in the other rows are exact.

        Args:
            key: Name of the column with the unit, such as `cpu_ns`.
        """
        figures = FIGURES[self._key]
        analysis, rests = figures.of(key)
        if rests is Rests.NOTHING:
            return EXACT, None
        if key == "bytes":
            return self._trust_in_sizes()
        trust, rows = self.of(analysis, rests)
        is_either_way = key.endswith(_EITHER_WAY) or key in figures.either_way
        return _as_estimate(trust) if is_either_way else trust, rows

    def of(self, analysis: str, rests: Rests) -> tuple[Trust, _Bools | None]:
        """Return the trust in figures of an analysis, and the affected rows, bool (n,); None = all.

        Args:
            analysis: Key of the analysis that the figures answer.
            rests: Data on which the figures depend.
        """
        if (analysis, rests) not in self._trust_of:
            self._trust_of[analysis, rests] = self._judge(analysis, rests)
        return self._trust_of[analysis, rests]

    def _judge(self, analysis: str, rests: Rests) -> tuple[Trust, _Bools | None]:
        """Compute what `of` returns for these arguments; `of` caches it."""
        damage, window = self._lack(NO_DAMAGE), self._statistics.window
        if rests is Rests.EVENTS:
            # Damage hides events but adds none, so the count is a lower bound.
            return self._trust_in_range(window.start, window.end).at_worst(_as_bound(damage)), None
        needs = ANALYSES[analysis].needs
        if analysis == "cpu":  # what threads measured themselves does not rest on who had a CPU
            needs += _RUNS[:1] if rests is Rests.STATES and self._statistics.measures_cpu else _RUNS
        elif self._key == "client-server":  # how long servers ran for others
            needs += _RUNS
        if rests in _ALSO_NEEDED and self._trace.release.is_qnx:
            needs += (_ALSO_NEEDED[rests],)
        worst, lacking = self._lacking(needs)
        if damage.mark is not Mark.EXACT or lacking is None:
            return worst.at_worst(damage), None
        trust, rows = self._trust_in_rest(rests)
        if trust.mark is Mark.EXACT:
            return worst, lacking
        return worst.at_worst(trust), None if rows is None else rows | lacking

    def _trust_in_rest(self, rests: Rests) -> tuple[Trust, _Bools | None]:
        """Return the trust that lost events and unknown states or callers leave, and the rows concerned; None = all.

        Which classes of events were captured is not checked here.
        """
        window = self._statistics.window
        if rests is Rests.PAIRS:
            lost = self._trust_in_range(window.start, self._trace.window.end)
            return lost.at_worst(self._trust_in_callers()), None
        lost, idle = self._trust_in_range(window.start, window.end), EXACT
        if rests in (Rests.STATES, Rests.CPU):
            idle = self._lack(IDLE)
        files = files_of(self._trace)
        if lost.mark is not Mark.EXACT and files is None:
            return lost.at_worst(idle), None
        if rests is Rests.STATES:
            rest, rows = self._trust_in_states(idle)
        else:
            rest = self._trust_in_cpus().at_worst(idle) if rests is Rests.CPU else self._trust_in_callers()
            rows = None
        if lost.mark is Mark.EXACT or files is None:
            return rest, rows
        of_lossy = self._rows_of([part for part in files.parts if NO_LOSS.reason(part.trace)])
        if of_lossy is None or rest.mark is Mark.EXACT:
            return lost.at_worst(idle), of_lossy
        return lost.at_worst(rest), None if rows is None else rows | of_lossy

    def _lacking(self, needs: tuple[Need, ...]) -> tuple[Trust, _Bools | None]:
        """Return the trust that unmet needs leave, and the affected rows, bool (n,); None = all.

        On an axis the affected rows are those of the files that do not meet the needs. If rows sum over all files, the
        files that meet the needs make the sums a bound. In files of other systems than QNX, events that these systems
        never log do not count as missing.
        """
        files, trust, rows = files_of(self._trace), EXACT, np.zeros(len(self._subjects), np.bool_)
        for unmet in needs:
            if not (reason := unmet.reason(self._trace)):
                continue
            if files is None:
                return Trust(unmet.lack, reason), None
            parts = [part for part in files.parts if unmet.reason(part.trace)
                     and _may_be_there(part.trace, unmet)]  # fmt: skip
            of_parts = self._rows_of(parts)
            if of_parts is None and parts:
                is_bound = unmet.lack in _NOT_THERE and len(parts) < len(files.parts)
                return Trust(Mark.LOWER_BOUND if is_bound else unmet.lack, reason), None
            if of_parts is not None and of_parts.any():
                trust, rows = trust if trust.reason else Trust(unmet.lack, reason), rows | of_parts
        return trust, rows

    def _rows_of(self, parts: list[AxisPart]) -> _Bools | None:
        """Return which rows of the table belong to some files, bool (n,); None if a row may belong to several."""
        numbers: dict[str, list[NDArray[Any]]] = {
            **{key: [part.threads[1:] for part in parts] for key in ("thread", "state", "migration", "client-server")},
            "message": [part.rows for part in parts],
            "process": [part.processes[1:] for part in parts],
            "cpu": [np.arange(part.first_cpu, part.first_cpu + part.trace.cpu_count) for part in parts],
        }
        if self._key not in numbers or not len(self._subjects):
            return None
        return np.isin(self._subjects, np.concatenate([np.empty(0, np.int64), *numbers[self._key]]))

    def _lack(self, need: Need) -> Trust:
        reason = need.reason(self._trace)
        return Trust(need.lack, reason) if reason else EXACT

    def _trust_in_range(self, start: int, end: int) -> Trust:
        return self._lack(NO_LOSS) if are_lost(self._trace, start, end) else EXACT

    def _trust_in_states(self, idle: Trust) -> tuple[Trust, _Bools | None]:
        """Return the trust in times of states if no events are lost, and the affected rows, bool (n,); None = all.

        A thread's state is unknown before its first event. Time before and in the opening dump does not count as
        unknown if the dump shows the state first.
        """
        states, threads = self._statistics.states, self._trace.threads
        dump_cycles = self._since_dump() - self._statistics.window.start
        unknown = states.of_state(UNKNOWN, states.total_cycles, len(threads)) > dump_cycles
        if idle.mark is not Mark.EXACT:
            unknown = unknown | (threads.pid == KERNEL_PID)
        of_process = np.zeros(len(self._trace.processes), np.bool_)
        of_process[threads.process[unknown]] = True
        trust = Trust(Mark.LOWER_BOUND, "the state is not known all the time (see Unknown)").at_worst(idle)
        if self._key == "state-total":  # each row sums over all threads
            is_doubtful = bool((unknown & ~self._statistics.basis.is_idle)[1:].any())
            return (trust, None) if is_doubtful else (EXACT, None)
        rows = (of_process if self._key == "process" else unknown)[self._subjects]
        if self._key == "state":
            rows &= self._subjects > 0
        if not rows.any():
            return EXACT, None
        return trust, rows

    def _trust_in_cpus(self) -> Trust:
        """Return the trust in figures of CPUs; between two runs, when the kernel has the CPU, no time is missing."""
        known = self._known_cpus(self._since_dump())
        return EXACT if known.all() else Trust(Mark.LOWER_BOUND, "who ran at the beginning is not known")

    def _known_cpus(self, start: int) -> _Bools:
        """Return for which CPUs the running thread is known at the moment `start` (cycles), bool (cpus,)."""
        lost = losses(self._trace)
        if not len(lost) and (walked := walk(self._trace)) is not None and walked.cpus is not None:
            began = walked.cpus.cpus["first_start"]
            return np.asarray((began >= 0) & (began <= start))
        runs = self._statistics.basis.runs
        is_before = (runs.start <= start) & (runs.value != UNKNOWN)
        known_until = np.full(self._trace.cpu_count, -1, np.int64)
        np.maximum.at(known_until, runs.cpu[is_before], np.minimum(runs.end[is_before], start))
        known = known_until >= 0
        for cpu in np.flatnonzero(known).tolist():
            missing = TimeRanges.of_rows(losses_of(lost, cpu))
            known[cpu] = not missing.meet(known_until[cpu : cpu + 1] - 1, np.array([start]))[0]
        return known

    def _since_dump(self) -> int:
        """Return the start of the range or the end of the opening dump, whichever is later, cycles."""
        window = self._statistics.window
        return min(max(window.start, self._trace.dump_end_cycles + 1), window.end - 1)

    def _trust_in_callers(self) -> Trust:
        """Return the trust in counts per thread: events whose thread is unknown are not counted."""
        threads = self._statistics.threads
        nobody = int(threads.calls[0] + threads.sent[0] + threads.received[0])
        reason = f"of {nobody:,} calls and messages the thread is not known"
        return Trust(Mark.LOWER_BOUND, reason) if nobody else EXACT

    def _trust_in_sizes(self) -> tuple[Trust, _Bools | None]:
        messages = self._statistics.messages
        rows = np.asarray(messages.sized < messages.count)
        if not rows.any():
            return EXACT, None
        reason = f"sizes of {int(messages.sized.sum()):,} of {int(messages.count.sum()):,} messages are reported"
        logged = diagnosis(self._trace, "message-sizes", is_quick=True).trust
        return logged if not logged.mark.is_answer else Trust(Mark.LOWER_BOUND, reason), rows


def _as_bound(trust: Trust) -> Trust:
    return Trust(Mark.LOWER_BOUND, trust.reason) if trust.mark is Mark.ESTIMATE else trust


def _as_estimate(trust: Trust) -> Trust:
    return Trust(Mark.ESTIMATE, trust.reason) if trust.mark is Mark.LOWER_BOUND else trust
