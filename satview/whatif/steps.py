"""The parts of programs: steps of threads, messages and pulses with the work done for them, timers, interrupts."""

from __future__ import annotations

from dataclasses import dataclass, field

from satview.store.trace import Trace


@dataclass(slots=True)
class Begin:
    """Wait until the trace begins, or until a given time before or after its begin.

    Attributes:
        after_ns: End of the wait, after the begin of the trace; negative = before it.
        state: State in which the thread waits; STOPPED = in the trace it would have run.
        is_sleep: Whether the clock ends the wait.
    """

    after_ns: int = 0
    state: str = "STOPPED"
    is_sleep: bool = False


@dataclass(slots=True)
class Work:
    """Run user code for a time."""

    ns: int


@dataclass(slots=True)
class SleepStep:
    """Sleep, and be woken by the clock."""

    ns: int


@dataclass(slots=True)
class TimedWait:
    """Wait in a state for the recorded time, because no replayed step ends the wait."""

    state: str
    ns: int


@dataclass(slots=True)
class Send:
    """Send a message, by its number in `Programs.messages`."""

    message: int


@dataclass(slots=True)
class Receive:
    """Wait at a channel for a message or pulse, then carry out the steps that belong to it."""

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
    """Unlock a mutex or a reader/writer lock; `is_write` is None if it is unknown for what it was locked."""

    thing: int
    is_write: bool | None = True


@dataclass(slots=True)
class Meet:
    """Wait at a barrier until all threads have come."""

    thing: int


@dataclass(slots=True)
class Await:
    """Wait at a condition variable or semaphore for its next signal.

    Attributes:
        thing: Number of the object in `Programs.things`.
        recorded_ns: Length of the recorded wait.
    """

    thing: int
    recorded_ns: int = 0


@dataclass(slots=True)
class Signal:
    """Signal a condition variable or semaphore; `count` is the number of threads it woke in the trace."""

    thing: int
    count: int


@dataclass(slots=True)
class AwaitInterrupt:
    """Wait for an interrupt."""


@dataclass(slots=True)
class Unmask:
    """Unmask an interrupt."""

    vector: int


@dataclass(slots=True)
class Wake:
    """Step of a handler that became a thread: end the interrupt wait of `thread`, a row of the thread table."""

    thread: int


@dataclass(slots=True)
class AwaitStart:
    """Wait until another thread reaches the step in which it created this one."""


@dataclass(slots=True)
class StartThread:
    """Start a thread, given by its row, which exists from the begin on but waits in `AwaitStart`."""

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
    """The program of one thread.

    Attributes:
        row: Row in the thread table of the trace.
        pid, tid, process, name: As recorded.
        label: Display name of the thread.
        priority: The thread's own priority, without inheritance.
        other_priorities: If the trace shows no priorities, those that the thread has in three other rankings of all
            threads that also agree with the events; else empty.
        policy: Number of the policy on the wire.
        steps: Steps in order, without the work for messages and pulses.
        repeats: First and end position of the steps that are repeated after the last step; none if these are equal.
        sporadic: For policy 4: low priority, and budget and replenishment period in ns; None for other policies.
        ends: Whether the thread ended in the trace.
        runmask: Mask of the CPUs on which the thread may run.
        partition: Number of the thread's scheduler partition; -1 = none.
        is_critical: Whether the thread may draw on the partition's critical budget.
        speed: Factor by which the thread works faster than recorded.
        cpu: CPU on which the thread runs first; -1 = it never runs.
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

    @property
    def short_process(self) -> str:
        """Name of the process without its folder."""
        return self.process.rsplit("/", 1)[-1]


@dataclass(slots=True)
class RecordedMessage:
    """A message: pid and channel of the receiver, and the work that the receiver did for it.

    Attributes:
        steps: The work; None if the message was not received.
        is_answered: Whether the reply is in the trace.
        first_word: First word of the message's data.
    """

    pid: int
    chid: int = 0
    steps: list[Step] | None = None
    is_answered: bool = False
    first_word: int = 0


@dataclass(slots=True)
class Stream:
    """Pulses that come over one connection, in the order in which they were sent, and the work done for each."""

    pid: int
    chid: int = 0
    scoid: int = 0
    priority: int = 10
    works: list[list[Step]] = field(default_factory=list)


@dataclass(slots=True)
class TimerSource:
    """The moments at which a timer, or the kernel itself, sends the pulses of a stream."""

    stream: int
    thread: int
    ident: int
    moments_ns: list[int]


@dataclass(slots=True)
class InterruptLine:
    """An interrupt vector: when its interrupts came, and what they delivered.

    Attributes:
        vector, cpu: Number of the vector, and the CPU that took most of its interrupts.
        moments_ns: Times of the interrupts.
        handlers: By pid of a handler, for each interrupt: run time of the handler in ns, and what it delivered to: the
            number of a stream, -1 minus the row of a thread, or None.
        streams, threads: Streams and threads to which interrupts are delivered without a handler.
    """

    vector: int
    cpu: int
    moments_ns: list[int]
    handlers: dict[int, list[tuple[int, int | None]]] = field(default_factory=dict)
    streams: list[int] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Thing:
    """A synchronization object of kind `MUTEX`, `RWLOCK`, `BARRIER`, `CONDVAR` or `SEM`.

    Attributes:
        inherits: Whether the mutex has priority inheritance.
        ceiling: Priority that a thread gets while it holds the mutex; 0 = no ceiling.
        count: Number of threads that meet at the barrier.
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
    """A trace as programs, which the simulated kernel can run.

    Attributes:
        begin_cycles: Time in the trace at which the programs begin.
        length_ns: Length of the trace from then on.
        cpus: Number of CPUs of the target.
        tick_ns: Period of the clock interrupt; 0 = none.
        tick_offset_ns: Time of the last clock interrupt before the begin.
        not_shown: Properties that the trace does not show, one sentence each.
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
