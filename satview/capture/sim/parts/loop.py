"""Simulated time: a clock that only moves forward, a heap of what happens next, and lengths that vary by seed."""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable
from typing import Any

from satview.capture.sim.parts.cpu import Cpu
from satview.capture.sim.parts.target import Target

Action = Callable[[Any], None]
_JITTER = 4096
EVENT_NS = (60, 260)  # what one event costs, about that of a 2.5 GHz machine
_POLL = 0x3FF
_NESTED_AT_MOST = 16


class EventLoop:
    """Clock and heap of a machine.

    Attributes:
        now: Cycles; the stamp of the last event, or later.
        deferred: Kernel code that interrupts left behind, to run once the kernel is free.
        nesting: Above 0 inside an interrupt.
        is_polling: The interrupt came while the kernel was running.
        service, due: The actions of hardware interrupts, which may come between two slots.
        events_due: Heap of what happens next: (time, number, action, argument).
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
        """Return (lowest, spread) in cycles of a range in nanoseconds."""
        low = max(1, self.target.cycles(ns[0]))
        return low, max(1, self.target.cycles(ns[1]) - low)

    def vary(self, cost: tuple[int, int]) -> int:
        """Return a length between the bounds (lowest, spread) in cycles."""
        self._jitter_at = at = (self._jitter_at + 1) % _JITTER
        return cost[0] + int(cost[1] * self._jitter[at])

    def stamp(self) -> int:
        """Move the clock past one event and return its time; no two are equal.

        Interrupts that are due come first: the kernel lets them in at every event, recorded or not.
        """
        if not self.nesting and self.events_due and self.events_due[0][0] <= self.now:
            self.poll_nested()
        self._jitter_at = at = (self._jitter_at + 1) % _JITTER  # `vary`, without the call: this is the hottest line
        low, spread = self._event_cost
        self.now += low + int(spread * self._jitter[at])
        return self.now

    def spend(self, ns: int) -> None:
        """Let the kernel run for a time."""
        self.now += self.target.cycles(ns)

    def at(self, time: int, action: Action, argument: Any = None) -> None:
        """Call `action(argument)` at a time."""
        self._sequence += 1
        heapq.heappush(self.events_due, (time, self._sequence, action, argument))

    def kernel_entry(self, cpu: Cpu, function: Callable[[Cpu], None]) -> None:
        """Run kernel code on a CPU; the machine knows how."""
        raise NotImplementedError

    def run(
        self, until: int, cancelled: Callable[[], bool] | None = None, progress: Callable[[int], None] | None = None
    ) -> None:
        """Simulate up to a time, until nothing can happen any more, or until `stop()`."""
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

        Neither costs time by itself, so what is recorded decides where their slots are, but not when they come.
        """
        if self.nesting:
            return
        heap = self.events_due
        for _ in range(_NESTED_AT_MOST):  # a device that never rests must not hold the event for ever
            if not heap or heap[0][0] > self.now or heap[0][2] not in (self.service, self.due):
                return
            _, _, action, source = heapq.heappop(heap)
            self.is_polling = True
            try:
                action(source)
            finally:
                self.is_polling = False
