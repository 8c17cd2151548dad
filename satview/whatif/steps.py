"""What programs consist of: the steps of threads, messages and pulses with the work that is done for them, stimuli."""

from __future__ import annotations

from dataclasses import dataclass, field

from satview.store.trace import Trace


@dataclass(slots=True)
class Begin:
    """Wait until the trace begins: the steps before this one bring the thread to where it was then.

    Attributes:
        after_ns: When to stop waiting, after the begin of the trace; below 0 = before it.
        state: State of the wait; STOPPED = the thread would have run.
        is_sleep: The clock ends the wait.
    """

    after_ns: int = 0
    state: str = "STOPPED"
    is_sleep: bool = False


@dataclass(slots=True)
class Work:
    """Run user code."""

    ns: int


@dataclass(slots=True)
class SleepStep:
    """Sleep, and be woken by the clock."""

    ns: int


@dataclass(slots=True)
class TimedWait:
    """Wait in some state for as long as it was recorded: nothing that is replayed ends it."""

    state: str
    ns: int


@dataclass(slots=True)
class Send:
    """Send a message, by its number in `Programs.messages`."""

    message: int


@dataclass(slots=True)
class Receive:
    """Wait at a channel for a message or pulse, and do what is charged to that."""

    chid: int


@dataclass(slots=True)
class Reply:
    """Answer a message."""

    message: int


@dataclass(slots=True)
class SendPulse:
    """Send a pulse, by the number of its stream."""

    stream: int


@dataclass(slots=True)
class Lock:
    """Lock a mutex, or a reader/writer lock for writing or reading, by its number in `Programs.things`."""

    thing: int
    is_write: bool = True


@dataclass(slots=True)
class Unlock:
    """Unlock a mutex or a reader/writer lock; `is_write` is None where nothing says for what it was locked."""

    thing: int
    is_write: bool | None = True


@dataclass(slots=True)
class Meet:
    """Wait at a barrier until all have come."""

    thing: int


@dataclass(slots=True)
class Await:
    """Wait at a condition variable or semaphore until it was signalled once more.

    Attributes:
        thing: Which.
        recorded_ns: How long that took when it was recorded.
    """

    thing: int
    recorded_ns: int = 0


@dataclass(slots=True)
class Signal:
    """Signal a condition variable or semaphore; `count` is how many threads that woke in the trace."""

    thing: int
    count: int


@dataclass(slots=True)
class AwaitInterrupt:
    """Wait for an interrupt."""


@dataclass(slots=True)
class Unmask:
    """Let an interrupt come again."""

    vector: int


@dataclass(slots=True)
class Wake:
    """End a thread's wait for an interrupt, by its row: what a handler did that is a thread now."""

    thread: int


@dataclass(slots=True)
class AwaitStart:
    """Wait until another thread comes to where it created this one."""


@dataclass(slots=True)
class StartThread:
    """Create a thread: it is there from the begin on, and goes on now; by its row."""

    thread: int


@dataclass(slots=True)
class Every:
    """Wait for the next multiple of a period."""

    period_ns: int


@dataclass(slots=True)
class LogEvent:
    """Log a user event."""

    event: int
    words: tuple[int, int]


Step = (Begin | Work | SleepStep | TimedWait | Send | Receive | Reply | SendPulse | Lock | Unlock | Meet | Await
        | Signal | AwaitInterrupt | Unmask | Wake | AwaitStart | StartThread | Every | LogEvent)  # fmt: skip


@dataclass(slots=True)
class ThreadProgram:
    """What one thread does.

    Attributes:
        row: Of the thread table of the trace.
        pid, tid, process, name: As recorded.
        label: The thread's name as it is shown.
        priority: Its own, without what it inherits.
        other_priorities: Those in three orders of all threads that the events allow too; none where they show it.
        policy: Number of the policy on the wire.
        steps: In order; what it does for messages and pulses is not among them.
        repeats: Positions of the steps, from and to, that are repeated once all are done; none if they are equal.
        sporadic: Low priority, budget and replenishment period in ns of policy 4; None for others.
        ends: It ended in the trace.
        runmask: CPUs on which it may run.
        partition: Number of its scheduler partition; -1 = none.
        is_critical: It may draw on the partition's critical budget.
        speed: How much faster than recorded it works.
        cpu: On which it runs first; -1 = it does not run.
    """

    row: int
    pid: int
    tid: int
    process: str
    name: str
    label: str
    priority: int
    policy: int
    steps: list[Step] = field(default_factory=list)
    repeats: tuple[int, int] = (0, 0)
    sporadic: tuple[int, int, int] | None = None
    ends: bool = False
    runmask: int = (1 << 64) - 1
    partition: int = -1
    is_critical: bool = False
    speed: float = 1.0
    cpu: int = -1
    other_priorities: tuple[int, ...] = ()


@dataclass(slots=True)
class RecordedMessage:
    """A message: to which process, at which channel it was received, and what was done for it.

    Attributes:
        steps: None if it was not received.
        is_answered: The reply is in the trace.
        first_word: Of its data.
    """

    pid: int
    chid: int = 0
    steps: list[Step] | None = None
    is_answered: bool = False
    first_word: int = 0


@dataclass(slots=True)
class Stream:
    """Pulses that come over one connection, in the order in which they were sent, and what was done for each."""

    pid: int
    chid: int = 0
    scoid: int = 0
    priority: int = 10
    works: list[list[Step]] = field(default_factory=list)


@dataclass(slots=True)
class TimerSource:
    """A timer, or whatever else sends the pulses of a stream by itself, with its moments."""

    stream: int
    thread: int
    ident: int
    moments_ns: list[int]


@dataclass(slots=True)
class InterruptLine:
    """An interrupt.

    Attributes:
        vector, cpu: Its number, and the CPU that took most of them.
        moments_ns: When it came.
        handlers: For each handler by its process: for each moment how long it ran, in ns, and what it delivered: the
            number of a stream, minus one minus the row of a thread, or None.
        streams, threads: What it delivers to without a handler.
    """

    vector: int
    cpu: int
    moments_ns: list[int]
    handlers: dict[int, list[tuple[int, int | None]]] = field(default_factory=dict)
    streams: list[int] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Thing:
    """A `MUTEX`, `RWLOCK`, `BARRIER`, `CONDVAR` or `SEM`.

    Attributes:
        inherits: A mutex has priority inheritance.
        ceiling: Priority of who holds a mutex, 0 = none.
        count: Threads that meet at a barrier.
    """

    kind: str
    address: int
    inherits: bool = True
    ceiling: int = 0
    count: int = 0


@dataclass(slots=True)
class PartitionShare:
    """A partition of the adaptive scheduler: its share of the CPUs, and its critical budget."""

    number: int
    name: str
    percent: int
    critical_ms: int


@dataclass(slots=True)
class Programs:
    """A trace as programs.

    Attributes:
        begin_cycles: The moment of the trace at which they begin.
        length_ns: For how long the trace lasts from then on.
        cpus: Of the target.
        tick_ns: Period of the clock interrupt; 0 = none.
        tick_offset_ns: When it came last before the begin.
        not_shown: What the trace does not show, a sentence each.
    """

    trace: Trace
    begin_cycles: int
    length_ns: int
    cpus: int
    tick_ns: int
    tick_offset_ns: int
    threads: list[ThreadProgram]
    messages: list[RecordedMessage]
    streams: list[Stream]
    timers: list[TimerSource]
    interrupts: list[InterruptLine]
    things: list[Thing]
    partitions: list[PartitionShare]
    not_shown: list[str]
