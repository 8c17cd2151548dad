"""The true history of a simulation, independent of any trace, as reference for traces and analyses."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from satview.capture.sim.parts.threads import Cpu, Thread

ThreadId = tuple[int, int]  # pid, tid


@dataclass(slots=True)
class Run:
    """A thread had a CPU from `start` to `end` (cycles)."""

    cpu: int
    thread: ThreadId
    start: int
    end: int


@dataclass(slots=True)
class StateChange:
    """A thread entered a state; `priority` is its effective priority then."""

    time: int
    thread: ThreadId
    state: str
    cpu: int
    priority: int


@dataclass(slots=True)
class TrueMessage:
    """A message of `size` bytes and its three times in cycles; -1 = never.

    `status` is that of the reply, or the negative error number. `parent` is the send time of the message that the
    client itself was serving then (the last received); -1 = none.
    """

    client: ThreadId
    server_pid: int
    rcvid: int
    size: int
    sent: int
    received: int = -1
    replied: int = -1
    server: ThreadId | None = None
    status: int = 0
    parent: int = -1


@dataclass(slots=True)
class TrueWait:
    """A thread was blocked: its state, the object, the threads that caused it, and how it ended.

    Attributes:
        owners: Threads that held the object when the wait began; empty for a timer or condvar.
        end: -1 = still waiting at the end.
        outcome: `ok`, `timeout`, `signal`, `dead`.
        waker: Thread whose call ended it; None for timers and interrupts.
        cause: Time of the logged event that ended it: the message, pulse, reply or signal, else the kernel call, timer
            expiry or interrupt; -1 = none.
        address: Address of the synchronization object; 0 for other waits.
    """

    thread: ThreadId
    state: str
    on: str
    owners: tuple[ThreadId, ...]
    start: int
    end: int = -1
    outcome: str = "ok"
    waker: ThreadId | None = None
    cause: int = -1
    address: int = 0


@dataclass(slots=True)
class Hold:
    """A thread held a mutex from `start` to `end` (cycles; -1 = until the end of the simulation)."""

    thread: ThreadId
    address: int
    start: int
    end: int = -1


@dataclass(slots=True)
class CallSpan:
    """A kernel call from entry to exit.

    Attributes:
        name: Name of the call that the kernel executes: if the release lacks a call, the library makes an older one.
        is_logged: False if it is never traced: the kernel lacks it, or logs no events for it.
        exit: -1 = it never returned.
        error: As the program sees it, 0 = success.
        is_interrupted: A signal ended it; instead of the exit there is an event without an error number.
    """

    thread: ThreadId
    name: str
    enter: int
    is_logged: bool = True
    exit: int = -1
    error: int = 0
    is_interrupted: bool = False


@dataclass(slots=True)
class InterruptSpan:
    """An interrupt on a CPU, from entry to exit; `handlers` are the entry times of its handlers. Up to 7.x."""

    cpu: int
    vector: int
    enter: int
    exit: int
    handlers: tuple[int, ...] = ()


@dataclass(slots=True)
class HandlerSpan:
    """An interrupt handler, from entry to exit. Up to 7.x.

    Attributes:
        interrupt: When the entry of its interrupt was logged.
        pulse: When the pulse sent by its event was logged; -1 = none.
        woken: Thread whose InterruptWait() its event ended; None = none.
    """

    cpu: int
    vector: int
    interrupt: int
    enter: int
    exit: int = -1
    pulse: int = -1
    woken: ThreadId | None = None


@dataclass(slots=True)
class Delivery:
    """Delivery of an interrupt to its service thread; `ident` is that of the attachment. From 8.0 on."""

    cpu: int
    ident: int
    time: int


@dataclass(slots=True)
class Pulse:
    """A pulse: when sent, when received (-1 = never).

    `origin` is the time of the logged event that caused it: a kernel call, a timer expiry or an interrupt.
    """

    scoid: int
    server_pid: int
    sent: int
    received: int = -1
    origin: int = -1


@dataclass(slots=True)
class Truth:
    """The complete history, ordered by begin; runs and interrupts are ordered by end.

    Times are cycles of the target's clock.

    Attributes:
        skew_cycles: Counter offset of each CPU: its stamps minus the times here.
    """

    runs: list[Run] = field(default_factory=list)
    states: list[StateChange] = field(default_factory=list)
    lives: list[StateChange] = field(default_factory=list)  # CREATE and DESTROY; idle threads always exist
    messages: list[TrueMessage] = field(default_factory=list)
    pulses: list[Pulse] = field(default_factory=list)
    waits: list[TrueWait] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)
    calls: list[CallSpan] = field(default_factory=list)
    interrupts: list[InterruptSpan] = field(default_factory=list)
    handlers: list[HandlerSpan] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    marks: list[tuple[int, int, ThreadId]] = field(default_factory=list)  # time, code, thread
    processes: list[tuple[int, str, int, str]] = field(
        default_factory=list
    )  # time, created, replaced or destroyed, pid, name
    bankruptcies: list[tuple[int, int, ThreadId]] = field(default_factory=list)  # time, partition, thread
    charges: list[tuple[int, ThreadId, int, int]] = field(default_factory=list)  # partition, thread, start, end
    virtual: list[StateChange] = field(default_factory=list)  # of virtual threads: the thread is pid and vtid
    start: int = 0
    end: int = 0
    skew_cycles: tuple[int, ...] = ()

    def forget(self) -> None:
        """Clear the history if it will not be read, so that a long capture needs no more memory than a short one."""
        for column in fields(self):
            value = getattr(self, column.name)
            if isinstance(value, list):
                value.clear()

    def states_of(self, thread: ThreadId) -> list[StateChange]:
        """Return the states of one thread."""
        return [change for change in self.states if change.thread == thread]


# Records the truth while a machine runs: opens and closes waits, calls and runs.


class TruthKeeper:
    """Writes a `Truth`.

    Attributes:
        truth: The history so far.
        caller: pid and tid of the caller of the current TraceEvent().
        cause: Time of the logged event that causes what happens now; -1 = none.
    """

    def __init__(self, start_cycles: int) -> None:
        self.truth = Truth(start=start_cycles)
        self.caller = (0, 0)
        self.cause = -1
        self._holds: dict[tuple[int, Thread], Hold] = {}
        self._waits: dict[Thread, TrueWait] = {}
        self._calls: dict[Thread, CallSpan] = {}

    def state(self, time: int, thread: Thread, state: str, cpu: int) -> None:
        """Record a change of state."""
        self.truth.states.append(StateChange(time, (thread.process.pid, thread.tid), state, cpu, thread.priority))

    def virtual(self, time: int, thread: Thread, state: str, cpu: int) -> None:
        """Record a state of the virtual thread that a thread represents."""
        change = StateChange(time, (thread.process.pid, thread.vtid), state, cpu, thread.priority)
        self.truth.virtual.append(change)

    def life(self, time: int, thread: Thread, event: str, cpu: int) -> None:
        """Record the creation or destruction of a thread; a state follows."""
        self.truth.lives.append(StateChange(time, (thread.process.pid, thread.tid), event, cpu, thread.priority))
        if event == "DESTROY":  # its open spans stay without an end
            self._calls.pop(thread, None)
            self._waits.pop(thread, None)
            for key in [key for key in self._holds if key[1] is thread]:
                del self._holds[key]

    def call_begins(self, time: int, thread: Thread, name: str, is_logged: bool) -> None:
        """Record the entry of a kernel call."""
        self.cause = time
        span = self._calls[thread] = CallSpan((thread.process.pid, thread.tid), name, time, is_logged)
        self.truth.calls.append(span)

    def call_ends(self, time: int, thread: Thread, error: int, is_interrupted: bool = False) -> None:
        """Record the exit of a kernel call."""
        span = self._calls.pop(thread, None)
        if span is not None:
            span.exit, span.error, span.is_interrupted = time, error, is_interrupted

    def wait_begins(self, time: int, thread: Thread, state: str, on: Any, owners: tuple[Thread, ...]) -> None:
        """Record that a thread is blocked."""
        owner_ids = tuple((owner.process.pid, owner.tid) for owner in owners)
        address = getattr(on, "address", 0)
        wait = TrueWait((thread.process.pid, thread.tid), state, describe(on), owner_ids, time, address=address)
        self._waits[thread] = wait
        self.truth.waits.append(wait)

    def wait_ends(self, time: int, thread: Thread, outcome: str, waker: Thread | None) -> None:
        """Record the end of a thread's wait."""
        wait = self._waits.pop(thread, None)
        if wait is not None:
            wait.end = time
            wait.cause = self.cause
            wait.outcome = outcome
            wait.waker = (waker.process.pid, waker.tid) if waker is not None else None

    def got_mutex(self, time: int, thread: Thread, address: int) -> None:
        """Record that a thread now holds a mutex."""
        hold = self._holds[address, thread] = Hold((thread.process.pid, thread.tid), address, time)
        self.truth.holds.append(hold)

    def gave_mutex_up(self, time: int, thread: Thread, address: int) -> None:
        """Record that a thread no longer holds a mutex."""
        hold = self._holds.pop((address, thread), None)
        if hold is not None:
            hold.end = time

    def ran(self, cpu: Cpu, thread: Thread, start: int, end: int) -> None:
        """Record that a thread had a CPU."""
        self.truth.runs.append(Run(cpu.index, (thread.process.pid, thread.tid), start, end))

    def mark(self, time: int, code: int) -> None:
        """Record a user event."""
        self.truth.marks.append((time, code, self.caller))


def describe(thing: Any) -> str:
    """Return a short name of an object that a thread waits for."""
    return str(getattr(thing, "label", thing))
