"""Kernel calls that set how threads are scheduled, or query it."""

from __future__ import annotations

from dataclasses import dataclass

from satview.capture.sim.calls.call import SECOND_NS, Call, effective_priority
from satview.capture.sim.calls.processes import find_thread
from satview.capture.sim.parts.cpu import Cpu
from satview.capture.sim.parts.errors import Errno, QnxError
from satview.capture.sim.parts.services import KernelServices
from satview.capture.sim.parts.threads import Policy, Sporadic, Thread

__all__ = ["SchedGet", "SchedInfo", "SchedJoinPartition", "SchedSet", "SchedYield"]

_PRIVILEGED = 64  # priority from which on a program needs privileges


@dataclass(slots=True)
class SchedYield(Call):
    """Let others of the same priority run."""

    name = "SCHED_YIELD"

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Go to the end of the queue of one's priority."""
        kernel.enter(cpu, thread, self)
        kernel.complete(thread)
        cpu.is_yielding = True


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

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return policy, priorities and budget."""
        return {
            "policy": self.policy,
            "sched_priority": self.priority,
            "param.ss_low_priority": self.low_priority,
            "param.ss_max_repl": self.max_replenishments,
            "param.ss_repl_period.tv_sec": self.period_ns // SECOND_NS,
            "param.ss_repl_period.tv_nsec": self.period_ns % SECOND_NS,
            "param.ss_init_budget.tv_sec": self.budget_ns // SECOND_NS,
            "param.ss_init_budget.tv_nsec": self.budget_ns % SECOND_NS,
        }

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Set priority and policy of the caller.

        Raises:
            QnxError: EINVAL (no such priority; sporadic scheduling needs low priority < priority, budget <= period).
        """
        kernel.enter(cpu, thread, self)
        if not 1 <= self.priority <= 255:
            raise QnxError(Errno.EINVAL, f"priority {self.priority}")
        thread.policy = self.policy
        thread.base_priority = self.priority
        thread.sporadic = None
        if self.policy is Policy.SPORADIC:
            if not 1 <= self.low_priority < self.priority or not 0 < self.budget_ns <= self.period_ns:
                raise QnxError(Errno.EINVAL, "sporadic scheduling needs low priority < priority, budget <= period")
            cycles = kernel.target.cycles
            thread.sporadic = Sporadic(
                self.priority,
                self.low_priority,
                cycles(self.budget_ns),
                cycles(self.period_ns),
                self.max_replenishments,
            )
            thread.sporadic.active_since = kernel.now
        kernel.complete(thread)
        kernel.scheduler.set_priority(cpu, thread, max(self.priority, effective_priority(thread)))


@dataclass(slots=True)
class SchedJoinPartition(Call):
    """Move the calling thread to a partition, by its number."""

    name = "SCHED_CTL"
    partition: int
    is_critical: bool = False

    def arguments(self, _thread: Thread) -> dict[str, int]:
        """Return the command."""
        return {"cmd": 4, "data_p": 0x8047D00}

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Move the caller to another partition.

        Raises:
            QnxError: EINVAL (no partition).
        """
        kernel.enter(cpu, thread, self)
        partition = next((p for p in kernel.partitions if p.ident == self.partition), None)
        if partition is None:
            raise QnxError(Errno.EINVAL, f"no partition {self.partition}")
        thread.own_partition, thread.is_critical_itself = partition, self.is_critical
        if thread.lender is None:
            thread.partition, thread.is_critical = partition, self.is_critical
        kernel.complete(thread)


@dataclass(slots=True)
class SchedGet(Call):
    """Query a thread's scheduling; result `(policy, own priority, effective priority)`."""

    name = "SCHED_GET"
    pid: int = 0
    tid: int = 0

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Return policy and priorities."""
        kernel.enter(cpu, thread, self)
        other = find_thread(kernel, thread, self.pid, self.tid)
        kernel.complete(
            thread,
            (other.policy, other.base_priority, other.priority),
            ret_val=int(other.policy),
            sched_priority=other.base_priority,
            sched_curpriority=other.priority,
        )


@dataclass(slots=True)
class SchedInfo(Call):
    """Query the bounds of a policy; result `(lowest, highest priority, time slice in ns)`."""

    name = "SCHED_INFO"
    pid: int = 0
    policy: int = Policy.RR

    def carry_out(self, kernel: KernelServices, cpu: Cpu, thread: Thread) -> None:
        """Return the bounds.

        Raises:
            QnxError: EINVAL (no such policy).
        """
        kernel.enter(cpu, thread, self)
        if self.policy not in list(Policy):
            raise QnxError(Errno.EINVAL, f"policy {self.policy}")
        slice_ns = kernel.slice_ns
        kernel.complete(
            thread,
            (1, 255, slice_ns),
            priority_min=1,
            priority_max=255,
            priority_priv=_PRIVILEGED,
            interval_sec=slice_ns // SECOND_NS,
            interval_nsec=slice_ns % SECOND_NS,
        )
