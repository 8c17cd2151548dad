"""Captures a workload on a simulated target with tracelogger; commands and the GUI call `run`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from satview.base.errors import UsageError
from satview.base.time import NS_PER_S
from satview.capture import control
from satview.capture.emit import RULE_DATA
from satview.capture.files import CaptureError, KevFile
from satview.capture.flight_recorder import Bounds, FlightRecorder
from satview.capture.kernel import Kernel
from satview.capture.logger import Logger, Probe
from satview.capture.logger_options import DAY_S, RULE, SET_UP_PRIORITY, LoggerOptions, LoggerReport, Say
from satview.capture.qst import QstFile, QstForm, QstTracer
from satview.capture.sim.machine.machine import Machine
from satview.capture.sim.machine.programs import MAX_FAULTS
from satview.capture.sim.parts.objects import lock_state
from satview.capture.sim.parts.target import Target, target
from satview.capture.sim.parts.threads import Body, Thread
from satview.capture.sim.parts.truth import Truth, describe
from satview.capture.triggered import TriggeredOutput, TriggerWatch, recorder_writer
from satview.capture.workloads.registry import Workload, find
from satview.events.catalogue import catalogue
from satview.events.spec import Release
from satview.filters.diagnostics import RuleError
from satview.filters.expressions.expression import Expression
from satview.filters.rows import pids_by_name
from satview.filters.rules.building import FunctionLoader, build
from satview.filters.rules.capturing import CaptureRules, for_capture
from satview.filters.rules.text import Rule, parse_rules
from satview.filters.rules.triggers import Trigger

# Rule files for captures: converts view rules to TraceEvent() calls.


def calls_of_text(
    text: str, kernel: Kernel, load_function: FunctionLoader | None = None, is_wide: bool = False
) -> tuple[list[RULE], CaptureRules]:
    """Return the TraceEvent() calls that set the filters described by the text of a rule file.

    Args:
        text: One rule per line, as in `.satrules` files.
        kernel: Determines the pids of process names, and the release's numbers of classes and events.
        load_function: Loads the Python functions that rules call; None = such rules are refused.
        is_wide: Whether the logger switches all events to wide before the rules apply.

    Returns:
        The calls, and the converted rules, whose notes describe events that are captured although a view hides them.

    Raises:
        RuleError: The text has faults, or a rule cannot be used in a kernel.
        UsageError: A rule calls a function that is not allowed.
    """
    release = kernel.target.release
    rules = parse_rules(text, release, processes_of(kernel))
    captured = for_capture(build(rules, release, load_function, is_wide), kernel.target.has_handlers)
    if captured.faults:
        raise RuleError(list(captured.faults))
    calls = [_call(rule, captured, load_function) for rule in captured.rules]
    calls += [("ADDCLASSEVHANDLER", (external, handler, RULE_DATA)) for external, handler in captured.handlers.items()]
    return calls, captured


def processes_of(kernel: Kernel) -> dict[str, tuple[int, ...]]:
    """Return the pids of the running processes, by each form of their names that a rule may contain."""
    return pids_by_name((process.pid, process.name) for process in kernel.machine.processes.values())


def _call(rule: Rule, captured: CaptureRules, load_function: FunctionLoader | None) -> RULE:
    assert rule.mode is not None
    if rule.condition:
        return rule.mode.name, (*rule.arguments(), Expression(rule.condition, captured.state.release), RULE_DATA)
    if rule.function and load_function is not None:
        return rule.mode.name, (*rule.arguments(), load_function(rule.function), RULE_DATA)
    return rule.mode.name, rule.arguments()


# Problems of a run: faults of programs, deadlocks, threads that wait forever.


_HARMLESS_STATES = frozenset({"READY", "RUNNING", "DEAD", "RECEIVE", "NANOSLEEP", "INTR", "SIGWAITINFO"})
_SYSTEM_PROCESSES = frozenset({"procnto-instr", "procnto-smp-instr", "tracelogger"})


def why_nothing(kernel: Kernel, options: LoggerOptions) -> str:
    """Return the reason why a logger that ended without an error saved no event: a sentence without a full stop.

    Args:
        kernel: The kernel, before the logger resets its filters and frees its buffers.
        options: Options of the logger.
    """
    if not kernel.control.was_started:
        return "START was never called"
    release, codes = kernel.target.release, kernel.emitter.rules.codes_at()
    classes = {catalogue(release).class_name(code) for code in np.flatnonzero(codes).tolist()} - {"CONTROL"}
    if not classes:
        return "every class of events is off"
    if not options.flushes_at_end and not options.is_ring:
        return "no buffer was full, and without a flush at the end a buffer that is not full is not saved"
    return f"of the classes that are on ({', '.join(sorted(classes))}) no event happened or passed"


def _blocked(machine: Machine) -> list[Thread]:
    return [
        thread
        for process in machine.processes.values()
        if process.short_name not in _SYSTEM_PROCESSES
        for thread in process.threads.values()
        if thread.state not in _HARMLESS_STATES
    ]


def _is_at_rest(machine: Machine) -> bool:
    """Return whether no more events can occur: no active timer or device, and no thread ready or running."""
    if machine.timers.pending or any(source.is_active for source in machine.sources.values()):
        return False
    return not any(
        thread.state in ("READY", "RUNNING")
        for process in machine.processes.values()
        if process.short_name not in _SYSTEM_PROCESSES
        for thread in process.threads.values()
    )


def deadlocks(machine: Machine) -> list[list[Thread]]:
    """Return each deadlock once, as the cycle of threads that wait for each other."""
    cycles: list[list[Thread]] = []
    seen: set[Thread] = set()
    for start in _blocked(machine):
        chain: list[Thread] = []
        thread: Thread | None = start
        while thread is not None and thread not in chain and thread not in seen:
            chain.append(thread)
            owners = lock_state(thread.waiting_on)
            thread = owners[0] if owners else None
        if thread is not None and thread in chain:
            cycles.append(chain[chain.index(thread) :])
        seen.update(chain)
    return cycles


def _waits(thread: Thread) -> str:
    owners = lock_state(thread.waiting_on)
    owner = f" of {owners[0].label}" if owners else ""
    location = f" at {thread.location()}" if thread.location() else ""
    return f"{thread.label}{location} waits for {describe(thread.waiting_on)}{owner}"


def findings(machine: Machine) -> list[str]:
    """Return one sentence for every problem of the programs, with thread and source line."""
    counts = Counter(str(fault) for fault in machine.faults)
    texts = [
        text if count == 1 else f"{text} ({count} times{' or more' * (count == MAX_FAULTS)})"
        for text, count in counts.items()
    ]
    cycles = deadlocks(machine)
    texts += ["deadlock: " + ", ".join(map(_waits, cycle)) for cycle in cycles]
    if _is_at_rest(machine):
        deadlocked = {thread for cycle in cycles for thread in cycle}
        texts += [
            f"waits for ever: {_waits(thread)} ({thread.state})"
            for thread in _blocked(machine)
            if thread not in deadlocked
        ]
    return texts


PACE_S = 0.02  # real time between adjustments of a target that runs in real time
SHORT_GRACE_NS = 20_000_000
GRACE_S = 5  # simulated time for a stopped logger to write the remaining buffers, in addition to the disk's time
RECORDER_DAYS = 31  # limit for flight recorders, which run for days


@dataclass(slots=True)
class CaptureResult:
    """Result of a capture.

    Attributes:
        path: The file.
        slots, buffers: Number of slots and of buffers written.
        lost_buffers, dropped_events: Losses of the kernel because the logger was too slow.
        duration_ns: Simulated time.
        findings: Problems of the workload or the capture, one sentence each; empty = no problems.
        was_cancelled: True if the caller stopped the capture.
        logger: Results of the logger.
        truth: The true history of the simulation, for tests; without `keeps_truth` only its end.
    """

    path: Path
    slots: int
    buffers: int
    lost_buffers: int
    dropped_events: int
    duration_ns: int
    findings: list[str]
    was_cancelled: bool
    logger: LoggerReport
    truth: Truth = field(repr=False, default_factory=Truth)


@dataclass(slots=True)
class Capture:
    """Parameters of a capture; only the workload has no default.

    Attributes:
        workload: Name of a workload, path of a Python file that defines a workload, or a `Workload`.
        seed: Random seed; captures with the same seed are equal byte for byte.
        cpus: Number of CPUs; 0 = the workload's default.
        release: Release family of the target.
        duration_ns: Maximum simulated time; 0 = the workload's default, or as long as a timed logger runs.
        options: Options of the logger.
        control: Program of another process that calls TraceEvent(), for daemon mode.
        lead_in_ns: Simulated time before the logger starts, in which the programs start; -1 = the workload's default.
        attributes: Extra header keys and values.
        limit_bytes: Maximum size of the file; 0 = no limit.
        patience_s: Real time after which a program that makes no kernel call is ended.
        sys_release: Exact release within the family, such as `6.2.1`; empty = the family's default.
        skew_ns: Maximum difference between the counters of two CPUs; None = the release's default.
        rules_text: Rules as in `.satrules` files, set by the logger instead of "all classes"; process names are those
            of the workload.
        load_function: Loads the Python functions that rules call; None = such rules are refused.
        keeps_truth: Keep the whole history to compare it with the trace; memory grows with the duration.
        needs_privilege: Programs that attach handlers need I/O privilege, as on a target.
        qst: Write the kernel's ring as a QST file of this form, without a logger; None = a .kev file.
        bounds: Limits of a flight recorder; None = one file, with as many buffers as the kernel has.
        target: Target to use in place of `release`, `cpus`, `sys_release` and `skew_ns`.
        pace: Simulated seconds per real second, for files that are watched while they grow; 0 = as fast as possible.
    """

    workload: str | Workload
    seed: int = 1
    cpus: int = 0
    release: Release = Release.QNX_7
    duration_ns: int = 0
    options: LoggerOptions = field(default_factory=lambda: LoggerOptions(iterations=0))
    control: Body | None = None
    lead_in_ns: int = -1
    attributes: Sequence[tuple[str, str]] = ()
    limit_bytes: int = 0
    patience_s: float = 10.0
    sys_release: str = ""
    skew_ns: int | None = None
    keeps_truth: bool = True
    pace: float = 0.0
    needs_privilege: bool = True
    rules_text: str = ""
    load_function: FunctionLoader | None = None
    qst: QstForm | None = None
    bounds: Bounds | None = None
    target: Target | None = None


def run(
    capture: Capture,
    path: Path | str,
    progress: Callable[[float], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
    say: Callable[[int, str], None] | None = None,
    stream: BinaryIO | None = None,
) -> CaptureResult:
    """Simulate a workload, capture its trace in a file and return the result.

    Args:
        capture: Parameters of the capture.
        path: The file to write. It gets its name as soon as its header is complete, so that it can be followed and
            survives a kill; the file of a ring gets its name when it is complete.
        progress: Called from time to time with the fraction done, 0 to 1.
        cancelled: Polled; when it returns True, the logger gets SIGINT and writes its remaining buffers.
        say: Called with the level and the text of each console message.
        stream: Write to this stream instead of `path`.

    Raises:
        UsageError: There is no such workload, or a number is out of range.
        CaptureError: The file cannot be written, or the simulation made no progress. The file so far can be opened.
    """
    workload = capture.workload if isinstance(capture.workload, Workload) else find(capture.workload)
    path = Path(path)
    run_target = capture.target or target(
        capture.release, capture.cpus or workload.cpus, capture.sys_release, capture.skew_ns
    )
    kernel = Kernel(replace(run_target, needs_privilege=capture.needs_privilege), capture.seed)
    machine = kernel.machine
    begin = machine.now
    started, end = _times(capture, workload, machine)
    workload.setup(kernel)
    options, rules = capture.options, None
    if capture.rules_text.strip():
        calls, rules = calls_of_text(capture.rules_text, kernel, capture.load_function, options.is_wide)
        options = replace(options, rules=calls)
        for note in rules.notes:
            (say or _say_nothing)(0, note)
    watch = TriggerWatch(kernel, rules.triggers) if rules is not None and rules.triggers else None
    bounds = _bounds(capture, rules.triggers if rules is not None else ())
    if bounds is not None:
        options = replace(options, is_ring=False, iterations=0)
    was_cancelled = False

    def poll() -> bool:
        nonlocal was_cancelled
        if not capture.keeps_truth:
            machine.truth.forget()
        was_cancelled = was_cancelled or (cancelled is not None and cancelled())
        return was_cancelled

    with (
        _file(capture, path, kernel, started, stream, watch, bounds, say or _say_nothing) as file,
        control.advancing(machine, path.name, capture.patience_s, lambda: file.is_waiting),
    ):
        machine.run(started, poll)
        logger = _logger(kernel, options, file, say or _say_nothing, capture.control)
        share = (lambda now: progress(min(1.0, (now - begin) / max(1, end - begin)))) if progress is not None else None
        _advance(machine, end, capture.pace, poll, share)
        messages, reason = findings(machine), why_nothing(kernel, options)
        lost, dropped = _losses(kernel)
        _finish(kernel, logger, capture.patience_s)
        if logger.failure is not None:
            raise logger.failure
        if not logger.report.events and not options.is_probe and not isinstance(file, QstFile):
            messages.append(f"nothing was captured: {reason}")
        if isinstance(file, TriggeredOutput):
            messages += file.finish()
        elif file.is_cut:
            messages.append(f"{path.name} is full with its {capture.limit_bytes} bytes: what came later is not in it")
    duration_ns = (machine.now - begin) * NS_PER_S // machine.target.cycles_per_s
    machine.close()
    if progress is not None:
        progress(1.0)
    return CaptureResult(
        path,
        logger.report.slots,
        logger.report.buffers,
        lost,
        dropped,
        duration_ns,
        messages + logger.report.errors,
        was_cancelled,
        logger.report,
        machine.truth,
    )


def _bounds(capture: Capture, triggers: Sequence[Trigger]) -> Bounds | None:
    """Return the limits of the flight recorder; None if the capture is no ring that a trigger ends.

    Raises:
        UsageError: The options contradict each other.
    """
    if triggers and capture.qst is not None:
        raise UsageError("--qst: a tracer that writes QST files has no triggers; leave it out")
    if not capture.options.is_ring or not any(trigger.action.stops for trigger in triggers):
        if capture.bounds is not None:
            raise UsageError("--every: it needs a ring (-r), and a rule that ends an incident: WHEN ... THEN STOP")
        return None
    bounds = capture.bounds or Bounds(capture.options.kernel_buffers)
    bounds.check(triggers)
    return bounds


def _say_nothing(_level: int, _text: str) -> None:
    """Ignore a console message."""


def _times(capture: Capture, workload: Workload, machine: Machine) -> tuple[int, int]:
    """Return the start of a capture and the end of the simulation, in cycles.

    Raises:
        UsageError: The duration is too long or negative.
    """
    lead_in_ns = capture.lead_in_ns if capture.lead_in_ns >= 0 else workload.lead_in_ns
    duration_ns = capture.duration_ns or workload.duration_ns
    if capture.options.seconds and not capture.duration_ns:  # the logger ends it, even if the workload is shorter
        requested_ns = int(capture.options.seconds * NS_PER_S) + GRACE_S * NS_PER_S
        duration_ns = max(duration_ns, min(requested_ns, DAY_S * NS_PER_S))
    max_s = DAY_S * (RECORDER_DAYS if capture.bounds is not None else 1)
    if duration_ns < 0 or duration_ns > max_s * NS_PER_S:
        raise UsageError("the duration is more than a day, or negative")
    cycles = machine.target.cycles
    return machine.now + cycles(lead_in_ns), machine.now + cycles(lead_in_ns + duration_ns)


def _advance(
    machine: Machine, until: int, pace: float, cancelled: Callable[[], bool], progress: Callable[[int], None] | None
) -> None:
    """Simulate up to a time, at most `pace` simulated seconds per real second; 0 = as fast as possible."""
    if not pace:
        machine.run(until, cancelled, progress)
        return
    begin, began_s = machine.now, time.monotonic()
    cycles_per_s = pace * machine.target.cycles_per_s  # of real time
    step = max(1, int(PACE_S * cycles_per_s))
    while machine.now < until and not machine.is_stopped and not cancelled():
        machine.run(min(machine.now + step, until), cancelled)
        if progress is not None:
            progress(machine.now)
        time.sleep(max(0.0, (machine.now - begin) / cycles_per_s - (time.monotonic() - began_s)))


def _start_control(kernel: Kernel, program: Body | None) -> None:
    """Start the control program, if any; called when the logger is ready."""
    if program is not None:
        kernel.spawn("usr/bin/control", program, priority=SET_UP_PRIORITY - 1)


def _losses(kernel: Kernel) -> tuple[int, int]:
    buffers = kernel.emitter.buffers
    return (buffers.lost_buffers, buffers.dropped_events) if buffers is not None else (0, 0)


def _file(
    capture: Capture, path: Path, kernel: Kernel, started: int, stream: BinaryIO | None, watch: TriggerWatch | None,
    bounds: Bounds | None, say: Say,
) -> KevFile | QstFile | TriggeredOutput:  # fmt: skip
    """Return the output of a capture: a file, or a flight recorder that writes files."""
    if capture.qst is not None:
        return QstFile(path, capture.qst, kernel.target)
    if bounds is not None and watch is not None:
        write = recorder_writer(kernel, started, capture.attributes)
        recorder = FlightRecorder(path, bounds, write, lambda text: say(0, text))
        return TriggeredOutput(watch, None, recorder, kernel.emitter.byte_order)
    file = KevFile(
        path, kernel.target, started, capture.attributes, capture.limit_bytes, stream,
        is_growing=not capture.options.is_ring,
    )  # fmt: skip
    return file if watch is None else TriggeredOutput(watch, file, None, kernel.emitter.byte_order)


def _logger(
    kernel: Kernel, options: LoggerOptions, file: KevFile | QstFile | TriggeredOutput, say: Say, program: Body | None
) -> Logger | Probe:
    """Start and return the logger of a capture: tracelogger, a probe or a QST tracer."""
    if isinstance(file, QstFile):
        return QstTracer(kernel, options, file, say)
    if options.is_probe:
        return Probe(kernel, options, file, say)
    machine = kernel.machine

    def on_ready() -> None:
        machine.at(machine.now, lambda _: _start_control(kernel, program))

    return Logger(kernel, options, file, say, on_ready)


def _finish(kernel: Kernel, logger: Logger | Probe, patience_s: float) -> None:
    """Stop the logger if it still runs, and let it write the remaining buffers."""
    machine, options = kernel.machine, logger.options
    if logger.is_done or logger.failure is not None:
        return
    grace_ns = GRACE_S * NS_PER_S + (options.own_buffers + options.kernel_buffers) * options.disk_ns_per_buffer
    deadline_s = time.thread_time() + patience_s  # CPU time, so that a slow reader of a pipe does not count

    def lasts_too_long() -> bool:
        return time.thread_time() > deadline_s

    machine.is_stopped = False
    short = machine.target.cycles(SHORT_GRACE_NS)
    if not logger.is_ready:  # its signal thread may not run yet
        machine.run(machine.now + short, lasts_too_long)
    logger.stop()
    machine.run(machine.now + short, lasts_too_long)
    if not machine.is_stopped:
        for source in machine.sources.values():  # a runaway device must not prevent the logger from ending
            source.is_silent = source.is_silent or not source.is_clock
            source.gap_ns = source.gap_ns if source.is_clock else lambda: None
        machine.run(machine.now + machine.target.cycles(grace_ns), lasts_too_long)
    if not machine.is_stopped:
        logger.report.errors.append(
            "the logger did not come to its end: higher priorities leave it no CPU, or its "
            "disk is too slow; what it had not written is lost"
        )


__all__ = ["Capture", "CaptureError", "CaptureResult", "run"]
