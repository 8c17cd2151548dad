"""Needs of analyses: for each need the test whether a trace meets it, and settings of a capture that would."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.times.basis import Mark
from satview.analysis.times.message_times import has_sizes
from satview.analysis.times.state_times import missing_in_dump
from satview.analysis.wait_graph import has_whole_states
from satview.base.safe_text import counted
from satview.base.time import format_duration
from satview.events import linux, wire
from satview.events.catalogue import listed_catalogue
from satview.events.modes import Mode
from satview.events.spec import Release
from satview.events.states import NOT_A_STATE, STATE_BY_NAME
from satview.filters.derived_columns import TraceDerivedColumns
from satview.filters.expressions.expression import Expression
from satview.filters.expressions.reach import codes_that_fit
from satview.filters.external import INT_CLASSES, KER_CLASSES, classes_of, external_of
from satview.filters.external import ExternalClass as C
from satview.filters.rules.building import build, logger_numbers, tracelogger_command
from satview.filters.rules.text import Rule
from satview.linkage.blockers import blockers
from satview.linkage.calls import interrupt_rows
from satview.linkage.links import OPEN
from satview.linkage.messages import PULSE_RECEIPT
from satview.linkage.waits import MUTEX, entries_of
from satview.store.arguments import taught
from satview.store.axis import files_of
from satview.store.problems import KINDS
from satview.store.time_ranges import TimeRanges, idle_threads, losses
from satview.store.trace import Trace

# Needs of analyses: one row for each need, with the test that it is unmet and the capture that would meet it.


_SLEEPING: Final = STATE_BY_NAME["SLEEPING"].value
_INT_EXIT: Final = wire.code(wire.WireClass.INT, 2)
_BUDGETS: Final = tuple(wire.code(wire.WireClass.SYSTEM, event) for event in (3, 4))  # APS_NAME, APS_NEW_BUDGET
_SENDING: Final = ("MSG_SENDV", "MSG_SENDVNC", "MSG_SEND_PULSE", "MSG_SEND_PULSEPTR", "MSG_REPLYV", "MSG_ERROR",
                   "SIGNAL_KILL", "SIGNAL_KILL_SIGVAL")  # fmt: skip
_OF_QNX: Final = frozenset((C.KERCALL, C.COMM, C.INT, C.SYSTEM))
_NOT_IN_SCHEDULES: Final = "a schedule has no kernel calls, messages, pulses, interrupts and priorities of QNX"
_LOSSES: Final = frozenset(("lost-buffers", "lost-events"))
_BESIDE_LOSSES: Final = frozenset(("orphan-slots", "unfinished-events"))  # parts of events in lost buffers
_HARMLESS: Final = frozenset(("partial-slot",))  # the file ends there; all before it is whole


@dataclass(frozen=True, slots=True)
class Need:
    """A requirement of an analysis on a trace.

    Attributes:
        key: Name under which the result of `reason` is cached with a trace.
        lack: Mark of results if the need is not met.
        unmet: Function that returns the reason why a trace does not meet the need, without a full stop; empty if the
            trace does. On an axis of several files, `reason` calls the function for each file.
        remedy: What to do to meet the need, in the imperative; may be empty.
        classes: Classes to capture to meet the need.
        is_wide: True if events of these classes must be wide.
        is_slow: True if the test takes as long as `satview check`.
    """

    key: str
    lack: Mark
    unmet: Callable[[Trace], str]
    remedy: str = ""
    classes: tuple[C, ...] = ()
    is_wide: bool = False
    is_slow: bool = False

    def reason(self, trace: Trace) -> str:
        """Return the reason why a trace does not meet the need; empty if the trace meets it. Cached with the trace.

        Several files on one axis meet the need if each file meets it; otherwise the reason names the files that do not.
        """
        return trace.cached(f"doctor.{self.key}", self._reason)

    def _reason(self, trace: Trace) -> str:
        files = files_of(trace)
        if files is None:
            reason = self.unmet(trace)
            return _NOT_IN_SCHEDULES if reason and trace.release is Release.LINUX and self.is_of_qnx else reason
        names: dict[str, list[str]] = {}
        for part in files.parts:
            names.setdefault(self.reason(part.trace), []).append(part.name)
        if len(names) == 1:
            return next(iter(names))
        return "; ".join(f"{', '.join(of_them)}: {reason}" for reason, of_them in names.items() if reason)

    @property
    def is_of_qnx(self) -> bool:
        """Whether events would meet the need that a schedule of another system never has."""
        return self.lack is not Mark.ESTIMATE and (self.is_wide or not _OF_QNX.isdisjoint(self.classes))

    def advice(self, trace: Trace) -> str:
        """Return the reason why a trace does not meet the need, and the remedy; empty if the trace meets the need.

        Traces of other systems than QNX have no remedy: it describes a capture on QNX.
        """
        return "; ".join(filter(None, (reason, self.remedy_for(trace)))) if (reason := self.reason(trace)) else ""

    def remedy_for(self, trace: Trace) -> str:
        """Return what to capture to meet the need; empty if only traces of other systems than QNX do not meet it."""
        files = files_of(trace)
        lacking = [trace] if files is None else [part.trace for part in files.parts if self.reason(part.trace)]
        return self.remedy if any(one.release.is_qnx for one in lacking) else ""


def lost_words(trace: Trace, cycles: int) -> str:
    """Return a text with the time for which events are missing; empty if none are.

    Args:
        trace: The events.
        cycles: That time, in cycles.
    """
    return f"events were lost for {format_duration(trace.clock.duration_ns(cycles))} of it" if cycles else ""


def are_lost(trace: Trace, start: int, end: int) -> bool:
    """Return whether events are lost in a range of time, given in cycles."""
    lost = TimeRanges.of_rows(losses(trace))
    # An event lost at the end of a range may have the time of the first one after it.
    return bool(len(lost.start)) and bool(lost.meet(np.array([start - 1]), np.array([end]))[0])


def has_class(trace: Trace, wire_class: wire.WireClass) -> bool:
    """Return whether a trace has any event of an internal class."""
    codes = np.arange(wire.CODE_COUNT)
    return bool(trace.code_counts[codes >> wire.CLASS_SHIFT == wire_class].any())


def _kernel(trace: Trace) -> str:
    return "" if trace.pairs is None else "the trace is that of a threads library, not of a kernel"


def _states(trace: Trace) -> str:
    if trace.pairs is not None:
        return ""
    if not len(trace.states.event):
        return "the trace has no states of threads"
    return "" if has_whole_states(trace) else "the trace has only some events of threads"


def _cpus(trace: Trace) -> str:
    if trace.pairs is None:
        return ""
    return "a threads library does not log who has a CPU: what is RUNNING there is not known to wait"


def _partners(trace: Trace) -> str:
    return "a schedule does not say for whom a thread waits" if trace.release is Release.LINUX else ""


def _waits(trace: Trace) -> str:
    is_anything = trace.catalogue.state_value_of_code == _SLEEPING
    return "SLEEPING does not say what a thread waits for" if trace.code_counts[is_anything].any() else ""


def _priorities(trace: Trace) -> str:
    return "" if TraceDerivedColumns(trace).has_priorities() else "the trace has no priorities"


def _calls(trace: Trace) -> str:
    return "" if has_class(trace, wire.WireClass.KER_CALL) else "the trace has no kernel calls"


def _exits(trace: Trace) -> str:
    codes = np.arange(wire.CODE_COUNT)
    ends = (codes >> wire.CLASS_SHIFT == wire.WireClass.KER_CALL) & (codes & wire.KER_FORM != 0)
    return "" if trace.pairs is not None or trace.code_counts[ends].any() else "the trace has no exits of kernel calls"


def _callers(trace: Trace) -> str:
    if _kernel(trace) or (has_class(trace, wire.WireClass.PR_TH) and trace.code_counts[wire.THREAD_RUNNING]):
        return ""
    return "no event shows who runs, so the callers are not known, nor the ends of calls that may block"


def _messages(trace: Trace) -> str:
    return "" if has_class(trace, wire.WireClass.COMM) else "the trace has no messages"


def _messages_sent(trace: Trace) -> str:
    """Return the reason why messages are not shown, as `_messages`; empty also if the trace shows that none were sent.

    The trace shows this if kernel calls were logged and none of them sends a message.
    """
    sends_none = not _calls(trace) and not len(entries_of(trace, *_SENDING))
    return "" if sends_none else _messages(trace)


def _pulses_sent(trace: Trace) -> str:
    return "" if has_class(trace, wire.WireClass.COMM) else "the trace has no pulses"


def _pulses(trace: Trace) -> str:
    return "" if trace.code_counts[PULSE_RECEIPT] else "no pulse is received"


def _periods(trace: Trace) -> str:
    pulses, states = _pulses(trace), _states(trace)
    return f"{pulses}, and {states}" if pulses and states else ""


def _sizes(trace: Trace) -> str:
    return "" if has_sizes(trace) else "no event shows the size of a message"


def _interrupts(trace: Trace) -> str:
    return "" if trace.pairs is None and len(interrupt_rows(trace)) else "the trace has no interrupts"


def _interrupted(trace: Trace) -> str:
    # A kernel of 8.0 logs none; its handlers are threads.
    if trace.pairs is not None or trace.release is Release.QNX_8 or len(interrupt_rows(trace)):
        return ""
    missing = "a schedule has no interrupts" if trace.release is Release.LINUX else "interrupts were not captured"
    return f"{missing}, so their time counts for what they interrupt"


def _causes(trace: Trace) -> str:
    missing = _interrupts(trace) if trace.release.is_qnx and trace.pairs is None else ""
    return f"{missing}, so what they cause begins only with the pulse or wake-up" if missing else ""


def _idle(trace: Trace) -> str:
    # Up to 7.x idle threads are known by their thread numbers.
    if trace.release is not Release.QNX_8 or np.count_nonzero(idle_threads(trace)) >= trace.cpu_count:
        return ""
    return "no event names the idle threads, so they look like threads that work"


def _interrupt_exits(trace: Trace) -> str:
    return "" if trace.code_counts[_INT_EXIT] else "the trace has no exits of interrupts"


def _logged_interrupts(trace: Trace) -> str:
    if trace.release is not Release.QNX_8:
        return ""
    return "a kernel of 8.0 logs that an interrupt is delivered, not how long it is handled"


def _timers(trace: Trace) -> str:
    # Up to 6.5 kernels do not log timers.
    is_there = trace.release is Release.QNX_6 or has_class(trace, wire.WireClass.SYSTEM)
    return "" if is_there else "the trace has no expiries of timers"


def _wakings(trace: Trace) -> str:
    is_there = trace.release is not Release.LINUX or trace.code_counts[linux.point_codes()[linux.WAKING]]
    return "" if is_there else "the trace has no events sched_waking"


def _functions(trace: Trace) -> str:
    is_there = not trace.release.is_qnx or trace.pairs is not None or has_class(trace, wire.WireClass.SYSTEM)
    return "" if is_there else "the trace has no calls of functions and no samples of a profiler"


def _budgets(trace: Trace) -> str:
    return "" if trace.code_counts[list(_BUDGETS)].any() else "no event shows names or budgets of partitions"


def _holders(trace: Trace) -> str:
    blocked_by = blockers(trace)
    stuck = (blocked_by.waits.value == MUTEX) & (blocked_by.waits.end_row == OPEN) & (blocked_by.pid < 0)
    count = np.count_nonzero(stuck)
    who = f"{counted(int(count), 'thread')} {'waits' if count == 1 else 'wait'}"
    return f"at the end {who} for a mutex of which no event shows the holder" if count else ""


def _all_holders(trace: Trace) -> str:
    blocked_by = blockers(trace)
    waits = blocked_by.waits.value == MUTEX
    unknown, count = np.count_nonzero(waits & (blocked_by.pid < 0)), np.count_nonzero(waits)
    return f"of {unknown:,} of {count:,} waits for a mutex no event shows the holder" if unknown else ""


def _some_holder(trace: Trace) -> str:
    blocked_by = blockers(trace)
    waits = blocked_by.waits.value == MUTEX
    none = waits.any() and not (waits & (blocked_by.pid >= 0)).any()
    return "no event shows who holds a mutex" if none else ""


def _some_name(trace: Trace) -> str:
    return "" if any(trace.processes.names) else "no process has a name here"


def _names(trace: Trace) -> str:
    missing = sum(not name for name in trace.processes.names[1:])
    return f"{missing:,} of {len(trace.processes) - 1:,} processes have no name here" if missing else ""


def _loss(trace: Trace) -> str:
    lost = TimeRanges.of_rows(losses(trace))
    return lost_words(trace, int((lost.end - lost.start).sum()))


def _damage(trace: Trace) -> str:
    counts = trace.problems.counts()
    ignored = _LOSSES | _HARMLESS | (_BESIDE_LOSSES if len(losses(trace)) else frozenset())
    damages = [slug for slug in counts if (KINDS[slug].costs_data or slug == "cut-listing") and slug not in ignored]
    logged = ", ".join(f"{KINDS[slug].title.lower()}: {counts[slug]:,}" for slug in damages)
    return f"the file is damaged ({logged})" if damages else ""


def _opening(trace: Trace) -> str:
    if trace.pairs is not None:
        return ""
    if trace.release is Release.LINUX:
        return "each thread is unknown before its first event"
    if trace.dump_end_cycles < trace.window.start:
        return "it does not begin with the dump of all threads, so each is unknown before its first event"
    count = np.count_nonzero(missing_in_dump(trace))
    of_all = f"{count:,} of {counted(len(trace.threads) - 1, 'thread')}"
    return f"the dump at its start lacks {of_all}, each unknown before its first event" if count else ""


def _silent_cpus(trace: Trace) -> str:
    if trace.pairs is not None:
        return ""
    silent = [str(cpu) for cpu in range(trace.cpu_count) if not (trace.events.cpu == cpu).any()]
    if not silent or not len(trace.events):
        return ""
    what = f"CPU {silent[0]} logs" if len(silent) == 1 else f"CPUs {', '.join(silent)} log"
    return f"{what} no event, so it is not known what ran there"


_THREAD: Final = (C.THREAD,)
KERNEL: Final = Need("kernel", Mark.NOT_LOGGED, _kernel)
STATES: Final = Need("states", Mark.NEEDS_CLASS, _states, "capture the class THREAD whole", _THREAD)
CPUS: Final = Need("cpus", Mark.NOT_LOGGED, _cpus)
PARTNERS: Final = Need("partners", Mark.NOT_LOGGED, _partners)
WAITS: Final = Need("waits", Mark.NOT_LOGGED, _waits)
PRIORITIES: Final = Need("priorities", Mark.NEEDS_WIDE, _priorities, "capture wide events of the class THREAD", _THREAD,
                         is_wide=True)  # fmt: skip
CALLS: Final = Need("calls", Mark.NEEDS_CLASS, _calls, "capture the class KERCALL", (C.KERCALL,))
EXITS: Final = Need("exits", Mark.NEEDS_CLASS, _exits, "capture the class KERCALL whole", (C.KERCALL,))
CALLERS: Final = Need("callers", Mark.ESTIMATE, _callers, "capture the class THREAD", _THREAD)
MESSAGES: Final = Need("messages", Mark.NEEDS_CLASS, _messages, "capture the class COMM", (C.COMM,))
MESSAGES_SENT: Final = Need("messages-sent", Mark.LOWER_BOUND, _messages_sent, "capture the class COMM", (C.COMM,))
PULSES: Final = Need("pulses", Mark.NEEDS_CLASS, _pulses, "capture the class COMM", (C.COMM,))
PULSES_SENT: Final = Need("pulses-sent", Mark.LOWER_BOUND, _pulses_sent, "capture the class COMM", (C.COMM,))
PERIODS: Final = Need("periods", Mark.NEEDS_CLASS, _periods, "capture the classes COMM and THREAD", (C.COMM, C.THREAD))
SIZES: Final = Need("sizes", Mark.NEEDS_WIDE, _sizes, "capture wide events of the class KERCALL", (C.KERCALL,),
                    is_wide=True)  # fmt: skip
INTERRUPTS: Final = Need("interrupts", Mark.NEEDS_CLASS, _interrupts, "capture the class INTR", (C.INT,))
INTERRUPTED: Final = Need("interrupted", Mark.ESTIMATE, _interrupted, "capture the class INTR", (C.INT,))
INTERRUPT_CAUSES: Final = Need("interrupt-causes", Mark.LOWER_BOUND, _causes, "capture the class INTR", (C.INT,))
IDLE: Final = Need("idle", Mark.ESTIMATE, _idle, "capture the class PROCESS from its opening dump on", (C.PROCESS,))
INTERRUPT_EXITS: Final = Need("interrupt-exits", Mark.NEEDS_CLASS, _interrupt_exits, "capture the class INTR whole",
                              (C.INT,))  # fmt: skip
LOGGED_INTERRUPTS: Final = Need("logged-interrupts", Mark.NOT_LOGGED, _logged_interrupts)
TIMERS: Final = Need("timers", Mark.LOWER_BOUND, _timers, "capture the class SYSTEM", (C.SYSTEM,))
FUNCTIONS: Final = Need("functions", Mark.NEEDS_CLASS, _functions, "capture the class SYSTEM", (C.SYSTEM,))
WAKINGS: Final = Need("wakings", Mark.LOWER_BOUND, _wakings)
BUDGETS: Final = Need("budgets", Mark.NEEDS_CLASS, _budgets,
                      "capture the class SYSTEM, and query the partitions meanwhile (aps show)",
                      (C.SYSTEM,))  # fmt: skip
HOLDERS: Final = Need("holders", Mark.NEEDS_WIDE, _holders, "capture wide events of the class KERCALL", (C.KERCALL,),
                      is_wide=True, is_slow=True)  # fmt: skip
SOME_HOLDER: Final = Need("some-holder", Mark.NEEDS_WIDE, _some_holder, "capture wide events of the class KERCALL",
                          (C.KERCALL,), is_wide=True, is_slow=True)  # fmt: skip
ALL_HOLDERS: Final = Need("all-holders", Mark.LOWER_BOUND, _all_holders, "capture wide events of the class KERCALL",
                          (C.KERCALL,), is_wide=True, is_slow=True)  # fmt: skip
SOME_NAME: Final = Need("some-name", Mark.NEEDS_CLASS, _some_name, "capture the class PROCESS", (C.PROCESS,))
NAMES: Final = Need("names", Mark.LOWER_BOUND, _names, "capture the class PROCESS from its opening dump on",
                    (C.PROCESS,))  # fmt: skip
NO_LOSS: Final = Need(
    "loss",
    Mark.LOWER_BOUND,
    _loss,
    "capture fewer events, or into more kernel "
    "buffers, and end with a signal (-c) or a time (-s) rather than after a number of buffers",
)
NO_DAMAGE: Final = Need("damage", Mark.ESTIMATE, _damage, "capture again")
OPENING: Final = Need("opening", Mark.LOWER_BOUND, _opening, "begin the trace with START, not in a ring")

ALL_CPUS: Final = Need("all-cpus", Mark.LOWER_BOUND, _silent_cpus, "see how many CPUs the target uses (pidin info)")


def missing_class(trace: Trace, codes: NDArray[np.integer]) -> str:
    """Return a text that names the classes of some codes as missing; empty if the trace has an event of any of them.

    The text is also empty if there are no codes.
    """
    book = trace.catalogue
    classes, present = (
        np.unique(book.class_index_of_code[some]) for some in (codes, np.flatnonzero(trace.code_counts))
    )
    if not len(classes) or np.isin(classes, present).any():
        return ""
    return f"the trace has no events of the class {' or '.join(sorted(book.classes[row].name for row in classes))}"


def events_need(trace: Trace, text: str) -> Need:
    """Return the need of an expression: the trace must have events of a class in which the expression can be true.

    Raises:
        ExpressionError: The text is no valid expression.
    """
    externals = {external_of(code, trace.release).external for code in _fitting(trace, text).tolist()}
    classes = {C.KERCALL if one in KER_CLASSES else C.INT if one in INT_CLASSES else one for one in externals if one}
    return Need(f"events {text}", Mark.NEEDS_CLASS, partial(_events, text=text), "capture them", tuple(sorted(classes)))


def _events(trace: Trace, text: str) -> str:
    return missing_class(trace, _fitting(trace, text))


def _fitting(trace: Trace, text: str) -> NDArray[np.intp]:
    """Return the codes of the events for which an expression can be true, by class and event only, intp (n,).

    Expressions also know the names that a listing read earlier has added. Only traces with the catalogue of that
    listing can have such events.
    """
    codes = np.flatnonzero(codes_that_fit(Expression(text, trace.release, taught=taught(trace)).tree))
    added = np.setdiff1d(listed_catalogue(trace.release).codes(), trace.catalogue.codes())
    return codes[~np.isin(codes, added)]


def has_no_states(trace: Trace) -> bool:
    """Return whether a kernel trace has kernel calls and no states of threads: lanes of threads would be empty."""
    if trace.pairs is not None or _calls(trace):
        return False
    is_state = trace.catalogue.state_value_of_code != NOT_A_STATE
    return not trace.code_counts[is_state].any()


# Capture settings that meet the needs of an analysis: rules, and the equivalent command line of tracelogger.


_LEFT_OUT: Final = (C.KERCALL, C.INT, C.VTHREAD, C.COMM, C.SYSTEM)  # PROCESS names things, THREAD shows who runs
_KERNEL_BUFFERS, _LOGGER_BUFFERS = 32, 64  # defaults of tracelogger, section 7.1
_MOST_BUFFERS: Final = 1024


@dataclass(frozen=True, slots=True)
class CaptureLine:
    """Settings of a capture, in two equivalent forms.

    Attributes:
        rules: Rules, one per line, for `satview tracelogger --rules` and for New capture.
        command: Command line of tracelogger for the target.
    """

    rules: str
    command: str


def capture_line(trace: Trace, needs: Iterable[Need], *, is_wide: bool = False) -> CaptureLine | None:
    """Return settings of a capture that meets needs, with only the classes involved; None if the trace is not of QNX.

    The classes PROCESS and THREAD are always captured: without them nothing has a name or an owner.

    Args:
        trace: The trace that does not meet the needs; its release decides which options exist.
        needs: All needs of an analysis, met or not.
        is_wide: All events wide, whether a need asks for it or not.
    """
    if not trace.release.is_qnx:
        return None
    needs = tuple(needs)
    requested = {external for need in needs for external in need.classes}
    release = trace.release
    rules = [Rule(Mode.ADDALLCLASSES)]
    rules += [Rule(Mode.DELCLASS, external) for external in _LEFT_OUT
              if external in classes_of(release) and external not in requested]  # fmt: skip
    is_wide |= any(need.is_wide for need in needs)
    rules.append(Rule(Mode.SETALLCLASSESWIDE if is_wide else Mode.SETALLCLASSESFAST))
    command = tracelogger_command(build(rules, release)).text
    if NO_LOSS in needs and NO_LOSS.reason(trace):
        command = command.replace("tracelogger", f"tracelogger {_more_buffers(trace)}", 1)
    return CaptureLine("".join(f"{rule.text(release)}\n" for rule in rules), command)


def _more_buffers(trace: Trace) -> str:
    """Return tracelogger options for four times as many buffers as the capture had, up to `_MOST_BUFFERS`."""
    given = logger_numbers(trace.header.get("TRACELOGGER_ARGS"))
    kernel, logger = given.get("k", _KERNEL_BUFFERS), given.get("b", _LOGGER_BUFFERS)
    return f"-k {min(4 * kernel, _MOST_BUFFERS)} -b {min(4 * logger, _MOST_BUFFERS)}"
