"""A workload with periodic tasks: rate-monotonic priorities, jitter, and a missed deadline."""

from __future__ import annotations

from satview.capture.kernel import Kernel
from satview.capture.sim.calls import Compute, SchedSet, Sleep, TraceEvent
from satview.capture.sim.parts.threads import Policy, Program
from satview.capture.trace_event import mode
from satview.capture.workloads.parts import MS, US, periodic

MARK_BEGIN, MARK_END, MARK_MISSED = 1, 2, 3
TASKS = (("fast", 10, 2, 30), ("middle", 20, 6, 20), ("slow", 50, 14, 10))  # name, period and run time in ms, priority
OVERLOAD_CYCLE = 12
_INSERT = mode("INSERTSUSEREVENT")


def setup_periodic(kernel: Kernel) -> None:
    """Start three tasks that use 72 % of the CPU; in cycle 12 the middle task runs four times as long."""
    machine = kernel.machine

    def cycle(number: int, period_ms: int, compute_ms: int, count: int) -> Program:
        begin_ns = machine.now * 1_000_000_000 // machine.target.cycles_per_s
        yield TraceEvent(_INSERT, MARK_BEGIN, number, count)
        extra = 4 if number == 1 and count == OVERLOAD_CYCLE else 1
        yield Compute(int(compute_ms * MS * extra * (0.8 + 0.2 * machine.random.random())))
        yield TraceEvent(_INSERT, MARK_END, number, count)
        if machine.now * 1_000_000_000 // machine.target.cycles_per_s - begin_ns > period_ms * MS:
            yield TraceEvent(_INSERT, MARK_MISSED, number, count)

    for number, (name, period_ms, compute_ms, priority) in enumerate(TASKS):
        kernel.spawn(
            f"usr/bin/{name}",
            periodic,
            period_ms * MS,
            cycle,
            number,
            period_ms,
            compute_ms,
            priority=priority,
            policy=Policy.FIFO,
            thread_name=f"{name}-{period_ms}ms",
        )
    kernel.spawn("usr/bin/sporadic", _sporadic, priority=25, thread_name="aperiodic")


def _sporadic() -> Program:
    """Run aperiodic load at high priority; sporadic scheduling limits it to 2 ms in 40 ms."""
    yield SchedSet(25, Policy.SPORADIC, low_priority=5, budget_ns=2 * MS, period_ns=40 * MS)
    while True:
        yield Sleep(33 * MS)
        yield Compute(5 * MS)
        yield Sleep(500 * US)
