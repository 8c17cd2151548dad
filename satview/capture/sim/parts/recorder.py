"""The interface of the recorder of a machine's events, and the event loop."""

from __future__ import annotations

import heapq
import random
import sys
from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Protocol, cast

from satview.capture.sim.parts.sigevent import Sigevent
from satview.capture.sim.parts.target import Target
from satview.capture.sim.parts.threads import Cpu, Partition, PendingCall, Process, Thread

# Simulated time: a clock that only moves forward, a heap of future actions, and durations that vary by seed.


Action = Callable[[Any], None]
_JITTER = 4096
EVENT_NS = (60, 260)  # cost of one event, about as on a 2.5 GHz machine
_POLL = 0x3FF
_NESTED_AT_MOST = 16


class EventLoop:
    """Clock and action heap of a machine.

    Attributes:
        now: Cycles; the stamp of the last event, or later.
        deferred: Kernel code scheduled by interrupts, to run once the kernel is free.
        nesting: Above 0 inside an interrupt.
        is_polling: The interrupt came while the kernel was running.
        service, due: The actions of hardware interrupts, which may come between two slots.
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
        """Return a range in nanoseconds as (lowest, spread) in cycles."""
        low = max(1, self.target.cycles(ns[0]))
        return low, max(1, self.target.cycles(ns[1]) - low)

    def vary(self, cost: tuple[int, int]) -> int:
        """Return a duration between the bounds (lowest, spread) in cycles."""
        self._jitter_at = position = (self._jitter_at + 1) % _JITTER
        return cost[0] + int(cost[1] * self._jitter[position])

    def stamp(self) -> int:
        """Move the clock past one event and return its time; no two are equal.

        Interrupts that are due come first: the kernel allows them at every event, recorded or not.
        """
        if not self.nesting and self.events_due and self.events_due[0][0] <= self.now:
            self.poll_nested()
        self._jitter_at = position = (
            self._jitter_at + 1
        ) % _JITTER  # `vary`, without the call: this is the hottest line
        low, spread = self._event_cost
        self.now += low + int(spread * self._jitter[position])
        return self.now

    def spend(self, ns: int) -> None:
        """Advance the clock by kernel time."""
        self.now += self.target.cycles(ns)

    def at(self, time: int, action: Action, argument: Any = None) -> None:
        """Call `action(argument)` at a time."""
        self._sequence += 1
        heapq.heappush(self.events_due, (time, self._sequence, action, argument))

    def kernel_entry(self, cpu: Cpu, function: Callable[[Cpu], None]) -> None:
        """Run kernel code on a CPU; implemented by the machine."""
        raise NotImplementedError

    def run(
        self, until: int, cancelled: Callable[[], bool] | None = None, progress: Callable[[int], None] | None = None
    ) -> None:
        """Simulate until a time, until no action is left, or until `stop()`."""
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
        """Take hardware interrupts that are due now: between two slots of a long event, or before the next event.

        Neither takes time by itself, so the filters affect where the interrupts' slots are, but not when they come.
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


# Finds calls of TraceEvent() whose `yield` was forgotten: the object is created and dropped unused.


class CallWatch:
    """Collects the locations of calls without `yield` while a program runs.

    Attributes:
        is_on: A program or a handler is running, so objects created now are its own.
        locations: Recorded since the last `take()`, each once.
    """

    __slots__ = ("is_on", "locations")

    def __init__(self) -> None:
        self.is_on = False
        self.locations: dict[str, None] = {}

    def location(self) -> str:
        """Return file and line of the caller's caller; empty while no program runs."""
        if not self.is_on:
            return ""
        frame = sys._getframe(2)
        return f"{frame.f_code.co_filename.replace(chr(92), '/').rsplit('/', 1)[-1]}:{frame.f_lineno}"

    def thrown_away(self, location: str) -> None:
        """Record that an object created there was dropped without having been yielded."""
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
    """Receives every event with its CPU and time (cycles), and decides whether to write it."""

    def kernel_enter(self, cpu: int, time: int, thread: Thread, call: PendingCall) -> None:
        """A kernel call begins."""

    def kernel_exit(self, cpu: int, time: int, thread: Thread, call: PendingCall) -> None:
        """A kernel call ends; its outcome is in the thread."""

    def kernel_interrupted(self, cpu: int, time: int, thread: Thread, call: PendingCall) -> None:
        """A kernel call ends without its arguments."""

    def thread_state(self, cpu: int, time: int, thread: Thread) -> None:
        """A thread enters its current state."""

    def thread_life(self, cpu: int, time: int, thread: Thread, event: str) -> None:
        """A thread is created (CREATE) or destroyed (DESTROY)."""

    def thread_name(self, cpu: int, time: int, thread: Thread) -> None:
        """A thread has been named."""

    def process_life(self, cpu: int, time: int, process: Process, event: str) -> None:
        """A process changes: CREATE, CREATE_NAME, DESTROY or DESTROY_NAME."""

    def comm(self, cpu: int, time: int, event: str, words: tuple[int, ...], pid: int, tid: int) -> None:
        """A message, pulse or signal; filters compare pid and tid, tid is 0 for the kernel's pulses."""

    def interrupt_enter(self, cpu: int, time: int, vector: int, address: int) -> None:
        """An interrupt begins."""

    def interrupt_exit(self, cpu: int, time: int, vector: int, kernel_flags: int) -> None:
        """An interrupt ends."""

    def handler_enter(self, cpu: int, time: int, process: Process, vector: int, address: int) -> None:
        """An interrupt handler begins."""

    def handler_exit(self, cpu: int, time: int, vector: int, event: Sigevent | None) -> None:
        """An interrupt handler ends and returns an event, or none."""

    def deliver_interrupt(self, cpu: int, time: int, ident: int) -> None:
        """8.0: an interrupt is delivered to its service thread."""

    def timer(self, cpu: int, time: int, thread: Thread, ident: int, flags: int) -> None:
        """A timer has expired (7.x on)."""

    def ipi(self, cpu: int, time: int, thread: Thread) -> None:
        """An inter-processor interrupt has arrived."""

    def partition_bankrupt(self, cpu: int, time: int, thread: Thread, partition: Partition) -> None:
        """A critical thread has used up its partition's critical budget."""

    def mapped(self, cpu: int, time: int, process: Process, address: int, call: Mapping) -> None:
        """Memory has been mapped (6.4 on)."""

    def unmapped(self, cpu: int, time: int, process: Process, address: int, length: int) -> None:
        """Memory has been unmapped (6.4 on)."""

    def system(self, cpu: int, time: int, name: str, values: dict[str, int | bytes]) -> None:
        """An event of class SYSTEM with its name and arguments, if the release has it."""

    def virtual_thread(self, cpu: int, time: int, thread: Thread, state: str) -> None:
        """The virtual thread that a thread represents enters a state (up to 7.x)."""

    def path(self, cpu: int, time: int, thread: Thread, text: str) -> None:
        """A path name is resolved."""

    def service_thread(self, cpu: int, time: int, thread: Thread, ident: int, interrupt_cpu: int) -> None:
        """8.0: a thread has become the service thread of an interrupt."""


def polled(recorder: Recorder, loop: EventLoop) -> Recorder:
    """Return a recorder that allows interrupts after every event.

    They also come between two slots of a long event, whose length depends on the filter. Without polling after each
    event they would come later when a filter drops it, and the simulated history would depend on filters.
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
