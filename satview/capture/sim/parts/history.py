"""Keeps the truth while a machine runs: opens and closes waits, calls and runs."""

from __future__ import annotations

from typing import Any

from satview.capture.sim.parts.cpu import Cpu
from satview.capture.sim.parts.threads import Thread
from satview.capture.sim.parts.truth import CallSpan, Hold, Run, StateChange, Truth, Wait


class History:
    """Writes a `Truth`.

    Attributes:
        truth: What has been written.
        caller: pid and tid behind the current TraceEvent().
        cause: When the event was logged that what happens now follows from; -1 = none.
    """

    def __init__(self, start_cycles: int) -> None:
        self.truth = Truth(start=start_cycles)
        self.caller = (0, 0)
        self.cause = -1
        self._holds: dict[tuple[int, Thread], Hold] = {}
        self._waits: dict[Thread, Wait] = {}
        self._calls: dict[Thread, CallSpan] = {}

    def state(self, time: int, thread: Thread, state: str, cpu: int) -> None:
        """Note a change of state."""
        self.truth.states.append(StateChange(time, (thread.process.pid, thread.tid), state, cpu, thread.priority))

    def life(self, time: int, thread: Thread, event: str, cpu: int) -> None:
        """Note that a thread is created or destroyed; a state follows."""
        self.truth.lives.append(StateChange(time, (thread.process.pid, thread.tid), event, cpu, thread.priority))

    def call_begins(self, time: int, thread: Thread, name: str, is_logged: bool) -> None:
        """Note the entry of a kernel call."""
        self.cause = time
        span = self._calls[thread] = CallSpan((thread.process.pid, thread.tid), name, time, is_logged)
        self.truth.calls.append(span)

    def call_ends(self, time: int, thread: Thread, error: int, is_interrupted: bool = False) -> None:
        """Note its exit."""
        span = self._calls.pop(thread, None)
        if span is not None:
            span.exit, span.error, span.is_interrupted = time, error, is_interrupted

    def wait_begins(self, time: int, thread: Thread, state: str, on: Any, owners: tuple[Thread, ...]) -> None:
        """Note that a thread is blocked."""
        whose = tuple((owner.process.pid, owner.tid) for owner in owners)
        address = getattr(on, "address", 0)
        wait = Wait((thread.process.pid, thread.tid), state, describe(on), whose, time, address=address)
        self._waits[thread] = wait
        self.truth.waits.append(wait)

    def wait_ends(self, time: int, thread: Thread, outcome: str, waker: Thread | None) -> None:
        """Note that it is not any more."""
        wait = self._waits.pop(thread, None)
        if wait is not None:
            wait.end = time
            wait.cause = self.cause
            wait.outcome = outcome
            wait.waker = (waker.process.pid, waker.tid) if waker is not None else None

    def got_mutex(self, time: int, thread: Thread, address: int) -> None:
        """Note that a thread has a mutex now."""
        hold = self._holds[address, thread] = Hold((thread.process.pid, thread.tid), address, time)
        self.truth.holds.append(hold)

    def gave_mutex_up(self, time: int, thread: Thread, address: int) -> None:
        """Note that it has not any more."""
        hold = self._holds.pop((address, thread), None)
        if hold is not None:
            hold.end = time

    def ran(self, cpu: Cpu, thread: Thread, start: int, end: int) -> None:
        """Note that a thread had a CPU."""
        self.truth.runs.append(Run(cpu.index, (thread.process.pid, thread.tid), start, end))

    def mark(self, time: int, code: int) -> None:
        """Note a user event."""
        self.truth.marks.append((time, code, self.caller))


def describe(thing: Any) -> str:
    """Return a short name of what somebody waits for."""
    return str(getattr(thing, "label", thing))
