"""Kernel calls for time and interrupts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from satview.capture.sim.call_base import CLOCK_MONOTONIC, Call, Sigevent, code_address, event_values

if TYPE_CHECKING:
    from satview.capture.sim.threads import Thread


@dataclass(slots=True)
class Sleep(Call):
    """Sleep at least so long."""

    name = "TIMER_TIMEOUT"
    ns: int

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return clock, states and time."""
        seconds, rest = divmod(self.ns, 1_000_000_000)
        return {"clock_id": CLOCK_MONOTONIC, "id": CLOCK_MONOTONIC, "timeout_flags": 1 << 12, "ntime_sec": seconds,
                "ntime_nsec": rest}


@dataclass(slots=True)
class TimerTimeout(Call):
    """Limit the next blocking call: in one of these states it ends with ETIMEDOUT after so long."""

    name = "TIMER_TIMEOUT"
    states: tuple[str, ...]
    ns: int

    def values(self, thread: Thread) -> dict[str, int]:
        """Return clock, states and time."""
        numbers = {"SEND": 4, "RECEIVE": 5, "REPLY": 6, "NANOSLEEP": 12, "MUTEX": 13, "CONDVAR": 14, "JOIN": 15,
                   "INTR": 16, "SEM": 17}
        flags = sum(1 << numbers[state] for state in self.states if state in numbers)
        return {**Sleep(self.ns).values(thread), "timeout_flags": flags}


@dataclass(slots=True)
class TimerCreate(Call):
    """Make a timer that delivers an event; result: its number."""

    name = "TIMER_CREATE"
    event: Sigevent

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return clock and event."""
        return {"timer_id": CLOCK_MONOTONIC, "id": CLOCK_MONOTONIC, **event_values(self.event)}


@dataclass(slots=True)
class TimerSettime(Call):
    """Start a timer (0 stops it)."""

    name = "TIMER_SETTIME"
    timer: int
    ns: int
    interval_ns: int = 0

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return number, first and further periods."""
        second = 1_000_000_000
        return {"clock_id": self.timer, "id": self.timer, "itime->nsec_sec": self.ns // second,
                "itime->nsec_nsec": self.ns % second, "itime->interval_nsec_sec": self.interval_ns // second,
                "itime->interval_nsec_nsec": self.interval_ns % second}


@dataclass(slots=True)
class TimerDestroy(Call):
    """Remove a timer."""

    name = "TIMER_DESTROY"
    timer: int

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return its number."""
        return {"id": self.timer}


@dataclass(slots=True)
class ClockTime(Call):
    """Ask for the time; result: nanoseconds since boot."""

    name = "CLOCK_TIME"

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return the clock."""
        return {"id": CLOCK_MONOTONIC}


Handler = Callable[[], "Sigevent | None"]


@dataclass(slots=True)
class InterruptAttach(Call):
    """Attach a handler that runs in the interrupt and may return an event; gone in 8.0 (ENOTSUP). Result: id.

    EPERM without I/O privilege.
    """

    name = "INTERRUPT_ATTACH"
    vector: int
    handler: Handler
    handler_ns: int = 1500

    def values(self, thread: Thread) -> dict[str, int]:
        """Return vector and addresses."""
        return {"intr": self.vector, "handler_p": code_address(self.handler, thread), "area_p": 0x8060000,
                "areasize": 64, "flags": 0x8}


@dataclass(slots=True)
class InterruptAttachEvent(Call):
    """Attach an event without a handler; in 8.0 the caller becomes the interrupt's service thread. Result: id.

    EPERM without I/O privilege, up to 7.x.
    """

    name = "INTERRUPT_ATTACH"
    vector: int
    event: Sigevent = field(default_factory=Sigevent)

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return vector and flags."""
        return {"intr": self.vector, "flags": 0x8}


@dataclass(slots=True)
class InterruptHookTrace(Call):
    """Hear of full trace buffers: `handler(buffer index << 13 | sequence & 0x7ff)` returns an event, or None.

    Several handlers may hook the interrupt; all are called. A new one comes first, with `_NTO_INTR_FLAGS_END` last.
    Result: an id for InterruptDetach(); EPERM without I/O privilege.
    """

    name = "INTERRUPT_ATTACH"
    handler: Callable[[int], Sigevent | None]
    flags: int = 0

    def values(self, thread: Thread) -> dict[str, int]:
        """Return the synthetic interrupt and the address."""
        return {"intr": 0x80000000, "handler_p": code_address(self.handler, thread), "flags": self.flags}


@dataclass(slots=True)
class InterruptWait(Call):
    """Wait for an event of kind `intr`."""

    name = "INTERRUPT_WAIT"


@dataclass(slots=True)
class InterruptUnmask(Call):
    """Let the interrupt come again after an event masked it."""

    name = "INTERRUPT_UNMASK"
    vector: int
    ident: int = 0

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return vector and id."""
        return {"intr": self.vector, "id": self.ident}


@dataclass(slots=True)
class InterruptDetach(Call):
    """Detach a handler or event by its id."""

    name = "INTERRUPT_DETACH"
    ident: int

    def values(self, thread: Thread) -> dict[str, int]:  # noqa: ARG002
        """Return id."""
        return {"id": self.ident}
