"""Base of the simulated machine: errors, the event loop, the recorder, and services for kernel calls."""

from __future__ import annotations

import heapq
import random
import sys
from collections import deque
from collections.abc import Callable
from enum import IntEnum
from types import SimpleNamespace
from typing import Any, Protocol, cast

from satview.base.errors import SatviewError, one_line
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

# Errors of the simulated machine: QNX error numbers, and faults of workloads.


class Errno(IntEnum):
    """QNX error numbers that kernel calls return; above 34 they differ from those of other systems."""

    EPERM = 1
    ESRCH = 3
    EINTR = 4
    EIO = 5
    EBADF = 9
    ECHILD = 10
    EAGAIN = 11
    ENOMEM = 12
    EFAULT = 14
    EBUSY = 16
    EEXIST = 17
    EINVAL = 22
    ENOSPC = 28
    EDEADLK = 45
    ECANCELED = 47
    ENOTSUP = 48
    ENOSYS = 89
    ETIMEDOUT = 260


_SIMULATION_MODULES = ("satview.capture.sim.", "satview.capture.kernel")
_MEANING = {
    Errno.EPERM: "Operation not permitted",
    Errno.ESRCH: "No such process or thread",
    Errno.EINTR: "Interrupted by a signal",
    Errno.EIO: "I/O error",
    Errno.EBADF: "Bad connection",
    Errno.ECHILD: "No child process",
    Errno.EAGAIN: "Resource temporarily unavailable",
    Errno.ENOMEM: "Not enough memory",
    Errno.EFAULT: "Bad address",
    Errno.EBUSY: "Resource busy",
    Errno.EEXIST: "Already exists",
    Errno.EINVAL: "Invalid argument",
    Errno.ENOSPC: "No space left",
    Errno.EDEADLK: "Deadlock avoided",
    Errno.ECANCELED: "Operation canceled",
    Errno.ENOTSUP: "Not supported",
    Errno.ENOSYS: "Not available in this release",
    Errno.ETIMEDOUT: "Timed out",
}


class QnxError(OSError):
    """A kernel call failed; `errno` is QNX's error number, which can differ from the host's number."""

    def __init__(self, number: Errno, detail: str = "") -> None:
        text = _MEANING[number] + (f": {detail}" if detail else "")
        super().__init__(int(number), text)
        self.name = number.name
        self.detail = detail


class ThreadCancelled(BaseException):
    """Raised at the `yield` of a cancelled thread, so that `finally` blocks run; not caught by `except Exception`."""


class WorkloadError(SatviewError):
    """A fault of a workload's program; the text names the thread and the line.

    Attributes:
        thread: Process name and tid of the thread at fault.
        location: File and line of the thread's program, such as `name.py:12`; empty = unknown.
    """

    def __init__(self, thread: str, location: str, what: str) -> None:
        self.thread = thread
        self.location = location
        where = f" at {location}" if location else ""
        super().__init__(f"thread {thread}{where}: {what}")


def location_of(fault: BaseException) -> str:
    """Return the innermost location of an exception in a program's code, else in the simulation's: `name.py:12`."""
    trace, simulation_location, program_location = fault.__traceback__, "", ""
    while trace is not None:
        location = f"{trace.tb_frame.f_code.co_filename.replace(chr(92), '/').rsplit('/', 1)[-1]}:{trace.tb_lineno}"
        if str(trace.tb_frame.f_globals.get("__name__")).startswith(_SIMULATION_MODULES):
            simulation_location = location
        else:
            program_location = location
        trace = trace.tb_next
    return program_location or simulation_location


# Simulated time: a clock that only moves forward, a heap of future actions, and random durations.


Action = Callable[[Any], None]
_JITTER = 4096
EVENT_NS = (60, 260)  # lowest and highest cost of one event, about as on a 2.5 GHz machine
_POLL = 0x3FF
_NESTED_AT_MOST = 16


class EventLoop:
    """Clock of a machine, and heap of its future actions.

    Attributes:
        now: Time in cycles: the stamp of the last event, or later.
        deferred: Functions to run in the kernel, with their CPU, once the current operation has ended.
        nesting: Greater than 0 during an interrupt.
        is_polling: The current interrupt occurred while the kernel was running.
        service, due: The two functions that may be due in `events_due` as hardware interrupts; only these may also run
            between two slots of an event.
        events_due: Heap of future actions: (time, number, action, argument).
    """

    def __init__(self, target: Target, seed: int, start_cycles: int) -> None:
        self.target = target
        self.random = random.Random(seed)  # noqa: S311  -- repeatable, not secret
        self.now = start_cycles
        self.deferred: deque[tuple[Cpu, Callable[[Cpu], None]]] = deque()
        self.nesting = 0
        self.is_polling = False
        self.is_stopped = False
        self.service: Action = lambda _source: None
        self.due: Action = lambda _source: None
        self.events_due: list[tuple[int, int, Action, Any]] = []
        self._sequence = 0
        self._jitter = [self.random.random() for _ in range(_JITTER)]
        self._jitter_at = 0
        self._event_cost = self.bounds(EVENT_NS)

    def bounds(self, ns: tuple[int, int]) -> tuple[int, int]:
        """Convert a range (lowest, highest) in nanoseconds to (lowest, spread) in cycles, for `vary`."""
        low = max(1, self.target.cycles(ns[0]))
        return low, max(1, self.target.cycles(ns[1]) - low)

    def vary(self, cost: tuple[int, int]) -> int:
        """Return a random duration in cycles; `cost` contains the lowest duration and the spread above it."""
        self._jitter_at = position = (self._jitter_at + 1) % _JITTER
        return cost[0] + int(cost[1] * self._jitter[position])

    def stamp(self) -> int:
        """Advance the clock by the cost of one event and return the event's time; all times differ.

        Interrupts that are due occur first: the kernel allows interrupts before every event, logged or not.
        """
        if not self.nesting and self.events_due and self.events_due[0][0] <= self.now:
            self.poll_nested()
        # `vary` inline, because this is the hottest line.
        self._jitter_at = position = (self._jitter_at + 1) % _JITTER
        low, spread = self._event_cost
        self.now += low + int(spread * self._jitter[position])
        return self.now

    def spend(self, ns: int) -> None:
        """Advance the clock by the time that kernel code takes."""
        self.now += self.target.cycles(ns)

    def at(self, time: int, action: Action, argument: Any = None) -> None:
        """Call `action(argument)` at a time in cycles."""
        self._sequence += 1
        heapq.heappush(self.events_due, (time, self._sequence, action, argument))

    def kernel_entry(self, cpu: Cpu, function: Callable[[Cpu], None]) -> None:
        """Run kernel code on a CPU; implemented by `KernelServices`."""
        raise NotImplementedError

    def run(
        self, until: int, cancelled: Callable[[], bool] | None = None, progress: Callable[[int], None] | None = None
    ) -> None:
        """Simulate until a time in cycles, until no action is left, or until `stop()`."""
        heap, pop = self.events_due, heapq.heappop
        count = 0
        while heap and not self.is_stopped:
            if heap[0][0] > until:
                break
            time, _, action, argument = pop(heap)
            self.now = max(self.now, time)
            action(argument)
            while self.deferred:
                cpu, function = self.deferred.popleft()
                self.kernel_entry(cpu, function)
            count += 1
            if not count & _POLL:
                if progress is not None:
                    progress(self.now)
                if cancelled is not None and cancelled():
                    return
        if not self.is_stopped:
            self.now = max(self.now, until)

    def stop(self) -> None:
        """End `run()` after the current operation."""
        self.is_stopped = True

    def poll_nested(self) -> None:
        """Execute hardware interrupts that are due now: between two slots of an event, or before the next event.

        Slots take no simulated time, so filters affect the position of an interrupt's slots, but not its time.
        """
        if self.nesting:
            return
        heap = self.events_due
        for _ in range(_NESTED_AT_MOST):  # a device that never stops must not block the event for ever
            if not heap or heap[0][0] > self.now or heap[0][2] not in (self.service, self.due):
                return
            _, _, action, source = heapq.heappop(heap)
            self.is_polling = True
            try:
                action(source)
            finally:
                self.is_polling = False


# Detection of TraceEvent() calls without `yield`: the object is created and deleted without having been yielded.


class CallWatch:
    """Collects the source locations of TraceEvent() objects that a running program creates but does not yield.

    Attributes:
        is_on: A program or a handler is running, so that locations are recorded.
        locations: Locations recorded since the last `take()`, each once, in order.
    """

    __slots__ = ("is_on", "locations")

    def __init__(self) -> None:
        self.is_on = False
        self.locations: dict[str, None] = {}

    def location(self) -> str:
        """Return file and line of the caller's caller; empty if no program is running."""
        if not self.is_on:
            return ""
        frame = sys._getframe(2)
        return f"{frame.f_code.co_filename.replace(chr(92), '/').rsplit('/', 1)[-1]}:{frame.f_lineno}"

    def record_unused(self, location: str) -> None:
        """Record the location where an object was created that was deleted without having been yielded."""
        if self.is_on:
            self.locations[location] = None

    def take(self) -> tuple[str, ...]:
        """Return and clear the recorded locations, each once."""
        if not self.locations:
            return ()
        locations = tuple(self.locations)
        self.locations.clear()
        return locations


WATCH = CallWatch()
ADVICE = "made a TraceEvent() and did not yield it, so nothing happened: write `yield TraceEvent(...)`"


class Mapping(Protocol):
    """A request to map memory; see `Mmap`."""

    length: int
    file: str
    flags: int
    prot: int


class Recorder(Protocol):
    """Receives every event of a machine with its CPU and its time in cycles; decides whether to log the event."""

    def kernel_enter(self, cpu: int, time: int, thread: Thread, call: PendingCall) -> None:
        """Report that a kernel call begins."""

    def kernel_exit(self, cpu: int, time: int, thread: Thread, call: PendingCall) -> None:
        """Report that a kernel call ends; the thread contains the result."""

    def kernel_interrupted(self, cpu: int, time: int, thread: Thread, call: PendingCall) -> None:
        """Report that a kernel call was interrupted, so that its exit arguments are lost."""

    def thread_state(self, cpu: int, time: int, thread: Thread) -> None:
        """Report that a thread has entered its current state."""

    def thread_life(self, cpu: int, time: int, thread: Thread, event: str) -> None:
        """Report that a thread is created (CREATE) or destroyed (DESTROY)."""

    def thread_name(self, cpu: int, time: int, thread: Thread) -> None:
        """Report that a thread has been named."""

    def process_life(self, cpu: int, time: int, process: Process, event: str) -> None:
        """Report CREATE, CREATE_NAME, DESTROY or DESTROY_NAME of a process."""

    def comm(self, cpu: int, time: int, event: str, words: tuple[int, ...], pid: int, tid: int) -> None:
        """Report a message, pulse or signal; filters compare pid and tid. The tid is 0 for the kernel's pulses."""

    def interrupt_enter(self, cpu: int, time: int, vector: int, address: int) -> None:
        """Report that an interrupt begins; `address` is the code address that the CPU was executing."""

    def interrupt_exit(self, cpu: int, time: int, vector: int, kernel_flags: int) -> None:
        """Report that an interrupt ends; `kernel_flags` is the kernel state in the event's payload."""

    def handler_enter(self, cpu: int, time: int, process: Process, vector: int, address: int) -> None:
        """Report that the interrupt handler of a process at code address `address` begins."""

    def handler_exit(self, cpu: int, time: int, vector: int, event: Sigevent | None) -> None:
        """Report that an interrupt handler ends and returns a sigevent; None = no sigevent."""

    def deliver_interrupt(self, cpu: int, time: int, ident: int) -> None:
        """Report the delivery of an interrupt to its service thread (8.0); `ident` is the id of the attachment."""

    def timer(self, cpu: int, time: int, thread: Thread, ident: int, flags: int) -> None:
        """Report that the timer with the id `ident` has expired (logged from 6.6 on, with `flags` in the payload)."""

    def ipi(self, cpu: int, time: int, thread: Thread) -> None:
        """Report an inter-processor interrupt."""

    def partition_bankrupt(self, cpu: int, time: int, thread: Thread, partition: Partition) -> None:
        """Report that a critical thread has used up the critical budget of its partition."""

    def mapped(self, cpu: int, time: int, process: Process, address: int, call: Mapping) -> None:
        """Report that memory has been mapped at `address`, as `call` requested (logged from 6.4 on)."""

    def unmapped(self, cpu: int, time: int, process: Process, address: int, length: int) -> None:
        """Report that memory has been unmapped (logged from 6.4 on)."""

    def system(self, cpu: int, time: int, name: str, values: dict[str, int | bytes]) -> None:
        """Report a SYSTEM event by name with its arguments; ignored if the release does not have the event."""

    def virtual_thread(self, cpu: int, time: int, thread: Thread, state: str) -> None:
        """Report that the virtual thread that a thread represents enters a state (up to 7.x)."""

    def path(self, cpu: int, time: int, thread: Thread, text: str) -> None:
        """Report that a path name is resolved."""

    def service_thread(self, cpu: int, time: int, thread: Thread, ident: int, interrupt_cpu: int) -> None:
        """Report that a thread has become the service thread of an interrupt on CPU `interrupt_cpu` (8.0).

        `ident` is the id of the thread's attachment.
        """


def polled(recorder: Recorder, loop: EventLoop) -> Recorder:
    """Return a recorder that, after every event, executes the interrupts that are due.

    Interrupts also occur between two slots of an event. Without polling after each event they would occur later if a
    filter drops the event, and the simulated history would depend on the filters.
    """
    due = loop.events_due

    def polling(method: Callable[..., None]) -> Callable[..., None]:
        def call(*args: Any) -> None:
            method(*args)
            if due and due[0][0] <= loop.now and not loop.nesting:
                loop.poll_nested()

        return call

    names = [name for name in vars(Recorder) if not name.startswith("_")]
    return cast("Recorder", SimpleNamespace(**{name: polling(getattr(recorder, name)) for name in names}))


# The part of the machine that kernel calls use, and interfaces of its scheduler, timers and interrupt controller.
#
# Kernel calls import these instead of the machine, which imports the calls.


# Lowest and highest costs in nanoseconds, about as on a 2.5 GHz machine.
SWITCH_NS = (300, 900)
IPI_NS = (900, 2200)
MAX_FAULTS = 1000


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
        """Charge the CPU time that a thread has used since the last charge; `is_leaving` = it leaves the CPU now."""

    def tick(self, here: Cpu) -> None:
        """Account for one tick on all CPUs; `here` is the CPU that takes the clock interrupt."""


class TimerServices(Protocol):
    """Runs functions when a time is reached: timers, sleeps and timeouts; see `Timers`."""

    clock_interrupt: int

    def start(self, deadline: int, fire: Callable[[Cpu], None]) -> None:
        """Call `fire(cpu)` in the kernel after the deadline, in cycles."""

    def arm(self, timer: Timer, ns: int) -> None:
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
        """Attach `handler`, which takes `handler_ns` of simulated time, or else the sigevent `event` to a vector."""

    def new_ident(self) -> int:
        """Return an unused id for an attachment."""

    def detach(self, ident: int, process: Process) -> bool:
        """Remove an attachment by id; return False if the process has no such attachment."""

    def detach_all(self, process: Process) -> None:
        """Remove all attachments of a process."""


class KernelServices(EventLoop):
    """The part of `Machine` that kernel calls use.

    Args:
        target: Properties of the target.
        seed: Random seed.
        recorder: Receives every event.
        start_cycles: Value of the clock at which the simulation begins.

    Attributes:
        trace_event: Executes TraceEvent(mode, arguments, CPU, pid, whether the caller has I/O privilege).
        clock_adjust: Ticks left, and nanoseconds per tick.
        faults: Faults of programs, at most `MAX_FAULTS`.
    """

    scheduler: SchedulerServices
    timers: TimerServices
    interrupts: InterruptServices

    def __init__(self, target: Target, seed: int, recorder: Recorder, start_cycles: int) -> None:
        super().__init__(target, seed, start_cycles)
        self.record = polled(recorder, self)
        self.cpus = [Cpu(i) for i in range(target.cpus)]
        self.processes: dict[int, Process] = {}
        self.partitions: list[Partition] = []
        self.sources: dict[int, InterruptSource] = {}
        self.history = TruthKeeper(start_cycles)
        self.history.truth.skew_cycles = target.skews(seed)
        self.on_death: list[Callable[[Process], None]] = []
        self.trace_event: Callable[..., int] = _no_trace_control
        self.clock_adjust = (0, 0)
        self.faults: list[WorkloadError] = []
        self._switch_cost = self.bounds(SWITCH_NS)
        self._ipi_cost = self.bounds(IPI_NS)

    @property
    def truth(self) -> Truth:
        """The true history so far."""
        return self.history.truth

    # Into the kernel and out

    def kernel_entry(self, cpu: Cpu, function: Callable[[Cpu], None]) -> None:
        """Interrupt the user code of a CPU, run kernel code there, and continue with the thread that should run."""
        self.hold(cpu)
        function(cpu)
        self.leave(cpu)

    def hold(self, cpu: Cpu) -> None:
        """Stop the user code of a CPU and store its remaining time."""
        cpu.token += 1
        thread = cpu.thread
        if thread is not None and cpu.until is not None:
            thread.remaining = max(0, cpu.until - self.now)

    def leave(self, cpu: Cpu) -> None:
        """Give the CPU to the thread that should run and continue its user code; implemented by the machine."""
        raise NotImplementedError

    def enter(self, cpu: Cpu, thread: Thread, call: PendingCall) -> None:
        """Emit the entry of a kernel call; used by `Call.carry_out`, because the library completes some calls itself.

        Raises ENOSYS as a QnxError if the release has no such call, and its library has no older call to make instead.
        """
        if not self.target.has_call(call.name):
            older = call.older()
            if older is None:
                raise QnxError(Errno.ENOSYS, f"release {self.target.release} has no {call.name}")
            call = older
        thread.call = call
        time = self.stamp()
        is_logged = self.target.has_call(call.name) and not call.is_silent(self.target)
        self.history.call_begins(time, thread, call.name, is_logged)
        self.record.kernel_enter(cpu.index, time, thread, call)

    @staticmethod
    def complete(thread: Thread, value: Any = 0, **values: int) -> None:
        """Set `value` as the result of a thread's current call; `values` are the exit event's arguments by name."""
        thread.value = value
        thread.error = None
        thread.exit_error = 0
        thread.exit_values = values

    @staticmethod
    def fail(thread: Thread, number: Errno, detail: str = "") -> None:
        """Set the error `number`, with the message `detail`, as the result of the current call of a waiting thread.

        For the calling thread, raise `QnxError` instead.
        """
        thread.value = None
        thread.error = QnxError(number, detail)
        thread.exit_error = int(number)

    def finish_silently(self, thread: Thread) -> None:
        """End a thread's current call with an exit event, but without resuming the thread's program."""
        call, thread.call = thread.call, None
        time = self.stamp()
        self.history.call_ends(time, thread, thread.exit_error)
        if call is not None:
            self.record.kernel_exit(max(thread.cpu, 0), time, thread, call)

    def interrupted(self, cpu: Cpu, thread: Thread) -> None:
        """End a thread's current call with the event that replaces the exit: the exit arguments are lost."""
        call, thread.call = thread.call, None
        thread.finish = None
        if call is None:
            return
        time = self.stamp()
        self.history.call_ends(time, thread, int(Errno.EINTR), is_interrupted=True)
        self.record.kernel_interrupted(cpu.index, time, thread, call)

    # States

    def set_state(self, cpu: Cpu, thread: Thread, state: str, on_cpu: int | None = None) -> int:
        """Change the state of a thread and emit the event; return the time of the event in cycles.

        The event belongs to CPU number `on_cpu`; None = to `cpu`. Implemented by the machine.
        """
        raise NotImplementedError

    def block(self, cpu: Cpu, thread: Thread, state: str, on: Any, owners: tuple[Thread, ...] = ()) -> None:
        """Block the thread that runs on a CPU; the CPU is free afterwards.

        Args:
            cpu: The CPU.
            thread: The thread.
            state: State that the thread enters.
            on: Object for which the thread waits.
            owners: Threads that hold the object, for the history.
        """
        thread.waiting_on = on
        self.scheduler.release(cpu, thread)
        time = self.set_state(cpu, thread, state)
        self.history.wait_begins(time, thread, state, on, owners)
        if thread.timeout_ns is not None and state in thread.timeout_states:
            self.timers.arm_timeout(thread)
        elif state not in ("REPLY", "SEND"):
            thread.timeout_ns = None

    def change_wait(
        self, cpu: Cpu, thread: Thread, state: str, on: Any, owners: tuple[Thread, ...], waker: Thread | None = None
    ) -> None:
        """End a thread's wait and begin another one without making the thread ready.

        Args:
            cpu: CPU on which the kernel runs.
            thread: The blocked thread.
            state: State that the thread enters.
            on: Object for which the thread waits from now on.
            owners: Threads that hold this object, for the history.
            waker: Thread whose call ended the first wait, for the history; None = no thread.
        """
        thread.waiting_on = on
        time = self.set_state(cpu, thread, state)
        self.history.wait_ends(time, thread, "ok", waker)
        self.history.wait_begins(time, thread, state, on, owners)

    def wake(
        self, cpu: Cpu, thread: Thread, waker: Thread | None = None, outcome: str = "ok", handoff: bool = False
    ) -> None:
        """Make a blocked thread ready; the result of its call is already set.

        The call of `waker` ends the wait (None = no thread), and `outcome` is `ok`, `timeout`, `signal`, `dead` or
        `cancelled`. With `handoff` the thread runs next on `cpu`, bypassing the ready queue, if the CPU is free and
        allowed.
        """
        thread.waiting_on = None
        thread.timeout_ns = None
        thread.timeout_token += 1
        is_free = cpu.thread is None and cpu.handoff is None and thread.runmask >> cpu.index & 1
        if handoff and is_free and not thread.is_held:
            cpu.handoff = thread
            self.history.wait_ends(self.now, thread, outcome, waker)
            return
        time = self.scheduler.make_ready(cpu, thread)
        self.history.wait_ends(time, thread, outcome, waker)
        if thread.state == "STOPPED":
            self.history.wait_begins(time, thread, "STOPPED", "SIGCONT", ())

    def stop_waiting(self, cpu: Cpu, thread: Thread) -> None:
        """End the wait of a thread that is about to be destroyed; implemented by the machine."""
        raise NotImplementedError

    def cancel(self, cpu: Cpu, thread: Thread) -> None:
        """Cancel a thread that is blocked at a cancellation point, else at its next one; implemented by the machine."""
        raise NotImplementedError

    def post_signal(self, cpu: Cpu, process: Process, target: Thread | None, signo: int, code: int) -> None:
        """Send a signal to a process, or to its thread `target`; implemented by the machine."""
        raise NotImplementedError

    def switch_cost(self) -> None:
        """Advance the clock by the cost of a context switch."""
        self.now += self.vary(self._switch_cost)

    def send_ipi(self, cpu: Cpu, priority: int) -> None:
        """Send an inter-processor interrupt to `cpu`, so that it looks for a thread to run.

        `priority` is that of the ready thread that shall run there; -1 = no particular thread.
        """
        cpu.claimed = max(cpu.claimed, priority)
        if not cpu.ipi_pending:
            cpu.ipi_pending = True
            self.at(self.now + self.vary(self._ipi_cost), self._ipi, cpu)

    def _ipi(self, cpu: Cpu) -> None:
        cpu.ipi_pending = False
        cpu.claimed = -1
        self.hold(cpu)
        if cpu.thread is not None:
            self.record.ipi(cpu.index, self.stamp(), cpu.thread)
        self.leave(cpu)

    # Faults of programs

    def guard(self, thread: Thread, what: str, function: Callable[[], Any]) -> Any:
        """Call a function that a program passed to the kernel, and return its result; None after an exception.

        An exception is recorded as a fault of the program; `what` is the kind of the function, `interrupt handler`.
        """
        try:
            return function()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001
            self.fault(thread, f"{what} raised {one_line(error)}", location_of(error))
            return None

    def fault(self, culprit: Thread | str, what: str, location: str) -> None:
        """Record a fault of a program, up to `MAX_FAULTS`; `location` is file and line, `name.py:12`, if known."""
        if len(self.faults) < MAX_FAULTS:
            label = culprit if isinstance(culprit, str) else culprit.label
            self.faults.append(WorkloadError(label, location, what))


def _no_trace_control(*_: Any) -> int:
    """Raise ENOSYS for TraceEvent() on a machine without a trace control."""
    raise QnxError(Errno.ENOSYS)
