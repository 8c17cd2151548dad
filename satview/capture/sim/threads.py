"""Data records of the simulated kernel: processes, threads, CPUs, channels, synchronization objects, interrupts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
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


class Partition:
    """A scheduler partition, which has a share of CPU time over a sliding window."""

    __slots__ = (
        "bankruptcies", "budget_percent", "critical_ms", "critical_used", "ident", "name", "used", "used_total",
    )  # fmt: skip

    def __init__(self, ident: int, name: str, budget_percent: int, critical_ms: int = 0) -> None:
        self.ident = ident
        self.name = name
        self.budget_percent = budget_percent
        self.critical_ms = critical_ms
        self.used: deque[tuple[int, int]] = deque()  # CPU time in the window: end of use, cycles used
        self.used_total = 0
        self.critical_used = 0
        self.bankruptcies = 0


class Process:
    """A process of the simulated target.

    Attributes:
        bits: 32 or 64; determines the argument lists of the process's kernel-call events.
    """

    __slots__ = (
        "alarm", "bits", "channels", "connections", "exit_value", "files", "handlers", "is_dead", "name",
        "next_address", "next_chid", "next_coid", "next_file", "next_tid", "next_timer", "parent", "partition", "pid",
        "scoids", "threads", "timers", "waiters",
    )  # fmt: skip

    def __init__(self, pid: int, parent: int, name: str, bits: int, partition: Partition | None) -> None:
        self.pid = pid
        self.parent = parent
        self.name = name
        self.bits = bits
        self.partition = partition
        self.threads: dict[int, Thread] = {}
        self.channels: dict[int, Channel] = {}
        self.connections: dict[int, Connection] = {}
        self.timers: dict[int, Timer] = {}
        self.alarm: Timer | None = None
        self.handlers: dict[int, Body | None] = {}  # signal number to handler; None = ignored
        self.waiters: list[int] = []  # rcvids of threads that wait for the end of the process
        self.exit_value: Any = None
        self.next_tid = 1
        self.next_chid = 1
        self.next_coid = 0
        self.files: dict[int, Any] = {}  # queues and pipes by descriptor
        self.next_file = 3
        self.next_timer = 0
        self.scoids = 0
        self.next_address = 0x3029_0000_00 if bits == 64 else 0xB030_0000  # of the next memory mapping
        self.is_dead = False

    @property
    def short_name(self) -> str:
        """Name of the process without directories."""
        return self.name.rsplit("/", 1)[-1]


class Sporadic:
    """Parameters and budget of a thread under sporadic scheduling; all times are in cycles."""

    __slots__ = ("active_since", "budget", "high", "left", "low", "max_replenishments", "pending", "period", "used")

    def __init__(self, high: int, low: int, budget: int, period: int, max_replenishments: int = 8) -> None:
        self.high = high
        self.low = low
        self.budget = budget
        self.period = period
        self.max_replenishments = max_replenishments
        self.left = budget
        self.active_since: int | None = None
        self.pending = 0
        self.used = 0  # budget used by the current activation


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

    __slots__ = (
        "base_priority", "blocked_signals", "call", "charged_until", "cpu", "error", "exit_error", "exit_value",
        "exit_values", "finish", "generator", "has_io", "held", "held_signals", "is_cancelled", "is_critical",
        "is_critical_itself", "is_detached", "is_held", "joiner", "last_cpu", "lender", "name", "own_partition",
        "partition", "pending_signals", "policy", "priority", "process", "received_from", "remaining", "run_since",
        "runmask", "serving", "signal_frames", "slice_ticks", "sporadic", "state", "tid", "timeout_ns",
        "timeout_states", "timeout_token", "unmasked_intr", "value", "virtual_state", "vtid", "wait_signals",
        "waiting_on",
    )  # fmt: skip

    def __init__(
        self,
        process: Process,
        tid: int,
        generator: Program,
        priority: int,
        policy: Policy,
        name: str = "",
        runmask: int = ANY_CPU,
    ) -> None:
        self.process = process
        self.tid = tid
        self.generator = generator
        self.priority = priority
        self.base_priority = priority
        self.policy = policy
        self.name = name
        self.runmask = runmask
        self.partition = self.own_partition = process.partition
        self.is_critical = self.is_critical_itself = False
        self.lender: Any = None
        self.has_io = False  # I/O privilege
        self.state = "READY"
        self.cpu = -1  # CPU on which the thread runs; -1 = none
        self.last_cpu = -1
        self.remaining: int | None = 0
        self.value: Any = None  # result that the generator gets at its `yield`
        self.error: BaseException | None = None
        self.call: PendingCall | None = None  # the kernel call in progress
        self.exit_values: dict[str, int] = {}  # arguments of the exit event of that call
        self.exit_error = 0
        self.finish: Callable[[], None] | None = None
        self.waiting_on: Any = None
        self.run_since = 0
        self.charged_until = 0  # time up to which budget and partition are charged
        self.held: list[Any] = []  # mutexes that the thread owns
        self.serving: dict[int, Any] = {}
        self.received_from: Channel | None = None
        self.joiner: Thread | None = None
        self.exit_value: Any = None
        self.slice_ticks = 0
        self.sporadic: Sporadic | None = None
        self.timeout_ns: int | None = None
        self.timeout_states: frozenset[str] = frozenset()
        self.timeout_token = 0
        self.pending_signals: list[tuple[int, int]] = []
        self.wait_signals: frozenset[int] = frozenset()
        self.blocked_signals: frozenset[int] = frozenset()
        self.held_signals: list[tuple[int, int]] = []  # received while blocked
        self.is_cancelled = False  # the thread ends at its next cancellation point
        self.is_detached = False
        self.signal_frames: list[tuple[Program, Any, BaseException | None, int | None]] = []
        self.unmasked_intr = 0
        self.vtid = 0  # virtual thread of another node that this thread represents; 0 = none
        self.virtual_state = ""  # last logged state of the virtual thread
        self.is_held = False  # the thread becomes STOPPED instead of READY

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


class Channel:
    """A channel, which queues messages and pulses for the threads of a process."""

    __slots__ = ("chid", "fixed_priority", "flags", "process", "pulses", "receivers", "senders")

    def __init__(self, process: Process, chid: int, flags: int = 0) -> None:
        self.process = process
        self.chid = chid
        self.flags = flags
        self.fixed_priority = bool(flags & CHF_FIXED_PRIORITY)
        self.receivers: deque[Thread] = deque()
        self.senders: list[Any] = []  # messages not yet received, in order of arrival
        self.pulses: list[Any] = []


class Connection:
    """A client's connection to a channel; `coid` is the client's id of the connection, `scoid` the server's id."""

    __slots__ = ("channel", "coid", "flags", "nd", "owner", "scoid")

    def __init__(self, owner: Process, coid: int, channel: Channel, scoid: int) -> None:
        self.owner = owner
        self.coid = coid
        self.channel = channel
        self.scoid = scoid
        self.flags = 0
        self.nd = 0  # node of the server; if not 0, `channel` belongs to the network manager


class Timer:
    """A timer of a process; a new `generation` cancels expiries already scheduled."""

    __slots__ = ("deadline", "event", "generation", "ident", "interval_ns", "process", "thread")

    def __init__(self, ident: int, process: Process, thread: Thread, event: Sigevent) -> None:
        self.ident = ident
        self.process = process
        self.thread = thread
        self.event = event
        self.interval_ns = 0
        self.generation = 0
        self.deadline = 0  # time of the next expiry, in cycles


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

    __slots__ = (
        "claimed", "expected", "handoff", "idle", "index", "ipi_pending", "is_yielding", "thread", "token", "until",
    )  # fmt: skip

    def __init__(self, index: int) -> None:
        self.index = index
        self.thread: Thread | None = None
        self.idle: Thread | None = None
        self.token = 0
        self.until: int | None = None
        self.handoff: Thread | None = None
        self.is_yielding = False
        self.claimed = -1
        self.expected = 0
        self.ipi_pending = False


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


class Attachment:
    """A handler or an event attached to an interrupt.

    Attributes:
        is_masked: The interrupt is masked for this attachment.
        is_latched: An interrupt occurred while masked; it is delivered at the unmask.
    """

    __slots__ = ("event", "handler", "handler_ns", "ident", "is_latched", "is_masked", "process", "thread", "vector")

    def __init__(
        self,
        ident: int,
        vector: int,
        thread: Thread,
        event: Sigevent | None,
        handler: Callable[[], Sigevent | None] | None,
        handler_ns: int,
    ) -> None:
        self.ident = ident
        self.vector = vector
        self.thread = thread
        self.process: Process = thread.process
        self.event = event
        self.handler = handler
        self.handler_ns = handler_ns
        self.is_masked = False
        self.is_latched = False


class InterruptSource:
    """A device that raises interrupts.

    Attributes:
        gap_ns: Returns the time to the next interrupt; None = no more interrupts.
        is_clock: This is the clock tick, or in 8.0 the silent timer that only ends time slices.
        is_silent: The interrupts are not logged, and no handlers are called.
        is_active: The device will raise another interrupt.
    """

    __slots__ = ("attachments", "cpu", "gap_ns", "is_active", "is_clock", "is_silent", "vector")

    def __init__(
        self, vector: int, cpu: int, gap_ns: Callable[[], int | None], is_clock: bool = False, is_silent: bool = False
    ) -> None:
        self.vector = vector
        self.cpu = cpu
        self.gap_ns = gap_ns
        self.is_clock = is_clock
        self.is_silent = is_silent
        self.is_active = False
        self.attachments: list[Attachment] = []


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
        """Add a handler: with FLAGS_END in `flags` at the end of the calling order, else at its start.

        Args:
            ident: Id by which the handler is detached.
            process: Process of the handler.
            handler: Called with each full buffer.
            flags: Flags of InterruptHookTrace().
        """
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
