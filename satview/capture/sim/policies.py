"""Calls that set how threads are scheduled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from satview.capture.sim.errors import Errno
from satview.capture.sim.sync import effective_priority
from satview.capture.sim.threads import Policy, Sporadic, Thread

if TYPE_CHECKING:
    from satview.capture.sim.calls import SchedJoinPartition, SchedSet, SchedYield
    from satview.capture.sim.cpu import Cpu
    from satview.capture.sim.machine import Machine


def sched_yield(machine: Machine, cpu: Cpu, thread: Thread, call: SchedYield) -> None:
    """Go to the end of the queue of one's priority."""
    machine.enter(cpu, thread, call)
    machine.complete(thread)
    cpu.is_yielding = True


def sched_set(machine: Machine, cpu: Cpu, thread: Thread, call: SchedSet) -> None:
    """Set priority and policy of the caller."""
    machine.enter(cpu, thread, call)
    if not 1 <= call.priority <= 255:
        machine.fail(thread, Errno.EINVAL, f"priority {call.priority}")
        return
    thread.policy = call.policy
    thread.base_priority = call.priority
    thread.sporadic = None
    if call.policy is Policy.SPORADIC:
        if not 1 <= call.low_priority < call.priority or not 0 < call.budget_ns <= call.period_ns:
            machine.fail(thread, Errno.EINVAL, "sporadic scheduling needs low priority < priority, budget <= period")
            return
        cycles = machine.target.cycles
        thread.sporadic = Sporadic(call.priority, call.low_priority, cycles(call.budget_ns), cycles(call.period_ns),
                                   call.max_replenishments)
        thread.sporadic.active_since = machine.now
    machine.complete(thread)
    machine.scheduler.set_priority(cpu, thread, max(call.priority, effective_priority(thread)))


def join_partition(machine: Machine, cpu: Cpu, thread: Thread, call: SchedJoinPartition) -> None:
    """Move the caller to another partition."""
    machine.enter(cpu, thread, call)
    chosen = next((p for p in machine.partitions if p.ident == call.partition), None)
    if chosen is None:
        machine.fail(thread, Errno.EINVAL, f"no partition {call.partition}")
        return
    thread.own_partition, thread.is_critical_itself = chosen, call.is_critical
    if thread.lender is None:
        thread.partition, thread.is_critical = chosen, call.is_critical
    machine.complete(thread)
