"""What really happened in a simulation, separate from any trace, so that traces and analyses can be judged."""

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
    """A thread entered a state; `priority` is its effective one then."""

    time: int
    thread: ThreadId
    state: str
    cpu: int
    priority: int


@dataclass(slots=True)
class TrueMessage:
    """One message of `size` bytes and its three times in cycles; -1 = never.

    `status` is the reply's, or minus the error number. `parent` is when the message was sent that the client itself was
    serving then, the one received last; -1 = none.
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
    """A thread was blocked: in which state, on what, because of which threads, how long, and how it ended.

    Attributes:
        owners: Threads that held what it waited for when the wait began; empty where nobody does (a timer, a condvar).
        end: -1 = still waiting at the end.
        outcome: `ok`, `timeout`, `signal`, `dead`.
        waker: Thread whose call ended it; None for timers and interrupts.
        cause: When the event was logged that ended it: the message, pulse, reply or signal, else the kernel call, timer
            expiry or interrupt; -1 = none.
        address: Of the synchronisation object; 0 for other waits.
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
    """A thread had a mutex from `start` to `end` (cycles; -1 = to the end)."""

    thread: ThreadId
    address: int
    start: int
    end: int = -1


@dataclass(slots=True)
class CallSpan:
    """A kernel call from entry to exit.

    Attributes:
        name: That of the call that the kernel of the release has: where it lacks one, the library makes an older one.
        is_logged: False if no trace ever shows it: the kernel does not know it, or logs nothing of it.
        exit: -1 = it never came back.
        error: As the program sees it, 0 = fine.
        is_interrupted: A signal ended it; instead of the exit is an event without an error number.
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
    """An interrupt on a CPU, from entry to exit; `handlers` are the entries of its handlers. Up to 7.x."""

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
        pulse: When the pulse was logged that its event became; -1 = none.
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
    """An interrupt is delivered to its service thread; `ident` is that of the attachment. From 8.0 on."""

    cpu: int
    ident: int
    time: int


@dataclass(slots=True)
class Pulse:
    """A pulse: when sent, when received (-1 = never).

    `origin` is when the event was logged that had it sent: a kernel call, a timer expiry or an interrupt.
    """

    scoid: int
    server_pid: int
    sent: int
    received: int = -1
    origin: int = -1


@dataclass(slots=True)
class Truth:
    """Everything, in the order in which it began, runs and interrupts in that in which they ended.

    Times are cycles of the target's clock.

    Attributes:
        skew_cycles: Per CPU, how far its own counter is ahead: what its stamps have more than the times here.
    """

    runs: list[Run] = field(default_factory=list)
    states: list[StateChange] = field(default_factory=list)
    lives: list[StateChange] = field(default_factory=list)  # CREATE and DESTROY; idle threads were always there
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
        """Drop everything so far where it will not be read: a long capture needs no more memory than a short one."""
        for column in fields(self):
            value = getattr(self, column.name)
            if isinstance(value, list):
                value.clear()

    def states_of(self, thread: ThreadId) -> list[StateChange]:
        """Return the states of one thread."""
        return [change for change in self.states if change.thread == thread]


# Keeps the truth while a machine runs: opens and closes waits, calls and runs.


class TruthKeeper:
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
        self._waits: dict[Thread, TrueWait] = {}
        self._calls: dict[Thread, CallSpan] = {}

    def state(self, time: int, thread: Thread, state: str, cpu: int) -> None:
        """Note a change of state."""
        self.truth.states.append(StateChange(time, (thread.process.pid, thread.tid), state, cpu, thread.priority))

    def virtual(self, time: int, thread: Thread, state: str, cpu: int) -> None:
        """Note a state of the virtual thread that a thread stands for."""
        change = StateChange(time, (thread.process.pid, thread.vtid), state, cpu, thread.priority)
        self.truth.virtual.append(change)

    def life(self, time: int, thread: Thread, event: str, cpu: int) -> None:
        """Note that a thread is created or destroyed; a state follows."""
        self.truth.lives.append(StateChange(time, (thread.process.pid, thread.tid), event, cpu, thread.priority))
        if event == "DESTROY":  # what it has begun stays open, and is not kept for it
            self._calls.pop(thread, None)
            self._waits.pop(thread, None)
            for key in [key for key in self._holds if key[1] is thread]:
                del self._holds[key]

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
        wait = TrueWait((thread.process.pid, thread.tid), state, describe(on), whose, time, address=address)
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
