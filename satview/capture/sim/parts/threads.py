"""Processes, threads, CPUs, channels and connections: the plain data records of the kernel."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from enum import IntEnum
from typing import Any, Protocol

from satview.capture.sim.parts.sigevent import Sigevent
from satview.capture.sim.parts.target import Target

Program = Generator[Any, Any, Any]
Body = Callable[..., Program]
ANY_CPU = (1 << 64) - 1
IDLE_PRIORITY = 0


class Policy(IntEnum):
    """Scheduling policies; the values are those in traces."""

    FIFO = 1
    RR = 2
    OTHER = 3
    SPORADIC = 4


class PendingCall(Protocol):
    """The kernel call that a thread is in, as `Thread` and the recorder see it; see `Call`."""

    @property
    def name(self) -> str:
        """Name of the call in the tables."""

    @property
    def is_cancellation_point(self) -> bool:
        """True if a thread may be cancelled in it."""

    def arguments(self, thread: Thread, /) -> dict[str, int]:
        """Return the arguments of the entry event under their event table names."""

    def older(self) -> PendingCall | None:
        """Return the call that the library makes instead if the kernel lacks this one; None if there is none."""

    def is_silent(self, target: Target, /) -> bool:
        """Return whether a kernel that has the call logs no events for it."""


WINDOW_MS = 100  # averaging window of partition budgets


class Partition:
    """A scheduler partition: a share of the CPU over a sliding window."""

    __slots__ = (
        "bankruptcies", "budget_percent", "critical_ms", "critical_used", "ident", "name", "used", "used_total",
    )  # fmt: skip

    def __init__(self, ident: int, name: str, budget_percent: int, critical_ms: int = 0) -> None:
        self.ident = ident
        self.name = name
        self.budget_percent = budget_percent
        self.critical_ms = critical_ms
        self.used: deque[tuple[int, int]] = deque()  # (when, cycles) inside the window
        self.used_total = 0
        self.critical_used = 0
        self.bankruptcies = 0


class Process:
    """A process.

    Attributes:
        bits: 32 or 64; determines the form of its wide kernel-call events.
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
        self.waiters: list[int] = []  # rcvids of threads that wait for its end
        self.exit_value: Any = None
        self.next_tid = 1
        self.next_chid = 1
        self.next_coid = 0
        self.files: dict[int, Any] = {}  # queues and pipes by descriptor
        self.next_file = 3
        self.next_timer = 0
        self.scoids = 0
        self.next_address = 0x3029_0000_00 if bits == 64 else 0xB030_0000  # of mappings
        self.is_dead = False

    @property
    def short_name(self) -> str:
        """Name without directories."""
        return self.name.rsplit("/", 1)[-1]


class Sporadic:
    """Parameters and budget account of sporadic scheduling, all times in cycles."""

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
        self.used = 0  # by the current activation


class Thread:
    """A thread: a Python generator that yields kernel calls, and the kernel's state for it.

    Attributes:
        priority: Effective priority, including inheritance.
        base_priority: Assigned priority, or that of the message it serves.
        state: State name without prefix: `RUNNING`, `REPLY`.
        remaining: Cycles of user code before its next call; None = for ever.
        finish: Called when it runs again after a blocking call: emits and returns the call's outcome.
        waiting_on: Kernel object it is blocked on; None if it is not blocked.
        partition: Partition charged for its CPU time: its own, or the client's while serving. None without partitions.
        own_partition, is_critical_itself: Values to restore after serving.
        lender: The message whose client lent it the partition; None while it is in its own.
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
        self.cpu = -1  # CPU it runs on, -1 = none
        self.last_cpu = -1
        self.remaining: int | None = 0
        self.value: Any = None  # goes into the generator at its next step
        self.error: BaseException | None = None
        self.call: PendingCall | None = None  # the kernel call it is in
        self.exit_values: dict[str, int] = {}  # arguments of the exit event of its call
        self.exit_error = 0
        self.finish: Callable[[], None] | None = None
        self.waiting_on: Any = None
        self.run_since = 0
        self.charged_until = 0  # time up to which budget and partition are charged
        self.held: list[Any] = []  # mutexes it owns that others may wait for
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
        self.held_signals: list[tuple[int, int]] = []  # arrived while blocked
        self.is_cancelled = False  # ends at its next cancellation point
        self.is_detached = False
        self.signal_frames: list[tuple[Program, Any, BaseException | None, int | None]] = []
        self.unmasked_intr = 0
        self.vtid = 0  # the thread of another node that it represents; 0 = none
        self.virtual_state = ""  # the last logged state of that thread
        self.is_held = False  # to be STOPPED instead of READY

    @property
    def pid(self) -> int:
        """Pid of its process."""
        return self.process.pid

    @property
    def is_idle(self) -> bool:
        """True for the idle thread of a CPU."""
        return self.base_priority == IDLE_PRIORITY and self.pid == 1

    @property
    def label(self) -> str:
        """`process tid`, and the name if any, for reports."""
        return f"{self.process.short_name} {self.tid}" + (f" ({self.name})" if self.name else "")

    def location(self) -> str:
        """Return `FILE:LINE` of the innermost frame where its program is suspended; empty once it has ended."""
        generator: Any = self.generator
        while getattr(generator, "gi_yieldfrom", None) is not None and hasattr(generator.gi_yieldfrom, "gi_frame"):
            generator = generator.gi_yieldfrom
        frame = getattr(generator, "gi_frame", None)
        if frame is None:
            return ""
        return f"{frame.f_code.co_filename.replace(chr(92), '/').rsplit('/', 1)[-1]}:{frame.f_lineno}"


# Flags of ChannelCreate(): keep the server's priority; a pulse when a client wants to unblock, when a client closes its
# last connection, when the server of one of the process's own connections is gone.
CHF_FIXED_PRIORITY, CHF_UNBLOCK, CHF_DISCONNECT, CHF_COID_DISCONNECT = 0x1, 0x2, 0x8, 0x40


class Channel:
    """Receives messages and pulses."""

    __slots__ = ("chid", "fixed_priority", "flags", "process", "pulses", "receivers", "senders")

    def __init__(self, process: Process, chid: int, flags: int = 0) -> None:
        self.process = process
        self.chid = chid
        self.flags = flags
        self.fixed_priority = bool(flags & CHF_FIXED_PRIORITY)
        self.receivers: deque[Thread] = deque()
        self.senders: list[Any] = []  # messages not yet received, highest priority first
        self.pulses: list[Any] = []


class Connection:
    """A client's connection to a channel; `scoid` is the server's id for it."""

    __slots__ = ("channel", "coid", "flags", "nd", "owner", "scoid")

    def __init__(self, owner: Process, coid: int, channel: Channel, scoid: int) -> None:
        self.owner = owner
        self.coid = coid
        self.channel = channel
        self.scoid = scoid
        self.flags = 0
        self.nd = 0  # node of the server; if not 0, the channel is that of the network manager


class Timer:
    """A timer of a process."""

    __slots__ = ("deadline", "event", "generation", "ident", "interval_ns", "process", "thread")

    def __init__(self, ident: int, process: Process, thread: Thread, event: Sigevent) -> None:
        self.ident = ident
        self.process = process
        self.thread = thread
        self.event = event
        self.interval_ns = 0
        self.generation = 0
        self.deadline = 0  # of its next expiry, in cycles


class Cpu:
    """A processor.

    Attributes:
        thread: The running thread; None only inside the kernel, between a block and the next switch.
        until: When its thread's user code ends; None = never (idle).
        token: Invalidates continue events of earlier spans of user code.
        handoff: Thread to switch to directly, bypassing the ready queue.
        claimed: Priority of a thread for which an IPI was sent here; -1 = none.
        expected: How many newly ready threads wait for this CPU's next switch, which takes one of them.
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
