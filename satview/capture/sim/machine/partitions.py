"""Adaptive partitions: each has a share of CPU time over a sliding window, to be used up before others get theirs.

A thread that receives a message works in the partition of the client, critical if the client is, until it replies to
it or receives again: what it does is done for the client, and charged to it. A channel of fixed priority
(_NTO_CHF_FIXED_PRIORITY) lends no partition, as the manual of ChannelCreate() says. A pulse has no client that waits:
its receiver works in its own partition.
"""

from __future__ import annotations

from satview.capture.sim.parts.cpu import Cpu
from satview.capture.sim.parts.services import KernelServices
from satview.capture.sim.parts.threads import Partition, Thread

WINDOW_MS = 100


class PartitionScheduler:
    """Keeps the accounts of the partitions of a kernel."""

    def __init__(self, kernel: KernelServices) -> None:
        self.kernel = kernel
        self.window = kernel.target.cycles(WINDOW_MS * 1_000_000)

    def add(self, name: str, budget_percent: int, critical_ms: int = 0) -> Partition:
        """Make a partition; its share comes out of the System partition's."""
        partitions = self.kernel.partitions
        partition = Partition(len(partitions), name, budget_percent, critical_ms)
        if partitions:
            partitions[0].budget_percent -= budget_percent
        partitions.append(partition)
        return partition

    def budget(self, partition: Partition) -> int:
        """Return a partition's budget in cycles per window, all CPUs together."""
        return self.window * len(self.kernel.cpus) * partition.budget_percent // 100

    def may_run(self, thread: Thread) -> bool:
        """Return whether a thread's partition has budget left, or the thread may draw on the critical budget."""
        partition = thread.partition
        if partition is None or thread.is_idle:
            return True
        if partition.used_total < self.budget(partition):
            return True
        limit = self.kernel.target.cycles(partition.critical_ms * 1_000_000)
        return thread.is_critical and partition.critical_used < limit

    def charge(self, cpu: Cpu, thread: Thread, start: int, end: int) -> None:
        """Book the time a thread had a CPU; time without budget as a critical thread goes on the critical account."""
        partition = thread.partition
        if partition is None:
            return
        used = end - start
        if used:
            self.kernel.truth.charges.append((partition.ident, (thread.pid, thread.tid), start, end))
        self._forget_old(partition)
        if thread.is_critical and partition.used_total >= self.budget(partition):
            partition.critical_used += used
            limit = self.kernel.target.cycles(partition.critical_ms * 1_000_000)
            if limit and partition.critical_used >= limit > partition.critical_used - used:
                self._bankrupt(cpu, thread, partition)
        partition.used.append((end, used))
        partition.used_total += used

    def lend(self, server: Thread, client: Thread, lender: object) -> bool:
        """Let a server run in the partition of a client, until `take_back`; return whether that changes anything.

        Args:
            server: Who received.
            client: Who waits for it; it may itself run in the partition of another.
            lender: The message.
        """
        server.lender = lender
        return self._move(server, client.partition, client.is_critical)

    def take_back(self, server: Thread, lender: object = None) -> bool:
        """Put a server back into its own partition; return whether that changes anything.

        Args:
            server: Who served.
            lender: The message that is answered: a server that works for another one stays there. None = whatever it
                works for.
        """
        if server.lender is None or (lender is not None and server.lender is not lender):
            return False
        server.lender = None
        return self._move(server, server.own_partition, server.is_critical_itself)

    def _move(self, thread: Thread, partition: Partition | None, is_critical: bool) -> bool:
        """Change the partition of a thread; what it used until now is charged to the one it leaves."""
        if thread.partition is partition and thread.is_critical == is_critical:
            return False
        if thread.state == "RUNNING" and thread.cpu >= 0:
            self.kernel.scheduler.charge(self.kernel.cpus[thread.cpu], thread)
        thread.partition, thread.is_critical = partition, is_critical
        return True

    def _forget_old(self, partition: Partition) -> None:
        oldest = self.kernel.now - self.window
        while partition.used and partition.used[0][0] <= oldest:
            partition.used_total -= partition.used.popleft()[1]
        if partition.used_total < self.budget(partition):
            partition.critical_used = 0

    def _bankrupt(self, cpu: Cpu, thread: Thread, partition: Partition) -> None:
        partition.bankruptcies += 1
        time = self.kernel.stamp()
        self.kernel.truth.bankruptcies.append((time, partition.ident, (thread.pid, thread.tid)))
        self.kernel.record.partition_bankrupt(cpu.index, time, thread, partition)

    def forget_old(self) -> None:
        """Give all partitions back what they used before the window."""
        for partition in self.kernel.partitions:
            self._forget_old(partition)
