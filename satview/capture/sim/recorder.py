"""The event loop of a simulated machine, and the interface of the recorder to which it reports events."""

from __future__ import annotations

import heapq
import random
import sys
from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Protocol, cast

from satview.capture.sim.target import Target
from satview.capture.sim.threads import Cpu, Partition, PendingCall, Process, Sigevent, Thread

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
        service, due: The actions of hardware interrupts, which may occur between two slots of an event.
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
        """Run kernel code on a CPU; implemented by the machine."""
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
    """Collects the locations of TraceEvent() calls that a running program creates but does not yield.

    Attributes:
        is_on: A program or a handler is running, which creates the objects.
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
        """Report that an interrupt begins."""

    def interrupt_exit(self, cpu: int, time: int, vector: int, kernel_flags: int) -> None:
        """Report that an interrupt ends."""

    def handler_enter(self, cpu: int, time: int, process: Process, vector: int, address: int) -> None:
        """Report that an interrupt handler begins."""

    def handler_exit(self, cpu: int, time: int, vector: int, event: Sigevent | None) -> None:
        """Report that an interrupt handler ends and returns a sigevent; None = no sigevent."""

    def deliver_interrupt(self, cpu: int, time: int, ident: int) -> None:
        """Report the delivery of an interrupt to its service thread (8.0)."""

    def timer(self, cpu: int, time: int, thread: Thread, ident: int, flags: int) -> None:
        """Report that a timer has expired (logged from 6.6 on)."""

    def ipi(self, cpu: int, time: int, thread: Thread) -> None:
        """Report an inter-processor interrupt."""

    def partition_bankrupt(self, cpu: int, time: int, thread: Thread, partition: Partition) -> None:
        """Report that a critical thread has used up the critical budget of its partition."""

    def mapped(self, cpu: int, time: int, process: Process, address: int, call: Mapping) -> None:
        """Report that memory has been mapped (logged from 6.4 on)."""

    def unmapped(self, cpu: int, time: int, process: Process, address: int, length: int) -> None:
        """Report that memory has been unmapped (logged from 6.4 on)."""

    def system(self, cpu: int, time: int, name: str, values: dict[str, int | bytes]) -> None:
        """Report a SYSTEM event by name with its arguments; ignored if the release does not have the event."""

    def virtual_thread(self, cpu: int, time: int, thread: Thread, state: str) -> None:
        """Report that the virtual thread that a thread represents enters a state (up to 7.x)."""

    def path(self, cpu: int, time: int, thread: Thread, text: str) -> None:
        """Report that a path name is resolved."""

    def service_thread(self, cpu: int, time: int, thread: Thread, ident: int, interrupt_cpu: int) -> None:
        """Report that a thread has become the service thread of an interrupt (8.0)."""


def polled(recorder: Recorder, loop: EventLoop) -> Recorder:
    """Return a recorder that executes interrupts that are due after every event.

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
