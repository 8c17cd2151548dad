"""Adaptive partitions: each has a share of CPU time over a sliding window, to be used up before others get theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from satview.capture.sim.threads import Partition, Thread

if TYPE_CHECKING:
    from satview.capture.sim.cpu import Cpu
    from satview.capture.sim.machine import Machine

WINDOW_MS = 100


class PartitionScheduler:
    """Keeps the accounts of the partitions of a machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.window = machine.target.cycles(WINDOW_MS * 1_000_000)

    def add(self, name: str, budget_percent: int, critical_ms: int = 0) -> Partition:
        """Make a partition; its share comes out of the System partition's."""
        partitions = self.machine.partitions
        partition = Partition(len(partitions), name, budget_percent, critical_ms)
        if partitions:
            partitions[0].budget_percent -= budget_percent
        partitions.append(partition)
        return partition

    def budget(self, partition: Partition) -> int:
        """Return a partition's budget in cycles per window, all CPUs together."""
        return self.window * len(self.machine.cpus) * partition.budget_percent // 100

    def may_run(self, thread: Thread) -> bool:
        """Tell whether a thread's partition has budget left, or the thread may draw on the critical budget."""
        partition = thread.partition
        if partition is None or thread.is_idle:
            return True
        if partition.used_total < self.budget(partition):
            return True
        limit = self.machine.target.cycles(partition.critical_ms * 1_000_000)
        return thread.is_critical and partition.critical_used < limit

    def charge(self, cpu: Cpu, thread: Thread, start: int, end: int) -> None:
        """Book the time a thread had a CPU; time without budget as a critical thread goes on the critical account."""
        partition = thread.partition
        if partition is None:
            return
        used = end - start
        self._forget_old(partition)
        if thread.is_critical and partition.used_total >= self.budget(partition):
            partition.critical_used += used
            limit = self.machine.target.cycles(partition.critical_ms * 1_000_000)
            if limit and partition.critical_used >= limit > partition.critical_used - used:
                self._bankrupt(cpu, thread, partition)
        partition.used.append((end, used))
        partition.used_total += used

    def _forget_old(self, partition: Partition) -> None:
        oldest = self.machine.now - self.window
        while partition.used and partition.used[0][0] <= oldest:
            partition.used_total -= partition.used.popleft()[1]
        if partition.used_total < self.budget(partition):
            partition.critical_used = 0

    def _bankrupt(self, cpu: Cpu, thread: Thread, partition: Partition) -> None:
        partition.bankruptcies += 1
        time = self.machine.stamp()
        self.machine.truth.bankruptcies.append((time, partition.ident, (thread.pid, thread.tid)))
        self.machine.record.partition_bankrupt(cpu.index, time, thread, partition)

    def forget_old(self) -> None:
        """Give all partitions back what they used before the window."""
        for partition in self.machine.partitions:
            self._forget_old(partition)
