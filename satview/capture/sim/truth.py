"""The true history of a simulation, independent of any trace; tests compare traces and analyses with it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from satview.capture.sim.threads import Cpu, Thread

ThreadId = tuple[int, int]  # pid, tid


@dataclass(slots=True)
class Run:
    """A time span, in cycles, in which a thread ran on a CPU."""

    cpu: int
    thread: ThreadId
    start: int
    end: int


@dataclass(slots=True)
class StateChange:
    """The entry of a thread into a state; `priority` is the thread's effective priority at that time."""

    time: int
    thread: ThreadId
    state: str
    cpu: int
    priority: int


@dataclass(slots=True)
class TrueMessage:
    """A message of `size` bytes and the times, in cycles, when it was sent, received and replied to; -1 = never.

    Attributes:
        status: Status of the reply, or the negative error number.
        parent: Send time of the message that the client was serving when it sent (the last received); -1 = none.
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
    """A wait: a time span in which a thread was blocked.

    Attributes:
        state: State of the thread.
        on: Description of the object on which the thread was blocked.
        owners: Threads that held the object when the wait began; empty for a timer or condition variable.
        end: Time of the end; -1 = the wait lasted to the end of the simulation.
        outcome: How the wait ended: `ok`, `timeout`, `signal`, `dead` or `cancelled`.
        waker: Thread whose call ended the wait; None for timers and interrupts.
        cause: Time of the logged event that ended the wait: the message, pulse, reply or signal, else the kernel call,
            timer expiry or interrupt; -1 = none.
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
    """A time span, in cycles, in which a thread held a mutex; end -1 = until the end of the simulation."""

    thread: ThreadId
    address: int
    start: int
    end: int = -1


@dataclass(slots=True)
class CallSpan:
    """A kernel call from entry to exit.

    Attributes:
        name: Name of the call that the kernel executed; if the release lacks a call, the library makes an older one.
        is_logged: The kernel logs this call; False for calls of the library and calls without events.
        exit: Time of the exit; -1 = the call never returned.
        error: Error number for the program; 0 = success.
        is_interrupted: A signal ended the call; the trace then has an event without error number instead of the exit.
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
    """An interrupt on a CPU, from entry to exit; `handlers` contains the entry time of each handler. Up to 7.x."""

    cpu: int
    vector: int
    enter: int
    exit: int
    handlers: tuple[int, ...] = ()


@dataclass(slots=True)
class HandlerSpan:
    """An interrupt handler, from entry to exit. Up to 7.x.

    Attributes:
        interrupt: Time when the entry of the interrupt was logged.
        pulse: Time when the pulse sent by the handler's event was logged; -1 = no pulse.
        woken: Thread whose InterruptWait() the handler's event ended; None = no thread.
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
    """The delivery of an interrupt to its service thread; `ident` is the attachment's id. From 8.0 on."""

    cpu: int
    ident: int
    time: int


@dataclass(slots=True)
class Pulse:
    """A pulse, with the times when it was sent and received (-1 = never).

    `origin` is the time of the logged event that caused the pulse: a kernel call, a timer expiry or an interrupt.
    """

    scoid: int
    server_pid: int
    sent: int
    received: int = -1
    origin: int = -1


@dataclass(slots=True)
class Truth:
    """The complete history of a simulation. Lists are ordered by start, except runs and interrupts: these by end.

    Times are cycles of the machine's clock.

    Attributes:
        skew_cycles: Offset of each CPU's counter: the CPU's stamps minus the times of this history.
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
    virtual: list[StateChange] = field(default_factory=list)  # of virtual threads; `thread` is (pid, vtid)
    start: int = 0
    end: int = 0
    skew_cycles: tuple[int, ...] = ()

    def forget(self) -> None:
        """Clear all lists, so that memory does not grow with the duration of a simulation."""
        for column in fields(self):
            value = getattr(self, column.name)
            if isinstance(value, list):
                value.clear()

    def states_of(self, thread: ThreadId) -> list[StateChange]:
        """Return the state changes of one thread."""
        return [change for change in self.states if change.thread == thread]


# Records the truth while a machine runs: opens and closes waits, calls and runs.


class TruthKeeper:
    """Records the history of a machine in a `Truth`.

    Attributes:
        truth: The history so far.
        caller: Pid and tid of the thread that calls TraceEvent().
        cause: Time of the logged event that is the cause of the next changes; -1 = none.
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
        """Record a change of state of the virtual thread that a thread represents."""
        change = StateChange(time, (thread.process.pid, thread.vtid), state, cpu, thread.priority)
        self.truth.virtual.append(change)

    def life(self, time: int, thread: Thread, event: str, cpu: int) -> None:
        """Record the creation or destruction of a thread (CREATE, DESTROY)."""
        self.truth.lives.append(StateChange(time, (thread.process.pid, thread.tid), event, cpu, thread.priority))
        if event == "DESTROY":  # open spans of the thread keep no end
            self._calls.pop(thread, None)
            self._waits.pop(thread, None)
            for key in [key for key in self._holds if key[1] is thread]:
                del self._holds[key]

    def call_begins(self, time: int, thread: Thread, name: str, is_logged: bool) -> None:
        """Record the entry of the kernel call `name`; `is_logged` as in `CallSpan`."""
        self.cause = time
        span = self._calls[thread] = CallSpan((thread.process.pid, thread.tid), name, time, is_logged)
        self.truth.calls.append(span)

    def call_ends(self, time: int, thread: Thread, error: int, is_interrupted: bool = False) -> None:
        """Record the exit of a kernel call; `error` and `is_interrupted` as in `CallSpan`."""
        span = self._calls.pop(thread, None)
        if span is not None:
            span.exit, span.error, span.is_interrupted = time, error, is_interrupted

    def wait_begins(self, time: int, thread: Thread, state: str, on: Any, owners: tuple[Thread, ...]) -> None:
        """Record that a thread becomes blocked on the object `on`; `owners` are the threads that hold the object."""
        owner_ids = tuple((owner.process.pid, owner.tid) for owner in owners)
        address = getattr(on, "address", 0)
        wait = TrueWait((thread.process.pid, thread.tid), state, describe(on), owner_ids, time, address=address)
        self._waits[thread] = wait
        self.truth.waits.append(wait)

    def wait_ends(self, time: int, thread: Thread, outcome: str, waker: Thread | None) -> None:
        """Record the end of a thread's wait, with its outcome and its waker as in `TrueWait`."""
        wait = self._waits.pop(thread, None)
        if wait is not None:
            wait.end = time
            wait.cause = self.cause
            wait.outcome = outcome
            wait.waker = (waker.process.pid, waker.tid) if waker is not None else None

    def mutex_acquired(self, time: int, thread: Thread, address: int) -> None:
        """Record that a thread has acquired a mutex."""
        hold = self._holds[address, thread] = Hold((thread.process.pid, thread.tid), address, time)
        self.truth.holds.append(hold)

    def mutex_released(self, time: int, thread: Thread, address: int) -> None:
        """Record that a thread has released a mutex."""
        hold = self._holds.pop((address, thread), None)
        if hold is not None:
            hold.end = time

    def ran(self, cpu: Cpu, thread: Thread, start: int, end: int) -> None:
        """Record that a thread ran on a CPU from `start` to `end`, cycles."""
        self.truth.runs.append(Run(cpu.index, (thread.process.pid, thread.tid), start, end))

    def mark(self, time: int, code: int) -> None:
        """Record a user event with the event number `code`, inserted by the current caller of TraceEvent()."""
        self.truth.marks.append((time, code, self.caller))


def describe(thing: Any) -> str:
    """Return a short description of an object on which a thread is blocked."""
    return str(getattr(thing, "label", thing))
