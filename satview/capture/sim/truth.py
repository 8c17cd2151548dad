"""What really happened in a simulation, kept apart from any trace, so that traces and analyses can be judged."""

from __future__ import annotations

from dataclasses import dataclass, field

ThreadId = tuple[int, int]   # pid, tid


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
class Message:
    """One message and its three times in cycles; -1 = never. `status` is the reply's, or minus the error number."""

    client: ThreadId
    server_pid: int
    rcvid: int
    sent: int
    received: int = -1
    replied: int = -1
    server: ThreadId | None = None
    status: int = 0


@dataclass(slots=True)
class Wait:
    """A thread was blocked: in which state, on what, because of whom, how long, and how it ended.

    Attributes:
        owners: Threads that held what it waited for when the wait began; empty where nobody does (a timer, a condvar).
        end: -1 = still waiting at the end.
        outcome: `ok`, `timeout`, `signal`, `dead`.
        waker: Thread whose call ended it; None for timers and interrupts.
    """

    thread: ThreadId
    state: str
    on: str
    owners: tuple[ThreadId, ...]
    start: int
    end: int = -1
    outcome: str = "ok"
    waker: ThreadId | None = None


@dataclass(slots=True)
class CallSpan:
    """A kernel call from entry to exit; `exit` -1 = it never came back, `error` 0 = fine."""

    thread: ThreadId
    name: str
    enter: int
    exit: int = -1
    error: int = 0


@dataclass(slots=True)
class InterruptSpan:
    """An interrupt on a CPU, from entry to exit."""

    cpu: int
    vector: int
    enter: int
    exit: int
    handlers: int


@dataclass(slots=True)
class Pulse:
    """A pulse: when sent, when received (-1 = never)."""

    scoid: int
    server_pid: int
    sent: int
    received: int = -1


@dataclass(slots=True)
class Truth:
    """Everything, in the order in which it began. Times are cycles of the target's clock.

    Attributes:
        skew_cycles: Per CPU, how far its own counter is ahead: what its stamps have more than the times here.
    """

    runs: list[Run] = field(default_factory=list)
    states: list[StateChange] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    pulses: list[Pulse] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    calls: list[CallSpan] = field(default_factory=list)
    interrupts: list[InterruptSpan] = field(default_factory=list)
    marks: list[tuple[int, int, ThreadId]] = field(default_factory=list)          # time, code, thread
    processes: list[tuple[int, str, int, str]] = field(default_factory=list)      # time, created/destroyed, pid, name
    bankruptcies: list[tuple[int, int, ThreadId]] = field(default_factory=list)   # time, partition, thread
    start: int = 0
    end: int = 0
    skew_cycles: tuple[int, ...] = ()

    def states_of(self, thread: ThreadId) -> list[StateChange]:
        """Return the states of one thread."""
        return [change for change in self.states if change.thread == thread]
