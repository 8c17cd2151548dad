"""Kernel calls for threads, scheduling, signals, processes, and TraceEvent()."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from satview.capture.sim.call_base import Call, code_address
from satview.capture.sim.forgotten import WATCH
from satview.capture.sim.threads import ANY_CPU, Body, Policy

if TYPE_CHECKING:
    from satview.capture.sim.target import Target
    from satview.capture.sim.threads import Thread

_INSERTS = frozenset((9, 30, 31, 32, 42, 43))   # modes of TraceEvent() that insert an event


@dataclass(slots=True)
class ThreadCreate(Call):
    """Start a thread in the caller's process; result: its tid."""

    name = "THREAD_CREATE"
    body: Body
    args: tuple[Any, ...] = ()
    priority: int = -1              # -1 = that of the caller
    policy: Policy = Policy.RR
    thread_name: str = ""
    runmask: int = ANY_CPU

    def values(self, thread: Thread) -> dict[str, int]:
        """Return addresses, policy and priority."""
        priority = self.priority if self.priority >= 0 else thread.base_priority
        return {"func_p": code_address(self.body, thread), "arg_p": 0x8047F30, "stacksize": 0x20000,
                "policy": self.policy, "sched_priority": priority, "sched_curpriority": priority}


@dataclass(slots=True)
class ThreadJoin(Call):
    """Wait for a thread of this process to end; result: its value."""

    name = "THREAD_JOIN"
    tid: int

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return tid."""
        return {"tid": self.tid, "status_p": 0x8047E40}


@dataclass(slots=True)
class ThreadName(Call):
    """Name the calling thread."""

    name = "THREAD_CTL"
    text: str

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return the command."""
        return {"cmd": 11, "data_p": 0x8047D90}


@dataclass(slots=True)
class ThreadRunmask(Call):
    """Restrict the calling thread to some CPUs, one bit each."""

    name = "THREAD_CTL"
    mask: int

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return the command and the mask."""
        return {"cmd": 4, "data_p": self.mask & 0xFFFFFFFF}


@dataclass(slots=True)
class SchedYield(Call):
    """Let others of the same priority run."""

    name = "SCHED_YIELD"


@dataclass(slots=True)
class SchedSet(Call):
    """Set priority and policy of the calling thread; the last four are for sporadic scheduling."""

    name = "SCHED_SET"
    priority: int
    policy: Policy = Policy.RR
    low_priority: int = 0
    budget_ns: int = 0
    period_ns: int = 0
    max_replenishments: int = 8

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return policy, priorities and budget."""
        second = 1_000_000_000
        return {"policy": self.policy, "sched_priority": self.priority, "param.ss_low_priority": self.low_priority,
                "param.ss_max_repl": self.max_replenishments, "param.ss_repl_period.tv_sec": self.period_ns // second,
                "param.ss_repl_period.tv_nsec": self.period_ns % second,
                "param.ss_init_budget.tv_sec": self.budget_ns // second,
                "param.ss_init_budget.tv_nsec": self.budget_ns % second}


@dataclass(slots=True)
class SchedJoinPartition(Call):
    """Move the calling thread to a partition, by its number."""

    name = "SCHED_CTL"
    partition: int
    is_critical: bool = False

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return the command."""
        return {"cmd": 4, "data_p": 0x8047D00}


@dataclass(slots=True)
class SignalKill(Call):
    """Send a signal to a process (tid 0) or a thread."""

    name = "SIGNAL_KILL"
    pid: int
    tid: int
    signo: int
    code: int = 0
    value: int = 0

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return target and signal."""
        return {"pid": self.pid, "tid": self.tid, "signo": self.signo, "code": self.code, "value": self.value}


@dataclass(slots=True)
class SignalAction(Call):
    """Set the handler of a signal: a program of its own, None to ignore, `default=True` to end the process."""

    name = "SIGNAL_ACTION"
    signo: int
    handler: Body | None = None
    default: bool = False

    def values(self, thread: Thread) -> dict[str, int]:
        """Return signal and address."""
        return {"signo": self.signo, "sigstub_p": 0x78010, "pid": 0,
                "act->sa_handler_p": code_address(self.handler, thread) if self.handler else 1}


@dataclass(slots=True)
class SignalWaitinfo(Call):
    """Wait for one of these signals; result: its number."""

    name = "SIGNAL_WAITINFO"
    signals: tuple[int, ...]

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return the set as bits."""
        bits = sum(1 << (signo - 1) for signo in self.signals)
        return {"sig_wait->bits[0]": bits & 0xFFFFFFFF, "sig_wait->bits[1]": bits >> 32}


@dataclass(slots=True)
class SignalSuspend(Call):
    """Wait until a signal handler has run; always ends with EINTR."""

    name = "SIGNAL_SUSPEND"


@dataclass(slots=True)
class Ring0(Call):
    """The process manager runs a function in the kernel's mode; the callable gets machine and CPU."""

    name = "RING0"
    function: Callable[[Any, Any], Any]

    def values(self, thread: Thread) -> dict[str, int]:
        """Return addresses."""
        return {"func_p": code_address(self.function, thread), "arg_p": 0}


@dataclass(slots=True)
class Spawn(Call):
    """Start a process: a message to the process manager, which does it. Result: pid."""

    name = "MSG_SENDV"
    program: str
    body: Body
    args: tuple[Any, ...] = ()
    priority: int = -1
    bits: int = 0                   # 0 = that of the caller


@dataclass(slots=True)
class WaitPid(Call):
    """Wait for a child process to end; result: its value."""

    name = "MSG_SENDV"
    pid: int


@dataclass(slots=True)
class Mmap(Call):
    """Map memory, a file if `file` names one: a message to the process manager. Result: the address."""

    name = "MSG_SENDVNC"
    length: int
    file: str = ""
    flags: int = 0x000800A2         # as a 7.1 listing shows for the text of a library
    prot: int = 0x500               # read and execute


@dataclass(slots=True)
class Munmap(Call):
    """Give memory back: a message to the process manager."""

    name = "MSG_SENDVNC"
    address: int
    length: int


@dataclass(slots=True)
class TraceEvent(Call):
    """The call of the trace interface; see `capture.trace_event`.

    Attributes:
        place: Where a program made it, until the kernel gets it: one that is thrown away before was not yielded.
    """

    name = "TRACE_EVENT"
    mode: int
    args: tuple[Any, ...] = ()
    place: str = field(default="", compare=False, repr=False)

    def __init__(self, mode: int, *args: Any) -> None:
        if not isinstance(mode, int):
            raise TypeError(f"TraceEvent: mode {mode!r:.40} is no number")
        self.mode = mode
        self.args = args
        self.place = WATCH.place()

    def __del__(self) -> None:
        if getattr(self, "place", ""):     # none if the mode was no number
            WATCH.thrown_away(self.place)

    def is_silent(self, target: Target) -> bool:
        """From 6.4 on nothing is logged of calls that insert an event but that event."""
        return self.mode & 0x0FFFFFFF in _INSERTS and not target.is_old

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return the mode and the first arguments."""
        numbers = [arg if isinstance(arg, int) else 0x8047B00 for arg in self.args[:4]]
        names = ("class", "event", "data_1", "data_2")
        values = {"mode": self.mode, **dict(zip(names, numbers, strict=False))}
        # 6.x names the same words after the mode that inserts an event as it is.
        return {**values, "class[header]": values.get("class", 0), "event[time_off]": values.get("event", 0)}
