"""Data records of the simulated kernel: processes, threads, CPUs, channels, synchronization objects, interrupts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, ClassVar, Protocol

from satview.capture.sim.target import Target

# The sigevent structure, which specifies how a thread is notified.


__all__ = ["Sigevent"]


@dataclass(slots=True)
class Sigevent:
    """A sigevent: specifies how a thread is notified.

    Attributes:
        kind: Kind of notification: `pulse`, `intr` (wakes InterruptWait), `signal`, `unblock` or `none`.
        coid: Connection for the pulse, in the process that set up the event.
    """

    kind: str = "intr"
    coid: int = 0
    priority: int = 10
    code: int = 0
    value: int = 0
    signo: int = 0

    NOTIFY: ClassVar[dict[str, int]] = {"none": 0, "signal": 1, "pulse": 4, "unblock": 5, "intr": 6}

    @property
    def notify(self) -> int:
        """The number that represents `kind` in a sigevent structure."""
        return self.NOTIFY.get(self.kind, 0)

    def values(self) -> dict[str, int]:
        """Return the fields by their names in the event table."""
        return {
            "event->sigev_notify": self.notify,
            "event->sigev_notify_function_p": self.coid or self.signo,
            "event->sigev_value": self.value,
            "event->sigev_notify_attributes_p": (self.priority & 0xFFFF) << 16 | self.code & 0xFFFF,
        }


# Data records of the simulated kernel: processes, threads, CPUs, channels, connections and timers.
#
# They are compared and shown by their identity.


Program = Generator[Any, Any, Any]
Body = Callable[..., Program]
ANY_CPU = (1 << 64) - 1
IDLE_PRIORITY = 0


class Policy(IntEnum):
    """Scheduling policies with their numbers in traces."""

    FIFO = 1
    RR = 2
    OTHER = 3
    SPORADIC = 4


class PendingCall(Protocol):
    """The part of `Call` that `Thread` and the recorder use for the kernel call in progress."""

    @property
    def name(self) -> str:
        """Name of the call in the event table."""

    @property
    def is_cancellation_point(self) -> bool:
        """Whether a thread can be cancelled during the call."""

    def arguments(self, thread: Thread, /) -> dict[str, int]:
        """Return the arguments of the entry event by their names in the event table."""

    def older(self) -> PendingCall | None:
        """Return the call that the library makes instead on kernels without this call; None = no such call."""

    def is_silent(self, target: Target, /) -> bool:
        """Return whether the target's kernel has this call but does not log it."""


WINDOW_MS = 100  # averaging window of partition budgets


@dataclass(slots=True, eq=False, repr=False)
class Partition:
    """A scheduler partition, which has a share of CPU time over a sliding window."""

    ident: int
    name: str
    budget_percent: int
    critical_ms: int = 0
    used: deque[tuple[int, int]] = field(default_factory=deque)  # CPU time in the window: end of use, cycles used
    used_total: int = 0
    critical_used: int = 0
    bankruptcies: int = 0


@dataclass(slots=True, eq=False, repr=False)
class Process:
    """A process of the simulated target.

    Attributes:
        bits: 32 or 64; determines the argument lists of the process's kernel-call events.
        next_address: Address of the next memory mapping.
    """

    pid: int
    parent: int
    name: str
    bits: int
    partition: Partition | None
    next_address: int = field(init=False)
    threads: dict[int, Thread] = field(default_factory=dict)
    channels: dict[int, Channel] = field(default_factory=dict)
    connections: dict[int, Connection] = field(default_factory=dict)
    timers: dict[int, Timer] = field(default_factory=dict)
    alarm: Timer | None = None
    handlers: dict[int, Body | None] = field(default_factory=dict)  # signal number to handler; None = ignored
    waiters: list[int] = field(default_factory=list)  # rcvids of threads that wait for the end of the process
    exit_value: Any = None
    next_tid: int = 1
    next_chid: int = 1
    next_coid: int = 0
    files: dict[int, Any] = field(default_factory=dict)  # queues and pipes by descriptor
    next_file: int = 3
    next_timer: int = 0
    scoids: int = 0
    is_dead: bool = False

    def __post_init__(self) -> None:
        self.next_address = 0x3029_0000_00 if self.bits == 64 else 0xB030_0000

    @property
    def short_name(self) -> str:
        """Name of the process without directories."""
        return self.name.rsplit("/", 1)[-1]


@dataclass(slots=True, eq=False, repr=False)
class Sporadic:
    """Parameters and budget of a thread under sporadic scheduling; all times are in cycles."""

    high: int
    low: int
    budget: int
    period: int
    max_replenishments: int = 8
    left: int = field(init=False)
    active_since: int | None = None
    pending: int = 0
    used: int = 0  # budget used by the current activation

    def __post_init__(self) -> None:
        self.left = self.budget


@dataclass(slots=True, eq=False, repr=False)
class Thread:
    """A thread: a Python generator that yields kernel calls, and the kernel's state for it.

    Attributes:
        priority: Effective priority, including inherited priority.
        base_priority: Assigned priority, or the priority of the message that the thread serves.
        state: State name without prefix, such as `RUNNING` or `REPLY`.
        remaining: Cycles of user code before the next call; None = for ever.
        finish: Called when the thread runs again after a blocking call, to complete the call on the thread's CPU.
        waiting_on: Object on which the thread is blocked; None = not blocked.
        partition: Partition charged for the CPU time: the thread's own, or the client's while the thread serves a
            message. None = there are no partitions.
        own_partition, is_critical_itself: Values of `partition` and `is_critical` to restore after serving.
        lender: The message for which the thread runs in a client's partition; None = it runs in `own_partition`.
    """

    process: Process
    tid: int
    generator: Program
    priority: int
    policy: Policy
    name: str = ""
    runmask: int = ANY_CPU
    base_priority: int = field(init=False)
    partition: Partition | None = field(init=False)
    own_partition: Partition | None = field(init=False)
    is_critical: bool = False
    is_critical_itself: bool = False
    lender: Any = None
    has_io: bool = False  # I/O privilege
    state: str = "READY"
    cpu: int = -1  # CPU on which the thread runs; -1 = none
    last_cpu: int = -1
    remaining: int | None = 0
    value: Any = None  # result that the generator gets at its `yield`
    error: BaseException | None = None
    call: PendingCall | None = None  # the kernel call in progress
    exit_values: dict[str, int] = field(default_factory=dict)  # arguments of the exit event of that call
    exit_error: int = 0
    finish: Callable[[], None] | None = None
    waiting_on: Any = None
    run_since: int = 0
    charged_until: int = 0  # time up to which budget and partition are charged
    held: list[Any] = field(default_factory=list)  # mutexes that the thread owns
    serving: dict[int, Any] = field(default_factory=dict)
    received_from: Channel | None = None
    joiner: Thread | None = None
    exit_value: Any = None
    slice_ticks: int = 0
    sporadic: Sporadic | None = None
    timeout_ns: int | None = None
    timeout_states: frozenset[str] = frozenset()
    timeout_token: int = 0
    pending_signals: list[tuple[int, int]] = field(default_factory=list)
    wait_signals: frozenset[int] = frozenset()
    blocked_signals: frozenset[int] = frozenset()
    held_signals: list[tuple[int, int]] = field(default_factory=list)  # received while blocked
    is_cancelled: bool = False  # the thread ends at its next cancellation point
    is_detached: bool = False
    signal_frames: list[tuple[Program, Any, BaseException | None, int | None]] = field(default_factory=list)
    unmasked_intr: int = 0
    vtid: int = 0  # virtual thread of another node that this thread represents; 0 = none
    virtual_state: str = ""  # last logged state of the virtual thread
    is_held: bool = False  # the thread becomes STOPPED instead of READY

    def __post_init__(self) -> None:
        self.base_priority = self.priority
        self.partition = self.own_partition = self.process.partition

    @property
    def pid(self) -> int:
        """Pid of the thread's process."""
        return self.process.pid

    @property
    def is_idle(self) -> bool:
        """Whether this is the idle thread of a CPU."""
        return self.base_priority == IDLE_PRIORITY and self.pid == 1

    @property
    def label(self) -> str:
        """Process name, tid, and the thread's name if any, for reports."""
        return f"{self.process.short_name} {self.tid}" + (f" ({self.name})" if self.name else "")

    def location(self) -> str:
        """Return file and line where the thread's program is suspended, as `FILE:LINE`; empty after its end."""
        generator: Any = self.generator
        while getattr(generator, "gi_yieldfrom", None) is not None and hasattr(generator.gi_yieldfrom, "gi_frame"):
            generator = generator.gi_yieldfrom
        frame = getattr(generator, "gi_frame", None)
        if frame is None:
            return ""
        return f"{frame.f_code.co_filename.replace(chr(92), '/').rsplit('/', 1)[-1]}:{frame.f_lineno}"


# Flags of ChannelCreate(): the server keeps its priority; the kernel sends a pulse when a client wants to unblock, when
# a client closes its last connection, or when the server of a connection of this process has ended.
CHF_FIXED_PRIORITY, CHF_UNBLOCK, CHF_DISCONNECT, CHF_COID_DISCONNECT = 0x1, 0x2, 0x8, 0x40


@dataclass(slots=True, eq=False, repr=False)
class Channel:
    """A channel, which queues messages and pulses for the threads of a process."""

    process: Process
    chid: int
    flags: int = 0
    receivers: deque[Thread] = field(default_factory=deque)
    senders: list[Any] = field(default_factory=list)  # messages not yet received, in order of arrival
    pulses: list[Any] = field(default_factory=list)

    @property
    def fixed_priority(self) -> bool:
        """Whether servers keep their priority."""
        return bool(self.flags & CHF_FIXED_PRIORITY)


@dataclass(slots=True, eq=False, repr=False)
class Connection:
    """A client's connection to a channel; `coid` is the client's id of the connection, `scoid` the server's id."""

    owner: Process
    coid: int
    channel: Channel
    scoid: int
    flags: int = 0
    nd: int = 0  # node of the server; if not 0, `channel` belongs to the network manager


@dataclass(slots=True, eq=False, repr=False)
class Timer:
    """A timer of a process; a new `generation` cancels expiries already scheduled."""

    ident: int
    process: Process
    thread: Thread
    event: Sigevent
    interval_ns: int = 0
    generation: int = 0
    deadline: int = 0  # time of the next expiry, in cycles


@dataclass(slots=True, eq=False, repr=False)
class Cpu:
    """A processor.

    Attributes:
        thread: The running thread; None only inside the kernel, between a block and the next context switch.
        until: Time when the user code of the running thread ends; None = never (idle).
        token: Incremented to invalidate scheduled ends of earlier spans of user code.
        handoff: Thread to which the CPU switches directly, bypassing the ready queue; None = none.
        claimed: Priority of a thread for which an IPI was sent to this CPU; -1 = none.
        expected: Number of newly ready threads that wait for this CPU's next context switch, which takes one of them.
    """

    index: int
    thread: Thread | None = None
    idle: Thread | None = None
    token: int = 0
    until: int | None = None
    handoff: Thread | None = None
    is_yielding: bool = False
    claimed: int = -1
    expected: int = 0
    ipi_pending: bool = False


# State of synchronization objects: mutex, condition variable, semaphore, barrier, readers/writer lock, queue.


_FIRST_ADDRESS = 0x804A000


class SyncObject:
    """A synchronization object in user memory; `name` identifies it in reports and determines its address.

    Attributes:
        waiters: Threads blocked on the object, in order of arrival.
        is_destroyed: SyncDestroy() has destroyed the object.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.address = _FIRST_ADDRESS + sum(ord(c) * 31**i for i, c in enumerate(name)) % 0xFFFF * 16
        self.waiters: list[Thread] = []
        self.is_destroyed = False

    @property
    def label(self) -> str:
        """Type and name of the object, for reports."""
        return f"{type(self).__name__.lower()} {self.name}"

    def words(self) -> tuple[int, int]:
        """Return the words in memory that contain count and owner; 0 for an object that has no such words."""
        return 0, 0

    def values(self) -> dict[str, int]:
        """Return address, count and owner by their names in the event table, which differ between calls."""
        count, owner = self.words()
        return {"sync_p": self.address, "count": count, "owner": owner, "sync->count": count, "sync->owner": owner}

    def take_best(self) -> Thread:
        """Remove and return the waiter with the highest priority; of equal priorities, the first to wait."""
        best = max(range(len(self.waiters)), key=lambda i: (self.waiters[i].priority, -i))
        return self.waiters.pop(best)


class Mutex(SyncObject):
    """A mutex.

    Attributes:
        inherit: The owner inherits the priority of waiting threads.
        ceiling: Minimum priority of the owner; 0 = none. Locking and unlocking a mutex with a ceiling enter the kernel.
        owner: Thread that has locked the mutex; None = unlocked.
    """

    def __init__(self, name: str, inherit: bool = True, ceiling: int = 0) -> None:
        super().__init__(name)
        self.inherit = inherit
        self.ceiling = ceiling
        self.owner: Thread | None = None

    def owner_word(self) -> int:
        """Return the word in memory that contains the owner and the flag for waiting threads."""
        if self.owner is None:
            return 0
        word = (self.owner.tid << 16 | self.owner.pid & 0xFFFF) & 0x7FFFFFFF
        return word | (0x80000000 if self.waiters else 0)

    def words(self) -> tuple[int, int]:
        """Return the words for count, in which a flag is set, and owner."""
        return 0x80000000, self.owner_word()


class Condvar(SyncObject):
    """A condition variable; `mutex_of` contains the mutex of each waiting thread."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.mutex_of: dict[Thread, Mutex] = {}


class Semaphore(SyncObject):
    """A counting semaphore."""

    def __init__(self, name: str, count: int = 0) -> None:
        super().__init__(name)
        self.count = count

    def words(self) -> tuple[int, int]:
        """Return the count, and the number that marks a semaphore in place of an owner."""
        return self.count, 0xFFFFFFFE


class Barrier(SyncObject):
    """A barrier, which blocks threads until `count` threads have arrived."""

    def __init__(self, name: str, count: int) -> None:
        super().__init__(name)
        self.count = count

    @property
    def lacks_one(self) -> bool:
        """Whether the next thread to arrive is the last one needed."""
        return len(self.waiters) + 1 >= self.count


class RwLock(SyncObject):
    """A readers/writer lock, which waiting threads get in order of arrival.

    Attributes:
        queue: Each waiting thread, and whether the thread waits to write.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.readers: set[Thread] = set()
        self.writer: Thread | None = None
        self.queue: deque[tuple[Thread, bool]] = deque()


class BoundedQueue(SyncObject):
    """A message queue or pipe with limited capacity, ordered by priority.

    Attributes:
        items: Priority and message of each entry.
        waiting_entries: The entry that each thread in `waiters` wants to add; empty if the waiters want to receive.
    """

    def __init__(self, name: str, capacity: int) -> None:
        super().__init__(name)
        self.capacity = capacity
        self.items: list[tuple[int, bytes]] = []
        self.waiting_entries: dict[Thread, tuple[int, bytes]] = {}

    def put(self, entry: tuple[int, bytes]) -> None:
        """Add an entry behind the entries of the same priority."""
        position = next((i for i, (priority, _) in enumerate(self.items) if priority < entry[0]), len(self.items))
        self.items.insert(position, entry)


def lock_state(thing: Any) -> tuple[Thread, ...]:
    """Return the threads that hold the object on which a thread is blocked; empty if no thread holds it."""
    if isinstance(thing, Mutex):
        return (thing.owner,) if thing.owner is not None else ()
    if isinstance(thing, RwLock):
        return (thing.writer,) if thing.writer is not None else tuple(thing.readers)
    holder = getattr(thing, "holder", None)
    return holder() if holder is not None else ()


# Sources of interrupts, the handlers and events attached to them, and the hooks of the trace interrupt.


CLOCK_VECTOR = 0


@dataclass(slots=True, eq=False, repr=False)
class Attachment:
    """A handler or an event attached to an interrupt.

    Attributes:
        is_masked: The interrupt is masked for this attachment.
        is_latched: An interrupt occurred while masked; it is delivered at the unmask.
    """

    ident: int
    vector: int
    thread: Thread
    event: Sigevent | None
    handler: Callable[[], Sigevent | None] | None
    handler_ns: int
    is_masked: bool = False
    is_latched: bool = False

    @property
    def process(self) -> Process:
        """The process that attached the handler or the event."""
        return self.thread.process


@dataclass(slots=True, eq=False, repr=False)
class InterruptSource:
    """A device that raises interrupts.

    Attributes:
        gap_ns: Returns the time to the next interrupt; None = no more interrupts.
        is_clock: This is the clock tick, or in 8.0 the silent timer that only ends time slices.
        is_silent: The interrupts are not logged, and no handlers are called.
        is_active: The device will raise another interrupt.
    """

    vector: int
    cpu: int
    gap_ns: Callable[[], int | None]
    is_clock: bool = False
    is_silent: bool = False
    is_active: bool = False
    attachments: list[Attachment] = field(default_factory=list)


FLAGS_END = 0x1  # _NTO_INTR_FLAGS_END


class FullBuffer(Protocol):
    """The attributes of a full trace buffer that hooks use."""

    index: int
    sequence: int


@dataclass(frozen=True, slots=True)
class _TraceHook:
    ident: int
    process: Process
    handler: Callable[[FullBuffer], None]


class TraceHooks:
    """The handlers of the trace interrupt, in calling order: the newest first, those with FLAGS_END last.

    Source: manual of InterruptHookTrace().
    """

    def __init__(self) -> None:
        self._hooks: list[_TraceHook] = []

    def attach(self, ident: int, process: Process, handler: Callable[[FullBuffer], None], flags: int) -> None:
        """Add a handler, called with each full buffer: with FLAGS_END at the end of the calling order, else first."""
        hook = _TraceHook(ident, process, handler)
        if flags & FLAGS_END:
            self._hooks.append(hook)
        else:
            self._hooks.insert(0, hook)

    def detach(self, ident: int, process: Process) -> bool:
        """Remove a handler by its id; return whether the process had a handler with that id."""
        others = [hook for hook in self._hooks if hook.ident != ident or hook.process is not process]
        was_there = len(others) < len(self._hooks)
        self._hooks = others
        return was_there

    def detach_all(self, process: Process) -> None:
        """Remove all handlers of a process."""
        self._hooks = [hook for hook in self._hooks if hook.process is not process]

    def call(self, buffer: FullBuffer) -> None:
        """Call all handlers with a full buffer, in calling order."""
        for hook in tuple(self._hooks):
            hook.handler(buffer)
