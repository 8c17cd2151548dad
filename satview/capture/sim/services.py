"""Interfaces of the simulated machine for kernel calls and other parts of the kernel.

The classes of the machine implement these protocols. Modules import the protocols instead of the machine, to avoid
import cycles.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from satview.capture.sim.errors import Errno
from satview.capture.sim.recorder import Recorder
from satview.capture.sim.target import Target
from satview.capture.sim.threads import (
    Attachment,
    Cpu,
    InterruptSource,
    Partition,
    PendingCall,
    Process,
    Sigevent,
    Thread,
    Timer,
    TraceHooks,
)
from satview.capture.sim.truth import Truth, TruthKeeper


class SchedulerServices(Protocol):
    """Assigns CPUs to threads; see `Scheduler`."""

    def make_ready(self, cpu: Cpu, thread: Thread) -> int:
        """Make a thread ready and find a CPU for it; return the time of the event, in cycles."""

    def release(self, cpu: Cpu, thread: Thread) -> None:
        """Take the CPU from the thread that runs on it; the caller sets the thread's new state at once."""

    def forget(self, thread: Thread) -> None:
        """Remove a ready thread from its queue, because it is stopped or destroyed."""

    def set_priority(self, cpu: Cpu, thread: Thread, priority: int) -> None:
        """Change the effective priority of a thread, 1 to 255."""

    def serve(self, cpu: Cpu, server: Thread, client: Thread, message: object) -> None:
        """Move a server to the partition of the client whose message it received."""

    def end_service(self, cpu: Cpu, server: Thread, message: object = None) -> None:
        """Move a server back to its own partition if it serves this message; None = any message."""

    def charge(self, cpu: Cpu, thread: Thread, is_leaving: bool = False) -> None:
        """Charge the CPU time that a thread has used since the last charge."""

    def tick(self, here: Cpu) -> None:
        """Account for one tick on all CPUs."""


class TimerServices(Protocol):
    """Runs functions when a time is reached: timers, sleeps and timeouts; see `Timers`."""

    clock_interrupt: int

    def start(self, deadline: int, fire: Callable[[Cpu], None]) -> None:
        """Call `fire(cpu)` in the kernel after the deadline, in cycles."""

    def set_off(self, timer: Timer, ns: int) -> None:
        """Start a timer that expires after `ns`, and then periodically at its interval."""

    def arm_timeout(self, thread: Thread) -> None:
        """Start the timeout set by TimerTimeout for the wait that a thread has just begun."""

    def expire(self, cpu: Cpu) -> None:
        """Fire all timers that are due."""


class InterruptServices(Protocol):
    """Attaches handlers and events to interrupts; see `InterruptController`."""

    trace_hooks: TraceHooks

    def attach(
        self,
        thread: Thread,
        vector: int,
        event: Sigevent | None,
        handler: Callable[[], Sigevent | None] | None,
        handler_ns: int = 0,
    ) -> Attachment:
        """Attach a handler or an event to a vector."""

    def new_ident(self) -> int:
        """Return an unused id for an attachment."""

    def detach(self, ident: int, process: Process) -> bool:
        """Remove an attachment by id; return False if the process has no such attachment."""

    def detach_all(self, process: Process) -> None:
        """Remove all attachments of a process."""


class KernelServices(Protocol):
    """The part of `Machine` that kernel calls use.

    Attributes:
        now: Time in cycles: the stamp of the last event, or later.
        deferred: Functions to run in the kernel, with their CPU, once the current operation has ended.
        trace_event: Executes TraceEvent(mode, arguments, CPU, pid, whether the caller has I/O privilege).
    """

    target: Target
    now: int
    nesting: int
    is_polling: bool
    random: random.Random
    record: Recorder
    history: TruthKeeper
    cpus: list[Cpu]
    processes: dict[int, Process]
    partitions: list[Partition]
    sources: dict[int, InterruptSource]
    deferred: deque[tuple[Cpu, Callable[[Cpu], None]]]
    on_death: list[Callable[[Process], None]]
    clock_adjust: tuple[int, int]
    service: Callable[[Any], None]
    due: Callable[[Any], None]
    trace_event: Callable[..., int]

    @property
    def scheduler(self) -> SchedulerServices:
        """Assigns CPUs to threads."""

    @property
    def timers(self) -> TimerServices:
        """Runs functions when a time is reached."""

    @property
    def interrupts(self) -> InterruptServices:
        """Attaches handlers and events to interrupts."""

    @property
    def truth(self) -> Truth:
        """The true history so far."""

    @property
    def slice_ns(self) -> int:
        """Length of a round-robin time slice."""

    # Time

    def stamp(self) -> int:
        """Advance the clock by the cost of one event and return the event's time in cycles; all times differ."""

    def spend(self, ns: int) -> None:
        """Advance the clock by the time that kernel code takes."""

    def vary(self, cost: tuple[int, int]) -> int:
        """Return a random duration in cycles; `cost` contains the lowest duration and the spread above it."""

    def at(self, time: int, action: Callable[[Any], None], argument: Any = None) -> None:
        """Call `action(argument)` at a time in cycles."""

    # Into the kernel and out

    def kernel_entry(self, cpu: Cpu, function: Callable[[Cpu], None]) -> None:
        """Interrupt the user code of a CPU, run kernel code there, and continue with the thread that should run."""

    def hold(self, cpu: Cpu) -> None:
        """Stop the user code of a CPU and store its remaining time."""

    def leave(self, cpu: Cpu) -> None:
        """Give the CPU to the thread that should run and continue its user code."""

    def enter(self, cpu: Cpu, thread: Thread, call: PendingCall) -> None:
        """Emit the entry of a kernel call; raises `QnxError` if the release has no such call."""

    def complete(self, thread: Thread, value: Any = 0, **values: int) -> None:
        """Set the result of a thread's current call; `values` are the arguments of the exit event."""

    def fail(self, thread: Thread, number: Errno, detail: str = "") -> None:
        """Set an error as the result of a thread's current call; for the calling thread raise `QnxError` instead."""

    def finish_silently(self, thread: Thread) -> None:
        """End a thread's current call with an exit event, but without resuming the thread's program."""

    def interrupted(self, cpu: Cpu, thread: Thread) -> None:
        """End a thread's current call with the event that replaces the exit of an interrupted call."""

    # States

    def set_state(self, cpu: Cpu, thread: Thread, state: str, on_cpu: int | None = None) -> int:
        """Change the state of a thread and emit the event; return the time of the event in cycles."""

    def block(self, cpu: Cpu, thread: Thread, state: str, on: Any, owners: tuple[Thread, ...] = ()) -> None:
        """Block the thread that runs on a CPU; the CPU is free afterwards."""

    def change_wait(
        self, cpu: Cpu, thread: Thread, state: str, on: Any, owners: tuple[Thread, ...], waker: Thread | None = None
    ) -> None:
        """End a thread's wait and begin another one without making the thread ready."""

    def wake(
        self, cpu: Cpu, thread: Thread, waker: Thread | None = None, outcome: str = "ok", handoff: bool = False
    ) -> None:
        """Make a blocked thread ready; the result of its call is already set."""

    def stop_waiting(self, cpu: Cpu, thread: Thread) -> None:
        """End the wait of a thread that is about to be destroyed."""

    def cancel(self, cpu: Cpu, thread: Thread) -> None:
        """Cancel a thread at its next cancellation point."""

    def post_signal(self, cpu: Cpu, process: Process, target: Thread | None, signo: int, code: int) -> None:
        """Send a signal."""

    def switch_cost(self) -> None:
        """Advance the clock by the cost of a context switch."""

    def send_ipi(self, cpu: Cpu, priority: int) -> None:
        """Send an inter-processor interrupt, so that another CPU checks the ready queue."""

    # Faults of programs

    def guard(self, thread: Thread, what: str, function: Callable[[], Any]) -> Any:
        """Call a function that a program passed to the kernel; an exception is recorded as that program's fault."""

    def fault(self, culprit: Thread | str, what: str, location: str) -> None:
        """Record a fault of a program."""
