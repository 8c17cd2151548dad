"""Captures a workload on a simulated target with tracelogger, also for very long traces in bounded memory."""

from __future__ import annotations

import time
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import Cancelled, UsageError
from satview.base.time import NS_PER_S
from satview.capture.buffers import (
    DAY_S,
    RULE,
    SET_UP_PRIORITY,
    Buffer,
    CaptureError,
    KevFile,
    LoggerOptions,
    LoggerReport,
    Output,
    Say,
)
from satview.capture.emit import RULE_DATA
from satview.capture.flight_recorder import (
    Bounds,
    FlightRecorder,
    QstFile,
    QstForm,
    QstTracer,
    TriggeredOutput,
    TriggerWatch,
    recorder_writer,
)
from satview.capture.kernel import Kernel, mode
from satview.capture.logger import Logger, Probe
from satview.capture.sim.machine import Machine
from satview.capture.sim.services import MAX_FAULTS
from satview.capture.sim.target import Target, target
from satview.capture.sim.threads import Body, Thread, lock_state
from satview.capture.sim.truth import Truth, describe
from satview.capture.workloads import registry
from satview.capture.workloads.registry import Workload, find
from satview.events import wire
from satview.events.catalogue import catalogue
from satview.events.spec import Release
from satview.filters.derived_columns import pids_by_name
from satview.filters.diagnostics import RuleError
from satview.filters.expressions.expression import Expression
from satview.filters.rules.building import FunctionLoader, build
from satview.filters.rules.capturing import CaptureRules, for_capture
from satview.filters.rules.text import Rule, parse_rules
from satview.filters.rules.triggers import Trigger
from satview.formats.kev.header import slot_array

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
    """Return why a logger that ended without an error saved no event; called before it resets filters and buffers."""
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
        duration_ns: Simulated time, the time before the capture included.
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
        duration_ns: Maximum simulated time; 0 = the workload's default, or longer if `options.seconds` requires it.
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
        registry.advancing(machine, path.name, capture.patience_s, lambda: file.is_waiting),
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
    """Return the limits of the flight recorder, None = there is none; UsageError if options contradict each other."""
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
    """Return start and end of a capture in cycles; UsageError if the duration is too long or negative."""
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
    """Simulate until a time in cycles, with at most `pace` simulated seconds per real second; 0 = no limit."""
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
) -> Output:  # fmt: skip
    """Return the output of a capture: a file, or with `bounds` and a `watch` for triggers a flight recorder."""
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


def _logger(kernel: Kernel, options: LoggerOptions, file: Output, say: Say, program: Body | None) -> Logger | Probe:
    """Start and return the logger: tracelogger, whose control program may follow, a probe or a QST tracer."""
    if isinstance(file, QstFile):
        return QstTracer(kernel, options, file, say)
    if options.is_probe:
        return Probe(kernel, options, file, say)
    machine = kernel.machine

    def on_ready() -> None:
        machine.at(machine.now, lambda _: _start_control(kernel, program))

    return Logger(kernel, options, file, say, on_ready)


def _finish(kernel: Kernel, logger: Logger | Probe, patience_s: float) -> None:
    """Stop a logger that still runs, and let it write its buffers within `patience_s` of CPU time."""
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


# Writes very long traces in bounded memory: simulates one rollover period of the stamp, and writes it repeatedly.
#
# A repetition, called a tile, is exactly 2^32 cycles long, so that stamps are the same in all tiles. Only the upper
# half of the time in TIME events and the sequence numbers of buffers differ; they are computed as columns. At the end
# of a tile, state events restore every thread's state at the start of the tile, so that the states of a thread are
# consistent.


# Receives full kernel buffers in memory, without a simulated logger.


class MemorySink:
    """Collects the slots of full buffers in memory without taking simulated time; call it with each buffer."""

    def __init__(self) -> None:
        self._words = array("I") if array("I").itemsize == 4 else array("L")
        self.buffers = 0

    def __call__(self, buffer: Buffer) -> None:
        """Copy the slots of a full buffer, and empty the buffer."""
        self._words.extend(buffer.words)
        self.buffers += 1
        buffer.empty()

    def slots(self) -> NDArray[np.uint32]:
        """Return all slots so far, shape (n, 4), uint32 in host order."""
        return slot_array(self._words)


ROLLOVER_CYCLES = 1 << 32
MAX_EVENTS = 2_000_000_000
_MARGIN_NS = 400_000  # reserved at the end of a tile for unfinished events and the closing state events

_MAX_TILE_NS = 6_000_000_000


@dataclass(frozen=True, slots=True)
class Tile:
    """The repeated part of a trace, and the part before it.

    Attributes:
        target: The simulated target.
        head: Slots of the state dump at the start of the trace, shape (h, 4), uint32.
        slots: Slots of one rollover period, shape (n, 4), uint32.
        events, head_events: Number of events in `slots` and in `head`.
        buffers: int64, shape (CPUs,), number of buffers in `slots` for each CPU. Up to 7.x all CPUs share the buffers,
            and each element is the total.
        started_cycles: Start of the capture.
        findings: Problems of the workload, one sentence each.
    """

    target: Target
    head: NDArray[np.uint32]
    slots: NDArray[np.uint32]
    events: int
    head_events: int
    buffers: NDArray[np.int64]
    started_cycles: int
    findings: Sequence[str] = ()


def count_events(slots: NDArray[np.uint32]) -> int:
    """Return the number of events in slots: all slots except continuations."""
    return int(np.count_nonzero(slots[:, 0] >> wire.STRUCT_SHIFT < wire.Struct.COMBINE_CONTINUE))


def make_tile(
    workload: str = "automotive",
    seed: int = 1,
    cpus: int = 0,
    release: Release = Release.QNX_7,
    is_wide: bool = False,
    cancelled: Callable[[], bool] | None = None,
) -> Tile:
    """Simulate a workload for one rollover period of the stamp and return the result as a tile.

    Args:
        workload: Name of the workload, or path of a Python file that defines one.
        seed: Random seed.
        cpus: Number of CPUs; 0 = the workload's default.
        release: Release family of the target.
        is_wide: Whether events are logged in wide mode.
        cancelled: Polled during the simulation; True stops it.

    Raises:
        Cancelled: `cancelled()` returned True.
        UsageError: There is no such workload, or the clock is so slow that simulating a period takes too long.
        CaptureError: The simulation made no progress.
    """
    selected = find(workload)
    kernel = Kernel(target(release, cpus or selected.cpus), seed)
    machine, call, sink = kernel.machine, kernel.trace_event, MemorySink()
    if ROLLOVER_CYCLES * NS_PER_S // machine.target.cycles_per_s > _MAX_TILE_NS:
        raise UsageError("the clock of this target is too slow for tiles")
    selected.setup(kernel)
    call(mode("ALLOCBUFFER"), 64, [])
    kernel.control.hook = sink
    call(mode("ADDALLCLASSES"))
    call(mode("SETALLCLASSESWIDE" if is_wide else "SETALLCLASSESFAST"))
    with registry.advancing(machine, selected.name):
        machine.run(machine.now + machine.target.cycles(selected.lead_in_ns), cancelled)
        started = machine.now
        call(mode("START"))
        call(mode("FLUSHBUFFER"))
        head = len(sink.slots())
        before = _states(kernel)
        machine.run(machine.now + ROLLOVER_CYCLES - machine.target.cycles(_MARGIN_NS), cancelled)
    if cancelled is not None and cancelled():
        raise Cancelled("stopped before there was anything to write")
    faults = findings(machine)
    _seam(kernel, before)
    call(mode("FLUSHBUFFER"))
    slots = sink.slots()
    return Tile(
        machine.target,
        slots[:head],
        slots[head:],
        count_events(slots[head:]),
        count_events(slots[:head]),
        _buffers_by_cpu(slots[head:], machine.target),
        started,
        faults,
    )


def _buffers_by_cpu(slots: NDArray[np.uint32], kind: Target) -> NDArray[np.int64]:
    """Return how much the sequence numbers of each CPU's buffers increase within the slots: int64, shape (CPUs,)."""
    begins = slots[slots[:, 0] & wire.CODE_MASK == wire.CONTROL_BUFFER, 0]
    counts = np.bincount(begins >> wire.CPU_SHIFT & wire.CPU_MASK, minlength=kind.cpus)
    return counts if kind.has_buffer_end else np.full(len(counts), counts.sum())


def _states(kernel: Kernel) -> dict[Thread, tuple[str, int]]:
    return {
        thread: (thread.state, thread.cpu)
        for process in kernel.machine.processes.values()
        for thread in process.threads.values()
    }


def _seam(kernel: Kernel, before: dict[Thread, tuple[str, int]]) -> None:
    """Put threads back into their state at the start of the tile, and emit each change; RUNNING comes last."""
    changed = [(thread, *state) for thread, state in before.items() if (thread.state, thread.cpu) != state]
    for thread, state, cpu in sorted(changed, key=lambda entry: entry[1] == "RUNNING"):
        thread.state = state
        kernel.emitter.thread_state(max(cpu, 0), kernel.machine.stamp(), thread)


def write_tiles(
    path: Path | str,
    events: int,
    tile: Tile,
    progress: Callable[[float], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
    attributes: Sequence[tuple[str, str]] = (),
) -> int:
    """Write a trace of at least `events` events that ends with a whole buffer; return the actual number of events.

    Memory use does not depend on the number of events: only the tile and one copy of it are in memory.

    Raises:
        UsageError: `events` is not 1 to 2 * 10^9.
        CaptureError: The file cannot be written.
        Cancelled: `cancelled()` returned True; the file so far can be opened.
    """
    if not 1 <= events <= MAX_EVENTS:
        raise UsageError(f"{events} events: 1 to {MAX_EVENTS}")
    kinds = tile.slots[:, 0] & wire.CODE_MASK
    times, begins = np.flatnonzero(kinds == wire.CONTROL_TIME), np.flatnonzero(kinds == wire.CONTROL_BUFFER)
    step = tile.buffers[tile.slots[begins, 0] >> wire.CPU_SHIFT & wire.CPU_MASK]
    scratch = tile.slots.copy()
    needed = max(0, events - tile.head_events)
    tiles = -(-needed // tile.events)
    written = tile.head_events
    is_stopped = False
    with KevFile(Path(path), tile.target, tile.started_cycles, attributes) as file:
        file.write(tile.head)
        for number in range(tiles):
            is_stopped = cancelled is not None and cancelled()
            if is_stopped:
                break
            scratch[times, 2] = tile.slots[times, 2] + np.uint32(number)
            scratch[begins, 2] = (tile.slots[begins, 2] + number * step & 0xFFFFFFFF).astype(np.uint32)
            left = needed - number * tile.events
            part = scratch if left >= tile.events else scratch[: _end_of_buffer(tile.slots, begins, left)]
            file.write(part)
            written += tile.events if part is scratch else count_events(part)
            if progress is not None:
                progress((number + 1) / tiles)
    if is_stopped:
        raise Cancelled(f"stopped after {written} of {events} events; what is written can be opened")
    return written


def _end_of_buffer(slots: NDArray[np.uint32], begins: NDArray[np.intp], events: int) -> int:
    """Return the number of slots up to the end of the buffer that contains the last of the first `events` events.

    A buffer end at which an event continues in its CPU's next buffer does not count; the next suitable one is used.
    """
    starts = np.flatnonzero(slots[:, 0] >> wire.STRUCT_SHIFT < wire.Struct.COMBINE_CONTINUE)
    slot = int(starts[events - 1])
    struct = slots[:, 0] >> wire.STRUCT_SHIFT
    # Starts minus ends of combine events: 0 where none is open.
    open_events = np.cumsum((struct == wire.Struct.COMBINE_BEGIN).astype(np.int8) - (struct == wire.Struct.COMBINE_END))
    after = begins[np.searchsorted(begins, slot, side="right") :]
    after = after[open_events[after - 1] == 0]
    return int(after[0]) if len(after) else len(slots)
