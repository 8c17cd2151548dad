"""Runs a workload on a simulated target and saves what tracelogger captures: the interface for commands and the GUI."""

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
    """Return the TraceEvent() calls for a rule text; process names are resolved on a running machine.

    Args:
        text: One rule per line, as in `.satrules` files.
        kernel: For the pids of process names, and for the release that numbers classes and events.
        load_function: For rules that call Python functions; None refuses those.
        is_wide: Whether the logger switches all events to wide before the rules apply.

    Returns:
        The calls, and the converted rules: their notes say what is captured although a view would hide it.

    Raises:
        RuleError: Faults in the text, or a rule that the kernel would refuse or that no kernel can carry out.
        UsageError: A function that may not be run.
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
    """Return the pids of running processes by name, as rules may write it."""
    return pids_by_name((process.pid, process.name) for process in kernel.machine.processes.values())


def _call(rule: Rule, captured: CaptureRules, load_function: FunctionLoader | None) -> RULE:
    assert rule.mode is not None
    if rule.condition:
        return rule.mode.name, (*rule.arguments(), Expression(rule.condition, captured.state.release), RULE_DATA)
    if rule.function and load_function is not None:
        return rule.mode.name, (*rule.arguments(), load_function(rule.function), RULE_DATA)
    return rule.mode.name, rule.arguments()


# Problems of a run: programs that misbehaved, deadlocks, threads that wait forever.


_SERVICE_STATES = frozenset({"READY", "RUNNING", "DEAD", "RECEIVE", "NANOSLEEP", "INTR", "SIGWAITINFO"})


_OURS = frozenset({"procnto-instr", "procnto-smp-instr", "tracelogger"})


def why_nothing(kernel: Kernel, options: LoggerOptions) -> str:
    """Return why a logger that ended without an error saved no event, as a sentence without a full stop.

    Args:
        kernel: State before the logger switches everything off.
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
        if process.short_name not in _OURS
        for thread in process.threads.values()
        if thread.state not in _SERVICE_STATES
    ]


def _is_at_rest(machine: Machine) -> bool:
    """Return whether nothing can ever happen again: no timer, no device, no thread ready or running."""
    if machine.timers.pending or any(source.is_active for source in machine.sources.values()):
        return False
    return not any(
        thread.state in ("READY", "RUNNING")
        for process in machine.processes.values()
        if process.short_name not in _OURS
        for thread in process.threads.values()
    )


def deadlocks(machine: Machine) -> list[list[Thread]]:
    """Return the cycles of threads that wait for each other, each once."""
    rings: list[list[Thread]] = []
    seen: set[Thread] = set()
    for start in _blocked(machine):
        chain: list[Thread] = []
        thread: Thread | None = start
        while thread is not None and thread not in chain and thread not in seen:
            chain.append(thread)
            owners = lock_state(thread.waiting_on)
            thread = owners[0] if owners else None
        if thread is not None and thread in chain:
            rings.append(chain[chain.index(thread) :])
        seen.update(chain)
    return rings


def _waits(thread: Thread) -> str:
    owners = lock_state(thread.waiting_on)
    whose = f" of {owners[0].label}" if owners else ""
    location = f" at {thread.location()}" if thread.location() else ""
    return f"{thread.label}{location} waits for {describe(thread.waiting_on)}{whose}"


def findings(machine: Machine) -> list[str]:
    """Return one sentence for every problem, with thread and line."""
    times = Counter(str(fault) for fault in machine.faults)
    texts = [
        text if count == 1 else f"{text} ({count} times{' or more' * (count == MAX_FAULTS)})"
        for text, count in times.items()
    ]
    texts += ["deadlock: " + ", ".join(_waits(thread) for thread in ring) for ring in deadlocks(machine)]
    in_ring = {thread for ring in deadlocks(machine) for thread in ring}
    if _is_at_rest(machine):
        texts += [
            f"waits for ever: {_waits(thread)} ({thread.state})"
            for thread in _blocked(machine)
            if thread not in in_ring
        ]
    return texts


PACE_S = 0.02  # real time between adjustments of a target that runs in real time
SHORT_GRACE_NS = 20_000_000
GRACE_S = 5  # simulated time that a stopped logger has to write the rest, in addition to the time of the disk
RECORDER_DAYS = 31  # limit for flight recorders, which run for days


@dataclass(slots=True)
class CaptureResult:
    """Result of a capture.

    Attributes:
        path: The file.
        slots, buffers: Number written.
        lost_buffers, dropped_events: Losses of the kernel because the logger was too slow.
        duration_ns: Simulated time.
        findings: Problems of the workload or the capture, one sentence each; empty if all is well.
        was_cancelled: True if the caller stopped it.
        truth: What really happened, for tests; only the end of it without `keeps_truth`.
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
    """All parameters of a capture; only the workload has no default.

    Attributes:
        workload: Name of a workload, path of a Python file with one, or the workload itself.
        seed: Same seed, same bytes.
        cpus: 0 = the workload's default.
        duration_ns: Maximum simulated time; 0 = the workload's default, or as long as a timed logger runs.
        options: Options of the logger.
        control: Program of another process that calls TraceEvent(), for daemon mode.
        lead_in_ns: Simulated time before the logger starts, so that the programs are up; -1 = the workload's default.
        attributes: Extra header pairs.
        limit_bytes: Maximum size of the file, 0 = none.
        patience_s: Real time after which a program that never yields is ended.
        sys_release: Exact release within the family, such as `6.2.1`; empty = the usual one.
        skew_ns: Maximum difference between the counters of two CPUs; None = as the release has it.
        rules_text: Rules as in `.satrules` files, set by the logger instead of "all classes"; process names are those
            of the workload. `load_function` is called for rules that call Python functions; None refuses them.
        keeps_truth: Keep what really happened, to compare it with the trace; memory grows with the duration.
        needs_privilege: Programs that attach handlers need I/O privilege, as on a target; False waives it.
        qst: Write the kernel's ring as a QST file of this form, without a logger; None = a .kev file.
        bounds: Limits of a flight recorder; None = one file, with as many buffers as the kernel has.
        target: A target to use in place of release, CPUs and skew.
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
    """Carry out a capture.

    Args:
        capture: What to capture.
        path: The file to write; it gets its name as soon as its header is complete, so that it can be followed and a
            kill loses little; the file of a ring gets its name when it is complete.
        progress: Called from time to time with the fraction done, 0 to 1.
        cancelled: Polled; when it returns True, the logger gets a SIGINT and writes what it has.
        say: Called with level and text of console messages.
        stream: Write there instead of to `path`.

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
    """Return the limits of a flight recorder, None if no trigger ends a ring.

    Raises:
        UsageError: The options cannot work together.
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
    """Ignore console messages."""


def _times(capture: Capture, workload: Workload, machine: Machine) -> tuple[int, int]:
    """Return the start of a capture and the end of the simulation, in cycles.

    Raises:
        UsageError: It lasts too long.
    """
    lead_in_ns = capture.lead_in_ns if capture.lead_in_ns >= 0 else workload.lead_in_ns
    duration_ns = capture.duration_ns or workload.duration_ns
    if capture.options.seconds and not capture.duration_ns:  # the logger ends it, even if the workload is shorter
        requested_ns = int(capture.options.seconds * NS_PER_S) + GRACE_S * NS_PER_S
        duration_ns = max(duration_ns, min(requested_ns, DAY_S * NS_PER_S))
    most_s = DAY_S * (RECORDER_DAYS if capture.bounds is not None else 1)
    if duration_ns < 0 or duration_ns > most_s * NS_PER_S:
        raise UsageError("the duration is more than a day, or negative")
    cycles = machine.target.cycles
    return machine.now + cycles(lead_in_ns), machine.now + cycles(lead_in_ns + duration_ns)


def _advance(
    machine: Machine, until: int, pace: float, cancelled: Callable[[], bool], progress: Callable[[int], None] | None
) -> None:
    """Simulate up to a time; with a pace, not faster than that."""
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
    """Start the control program, as a user would after seeing that the logger waits."""
    if program is not None:
        kernel.spawn("usr/bin/control", program, priority=SET_UP_PRIORITY - 1)


def _losses(kernel: Kernel) -> tuple[int, int]:
    buffers = kernel.emitter.buffers
    return (buffers.lost_buffers, buffers.dropped_events) if buffers is not None else (0, 0)


def _file(
    capture: Capture, path: Path, kernel: Kernel, started: int, stream: BinaryIO | None, watch: TriggerWatch | None,
    bounds: Bounds | None, say: Say,
) -> KevFile | QstFile | TriggeredOutput:  # fmt: skip
    """Create the file of a capture, or the flight recorder."""
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
    """Start the logger, or attach a probe or a QST tracer."""
    if isinstance(file, QstFile):
        return QstTracer(kernel, options, file, say)
    if options.is_probe:
        return Probe(kernel, options, file, say)
    machine = kernel.machine

    def on_ready() -> None:
        machine.at(machine.now, lambda _: _start_control(kernel, program))

    return Logger(kernel, options, file, say, on_ready)


def _finish(kernel: Kernel, logger: Logger | Probe, patience_s: float) -> None:
    """Stop the logger if it still runs, and let it write the rest."""
    machine, options = kernel.machine, logger.options
    if logger.is_done or logger.failure is not None:
        return
    grace_ns = GRACE_S * NS_PER_S + (options.own_buffers + options.kernel_buffers) * options.disk_ns_per_buffer
    deadline_s = time.thread_time() + patience_s  # CPU time, so that a slow reader of a pipe does not count

    def lasts_too_long() -> bool:
        return time.thread_time() > deadline_s

    machine.is_stopped = False
    short = machine.target.cycles(SHORT_GRACE_NS)
    if not logger.is_ready:  # stopped before its signal thread is up
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
