"""What every kernel call has: its name, its arguments under the names of the event table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from satview.capture.sim.target import Target
    from satview.capture.sim.threads import Thread

SIDE_CHANNEL = 0x40000000       # connection number of the process manager, and flag of side channels
CLOCK_MONOTONIC = 2
SIGTERM, SIGUSR1, SIGALRM, SIGCHLD = 15, 16, 14, 18
_CANCELLATION_POINTS = frozenset((
    "MSG_SENDV", "MSG_RECEIVEV", "MSG_RECEIVEPULSEV", "SYNC_CONDVAR_WAIT", "SYNC_SEM_WAIT", "TIMER_TIMEOUT",
    "THREAD_JOIN", "SIGNAL_WAITINFO", "SIGNAL_SUSPEND", "INTERRUPT_WAIT"))


@dataclass(slots=True)
class Compute:
    """Run user code for a time; not a kernel call."""

    ns: int


@dataclass(slots=True)
class Sigevent:
    """How a thread wants to hear of something.

    Attributes:
        kind: `pulse`, `intr` (wakes InterruptWait), `signal` or `unblock`.
        coid: Connection the pulse goes to, in the process that set up the event.
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
        """Number of the kind in a sigevent structure."""
        return self.NOTIFY.get(self.kind, 0)


@dataclass(slots=True)
class Call:
    """A kernel call; `name` is the kernel's name of it, `values` its arguments under their names in the event table."""

    name: ClassVar[str] = "NOP"

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002  -- most subclasses need the caller
        """Return the arguments of the entry event."""
        return {}

    @property
    def is_cancellation_point(self) -> bool:
        """True if a thread may be cancelled in it."""
        return self.name in _CANCELLATION_POINTS

    def older(self) -> Call | None:
        """Return what the library calls instead where the kernel has no such call; None if it does not."""
        return None

    def is_silent(self, target: Target) -> bool:  # noqa: ARG002  -- one subclass needs it
        """Tell whether a kernel that has the call logs nothing of it."""
        return False


def message_words(message: bytes, prefix: str) -> dict[str, int]:
    """Return the first three words of message data under the names of the event table."""
    padded = message[:12].ljust(12, b"\0")
    return {f"{prefix}[{i}]": int.from_bytes(padded[4 * i : 4 * i + 4], "little") for i in range(3)}


def event_values(event: Sigevent | None) -> dict[str, int]:
    """Return a sigevent under the names of the event table."""
    if event is None:
        return {}
    return {"event->sigev_notify": event.notify, "event->sigev_notify_function_p": event.coid or event.signo,
            "event->sigev_value": event.value,
            "event->sigev_notify_attributes_p": (event.priority & 0xFFFF) << 16 | event.code & 0xFFFF}


def code_address(function: Any, thread: Thread | None) -> int:
    """Return a made-up but stable code address of a function: from its line, not from Python's memory."""
    code = getattr(function, "__code__", None)
    line = code.co_firstlineno if code is not None else 1
    base = 0x8048000 if thread is None or thread.process.bits == 32 else 0x3D5000_0000
    return base + line * 64
