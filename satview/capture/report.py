"""What was wrong with a run: programs that misbehaved, deadlocks, threads that wait for nobody."""

from __future__ import annotations

from collections import Counter

import numpy as np

from satview.capture.kernel import Kernel
from satview.capture.logger_options import LoggerOptions
from satview.capture.sim.machine.machine import Machine
from satview.capture.sim.machine.programs import MAX_FAULTS
from satview.capture.sim.parts.history import describe
from satview.capture.sim.parts.objects import lock_state
from satview.capture.sim.parts.threads import Thread
from satview.events.catalogue import catalogue

_SERVICE_STATES = frozenset({"READY", "RUNNING", "DEAD", "RECEIVE", "NANOSLEEP", "INTR", "SIGWAITINFO"})


_OURS = frozenset({"procnto-instr", "procnto-smp-instr", "tracelogger"})


def why_nothing(kernel: Kernel, options: LoggerOptions) -> str:
    """Return why a logger that ended without a fault saved no event, as a sentence without a full stop.

    Args:
        kernel: As it is before the logger switches everything off.
        options: Of the logger.
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
    """Return whether nothing can ever happen again: no timer, no device, nobody running."""
    if machine.timers.pending or any(source.is_active for source in machine.sources.values()):
        return False
    return not any(
        thread.state in ("READY", "RUNNING")
        for process in machine.processes.values()
        if process.short_name not in _OURS
        for thread in process.threads.values()
    )


def deadlocks(machine: Machine) -> list[list[Thread]]:
    """Return the rings of threads that wait for each other, each once."""
    rings: list[list[Thread]] = []
    seen: set[Thread] = set()
    for first in _blocked(machine):
        chain: list[Thread] = []
        thread: Thread | None = first
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
    """Return one sentence for everything that went wrong, naming thread and line."""
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
