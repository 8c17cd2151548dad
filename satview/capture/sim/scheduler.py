"""The scheduler: ready queues, preemption, direct hand-off, time slices, sporadic budgets, CPU affinity, partitions."""

from __future__ import annotations

from collections import deque

from satview.capture.sim.services import KernelServices
from satview.capture.sim.threads import WINDOW_MS, Cpu, Partition, Policy, Thread

# Adaptive partitions: each has a guaranteed share of CPU time over a sliding window.


class PartitionScheduler:
    """Accounts for the CPU time of a kernel's partitions, and decides which threads have budget."""

    def __init__(self, kernel: KernelServices) -> None:
        self.kernel = kernel
        self.window = kernel.target.cycles(WINDOW_MS * 1_000_000)

    def add(self, name: str, budget_percent: int, critical_ms: int = 0) -> Partition:
        """Add a partition, whose share is taken from the System partition, and return it; `critical_ms` 0 = none."""
        partitions = self.kernel.partitions
        partition = Partition(len(partitions), name, budget_percent, critical_ms)
        if partitions:
            partitions[0].budget_percent -= budget_percent
        partitions.append(partition)
        return partition

    def budget(self, partition: Partition) -> int:
        """Return a partition's budget in cycles per window, summed over all CPUs."""
        return self.window * len(self.kernel.cpus) * partition.budget_percent // 100

    def may_run(self, thread: Thread) -> bool:
        """Return whether a thread's partition has budget left, or critical budget if the thread is critical."""
        partition = thread.partition
        if partition is None or thread.is_idle:
            return True
        if partition.used_total < self.budget(partition):
            return True
        limit = self.kernel.target.cycles(partition.critical_ms * 1_000_000)
        return thread.is_critical and partition.critical_used < limit

    def charge(self, cpu: Cpu, thread: Thread, start: int, end: int) -> None:
        """Charge a thread's CPU time from `start` to `end`, in cycles, to its partition.

        A critical thread whose partition has used up its budget is charged to the critical budget too.
        """
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
        """Move a server to the partition of a client, for the message `lender`; return whether anything changed."""
        server.lender = lender
        return self._move(server, client.partition, client.is_critical)

    def take_back(self, server: Thread, lender: object = None) -> bool:
        """Move a server back if it serves the message `lender`, None = any; return whether anything changed."""
        if server.lender is None or (lender is not None and server.lender is not lender):
            return False
        server.lender = None
        return self._move(server, server.own_partition, server.is_critical_itself)

    def _move(self, thread: Thread, partition: Partition | None, is_critical: bool) -> bool:
        """Change partition and criticality of a thread, charging its time so far; return whether anything changed."""
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
        """Discard CPU time used before the current window, in all partitions."""
        for partition in self.kernel.partitions:
            self._forget_old(partition)


PRIORITIES = 256
SLICE_TICKS = 4


class ReadyQueue:
    """The ready threads, in one queue per priority, with a bit set of the queues that are not empty."""

    def __init__(self) -> None:
        self._queues: list[deque[Thread]] = [deque() for _ in range(PRIORITIES)]
        self._bits = 0

    def push(self, thread: Thread, in_front: bool = False) -> None:
        """Add a thread at the end of the queue of its priority, or in front if it was preempted."""
        queue = self._queues[thread.priority]
        if in_front:
            queue.appendleft(thread)
        else:
            queue.append(thread)
        self._bits |= 1 << thread.priority

    def remove(self, thread: Thread) -> None:
        """Remove a thread from the queue of its priority."""
        queue = self._queues[thread.priority]
        queue.remove(thread)
        if not queue:
            self._bits &= ~(1 << thread.priority)

    def waiting(self) -> list[Thread]:
        """Return all queued threads except idle threads, highest priority first."""
        return [thread for queue in reversed(self._queues) for thread in queue if not thread.is_idle]

    def best(self, cpu: int, partitions: PartitionScheduler | None = None, above: int = -1) -> Thread | None:
        """Return the thread to run next on a CPU; None if no thread of a priority above `above` may run there.

        A thread may run if the CPU is in its runmask and, with `partitions`, if its partition has budget.
        """
        bits = self._bits >> (above + 1) << (above + 1)
        while bits:
            priority = bits.bit_length() - 1
            for thread in self._queues[priority]:
                if thread.runmask >> cpu & 1 and (partitions is None or partitions.may_run(thread)):
                    return thread
            bits ^= 1 << priority
        return None


class Scheduler:
    """Decides which thread runs on each CPU of a machine."""

    def __init__(self, kernel: KernelServices) -> None:
        self.kernel = kernel
        self.ready = ReadyQueue()
        self.partitions: PartitionScheduler | None = None

    def _choose(self, cpu: Cpu) -> Thread | None:
        if self.partitions is None:
            return self.ready.best(cpu.index)
        selected = self.ready.best(cpu.index, self.partitions)
        if selected is None or selected.is_idle:
            return self.ready.best(cpu.index)  # no ready thread has budget left, so that any thread may run
        return selected

    def _beats(self, new: Thread, old: Thread, is_yielding: bool) -> bool:
        if self.partitions is not None and not old.is_idle:
            may_new, may_old = self.partitions.may_run(new), self.partitions.may_run(old)
            if may_new != may_old:
                return may_new and not new.is_idle
        return new.priority > old.priority or (is_yielding and new.priority == old.priority)

    def dispatch(self, cpu: Cpu) -> None:
        """Switch a CPU to the thread that should run there, unless that thread runs already."""
        expected, cpu.expected = cpu.expected, 0
        self._switch(cpu)
        if expected > 1:  # the switch took only one of the expected threads
            for thread in self.ready.waiting():
                self._find_cpu(cpu, thread)

    def _switch(self, cpu: Cpu) -> None:
        kernel, old = self.kernel, cpu.thread
        best = self._choose(cpu)
        handed, cpu.handoff = cpu.handoff, None
        if handed is not None:
            if best is not None and self._beats(best, handed, False):
                self.make_ready(cpu, handed)
            else:
                best = handed
        is_yielding, cpu.is_yielding = cpu.is_yielding, False
        if old is not None:
            if best is None or not self._beats(best, old, is_yielding):
                if best is handed and handed is not None:
                    self.make_ready(cpu, handed)
                return
            self.release(cpu, old)
            kernel.set_state(cpu, old, "READY")
            self.ready.push(old, in_front=not is_yielding)
        if best is None:
            raise AssertionError(f"no thread for CPU {cpu.index}")
        if best is not handed:
            self.ready.remove(best)
        self._start(cpu, best)
        if old is not None and not old.is_idle:
            self._find_cpu(cpu, old)

    def _start(self, cpu: Cpu, thread: Thread) -> None:
        kernel = self.kernel
        kernel.switch_cost()
        cpu.thread = thread
        thread.cpu = thread.last_cpu = cpu.index
        thread.run_since = thread.charged_until = kernel.set_state(cpu, thread, "RUNNING")
        thread.slice_ticks = 0
        if thread.sporadic is not None and thread.sporadic.active_since is None:
            thread.sporadic.active_since = thread.run_since

    def release(self, cpu: Cpu, thread: Thread) -> None:
        """Take the CPU from the thread that runs on it; the caller sets the thread's new state at once."""
        kernel = self.kernel
        cpu.thread = None
        thread.cpu = -1
        kernel.history.ran(cpu, thread, thread.run_since, kernel.now)
        self.charge(cpu, thread, is_leaving=True)

    def make_ready(self, cpu: Cpu, thread: Thread) -> int:
        """Make a thread ready and find a CPU for it; return the time of the event, in cycles.

        A thread that was stopped while it was blocked (`is_held`) becomes STOPPED instead.
        """
        if thread.is_held:
            return self.kernel.set_state(cpu, thread, "STOPPED")
        time = self.kernel.set_state(cpu, thread, "READY")
        self.ready.push(thread)
        self._find_cpu(cpu, thread)
        return time

    def forget(self, thread: Thread) -> None:
        """Remove a ready thread from its queue, because it is stopped or destroyed."""
        for cpu in self.kernel.cpus:
            if cpu.handoff is thread:
                cpu.handoff = None
                return
        self.ready.remove(thread)

    def _find_cpu(self, here: Cpu, thread: Thread) -> None:
        """Find a CPU for a ready thread: `here` if it is free, else the one with the least urgent thread, by an IPI."""
        if here.thread is None and thread.runmask >> here.index & 1 and here.handoff is None:
            here.expected += 1
            return
        best, best_key = None, (thread.priority, True)
        for cpu in self.kernel.cpus:
            if not thread.runmask >> cpu.index & 1:
                continue
            running = cpu.thread.priority if cpu.thread is not None else thread.priority
            if cpu.thread is None and cpu.handoff is not None:
                running = cpu.handoff.priority
            key = (max(running, cpu.claimed), cpu.index != thread.last_cpu)
            if key < best_key:
                best, best_key = cpu, key
        if best is here:
            here.expected += 1
        elif best is not None and best_key[0] < thread.priority:
            self.kernel.send_ipi(best, thread.priority)

    def set_priority(self, cpu: Cpu, thread: Thread, priority: int) -> None:
        """Change the effective priority of a thread; log the state of a ready or running thread again."""
        priority = max(1, min(PRIORITIES - 1, priority))
        if priority == thread.priority:
            return
        if thread.state == "READY" and not any(c.handoff is thread for c in self.kernel.cpus):
            self.ready.remove(thread)
            thread.priority = priority
            self.make_ready(cpu, thread)
            return
        falls = priority < thread.priority
        thread.priority = priority
        if thread.state == "RUNNING" and thread.cpu >= 0:
            self.kernel.set_state(cpu, thread, "RUNNING", on_cpu=thread.cpu)
            if falls and thread.cpu != cpu.index:
                self.kernel.send_ipi(self.kernel.cpus[thread.cpu], -1)

    def serve(self, cpu: Cpu, server: Thread, client: Thread, message: object) -> None:
        """Move a server to the partition of the client whose message it received."""
        if self.partitions is not None and self.partitions.lend(server, client, message):
            self._show(cpu, server)

    def end_service(self, cpu: Cpu, server: Thread, message: object = None) -> None:
        """Move a server back to its own partition if it serves this message; None = any message."""
        if self.partitions is not None and self.partitions.take_back(server, message):
            self._show(cpu, server)

    def _show(self, cpu: Cpu, thread: Thread) -> None:
        """Log RUNNING again for a running thread whose partition has changed."""
        if thread.state == "RUNNING" and thread.cpu >= 0:
            self.kernel.set_state(cpu, thread, "RUNNING", on_cpu=thread.cpu)
            if thread.cpu != cpu.index:
                self.kernel.send_ipi(self.kernel.cpus[thread.cpu], -1)

    def tick(self, here: Cpu) -> None:
        """Account for one tick on all CPUs: round-robin time slices, sporadic budgets, partitions.

        Another CPU than `here`, which takes the clock interrupt, gets an IPI if it may have to switch threads.
        """
        kernel = self.kernel
        for cpu in kernel.cpus:
            thread = cpu.thread
            if thread is None or thread.is_idle:
                continue
            self.charge(cpu, thread)
            must_look = False
            if thread.sporadic is not None:
                self._take_priority(cpu, thread)
                must_look = True
            if thread.policy in (Policy.RR, Policy.OTHER):
                thread.slice_ticks += 1
                rival = self.ready.best(cpu.index, above=thread.priority - 1)
                if thread.slice_ticks >= SLICE_TICKS and rival is not None:
                    thread.slice_ticks = 0
                    cpu.is_yielding = must_look = True
            if self.partitions is not None:
                self.partitions.forget_old()
                must_look = must_look or not self.partitions.may_run(thread)
            if must_look and cpu is not here:
                kernel.send_ipi(cpu, -1)

    def charge(self, cpu: Cpu, thread: Thread, is_leaving: bool = False) -> None:
        """Charge a thread for its CPU time since the last charge; `is_leaving` = the thread leaves the CPU."""
        since, now = thread.charged_until, self.kernel.now
        thread.charged_until = now
        self._charge_sporadic(thread, now - since, is_leaving)
        if self.partitions is not None and not thread.is_idle:
            self.partitions.charge(cpu, thread, since, now)

    # Sporadic scheduling

    def _take_priority(self, cpu: Cpu, thread: Thread) -> None:
        """Set a thread to its low priority if its sporadic budget is used up."""
        if thread.sporadic is not None and thread.sporadic.left <= 0 and thread.priority > thread.sporadic.low:
            self.set_priority(cpu, thread, thread.sporadic.low)

    def _charge_sporadic(self, thread: Thread, used: int, is_leaving: bool) -> None:
        """Charge cycles to a thread's sporadic budget; the end of budget or span schedules a replenishment."""
        account = thread.sporadic
        if account is None or thread.priority <= account.low:
            return
        used = min(used, account.left)
        account.left -= used
        account.used += used
        if account.left > 0 and not is_leaving:
            return
        since, account.active_since = account.active_since, None
        if account.used > 0 and since is not None and account.pending < account.max_replenishments:
            account.pending += 1
            self.kernel.at(since + account.period, self._replenish, (thread, account.used))
            account.used = 0
        if account.left <= 0:
            thread.base_priority = account.low

    def _replenish(self, argument: tuple[Thread, int]) -> None:
        thread, amount = argument
        account = thread.sporadic
        if account is None or thread.state == "DEAD":
            return
        account.pending -= 1
        account.left = min(account.budget, account.left + amount)
        if thread.base_priority >= account.high:
            return
        thread.base_priority = account.high
        self.kernel.kernel_entry(self.kernel.cpus[max(thread.last_cpu, 0)], lambda cpu: self._raise(cpu, thread))

    def _raise(self, cpu: Cpu, thread: Thread) -> None:
        """Restore the high priority of a thread; from now on CPU time is charged to the sporadic budget again."""
        account = thread.sporadic
        if account is None:
            return
        if thread.state == "RUNNING":
            self.charge(cpu, thread)
            account.active_since = self.kernel.now
        self.set_priority(cpu, thread, account.high)
